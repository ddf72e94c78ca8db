"""Opening, decompressing and atomically writing files."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from elimina._core import TextError
from elimina.errors import InputError

COMPRESSIONS = (".gz", ".xz")


def shown(token: bytes) -> str:
    """Return a token as an error message quotes it."""
    return repr(token[:40].decode(errors="replace"))


def load(path: Path) -> bytes:
    """Return the whole file, decompressed if its name ends in .gz or .xz.

    Raises:
        InputError: The file cannot be read.
        TextError: The compressed data are damaged, truncated or followed by something else.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    if path.suffix.lower() == ".gz":
        return _gunzip(data)
    if path.suffix.lower() == ".xz":
        return _unxz(data)
    return data


def _gunzip(data: bytes) -> bytes:
    import gzip
    import zlib

    if not data:
        raise TextError("expected gzip data, but the file is empty")
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise TextError(f"expected whole gzip data: {error}") from error


def _unxz(data: bytes) -> bytes:
    import lzma

    parts: list[bytes] = []
    try:
        while data or not parts:
            decoder = lzma.LZMADecompressor()
            parts.append(decoder.decompress(data))
            if not decoder.eof:
                raise TextError("expected whole xz data, but the file ends within them")
            data = decoder.unused_data
    except lzma.LZMAError as error:
        raise TextError(f"expected whole xz data: {error}") from error
    return b"".join(parts)


def save(path: Path, chunks: Iterable[str]) -> None:
    """Write text, compressed if the name ends in .gz or .xz; the file appears only once it is complete.

    Raises:
        InputError: The file cannot be written, or a name is no Unicode text.
    """
    try:
        data = "".join(chunks).encode()
    except UnicodeEncodeError as error:
        raise InputError(f"cannot write {path}: {error.object[error.start]!r} in a name is no character") from error
    if path.suffix.lower() == ".gz":
        import gzip

        data = gzip.compress(data, mtime=0)
    elif path.suffix.lower() == ".xz":
        import lzma

        data = lzma.compress(data)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        try:
            partial.write_bytes(data)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
