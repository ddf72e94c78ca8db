"""Marginals of variables whose states were merged, without an array over all states."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, Mapping, ValuesView

import numpy as np
from numpy.typing import NDArray

from elimina.arguments import shown
from elimina.errors import InputError
from elimina.model.states import State
from elimina.problem.merging import Merged

_BLOCK_STATES = 1 << 16
"""Number of states whose probabilities are computed together when all probabilities are read."""


class MergedMarginal(Mapping[State, float]):
    """Marginal of a variable with merged states, as a read-only mapping: state -> probability.

    Args:
        merged: The merged states.
        shares: Their probabilities.
    """

    def __init__(self, merged: Merged, shares: NDArray[np.float64]) -> None:
        self._merged, self._shares = merged, shares
        self._share_of_others = merged.share_of_others(shares)

    def __getitem__(self, state: State) -> float:
        try:
            index = self._merged.variable.index(state)
        except (InputError, TypeError):
            raise KeyError(state) from None
        return float(self.block(index, index + 1)[0])

    def __iter__(self) -> Iterator[State]:
        return iter(self._merged.variable.all_states)

    def __len__(self) -> int:
        return self._merged.variable.size

    def __repr__(self) -> str:
        return f"MergedMarginal({shown(self._merged.variable.name)}, {len(self):,} states)"

    def items(self) -> ItemsView[State, float]:
        """Return the pairs of states and probabilities."""
        return _Items(self)

    def values(self) -> ValuesView[float]:
        """Return the probabilities in the order of the states."""
        return _Values(self)

    def mode(self) -> tuple[State, float]:
        """Return the most probable state, the first of several, and its probability."""
        merged = self._merged
        indices, shares = merged.indices, self._shares.copy()
        if merged.others is not None:
            shares[-1] = self.block(merged.others, merged.others + 1)[0]
        index = int(indices[shares == shares.max()].min())
        return merged.variable.state(index), float(shares.max())

    def blocks(self) -> Iterator[list[float]]:
        """Yield the probabilities of consecutive states, some at a time."""
        for begin in range(0, len(self), _BLOCK_STATES):
            yield self.block(begin, min(begin + _BLOCK_STATES, len(self))).tolist()

    def block(self, begin: int, end: int) -> NDArray[np.float64]:
        """Return the probabilities of the states with the indices from ``begin`` to ``end - 1``."""
        merged = self._merged
        if merged.weights is None:
            shares = np.full(end - begin, self._share_of_others)
        else:
            shares = merged.weights[begin:end] * self._share_of_others
        first, last = np.searchsorted(merged.values, (begin, end))
        shares[merged.values[first:last] - begin] = self._shares[first:last]
        return shares


class _Items(ItemsView[State, float]):
    _mapping: MergedMarginal

    def __iter__(self) -> Iterator[tuple[State, float]]:
        states = iter(self._mapping)
        for block in self._mapping.blocks():
            # ``zip`` reads the block first, so that it does not take and lose a state at the end of a block.
            yield from ((state, share) for share, state in zip(block, states, strict=False))


class _Values(ValuesView[float]):
    _mapping: MergedMarginal

    def __iter__(self) -> Iterator[float]:
        for block in self._mapping.blocks():
            yield from block
