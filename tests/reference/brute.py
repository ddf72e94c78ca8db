"""Brute force over every assignment: the oracle for exact answers on small models."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from elimina._core import TableList
from elimina.model import Model
from elimina.result import Result


def assignments(model: Model, evidence: dict[int, int] | None = None):
    """Every assignment that agrees with the evidence."""
    fixed = evidence or {}
    return itertools.product(*([fixed[v]] if v in fixed else range(size) for v, size in enumerate(model.sizes)))


def scores_of(model: Model, evidence: dict[int, int] | None = None) -> list[int | float]:
    """The score of every assignment; those of the last model are kept, as each strategy is compared with them."""
    last, given, scores = _last or (None, None, [])
    if last is not model or given != evidence:
        listed = TableList(model.factors)
        scores = [model.total(model.terms_of(listed, a)) for a in assignments(model, evidence)]
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


def partition(model: Model, evidence: dict[int, int] | None = None) -> float:
    """Base-10 logarithm of the sum of all products, computed in exact rationals; minus infinity for 0."""
    total = Fraction(0)
    for assignment in assignments(model, evidence):
        product = Fraction(1)
        for factor in model.factors:
            product *= Fraction(factor.at(assignment))
        total += product
    if total == 0:
        return -math.inf
    log10 = math.log10(total.numerator) - math.log10(total.denominator)
    return log10 + model.constant / math.log(10)


def count(model: Model, evidence: dict[int, int] | None = None) -> int:
    """Number of assignments that no factor forbids."""
    listed = TableList(model.factors)
    return sum(not any(map(math.isinf, model.terms_of(listed, a))) for a in assignments(model, evidence))


def posteriors(model: Model, weights: dict[int, list[float]] | None = None) -> tuple[float, list[list[float]]]:
    """Natural logarithm of the weighted sum, and each variable's posterior (zeros if that is 0); in exact rationals."""
    sums = [[Fraction(0)] * size for size in model.sizes]
    for assignment in assignments(model):
        product = Fraction(1)
        for factor in model.factors:
            product *= Fraction(factor.at(assignment))
        for v, weight in (weights or {}).items():
            product *= Fraction(float(weight[assignment[v]]))
        for v, value in enumerate(assignment):
            sums[v][value] += product
    total = sum(sums[0])
    if total == 0:
        return -math.inf, [[0.0] * size for size in model.sizes]
    log = math.log(total.numerator) - math.log(total.denominator) + model.constant
    return log, [[float(x / total) for x in row] for row in sums]
