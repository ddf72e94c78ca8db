"""Opening, decompressing and atomically writing files, and XML as elements that know their lines."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import stat
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

from elimina._core import TextError
from elimina.errors import FormatError, InputError, MemoryLimitError, UnsupportedError
from elimina.model.model import Model
from elimina.model.table import Sense

if TYPE_CHECKING:
    from pathlib import Path


class Format(NamedTuple):
    """A format of models.

    Attributes:
        senses: Senses that a file can have.
        open_text: Function that makes the source that ``parse`` reads of a file's content.
        parse: Function that reads a model.
        render: Function that yields a file's text; None if the format is only read.
        holds_names: True if the format has a place for the names of variables and states.
        is_of_networks: True if the format is for networks alone, rather than also for products of tables that only look
            like one.
        is_often_latin1: True if programs write the format in the encoding of their system.
    """

    senses: tuple[Sense, ...]
    open_text: Callable[[bytes], Any]
    parse: Callable[[Any], Model]
    render: Callable[[Model], Iterator[str]] | None = None
    holds_names: bool = False
    is_of_networks: bool = False
    is_often_latin1: bool = False


COMPRESSIONS = (".gz", ".xz")
_MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\0"}
"""First bytes of compressed data."""
_UNREAD = re.compile(rb"(?P<bzip2>BZh[1-9]1AY&SY)|(?P<zstd>\x28\xb5\x2f\xfd)|(?P<zip>PK\x03\x04)")
"""First bytes of data that another program has to unpack."""
_MOST_NAMES = 1000
"""Names of a folder that are compared with that of a missing file."""
DISTRIBUTED_HINT = "distributed problems are for elimina.dcop.read, 'elimina dcop' and 'elimina convert'"


@functools.cache
def not_xml() -> re.Pattern[str]:
    """Return the pattern of a character that XML cannot hold; compiling it takes longer than to read a small model."""
    return re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def checked_xml(name: str) -> str:
    """Return a name that XML can hold.

    Raises:
        InputError: It cannot.
    """
    found = not_xml().search(name)
    if found:
        raise InputError(f"an XML file cannot hold the name {name!r}: it has the character {found.group()!r}")
    return name


def shown(token: bytes) -> str:
    """Return a token as an error message quotes it."""
    return repr(token[:40].decode(errors="replace"))


def load(path: Path) -> bytes:
    """Return the whole file, decompressed (see ``unpacked``); a name such as ``-.uai`` is standard input.

    Raises:
        InputError: The file cannot be read.
        TextError: The compressed data cannot be read.
    """
    try:
        data = _standard_input() if path.name.startswith("-.") else path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}{_close_to(path)}") from error
    return unpacked(path, data)


def unpacked(path: Path, data: bytes) -> bytes:
    """Return a file's data, decompressed if its name ends in .gz or .xz, or if they begin as gzip or xz data.

    A byte order mark, which some editors put before UTF-8 text, is left out.

    Raises:
        TextError: The data are damaged, cut off or followed by something else, or another program has to unpack them.
    """
    suffix = path.suffix.lower()
    if suffix not in COMPRESSIONS:
        suffix = next((known for known, magic in _MAGIC.items() if data.startswith(magic)), "")
    if not suffix:
        if other := _UNREAD.match(data):
            raise TextError(f"the file holds {other.lastgroup} data, and only gzip and xz are read: unpack it first")
        return data.removeprefix(BOM_UTF8)
    kind = {".gz": "gzip", ".xz": "xz"}[suffix]
    if not data:
        raise TextError(f"expected {kind} data, but the file is empty")
    if not data.startswith(_MAGIC[suffix]):
        raise TextError(f"expected {kind} data: if the file is not compressed, leave {suffix} out of its name")
    return (_gunzip(data) if suffix == ".gz" else _unxz(data)).removeprefix(BOM_UTF8)


def _close_to(path: Path) -> str:
    """Return a hint at a file with a similar name, if a file is missing and there is one."""
    if path.exists():
        return ""
    try:
        names = [file.name for file in itertools.islice(path.parent.iterdir(), _MOST_NAMES)]
    except OSError:
        return ""
    import difflib

    found = difflib.get_close_matches(path.name, [name for name in names if name != path.name], 1)
    return f"; close to it: {path.parent / found[0]}" if found else ""


@functools.cache
def _standard_input() -> bytes:
    # It can be read once, and some formats are recognised by their content.
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

    parts: list[bytes] = []
    try:
        while data or not parts:
            decoder = lzma.LZMADecompressor()
            parts.append(decoder.decompress(data))
            if not decoder.eof:
                raise TextError("the xz data are cut off")
            # Streams may be padded by zeros, in fours.
            rest = decoder.unused_data.lstrip(b"\0")
            data = decoder.unused_data if (len(decoder.unused_data) - len(rest)) % 4 else rest
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
        with replacement_of(path) as file:
            file.write_bytes(data)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def replacement_of(path: Path) -> Iterator[Path]:
    """Yield the path of a new file that replaces this one at the end; an error removes it.

    A file that is replaced keeps its mode, and a symbolic link its name. A pipe or a device is yielded itself.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    path = type(path)(os.path.realpath(path))
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    partial = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        # The new file starts with the old one's permissions, so that no one can read it who could not read the old one.
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600))
        yield partial
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


Parsed = TypeVar("Parsed")


def parsed(path: Path, open_text: Callable[[bytes], Any], parse: Callable[[Any], Parsed]) -> Parsed:
    """Read a file by the functions of its format, whose errors get the file and the place.

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
            f"{path}: the process ran out of memory while it read the file: raise the limit of the process (ulimit -v, "
            "the job's memory)"
        ) from error


def suffix_of(path: Path) -> str:
    """Return the suffix that names the format, in lower case, without its dot and without .gz or .xz."""
    stem = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return stem.suffix.lower().removeprefix(".")


_CFN_START = re.compile(rb'(?:\s|#[^\n]*|//[^\n]*)*\{\s*"?problem"?[\s:]*[{\[]')


def holds_cfn(path: Path) -> bool:
    """Return whether a file is in toulbar2's CFN format, which is often JSON, by its first words.

    Raises:
        FormatError: The compressed data are damaged.
        InputError: The file cannot be read.
    """
    return _CFN_START.match(parsed(path, bytes, bytes)) is not None


_XCSP3_HINT = "constraint models are for elimina.cp.read, 'elimina cp' and 'elimina solve'"
_HINTS = {"instance": DISTRIBUTED_HINT, "BIF": "Bayesian networks are for elimina.read and 'elimina solve'"}


class Element:
    """An element of an XML document.

    Attributes:
        tag: Name of the element.
        attributes: Name -> value, those written in the file.
        line: Line at which it starts.
        children: The elements directly in it.
    """

    __slots__ = ("_text", "attributes", "children", "line", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], line: int) -> None:
        self.tag, self.attributes, self.line = tag, attributes, line
        self.children: list[Element] = []
        self._text: list[str] = []

    def add_text(self, text: str) -> None:
        """Append to the text directly in it."""
        self._text.append(text)

    @property
    def raw_text(self) -> str:
        """The text directly in the element, with its line breaks (also those of comments)."""
        return "".join(self._text)

    @property
    def text(self) -> str:
        """The text directly in it, without blanks around it unless it asks for them by xml:space."""
        return self.raw_text if self.attributes.get("xml:space") == "preserve" else self.raw_text.strip()


class Document:
    """An XML file as ``elimina.io.read`` needs it; ``line`` is that of the element being looked at."""

    def __init__(self, data: bytes) -> None:
        self.line = 1
        self.column: int | None = None
        self._data = data
        self._open: list[Element] = []

    def at_end(self) -> bool:
        """Return whether the text is at its end: ``root`` reads everything."""
        return True

    def peek(self) -> bytes:
        """Return the rest of the text, unread."""
        return b""

    def contains(self, text: bytes) -> bool:
        """Return whether the file holds a text, be it in a comment."""
        return text in self._data

    def root(self, tag: str) -> Element:
        """Parse the file and return its outermost element, which must have this name.

        Raises:
            TextError: The file is not well-formed, declares entities, or starts with another element.
        """
        from xml.parsers import expat

        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.specified_attributes = True
        top = Element("", {}, 1)
        self._open = [top]

        def start(name: str, attributes: dict[str, str]) -> None:
            element = Element(name, attributes, parser.CurrentLineNumber)
            self._open[-1].children.append(element)
            self._open.append(element)

        def refuse(name: str, *_: object) -> None:
            self.line = parser.CurrentLineNumber
            raise TextError(f"expected no entities besides XML's own, found {name[:40]!r}")

        parser.StartElementHandler = start
        parser.EndElementHandler = lambda _: self._open.pop()
        parser.CharacterDataHandler = lambda text: self._open[-1].add_text(text)
        parser.CommentHandler = lambda text: self._open[-1].add_text("\n" * text.count("\n"))
        parser.EntityDeclHandler = refuse
        parser.SkippedEntityHandler = refuse
        try:
            parser.Parse(self._data, True)
        except expat.ExpatError as error:
            self.line, self.column = error.lineno, error.offset + 1
            raise TextError(f"expected well-formed XML: {expat.errors.messages[error.code]}") from error
        except (LookupError, ValueError) as error:
            if isinstance(error, TextError):
                raise
            raise TextError(f"expected XML in an encoding that is known: {error}") from error
        (root,) = top.children
        if root.tag != tag:
            self.line = root.line
            is_xcsp3 = root.tag == "instance" and root.attributes.get("format") == "XCSP3"
            hint = f"; {_XCSP3_HINT if is_xcsp3 else _HINTS[root.tag]}" if root.tag in _HINTS else ""
            raise TextError(f"expected <{tag}>, found <{shown(root.tag.encode())[1:-1]}>{hint}")
        return root

    def visit(self, element: Element) -> Iterator[Element]:
        """Yield an element's children, with ``line`` following them."""
        for child in element.children:
            self.line = child.line
            yield child
        self.line = element.line

    def only(self, element: Element, tag: str, owner: str) -> Element:
        """Return the only child of a name.

        Raises:
            TextError: There is none, or another.
        """
        found = [child for child in element.children if child.tag == tag]
        self.line = found[1].line if len(found) > 1 else element.line
        if len(found) != 1:
            raise TextError(f"expected one <{tag}> in {owner}, found {len(found) or 'none'}")
        self.line = found[0].line
        return found[0]


def root_of(path: Path) -> Element:
    """Return a file's outermost element without its contents; its tag is "" if there is none.

    Nothing after that element's start is parsed.

    Raises:
        FormatError: The compressed data are damaged.
        InputError: The file cannot be read.
    """
    from xml.parsers import expat

    data = parsed(path, bytes, bytes)
    found: list[Element] = []
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        found.append(Element(name, attributes, parser.CurrentLineNumber))
        raise _FoundError

    parser.StartElementHandler = start
    with contextlib.suppress(_FoundError, expat.ExpatError, LookupError, ValueError):
        parser.Parse(data, True)
    return found[0] if found else Element("", {}, 1)


class _FoundError(Exception):
    """Ends the search for an element."""
