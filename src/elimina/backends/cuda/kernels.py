"""The kernels: their instantiations and name expressions."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from elimina.problem.semirings import SEMIRINGS

THREADS = 256
"""Threads of a block in all kernels except the product and faces kernels."""
FOREST_BLOCKS = 2
"""Blocks of ``forest.cu`` that a multiprocessor runs at a time."""
PRODUCT_THREADS = 128
"""Threads of a block of the product kernel."""
DECODING_THREADS = 64
"""Threads of a block of the kernel that decodes the tables of buckets."""

CELL_TYPES = {"int16": "i16", "int32": "i32", "int64": "i64", "uint64": "u64", "float32": "float", "float64": "double"}

RING_UNITS = 3
"""Units of streamed values that a thread loads ahead, if there is room."""

MAX_OUTERS = 4
"""Largest number of slow cells of a block with common streamed values."""

FACES = {
    2: ((2, 4, 4, 8, 512, 1),),
    4: ((4, 4, 5, 10, 384, 1),),
    8: ((4, 4, 5, 4, 512, 1),),
}
"""Bytes of a cell -> forms of the faces kernel: outers, rows, items, depth, threads and blocks of each."""


class TileKernel(NamedTuple):
    """One instantiation of the tile kernel (``kernels/tile.cu``).

    Attributes:
        name: The template's name expression.
        rows: Middle cells that a thread owns at a time.
        cells: Fast cells that a thread owns.
        lane_bytes: Bytes of a register that holds cells.
        streamed: Number of streamed tables; -1 for any number.
        dense: True if fast cells are read in 16-byte words.
        aligned: True if rows of fast cells are known to start at 16-byte addresses.
        whole: True if all values of the eliminated variable are in shared memory at once.
        blocks: Blocks that are to fit a multiprocessor together.
        ring: Bytes of shared memory for streamed values that are loaded ahead.
        outers: Largest number of slow cells of a block.
    """

    name: str
    rows: int
    cells: int
    lane_bytes: int
    streamed: int
    dense: bool
    aligned: bool
    whole: bool
    blocks: int
    ring: int
    outers: int


class ProductForm(NamedTuple):
    """A form of the product kernel: rows and vectors of cells of a thread, and number of blocks on a multiprocessor.

    Steps differ in whether all values of the eliminated variable are in shared memory at once. ``whole`` is True if the
    form is only for steps where they are: other steps would need more registers than the form leaves them. It is False
    if the form is only for the other steps. It is None if the form is for all steps.
    """

    rows: int
    vectors: int
    blocks: int
    whole: bool | None = None


class ProductKernel(NamedTuple):
    """One instantiation of the product kernel (``kernels/product.cu``).

    Attributes:
        name: The template's name expression.
        rows: Middle cells that a thread owns.
        cells: Fast cells that a thread owns.
        lane_bytes: Bytes of a register that holds cells.
        word: Bytes of the words that tables are read in; 0: cell by cell.
        vectors: Number of 16-byte vectors that the fast cells fill.
        blocks: Blocks that are to fit a multiprocessor together.
    """

    name: str
    rows: int
    cells: int
    lane_bytes: int
    word: int
    vectors: int
    blocks: int


class FacesKernel(NamedTuple):
    """One instantiation of the kernel for steps whose tables are faces of a box of cells (``kernels/faces.cu``).

    Attributes:
        name: The template's name expression.
        outers, rows, cells: Slow, middle and fast cells that a thread computes.
        lane_bytes: Bytes of a register that holds cells.
        items: Largest number of cells of the faces that a thread loads.
        depth: Values of the eliminated variable that it loads at a time.
        threads: Largest number of threads of a block.
        blocks: Blocks that are to fit a multiprocessor together.
    """

    name: str
    outers: int
    rows: int
    cells: int
    lane_bytes: int
    items: int
    depth: int
    threads: int
    blocks: int


class MatchingKernel(NamedTuple):
    """One instantiation of the kernel for large moment-matching steps (``kernels/matching.cu``).

    Attributes:
        name: The template's name expression.
        lanes: Cells that a thread takes at a time.
    """

    name: str
    lanes: int


def semiring_type(semiring: str, dtype: np.dtype[np.generic]) -> str:
    """Return the C++ type of a semiring."""
    return f"elimina::{SEMIRINGS[semiring].class_name}<elimina::{CELL_TYPES[dtype.name]}>".replace(
        "elimina::float", "float"
    ).replace("elimina::double", "double")


def policy_type(semiring: str, dtype: np.dtype[np.generic]) -> str:
    """Return the C++ type that says how cells lie in registers: in pairs if two fit, or one by one."""
    return f"elimina::{'Pairs' if dtype == np.int16 else 'Single'}<{semiring_type(semiring, dtype)}>"


def product_forms(semiring: str, dtype: np.dtype[np.generic]) -> tuple[ProductForm, ...]:
    """Return the forms of the product kernel for a semiring and a dtype, the largest first."""
    if SEMIRINGS[semiring].is_weighted:
        return (ProductForm(4, 1, 4),)
    # Some forms are for domains of 100 values, which do not divide well into powers of two.
    if dtype.itemsize == 8:
        sliced = ProductForm(4, 4, 3, whole=False)
        return ProductForm(8, 2, 4, whole=True), sliced, ProductForm(10, 1, 4), ProductForm(4, 2, 4)
    hundred = (ProductForm(16, 1, 3), ProductForm(12, 1, 4)) if dtype == np.int16 else (ProductForm(20, 1, 3),)
    return ProductForm(8, 2, 3), *hundred, ProductForm(8, 1, 5, whole=True), ProductForm(4, 1, 8, whole=True)


@functools.cache
def product_kernel(semiring: str, dtype: np.dtype[np.generic], word: int, whole: bool, form: int) -> ProductKernel:
    """Return the instantiation that reads words of ``word`` bytes (0: any cells), in one of ``product_forms``.

    ``whole``: all values of the eliminated variable are in shared memory at once.
    """
    rows, vectors, blocks, _ = product_forms(semiring, dtype)[form]
    flag = str(whole).lower()
    name = f"elimina::product<{policy_type(semiring, dtype)}, {word}, {flag}, {rows}, {vectors}, {blocks}>"
    cells = vectors * 16 // dtype.itemsize
    return ProductKernel(name, rows, cells, max(4, dtype.itemsize), word, vectors, blocks)


@functools.cache
def faces_kernels(semiring: str, dtype: np.dtype[np.generic]) -> tuple[FacesKernel, ...]:
    """Return the instantiations of the faces kernel for a semiring and a dtype."""
    return tuple(faces_kernel(semiring, dtype, *form) for form in FACES[dtype.itemsize])


def faces_kernel(
    semiring: str,
    dtype: np.dtype[np.generic],
    outers: int,
    rows: int,
    items: int,
    depth: int,
    threads: int,
    blocks: int,
) -> FacesKernel:
    """Return the faces kernel with these parameters."""
    numbers = outers, rows, items, depth, threads, blocks
    name = f"elimina::faces<{policy_type(semiring, dtype)}, {', '.join(map(str, numbers))}>"
    return FacesKernel(name, outers, rows, 16 // dtype.itemsize, max(4, dtype.itemsize), items, depth, threads, blocks)


@functools.cache
def tile_kernel(
    semiring: str,
    dtype: np.dtype[np.generic],
    streamed: int,
    dense: bool,
    aligned: bool = True,
    whole: bool = True,
    units: int = RING_UNITS,
    outers: int = 1,
) -> TileKernel:
    """Return the instantiation for a number of streamed tables (-1: more than two) and a way of reading them.

    ``aligned``: dense rows start at 16-byte addresses. ``whole``: all values of the eliminated variable are in shared
    memory at once. ``units``: units of dense rows that a thread loads ahead. ``outers``: largest number of slow cells
    of a block; they have the same streamed values, and more than one needs aligned rows.
    """
    pairs = dtype == np.int16 and dense
    policy = policy_type(semiring, dtype)
    if dtype == np.int16 and not dense:
        policy = f"elimina::Single<{semiring_type(semiring, np.dtype(np.int32))}, elimina::i16>"
    lane = max(4, dtype.itemsize)
    lanes, blocks, ring = 16 // lane, 2, 0
    if streamed < 0:
        rows, depth = 2, 1
    elif dense:
        rows, depth = (4 if aligned and outers == 1 else 2) // streamed, units + (not aligned)
        ring = rows * streamed * depth * (1 if aligned else 2) * 16 * THREADS
    else:
        rows, depth = 4, max(1, 2 // streamed)
    flags = ", ".join(str(flag).lower() for flag in (dense, aligned, whole))
    name = f"elimina::tile<{policy}, {streamed}, {flags}, {rows}, {lanes}, {depth}, {blocks}, {outers}>"
    return TileKernel(
        name, rows, lanes * (2 if pairs else 1), lane, streamed, dense, aligned and dense, whole, blocks, ring, outers
    )


def forest_kernel(semiring: str, dtype: np.dtype[np.generic], tree: bool, levels: bool = False) -> str:
    """Return the name expression of the kernel for small steps.

    ``tree``: each step has at most one chunk and one reader. ``levels``: some are moment-matching steps.
    """
    return f"elimina::forest<{semiring_type(semiring, dtype)}, {str(tree).lower()}, {str(levels).lower()}>"


def matching_kernel(semiring: str, dtype: np.dtype[np.generic], tables: int, words: bool) -> MatchingKernel:
    """Return the kernel for a large moment-matching step; ``words``: True if rows are read in words of 16 bytes."""
    lanes = 16 // dtype.itemsize if words else 1
    return MatchingKernel(f"elimina::matching<{semiring_type(semiring, dtype)}, {tables}, {lanes}>", lanes)


def scale_kernel(semiring: str, dtype: np.dtype[np.generic]) -> str:
    """Return the name expression of the kernel that writes the factor of a matrix product."""
    return f"elimina::product_scale<{semiring_type(semiring, dtype)}>"


def range_kernel(semiring: str, dtype: np.dtype[np.generic]) -> str:
    """Return the name expression of the kernel for the range of the cells of a matrix product."""
    return f"elimina::cells_range<{semiring_type(semiring, dtype)}>"


def extremes_kernel(semiring: str, dtype: np.dtype[np.generic], cells: int) -> str:
    """Return the name expression of the kernel for an output's range; ``cells``: number of cells read at a time."""
    return f"elimina::extremes<{semiring_type(semiring, dtype)}, {cells}>"


def place_kernel(source: np.dtype[np.generic], target: np.dtype[np.generic], bounded: bool) -> str:
    """Return the name expression of the kernel that copies rows of cells; ``bounded``: some become forbidden."""
    types = ("elimina::" + CELL_TYPES[dtype.name] for dtype in (source, target))
    name = f"elimina::place<{', '.join(types)}, {str(bounded).lower()}>"
    return name.replace("elimina::float", "float").replace("elimina::double", "double")


def decode_kernel(semiring: str, dtype: np.dtype[np.generic]) -> str:
    """Return the name expression of the decoding kernel."""
    return f"elimina::decode<{semiring_type(semiring, dtype)}>"


def decode_buckets_kernel(dtype: np.dtype[np.generic]) -> str:
    """Return the name expression of the kernel that decodes assignments from the tables of buckets."""
    cells = CELL_TYPES[dtype.name]
    return f"elimina::decode_buckets<{cells if cells in ('float', 'double') else f'elimina::{cells}'}>"


DIVIDE = "elimina::divide"
"""Name expression of AllDifferent's kernel."""
