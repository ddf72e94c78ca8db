"""Memory of a GPU between programs: what is idle is there for anybody, whatever was allocated before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina.backends.cuda.memory import MAX_WASTE_BYTES, MIN_BLOCK_BYTES, DeviceMemory
from tests.reference.device_memory import Driver, OutOfMemoryError

MIB, GIB = 1 << 20, 1 << 30
CAPACITY = 16 * GIB


@pytest.fixture
def driver():
    return Driver(CAPACITY)


@pytest.fixture
def memory(driver):
    return DeviceMemory(driver.package())


SIZES = st.one_of(
    st.integers(1, 4 * MIB), st.integers(MIN_BLOCK_BYTES - 1, 300 * MIB), st.integers(GIB, 12 * GIB), st.just(3 * GIB)
)
ACTIONS = st.one_of(
    st.tuples(st.just("allocate"), st.integers(0, 2), SIZES),
    st.tuples(st.just("array"), st.integers(0, 2), SIZES),
    st.tuples(st.just("forget"), st.integers(0, 9), st.none()),
)


@given(st.lists(ACTIONS, max_size=30), st.integers(0, 2))
def test_what_is_said_to_be_free_can_be_had(actions, stream):
    """A tree that stays open keeps no more than its own memory, in whichever streams programs ran before."""
    driver = Driver(CAPACITY)
    memory = DeviceMemory(driver.package())
    open_pointers = []
    for action, number, size in actions:
        if action == "forget":
            if open_pointers:
                del open_pointers[number % len(open_pointers)]
            continue
        driver.use_stream(number)
        free = driver.free + memory.idle_bytes()
        if action == "array":
            # Temporary arrays are forgotten before the call ends.
            if size <= free:
                memory.allocate_array(size)
        elif size <= free:
            open_pointers.append(memory.allocate(size))
        else:
            # Small blocks from earlier on may be part of what is free.
            try:
                open_pointers.append(memory.allocate(size))
            except OutOfMemoryError:
                assert driver.free < size
    used = memory.used_bytes()
    driver.use_stream(stream)
    assert memory.allocate(max(1, driver.free + memory.idle_bytes())) is not None
    del open_pointers
    assert used <= CAPACITY
    memory.release()
    assert (driver.free, memory.used_bytes(), memory.idle_bytes()) == (CAPACITY, 0, 0)


def test_a_program_of_the_same_size_reuses_a_block(driver, memory):
    address = memory.allocate(3 * GIB).ptr
    assert memory.idle_bytes() == 3 * GIB
    assert memory.allocate(3 * GIB - 100).ptr == address
    assert driver.free == CAPACITY - 3 * GIB


def test_a_small_program_does_not_occupy_a_large_block(driver, memory):
    large = memory.allocate(8 * GIB)
    del large
    small = memory.allocate(MAX_WASTE_BYTES)
    assert (driver.free, memory.idle_bytes()) == (8 * GIB - MAX_WASTE_BYTES, 8 * GIB)
    assert small is not None


def test_another_stream_waits_for_the_last_user_of_a_block(driver, memory):
    driver.use_stream(1)
    block = memory.allocate(GIB).mem.owner._block
    assert block._freed.recorded == [1]
    again = memory.allocate(GIB)
    assert block._freed.waiters == []
    del again
    driver.use_stream(2)
    again = memory.allocate(GIB)
    assert block._freed.waiters == [2]
    driver.use_stream(3)
    del again
    assert block._freed.recorded == [1, 1, 2]


def test_what_the_device_lacks_is_refused(memory):
    with pytest.raises(MemoryError):
        memory.allocate(CAPACITY + 1)
    assert memory.allocate(CAPACITY) is not None
