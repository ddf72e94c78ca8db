"""A step's packed record, as ``include/elimina/program.hpp`` lays it out, and which records are matrix products."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from elimina.planning.plan import Step
    from elimina.planning.program import Program
    from elimina.planning.steps import Steps


(
    WORDS,
    DOMAIN,
    VARIABLE,
    AXES,
    OUTER_AXES,
    MID_AXES,
    OUTER_CELLS,
    MID_CELLS,
    LO_CELLS,
    TABLES,
    TABLES_A,
    TABLES_B,
    OUT,
    WEIGHT,
    HEADER,
) = range(15)

AXIS_SIZE, AXIS_STRIDE, AXIS_VARIABLE, AXIS_WORDS = range(4)
"""Words of an output's axis, and their number."""

TABLE_OFFSET, TABLE_DOMAIN_STRIDE, TABLE_SOURCE, TABLE_STRIDES = range(4)
"""Words of a table that is read; its strides along the output's axes follow."""

OTHER_WORDS = 2
"""Words of a further variable that a step eliminates, behind its tables: the variable, and its number of values."""

MAX_OPERANDS = 16
"""Tables that one step reads at most."""


def record_of(step: Step) -> list[int]:
    """Return the record of a step."""
    lo = step.outer + step.mid
    words = [
        0,
        step.domain,
        step.variable,
        len(step.axes),
        step.outer,
        step.mid,
        math.prod(step.sizes[: step.outer]),
        math.prod(step.sizes[step.outer : lo]),
        math.prod(step.sizes[lo:]),
        len(step.operands),
        step.tables_a,
        step.tables_b,
        step.out_offset,
        *struct.unpack("q", struct.pack("d", step.weight)),
    ]
    for axis in zip(step.sizes, step.out_strides, step.axes, strict=True):
        words.extend(axis)
    for operand in step.operands:
        words += [operand.offset, operand.domain_stride, operand.source, *operand.strides]
    words += itertools.chain.from_iterable(step.others)
    words[WORDS] = len(words)
    return words


def tables(record: list[int]) -> list[list[int]]:
    """Return the offset, domain stride, source and strides of each table that a record reads."""
    size, at = TABLE_STRIDES + record[AXES], HEADER + AXIS_WORDS * record[AXES]
    return [record[at + n * size : at + (n + 1) * size] for n in range(record[TABLES])]


def ragged(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return starts[i], starts[i] + 1, ... starts[i] + counts[i] - 1 for each i, one after another."""
    ends = np.cumsum(counts)
    numbers: NDArray[np.int64] = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return numbers


def spans(words: NDArray[np.int64], starts: NDArray[np.int64], axes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the elements from each output's first cell to its last, of records at these places."""
    at = np.repeat(starts + HEADER, axes) + AXIS_WORDS * ragged(np.zeros_like(axes), axes)
    elements = np.ones(len(starts), dtype=np.int64)
    np.add.at(elements, np.repeat(np.arange(len(starts)), axes), (words[at] - 1) * words[at + 1])
    return elements


DEPTH, SIDE, WORK = 4, 8, 1 << 16
"""Values of the eliminated variable, rows or columns, and combinations from which a step is a matrix product."""

LIBRARY_DEPTH, LIBRARY_SIDE, LIBRARY_WORK = 48, 32, 1 << 20
"""The same for a device's library, which writes the output before its range is read again."""


class Product(NamedTuple):
    """Shape of a matrix product: ``batch`` times ``rows`` x ``columns`` x ``depth``."""

    batch: int
    rows: int
    columns: int
    depth: int

    @property
    def work(self) -> int:
        """Products that are summed."""
        return self.batch * self.rows * self.columns * self.depth

    def __str__(self) -> str:
        text = f"{self.rows} x {self.columns} x {self.depth}"
        return text if self.batch == 1 else f"{text}, batch {self.batch}"


def product_of(step: Step) -> Product | None:
    """Return the shape of a ``sum-product`` step as a matrix product; None if it is not one."""
    if (len(step.operands), step.tables_a, step.tables_b) != (2, 1, 1) or step.domain < DEPTH:
        return None
    lhs, rhs = step.operands
    lo = step.outer + step.mid
    columns = math.prod(step.sizes[lo:])
    is_row = [stride == 0 for stride in rhs.strides[:lo]]
    rows = math.prod(size for size, row in zip(step.sizes, is_row, strict=False) if row)
    if not lhs.domain_stride or not rhs.domain_stride or min(rows, columns) < SIDE or step.work < WORK:
        return None
    return Product(step.out_cells // (rows * columns), rows, columns, step.domain)


def product_rows(steps: Iterable[Step]) -> list[tuple[str, str]]:
    """Return the row of a plan's text on steps in ``sum-product`` that are matrix products, and the largest."""
    found = [product for product in map(product_of, steps) if product is not None]
    if not found:
        return []
    number = f"{len(found)} steps, the largest " if len(found) > 1 else "1 step, "
    return [("matrix products", number + str(max(found, key=lambda product: product.work)))]


def fused_rows(steps: Iterable[Step]) -> list[tuple[str, str]]:
    """Return the row of a plan's text on steps that eliminate several variables."""
    numbers = [1 + len(step.others) for step in steps if step.others]
    return [("variables per step", f"{max(numbers)} at most, {len(numbers)} steps")] if numbers else []


def library_steps(steps: Steps | Program) -> NDArray[np.bool_]:
    """Return the steps that a device's library may make: those that are large enough, and perhaps a few more."""
    words, starts = steps.words, steps.starts
    depth = words[starts + DOMAIN]
    if depth.max(initial=0) < LIBRARY_DEPTH:
        return np.zeros(len(starts), dtype=bool)
    cells = words[starts + OUTER_CELLS].astype(np.int64) * words[starts + MID_CELLS] * words[starts + LO_CELLS]
    sides = (words[starts + TABLES] == 2) & (words[starts + TABLES_A] == 1) & (words[starts + TABLES_B] == 1)
    found: NDArray[np.bool_] = sides & (depth >= LIBRARY_DEPTH) & (cells * depth >= LIBRARY_WORK)
    return found
