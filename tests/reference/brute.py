"""Brute force over every assignment: the oracle for exact answers on small models."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from elimina.model.model import Model
from elimina.model.table import forbidden_value
from elimina.result import Result


def assignments(model: Model, evidence: dict[int, int] | None = None):
    """Every assignment that agrees with the evidence."""
    fixed = evidence or {}
    return itertools.product(*([fixed[v]] if v in fixed else range(size) for v, size in enumerate(model.sizes)))


def scores_of(model: Model, evidence: dict[int, int] | None = None) -> list[int | float]:
    """The score of every assignment; those of the last model are kept, as each strategy is compared with them."""
    last, given, scores = _last or (None, None, [])
    if last is not model or given != evidence:
        scores = [model.total(model.terms(a)) for a in assignments(model, evidence)]
        _last[:] = model, dict(evidence) if evidence else evidence, scores
    return scores


_last: list[Any] = []
"""A model, its evidence, and the scores of its assignments; models do not change."""


def optimum(model: Model, evidence: dict[int, int] | None = None) -> int | float | None:
    """The best score among allowed assignments; None if there is none."""
    scores = scores_of(model, evidence)
    worst = math.inf if model.sense == "min-cost" else -math.inf
    scores = [s for s in scores if s != worst]
    if model.upper_bound is not None:
        scores = [s for s in scores if (s < model.upper_bound if worst > 0 else s > model.upper_bound)]
    if not scores:
        return None
    return min(scores) if model.sense == "min-cost" else max(scores)


def worst_values(model: Model, evidence: dict[int, int] | None = None) -> list[int | float]:
    """The worst value among the tables at each allowed assignment."""
    forbidden = [forbidden_value(model.sense, table.values.dtype) for table in model.factors]
    found = []
    for a in assignments(model, evidence):
        values = [table.at(a) for table in model.factors]
        if not any(v == worst for v, worst in zip(values, forbidden, strict=True)):
            found.append(max(values) if model.sense == "min-cost" else min(values))
    return found


def bottleneck(model: Model, evidence: dict[int, int] | None = None) -> int | float | None:
    """The best worst value; None if nothing is allowed, or within the upper bound."""
    found = worst_values(model, evidence)
    best = (min if model.sense == "min-cost" else max)(found, default=None)
    return None if best is not None and model.is_beyond_bound(best) else best


def check_optimum(model: Model, result: Result, evidence: dict[int, int] | None = None) -> None:
    """Check an optimum against every assignment, and that its own assignment is worth it."""
    expected = optimum(model, evidence)
    if expected is None:
        assert (result.status, result.assignment) == ("infeasible", None)
        return
    assert result.status == "optimal"
    chosen = [v.index(result.assignment[v.name]) for v in model.variables]
    assert all(chosen[v] == value for v, value in (evidence or {}).items())
    assert model.score(chosen) == result.value
    if model.is_integer:
        assert (result.value, type(result.value)) == (expected, int)
    else:
        assert result.value == pytest.approx(expected, rel=1e-12, abs=1e-9)


class Products(NamedTuple):
    """The product of all factors for each assignment, exact: whole numbers, whose unit is a power of two.

    Attributes:
        assignments: (assignments, variables).
        numbers: (assignments,) Python's integers.
        unit: Number of ones in a product of 1.
    """

    assignments: NDArray[np.intp]
    numbers: NDArray[np.object_]
    unit: int


def products(
    model: Model, evidence: dict[int, int] | None = None, weights: dict[int, list[float]] | None = None
) -> Products:
    """Return the product of all factors and weights for each assignment that agrees with the evidence."""
    listed = list(assignments(model, evidence))
    columns = np.array(listed, np.intp).reshape(len(listed), len(model.sizes))
    numbers, unit = np.full(len(listed), 1, object), 1
    tables = [
        (f.scope, {key: f.at(dict(zip(f.scope, key, strict=True))) for key in np.ndindex(f.sizes)})
        for f in model.factors
    ]
    tables += [((v,), {(value,): float(x) for value, x in enumerate(weight)}) for v, weight in (weights or {}).items()]
    for scope, cells in tables:
        ratios = {key: Fraction(cell) for key, cell in cells.items()}
        own = math.lcm(*(ratio.denominator for ratio in ratios.values()))
        whole = {key: int(ratio * own) for key, ratio in ratios.items()}
        numbers *= np.array([whole[tuple(key)] for key in columns[:, list(scope)].tolist()], object)
        unit *= own
    return Products(columns, numbers, unit)


def partition(model: Model, evidence: dict[int, int] | None = None) -> float:
    """Base-10 logarithm of the sum of all products, computed exactly; minus infinity for 0."""
    found = products(model, evidence)
    total = Fraction(sum(found.numbers), found.unit)
    if total == 0:
        return -math.inf
    log10 = math.log10(total.numerator) - math.log10(total.denominator)
    return log10 + model.constant / math.log(10)


def count(model: Model, evidence: dict[int, int] | None = None) -> int:
    """Number of assignments that no factor forbids."""
    return sum(not any(map(math.isinf, model.terms(a))) for a in assignments(model, evidence))


def posteriors(model: Model, weights: dict[int, list[float]] | None = None) -> tuple[float, list[list[float]]]:
    """Natural logarithm of the weighted sum, and each variable's posterior (zeros if that is 0); exact."""
    found = products(model, weights=weights)
    total = Fraction(sum(found.numbers), found.unit)
    if total == 0:
        return -math.inf, [[0.0] * size for size in model.sizes]
    log = math.log(total.numerator) - math.log(total.denominator) + model.constant
    columns = zip(found.assignments.T, model.sizes, strict=True)
    sums = [[sum(found.numbers[column == value]) for value in range(size)] for column, size in columns]
    return log, [[float(Fraction(x, found.unit) / total) for x in row] for row in sums]
