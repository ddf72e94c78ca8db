"""Distributions to draw samples from: each variable given those that are drawn before it, by its bucket's tables.

A bucket's factors and the messages that it received are, at values of what is eliminated later, the conditional
distribution of its variable (Dechter 1999, section 7, run backwards). Where buckets were divided, these are the messages
of weighted mini-buckets (Liu, Fisher and Ihler 2015, "Probabilistic variational bounds for graphical models"), and a
sample's weight is its probability in the model over that of drawing it. Their bound on the sum bounds all weights.
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
from elimina.errors import MemoryLimitError, TimeLimitError
from elimina.methods.mini_buckets import pseudo_tree_tables, run_mini_buckets
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.planning.mini_buckets import make_bounded_plan
from elimina.planning.options import Options
from elimina.planning.packed_steps import Steps
from elimina.planning.plan import Plan
from elimina.planning.planner import make_plan
from elimina.problem.preparation import Problem
from elimina.running.encoding import encode
from elimina.running.execution import Execution
from elimina.running.scales import Scales, roots

_TABLE_SECONDS = 2e-5
"""Time to place a table of a plan for a sampler."""

_CELL_BYTES = 8


class Proposal(NamedTuple):
    """A distribution that samples are drawn from, and what their weights are relative to.

    Attributes:
        sampler: Sampler that draws all variables.
        variables: Variable of each row of its samples.
        log_constant: Natural logarithm that each weight's has to be added to.
        log_bound: Upper bound on the natural logarithm of each weight, and of the sum; infinity if there is none.
        is_exact: True if samples are drawn from the model's distribution: then all weights are the same.
        bytes: Memory of its tables.
        divided: Number of divided buckets.
    """

    sampler: Sampler
    variables: tuple[int, ...]
    log_constant: float
    log_bound: float
    is_exact: bool
    bytes: int
    divided: int = 0


def exact_plan(problem: Problem, order: Sequence[int], options: Options, memory: int) -> Plan:
    """Plan an elimination whose messages stay in the host's memory; it need not fit.

    Args:
        problem: Problem of the task ``pr``.
        order: The free variables in elimination order.
        options: Planning options.
        memory: Bytes that it may take.
    """
    return make_plan(problem, order, CpuBackend(options.threads).machine, memory, lasting=True)


def mini_bucket_plan(problem: Problem, order: Sequence[int], options: Options, memory: int, seconds: float) -> Plan:
    """Plan the largest weighted mini-buckets within a memory limit and an estimated time.

    Args:
        problem: Problem of the task ``pr``.
        order: The free variables in elimination order.
        options: Planning options.
        memory: Bytes that they may take.
        seconds: Estimated seconds that they may take.

    Raises:
        MemoryLimitError: Not even the smallest ones fit.
    """
    machine, ibound = CpuBackend(options.threads).machine, "auto" if options.ibound is None else options.ibound
    plan = make_bounded_plan(
        problem, order, machine, memory, None, ibound, options.levels_buckets, seconds, "upper", lasting=True
    )
    if not plan.fits or plan.has_large_factors:
        raise MemoryLimitError("mini-buckets do not fit")
    return plan


def message_proposal(problem: Problem, plan: Plan, options: Options, deadline: float | None) -> Proposal | None:
    """Run a plan, and return the proposal that its messages make; None if the sum is 0.

    Args:
        problem: Problem of the task ``pr``.
        plan: Its plan, from ``exact_plan`` or ``mini_bucket_plan``.
        options: Options of the plan.
        deadline: Deadline by ``time.monotonic``.

    Raises:
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
            return None
        log_sum = float(heuristic.total_of(heuristic.cost))
        slack = heuristic.rounding(session, heuristic.decode(session)[0])
        arena = np.asarray(session.fetch(0, plan.arena_cells), dtype=np.float64)
    words, sizes = heuristic.guide.tables, np.array(heuristic.guide.sizes, dtype=np.int64)
    variables = Steps.packed(plan.steps).variables
    parts = np.bincount(variables[variables >= 0], minlength=len(problem.model.sizes))[list(plan.order)]
    sampler = Sampler(arena, words, sizes, (parts > 1).astype(np.uint8), 0, len(sizes))
    divided = int((parts > 1).sum())
    return Proposal(sampler, plan.order, log_sum, log_sum + slack, False, arena.nbytes, divided)


def _exact_proposal(execution: Execution) -> Proposal | None:
    problem, plan = execution.problem, execution.plan
    guide = pseudo_tree_tables(plan, problem.model.sizes)
    for semiring in dict.fromkeys((plan.semiring, "log-sum-exp")):
        encoded = encode(problem, plan, semiring)
        if encoded.impossible:
            return None
        session = execution.backend.open(execution.program(semiring), encoded.arena)
        try:
            run = session.run(progress=execution.report)
            arena = np.asarray(session.fetch(0, plan.arena_cells), dtype=np.float64)
        finally:
            session.close()
        if semiring == "log-sum-exp":
            log_sum = encoded.offset + math.fsum(roots(plan, run))
            break
        scales = Scales(plan)
        if not encoded.exact or scales.may_underflow(encoded.ranges, run.peaks):
            del arena
            continue
        log_sum = scales.sum_of(run).times(encoded.factor).log10 * math.log(10)
        # Cells between tables hold anything.
        with np.errstate(divide="ignore", invalid="ignore"):
            np.log(arena, out=arena)
        break
    if log_sum == -math.inf:
        return None
    sizes = np.array(guide.sizes, dtype=np.int64)
    sampler = Sampler(arena, guide.tables, sizes, np.zeros(len(sizes), dtype=np.uint8), 0, len(sizes))
    return Proposal(sampler, plan.order, log_sum, log_sum, True, arena.nbytes)


class _LoggedTables(NamedTuple):
    """Logarithms of tables one after another, and their places as ``Sampler`` takes them."""

    arena: NDArray[np.float64]
    words: NDArray[np.int64]


def _logged(tables: Sequence[Table], homes: Sequence[int], row: Mapping[int, int]) -> _LoggedTables:
    """Return tables of probabilities, each in the bucket of a variable of its scope, given the row of each variable."""
    words: list[int] = []
    logs = [np.zeros(0)]
    offset = 0
    for table, home in zip(tables, homes, strict=True):
        strides = dict(zip(table.scope, np.cumprod([1, *table.sizes[:0:-1]])[::-1].tolist(), strict=True))
        others = [word for v, stride in strides.items() if v != home for word in (row[v], stride)]
        words += [offset, row[home], strides[home], -1, len(others) // 2, *others]
        with np.errstate(divide="ignore"):
            logs.append(np.log(table.dense().ravel().astype(np.float64)))
        offset += table.cells
    return _LoggedTables(np.concatenate(logs), np.array(words, dtype=np.int64))


def forward_proposal(problem: Problem, memory: int) -> Proposal | None:
    """Return the proposal that draws a network's parents before their children; None if the model is no network.

    It is likelihood weighting (Fung and Chang 1990), but for evidence that counts as soon as all parents but one are
    drawn.

    Args:
        problem: Problem of the task ``pr``.
        memory: Bytes that it may take.
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
    variables = tuple(v for v in reversed(sequence_of(model)) if v in free)
    row = {v: number for number, v in enumerate(variables)}
    logged = _logged(tables, [min(table.scope, key=row.__getitem__) for table in tables], row)
    sizes = np.array([model.sizes[v] for v in variables], dtype=np.int64)
    sampler = Sampler(logged.arena, logged.words, sizes, np.ones(len(sizes), dtype=np.uint8), 0, len(sizes))
    constant = float(model.constant) + math.fsum(map(math.log, constants))
    return Proposal(sampler, variables, constant, math.inf, False, logged.arena.nbytes)


def descendants_of(problem: Problem) -> dict[int, Table]:
    """Return a network's variables that nothing observed depends on, each with its distribution at observed values.

    They are drawn after all others, parents before children: the last one comes first.

    Args:
        problem: Problem of the task ``pr``, which leaves them out.
    """
    model = problem.model
    if model.children is None:
        return {}
    missing = set(range(len(model.sizes))).difference(problem.free, problem.fixed)
    tables = {v: factor for v, factor in zip(model.children, model.factors, strict=True) if v in missing}
    return {v: tables[v].restrict(problem.fixed) for v in reversed(sequence_of(model)) if v in missing}


def descendant_sampler(descendants: Mapping[int, Table], sizes: Sequence[int], drawn: Sequence[int]) -> Sampler:
    """Return a sampler of ``descendants_of`` a problem.

    Args:
        descendants: The variables and their distributions.
        sizes: Domain sizes of all variables.
        drawn: Variables of the rows before theirs, which another sampler draws.
    """
    rows = (*drawn, *descendants)
    logged = _logged(list(descendants.values()), list(descendants), {v: number for number, v in enumerate(rows)})
    own = np.array([sizes[v] for v in rows], dtype=np.int64)
    return Sampler(logged.arena, logged.words, own, np.zeros(len(own), dtype=np.uint8), len(drawn), len(rows))


def sequence_of(model: Model) -> list[int]:
    """Return a network's variables, parents before children."""
    assert model.children is not None
    parents: dict[int, tuple[int, ...]] = {}
    for child, factor in zip(model.children, model.factors, strict=True):
        parents[child] = tuple(v for v in factor.scope if v != child)
    children: list[list[int]] = [[] for _ in model.sizes]
    missing = [0] * len(model.sizes)
    for child, own in parents.items():
        missing[child] = len(own)
        for v in own:
            children[v].append(child)
    sequence = [v for v, count in enumerate(missing) if count == 0]
    for v in sequence:
        for child in children[v]:
            missing[child] -= 1
            if missing[child] == 0:
                sequence.append(child)
    return sequence
