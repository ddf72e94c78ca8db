"""Reading models by their suffix, those of constraints included."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from elimina.io import read
from elimina.io.files import suffix_of

if TYPE_CHECKING:
    from elimina.model import Model


def read_model(path: str) -> Model:
    """Read a model; a FlatZinc file's constraints become tables.

    Raises:
        InputError: It cannot be read, or a constraint's table would be too large.
    """
    if suffix_of(Path(path)) != "fzn":
        return read(path)
    from elimina import cp

    return cp.read(path).to_model()
