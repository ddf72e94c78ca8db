"""A stand-in for a CUDA device on the host: what is queued happens at once, kernels are the plain executor."""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
from types import SimpleNamespace

import numpy as np

from elimina.backends.cuda.box_copies import MAX_PITCH_BYTES
from elimina.backends.cuda.events import PASSED
from tests.reference import stream


class Pointer(mmap.mmap):
    """Memory with an address, which can be read as a buffer."""

    def __new__(cls, size):
        return super().__new__(cls, -1, size + 256)

    @property
    def ptr(self):
        return ctypes.addressof(ctypes.c_char.from_buffer(self))


class Queue:
    """A stream."""

    ptr = 0

    def __init__(self, non_blocking):
        assert non_blocking

    def wait_event(self, event):
        assert event.recorded

    def synchronize(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class Event:
    """An event, which is over once it is recorded."""

    ptr = 0

    def __init__(self, disable_timing):
        self.recorded = False

    def record(self, queue):
        self.recorded = True

    def synchronize(self):
        assert self.recorded


class Runtime:
    """Copies of bytes."""

    memcpyDefault = 4

    def __init__(self):
        self.registered = []

    def memcpyAsync(self, to, source, size, kind, queue):
        assert size >= 0
        ctypes.memmove(to, source, size)

    def memcpy2DAsync(self, to, to_pitch, source, source_pitch, width, height, kind, queue):
        assert width <= min(to_pitch, source_pitch) <= max(to_pitch, source_pitch) <= MAX_PITCH_BYTES
        for row in range(height):
            ctypes.memmove(to + row * to_pitch, source + row * source_pitch, width)

    def eventQuery(self, event):
        return PASSED

    def memsetAsync(self, to, value, size, queue):
        ctypes.memset(to, value, size)

    def hostRegister(self, pointer, size, flags):
        # A page is pinned once: one that other memory shares could be pinned already.
        assert pointer % mmap.PAGESIZE == size % mmap.PAGESIZE == 0
        self.registered.append(pointer)

    def hostUnregister(self, pointer):
        self.registered.remove(pointer)


class Device:
    """A stand-in for ``CudaBackend`` in streaming sessions; the program tells its kernels' semiring."""

    multiprocessors, shared_limit = 132, 232448

    def __init__(self, program):
        self._program = program
        self.runtime = Runtime()
        cuda = SimpleNamespace(runtime=self.runtime, Stream=Queue, Event=Event)
        self.cupy = SimpleNamespace(cuda=cuda)
        self.device_memory, self.pinned = SimpleNamespace(allocate=Pointer), SimpleNamespace(malloc=Pointer)
        self.launches = 0

    @contextlib.contextmanager
    def at_work(self, size):
        yield

    def trim(self):
        pass

    def function(self, name, shared=0):
        assert shared <= self.shared_limit
        return Kernel(self, max(shared, 48 << 10))

    def launch(self, record_at, number, arena_at, peaks_at):
        """One tile."""
        self.launches += 1
        program = self._program
        words = memory(record_at, np.int64, 1)[0]
        words = memory(record_at, np.int64, int(words)).tolist()
        peaks = memory(peaks_at, np.float64, 2 * len(program.starts)).reshape(-1, 2)
        device = memory(arena_at, program.dtype, program.stream.cells)
        stream.compute(program, words, device, peaks, number)


class Kernel:
    """Any of the kernels for large steps."""

    def __init__(self, device, shared):
        self._device, self._shared = device, shared

    def __call__(self, blocks, threads, arguments, shared_mem):
        assert math.prod(blocks) > 0
        assert shared_mem <= self._shared
        record, _, number, *_, arena, peaks, _stop, _parameter = arguments
        self._device.launch(int(record), int(number), int(arena), int(peaks))


def memory(address, dtype, count):
    """An array over memory."""
    size = np.dtype(dtype).itemsize * count
    return np.frombuffer((ctypes.c_ubyte * size).from_address(address), dtype)
