"""A plan: what will be computed, in which order, from where to where; plain data, made before any memory is touched."""

from __future__ import annotations

import math
from typing import NamedTuple


class Operand(NamedTuple):
    """A table that a step reads.

    Attributes:
        factor: Index of the prepared factor, or -1 if the table is a message.
        source: Index of the step that wrote the message, or -1 if the table is a factor.
        offset: Where it starts in the arena, in elements.
        domain_stride: Elements between two values of the eliminated variable (0 for a join).
        strides: Elements between two values of each axis of the step's output; 0 where the table lacks the axis.
        cells: Number of cells.
    """

    factor: int
    source: int
    offset: int
    domain_stride: int
    strides: tuple[int, ...]
    cells: int


class Step(NamedTuple):
    """One fused aggregation and elimination (or, with ``variable`` -1 and ``domain`` 1, a join of tables).

    The output's axes come in the order outer, mid, lo (see ``include/elimina/program.hpp``); operands in the order A, B, streamed.

    Attributes:
        variable: The eliminated variable.
        domain: Its number of values.
        axes: The output's variables.
        sizes: Their numbers of values.
        out_strides: Elements between two values of each axis in the output.
        outer: Number of outer axes.
        mid: Number of mid axes.
        operands: The tables read.
        tables_a: How many of them have no lo axis.
        tables_b: How many of the next ones have no mid axis.
        out_offset: Where the output starts in the arena, in elements.
        out_span: Elements that the output takes there, padding included.
        parent: Index of the step that reads the output; -1 if the output is one cell and a factor of the answer.
    """

    variable: int
    domain: int
    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    out_strides: tuple[int, ...]
    outer: int
    mid: int
    operands: tuple[Operand, ...]
    tables_a: int
    tables_b: int
    out_offset: int
    out_span: int
    parent: int

    @property
    def out_cells(self) -> int:
        """Cells of the output."""
        return math.prod(self.sizes)

    @property
    def work(self) -> int:
        """Combinations of an output cell and a value of the eliminated variable."""
        return self.domain * self.out_cells
