"""Common part of ``plan`` and ``solve``: from a call's arguments to a plan, or at once to a small problem's answer."""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import CaseNetwork
from elimina.errors import InputError, UnsupportedError
from elimina.inference.choose import Planned, plan_again, plan_problem
from elimina.inference.execution import Scaled, partition_result
from elimina.inference.options import Options
from elimina.model import Model, Variable
from elimina.order import Order
from elimina.planning.merging import Merged, Purpose
from elimina.planning.prepare import Problem, prepare
from elimina.planning.rewriting import is_rewritten, with_small_tables
from elimina.result import JUNCTION_TREE, Marginals, Result, phase_seconds
from elimina.states import Evidence, evidence_of, indices_of
from elimina.table import Table
from elimina.tasks import Task, described

if TYPE_CHECKING:
    from elimina.inference.checkpoint import Checkpoint
    from elimina.inference.marginals import Inquiry
    from elimina.inference.shifting import Original

Array = NDArray[Any]


_LOWEST = -1000
"""Power of two from which on a leaf's probabilities are: normal floats, with digits to spare."""

_ORDER_PART = 6.0
"""Time limit of a call, by that of its search for an order, which the clock ends only after ten times as long."""


class Observed(NamedTuple):
    """A model and its observations.

    Attributes:
        model: The model.
        values: Variable index -> value index.
        merged: Variables that have fewer values than in the caller's model.
    """

    model: Model
    values: dict[int, int]
    merged: Mapping[int, Merged] = {}


def weights_of(variable: Variable, known: int | Array) -> Array:
    """Return one weight for each state; bool if the variable is observed.

    Args:
        variable: Variable of the evidence.
        known: Index of the observed state, or likelihoods.
    """
    if not isinstance(known, int):
        return known
    observed = np.zeros(variable.size, dtype=bool)
    observed[known] = True
    return observed


def with_leaves(model: Model, evidence: Mapping[int, int | Array]) -> Observed:
    """Turn likelihoods into observations of new variables (virtual evidence: Pearl 1988, section 2.2.2).

    The new variables come after the model's own. Each has its distribution given the variable that the likelihoods are
    about, so a network stays one, and what evidence makes irrelevant can be left out as ever. Likelihoods whose ratio
    is too small for a probability are the product of several leaves' probabilities.

    Args:
        model: A probability model.
        evidence: Variable -> index of its state, or likelihoods; a single positive one is an observation.
    """
    variables, factors = list(model.variables), list(model.factors)
    children = None if model.children is None else list(model.children)
    values: dict[int, int] = {}
    taken = {variable.name for variable in variables}
    constant = float(model.constant)
    for v, known in evidence.items():
        weight = weights_of(model.variables[v], known)
        high = float(weight.max())
        constant += math.log(high) if high > 0 else 0.0
        if np.count_nonzero(weight) == 1:
            values[v] = int(weight.argmax())
            continue
        for share in _shares(weight):
            leaf = len(variables)
            variables.append(Variable(_unused(taken, variables[v].name), 2))
            factors.append(Table([v, leaf], np.stack([1 - share, share], axis=1)))
            values[leaf] = 1
            if children is not None:
                children.append(leaf)
    if len(variables) > len(model.variables) or constant != model.constant:
        model = Model(
            variables, factors, sense=model.sense, constant=constant, children=children, name=model.name, check=False
        )
    return Observed(model, values)


def with_factors(model: Model, evidence: Mapping[int, int | Array]) -> Observed:
    """Turn likelihoods into factors, which every task takes; a single positive weight is also an observation."""
    weights = {v: weights_of(model.variables[v], known) for v, known in evidence.items()}
    values = {v: int(w.argmax()) for v, w in weights.items() if np.count_nonzero(w) == 1}
    soft = [Table([v], w) for v, w in weights.items() if v not in values or w.max() != 1]
    if soft:
        model = Model(model.variables, [*model.factors, *soft], sense=model.sense, constant=model.constant)
    return Observed(model, values)


def _shares(weight: Array) -> Iterator[Array]:
    """Yield factors of weights over the largest one: each from 0 to 1, none of them too small for its digits."""
    high = float(weight.max())
    if high == 0:
        yield weight
        return
    mantissas, exponents = np.frexp(weight)
    own, exponent = math.frexp(high)
    left = np.where(weight > 0, exponents - exponent, 0)
    quotients = mantissas / own
    # A quotient above 1 comes with a lower exponent.
    part = np.maximum(left, _LOWEST)
    yield np.ldexp(quotients, part)
    while (left := left - part).any():
        part = np.maximum(left, _LOWEST)
        yield np.ldexp(np.ones(len(weight)), part)


def _unused(taken: set[str], name: str) -> str:
    """Return an unused name for a leaf, and reserve it."""
    name = f"likelihood of {name}"
    while name in taken:
        name += "'"
    taken.add(name)
    return name


class Prepared(NamedTuple):
    """A plan, its inputs, and for mini-buckets the inputs of its problem."""

    first: First
    planned: Planned
    original: Original | None


class First(NamedTuple):
    """Preparations of a call, made once however often it plans.

    Attributes:
        problem: Problem of the call.
        rough: A quick order, if one was found.
        order: The order of a plan that was made.
        inquiry: Marginals that the plan is for (``mar``).
    """

    problem: Problem
    rough: Order | None = None
    order: Sequence[int] | None = None
    inquiry: Inquiry | None = None


def plan_call(
    model: Model,
    task: Task,
    evidence: Evidence | None,
    query: Sequence[str | int] | None,
    options: Options,
    time_limit: float | None = None,
    checkpoint: Checkpoint | None = None,
    shift_seconds: float = math.inf,
    first: First | None = None,
) -> Prepared:
    """Prepare a call's problem, shift its costs if mini-buckets are asked for, and plan.

    Args:
        model: Model, as in ``elimina.plan``.
        task: Task, as in ``elimina.plan``.
        evidence: Evidence, as in ``elimina.plan``.
        query: Query, as in ``elimina.plan``.
        options: Options of the call, already ``checked``.
        time_limit: Seconds for the whole call.
        checkpoint: Checkpoint that keeps the plan, or has one from a run that was ended.
        shift_seconds: After which no further pass of shifts is begun.
        first: Preparations, if they were made.

    Raises:
        InputError: An option or the evidence does not fit the model.
        DeviceError: The device is missing or cannot be used.
    """
    given = options
    asked = indices_asked(model, task, query)
    if time_limit is not None:
        options = options._replace(order_seconds=min(options.order_seconds, time_limit / _ORDER_PART))
    started = time.perf_counter()
    if first is None:
        observed = observe(model, task, {} if evidence is None else evidence, asked)
        if described(task).is_marginal:
            inquiry = _inquire(model, observed, asked, options)
            first = First(inquiry.structure.problem, inquiry.structure.rough, inquiry=inquiry)
        else:
            first = First(prepare(observed.model, described(task).problem or task, observed.values, asked))
    problem, rough, order, _ = first
    original = None
    if options.ibound is not None and described(task).is_optimum:
        from elimina.inference.shifting import LONGEST_SHIFT, shift_all

        most = min(LONGEST_SHIFT, (time_limit or math.inf) / 10, shift_seconds)
        original, options = shift_all(problem, options, most)
        problem, rough, order = original.moved, None, None
    prepared = time.perf_counter()
    if checkpoint is None:
        planned = plan_problem(problem, options, rough, order)
    elif checkpoint.is_new:
        planned = plan_problem(problem, options, rough, order)
        if planned.plan.fits:
            checkpoint.begin(model, problem, planned, given)
    else:
        checkpoint.check(model, problem, given)
        planned = plan_again(problem, checkpoint.choice, options)
        checkpoint.begin(model, problem, planned, given)
    seconds = {"prepare": prepared - started, **planned.seconds}
    return Prepared(first, planned._replace(seconds=seconds), original)


def indices_asked(model: Model, task: Task, query: Sequence[str | int] | None) -> tuple[int, ...] | None:
    """Return the indices of the query's variables; None for all.

    Raises:
        InputError: The query does not go with the task, or names no variable.
    """
    if query is not None and not described(task).takes_query:
        is_map = described(task).is_optimum and model.sense == "probability"
        other = ", or take mmap, the best states of some variables" if is_map else ""
        raise InputError(f"a query is for the tasks mar and mmap: leave it out for {task}{other}")
    asked = None if query is None else tuple(dict.fromkeys(indices_of(model, query, "query")))
    if described(task).keeps_query and not asked:
        raise InputError(
            f"the task {task} needs a query: name the variables whose most probable states are wanted (--query A,B)"
        )
    return asked


def known_total(model: Model, upper_bound: float | None) -> int | float | None:
    """Return the cost of a known solution; among integer costs, the next integer that is no worse.

    Raises:
        UnsupportedError: The model is one of probabilities.
    """
    if upper_bound is None:
        return None
    if model.sense == "probability":
        raise UnsupportedError(
            f"the upper bound {upper_bound} is for costs, and this model has probabilities: leave it out, or "
            "give the known assignment as a hint (--hint)"
        )
    if not model.is_integer:
        return float(upper_bound)
    return math.floor(upper_bound) if model.sign == 1 else math.ceil(upper_bound)


def _inquire(model: Model, observed: Observed, query: Sequence[int] | None, options: Options) -> Inquiry:
    from elimina.inference.marginals import Inquiry, choose_structure

    asked = range(len(model.variables)) if query is None else query
    structure = choose_structure(observed.model, observed.values, None if query is None else tuple(asked), options)
    return Inquiry(observed.model, observed.values, asked, query is None, structure, observed.merged)


def observe(model: Model, task: Task, evidence: Evidence, asked: Sequence[int] | None = None) -> Observed:
    """Return the model with its evidence; likelihoods become factors, and large listed tables or domains small ones.

    Args:
        model: Model, as in ``elimina.plan``.
        task: Task, as in ``elimina.plan``.
        evidence: Evidence, as in ``elimina.plan``.
        asked: Variables of the query.
    """
    observed = _observe(model, task, evidence)
    properties = described(task)
    if not is_rewritten(observed.model) or (properties.is_sum and model.sense != "probability"):
        return observed
    maximised = asked or () if properties.keeps_query else ()
    return Observed(*with_small_tables(observed.model, observed.values, _purpose(task), maximised))


def with_small_sums(observed: Observed, whole: Collection[int] = ()) -> Observed:
    """Return an observed probability model whose sums are the same, and large listed tables or domains small.

    Args:
        observed: A model and its observations.
        whole: Variables that keep all values.
    """
    if not is_rewritten(observed.model):
        return observed
    return Observed(*with_small_tables(observed.model, observed.values, "sum", whole=whole))


def _purpose(task: Task) -> Purpose:
    """Return the use of the values of variables that a task eliminates."""
    properties = described(task)
    if properties.is_optimum:
        return "best"
    if properties.is_sum:
        return "sum"
    return "count" if properties.problem is None else "count-best"


def own_assignment(result: Result, model: Model) -> Result:
    """Return a result without the auxiliary variables of the model that ``observe`` made of the caller's."""
    if result.assignment is None or len(result.assignment) <= len(model.variables):
        return result
    return result.replace(assignment={v.name: result.assignment[v.name] for v in model.variables})


def _defining_tables(model: Model, other: Model) -> dict[int, list[Table]]:
    """Return the listed tables that end with each auxiliary variable of a model that ``observe`` made, in order."""
    tables: dict[int, list[Table]] = {v: [] for v in range(len(model.variables), len(other.variables))}
    for table in other.factors if tables else ():
        if table.rows is not None and table.scope[-1] in tables:
            tables[table.scope[-1]].append(table)
    return tables


def _last_values(table: Table, values: Mapping[int, int]) -> Array:
    """Return the values of a listed table's last variable beside values of the others."""
    assert table.rows is not None
    is_there = (table.rows[:, :-1] == [values[v] for v in table.scope[:-1]]).all(axis=1)
    last: Array = table.rows[is_there, -1]
    return last


def values_there(model: Model, given: Mapping[int, int], other: Model) -> dict[int, int]:
    """Return values of a model's variables as those of a model that ``observe`` made of it.

    The values of all variables of a table that was replaced give its auxiliary variables theirs.
    """
    found = {}
    for v, value in given.items():
        mine, its = model.variables[v], other.variables[v]
        there = value if mine.size == its.size else its.find(mine.state(value))
        # The last value stands for those that were left out.
        found[v] = its.size - 1 if there is None else there
    for v, tables in _defining_tables(model, other).items():
        if all(found.keys() >= set(table.scope[:-1]) for table in tables):
            allowed = [_last_values(table, found) for table in tables]
            common = functools.reduce(np.intersect1d, allowed)
            found[v] = int(common[0]) if len(common) else 0
    return found


def _observe(model: Model, task: Task, evidence: Evidence) -> Observed:
    known = evidence_of(model, evidence)
    soft = [v for v, what in known.items() if not isinstance(what, int)]
    if not soft:
        return Observed(model, {v: what for v, what in known.items() if isinstance(what, int)})
    place = described(task).soft_evidence
    if model.sense != "probability" or place is None:
        name = model.variables[soft[0]].name
        reason = "a count" if place is None else f"a model with costs ({model.sense})"
        raise InputError(f"the evidence about variable {name!r} is an array of likelihoods, which {reason} cannot take")
    return with_factors(model, known) if place == "factors" else with_leaves(model, known)


_MOST_VARIABLES = 1024
MOST_CELLS = 1 << 18
"""Largest number of cells of all tables, 8 bytes each."""

_MOST_COMBINATIONS = 4e6
"""Most combinations of output cells and eliminated values: a few ms. Longer runs are worth a better order."""

_LEAST_SECONDS = 1.0
"""Shortest time limit that no small network reaches."""

_MOST_LOG = 700.0
"""Largest natural logarithm, and its negation the least, whose number a float holds."""

_EXACT_COUNT = 2.0**53
"""Largest count up to which doubles hold all of them."""


class SmallAnswer(NamedTuple):
    """The answer of a small network.

    Attributes:
        shares: Probabilities, one variable after the other; NaN where the sum is 0, empty where only that is asked for.
        log_sum: Natural logarithm of the sum of everything.
        sum: The sum itself; 0 or infinity where no float holds it.
        width: Induced width.
        largest: Cells of the largest table.
        work: Combinations of output cells and eliminated values.
        cells: Cells of all tables.
    """

    shares: NDArray[np.float64]
    log_sum: float
    sum: float
    width: int
    largest: int
    work: int
    cells: int

    @property
    def total(self) -> Scaled:
        """The sum, as exact as it is known."""
        if sys.float_info.min <= self.sum < math.inf:
            return Scaled.product([self.sum])
        return Scaled.from_log2(self.log_sum / math.log(2))


class SmallNetwork:
    """A model that is so small that each question is answered by a plan of its own.

    Args:
        model: Any model; of probabilities, for sums and posteriors.
        task: ``mar``: the sum and all posteriors; ``pr``: the sum; ``count``: the number of allowed assignments.

    Attributes:
        keeps_plan: True once all questions are answered by one plan.
    """

    def __init__(self, model: Model, task: Task = "mar") -> None:
        is_counted, is_asked = task == "count", described(task).is_marginal
        rule = "support" if is_counted else "products"
        tables = model.tables.listed
        self._core = CaseNetwork(tables, model.sense, rule, model.sizes, MOST_CELLS, _MOST_COMBINATIONS, is_asked)
        self._constant = 0.0 if is_counted else float(model.constant)
        self.keeps_plan = False

    def keep(self, order: Sequence[int]) -> bool:
        """Answer by one plan, of an order of all variables, from now on; return False where it does not fit."""
        self.keeps_plan = self._core.keep(order)
        return self.keeps_plan

    def answer(self, evidence: Mapping[int, int]) -> SmallAnswer | None:
        """Return the answer given observations; None where it takes too long, or needs more than doubles."""
        found = self._core.answer(dict(evidence))
        if found is None:
            return None
        known = SmallAnswer(*found)
        if not self._constant:
            return known
        factor = math.exp(self._constant) if abs(self._constant) < _MOST_LOG else 0.0
        return known._replace(log_sum=known.log_sum + self._constant, sum=known.sum * factor)


def is_small(model: Model, options: Options) -> bool:
    """Return whether a model may be small, and nothing is asked of its plan."""
    return (
        len(model.variables) <= _MOST_VARIABLES
        and math.isfinite(model.constant)
        and not options.needs_gpu
        and (options.room is None or options.room >= 8 * MOST_CELLS)
        and options.order == "auto"
        and options.dtype in (None, "float64")
    )


def answer_at_once(
    model: Model, task: Task, evidence: Evidence | None, options: Options, limit: float | None, begun: float
) -> Result | None:
    """Answer ``mar``, ``pr`` or ``count`` of a small model; None if it would take more than a few milliseconds.

    Args:
        model: Any model.
        task: Task, for all variables.
        evidence: See ``elimina.solve``.
        options: Options of the plan.
        limit: Seconds for the whole call.
        begun: Its start by ``time.monotonic``.

    Raises:
        InputError: The evidence does not fit the model.
    """
    is_plain = options.tables != "sparse" and options.ibound is None and options.partition != "content"
    is_sum = task == "count" or (task in ("mar", "pr") and model.sense == "probability")
    if not (is_plain and is_sum and is_small(model, options)) or (limit is not None and limit < _LEAST_SECONDS):
        return None
    if task == "count" and (options.dtype is not None or math.prod(model.sizes) > _EXACT_COUNT):
        return None
    started = time.monotonic()
    known = {} if evidence is None else evidence_of(model, evidence)
    observed = {v: what for v, what in known.items() if isinstance(what, int)}
    if len(observed) < len(known):
        return None
    # Without evidence the distributions of a network sum to 1 without rounding.
    if task == "pr" and model.children is not None and not observed:
        return None
    network = SmallNetwork(model, task)
    prepared = time.monotonic()
    found = network.answer(observed)
    if found is None:
        return None
    result = _result(model, task, found)
    ended = time.monotonic()
    stats = {
        "induced_width": found.width,
        "largest_table": found.largest,
        "total_cells": found.work,
        "peak_bytes": 8 * found.cells,
        "seconds": phase_seconds({"prepare": prepared - started, "run": ended - prepared}, ended - begun),
        "device": "cpu",
        "dtype": "float64",
    }
    if described(task).is_marginal:
        stats["structure"] = JUNCTION_TREE
    return result.replace(stats=stats)


def _result(model: Model, task: Task, found: SmallAnswer) -> Result:
    if task == "pr":
        return partition_result(found.total)
    if task == "count":
        return Result("exact", "count", int(found.sum))
    log10_z = found.log_sum / math.log(10)
    if log10_z == -math.inf:
        return Result("infeasible", "mar", log10_z=log10_z)
    return Result("exact", "mar", log10_z=log10_z, marginals=Marginals(model.variables, found.shares))
