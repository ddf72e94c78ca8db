"""Beam search for an optimum in the tables of clusters, on the device of these tables.

After a pass over clusters, every table in a variable's bucket has a value of this variable with cost 0 for each
assignment of the table's other variables. A partial assignment contains the variables eliminated last, and its cost is
therefore a lower bound on all assignments that extend it. The search extends many partial assignments by one variable
at a time, and keeps the best ones. The bound on the optimum also takes the costs of the dropped partial assignments
into account.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import Stopped, stopped

if TYPE_CHECKING:
    from elimina.methods.join_graph import JoinGraph

Floats = NDArray[np.float64]
"""Array of NumPy or CuPy; costs in tables are whole numbers of units."""

_MAX_KEY = 2.0**53
"""Largest key of a partial assignment. Keys are integers, stored as floats; sorting by them puts equal partial
assignments next to each other."""

_MIN_WIDTH, _MAX_WIDTH, _WIDTH_GROWTH = 1 << 10, 1 << 19, 8
"""Least and largest number of partial assignments in a search, and the factor by which it grows from one search to the
next."""


class BeamResult(NamedTuple):
    """Result of a beam search.

    Attributes:
        values: Value of each variable.
        cost: Cost of the assignment, in the tables' units.
        bound: Lower bound on the costs of all assignments.
    """

    values: dict[int, int]
    cost: float
    bound: float


_CELL_BYTES = 64
"""Bytes of an extended partial assignment without its stored values: costs, keys and their sorting."""

_VALUE_BYTES = 20
"""Bytes of a stored value while partial assignments are sorted."""


def beam_searches(
    graph: JoinGraph, tables: Sequence[Floats], until: float, arrays: Any = np, room: float = math.inf
) -> Iterator[BeamResult]:
    """Yield the results of searches of growing width.

    The searches end when one is exact or fails, or when a wider one would take too much time or memory.

    Args:
        graph: Clusters.
        tables: Their tables after a pass, on the device of ``arrays``.
        until: Time, by ``time.monotonic``, at which the last search is aborted.
        arrays: Library of the tables: NumPy or CuPy.
        room: Memory limit of partial assignments, in bytes.
    """
    width, seconds = _MIN_WIDTH, 0.0
    max_width = min(_MAX_WIDTH, room / _bytes_of_one(graph, tables))
    while width <= max_width and time.monotonic() + _WIDTH_GROWTH * seconds < until:
        began = time.monotonic()
        end = beam_search(graph, tables, width, until, arrays)
        if end is None:
            return
        yield end
        if end.bound == end.cost:
            return
        width, seconds = _WIDTH_GROWTH * width, time.monotonic() - began


def beam_search(
    graph: JoinGraph, tables: Sequence[Floats], width: int, until: float, arrays: Any = np
) -> BeamResult | None:
    """Assign all variables in reverse elimination order.

    Of partial assignments that agree on all variables of later tables, only one of least cost is kept.

    Args:
        graph: Clusters.
        tables: Their tables after a pass, on the device of ``arrays``.
        width: Largest number of partial assignments that are kept.
        until: Time, by ``time.monotonic``, at which the search is aborted.
        arrays: Library of the tables: NumPy or CuPy.

    Returns:
        The best assignment; None if the time ended, or if no kept assignment is allowed.

    Raises:
        Stopped: The call has to end.
    """
    buckets = [[(graph.clusters[number].scope, tables[number]) for number in bucket] for bucket in graph.buckets]
    # ``stored_values`` always has a first row of zeros, because many functions treat arrays without rows differently.
    rows, last_read = [-1], {-1: -1, **_last_reads(graph)}
    weights = np.random.default_rng(0)
    costs, stored_values = arrays.zeros(1), arrays.zeros((1, 1), dtype=np.int32)
    trail: list[tuple[int, Any, Any]] = []
    least_left = math.inf
    for number in reversed(range(len(buckets))):
        if stopped():
            raise Stopped
        if time.monotonic() > until:
            return None
        v = buckets[number][0][0][0]
        total = _extended(costs, stored_values, rows, buckets[number], arrays)
        size = len(total)
        total = total.reshape(-1)
        parents = arrays.tile(arrays.arange(len(costs), dtype=np.int32), size)
        values = arrays.repeat(arrays.arange(size, dtype=np.int32), len(costs))
        stay = [row for row, u in enumerate(rows) if last_read[u] < number]
        rows = [rows[row] for row in stay]
        stored_values = stored_values[arrays.asarray(stay, dtype=np.int32)][:, parents]
        if last_read[v] < number:
            rows.append(v)
            stored_values = arrays.concatenate([stored_values, values[None]])
        positions = _distinct(total, stored_values, weights, arrays)
        positions = positions[arrays.argsort(total[positions])]
        if len(positions) > width:
            least_left = min(least_left, float(total[positions[width]]))
            positions = positions[:width]
        positions = positions[arrays.isfinite(total[positions])]
        if not len(positions):
            return None
        costs, stored_values = total[positions], stored_values[:, positions]
        trail.append((v, parents[positions], values[positions]))
    chosen, at = {}, 0
    for v, parents, values in reversed(trail):
        chosen[v], at = int(values[at]), int(parents[at])
    cost = float(costs[0])
    return BeamResult(chosen, cost, min(least_left, cost))


def _last_reads(graph: JoinGraph) -> dict[int, int]:
    """Return, for each variable, the last bucket in which the search reads it. The search visits buckets in reverse."""
    last_reads: dict[int, int] = {}
    for number, bucket in enumerate(graph.buckets):
        for v in itertools.chain.from_iterable(graph.clusters[cluster].scope for cluster in bucket):
            last_reads.setdefault(v, number)
    return last_reads


def _bytes_of_one(graph: JoinGraph, tables: Sequence[Floats]) -> float:
    """Return the largest number of bytes of a partial assignment and its extensions by one variable."""
    last_reads, stored_count, max_bytes = _last_reads(graph), 1, 1.0
    ends = Counter(last_reads.values())
    for number in reversed(range(len(graph.buckets))):
        size = len(tables[graph.buckets[number][0]])
        max_bytes = max(max_bytes, size * (_CELL_BYTES + _VALUE_BYTES * (stored_count + 1)))
        stored_count += 1 - ends[number]
    return max_bytes


def _extended(
    costs: Any, stored_values: Any, rows: Sequence[int], bucket: Sequence[tuple[Any, Any]], arrays: Any
) -> Any:
    """Return the costs of partial assignments with each value of a bucket's variable, in one row per value."""
    size = len(bucket[0][1])
    total = arrays.broadcast_to(costs, (size, len(costs)))
    for scope, table in bucket:
        cells = table.reshape(size, -1)
        strides = [stride // table.itemsize for stride in table.strides[1:]]
        if not strides:
            total = total + cells
            continue
        others = arrays.asarray([rows.index(u) for u in scope[1:]], dtype=np.int32)
        at = (stored_values[others] * arrays.asarray(strides, dtype=np.int64)[:, None]).sum(axis=0)
        total = total + cells[:, at]
    return total


def _distinct(total: Any, stored_values: Any, weights: np.random.Generator, arrays: Any) -> Any:
    """Return the positions of distinct partial assignments; of equal ones, one with the least cost."""
    max_weight = max(2.0, _MAX_KEY / len(stored_values) / max(1, int(stored_values.max())))
    drawn = arrays.asarray(np.floor(weights.random(len(stored_values)) * max_weight))
    order = arrays.lexsort(arrays.stack([total, (stored_values * drawn[:, None]).sum(axis=0)]))
    ordered = stored_values[:, order]
    is_first = arrays.ones(len(order), dtype=bool)
    is_first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    return order[is_first]
