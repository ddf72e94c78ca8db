"""Sampling distributions: each variable is drawn given the earlier ones, by the tables of its bucket.

Variables are drawn in reverse elimination order. At the states drawn so far, the product of the factors and messages in
a variable's bucket is proportional to the variable's conditional distribution (Dechter 1999, section 7). If buckets are
partitioned, the messages are those of weighted mini-buckets (Liu, Fisher and Ihler 2015, "Probabilistic variational
bounds for graphical models"). A sample's weight is its product in the model divided by the probability of drawing it.
The bound on the sum also bounds all weights.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import Sampler
from elimina.backends.cpu import CpuBackend
from elimina.errors import ImpossibleEvidenceError, MemoryLimitError, TimeLimitError
from elimina.methods.mini_buckets import pseudo_tree_tables, run_mini_buckets
from elimina.methods.mixtures import MixtureSampler
from elimina.model.table import Table
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.mini_buckets import make_bounded_plan
from elimina.planning.packed_steps import Steps
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination, make_plan
from elimina.problem.preparation import Problem
from elimina.problem.relevance import parents_first
from elimina.problem.semirings import SEMIRINGS
from elimina.running.encoding import encode
from elimina.running.execution import Execution
from elimina.running.scales import Scales, roots

_TABLE_SECONDS = 2e-5
"""Seconds to lay out a table of a plan for a sampler."""

_CELL_BYTES = 8

_ZERO_SUM = "the model's sum is 0, so there are no samples: remove some of the evidence"


class Proposal(NamedTuple):
    """A sampling distribution and its properties.

    Attributes:
        sampler: Sampler that draws all variables.
        variables: Variable of each row of the samples.
        log_constant: Natural logarithm of the constant factor of the sampler's weights.
        log_bound: Upper bound on the natural logarithm of each weight and of the sum; infinity if there is none.
        is_exact: True if samples follow the model's distribution, so that all weights are equal.
        bytes: Memory of the tables.
        divided: Number of partitioned buckets.
    """

    sampler: Sampler | MixtureSampler
    variables: tuple[int, ...]
    log_constant: float
    log_bound: float
    is_exact: bool
    bytes: int
    divided: int = 0


def exact_plan(problem: Problem, order: Sequence[int], options: CheckedOptions, memory: int) -> Plan:
    """Plan an elimination whose messages stay in the host's memory; the plan may exceed the memory limit.

    Args:
        problem: Problem of the task ``pr``.
        order: The free variables in elimination order.
        options: Planning options.
        memory: Memory limit of the elimination, in bytes.
    """
    return make_plan(Elimination(problem, order, CpuBackend(options.threads).machine, memory, keeps_messages=True))


def mini_bucket_plan(
    problem: Problem, order: Sequence[int], options: CheckedOptions, memory: int, seconds: float
) -> Plan:
    """Plan weighted mini-buckets with the i-bound of the options or, without one, the largest that the limits allow.

    Args:
        problem: Problem of the task ``pr``.
        order: The free variables in elimination order.
        options: Planning options.
        memory: Memory limit of the mini-buckets, in bytes.
        seconds: Limit on the estimated seconds of the mini-buckets, unless the options have an i-bound.

    Raises:
        MemoryLimitError: Mini-buckets with the i-bound of the options or, without one, the smallest ones do not fit.
    """
    machine, ibound = CpuBackend(options.threads).machine, "auto" if options.ibound is None else options.ibound
    plan = make_bounded_plan(
        Elimination(problem, order, machine, memory, None, keeps_messages=True),
        ibound,
        options.matches_moments,
        seconds,
        "upper",
    )
    if not plan.fits or plan.has_large_factors:
        raise MemoryLimitError("mini-buckets do not fit")
    return plan


def message_proposal(problem: Problem, plan: Plan, options: CheckedOptions, deadline: float | None) -> Proposal:
    """Run a plan, and return the proposal from its messages.

    Args:
        problem: Problem of the task ``pr``.
        plan: Plan of the problem, from ``exact_plan`` or ``mini_bucket_plan``.
        options: Options of the plan.
        deadline: Deadline by ``time.monotonic``.

    Raises:
        ImpossibleEvidenceError: The sum is 0.
        TimeLimitError: The deadline passed.
    """
    remaining = math.inf if deadline is None else deadline - time.monotonic()
    if _TABLE_SECONDS * len(plan.steps) > remaining:
        raise TimeLimitError("the time limit passed while samples were prepared; allow more time")
    execution = Execution(problem, plan, CpuBackend(options.threads), None, deadline)
    if plan.minibuckets is None:
        return _exact_proposal(execution)
    with run_mini_buckets(execution, {}) as (heuristic, session):
        if session is None or not math.isfinite(heuristic.cost):
            raise ImpossibleEvidenceError(_ZERO_SUM)
        log_sum = float(heuristic.total_of(heuristic.cost))
        slack = heuristic.rounding(session, heuristic.decode(session)[0])
        arena = np.asarray(session.fetch(0, plan.arena_cells), dtype=np.float64)
    words, sizes = heuristic.guide.tables, np.array(heuristic.guide.sizes, dtype=np.int64)
    variables = Steps.packed(plan.steps).variables
    mini_bucket_counts = np.bincount(variables[variables >= 0], minlength=len(problem.model.sizes))[list(plan.order)]
    sampler = Sampler(arena, words, sizes, (mini_bucket_counts > 1).astype(np.uint8), 0, len(sizes))
    divided = int((mini_bucket_counts > 1).sum())
    return Proposal(sampler, plan.order, log_sum, log_sum + slack, False, arena.nbytes, divided)


def _exact_proposal(execution: Execution) -> Proposal:
    problem, plan = execution.problem, execution.plan
    guide = pseudo_tree_tables(plan, problem.model.sizes)
    for semiring in dict.fromkeys((plan.semiring, "log-sum-exp")):
        encoded = encode(problem, plan, semiring, execution.backend.threads)
        if encoded.impossible:
            raise ImpossibleEvidenceError(_ZERO_SUM)
        session = execution.backend.open(execution.program(semiring), encoded.arena)
        try:
            run = session.run(progress=execution.report)
            arena = np.asarray(session.fetch(0, plan.arena_cells), dtype=np.float64)
        finally:
            session.close()
        if SEMIRINGS[semiring].is_weighted:
            log_sum = encoded.offset + math.fsum(roots(plan, run))
            break
        scales = Scales(plan)
        if not encoded.exact or scales.may_underflow(encoded.ranges, run.peaks):
            del arena
            continue
        log_sum = scales.sum_of(run).times(encoded.factor).log10 * math.log(10)
        # Padding between tables is uninitialised, so warnings about its logarithms are suppressed.
        with np.errstate(divide="ignore", invalid="ignore"):
            np.log(arena, out=arena)
        break
    if log_sum == -math.inf:
        raise ImpossibleEvidenceError(_ZERO_SUM)
    sizes = np.array(guide.sizes, dtype=np.int64)
    sampler = Sampler(arena, guide.tables, sizes, np.zeros(len(sizes), dtype=np.uint8), 0, len(sizes))
    return Proposal(sampler, plan.order, log_sum, log_sum, True, arena.nbytes)


class LoggedTables:
    """Consecutive tables of logarithms, with their positions in the form that ``Sampler`` takes.

    Attributes:
        cells: Number of cells.
    """

    def __init__(self) -> None:
        self.cells = 0
        self._words: list[int] = []
        self._logs: list[NDArray[np.float64]] = []

    def add(self, scope: Sequence[int], home: int, logs: NDArray[np.float64], origin: int = -1) -> None:
        """Add a table to the bucket of one of its variables, or a message without variables to the bucket ``home``.

        Args:
            scope: Rows of the table's variables.
            home: Row of the bucket's variable.
            logs: Logarithms of the table's values, with the axes of the scope.
            origin: Row of the bucket that sent the table; -1: a factor.
        """
        others: list[int] = []
        stride, home_stride = 1, 0
        for row, size in zip(reversed(scope), reversed(logs.shape), strict=True):
            if row == home:
                home_stride = stride
            else:
                others += (row, stride)
            stride *= size
        self._words += [self.cells, home, home_stride, origin, len(others) // 2, *others]
        self._logs.append(logs.ravel())
        self.cells += logs.size

    def add_table(self, table: Table, row: Mapping[int, int], home: int) -> None:
        """Add a table of probabilities: see ``add``; ``row`` maps variables to rows."""
        with np.errstate(divide="ignore"):
            self.add([row[v] for v in table.scope], row[home], np.log(table.dense().astype(np.float64)))

    def sampler(self, sizes: NDArray[np.int64], first: int, last: int, *, is_weighted: bool = False) -> Sampler:
        """Return a sampler of the rows from ``first`` up to, but not including, ``last``.

        Args:
            sizes: Number of states of each row's variable.
            first: Lowest row; it is drawn last.
            last: End of the rows; the row before it is drawn first.
            is_weighted: True if each variable changes the weight of a sample. The weight is multiplied by the sum of
                the product of the variable's tables over its values, and divided by the messages that its bucket has
                sent.
        """
        arena = self._logs[0] if len(self._logs) == 1 else np.concatenate([np.zeros(0), *self._logs])
        weighted = np.full(len(sizes), is_weighted, dtype=np.uint8)
        return Sampler(arena, np.array(self._words, dtype=np.int64), sizes, weighted, first, last)


def forward_proposal(problem: Problem, memory: int) -> Proposal | None:
    """Return the proposal that draws the parents of a network before their children.

    It is likelihood weighting (Fung and Chang 1990), except that an observation also affects the draw of the last of
    its parents. The result is None if the model is not a network, the tables do not fit, or a constant is 0.

    Args:
        problem: Problem of the task ``pr``.
        memory: Memory limit of the proposal, in bytes.
    """
    model = problem.model
    if model.children is None or len(set(model.children)) < len(model.children):
        return None
    tables = [table for table in problem.tables if table.scope]
    cells = sum(table.cells for table in tables)
    constants = [float(problem.tables[number].values) for number in problem.constants]
    if 2 * _CELL_BYTES * cells > memory or not all(constants):
        return None
    free = set(problem.free)
    variables = tuple(
        v
        for v in reversed(parents_first(model.children, [factor.scope for factor in model.factors], len(model.sizes)))
        if v in free
    )
    row = {v: number for number, v in enumerate(variables)}
    logged = LoggedTables()
    for table in tables:
        logged.add_table(table, row, min(table.scope, key=row.__getitem__))
    sizes = np.array([model.sizes[v] for v in variables], dtype=np.int64)
    sampler = logged.sampler(sizes, 0, len(sizes), is_weighted=True)
    constant = float(model.constant) + math.fsum(map(math.log, constants))
    return Proposal(sampler, variables, constant, math.inf, False, _CELL_BYTES * logged.cells)


def mixture_of(proposals: Sequence[Proposal]) -> Proposal:
    """Return the mixture of proposals of one problem with the same rows; none may be exact, or a mixture itself."""
    components: list[tuple[Sampler, float]] = []
    for proposal in proposals:
        assert isinstance(proposal.sampler, Sampler)
        components.append((proposal.sampler, proposal.log_constant))
    return Proposal(
        MixtureSampler(components),
        proposals[0].variables,
        0.0,
        math.log(len(proposals)) + min(proposal.log_bound for proposal in proposals),
        False,
        sum(proposal.bytes for proposal in proposals),
        min(proposal.divided for proposal in proposals),
    )


def descendant_sampler(descendants: Mapping[int, Table], sizes: Sequence[int], drawn: Sequence[int]) -> Sampler:
    """Return a sampler of the variables that ``descendants_of`` returns for a problem.

    Args:
        descendants: Variables and their distributions.
        sizes: Domain sizes of all variables.
        drawn: Variables of the first rows, which another sampler has drawn.
    """
    rows = (*drawn, *descendants)
    row = {v: number for number, v in enumerate(rows)}
    logged = LoggedTables()
    for v, table in descendants.items():
        logged.add_table(table, row, v)
    return logged.sampler(np.array([sizes[v] for v in rows], dtype=np.int64), len(drawn), len(rows))
