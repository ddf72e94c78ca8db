"""Large steps in ``sum-product`` that are matrix products, by cuBLAS."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from elimina.backends.cuda import kernels
from elimina.backends.cuda.record import is_aligned, merge, widen
from elimina.errors import DeviceError
from elimina.planning.matrix_products import LIBRARY_DEPTH, LIBRARY_SIDE, LIBRARY_WORK
from elimina.planning.program import Program
from elimina.planning.record import HEADER, MAX_OPERANDS, tables

if TYPE_CHECKING:
    from elimina.backends.cuda.device import CudaDevice
    from elimina.backends.cuda.memory import DeviceMemory

MOST_CALLS = 64
"""Calls of the library for one step: batches whose matrices do not lie at regular distances take one each."""
LARGEST = 2**31 - 1
"""Largest size that the library takes."""
RANGE_BYTES = 16
"""Bytes of a table's range: its largest and its smallest positive value."""


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

    def kernel_names(self, semiring: str, dtype: np.dtype[np.generic]) -> tuple[str, ...]:
        """Return the names of the kernels that it runs, in a semiring and a dtype."""
        kind = semiring, dtype
        return kernels.range_kernel(*kind), kernels.scale_kernel(*kind), kernels.extremes_kernel(*kind, self.words)

    @property
    def path(self) -> str:
        """Name of the executor path that it is."""
        return "cuda-library"

    @property
    def out_cells(self) -> int:
        """Cells of the output."""
        return self.work // self.depth

    def cells_of(self, side: int) -> tuple[int, int]:
        """Return the first cell that is read of the left (0) or the right table (1), and how many up to the last."""
        operand, lines = (self.lhs, self.rows) if side == 0 else (self.rhs, self.columns)
        lines, length = (lines, self.depth) if operand.along_depth else (self.depth, lines)
        farthest = max(place[side] for place in self.places) + (self.batch - 1) * operand.hop
        return operand.offset, farthest + (lines - 1) * operand.pitch + length


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


def open_blas(cupy: Any, stream: Any, memory: DeviceMemory) -> Blas | None:
    """Return the library for a stream of the current device; None if this system has none that can be loaded."""
    library = _library(cupy)
    return None if library is None else Blas(library, stream, memory.allocate(WORKSPACE))


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


class Products:
    """The matrix products of some launches on a device, and what they need there besides their records.

    Before the products run, the range of each factor that they read has to be found, once for given values. An output
    whose two tables bound it closely enough gets that bound as its range; others are read for it.

    Args:
        backend: The device.
        program: Program of the launches.
        matrices: The products.
    """

    def __init__(self, backend: CudaDevice, program: Program, matrices: Sequence[Matrix]) -> None:
        self._backend, self._matrices, self._dtype = backend, matrices, program.dtype
        self._semiring = program.semiring
        # A zero, and the factor of each product: 1 where no message is read.
        scalars = np.ones(len(matrices) + bool(matrices), program.dtype)
        scalars[:1] = 0
        # The ranges of both tables of each product: no value has been seen yet.
        unseen = np.tile([0.0, np.inf], 2 * len(matrices)).view(np.uint8)
        self._span = len(unseen)
        self.pieces = [unseen, unseen, scalars.view(np.uint8)]
        """First contents of the memory of ``place``."""
        self.size = sum(map(len, self.pieces)) + 64
        self.are_ranges_known = False

    def place(self, at: int) -> None:
        """Give the address, a multiple of 8, of ``size`` bytes on the device for ``pieces``."""
        self._ranges_at, self._unseen_at, self._scalars_at = at, at + self._span, at + 2 * self._span

    def find_ranges(self, arena: int) -> None:
        """Queue the search for the ranges of factors, unless they are known; ``arena``: its address."""
        if self.are_ranges_known or not self._matrices:
            return
        runtime, stream = self._backend.cupy.cuda.runtime, self._backend.stream
        runtime.memcpyAsync(self._ranges_at, self._unseen_at, self._span, runtime.memcpyDefault, stream.ptr)
        kernel = self._backend.function(kernels.range_kernel(self._semiring, self._dtype))
        for matrix, side in itertools.product(self._matrices, range(2)):
            if matrix.sources[side] < 0:
                first, count = matrix.cells_of(side)
                cells = np.uint64(arena + self._dtype.itemsize * first)
                arguments = cells, np.int64(count), np.uint64(self._range_at(matrix, side))
                kernel((self._blocks(count),), (kernels.THREADS,), arguments)
        self.are_ranges_known = True

    def queue(self, matrix: Matrix, record: np.uint64, arena: np.uint64, peaks: np.uint64, stop: np.uint64) -> None:
        """Queue a product, its factor and the range of its output.

        Args:
            matrix: The product.
            record: Address of the step's record.
            arena: Address of the arena.
            peaks: Address of the steps' output ranges.
            stop: Address of the flag that ends what is queued.
        """
        blas, sources = self._backend.blas, matrix.sources
        alpha = self._scalars_at + self._dtype.itemsize * matrix.scalar
        if max(sources) >= 0:
            kernel = self._backend.function(kernels.scale_kernel(self._semiring, self._dtype))
            kernel((1,), (1,), (*map(np.int32, sources), peaks, np.uint64(alpha)))
        assert blas is not None
        blas.multiply(matrix, self._dtype, int(arena), alpha, self._scalars_at)
        ranges = [self._range_at(matrix, side, int(peaks)) for side in range(2)]
        messages = sum(1 << side for side, source in enumerate(sources) if source >= 0)
        bits = messages, math.ceil(math.log2(matrix.depth)), _most_bits(self._dtype)
        own = record, np.int32(matrix.number), arena, peaks, stop
        kernel = self._backend.function(kernels.extremes_kernel(self._semiring, self._dtype, matrix.words))
        blocks = self._blocks(matrix.out_cells // matrix.words)
        kernel((blocks,), (kernels.THREADS,), (*own, *map(np.uint64, ranges), *map(np.int32, bits)))

    def _range_at(self, matrix: Matrix, side: int, peaks: int = 0) -> int:
        source = matrix.sources[side]
        at = self._ranges_at + RANGE_BYTES * (2 * (matrix.scalar - 1) + side)
        return at if source < 0 else peaks + RANGE_BYTES * source

    def _blocks(self, threads: int) -> int:
        return max(1, min(-(-threads // kernels.THREADS), 4 * self._backend.multiprocessors))


def _most_bits(dtype: np.dtype[Any]) -> int:
    """Return between how many powers of two an output's values may lie for a bound to serve as their range.

    A reader of two such tables still sees from the bounds that no product of their values is lost.
    """
    return int(-np.finfo(dtype).minexp - 2 * MAX_OPERANDS) // 2
