"""A CUDA device: its memory, its kernels and its failures."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda import compilation, idle_memory
from elimina.backends.cuda.blas import Blas, open_blas
from elimina.backends.cuda.cupy_package import import_cupy
from elimina.backends.cuda.lanes import Lane, idle_lanes
from elimina.backends.cuda.layout import DeviceLayout
from elimina.backends.cuda.layout_cache import kept_layout
from elimina.backends.cuda.translation import lay_out
from elimina.backends.gpu_start import open_gpus
from elimina.errors import DeviceError, MemoryLimitError
from elimina.option_names import option
from elimina.planning.machine import Machine, cuda_machine
from elimina.planning.program import Program, library_steps
from elimina.problem.semirings import SEMIRINGS
from elimina.system import available_threads, cached_property, processors, start_thread

RESERVED_BYTES = 512 << 20
"""Device bytes reserved for the driver, the kernels and other programs."""
KEPT_BYTES = 1 << 30
"""Device bytes kept between runs, since allocating costs more than a short run."""


@functools.cache
def _properties(cupy: Any, device: int) -> Any:
    """Return a GPU's properties, cached because the query takes a while."""
    return cupy.cuda.runtime.getDeviceProperties(device)


_kernels: dict[tuple[int, str], Any] = {}
"""Kernels that this process has loaded, by GPU and name: later calls need not load them again."""
_shared: dict[tuple[int, str], int] = {}
"""Bytes of shared memory that a launch of each loaded kernel may request."""


class CudaDevice:
    """One CUDA device with this process's share of its memory.

    Args:
        device: The device's number.
        threads: Number of CPU threads; None for as many as the process may use.

    Attributes:
        keeps_memory: True while successive programs reuse the memory of earlier ones.

    Raises:
        DeviceError: CuPy is missing or too old, the driver is missing or too old, or there is no such device.
    """

    def __init__(self, device: int = 0, threads: int | None = None) -> None:
        self._asked_threads = threads
        cupy = self.cupy = import_cupy(device)
        runtime = cupy.cuda.runtime
        try:
            count = runtime.getDeviceCount()
        except runtime.CUDARuntimeError as error:
            raise DeviceError(
                f"no usable CUDA driver or device ({error}): install or update NVIDIA's driver, or use the CPU"
            ) from error
        if not 0 <= device < count:
            named = ", ".join(f"cuda:{number}" for number in range(count)) or "none"
            raise DeviceError(f"there is no GPU cuda:{device}; this machine has {named}: use one of them, or cpu")
        self.number, self.count = device, count
        self.keeps_memory = False
        self._reserving: threading.Thread | None = None
        self._reached = {device}
        self._device = cupy.cuda.Device(device)
        self.device_memory, self.pinned = idle_memory.device_memory(cupy, device), idle_memory.pinned_memory(cupy)
        with self.failing(0):
            properties = _properties(cupy, device)
            idle = idle_lanes.setdefault(device, [])
            open_gpus.add(device)
            idle_memory.return_locks.setdefault(device, threading.Lock())
            with self._device:
                try:
                    self._lane = idle.pop()
                except IndexError:
                    self._lane = Lane(cupy)
        self.stream = self._lane.stream
        weakref.finalize(self, idle.append, self._lane)
        self.multiprocessors = int(properties["multiProcessorCount"])
        self.shared_limit = int(properties["sharedMemPerBlockOptin"])
        self._most_left = int(idle_memory.LINGER_SHARE * properties["totalGlobalMem"])
        self._architecture = f"sm_{properties['major']}{properties['minor']}"
        self._name = f"cuda ({properties['name'].decode()})"

    @property
    def name(self) -> str:
        """``cuda`` and the device's own name."""
        return self._name

    @property
    def threads(self) -> int:
        """Number of CPU threads for the host's share of the work."""
        return self._asked_threads or available_threads()

    @property
    def machine(self) -> Machine:
        """Description of the GPU for the planner."""
        return cuda_machine(is_open=True)

    def memory(self) -> int:
        """Return the bytes that a program can have now: free and idle memory, minus a reserve."""
        with idle_memory.return_locks[self.number], self.failing(0), self._device:
            free, _ = self.cupy.cuda.runtime.memGetInfo()
            idle = self.device_memory.idle_bytes()
        return max(0, int(free) + idle - RESERVED_BYTES)

    def reaches(self, peer: int) -> bool:
        """Return whether this GPU can read the memory of another one directly."""
        with self.failing(0):
            return peer == self.number or bool(self.cupy.cuda.runtime.deviceCanAccessPeer(self.number, peer))

    def reach(self, peer: CudaDevice) -> None:
        """Give this GPU, which has to be the current one, access to the memory of another one."""
        if peer.number not in self._reached:
            with contextlib.suppress(self.cupy.cuda.runtime.CUDARuntimeError):
                # Peer access may already be enabled in this process.
                self.cupy.cuda.runtime.deviceEnablePeerAccess(peer.number)
            self._reached.add(peer.number)

    def lay_out(self, program: Program, steps: NDArray[np.int64] | None = None) -> DeviceLayout:
        """Return a program, or some of its steps, prepared for this device."""
        library = (
            SEMIRINGS[program.semiring].is_product and bool(library_steps(program).any()) and self.blas is not None
        )
        if steps is None:
            return kept_layout(program, self.multiprocessors, self.shared_limit, library)
        return lay_out(program, self.multiprocessors, self.shared_limit, steps, library)

    @cached_property
    def blas(self) -> Blas | None:
        """Library for matrix products, opened on first use; None if there is none."""
        if self._lane.blas is None:
            with self.at_work(0):
                self._lane.blas = open_blas(self.cupy, self.stream, self.device_memory)
        return self._lane.blas

    def reserve(self, program: Program) -> None:
        """Allocate memory for a program that is opened soon, in a thread: see ``ReservingBackend.reserve``."""
        if program.sparse is not None or program.stream is not None or program.shards is not None:
            return
        self.claim()
        # The thread is not a daemon, so that the interpreter waits for its end.
        thread = threading.Thread(target=self._reserve, args=(program,), daemon=False)
        with contextlib.suppress(MemoryLimitError):
            start_thread(thread)
            self._reserving = thread

    def _reserve(self, program: Program) -> None:
        # A failure here occurs again when the program is opened, and is described there.
        with contextlib.suppress(DeviceError):
            size = self.lay_out(program).size
            with self.at_work(size):
                self.device_memory.allocate(size)  # unused, so it stays as idle memory
            self._give_back_after(idle_memory.LINGER_SECONDS)

    def claim(self) -> None:
        """Keep the memory of earlier programs, or reserved memory, for a program that is about to begin."""
        if self._reserving is not None:
            self._reserving.join()
            self._reserving = None
        idle_memory.keep_idle(self.number)

    def trim(self) -> None:
        """Release unused memory after a delay, which is shorter if much of the GPU's memory is unused.

        Up to ``KEPT_BYTES`` are kept, and everything while ``keeps_memory`` is true.
        """
        if self.keeps_memory:
            return
        with self.failing(0), self._device:
            idle = self.device_memory.idle_bytes()
        if idle > KEPT_BYTES:
            self._give_back_after(
                idle_memory.SHORT_LINGER_SECONDS if idle > self._most_left else idle_memory.LINGER_SECONDS
            )

    def _give_back_after(self, seconds: float) -> None:
        """Release unused memory in a thread after ``seconds``, unless a program begins before then."""
        idle_memory.keep_idle(self.number)
        # The timer must not refer to this object: when the object is freed, its lane (`lanes.py`) is reused.
        timer = threading.Timer(seconds, idle_memory.return_idle, (self.cupy, self.number))
        idle_memory.timers[self.number] = timer
        timer.daemon = True
        try:
            start_thread(timer)
        except MemoryLimitError:
            idle_memory.return_idle(self.cupy, self.number)

    def function(self, name: str, shared: int = 0) -> Any:
        """Return a kernel, compiled on first use.

        Args:
            name: Name expression.
            shared: Bytes of shared memory that its launch requests.
        """
        key = self.number, name
        if key not in _kernels:
            with self._device:
                path, symbol = compilation.compiled(self.cupy, name, self._architecture)
                kernel = self.cupy.RawModule(path=str(path)).get_function(symbol)
                _shared[key] = kernel.max_dynamic_shared_size_bytes
            _kernels[key] = kernel
        if shared > _shared[key]:
            _kernels[key].max_dynamic_shared_size_bytes = _shared[key] = self.shared_limit
        return _kernels[key]

    def compile(self, names: Iterable[str]) -> None:
        """Compile kernels that this process has not loaded, several at a time: each takes about a second.

        A single kernel is left to ``function``.

        Raises:
            DeviceError: The compiler refuses.
        """
        missing = [name for name in dict.fromkeys(names) if (self.number, name) not in _kernels]
        if len(missing) < 2:
            return
        compilation.cache_folder()  # made here, so that all threads use the same folder
        pool = ThreadPoolExecutor(min(len(missing), processors()), "elimina")
        futures: list[Future[object]] = []
        try:
            # If no thread can be started, each kernel is compiled when it is used.
            with contextlib.suppress(RuntimeError):
                for name in missing:
                    futures.append(pool.submit(compilation.compiled, self.cupy, name, self._architecture))
            for future in futures:
                future.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def binary(self, name: str) -> tuple[bytes, str]:
        """Return the compiled module that contains a kernel, and the kernel's name in it, for launches without CuPy.

        Raises:
            DeviceError: The compiler refuses.
        """
        path, symbol = compilation.compiled(self.cupy, name, self._architecture)
        return path.read_bytes(), symbol

    @contextmanager
    def arrays(self) -> Iterator[Any]:
        """Yield CuPy with arrays in this device's memory, for use on the device and its stream."""
        self.claim()
        try:
            with self.at_work(0), self.cupy.cuda.using_allocator(self.device_memory.allocate_array):
                yield self.cupy
        finally:
            self.trim()

    def recorded(self, work: Callable[[], Any]) -> Callable[[], Any]:
        """Record work as a graph without running it; kernels of graphs start ten times as fast.

        Args:
            work: Function that queues the same work each time; it has run before, so its kernels are compiled.

        Returns:
            A function that runs the recorded work, and returns the result of ``work``.
        """
        stream = self.stream
        stream.begin_capture(self.cupy.cuda.runtime.streamCaptureModeRelaxed)
        try:
            made = work()
        finally:
            graph = stream.end_capture()
        graph.upload(stream)

        def again() -> Any:
            graph.launch(stream)
            return made

        return again

    @contextmanager
    def at_work(self, size: int) -> Iterator[None]:
        """Use the device and its stream; turn failures of a program of ``size`` bytes into errors with advice."""
        with self.failing(size), self._device, self.stream:
            yield

    @contextmanager
    def failing(self, size: int) -> Iterator[None]:
        """Turn CUDA's exceptions into ``DeviceError``; ``size``: the bytes that the program needs."""
        cuda = self.cupy.cuda
        try:
            yield
        except MemoryLimitError:
            raise
        # CuPy, CuPy's sorting, and the driver while it loads a kernel raise different exceptions.
        except (MemoryError, cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
            if not isinstance(error, MemoryError) and "out of memory" not in str(error):
                raise DeviceError(f"cuda:{self.number} failed: {error}") from error
            used = self.device_memory.used_bytes()
            raise DeviceError(
                f"cuda:{self.number} is out of memory: the program needs {size / 2**30:.2f} GiB{self._free_text()}, "
                f"and {used / 2**30:.2f} GiB belong to open "
                "junction trees and other calls of this process; close these or other programs on it, give a smaller "
                f"{option('memory')}, or use the CPU"
            ) from error

    def _free_text(self) -> str:
        """Return a text about the free memory; empty if there is not even enough memory to ask the driver."""
        runtime = self.cupy.cuda.runtime
        try:
            with self._device:
                free, total = runtime.memGetInfo()
        except runtime.CUDARuntimeError:
            return ""
        return f", {free / 2**30:.2f} of {total / 2**30:.2f} GiB are free"
