"""Arenas on the host that a device copies from and to: in pinned memory, or in a file."""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda.box_copies import copy_box
from elimina.backends.file_pieces import FilePiece, file_pieces
from elimina.backends.scratch import ScratchFile
from elimina.planning.program import Program
from elimina.planning.stream import Copy, StreamTile
from elimina.planning.tiers import DOWNLOAD_STAGES, UPLOAD_STAGES
from elimina.system import available_threads

if TYPE_CHECKING:
    from elimina.backends.cuda.device import CudaDevice

TOUCH_BYTES = 64 << 20
"""Bytes that a thread writes at a time, before the memory is pinned."""


class PinnedArena:
    """An arena in pinned host memory: the device copies from and to it without the host's help."""

    def __init__(self, backend: CudaDevice, program: Program, factors: NDArray[np.generic]) -> None:
        self._runtime = backend.cupy.cuda.runtime
        self._item = program.dtype.itemsize
        self.array, pinned_bytes = _empty_pages(program.arena_cells, program.dtype)
        # Several threads write the pages first, because pinning is quick for pages that have been written.
        _in_parallel(lambda cells: self._fill(cells, factors), self.array.nbytes // self._item, self._item)
        self._pointer = self.array.ctypes.data
        self._runtime.hostRegister(self._pointer, pinned_bytes, 0)
        # The pages are unpinned even if the session fails before it is open, because other arrays may get them later.
        self._unpin = weakref.finalize(self, self._runtime.hostUnregister, self._pointer)
        self._unpin.atexit = False

    def _fill(self, cells: slice, factors: NDArray[np.generic]) -> None:
        target, head = self.array[cells], factors[cells]
        target[: len(head)] = head
        target[len(head) :] = 0

    def prepare(self, tile: StreamTile) -> None:
        """Do nothing: the device needs no help to copy."""

    def upload(self, tile: StreamTile, base: int, stream: Any) -> None:
        """Queue the uploads of the tile to the device's memory."""
        for box in tile.uploads:
            rows = [(n, device_stride * self._item, host * self._item) for n, host, device_stride in box.rows]
            source = self._pointer + box.host * self._item
            copy_box(
                self._runtime, base + box.device * self._item, source, box.run * self._item, rows, stream.ptr
            )  # fmt: skip

    def download(self, tile: StreamTile, base: int, stream: Any) -> None:
        """Queue the downloads of the tile."""
        for box in tile.downloads:
            rows = [(n, host * self._item, device_stride * self._item) for n, host, device_stride in box.rows]
            to = self._pointer + box.host * self._item
            copy_box(
                self._runtime, to, base + box.device * self._item, box.run * self._item, rows, stream.ptr
            )  # fmt: skip

    def settle(self) -> None:
        """Do nothing: downloads are already in the arena."""

    def close(self) -> None:
        """Release the memory."""
        self._unpin()
        del self.array


def _empty_pages(cells: int, dtype: np.dtype[Any]) -> tuple[NDArray[Any], int]:
    """Return an array that shares no page with others, and the bytes of its pages: a page can be pinned only once."""
    size = -(-max(1, cells * dtype.itemsize) // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = np.empty(size + mmap.PAGESIZE, dtype=np.uint8)
    start = -memory.ctypes.data % mmap.PAGESIZE
    return memory[start : start + cells * dtype.itemsize].view(dtype), size


class FileArena:
    """An arena in a file. Threads read the data of later tiles into pinned memory, and write those of earlier tiles."""

    def __init__(self, backend: CudaDevice, program: Program, factors: NDArray[np.generic]) -> None:
        assert program.scratch is not None
        assert program.stream is not None
        self._cuda, self._item = backend.cupy.cuda, program.dtype.itemsize
        self._file = ScratchFile(program.scratch, program.arena_cells * self._item)
        self.array = self._file.array(program.dtype, program.arena_cells)
        self._file.write(np.ascontiguousarray(factors).reshape(-1).view(np.uint8).data, 0)
        self._threads = ThreadPoolExecutor(min(8, available_threads()))
        self._up = [_Stage(backend, program.stream.upload_span * self._item) for _ in range(UPLOAD_STAGES)]
        self._down = [_Stage(backend, program.stream.download_span * self._item) for _ in range(DOWNLOAD_STAGES)]
        self._prepared: set[int] = set()
        self._queued = 0
        self._writes: dict[int, list[Future[None]]] = {}

    def prepare(self, tile: StreamTile) -> None:
        """Begin to read the data of a later tile, if all of them are in the file already."""
        is_written = tile.written <= self._queued and not any(n <= tile.written for n in self._unwritten())
        if is_written and tile.number not in self._prepared:
            self._begin(tile)

    def _begin(self, tile: StreamTile) -> None:
        self._prepared.add(tile.number)
        stage = self._up[tile.number % UPLOAD_STAGES]
        stage.wait()
        at = 0
        for box in tile.uploads:
            for job in file_pieces(box, self._item, at):
                stage.jobs.append(self._threads.submit(self._read, stage, job))
            at += box.runs * box.run * self._item

    def _read(self, stage: _Stage, job: list[FilePiece]) -> None:
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
        for box in tile.uploads:
            run = box.run * self._item
            rows = [(n, device_stride * self._item, closely) for (n, _, device_stride), closely in _closely(box, run)]
            copy_box(self._cuda.runtime, base + box.device * self._item, at, run, rows, stream.ptr)
            at += run * box.runs
        stage.copied = self._cuda.Event(disable_timing=True)
        stage.copied.record(stream)

    def download(self, tile: StreamTile, base: int, stream: Any) -> None:
        """Queue the downloads of the tile."""
        self._queued = tile.number
        if not tile.downloads:
            return
        stage = self._down[tile.number % DOWNLOAD_STAGES]
        stage.finish()
        (box,) = tile.downloads
        run = box.run * self._item
        rows = [(n, closely, device_stride * self._item) for (n, _, device_stride), closely in _closely(box, run)]
        copy_box(self._cuda.runtime, stage.pointer, base + box.device * self._item, run, rows, stream.ptr)
        stage.copied = self._cuda.Event(disable_timing=True)
        stage.copied.record(stream)
        stage.jobs = [self._threads.submit(self._write, stage, job) for job in file_pieces(box, self._item, 0)]
        self._writes[tile.number] = stage.jobs

    def _write(self, stage: _Stage, job: list[FilePiece]) -> None:
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
        """Wait until all downloads are in the file. The device has to be idle."""
        for stage in self._up:
            stage.finish()
        self._finish(max(self._writes, default=0))
        self._prepared.clear()

    def close(self) -> None:
        """Release the memory."""
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
        """Wait until the device's last copy from or to this memory has ended."""
        if self.copied is not None:
            self.copied.synchronize()

    def finish(self) -> None:
        """Wait until the pending reads and writes of the file have ended."""
        for job in self.jobs:
            job.result()
        self.jobs = []


def _closely(box: Copy, run: int) -> Iterator[tuple[tuple[int, int, int], int]]:
    """Yield each axis of a box, with its stride in a copy of the box that has no gaps."""
    for row in box.rows:
        yield row, run
        run *= row[0]


def _in_parallel(fill: Callable[[slice], None], cells: int, itemsize: int) -> None:
    step = TOUCH_BYTES // itemsize
    with ThreadPoolExecutor(available_threads()) as threads:
        list(threads.map(fill, [slice(at, min(at + step, cells)) for at in range(0, cells, step)]))
