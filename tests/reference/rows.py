"""Sparse tables as dictionaries: assignment -> value; slow and plain."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple


class Reference(NamedTuple):
    """A scope and its feasible rows."""

    scope: tuple[int, ...]
    rows: dict[tuple[int, ...], Any]


class Ring(NamedTuple):
    """A semiring on Python numbers; ``forbidden`` is what no row may be as bad as."""

    name: str
    forbidden: Any = None
    modulus: int = 0

    @property
    def one(self) -> float:
        return {"sum-product": 1, "count": 1, "min-max": -math.inf}.get(self.name, 0)

    def combine(self, a, b):
        if self.name in ("min-sum", "log-sum-exp"):
            return a + b
        if self.name == "min-max":
            return max(a, b)
        return a * b % self.modulus if self.modulus else a * b

    def feasible(self, value) -> bool:
        if self.name in ("min-sum", "min-max"):
            return value < self.forbidden
        return value > (-math.inf if self.name == "log-sum-exp" else 0)

    def worse(self, a, b) -> bool:
        return a > b if self.name in ("min-sum", "min-max") else a < b

    def marginal(self, values):
        if self.name in ("min-sum", "min-max"):
            return min(values)
        if self.name == "log-sum-exp":
            return math.log(sum(math.exp(v) for v in values))
        return sum(values) % self.modulus if self.modulus else sum(values)


def join(ring: Ring, left: Reference, right: Reference, tables=(), bounds=(), budget=None) -> Reference:
    """The join of two tables with dense ones (scope, nested lists); rows beyond the budget are dropped."""
    scope = (*left.scope, *(v for v in right.scope if v not in left.scope))
    rows = {}
    for (a, x), (b, y) in itertools.product(left.rows.items(), right.rows.items()):
        at = dict(zip(left.scope, a, strict=True))
        if any(at.get(v, value) != value for v, value in zip(right.scope, b, strict=True)):
            continue
        at.update(zip(right.scope, b, strict=True))
        value = ring.combine(x, y)
        for variables, cells in tables:
            if not ring.feasible(value):
                break
            value = ring.combine(value, cells[tuple(at[v] for v in variables)].item())
        if not ring.feasible(value):
            continue
        total = value
        for variables, cells in bounds:
            total = ring.combine(total, cells[tuple(at[v] for v in variables)].item())
        if budget is None or not ring.worse(total, budget):
            rows[tuple(at[v] for v in scope)] = value
    return Reference(scope, rows)


def project(ring: Ring, table: Reference, variable: int) -> Reference:
    """The table without a variable."""
    axis = table.scope.index(variable)
    groups: dict[tuple[int, ...], list[Any]] = {}
    for row, value in table.rows.items():
        groups.setdefault(row[:axis] + row[axis + 1 :], []).append(value)
    rows = {key: ring.marginal(found) for key, found in groups.items()}
    return Reference(table.scope[:axis] + table.scope[axis + 1 :], rows)


def semi_join(left: Reference, right: Reference) -> Reference:
    """The left rows that match a right one."""
    shared = [v for v in left.scope if v in right.scope]
    seen = {tuple(row[right.scope.index(v)] for v in shared) for row in right.rows}
    rows = {row: x for row, x in left.rows.items() if tuple(row[left.scope.index(v)] for v in shared) in seen}
    return Reference(left.scope, rows)


def reorder(table: Reference, scope: tuple[int, ...]) -> dict[tuple[int, ...], Any]:
    """The rows with their columns in another order."""
    at = [table.scope.index(v) for v in scope]
    return {tuple(row[a] for a in at): value for row, value in table.rows.items()}
