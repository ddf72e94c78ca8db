"""The keywords of WCSP files: reading their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from elimina._core import Text, TextError
from elimina.errors import UnsupportedError
from elimina.io.files import shown
from elimina.io.globals import GlobalFunctions
from elimina.io.keywords import BINARY, GLOBAL, add_binary, add_global


def read_function(text: Text, scope: list[int], target: GlobalFunctions) -> None:
    """Read a keyword and its parameters and add its function.

    Raises:
        TextError: The parameters are malformed.
        UnsupportedError: The keyword is not handled, or its function is too large to be written out.
    """
    word = text.token("a keyword")
    keyword = word.decode(errors="replace")
    if keyword in BINARY:
        add_binary(target, keyword, scope, text.integers(BINARY[keyword], "a parameter").tolist())
    elif keyword in GLOBAL:
        reader = _Parameters(text, keyword, scope)
        given: dict[str, Any] = {}
        for name in GLOBAL[keyword].split():
            given[name] = reader.read(name, given)
        add_global(target, keyword, scope, given)
    else:
        raise UnsupportedError(f"the keyword {shown(word)} is not handled; give the function by its tuples")


class _Parameters:
    def __init__(self, text: Text, keyword: str, scope: list[int]) -> None:
        self.text, self.keyword, self.scope = text, keyword, scope
        self.second = 0

    def read(self, name: str, given: dict[str, Any]) -> Any:
        """Read a parameter; ``given`` holds those before it."""
        if name in ("metric", "comparator"):
            return self.text.token(f"a {name}").decode(errors="replace")
        special: dict[str, Callable[[], Any]] = {
            "bounds": lambda: self._rows(5 if given.get("metric") == "wdec" else 3),
            "tuples": lambda: self._rows(3),
            "transitions": lambda: self._rows(4 if self.keyword == "wregular" else 3),
            "vars1": self._first_of_two,
            "vars2": lambda: self.text.integers(self.second, "a variable's index").tolist(),
            "starts": self._states,
            "ends": self._states,
            "weights": lambda: self.text.integers(len(self.scope), "a weight").tolist(),
            "values": lambda: [self._list() for _ in self.scope] if self.keyword == "clique" else self._list(),
        }
        return special[name]() if name in special else self.text.integer(f"the parameter {name}")

    def _count(self) -> int:
        count = self.text.integer("a number of items")
        if count < 0:
            raise TextError(f"expected a number of items, found {count}")
        self.text.need(count, "items")
        return count

    def _list(self) -> list[int]:
        items: list[int] = self.text.integers(self._count(), "an item").tolist()
        return items

    def _rows(self, width: int) -> list[list[int]]:
        rows: list[list[int]] = self.text.integers(self._count() * width, "an item").reshape(-1, width).tolist()
        return rows

    def _states(self) -> Any:
        return self._rows(2) if self.keyword == "wregular" else self._list()

    def _first_of_two(self) -> Any:
        """Read the sizes of two lists of variables, and the first list."""
        first, self.second = self._count(), self._count()
        return self.text.integers(first, "a variable's index").tolist()
