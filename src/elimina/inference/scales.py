"""Scales of messages: readers divide each by a power of two, which the answer has to account for.

Bounds on the rounding error of an optimum whose costs, or logarithms, are floats.

Tables are added less the best value that each of them has (``inference.encode``), so all that is added is of one sign:
each addition then changes a sum by a small part of itself. What tables cancel of each other is in the constants, which
are added exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from elimina.backends import Run
from elimina.planning.plan import Plan
from elimina.planning.record import MAX_OPERANDS, library_steps
from elimina.planning.steps import Factors, Steps
from elimina.tasks import scale_exponents

_MORE = 8
"""Roundings of a sum besides its additions: of the tables' own differences, of constants, and of the total."""

TOLERANCES = {"float64": 1e-9, "float32": 1e-3}
"""Gap between the bounds of an optimum, relative to its value (or to 1), from which on it is not called optimal."""


def epsilon(dtype: str) -> float:
    """Return the relative distance of neighbouring floats."""
    return float(np.finfo(dtype).eps)


def additions(plan: Plan) -> int:
    """Return the largest number of additions on a path from a cell to the roots of a plan."""
    return Steps.packed(plan.steps).additions + Factors.packed(plan.factors).joined + _MORE


def rounding(plan: Plan, cost: float, constants: Iterable[float], more: int = 0) -> float:
    """Return how far from its true value a plan's optimum may be.

    Args:
        plan: Plan that adds floats.
        cost: The sum of the plan's roots.
        constants: Constants taken out of its tables.
        more: Additions besides those of the plan.
    """
    slack = (additions(plan) + more) * epsilon(plan.dtype) * abs(cost)
    # Logarithms are rounded themselves.
    return slack + _MORE * epsilon("float64") * math.fsum(map(abs, constants)) * (plan.semiring == "max-sum")


def widened(bound: float, *parts: float) -> float:
    """Return a lower bound that is the sum of some floats, less the possible rounding of the sum."""
    return bound - _MORE * epsilon("float64") * (abs(bound) + math.fsum(map(abs, parts)))


class Scales:
    """The accounts of a plan's runs in ``sum-product`` or ``max-product``.

    Args:
        plan: Any plan whose messages towards the roots are each read once on the way there.
    """

    def __init__(self, plan: Plan) -> None:
        steps = Steps.packed(plan.steps)
        self._reader, sources = steps.readers, steps.sources
        # Of each table that is read, in a list of all messages and then all factors.
        self._table = np.where(sources >= 0, sources, len(steps) + steps.factors)
        self._smallest = float(np.finfo(plan.dtype).minexp) + 2 * MAX_OPERANDS
        # A device's library reads the tables of a matrix product unscaled, and multiplies by their scales at the end.
        raw = (
            library_steps(steps)
            if "device" in plan.bytes and plan.semiring == "sum-product"
            else np.zeros(len(steps), bool)
        )
        self._raw = self._table[raw[self._reader]].reshape(-1, 2)
        self._largest = float(np.finfo(plan.dtype).maxexp) - 2 * MAX_OPERANDS
        self._operands = int(steps.tables.max(initial=0))
        self._plan = plan
        # Up to the last root every step is on the way to one.
        last = max([plan.outputs[number].step for number in root_outputs(plan)], default=-1)
        self._below = sources[(self._reader <= last) & (sources >= 0)]

    def log2_sum(self, run: Run) -> float:
        """Base-2 logarithm of the product of the roots' values, without scaling; minus infinity if one is 0."""
        values = roots(self._plan, run)
        if not all(value > 0 for value in values):
            return -math.inf
        return float(self.root_exponents(run.peaks)) + math.fsum(map(math.log2, values))

    def root_exponents(self, peaks: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the power of two by which the roots' values have to be multiplied, all of them together.

        Args:
            peaks: ``Run.peaks``, of any number of runs.
        """
        return np.asarray(scale_exponents(peaks[..., self._below, 0], self._plan.dtype).sum(axis=-1))

    def may_underflow(self, ranges: NDArray[np.float64], peaks: NDArray[np.float64]) -> bool:
        """Return whether a product of values, each as small as its table holds, could leave the dtype's normal range.

        Args:
            ranges: ``Encoded.ranges``.
            peaks: ``Run.peaks``, of any number of runs.
        """
        if len(self._raw) and self._leaves_range(ranges, peaks):
            return True
        least = float(min(peaks[..., 1].min(initial=1.0), ranges[:, 1].min(initial=1.0)))
        most = float(peaks[..., 0].max(initial=1.0))
        # Most often it is seen at once that nothing comes near.
        if least > 0 and self._operands * (math.frexp(least)[1] - math.frexp(most)[1]) >= self._smallest:
            return False
        lows = log2_lows(peaks[..., 1]) - scale_exponents(peaks[..., 0], self._plan.dtype)
        lows = np.concatenate([lows.min(axis=tuple(range(lows.ndim - 1))), log2_lows(ranges[:, 1])])
        products = np.bincount(self._reader, weights=lows[self._table], minlength=1)
        return bool(products.min() < self._smallest)

    def _leaves_range(self, ranges: NDArray[np.float64], peaks: NDArray[np.float64]) -> bool:
        """Return whether a matrix product of tables that are not scaled could leave the normal range at either end."""
        runs = tuple(range(peaks.ndim - 2))
        lows = np.concatenate([log2_lows(peaks[..., 1]).min(axis=runs), log2_lows(ranges[:, 1])])
        highs = np.concatenate([peaks[..., 0].max(axis=runs), ranges[:, 0]])
        least, most = lows[self._raw].sum(axis=1).min(), np.frexp(highs)[1][self._raw].sum(axis=1).max()
        return bool(least < self._smallest or most > self._largest or not np.isfinite(highs).all())

    def errors(self, ranges: NDArray[np.float64], peaks: NDArray[np.float64]) -> list[float]:
        """Return, for each step, the base-2 logarithm of a bound on the loss of products that became 0.

        A product below the smallest normal number is lost at most as a whole; what a message lacks is carried on by the
        steps that read it, multiplied by the largest values of their other tables (below 2 once scaled) and divided by
        the power of two that its reader takes out.

        Args:
            ranges: ``Encoded.ranges``.
            peaks: ``Run.peaks``.
        """
        smallest = float(np.finfo(self._plan.dtype).minexp)
        exponents = scale_exponents(peaks[:, 0], self._plan.dtype).tolist()
        with np.errstate(divide="ignore"):
            tops = np.maximum(np.log2(ranges[:, 0]), 0.0).tolist()
        errors: list[float] = []
        for step in self._plan.steps:
            bits = sum(tops[o.factor] if o.source < 0 else 1.0 for o in step.operands)
            worst = max([smallest, *(errors[o.source] - exponents[o.source] for o in step.operands if o.source >= 0)])
            errors.append(worst + bits + math.log2(step.domain * (len(step.operands) + 1)))
        return errors


def roots(plan: Plan, run: Run) -> list[int | float]:
    """Return the values whose product (in the plan's semiring) is the whole model's."""
    values: list[int | float] = run.zone[root_places(plan)].tolist()
    return values


def root_outputs(plan: Plan) -> tuple[int, ...]:
    """Return the numbers of the outputs of whole trees; the others are marginals of free variables."""
    if not plan.kept:
        return tuple([number for number, (_, scope) in enumerate(plan.outputs) if not scope])
    free = set(plan.order)
    return tuple([number for number, (_, scope) in enumerate(plan.outputs) if free.isdisjoint(scope)])


def root_places(plan: Plan) -> NDArray[np.int64]:
    """Return the places in ``Run.zone`` of the values whose product is the whole model's."""
    steps = plan.steps
    if isinstance(steps, Steps):
        offsets = steps.offsets[[output.step for output in plan.outputs]].tolist()
    else:
        offsets = [steps[output.step].out_offset for output in plan.outputs]
    first = min(offsets, default=0)
    outputs = zip(plan.outputs, offsets, strict=True)
    return np.array([offset - first for output, offset in outputs if not output.scope], dtype=np.int64)


def log2_lows(smallest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Base-2 logarithms, rounded down, of tables' smallest positive values; infinity if all values are 0."""
    lows = np.frexp(smallest)[1] - 1.0
    lows[smallest == 0] = np.inf
    return lows
