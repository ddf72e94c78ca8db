"""Sequences stored in arrays, whose items are created on first use."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Item = TypeVar("Item")


def rows_of(lists: tuple[NDArray[np.int64], NDArray[np.integer[Any]]]) -> list[tuple[int, ...]]:
    """Return the lists that the core encodes as an array of starts and an array of items."""
    items = lists[1].tolist()
    return [tuple(items[a:b]) for a, b in itertools.pairwise(lists[0].tolist())]


class Unpacked(Sequence[Item]):
    """A sequence stored in arrays; creating a million items takes longer than a plan, so they are created on access."""

    @property
    @abstractmethod
    def _unpacked(self) -> tuple[Item, ...]:
        """The items, created once."""

    @overload
    def __getitem__(self, number: int) -> Item: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, number: int | slice) -> Item | tuple[Item, ...]:
        return self._unpacked[number]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._unpacked)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._unpacked == tuple(other)

    def __hash__(self) -> int:
        return hash(self._unpacked)
