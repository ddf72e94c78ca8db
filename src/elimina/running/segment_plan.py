"""Plans of an optimum in segments of the order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elimina.planning.machine import STORED_CELL_SECONDS
from elimina.planning.options import Options
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination
from elimina.planning.segment_form import Segments
from elimina.planning.slicing import MAX_SLICED_SECONDS
from elimina.planning.tree import plan_tree
from elimina.problem.preparation import Problem
from elimina.running.host import host_memory

_SEGMENT_COUNTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of segments to try."""

_STORED_CELL_BYTES = 8
"""Bytes of a cell of a message while it becomes a table of a model."""

_PADDING_FACTOR = 1.05
"""Memory of tables in an arena, relative to that of their cells."""

_END_WINDOW_SHARE = 0.25
"""Largest shift of a segment's end, as a share of its messages: it ends where the fewest messages coexist."""


class _Profile:
    """The messages of an order in which subtrees of the bucket tree are completed one after another.

    Attributes:
        order: The variables in this order.
    """

    def __init__(self, problem: Problem, order: Sequence[int], itemsize: int) -> None:
        sizes = np.array(problem.model.sizes, dtype=np.float64)
        tree = plan_tree(problem.groups.scopes, problem.model.sizes, order)
        sequence = tree.postorder.astype(np.int64)
        position = np.empty_like(sequence)
        position[sequence] = np.arange(len(sequence))
        self.order = tree.variables[sequence].astype(np.int64)
        starts, separators = tree.separators
        logs = np.append(0.0, np.cumsum(np.log(sizes[separators])))
        self._cells = np.exp(logs[starts[1:]] - logs[starts[:-1]])[sequence]
        parents = tree.parents[sequence]
        self._readers = np.where(parents < 0, np.arange(len(sequence)), position[parents])
        self._spans = _PADDING_FACTOR * itemsize * self._cells
        self._work = self._cells * sizes[self.order]
        self._read = np.bincount(self._readers, self._spans, minlength=len(sequence))
        self._after = np.cumsum(self._spans) - np.cumsum(self._read)

    def ends(self, count: int) -> list[int]:
        """Return the ends of segments with about equal messages, each end where few messages wait for later readers."""
        filled = np.cumsum(self._spans)
        ends = {len(filled)}
        for number in range(1, count):
            near = filled[-1] * (number + np.array([-_END_WINDOW_SHARE, _END_WINDOW_SHARE])) / count
            first, last = np.searchsorted(filled, near).tolist()
            ends.add(1 + first + int(self._after[first : last + 1].argmin()))
        return sorted(ends)

    def bytes(self, ends: Sequence[int]) -> tuple[float, float, float]:
        """Return the most bytes of a run's messages, of messages stored on the host, and of those that a run reads."""
        owners = np.searchsorted(ends, np.arange(len(self.order)), side="right")
        readers = owners[self._readers]
        crossing = self._spans * (readers > owners)
        message_bytes, read_bytes, stored_bytes = (
            np.bincount(numbers, spans, minlength=len(ends))
            for numbers, spans in ((owners, self._spans), (readers, crossing), (owners, crossing))
        )
        starts = np.array([0, *ends[:-1]])
        peaks = np.maximum.reduceat(self._after + self._read, starts)
        before = np.append(0.0, self._after[starts[1:] - 1])
        first = (peaks - before + read_bytes)[:-1].max(initial=0.0)
        return (
            max(first, float((message_bytes + read_bytes).max())),
            float(crossing.sum() + stored_bytes.max()),
            float(read_bytes.max()),
        )

    def crossing(self, ends: Sequence[int]) -> float:
        """Return the number of cells of the messages between segments."""
        owners = np.searchsorted(ends, np.arange(len(self.order)), side="right")
        return float(self._cells[owners[self._readers] > owners].sum())

    def work(self, ends: Sequence[int]) -> float:
        """Return the work of the runs of all segments, relative to one run without segments."""
        return 1 + float(self._work[: ends[-2]].sum() / self._work.sum())


def make_segmented_plan(elimination: Elimination, whole: Plan, options: Options) -> Plan | None:
    """Plan an optimum in the fewest segments that fit; None if none fit, or if elimination takes too long.

    Args:
        elimination: Elimination of the task ``mpe``.
        whole: The plan that keeps all messages.
        options: Planning options.
    """
    if whole.seconds > MAX_SLICED_SECONDS:
        return None
    machine = elimination.machine
    profile = _Profile(elimination.problem, elimination.order, whole.itemsize)
    limits = () if machine.on_host else (("host", host_memory(options)),)
    running = whole.seconds - machine.start
    plan = whole._replace(order=tuple(profile.order.tolist()))
    for ends in map(profile.ends, _SEGMENT_COUNTS):
        if len(ends) < 2:
            continue
        arena, stored, read = profile.bytes(ends)
        factors = whole.factor_cells * whole.itemsize
        tiers = machine.tiers(int(arena) + factors, factors, whole.planning_bytes)
        wide = _STORED_CELL_BYTES / whole.itemsize
        tiers["host"] = tiers.get("host", 0) + int(stored + read * wide) + whole.factor_cells * _STORED_CELL_BYTES
        times = profile.work(ends)
        plan = plan._replace(
            bytes=tiers,
            seconds=machine.start + times * running + STORED_CELL_SECONDS * profile.crossing(ends),
            work=int(times * whole.work),
            operations=int(times * whole.operations),
            form=Segments(ends=tuple(ends), unsegmented=whole, dtype=options.dtype, limits=limits),
        )
        if plan.fits:
            return plan if plan.seconds <= MAX_SLICED_SECONDS else None
    return None
