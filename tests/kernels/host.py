"""Kernels on the CPU: their source, compiled by the host's compiler, with one thread for all of the work."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from elimina.backends.cuda import compilation

SHIM = """
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#define __device__ inline
#define __restrict__
#define __global__ extern "C"
#define ELIMINA_ROOM(name) static double name[1 << 16]
using i64 = std::int64_t;
using i32 = std::int32_t;
using std::exp, std::fabs, std::fmax, std::log, std::min;
struct { int x = 0; } blockIdx, threadIdx;
struct { int x = 1; } gridDim, blockDim;
inline double exchange_lanes(double value, int) { return value; }
inline long long __double_as_longlong(double value) {
  long long bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline void atomicMax(unsigned long long* at, unsigned long long value) { *at = std::max(*at, value); }
"""


class HostDevice:
    """Launches kernels of one file on NumPy's arrays, in the place of a CUDA device.

    Args:
        file: Name of the file in ``kernels``.
        folder: Folder for the library.
    """

    multiprocessors = 1

    def __init__(self, file: str, folder: Path) -> None:
        compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            pytest.skip("no C++ compiler is here")
        source = (compilation.KERNELS / file).read_text(encoding="utf-8").replace('#include "common.cuh"', SHIM)
        (folder / "kernels.cpp").write_text(source, encoding="utf-8")
        library = folder / "kernels.so"
        command = [compiler, "-std=c++20", "-O2", "-shared", "-fPIC", str(folder / "kernels.cpp"), "-o", str(library)]
        subprocess.run(command, check=True, timeout=120)
        self._library = ctypes.CDLL(str(library))

    def function(self, name, shared=0):
        """Return a kernel, which is launched as CuPy's are."""
        kernel = getattr(self._library, name.removeprefix("elimina::"))
        return lambda blocks, threads, arguments, shared_mem=0: kernel(*map(_argument, arguments))

    @contextlib.contextmanager
    def arrays(self):
        """Lend NumPy in place of CuPy."""
        yield HostArrays()

    def recorded(self, work):
        """Return work that nothing records."""
        return work


def _argument(value):
    if isinstance(value, np.ndarray):
        assert value.flags.c_contiguous
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, float):
        return ctypes.c_double(value)
    return ctypes.c_int32(int(value)) if isinstance(value, np.int32) else ctypes.c_int64(value)


class HostArrays:
    """NumPy with the functions that only CuPy has."""

    asnumpy = staticmethod(np.asarray)

    def __getattr__(self, name):
        return getattr(np, name)
