"""Lower bounds of linear relaxations, by subgradient steps on the multipliers of the rows (Held and Karp, 1971).

For given multipliers, the bound is the cost if each variable takes its cheapest value, and the variables of an
automaton or a knapsack take their cheapest word.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elimina._core import CpCheapestWords, CpWordSequence
from elimina.cp.linear_relaxation import LinearRelaxation
from elimina.cp.relaxation_rows import WordSequence
from elimina.cp.views import Integers, View

Floats = npt.NDArray[np.float64]

MULTIPLIER_UNITS = 1 << 12
"""Number of units in a multiplier of 1. Multipliers are rounded to units, so that bounds are exact integers."""
MAX_STEPS = 2000
"""Largest number of steps of an ascent; most ascents end earlier, when steps get small."""
_FIRST_LENGTH, _LAST_LENGTH = 1.0, 1e-3
"""Lengths of the first and of the last step, as shares of the length that Polyak's rule gives."""
_MAX_STALLED_STEPS = 15
"""Largest number of steps without a better bound before steps become shorter."""
_SHRINKAGE = 0.7
_DEFLECTION = 0.8
"""If a step would go against the previous direction, this share of its opposed component is removed. The share is below
1, because in a relaxation of one row, the opposed component is the whole step."""
_MAX_EXACT = 2.0**60


class _Matrix(NamedTuple):
    """The relaxation as arrays.

    Attributes:
        rows: Row of each entry.
        columns: Column of each entry.
        numbers: Value of each entry.
        least: Least sum of each row.
        is_equation: True for each row whose sum equals its least sum.
        costs: Cost of each column.
        starts: First column of each variable.
    """

    rows: Integers
    columns: Integers
    numbers: Integers
    least: Integers
    is_equation: npt.NDArray[np.bool_]
    costs: Integers
    starts: Integers
    variables: Integers
    values: Integers
    is_listed: npt.NDArray[np.bool_]
    words: CpCheapestWords | None
    is_spelled: npt.NDArray[np.bool_]

    @property
    def sizes(self) -> Integers:
        """Numbers of columns of the variables."""
        return np.diff(np.append(self.starts, len(self.costs)))


class ValueCosts(NamedTuple):
    """Lower bounds on the costs of solutions in which a variable has a value.

    Attributes:
        rows: Triples of a variable, a value, and a cost in units.
        unit: Number of units of a cost of 1.
    """

    rows: Integers
    unit: int


class LagrangianBound:
    """Lower bound of a linear relaxation.

    Args:
        relaxation: Rows and costs.
        may_continue: Function that returns False if the ascent has to end.
    """

    def __init__(self, relaxation: LinearRelaxation, may_continue: Callable[[], bool]) -> None:
        self._matrix, self._may_continue = _arrays(relaxation), may_continue
        self._units: Integers | None = None

    def proves_infeasibility(self, max_steps: int = MAX_STEPS) -> bool:
        """Return whether the multipliers prove that no assignment satisfies all rows.

        Args:
            max_steps: Largest number of steps of the ascent.
        """
        matrix = self._matrix._replace(costs=np.zeros_like(self._matrix.costs))
        bound = self._ascend(matrix, np.ones(len(matrix.least)), 1.0, lambda bound: bound > 0, max_steps)
        return bound is not None and bound > 0

    def lower_bound(self, incumbent: int | None) -> int | None:
        """Return a lower bound of the costs of any solution; None if there is none.

        Args:
            incumbent: Costs of a solution; None if none is known.
        """
        if not len(self._matrix.costs):
            return None
        target = math.inf if incumbent is None else float(incumbent)
        enough = math.inf if incumbent is None else incumbent
        return self._ascend(self._matrix, self._first_multipliers(), target, is_enough=lambda bound: bound >= enough)

    def value_costs(self) -> ValueCosts | None:
        """Return the costs of the values, from the multipliers of the last bound; None if there was no bound."""
        matrix = self._matrix
        if self._units is None:
            return None
        total, reduced = _total_in_units(matrix, self._units)
        excess = reduced - np.repeat(np.minimum.reduceat(reduced, matrix.starts), matrix.sizes)
        if matrix.words is not None:
            excess = np.where(matrix.is_spelled, matrix.words.excess(reduced), excess)
        rows = np.column_stack([matrix.variables, matrix.values, total + excess])
        return ValueCosts(np.ascontiguousarray(rows[matrix.is_listed]), MULTIPLIER_UNITS)

    def _first_multipliers(self) -> Floats:
        """Return multipliers that move the cost of a variable for a sum to the terms of the sum."""
        matrix, result = self._matrix, np.zeros(len(self._matrix.least))
        variables = np.searchsorted(matrix.starts, matrix.columns, side="right") - 1
        ends = np.append(matrix.starts[1:], len(matrix.costs)) - 1
        costly = np.flatnonzero(matrix.costs[ends] != matrix.costs[matrix.starts])
        for variable in costly.tolist():
            first, last = int(matrix.starts[variable]), int(ends[variable])
            inside = variables == variable
            for row in sorted(set(matrix.rows[inside].tolist())):
                entries = dict.fromkeys(range(first, last + 1), 0)
                chosen = inside & (matrix.rows == row)
                entries.update(zip(matrix.columns[chosen].tolist(), matrix.numbers[chosen].tolist(), strict=True))
                rise = entries[last] - entries[first]
                share = int(matrix.costs[last] - matrix.costs[first]) / rise if rise else 0.0
                if rise and (matrix.is_equation[row] or share > 0):
                    result[row] = share
                    break
        return result

    def _ascend(
        self,
        matrix: _Matrix,
        multipliers: Floats,
        target: float,
        is_enough: Callable[[int], bool],
        max_steps: int = MAX_STEPS,
    ) -> int | None:
        best, best_multipliers, length, idle = -math.inf, multipliers, _FIRST_LENGTH, 0
        exact: int | None = None
        direction = np.zeros(len(matrix.least))
        self._units = None

        def raise_exact(multipliers: Floats) -> None:
            nonlocal exact
            units = _rounded(matrix, multipliers)
            if units is None:
                return
            bound = -(-_total_in_units(matrix, units)[0] // MULTIPLIER_UNITS)
            if exact is None or bound > exact or multipliers is best_multipliers:
                exact, self._units = bound if exact is None else max(exact, bound), units

        for step in range(max_steps):
            value, slacks = _evaluate(matrix, multipliers)
            if value > best + 1e-9 * max(1.0, abs(best) if best > -math.inf else 1.0):
                best, best_multipliers, idle = value, multipliers, 0
                if (value > 0 or math.isfinite(target)) and (exact is None or value > exact):
                    raise_exact(multipliers)
                    if exact is not None and is_enough(exact):
                        return exact
            else:
                idle += 1
            if idle >= _MAX_STALLED_STEPS:
                length, idle, multipliers = length * _SHRINKAGE, 0, best_multipliers
                value, slacks = _evaluate(matrix, multipliers)
                direction = np.zeros_like(slacks)
            # An inequality that holds keeps a multiplier of 0, so its slack must not shorten the step.
            is_least = (multipliers <= 0) & ~matrix.is_equation
            slacks[is_least & (slacks < 0)] = 0
            direction = _deflected(slacks, direction)
            direction[is_least & (direction < 0)] = 0
            if not direction.any():
                direction = slacks
            size = float(direction @ direction)
            if size == 0 or length < _LAST_LENGTH or (step % 16 == 0 and not self._may_continue()):
                break
            goal = target if target > best else best + max(1.0, abs(best))
            if not math.isfinite(goal):
                goal = best + max(1.0, 0.1 * abs(best))
            multipliers = multipliers + length * (goal - value) / size * direction
            multipliers = np.where(matrix.is_equation, multipliers, np.maximum(multipliers, 0.0))
        raise_exact(best_multipliers)
        return exact


def _deflected(slacks: Floats, previous: Floats) -> Floats:
    """Return the slacks after most of their component opposed to the previous direction is removed.

    Steps along the slacks themselves may go back and forth between two assignments (Camerini, Fratta and Maffioli,
    1975).
    """
    size, product = float(previous @ previous), float(slacks @ previous)
    return slacks if product >= 0 or size == 0 else slacks - _DEFLECTION * product / size * previous


def _evaluate(matrix: _Matrix, multipliers: Floats) -> tuple[float, Floats]:
    """Return the bound that multipliers give, and how far an assignment with this bound violates each row."""
    reduced = matrix.costs - np.bincount(
        matrix.columns, weights=multipliers[matrix.rows] * matrix.numbers, minlength=len(matrix.costs)
    )
    least = np.minimum.reduceat(reduced, matrix.starts)
    sizes = matrix.sizes
    is_least = reduced == np.repeat(least, sizes)
    # The first of equally good columns is chosen.
    ranks = np.cumsum(is_least) - np.repeat(np.cumsum(is_least)[matrix.starts] - is_least[matrix.starts], sizes)
    is_chosen = is_least & (ranks == 1)
    value = float(multipliers @ matrix.least)
    if matrix.words is not None:
        is_chosen &= ~matrix.is_spelled
        least = least[~matrix.is_spelled[matrix.starts]]
        words = matrix.words.least(reduced)
        if words is not None:
            value += words[0]
            is_chosen[words[1]] = True
    attained = np.bincount(matrix.rows, weights=is_chosen[matrix.columns] * matrix.numbers, minlength=len(matrix.least))
    slacks: Floats = matrix.least.astype(np.float64) - attained
    return value + float(least.sum()), slacks


def _rounded(matrix: _Matrix, multipliers: Floats) -> Integers | None:
    """Return multipliers in units; None if terms with them may exceed 64 bits."""
    with np.errstate(all="ignore"):
        units = np.round(multipliers * MULTIPLIER_UNITS)
        sizes = np.abs(units[matrix.rows]) * np.abs(matrix.numbers)
        largest = float(sizes.sum() + np.abs(units * matrix.least).sum())
        largest += MULTIPLIER_UNITS * float(np.abs(matrix.costs.astype(float)).sum())
    return units.astype(np.int64) if largest < _MAX_EXACT else None


def _total_in_units(matrix: _Matrix, units: Integers) -> tuple[int, Integers]:
    """Return the bound that rounded multipliers give, and the reduced costs of the columns, both in units."""
    reduced = MULTIPLIER_UNITS * matrix.costs
    np.subtract.at(reduced, matrix.columns, units[matrix.rows] * matrix.numbers)
    least = np.minimum.reduceat(reduced, matrix.starts)
    total = int(units @ matrix.least)
    if matrix.words is not None:
        least = least[~matrix.is_spelled[matrix.starts]]
        words = matrix.words.least(reduced)
        total += 0 if words is None else words[0]
    return total + int(least.sum()), reduced


def _arrays(relaxation: LinearRelaxation) -> _Matrix:
    variables_with_columns = dict.fromkeys(relaxation.costs)
    for row in relaxation.rows:
        variables_with_columns.update(dict.fromkeys(row.terms))
    for sequence in relaxation.sequences:
        variables_with_columns.update(dict.fromkeys(sequence.variables))
    sizes = [len(relaxation.columns[var]) for var in variables_with_columns]
    starts = np.cumsum([0, *sizes])[:-1].astype(np.int64)
    first = dict(zip(variables_with_columns, starts.tolist(), strict=True))
    costs = np.zeros(sum(sizes), np.int64)
    for var, function in relaxation.costs.items():
        costs[first[var] : first[var] + len(function)] = function
    rows, columns, numbers = [], [], []
    for number, row in enumerate(relaxation.rows):
        for var, function in row.terms.items():
            (nonzero_cells,) = function.nonzero()
            rows.append(np.full(len(nonzero_cells), number))
            columns.append(first[var] + nonzero_cells)
            numbers.append(function[nonzero_cells])

    def joined(arrays: list[npt.NDArray[np.int64]]) -> Integers:
        return np.concatenate(arrays).astype(np.int64) if arrays else np.zeros(0, np.int64)

    is_spelled = np.zeros(len(costs), bool)
    for sequence in relaxation.sequences:
        for var in sequence.variables:
            is_spelled[first[var] : first[var] + len(relaxation.columns[var])] = True
    words = [_numbered_sequence(sequence, first) for sequence in relaxation.sequences]
    return _Matrix(
        joined(rows),
        joined(columns),
        joined(numbers),
        np.array([row.least for row in relaxation.rows], np.int64),
        np.array([row.is_equation for row in relaxation.rows], bool),
        costs,
        starts,
        np.repeat(np.array(list(variables_with_columns), np.int64), sizes),
        joined([relaxation.columns[var] for var in variables_with_columns]),
        np.repeat(np.array([relaxation.is_listed(View(var, 1, 0)) for var in variables_with_columns], bool), sizes),
        CpCheapestWords(words, len(costs)) if words else None,
        is_spelled,
    )


def _numbered_sequence(sequence: WordSequence, first: Mapping[int, int]) -> CpWordSequence:
    """Return a sequence over columns; ``first`` has the first column of each variable."""
    places = [np.flatnonzero(symbols >= 0) for symbols in sequence.symbols]
    columns = [first[var] + position for var, position in zip(sequence.variables, places, strict=True)]
    symbols = [symbols[position] for symbols, position in zip(sequence.symbols, places, strict=True)]
    return CpWordSequence(
        np.cumsum([0, *map(len, places)]).astype(np.int64),
        np.concatenate(columns).astype(np.int64),
        np.concatenate(symbols).astype(np.int64),
        sequence.states,
        sequence.alphabet,
        sequence.transitions,
        sequence.start,
        sequence.accepting,
    )
