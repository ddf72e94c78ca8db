"""Answers to small problems from the core's planner and executor, without a plan in Python."""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import CaseNetwork
from elimina.model.model import Model
from elimina.model.states import Evidence
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.evidence import Observed, indices_asked
from elimina.problem.merging import SUM
from elimina.problem.observations import evidence_of
from elimina.problem.rewriting import is_rewritten, with_small_tables
from elimina.problem.tasks import Task, described
from elimina.result import JUNCTION_TREE, Marginals, Result
from elimina.running.phases import phase_seconds
from elimina.running.scaled import ScaledNumber, partition_result


def rewritten_for_sums(observed: Observed, whole: Collection[int] = ()) -> Observed:
    """Return an observed probability model with smaller tables and domains, but the same sums.

    Args:
        observed: A model and its observations.
        whole: Variables that keep all of their states.
    """
    if not is_rewritten(observed.model):
        return observed
    return Observed(*with_small_tables(observed.model, observed.values, SUM, whole=whole))


_MAX_VARIABLES = 1024
MAX_SMALL_CELLS = 1 << 18
"""Largest number of cells of all tables, 8 bytes each."""

_MAX_COMBINATIONS = 4e6
"""Largest number of combinations of output cells and eliminated values, which take a few ms. Larger problems need a
better order."""

_MIN_TIME_LIMIT_SECONDS = 1.0
"""Least time limit, in seconds, of calls that are answered without a plan: small networks always meet it."""

_MAX_LOG = 700.0
"""Absolute value of a natural logarithm up to which the exponential is finite and positive."""

_EXACT_COUNT = 2.0**53
"""Limit up to which all counts are exact in doubles."""


class SmallAnswer(NamedTuple):
    """The answer of a small network.

    Attributes:
        shares: Probabilities, one variable after another; NaN if the sum is 0, empty if only the sum was requested.
        log_sum: Natural logarithm of the sum over all assignments.
        sum: The sum; 0 or infinity if it exceeds the range of floats.
        width: Induced width.
        largest: Cells of the largest table.
        work: Number of combinations of output cells and eliminated values.
        cells: Number of cells of all tables.
    """

    shares: NDArray[np.float64]
    log_sum: float
    sum: float
    width: int
    largest: int
    work: int
    cells: int

    @property
    def total(self) -> ScaledNumber:
        """The sum: from ``sum`` if this is a normal float, otherwise from its logarithm."""
        if sys.float_info.min <= self.sum < math.inf:
            return ScaledNumber.product([self.sum])
        return ScaledNumber.from_log2(self.log_sum / math.log(2))


class SmallNetwork:
    """A model so small that each question gets a plan of its own.

    Args:
        model: Any model for counts; a model of probabilities for sums and posteriors.
        task: ``mar``: the sum and all posteriors; ``pr``: the sum; ``count``: the number of allowed assignments.

    Attributes:
        keeps_plan: True once a single plan answers all questions.
    """

    def __init__(self, model: Model, task: Task = "mar") -> None:
        is_counted, is_asked = described(task).is_count, described(task).is_marginal
        rule = "support" if is_counted else "products"
        tables = model.tables.listed
        self._core = CaseNetwork(tables, model.sense, rule, model.sizes, MAX_SMALL_CELLS, _MAX_COMBINATIONS, is_asked)
        self._constant = 0.0 if is_counted else float(model.constant)
        self.keeps_plan = False

    def keep(self, order: Sequence[int]) -> bool:
        """Use one plan with an order of all variables for all further questions; return False if it does not fit."""
        self.keeps_plan = self._core.keep(order)
        return self.keeps_plan

    def answer(self, evidence: Mapping[int, int]) -> SmallAnswer | None:
        """Return the answer for observed states; None if it takes too long, or exceeds the precision of doubles."""
        answer = self._core.answer(dict(evidence))
        if answer is None:
            return None
        small_answer = SmallAnswer(
            answer.shares, answer.log_sum, answer.sum, answer.width, answer.largest, answer.work, answer.cells
        )
        if not self._constant:
            return small_answer
        factor = math.exp(self._constant) if abs(self._constant) < _MAX_LOG else 0.0
        return small_answer._replace(log_sum=small_answer.log_sum + self._constant, sum=small_answer.sum * factor)


def is_small(model: Model, options: CheckedOptions) -> bool:
    """Return whether a model may be small enough to be answered without a plan, and no option requires one."""
    return (
        len(model.variables) <= _MAX_VARIABLES
        and math.isfinite(model.constant)
        and not options.needs_gpu
        and (options.memory is None or options.memory >= 8 * MAX_SMALL_CELLS)
        and options.order == "auto"
        and options.dtype in (None, "float64")
    )


def answer_at_once(
    model: Model,
    task: Task,
    evidence: Evidence | None,
    query: Sequence[str | int] | None,
    options: CheckedOptions,
    limit: float | None,
    begun: float,
) -> Result | None:
    """Answer ``mar``, ``pr`` or ``count`` for a small model; return None if this may take long or requires a plan.

    The posteriors of all variables are computed even for a query, because leaving out irrelevant factors takes longer.

    Args:
        model: Any model.
        task: Task.
        evidence: See ``elimina.solve``.
        query: See ``elimina.solve``.
        options: Options of the plan.
        limit: Time limit of the whole call, in seconds.
        begun: Start of the call by ``time.monotonic``.

    Raises:
        InputError: The evidence or the query does not fit the model.
    """
    asked = indices_asked(model, task, query)
    is_plain = options.tables != "sparse" and options.ibound is None and options.partition != "content"
    description = described(task)
    is_sum = description.is_count or (description.sums_all and model.sense == "probability")
    if not (is_plain and is_sum and is_small(model, options)) or (
        limit is not None and limit < _MIN_TIME_LIMIT_SECONDS
    ):
        return None
    if description.is_count and (options.dtype is not None or math.prod(model.sizes) > _EXACT_COUNT):
        return None
    started = time.monotonic()
    observations = {} if evidence is None else evidence_of(model, evidence)
    observed = {v: what for v, what in observations.items() if isinstance(what, int)}
    if len(observed) < len(observations):
        return None
    # The sum of a network without evidence is exactly 1. A plan returns it without rounding errors.
    if description.is_partition and model.children is not None and not observed:
        return None
    network = SmallNetwork(model, task)
    prepared = time.monotonic()
    answer = network.answer(observed)
    if answer is None:
        return None
    result = _result(model, task, answer, asked)
    ended = time.monotonic()
    stats = {
        "induced_width": answer.width,
        "largest_table": answer.largest,
        "total_cells": answer.work,
        "peak_bytes": 8 * answer.cells,
        "seconds": phase_seconds({"prepare": prepared - started, "run": ended - prepared}, ended - begun),
        "device": "cpu",
        "dtype": "float64",
    }
    if description.is_marginal:
        stats["structure"] = JUNCTION_TREE
    return result.replace(stats=stats)


def _result(model: Model, task: Task, answer: SmallAnswer, asked: Sequence[int] | None) -> Result:
    if described(task).is_partition:
        return partition_result(answer.total)
    if described(task).is_count:
        return Result("exact", "count", int(answer.sum))
    log10_z = answer.log_sum / math.log(10)
    if log10_z == -math.inf:
        return Result("infeasible", "mar", log10_z=log10_z)
    variables, shares = model.variables, answer.shares
    if asked is not None:
        ends = list(itertools.accumulate(model.sizes))
        shares = np.concatenate([shares[ends[v] - model.sizes[v] : ends[v]] for v in asked] or [shares[:0]])
        variables = tuple(variables[v] for v in asked)
    return Result("exact", "mar", log10_z=log10_z, marginals=Marginals(variables, shares))
