"""The CUDA backend: a whole program in one buffer and few launches. The only file that imports CuPy."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.backends import cuda_compile, cuda_kernels
from elimina.backends.base import Run
from elimina.backends.cuda_layout import Forest, Layout, lay_out
from elimina.backends.cuda_tile import Tile
from elimina.errors import DeviceError
from elimina.planning.program import Program
from elimina.semiring import SEMIRINGS

OLDEST_CUPY = (14, 2)
RESERVE = 512 << 20
"""Device bytes left to the driver, the kernels and other programs."""
KEEP = 64 << 20
"""Device bytes kept between runs, since allocating costs more than a small run."""
STAGE = 32 << 20
"""Bytes of each of the two pinned buffers that a large upload goes through."""
MARKS = 64
"""Most reports of progress in a run."""


def _import_cupy() -> Any:
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f'the CUDA backend needs CuPy ({error}): pip install "elimina[cuda13]" (CUDA 12: "elimina[cuda12]"), '
            "or use --device cpu"
        ) from error
    version = tuple(int(part) for part in cupy.__version__.split(".")[:2])
    if version < OLDEST_CUPY:
        wanted = ".".join(map(str, OLDEST_CUPY))
        raise DeviceError(f'CuPy {cupy.__version__} is too old, {wanted} is needed: pip install -U "elimina[cuda13]"')
    return cupy


class CudaBackend:
    """Runs programs on one CUDA device.

    Args:
        device: The device's number.

    Raises:
        DeviceError: CuPy is missing or too old, the driver is missing or too old, or there is no such device.
    """

    def __init__(self, device: int = 0) -> None:
        cupy = self.cupy = _import_cupy()
        runtime = cupy.cuda.runtime
        try:
            count = runtime.getDeviceCount()
        except runtime.CUDARuntimeError as error:
            raise DeviceError(
                f"no usable CUDA driver or device ({error}): install or update NVIDIA's driver, or use --device cpu"
            ) from error
        if not 0 <= device < count:
            raise DeviceError(
                f"there is no CUDA device {device}: this machine has {count}; use --device cpu or another number"
            )
        with self._failing(0):
            properties = runtime.getDeviceProperties(device)
            self._device = cupy.cuda.Device(device)
            with self._device:
                self.stream = cupy.cuda.Stream(non_blocking=True)
                self._pool = cupy.cuda.MemoryPool()
                self._pinned = cupy.cuda.PinnedMemoryPool()
        self.multiprocessors = int(properties["multiProcessorCount"])
        self.shared_limit = int(properties["sharedMemPerBlockOptin"])
        self._architecture = f"sm_{properties['major']}{properties['minor']}"
        self._name = f"cuda ({properties['name'].decode()})"
        self._kernels: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """``cuda`` and the device's own name."""
        return self._name

    def memory(self) -> int:
        """Bytes that a program may take at present: what is free, less a reserve."""
        with self._failing(0), self._device:
            free, _ = self.cupy.cuda.runtime.memGetInfo()
        return max(0, int(free) + int(self._pool.free_bytes()) - RESERVE)

    def run(
        self, program: Program, factors: NDArray[np.generic], progress: Callable[[float], None] | None = None
    ) -> Run:
        """Run a program; see ``backends/base.py``.

        Args:
            program: Packed steps.
            factors: The arena's first ``factor_cells`` elements, of the program's dtype.
            progress: Called now and then with the share of the rows that is done.

        Raises:
            DeviceError: The device failed, is out of memory, or lacks the semiring in this dtype.
        """
        dtype = program.dtype.name
        if program.semiring not in SEMIRINGS or dtype not in SEMIRINGS[program.semiring].dtypes:
            raise DeviceError(f"no CUDA kernel for {program.semiring} in {dtype}: use --device cpu")
        layout = self.lay_out(program)
        with self._failing(layout.size), self._device, self.stream:
            launch = Launch(self, program, layout)
            try:
                return launch.run(np.ascontiguousarray(factors), progress)
            finally:
                launch.close()

    def lay_out(self, program: Program) -> Layout:
        """Return what a program becomes on this device."""
        return lay_out(program, self.multiprocessors, self.shared_limit)

    def function(self, name: str) -> Any:
        """Return a kernel by its name expression; compiled on first use."""
        if name not in self._kernels:
            self._kernels[name] = cuda_compile.load(self.cupy, name, self._architecture)
        return self._kernels[name]

    @contextmanager
    def _failing(self, size: int) -> Iterator[None]:
        cuda = self.cupy.cuda
        try:
            yield
        except cuda.memory.OutOfMemoryError as error:
            free, total = cuda.runtime.memGetInfo()
            raise DeviceError(
                f"the device is out of memory: the program needs {size / 2**30:.2f} GiB, {free / 2**30:.2f} of "
                f"{total / 2**30:.2f} GiB are free; close other programs on it, give a smaller --memory, "
                "or use --device cpu"
            ) from error
        except (cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
            raise DeviceError(f"the CUDA device failed: {error}") from error


class Launch:
    """One run: its buffer on the device (from ``base`` on) and its events."""

    def __init__(self, backend: CudaBackend, program: Program, layout: Layout) -> None:
        self._backend, self._program, self._layout = backend, program, layout
        self._cuda = backend.cupy.cuda
        self._stream = backend.stream
        self._memory = backend._pool.malloc(layout.size)
        self.base = int(self._memory.ptr)
        self._marks: list[tuple[Any, float]] = []

    def run(self, factors: NDArray[np.generic], progress: Callable[[float], None] | None) -> Run:
        """Upload, launch, wait, download."""
        layout, program = self._layout, self._program
        events = [self._cuda.Event() for _ in range(4)]
        try:
            events[0].record(self._stream)
            staged = self.upload(factors)
            events[1].record(self._stream)
            self.launch_steps(progress is not None)
            events[2].record(self._stream)
            if program.decode:
                self._decode()
            size = layout.words_at - layout.roots_at
            result = self._backend._pinned.malloc(max(size, 1))
            self._copy(result.ptr, self.base + layout.roots_at, size)
            events[3].record(self._stream)
            self._wait(events[3], progress)
        except BaseException:
            self._stop()
            raise
        del staged
        seconds = [self._cuda.get_elapsed_time(a, b) / 1000 for a, b in itertools.pairwise(events)]
        return self._collect(_bytes(result, size), dict(zip(("upload", "run", "decode"), seconds, strict=True)))

    def close(self) -> None:
        """Give the buffer back."""
        del self._memory
        pool = self._backend._pool
        if pool.total_bytes() > KEEP:
            pool.free_all_blocks()

    def _copy(self, to: int, source: int, size: int) -> None:
        self._cuda.runtime.memcpyAsync(to, source, size, self._cuda.runtime.memcpyDefault, self._stream.ptr)

    def upload(self, factors: NDArray[np.generic]) -> Any:
        """Copy the head and the factors, which are one piece on the device; what is returned must outlive the copy."""
        head, data = self._layout.head, factors.reshape(-1).view(np.uint8)
        total, to = len(head) + len(data), self.base + self._layout.peaks_at
        stages = [self._backend._pinned.malloc(min(STAGE, total)) for _ in range(1 if total <= STAGE else 2)]
        busy: list[Any] = [None] * len(stages)
        done = 0
        while done < total:
            turn = done // STAGE % 2 if len(stages) > 1 else 0
            if busy[turn] is not None:
                busy[turn].synchronize()
            size = min(STAGE, total - done)
            stage = _bytes(stages[turn], size)
            from_head = max(0, min(len(head) - done, size))
            stage[:from_head] = head[done : done + from_head]
            at = done + from_head - len(head)
            stage[from_head:] = data[at : at + size - from_head] if from_head < size else stage[from_head:]
            self._copy(to + done, stages[turn].ptr, size)
            busy[turn] = self._cuda.Event(disable_timing=True)
            busy[turn].record(self._stream)
            done += size
        return stages

    def launch_steps(self, marked: bool) -> None:
        """Queue every step; ``marked``: with events that tell the progress."""
        layout, program, backend = self._layout, self._program, self._backend
        words, arena = np.uint64(self.base + layout.words_at), np.uint64(self.base + layout.arena_at)
        peaks, counters = np.uint64(self.base + layout.peaks_at), self.base + layout.counters_at
        stop, pending = np.uint64(counters), np.uint64(counters + 4 * (1 + layout.cursors))
        parameter = program.dtype.type(program.parameter)
        done, reported = 0, 0.0
        for launch in layout.launches:
            if isinstance(launch, Forest):
                kernel = backend.function(cuda_kernels.forest_kernel(program.semiring, program.dtype))
                cursor = np.uint64(counters + 4 * (1 + launch.cursor))
                where = [np.int64(n) for n in (layout.links_at, layout.starts_at, launch.leaves_at, launch.leaves)]
                blocks = min(launch.leaves, 4 * backend.multiprocessors)
                kernel(
                    (blocks,), (cuda_kernels.THREADS,), (words, *where, arena, peaks, pending, cursor, stop, parameter)
                )
            else:
                self._launch_tile(launch, (arena, peaks, stop, parameter))
            done += launch.work
            share = done / max(1, layout.work)
            if marked and share - reported >= 1 / MARKS:
                reported = share
                event = self._cuda.Event(disable_timing=True)
                event.record(self._stream)
                self._marks.append((event, share))

    def _launch_tile(self, tile: Tile, pointers: tuple[Any, ...]) -> None:
        kernel = self._backend.function(tile.kernel.name)
        if kernel.max_dynamic_shared_size_bytes < tile.shared:
            kernel.max_dynamic_shared_size_bytes = self._backend.shared_limit
        record = np.uint64(self.base + self._layout.words_at + 8 * tile.record_at)
        arguments = (record, *map(np.int32, tile.arguments), *pointers)
        kernel((tile.blocks,), (tile.threads,), arguments, shared_mem=tile.shared)

    def _decode(self) -> None:
        layout, program = self._layout, self._program
        kernel = self._backend.function(cuda_kernels.decode_kernel(program.semiring, program.dtype))
        base = self.base
        self._cuda.runtime.memsetAsync(base + layout.assignment_at, 0, 4 * program.variables, self._stream.ptr)
        if not layout.decode_steps:
            return
        pointers = [
            np.uint64(base + at) for at in (layout.arena_at, layout.peaks_at, layout.assignment_at, layout.counters_at)
        ]
        where = np.uint64(base + layout.words_at), np.int64(layout.decode_at), np.int64(layout.decode_steps)
        kernel(
            (1,), (cuda_kernels.THREADS,), (*where, *pointers, program.dtype.type(program.parameter)),
            shared_mem=layout.decode_shared,
        )  # fmt: skip

    def _wait(self, last: Any, progress: Callable[[float], None] | None) -> None:
        """Poll, so that an interrupt is noticed; without sleeping at first, since most runs are short."""
        began, reported = time.perf_counter(), 0
        while not last.done:
            if progress is not None:
                finished = reported
                while finished < len(self._marks) and self._marks[finished][0].done:
                    finished += 1
                if finished > reported:
                    progress(self._marks[finished - 1][1])
                    reported = finished
            if time.perf_counter() - began > 0.005:
                time.sleep(0.001)
        if progress is not None:
            progress(1.0)

    def _stop(self) -> None:
        """Have the launches that wait return at once, and wait for the one that runs."""
        other = self._cuda.Stream(non_blocking=True)
        self._cuda.runtime.memsetAsync(self.base + self._layout.counters_at, 1, 4, other.ptr)
        other.synchronize()
        self._stream.synchronize()

    def _collect(self, result: NDArray[np.uint8], seconds: dict[str, float]) -> Run:
        layout, program = self._layout, self._program
        roots = result[: layout.roots * program.dtype.itemsize].view(program.dtype).copy()
        peaks = (
            result[layout.peaks_at - layout.roots_at :]
            .view(np.float64)[: 2 * len(program.starts)]
            .reshape(-1, 2)
            .copy()
        )
        peaks[np.isinf(peaks[:, 1]), 1] = 0
        assignment = None
        if program.decode:
            at = layout.assignment_at - layout.roots_at
            assignment = result[at : at + 4 * program.variables].view(np.int32).copy()
        return Run(roots, peaks, assignment, seconds)


def _bytes(memory: Any, size: int) -> NDArray[np.uint8]:
    return np.frombuffer(memory, dtype=np.uint8, count=size)
