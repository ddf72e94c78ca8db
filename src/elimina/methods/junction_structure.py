"""Structure for posterior marginals: one junction tree, or one elimination for each group of queries.

The structure with the least estimated time is chosen. Observed variables are removed from the tables before planning.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import cells_of_part
from elimina.model.model import Model
from elimina.model.table import Scopes, Table
from elimina.model.variable import Variable
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import (
    BOTH_PASSES,
    COLLECTED_FACTOR_SECONDS,
    COMPARED_SET_SECONDS,
    ESTIMATED_FACTOR_SECONDS,
    PLANNED_FACTOR_SECONDS,
    cpu_machine,
    cuda_machine,
)
from elimina.planning.order import MAX_CELLS, Order
from elimina.planning.ordering import rough_order
from elimina.problem.merging import Merged
from elimina.problem.preparation import Problem, prepare
from elimina.problem.relevance import Relevance, bits
from elimina.result import JUNCTION_TREE
from elimina.system import cached_property

_SEARCH_TIME_SHARE, _MAX_SEARCH_SECONDS = 0.25, 0.1
"""Largest time for comparing structures: as a share of the single tree's estimated time, and in seconds. Typical
networks of a thousand variables take 20 ms."""


class Structure(NamedTuple):
    """Eliminations for the marginals of some variables.

    Attributes:
        problem: Problem of the task ``mar``.
        wanted: The queried variables of the model and, in the same sequence, the variables of ``problem`` whose
            marginals are their posteriors.
        trees: Number of eliminations in ``problem``; 1: a junction tree.
        left_out: Factors of P(evidence) that are missing in the sum of ``problem``; with several eliminations, all
            factors of P(evidence).
        log_states: Natural logarithm of the number of joint states of the unobserved variables that have no
            distribution and are in no factor of ``problem``. The sum over the model includes all of these states.
    """

    problem: Problem
    wanted: tuple[Sequence[int], Sequence[int]]
    trees: int
    left_out: tuple[int, ...]
    log_states: float = 0.0
    rough: Order | None = None
    """An elimination order of the problem's variables that was found quickly, if there is one."""

    @property
    def name(self) -> str:
        """Name in ``Result.stats``."""
        return JUNCTION_TREE if self.trees == 1 else f"{self.trees} eliminations"


class _QueryGroup(NamedTuple):
    """Factors (a set of bits) and queried variables of one elimination, with its estimated seconds."""

    factors: int
    variables: tuple[int, ...]
    seconds: float


def choose_structure(
    model: Model, evidence: Mapping[int, int], query: Sequence[int] | None, options: CheckedOptions
) -> Structure:
    """Choose the structure with the least estimated time: one junction tree, or eliminations for groups of variables.

    If the relevant factors of one variable are a subset of another's, both share an elimination. Groups with many
    common factors are then merged, as long as the estimated time falls.

    Args:
        model: A probability model.
        evidence: Variable index -> value index.
        query: The variables whose marginals are asked for; None: all.
        options: Planning options. A given order contains all variables, so all factors are used.

    Raises:
        InputError: The task does not fit the model.
    """
    sizes = model.sizes
    search, rough = _StructureSearch(model, evidence, options), None
    if query is None:
        problem = prepare(model, "mar", evidence)
        free: Sequence[int] = problem.wanted
        if isinstance(options.order, str) and _is_network(model):
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
    covered = 0
    for group in chosen:
        covered |= group.factors
    left_out = tuple(bits(relevance.of_evidence & ~covered))
    if len(chosen) == 1 and query is None:
        return Structure(problem, (free, free), 1, (), rough=rough)
    problem, wanted = _forest(model, evidence, chosen)
    if len(chosen) > 1:
        left_out, covered, free = tuple(bits(relevance.of_evidence)), 0, []
    log_states = _log_states(model, evidence, covered, free)
    return Structure(problem, (list(wanted), list(wanted.values())), len(chosen), left_out, log_states)


def _log_states(model: Model, evidence: Mapping[int, int], factors: int, variables: Iterable[int]) -> float:
    """Return ``Structure.log_states`` of a problem with these factors and variables."""
    assert model.children is not None
    counted = {*evidence, *model.children, *variables, *(v for f in bits(factors) for v in model.factors[f].scope)}
    return math.fsum(math.log(size) for v, size in enumerate(model.sizes) if v not in counted)


def _is_network(model: Model) -> bool:
    """Return whether the factors are distributions of different children, so that irrelevant ones may be left out."""
    if model.sense != "probability" or model.children is None or model.unnormalised:
        return False
    return len(set(model.children)) == len(model.children)


def _relevance(model: Model, evidence: Mapping[int, int]) -> Relevance | None:
    """Return the relevance of factors; None if they are not a network's distributions, so that all are needed."""
    if not _is_network(model):
        return None
    assert model.children is not None
    relevance = Relevance([factor.scope for factor in model.factors], model.children, evidence)
    return relevance if relevance.acyclic else None


class _StructureSearch:
    """Search for the partition of queries into junction trees that takes the least estimated time.

    Times are estimated from elimination orders that are found quickly. The search takes at most a share of the time of
    a single tree for all queries.
    """

    def __init__(self, model: Model, evidence: Mapping[int, int], options: CheckedOptions) -> None:
        self._model, self._evidence, self._sizes = model, evidence, model.sizes
        # The speed is that of one thread: only large steps use several threads, and large steps are rare in these
        # plans.
        machine = cuda_machine() if options.needs_gpu else cpu_machine(1)
        self._speed = machine.combinations
        self._allowed = math.inf

    def is_small(self, rough: Order, factors: int) -> bool:
        """Return whether the propagation in one tree takes less time than planning it."""
        return self._both_passes(rough.total_cells) < PLANNED_FACTOR_SECONDS * factors

    def _both_passes(self, cells: float) -> float:
        return BOTH_PASSES * min(cells, MAX_CELLS) / self._speed

    def best(
        self, relevance: Relevance, everything: int, variables: tuple[int, ...], rough: Order | None
    ) -> list[_QueryGroup]:
        """Return the structure with the least estimated time.

        Args:
            relevance: Relevant factors of each variable's posterior.
            everything: Set of the factors that a single tree needs, as bits.
            variables: The variables asked for.
            rough: An elimination order of the single tree that was found quickly, if there is one.
        """
        running = self._running(everything) if rough is None else self._both_passes(rough.total_cells)
        planning = PLANNED_FACTOR_SECONDS * everything.bit_count()
        tree = _QueryGroup(everything, variables, running + planning)
        if running < planning:
            return [tree]
        # Time is estimated from the number of factors, without a clock, so that every run makes the same choice.
        self._allowed = min(_SEARCH_TIME_SHARE * tree.seconds, _MAX_SEARCH_SECONDS)
        groups: dict[int, list[int]] = {}
        for v in variables:
            relevant = relevance.of((v,))
            groups.setdefault(relevant, []).append(v)
            self._allowed -= COLLECTED_FACTOR_SECONDS * relevant.bit_count()
            if self._allowed < 0:
                return [tree]
        marks = {factors: relevance.mark(own_variables[0], factors) for factors, own_variables in groups.items()}
        maximal = _maximal(marks)
        # Each set is compared with all others. Then the time of a merger with the nearest set is estimated. A merged
        # set has a quarter of all factors on average.
        self._allowed -= COMPARED_SET_SECONDS * len(maximal) ** 2
        expected = ESTIMATED_FACTOR_SECONDS * len(maximal) * everything.bit_count() / 4
        if len(maximal) < 2 or self._allowed < expected:
            return [tree]
        merged = self._merged(_grouped_queries(groups, marks, maximal))
        return merged if self._allowed >= 0 and sum(group.seconds for group in merged) < tree.seconds else [tree]

    def _merged(self, groups: Sequence[tuple[int, tuple[int, ...]]]) -> list[_QueryGroup]:
        """Merge each group with the one that needs the fewest additional factors, if this lowers the estimated time.

        Consecutive groups with the same nearest group are estimated together; their number doubles after each merger.
        """
        merged = [_QueryGroup(*groups[0], self._seconds(groups[0][0]))]
        done = together = 1
        while done < len(groups) and self._allowed >= 0:
            nearest_groups = [_nearest(factors, merged) for factors, _ in groups[done : done + together]]
            nearest = nearest_groups[0]
            similar = groups[done : done + len(list(itertools.takewhile(nearest.__eq__, nearest_groups)))]
            target = merged[nearest]
            union = functools.reduce(operator.or_, [factors for factors, _ in similar], target.factors)
            more = self._seconds(union) - target.seconds
            # Groups are merged if the merged run's additional time is less than the time to plan the groups separately,
            # as it often is. In that case, their separate runs need no estimate.
            is_cheap = more < PLANNED_FACTOR_SECONDS * sum(factors.bit_count() for factors, _ in similar)
            if not is_cheap and len(similar) > 1:
                together = len(similar) // 2
                continue
            done += len(similar)
            if not is_cheap and (alone := self._seconds(similar[0][0])) <= more:
                merged.append(_QueryGroup(*similar[0], alone))
                continue
            variables = itertools.chain(target.variables, *(group_variables for _, group_variables in similar))
            merged[nearest] = _QueryGroup(union, tuple(variables), target.seconds + more)
            together = 2 * len(similar)
        return merged

    @cached_property
    def _network(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint32]]:
        """The model's variables and scopes in the form that the core takes, without observed variables."""
        left_out = self._evidence.keys() | {v for v, size in enumerate(self._sizes) if size == 1}
        scopes = Scopes.of([[v for v in factor.scope if v not in left_out] for factor in self._model.factors])
        return np.array(self._sizes, dtype=np.float64), scopes.starts, scopes.members.astype(np.uint32)

    def _seconds(self, factors: int) -> float:
        return self._running(factors) + PLANNED_FACTOR_SECONDS * factors.bit_count()

    def _running(self, factors: int) -> float:
        self._allowed -= ESTIMATED_FACTOR_SECONDS * factors.bit_count()
        marks = factors.to_bytes(len(self._model.factors) // 8 + 1, "little")
        return self._both_passes(cells_of_part(*self._network, marks))


def _nearest(factors: int, groups: Sequence[_QueryGroup]) -> int:
    """Return the position of the group that lacks the fewest of these factors."""
    missing = [(factors & ~group.factors).bit_count() for group in groups]
    return missing.index(min(missing))


def _maximal(marks: Mapping[int, int]) -> list[int]:
    """Return the maximal sets, the largest first.

    Args:
        marks: Set of factors -> its mark: a factor that only this set and its supersets contain; -1 if there is none.
    """
    once = twice = 0
    for factors in marks:
        twice |= once & factors
        once |= factors
    maximal = [factors for factors, mark in marks.items() if mark >= 0 and not twice >> mark & 1] or [0]
    return sorted(maximal, key=lambda factors: (-factors.bit_count(), factors))


def _grouped_queries(
    groups: Mapping[int, Sequence[int]], marks: Mapping[int, int], maximal: Sequence[int]
) -> list[tuple[int, tuple[int, ...]]]:
    """Return each maximal set of factors with the variables of all groups whose factors it contains."""
    superset_of = {-1: maximal[-1]}
    for factors in maximal:
        superset_of.update(dict.fromkeys(bits(factors), factors))
    variables_of: dict[int, list[int]] = {factors: [] for factors in maximal}
    for factors, variables in groups.items():
        variables_of[superset_of[marks[factors]]].extend(variables)
    return [(factors, tuple(variables)) for factors, variables in variables_of.items()]


def _forest(model: Model, evidence: Mapping[int, int], groups: Sequence[_QueryGroup]) -> tuple[Problem, dict[int, int]]:
    """Combine all groups in one problem with separate variables; also return its variable for each queried variable."""
    variables: list[Variable] = []
    factors: list[Table] = []
    wanted: dict[int, int] = {}
    observed: dict[int, int] = {}
    for number, group in enumerate(groups):
        node_of: dict[int, int] = {}
        tables = [model.factors[f] for f in bits(group.factors)]
        for v in (*group.variables, *(v for table in tables for v in table.scope)):
            if v not in node_of:
                node_of[v] = len(variables)
                variables.append(Variable(f"{number}:{model.variables[v].name}", model.variables[v].size))
        factors += [table.over([node_of[v] for v in table.scope]) for table in tables]
        wanted.update((v, node_of[v]) for v in group.variables)
        observed.update((node_of[v], value) for v, value in evidence.items() if v in node_of)
    forest = Model(variables, factors, sense=model.sense, constant=model.constant)
    return prepare(forest, "mar", observed, list(wanted.values())), wanted


class MarginalQuery(NamedTuple):
    """Requested posteriors.

    Attributes:
        model: A probability model, with a leaf for each piece of soft evidence.
        evidence: Variable index -> value index.
        asked: The variables whose marginals go into the result.
        complete: True if the evidence's probability is asked for too.
        structure: Structure whose elimination gives the posteriors.
        merged: Variables with fewer states in this model than in the caller's, because equivalent states are merged.
    """

    model: Model
    evidence: Mapping[int, int]
    asked: Sequence[int]
    complete: bool
    structure: Structure
    merged: Mapping[int, Merged]
