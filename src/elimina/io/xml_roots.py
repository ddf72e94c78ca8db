"""The outermost element of an XML file, which determines its format."""

from __future__ import annotations

import contextlib
from typing import NamedTuple


class Root(NamedTuple):
    """The start of an XML document's outermost element.

    Attributes:
        tag: Name of the element; "" if there is none.
        attributes: Name -> value.
    """

    tag: str
    attributes: dict[str, str]


def root_of(data: bytes) -> Root:
    """Return the start of a document's outermost element, without a tag if there is none; the rest is not parsed."""
    from xml.parsers import expat  # imported here: it takes 1 ms, which only XML files need

    roots: list[Root] = []
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        roots.append(Root(name, attributes))
        raise _RootReadError

    parser.StartElementHandler = start
    with contextlib.suppress(_RootReadError, expat.ExpatError, LookupError, ValueError):
        parser.Parse(data, True)
    return roots[0] if roots else Root("", {})


class _RootReadError(Exception):
    """Signal that the outermost element has been read, so that parsing ends."""
