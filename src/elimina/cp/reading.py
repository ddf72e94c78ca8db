"""Files of constraint models: one reader for all formats."""

from __future__ import annotations

import os

from elimina import arguments
from elimina.cp.flatzinc_reader import read_flatzinc
from elimina.cp.model import Model
from elimina.cp.opb_reader import read_opb
from elimina.errors import InputError
from elimina.io import FORMATS as MODELS
from elimina.io.files import parsed, root_of, suffix_of
from elimina.system import memory_errors_in_words

FORMATS = ("fzn", "opb", "xml")
"""Suffixes of the formats."""


@memory_errors_in_words("while it read the constraint model", None)
def read(path: str | os.PathLike[str]) -> Model:
    """Read a model of constraints: FlatZinc, linear pseudo-Boolean problems (.opb), and XCSP3 (.xml).

    A FlatZinc model's variables have the names of its outputs (``x``, ``q[1]``, ``cell[1,2]``), or else those of their
    declarations: ``model["q[1]"]``. Variables that equations make the same are one. Annotations of the search are not
    taken over: that is what ``fzn-elimina`` is for.

    Args:
        path: The file; its suffix names the format, FlatZinc by default. Decompressed if it ends in .gz or .xz.

    Raises:
        FormatError: The file is malformed; it names the line.
        UnsupportedError: An item is well formed, but not supported.
        InputError: The file cannot be read, or its suffix is that of a graphical model or of a tour problem.
        MemoryLimitError: Memory ran out.
    """
    path = arguments.file("path", path)
    suffix = suffix_of(path)
    if suffix in MODELS and suffix not in FORMATS:
        raise InputError(f"{path} is a graphical model, not one of constraints: use 'elimina solve' or elimina.read")
    if suffix == "tsp":
        raise InputError(f"{path} is a travelling salesman problem: use 'elimina tsp' or elimina.cp.tsplib.read_tsp")
    if suffix == "mzn":
        raise InputError(f"{path} is MiniZinc: use 'minizinc --solver elimina', after 'elimina install-minizinc'")
    if suffix in ("yaml", "yml"):
        raise InputError(f"{path} is a distributed problem: use 'elimina dcop' or elimina.dcop.read")
    data = parsed(path, bytes, bytes)
    if suffix == "xml":
        from elimina.cp.xcsp3.reader import read_xcsp3

        return read_xcsp3(path, data)
    return read_opb(path, data) if suffix == "opb" else read_flatzinc(path, data)


def is_of_constraints(path: str | os.PathLike[str]) -> bool:
    """Return whether a file holds a constraint model, by its suffix, or by its content if that is .xml.

    Raises:
        InputError: The content is needed and cannot be read.
    """
    path = arguments.file("path", path)
    if suffix_of(path) != "xml":
        return suffix_of(path) in FORMATS
    return root_of(path).attributes.get("format") == "XCSP3"
