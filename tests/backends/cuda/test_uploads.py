"""Uploads through pinned memory: on a stand-in for a device whose copies are made as late as they may be."""

from __future__ import annotations

import ctypes
import types

import numpy as np
import pytest

from elimina.backends.cuda import session as cuda_session

STAGE = 512


class Pinned(ctypes.c_uint8 * STAGE):
    """Memory that goes back to its pool, and is handed out again, as soon as it is forgotten."""

    def __del__(self):
        self.pool.append(self.backing)

    @property
    def ptr(self):
        return ctypes.addressof(self)


class LateDevice:
    """Copies wait in one queue until somebody waits for them."""

    def __init__(self, size):
        self.memory = np.zeros(size, np.uint8)
        self.queue, self.free = [], []
        self.pinned = types.SimpleNamespace(malloc=self._malloc)
        self.cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(Event=self._event))
        self.stream = types.SimpleNamespace(synchronize=self._wait)

    def _malloc(self, size):
        assert size <= STAGE
        backing = self.free.pop() if self.free else bytearray(STAGE)
        memory = Pinned.from_buffer(backing)
        memory.pool, memory.backing = self.free, backing
        return memory

    def _wait(self):
        for copy in self.queue:
            copy()
        self.queue.clear()

    def _event(self, **_):
        return types.SimpleNamespace(record=lambda stream: None, synchronize=self._wait)

    def copy(self, to, source, size):
        view = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(source))
        self.queue.append(lambda: self.memory.__setitem__(slice(to, to + size), view))


@pytest.mark.parametrize("lengths", [[300, 200, 200], [7, 0, 500, 1, 512], [100, 1300, 90], [200, 100], []])
def test_memory_is_not_reused_before_it_is_copied(lengths, monkeypatch):
    monkeypatch.setattr(cuda_session, "STAGE_BYTES", STAGE)
    rng = np.random.default_rng(0)
    pieces = [rng.integers(1, 255, n).astype(np.uint8) for n in lengths]
    device = LateDevice(sum(lengths) + 15)
    session = object.__new__(cuda_session.CudaSession)
    session._backend, session._cuda, session._stream = device, device.cupy.cuda, device.stream
    session._copy, session._staged = device.copy, []
    end = 10 + sum(lengths)
    session.upload(end, [np.full(3, 9, np.uint8)])
    session.upload(10, pieces)
    session.upload(end, [np.full(5, 8, np.uint8)])
    device.stream.synchronize()
    np.testing.assert_array_equal(device.memory[:end], np.concatenate([np.zeros(10, np.uint8), *pieces]))
    assert device.memory[end:].tolist() == [8] * 5
