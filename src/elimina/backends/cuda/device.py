"""A CUDA device: its memory, its kernels, compiled at run time, and its failures. The only file that imports CuPy."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda import kernels
from elimina.backends.cuda.layout import Layout, kept_layout, lay_out
from elimina.backends.cuda.matrix import Blas, open_blas
from elimina.backends.cuda.memory import DeviceMemory
from elimina.errors import DeviceError, MemoryLimitError
from elimina.planning.machine import Machine, cuda_machine
from elimina.planning.program import Program, library_steps
from elimina.system import cached_property, processors, start_thread

LEAST_CELLS = 1 << 16
"""Size of a table below which the array library's own copy is as good."""
LEAST_COLUMNS = 64
MOST_BLOCKS = (64, 65535)
PASSED, NOT_READY = 0, 600
"""CUDA's status of an event that the device has reached or not: cudaSuccess, cudaErrorNotReady."""


class Rows(NamedTuple):
    """A table as rows of cells that follow each other.

    Attributes:
        rows: Number of rows.
        columns: Cells of a row.
        pitch: Cells from a row's beginning to the next one's.
    """

    rows: int
    columns: int
    pitch: int


def rows_of(sizes: Sequence[int], strides: Sequence[int]) -> Rows | None:
    """Return a table as rows, the longest that its strides (in cells) allow; None if that takes more than one pitch."""
    columns, axis = 1, len(sizes)
    while axis > 0 and (strides[axis - 1] == columns or sizes[axis - 1] == 1):
        axis -= 1
        columns *= sizes[axis]
    rows, pitch = 1, columns
    for size, stride in zip(reversed(sizes[:axis]), reversed(strides[:axis]), strict=True):
        if size == 1:
            continue
        if rows == 1:
            pitch = stride
        if stride != pitch * rows:
            return None
        rows *= size
    return Rows(rows, columns, pitch)


def place(backend: CudaDevice, given: Any, to: Any, limit: float | None = None, forbidden: float = 0) -> bool:
    """Copy an array on the device to another one of its shape, in the current stream.

    Args:
        backend: Backend of the device.
        given: Cells of the array to copy.
        to: Destination, possibly of another dtype.
        limit: Cells from here on become ``forbidden``; None: all are copied.
        forbidden: A number of the other dtype.

    Returns:
        False: the array is too small or its strides are too odd for this copy; nothing was done.
    """
    ends = [
        rows_of(array.shape, [stride // array.itemsize for stride in array.strides]) if array.ndim else None
        for array in (given, to)
    ]
    source, target = ends
    known = all(array.dtype.name in kernels.CELL_TYPES for array in (given, to))
    if given.size < LEAST_CELLS or source is None or target is None or not known:
        return False
    # What has no gaps has rows of any length.
    if source.rows == 1:
        source = Rows(target.rows, target.columns, target.columns)
    elif target.rows == 1:
        target = Rows(source.rows, source.columns, source.columns)
    if source[:2] != target[:2] or source.columns < LEAST_COLUMNS:
        return False
    kernel = backend.function(kernels.place_kernel(given.dtype, to.dtype, limit is not None))
    threads = kernels.THREADS
    blocks = min(-(-source.columns // threads), MOST_BLOCKS[0]), min(source.rows, MOST_BLOCKS[1])
    ends_of_copy = given, np.int64(source.pitch), to, np.int64(target.pitch), np.int64(source.rows)
    bound = given.dtype.type(limit or 0), to.dtype.type(forbidden)
    kernel(blocks, (threads,), (*ends_of_copy, np.int64(source.columns), *bound))
    return True


OLDEST_CUPY = (14, 2)
RESERVE = 512 << 20
"""Device bytes left to the driver, the kernels and other programs."""
KEEP = 1 << 30
"""Device bytes kept between runs, since allocating costs more than a short run."""
LINGER_SECONDS, LINGER_SHARE, MUCH_SECONDS = 1.0, 1 / 2, 0.25
"""Seconds for which more than ``KEEP`` bytes stay for the next program, up to this share of a card; seconds for more.

What is given back, in 0.06 s, is cleared before it is had again: 64 GiB take 0.2 s instead of 0.01 on an H200.
"""


def in_parts(to: int, pieces: list[NDArray[np.uint8]], most: int) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Yield pieces that follow one another from an address on, in parts of so many bytes, with their addresses."""
    for piece in pieces:
        for at in range(0, len(piece), most):
            yield to + at, piece[at : at + most]
        to += len(piece)


def stretches(pieces: dict[int, NDArray[np.uint8]]) -> list[tuple[int, list[NDArray[np.uint8]]]]:
    """Return stretches of memory without gaps: where each begins, and its pieces."""
    found: list[tuple[int, list[NDArray[np.uint8]]]] = []
    end = -1
    for at in sorted(pieces):
        if at != end:
            found.append((at, []))
        found[-1][1].append(pieces[at])
        end = at + len(pieces[at])
    return found


def make_context(device: int) -> bool:
    """Make a card's context, which all libraries of the process share; False if the driver does not.

    It takes as long as importing CuPy, and both can be done at the same time.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    card, context = ctypes.c_int(), ctypes.c_void_p()
    return not (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(card), device)
        or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), card)
    )


def _import_cupy(device: int) -> Any:
    if "cupy" not in sys.modules:
        threading.Thread(target=make_context, args=(device,), daemon=True).start()
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            f'the CUDA backend needs CuPy ({error}): pip install "elimina[cuda13]" (CUDA 12: "elimina[cuda12]"), '
            "or use --device cpu"
        ) from error
    if not hasattr(cupy, "__version__"):
        where = ", ".join(cupy.__path__)
        raise DeviceError(
            f"the folder {where} hides the package CuPy: run in another folder, rename this one, or use --device cpu"
        )
    version = tuple(int(part) for part in cupy.__version__.split(".")[:2])
    if version < OLDEST_CUPY:
        wanted = ".".join(map(str, OLDEST_CUPY))
        raise DeviceError(f'CuPy {cupy.__version__} is too old, {wanted} is needed: pip install -U "elimina[cuda13]"')
    return cupy


@functools.cache
def _pinned_memory(cupy: Any) -> Any:
    """Return this process's pool of pinned host memory."""
    return cupy.cuda.PinnedMemoryPool()


@functools.cache
def _device_memory(cupy: Any, device: int) -> DeviceMemory:
    """Return this process's memory on a GPU."""
    return DeviceMemory(cupy)


@functools.cache
def _properties(cupy: Any, device: int) -> Any:
    """Return a card's properties, which take a while to ask for."""
    return cupy.cuda.runtime.getDeviceProperties(device)


_kernels: dict[tuple[int, str], Any] = {}
"""Kernels that this process has loaded, by card and name: later calls need not load them again."""
_shared: dict[tuple[int, str], int] = {}
"""Bytes of shared memory that each of them may take besides its own."""


class Lane:
    """A stream of a card, and the handle of cuBLAS for it.

    Making either takes longer than many runs. So backends of a card leave theirs to later ones.
    """

    def __init__(self, cupy: Any) -> None:
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.blas: Blas | None = None


_timers: dict[int, threading.Timer] = {}
_going_back: dict[int, threading.Lock] = {}
"""Timers that give back the memory that programs have left, and locks that are held meanwhile, by card."""


def _keep(device: int) -> None:
    """Keep the memory that programs have left on a card; wait where it is being given back."""
    timer = _timers.pop(device, None)
    if timer is not None:
        timer.cancel()
    with _going_back[device]:
        pass


@atexit.register
def _leave_driver() -> None:
    """Let no thread come back from the driver after the interpreter's end."""
    for timer in list(_timers.values()):
        timer.cancel()
    for lock in list(_going_back.values()):
        # In a child of a fork, it may stay as it was.
        if lock.acquire(timeout=LINGER_SECONDS):
            lock.release()


def _give_back(cupy: Any, device: int) -> None:
    """Give the memory of a card that no program uses back to the driver."""
    # A card that failed keeps its memory to itself.
    with _going_back[device], contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError), cupy.cuda.Device(device):
        _device_memory(cupy, device).release()


_lanes: dict[int, list[Lane]] = {}
"""Lanes that no backend has, by card that was opened."""


def has_passed(runtime: Any, event: Any) -> bool:
    """Return whether the device has reached an event; an event's own ``done`` stays false if the context has failed.

    Raises:
        CUDARuntimeError: The context has failed, by work queued earlier.
    """
    status = runtime.eventQuery(event.ptr)
    if status not in (PASSED, NOT_READY):
        raise runtime.CUDARuntimeError(status)
    return bool(status == PASSED)


def is_any_open() -> bool:
    """Return whether this process has opened a card."""
    return bool(_lanes)


class CudaDevice:
    """One CUDA device, and this process's part of its memory.

    Args:
        device: The device's number.

    Attributes:
        keeps_memory: True while programs follow each other that take the memory of those before.

    Raises:
        DeviceError: CuPy is missing or too old, the driver is missing or too old, or there is no such device.
    """

    def __init__(self, device: int = 0) -> None:
        cupy = self.cupy = _import_cupy(device)
        runtime = cupy.cuda.runtime
        try:
            count = runtime.getDeviceCount()
        except runtime.CUDARuntimeError as error:
            raise DeviceError(
                f"no usable CUDA driver or device ({error}): install or update NVIDIA's driver, or use --device cpu"
            ) from error
        if not 0 <= device < count:
            named = ", ".join(f"cuda:{number}" for number in range(count)) or "none"
            raise DeviceError(f"there is no GPU cuda:{device}; this machine has {named}: use one of them, or cpu")
        self.number, self.count = device, count
        self.keeps_memory = False
        self._reserving: threading.Thread | None = None
        self._reached = {device}
        self._device = cupy.cuda.Device(device)
        with self.failing(0):
            properties = _properties(cupy, device)
            idle = _lanes.setdefault(device, [])
            _going_back.setdefault(device, threading.Lock())
            with self._device:
                try:
                    self._lane = idle.pop()
                except IndexError:
                    self._lane = Lane(cupy)
        self.device_memory, self.pinned = _device_memory(cupy, device), _pinned_memory(cupy)
        self.stream = self._lane.stream
        weakref.finalize(self, idle.append, self._lane)
        self.multiprocessors = int(properties["multiProcessorCount"])
        self.shared_limit = int(properties["sharedMemPerBlockOptin"])
        self._most_left = int(LINGER_SHARE * properties["totalGlobalMem"])
        self._architecture = f"sm_{properties['major']}{properties['minor']}"
        self._name = f"cuda ({properties['name'].decode()})"

    @property
    def name(self) -> str:
        """``cuda`` and the device's own name."""
        return self._name

    @property
    def machine(self) -> Machine:
        """The GPU as the planner sees it."""
        return cuda_machine(is_open=True)

    def memory(self) -> int:
        """Return the bytes that a program may take at present: the free memory less a reserve."""
        with _going_back[self.number], self.failing(0), self._device:
            free, _ = self.cupy.cuda.runtime.memGetInfo()
            idle = self.device_memory.idle_bytes()
        return max(0, int(free) + idle - RESERVE)

    def reaches(self, other: int) -> bool:
        """Return whether this card reads the memory of another one."""
        with self.failing(0):
            return other == self.number or bool(self.cupy.cuda.runtime.deviceCanAccessPeer(self.number, other))

    def reach(self, other: CudaDevice) -> None:
        """Let this card, which is the current one, read the memory of another one from now on."""
        if other.number not in self._reached:
            with contextlib.suppress(self.cupy.cuda.runtime.CUDARuntimeError):
                # It may be so already in this process.
                self.cupy.cuda.runtime.deviceEnablePeerAccess(other.number)
            self._reached.add(other.number)

    def lay_out(self, program: Program, steps: NDArray[np.int64] | None = None) -> Layout:
        """Return a program, or some of its steps, prepared for this device."""
        library = program.semiring == "sum-product" and bool(library_steps(program).any()) and self.blas is not None
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
        """Get memory for a program that is opened soon, in a thread: see ``ReservingBackend.reserve``."""
        if program.sparse is not None or program.stream is not None or program.shards is not None:
            return
        self.claim()
        thread = threading.Thread(target=self._reserve, args=(program,), daemon=False)  # the interpreter waits for it
        with contextlib.suppress(MemoryLimitError):
            start_thread(thread)
            self._reserving = thread

    def _reserve(self, program: Program) -> None:
        # What fails here fails again, in words, when the program is opened.
        with contextlib.suppress(DeviceError):
            size = self.lay_out(program).size
            with self.at_work(size):
                self.device_memory.allocate(size)  # stays idle
            self._give_back_after(LINGER_SECONDS)

    def claim(self) -> None:
        """Keep what earlier programs have left, or was reserved, for one that begins."""
        if self._reserving is not None:
            self._reserving.join()
            self._reserving = None
        _keep(self.number)

    def trim(self) -> None:
        """Give back the memory that no program uses after a while, a short one if it is most of the card.

        Little of it stays, and all of it while ``keeps_memory`` is true.
        """
        if self.keeps_memory:
            return
        with self.failing(0), self._device:
            left = self.device_memory.idle_bytes()
        if left > KEEP:
            self._give_back_after(MUCH_SECONDS if left > self._most_left else LINGER_SECONDS)

    def _give_back_after(self, seconds: float) -> None:
        """Give back the memory that no program uses then, unless one begins before, in a thread."""
        _keep(self.number)
        # It does not hold this object, whose lane is for others.
        timer = _timers[self.number] = threading.Timer(seconds, _give_back, (self.cupy, self.number))
        timer.daemon = True
        try:
            start_thread(timer)
        except MemoryLimitError:
            _give_back(self.cupy, self.number)

    def function(self, name: str, shared: int = 0) -> Any:
        """Return a kernel, compiled on first use.

        Args:
            name: Name expression.
            shared: Bytes of shared memory that it takes besides its own.
        """
        key = self.number, name
        if key not in _kernels:
            with self._device:
                path, symbol = kernels.compiled(self.cupy, name, self._architecture)
                kernel = self.cupy.RawModule(path=str(path)).get_function(symbol)
                _shared[key] = kernel.max_dynamic_shared_size_bytes
            _kernels[key] = kernel
        if shared > _shared[key]:
            _kernels[key].max_dynamic_shared_size_bytes = _shared[key] = self.shared_limit
        return _kernels[key]

    def compile(self, names: Iterable[str]) -> None:
        """Compile kernels that this process has not loaded, several at a time: each takes about a second.

        Raises:
            DeviceError: The compiler refuses.
        """
        missing = [name for name in dict.fromkeys(names) if (self.number, name) not in _kernels]
        if len(missing) < 2:
            return
        kernels.cache_folder()  # the same one for all threads
        pool = ThreadPoolExecutor(min(len(missing), processors()), "elimina")
        made: list[Future[object]] = []
        try:
            # Without threads, each is compiled when it is used.
            with contextlib.suppress(RuntimeError):
                for name in missing:
                    made.append(pool.submit(kernels.compiled, self.cupy, name, self._architecture))
            for one in made:
                one.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def binary(self, name: str) -> tuple[bytes, str]:
        """Return a kernel's module and its name there, to launch it without CuPy.

        Raises:
            DeviceError: The compiler refuses.
        """
        path, symbol = kernels.compiled(self.cupy, name, self._architecture)
        return path.read_bytes(), symbol

    @contextmanager
    def arrays(self) -> Iterator[Any]:
        """Lend CuPy, whose arrays are in this device's memory; use it on the device and its stream."""
        self.claim()
        try:
            with self.at_work(0), self.cupy.cuda.using_allocator(self.device_memory.allocate_array):
                yield self.cupy
        finally:
            self.trim()

    def recorded(self, work: Callable[[], Any]) -> Callable[[], Any]:
        """Record work as a graph, whose kernels start ten times as fast, and do it no more than that.

        Args:
            work: Has been done before, so that its kernels are compiled. It is to do the same each time.

        Returns:
            A function that does the work, and returns what `work` did: the array that it writes.
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
        """Use the device and its stream; failures of a program of so many bytes become errors that say what to do."""
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
        # CuPy's own, that of its sorting, or the driver's while it loads a kernel.
        except (MemoryError, cuda.runtime.CUDARuntimeError, cuda.driver.CUDADriverError) as error:
            if not isinstance(error, MemoryError) and "out of memory" not in str(error):
                raise DeviceError(f"cuda:{self.number} failed: {error}") from error
            with self._device:
                free, total = cuda.runtime.memGetInfo()
                used = self.device_memory.used_bytes()
            raise DeviceError(
                f"cuda:{self.number} is out of memory: the program needs {size / 2**30:.2f} GiB, "
                f"{free / 2**30:.2f} of {total / 2**30:.2f} GiB are free, and {used / 2**30:.2f} GiB belong to open "
                "junction trees and other calls of this process; close these or other programs on it, give a smaller "
                "--memory, or use --device cpu"
            ) from error
