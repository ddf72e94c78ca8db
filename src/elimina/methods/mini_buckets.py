"""Mini-bucket elimination (Dechter and Rish 2003): a bound on the optimum, and an assignment from its messages."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from elimina._core import count_path
from elimina.backends.protocols import GatheringSession
from elimina.planning.bucket_tables import BucketTables, ValueCosts
from elimina.planning.packed_steps import Steps
from elimina.planning.plan import Plan
from elimina.planning.step import JOIN, MATCHING
from elimina.planning.tree import plan_tree
from elimina.problem.preparation import Problem
from elimina.problem.semirings import SEMIRINGS
from elimina.result import Result
from elimina.running.advice import check_fits
from elimina.running.bounded_results import result_between
from elimina.running.encoding import Encoded, encode
from elimina.running.execution import Execution, statistics
from elimina.running.rounding import rounding
from elimina.running.scales import roots

if TYPE_CHECKING:
    from elimina.methods.cost_shifting import ShiftedProblem

_TABLE_BYTES, _THREAD_TABLE_BYTES = 150, 320
"""Bytes of a small table in the core's shared lists, and in the lists of each thread and its local search."""

_CONTEXT_BYTES, _PASSED_BYTES = 28, 4
"""Bytes of an ancestor in a context (in the lists and in the cache's keys), and of each variable between the sender of
a message and its receiver."""


class PseudoTreeTables(NamedTuple):
    """A pseudo-tree (Dechter and Mateescu 2007) and the tables of a search on it.

    A variable's tables are those of all its mini-buckets. The messages among them are lower bounds on the costs of
    their subtrees (Kask and Dechter 2001, "A general scheme for automatic generation of search heuristics from
    specification dependencies"). Variables are numbered by their position in the order, so a parent's number is larger
    than its child's.

    Attributes:
        tables: int64, for each table: its offset in the arena; its home (the first variable of its scope to be
            eliminated; -1: a constant); the stride of its home; its origin (the variable of the sending mini-bucket;
            -1: a factor); the number of its other variables; and the number and stride of each of them.
        sizes: Domain sizes.
        parents: Parent of each variable; -1 for a root.
        starts: int64, position of each variable's first ancestor in ``contexts``, followed by the length of
            ``contexts``.
        contexts: int32, for each variable the ancestors that its subtree depends on.
    """

    tables: NDArray[np.int64]
    sizes: Sequence[int]
    parents: Sequence[int]
    starts: NDArray[np.int64]
    contexts: NDArray[np.int32]

    def threads_within(self, memory: int, max_threads: int) -> int:
        """Return the number of threads whose data fit into memory; 0 if not even those of one thread fit."""
        shared, bytes_of_thread = self.bytes()
        return max(0, min(max_threads, (memory - shared) // max(1, bytes_of_thread)))

    def bytes(self) -> tuple[int, int]:
        """Return the bytes that all threads of a search share, and the bytes of each thread's own data."""
        depth = [0] * len(self.sizes)
        for v in reversed(range(len(depth))):
            if self.parents[v] >= 0:
                depth[v] = depth[self.parents[v]] + 1
        words, at, passed, tables = self.tables.data, 0, 0, 0
        while at < len(words):
            home, origin = words[at + 1], words[at + 3]
            if origin >= 0:
                passed += depth[origin] - (depth[home] if home >= 0 else -1)
            tables += 1
            at += 5 + 2 * words[at + 4]
        return (
            _PASSED_BYTES * passed + _CONTEXT_BYTES * len(self.contexts) + _TABLE_BYTES * tables,
            _THREAD_TABLE_BYTES * tables,
        )

    @property
    def buckets(self) -> BucketTables:
        """The tables of each variable's bucket."""
        return BucketTables.of(self.tables, self.sizes)


def pseudo_tree_tables(plan: Plan, sizes: Sequence[int]) -> PseudoTreeTables:
    """Return the pseudo-tree and the tables of a plan for the task ``mpe`` that stores its messages.

    Args:
        plan: The plan; its buckets may be partitioned.
        sizes: Domain size of every variable of the model.
    """
    # Unpacked steps would take ten times the memory of packed records.
    steps = Steps.packed(plan.steps)
    number = {v: i for i, v in enumerate(plan.order)}
    from array import array

    words = array("q")
    stack = [output.step for output in plan.outputs]
    for root in stack:
        words.extend((int(steps.offsets_of(root)), -1, 0, number[int(steps.variables[root])], 0))
    while stack:
        variable = int(steps.variables[reached := stack.pop()])
        for factor, source in _leaves(steps, reached):
            if source < 0:
                layout = plan.factors[factor]
                words.extend(_words(number, variable, layout.offset, -1, layout.scope, layout.strides))
            else:
                origin = number[int(steps.variables[source])]
                words.extend(_words(number, variable, int(steps.offsets_of(source)), origin, *steps.scope_of(source)))
                stack.append(source)
    tree = plan_tree([factor.scope for factor in plan.factors], sizes, plan.order)
    starts, members = tree.separators
    position = np.zeros(len(sizes), dtype=np.int32)
    position[list(plan.order)] = np.arange(len(plan.order))
    return PseudoTreeTables(
        np.frombuffer(words, dtype=np.int64),
        [sizes[v] for v in plan.order],
        tree.parents.tolist(),
        starts,
        position[members],
    )


def _leaves(steps: Steps, reached: int) -> Iterator[tuple[int, int]]:
    """Yield the factors and messages that a step reads, directly or through joins.

    Results of moment matching are left out, because they sum to 0.
    """
    stack = [reached]
    while stack:
        for factor, source in steps.reads_of(stack.pop()):
            kind = steps.variables[source] if source >= 0 else 0
            if kind == JOIN:
                stack.append(source)
            elif kind != MATCHING:
                yield factor, source


def _words(
    number: dict[int, int], variable: int, offset: int, origin: int, scope: Sequence[int], strides: Sequence[int]
) -> list[int]:
    stride_of = dict(zip(scope, strides, strict=True))
    others = [word for v, stride in stride_of.items() if v != variable for word in (number[v], stride)]
    return [offset, number[variable], stride_of[variable], origin, len(others) // 2, *others]


_ROUNDING = 1e-6
"""Tolerance for rounding errors of bounds on integers."""

_MAX_ULPS = 8
"""Largest error of a table of a sum, in units in the last place."""

_Tables = tuple[
    NDArray[Any],
    NDArray[np.int64],
    Sequence[int],
    Sequence[int],
    NDArray[np.int64],
    NDArray[np.int32],
    float,
    bool,
]


class Heuristic(NamedTuple):
    """Messages of mini-buckets on the host, for lookups by a search.

    Attributes:
        problem: Problem of the messages.
        plan: Plan that computed the messages.
        encoded: Factors of the problem.
        guide: Pseudo-tree with the positions of the messages.
        arena: All tables; empty while a session holds them.
        cost: Lower bound on costs in the plan's units: an int for integer costs; infinity if no assignment is allowed.
    """

    problem: Problem
    plan: Plan
    encoded: Encoded
    guide: PseudoTreeTables
    arena: NDArray[np.generic]
    cost: int | float

    def total_of(self, cost: int | float) -> int | float:
        """Turn a bound on the plan's costs into a bound on the model's totals; integer costs are rounded up."""
        sign = self.problem.model.sign
        if self.is_integer:
            whole = cost if isinstance(cost, int) else math.ceil(cost - _ROUNDING)
            return int(self.encoded.offset) + sign * whole
        return math.fsum([*self.encoded.constants, sign * cost])

    def bound_of(self, cost: int | float) -> int | float:
        """Turn a bound on the plan's costs into a bound on the model's totals that holds despite rounding errors."""
        if self.is_integer:
            return self.total_of(cost)
        # The error is doubled, because moment matching and a search over the messages add up as many numbers again as
        # the run.
        slack = 2 * rounding(self.problem, self.plan, cost, self.encoded.constants, len(self.plan.order))
        return self.total_of(cost - slack)

    def cost_of(self, total: int | float) -> float:
        """Turn a total of the model into a cost of the plan."""
        sign = self.problem.model.sign
        if self.is_integer:
            return float(sign * (int(total) - int(self.encoded.offset)))
        return sign * math.fsum([total, *(-constant for constant in self.encoded.constants)])

    @property
    def tables(self) -> _Tables:
        """First arguments of the core's search: tables, pseudo-tree, forbidden cost, and kind of costs."""
        return (self.arena, *self.guide, float(self.plan.forbidden), self.is_integer)

    @property
    def is_integer(self) -> bool:
        """True if the plan's costs are integers."""
        return self.plan.dtype.startswith("int")

    def decode(self, session: GatheringSession, count: int = 1) -> list[list[int]]:
        """Return assignments; variables get values with small bounds, in reverse elimination order.

        The first assignment takes the best values. The values of further ones are drawn with Gumbel noise; for sums,
        this draws them in proportion to their terms.

        Args:
            session: Session with the messages.
            count: Number of assignments.
        """
        gumbel = np.random.default_rng(0).gumbel(size=(count - 1, sum(self.guide.sizes)))
        costs = ValueCosts(self.plan.forbidden, sign_of(self.plan), gumbel)
        return [self.complete(values) for values in session.decode_buckets(self.guide.buckets, costs).tolist()]

    def rounding(self, session: GatheringSession, chosen: Sequence[int]) -> float:
        """Return the rounding error of the bound on a sum: a few units in the last place of each table.

        Args:
            session: Session that holds the tables.
            chosen: A value for each variable of the model; cells at this assignment give the tables' magnitudes.
        """
        cells = self.guide.buckets.cells_at(np.array([chosen[v] for v in self.plan.order], dtype=np.int64))
        read = session.gather(cells).astype(np.float64)
        sizes = np.abs(read[np.isfinite(read)]).sum() + math.fsum(map(abs, self.encoded.constants))
        return float(_MAX_ULPS * np.finfo(self.plan.dtype).eps * sizes)

    def complete(self, values: Sequence[int]) -> list[int]:
        """Extend the values of the plan's order to a value for each variable of the model."""
        return self.problem.complete(self.plan.order, values)


def sign_of(plan: Plan) -> int:
    """Return -1 if larger numbers of the plan are better, otherwise 1."""
    return SEMIRINGS[plan.semiring].sign


def heuristic_of(execution: Execution, clock: dict[str, float]) -> Heuristic:
    """Run a plan with mini-buckets, and fetch its messages.

    Args:
        execution: Execution of the task ``mpe`` whose plan stores its messages.
        clock: Seconds by phase; the run's seconds are added.

    Raises:
        MemoryLimitError: The plan does not fit.
        TimeLimitError: The deadline passed.
    """
    with run_mini_buckets(execution, clock) as (heuristic, session):
        if session is None:
            return heuristic
        started = time.perf_counter()
        arena = session.fetch(0, execution.plan.arena_cells)
        add_seconds(clock, "download", time.perf_counter() - started)
    return heuristic._replace(arena=arena)


@contextlib.contextmanager
def run_mini_buckets(
    execution: Execution, clock: dict[str, float]
) -> Iterator[tuple[Heuristic, GatheringSession | None]]:
    """Run a plan; yield the heuristic and the session with its messages (None if the factors alone are contradictory).

    Raises:
        MemoryLimitError: The plan does not fit.
        TimeLimitError: The deadline passed.
    """
    problem, plan = execution.problem, execution.plan
    check_fits(plan)
    count_path("weighted-mini-buckets" if SEMIRINGS[plan.semiring].is_weighted else "mini-buckets")
    started = time.perf_counter()
    encoded = encode(problem, plan, threads=execution.backend.threads)
    guide = pseudo_tree_tables(plan, problem.model.sizes)
    add_seconds(clock, "encode", time.perf_counter() - started)
    heuristic = Heuristic(problem, plan, encoded, guide, np.zeros(0, dtype=plan.dtype), math.inf)
    if encoded.impossible:
        yield heuristic, None
        return
    session = cast(GatheringSession, execution.backend.open(execution.program(), encoded.arena))
    try:
        run = session.run(progress=execution.report)
        for phase, seconds in run.seconds.items():
            add_seconds(clock, phase, seconds)
        values = roots(plan, run)
        if plan.forbidden in values:
            yield heuristic, session
        else:
            cost = sum(map(int, values)) if plan.dtype.startswith("int") else math.fsum(values)
            yield heuristic._replace(cost=sign_of(plan) * cost), session
    finally:
        session.close()


def bounded_optimum(execution: Execution, seconds: Mapping[str, float], original: ShiftedProblem) -> Result:
    """Bound the optimum by one run of mini-buckets; an assignment decoded from the messages gives the other bound.

    Args:
        execution: Execution of the task ``mpe``. If no bucket is partitioned, both bounds are equal.
        seconds: Time spent so far by phase.
        original: Problem from which the execution's problem was derived.

    Raises:
        MemoryLimitError: The plan does not fit.
        TimeLimitError: The deadline passed.
    """
    clock = dict(seconds)
    bound, chosen = None, None
    with run_mini_buckets(execution, clock) as (heuristic, session):
        if session is not None and math.isfinite(heuristic.cost):
            started = time.perf_counter()
            bound = original.bound(heuristic.bound_of(heuristic.cost))
            (chosen,) = heuristic.decode(session)
            add_seconds(clock, "decode", time.perf_counter() - started)
    result = result_between(original.problem.model, bound, chosen)
    return result.replace(
        stats={**statistics(execution, clock), "method": "mbe", **mini_bucket_statistics(heuristic.plan)}
    )


def mini_bucket_statistics(plan: Plan) -> dict[str, int | str]:
    """Return the statistics of mini-buckets for ``Result.stats``; empty if the plan has none."""
    if plan.minibuckets is None:
        return {}
    minibuckets = plan.minibuckets
    partition = "content" if minibuckets.by_content else "scope"
    return {
        "ibound": minibuckets.ibound,
        "divided": minibuckets.divided,
        "parts": minibuckets.nodes,
        "partition": partition,
    }


def add_seconds(clock: dict[str, float], phase: str, seconds: float) -> None:
    """Add seconds to a phase of a clock."""
    clock[phase] = clock.get(phase, 0.0) + seconds
