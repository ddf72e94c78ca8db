"""Opening, decompressing and atomically writing files."""

from __future__ import annotations

import functools
import os
import secrets
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from elimina._core import TextError
from elimina.errors import FormatError, InputError, MemoryLimitError, UnsupportedError

COMPRESSIONS = (".gz", ".xz")
DISTRIBUTED_HINT = "distributed problems are for elimina.dcop.read, 'elimina dcop' and 'elimina convert'"


def shown(token: bytes) -> str:
    """Return a token as an error message quotes it."""
    return repr(token[:40].decode(errors="replace"))


def load(path: Path) -> bytes:
    """Return the whole file, decompressed if its name ends in .gz or .xz; a name such as ``-.uai`` is standard input.

    Raises:
        InputError: The file cannot be read.
        TextError: The compressed data are damaged, truncated or followed by something else.
    """
    try:
        data = _standard_input() if path.name.startswith("-.") else path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    if path.suffix.lower() == ".gz":
        return _gunzip(data)
    if path.suffix.lower() == ".xz":
        return _unxz(data)
    return data


@functools.cache
def _standard_input() -> bytes:
    # It can be read once, and some formats are recognised by their content.
    return sys.stdin.buffer.read()


def _gunzip(data: bytes) -> bytes:
    import gzip
    import zlib

    if not data:
        raise TextError("expected gzip data, but the file is empty")
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise TextError(f"the gzip data are damaged or cut off: {error}") from error


def _unxz(data: bytes) -> bytes:
    import lzma

    parts: list[bytes] = []
    try:
        while data or not parts:
            decoder = lzma.LZMADecompressor()
            parts.append(decoder.decompress(data))
            if not decoder.eof:
                raise TextError("the xz data are cut off")
            data = decoder.unused_data
    except lzma.LZMAError as error:
        raise TextError(f"the xz data are damaged: {error}") from error
    return b"".join(parts)


def save(path: Path, chunks: Iterable[str]) -> None:
    """Write text, compressed if the name ends in .gz or .xz; the file appears only once it is complete.

    A file that is replaced keeps its mode, and a symbolic link its name; a pipe or a device is written to.

    Raises:
        InputError: The file cannot be written, or a name is not Unicode text.
    """
    try:
        data = "".join(chunks).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"cannot write {path}: a name contains {error.object[error.start]!r}, which UTF-8 cannot encode"
        ) from error
    if path.suffix.lower() == ".gz":
        import gzip

        data = gzip.compress(data, mtime=0)
    elif path.suffix.lower() == ".xz":
        import lzma

        data = lzma.compress(data)
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def _replace(path: Path, data: bytes) -> None:
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        # The new file starts with the old one's permissions, so that no one can read it who could not read the old one.
        created = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600)
        with open(created, "wb") as file:
            file.write(data)
        if mode is not None:
            partial.chmod(mode)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def reraise(path: Path, line: int | None, error: Exception, column: int | None = None) -> NoReturn:
    """Add the file, and the line if reading had begun, to an error of a format's module."""
    if column is not None:
        error = type(error)(f"{error} (column {column})")
    if isinstance(error, (UnsupportedError, MemoryLimitError)):
        where = str(path) if line is None else f"{path}:{line}"
        raise type(error)(f"{where}: {error}") from None
    if isinstance(error, UnicodeDecodeError):
        raise FormatError(str(path), line, f"expected UTF-8 text: {error.reason}") from None
    if line is None and isinstance(error, InputError):
        raise error
    raise FormatError(str(path), line, str(error)) from None


def suffix_of(path: Path) -> str:
    """Return the suffix that names the format, in lower case, without its dot and without .gz or .xz."""
    stem = Path(path.stem) if path.suffix.lower() in COMPRESSIONS else path
    return stem.suffix.lower().removeprefix(".")
