"""What the CUDA backend says where there is no CUDA."""

from __future__ import annotations

import sys
import types

import pytest

from elimina.backends.cuda import CudaBackend
from elimina.errors import DeviceError


def test_missing_cupy_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match=r'pip install "elimina\[cuda13\]"'):
        CudaBackend()


def _cupy(version, count):
    class CudaError(Exception):
        pass

    def device_count():
        if count is None:
            raise CudaError("cudaErrorInsufficientDriver")
        return count

    runtime = types.SimpleNamespace(getDeviceCount=device_count, CUDARuntimeError=CudaError)
    module = types.ModuleType("cupy")
    module.__version__ = version
    module.cuda = types.SimpleNamespace(runtime=runtime)
    return module


@pytest.mark.parametrize(
    ("version", "count", "device", "message"),
    [
        ("13.6.0", 1, 0, r"CuPy 13.6.0 is too old, 14.2 is needed"),
        ("14.2.0", None, 0, r"no usable CUDA driver.*cudaErrorInsufficientDriver.*--device cpu"),
        ("14.2.0", 0, 0, r"no CUDA device 0: this machine has 0"),
        ("15.0.0rc1", 2, 2, r"no CUDA device 2: this machine has 2"),
        ("14.2.0", 2, -1, r"no CUDA device -1"),
    ],
)
def test_unusable_cuda_is_explained(monkeypatch, version, count, device, message):
    monkeypatch.setitem(sys.modules, "cupy", _cupy(version, count))
    with pytest.raises(DeviceError, match=message):
        CudaBackend(device)
