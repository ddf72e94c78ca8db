"""Arena of a streamed program on the host, and the copies of its boxes to a device and back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from elimina.backends.host import available_threads
from elimina.backends.tiers import Piece, Scratch, pieces
from elimina.planning.program import Program
from elimina.planning.stream import Copy, Tile
from elimina.planning.tiers import DOWNLOAD_STAGES, UPLOAD_STAGES

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


class Arena(Protocol):
    """The arena of a streamed program."""

    array: NDArray[np.generic]

    def prepare(self, tile: Tile) -> None:
        """Begin to get ready what a later tile uploads, as far as it is written."""
        ...

    def upload(self, tile: Tile, base: int, stream: Any) -> None:
        """Queue what the tile uploads to a device's memory."""
        ...

    def download(self, tile: Tile, base: int, stream: Any) -> None:
        """Queue what the tile downloads."""
        ...

    def settle(self) -> None:
        """Wait until all that was downloaded is in the arena; the device has nothing left to do."""
        ...

    def close(self) -> None:
        """Give the memory back."""
        ...


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

    def prepare(self, tile: Tile) -> None:
        """Nothing: see ``Arena.prepare``."""

    def upload(self, tile: Tile, base: int, stream: Any) -> None:
        """Copy boxes to the device: see ``Arena.upload``."""
        for part in tile.uploads:
            rows = [(n, own * self._item, host * self._item) for n, host, own in part.rows]
            source = self._pointer + part.host * self._item
            copy_box(
                self._runtime, base + part.device * self._item, source, part.run * self._item, rows, stream.ptr
            )  # fmt: skip

    def download(self, tile: Tile, base: int, stream: Any) -> None:
        """Copy boxes to the host: see ``Arena.download``."""
        for part in tile.downloads:
            rows = [(n, host * self._item, own * self._item) for n, host, own in part.rows]
            to = self._pointer + part.host * self._item
            copy_box(
                self._runtime, to, base + part.device * self._item, part.run * self._item, rows, stream.ptr
            )  # fmt: skip

    def settle(self) -> None:
        """Nothing: see ``Arena.settle``."""

    def close(self) -> None:
        """Free the arena: see ``Arena.close``."""
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

    def prepare(self, tile: Tile) -> None:
        """Begin to read: see ``Arena.prepare``."""
        known = tile.written <= self._queued and not any(n <= tile.written for n in self._unwritten())
        if known and tile.number not in self._prepared:
            self._begin(tile)

    def _begin(self, tile: Tile) -> None:
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

    def upload(self, tile: Tile, base: int, stream: Any) -> None:
        """Copy boxes to the device: see ``Arena.upload``."""
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

    def download(self, tile: Tile, base: int, stream: Any) -> None:
        """Copy boxes to the host: see ``Arena.download``."""
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
        """Wait for the file: see ``Arena.settle``."""
        for stage in self._up:
            stage.finish()
        self._finish(max(self._writes, default=0))
        self._prepared.clear()

    def close(self) -> None:
        """Free the arena: see ``Arena.close``."""
        self._threads.shutdown(cancel_futures=True)
        self._file.close()
        del self.array, self._up, self._down


class _Stage:
    """Pinned memory between a file and a device, and what is going on with it."""

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
