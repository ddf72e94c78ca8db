"""Scaling exponents of messages: steps that read a message divide it by a power of two."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elimina._core import widest_range
from elimina.backends.protocols import RunOutput
from elimina.planning.packed_steps import Outputs, Steps
from elimina.planning.plan import Plan
from elimina.planning.program import library_steps
from elimina.planning.record import MAX_OPERANDS
from elimina.problem.semirings import SEMIRINGS, scale_exponents
from elimina.running.scaled import ScaledNumber
from elimina.system import cached_property


class Scales:
    """Scaling of a plan's runs in ``sum-product``.

    Args:
        plan: Any plan whose upward pass reads each message once.
    """

    def __init__(self, plan: Plan) -> None:
        self._steps, self._plan = Steps.packed(plan.steps), plan
        self._smallest = float(np.finfo(plan.dtype).minexp) + 2 * MAX_OPERANDS
        self._largest = float(np.finfo(plan.dtype).maxexp) - 2 * MAX_OPERANDS
        self._operands = self._steps.most_tables
        # A device's library reads the tables of a matrix product unscaled, and multiplies the result by their scales.
        self._raw = np.zeros((0, 2), dtype=np.int64)
        if "device" in plan.bytes and SEMIRINGS[plan.semiring].is_product:
            library = library_steps(self._steps)
            if library.any():
                self._raw = self._table[library[self._steps.readers]].reshape(-1, 2)
        # Every step before the last root, except the roots, has one reader, which divides the step's output by a scale.
        # The product of the roots' values lacks all of these scales.
        last_ones = Outputs.packed(plan.outputs).steps[list(root_outputs(plan))]
        is_below = np.ones(int(last_ones.max(initial=-1)) + 1, dtype=bool)
        is_below[last_ones] = False
        self._below = np.flatnonzero(is_below)

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        """Number of each operand: messages are numbered first, then factors."""
        sources = self._steps.sources
        return np.where(sources >= 0, sources, len(self._steps) + self._steps.factors)

    def sum_of(self, run: RunOutput) -> ScaledNumber:
        """Return the unscaled product of the roots' values."""
        return ScaledNumber.product(roots(self._plan, run), int(self.root_exponents(run.peaks)))

    def root_exponents(self, peaks: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the exponent of the power of two by which scaling divides the product of the roots' values.

        Args:
            peaks: ``RunOutput.peaks`` of any number of runs.
        """
        return np.asarray(scale_exponents(peaks[..., self._below, 0], self._plan.dtype).sum(axis=-1))

    def may_underflow(self, ranges: NDArray[np.float64], peaks: NDArray[np.float64]) -> bool:
        """Return whether a product of the smallest positive values of tables could leave the dtype's normal range.

        Args:
            ranges: ``Encoded.ranges``.
            peaks: ``RunOutput.peaks`` of any number of runs.
        """
        if len(self._raw) and self._leaves_range(ranges, peaks):
            return True
        # Often, a quick check of the common range of all tables is sufficient.
        tables = widest_range(peaks.reshape(-1, 2))
        least = min(tables.least, widest_range(ranges).least)
        if least > 0 and self._operands * (math.frexp(least)[1] - math.frexp(tables.largest)[1]) >= self._smallest:
            return False
        lows = log2_lows(peaks[..., 1]) - scale_exponents(peaks[..., 0], self._plan.dtype)
        lows = np.concatenate([lows.min(axis=tuple(range(lows.ndim - 1))), log2_lows(ranges[:, 1])])
        products = np.bincount(self._steps.readers, weights=lows[self._table], minlength=1)
        return bool(products.min() < self._smallest)

    def _leaves_range(self, ranges: NDArray[np.float64], peaks: NDArray[np.float64]) -> bool:
        """Return whether a matrix product of unscaled tables could leave the normal range at either end."""
        runs = tuple(range(peaks.ndim - 2))
        lows = np.concatenate([log2_lows(peaks[..., 1]).min(axis=runs), log2_lows(ranges[:, 1])])
        highs = np.concatenate([peaks[..., 0].max(axis=runs), ranges[:, 0]])
        least, greatest = lows[self._raw].sum(axis=1).min(), np.frexp(highs)[1][self._raw].sum(axis=1).max()
        return bool(least < self._smallest or greatest > self._largest or not np.isfinite(highs).all())

    def errors(self, ranges: NDArray[np.float64], peaks: NDArray[np.float64]) -> list[float]:
        """Return, for each step, the base-2 logarithm of a bound on the loss from products that underflowed to 0.

        A product below the smallest normal number loses at most its whole value. A step that reads a message passes on
        the message's loss: multiplied by the largest values of the step's other tables (below 2 after scaling), and
        divided by the power of two by which the step scales the message.

        Args:
            ranges: ``Encoded.ranges``.
            peaks: ``RunOutput.peaks`` of one run.
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


def roots(plan: Plan, run: RunOutput) -> list[int | float]:
    """Return the values at a plan's roots; their product in the plan's semiring is the answer."""
    values: list[int | float] = run.zone[root_places(plan)].tolist()
    return values


def root_outputs(plan: Plan) -> tuple[int, ...]:
    """Return the numbers of the outputs without free variables, one per tree; the other outputs are marginals."""
    if not plan.kept:
        return tuple(Outputs.packed(plan.outputs).roots.tolist())
    free = set(plan.order)
    return tuple([number for number, (_, scope) in enumerate(plan.outputs) if free.isdisjoint(scope)])


def root_places(plan: Plan) -> NDArray[np.int64]:
    """Return the positions of the roots' values in ``RunOutput.zone``: see ``roots``."""
    steps, outputs = plan.steps, Outputs.packed(plan.outputs)
    if isinstance(steps, Steps):
        offsets = outputs.locations(steps)[:, 1]
    else:
        offsets = np.array([steps[number].out_offset for number in outputs.steps.tolist()], dtype=np.int64)
    return np.asarray(offsets[outputs.roots] - offsets.min()) if len(offsets) else offsets


def log2_lows(smallest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the base-2 logarithms of tables' smallest positive values, rounded down; infinity for tables of zeros."""
    lows = np.frexp(smallest)[1] - 1.0
    lows[smallest == 0] = np.inf
    return lows
