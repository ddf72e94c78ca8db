"""Minimisation of smooth functions with gradients: limited-memory BFGS (Nocedal 1980)."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

MEMORY_STEPS = 10
"""Number of latest steps whose changes of the gradient determine the estimate of the curvature."""

VECTORS = 2 * MEMORY_STEPS + 8
"""Number of vectors of parameters that a minimisation stores."""

_MAX_CHANGE = 4.0
"""Largest change of a parameter in a step."""

_SUFFICIENT_DECREASE = 1e-4
"""Least share of the decrease predicted by the slope at which a step is accepted (Armijo's rule)."""

_MIN_STEP = 1e-6
"""Shortest step that is tried, as a multiple of the direction."""

_MIN_CURVATURE = 1e-12
"""Least curvature along a step, relative to the lengths of the step and of the gradient's change."""


def minimise(function: Callable[[Vector], tuple[float, Vector]], start: Vector) -> Iterator[tuple[float, Vector]]:
    """Yield decreasing values of a function with their arguments, beginning with the start.

    Args:
        function: Function that returns its value and its gradient.
        start: Initial parameters.
    """
    point, (value, gradient) = start, function(start)
    yield value, point
    steps: deque[tuple[Vector, Vector]] = deque(maxlen=MEMORY_STEPS)
    while math.isfinite(value) and gradient.any():
        direction = _direction(gradient, steps)
        slope = float(gradient @ direction)
        if not slope < 0:
            if not steps:
                return
            steps.clear()
            continue
        step = min(1.0, _MAX_CHANGE / float(np.abs(direction).max()))
        for halvings in itertools.count():
            other = point + step * direction
            other_value, other_gradient = function(other)
            if other_value <= value + _SUFFICIENT_DECREASE * step * slope:
                break
            step /= 2
            if step < _MIN_STEP or halvings > -math.log2(_MIN_STEP):
                break
        if not other_value < value:
            if not steps:
                return
            steps.clear()
            continue
        moved, change = other - point, other_gradient - gradient
        if float(moved @ change) > _MIN_CURVATURE * float(np.linalg.norm(moved) * np.linalg.norm(change)):
            steps.append((moved, change))
        point, value, gradient = other, other_value, other_gradient
        yield value, point


def _direction(gradient: Vector, steps: deque[tuple[Vector, Vector]]) -> Vector:
    """Return the direction of the next step: the negative gradient, scaled by the curvature along the last steps."""
    direction = -gradient
    shares = []
    for moved, change in reversed(steps):
        share = float(moved @ direction) / float(moved @ change)
        direction -= share * change
        shares.append(share)
    if steps:
        moved, change = steps[-1]
        direction *= float(moved @ change) / float(change @ change)
    for (moved, change), share in zip(steps, reversed(shares), strict=True):
        direction += (share - float(change @ direction) / float(moved @ change)) * moved
    return direction
