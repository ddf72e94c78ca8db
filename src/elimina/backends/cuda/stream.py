"""A program whose arena is larger than its device: tables pass through in tiles, copies and kernels overlap."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import count_path
from elimina.backends.cuda import tile as cuda_tile
from elimina.backends.protocols import Progress
from elimina.backends.tiers import Piece, Report, Scratch, TiledSession, pieces, with_following
from elimina.planning.program import Program
from elimina.planning.record import HEADER, tables
from elimina.planning.stream import Copy, Schedule, StreamedStep, StreamTile, tile_record
from elimina.planning.tiers import DOWNLOAD_STAGES, MARGIN, RECORD_BYTES, RECORDS, UPLOAD_STAGES, fixed_bytes
from elimina.system import available_threads

if TYPE_CHECKING:
    from elimina.backends.cuda.device import CudaDevice


LONG_RUN = 1 << 19
"""Bytes from which runs are copied one by one."""
MOST_PITCH = (1 << 31) - 1
"""The largest stride of a copy in rows."""
TOUCH_BYTES = 64 << 20
"""Bytes that a thread touches, before they are pinned."""

Rows = Sequence[tuple[int, int, int]]


def copy_box(runtime: Any, to: int, source: int, run: int, rows: Rows, stream: int) -> None:
    """Queue the copies of runs of bytes; ``rows``: count, stride to and stride from, fastest first."""
    if not rows:
        runtime.memcpyAsync(to, source, run, runtime.memcpyDefault, stream)
        return
    (count, to_stride, from_stride), *outer = rows
    narrow = run < LONG_RUN and max(to_stride, from_stride) <= MOST_PITCH
    for index in itertools.product(*(range(n) for n, _, _ in outer)):
        at = to + sum(i * stride for i, (_, stride, _) in zip(index, outer, strict=True))
        start = source + sum(i * stride for i, (_, _, stride) in zip(index, outer, strict=True))
        if narrow:
            runtime.memcpy2DAsync(at, to_stride, start, from_stride, run, count, runtime.memcpyDefault, stream)
            continue
        for i in range(count):
            runtime.memcpyAsync(at + i * to_stride, start + i * from_stride, run, runtime.memcpyDefault, stream)


class PinnedArena:
    """In the host's memory, which the device copies from and to by itself."""

    def __init__(self, backend: CudaDevice, program: Program, factors: NDArray[np.generic]) -> None:
        self._runtime = backend.cupy.cuda.runtime
        self._item = program.dtype.itemsize
        self.array = np.empty(program.arena_cells, dtype=program.dtype)
        # Pinning is quick where the pages are there already.
        _in_parallel(lambda part: self._fill(part, factors), self.array.nbytes // self._item, self._item)
        self._pointer = self.array.ctypes.data
        self._runtime.hostRegister(self._pointer, max(1, self.array.nbytes), 0)

    def _fill(self, part: slice, factors: NDArray[np.generic]) -> None:
        target, given = self.array[part], factors[part]
        target[: len(given)] = given
        target[len(given) :] = 0

    def prepare(self, tile: StreamTile) -> None:
        """Nothing: the device copies by itself."""

    def upload(self, tile: StreamTile, base: int, stream: Any) -> None:
        """Queue the uploads of the tile to the device's memory."""
        for part in tile.uploads:
            rows = [(n, own * self._item, host * self._item) for n, host, own in part.rows]
            source = self._pointer + part.host * self._item
            copy_box(
                self._runtime, base + part.device * self._item, source, part.run * self._item, rows, stream.ptr
            )  # fmt: skip

    def download(self, tile: StreamTile, base: int, stream: Any) -> None:
        """Queue the downloads of the tile."""
        for part in tile.downloads:
            rows = [(n, host * self._item, own * self._item) for n, host, own in part.rows]
            to = self._pointer + part.host * self._item
            copy_box(
                self._runtime, to, base + part.device * self._item, part.run * self._item, rows, stream.ptr
            )  # fmt: skip

    def settle(self) -> None:
        """Nothing: what was downloaded is in the arena."""

    def close(self) -> None:
        """Give the memory back."""
        self._runtime.hostUnregister(self._pointer)
        del self.array


class FileArena:
    """In a file. Threads read ahead into pinned memory, and write behind."""

    def __init__(self, backend: CudaDevice, program: Program, factors: NDArray[np.generic]) -> None:
        assert program.scratch is not None
        assert program.stream is not None
        self._cuda, self._item = backend.cupy.cuda, program.dtype.itemsize
        self._file = Scratch(program.scratch, program.arena_cells * self._item)
        self.array = self._file.array(program.dtype, program.arena_cells)
        self._file.write(np.ascontiguousarray(factors).reshape(-1).view(np.uint8).data, 0)
        self._threads = ThreadPoolExecutor(min(8, available_threads()))
        self._up = [_Stage(backend, program.stream.upload_span * self._item) for _ in range(UPLOAD_STAGES)]
        self._down = [_Stage(backend, program.stream.download_span * self._item) for _ in range(DOWNLOAD_STAGES)]
        self._prepared: set[int] = set()
        self._queued = 0
        self._writes: dict[int, list[Future[None]]] = {}

    def prepare(self, tile: StreamTile) -> None:
        """Begin to read the data of a later tile, if they are written already."""
        known = tile.written <= self._queued and not any(n <= tile.written for n in self._unwritten())
        if known and tile.number not in self._prepared:
            self._begin(tile)

    def _begin(self, tile: StreamTile) -> None:
        self._prepared.add(tile.number)
        stage = self._up[tile.number % UPLOAD_STAGES]
        stage.wait()
        at = 0
        for part in tile.uploads:
            for job in pieces(part, self._item, at):
                stage.jobs.append(self._threads.submit(self._read, stage, job))
            at += part.runs * part.run * self._item

    def _read(self, stage: _Stage, job: list[Piece]) -> None:
        for at, offset, size in job:
            self._file.read(stage.view[at : at + size], offset)

    def upload(self, tile: StreamTile, base: int, stream: Any) -> None:
        """Queue the uploads of the tile to the device's memory."""
        if tile.number not in self._prepared:
            self._finish(tile.written)
            self._begin(tile)
        stage = self._up[tile.number % UPLOAD_STAGES]
        stage.finish()
        self._prepared.discard(tile.number)
        at = stage.pointer
        for part in tile.uploads:
            run = part.run * self._item
            rows = [(n, own * self._item, closely) for (n, _, own), closely in _closely(part, run)]
            copy_box(self._cuda.runtime, base + part.device * self._item, at, run, rows, stream.ptr)
            at += run * part.runs
        stage.copied = self._cuda.Event(disable_timing=True)
        stage.copied.record(stream)

    def download(self, tile: StreamTile, base: int, stream: Any) -> None:
        """Queue the downloads of the tile."""
        self._queued = tile.number
        if not tile.downloads:
            return
        stage = self._down[tile.number % DOWNLOAD_STAGES]
        stage.finish()
        (part,) = tile.downloads
        run = part.run * self._item
        rows = [(n, closely, own * self._item) for (n, _, own), closely in _closely(part, run)]
        copy_box(self._cuda.runtime, stage.pointer, base + part.device * self._item, run, rows, stream.ptr)
        stage.copied = self._cuda.Event(disable_timing=True)
        stage.copied.record(stream)
        stage.jobs = [self._threads.submit(self._write, stage, job) for job in pieces(part, self._item, 0)]
        self._writes[tile.number] = stage.jobs

    def _write(self, stage: _Stage, job: list[Piece]) -> None:
        stage.wait()
        for at, offset, size in job:
            self._file.write(stage.view[at : at + size], offset)

    def _unwritten(self) -> list[int]:
        """Return the tiles whose downloads are not yet in the file."""
        for number in [n for n, jobs in self._writes.items() if all(job.done() for job in jobs)]:
            for job in self._writes.pop(number):
                job.result()
        return list(self._writes)

    def _finish(self, number: int) -> None:
        for written in [n for n in self._writes if n <= number]:
            for job in self._writes.pop(written):
                job.result()

    def settle(self) -> None:
        """Wait until all that was downloaded is in the file; the device has nothing left to do."""
        for stage in self._up:
            stage.finish()
        self._finish(max(self._writes, default=0))
        self._prepared.clear()

    def close(self) -> None:
        """Give the memory back."""
        self._threads.shutdown(cancel_futures=True)
        self._file.close()
        del self.array, self._up, self._down


class _Stage:
    """Pinned memory between a file and a device, and its pending transfers."""

    def __init__(self, backend: CudaDevice, size: int) -> None:
        self._memory = backend.pinned.malloc(max(1, size))
        self.pointer = int(self._memory.ptr)
        self.view = np.frombuffer(self._memory, dtype=np.uint8, count=max(1, size)).data
        self.jobs: list[Future[None]] = []
        self.copied: Any = None

    def wait(self) -> None:
        """Wait until the device has copied from here, or to here."""
        if self.copied is not None:
            self.copied.synchronize()

    def finish(self) -> None:
        """Wait for the file."""
        for job in self.jobs:
            job.result()
        self.jobs = []


def _closely(part: Copy, run: int) -> Iterator[tuple[tuple[int, int, int], int]]:
    """Yield the rows, and their strides if the runs follow one another."""
    for row in part.rows:
        yield row, run
        run *= row[0]


def _in_parallel(fill: Callable[[slice], None], cells: int, itemsize: int) -> None:
    step = TOUCH_BYTES // itemsize
    with ThreadPoolExecutor(available_threads()) as threads:
        list(threads.map(fill, [slice(at, min(at + step, cells)) for at in range(0, cells, step)]))


AHEAD = UPLOAD_STAGES - 2
"""Tiles whose uploads are read from a file in advance."""
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
            place = PinnedArena if program.scratch is None else FileArena
            self._place: PinnedArena | FileArena = place(backend, program, factors)
        # The steps' output ranges, the stop flag that no one raises, packed tiles, tables.
        self._records_at = self._base + 16 * len(program.starts) + VECTOR_BYTES
        self._tables_at = self._base + self._fixed - MARGIN
        self._launches: dict[tuple[int, ...], tuple[cuda_tile.Tile, list[int], list[int]]] = {}
        threads = available_threads()
        super().__init__(program, self._place.array, threads, time.perf_counter() - started)

    def close(self) -> None:
        """Give the memory back."""
        super().close()
        self._place.close()
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
        # In a queue: what is done outside of them is not waited for there.
        runtime, queue = self._cuda.runtime, self._queues[UP]
        runtime.memcpyAsync(to, source, self.peaks.nbytes, runtime.memcpyDefault, queue.ptr)
        queue.synchronize()

    def run_tiles(self, schedule: Schedule, steps: Sequence[StreamedStep], report: Report | None) -> None:
        """Run steps of the device: see ``TiledSession.run_tiles``."""
        events = [[self._cuda.Event(disable_timing=True) for _ in range(RECORDS)] for _ in range(3)]
        first, done = schedule.number, 0
        tiles = itertools.chain.from_iterable(map(schedule.tiles, steps))
        for tile, following in with_following(tiles, AHEAD):
            slot = tile.number % RECORDS
            if tile.number > first + RECORDS:
                # That tile is over: its packed words, here and on the device, are free.
                events[DOWN][slot].synchronize()
            self._queue(tile, events, max(first, tile.number - RECORDS))
            for later in following:
                self._place.prepare(later)
            done += math.prod(tile.lengths) * int(self.program.words[self.program.starts[tile.step] + 1])
            if report is not None:
                report(done)
        self._settle()
        if self.scaled:
            self._copy_peaks(self.peaks.ctypes.data, self._base)

    def _queue(self, tile: StreamTile, events: list[list[Any]], over: int) -> None:
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
        self._place.upload(tile, self._tables_at, up)
        events[UP][slot].record(up)
        run = wait(RUN)
        run.wait_event(events[UP][slot])
        with run:
            launch()
        events[RUN][slot].record(run)
        down = wait(DOWN)
        down.wait_event(events[RUN][slot])
        self._place.download(tile, self._tables_at, down)
        events[DOWN][slot].record(down)

    def _launch(self, tile: StreamTile, slot: int, up: Any) -> Callable[[], None]:
        """Queue the upload of a tile's packed words; return a function that launches its kernel."""
        program, backend = self.program, self._backend
        cut, record = self._cut(tile)
        count_path(cut.path)
        at = 8 * len(record)
        words = np.frombuffer(self._records, dtype=np.int64, count=len(record), offset=slot * RECORD_BYTES)
        words[:] = record
        place = self._records_at + slot * RECORD_BYTES
        runtime = self._cuda.runtime
        runtime.memcpyAsync(place, self._records.ptr + slot * RECORD_BYTES, at, runtime.memcpyDefault, up.ptr)
        kernel = backend.function(cut.kernel.name, cut.shared)
        pointers = (self._tables_at, self._base, self._base + 16 * len(program.starts))
        arguments = (
            np.uint64(place),
            *map(np.int32, cut.arguments),
            *map(np.uint64, pointers),
            program.dtype.type(program.parameter),
        )
        return lambda: kernel((cut.blocks,), (cut.threads,), arguments, shared_mem=cut.shared)

    def _cut(self, tile: StreamTile) -> tuple[cuda_tile.Tile, list[int]]:
        """Return the cut of a tile into blocks, the same for many tiles, and the tile's packed words."""
        program, backend = self.program, self._backend
        vector = VECTOR_BYTES // program.dtype.itemsize
        key = (tile.step, *tile.lengths, *(offset % vector for offset in tile.offsets))
        if key not in self._launches:
            record = tile_record(program.words, int(program.starts[tile.step]), tile)
            cut = cuda_tile.choose(program, tile.step, 0, record, backend.multiprocessors, backend.shared_limit)
            # Tables may be in another order now; those at the same place are the same.
            order = [tile.offsets.index(table[0]) for table in tables(record)]
            self._launches[key] = cut, record, order
        cut, record, order = self._launches[key]
        axes = record[3]
        record[12] = tile.offsets[-1]
        first = HEADER + 3 * axes
        record[first : first + (3 + axes) * record[9] : 3 + axes] = [tile.offsets[n] for n in order]
        return cut, record

    def _settle(self) -> None:
        """Wait until all copies and kernels have finished."""
        for queue in self._queues:
            queue.synchronize()
        self._place.settle()
