"""Cost functions by keyword in the syntax of CFN files."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from elimina._core import Text, TextError
from elimina.errors import UnsupportedError
from elimina.io.cost_function_tables import CostFunctionTables
from elimina.io.keywords import BINARY, GLOBAL, add_binary, add_global
from elimina.io.parsing import token_text
from elimina.model.table import FORBIDDEN
from elimina.number_texts import counted

_INTEGER = re.compile(rb"[+-]?\d{1,18}")
_DECIMAL = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)")
_OPEN, _CLOSE = (b"{", b"["), (b"}", b"]")
_MAX_DEPTH = 8


def read_function(
    text: Text, scope: list[int], target: CostFunctionTables, decimals: int, variable: Callable[[bytes], int]
) -> tuple[float, float] | None:
    """Read a type and its parameters and add its function, with costs in units of the last decimal.

    Args:
        text: Text, positioned after the word "type".
        scope: Variables of the function.
        target: Receiver of the tables.
        decimals: Number of decimals of costs; further ones are cut off.
        variable: Function from the text of a variable's name or index to the index.

    Returns:
        The first cost that lost decimals, before and after the loss; None if all costs are kept.

    Raises:
        TextError: The parameters are malformed.
        UnsupportedError: The type is unknown, or its function is too large for a table.
    """
    word = text.token("a type")
    keyword = word.decode(errors="replace")
    if keyword not in BINARY and keyword not in GLOBAL:
        raise UnsupportedError(f"the type {token_text(word)} is not handled; give the function by its costs")
    if (tag := text.token("'params'")) not in (b"params", b"parameters"):
        raise TextError(f"expected 'params', found {token_text(tag)}")
    if keyword in BINARY and decimals:
        raise UnsupportedError(f"the type {keyword!r} is only handled without decimals in the bound")
    reader = _ParameterReader(text, keyword, decimals, variable)
    if keyword in BINARY:
        add_binary(target, keyword, scope, reader.binary())
    else:
        add_global(target, keyword, scope, reader.named())
    return reader.cut


class _ParameterReader:
    def __init__(self, text: Text, keyword: str, decimals: int, variable: Callable[[bytes], int]) -> None:
        self.text, self.keyword, self.decimals, self.variable = text, keyword, decimals, variable
        self.cut: tuple[float, float] | None = None

    def binary(self) -> list[int]:
        """Read the numbers of a function of two variables."""
        tree = self._tree()
        if not isinstance(tree, list) or len(tree) != BINARY[self.keyword]:
            raise TextError(f"expected {BINARY[self.keyword]} numbers for {self.keyword!r}")
        first_cost = {"disj": 2, "sdisj": 4}.get(self.keyword, BINARY[self.keyword])
        return [self._integer(word) for word in tree[:first_cost]] + [self._cost(word) for word in tree[first_cost:]]

    def named(self) -> dict[str, Any]:
        """Read named parameters."""
        token = self.text.token("'{'")
        if token not in _OPEN:
            raise TextError(f"expected '{{', found {token_text(token)}")
        names = GLOBAL[self.keyword][0].split()
        parameters: dict[str, Any] = {}
        while (word := self.text.token("a parameter's name or '}'")) not in _CLOSE or self.text.quoted:
            name = word.decode(errors="replace")
            if name not in names or name in parameters:
                raise TextError(
                    f"expected one of the parameters {', '.join(names)} once each, found {token_text(word)}"
                )
            parameters[name] = self._converted(name, self._tree())
        if "deltacosts" in names:  # older files lack this parameter
            parameters.setdefault("deltacosts", [])
        missing = [name for name in names if name not in parameters]
        if missing:
            raise TextError(f"{self.keyword!r} lacks the parameter {missing[0]!r}")
        return parameters

    def _tree(self, depth: int = 0) -> Any:
        """Read a word, or a list of words and lists."""
        word = self.text.token("a parameter")
        if self.text.quoted or word not in (*_OPEN, *_CLOSE):
            return word
        if word in _CLOSE or depth == _MAX_DEPTH:
            raise TextError(f"expected a parameter, found {token_text(word)}")
        items = []
        while self.text.peek() not in _CLOSE or self.text.quoted:
            items.append(self._tree(depth + 1))
        self.text.token("']'")
        return items

    def _converted(self, name: str, tree: Any) -> Any:
        weighted = self.keyword == "wregular"
        integer, cost = self._integer, self._cost
        rows: dict[str, tuple[Callable[[bytes], int], ...]] = {
            "bounds": (integer, integer, integer, cost, cost),
            "tuples": (self.variable, integer, cost),
            "weightedvalues": (self.variable, integer, integer),
            "deltacosts": (integer, cost),
            "terminals": (integer, integer, cost),
            "non_terminals": (integer, integer, integer, cost),
            "transitions": (integer, integer, integer, cost) if weighted else (integer, integer, integer),
            **({"starts": (integer, cost), "ends": (integer, cost)} if weighted else {}),
        }
        if name in rows:
            short = {"bounds": 3, "terminals": 2, "non_terminals": 3}.get(name, 0)
            return [self._row(rows[name], row, short) for row in self._list(name, tree)]
        if name in ("vars1", "vars2"):
            return [self.variable(self._word(word)) for word in self._list(name, tree)]
        if name == "values" and self.keyword == "clique":
            return [[integer(word) for word in self._list(name, row)] for row in self._list(name, tree)]
        if name in ("values", "exceptedvalues", "starts", "ends", "weights"):
            return [integer(word) for word in self._list(name, tree)]
        if name in ("metric", "comparator"):
            return self._word(tree).decode(errors="replace")
        return cost(tree) if name in ("cost", "defaultcost") else integer(tree)

    def _row(self, readers: tuple[Callable[[bytes], int], ...], tree: Any, short: int) -> list[int]:
        row = self._list("row", tree)
        if len(row) not in (len(readers), short or len(readers)):
            raise TextError(
                f"expected {counted(short or len(readers), 'item')} in a row of parameters, found {len(row)}"
            )
        return [read(self._word(word)) for read, word in zip(readers, row, strict=False)]

    def _list(self, name: str, tree: Any) -> list[Any]:
        if not isinstance(tree, list):
            raise TextError(f"expected a list for {name!r}, found {token_text(tree)}")
        return tree

    def _word(self, tree: Any) -> bytes:
        if not isinstance(tree, bytes):
            raise TextError("expected a word or a number, found a list")
        return tree

    def _integer(self, tree: Any) -> int:
        word = self._word(tree)
        if not _INTEGER.fullmatch(word):
            raise TextError(f"expected an integer, found {token_text(word)}")
        return int(word)

    def _cost(self, tree: Any) -> int:
        word = self._word(tree)
        if word == b"inf":
            return FORBIDDEN
        if not _DECIMAL.fullmatch(word) or len(word) > 300:
            raise TextError(f"expected a cost, found {token_text(word)}")
        exact = Decimal(word.decode()).scaleb(self.decimals)
        units = int(exact)
        if units != exact and self.cut is None:
            self.cut = float(word), units / 10.0**self.decimals
        return min(units, FORBIDDEN)
