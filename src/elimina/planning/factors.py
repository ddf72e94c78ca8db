"""The factors of a plan: packed arrays, unpacked when somebody looks at them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from elimina._core import PlannedLayout, PlannedTree
from elimina.planning.plan import FactorLayout

Integers = NDArray[np.int64]


class Factors(Sequence[FactorLayout]):
    """A sequence of factors over arrays; the data of factor f is the slice from ``starts[f]`` to the next start.

    Attributes:
        member_starts: Starts of the members.
        members: Tables that are joined to each factor, int32.
        starts: Starts of the scopes.
        scopes: Variables of each factor, earliest eliminated first, int32.
        sizes: Their numbers of values.
        strides: Elements between two values of each.
        offsets: Start of each factor in the arena, in elements.
        spans: Elements of each, padding included.
    """

    def __init__(self, *arrays: NDArray[Any]) -> None:
        """Take the arrays in the sequence of the attributes."""
        self.member_starts, self.members, self.starts, self.scopes = arrays[:4]
        self.sizes, self.strides, self.offsets, self.spans = arrays[4:]

    @staticmethod
    def of(
        members: Sequence[tuple[int, ...]], sizes: Sequence[int], tree: PlannedTree, placed: PlannedLayout
    ) -> Factors:
        """Return the factors of a tree.

        Args:
            members: Tables that are joined to each factor.
            sizes: Domain size of every variable of the model.
            tree: Tree over the factors' scopes.
            placed: Layout of steps over the tree.
        """
        starts, scopes = tree.scopes
        own = np.array(sizes, dtype=np.int64)[scopes]
        return Factors(*_lists(members), starts, scopes, own, placed.strides, placed.offsets, placed.spans)

    @staticmethod
    def packed(factors: Sequence[FactorLayout]) -> Factors:
        """Return factors over arrays: the given ones, or newly packed ones."""
        if isinstance(factors, Factors):
            return factors
        sizes, strides, offsets, spans = (
            np.array(column, dtype=np.int64)
            for column in (
                [size for factor in factors for size in factor.sizes],
                [stride for factor in factors for stride in factor.strides],
                [factor.offset for factor in factors],
                [factor.span for factor in factors],
            )
        )
        members, scopes = _lists([f.members for f in factors]), _lists([f.scope for f in factors])
        return Factors(*members, *scopes, sizes, strides, offsets, spans)

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, number: int) -> FactorLayout: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[FactorLayout, ...]: ...

    def __getitem__(self, number: int | slice) -> FactorLayout | tuple[FactorLayout, ...]:
        return self._unpacked[number]

    def __iter__(self) -> Iterator[FactorLayout]:
        return iter(self._unpacked)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._unpacked == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def joined(self) -> int:
        """Tables that one factor is joined of, at most."""
        return int(np.diff(self.member_starts).max(initial=0))

    @cached_property
    def _unpacked(self) -> tuple[FactorLayout, ...]:
        scopes, sizes, strides = (_tuples(self.starts, items) for items in (self.scopes, self.sizes, self.strides))
        members = _tuples(self.member_starts, self.members)
        places = self.offsets.tolist(), self.spans.tolist()
        return tuple(itertools.starmap(FactorLayout, zip(members, scopes, sizes, strides, *places, strict=True)))


def _lists(lists: Sequence[Sequence[int]]) -> tuple[Integers, NDArray[np.int32]]:
    """Return lists as starts and items, one after another."""
    starts = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)), out=starts[1:])
    return starts, np.fromiter(itertools.chain.from_iterable(lists), np.int32, int(starts[-1]))


def _tuples(starts: Integers, items: NDArray[Any]) -> Iterator[tuple[int, ...]]:
    listed = items.tolist()
    return (tuple(listed[a:b]) for a, b in itertools.pairwise(starts.tolist()))
