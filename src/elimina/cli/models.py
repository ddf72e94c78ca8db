"""Reading models by their suffix, those of constraints included."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from elimina.errors import InputError
from elimina.io import read
from elimina.io.files import suffix_of

if TYPE_CHECKING:
    from elimina.model import Model


_ELSEWHERE = {
    "mzn": "'minizinc --solver elimina' solves it once 'elimina install-minizinc' has run, and with -c makes a .fzn "
    "file of it, which may be small enough for this command",
    "tsp": "'elimina tsp' finds its tours",
}
"""Suffixes of problems that other commands solve."""


def read_model(path: str, *, no_check: bool = False) -> Model:
    """Read a model; a FlatZinc file's constraints become tables.

    Args:
        path: The file.
        no_check: True if a network's probabilities are taken as they are.

    Raises:
        InputError: It cannot be read, or a constraint's table would be too large.
    """
    suffix = suffix_of(Path(path))
    if suffix in _ELSEWHERE:
        raise InputError(f"{path} is no graphical model: {_ELSEWHERE[suffix]}")
    if suffix != "fzn":
        return read(path, check=not no_check)
    from elimina import cp

    return cp.read(path).to_model()
