"""A step of a plan: the tables of a bucket, the variables that it eliminates, and its message."""

from __future__ import annotations

import math
from typing import NamedTuple

JOIN, LEVEL = -1, -2
"""Instead of an eliminated variable: the step joins tables, or levels mini-buckets."""


class Operand(NamedTuple):
    """A table that a step reads.

    Attributes:
        factor: Index of the prepared factor, or -1 if the table is a message.
        source: Index of the step that wrote the message, or -1 if the table is a factor.
        offset: Start in the arena, in elements.
        domain_stride: Elements between two values of the eliminated variable (0 if there is none).
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
    """One fused aggregation and elimination; or a join, or a moment matching of mini-buckets, with ``domain`` 1.

    The output's axes come in the order slow, middle, fast (see ``include/elimina/program.hpp``); operands in the order
    lhs, rhs, streamed. Those of a moment-matching step are the marginals of all mini-buckets.

    Attributes:
        variable: The eliminated variable, ``JOIN`` or ``LEVEL``; of several ones, the first.
        domain: Number of its values, or of the combinations of all.
        axes: Variables of the output.
        sizes: Their numbers of values.
        out_strides: Elements between two values of each axis in the output.
        outer: Number of slow axes.
        mid: Number of middle axes.
        operands: Tables that the step reads.
        tables_a: Number of tables without a fast axis (lhs); of a moment-matching step, the number of its mini-bucket.
        tables_b: Number of the next tables, which have no middle axis (rhs).
        out_offset: Start of the output in the arena, in elements.
        out_span: Elements that the output takes there, padding included.
        readers: The steps that read the output, in order; none if it is part of the answer.
        weight: Weight of a step in ``log-sum-exp`` (``include/elimina/semiring.hpp``); of a moment-matching step there,
            the share of the marginals' sum that its mini-bucket gets. Unused in other semirings.
        others: Further variables that the step eliminates, and their numbers of values.
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
    readers: tuple[int, ...]
    weight: float = 1.0
    others: tuple[tuple[int, int], ...] = ()

    @property
    def out_cells(self) -> int:
        """Cells of the output."""
        return math.prod(self.sizes)

    @property
    def work(self) -> int:
        """Combinations of an output cell and a value of the eliminated variable."""
        return self.domain * self.out_cells


class FactorLayout(NamedTuple):
    """Place in the arena of a group of factors, joined to one table.

    Attributes:
        members: Indices into the prepared tables.
        scope: Variables, earliest eliminated first.
        sizes: Their numbers of values.
        strides: Elements between two values of each, where its cells are written out.
        offset: Start in the arena, in elements.
        span: Elements that the table takes, padding included.
        tuples: Most tuples that it allows, if these are listed there (``running.encoding``); None: its cells are
            written out.
    """

    members: tuple[int, ...]
    scope: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    span: int
    tuples: int | None = None

    @property
    def cells(self) -> int:
        """Number of assignments of the scope."""
        return math.prod(self.sizes)


class Output(NamedTuple):
    """A part of the answer.

    Attributes:
        step: The step that writes it.
        scope: The variables whose unnormalised marginal it is, in the order of its axes; none: a factor of the answer.
    """

    step: int
    scope: tuple[int, ...]
