"""CUDA's failures become errors of the package, on a stand-in for CuPy."""

from __future__ import annotations

import sys
import types
from contextlib import nullcontext

import pytest

from elimina.backends.cuda import cupy_package, events
from elimina.backends.cuda.backend import CudaBackend
from elimina.backends.cuda.session import CudaSession
from elimina.errors import DeviceError, MemoryLimitError


class DeviceFailure(Exception):
    """In place of CuPy's own."""


@pytest.fixture
def backend():
    made = object.__new__(CudaBackend)
    made.number, made._device = 0, nullcontext()
    runtime = types.SimpleNamespace(memGetInfo=lambda: (2**30, 2**33), CUDARuntimeError=DeviceFailure)
    driver = types.SimpleNamespace(CUDADriverError=DeviceFailure)
    made.cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime, driver=driver))
    made.device_memory = types.SimpleNamespace(used_bytes=lambda: 2**31)
    return made


def test_what_sorting_has_no_memory_for(backend):
    with (
        pytest.raises(DeviceError, match=r"needs 4\.00 GiB, 1\.00 of 8\.00 GiB are free, and 2\.00 "),
        backend.failing(2**32),
    ):
        raise MemoryError("std::bad_alloc")


def test_what_a_kernel_has_no_memory_for_while_it_is_loaded(backend):
    with pytest.raises(DeviceError, match=r"is out of memory: the program needs 4\.00 GiB"), backend.failing(2**32):
        raise DeviceFailure("CUDA_ERROR_OUT_OF_MEMORY: out of memory")


def test_a_limit_stays_one(backend):
    with pytest.raises(MemoryLimitError, match="more than 3"), backend.failing(2**32):
        raise MemoryLimitError("a join makes 4 rows, more than 3")


def test_failures_of_the_device(backend):
    with pytest.raises(DeviceError, match="failed: lost"), backend.failing(0):
        raise DeviceFailure("lost")


def test_a_wait_ends_if_the_context_has_failed(backend):
    """The status of a failed context is neither that of an event that has passed nor of one to come."""
    statuses = iter([events.NOT_READY, 700])
    runtime = backend.cupy.cuda.runtime
    runtime.eventQuery = lambda event: next(statuses)
    made = object.__new__(CudaSession)
    made._cuda, made._marks = backend.cupy.cuda, []
    with pytest.raises(DeviceError, match="failed: 700"), backend.failing(0):
        made._wait(types.SimpleNamespace(ptr=1), None)


def test_a_folder_of_the_name_is_not_cupy(monkeypatch):
    folder = types.ModuleType("cupy")
    folder.__path__ = ["/somewhere/cupy"]
    monkeypatch.setitem(sys.modules, "cupy", folder)
    with pytest.raises(DeviceError, match="the folder /somewhere/cupy hides the package CuPy"):
        CudaBackend()


def test_the_context_is_made_by_the_driver(monkeypatch):
    asked = []

    def library(name):
        calls = {
            "cuInit": lambda flags: asked.append(("init", flags)) or 0,
            "cuDeviceGet": lambda gpu, number: asked.append(("gpu", number)) or 0,
            "cuDevicePrimaryCtxRetain": lambda context, gpu: asked.append(("context",)) or 0,
        }
        return types.SimpleNamespace(**calls)

    monkeypatch.setattr(cupy_package.ctypes, "CDLL", library)
    assert cupy_package.make_context(1)
    assert asked == [("init", 0), ("gpu", 1), ("context",)]


def test_no_context_without_a_driver(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(cupy_package.ctypes, "CDLL", missing)
    assert not cupy_package.make_context(0)
    monkeypatch.setattr(cupy_package.ctypes, "CDLL", lambda name: types.SimpleNamespace(cuInit=lambda flags: 100))
    assert not cupy_package.make_context(0)
