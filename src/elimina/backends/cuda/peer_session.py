"""One GPU's part of a program that is divided among several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import count_path
from elimina.backends.cuda.device import CudaDevice
from elimina.backends.cuda.matrix_queue import RANGE_BYTES
from elimina.backends.cuda.session import CudaSession
from elimina.backends.protocols import Progress, RunOutput
from elimina.planning.program import Program
from elimina.planning.step import FactorLayout

WORD_TYPES = {16: "complex128", 8: "uint64", 4: "uint32", 2: "uint16"}
"""Number types by their bytes, for copies of cells between GPUs."""


def copy_words(
    source: FactorLayout, target: FactorLayout, itemsize: int
) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the longest words in which cells can be copied, and where these lie.

    Args:
        source: Cells to copy.
        target: Destination of the cells, with the axes in the same order.
        itemsize: Bytes of a cell.

    Returns:
        The bytes of a word; the axes' numbers of words, slow to fast; and the bytes between two words of each axis in
        the source and in the target.
    """
    axes: list[tuple[int, int, int]] = []
    for size, source_strides, target_strides in sorted(
        zip(source.sizes, source.strides, target.strides, strict=True), key=lambda a: a[1]
    ):
        if axes and (source_strides, target_strides) == (axes[-1][0] * axes[-1][1], axes[-1][0] * axes[-1][2]):
            axes[-1] = (axes[-1][0] * size, *axes[-1][1:])
        elif size > 1:
            axes.append((size, source_strides, target_strides))
    word = 1
    if axes and axes[0][1:] == (1, 1):
        strides = (stride for axis in axes[1:] for stride in axis[1:])
        word = math.gcd(max(WORD_TYPES) // itemsize, axes[0][0], source.offset, target.offset, *strides)
        axes[0] = axes[0][0] // word, word, word
    sizes, given_strides, own_strides = zip(*axes[::-1], strict=True) if axes else ((), (), ())
    item = itemsize
    return word * item, sizes, tuple(item * n for n in given_strides), tuple(item * n for n in own_strides)


class PeerSession(CudaSession):
    """One GPU's session of a program that is divided among GPUs; it reads the arenas of the others.

    Queued work runs after earlier queued work.
    """

    def __init__(self, backend: CudaDevice, program: Program, factors: NDArray[np.generic]) -> None:
        super().__init__(backend, program, factors)
        self._copies: list[list[Any]] = []
        count_path("cuda-shards")
        with self._here():
            # Copies within the GPU use a separate stream, so that they run at the same time as copies over the link.
            self._local = self._cuda.Stream(non_blocking=True)

    def copy_from(self, boxes: Iterable[tuple[Any, FactorLayout, FactorLayout]]) -> None:
        """Queue copies from other sessions' arenas, over the GPUs' link.

        Args:
            boxes: Session of each box, its cells in that session's arena, and their place in this one's arena.

        Raises:
            DeviceError: A device failed, or does not reach another one's memory.
        """
        item, number = self._program.dtype.itemsize, self._backend.number
        with self._here():
            ends = [self._cuda.Event() for _ in range(2)]
            ends[0].record(self._stream)
            self._local.wait_event(ends[0])
            for peer, source, target in boxes:
                self._backend.reach(peer._backend)
                word, sizes, source_strides, target_strides = copy_words(source, target, item)
                # The view names this GPU as the device of the other one's memory, so that CuPy copies by a kernel of
                # this GPU.
                cells = peer.view(WORD_TYPES[word], item * source.offset, sizes, source_strides, number)
                with self._local if peer is self else self._stream:
                    self.view(WORD_TYPES[word], item * target.offset, sizes, target_strides, number)[...] = cells
            self._stream.wait_event(self._passed(self._local))
            ends[1].record(self._stream)
            self._copies.append(ends)

    def queue(self, steps: NDArray[np.int64], share: float) -> None:
        """Queue successive steps; ``share``: share of the program's work that is done once these steps have run."""
        phase = copy(self.whole_program)
        phase.layout = phase.layout.phase(int(steps[0]), int(steps[-1]) + 1, len(self._program.starts))
        with self._here():
            self._write_loads()
            self.whole_program.products.find_ranges(self.arena)
            self.launch_steps(phase, False)
            self._marks.append((self._passed(self._stream), share))

    def join_peaks(self, peers: Sequence[Any], step: int) -> None:
        """Queue the extension of a step's output range in this session, to include its ranges in the other sessions."""
        cupy = self._backend.cupy
        with self._here():
            high, low = (self._peaks_of(self, step)[end : end + 1] for end in range(2))
            for peer in peers:
                peer_peaks = self._peaks_of(peer, step)
                cupy.maximum(high, peer_peaks[:1], out=high)
                cupy.minimum(low, peer_peaks[1:], out=low)

    def _peaks_of(self, session: PeerSession, step: int) -> Any:
        """Return the output range of a step in a session, as an array of this GPU."""
        at = session._base + self.whole_program.layout.peaks_at + RANGE_BYTES * step
        memory = self._cuda.UnownedMemory(at, RANGE_BYTES, session._memory, self._backend.number)
        return self._backend.cupy.ndarray((2,), np.float64, self._cuda.MemoryPointer(memory, 0))

    def follow(self, peers: Sequence[Any]) -> None:
        """Make later work wait, on the GPU, for all work that other sessions have queued so far."""
        with self._here():
            for peer in peers:
                self._backend.reach(peer._backend)
                with peer._here():
                    passed = self._passed(peer._stream)
                self._stream.wait_event(passed)

    def _passed(self, stream: Any) -> Any:
        """Return an event that passes once all work queued so far in a stream of the current GPU has run."""
        event = self._cuda.Event(disable_timing=True)
        event.record(stream)
        return event

    def finish(self, progress: Progress | None) -> RunOutput:
        """Wait until all queued work has run, and return its output; ``exchange`` has the seconds of the copies."""
        with self._here():
            results, done = self._download(self.whole_program.layout)
            self._wait(done, progress)
            exchange = sum(self._cuda.get_elapsed_time(*ends) for ends in self._copies) / 1000
            self._copies.clear()
            self._staged.clear()
            return self._collect(results, {"exchange": exchange})

    def cancel(self) -> None:
        """Cancel queued work."""
        with self._here():
            self._stop(self.whole_program)
