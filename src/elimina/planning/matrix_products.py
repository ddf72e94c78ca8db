"""Steps that are matrix products."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from elimina.planning.step import Step

DEPTH, SIDE, WORK = 4, 8, 1 << 16
"""A step runs as a matrix product only if it has at least these numbers of values of the eliminated variable, of rows
and of columns, and of combinations."""

LIBRARY_DEPTH, LIBRARY_SIDE, LIBRARY_WORK = 48, 32, 1 << 20
"""The same limits for products by a device's library, which needs an additional pass for the range of the output."""


class Product(NamedTuple):
    """Shape of a matrix product: ``batch`` times ``rows`` x ``columns`` x ``depth``."""

    batch: int
    rows: int
    columns: int
    depth: int

    @property
    def work(self) -> int:
        """Number of products to sum."""
        return self.batch * self.rows * self.columns * self.depth

    def __str__(self) -> str:
        text = f"{self.rows} x {self.columns} x {self.depth}"
        return text if self.batch == 1 else f"{text}, batch {self.batch}"


def product_of(step: Step) -> Product | None:
    """Return the shape of a ``sum-product`` step as a matrix product; None if it has another form, or is too small."""
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
