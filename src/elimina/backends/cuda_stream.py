"""A program whose arena is larger than its device: tables pass through in tiles, copies and kernels overlap."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import DenseSession
from elimina.backends import cuda_tile
from elimina.backends.base import Run
from elimina.backends.cuda_arena import Arena, FileArena, PinnedArena
from elimina.backends.decode import decode
from elimina.planning.program import Program
from elimina.planning.stream import Schedule, StreamedStep, Tile, tile_record
from elimina.planning.tiers import MARGIN, RECORD_BYTES, RECORDS, UPLOAD_STAGES, fixed_bytes
from elimina.semiring import SEMIRINGS

if TYPE_CHECKING:
    from elimina.backends.cuda import CudaBackend

AHEAD = UPLOAD_STAGES - 2
"""Tiles whose uploads are read from a file in advance."""
VECTOR_BYTES = 16
UP, RUN, DOWN = range(3)


class StreamSession:
    """A program whose arena lies on the host: see ``Session``. The host itself does the steps that are not streamed."""

    def __init__(self, backend: CudaBackend, program: Program, factors: NDArray[np.generic]) -> None:
        assert program.stream is not None
        self._backend, self._program, self._stream = backend, program, program.stream
        self._cuda = backend.cupy.cuda
        self._fixed = fixed_bytes(len(program.starts))
        self._size = self._fixed + self._stream.cells * program.dtype.itemsize
        started = time.perf_counter()
        with backend.at_work(self._size):
            self._memory = backend.pool.malloc(self._size)
            self._base = int(self._memory.ptr)
            self._records = backend.pinned.malloc(RECORDS * RECORD_BYTES)
            self._queues = [self._cuda.Stream(non_blocking=True) for _ in range(3)]
            place = PinnedArena if program.scratch is None else FileArena
            self._arena: Arena = place(backend, program, factors)
        # The steps' peaks, the stop flag that no one raises, packed tiles, tables.
        self._records_at = self._base + 16 * len(program.starts) + VECTOR_BYTES
        self._tables_at = self._base + self._fixed - MARGIN
        self._scaled = SEMIRINGS[program.semiring].scaled
        self._peaks = np.zeros((len(program.starts), 2))
        self._host = self._host_session()
        self._streamed = {step.step: step for step in self._stream.steps}
        self._launches: dict[tuple[int, ...], tuple[cuda_tile.Tile, list[int]]] = {}
        self._upload = time.perf_counter() - started

    def _host_session(self) -> DenseSession:
        program = self._program
        return DenseSession(
            program.semiring,
            float(program.parameter),
            int(program.parameter) if program.dtype.kind in "iu" else 0,
            program.words,
            program.starts,
            np.ascontiguousarray(program.outputs[:, 0]),
            self._arena.array,
            self._peaks.reshape(-1),
            None,
            len(os.sched_getaffinity(0)),
        )

    def load(self, offset: int, values: NDArray[np.generic]) -> None:
        """Write elements of the arena: see ``Session.load``."""
        self._arena.array[offset : offset + len(values)] = values

    def fetch(self, offset: int, span: int) -> NDArray[np.generic]:
        """A copy of elements of the arena: see ``Session.fetch``."""
        return self._arena.array[offset : offset + span].copy()

    def close(self) -> None:
        """Give the memory back."""
        del self._host, self._memory
        self._arena.close()
        self._backend.trim()

    def run(self, steps: NDArray[np.int64] | None = None, progress: Callable[[float], None] | None = None) -> Run:
        """Run all of the steps: see ``Session.run``. What lies on the device is there for a whole run only."""
        started = time.perf_counter()
        with self._backend.at_work(self._size):
            try:
                self._run(progress)
            except BaseException:
                self._settle()
                raise
        ran = time.perf_counter()
        self._peaks[np.isinf(self._peaks[:, 1]), 1] = 0
        program = self._program
        assignment = decode(program, self._arena.array, self._peaks) if program.decode else None
        phases = {"upload": self._upload, "run": ran - started, "decode": time.perf_counter() - ran}
        zone = self._arena.array[slice(*program.zone)].copy()
        return Run(zone, self._peaks.copy(), assignment, phases)

    def _run(self, progress: Callable[[float], None] | None) -> None:
        """Stretches of steps of the host and of the device, one after another."""
        program, done = self._program, 0
        schedule = Schedule(program.words, program.starts, program.dtype.itemsize)
        self._cuda.runtime.memset(self._base, 0, self._fixed)
        self._peaks[:] = 0
        if self._scaled:
            self._peaks[list(self._streamed), 1] = np.inf
            self._copy_peaks(to_device=True)
        numbers = range(len(program.starts))
        for on_device, stretch in itertools.groupby(numbers, self._streamed.__contains__):
            report = self._reporter(progress, done)
            if on_device:
                done += self._run_tiles(schedule, [self._streamed[number] for number in stretch], report)
            else:
                host_steps = np.array(list(stretch), dtype=np.int64)
                self._host.run(host_steps, report)
                done += sum(self._work(number) for number in host_steps.tolist())
                if self._scaled:
                    self._copy_peaks(to_device=True)
        if progress is not None:
            progress(1.0)

    def _work(self, number: int) -> int:
        start = int(self._program.starts[number])
        words = self._program.words[start : start + 9].tolist()
        return int(words[1] * math.prod(words[6:]))

    def _reporter(self, progress: Callable[[float], None] | None, before: int) -> Callable[[float], None] | None:
        if progress is None:
            return None
        return lambda done: progress(min(1.0, (before + done) / self._program.work))

    def _run_tiles(
        self, schedule: Schedule, steps: list[StreamedStep], report: Callable[[float], None] | None
    ) -> int:  # fmt: skip
        """Run steps of the device, and wait for all of them; return their work."""
        events = [[self._cuda.Event(disable_timing=True) for _ in range(RECORDS)] for _ in range(3)]
        first, done = schedule.number, 0
        tiles = itertools.chain.from_iterable(map(schedule.tiles, steps))
        for tile, following in _with_following(tiles, AHEAD):
            slot = tile.number % RECORDS
            if tile.number > first + RECORDS:
                # That tile is over: its packed words, here and on the device, are free.
                events[DOWN][slot].synchronize()
            self._queue(tile, events, max(first, tile.number - RECORDS))
            for later in following:
                self._arena.prepare(later)
            done += math.prod(tile.lengths) * int(self._program.words[self._program.starts[tile.step] + 1])
            if report is not None:
                report(done)
        self._settle()
        if self._scaled:
            self._copy_peaks(to_device=False)
        return done

    def _queue(self, tile: Tile, events: list[list[Any]], over: int) -> None:
        """Queue a tile's copies and its kernel; ``over``: tiles up to here are."""
        slot = tile.number % RECORDS
        waits = {UP: ((RUN, tile.ran), (DOWN, max(tile.fetched, tile.written))), RUN: ((DOWN, tile.free),), DOWN: ()}

        def wait(queue: int) -> Any:
            for other, number in waits[queue]:
                if number > over:
                    self._queues[queue].wait_event(events[other][number % RECORDS])
            return self._queues[queue]

        up = wait(UP)
        launch = self._launch(tile, slot, up)
        self._arena.upload(tile, self._tables_at, up)
        events[UP][slot].record(up)
        run = wait(RUN)
        run.wait_event(events[UP][slot])
        with run:
            launch()
        events[RUN][slot].record(run)
        down = wait(DOWN)
        down.wait_event(events[RUN][slot])
        self._arena.download(tile, self._tables_at, down)
        events[DOWN][slot].record(down)

    def _launch(self, tile: Tile, slot: int, up: Any) -> Callable[[], None]:
        """Queue the upload of a tile's packed words; return what launches its kernel."""
        program, backend = self._program, self._backend
        cut, record = self._cut(tile)
        at = 8 * len(record)
        words = np.frombuffer(self._records, dtype=np.int64, count=len(record), offset=slot * RECORD_BYTES)
        words[:] = record
        place = self._records_at + slot * RECORD_BYTES
        runtime = self._cuda.runtime
        runtime.memcpyAsync(place, self._records.ptr + slot * RECORD_BYTES, at, runtime.memcpyDefault, up.ptr)
        kernel = backend.function(cut.kernel.name)
        if kernel.max_dynamic_shared_size_bytes < cut.shared:
            kernel.max_dynamic_shared_size_bytes = backend.shared_limit
        pointers = (self._tables_at, self._base, self._base + 16 * len(program.starts))
        arguments = (
            np.uint64(place),
            *map(np.int32, cut.arguments),
            *map(np.uint64, pointers),
            program.dtype.type(program.parameter),
        )
        return lambda: kernel((cut.blocks,), (cut.threads,), arguments, shared_mem=cut.shared)

    def _cut(self, tile: Tile) -> tuple[cuda_tile.Tile, list[int]]:
        """How the kernel cuts a tile into blocks, the same for many tiles, and the tile's packed words."""
        program, backend = self._program, self._backend
        vector = VECTOR_BYTES // program.dtype.itemsize
        key = (tile.step, *tile.lengths, *(offset % vector for offset in tile.offsets))
        if key not in self._launches:
            record = tile_record(program.words, int(program.starts[tile.step]), tile)
            cut = cuda_tile.choose(program, tile.step, 0, record, backend.multiprocessors, backend.shared_limit)
            self._launches[key] = cut, record
        cut, record = self._launches[key]
        axes = record[3]
        record[12] = tile.offsets[-1]
        first = cuda_tile.HEADER + 3 * axes
        record[first : first + (3 + axes) * record[9] : 3 + axes] = tile.offsets[:-1]
        return cut, record

    def _settle(self) -> None:
        """Wait until nothing is on its way."""
        for queue in self._queues:
            queue.synchronize()
        self._arena.settle()

    def _copy_peaks(self, *, to_device: bool) -> None:
        runtime, host = self._cuda.runtime, self._peaks.ctypes.data
        to, source = (self._base, host) if to_device else (host, self._base)
        runtime.memcpy(to, source, self._peaks.nbytes, runtime.memcpyDefault)


def _with_following(tiles: Iterator[Tile], ahead: int) -> Iterator[tuple[Tile, list[Tile]]]:
    """Each tile with the next ones."""
    waiting: list[Tile] = []
    for tile in tiles:
        waiting.append(tile)
        if len(waiting) > ahead:
            yield waiting[0], waiting[1:]
            waiting.pop(0)
    while waiting:
        yield waiting[0], waiting[1:]
        waiting.pop(0)
