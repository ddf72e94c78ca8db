"""A program, laid out for a CUDA device: launches, words, and places in one buffer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda.forest import ForestLaunch
from elimina.backends.cuda.matrix_launch import MatrixLaunch
from elimina.backends.cuda.tile_launch import TileLaunch


class LaunchRecording:
    """A CUDA graph of the launches of some steps: without it, short steps would wait for the host.

    Attributes:
        graph: Function that launches the graph; None until the launches are repeated.
        runs: Number of times that the steps were launched one by one.
    """

    def __init__(self) -> None:
        self.graph: Callable[[], None] | None = None
        self.runs = 0


class DeviceLayout(NamedTuple):
    """A program on the device, or some of its steps.

    All runs of a program use the same first buffer: outputs of compact steps | assignment | output ranges | arena.
    Offsets of compact outputs are relative to the arena, which follows them, and so are negative. The contents of a
    second buffer depend on the steps that run: words | state.

    Attributes:
        launches: Launches in the order of their execution.
        larges: Number of the step of each launch of a large step.
        decode_at: Start of the decoding order within the words.
        decode_steps: Number of steps to decode.
        decode_shared: Bytes of shared memory for decoding.
        links_at: Start of the links of small steps within the words.
        entries_at: Start of the entries of all launches of small steps within the words.
        sequence_at: Start, within the words, of the list of the steps to run.
        sequence: Length of this list.
        words: Words that the kernels read.
        state: Bytes of the counters before a run: the stop flag; one for each launch of small steps; for each step, the
            number of steps that it waits for; and for each step, the number of its unfinished chunks.
        pending_at: Byte offset of the counters of steps.
        assignment_at, peaks_at, arena_at: Byte offsets in the first buffer.
        size: Bytes of the first buffer.
        work: Combinations of all steps that run.
        recordings: Sessions' recordings of the launches, by the addresses that the launches use.
        copies: Copies of words and state that stay on devices, by the device's number; None if none stay.
    """

    launches: tuple[ForestLaunch | TileLaunch | MatrixLaunch, ...]
    larges: tuple[int, ...]
    decode_at: int
    decode_steps: int
    decode_shared: int
    links_at: int
    entries_at: int
    sequence_at: int
    sequence: int
    words: NDArray[np.int64]
    state: NDArray[np.uint8]
    pending_at: int
    assignment_at: int
    peaks_at: int
    arena_at: int
    size: int
    work: int
    recordings: dict[tuple[Any, ...], LaunchRecording]
    copies: dict[int, Any] | None = None

    def phase(self, first: int, end: int, count: int) -> DeviceLayout:
        """Return the part of the layout for a phase of a program that is divided among GPUs.

        A phase ends with a large step; small steps run in the phase of the next large step.
        """
        large_launches = [number for number, launch in enumerate(self.launches) if not isinstance(launch, ForestLaunch)]
        begin, stop = (sum(large < step for large in self.larges) for step in (first, end))
        launches = slice(
            large_launches[begin - 1] + 1 if begin else 0,
            len(self.launches) if end == count else large_launches[stop - 1] + 1 if stop else 0,
        )
        # The ranges of all outputs are reset before the first phase only.
        sequence = 0 if first else self.sequence
        return self._replace(launches=self.launches[launches], sequence=sequence, recordings={})
