"""A stand-in for CuPy's memory on a device of a few GiB: pools that cut large blocks, and keep them for each stream."""

from __future__ import annotations

import itertools
from types import SimpleNamespace


class OutOfMemoryError(MemoryError):
    """In place of CuPy's own."""


class Driver:
    """The memory of a device."""

    def __init__(self, size):
        self.free = size
        self.addresses = itertools.count(1 << 40, 1 << 40)
        self.stream = SimpleNamespace(ptr=0, wait_event=lambda event: event.waiters.append(self.stream.ptr))

    def use_stream(self, number):
        """Make a stream the current one."""
        self.stream = SimpleNamespace(ptr=number, wait_event=lambda event: event.waiters.append(number))

    def package(self):
        """Return what stands for the package ``cupy``."""
        runtime = SimpleNamespace(CUDARuntimeError=type("CUDARuntimeError", (Exception,), {}))
        cuda = SimpleNamespace(
            runtime=runtime,
            get_current_stream=lambda: self.stream,
            Memory=lambda size: Memory(self, size),
            Event=Event,
            MemoryPool=lambda: Pool(self),
            UnownedMemory=lambda address, size, owner: SimpleNamespace(ptr=address, size=size, owner=owner),
            MemoryPointer=lambda memory, offset: SimpleNamespace(mem=memory, ptr=memory.ptr + offset),
        )
        return SimpleNamespace(cuda=cuda)


class Event:
    """An event, with the streams that recorded it and those that waited for it."""

    def __init__(self, disable_timing):
        assert disable_timing
        self.recorded, self.waiters = [], []

    def record(self, stream):
        self.recorded.append(stream.ptr)


class Memory:
    """Memory from the driver, which goes back to it when it is forgotten."""

    def __init__(self, driver, size):
        if size > driver.free:
            raise OutOfMemoryError("out of memory")
        driver.free -= size
        self.driver, self.size, self.ptr = driver, size, next(driver.addresses)

    def __del__(self):
        if hasattr(self, "driver"):
            self.driver.free += self.size


class Chunk:
    """A part of a block in a pool, which is free again when it is forgotten."""

    def __init__(self, block, size):
        self.block, self.size, self.ptr = block, size, block.memory.ptr
        block.used += size

    def __del__(self):
        self.block.used -= self.size


class Pool:
    """A pool that cuts blocks, and gives back those of which nothing is used."""

    def __init__(self, driver):
        self.driver, self.blocks = driver, []

    def malloc(self, size):
        fitting = [
            block
            for block in self.blocks
            if block.stream == self.driver.stream.ptr and block.memory.size - block.used >= size
        ]
        if fitting:
            return Chunk(min(fitting, key=lambda block: block.memory.size), size)
        try:
            memory = Memory(self.driver, size)
        except OutOfMemoryError:
            self.free_all_blocks()
            memory = Memory(self.driver, size)
        self.blocks.append(SimpleNamespace(memory=memory, used=0, stream=self.driver.stream.ptr))
        return Chunk(self.blocks[-1], size)

    def free_bytes(self):
        return sum(block.memory.size - block.used for block in self.blocks)

    def used_bytes(self):
        return sum(block.used for block in self.blocks)

    def free_all_blocks(self):
        self.blocks = [block for block in self.blocks if block.used]
