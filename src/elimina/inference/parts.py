"""Answers in parts, each a problem of its own: marginal MAP, the number of optima, and optima in segments.

Marginal MAP asks for the most probable values of some variables, all others summed out. The others are eliminated
first, which leaves tables over the variables asked for: a constrained order (Park and Darwiche 2004, "Complexity
results and approximation strategies for MAP explanations"). What maximises their product is found by all that there is
for optima.

In an optimal assignment each variable has a value whose tables add up to the message that it sends. The messages of one
elimination so make tables of such values, whose solutions are counted.

An optimum is decoded from all messages, although few of them are there at a time where nothing is decoded. If they do
not fit together, the order is cut into segments. All but the last one run once and leave the messages that later ones
read. Then each segment, the last one first, runs with the values that are known fixed, keeps its own messages, and is
decoded. So each runs twice at most: what Griewank and Walther (2000, "Algorithm 799: revolve") do for derivatives.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import count_path
from elimina.backends.choose import devices_of
from elimina.display import count_text
from elimina.errors import MemoryLimitError, UnsupportedError
from elimina.inference.anytime import Part
from elimina.inference.bucket import eliminate, kept_tables, valued
from elimina.inference.choose import MOST_SLICED_SECONDS, Planned, host_memory, plan_on, with_fused_steps
from elimina.inference.encode import distances, encode, tables_of
from elimina.inference.execution import (
    NO_MACHINE,
    TOLERANCES,
    Execution,
    Progress,
    check_fits,
    check_value,
    does_not_fit,
    rounding,
    statistics,
)
from elimina.inference.minibucket import Heuristic, running
from elimina.inference.options import Options
from elimina.inference.propagator import Propagator
from elimina.inference.solver import Question, Solver
from elimina.inference.strategy import Budget, Portfolio, Strategy
from elimina.model import Model
from elimina.planning.machine import STORED_CELL_SECONDS, Machine
from elimina.planning.plan import Plan, Segments
from elimina.planning.planner import cost_bound, make_plan
from elimina.planning.prepare import Problem, prepare
from elimina.result import Result
from elimina.states import State
from elimina.table import FORBIDDEN, Table
from elimina.tree import plan_tree


def marginal_map(solver: Solver) -> Portfolio:
    """Sum out, and find the best values of the remaining variables by the requested method."""
    options, run, method = solver.options, solver.run, solver.options.method
    planned = solver.plan(options._replace(ibound=None)).planned
    problem = planned.problem
    if not planned.plan.fits and method in ("auto", "mbe"):
        from elimina.inference.weighted import bounded_marginal_map

        def work(budget: Budget) -> Result:
            left = options.beside(budget.held)
            return bounded_marginal_map(planned, left, solver.tell_progress, budget.deadline, budget.learn)

        return (yield Strategy(run, "bounds", work))
    if options.on_plan is not None:
        run.tell(options.on_plan, planned.plan)
    with run.phase("sum out") as parts:
        rest, stats = sum_out(planned, solver.tell_progress)
        parts.update(stats["seconds"])
    if rest is None:
        return (yield Strategy(run, "sum out", lambda _: Result("infeasible", "mmap", stats=stats)))

    def whole(found: Result) -> Result:
        assignment = with_known(problem, found.assignment)
        return found.replace(task="mmap", assignment=assignment, stats={**stats, **found.stats, "summation": stats})

    own = options._replace(
        order=options.order if isinstance(options.order, str) else "auto",
        ibound="auto" if method == "mbe" and options.ibound is None else options.ibound,
        on_plan=None,
        progress=None,
        refined=0,
        is_kept=False,
    )
    return (yield from Solver(Question(rest, "mpe", {}, None), own, Part(run, whole, "max")).portfolio())


class Summed(NamedTuple):
    """Remainder of a problem when all but the query is summed out, to be maximised; None: nothing is possible."""

    rest: Model | None
    stats: dict[str, Any]


def sum_out(planned: Planned, progress: Progress | None = None) -> Summed:
    """Sum out all variables but those of the query.

    Args:
        planned: Plan of the task ``mmap``.
        progress: Called now and then with the share of the summation that is done.

    Raises:
        MemoryLimitError: The summation does not fit.
    """
    problem, plan = planned.problem, planned.plan
    if not plan.fits:
        raise MemoryLimitError(summation_does_not_fit(planned))
    propagator = Propagator(planned, "log-sum-exp")
    try:
        answer = propagator.run(range(len(plan.outputs)), log_sum=False, progress=progress)
        kept = set(problem.kept)
        tables = [(output.scope, table) for output, table in zip(plan.outputs, answer.tables, strict=True)]
        tables += [propagator.factor_table(n) for n, factor in enumerate(plan.factors) if kept.issuperset(factor.scope)]
        constant = propagator.constant
    finally:
        propagator.close()
    stats = statistics(Execution(problem, plan, planned.backend), propagator.seconds)
    if constant == -math.inf:
        return Summed(None, stats)
    number = {v: n for n, v in enumerate(problem.kept)}
    factors = [Table([number[v] for v in scope], np.array(table, dtype=np.float64)) for scope, table in tables]
    variables = [problem.model.variables[v] for v in problem.kept]
    return Summed(Model(variables, factors, sense="max-cost", constant=constant), stats)


def summation_does_not_fit(planned: Planned) -> str:
    """Return the error of a plan that does not fit: its needs, and the options that help."""
    problem = planned.problem
    return (
        f"{does_not_fit(planned.plan)}. That is for summing out {len(problem.free)} variables, with "
        f"{len(problem.kept)} that stay; fewer of these would help, too"
    )


def with_known(problem: Problem, assignment: Mapping[str, State] | None) -> dict[str, State] | None:
    """Return the assignment of a query and of the variables observed before."""
    if assignment is None:
        return None
    variables = problem.model.variables
    known = {variables[v].name: variables[v].state(problem.fixed[v]) for v in problem.wanted}
    return {**assignment, **known}


_CELL_BYTES = 16  # of the sum and of the table that is made


def count_optima(solver: Solver) -> Portfolio:
    """Find the optimum, and count the assignments that reach it."""
    options, run, model = solver.options, solver.run, solver.question.model
    if not model.is_integer:
        kind = "probabilities" if model.sense == "probability" else "floats as costs"
        raise UnsupportedError(
            f"task count-optima needs integer costs, and this model has {kind}: round them first "
            "(elimina convert MODEL OUT.wcsp; in Python elimina.io.convert_sense)"
        )
    planned = solver.plan(options._replace(slices="never", scratch=None, tables="dense")).planned
    if planned.plan.has_large_steps:
        raise MemoryLimitError(does_not_fit(planned.plan))
    # The tables of each variable's own bucket are needed, so no step may eliminate several.
    plan = plan_on(planned.backend, planned.problem, planned.plan.order, options)
    planned = planned._replace(plan=plan)
    model = planned.problem.model
    if not plan.fits or _CELL_BYTES * plan.work > host_memory(options):
        cells = f"{count_text(plan.work)} cells (induced width {plan.width})"
        memory = "" if _CELL_BYTES * plan.work > NO_MACHINE else "more memory (--memory), "
        raise MemoryLimitError(
            f"counting optima needs tables of {cells}; {memory}a better order (a longer --order-time) or looking for "
            "one optimum only (--task mpe) would help"
        )
    execution = solver.begun(planned, run.budget())
    result = Result("infeasible", "count-optima", count=0, stats=statistics(execution, {}))
    tables: list[Table] = []
    with run.phase("minimise") as parts, running(execution, parts) as (found, session):
        if session is not None and math.isfinite(found.cost) and not model.is_beyond_bound(found.total_of(found.cost)):
            ends = dict.fromkeys(("value", "lower_bound", "upper_bound"), found.total_of(found.cost))
            result = result.replace(status="bounded", assignment=model.states_at(found.decode(session)[0]), **ends)
            tables += _tight(found._replace(arena=session.fetch(0, plan.arena_cells)))
    if result.status == "infeasible":
        return (yield Strategy(run, "minimise", lambda _: result))
    run.fallback = lambda _: result.replace(count=None)
    part = Part(run, lambda counted: result.replace(status="exact", count=counted.value), "count")
    # Variables in no table are not part of the plan, and count with all their values.
    idle = set(range(len(model.variables))).difference(plan.order, planned.problem.fixed)
    rest = Model([model.variables[v] for v in (*plan.order, *idle)], tables, sense="probability")
    own = options._replace(order="auto", dtype=None)
    return (yield from Solver(Question(rest, "count", {}, None), own, part).portfolio())


def _tight(found: Heuristic) -> Iterator[Table]:
    """Yield a table for each variable: 1 where its tables add up to its message, 0 elsewhere."""
    for v, tables in enumerate(found.guide.homes()):
        scope = [v, *sorted({u for table in tables for u, _ in table.others})]
        total = np.zeros([found.guide.sizes[u] for u in scope], dtype=np.int64)
        for table in tables:
            strides = {v: table.stride, **dict(table.others)}
            steps = [strides.get(u, 0) * found.arena.itemsize for u in scope]
            total += np.lib.stride_tricks.as_strided(found.arena[table.offset :], total.shape, steps)
            np.minimum(total, found.plan.forbidden, out=total, casting="unsafe")
        is_tight = (total == total.min(axis=0)) & (total < found.plan.forbidden)
        yield Table(scope, is_tight.astype(np.float64))


_SEGMENTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Numbers of segments that are tried."""

_WIDE_CELL = 8
"""Bytes of a cell of a message while it is made a table of a model."""

_PADDED = 1.05
"""Memory of tables in an arena, relative to that of their cells."""

_WINDOW = 0.25
"""Places where a segment may end, as a share of its messages: it ends where the fewest are there."""

_ROUNDINGS = 4
"""Further roundings in each segment of an optimum of floats."""


class _Profile:
    """The messages of an order, in which each subtree of the bucket tree is finished before the next one begins.

    Attributes:
        order: The variables.
    """

    def __init__(self, problem: Problem, order: Sequence[int], itemsize: int) -> None:
        sizes = np.array(problem.model.sizes, dtype=np.float64)
        tree = plan_tree(problem.groups.scopes, problem.model.sizes, order)
        sequence = tree.postorder.astype(np.int64)
        place = np.empty_like(sequence)
        place[sequence] = np.arange(len(sequence))
        self.order = tree.variables[sequence].astype(np.int64)
        starts, separators = tree.separators
        logs = np.append(0.0, np.cumsum(np.log(sizes[separators])))
        self._cells = np.exp(logs[starts[1:]] - logs[starts[:-1]])[sequence]
        parents = tree.parents[sequence]
        self._readers = np.where(parents < 0, np.arange(len(sequence)), place[parents])
        self._spans = _PADDED * itemsize * self._cells
        self._work = self._cells * sizes[self.order]
        self._read = np.bincount(self._readers, self._spans, minlength=len(sequence))
        self._after = np.cumsum(self._spans) - np.cumsum(self._read)

    def ends(self, count: int) -> list[int]:
        """Return where segments with about as many messages end, each where few of them are read later."""
        filled = np.cumsum(self._spans)
        ends = {len(filled)}
        for number in range(1, count):
            near = filled[-1] * (number + np.array([-_WINDOW, _WINDOW])) / count
            first, last = np.searchsorted(filled, near).tolist()
            ends.add(1 + first + int(self._after[first : last + 1].argmin()))
        return sorted(ends)

    def bytes(self, ends: Sequence[int]) -> tuple[float, float, float]:
        """Return the most bytes of a run's messages, of those stored on the host, and of those that a run reads."""
        owners = np.searchsorted(ends, np.arange(len(self.order)), side="right")
        readers = owners[self._readers]
        crossing = self._spans * (readers > owners)
        own, read, left = (
            np.bincount(numbers, spans, minlength=len(ends))
            for numbers, spans in ((owners, self._spans), (readers, crossing), (owners, crossing))
        )
        starts = np.array([0, *ends[:-1]])
        most = np.maximum.reduceat(self._after + self._read, starts)
        before = np.append(0.0, self._after[starts[1:] - 1])
        first = (most - before + read)[:-1].max(initial=0.0)
        return max(first, float((own + read).max())), float(crossing.sum() + left.max()), float(read.max())

    def crossing(self, ends: Sequence[int]) -> float:
        """Return the cells of the messages that other segments read than the one that makes them."""
        owners = np.searchsorted(ends, np.arange(len(self.order)), side="right")
        return float(self._cells[owners[self._readers] > owners].sum())

    def work(self, ends: Sequence[int]) -> float:
        """Return the work of all runs, relative to that of one of all."""
        return 1 + float(self._work[: ends[-2]].sum() / self._work.sum())


def in_segments(problem: Problem, order: Sequence[int], machine: Machine, whole: Plan, options: Options) -> Plan | None:
    """Plan an optimum in as few segments as it takes to fit; None if none do, or it takes too long.

    Args:
        problem: Problem of the task ``mpe``.
        order: The free variables in elimination order.
        machine: Device as the planner sees it.
        whole: The plan that keeps all messages.
        options: Planning options.
    """
    if whole.seconds > MOST_SLICED_SECONDS:
        return None
    profile = _Profile(problem, order, whole.itemsize)
    limits = () if machine.on_host else (("host", host_memory(options)),)
    running = whole.seconds - machine.start
    plan = whole._replace(order=tuple(profile.order.tolist()), limits=limits)
    for ends in map(profile.ends, _SEGMENTS):
        if len(ends) < 2:
            continue
        arena, stored, read = profile.bytes(ends)
        factors = whole.factor_cells * whole.itemsize
        tiers = machine.tiers(int(arena) + factors, factors, whole.planning_bytes)
        wide = _WIDE_CELL / whole.itemsize
        tiers["host"] = tiers.get("host", 0) + int(stored + read * wide) + whole.factor_cells * _WIDE_CELL
        times = profile.work(ends)
        plan = plan._replace(
            bytes=tiers,
            seconds=machine.start + times * running + STORED_CELL_SECONDS * profile.crossing(ends),
            work=int(times * whole.work),
            operations=int(times * whole.operations),
            segments=Segments(tuple(ends), whole, options.dtype),
        )
        if plan.fits:
            return plan if plan.seconds <= MOST_SLICED_SECONDS else None
    return None


class _Stored(NamedTuple):
    """A table as distances from its best value: a factor, or a message that a later segment reads."""

    scope: tuple[int, ...]
    values: NDArray[Any]
    forbidden: float

    def table(self) -> Table:
        """Return it as a table of costs."""
        if self.values.dtype.kind == "f":
            return Table(self.scope, self.values)
        values = self.values.astype(np.int64)
        values[self.values >= self.forbidden] = FORBIDDEN
        return Table(self.scope, values)


class _Runs:
    """The runs of an order in segments.

    Args:
        execution: Execution of the task ``mpe``.

    Attributes:
        possible: False if nothing is allowed.
        chosen: A value for each variable of the model, as far as it is decoded.
        offset: Sum of the best values of all tables: see ``encode.Distances``.
        costs: Distances whose sum is the optimum's.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution, problem, plan = execution, execution.problem, execution.plan
        assert plan.segments is not None
        self._segments = plan.segments
        starts = (0, *self._segments.ends)
        self._orders = [plan.order[start:end] for start, end in itertools.pairwise(starts)]
        self._number = {v: number for number, order in enumerate(self._orders) for v in order}
        self._stored: list[list[_Stored]] = [[] for _ in self._orders]
        self._held, self._share = 0, 0.0
        forbidden = cost_bound(problem)
        known = distances(problem, forbidden)
        self.possible, self.offset = known.possible, known.offset
        self.costs: list[int | float] = []
        self.chosen = problem.complete((), ())
        for group, cells in zip(problem.groups, tables_of(problem, known.costs), strict=True):
            self._store(_Stored(group.scope, cells, forbidden if problem.model.is_integer else math.inf))

    def __len__(self) -> int:
        return len(self._orders)

    def _store(self, stored: _Stored) -> None:
        """Keep a table for the first segment that reads it."""
        self._stored[min(map(self._number.__getitem__, stored.scope))].append(stored)
        self._held += int(stored.values.nbytes)

    def _problem(self, number: int, is_decoded: bool) -> Problem:
        """Return the optimum over the tables of a segment, with the values fixed that later ones decoded, if any."""
        tables = [stored.table() for stored in self._stored[number]]
        later = {v for table in tables for v in table.scope if self._number[v] > number}
        model = Model(self._execution.problem.model.variables, tables, sense="min-cost")
        return prepare(model, "mpe", {v: self.chosen[v] for v in later} if is_decoded else {})

    def _begun(self, problem: Problem, number: int) -> Execution:
        """Plan a run in the segment's order."""
        whole, backend = self._execution.plan, devices_of(self._execution.backend)[0]
        free = set(problem.free)
        order = [v for v in self._orders[number] if v in free]
        memory = whole.memory_limit - (self._held if whole.on_host else 0)
        plan = make_plan(problem, order, backend.machine, memory, self._segments.dtype)
        plan = with_fused_steps(backend.machine, problem, self._segments.dtype, plan)
        check_fits(plan)
        begun, part = self._share, plan.work / max(1, whole.work)

        def report(share: float) -> None:
            self._execution.report(min(1.0, begun + share * part))

        self._share += part
        return Execution(problem, plan, backend, report)

    def pass_on(self, number: int) -> bool:
        """Run a segment, and store the messages that leave it; return False if nothing is allowed."""
        problem = self._problem(number, is_decoded=False)
        own = frozenset(self._orders[number])
        kept = tuple(v for v in problem.free if v not in own)
        execution = self._begun(problem._replace(free=tuple(v for v in problem.free if v in own), kept=kept), number)
        encoded = encode(execution.problem, execution.plan)
        if encoded.impossible:
            return False
        self.costs.append(encoded.offset)
        for scope, cells in kept_tables(execution, encoded.arena):
            if scope:
                self._store(_Stored(scope, np.array(cells), execution.plan.forbidden))
            elif (root := cells.item()) >= execution.plan.forbidden:
                return False
            else:
                self.costs.append(root)
        return True

    def decode(self, number: int) -> bool:
        """Run a segment, and choose its variables' values; return False if nothing is allowed."""
        problem = self._problem(number, is_decoded=True)
        execution = self._begun(problem, number)
        found = eliminate(execution, {})
        if found.assignment is None or found.value is None:
            return False
        if number == len(self) - 1:
            self.costs.append(found.value)
        values = problem.model.indices_of(found.assignment)
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
    runs = _Runs(execution)
    possible = runs.possible and all(map(runs.pass_on, range(len(runs) - 1)))
    possible = possible and all(map(runs.decode, range(len(runs) - 1, -1, -1)))
    clock["run"] = time.perf_counter() - started
    if not possible:
        return Result("infeasible", plan.task)
    sign, terms = problem.model.sign, problem.model.terms(runs.chosen)
    score = problem.model.total(terms)
    if plan.dtype.startswith("int"):
        check_value(plan.dtype, sign * (int(runs.offset) + sum(map(int, runs.costs))), score, terms)
        return valued(problem.model, score, runs.chosen, score)
    cost = math.fsum(runs.costs)
    slack = rounding(problem, plan, cost, [runs.offset], _ROUNDINGS * len(runs))
    check_value(plan.dtype, sign * (runs.offset + cost), score, [problem.model.constant, *terms], slack)
    bound = min(sign * score, runs.offset + cost - slack)
    return valued(problem.model, sign * bound, runs.chosen, score, TOLERANCES[plan.dtype])
