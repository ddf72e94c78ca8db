"""Relaxation of a constraint model: automata, knapsacks, and rows that bound sums of functions of one variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from elimina.cp.knapsack_words import knapsack_of
from elimina.cp.relaxation_rows import LinearRow, WordSequence
from elimina.cp.views import Integers, View, views_of

MAX_LISTED_VALUES = 128
"""Largest number of values of a variable with a column for each value; other variables have columns for bounds only."""
MAX_ENTRIES = 1 << 20
"""Largest number of entries of the relaxation's matrix: they take 24 MiB, and a pass takes 10 ms."""
KNAPSACK_ENTRIES_SHARE = 0.125
"""Largest share of the entries that knapsacks may add."""
_MAX_NUMBER = 1 << 30
"""Largest absolute value of a number in a row: sums of a row's products then stay within 64 bits."""

Post = tuple[str, Sequence[npt.NDArray[Any]]]
_Views = Sequence[Sequence[View]]


class VariableDomains(Protocol):
    """Domains of variables after propagation, from the solver of the core."""

    def bounds_of(self, var: int) -> tuple[int, int]:
        """Return the least and the largest value of a variable."""

    def values_of(self, var: int) -> list[int]:
        """Return the values of a variable's domain."""

    def sizes(self) -> list[int]:
        """Return the number of values of each variable."""


class TooLarge(Exception):
    """The relaxation has too many entries."""


class _NumberTooLarge(Exception):
    """Products of a row's numbers may exceed 64 bits."""


class LinearRelaxation:
    """Rows over the columns of variables.

    Args:
        posts: Names of constraints in the core, and their arguments; those that have no linear form are left out.
        domains: Domains of the variables.
        costs: Variable -> factor of the objective to be minimised.
        max_entries: Largest number of entries.

    Attributes:
        columns: Values of each variable that has columns: all values, or the bounds.
        rows: Rows of the relaxation.
        sequences: Automata and knapsacks, no two of which share a variable.
        costs: Variable -> costs of its columns.

    Raises:
        TooLarge: The relaxation has more than ``max_entries`` entries.
    """

    def __init__(
        self,
        posts: Sequence[Post],
        domains: VariableDomains,
        costs: Mapping[int, int],
        max_entries: int = MAX_ENTRIES,
    ) -> None:
        self._domains, self._sizes, self._entries, self._max_entries = domains, domains.sizes(), 0, max_entries
        self.columns: dict[int, Integers] = {}
        self.rows: list[LinearRow] = []
        self.sequences: list[WordSequence] = []
        self._spelled: set[int] = set()
        for name, arguments in posts:
            try:
                if name == "regular":
                    self._add_sequence([views_of(a) for a in arguments])
                for terms, least, is_equation in _linear_forms(self, name, [views_of(a) for a in arguments]):
                    self._add_row(terms, least, is_equation)
            except _NumberTooLarge:
                continue
        try:
            self.costs = {
                x.var: function for x, function in _affine(self, [(f, View(v, 1, 0)) for v, f in costs.items()])
            }
        except _NumberTooLarge:
            raise TooLarge from None
        self._substitute()
        self._spell_knapsacks()

    def is_listed(self, x: View) -> bool:
        """Return whether a view is a constant, or each value of its variable has a column."""
        return x.var < 0 or self._sizes[x.var] <= MAX_LISTED_VALUES

    def values(self, x: View) -> Integers:
        """Return the values of a view in the columns of its variable; of a constant, its value.

        Raises:
            _NumberTooLarge: The values are too large for sums of their products.
        """
        if x.var < 0:
            return np.array([x.offset], np.int64)
        columns = self.columns.get(x.var)
        if columns is None:
            bounds = self._domains.bounds_of(x.var)
            listed = self._domains.values_of(x.var) if self.is_listed(x) else bounds
            columns = self.columns[x.var] = np.array(listed, np.int64)
        if abs(x.scale) * max(abs(int(columns[0])), abs(int(columns[-1]))) + abs(x.offset) > _MAX_NUMBER:
            raise _NumberTooLarge
        return x.of(columns)

    def _add_row(self, terms: Sequence[tuple[View, Integers]], least: int, is_equation: bool) -> None:
        summed: dict[int, Integers] = {}
        for x, function in terms:
            if x.var < 0:
                least -= int(function[0])
            else:
                summed[x.var] = summed[x.var] + function if x.var in summed else function
        summed = {var: function for var, function in summed.items() if function.any()}
        self._entries += sum(map(len, summed.values()))
        if self._entries > self._max_entries:
            raise TooLarge
        self.rows.append(LinearRow(summed, least, is_equation))

    def _add_sequence(self, arguments: _Views) -> None:
        xs, (states,), (alphabet,), transitions, (start,), accepting = arguments
        variables = [x.var for x in xs]
        if not xs or len({*variables, -1}) != len(xs) + 1 or not self._spelled.isdisjoint(variables):
            return
        if not all(map(self.is_listed, xs)):
            return
        symbols = [self.values(x) - 1 for x in xs]
        self._entries += states.offset * sum(map(len, symbols))
        if self._entries > self._max_entries:
            raise TooLarge
        self._spelled.update(variables)
        self.sequences.append(
            WordSequence(
                variables,
                [np.where((s >= 0) & (s < alphabet.offset), s, -1) for s in symbols],
                states.offset,
                alphabet.offset,
                np.array([x.offset - 1 for x in transitions], np.int64),
                start.offset - 1,
                np.array([x.offset - 1 for x in accepting], np.int64),
            )
        )

    def _substitute(self) -> None:
        """Replace variables that are functions of one other variable, such as elements, by these functions."""
        uses: dict[int, list[int]] = {}
        for number, row in enumerate(self.rows):
            for var in row.terms:
                uses.setdefault(var, []).append(number)
        rows = self.rows
        self.rows = []
        for number, row in enumerate(rows):
            self.rows.append(row)
            if not row.is_equation or len(row.terms) != 2:
                continue
            for y, x in (tuple(row.terms), tuple(row.terms)[::-1]):
                columns = None if y in self._spelled else self._columns_of(row, y, x)
                if columns is None:
                    continue
                if y in self.costs:
                    self._add(self.costs, x, self._composed(self.costs.pop(y), y, columns))
                for other in uses.get(y, ()):
                    terms = rows[other].terms
                    if other != number and y in terms:
                        self._add(terms, x, self._composed(terms.pop(y), y, columns))
                        uses.setdefault(x, []).append(other)
                self.rows.pop()
                break

    def _spell_knapsacks(self) -> None:
        """Replace rows by automata that read weights, so that the sums of these rows are whole in the relaxation.

        Inequalities come first, because equations often define a sum that another row limits.
        """
        entries = int(self._max_entries * KNAPSACK_ENTRIES_SHARE)
        replaced: set[int] = set()
        for number, row in sorted(enumerate(self.rows), key=lambda numbered: numbered[1].is_equation):
            if not self._spelled.isdisjoint(row.terms) or not all(self.is_listed(View(v, 1, 0)) for v in row.terms):
                continue
            sequence = knapsack_of(row)
            if sequence is None:
                continue
            entries -= sequence.states * sum(map(len, sequence.symbols))
            if entries < 0:
                break
            replaced.add(number)
            self._spelled.update(row.terms)
            self.sequences.append(sequence)
        self.rows = [row for number, row in enumerate(self.rows) if number not in replaced]

    def _columns_of(self, row: LinearRow, y: int, x: int) -> Integers | None:
        """Return the value of y that a row implies for each value of x.

        None is returned if the row does not define y, if x or y lacks columns, or if y would leave its domain.
        """
        function, columns = row.terms[y], self.columns[y]
        if not self.is_listed(View(x, 1, 0)) or len(columns) < 2:
            return None
        slope = (int(function[-1]) - int(function[0])) // (int(columns[-1]) - int(columns[0]))
        if abs(slope) != 1 or (function - slope * columns != function[0] - slope * columns[0]).any():
            return None
        implied = slope * (row.least - row.terms[x] - (function[0] - slope * columns[0]))
        is_inside = (
            np.isin(implied, columns)
            if self.is_listed(View(y, 1, 0))
            else (implied >= columns[0]) & (implied <= columns[-1])
        )
        return implied if is_inside.all() else None

    def _composed(self, function: Integers, y: int, implied: Integers) -> Integers:
        columns = self.columns[y]
        if self.is_listed(View(y, 1, 0)):
            return function[np.searchsorted(columns, implied)]
        slope = (int(function[-1]) - int(function[0])) // (int(columns[-1]) - int(columns[0]))
        return int(function[0]) + slope * (implied - int(columns[0]))

    @staticmethod
    def _add(terms: dict[int, Integers], x: int, function: Integers) -> None:
        terms[x] = terms[x] + function if x in terms else function


Form = tuple[list[tuple[View, Integers]], int, bool]
_FormRule = Callable[[LinearRelaxation, _Views], Iterator[Form]]


def _linear_forms(relaxation: LinearRelaxation, name: str, arguments: _Views) -> Iterator[Form]:
    """Yield the rows implied by a constraint: terms, least sum, and True for an equation."""
    if name in _FORMS:
        yield from _FORMS[name](relaxation, arguments)
        return
    for suffix in ("_reif", "_imp"):
        relation = name.removesuffix(suffix)
        if name.endswith(suffix) and relation in _RELATIONS:
            yield from _reified(relaxation, relation, arguments, suffix == "_reif")


def _affine(relaxation: LinearRelaxation, terms: Sequence[tuple[int, View]]) -> list[tuple[View, Integers]]:
    if any(abs(factor) > _MAX_NUMBER for factor, _ in terms):
        raise _NumberTooLarge
    return [(x, factor * relaxation.values(x)) for factor, x in terms if factor]


def _sum_of(arguments: _Views) -> list[tuple[int, View]]:
    factors, xs, (right,) = arguments
    return [*((f.offset, x) for f, x in zip(factors, xs, strict=True)), (-1, right)]


def _difference(arguments: _Views) -> list[tuple[int, View]]:
    (x,), (y,) = arguments
    return [(1, x), (-1, y)]


# Terms of each relation, and the relation of their sum to 0 (==, <=, < or !=); a negative sign turns >= into <=.
_RELATIONS: dict[str, tuple[Callable[[_Views], list[tuple[int, View]]], str, int]] = {
    **{f"{kind}_lin_{name}": (_sum_of, name, 1) for kind in ("int", "bool") for name in ("eq", "le", "ne")},
    **{f"{kind}_{name}": (_difference, name, 1) for kind in ("int", "bool") for name in ("eq", "le", "lt", "ne")},
    **{
        f"{kind}_{name}": (_difference, of, -1) for kind in ("int", "bool") for name, of in (("ge", "le"), ("gt", "lt"))
    },
}
_HOLDS: dict[str, Callable[[Integers], npt.NDArray[np.bool_]]] = {
    "eq": lambda total: total == 0,
    "le": lambda total: total <= 0,
    "lt": lambda total: total < 0,
    "ne": lambda total: total != 0,
}


def _relation(relaxation: LinearRelaxation, arguments: _Views, *, name: str) -> Iterator[Form]:
    terms_of, kind, sign = _RELATIONS[name]
    if kind != "ne":
        terms = [(-sign * factor, x) for factor, x in terms_of(arguments)]
        yield _affine(relaxation, terms), int(kind == "lt"), kind == "eq"


def _reified(relaxation: LinearRelaxation, name: str, arguments: _Views, is_equivalence: bool) -> Iterator[Form]:
    """Yield rows that link a Boolean to a relation of one variable, or to an upper bound of a sum.

    Other relations have no rows.
    """
    *related, (boolean,) = arguments
    terms_of, kind, sign = _RELATIONS[name]
    terms = [(sign * factor, x) for factor, x in terms_of(related) if factor]
    variables = {x.var for _, x in terms if x.var >= 0}
    truth = relaxation.values(boolean)
    if len(variables) == 1 and all(relaxation.is_listed(x) for _, x in terms):
        holds = _HOLDS[kind](sum((factor * relaxation.values(x) for factor, x in terms), np.zeros(1, np.int64)))
        x = next(x for _, x in terms if x.var >= 0)
        yield [(View(x.var, 1, 0), holds.astype(np.int64)), (boolean, -truth)], 0, is_equivalence
        return
    if kind not in ("le", "lt"):
        return
    # If the Boolean is 1, the sum is at most 0 (below 0 for "lt"); if the Boolean is 0, at most the sum's greatest
    # value. An equivalence also needs a row for the opposite relation and the opposite Boolean.
    functions = _affine(relaxation, terms)
    greatest = sum(int(function.max()) for _, function in functions) + (kind == "lt")
    least = sum(int(function.min()) for _, function in functions) + (kind == "lt")
    if max(abs(greatest), abs(least)) > _MAX_NUMBER:
        return
    yield (
        [*((x, -function) for x, function in functions), (boolean, -greatest * truth)],
        int(kind == "lt") - greatest,
        False,
    )
    if is_equivalence:
        yield [*functions, (boolean, (1 - least) * truth)], 1 - int(kind == "lt"), False


def _clause(relaxation: LinearRelaxation, arguments: _Views) -> Iterator[Form]:
    positive, negative = arguments
    terms = [*((1, x) for x in positive), *((-1, x) for x in negative)]
    yield _affine(relaxation, terms), 1 - len(negative), False


def _or(relaxation: LinearRelaxation, arguments: _Views) -> Iterator[Form]:
    xs, (b,) = arguments
    yield _affine(relaxation, [*((1, x) for x in xs), (-1, b)]), 0, False
    for x in xs:
        yield _affine(relaxation, [(1, b), (-1, x)]), 0, False


def _and(relaxation: LinearRelaxation, arguments: _Views) -> Iterator[Form]:
    xs, (b,) = arguments
    yield _affine(relaxation, [(1, b), *((-1, x) for x in xs)]), 1 - len(xs), False
    for x in xs:
        yield _affine(relaxation, [(1, x), (-1, b)]), 0, False


def _element(relaxation: LinearRelaxation, arguments: _Views) -> Iterator[Form]:
    (index,), items, (result,) = arguments
    if relaxation.is_listed(index) and all(item.var < 0 for item in items):
        numbers = np.array([item.offset for item in items], np.int64)
        chosen = numbers[np.clip(relaxation.values(index), 1, len(items)) - 1]
        yield [(index, chosen), (result, -relaxation.values(result))], 0, True


def _occurrences(relaxation: LinearRelaxation, xs: Sequence[View], value: int) -> list[tuple[View, Integers]]:
    return [(x, (relaxation.values(x) == value).astype(np.int64)) for x in xs]


def _cardinality(relaxation: LinearRelaxation, arguments: _Views) -> Iterator[Form]:
    xs, cover, counts = arguments
    for value, count in zip(cover, counts, strict=True):
        yield from _count(relaxation, (xs, (value,), (count,)))


def _count(relaxation: LinearRelaxation, arguments: _Views) -> Iterator[Form]:
    xs, (value,), (count,) = arguments
    if value.var < 0 and all(map(relaxation.is_listed, xs)):
        yield [*_occurrences(relaxation, xs, value.offset), (count, -relaxation.values(count))], 0, True


def _all_different(relaxation: LinearRelaxation, arguments: _Views) -> Iterator[Form]:
    xs = arguments[0]
    if not all(map(relaxation.is_listed, xs)):
        return
    columns = [relaxation.values(x) for x in xs]
    # ``numpy.unique`` is not used: it imports ``numpy.ma``, which takes longer than most relaxations.
    values = sorted(set().union(*(column.tolist() for column in columns)))
    for value in values:
        terms = [(x, -(column == value).astype(np.int64)) for x, column in zip(xs, columns, strict=True)]
        yield terms, -1, len(values) == len(xs)


def _bin_packing(relaxation: LinearRelaxation, arguments: _Views) -> Iterator[Form]:
    loads, bins, sizes = arguments
    if not all(map(relaxation.is_listed, bins)):
        return
    for number, load in enumerate(loads):
        inside = _occurrences(relaxation, bins, number)
        terms = [(x, size.offset * function) for (x, function), size in zip(inside, sizes, strict=True)]
        yield [*terms, (load, -relaxation.values(load))], 0, True


def _extreme(relaxation: LinearRelaxation, arguments: _Views, *, sign: int) -> Iterator[Form]:
    (result,), xs = arguments
    for x in xs:
        yield _affine(relaxation, [(sign, result), (-sign, x)]), 0, False


def _absolute(relaxation: LinearRelaxation, arguments: _Views) -> Iterator[Form]:
    (x,), (result,) = arguments
    if relaxation.is_listed(x):
        yield [(x, np.abs(relaxation.values(x))), (result, -relaxation.values(result))], 0, True
        return
    for sign in (-1, 1):
        yield _affine(relaxation, [(1, result), (sign, x)]), 0, False


def _plus(relaxation: LinearRelaxation, arguments: _Views, *, sign: int) -> Iterator[Form]:
    (x,), (y,), (z,) = arguments
    yield _affine(relaxation, [(1, x), (sign, y), (-1, z)]), 0, True


def _named(rule: Callable[..., Iterator[Form]], **settings: Any) -> _FormRule:
    return lambda relaxation, arguments: rule(relaxation, arguments, **settings)


_FORMS: dict[str, _FormRule] = {
    **{name: _named(_relation, name=name) for name in _RELATIONS},
    "int_lin_eq_domain": _named(_relation, name="int_lin_eq"),
    "bool2int": _named(_relation, name="int_eq"),
    "int_plus": _named(_plus, sign=1),
    "int_minus": _named(_plus, sign=-1),
    "bool_clause": _clause,
    "array_bool_or": _or,
    "array_bool_and": _and,
    "array_int_element": _element,
    "array_bool_element": _element,
    "global_cardinality": _cardinality,
    "global_cardinality_closed": _cardinality,
    "count_eq": _count,
    "int_abs": _absolute,
    "array_int_maximum": _named(_extreme, sign=1),
    "array_int_minimum": _named(_extreme, sign=-1),
    "bin_packing_load": _bin_packing,
    **{f"all_different_{name}": _all_different for name in ("value", "bounds", "domain", "domain_cpu", "domain_gpu")},
    **{f"circuit{side}": _all_different for side in ("", "_cpu", "_gpu")},
}
"""Name of a constraint -> its linear forms; reified relations are looked up without the ending of their name."""
