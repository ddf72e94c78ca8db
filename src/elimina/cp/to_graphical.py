"""Conversion of constraint models to graphical models: tables of allowed tuples, and costs for the objective."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elimina._core import CpSearch, CpSolver
from elimina.cp.constraint_tables import ConstraintTable, ConstraintTables, Infeasible
from elimina.cp.decompose import rule_of
from elimina.cp.domains import PropagatedDomains
from elimina.cp.posting import Declaration, PostedModel, check_time
from elimina.cp.views import Integers, View, views_of
from elimina.errors import InputError
from elimina.model import model as graphical
from elimina.model.table import Table, forbidden_value
from elimina.model.variable import Variable
from elimina.number_texts import counted
from elimina.option_names import by_interface

_MAX_ENUMERATED_CELLS = 1 << 10
_FAILURES_PER_TUPLE = 8
_SPARSE_CELLS_SHARE = 0.25
"""A table is sparse if the number of values in all its tuples is below this share of a dense table's cells."""
_MAX_COST = 1 << 60
_LISTING_CONSTRAINTS = ("set_in", "table_int")
"""Constraints whose second argument lists all values of the variables of the first one."""


def tabulate(posted: PostedModel, solver: CpSolver, rows: int, deadline: float | None = None) -> graphical.Model:
    """Return the graphical model of the posted constraints.

    Args:
        posted: Everything that was posted.
        solver: Solver to which the model was posted.
        rows: Largest number of tuples of a table.
        deadline: Deadline by ``time.monotonic``; None: there is none.

    Raises:
        TimeLimitError: The deadline passed.
        InputError: A variable has more than ``rows`` values; a constraint has more than ``rows`` tuples, or assignments
            to check, or takes too long to list; or a term of the objective is beyond 2^60.
    """
    try:
        seconds = math.inf if deadline is None else max(0.0, deadline - time.monotonic())
        is_consistent = solver.propagate(seconds)
        if is_consistent is None:
            check_time(deadline)
        if not is_consistent:
            raise Infeasible
        return _Tabulation(posted, solver, rows, deadline).model()
    except Infeasible:
        names = [_name_of(posted.names, v) for v in range(len(posted.variables))]
        nothing = Variable(_unused_name("nothing", names), 1, ["is allowed"])
        worst = forbidden_value(posted.sense, np.int64)
        return graphical.Model([nothing], [Table([0], [worst])], sense=posted.sense)


def _name_of(names: Mapping[int, str], v: int) -> str:
    return names.get(v, f"_{v}")


def _unused_name(name: str, names: Sequence[str]) -> str:
    while name in names:
        name += "_"
    return name


class _Terms(NamedTuple):
    """A linear equation: the sum of the constant and of each variable times its factor is 0."""

    factors: dict[int, int]
    constant: int


def _terms_of(factors: Sequence[View], xs: Sequence[View], right: Sequence[View]) -> _Terms:
    """Return the arguments of an ``int_lin_eq`` as terms; a variable that cancels out has the factor 0."""
    terms: dict[int, int] = {}
    constant = 0
    for factor, x in [*((f.offset, x) for f, x in zip(factors, xs, strict=True)), (-1, right[0])]:
        constant += factor * x.offset
        if x.var >= 0:
            terms[x.var] = terms.get(x.var, 0) + factor * x.scale
    return _Terms(terms, constant)


class _Tabulation:
    def __init__(self, posted: PostedModel, solver: CpSolver, rows: int, deadline: float | None) -> None:
        self._posted, self._rows = posted, rows
        self._constraints = [(name, [views_of(a) for a in arguments]) for name, arguments in posted.constraints]
        self._costs = dict(posted.objective or {})
        self._constant = posted.constant
        self._objective_variable: int | None = None
        self._enumerations: dict[Any, Integers] = {}
        propagated = PropagatedDomains(self._listed_domains(), solver)
        summed = self._sum_of_objective(solver)
        for v in range(len(posted.variables)):
            if propagated.sizes[v] > rows and v != self._objective_variable:
                raise InputError(
                    f"variable {_name_of(posted.names, v)} has {counted(propagated.sizes[v], 'value')}, more "
                    f"than {rows:,}; "
                    "narrow its domain, or leave the model to the search "
                    f"({by_interface('Model.solve', 'elimina cp, fzn-elimina')})"
                )
        domains = [
            np.array(propagated.values(v) if v != self._objective_variable else [0])
            for v in range(len(posted.variables))
        ]
        self._tables = ConstraintTables(domains, rows, deadline)
        if summed is not None:
            self._constraints.pop(summed)

    def _listed_domains(self) -> list[Declaration]:
        """Return the variables; the values of a variable with a wide domain are those that constraints list.

        Equations of two variables carry the values of one over to the other.

        Raises:
            Infeasible: Constraints list no common value.
        """
        domains = list(self._posted.variables)
        wide = {v for v in range(len(domains)) if self._is_wide(domains[v])}
        for name, arguments in self._constraints if wide else ():
            if name not in _LISTING_CONSTRAINTS:
                continue
            xs, cells = arguments
            for column, x in enumerate(xs):
                if x.var not in wide:
                    continue
                lo, hi, values = domains[x.var]
                quotients = (divmod(cell.offset - x.offset, x.scale) for cell in cells[column :: len(xs)])
                listed = {value for value, rest in quotients if rest == 0 and lo <= value <= hi}
                listed.intersection_update(listed if values is None else values)
                if not listed:
                    raise Infeasible
                domains[x.var] = Declaration(lo, hi, tuple(sorted(listed)))
        if any(map(self._is_wide, domains)):
            self._list_values_by_equations(domains)
        return domains

    def _is_wide(self, domain: Declaration) -> bool:
        return domain.values is None and domain.hi - domain.lo >= self._rows

    def _list_values_by_equations(self, domains: list[Declaration]) -> None:
        """List the values of wide domains whose variable is in an equation with one variable of a listed domain."""
        partners: dict[int, list[tuple[int, _Terms]]] = {}
        for name, arguments in self._constraints:
            terms = _terms_of(*arguments) if name == "int_lin_eq" else _Terms({}, 0)
            if len(terms.factors) == 2 and all(terms.factors.values()):
                for v, partner in itertools.permutations(terms.factors):
                    partners.setdefault(v, []).append((partner, terms))
        queue = [v for v in partners if not self._is_wide(domains[v])]
        for v in queue:
            lo, hi, values = domains[v]
            for partner, terms in partners[v]:
                if not self._is_wide(domains[partner]):
                    continue
                first, last, _ = domains[partner]
                quotients = (
                    divmod(-terms.constant - terms.factors[v] * value, terms.factors[partner])
                    for value in (range(lo, hi + 1) if values is None else values)
                )
                listed = sorted(value for value, rest in quotients if rest == 0 and first <= value <= last)
                if not listed:
                    raise Infeasible
                domains[partner] = Declaration(first, last, tuple(listed))
                queue.append(partner)

    def _sum_of_objective(self, solver: CpSolver) -> int | None:
        """Return the index of the equation that defines the objective's variable as a sum.

        The terms of the equation then become the costs, in place of the variable. None is returned if there is no such
        equation, or if another constraint uses the variable.
        """
        if len(self._costs) != 1:
            return None
        (objective, by), *_ = self._costs.items()
        users = [
            k
            for k, (_, arguments) in enumerate(self._constraints)
            if any(x.var == objective for a in arguments for x in a)
        ]
        if len(users) != 1 or self._constraints[users[0]][0] != "int_lin_eq":
            return None
        terms, constant = _terms_of(*self._constraints[users[0]][1])
        objective_factor = terms.pop(objective, 0)
        if abs(objective_factor) != 1:
            return None
        ends = [[f * end for end in solver.bounds_of(v)] for v, f in terms.items()]
        low, high = (-objective_factor * (constant + sum(of(pair) for pair in ends)) for of in (min, max))
        lo, hi, values = self._posted.variables[objective]
        if values is not None or not lo <= min(low, high) <= max(low, high) <= hi:
            return None
        self._costs = {v: -objective_factor * f * by for v, f in terms.items()}
        self._constant += -objective_factor * constant * by
        self._objective_variable = objective
        return users[0]

    def model(self) -> graphical.Model:
        for number, (name, arguments) in enumerate(self._constraints):
            check_time(self._tables.deadline)
            views = [x for argument in arguments for x in argument]
            scope = list(dict.fromkeys(x.var for x in views if x.var >= 0))
            if not scope:
                continue  # propagation has checked a constraint on constants
            self._tables.origin = self._described(number, name, scope)
            rule = rule_of(name)
            if rule is not None and (name.startswith("table_") or self._tables.cells(views) > _MAX_ENUMERATED_CELLS):
                rule[0](self._tables, arguments, rule[1])
            else:
                self._tables.add_table(scope, self._enumerated(name, arguments, scope))
        self._narrow()
        return self._assembled()

    def _described(self, number: int, name: str, scope: Sequence[int]) -> str:
        names = [_name_of(self._posted.names, v) for v in scope[:4]] + ["..."] * (len(scope) > 4)
        return f"constraint {number + 1}, {name}({', '.join(names)})"

    def _enumerated(self, name: str, arguments: Sequence[Sequence[View]], scope: Sequence[int]) -> Integers:
        """Return the allowed assignments of a constraint, by a separate search."""
        position = {v: k for k, v in enumerate(scope)}
        words = [
            np.array([(position.get(x.var, -1), x.scale, x.offset) for x in argument], np.int64).reshape(-1, 3)
            for argument in arguments
        ]
        domains = [self._tables.domains[v] for v in scope]
        key = (name, tuple(w.tobytes() for w in words), tuple(d.tobytes() for d in domains))
        if key not in self._enumerations:
            self._enumerations[key] = self._searched(name, words, domains)
        return self._enumerations[key]

    def _searched(self, name: str, words: Sequence[npt.NDArray[Any]], domains: Sequence[Integers]) -> Integers:
        solver = CpSolver()
        for values in domains:
            solver.new_variable_of(values)
        solver.post(name, words)
        objective_factor = np.array([(v, 1, 0) for v in range(len(domains))], np.int64).reshape(-1, 3)
        failures = _FAILURES_PER_TUPLE * self._rows
        forever = math.inf
        rules = [(objective_factor, "input_order", "indomain_min")]
        search = CpSearch((solver,), rules, None, None, None, False, 0, forever, forever, failures)
        tuples = []
        while (state := search.next(lambda: True)) == "solution":
            tuples.append(search.solution()[: len(domains)])
            if len(tuples) > self._rows:
                raise self._tables.too_large(f"has more than {self._rows:,} tuples")
        if state == "stopped":
            raise KeyboardInterrupt
        if state == "limit":
            raise self._tables.too_large("takes too long to compute")
        return np.unique(np.array(tuples, np.int64).reshape(-1, len(domains)), axis=0)

    def _narrow(self) -> None:
        """Remove values without a tuple in some table from all tables, until nothing changes.

        Raises:
            Infeasible: A table has no tuple left.
        """
        domains, tables = self._tables.domains, self._tables.tables
        users: dict[int, list[int]] = {}
        for number, allowed in enumerate(tables):
            for v in allowed.scope:
                users.setdefault(v, []).append(number)
        waiting = dict.fromkeys(range(len(tables)))
        while waiting:
            number = next(iter(waiting))
            del waiting[number]
            scope, rows, origin = tables[number]
            inside = np.ones(len(rows), bool)
            for v, column in zip(scope, rows.T, strict=True):
                inside &= np.isin(column, domains[v])
            tables[number] = ConstraintTable(scope, rows[inside], origin)
            if not inside.any():
                raise Infeasible
            for v, column in zip(scope, rows[inside].T, strict=True):
                propagated = np.unique(column)
                if len(propagated) < len(domains[v]):
                    domains[v] = propagated
                    waiting.update(dict.fromkeys(user for user in users[v] if user != number))

    def _assembled(self) -> graphical.Model:
        domains = self._tables.domains
        names = [_name_of(self._posted.names, v) for v in range(len(domains))]
        shown_variables = [v for v in range(len(domains)) if v != self._objective_variable]
        index = {v: k for k, v in enumerate(shown_variables)}
        variables = [Variable(names[v], len(domains[v]), domains[v].tolist()) for v in shown_variables]
        tables = [table for allowed in self._tables.tables if (table := self._table(allowed, index)) is not None]
        constant = self._constant
        for v, factor in self._costs.items():
            if abs(factor) * max(abs(int(domains[v][0])), abs(int(domains[v][-1]))) > _MAX_COST:
                raise InputError(f"the objective's term {factor} * {names[v]} is beyond 2^60: use smaller coefficients")
            costs = factor * domains[v]
            # The best cost becomes 0: formats without negative costs can then hold everything except the constant.
            best = int(costs.min() if self._posted.sense == "min-cost" else costs.max())
            tables.append(Table([index[v]], costs - best))
            constant += best
        return graphical.Model(variables, tables, sense=self._posted.sense, constant=constant)

    def _table(self, allowed: ConstraintTable, index: Mapping[int, int]) -> Table | None:
        """Return the costs of allowed tuples over the variables that are not fixed; None if all are allowed."""
        domains = self._tables.domains
        axes = [k for k, v in enumerate(allowed.scope) if len(domains[v]) > 1]
        scope = [allowed.scope[k] for k in axes]
        sizes = [len(domains[v]) for v in scope]
        rows = np.stack(
            [np.searchsorted(domains[v], allowed.rows[:, k]) for k, v in zip(axes, scope, strict=True)]
            or [np.zeros(len(allowed.rows), np.int64)],
            axis=1,
        ).astype(np.int32)
        cells = math.prod(sizes)
        if not scope or len(rows) == cells:
            return None
        worst = forbidden_value(self._posted.sense, np.int64)
        names = [index[v] for v in scope]
        if len(rows) * len(scope) < _SPARSE_CELLS_SHARE * cells and cells > _MAX_ENUMERATED_CELLS:
            return Table(names, np.zeros(len(rows), np.int64), sizes=sizes, rows=rows, default=worst)
        values = np.full(sizes, worst, np.int64)
        values[tuple(rows.T)] = 0
        return Table(names, values)
