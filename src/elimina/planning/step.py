"""A step of a plan, with its tables, its eliminated variables, its output, and its packed record."""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

from elimina.planning.record import (
    AXES,
    AXIS_STRIDE,
    AXIS_VARIABLE,
    AXIS_WORDS,
    DOMAIN,
    HEADER,
    MID_AXES,
    OTHER_WORDS,
    OUT,
    OUTER_AXES,
    TABLE_STRIDES,
    TABLES_A,
    TABLES_B,
    VARIABLE,
    WEIGHT,
    WORDS,
)

JOIN, MATCHING = -1, -2
"""Values of ``Step.variable`` in steps without an eliminated variable: joins of tables, and moment matching."""


def _weight_word(weight: float) -> int:
    """Return the bits of a weight as a word."""
    word: int = struct.unpack("q", struct.pack("d", weight))[0]
    return word


_UNIT_WEIGHT = _weight_word(1.0)


class Operand(NamedTuple):
    """A table that a step reads.

    Attributes:
        factor: Index of the prepared factor, or -1 if the table is a message.
        source: Index of the step that wrote the message, or -1 if the table is a factor.
        offset: Start in the arena, in elements.
        domain_stride: Stride of the eliminated variable, in elements (0 if the table lacks it).
        strides: Stride of each axis of the step's output, in elements; 0 where the table lacks the axis.
        cells: Number of cells.
    """

    factor: int
    source: int
    offset: int
    domain_stride: int
    strides: tuple[int, ...]
    cells: int


class Step(NamedTuple):
    """A step that combines tables and eliminates variables in one pass.

    A step that only joins tables, or matches the moments of mini-buckets, has ``domain`` 1.

    The axes of the output are sorted into slow, middle and fast axes (see ``include/elimina/program.hpp``), and the
    operands into lhs, rhs and streamed tables. The operands of a moment-matching step are the marginals of all
    mini-buckets.

    Attributes:
        variable: The eliminated variable (the first one of several), or ``JOIN``, or ``MATCHING``.
        domain: Number of values of the eliminated variable, or of combinations of values of several.
        axes: Variables of the output.
        sizes: Number of values of each variable of the output.
        out_strides: Stride of each axis in the output, in elements.
        outer: Number of slow axes.
        mid: Number of middle axes.
        operands: Tables that the step reads.
        tables_a: Number of tables without a fast axis (lhs). In a moment-matching step: index of its mini-bucket.
        tables_b: Number of the following tables, which have no middle axis (rhs).
        out_offset: Start of the output in the arena, in elements.
        out_span: Number of elements of the output in the arena, including padding.
        readers: The steps that read the output, in order; empty if it is part of the answer.
        weight: Weight of a step in ``log-sum-exp`` (``include/elimina/semiring.hpp``); in a moment-matching step, the
            share of the marginals' sum that its mini-bucket gets. Not used in other semirings.
        others: Further variables that the step eliminates, with their numbers of values.
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

    @classmethod
    def of_record(cls, record: Sequence[int], span: int, readers: tuple[int, ...], factors: Sequence[int]) -> Step:
        """Return the step of a packed record.

        Args:
            record: Words of the record.
            span: Number of elements of the output.
            readers: The steps that read the output.
            factors: Factor of each table that the step reads; -1 for a message.
        """
        count, domain = record[AXES], record[DOMAIN]
        at = HEADER + AXIS_WORDS * count
        axes = record[HEADER:at]
        sizes = axes[::AXIS_WORDS]
        operands = []
        for factor in factors:
            offset, domain_stride, source = record[at : at + TABLE_STRIDES]
            strides = record[at + TABLE_STRIDES : at + TABLE_STRIDES + count]
            cells = math.prod(itertools.compress(sizes, strides)) * (domain if domain_stride else 1)
            operands.append(Operand(factor, source, offset, domain_stride, tuple(strides), cells))
            at += TABLE_STRIDES + count
        return cls(
            variable=record[VARIABLE],
            domain=domain,
            axes=tuple(axes[AXIS_VARIABLE::AXIS_WORDS]),
            sizes=tuple(sizes),
            out_strides=tuple(axes[AXIS_STRIDE::AXIS_WORDS]),
            outer=record[OUTER_AXES],
            mid=record[MID_AXES],
            operands=tuple(operands),
            tables_a=record[TABLES_A],
            tables_b=record[TABLES_B],
            out_offset=record[OUT],
            out_span=span,
            readers=readers,
            weight=1.0 if record[WEIGHT] == _UNIT_WEIGHT else struct.unpack("d", struct.pack("q", record[WEIGHT]))[0],
            others=tuple(zip(record[at::OTHER_WORDS], record[at + 1 :: OTHER_WORDS], strict=True)),
        )

    def record(self) -> list[int]:
        """Return the words of the packed record."""
        lo = self.outer + self.mid
        words = [
            0,
            self.domain,
            self.variable,
            len(self.axes),
            self.outer,
            self.mid,
            math.prod(self.sizes[: self.outer]),
            math.prod(self.sizes[self.outer : lo]),
            math.prod(self.sizes[lo:]),
            len(self.operands),
            self.tables_a,
            self.tables_b,
            self.out_offset,
            _weight_word(self.weight),
        ]
        for axis in zip(self.sizes, self.out_strides, self.axes, strict=True):
            words.extend(axis)
        for operand in self.operands:
            words += [operand.offset, operand.domain_stride, operand.source, *operand.strides]
        words += itertools.chain.from_iterable(self.others)
        words[WORDS] = len(words)
        return words

    @property
    def out_cells(self) -> int:
        """Number of cells of the output."""
        return math.prod(self.sizes)

    @property
    def work(self) -> int:
        """Number of combinations of an output cell and a value of the eliminated variable."""
        return self.domain * self.out_cells


class FactorLayout(NamedTuple):
    """Position in the arena of a group of factors that are joined to one table.

    Attributes:
        members: Indices into the prepared tables.
        scope: Variables in elimination order.
        sizes: Number of values of each variable.
        strides: Stride of each variable in elements, if all cells are stored.
        offset: Start in the arena, in elements.
        span: Number of elements of the table, including padding.
        tuples: Upper bound on the number of allowed tuples, if the table is a list of tuples (``running.encoding``);
            None: all cells are stored.
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
        scope: Variables of the unnormalised marginal, in the order of the axes; empty: the output is a factor of the
            answer.
    """

    step: int
    scope: tuple[int, ...]
