"""Elements of a file, with a check that everything in them was read: unread contents are an error."""

from __future__ import annotations

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.io.xml_documents import Element

_HARMLESS = frozenset({"id", "class", "note"})
"""Attributes that every element may have; they do not change the model."""


class ElementContents:
    """The children, attributes and text of an element, each marked when it is read.

    Args:
        element: The element.
        owner: Name of the outermost constraint, for errors.
    """

    def __init__(self, element: Element, owner: str | None = None) -> None:
        self._element = element
        self.name, self.line = element.tag, element.line
        self._owner = owner or element.tag
        self._attributes = set(_HARMLESS)
        self._children: dict[int, ElementContents] = {}
        self._is_text_read = False

    @property
    def has_children(self) -> bool:
        """True if the element has children."""
        return bool(self._element.children)

    @property
    def text(self) -> str:
        """The text directly in the element."""
        self._is_text_read = True
        return self._element.raw_text

    def attribute(self, name: str, default: str) -> str:
        """Return the value of an attribute, or the default."""
        self._attributes.add(name)
        return self._element.attributes.get(name, default)

    def all(self, tag: str) -> list[ElementContents]:
        """Return the children with this tag."""
        chosen = [(position, child) for position, child in enumerate(self._element.children) if child.tag == tag]
        return [self._children.setdefault(position, ElementContents(child, self._owner)) for position, child in chosen]

    def get(self, tag: str) -> ElementContents | None:
        """Return the child with this tag; None if there is none.

        Raises:
            TextError: Several children have the tag.
        """
        children = self.all(tag)
        if len(children) > 1:
            raise TextError(f"expected one <{tag}> in <{self.name}>, found {len(children)}")
        return children[0] if children else None

    def child(self, tag: str) -> ElementContents:
        """Return the only child with this tag.

        Raises:
            TextError: No child has the tag, or several have.
        """
        only = self.get(tag)
        if only is None:
            raise TextError(f"expected <{tag}> in <{self.name}>")
        return only

    @property
    def main(self) -> ElementContents:
        """The list, or the element itself if it has no children."""
        return self.child("list") if self.has_children else self

    def check(self) -> None:
        """Check that everything was read.

        Raises:
            UnsupportedError: A child or an attribute was not read; it is named.
            TextError: A text was not read.
        """
        location = f"<{self._owner}>" if self.name == self._owner else f"<{self.name}> of <{self._owner}>"
        for name, value in self._element.attributes.items():
            if name not in self._attributes:
                raise UnsupportedError(f'{name}="{value[:40]}" of {location} is not supported')
        for position, child in enumerate(self._element.children):
            if position not in self._children:
                raise UnsupportedError(f"<{child.tag}> in {location} is not supported here")
            self._children[position].check()
        if not self._is_text_read and self._element.text:
            raise TextError(f"expected elements in {location}, found the text {self._element.text[:40]!r}")
