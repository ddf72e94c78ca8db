"""Opening, decompressing and atomically writing files."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import stat
import sys
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from elimina._core import TextError
from elimina.errors import InputError, source_text

if TYPE_CHECKING:
    from pathlib import Path

COMPRESSIONS = (".gz", ".xz")
_MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\0"}
"""First bytes of compressed data."""
_OTHER_COMPRESSIONS = re.compile(rb"(?P<bzip2>BZh[1-9]1AY&SY)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<zip>PK\x03\x04)")
"""First bytes of data in other compressed formats."""
_BINARY_PREFIX_BYTES = 4096
"""Length of the start of a file in which a byte 0 shows that the file is not text."""
_MAX_COMPARED_NAMES = 1000
"""Largest number of names of a folder to compare with the name of a missing file."""


def load(path: Path) -> bytes:
    """Return the whole file, decompressed (see ``unpacked``); a name such as ``-.uai`` is standard input.

    Raises:
        InputError: The file cannot be read.
        TextError: The compressed data cannot be read.
    """
    try:
        data = _standard_input() if path.name.startswith("-.") else path.read_bytes()
    except OSError as error:
        raise InputError(
            f"cannot read {source_text(path)}: {error.strerror or error}{_similar_file_hint(path)}"
        ) from error
    return unpacked(path, data)


def unpacked(path: Path, data: bytes) -> bytes:
    """Return a file's data, decompressed if its name ends in .gz or .xz, or if the data begin as gzip or xz data do.

    A byte order mark is removed, and UTF-16 becomes UTF-8.

    Raises:
        TextError: The data are damaged, cut off or followed by other data, or need another program.
    """
    suffix = path.suffix.lower()
    if suffix not in COMPRESSIONS:
        suffix = next((ending for ending, magic in _MAGIC.items() if data.startswith(magic)), "")
    if not suffix:
        if other_kind := _OTHER_COMPRESSIONS.match(data):
            raise TextError(
                f"the file holds {other_kind.lastgroup} data, and only gzip and xz are read: unpack it first"
            )
        return _in_utf8(data)
    kind = {".gz": "gzip", ".xz": "xz"}[suffix]
    if not data:
        raise TextError(f"expected {kind} data, but the file is empty")
    if not data.startswith(_MAGIC[suffix]):
        raise TextError(f"expected {kind} data: if the file is not compressed, leave {suffix} out of its name")
    return _in_utf8(_gunzip(data) if suffix == ".gz" else _unxz(data))


def _in_utf8(data: bytes) -> bytes:
    """Return text in UTF-8 without a byte order mark; UTF-16, written by Windows' shells, is recognised by its mark.

    Raises:
        TextError: The data are not text, or not UTF-16 although their mark says so.
    """
    if not data.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        # XML may be in UTF-16 without a mark: its parser knows.
        if b"\0" in data[:_BINARY_PREFIX_BYTES] and b"<" not in data[:2]:
            raise TextError("expected text, found binary data (a byte 0)")
        return data.removeprefix(BOM_UTF8)
    try:
        text = data.decode("utf-16")
    except UnicodeDecodeError as error:
        raise TextError(f"expected UTF-16 text, as its byte order mark says: {error.reason}") from None
    # XML declares its encoding itself, so the parser decodes it.
    return data if text.startswith("<?xml") else text.encode(errors="surrogatepass")


def _similar_file_hint(path: Path) -> str:
    """Return a hint at a file with a name similar to the missing file's; empty if there is none."""
    if path.exists():
        return ""
    try:
        names = [file.name for file in itertools.islice(path.parent.iterdir(), _MAX_COMPARED_NAMES)]
    except OSError:
        return ""
    import difflib

    # Only names without their endings are compared: equal endings would make any two short names similar.
    by_stem: dict[str, list[str]] = {}
    for name in names:
        if name != path.name:
            by_stem.setdefault(name.partition(".")[0], []).append(name)
    stems = difflib.get_close_matches(path.name.partition(".")[0], by_stem, 1)
    if not stems:
        return ""
    return f"; did you mean {path.parent / difflib.get_close_matches(path.name, by_stem[stems[0]], 1, 0)[0]}?"


@functools.cache
def _standard_input() -> bytes:
    # Cached, because standard input can be read only once, and is needed twice: to detect the format, and to parse it.
    return sys.stdin.buffer.read()


def _gunzip(data: bytes) -> bytes:
    import gzip
    import zlib

    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as error:
        raise TextError(f"the gzip data are damaged or cut off: {error}") from error


def _unxz(data: bytes) -> bytes:
    import lzma

    blocks: list[bytes] = []
    try:
        while data or not blocks:
            decoder = lzma.LZMADecompressor()
            blocks.append(decoder.decompress(data))
            if not decoder.eof:
                raise TextError("the xz data are cut off")
            # The xz format allows padding after a stream: zeros in a multiple of four.
            next_stream = decoder.unused_data.lstrip(b"\0")
            data = decoder.unused_data if (len(decoder.unused_data) - len(next_stream)) % 4 else next_stream
    except lzma.LZMAError as error:
        raise TextError(f"the xz data are damaged: {error}") from error
    return b"".join(blocks)


def save(path: Path, chunks: Iterable[str]) -> None:
    """Write text, compressed if the name ends in .gz or .xz; the file appears only once it is complete.

    A replaced file keeps its mode. A symbolic link stays, and its target is replaced. A pipe or a device is written to.

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
        with replacement_of(path) as file:
            file.write_bytes(data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def replacement_of(path: Path) -> Iterator[Path]:
    """Yield the path of a new file that replaces this one at the end; an error removes it.

    A replaced file keeps its mode. A symbolic link stays, and its target is replaced. The path of a pipe or a device is
    yielded as it is.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    path = type(path)(os.path.realpath(path))
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    partial = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        # While the new file is written, only its owner can read it; then it gets the permissions of the replaced file.
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600))
        yield partial
        if mode is not None:
            partial.chmod(mode)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def suffix_of(path: Path) -> str:
    """Return the suffix that names the format, in lower case, without its dot and without .gz or .xz."""
    stem = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return stem.suffix.lower().removeprefix(".")
