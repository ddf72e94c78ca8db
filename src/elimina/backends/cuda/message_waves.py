"""Belief propagation on a GPU: waves of all beliefs, then of all messages (``kernels/waves.cu``)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda.device import CudaDevice
from elimina.backends.cuda.kernels import THREADS
from elimina.backends.factor_classes import FactorClass

BLOCKS_PER_MULTIPROCESSOR = 16
"""Largest number of blocks of a launch per multiprocessor. In large launches, threads take several items."""

ROOM_BYTES, MIN_THREADS = 48 << 10, 16
"""Largest shared memory of a block in bytes, and the least number of threads to which a block is cut to respect it."""

Floats = NDArray[np.float64]


class _Ranks(NamedTuple):
    """Variables in the sequence of their sizes. The beliefs of equal sizes lie together, state after state.

    Attributes:
        order: Variables by rank.
        classes: Sizes, each with the ranks of its variables and the cells of their beliefs.
        firsts: Position of each variable's belief in its first state.
        strides: Distance between neighbouring states in each variable's belief.
    """

    order: NDArray[np.int64]
    classes: tuple[tuple[int, slice, slice], ...]
    firsts: NDArray[np.int32]
    strides: NDArray[np.int32]

    @staticmethod
    def of(sizes: NDArray[np.int64]) -> _Ranks:
        order = np.argsort(sizes, kind="stable")
        firsts, strides = np.empty(len(sizes), np.int32), np.empty(len(sizes), np.int32)
        classes, cell = [], 0
        for ranks in np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(sizes[order])) + 1):
            members = order[ranks]
            size = int(sizes[members[0]])
            firsts[members], strides[members] = cell + np.arange(len(members)), len(members)
            cells = slice(cell, cell + size * len(members))
            classes.append((size, slice(int(ranks[0]), int(ranks[-1]) + 1), cells))
            cell = cells.stop
        return _Ranks(order, tuple(classes), firsts, strides)

    def cells_by_variable(self, starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each cell of the beliefs, its place if variables follow each other by number.

        Args:
            starts: Place of each variable's first state.
        """
        by_class = [(starts[self.order[ranks]] + np.arange(size)[:, None]).ravel() for size, ranks, _ in self.classes]
        return np.concatenate(by_class)


class _Edges(NamedTuple):
    """Messages in the order of their receivers' ranks.

    Attributes:
        starts: Number of each variable's first message; then the number of all messages.
        firsts: First cell of each message.
        strides: Distance between neighbouring cells of each message.
    """

    starts: NDArray[np.int32]
    firsts: NDArray[np.int32]
    strides: NDArray[np.int32]


def _edges(variables: NDArray[np.int64], classes: Sequence[FactorClass]) -> _Edges:
    ranks = np.empty_like(variables)
    ranks[variables] = np.arange(len(variables))
    receivers, firsts, strides = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    base = 0
    for factors in classes:
        offsets = itertools.accumulate(factors.sizes[:-1], initial=0)
        for offset, scope in zip(offsets, factors.scopes, strict=True):
            receivers.append(ranks[scope])
            firsts.append(base + offset * factors.factor_count + np.arange(factors.factor_count))
            strides.append(np.full(factors.factor_count, factors.factor_count))
        base += factors.message_cells
    receiver = np.concatenate(receivers)
    order = np.argsort(receiver, kind="stable")
    starts = np.searchsorted(receiver[order], np.arange(len(variables) + 1))
    first, stride = np.concatenate(firsts)[order], np.concatenate(strides)[order]
    return _Edges(starts.astype(np.int32), first.astype(np.int32), stride.astype(np.int32))


class _Launch(NamedTuple):
    """A class of factors: their number, their axes' sizes, the first arguments of the kernels, and the messages."""

    factors: int
    sizes: tuple[int, ...]
    arguments: tuple[Any, ...]
    messages: Any


class MessageWaves:
    """Beliefs and messages in a GPU's memory.

    Use it within ``arrays()`` of the device. All messages are 1 at first.

    Args:
        device: The GPU.
        cupy: CuPy, as ``arrays()`` of the device yields it.
        sizes: Number of states of each variable.
        biases: Logarithms of the variables' own factors, those of one variable after another.
        classes: Factors of two variables or more.
    """

    def __init__(
        self, device: CudaDevice, cupy: Any, sizes: NDArray[np.int64], biases: Floats, classes: Sequence[FactorClass]
    ) -> None:
        self._device, self._cupy = device, cupy
        ranks = _Ranks.of(sizes)
        self._variable_classes = ranks.classes
        self._cells = ranks.cells_by_variable(np.cumsum(sizes) - sizes)
        self._biases = cupy.asarray(biases[self._cells])
        self._edges = [cupy.asarray(numbers) for numbers in _edges(ranks.order, classes)]
        self._beliefs = [cupy.zeros(len(biases)) for _ in range(2)]
        self._normalisers, self._residual, self._damping = cupy.empty(len(sizes)), cupy.zeros(1), cupy.zeros(1)
        bounds = itertools.accumulate((factors.message_cells for factors in classes), initial=0)
        self._messages = cupy.zeros(sum(factors.message_cells for factors in classes))
        self._classes = [
            _Launch(
                factors.factor_count,
                factors.sizes,
                (
                    factors.factor_count,
                    np.int32(len(factors.sizes)),
                    cupy.asarray(np.array(factors.sizes, dtype=np.int32)),
                    cupy.asarray(np.ascontiguousarray(ranks.firsts[factors.scopes])),
                    cupy.asarray(ranks.strides[factors.scopes[:, 0]]),
                    cupy.asarray(np.ascontiguousarray(factors.tables)),
                ),
                self._messages[slice(*ends)],
            )
            for factors, ends in zip(classes, itertools.pairwise(bounds), strict=True)
        ]
        self._update_beliefs()
        # Kernels are compiled when they first run, so both waves run once before they are recorded.
        self._two_waves()
        self._messages.fill(0)
        self._update_beliefs()
        self._recorded = device.recorded(self._two_waves)

    def _launch(self, name: str, count: int, arguments: tuple[Any, ...], threads: int, shared: int = 0) -> None:
        blocks = max(1, min(-(-count // threads), BLOCKS_PER_MULTIPROCESSOR * self._device.multiprocessors))
        self._device.function(f"elimina::{name}", shared)((blocks,), (threads,), arguments, shared_mem=shared)

    def _launch_class(self, name: str, launch: _Launch, *arguments: Any) -> None:
        slots = sum(launch.sizes) + max(launch.sizes)
        threads = THREADS
        while threads > MIN_THREADS and 8 * slots * threads > ROOM_BYTES:
            threads //= 2
        self._launch(name, launch.factors, (*launch.arguments, *arguments), threads, 8 * slots * threads)

    def _update_beliefs(self) -> None:
        self._beliefs.reverse()
        starts, firsts, strides = self._edges
        for size, ranks, cells in self._variable_classes:
            count, biases = ranks.stop - ranks.start, self._biases[cells]
            lists = starts[ranks.start : ranks.stop + 1], firsts, strides, self._messages
            beliefs = self._beliefs[1][cells], self._beliefs[0][cells], self._normalisers[ranks], self._residual
            self._launch("waves_beliefs", count, (count, np.int32(size), biases, *lists, *beliefs), THREADS)

    def _two_waves(self) -> None:
        # Each wave swaps the old and the new beliefs. After two waves they are in place again, so the recorded graph
        # can be repeated.
        for _ in range(2):
            for launch in self._classes:
                self._launch_class("waves_messages", launch, self._beliefs[0], launch.messages, self._damping)
            self._residual.fill(0)
            self._update_beliefs()

    def run(self, pairs: int, damping: float) -> float:
        """Pass messages.

        Args:
            pairs: Number of pairs of waves, at least 1.
            damping: Share of the previous message in a new one.

        Returns:
            The largest change of a probability in the last wave.
        """
        self._damping.fill(damping)
        for _ in range(pairs):
            self._recorded()
        return float(self._residual[0])

    def log_sum(self) -> float:
        """Return Bethe's approximation of the sum's natural logarithm, valid after convergence; -inf for a sum of 0."""
        total = float(self._normalisers.sum())
        for launch in self._classes:
            logs = self._cupy.empty(launch.factors)
            self._launch_class("waves_sums", launch, self._beliefs[0], launch.messages, logs)
            total += float(logs.sum())
        return total if not math.isnan(total) else -math.inf

    def marginals(self) -> Floats:
        """Return the probabilities of all states, those of one variable after another."""
        marginals = np.empty(len(self._cells))
        marginals[self._cells] = self._cupy.asnumpy(self._cupy.exp(self._beliefs[0]))
        return marginals
