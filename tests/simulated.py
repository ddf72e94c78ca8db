"""A stand-in for a CUDA device: the CPU under the device's name, with a memory limit of its own."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from elimina.backends import registry
from elimina.backends.cpu import CpuBackend
from elimina.backends.cuda import backend as cuda
from elimina.backends.sparse.cpu import CpuSparseDevice
from elimina.backends.sparse.session import SparseSession
from elimina.errors import DeviceError
from elimina.methods import small_networks
from elimina.planning import tiers
from elimina.planning.machine import cuda_machine
from elimina.running import plan_choice


class SimulatedSession:
    """A program in the host's memory that can do what one on a CUDA device can, and no more."""

    def __init__(self, program, factors):
        self._whole = CpuBackend(1).open(program._replace(stream=None, scratch=None), factors)
        for name in ("load", "load_peaks", "run", "fetch", "gather", "decode_buckets", "put", "read_table", "close"):
            setattr(self, name, getattr(self._whole, name))


class SimulatedCuda:
    """A device with so many bytes, which plans see as a GPU's."""

    name = "cuda (simulated)"
    bytes = 1 << 30
    count = 1
    multiprocessors = 4

    def __init__(self, number=0, threads=1):
        self.number, self.threads = number, threads or 1

    machine = property(lambda self: cuda_machine())

    def memory(self):
        return self.bytes

    @contextlib.contextmanager
    def arrays(self):
        """Lend NumPy in place of CuPy."""
        yield np

    def function(self, name, shared=0):
        """Fail as a GPU does: kernels besides those of sessions are not simulated."""
        raise DeviceError(f"a simulated GPU has no kernel {name}: use the CPU")

    def recorded(self, work):
        """Return work that nothing records."""
        return work

    def open(self, program, factors):
        if program.sparse is not None:
            device = CpuSparseDevice(program.semiring, program.dtype, program.parameter, 1)
            return SparseSession(self, CpuBackend(1), device, program, factors)
        return SimulatedSession(program, factors)


def simulate(patch: pytest.MonkeyPatch, device: int, host: int | None = None) -> None:
    """Put a simulated device into the machine; its tables pass through it in tiles however small it is.

    Args:
        patch: Fixture that installs it.
        device: Bytes of the device.
        host: Bytes of the host; None: as they are.
    """
    backend = type("SimulatedCuda", (SimulatedCuda,), {"bytes": device})
    patch.setattr(cuda, "CudaBackend", backend)
    for module in (registry, plan_choice):
        patch.setattr(module, "is_cupy_installed", lambda: True)
    patch.setattr(tiers, "RECORD_BYTES", 64)
    if host is not None:
        patch.setattr(CpuBackend, "memory", lambda self: host)
        patch.setattr(small_networks, "MAX_SMALL_CELLS", min(small_networks.MAX_SMALL_CELLS, host // 8))
