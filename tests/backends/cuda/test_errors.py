"""CUDA's failures become errors of the package, on a stand-in for CuPy."""

from __future__ import annotations

import sys
import types
from contextlib import nullcontext

import pytest

from elimina.backends.cuda.backend import CudaBackend
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
    return made


def test_what_sorting_has_no_memory_for(backend):
    with pytest.raises(DeviceError, match=r"needs 4\.00 GiB, 1\.00 of 8\.00 GiB are free"), backend.failing(2**32):
        raise MemoryError("std::bad_alloc")


def test_a_limit_stays_one(backend):
    with pytest.raises(MemoryLimitError, match="more than 3"), backend.failing(2**32):
        raise MemoryLimitError("a join makes 4 rows, more than 3")


def test_failures_of_the_device(backend):
    with pytest.raises(DeviceError, match="failed: lost"), backend.failing(0):
        raise DeviceFailure("lost")


def test_a_folder_of_the_name_is_not_cupy(monkeypatch):
    folder = types.ModuleType("cupy")
    folder.__path__ = ["/somewhere/cupy"]
    monkeypatch.setitem(sys.modules, "cupy", folder)
    with pytest.raises(DeviceError, match="the folder /somewhere/cupy hides the package CuPy"):
        CudaBackend()
