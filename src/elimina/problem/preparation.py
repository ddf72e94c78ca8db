"""The problem of a task: relevant factors, and the tables to eliminate, from a model and evidence."""

from __future__ import annotations

import itertools
import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import TableList
from elimina.errors import InputError, MemoryLimitError
from elimina.model.model import Model
from elimina.model.table import LARGEST_NUMBER, Scopes, Sense, Table, Tables
from elimina.model.variable import Variable
from elimina.number_texts import counted
from elimina.option_names import by_interface
from elimina.problem import tasks
from elimina.problem.relevance import parents_first, prune_barren
from elimina.problem.semirings import SEMIRINGS
from elimina.problem.table_groups import Group, TableGroups
from elimina.system import lock_for_a_moment

Task = tasks.Task | Literal["joint"]
TASKS = (*tasks.tasks_that(lambda task: task.problem is None), "joint")

_MIN_NARROWED_SHARE = 0.05
"""Irrelevant axes are dropped if at least this share of the tables has any: dropping fewer hardly reduces the width. An
axis is irrelevant if the table's values do not depend on it."""
_KEPT_GROUPS, _KEPT_TABLES = 16, 10_000
"""Number of groupings that the process caches for problems with the same scopes, and largest number of tables in a
cached grouping."""

_groups: OrderedDict[tuple[tuple[tuple[int, ...], ...], ...], TableGroups] = OrderedDict()
_groups_lock = lock_for_a_moment()


class Problem(NamedTuple):
    """The part of a model on which a task depends.

    Attributes:
        model: The original model.
        task: ``mpe``, ``pr``, ``mar``, ``mmap``, ``count``, ``bottleneck`` or ``joint``.
        fixed: Value of each variable that is observed or has a single value.
        free: The variables to eliminate; variables that cannot affect the task are left out.
        kept: Variables that are not eliminated: those of a joint distribution, the case number of a batch, or
            conditioned variables.
        tables: The relevant factors, restricted to ``fixed``. Tables for optima may lack axes on which their values do
            not depend; tables for counts forbid at least one tuple.
        groups: Tables with a non-empty scope, grouped.
        constants: Indices of the tables with an empty scope.
        wanted: ``mar``: the free variables whose marginals are requested. ``mmap`` and ``joint``: the query's variables
            that are in ``fixed``.
        maximised: The free variables that are not summed over, for bounds on marginal MAP; they come last in the order.
        families: Scopes of additional joint marginals (``mar``). Each is part of a table's scope, and contains only
            free variables.
    """

    model: Model
    task: Task
    fixed: dict[int, int]
    free: tuple[int, ...]
    kept: tuple[int, ...]
    tables: Tables
    groups: TableGroups
    constants: tuple[int, ...]
    wanted: tuple[int, ...]
    maximised: tuple[int, ...] = ()
    families: tuple[tuple[int, ...], ...] = ()

    @property
    def described(self) -> tasks.Description:
        """Description of the task."""
        return tasks.described(self.task)

    @property
    def free_sizes(self) -> NDArray[np.int64]:
        """Sizes of the free variables."""
        sizes = self.model.size_array
        return sizes if len(self.free) == len(sizes) else sizes[np.array(self.free, dtype=np.int64)]

    @property
    def network(self) -> tuple[list[int], NDArray[np.int64], NDArray[np.int32]]:
        """Sizes of the free variables, and the groups' scopes as positions in ``free``, for order searches."""
        starts, members = self.groups.scopes
        position = np.full(len(self.model.sizes), -1, dtype=np.int32)
        position[np.array(self.free, dtype=np.int64)] = np.arange(len(self.free))
        return self.free_sizes.tolist(), starts, position[members]

    def complete(self, variables: Iterable[int], values: Iterable[int]) -> list[int]:
        """Return a value for each variable of the model: given values, fixed values, and 0 for other variables."""
        chosen = [0] * len(self.model.variables)
        for v, value in itertools.chain(zip(variables, values, strict=True), self.fixed.items()):
            chosen[v] = value
        return chosen


def prepare(model: Model, task: Task, evidence: Mapping[int, int], query: Collection[int] | None = None) -> Problem:
    """Restrict the factors to the evidence, drop irrelevant ones, and group the rest by scope.

    Args:
        model: Any model.
        task: Name of the task.
        evidence: Variable index -> value index.
        query: ``mar``: variables of the marginals; None: all. ``joint``: variables of the joint distribution. ``mmap``:
            variables to maximise. For ``mar`` and ``joint``, irrelevant variables are left out, so the sum is not the
            probability of the evidence.

    Raises:
        InputError: The task or a variable is unknown, a value is out of range, or the model's sense does not allow the
            task.
        MemoryLimitError: A sparse table has more than 2^62 cells.
    """
    if task not in TASKS:
        raise InputError(f"unknown task {task!r}; it is one of {', '.join(TASKS)}")
    check_sense(model, task)
    described = tasks.described(task)
    sizes = model.sizes
    for v, value in evidence.items():
        if not 0 <= v < len(sizes) or not 0 <= value < sizes[v]:
            raise InputError(f"evidence sets variable {v} to {value}; the model has {counted(len(sizes), 'variable')}")
    kept: Sequence[int] = range(len(model.factors))
    relevant: Collection[int] = range(len(sizes))
    if model.children is not None and described.is_sum and (query is not None or not described.is_distribution):
        # If the answer is a distribution, factors that only scale it are left out. Otherwise, treating queried
        # variables as observed keeps these factors.
        asked = query if described.is_distribution else None
        kept = relevant_factors(
            model, model.children, {*evidence, *(query or ())} if asked is None else evidence, asked
        )
        if asked is None:
            relevant = set(relevant) - children_without(model, kept)
        else:
            relevant = {v for f in kept for v in model.factors[f].scope}.union(asked)
    fixed = dict(evidence)
    if 1 in sizes:
        fixed.update((v, 0) for v, size in enumerate(sizes) if size == 1)
    if fixed:
        tables = Tables([model.factors[f].restrict(fixed) for f in kept])
    else:
        is_whole = len(kept) == len(model.factors)
        tables = model.tables if is_whole else Tables(map(model.factors.__getitem__, kept))
    if described.is_optimum:
        tables = _narrowed(tables)
    elif SEMIRINGS[described.semiring].encoding == "support":
        # Tables without forbidden tuples do not change a count.
        tables = tables.chosen(tables.listed.forbidding(model.sense))
    largest = tables[number] if (number := tables.listed.largest()) >= 0 else None
    if largest is not None and largest.cells > LARGEST_NUMBER:
        raise MemoryLimitError(
            f"a table that lists {counted(len(largest.values), 'tuple')} of {counted(len(largest.scope), 'variable')}, "
            f"{model.variables[largest.scope[0]].name!r} among them, has 10^{math.log10(largest.cells):.0f} cells, and "
            "at most 2^62 can be numbered; give evidence on its variables"
        )
    free = tuple(sorted(set(relevant).difference(fixed)) if fixed else sorted(relevant))
    groups = grouped(tables)
    if described.is_optimum:
        # Variables in no table are left out and get value 0, because all of their values are equally good.
        free = groups.variables if len(groups.variables) < len(free) else free
    constants = tuple(tables.listed.constants())
    wanted: tuple[int, ...] = ()
    if described.is_marginal:
        wanted = free if query is None else tuple([v for v in free if v in query])
    kept_variables: tuple[int, ...] = ()
    if described.keeps_query:
        wanted = tuple(v for v in query or () if v in fixed)
        kept_variables = tuple(v for v in query or () if v not in fixed)
        free = tuple(v for v in free if v not in kept_variables)
    return Problem(model, task, fixed, free, kept_variables, tables, groups, constants, wanted)


def check_sense(model: Model, task: str) -> None:
    """Check that a model has probabilities if the task sums them.

    Raises:
        InputError: The task sums probabilities, and the model has costs.
    """
    if tasks.described(task).is_sum:
        check_probabilities(model, f"task {task} sums probabilities")


def check_probabilities(model: Model, reason: str) -> None:
    """Check that a model has probabilities.

    Args:
        model: The model.
        reason: Reason why probabilities are needed, for the error text.

    Raises:
        InputError: The model has costs.
    """
    if model.sense != "probability":
        advice = by_interface(
            "if its tables are probabilities, make it with sense='probability'; if they are costs, convert it by "
            "elimina.io.convert_sense(model, 'probability')",
            "convert the costs to probabilities first (elimina convert MODEL OUT.uai)",
        )
        raise InputError(f"{reason}, and this model has costs ({model.sense}): {advice}")


def _narrowed(tables: Tables) -> Tables:
    """Return the tables without irrelevant axes; unchanged if few tables have such axes.

    An axis is irrelevant if the table's values do not depend on it. Narrower tables may lower the induced width.
    """
    idle = tables.listed.idle()
    if len(idle) < _MIN_NARROWED_SHARE * len(tables):
        return tables
    narrowed = list(tables)
    for number, axes in idle:
        table = tables[number]
        narrowed[number] = table.restrict({table.scope[axis]: 0 for axis in axes})
    return Tables(narrowed)


def children_without(model: Model, kept: Collection[int]) -> set[int]:
    """Return the children of the factors that are not kept: the variables that lose their distribution."""
    assert model.children is not None
    return {model.children[f] for f in set(range(len(model.factors))).difference(kept)}


def descendants_of(problem: Problem) -> dict[int, Table]:
    """Return a network's variables without observed descendants, each with its distribution given observed values.

    They can be drawn after all other variables, in the reverse order of the result: parents come before children.

    Args:
        problem: Problem of the task ``pr`` that leaves these variables out.
    """
    model = problem.model
    if model.children is None:
        return {}
    sequence = parents_first(model.children, [factor.scope for factor in model.factors], len(model.sizes))
    missing = set(range(len(model.sizes))).difference(problem.free, problem.fixed)
    tables = {v: factor for v, factor in zip(model.children, model.factors, strict=True) if v in missing}
    return {v: tables[v].restrict(problem.fixed) for v in reversed(sequence) if v in missing}


def restrict(problem: Problem, values: Mapping[int, int]) -> Problem:
    """Condition on further variables; the groups of tables stay the same.

    Args:
        problem: Problem of the task ``mpe``, ``pr`` or ``count``.
        values: Free variable -> value index.
    """
    tables = Tables([table.restrict(values) for table in problem.tables])
    remaining_groups = [(tuple(v for v in group.scope if v not in values), group.members) for group in problem.groups]
    return problem._replace(
        fixed={**problem.fixed, **values},
        free=tuple(v for v in problem.free if v not in values),
        maximised=tuple(v for v in problem.maximised if v not in values),
        tables=tables,
        groups=TableGroups.of(
            Group(scope, tuple(m for m in members if tables[m].scope)) for scope, members in remaining_groups if scope
        ),
        constants=tuple(i for i, table in enumerate(tables) if not table.scope),
    )


def condition(model: Model, values: Mapping[int, int]) -> Model:
    """Return the model given observed values: observed variables have a single value, and are in no table."""
    variables = [Variable(v.name, 1) if n in values else v for n, v in enumerate(model.variables)]
    factors = [table.restrict(values) for table in model.factors]
    return Model(variables, factors, sense=model.sense, constant=model.constant)


def with_units(model: Model, besides: Collection[int] = ()) -> Model:
    """Return the model with a factor of ones for each variable that is in no factor.

    Args:
        model: Any model.
        besides: Variables that get no such factor.
    """
    used = {v for factor in model.factors for v in factor.scope}.union(besides)
    unused = [v for v in range(len(model.variables)) if v not in used]
    if not unused:
        return model
    ones = [Table([v], (), sizes=[model.variables[v].size], rows=(), default=1.0) for v in unused]
    return Model(model.variables, [*model.factors, *ones], sense=model.sense, constant=model.constant)


def with_scopes(model: Model, scopes: Iterable[Sequence[int]]) -> Model:
    """Return the model with a factor of ones over each scope that is not part of a factor's scope.

    Args:
        model: Any model.
        scopes: Sets of variables.
    """
    holders: dict[int, list[frozenset[int]]] = {}
    for factor in model.factors:
        scope = frozenset(factor.scope)
        for v in scope:
            holders.setdefault(v, []).append(scope)
    added = [
        scope
        for scope in dict.fromkeys(map(tuple, scopes))
        if scope and not any(holder.issuperset(scope) for holder in holders.get(scope[0], ()))
    ]
    if not added:
        return model
    ones = [Table(scope, (), sizes=[model.sizes[v] for v in scope], rows=(), default=1.0) for scope in added]
    return Model(model.variables, [*model.factors, *ones], sense=model.sense, constant=model.constant)


def relevant_factors(
    model: Model, children: Sequence[int], evidence: Collection[int], query: Collection[int] | None
) -> Sequence[int]:
    """Return the factors on which the answer depends; barren factors are kept if they do not sum to 1.

    If several factors have the same child, all factors are returned.
    """
    if len(set(children)) < len(children):
        return range(len(children))
    scopes = [factor.scope for factor in model.factors]
    needed = prune_barren(scopes, children, evidence={*evidence, *(query or ())})
    lasting = {children[f] for f in model.unnormalised.difference(needed)}
    if query is None and not lasting:
        return needed
    return prune_barren(scopes, children, evidence=evidence, query=query, lasting=lasting)


def grouped(tables: Tables) -> TableGroups:
    """Assign each table to the smallest group whose scope contains the table's scope."""
    is_kept = len(tables) <= _KEPT_TABLES
    if is_kept:
        # The key includes the variables' sizes, because they determine the smallest group.
        with _groups_lock:
            if (kept_groups := _groups.get(tables.form)) is not None:
                return kept_groups
    listed = tables.listed.groups()
    groups = TableGroups(Scopes(listed.scope_starts, listed.scope_variables), listed.starts, listed.members)
    if is_kept:
        with _groups_lock:
            _groups[tables.form] = groups
            while len(_groups) > _KEPT_GROUPS:
                _groups.popitem(last=False)
    return groups


def allowed_ranges(tables: Sequence[Table] | TableList, sense: Sense) -> list[tuple[float, float] | None]:
    """Return the smallest and the largest allowed value of each table; None for a table without allowed values.

    Values of integer tables are ints.
    """
    if isinstance(tables, Tables):
        tables = tables.listed
    return (tables if isinstance(tables, TableList) else TableList(tables)).ends(sense)
