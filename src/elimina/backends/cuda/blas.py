"""Matrix products by cuBLAS."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from elimina.backends.cuda.matrix_launch import MatrixLaunch, MatrixOperand
from elimina.errors import DeviceError

if TYPE_CHECKING:
    from elimina.backends.cuda.memory import DeviceMemory

WORKSPACE_BYTES = 32 << 20
"""Bytes of the library's workspace, which is allocated once, so that graphs can record the library's calls."""
_NORMAL, _TRANSPOSED = 0, 1
_SCALARS_ON_DEVICE = 1
_FUNCTIONS = {"float32": "cublasSgemm", "float64": "cublasDgemm"}


def open_blas(cupy: Any, stream: Any, memory: DeviceMemory) -> Blas | None:
    """Return the library for a stream of the current device; None if it cannot be loaded on this system."""
    library = _library(cupy)
    return None if library is None else Blas(library, stream, memory.allocate(WORKSPACE_BYTES))


@functools.cache
def _library(cupy: Any) -> ctypes.CDLL | None:
    try:
        # CuPy only finds and loads the library: calls through CuPy cannot be recorded in graphs.
        cupy.cuda.device.get_cublas_handle()
        return ctypes.CDLL(f"libcublas.so.{cupy.cuda.runtime.runtimeGetVersion() // 1000}")
    except (ImportError, OSError, RuntimeError):
        return None


class Blas:
    """A handle of the library, for one stream.

    Args:
        library: The loaded library.
        stream: Stream that calls are queued in.
        workspace: Device memory of ``WORKSPACE_BYTES`` bytes.
    """

    def __init__(self, library: ctypes.CDLL, stream: Any, workspace: Any) -> None:
        self._library, self._workspace = library, workspace
        handle = self._handle = ctypes.c_void_p()
        _check(library.cublasCreate_v2(ctypes.byref(handle)))
        _check(library.cublasSetStream_v2(handle, ctypes.c_void_p(stream.ptr)))
        _check(library.cublasSetWorkspace_v2(handle, ctypes.c_void_p(workspace.ptr), ctypes.c_size_t(WORKSPACE_BYTES)))
        _check(library.cublasSetPointerMode_v2(handle, _SCALARS_ON_DEVICE))

    def multiply(self, matrix: MatrixLaunch, dtype: np.dtype[np.generic], arena: int, alpha: int, beta: int) -> None:
        """Queue the library's calls for a step.

        Args:
            matrix: Launch of the step.
            dtype: Type of its cells.
            arena: Address of the arena.
            alpha: Address of the factor of the product.
            beta: Address of a zero.
        """
        item = dtype.itemsize
        name = _FUNCTIONS[dtype.name]
        function = getattr(self._library, f"{name}_v2" if matrix.batch == 1 else f"{name}StridedBatched")
        # cuBLAS expects column-major matrices, so it computes the transposed product.
        ways = (_TRANSPOSED if matrix.rhs.along_depth else _NORMAL, _NORMAL if matrix.lhs.along_depth else _TRANSPOSED)
        sizes = map(ctypes.c_int, (*ways, matrix.columns, matrix.rows, matrix.depth))
        head = (self._handle, *sizes, ctypes.c_void_p(alpha))

        def argument(operand: MatrixOperand, position: int) -> tuple[Any, ...]:
            address = ctypes.c_void_p(arena + item * (operand.offset + position))
            single = address, ctypes.c_int(operand.pitch)
            return single if matrix.batch == 1 else (*single, ctypes.c_longlong(operand.hop))

        tail = () if matrix.batch == 1 else (ctypes.c_int(matrix.batch),)
        for lhs, rhs, out in matrix.offsets:
            tables = (*argument(matrix.rhs, rhs), *argument(matrix.lhs, lhs))
            _check(function(*head, *tables, ctypes.c_void_p(beta), *argument(matrix.out, out), *tail))


def _check(status: int) -> None:
    if status:
        raise DeviceError(f"cuBLAS failed with status {status}: close other programs on the device, or use the CPU")
