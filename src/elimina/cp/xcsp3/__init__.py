"""XCSP3: the constraints of its core, and an objective (Audemard, Boussemart, Lecoutre, Piette and Roussel, 2022)."""

from __future__ import annotations

import os
from pathlib import Path

from elimina._core import TextError
from elimina.cp.model import Model
from elimina.cp.xcsp3.document import Reader
from elimina.errors import InputError, UnsupportedError
from elimina.io.files import load, reraise
from elimina.io.markup import Document

ROOT = "instance"


def read(path: str | os.PathLike[str]) -> Model:
    """Read a problem; its variables have the names of the file: ``model["x"]``, ``model["q[1][2]"]``.

    Args:
        path: The file; decompressed if it ends in .gz or .xz.

    Raises:
        FormatError: The file is malformed; it names the line.
        UnsupportedError: An element is not supported.
        InputError: The file cannot be read.
    """
    path = Path(path)
    document: Document | None = None
    try:
        document = Document(load(path))
        root = document.root(ROOT)
        return Reader(document).model_of(root)
    except (TextError, UnsupportedError) as error:
        reraise(path, None if document is None else document.line, error, None if document is None else document.column)
    except RecursionError:
        reraise(path, None if document is None else document.line, TextError("the nesting is too deep"))
    except InputError as error:
        # The solver's own refusal of an argument is one of the file's contents, once it is being read.
        if document is None:
            raise
        reraise(path, document.line, TextError(str(error)))
