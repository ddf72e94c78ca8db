"""Reading constraint models: one module a format, chosen by the file's suffix."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from elimina._core import TextError
from elimina.cp.model import Model
from elimina.errors import InputError
from elimina.io import FORMATS as MODELS
from elimina.io.files import load, reraise, suffix_of

FORMATS = {"fzn": "flatzinc", "opb": "opb", "xml": "xcsp3"}
"""Suffix of each format and the module of this package that reads it."""


def read(path: str | os.PathLike[str]) -> Model:
    """Read a model of constraints: FlatZinc, text or JSON, linear pseudo-Boolean problems (.opb), and XCSP3 (.xml).

    A FlatZinc model's variables have the names of its outputs (``x``, ``q[1]``, ``cell[1,2]``), or else those of their
    declarations: ``model["q[1]"]``. Variables that equations make the same are one. Annotations of the search are not
    taken over: that is what ``fzn-elimina`` is for.

    Args:
        path: The file; its suffix names the format, FlatZinc by default. Decompressed if it ends in .gz or .xz.

    Raises:
        FormatError: The file is malformed; it names the line.
        UnsupportedError: An item is well formed, but not supported.
        InputError: The file cannot be read, or its suffix is that of a graphical model or of a tour problem.
    """
    suffix = suffix_of(Path(path))
    if suffix in MODELS and suffix not in FORMATS:
        raise InputError(f"{path} is a graphical model, not one of constraints: use 'elimina solve' or elimina.read")
    if suffix == "tsp":
        raise InputError(f"{path} is a travelling salesman problem: use 'elimina tsp' or elimina.cp.tsplib.read_tsp")
    name = FORMATS.get(suffix, "flatzinc")
    model: Model = import_module(f"elimina.cp.{name}").read(path)
    return model


def is_of_constraints(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds a constraint model, by its suffix, or by its content if that is .xml.

    Raises:
        InputError: The content is needed and cannot be read.
    """
    path = Path(path)
    if suffix_of(path) != "xml":
        return suffix_of(path) in FORMATS
    from elimina.io.markup import root_of

    try:
        return root_of(load(path)).attributes.get("format") == "XCSP3"
    except TextError as error:
        reraise(path, None, error)
