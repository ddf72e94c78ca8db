"""XML files as elements with their lines."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from elimina._core import TextError
from elimina.errors import InputError
from elimina.io.formats import marked_format
from elimina.io.parsing import token_text

_ROOTS_OF_XML = "an .xml file holds XMLBIF, in <BIF>, or XCSP3 or XCSP 2.1, in <instance>"


@functools.cache
def not_xml() -> re.Pattern[str]:
    """Return the pattern of characters forbidden in XML, compiled when needed: it takes longer than a small model."""
    return re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def checked_xml(name: str) -> str:
    """Return a name if it is valid in XML.

    Raises:
        InputError: The name has a forbidden character.
    """
    invalid = not_xml().search(name)
    if invalid:
        raise InputError(f"an XML file cannot hold the name {name!r}: it has the character {invalid.group()!r}")
    return name


class Element:
    """An element of an XML document.

    Attributes:
        tag: Name of the element.
        attributes: Name -> value, as written in the file.
        line: Line at which it starts.
        children: The elements directly in it.
    """

    __slots__ = ("_text", "attributes", "children", "line", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], line: int) -> None:
        self.tag, self.attributes, self.line = tag, attributes, line
        self.children: list[Element] = []
        self._text: list[str] = []

    def add_text(self, text: str) -> None:
        """Append to the text directly in the element, outside its children."""
        self._text.append(text)

    @property
    def raw_text(self) -> str:
        """The text directly in the element, with its line breaks, those within comments included."""
        return "".join(self._text)

    @property
    def text(self) -> str:
        """The text directly in the element, stripped of blanks unless xml:space="preserve" keeps them."""
        return self.raw_text if self.attributes.get("xml:space") == "preserve" else self.raw_text.strip()


class Document:
    """An XML file as a source of ``elimina.io.read``; ``line`` is the line of the current element."""

    def __init__(self, data: bytes) -> None:
        self.line = 1
        self.column: int | None = None
        self._data = data
        self._open: list[Element] = []

    def at_end(self) -> bool:
        """Return True: ``root`` reads the whole file."""
        return True

    def peek(self) -> bytes:
        """Return an empty text: ``root`` reads the whole file."""
        return b""

    def contains(self, text: bytes) -> bool:
        """Return whether the file holds a text, even in a comment."""
        return text in self._data

    def root(self, tag: str) -> Element:
        """Parse the file and return its outermost element, which must have this name.

        Raises:
            TextError: The file is not well-formed, has an unknown encoding, declares entities, or starts with another
                element.
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
            raise TextError(f"expected XML in a known encoding: {error}") from error
        (root,) = top.children
        if root.tag != tag:
            self.line = root.line
            actual = marked_format("xml", self._data)
            hint = _ROOTS_OF_XML if actual is None and tag in ("BIF", "instance") else actual and actual.use
            raise TextError(
                f"expected <{tag}>, found <{token_text(root.tag.encode())[1:-1]}>{f'; {hint}' if hint else ''}"
            )
        return root

    def visit(self, element: Element) -> Iterator[Element]:
        """Yield an element's children; ``line`` is then the child's, and at the end the element's own."""
        for child in element.children:
            self.line = child.line
            yield child
        self.line = element.line

    def only(self, element: Element, tag: str, owner: str) -> Element:
        """Return the only child with this name.

        Raises:
            TextError: No child has the name, or several have.
        """
        children = [child for child in element.children if child.tag == tag]
        self.line = children[1].line if len(children) > 1 else element.line
        if len(children) != 1:
            raise TextError(f"expected one <{tag}> in {owner}, found {len(children) or 'none'}")
        self.line = children[0].line
        return children[0]
