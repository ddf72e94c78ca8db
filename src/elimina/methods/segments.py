"""An optimum in segments of the order, where not all messages fit together.

Decoding an optimum needs all messages, while a run without decoding needs few of them at a time. All segments but the
last one run once, and store the messages that later ones read. Then each segment, the last one first, runs with the
decoded values fixed, keeps its own messages, and is decoded. So each runs twice at most, as in the checkpointing of
derivatives (Griewank and Walther 2000, "Algorithm 799: revolve").
"""

from __future__ import annotations

import itertools
import math
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import count_path
from elimina.backends.device_group import devices_of
from elimina.methods.optimum import optimum, optimum_result
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.planning.number_type import cost_bound
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.segment_form import Segments
from elimina.problem.preparation import Problem, prepare
from elimina.result import Result
from elimina.running.advice import check_fits
from elimina.running.encoding import distances, encode, tables_of
from elimina.running.execution import Execution
from elimina.running.fused_steps import with_fused_steps
from elimina.running.kept_tables import kept_tables
from elimina.running.rounding import TOLERANCES, check_value, rounding

_ROUNDINGS = 4
"""Further roundings in each segment of an optimum of floats."""


class _StoredTable(NamedTuple):
    """A factor, or a message that a later segment reads, as distances; ``forbidden`` and larger ones are forbidden."""

    scope: tuple[int, ...]
    values: NDArray[Any]
    forbidden: float

    def table(self) -> Table:
        """Return the table as one of costs."""
        if self.values.dtype.kind == "f":
            return Table(self.scope, self.values)
        values = self.values.astype(np.int64)
        values[self.values >= self.forbidden] = FORBIDDEN
        return Table(self.scope, values)


class _SegmentRuns:
    """The runs of an order in segments.

    Args:
        execution: Execution of the task ``mpe``.

    Attributes:
        possible: False if nothing is allowed.
        chosen: A value for each variable of the model, as far as it is decoded.
        offset: Sum of the best values of all tables: see ``encode.Distances``.
        costs: Distances that add up to the optimum's distance from ``offset``.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution, problem, plan = execution, execution.problem, execution.plan
        assert isinstance(plan.form, Segments)
        self._segments = plan.form
        starts = (0, *self._segments.ends)
        self._orders = [plan.order[start:end] for start, end in itertools.pairwise(starts)]
        self._number = {v: number for number, order in enumerate(self._orders) for v in order}
        self._stored: list[list[_StoredTable]] = [[] for _ in self._orders]
        self._held, self._share = 0, 0.0
        forbidden = cost_bound(problem)
        cost_distances = distances(problem, forbidden)
        self.possible, self.offset = cost_distances.possible, cost_distances.offset
        self.costs: list[int | float] = []
        self.chosen = problem.complete((), ())
        for group, cells in zip(problem.groups, tables_of(problem, cost_distances.costs), strict=True):
            self._store(_StoredTable(group.scope, cells, forbidden if problem.model.is_integer else math.inf))

    def __len__(self) -> int:
        return len(self._orders)

    def _store(self, stored: _StoredTable) -> None:
        """Keep a table for the first segment that reads it."""
        self._stored[min(map(self._number.__getitem__, stored.scope))].append(stored)
        self._held += int(stored.values.nbytes)

    def _problem(self, number: int, is_decoded: bool) -> Problem:
        """Return the problem of a segment's tables; values of later segments are fixed if these are decoded."""
        tables = [stored.table() for stored in self._stored[number]]
        later = {v for table in tables for v in table.scope if self._number[v] > number}
        model = Model(self._execution.problem.model.variables, tables, sense="min-cost")
        return prepare(model, "mpe", {v: self.chosen[v] for v in later} if is_decoded else {})

    def _begun(self, problem: Problem, number: int) -> Execution:
        """Return the planned run of a segment's problem, in the segment's order."""
        whole, backend = self._execution.plan, devices_of(self._execution.backend)[0]
        free = set(problem.free)
        order = [v for v in self._orders[number] if v in free]
        memory = whole.memory_limit - (self._held if whole.on_host else 0)
        elimination = Elimination(problem, order, backend.machine, memory, self._segments.dtype)
        plan = with_fused_steps(elimination, make_plan(elimination))
        check_fits(plan)
        begun, work_share = self._share, plan.work / max(1, whole.work)

        def report(share: float) -> None:
            self._execution.report(min(1.0, begun + share * work_share))

        self._share += work_share
        return Execution(problem, plan, backend, report)

    def pass_on(self, number: int) -> bool:
        """Run a segment, and store the messages that leave it; return False if nothing is allowed."""
        problem = self._problem(number, is_decoded=False)
        variables = frozenset(self._orders[number])
        kept = tuple(v for v in problem.free if v not in variables)
        execution = self._begun(
            problem._replace(free=tuple(v for v in problem.free if v in variables), kept=kept), number
        )
        encoded = encode(execution.problem, execution.plan)
        if encoded.impossible:
            return False
        self.costs.append(encoded.offset)
        for scope, cells in kept_tables(execution, encoded.arena):
            if scope:
                self._store(_StoredTable(scope, np.array(cells), execution.plan.forbidden))
            elif (root := cells.item()) >= execution.plan.forbidden:
                return False
            else:
                self.costs.append(root)
        return True

    def decode(self, number: int) -> bool:
        """Run a segment, and choose its variables' values; return False if nothing is allowed."""
        problem = self._problem(number, is_decoded=True)
        execution = self._begun(problem, number)
        result = optimum(execution, {})
        if result.assignment is None or result.value is None:
            return False
        if number == len(self) - 1:
            self.costs.append(result.value)
        values = problem.model.indices_of(result.assignment)
        for v in execution.plan.order:
            self.chosen[v] = values[v]
        self._held -= sum(int(stored.values.nbytes) for stored in self._stored[number])
        self._stored[number] = []
        return True


def optimum_in_segments(execution: Execution, clock: dict[str, float]) -> Result:
    """Find an optimum by a plan in segments.

    Args:
        execution: Execution of the task ``mpe``.
        clock: Receives the seconds of all runs.

    Raises:
        MemoryLimitError: A segment does not fit.
        TimeLimitError: The deadline passed.
        InternalError: The assignment's value, recomputed on the model, is not the value found.
    """
    problem, plan, started = execution.problem, execution.plan, time.perf_counter()
    count_path("segments")
    runs = _SegmentRuns(execution)
    possible = runs.possible and all(map(runs.pass_on, range(len(runs) - 1)))
    possible = possible and all(map(runs.decode, range(len(runs) - 1, -1, -1)))
    clock["run"] = time.perf_counter() - started
    if not possible:
        return Result("infeasible", plan.task)
    sign, terms = problem.model.sign, problem.model.terms(runs.chosen)
    score = problem.model.total(terms)
    if plan.dtype.startswith("int"):
        check_value(plan.dtype, sign * (int(runs.offset) + sum(map(int, runs.costs))), score, terms)
        return optimum_result(problem.model, score, runs.chosen, score)
    cost = math.fsum(runs.costs)
    slack = rounding(problem, plan, cost, [runs.offset], _ROUNDINGS * len(runs))
    check_value(plan.dtype, sign * (runs.offset + cost), score, [problem.model.constant, *terms], slack)
    bound = min(sign * score, runs.offset + cost - slack)
    return optimum_result(problem.model, sign * bound, runs.chosen, score, TOLERANCES[plan.dtype])
