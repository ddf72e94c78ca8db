"""Matrix products in a stream, with the scales and ranges of their tables (``kernels/matrix.cu``)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from elimina.backends.cuda import kernels
from elimina.backends.cuda.matrix_launch import MatrixLaunch
from elimina.planning.program import Program
from elimina.planning.record import MAX_OPERANDS

if TYPE_CHECKING:
    from elimina.backends.cuda.device import CudaDevice

RANGE_BYTES = 16
"""Bytes of a table's range: its largest and its smallest positive value."""


class MatrixQueue:
    """The matrix products of some launches on a device, with their ranges and buffers.

    Before the products run, the range of each factor that they read is computed, unless its values are unchanged. The
    range of an output is bounded by the ranges of its two tables if this bound is tight; otherwise its cells are read.

    Args:
        backend: The device.
        program: Program of the launches.
        matrices: The products.
    """

    def __init__(self, backend: CudaDevice, program: Program, matrices: Sequence[MatrixLaunch]) -> None:
        self._backend, self._matrices, self._dtype = backend, matrices, program.dtype
        self._semiring = program.semiring
        # `scalars`: a zero, then the factor of each product, which is 1 if the product reads no message.
        scalars = np.ones(len(matrices) + bool(matrices), program.dtype)
        scalars[:1] = 0
        # `unseen`: the ranges of both tables of each product, before any value has been seen.
        unseen = np.tile([0.0, np.inf], 2 * len(matrices)).view(np.uint8)
        self._span = len(unseen)
        self.pieces = [unseen, unseen, scalars.view(np.uint8)]
        """Initial contents of the device memory whose address ``set_address`` gets."""
        self.size = sum(map(len, self.pieces)) + 64
        self.are_ranges_known = False

    def set_address(self, at: int) -> None:
        """Set the address of ``pieces`` on the device: ``size`` bytes are reserved there; it is a multiple of 8."""
        self._ranges_at, self._unseen_at, self._scalars_at = at, at + self._span, at + 2 * self._span

    def find_ranges(self, arena: int) -> None:
        """Queue the search for the ranges of factors, unless they are known; ``arena``: address of the arena."""
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

    def queue(
        self, matrix: MatrixLaunch, record: np.uint64, arena: np.uint64, peaks: np.uint64, stop: np.uint64
    ) -> None:
        """Queue a product, its factor and the range of its output.

        Args:
            matrix: The product.
            record: Address of the step's record.
            arena: Address of the arena.
            peaks: Address of the steps' output ranges.
            stop: Address of the flag that ends queued work.
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
        bits = messages, math.ceil(math.log2(matrix.depth)), _max_bits(self._dtype)
        common = record, np.int32(matrix.number), arena, peaks, stop
        kernel = self._backend.function(kernels.extremes_kernel(self._semiring, self._dtype, matrix.words))
        blocks = self._blocks(matrix.out_cells // matrix.words)
        kernel((blocks,), (kernels.THREADS,), (*common, *map(np.uint64, ranges), *map(np.int32, bits)))

    def _range_at(self, matrix: MatrixLaunch, side: int, peaks: int = 0) -> int:
        source = matrix.sources[side]
        at = self._ranges_at + RANGE_BYTES * (2 * (matrix.scalar - 1) + side)
        return at if source < 0 else peaks + RANGE_BYTES * source

    def _blocks(self, threads: int) -> int:
        return max(1, min(-(-threads // kernels.THREADS), 4 * self._backend.multiprocessors))


def _max_bits(dtype: np.dtype[Any]) -> int:
    """Return the binary logarithm of the largest ratio of two bounds that serve as an output's range.

    Products of the values of two outputs with such bounds provably do not underflow. With a larger ratio, the range is
    found by reading the output.
    """
    return int(-np.finfo(dtype).minexp - 2 * MAX_OPERANDS) // 2
