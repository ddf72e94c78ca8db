"""Files of constraint models: one reader for all formats."""

from __future__ import annotations

import os

from elimina import arguments
from elimina.cp.flatzinc_reader import read_flatzinc
from elimina.cp.model import Model
from elimina.cp.opb_reader import read_opb
from elimina.errors import InputError, source_text
from elimina.io.files import suffix_of
from elimina.io.formats import FORMATS, by_suffix
from elimina.io.parsing import parse_file
from elimina.system import memory_errors_in_words


@memory_errors_in_words("while it read the constraint model", None)
def read(path: str | os.PathLike[str]) -> Model:
    """Read a model of constraints: FlatZinc, linear pseudo-Boolean problems (.opb), and XCSP3 (.xml).

    A FlatZinc model's variables have the names of its outputs (``x``, ``q[1]``, ``cell[1,2]``), or else those of their
    declarations: ``model["q[1]"]``. Variables that an equation makes equal become one variable. Annotations of the
    search are ignored; ``fzn-elimina`` follows them.

    Args:
        path: The file; its suffix names the format, FlatZinc by default. Decompressed if it ends in .gz or .xz.

    Raises:
        FormatError: The file is malformed; it names the line.
        UnsupportedError: An item is well formed, but not supported.
        InputError: The file cannot be read, or its suffix is that of other files: graphical models, distributed
            problems, tours, MiniZinc or evidence.
        MemoryLimitError: Memory ran out.

    Examples:
        >>> from elimina import cp
        >>> cp.read("examples/queens.fzn").solve().status
        'feasible'
    """
    path = arguments.file("path", path)
    suffix = suffix_of(path)
    form = by_suffix("constraints").get(suffix)
    file_format = next((file_format for file_format in FORMATS if suffix in file_format.suffixes), None)
    if form is None and file_format is not None:
        raise InputError(f"{source_text(path)} holds no constraint model: {file_format.use}")
    data = parse_file(path, bytes, bytes)
    if form is not None and form.name == "xcsp3":
        from elimina.cp.xcsp3.reader import read_xcsp3

        return read_xcsp3(path, data)
    return read_opb(path, data) if form is not None and form.name == "opb" else read_flatzinc(path, data)
