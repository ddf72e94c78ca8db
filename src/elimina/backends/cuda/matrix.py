"""Large steps in ``sum-product`` that are matrix products, by cuBLAS."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from elimina.backends.cuda.record import is_aligned, merge, widen
from elimina.errors import DeviceError
from elimina.planning.program import Program
from elimina.planning.record import HEADER, LIBRARY_DEPTH, LIBRARY_SIDE, LIBRARY_WORK, tables

MOST_CALLS = 64
"""Calls of the library for one step: batches whose matrices do not lie at regular distances take one each."""
LARGEST = 2**31 - 1
"""Largest size that the library takes."""


class Operand(NamedTuple):
    """A matrix in the arena.

    Attributes:
        offset: Place of its first cell.
        pitch: Cells between the starts of two of its lines.
        along_depth: True if its lines run along the eliminated variable.
        hop: Cells between two matrices of the batch.
    """

    offset: int
    pitch: int
    along_depth: bool
    hop: int


class Matrix(NamedTuple):
    """A launch of one large step: ``batch`` products of ``rows`` x ``columns`` x ``depth``, at each of some places.

    Attributes:
        number: Number of the step.
        record_at: Start of its record in the words.
        rows, columns, depth, batch: Shape of a call.
        lhs, rhs, out: Matrices that are multiplied, and that of the result.
        places: Cells to add to the three matrices' offsets, for each call.
        sources: Steps that wrote lhs and rhs; -1 for a factor.
        scalar: Place of the product of the messages' scales among the scalars.
        words: Cells of the words that the output is read in.
        work: Combinations of the step.
    """

    number: int
    record_at: int
    rows: int
    columns: int
    depth: int
    batch: int
    lhs: Operand
    rhs: Operand
    out: Operand
    places: tuple[tuple[int, ...], ...]
    sources: tuple[int, int]
    scalar: int
    words: int
    work: int

    @property
    def out_cells(self) -> int:
        """Cells of the output."""
        return self.work // self.depth


def choose(program: Program, number: int, start: int, record: list[int], scalar: int) -> Matrix | None:
    """Return the library calls that compute a step; None if our own kernel has to.

    Args:
        program: Program of the step.
        number: Number of the step.
        start: Start that its record will have in the words.
        record: The step's record; it gets fewer, longer axes if the library takes the step.
        scalar: Place for the product of the messages' scales.
    """
    if program.semiring != "sum-product" or record[9:12] != [2, 1, 1] or record[1] < LIBRARY_DEPTH:
        return None
    own = list(record)
    widen(own)
    merge(own)
    axes, lo = own[3], own[4] + own[5]
    sizes = own[HEADER : HEADER + 3 * axes : 3]
    lhs, rhs = tables(own)
    strides = list(zip(lhs[3:], rhs[3:], own[HEADER + 1 : HEADER + 3 * axes : 3], strict=True))
    rows_at = [axis for axis in range(lo) if strides[axis][1] == 0]
    if axes != lo + 1 or not rows_at:
        return None
    row = max(rows_at, key=sizes.__getitem__)
    others = sorted((axis for axis in range(lo) if axis != row), key=sizes.__getitem__)
    hops = strides[others[-1]] if others else (0, 0, 0)
    digits = itertools.product(*(range(sizes[axis]) for axis in others[:-1]))
    depth, columns, batch = own[1], sizes[lo], sizes[others[-1]] if others else 1
    work = depth * math.prod(sizes)
    calls = math.prod(sizes[axis] for axis in others[:-1])
    if calls > MOST_CALLS or min(sizes[row], columns) < LIBRARY_SIDE or work < LIBRARY_WORK:
        return None
    left = _operand(lhs, strides[row][0], hops[0], depth, sizes[row])
    right = _operand(rhs, strides[lo][1], hops[1], depth, columns)
    if left is None or right is None or strides[row][2] < columns:
        return None
    out = Operand(own[12], strides[row][2], False, hops[2])
    if max(sizes[row], columns, depth, batch, left.pitch, right.pitch, out.pitch) > LARGEST:
        return None
    places = tuple(
        tuple(sum(digit * strides[axis][k] for digit, axis in zip(found, others, strict=False)) for k in range(3))
        for found in digits
    )
    record[:] = own
    vector = 16 // program.dtype.itemsize
    whole = [stride for _, _, stride in strides[:lo]]
    words = vector if columns % vector == 0 and is_aligned(own[12], whole, sizes[:lo], vector) else 1
    return Matrix(
        number,
        start,
        sizes[row],
        columns,
        depth,
        batch,
        left,
        right,
        out,
        places,
        (lhs[2], rhs[2]),
        scalar,
        words,
        work,
    )


def _operand(table: list[int], stride: int, hop: int, depth: int, cells: int) -> Operand | None:
    """Return a matrix with this distance of cells along the side; None if no direction has adjacent cells."""
    if stride == 1 and table[1] >= cells:
        return Operand(table[0], table[1], False, hop)
    if table[1] == 1 and stride >= depth:
        return Operand(table[0], stride, True, hop)
    return None


WORKSPACE = 32 << 20
"""Bytes that the library may use, as many as it asks for; given once, so that graphs can hold its calls."""
_NORMAL, _TRANSPOSED = 0, 1
_SCALARS_ON_DEVICE = 1
_FUNCTIONS = {"float32": "cublasSgemm", "float64": "cublasDgemm"}


def open_blas(cupy: Any, stream: Any, pool: Any) -> Blas | None:
    """Return the library for a stream of the current device; None if this system has none that can be loaded."""
    library = _library(cupy)
    return None if library is None else Blas(library, stream, pool.malloc(WORKSPACE))


@functools.cache
def _library(cupy: Any) -> ctypes.CDLL | None:
    try:
        # CuPy knows where the library lies, and loads it; its own calls cannot be recorded in graphs.
        cupy.cuda.device.get_cublas_handle()
        return ctypes.CDLL(f"libcublas.so.{cupy.cuda.runtime.runtimeGetVersion() // 1000}")
    except (ImportError, OSError, RuntimeError):
        return None


class Blas:
    """A handle of the library, for one stream.

    Args:
        library: The loaded library.
        stream: Stream that calls are queued in.
        workspace: Device memory of ``WORKSPACE`` bytes.
    """

    def __init__(self, library: ctypes.CDLL, stream: Any, workspace: Any) -> None:
        self._library, self._workspace = library, workspace
        handle = self._handle = ctypes.c_void_p()
        _check(library.cublasCreate_v2(ctypes.byref(handle)))
        _check(library.cublasSetStream_v2(handle, ctypes.c_void_p(stream.ptr)))
        _check(library.cublasSetWorkspace_v2(handle, ctypes.c_void_p(workspace.ptr), ctypes.c_size_t(WORKSPACE)))
        _check(library.cublasSetPointerMode_v2(handle, _SCALARS_ON_DEVICE))

    def multiply(self, matrix: Matrix, dtype: np.dtype[np.generic], arena: int, alpha: int, beta: int) -> None:
        """Queue the calls of a step.

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
        # The library's matrices are column-major: it makes the transposed product.
        ways = (_TRANSPOSED if matrix.rhs.along_depth else _NORMAL, _NORMAL if matrix.lhs.along_depth else _TRANSPOSED)
        sizes = map(ctypes.c_int, (*ways, matrix.columns, matrix.rows, matrix.depth))
        head = (self._handle, *sizes, ctypes.c_void_p(alpha))

        def argument(operand: Operand, place: int) -> tuple[Any, ...]:
            address = ctypes.c_void_p(arena + item * (operand.offset + place))
            known = address, ctypes.c_int(operand.pitch)
            return known if matrix.batch == 1 else (*known, ctypes.c_longlong(operand.hop))

        tail = () if matrix.batch == 1 else (ctypes.c_int(matrix.batch),)
        for lhs, rhs, out in matrix.places:
            tables = (*argument(matrix.rhs, rhs), *argument(matrix.lhs, lhs))
            _check(function(*head, *tables, ctypes.c_void_p(beta), *argument(matrix.out, out), *tail))


def _check(status: int) -> None:
    if status:
        raise DeviceError(
            f"cuBLAS failed with status {status}: close other programs on the device, or use --device cpu"
        )
