"""A program whose arena is larger than its device: tables pass through in tiles, while copies and kernels overlap."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import count_path
from elimina.backends.cuda.host_arena import FileArena, PinnedArena
from elimina.backends.cuda.large_steps import choose_large
from elimina.backends.cuda.tile_launch import TileLaunch
from elimina.backends.protocols import Progress
from elimina.backends.tiled_session import Report, TiledSession, with_following
from elimina.planning.program import Program
from elimina.planning.record import AXES, AXIS_WORDS, HEADER, OUT, TABLES, tables
from elimina.planning.stream import Schedule, StreamedStep, StreamTile, tile_record
from elimina.planning.tiers import MARGIN, RECORD_BYTES, RECORDS, UPLOAD_STAGES, fixed_bytes
from elimina.system import available_threads

if TYPE_CHECKING:
    from elimina.backends.cuda.device import CudaDevice

TILES_AHEAD = UPLOAD_STAGES - 2
"""Number of tiles whose uploads are read from a file in advance."""
VECTOR_BYTES = 16
UP, RUN, DOWN = range(3)


class StreamSession(TiledSession):
    """A program whose arena lies on the host: see ``Session``."""

    def __init__(self, backend: CudaDevice, program: Program, factors: NDArray[np.generic]) -> None:
        assert program.stream is not None
        count_path("cuda-tiles-of-host" if program.scratch is None else "cuda-tiles-of-scratch")
        self._backend, self._cuda = backend, backend.cupy.cuda
        self._fixed = fixed_bytes(len(program.starts))
        self._size = self._fixed + program.stream.cells * program.dtype.itemsize
        started = time.perf_counter()
        with backend.at_work(self._size):
            self._memory = backend.device_memory.allocate(self._size)
            self._base = int(self._memory.ptr)
            self._records = backend.pinned.malloc(RECORDS * RECORD_BYTES)
            self._queues = [self._cuda.Stream(non_blocking=True) for _ in range(3)]
            self._cuda.runtime.memsetAsync(self._base, 0, self._fixed, self._queues[UP].ptr)
            self._queues[UP].synchronize()
            arena_class = PinnedArena if program.scratch is None else FileArena
            self._host_arena: PinnedArena | FileArena = arena_class(backend, program, factors)
        # The memory has the steps' output ranges, a stop flag that is never set, packed tiles, and tables.
        self._records_at = self._base + 16 * len(program.starts) + VECTOR_BYTES
        self._tables_at = self._base + self._fixed - MARGIN
        self._launches: dict[tuple[int, ...], tuple[TileLaunch, list[int], list[int]]] = {}
        threads = available_threads()
        super().__init__(program, self._host_arena.array, threads, time.perf_counter() - started)

    def close(self) -> None:
        """Release the memory."""
        super().close()
        self._host_arena.close()
        del self._memory
        self._backend.trim()

    def run_all(self, progress: Progress | None) -> None:
        """Run all steps: see ``TiledSession.run_all``."""
        with self._backend.at_work(self._size):
            self.host_steps_ran()
            try:
                super().run_all(progress)
            except BaseException:
                self._settle()
                raise

    def host_steps_ran(self) -> None:
        """Copy the output ranges to the device: see ``TiledSession.host_steps_ran``."""
        if self.scaled:
            self._copy_peaks(self._base, self.peaks.ctypes.data)

    def _copy_peaks(self, to: int, source: int) -> None:
        # The copy is queued in a stream, because work in the queues does not wait for work outside of them.
        runtime, queue = self._cuda.runtime, self._queues[UP]
        runtime.memcpyAsync(to, source, self.peaks.nbytes, runtime.memcpyDefault, queue.ptr)
        queue.synchronize()

    def run_tiles(self, schedule: Schedule, steps: Sequence[StreamedStep], report: Report | None) -> None:
        """Run steps of the device: see ``TiledSession.run_tiles``."""
        events = [[self._cuda.Event(disable_timing=True) for _ in range(RECORDS)] for _ in range(3)]
        first, done = schedule.number, 0
        tiles = itertools.chain.from_iterable(map(schedule.tiles, steps))
        for tile, following in with_following(tiles, TILES_AHEAD):
            slot = tile.number % RECORDS
            if tile.number > first + RECORDS:
                # The tile has ended, so its packed words are free, here and on the device.
                events[DOWN][slot].synchronize()
            self._queue(tile, events, max(first, tile.number - RECORDS))
            for later in following:
                self._host_arena.prepare(later)
            done += math.prod(tile.lengths) * int(self.program.words[self.program.starts[tile.step] + 1])
            if report is not None:
                report(done)
        self._settle()
        if self.scaled:
            self._copy_peaks(self.peaks.ctypes.data, self._base)

    def _queue(self, tile: StreamTile, events: list[list[Any]], over: int) -> None:
        """Queue a tile's copies and its kernel; ``over``: number of the last tile that is known to have ended."""
        slot = tile.number % RECORDS
        waits = {UP: ((RUN, tile.ran), (DOWN, max(tile.fetched, tile.written))), RUN: ((DOWN, tile.free),), DOWN: ()}

        def wait(queue: int) -> Any:
            for predecessor, number in waits[queue]:
                if number > over:
                    self._queues[queue].wait_event(events[predecessor][number % RECORDS])
            return self._queues[queue]

        up = wait(UP)
        launch = self._launch(tile, slot, up)
        self._host_arena.upload(tile, self._tables_at, up)
        events[UP][slot].record(up)
        run = wait(RUN)
        run.wait_event(events[UP][slot])
        with run:
            launch()
        events[RUN][slot].record(run)
        down = wait(DOWN)
        down.wait_event(events[RUN][slot])
        self._host_arena.download(tile, self._tables_at, down)
        events[DOWN][slot].record(down)

    def _launch(self, tile: StreamTile, slot: int, up: Any) -> Callable[[], None]:
        """Queue the upload of a tile's packed words; return a function that launches its kernel."""
        program, backend = self.program, self._backend
        cut, record = self._cut(tile)
        count_path(cut.path)
        at = 8 * len(record)
        words = np.frombuffer(self._records, dtype=np.int64, count=len(record), offset=slot * RECORD_BYTES)
        words[:] = record
        address = self._records_at + slot * RECORD_BYTES
        runtime = self._cuda.runtime
        runtime.memcpyAsync(address, self._records.ptr + slot * RECORD_BYTES, at, runtime.memcpyDefault, up.ptr)
        kernel = backend.function(cut.kernel.name, cut.shared)
        pointers = (self._tables_at, self._base, self._base + 16 * len(program.starts))
        arguments = (
            np.uint64(address),
            *map(np.int32, cut.arguments),
            *map(np.uint64, pointers),
            program.dtype.type(program.parameter),
        )
        return lambda: kernel((cut.blocks,), (cut.threads,), arguments, shared_mem=cut.shared)

    def _cut(self, tile: StreamTile) -> tuple[TileLaunch, list[int]]:
        """Return the cut of a tile into blocks, the same for many tiles, and the tile's packed words."""
        program, backend = self.program, self._backend
        vector = VECTOR_BYTES // program.dtype.itemsize
        key = (tile.step, *tile.lengths, *(offset % vector for offset in tile.offsets))
        if key not in self._launches:
            record = tile_record(program.words, int(program.starts[tile.step]), tile)
            cut = choose_large(program, tile.step, 0, record, backend.multiprocessors, backend.shared_limit)
            # `choose_large` may have reordered the tables. Tables with equal offsets are the same table.
            order = [tile.offsets.index(table[0]) for table in tables(record)]
            self._launches[key] = cut, record, order
        cut, record, order = self._launches[key]
        axes = record[AXES]
        record[OUT] = tile.offsets[-1]
        first = HEADER + AXIS_WORDS * axes
        record[first : first + (3 + axes) * record[TABLES] : 3 + axes] = [tile.offsets[n] for n in order]
        return cut, record

    def _settle(self) -> None:
        """Wait until all copies and kernels have finished."""
        for queue in self._queues:
            queue.synchronize()
        self._host_arena.settle()
