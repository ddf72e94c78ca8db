"""Mini-buckets by the contents of tables, as Rollon and Dechter (2010, section 4) describe them, on arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import mini_buckets
from elimina.planning.tree import Partition

_MOST_PAIRS, _EXACT, _SAMPLES = 2**15, 2**16, 2**11
"""Most pairs of a bucket, cells of exact gains, and samples of others: the limits of the core."""

Floats = NDArray[np.float64]


class Joined(NamedTuple):
    """Tables of a bucket, added up.

    Attributes:
        scope: Earliest eliminated first: the bucket's variable, and those of the message.
        table: Sum of these tables.
        message: The least of it over the bucket's variable.
        places: Places of the tables in the bucket.
    """

    scope: tuple[int, ...]
    table: Floats
    message: Floats
    places: tuple[int, ...]


class Division:
    """Partitions the buckets in order, and makes their messages; scopes are sorted by the order."""

    def __init__(
        self, scopes: Sequence[tuple[int, ...]], tables: Sequence[Floats], order: Sequence[int], ibound: int
    ) -> None:
        self._position = {v: i for i, v in enumerate(order)}
        self._ibound = ibound
        self._noise = np.random.default_rng(0)
        # What is forbidden costs more than anything that is not.
        self._most = 1.0 + sum(float(table.max(initial=0, where=np.isfinite(table))) for table in tables)
        self._near: dict[int, set[int]] = {v: set() for v in order}
        for scope in scopes:
            self._meet(scope)
        self._buckets: list[list[tuple[tuple[int, ...], Floats]]] = [[] for _ in order]
        for scope, table in zip(scopes, tables, strict=True):
            self._buckets[self._position[scope[0]]].append((scope, table))

    def divide(self) -> Partition:
        """Return the mini-buckets of all buckets."""
        partition = []
        for place, bucket in enumerate(self._buckets):
            parts = self._divide([Joined(scope, t, t.min(axis=0), (n,)) for n, (scope, t) in enumerate(bucket)])
            self._buckets[place] = []
            for scope, message in ((part.scope[1:], part.message) for part in parts):
                self._meet(scope)
                if scope:
                    self._buckets[self._position[scope[0]]].append((scope, message))
            partition.append([tuple(sorted(part.places)) for part in parts] or [()])
        return partition

    def _divide(self, single: Sequence[Joined]) -> Sequence[Joined]:
        union = frozenset[int]().union(*(table.scope for table in single))
        if len(union) <= self._ibound + 1:
            return [self._join(single)] if single else []
        if len(single) * (len(single) - 1) // 2 > _MOST_PAIRS:
            divided = mini_buckets([table.scope for table in single], self._ibound)
            return [self._join([single[n] for n in places]) for places in divided]
        return self._merge(self._contain(single))

    def _contain(self, single: Sequence[Joined]) -> list[Joined]:
        """Join each table to one that contains its variables, if there is one: the one with the largest gain."""
        parts: list[Joined] = []
        for table in sorted(single, key=lambda table: -len(table.scope)):
            holders = [n for n, part in enumerate(parts) if set(table.scope) <= set(part.scope)]
            if holders:
                best = max(holders, key=lambda n: self._gain(parts[n], table)) if len(holders) > 1 else holders[0]
                parts[best] = self._join([parts[best], table])
            else:
                parts.append(table)
        return parts

    def _merge(self, parts: Sequence[Joined]) -> list[Joined]:
        """Join the two mini-buckets that gain most, as long as any two may be joined."""
        left = dict(enumerate(parts))
        names = itertools.count(len(parts))
        gains = self._gains(left, itertools.combinations(left, 2))
        while gains:
            one, other = max(gains, key=gains.__getitem__)
            merged = next(names)
            left[merged] = self._join([left.pop(one), left.pop(other)])
            gains = {pair: gain for pair, gain in gains.items() if not {one, other}.intersection(pair)}
            gains.update(self._gains(left, ((name, merged) for name in left if name != merged)))
        return list(left.values())

    def _gains(
        self, parts: Mapping[int, Joined], pairs: Iterable[tuple[int, int]]
    ) -> dict[tuple[int, int], tuple[float, int, int]]:
        """Return the gains of the pairs that may be joined.

        Of equals those are better whose message meets more tables on its way, then those that add fewer variables.
        """
        gains = {}
        for pair in pairs:
            one, other = (parts[name] for name in pair)
            largest = max(len(one.scope), len(other.scope))
            variables = {*one.scope, *other.scope}
            if len(variables) <= max(self._ibound + 1, largest):
                others = variables.difference(one.scope)
                met = sum(len(others & self._near[v]) for v in variables.difference(other.scope))
                gains[pair] = self._gain(one, other), met, largest - len(variables)
        return gains

    def _meet(self, scope: Sequence[int]) -> None:
        """Note that some table connects these variables."""
        for v in scope:
            self._near[v].update(scope)

    def _gain(self, one: Joined, other: Joined) -> float:
        """Gain of two tables' joint message over the sum of their own: the mean over all assignments."""
        scope = self._union([one, other])
        sizes = {v: n for part in (one, other) for v, n in zip(part.scope, part.table.shape, strict=True)}
        if math.prod(sizes.values()) <= _EXACT:
            together = (_spread(one.table, one.scope, scope) + _spread(other.table, other.scope, scope)).min(axis=0)
            apart = sum(_spread(part.message, part.scope[1:], scope[1:]) for part in (one, other))
        else:
            at = {v: self._noise.integers(sizes[v], size=_SAMPLES) for v in scope[1:]}
            columns = [_column(part, at) for part in (one, other)]
            together = (columns[0] + columns[1]).min(axis=0)
            apart = columns[0].min(axis=0) + columns[1].min(axis=0)
        return float((np.minimum(together, self._most) - np.minimum(apart, self._most)).mean())

    def _join(self, parts: Sequence[Joined]) -> Joined:
        if len(parts) == 1:
            return parts[0]
        scope = self._union(parts)
        table = sum(
            (_spread(part.table, part.scope, scope) for part in parts[1:]),
            _spread(parts[0].table, parts[0].scope, scope),
        )
        return Joined(scope, table, table.min(axis=0), tuple(n for part in parts for n in part.places))

    def _union(self, parts: Sequence[Joined]) -> tuple[int, ...]:
        return tuple(sorted({v for part in parts for v in part.scope}, key=self._position.__getitem__))


def _spread(table: Floats, scope: Sequence[int], wider: Sequence[int]) -> Floats:
    """Return a table with an axis for each variable of a wider scope."""
    sizes = dict(zip(scope, table.shape, strict=True))
    return table.reshape([sizes.get(v, 1) for v in wider])


def _column(part: Joined, at: Mapping[int, NDArray[np.int64]]) -> Floats:
    """Return the rows of the bucket's variable, at assignments of the others."""
    picked: tuple[Any, ...] = (slice(None), *(at[v] for v in part.scope[1:]))
    rows: Floats = part.table[picked]
    return rows.reshape(len(part.table), -1)
