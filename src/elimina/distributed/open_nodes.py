"""Open nodes of a search, as workers take and leave them."""

from __future__ import annotations

import heapq
import itertools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_WORDS = 3
"""Numbers that encode a decision."""

Words = NDArray[np.int64]


class Nodes(NamedTuple):
    """Open nodes of ``elimina._core.ConsistencySearch``.

    Attributes:
        bounds: (nodes,) Costs of the core that nothing below the node falls below.
        lengths: (nodes,) Numbers of decisions that lead to the node.
        decisions: (decisions * 3,) Of all nodes, one after another.
    """

    bounds: Words
    lengths: Words
    decisions: Words

    @property
    def least(self) -> int:
        """The least bound."""
        return int(self.bounds.min())


ROOT = Nodes(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))


class Pool:
    """Open nodes that no worker has, the least bound first; of equal ones the deepest first."""

    def __init__(self, *given: Nodes) -> None:
        self._heap: list[tuple[int, int, int, Words]] = []
        self._numbers = itertools.count()
        for nodes in given:
            self.put(nodes)

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def least(self) -> int:
        """The least bound; the pool is not empty."""
        return self._heap[0][0]

    def put(self, nodes: Nodes) -> None:
        """Take nodes that a worker left."""
        ends = np.cumsum(nodes.lengths)[:-1] * _WORDS
        parts = np.split(nodes.decisions, ends) if len(nodes.bounds) else []
        for bound, length, words in zip(nodes.bounds.tolist(), nodes.lengths.tolist(), parts, strict=True):
            # A copy: it would keep all that came with it.
            heapq.heappush(self._heap, (bound, -length, next(self._numbers), words.copy()))

    def take(self, most: int, every: int) -> Nodes:
        """Hand over some of the best nodes: of each so many the first one, so that as good ones are left for others."""
        best = [heapq.heappop(self._heap) for _ in range(min(len(self._heap), most * every))]
        for number, node in enumerate(best):
            if number % every:
                heapq.heappush(self._heap, node)
        taken = best[::every]
        words = [node[3] for node in taken]
        return Nodes(
            np.array([node[0] for node in taken], np.int64),
            np.array([-node[1] for node in taken], np.int64),
            np.concatenate(words) if words else np.zeros(0, np.int64),
        )

    def drop(self, top: int) -> None:
        """Forget what costs too much."""
        if any(node[0] >= top for node in self._heap):
            self._heap = [node for node in self._heap if node[0] < top]
            heapq.heapify(self._heap)
