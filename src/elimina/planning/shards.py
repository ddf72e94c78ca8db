"""Choice of the division of one plan among GPUs that can read each other's memory.

All GPUs run the same steps, but for different values of a few variables. If a step reads parts of a message that its
GPU does not have, they are copied from the other GPUs.
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Sequence

import numpy as np

from elimina.planning.machine import GPU_COPY_SECONDS, GPU_JOIN_SECONDS, GPU_LINK, GPU_RUN_BYTES, Machine
from elimina.planning.packed_steps import Steps
from elimina.planning.plan import MAX_BYTES, Plan
from elimina.planning.shard_copies import boxes
from elimina.planning.shard_program import Division, Exchange, GpuTable, Phase, Range, Shards, lengths_of
from elimina.planning.step import Operand, Step
from elimina.problem.semirings import SEMIRINGS

DIVIDED_SECONDS = 1e-3
"""Least estimated seconds of a step that is divided: shorter steps take less time than waiting for other GPUs."""

_VARIABLES = 4
"""Largest number of variables that divide a table: enough for 16 GPUs with two values each."""

_DIVISIONS = 12
"""Number of divisions to compare for a table; they use the variables eliminated last, because these stay longest."""

_ROW_CELLS, _LONG_ROW_CELLS = 64, 1024
_VECTOR_BYTES, _LINE_BYTES, _TABLE_BYTES = 16, 64, 256
"""Least numbers of cells of a row for padding to whole vectors and to whole cache lines; bytes of a vector, of a line,
and of the alignment of tables. They are equal to those of ``core/plan``."""

_SIZES = 6
"""Significant bits of a table's number of elements after rounding up, which adds at most 3 %."""

_LARGE_OUTPUT_SHARE = 0.125
"""Share of a GPU's memory above which an output is divided even if this takes longer."""


def make_shards(plan: Plan, machine: Machine, gpus: int, memory: int) -> Plan | None:
    """Divide a plan among GPUs.

    The result is None if the plan's form does not allow it, no step is long enough, or the variables that a step
    eliminates would have several strides in a divided table.

    Args:
        plan: Dense plan without slices; it may exceed the memory.
        machine: Cost model of one of the GPUs.
        gpus: Number of GPUs.
        memory: Memory limit on each GPU, in bytes.
    """
    is_exact = plan.is_plain and plan.minibuckets is None
    if not is_exact or not plan.is_recorded or plan.keep or plan.kept or plan.peak_bytes > MAX_BYTES:
        return None
    steps = tuple(plan.steps)
    if any(len(step.readers) > 1 for step in steps):
        return None
    divisions, seconds = _DivisionSearch(plan, steps, machine, gpus, memory).best()
    if not any(divisions):
        return None
    arguments = plan, steps, divisions, gpus
    first = _Builder(*arguments, None)
    if not first.is_regular:
        return None
    placed = first.memory.placements(plan.factor_cells, _TABLE_BYTES // plan.itemsize)
    return _Builder(*arguments, placed[0]).plan(machine, memory, seconds, placed[1])


_Costs = dict[Division, tuple[float, list[tuple[int, Division]]]]
"""Division of a step's output -> seconds of the step and all steps below it, and divisions of the messages it reads."""


class _DivisionSearch:
    """Search for the fastest division of all steps, by dynamic programming from the leaves to the roots."""

    def __init__(self, plan: Plan, steps: Sequence[Step], machine: Machine, gpus: int, memory: int) -> None:
        self._plan, self._steps, self._machine, self._gpus = plan, steps, machine, gpus
        self._max_output_bytes = int(memory * _LARGE_OUTPUT_SHARE)
        self._item = plan.itemsize
        self._last = {v: position for position, v in enumerate(plan.order)}
        self._runs = list(map(_runs, steps))
        self._scaled = SEMIRINGS[plan.semiring].is_scaled

    def best(self) -> tuple[list[Division], float]:
        """Return the division of each step's output, and the seconds of all steps and copies."""
        costs: list[_Costs] = []
        for step in self._steps:
            step_costs: _Costs = {}
            for division in self._divisions(step):
                seconds, sources = self._step_seconds(step, division), []
                for operand in step.operands:
                    needed = _restricted(division, step, operand)
                    if operand.source < 0:
                        seconds += self._copy_seconds(operand.cells, (), needed) if needed else 0.0
                        continue
                    copy_seconds, division_before = self._least(operand.source, needed, costs[operand.source])
                    seconds += copy_seconds
                    sources.append((operand.source, division_before))
                step_costs[division] = seconds, sources
            costs.append(step_costs)
        chosen: list[Division] = [()] * len(costs)
        for number in reversed(range(len(costs))):
            for source, division in costs[number][chosen[number]][1]:
                chosen[source] = division
        return chosen, sum(costs[number][()][0] for number, step in enumerate(self._steps) if not step.readers)

    def _divisions(self, step: Step) -> list[Division]:
        """Return the divisions of a step's output that are compared."""
        divisions: list[Division] = [()]
        if not step.readers or self._machine.seconds((step,), self._item, 0) - self._machine.start < DIVIDED_SECONDS:
            return divisions
        sizes = dict(zip(step.axes, step.sizes, strict=True))
        latest = sorted((v for v in step.axes if sizes[v] > 1), key=self._last.__getitem__, reverse=True)
        for number in range(min(len(latest), _DIVISIONS)):
            chosen = (*latest[number::-1], *latest[number + 1 :])[:_VARIABLES]
            division, stride = [], 1
            for v, ranges in zip(chosen, _best_ranges(tuple(sizes[v] for v in chosen), self._gpus)[1], strict=False):
                division.append(Range(v, ranges, stride))
                stride *= ranges
            divisions.append(tuple(division))
        is_large = step.out_cells * self._item > self._max_output_bytes
        return list(dict.fromkeys(divisions[1:] if is_large and len(divisions) > 1 else divisions))

    def _step_seconds(self, step: Step, division: Division) -> float:
        """Return the seconds of a step on each GPU."""
        seconds = self._machine.seconds((_gpu_step(step, division),), self._item, 0) - self._machine.start
        return seconds + (GPU_JOIN_SECONDS if division and self._scaled else 0.0)

    def _least(self, number: int, needed: Division, costs: _Costs) -> tuple[float, Division]:
        """Return the least seconds for a message in the needed division, and the division in which it is computed."""
        source, runs = self._steps[number], self._runs[number]
        cells = math.prod(lengths_of(source.axes, source.sizes, needed))
        best, chosen = costs[needed][0] if needed in costs else math.inf, needed
        for division, (seconds, _) in costs.items():
            if seconds + GPU_COPY_SECONDS < best and division != needed:
                run = min(runs[range_.variable] // range_.ranges for range_ in (*division, *needed))
                seconds += self._copy_seconds(cells, division, needed, run * self._item)
                if seconds < best:
                    best, chosen = seconds, division
        return best, chosen

    def _copy_seconds(self, cells: int, division: Division, needed: Division, run: int = GPU_RUN_BYTES) -> float:
        """Return the seconds of a copy of cells on each GPU; ``run``: bytes of its contiguous runs."""
        remote = 1 - 1 / math.prod(range_.ranges for range_ in division if range_ not in needed)
        size = cells * self._item
        linked = remote * size / GPU_LINK * (1 + GPU_RUN_BYTES / max(1, run))
        return GPU_COPY_SECONDS + linked + 2 * size / self._machine.bandwidth


def _runs(step: Step) -> dict[int, int]:
    """Return, for each variable of an output, the cells of a contiguous run with all values of the variable."""
    runs, cells = {}, 1
    for _, v, size in sorted(zip(step.out_strides, step.axes, step.sizes, strict=True)):
        cells *= size
        runs[v] = cells
    return runs


@functools.cache
def _best_ranges(sizes: tuple[int, ...], gpus: int) -> tuple[float, tuple[int, ...]]:
    """Return the best ratio of a table's size to its largest part, and the number of ranges of each variable."""
    best: tuple[float, tuple[int, ...]] = 1.0, ()
    for ranges in range(2, min(gpus, sizes[0]) + 1) if sizes else ():
        quotient, further = _best_ranges(sizes[1:], gpus // ranges)
        candidate = quotient * sizes[0] / -(-sizes[0] // ranges), (ranges, *further)
        # Ties: the division with fewer variables is chosen.
        best = max(best, candidate, key=lambda pair: (round(pair[0], 9), -len(pair[1])))
    return best


def _restricted(division: Division, step: Step, operand: Operand) -> Division:
    """Return the division of an operand that a step needs if its output is divided by ``division``."""
    variables = {v for v, stride in zip(step.axes, operand.strides, strict=True) if stride}
    return tuple(range_ for range_ in division if range_.variable in variables)


def _gpu_step(step: Step, division: Division) -> Step:
    """Return each GPU's part of a step, with the offsets and strides of the whole plan."""
    sizes = lengths_of(step.axes, step.sizes, division)
    operands = (
        operand._replace(
            cells=math.prod(itertools.compress(sizes, operand.strides)) * (step.domain if operand.domain_stride else 1)
        )
        for operand in step.operands
    )
    return step._replace(sizes=sizes, operands=tuple(operands))


class _Builder:
    """Builder of the divided plan: positions of all parts, steps of each GPU, and copies between GPUs.

    ``offsets``: see ``_Memory``.
    """

    def __init__(
        self,
        plan: Plan,
        steps: Sequence[Step],
        divisions: Sequence[Division],
        gpus: int,
        offsets: Sequence[int] | None,
    ) -> None:
        self._plan, self._steps, self._divisions, self._gpus = plan, steps, divisions, gpus
        self._item = plan.itemsize
        self.memory, self.is_regular = _Memory(offsets), True
        # Parts of factors are never released, because each is small relative to the messages.
        self._factors = {
            (number, position): self._factor(operand, needed)
            for number, step in enumerate(steps)
            for position, operand in enumerate(step.operands)
            if operand.source < 0 and (needed := _restricted(divisions[number], step, operand))
        }
        self._messages: dict[int, GpuTable] = {}
        self._gpu_steps: list[Step] = []
        self._copied: list[int] = []
        self._copies = list(map(self._add, range(len(steps))))

    def plan(self, machine: Machine, memory: int, seconds: float, height: int) -> Plan:
        """Return the plan with the steps of each GPU.

        Args:
            machine: Cost model of one of the GPUs.
            memory: Memory limit on each GPU, in bytes.
            seconds: Estimated time of all steps and copies.
            height: Number of elements in each GPU's arena.
        """
        plan, scaled = self._plan, SEMIRINGS[self._plan.semiring].is_scaled
        phases: list[Phase] = []
        copies, first = list(self._factors.values()), 0
        for number, needed in enumerate(self._copies):
            if needed and number > first:
                phases.append(Phase(tuple(copies), first, number, joined=False))
                copies, first = [], number
            copies += needed
            if scaled and self._divisions[number]:
                phases.append(Phase(tuple(copies), first, number + 1, joined=True))
                copies, first = [], number + 1
        if first < len(self._steps):
            phases.append(Phase(tuple(copies), first, len(self._steps), joined=False))
        moved = sum(self._remote(copy) for phase in phases for copy in phase.copies)
        divided = tuple(number for number, division in enumerate(self._divisions) if division)
        return plan._replace(
            steps=Steps.packed(self._gpu_steps),
            arena_cells=height,
            memory_limit=memory,
            bytes=machine.tiers(height * self._item, plan.factor_cells * self._item),
            seconds=machine.start + height * self._item / machine.fresh + seconds,
            form=Shards(
                gpus=self._gpus, phases=tuple(phases), copied=tuple(self._copied), divided=divided, moved=moved
            ),
        )

    def _add(self, number: int) -> list[Exchange]:
        """Place a step's tables, and add each GPU's part of the step; return the copies of messages that it needs."""
        step, division = self._steps[number], self._divisions[number]
        tables: list[GpuTable | None] = []
        copies: list[Exchange] = []
        self.memory.advance()
        for position, operand in enumerate(step.operands):
            if operand.source < 0:
                copy = self._factors.get((number, position))
                tables.append(None if copy is None else copy.target)
                continue
            message = self._messages[operand.source]
            needed = _restricted(division, step, operand)
            if needed != message.division:
                copies.append(Exchange(message, self._placed(message.axes, message.sizes, needed, message.strides)))
                self._copied.append(operand.source)
                message = copies[-1].target
            tables.append(message)
        # Copies finish before the step writes, so the output may overwrite their sources.
        for copy in copies:
            self.memory.release(copy.source.offset)
        self.memory.advance()
        rows = step.outer + step.mid
        output = self._placed(step.axes, step.sizes, division, step.out_strides, rows)
        self._messages[number] = output
        gpu_step = _gpu_step(step, division)
        self.is_regular &= all(map(_has_one_stride, itertools.repeat(step), step.operands, tables))
        operands = tuple(map(_moved, itertools.repeat(step), gpu_step.operands, tables))
        self._gpu_steps.append(
            gpu_step._replace(
                out_strides=output.strides, out_offset=output.offset, out_span=output.span, operands=operands
            )
        )
        for table, operand in zip(tables, step.operands, strict=True):
            if operand.source >= 0 and table is not None:
                self.memory.release(table.offset)
        return copies

    def _factor(self, operand: Operand, needed: Division) -> Exchange:
        layout = self._plan.factors[operand.factor]
        whole = GpuTable(layout.scope, layout.sizes, (), layout.offset, layout.strides, layout.span)
        return Exchange(whole, self._placed(layout.scope, layout.sizes, needed, layout.strides))

    def _placed(
        self,
        axes: tuple[int, ...],
        sizes: tuple[int, ...],
        division: Division,
        strides: Sequence[int],
        rows: int | None = None,
    ) -> GpuTable:
        """Allocate a table, with the order of axes of the given strides.

        ``rows``: number of axes before the rows, which are padded to whole vectors; None: rows are padded if the given
        strides have a gap.
        """
        lengths, table_strides, cells = lengths_of(axes, sizes, division), [0] * len(axes), 1
        end = 1
        for stride, axis in sorted(zip(strides, range(len(axes)), strict=True), key=lambda pair: (pair[0], -pair[1])):
            if axis < rows if rows is not None else stride > end:
                unit = _LINE_BYTES if cells >= _LONG_ROW_CELLS else _VECTOR_BYTES if cells >= _ROW_CELLS else 0
                cells = _round_up(cells, max(1, unit // self._item))
            table_strides[axis] = cells
            cells *= lengths[axis]
            end = stride * sizes[axis]
        return GpuTable(axes, sizes, division, self.memory.allocate(cells), tuple(table_strides), cells)

    def _remote(self, copy: Exchange) -> int:
        """Return the number of elements that GPUs copy from other GPUs, in all."""
        return sum(
            box.target.cells for gpu in range(self._gpus) for box in boxes(copy, gpu, self._gpus) if box.gpu != gpu
        )


def _moved(step: Step, operand: Operand, table: GpuTable | None) -> Operand:
    """Return an operand with its position on a GPU; ``table`` None: with its position in the whole plan."""
    if table is None:
        return operand
    stride_of = dict(zip(table.axes, table.strides, strict=True))
    strides = (stride_of[v] if stride else 0 for v, stride in zip(step.axes, operand.strides, strict=True))
    last = step.others[-1][0] if step.others else step.variable
    domain_stride = stride_of[last] if operand.domain_stride else 0
    return operand._replace(offset=table.offset, domain_stride=domain_stride, strides=tuple(strides))


def _has_one_stride(step: Step, operand: Operand, table: GpuTable | None) -> bool:
    """Return whether a table has a single stride for the combinations of all variables that a step eliminates."""
    if table is None or not operand.domain_stride:
        return True
    stride_of, before = dict(zip(table.axes, table.strides, strict=True)), (step.variable, *(v for v, _ in step.others))
    return all(
        stride_of[v] == stride_of[next_variable] * size
        for v, (next_variable, size) in zip(before, step.others, strict=False)
    )


class _Memory:
    """Allocations in the memory of a GPU, in elements.

    Args:
        offsets: Start of each table, in the order of allocation; None: starts are not known yet, and are represented by
            the tables' numbers.
    """

    def __init__(self, offsets: Sequence[int] | None) -> None:
        self._offsets = offsets
        self._spans: list[int] = []
        self._first: list[int] = []
        self._last: list[int] = []
        self._now = 0

    def advance(self) -> None:
        """Advance the time: tables allocated later may reuse the memory of tables released earlier."""
        self._now += 1

    def allocate(self, span: int) -> int:
        """Return the start of a new table."""
        number = len(self._spans)
        self._spans.append(max(span, 1))
        self._first.append(self._now)
        self._last.append(sys.maxsize)
        return number if self._offsets is None else self._offsets[number]

    def release(self, start: int) -> None:
        """Release a table as soon as the time advances."""
        if self._offsets is None:
            self._last[start] = self._now

    def placements(self, height: int, unit: int) -> tuple[list[int], int]:
        """Place the tables above a height, the largest one first; return their starts and the total height."""
        firsts, lasts, ends = np.array(self._first), np.array(self._last), np.zeros(len(self._spans), dtype=np.int64)
        starts = np.zeros_like(ends)
        base = height = _round_up(height, unit)
        # Sizes are rounded up, so that a table fits where one of almost the same size was.
        spans = [_round_up(span, max(unit, 1 << max(0, span.bit_length() - _SIZES))) for span in self._spans]
        for number in sorted(range(len(ends)), key=lambda table: (-spans[table], self._first[table])):
            neighbours = np.flatnonzero((firsts <= lasts[number]) & (lasts >= firsts[number]) & (ends > 0))
            start, span = base, spans[number]
            for neighbour in neighbours[np.argsort(starts[neighbours])].tolist():
                if starts[neighbour] >= start + span:
                    break
                start = max(start, int(ends[neighbour]))
            starts[number], ends[number] = start, start + span
            height = max(height, start + span)
        return starts.tolist(), height


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
