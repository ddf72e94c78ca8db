"""Most relevant explanations: partial assignments of targets with the largest generalised Bayes factors.

An explanation contains the states of only those targets that matter (Yuan, Lim and Lu 2011, "Most Relevant Explanation
in Bayesian Networks", Journal of Artificial Intelligence Research 42).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.display import with_types_as_written
from elimina.errors import InputError
from elimina.model.row_table import RowTable
from elimina.model.states import State
from elimina.model.variable import Variable

Floats = NDArray[np.float64]

MAX_EXPLANATIONS = 10**6
"""Largest number of partial assignments of the targets that are compared."""


@with_types_as_written
class Explanation(NamedTuple):
    """Partial assignment of the targets.

    Attributes:
        assignment: Variable name -> its state.
        bayes_factor: Generalised Bayes factor: the probability of the evidence given the assignment, divided by its
            probability given that the assignment is false.
        posterior: Probability of the assignment given the evidence.
        prior: Probability of the assignment without the evidence.
    """

    assignment: dict[str, State]
    bayes_factor: float
    posterior: float
    prior: float


class Explanations(RowTable[Explanation]):
    """Explanations of the evidence, the largest Bayes factor first.

    Attributes:
        targets: Names of the variables that may explain the evidence.
    """

    fields = Explanation._fields

    def __init__(self, rows: list[Explanation], targets: Sequence[str]) -> None:
        super().__init__(rows)
        self.targets = tuple(targets)

    def _figures(self) -> list[tuple[str, str]]:
        return [("targets", ", ".join(self.targets))]


def check_target_count(targets: Sequence[Variable]) -> None:
    """Check that the number of partial assignments of targets is within the limit.

    Raises:
        InputError: There are no targets, or they have too many partial assignments.
    """
    if not targets:
        raise InputError("targets is empty: name the variables that may explain the evidence")
    count = math.prod(target.size + 1 for target in targets) - 1
    if count > MAX_EXPLANATIONS:
        raise InputError(
            f"{len(targets)} targets have {count:,} partial assignments, and at most {MAX_EXPLANATIONS:,} are "
            "compared: name fewer targets"
        )


def relevant_explanations(targets: Sequence[Variable], posterior: Floats, prior: Floats, count: int) -> Explanations:
    """Return the explanations with the largest Bayes factors; ties are ordered by their number of variables.

    Each explanation makes the evidence more probable. An explanation is left out if it extends a better one, or is a
    part of a better one.

    Args:
        targets: Variables that may explain the evidence.
        posterior: Their joint distribution given the evidence.
        prior: Their joint distribution without the evidence.
        count: Number of explanations.
    """
    axes = range(len(targets))
    subsets: list[tuple[tuple[int, ...], Floats, Floats, Floats]] = []
    for chosen in _subsets(axes):
        others = tuple(axis for axis in axes if axis not in chosen)
        after, before = posterior.sum(axis=others).ravel(), prior.sum(axis=others).ravel()
        subsets.append((chosen, _bayes_factors(after, before), after, before))
    numbers = np.concatenate([np.full(len(factors), number) for number, (_, factors, _, _) in enumerate(subsets)])
    cells = np.concatenate([np.arange(len(factors)) for _, factors, _, _ in subsets])
    # Bayes factors are rounded and the sort is stable, so ties stay in the order of ``subsets``: small ones first.
    keys = np.concatenate([np.round(np.log(np.maximum(factors, 1e-300)), 9) for _, factors, _, _ in subsets])
    rows: list[Explanation] = []
    for position in np.argsort(-keys, kind="stable").tolist():
        if keys[position] <= 0:
            break
        chosen, factors, after, before = subsets[int(numbers[position])]
        cell = int(cells[position])
        states = np.unravel_index(cell, [targets[axis].size for axis in chosen])
        assignment = {targets[axis].name: targets[axis].state(int(x)) for axis, x in zip(chosen, states, strict=True)}
        items = assignment.items()
        if not any(items <= row.assignment.items() or items >= row.assignment.items() for row in rows):
            rows.append(Explanation(assignment, float(factors[cell]), float(after[cell]), float(before[cell])))
        if len(rows) == count:
            break
    return Explanations(rows, [target.name for target in targets])


def _subsets(axes: range) -> Iterator[tuple[int, ...]]:
    """Yield all non-empty subsets, small ones first."""
    return itertools.chain.from_iterable(itertools.combinations(axes, size) for size in range(1, len(axes) + 1))


def _bayes_factors(after: Floats, before: Floats) -> Floats:
    """Return generalised Bayes factors: quotients of odds, and 0 where the evidence excludes an assignment."""
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = _odds(after) / _odds(before)
    # An assignment that is certain even without the evidence does not explain the evidence, so its factor is 1.
    factors[np.isinf(_odds(before))] = 1.0
    factors[after == 0] = 0.0
    return factors


def _odds(shares: Floats) -> Floats:
    """Return the probability of each cell divided by that of all other cells, without cancellation."""
    others = shares.sum() - shares
    largest = int(shares.argmax())
    others[largest] = np.delete(shares, largest).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        odds: Floats = shares / others
    return odds
