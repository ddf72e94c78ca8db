"""Graphical models of constraint models: tables of allowed tuples, and costs for the objective."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elimina._core import CpSearch, CpSolver
from elimina.cp.constraint_tables import ConstraintTable, ConstraintTables, Infeasible
from elimina.cp.decompose import rule_of
from elimina.cp.domains import PropagatedDomains
from elimina.cp.posting import Declaration
from elimina.cp.views import Integers, View, views_of
from elimina.errors import InputError
from elimina.model import model as graphical
from elimina.model.table import Sense, Table, forbidden_value
from elimina.model.variable import Variable

_MAX_ENUMERATED_CELLS = 1 << 10
_FAILURES_PER_TUPLE = 8
_SPARSE = 4
_MAX_COST = 1 << 60


class PostedModel(NamedTuple):
    """Everything that was posted to a constraint model.

    Attributes:
        variables: Bounds of each variable, and its values where the domain has holes.
        names: Names of the variables that have one.
        constraints: Names in the core, and their arguments.
        objective: Variable -> factor; None without one.
        constant: Constant term of the objective.
        sense: ``min-cost`` or ``max-cost``.
    """

    variables: Sequence[Declaration]
    names: Mapping[int, str]
    constraints: Sequence[tuple[str, Sequence[npt.NDArray[Any]]]]
    objective: Mapping[int, int] | None
    constant: int
    sense: Sense


def tabulate(posted: PostedModel, solver: CpSolver, rows: int) -> graphical.Model:
    """Return the graphical model of the posted constraints.

    Args:
        posted: Everything that was posted.
        solver: The same, posted to a solver.
        rows: The most that one table may have.

    Raises:
        InputError: A constraint's table would have more cells and cannot be decomposed, or a variable has more values.
    """
    try:
        if not solver.propagate():
            raise Infeasible
        return _Tabulation(posted, solver, rows).model()
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


class _Tabulation:
    def __init__(self, posted: PostedModel, solver: CpSolver, rows: int) -> None:
        self._posted, self._rows = posted, rows
        self._constraints = [(name, [views_of(a) for a in arguments]) for name, arguments in posted.constraints]
        self._costs = dict(posted.objective or {})
        self._constant = posted.constant
        self._left_out: int | None = None
        self._known: dict[Any, Integers] = {}
        left = PropagatedDomains(posted.variables, solver)
        summed = self._sum_of_objective(solver)
        for v in range(len(posted.variables)):
            if left.sizes[v] > rows and v != self._left_out:
                raise InputError(
                    f"variable {_name_of(posted.names, v)} has {left.sizes[v]:,} values, more than {rows:,}; "
                    "narrow its domain, or leave the model to the search (elimina cp, fzn-elimina, Model.solve)"
                )
        domains = [np.array(left.values(v) if v != self._left_out else [0]) for v in range(len(posted.variables))]
        self._pieces = ConstraintTables(domains, rows)
        if summed is not None:
            self._constraints.pop(summed)

    def _sum_of_objective(self, solver: CpSolver) -> int | None:
        """Return the equation that only defines the objective's variable: its terms become the costs instead."""
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
        factors, xs, (right,) = self._constraints[users[0]][1]
        terms: dict[int, int] = {}
        constant = 0
        for factor, x in [*((f.offset, x) for f, x in zip(factors, xs, strict=True)), (-1, right)]:
            constant += factor * x.offset
            if x.var >= 0:
                terms[x.var] = terms.get(x.var, 0) + factor * x.scale
        own = terms.pop(objective, 0)
        if abs(own) != 1:
            return None
        ends = [[f * end for end in solver.bounds_of(v)] for v, f in terms.items()]
        low, high = (-own * (constant + sum(of(pair) for pair in ends)) for of in (min, max))
        lo, hi, values = self._posted.variables[objective]
        if values is not None or not lo <= min(low, high) <= max(low, high) <= hi:
            return None
        self._costs = {v: -own * f * by for v, f in terms.items()}
        self._constant += -own * constant * by
        self._left_out = objective
        return users[0]

    def model(self) -> graphical.Model:
        for number, (name, arguments) in enumerate(self._constraints):
            views = [x for argument in arguments for x in argument]
            scope = list(dict.fromkeys(x.var for x in views if x.var >= 0))
            if not scope:
                continue  # propagation knows that it holds
            self._pieces.origin = self._described(number, name, scope)
            rule = rule_of(name)
            if rule is not None and (name.startswith("table_") or self._pieces.cells(views) > _MAX_ENUMERATED_CELLS):
                rule[0](self._pieces, arguments, rule[1])
            else:
                self._pieces.keep(scope, self._enumerated(name, arguments, scope))
        self._narrow()
        return self._assembled()

    def _described(self, number: int, name: str, scope: Sequence[int]) -> str:
        names = [_name_of(self._posted.names, v) for v in scope[:4]] + ["..."] * (len(scope) > 4)
        return f"constraint {number + 1}, {name}({', '.join(names)})"

    def _enumerated(self, name: str, arguments: Sequence[Sequence[View]], scope: Sequence[int]) -> Integers:
        """Return the assignments that a constraint allows, by a search of its own."""
        place = {v: k for k, v in enumerate(scope)}
        words = [
            np.array([(place.get(x.var, -1), x.scale, x.offset) for x in argument], np.int64).reshape(-1, 3)
            for argument in arguments
        ]
        domains = [self._pieces.domains[v] for v in scope]
        key = (name, tuple(w.tobytes() for w in words), tuple(d.tobytes() for d in domains))
        if key not in self._known:
            self._known[key] = self._searched(name, words, domains)
        return self._known[key]

    def _searched(self, name: str, words: Sequence[npt.NDArray[Any]], domains: Sequence[Integers]) -> Integers:
        solver = CpSolver()
        for values in domains:
            solver.new_variable_of(values)
        solver.post(name, words)
        own = np.array([(v, 1, 0) for v in range(len(domains))], np.int64).reshape(-1, 3)
        failures = _FAILURES_PER_TUPLE * self._rows
        forever = math.inf
        rules = [(own, "input_order", "indomain_min")]
        search = CpSearch((solver,), rules, None, None, None, False, 0, forever, forever, failures)
        found = []
        while (state := search.next(lambda: True)) == "solution":
            found.append(search.solution()[: len(domains)])
            if len(found) > self._rows:
                raise self._pieces.too_large(f"has more than {self._rows:,} tuples")
        if state == "stopped":
            raise KeyboardInterrupt
        if state == "limit":
            raise self._pieces.too_large("takes too long to compute")
        return np.unique(np.array(found, np.int64).reshape(-1, len(domains)), axis=0)

    def _narrow(self) -> None:
        """Take values that a piece does not allow from all others, until nothing changes."""
        domains, pieces = self._pieces.domains, self._pieces.pieces
        users: dict[int, list[int]] = {}
        for number, piece in enumerate(pieces):
            for v in piece.scope:
                users.setdefault(v, []).append(number)
        waiting = dict.fromkeys(range(len(pieces)))
        while waiting:
            number = next(iter(waiting))
            del waiting[number]
            scope, rows, origin = pieces[number]
            inside = np.ones(len(rows), bool)
            for v, column in zip(scope, rows.T, strict=True):
                inside &= np.isin(column, domains[v])
            pieces[number] = ConstraintTable(scope, rows[inside], origin)
            if not inside.any():
                raise Infeasible
            for v, column in zip(scope, rows[inside].T, strict=True):
                left = np.unique(column)
                if len(left) < len(domains[v]):
                    domains[v] = left
                    waiting.update(dict.fromkeys(user for user in users[v] if user != number))

    def _assembled(self) -> graphical.Model:
        domains = self._pieces.domains
        names = [_name_of(self._posted.names, v) for v in range(len(domains))]
        kept = [v for v in range(len(domains)) if v != self._left_out]
        index = {v: k for k, v in enumerate(kept)}
        variables = [Variable(names[v], len(domains[v]), domains[v].tolist()) for v in kept]
        tables = [table for piece in self._pieces.pieces if (table := self._table(piece, index)) is not None]
        constant = self._constant
        for v, factor in self._costs.items():
            if abs(factor) * max(abs(int(domains[v][0])), abs(int(domains[v][-1]))) > _MAX_COST:
                raise InputError(f"the objective's term {factor} * {names[v]} is beyond 2^60: use smaller coefficients")
            costs = factor * domains[v]
            # Formats that have no negative costs hold it, then, as far as the constant allows.
            best = int(costs.min() if self._posted.sense == "min-cost" else costs.max())
            tables.append(Table([index[v]], costs - best))
            constant += best
        return graphical.Model(variables, tables, sense=self._posted.sense, constant=constant)

    def _table(self, piece: ConstraintTable, index: Mapping[int, int]) -> Table | None:
        """Return the table of a piece over the variables that are not fixed; None if it allows everything."""
        domains = self._pieces.domains
        axes = [k for k, v in enumerate(piece.scope) if len(domains[v]) > 1]
        scope = [piece.scope[k] for k in axes]
        sizes = [len(domains[v]) for v in scope]
        rows = np.stack(
            [np.searchsorted(domains[v], piece.rows[:, k]) for k, v in zip(axes, scope, strict=True)]
            or [np.zeros(len(piece.rows), np.int64)],
            axis=1,
        ).astype(np.int32)
        cells = math.prod(sizes)
        if not scope or len(rows) == cells:
            return None
        worst = forbidden_value(self._posted.sense, np.int64)
        names = [index[v] for v in scope]
        if _SPARSE * len(rows) * len(scope) < cells and cells > _MAX_ENUMERATED_CELLS:
            return Table(names, np.zeros(len(rows), np.int64), sizes=sizes, rows=rows, default=worst)
        values = np.full(sizes, worst, np.int64)
        values[tuple(rows.T)] = 0
        return Table(names, values)
