"""Copies of whole arrays on a device (``kernels/place.cu``)."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from elimina.backends.cuda import kernels
from elimina.backends.cuda.device import CudaDevice

MIN_COPY_CELLS = 1 << 16
"""Least number of cells of a table for this copy; for smaller ones, the array library's copy is as fast."""
MIN_ROW_CELLS = 64
MAX_GRID = (64, 65535)


class CellRows(NamedTuple):
    """A table as rows of adjacent cells.

    Attributes:
        rows: Number of rows.
        columns: Cells of a row.
        pitch: Cells from a row's beginning to the next one's.
    """

    rows: int
    columns: int
    pitch: int


def cell_rows(sizes: Sequence[int], strides: Sequence[int]) -> CellRows | None:
    """Return the longest rows that a table's strides (in cells) allow; None if the distances between rows differ."""
    columns, axis = 1, len(sizes)
    while axis > 0 and (strides[axis - 1] == columns or sizes[axis - 1] == 1):
        axis -= 1
        columns *= sizes[axis]
    rows, pitch = 1, columns
    for size, stride in zip(reversed(sizes[:axis]), reversed(strides[:axis]), strict=True):
        if size == 1:
            continue
        if rows == 1:
            pitch = stride
        if stride != pitch * rows:
            return None
        rows *= size
    return CellRows(rows, columns, pitch)


def copy_array(
    backend: CudaDevice, source_array: Any, target_array: Any, limit: float | None = None, forbidden: float = 0
) -> bool:
    """Copy an array on the device to another one of its shape, in the current stream.

    Args:
        backend: Backend of the device.
        source_array: Cells of the array to copy.
        target_array: Destination, possibly of another dtype.
        limit: Cells with at least this value become ``forbidden``; None: all cells are copied unchanged.
        forbidden: Value of ``target_array``'s dtype for cells of at least ``limit``.

    Returns:
        True if the array was copied; False if no kernel suits the arrays' size, strides or dtypes.
    """
    ends = [
        cell_rows(array.shape, [stride // array.itemsize for stride in array.strides]) if array.ndim else None
        for array in (source_array, target_array)
    ]
    source, target = ends
    has_kernel = all(array.dtype.name in kernels.CELL_TYPES for array in (source_array, target_array))
    if source_array.size < MIN_COPY_CELLS or source is None or target is None or not has_kernel:
        return False
    # An array without gaps can be cut into rows of any length, so its rows get the length of the other array's.
    if source.rows == 1:
        source = CellRows(target.rows, target.columns, target.columns)
    elif target.rows == 1:
        target = CellRows(source.rows, source.columns, source.columns)
    if source[:2] != target[:2] or source.columns < MIN_ROW_CELLS:
        return False
    kernel = backend.function(kernels.place_kernel(source_array.dtype, target_array.dtype, limit is not None))
    threads = kernels.THREADS
    blocks = min(-(-source.columns // threads), MAX_GRID[0]), min(source.rows, MAX_GRID[1])
    ends_of_copy = source_array, np.int64(source.pitch), target_array, np.int64(target.pitch), np.int64(source.rows)
    bound = source_array.dtype.type(limit or 0), target_array.dtype.type(forbidden)
    kernel(blocks, (threads,), (*ends_of_copy, np.int64(source.columns), *bound))
    return True


@functools.cache
def forbidding_copy(cupy: Any) -> Any:
    """Return a kernel that copies a table, possibly to another dtype, and changes the value of forbidden cells."""
    body = "y = x < limit ? static_cast<U>(x) : forbidden"
    return cupy.ElementwiseKernel("T x, T limit, U forbidden", "U y", body, "forbid")
