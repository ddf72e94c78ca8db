"""The posteriors of variables, once: by one junction tree, or by several eliminations without irrelevant factors.

The structure with the least estimated time is chosen. Evidence is taken out of the tables before anything is planned.
"""

from __future__ import annotations

import functools
import itertools
import logging
import math
import operator
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import PlannedTree, cells_of_part
from elimina.display import bytes_text, count_text, sample, seconds_text
from elimina.errors import MemoryLimitError
from elimina.inference.answer import Answer, normalised
from elimina.inference.bucket import eliminate
from elimina.inference.choose import Planned, plan_problem
from elimina.inference.execution import Execution, check_fits, check_kept, statistics
from elimina.inference.options import Options
from elimina.inference.ordering import rough_order
from elimina.inference.propagator import Propagator
from elimina.model import Model, Variable
from elimina.order import CELLS_PER_SECOND, MOST_CELLS, Order
from elimina.planning.machine import (
    BOTH_PASSES,
    COLLECTED_FACTOR_SECONDS,
    COMPARED_SET_SECONDS,
    ESTIMATED_FACTOR_SECONDS,
    PLANNED_FACTOR_SECONDS,
    cpu_machine,
    cuda_machine,
)
from elimina.planning.merging import Merged
from elimina.planning.plan import Plan
from elimina.planning.prepare import Problem, Relevance, bits, prepare
from elimina.planning.steps import Outputs
from elimina.result import JUNCTION_TREE, Marginals, Result
from elimina.system import available_memory, cached_property
from elimina.table import Scopes, SizeProducts, Table
from elimina.tree import junction_tree, plan_tree

logger = logging.getLogger("elimina")

_STATE_BYTES = 40
"""Bytes that a state's probability, and its place, take while posteriors are collected."""

_LARGE_AVERAGE = 2.0**53
"""Mean number of cells from which it has no decimals."""

CONTRADICTION_SECONDS = 0.1
"""Estimated seconds that a look for a contradiction in evidence that a query does not depend on may take; or as long as
the query."""

_LARGE = 1 << 26
"""Bytes of posteriors from which the free memory is asked for."""


class Statistics(NamedTuple):
    """Sizes of a junction tree (CUBE, Bistaffa et al. 2016, Table I); tables in cells.

    Attributes:
        cliques: Number of maximal cliques.
        levels: Cliques on the longest way from a root.
        total_cells: Cells of all cliques.
        largest_clique, average_clique, smallest_clique: Table sizes.
        largest_separator, average_separator, smallest_separator: Likewise; 0 where there is none.
    """

    cliques: int
    levels: int
    total_cells: int
    largest_clique: int
    average_clique: float
    smallest_clique: int
    largest_separator: int
    average_separator: float
    smallest_separator: int

    def __str__(self) -> str:
        averages = _average_text(self.average_clique), _average_text(self.average_separator)
        rows = [
            ("junction tree", f"{self.cliques} cliques on {self.levels} levels, {count_text(self.total_cells)} cells"),
            ("cliques, cells", _sizes_text(self.largest_clique, averages[0], self.smallest_clique)),
            ("separators, cells", _sizes_text(self.largest_separator, averages[1], self.smallest_separator)),
        ]
        return "\n".join(f"{name + ':':22}{text}" for name, text in rows)


def _average(cells: Sequence[int]) -> float:
    """Return the mean; that of numbers without a float is rounded down to an integer."""
    total, count = sum(cells), max(1, len(cells))
    return total / count if total <= sys.float_info.max else total // count


def _average_text(average: float) -> str:
    return f"{average:.1f}" if average < _LARGE_AVERAGE else count_text(int(average))


def _sizes_text(largest: int, average: str, smallest: int) -> str:
    return f"{count_text(largest)} at most, {average} on average, {count_text(smallest)} at least"


def tree_statistics(problem: Problem, order: Sequence[int]) -> Statistics:
    """Return the sizes of the junction tree of an order."""
    sizes = problem.model.sizes
    return _statistics(plan_tree(problem.groups.scopes, sizes, order, problem.kept), sizes)


def plan_statistics(plan: Plan) -> Statistics:
    """Return the sizes of the junction tree that a plan's order makes, were its cliques stored."""
    # A plan whose steps are not recorded has factors all the same.
    domains = {v: size for factor in plan.factors for v, size in zip(factor.scope, factor.sizes, strict=True)}
    sizes = [domains.get(v, 1) for v in range(1 + max((*plan.order, *plan.kept), default=-1))]
    return _statistics(plan_tree([factor.scope for factor in plan.factors], sizes, plan.order, plan.kept), sizes)


def _statistics(tree: PlannedTree, sizes: Sequence[int]) -> Statistics:
    cliques = junction_tree(tree)
    product = SizeProducts(sizes)
    tables = [product.of(clique.scope) for clique in cliques]
    separators = [product.of(clique.separator) for clique in cliques if clique.parent >= 0]
    levels: list[int] = [0] * len(cliques)
    for number in reversed(range(len(cliques))):
        parent = cliques[number].parent
        levels[number] = 1 if parent < 0 else levels[parent] + 1
    return Statistics(
        cliques=len(cliques),
        levels=max(levels, default=0),
        total_cells=sum(tables),
        largest_clique=max(tables, default=0),
        average_clique=_average(tables),
        smallest_clique=min(tables, default=0),
        largest_separator=max(separators, default=0),
        average_separator=_average(separators),
        smallest_separator=min(separators, default=0),
    )


_SEARCH = 0.25
"""Share of the one tree's estimated time that these estimates may take."""


class Structure(NamedTuple):
    """Eliminations for the marginals of some variables.

    Attributes:
        problem: Problem of the task ``mar``.
        wanted: Variables of the model, and the ones of the problem's model whose marginals are their posteriors.
        trees: Number of eliminations that the problem is made of; 1: a junction tree.
        left_out: Factors that P(evidence) depends on, and the problem does not have.
        log_states: Natural logarithm of the number of joint states of the variables that are in no factor of the
            evidence or the problem and have no distribution, whose states all count in the model's sum.
    """

    problem: Problem
    wanted: tuple[Sequence[int], Sequence[int]]
    trees: int
    left_out: tuple[int, ...]
    log_states: float = 0.0
    rough: Order | None = None
    """A quick order of the problem's variables, if one was found."""

    @property
    def name(self) -> str:
        """Name in ``Result.stats``."""
        return JUNCTION_TREE if self.trees == 1 else f"{self.trees} eliminations"


class _Group(NamedTuple):
    """Factors (a set of bits) of one elimination, the variables asked for there, and the estimated seconds."""

    factors: int
    variables: tuple[int, ...]
    seconds: float


def choose_structure(
    model: Model, evidence: Mapping[int, int], query: Sequence[int] | None, options: Options
) -> Structure:
    """Choose by estimated time between one junction tree and eliminations for groups of variables.

    Variables with nested relevant factors share an elimination; of the others those are merged that have much in
    common, as long as the estimate falls.

    Args:
        model: A probability model.
        evidence: Variable index -> value index.
        query: The variables whose marginals are asked for; None: all.
        options: Planning options; a given order names all variables, so nothing is left out then.

    Raises:
        InputError: The task does not fit the model.
    """
    sizes = model.sizes
    search, rough = _Search(model, evidence, options), None
    if query is None:
        problem = prepare(model, "mar", evidence)
        free: Sequence[int] = problem.wanted
        if isinstance(options.order, str):
            rough = rough_order(problem, options)
        if rough is None or search.is_small(rough, len(model.factors)):
            return Structure(problem, (free, free), 1, (), rough=rough)
    else:
        free = [v for v in query if v not in evidence and sizes[v] > 1]
    relevance = _relevance(model, evidence) if isinstance(options.order, str) else None
    if relevance is None:
        if query is not None:
            problem = prepare(model, "mar", evidence)._replace(wanted=tuple(free))
        return Structure(problem, (free, free), 1, (), rough=rough)
    if query is None:
        everything = (1 << len(model.factors)) - 1
    else:
        everything = relevance.of(free) if free else relevance.of_evidence
    chosen = search.best(relevance, everything, tuple(free), rough)
    found = 0
    for group in chosen:
        found |= group.factors
    left_out = tuple(bits(relevance.of_evidence & ~found))
    if len(chosen) == 1 and query is None:
        return Structure(problem, (free, free), 1, (), rough=rough)
    problem, wanted = _forest(model, evidence, chosen)
    if len(chosen) > 1:
        left_out, found, free = tuple(bits(relevance.of_evidence)), 0, []
    log_states = _log_states(model, evidence, found, free)
    return Structure(problem, (list(wanted), list(wanted.values())), len(chosen), left_out, log_states)


def _log_states(model: Model, evidence: Mapping[int, int], factors: int, variables: Iterable[int]) -> float:
    """Return ``Structure.log_states`` of a problem with these factors and variables."""
    assert model.children is not None
    known = {*evidence, *model.children, *variables, *(v for f in bits(factors) for v in model.factors[f].scope)}
    return math.fsum(math.log(size) for v, size in enumerate(model.sizes) if v not in known)


def _relevance(model: Model, evidence: Mapping[int, int]) -> Relevance | None:
    """None if nothing may be left out, since the factors are not the conditional distributions of a network."""
    if model.sense != "probability" or model.children is None or model.unnormalised:
        return None
    if len(set(model.children)) < len(model.children):
        return None
    relevance = Relevance([factor.scope for factor in model.factors], model.children, evidence)
    return relevance if relevance.acyclic else None


class _Search:
    """Estimates by quick orders, which may take a share of the time of the single tree."""

    def __init__(self, model: Model, evidence: Mapping[int, int], options: Options) -> None:
        self._model, self._evidence, self._sizes = model, evidence, model.sizes
        # Threads share large steps only, and networks whose structure is in doubt have few of them.
        machine = cuda_machine() if options.needs_gpu else cpu_machine(1)
        self._speed = machine.combinations
        self._allowed = math.inf

    def is_small(self, rough: Order, factors: int) -> bool:
        """Return whether one tree takes less time than planning it."""
        return self._both_passes(rough.total_cells) < PLANNED_FACTOR_SECONDS * factors

    def _both_passes(self, cells: float) -> float:
        return BOTH_PASSES * min(cells, MOST_CELLS) / self._speed

    def best(
        self, relevance: Relevance, everything: int, variables: tuple[int, ...], rough: Order | None
    ) -> list[_Group]:
        """Return the structure with the least estimated time.

        Args:
            relevance: Factors that each variable's posterior depends on.
            everything: Factors of a single tree.
            variables: The variables asked for.
            rough: A quick order of the single tree, if it is known.
        """
        running = self._running(everything) if rough is None else self._both_passes(rough.total_cells)
        planning = PLANNED_FACTOR_SECONDS * everything.bit_count()
        tree = _Group(everything, variables, running + planning)
        if running < planning:
            return [tree]
        # By count, not by the clock: the choice is the same on every run.
        self._allowed = _SEARCH * tree.seconds
        groups: dict[int, list[int]] = {}
        for v in variables:
            own = relevance.of((v,))
            groups.setdefault(own, []).append(v)
            self._allowed -= COLLECTED_FACTOR_SECONDS * own.bit_count()
            if self._allowed < 0:
                return [tree]
        marks = {factors: relevance.mark(own_variables[0], factors) for factors, own_variables in groups.items()}
        maximal = _maximal(marks)
        # Each is compared with all others, and estimated with the nearest one: a quarter of everything on average.
        self._allowed -= COMPARED_SET_SECONDS * len(maximal) ** 2
        expected = ESTIMATED_FACTOR_SECONDS * len(maximal) * everything.bit_count() / 4
        if len(maximal) < 2 or self._allowed < expected:
            return [tree]
        merged = self._merged(_shared_out(groups, marks, maximal))
        return merged if self._allowed >= 0 and sum(group.seconds for group in merged) < tree.seconds else [tree]

    def _merged(self, groups: Sequence[tuple[int, tuple[int, ...]]]) -> list[_Group]:
        """Merge each group with the one that needs the fewest additional factors, if the estimate is lower.

        Groups that go to the same one are estimated together, twice as many after each success.
        """
        merged = [_Group(*groups[0], self._seconds(groups[0][0]))]
        done = together = 1
        while done < len(groups) and self._allowed >= 0:
            places = [_nearest(factors, merged) for factors, _ in groups[done : done + together]]
            nearest = places[0]
            some = groups[done : done + len(list(itertools.takewhile(nearest.__eq__, places)))]
            other = merged[nearest]
            union = functools.reduce(operator.or_, [factors for factors, _ in some], other.factors)
            more = self._seconds(union) - other.seconds
            # Most often planning alone takes longer, and a group's own run need not be estimated.
            is_cheap = more < PLANNED_FACTOR_SECONDS * sum(factors.bit_count() for factors, _ in some)
            if not is_cheap and len(some) > 1:
                together = len(some) // 2
                continue
            done += len(some)
            if not is_cheap and (alone := self._seconds(some[0][0])) <= more:
                merged.append(_Group(*some[0], alone))
                continue
            variables = itertools.chain(other.variables, *(own for _, own in some))
            merged[nearest] = _Group(union, tuple(variables), other.seconds + more)
            together = 2 * len(some)
        return merged

    @cached_property
    def _network(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint32]]:
        """The model as the core takes it, without variables whose value is known."""
        left_out = self._evidence.keys() | {v for v, size in enumerate(self._sizes) if size == 1}
        scopes = Scopes.of([[v for v in factor.scope if v not in left_out] for factor in self._model.factors])
        return np.array(self._sizes, dtype=np.float64), scopes.starts, scopes.members.astype(np.uint32)

    def _seconds(self, factors: int) -> float:
        return self._running(factors) + PLANNED_FACTOR_SECONDS * factors.bit_count()

    def _running(self, factors: int) -> float:
        self._allowed -= ESTIMATED_FACTOR_SECONDS * factors.bit_count()
        marks = factors.to_bytes(len(self._model.factors) // 8 + 1, "little")
        return self._both_passes(cells_of_part(*self._network, marks))


def _nearest(factors: int, groups: Sequence[_Group]) -> int:
    """Return the place of the group that lacks the fewest of some factors."""
    missing = [(factors & ~group.factors).bit_count() for group in groups]
    return missing.index(min(missing))


def _maximal(marks: Mapping[int, int]) -> list[int]:
    """Return the sets that no other one contains, largest first, where one that has another one's mark contains it."""
    once = twice = 0
    for factors in marks:
        twice |= once & factors
        once |= factors
    found = [factors for factors, mark in marks.items() if mark >= 0 and not twice >> mark & 1] or [0]
    return sorted(found, key=lambda factors: (-factors.bit_count(), factors))


def _shared_out(
    groups: Mapping[int, Sequence[int]], marks: Mapping[int, int], maximal: Sequence[int]
) -> list[tuple[int, tuple[int, ...]]]:
    """Return the maximal sets with the variables of all sets, which go to the smallest one around them."""
    holders = {-1: maximal[-1]}
    for factors in maximal:
        holders.update(dict.fromkeys(bits(factors), factors))
    held: dict[int, list[int]] = {factors: [] for factors in maximal}
    for factors, variables in groups.items():
        held[holders[marks[factors]]].extend(variables)
    return [(factors, tuple(variables)) for factors, variables in held.items()]


def _forest(model: Model, evidence: Mapping[int, int], groups: Sequence[_Group]) -> tuple[Problem, dict[int, int]]:
    """Return one problem of all groups, each with variables of its own."""
    variables: list[Variable] = []
    factors: list[Table] = []
    wanted: dict[int, int] = {}
    observed: dict[int, int] = {}
    for number, group in enumerate(groups):
        place: dict[int, int] = {}
        tables = [model.factors[f] for f in bits(group.factors)]
        for v in (*group.variables, *(v for table in tables for v in table.scope)):
            if v not in place:
                place[v] = len(variables)
                variables.append(Variable(f"{number}:{model.variables[v].name}", model.variables[v].size))
        factors += [table.over([place[v] for v in table.scope]) for table in tables]
        wanted.update((v, place[v]) for v in group.variables)
        observed.update((place[v], value) for v, value in evidence.items() if v in place)
    forest = Model(variables, factors, sense=model.sense, constant=model.constant)
    return prepare(forest, "mar", observed, list(wanted.values())), wanted


class Inquiry(NamedTuple):
    """Posteriors that are asked for.

    Attributes:
        model: A probability model, with a leaf for each piece of soft evidence.
        evidence: Variable index -> value index.
        asked: The variables whose marginals go into the result.
        complete: True if the evidence's probability is asked for too.
        structure: Structure whose elimination gives them.
        merged: Variables that have more states than in the model.
    """

    model: Model
    evidence: Mapping[int, int]
    asked: Sequence[int]
    complete: bool
    structure: Structure
    merged: Mapping[int, Merged]


def posteriors(inquiry: Inquiry, execution: Execution, options: Options, seconds: Mapping[str, float]) -> Result:
    """Run the plan of an inquiry's structure.

    Args:
        inquiry: Posteriors that are asked for.
        execution: The structure's problem, its plan, and where to run it.
        options: Options of the elimination that finds the evidence's probability where the structure does not give it.
        seconds: Time spent so far by phase; it goes into the result's statistics.

    Raises:
        MemoryLimitError: The plan does not fit.
        TimeLimitError: The deadline passed.
    """
    check_fits(execution.plan)
    clock = dict(seconds)
    answer = _propagate(execution, clock)
    started = time.perf_counter()
    log10_z = _log10_z(inquiry, answer, execution, options)
    clock["evidence"] = time.perf_counter() - started
    stats = {**statistics(execution, clock), "structure": inquiry.structure.name}
    if log10_z == -math.inf:
        return Result("infeasible", "mar", log10_z=log10_z, stats=stats)
    found = _marginals(inquiry, execution.problem, execution.plan, answer)
    return Result("exact", "mar", log10_z=log10_z, marginals=found, stats=stats)


def _propagate(execution: Execution, clock: dict[str, float]) -> Answer:
    outputs = Outputs.packed(execution.plan.outputs).marginals.tolist()
    planned = Planned(execution.problem, execution.plan, execution.backend, {})
    clock.update(encode=0.0, run=0.0)
    for semiring in ("sum-product", "log-sum-exp"):
        started = time.perf_counter()
        propagator = Propagator(planned, semiring, once=True)
        encoded = time.perf_counter()
        answer = propagator.run(outputs, progress=execution.report)
        propagator.close()
        clock["encode"] += encoded - started
        clock["run"] += time.perf_counter() - encoded
        if answer.sound:
            break
    return answer


def _log10_z(inquiry: Inquiry, answer: Answer, execution: Execution, options: Options) -> float | None:
    """Return minus infinity for evidence that proves impossible; None if the structure does not yield log10 Z."""
    model, evidence, structure = inquiry.model, inquiry.evidence, inquiry.structure
    log_sum = float(answer.log_sum)
    left_out = [model.factors[f] for f in structure.left_out]
    constants = [float(table.at(evidence)) for table in left_out if evidence.keys() >= set(table.scope)]
    if log_sum == -math.inf or not all(constants):
        return -math.inf
    if structure.trees == 1 and len(constants) == len(left_out):
        return (log_sum + sum(map(math.log, constants)) + structure.log_states) / math.log(10)
    if not evidence:
        return (float(model.constant) + structure.log_states) / math.log(10)
    if not inquiry.complete:
        return -math.inf if _is_contradicted(model, evidence, left_out, execution, options) else None
    planned = plan_problem(prepare(model, "pr", evidence), options)
    found = eliminate(execution._replace(problem=planned.problem, plan=planned.plan, backend=planned.backend), {})
    return found.log10_z


def _is_contradicted(
    model: Model, evidence: Mapping[int, int], left_out: Sequence[Table], execution: Execution, options: Options
) -> bool:
    """Return whether the factors that the query does not depend on have no common assignment of positive probability.

    Only factors with zeros matter, and most networks have few: each becomes a table of ones and zeros.

    Args:
        model: A probability model.
        evidence: Variable index -> value index.
        left_out: Factors that the evidence's probability depends on, and the query does not.
        execution: Run of the query.
        options: Planning options.
    """
    constraints = [
        table.mapped(lambda values: (values > 0).astype(np.float64))
        for table in left_out
        if not table.values.all() or table.default == 0
    ]
    if not constraints:
        return False
    observed = {v: evidence[v] for table in constraints for v in table.scope if v in evidence}
    problem = prepare(Model(model.variables, constraints, sense="probability"), "pr", observed)
    allowed = max(CONTRADICTION_SECONDS, execution.plan.seconds)
    rough = rough_order(problem, options)
    seconds = rough.seconds_at(CELLS_PER_SECOND)
    if seconds <= allowed:
        planned = plan_problem(problem, options._replace(device="cpu"), order=rough.order)
        seconds = planned.plan.seconds
        if seconds <= allowed and planned.plan.fits:
            run = Execution(problem, planned.plan, planned.backend, deadline=execution.deadline)
            return eliminate(run, {}).status == "infeasible"
    variables = {v for table in left_out for v in table.scope if v in evidence}
    names = [model.variables[v].name for v in sorted(variables)]
    logger.warning(
        "the evidence about %s does not change the answer, and may be impossible: to find out would take about %s; "
        "the task pr tells (--task pr)",
        sample(names, len(names)),
        seconds_text(seconds),
    )
    return False


def _marginals(inquiry: Inquiry, problem: Problem, plan: Plan, answer: Answer) -> Marginals:
    """Return the marginals that are asked for; a known state has probability 1."""
    shares, starts = answer.shares()
    outputs, model = Outputs.packed(plan.outputs), inquiry.model
    # The start of a variable's marginal, first by the problem's variables, then by the model's.
    begins = np.full(len(problem.model.variables), -1)
    begins[outputs.scopes.members] = starts
    variables, sources = inquiry.structure.wanted
    places, known = np.full(len(model.variables), -1), np.zeros(len(model.variables), dtype=np.int64)
    places[_integers(variables)] = begins[_integers(sources)]
    known[_integers(inquiry.evidence.keys())] = _integers(inquiry.evidence.values())
    asked = _integers(inquiry.asked)
    sizes = np.array(model.sizes, dtype=np.int64)[asked]
    merged = {v: inquiry.merged[v] for v in inquiry.merged.keys() & inquiry.asked}
    is_whole = len(asked) == len(model.variables) and inquiry.complete and not merged
    variables_asked: Sequence[Variable] = model.variables
    if not is_whole:
        variables_asked = [merged[v].variable if v in merged else model.variables[v] for v in inquiry.asked]
    _check_room(variables_asked)
    firsts, found = np.cumsum(sizes) - sizes, shares
    if len(shares) != sizes.sum() or not np.array_equal(places[asked], firsts):  # else all are there, in this sequence
        owners = np.repeat(asked, sizes)
        states, is_found = np.arange(len(owners)) - np.repeat(firsts, sizes), places[owners] >= 0
        found = (states == known[owners]).astype(np.float64)
        found[is_found] = shares[(places[owners] + states)[is_found]]
    if merged:
        parts = zip(inquiry.asked, np.split(found, firsts[1:]), strict=True)
        found = np.concatenate([merged[v].spread(part) if v in merged else part for v, part in parts])
    return Marginals(variables_asked, found)


def _check_room(variables: Sequence[Variable]) -> None:
    """Check that the posteriors of variables fit into memory."""
    sizes = [variable.size for variable in variables]
    needed = _STATE_BYTES * sum(sizes)
    if needed > _LARGE and needed > (free := available_memory()):
        largest = max(variables, key=lambda variable: variable.size)
        raise MemoryLimitError(
            f"the posteriors take {bytes_text(needed)} of host memory, and {bytes_text(free)} are free: ask for other "
            f"variables (--query) than {largest.name!r}, which has {largest.size:,} states"
        )


def joint_table(
    model: Model, evidence: Mapping[int, int], variables: Sequence[int], options: Options
) -> NDArray[np.float64]:
    """Return the normalised joint posterior of variables, by elimination of the others; observed ones have length 1.

    Raises:
        MemoryLimitError: The plan does not fit.
    """
    problem = prepare(model, "joint", evidence, tuple(variables))
    planned = plan_problem(problem, options)
    check_kept(planned.plan, options)
    for semiring in ("sum-product", "log-sum-exp"):
        propagator = Propagator(planned, semiring)
        answer = propagator.run([0], log_sum=False)
        propagator.close()
        if answer.sound:
            break
    table = normalised(answer.tables[0].reshape(-1), answer.logarithmic).reshape(answer.tables[0].shape)
    order = [problem.kept.index(v) for v in variables if v in problem.kept]
    sizes = [model.variables[v].size if v in problem.kept else 1 for v in variables]
    return table.transpose(order).reshape(sizes)


def _integers(numbers: Collection[int]) -> NDArray[np.int64]:
    return np.fromiter(numbers, np.int64, len(numbers))
