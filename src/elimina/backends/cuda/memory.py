"""Device memory that this process keeps between programs; idle blocks can be freed."""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

MIN_BLOCK_BYTES = 16 << 20
"""Size of the smallest allocation with a separate block."""
MAX_WASTE_SHARE, MAX_WASTE_BYTES = 0.5, 256 << 20
"""Part of a reused block that may stay empty: the larger of a share of the block and a number of bytes."""


class Block:
    """A piece of device memory for one allocation at a time, which may be smaller; it is freed as a whole.

    Args:
        cupy: The package.
        size: Number of bytes.

    Attributes:
        size: Number of bytes.
        address: Address of the first byte.
    """

    def __init__(self, cupy: Any, size: int) -> None:
        self._memory = cupy.cuda.Memory(size)
        self._freed = cupy.cuda.Event(disable_timing=True)
        self._stream: Any = None
        self.size, self.address = size, int(self._memory.ptr)

    def use(self, stream: Any) -> None:
        """Let later work of a stream use the block, after all work that has used it before."""
        if self._stream is not None and stream.ptr != self._stream.ptr:
            stream.wait_event(self._freed)
        self._stream = stream

    def mark_idle(self) -> None:
        """Mark the block as idle after its current work."""
        self._freed.record(self._stream)


class Lease:
    """A block in use, which becomes idle when the lease is deleted."""

    def __init__(self, block: Block, idle: list[Block], failure: type[Exception]) -> None:
        self._block, self._idle, self._failure = block, idle, failure

    def __del__(self) -> None:
        if sys.is_finalizing():
            return
        # Memory of a failed GPU cannot be released.
        with contextlib.suppress(self._failure):
            self._block.mark_idle()
            self._idle.append(self._block)


class DeviceMemory:
    """The memory of one GPU that this process has; all methods are called on that GPU.

    CuPy's pools cut small allocations from large idle blocks, which can then not be returned to the driver: a tree of a
    megabyte would hold the 64 GiB of an earlier program. The pools also do not share memory between streams. So large
    allocations are separate blocks here, and programs and temporary arrays have separate memory.

    Args:
        cupy: The package.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._small, self._arrays = cupy.cuda.MemoryPool(), cupy.cuda.MemoryPool()
        self._blocks: weakref.WeakSet[Block] = weakref.WeakSet()
        self._idle: list[Block] = []
        self._lock = threading.Lock()

    def allocate(self, size: int) -> Any:
        """Return a pointer to memory of a program; the memory is idle again when the pointer is released.

        Work that is queued in the current stream may use it at once.

        Raises:
            MemoryError: The GPU lacks the memory, even after idle memory was returned.
        """
        if size < MIN_BLOCK_BYTES:
            return self._after_release(self._small.malloc, size)
        cuda = self._cupy.cuda
        block = self._reused(size)
        if block is None:
            block = self._after_release(functools.partial(Block, self._cupy), size)
            self._blocks.add(block)
        block.use(cuda.get_current_stream())
        lease = Lease(block, self._idle, cuda.runtime.CUDARuntimeError)
        return cuda.MemoryPointer(cuda.UnownedMemory(block.address, block.size, lease), 0)

    def allocate_array(self, size: int) -> Any:
        """Return a pointer to memory of a temporary array: an allocator for CuPy.

        Raises:
            MemoryError: The GPU lacks the memory, even after idle memory was returned.
        """
        return self._after_release(self._arrays.malloc, size)

    def idle_bytes(self) -> int:
        """Return the idle bytes, which ``release`` returns to the driver."""
        return sum(block.size for block in list(self._idle)) + int(self._arrays.free_bytes())

    def used_bytes(self) -> int:
        """Return the bytes that programs and arrays of this process use."""
        blocks = sum(block.size for block in list(self._blocks)) - sum(block.size for block in list(self._idle))
        return blocks + int(self._small.used_bytes()) + int(self._arrays.used_bytes())

    def release(self) -> None:
        """Return all idle memory to the driver."""
        with self._lock:
            self._idle.clear()
        self._small.free_all_blocks()
        self._arrays.free_all_blocks()

    def _reused(self, size: int) -> Block | None:
        """Take the smallest idle block for a request; return None if each is too small or would waste too much."""
        with self._lock:
            fitting = [
                block
                for block in self._idle
                if 0 <= block.size - size <= max(MAX_WASTE_SHARE * block.size, MAX_WASTE_BYTES)
            ]
            if not fitting:
                return None
            block = min(fitting, key=lambda block: block.size)
            self._idle.remove(block)
            return block

    def _after_release(self, allocate: Callable[[int], T], size: int) -> T:
        """Allocate memory; if the GPU lacks it, free idle blocks and try once more."""
        try:
            return allocate(size)
        except (MemoryError, self._cupy.cuda.runtime.CUDARuntimeError) as error:
            if not isinstance(error, MemoryError) and "out of memory" not in str(error):
                raise
        self.release()
        return allocate(size)
