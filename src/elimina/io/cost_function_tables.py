"""Tables of the cost functions that files name by keywords.

A function of few cells becomes one table. A larger one becomes a chain: auxiliary variables, named with a leading "_",
hold the state of an automaton that reads the scope from left to right, and each table links a state, a variable and
the next state. The best cost over the auxiliary variables is the function's cost. Where the automaton is deterministic
(all but ``regular`` with several runs) each assignment also extends in exactly one way, so that counts are kept. The
meanings of the keywords are those of toulbar2's description of its formats.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.io.chains import Chain, State, sum_of_costs
from elimina.io.listed_tuples import table_of_tuples
from elimina.model.table import FORBIDDEN, Table

_MAX_SINGLE_TABLE_CELLS = 1024
_MAX_CARDINALITY_CELLS = 10**6
_MAX_TRANSITIONS_PER_VARIABLE = 2 * 10**5
_MAX_TRANSITIONS = 10**6
_MAX_PAIR_CELLS = 10**7
_MAX_COUNTED_VALUES = 2 * 10**6
_MAX_DERIVATION_STEPS = 10**7
"""Largest product of a grammar's table cells, its rules, and the length of a word."""

_NO_DERIVATION = FORBIDDEN // 4
"""The cost of a word without a derivation: the sum of three such costs does not overflow."""


@dataclass
class CostFunctionTables:
    """Collector of the tables and auxiliary variables of functions given by keywords.

    Attributes:
        sizes: Domain sizes; those of auxiliary variables are appended.
        limit: Smallest forbidden cost.
        can_be_negative: True if costs may be below 0; then no cost reaches the limit.
        tables: Tables built so far.
    """

    sizes: list[int]
    limit: int = FORBIDDEN
    can_be_negative: bool = False
    tables: list[Table] = field(default_factory=list)

    def add_dense(self, scope: Sequence[int], costs: NDArray[np.int64]) -> None:
        """Add a full table of costs."""
        self.tables.append(Table(scope, np.where(costs >= self.limit, FORBIDDEN, costs)))

    def add(self, chains: Sequence[Chain]) -> None:
        """Add the sum of chains over the same variables: as one table of few cells, or else as tables of each chain."""
        scope = tuple(sorted(chains[0].scope)) if chains else ()
        shape = [self.sizes[v] for v in scope]
        if math.prod(shape) > _MAX_SINGLE_TABLE_CELLS:
            for chain in chains:
                self._add_chain(chain)
            return
        costs = np.zeros(shape, dtype=np.int64)
        positions = [[scope.index(v) for v in chain.scope] for chain in chains]
        for key in itertools.product(*map(range, shape)):
            total = sum_of_costs(
                *(
                    chain.cost([key[p] for p in key_positions])
                    for chain, key_positions in zip(chains, positions, strict=True)
                )
            )
            costs[key] = min(total, self.limit)
        self.add_dense(scope, costs)

    def _add_chain(self, chain: Chain) -> None:
        links = self._links(chain)
        layers = [sorted({target for *_, target, _ in link}, key=repr) for link in links[:-1]]
        codes: list[dict[State, int]] = [{state: i for i, state in enumerate(layer)} for layer in layers]
        auxiliary_variables = range(len(self.sizes), len(self.sizes) + len(layers))
        self.sizes.extend(max(len(layer), 1) for layer in layers)
        for position, (v, link) in enumerate(zip(chain.scope, links, strict=True)):
            previous_state = [auxiliary_variables[position - 1]] if position else []
            next_state = [auxiliary_variables[position]] if position < len(layers) else []
            best: dict[tuple[int, ...], int] = {}
            for source, value, target, cost in link:
                key = (
                    *([codes[position - 1][source]] if previous_state else []),
                    value,
                    *([codes[position][target]] if next_state else []),
                )
                best[key] = min(best.get(key, FORBIDDEN), cost)
            scope = (*previous_state, v, *next_state)
            rows = np.array(list(best), dtype=np.int32).reshape(len(best), len(scope))
            costs = np.array([FORBIDDEN if c >= self.limit else c for c in best.values()], dtype=np.int64)
            self.tables.append(table_of_tuples(scope, [self.sizes[u] for u in scope], FORBIDDEN, rows, costs))

    def _links(self, chain: Chain) -> list[list[tuple[State, int, State, int]]]:
        """List each position's transitions (state, value, next state, cost) that are on a run below the limit.

        The first position's transitions include the start costs, the last position's the final costs.

        Raises:
            UnsupportedError: There are too many transitions.
        """
        states = set(chain.starts)
        total = 0
        links: list[list[tuple[State, int, State, int]]] = []
        for position, v in enumerate(chain.scope):
            total += len(states) * self.sizes[v]
            if len(states) * self.sizes[v] > _MAX_TRANSITIONS_PER_VARIABLE or total > _MAX_TRANSITIONS:
                raise UnsupportedError(
                    f"the function needs over {_MAX_TRANSITIONS_PER_VARIABLE} transitions between its states for a "
                    f"variable, or {_MAX_TRANSITIONS} in all"
                )
            last = position == len(chain.scope) - 1
            links.append(
                [
                    (s, x, t, sum_of_costs(0 if position else chain.starts[s], cost, chain.final(t) if last else 0))
                    for s in states
                    for x in range(self.sizes[v])
                    for t, cost in chain.step(position, s, x)
                ]
            )
            states = {t for _, _, t, _ in links[-1]}
        alive = {t for _, _, t, _ in links[-1]}
        for position in reversed(range(len(links))):
            links[position] = [link for link in links[position] if link[2] in alive and link[3] < self.limit]
            alive = {s for s, *_ in links[position]}
        return links

    def add_sums(self, scope: Sequence[int], weights: Sequence[Mapping[int, int]], cost: Callable[[int], int]) -> None:
        """Add a cost that depends on the sum of the values' weights; a value without a weight counts 0."""
        self.add([_sum_chain(scope, weights, cost)])

    def _grid(self, scope: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the values of two variables as a column and a row.

        Raises:
            UnsupportedError: There are too many pairs of values for a table.
        """
        rows, columns = (self.sizes[v] for v in scope)
        if rows * columns > _MAX_PAIR_CELLS:
            raise UnsupportedError(f"a function of {rows} x {columns} values is too large for a table")
        return np.arange(rows)[:, None], np.arange(columns)[None, :]

    def compare(self, kind: str, scope: Sequence[int], shift: int, delta: int) -> None:
        """Compare x softly (``>= > <= < =``) with y + shift.

        The cost is x's distance from satisfying the comparison; distances above ``delta`` are forbidden.
        """
        x, y = self._grid(scope)
        gap = {
            ">=": y + shift - x,
            ">": y + shift + 1 - x,
            "<=": x - shift - y,
            "<": x - shift + 1 - y,
            "=": np.abs(y + shift - x),
        }[kind]
        self.add_dense(scope, np.where(gap <= delta, np.maximum(gap, 0), FORBIDDEN))

    def disjunction(self, scope: Sequence[int], shifts: Sequence[int], cost: int) -> None:
        """Add a cost unless x >= y + shifts[1] or y >= x + shifts[0]."""
        x, y = self._grid(scope)
        self.add_dense(scope, np.where((x >= y + shifts[1]) | (y >= x + shifts[0]), 0, cost))

    def special_disjunction(
        self, scope: Sequence[int], shifts: Sequence[int], tops: Sequence[int], costs: Sequence[int]
    ) -> None:
        """Add a hard ``disjunction`` of variables below their tops, and a cost for each variable at its top.

        Values above the tops are forbidden.
        """
        x, y = self._grid(scope)
        apart = (x >= y + shifts[1]) | (y >= x + shifts[0])
        allowed = (x <= tops[0]) & (y <= tops[1]) & (apart | (x == tops[0]) | (y == tops[1]))
        at_top = np.array([0, costs[0], costs[1], min(sum(costs), FORBIDDEN)])[(x == tops[0]) + 2 * (y == tops[1])]
        self.add_dense(scope, np.where(allowed, at_top, FORBIDDEN))

    def different_pairs(self, scope: Sequence[int], cost: int, excepted: Collection[int] = ()) -> None:
        """Add a cost for each pair of variables with the same value, except for excepted values.

        Raises:
            UnsupportedError: The tables have too many cells.
        """
        cells = sum(self.sizes[u] * self.sizes[v] for u, v in itertools.combinations(scope, 2))
        if cells > _MAX_PAIR_CELLS:
            raise UnsupportedError(f"a function whose pairs of variables have {cells} cells is too large for tables")
        for pair in itertools.combinations(scope, 2):
            x, y = self._grid(pair)
            self.add_dense(pair, np.where((x == y) & ~np.isin(x, list(excepted)), cost, 0))

    def cardinality(
        self, scope: Sequence[int], bounds: Mapping[int, tuple[int, int]], cost: Callable[[int, int, int], int]
    ) -> None:
        """Add a cost for each value whose number of occurrences is bounded from below and above.

        The cost is ``cost(value, shortage, excess)``. The shortage is the number of occurrences below the lower bound,
        and the excess is the number of occurrences above the upper bound.

        Raises:
            UnsupportedError: There are too many bounds and values.
        """
        if len(bounds) * sum(self.sizes[v] for v in scope) > _MAX_COUNTED_VALUES:
            raise UnsupportedError(f"bounds on {len(bounds)} values of {len(scope)} variables are too large for tables")

        def counting(value: int, low: int, high: int) -> Chain:
            weights = [{value: 1}] * len(scope)
            highest = high if cost(value, 0, 1) >= self.limit else len(scope)
            return _sum_chain(scope, weights, lambda n: cost(value, max(0, low - n), max(0, n - high)), highest)

        self.add([counting(value, low, high) for value, (low, high) in bounds.items()])

    def cardinality_by_variables(self, scope: Sequence[int], bounds: Mapping[int, tuple[int, int]], cost: int) -> None:
        """Add a cost times the larger of the values' total shortage and total excess.

        Raises:
            UnsupportedError: The cost is below the limit, and the function has over a million cells; or there are
                too many bounds.
        """
        if cost >= self.limit:
            self.cardinality(scope, bounds, lambda _, shortage, excess: FORBIDDEN if shortage or excess else 0)
            return
        shape = [self.sizes[v] for v in scope]
        if math.prod(shape) > _MAX_CARDINALITY_CELLS:
            raise UnsupportedError(
                f"a soft cardinality by variables of over {_MAX_CARDINALITY_CELLS} cells is not handled"
            )
        values = np.indices(shape)
        short, over = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for value, (low, high) in bounds.items():
            count = (values == value).sum(axis=0)
            short += np.maximum(0, low - count)
            over += np.maximum(0, count - high)
        gap = np.maximum(short, over)
        self.add_dense(scope, np.array([min(cost * n, FORBIDDEN) for n in range(int(gap.max(initial=0)) + 1)])[gap])

    def same(self, first: Sequence[int], second: Sequence[int], cost: Callable[[int], int]) -> None:
        """Add a cost for each value: ``cost`` of its occurrences in one list of variables minus those in the other.

        Raises:
            UnsupportedError: There are too many values.
        """
        values = range(max((self.sizes[v] for v in (*first, *second)), default=0))
        if len(values) * sum(self.sizes[v] for v in (*first, *second)) > _MAX_COUNTED_VALUES:
            raise UnsupportedError(f"a comparison of counts of {len(values)} values is too large for tables")
        signs = [1] * len(first) + [-1] * len(second)
        self.add([_sum_chain((*first, *second), [{x: sign} for sign in signs], cost) for x in values])

    def overlap(self, first: Sequence[int], second: Sequence[int], cost: Callable[[int], int]) -> None:
        """Add a function of the number of positions at which two sequences have the same nonzero value."""

        def step(position: int, state: tuple[int, int], value: int) -> list[tuple[State, int]]:
            count, pending = state
            if position % 2 == 0:
                return [((count, value), 0)]
            return [((count + (pending == value != 0), 0), 0)]

        scope = tuple(itertools.chain.from_iterable(zip(first, second, strict=True)))
        self.add([Chain(scope, {(0, 0): 0}, step, lambda state: cost(state[0]))])

    def largest(self, scope: Sequence[int], default: int, costs: Mapping[tuple[int, int], int]) -> None:
        """Add the largest of 0 and the costs of the variables' values.

        ``costs`` maps a position in the scope and a value to a cost; other values cost ``default``.
        """

        def step(position: int, state: int, value: int) -> list[tuple[State, int]]:
            return [(max(state, costs.get((position, value), default)), 0)]

        self.add([Chain(tuple(scope), {0: 0}, step, lambda state: int(state))])

    def grammar(
        self,
        scope: Sequence[int],
        start: int,
        terminals: Sequence[tuple[int, int, int]],
        pairs: Sequence[tuple[int, int, int, int]],
        change: int,
    ) -> None:
        """Add the cost of the cheapest derivation of the values by a grammar in Chomsky normal form.

        Args:
            scope: Variables, at least one, whose values are the word.
            start: Start symbol.
            terminals: Rules (symbol, value, cost).
            pairs: Rules (symbol, left symbol, right symbol, cost).
            change: Cost of reading a value as another one, for each variable.

        Raises:
            UnsupportedError: The product of the numbers of the function's cells, of the rules and of the variables is
                too large.
        """
        sizes = [self.sizes[v] for v in scope]
        if math.prod(sizes) * (1 + len(pairs)) * len(sizes) > _MAX_DERIVATION_STEPS:
            raise UnsupportedError(
                f"a grammar of {len(pairs)} rules over {math.prod(sizes)} words of {len(sizes)} values is too large "
                "for a table"
            )
        # Span of variables -> symbol -> the cost of deriving each word of the span.
        costs: dict[tuple[int, int], dict[int, NDArray[np.int64]]] = {}
        words: dict[int, NDArray[np.int64]]
        for i, size in enumerate(sizes):
            costs[i, i] = words = {}
            for symbol, value, cost in terminals:
                changed = np.where(np.arange(size) == value, 0, min(change, _NO_DERIVATION))
                word = np.minimum(changed + min(cost, _NO_DERIVATION), _NO_DERIVATION)
                words[symbol] = np.minimum(words.get(symbol, word), word)
        for length in range(2, len(sizes) + 1):
            for i in range(len(sizes) - length + 1):
                j = i + length - 1
                costs[i, j] = words = {}
                for k, (symbol, first_symbol, second_symbol, cost) in itertools.product(range(i, j), pairs):
                    if first_symbol in costs[i, k] and second_symbol in costs[k + 1, j]:
                        total = np.add.outer(costs[i, k][first_symbol], costs[k + 1, j][second_symbol]) + min(
                            cost, _NO_DERIVATION
                        )
                        word = np.minimum(total, _NO_DERIVATION)
                        words[symbol] = np.minimum(words.get(symbol, word), word)
        underivable = np.full(sizes, _NO_DERIVATION, dtype=np.int64)
        word = costs[0, len(sizes) - 1].get(start, underivable)
        self.add_dense(scope, np.where(word == _NO_DERIVATION, FORBIDDEN, word))

    def regular(
        self,
        scope: Sequence[int],
        starts: Mapping[int, int],
        ends: Mapping[int, int],
        transitions: Iterable[tuple[int, int, int, int]],
        change: int | None = None,
    ) -> None:
        """Add a weighted automaton.

        Transitions are (state, value, next state, cost); ``starts`` and ``ends`` have the costs of starting and of
        ending in a state. ``change`` is the additional cost of taking a transition with another value; None: this is
        forbidden.
        """
        table: dict[int, list[tuple[int, int, int]]] = {}
        for source, value, target, cost in transitions:
            table.setdefault(source, []).append((value, target, cost))

        def step(_: int, state: int, value: int) -> list[tuple[State, int]]:
            exact = [(target, cost) for symbol, target, cost in table.get(state, ()) if symbol == value]
            if change is None:
                return [*exact]
            return [*exact, *((target, cost + change) for _, target, cost in table.get(state, ()))]

        self.add([Chain(tuple(scope), starts, step, lambda state: ends.get(state, FORBIDDEN))])


def _sum_chain(
    scope: Sequence[int], weights: Sequence[Mapping[int, int]], cost: Callable[[int], int], highest: float = math.inf
) -> Chain:
    """Return a chain whose state is the sum so far; partial sums above ``highest`` are forbidden."""

    def step(position: int, state: int, value: int) -> list[tuple[State, int]]:
        total = state + weights[position].get(value, 0)
        return [(total, 0)] if total <= highest else []

    return Chain(tuple(scope), {0: 0}, step, cost)


def penalty(metric: str, cost: int) -> Callable[[int], int]:
    """Return a function from a gap to its cost: constant (hard), or proportional to the gap (lin) or its square (quad).

    Raises:
        TextError: There is no such metric.
    """
    if metric == "hard":
        return lambda gap: cost if gap else 0
    if metric == "lin":
        return lambda gap: cost * abs(gap)
    if metric == "quad":
        return lambda gap: cost * gap * gap
    raise TextError(f"expected the metric hard, lin or quad, found {metric[:40]!r}")


def gap_to(comparator: str, bound: int) -> Callable[[int], int]:
    """Return the function from a sum to its distance from satisfying a comparison with a bound.

    Raises:
        TextError: There is no such comparator.
    """
    gaps: dict[str, Callable[[int], int]] = {
        "==": lambda total: abs(bound - total),
        "<=": lambda total: max(0, total - bound),
        "<": lambda total: max(0, total - bound + 1),
        "!=": lambda total: int(total == bound),
        ">": lambda total: max(0, bound - total + 1),
        ">=": lambda total: max(0, bound - total),
    }
    if comparator not in gaps:
        raise TextError(f"expected one of {', '.join(gaps)}, found {comparator[:40]!r}")
    return gaps[comparator]
