"""Files of lines of words, of which one number follows another."""

from __future__ import annotations

from collections.abc import Iterator

from elimina._core import TextError
from elimina.io.files import shown


class Lines:
    """A file's lines that are neither blank nor comments, as words.

    Args:
        data: The file.
        comment: First character of a line that is a comment.

    Attributes:
        line: Number of the line that was read last, from 1.
    """

    def __init__(self, data: bytes, comment: bytes = b"c") -> None:
        self.line = 1
        self._lines = data.splitlines()
        self._comment = comment

    def __iter__(self) -> Iterator[list[bytes]]:
        for number, text in enumerate(self._lines, 1):
            self.line = number
            words = text.split()
            if words and not words[0].startswith(self._comment):
                yield words
        self._lines = []

    def at_end(self) -> bool:
        """Return True if nothing follows what was read."""
        return not any(text.split() for text in self._lines)

    def peek(self) -> bytes:
        """Return the first word."""
        return next((words[0] for text in self._lines if (words := text.split())), b"")


def integer_of(word: bytes, what: str) -> int:
    """Return a word's integer.

    Raises:
        TextError: It is none.
    """
    digits = word[1:] if word[:1] in (b"+", b"-") else word
    if not digits.isdigit() or len(digits) > 400:
        raise TextError(f"expected {what}, found {shown(word)}")
    return int(word)
