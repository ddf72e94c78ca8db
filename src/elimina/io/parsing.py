"""Functions of a format applied to a file; errors get the file and the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from elimina._core import TextError
from elimina.errors import FormatError, InputError, MemoryLimitError, UnsupportedError, source_text
from elimina.io.files import load

if TYPE_CHECKING:
    from pathlib import Path


def token_text(token: bytes) -> str:
    """Return a token as a quotation for an error message."""
    return repr(token[:40].decode(errors="replace"))


def reraise(path: Path, line: int | None, error: Exception, column: int | None = None) -> NoReturn:
    """Raise an error of a format's module again, with the file, and with the line and column if they are known."""
    if column is not None:
        error = type(error)(f"{error} (column {column})")
    if isinstance(error, (UnsupportedError, MemoryLimitError)):
        location = source_text(path) if line is None else f"{source_text(path)}:{line}"
        raise type(error)(f"{location}: {error}") from None
    if isinstance(error, UnicodeDecodeError):
        raise FormatError(str(path), line, f"expected UTF-8 text: {error.reason}") from None
    if line is None and isinstance(error, InputError):
        raise error
    raise FormatError(str(path), line, str(error)) from None


Parsed = TypeVar("Parsed")


def parse_file(path: Path, open_text: Callable[[bytes], Any], parse: Callable[[Any], Parsed]) -> Parsed:
    """Read a file by the functions of its format, and add the file and the line to their errors.

    Raises:
        FormatError: The file is malformed.
        UnsupportedError: The file uses a feature that elimina does not handle.
        MemoryLimitError: A table of the file is too large, or the process ran out of memory.
        InputError: The file cannot be read.
    """
    text = None
    try:
        text = open_text(load(path))
        return parse(text)
    except (TextError, UnsupportedError, InputError, MemoryLimitError, UnicodeDecodeError) as error:
        reraise(path, None if text is None else text.line, error, getattr(text, "column", None))
    except MemoryError as error:
        raise MemoryLimitError(
            f"{source_text(path)}: the process ran out of memory while it read the file: raise the limit of the "
            "process (ulimit -v, the job's memory)"
        ) from error
