"""Tables of XCSP3: ordinary, starred and hybrid tuples."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elimina._core import TextError
from elimina.cp.xcsp3.terms import Operand, Terms, number, span
from elimina.number_texts import counted

MAX_CELLS = 1 << 20
"""Rows are expanded to a table of at most this many tuples. If there would be more tuples, each allowed row becomes a
Boolean, and each forbidden row a clause."""

MAX_KEPT_TABLES = 16
"""Number of tables that are kept for further constraints with the same text and domains."""

_OPERATORS = {"=": "eq", "≠": "ne", "≤": "le", "≥": "ge", "<": "lt", "﹤": "lt", ">": "gt", "﹥": "gt"}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "le", "ge", "lt", "gt")
}
_COLUMNS = re.compile(r"c(\d+)(?:([+-])(?:c(\d+)|(\d+)))?")
_COMMA = re.compile(r",(?![^{]*\})")


class Cell(NamedTuple):
    """A condition on one variable of a tuple.

    Attributes:
        operator: ``any``, ``in``, ``notin``, or a comparison.
        values: Values of ``in`` and ``notin``.
        columns: Columns whose values are added up, with their signs, for a comparison.
        constant: Summand of the comparison.
    """

    operator: str
    values: Sequence[int] = ()
    columns: tuple[tuple[int, int], ...] = ()
    constant: int = 0

    @staticmethod
    @functools.lru_cache(1 << 16)
    def read(text: str, arity: int) -> Cell:
        """Parse a cell, such as ``3``, ``*``, ``2..5``, ``{1,3}``, ``≤4`` or ``=c0+1``."""
        text = text.strip()
        if text == "*":
            return Cell("any")
        compare = _OPERATORS.get(text[:1], "eq")
        rest = text[1:].strip() if text[:1] in _OPERATORS else text
        reference = _COLUMNS.fullmatch(rest)
        if reference is not None:
            sign = -1 if reference[2] == "-" else 1
            columns = [(int(reference[1]), 1)] + ([(int(reference[3]), sign)] if reference[3] else [])
            if max(column for column, _ in columns) >= arity:
                raise TextError(f"the cell {text[:40]!r} names a column beyond the {arity} of the tuple")
            return Cell(compare, (), tuple(columns), sign * number(reference[4]) if reference[4] else 0)
        if text[:1] in _OPERATORS:
            return Cell(compare, constant=number(rest))
        name, rest = ("notin", text[1:].strip()) if text[:1] == "∁" else ("in", text)
        if ".." in rest:
            return Cell(name, span(rest))
        if rest.startswith("{") and rest.endswith("}"):
            return Cell(name, sorted({number(token) for token in rest[1:-1].replace(",", " ").split()}))
        if name == "notin":
            raise TextError(f"expected a range or a set after ∁, found {text[:40]!r}")
        return Cell("eq", constant=number(rest))

    def allows(self, value: int) -> bool:
        """Return whether a value fulfils the condition; True if the condition depends on other columns."""
        if self.columns or self.operator == "any":
            return True
        if self.operator in ("in", "notin"):
            return (value in self.values) == (self.operator == "in")
        return _COMPARE[self.operator](value, self.constant)

    def holds(self, position: int, row: Sequence[int]) -> bool:
        """Return whether a tuple fulfils a condition that names columns."""
        total = self.constant + sum(sign * row[column] for column, sign in self.columns)
        return _COMPARE[self.operator](row[position], total)

    def truth(self, terms: Terms, xs: Sequence[Operand], position: int) -> Operand:
        """Return a Boolean that is 1 exactly if the condition holds."""
        x = xs[position]
        if self.operator in ("in", "notin"):
            inside = terms.is_in(x, self.values)
            return inside if self.operator == "in" else 1 - terms.model.expression(inside)
        total = terms.model.sum([self.constant, *(terms.model.expression(xs[c]) * sign for c, sign in self.columns)])
        return terms.truth(self.operator, x, total)


Row = Sequence[Cell]


def rows_of_table(text: str, arity: int) -> list[Row]:
    """Return the tuples of a table.

    Raises:
        TextError: A tuple has another number of cells.
    """
    texts = [[token] for token in text.split()] if arity == 1 and "(" not in text else _tuples(text)
    rows: list[Row] = []
    for cells in texts:
        if len(cells) != arity:
            raise TextError(
                f"the tuple ({','.join(cells)[:40]}) has {counted(len(cells), 'value')} "
                f"for {counted(arity, 'variable')}"
            )
        rows.append([Cell.read(cell, arity) for cell in cells])
    return rows


def _tuples(text: str) -> list[list[str]]:
    rows = re.findall(r"\s*\(([^()]*)\)\s*", text)
    if re.sub(r"\s*\(([^()]*)\)\s*", "", text).strip():
        raise TextError(f"expected tuples such as (1,2)(3,4), found {text.strip()[:40]!r}")
    return [_COMMA.split(row) for row in rows]


class Tuples(NamedTuple):
    """Allowed tuples, one after another.

    Attributes:
        values: Values of all cells; 0 where there is a star.
        stars: 1 for each star, 0 for each other cell; None if there are no stars.
    """

    values: npt.NDArray[np.int64]
    stars: npt.NDArray[np.int64] | None


def post_extension(terms: Terms, xs: Sequence[Operand], text: str, is_positive: bool) -> None:
    """Post a table of allowed tuples, or one of forbidden tuples."""
    domains = [terms.model.domain(x) for x in xs]
    # The constraints of a group share their text, and most of them their domains.
    key = (text, is_positive, *(each if isinstance(each, range) else tuple(each) for each in domains))
    if key not in terms.tables:
        if len(terms.tables) >= MAX_KEPT_TABLES:
            terms.tables.clear()
        rows = rows_of_table(text, len(xs))
        tuples = _allowed_tuples(rows, domains) if is_positive else _other_tuples(rows, domains)
        terms.tables[key] = rows if tuples is None else tuples
    table = terms.tables[key]
    if isinstance(table, Tuples) and table.stars is None:
        terms.model.post("table_int", xs, table.values)
    elif isinstance(table, Tuples):
        terms.model.post("table_starred", xs, *table)
    elif is_positive:
        terms.model.clause([terms.model.all_of(_truths(terms, xs, row)) for row in table])
    else:
        for row in table:
            terms.model.clause([], _truths(terms, xs, row))


def _allowed_tuples(rows: Sequence[Row], domains: Sequence[Sequence[int]]) -> Tuples | None:
    """Return the tuples that rows allow; None if they are too many."""
    starred = [_starred(row, each) for row, each in zip(rows, _choices_of_rows(rows, domains), strict=True)]
    if sum(math.prod(map(len, each)) for each in starred) > MAX_CELLS:
        return None
    cells = list(itertools.chain.from_iterable(_expanded(rows, starred)))
    stars = np.array([cell is None for cell in cells], dtype=np.int64)
    values = np.array([0 if cell is None else cell for cell in cells], dtype=np.int64)
    return Tuples(values, stars if stars.any() else None)


def _other_tuples(rows: Sequence[Row], domains: Sequence[Sequence[int]]) -> Tuples | None:
    """Return the tuples that rows do not forbid; None if there are too many combinations of values."""
    if math.prod(map(len, domains)) > MAX_CELLS:
        return None
    positions = [{value: position for position, value in enumerate(domain)} for domain in domains]
    is_allowed = np.ones([len(domain) for domain in domains], dtype=bool)
    for row, each in zip(rows, _choices_of_rows(rows, domains), strict=True):
        if any(cell.columns for cell in row):
            for full in _expanded([row], [each]):
                is_allowed[tuple(position[value] for position, value in zip(positions, full, strict=True))] = False
        else:
            chosen = [[position[value] for value in values] for position, values in zip(positions, each, strict=True)]
            is_allowed[np.ix_(*chosen)] = False
    columns = [
        np.array(domain, dtype=np.int64)[index] for domain, index in zip(domains, is_allowed.nonzero(), strict=True)
    ]
    return Tuples(np.stack(columns, axis=1).ravel(), None)


def _choices_of_rows(rows: Sequence[Row], domains: Sequence[Sequence[int]]) -> list[list[Sequence[int]]]:
    members = [domain if isinstance(domain, range) else frozenset(domain) for domain in domains]
    pairs = list(zip(domains, members, strict=True))
    return [_choices(row, pairs) for row in rows]


def _choices(row: Row, domains: Sequence[tuple[Sequence[int], Container[int]]]) -> list[Sequence[int]]:
    """Return the allowed values of each cell of a tuple, without regard to comparisons with other columns."""
    choices: list[Sequence[int]] = []
    for cell, (domain, members) in zip(row, domains, strict=True):
        if cell.operator == "any" or cell.columns:
            choices.append(domain)
        elif cell.operator == "eq":
            choices.append([cell.constant] if cell.constant in members else [])
        else:
            choices.append([value for value in domain if cell.allows(value)])
    return choices


def _starred(row: Row, choices: Sequence[Sequence[int]]) -> list[Sequence[int | None]]:
    """Return the choices; if no cell is compared with others, a cell that may have any value gets a star."""
    if any(cell.columns for cell in row):
        return list(choices)
    return [[None] if cell.operator == "any" else each for cell, each in zip(row, choices, strict=True)]


def _expanded(rows: Sequence[Row], choices: Sequence[Sequence[Sequence[Any]]]) -> list[tuple[Any, ...]]:
    def fulfils(row: Row, full: tuple[Any, ...]) -> bool:
        return all(cell.holds(position, full) for position, cell in enumerate(row) if cell.columns)

    full_rows: Iterable[tuple[Any, ...]] = itertools.chain.from_iterable(
        (full for full in itertools.product(*each) if fulfils(row, full))
        for row, each in zip(rows, choices, strict=True)
    )
    return list(dict.fromkeys(full_rows))


def _truths(terms: Terms, xs: Sequence[Operand], row: Row) -> list[Operand]:
    return [cell.truth(terms, xs, position) for position, cell in enumerate(row) if cell.operator != "any"]
