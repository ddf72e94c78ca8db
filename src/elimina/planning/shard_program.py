"""Division of a plan among GPUs as data: phases, ranges of values, and exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from elimina.number_texts import bytes_text, counted
from elimina.planning.plan import Form, Plan
from elimina.planning.step import FactorLayout


class Range(NamedTuple):
    """A variable whose values are divided into ranges: GPU ``k`` has range ``k // stride % ranges``."""

    variable: int
    ranges: int
    stride: int

    def length(self, size: int) -> int:
        """Return the length of each range; the last ranges wrap around to the first values."""
        return -(-size // self.ranges)


Division = tuple[Range, ...]
"""Ranges of the variables whose values divide a table; empty: each GPU has the whole table."""


class GpuTable(NamedTuple):
    """A table in the arenas of all GPUs.

    Attributes:
        axes: Variables of the table.
        sizes: Number of values of each variable.
        division: Division of the cells among the GPUs.
        offset: Start in each GPU's arena, in elements.
        strides: Stride of each variable, in elements.
        span: Number of elements of the table in the arena.
    """

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    division: Division
    offset: int
    strides: tuple[int, ...]
    span: int

    @property
    def lengths(self) -> tuple[int, ...]:
        """Number of values of each variable on a GPU."""
        return lengths_of(self.axes, self.sizes, self.division)


class Exchange(NamedTuple):
    """A change of a table's division: each GPU copies its part from the GPUs that have it."""

    source: GpuTable
    target: GpuTable


class Box(NamedTuple):
    """A part of a copy that comes from a single GPU.

    Attributes:
        gpu: Number of the GPU that has the cells.
        source: The cells in that GPU's arena.
        target: The cells in the arena of the GPU that copies them.
    """

    gpu: int
    source: FactorLayout
    target: FactorLayout


class Phase(NamedTuple):
    """Steps that all GPUs run without waiting for each other.

    Attributes:
        copies: Copies before these steps; they begin when all GPUs have finished the previous phase.
        first: Number of the first step.
        end: Number of the step after the last one.
        joined: True if later steps scale by the range of the last step's output. Each GPU only has the range of its
            part, so the GPUs combine these ranges.
    """

    copies: tuple[Exchange, ...]
    first: int
    end: int
    joined: bool


class Shards(Form):
    """A plan divided among GPUs; steps and bytes are those of each GPU.

    Attributes:
        gpus: Number of GPUs that compute each step together.
        phases: Phases in their order.
        copied: Steps whose outputs are copied.
        divided: Divided steps.
        moved: Number of elements copied between GPUs.
    """

    gpus: int
    phases: tuple[Phase, ...]
    copied: tuple[int, ...]
    divided: tuple[int, ...]
    moved: int

    def program_fields(self) -> dict[str, Any]:
        """Return the division."""
        return {"shards": self}

    def rows(self, plan: Plan) -> list[tuple[str, str]]:
        """Return the number of GPUs, the number of divided steps, and the bytes between GPUs."""
        moved = bytes_text(self.moved * plan.itemsize)
        return [("GPUs", f"{self.gpus}; {counted(len(self.divided), 'step')} divided, {moved} between GPUs")]

    def figures(self) -> dict[str, Any]:
        """Return the number of GPUs."""
        return {"gpus": self.gpus}

    def statistics(self, plan: Plan) -> dict[str, Any]:
        """Return the number of GPUs, and the bytes between them."""
        return {"gpus": self.gpus, "bytes_between_gpus": self.moved * plan.itemsize}


def cells(table: GpuTable, first: Sequence[int], lengths: Sequence[int]) -> FactorLayout:
    """Return the layout of a box of a table's cells on a GPU."""
    offset = table.offset + sum(at * stride for at, stride in zip(first, table.strides, strict=True))
    return FactorLayout((), table.axes, tuple(lengths), table.strides, offset, table.span)


def lengths_of(axes: Sequence[int], sizes: Sequence[int], division: Division) -> tuple[int, ...]:
    """Return the number of values of each variable of a divided table on a GPU."""
    range_of = {range_.variable: range_ for range_ in division}
    return tuple(range_of[v].length(size) if v in range_of else size for v, size in zip(axes, sizes, strict=True))
