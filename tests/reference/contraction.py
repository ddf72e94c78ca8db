"""Elimination by NumPy, one variable at a time in an order of its own: the oracle for models too large to enumerate.

Sums run over products by ``einsum`` on scaled tables, in ``float64`` or, for tables of wide range, in ``longdouble``.
Optima and counts run over broadcast tables, counts in Python integers where 64 bits may not hold them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

Tables = list[tuple[tuple[int, ...], np.ndarray]]
"""Scopes and arrays, one axis for each variable of the scope."""

Bucket = Callable[[Tables, tuple[int, ...]], np.ndarray]
"""Combine the tables of a bucket and eliminate all variables but those named."""

NARROW_DIGITS = 200
"""Decimal digits between products up to which ``float64`` holds all of them."""

LARGEST_INT = 2**62
"""Counts up to which 64 bits suffice."""


def cheapest_order(scopes: Iterable[Collection[int]], sizes: Sequence[int], kept: Collection[int]) -> list[int]:
    """Return an order that eliminates the variable of the smallest bucket first, ties by the larger index."""
    return [v for v, _ in _steps(scopes, sizes, kept)]


def largest_bucket(scopes: Iterable[Collection[int]], sizes: Sequence[int], kept: Collection[int] = ()) -> int:
    """Return the cells of the largest bucket of the order, that of the result included."""
    return max([math.prod(sizes[v] for v in kept), *(cells for _, cells in _steps(scopes, sizes, kept))])


def _steps(scopes: Iterable[Collection[int]], sizes: Sequence[int], kept: Collection[int]) -> Iterator[tuple[int, int]]:
    """Yield each variable of the order and the cells of its bucket."""
    graph: list[set[int]] = [set() for _ in sizes]
    for scope in scopes:
        for v in scope:
            graph[v].update(scope)
    cells = {v: math.prod(sizes[u] for u in graph[v] | {v}) for v in range(len(sizes)) if v not in kept}
    while cells:
        best = min(cells, key=lambda v: (cells[v], -v))
        yield best, cells.pop(best)
        neighbours = graph[best] - {best}
        for v in neighbours:
            graph[v] |= neighbours
            graph[v].discard(best)
            if v in cells:
                cells[v] = math.prod(sizes[u] for u in graph[v] | {v})


def eliminate(tables: Tables, sizes: Sequence[int], kept: Sequence[int], bucket: Bucket) -> np.ndarray:
    """Return the table over the kept variables, axes in their order; every variable is in some table's scope."""
    for v in cheapest_order([scope for scope, _ in tables], sizes, kept):
        meeting = [(scope, table) for scope, table in tables if v in scope]
        axes = tuple(sorted(set().union(*(scope for scope, _ in meeting)) - {v}))
        message = axes, bucket(meeting, axes)
        tables = [(scope, table) for scope, table in tables if v not in scope] + [message]
    return bucket(tables, tuple(kept))


def aligned(scope: Sequence[int], table: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """Return a table with an axis for each of ``axes``, of size 1 where its scope lacks it."""
    order = sorted(range(len(scope)), key=lambda axis: axes.index(scope[axis]))
    places = {scope[axis]: size for axis, size in enumerate(table.shape)}
    return table.transpose(order).reshape([places.get(v, 1) for v in axes])


def log_sums(tables: Tables, sizes: Sequence[int], kept: Sequence[int] = ()) -> np.ndarray:
    """Return the natural logarithms of the sums of products for each joint value of the kept variables."""
    kind = _kind(tables)
    logarithm = 0.0

    def bucket(meeting: Tables, axes: tuple[int, ...]) -> np.ndarray:
        nonlocal logarithm
        result = _product_sum(meeting, axes, kind)
        largest = result.max(initial=0)
        if largest > 0:
            logarithm += float(np.log(largest))
            result = result / largest
        return result

    ones = [((v,), np.ones(size)) for v, size in enumerate(sizes)]
    result = eliminate([*((scope, _scaled(table, kind)) for scope, table in tables), *ones], sizes, kept, bucket)
    with np.errstate(divide="ignore"):
        return (np.log(result) + logarithm + sum(_log_largest(table) for _, table in tables)).astype(np.float64)


def posteriors(tables: Tables, sizes: Sequence[int]) -> list[np.ndarray]:
    """Return the normalised marginals of all variables, by two passes; zeros if all products are 0."""
    kind = _kind(tables)
    remaining = [(scope, _scaled(table, kind), -1) for scope, table in tables]
    remaining += [((v,), np.ones(size, dtype=kind), -1) for v, size in enumerate(sizes)]
    buckets = []
    for number, v in enumerate(cheapest_order([scope for scope, _ in tables], sizes, ())):
        meeting = [item for item in remaining if v in item[0]]
        axes = tuple(sorted(set().union(*(scope for scope, _, _ in meeting)) - {v}))
        message = _scaled(_product_sum([item[:2] for item in meeting], axes, kind), kind)
        remaining = [item for item in remaining if v not in item[0]] + [(axes, message, number)]
        buckets.append((v, axes, meeting))
    result = [np.zeros(size) for size in sizes]
    is_possible = all(table.item() > 0 for _, table, _ in remaining)
    downward: dict[int, np.ndarray] = {}
    for number, (v, axes, meeting) in reversed(list(enumerate(buckets))):
        above = (axes, downward.get(number, np.ones([sizes[u] for u in axes], dtype=kind)))
        share = _product_sum([*(item[:2] for item in meeting), above], (v,), kind)
        if is_possible:
            result[v] = (share / share.sum()).astype(np.float64)
        for place, (scope, _, source) in enumerate(meeting):
            if source >= 0:
                others = [item[:2] for n, item in enumerate(meeting) if n != place]
                downward[source] = _scaled(_product_sum([*others, above], scope, kind), kind)
    return result


def _kind(tables: Tables) -> Any:
    return np.float64 if sum(_digits(table) for _, table in tables) < NARROW_DIGITS else np.longdouble


def _digits(table: np.ndarray) -> float:
    positive = table[table > 0]
    return 0.0 if not positive.size else math.log10(positive.max()) - math.log10(positive.min())


def _log_largest(table: np.ndarray) -> float:
    largest = table.max(initial=0)
    return math.log(largest) if largest > 0 else 0.0


def _scaled(table: np.ndarray, kind: Any) -> np.ndarray:
    largest = table.max(initial=0)
    return table.astype(kind) / kind(largest) if largest > 0 else table.astype(kind)


def _product_sum(meeting: Tables, axes: tuple[int, ...], kind: Any) -> np.ndarray:
    if not meeting:
        return np.ones((), dtype=kind)
    names = sorted(set().union(*(scope for scope, _ in meeting)))
    operands: list[Any] = []
    for scope, table in meeting:
        operands += [table.astype(kind), [names.index(v) for v in scope]]
    return np.asarray(np.einsum(*operands, [names.index(v) for v in axes]))


def best_totals(tables: Tables, sizes: Sequence[int], kept: Sequence[int] = (), sign: int = 1) -> np.ndarray:
    """Return the least (``sign`` 1) or greatest (-1) total for each joint value of the kept variables.

    Tables are of floats; infinity marks what is forbidden. Integers stay exact as long as totals are below 2^53.
    """

    def bucket(meeting: Tables, axes: tuple[int, ...]) -> np.ndarray:
        if not meeting:
            return np.zeros(())
        names = sorted(set().union(*(scope for scope, _ in meeting)))
        total: Any = 0.0
        for scope, table in meeting:
            total = total + aligned(scope, table, names)
        gone = tuple(n for n, v in enumerate(names) if v not in axes)
        best = total.min(axis=gone) if gone else total
        left = [v for v in names if v in axes]
        return aligned(left, best, axes)

    zeros = [((v,), np.zeros(size)) for v, size in enumerate(sizes)]
    signed = [(scope, sign * table) for scope, table in tables]
    return sign * eliminate([*signed, *zeros], sizes, kept, bucket)


def count(allowed: Tables, sizes: Sequence[int]) -> int:
    """Return the number of assignments that all tables of booleans allow."""
    kind: Any = np.int64 if math.prod(sizes) < LARGEST_INT else object

    def bucket(meeting: Tables, axes: tuple[int, ...]) -> np.ndarray:
        names = sorted(set().union(*(scope for scope, _ in meeting))) if meeting else []
        total = np.ones([1] * len(names), dtype=kind)
        for scope, table in meeting:
            total = total * aligned(scope, table, names)
        return np.asarray(np.sum(total, axis=tuple(n for n, v in enumerate(names) if v not in axes)), dtype=kind)

    ones = [((v,), np.ones(size, dtype=kind)) for v, size in enumerate(sizes)]
    return int(eliminate([*((scope, table.astype(kind)) for scope, table in allowed), *ones], sizes, (), bucket)[()])


def is_satisfiable(allowed: Tables, sizes: Sequence[int]) -> bool:
    """Return whether all tables of booleans allow some assignment."""

    def bucket(meeting: Tables, axes: tuple[int, ...]) -> np.ndarray:
        names = sorted(set().union(*(scope for scope, _ in meeting))) if meeting else []
        total = np.ones([1] * len(names), dtype=bool)
        for scope, table in meeting:
            total = total & aligned(scope, table, names)
        return np.asarray(total.any(axis=tuple(n for n, v in enumerate(names) if v not in axes)))

    ones = [((v,), np.ones(size, dtype=bool)) for v, size in enumerate(sizes)]
    return bool(eliminate([*allowed, *ones], sizes, (), bucket)[()])
