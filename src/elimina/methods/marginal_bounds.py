"""Bounds on the posterior of one variable, from bounds on the sum for each of its states."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from elimina.methods.bound_optimisation import improve_bounds
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem, restrict

_ROUNDING = 1e-12
"""Upper bound on the rounding error of a share."""


def improve_marginal_bounds(
    problem: Problem, variable: int, options: CheckedOptions, memory_bytes: int, deadline: float
) -> Iterator[NDArray[np.float64]]:
    """Yield successively closer bounds on a posterior; each row has the lower and the upper bound of a state.

    Args:
        problem: Problem of the task ``mar``.
        variable: The free variable whose posterior is bounded.
        options: Options with the number of threads and the seed of the orders.
        memory_bytes: Memory limit of tables and parameters, in bytes.
        deadline: Deadline by ``time.monotonic``.

    Raises:
        MemoryLimitError: Not even the smallest mini-buckets fit.
    """
    joint = problem._replace(task="pr", wanted=(), kept=())
    size = problem.model.sizes[variable]
    lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    for state in range(size):
        end = time.monotonic() + (deadline - time.monotonic()) / (size - state)
        for bounds in improve_bounds(restrict(joint, {variable: state}), options, memory_bytes, end):
            lower[state], upper[state] = max(lower[state], bounds.lower), min(upper[state], bounds.upper)
        yield shares_between(lower, upper)


def shares_between(lower: NDArray[np.float64], upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return bounds on the share of each number in the sum; each row has the lower and the upper bound of a number.

    Args:
        lower: Lower bounds on the natural logarithms of the numbers.
        upper: Upper bounds on the same logarithms.

    Examples:
        >>> shares_between(np.log([1.0, 2.0]), np.log([2.0, 3.0])).round(6)
        array([[0.25, 0.5 ],
               [0.5 , 0.75]])
    """
    # A share is smallest if its number is smallest and all others are largest.
    lowest = np.array([_share(lower[i], np.delete(upper, i), 0.0) for i in range(len(lower))])
    highest = np.array([_share(upper[i], np.delete(lower, i), 1.0) for i in range(len(upper))])
    return np.clip(np.stack([lowest - _ROUNDING, highest + _ROUNDING], axis=1), 0.0, 1.0)


def _share(number: float, others: NDArray[np.float64], share_of_nothing: float) -> float:
    """Return the share of a number in the sum with others, all given as logarithms.

    ``share_of_nothing``: result if all numbers are 0.
    """
    remaining = np.logaddexp.reduce(others, initial=-np.inf)
    if number == remaining == -np.inf:
        return share_of_nothing
    return float(np.exp(-np.logaddexp(0.0, remaining - number)))
