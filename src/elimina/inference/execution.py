"""The run of a plan: its device, deadline and listener; figures, advice and checks of all methods; scales of messages.

Readers divide each message by a power of two, which the answer has to account for. Bounds on the rounding error of an
optimum are those of costs, or logarithms, that are floats. Tables are added less the best value that each of them has
(``inference.encode``), so all that is added is of one sign: each addition then changes a sum by a small part of itself.
What tables cancel of each other is in the constants, which are added exactly.
"""

from __future__ import annotations

import functools
import math
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import TableList, widest_range
from elimina.backends import Backend, Run
from elimina.display import bytes_text, count_text, seconds_text
from elimina.errors import InputError, InternalError, MemoryLimitError, TimeLimitError
from elimina.inference.options import Options
from elimina.model import Model
from elimina.planning.plan import Plan
from elimina.planning.prepare import Problem, allowed_ranges
from elimina.planning.program import Program, pack
from elimina.planning.record import MAX_OPERANDS, library_steps
from elimina.planning.steps import Factors, Outputs, Steps
from elimina.result import Result
from elimina.system import cached_property
from elimina.table import Table
from elimina.tasks import described, scale_exponents

if TYPE_CHECKING:
    from elimina.inference.checkpoint import Checkpoint, State

Progress = Callable[[float], None]


class Execution(NamedTuple):
    """A plan on a backend, with a deadline and a listener.

    Attributes:
        part: The number of this run, and of all, for the report of progress.
        checkpoint: Checkpoint that keeps the state.
        share: The slices that are run, as places in the sequence in which all would run; None: all of them.
        known: Known part of the state before it begins.
        learn: Called with what slices say of the answer so far.
    """

    problem: Problem
    plan: Plan
    backend: Backend
    progress: Progress | None = None
    deadline: float | None = None
    part: tuple[int, int] = (0, 1)
    checkpoint: Checkpoint | None = None
    share: range | None = None
    known: State | None = None
    learn: Callable[[Result], None] | None = None

    def program(self, semiring: str | None = None) -> Program:
        """Pack the plan; see ``planning.program.pack``."""
        return pack(self.plan, len(self.problem.model.variables), semiring)

    def places(self, count: int) -> range:
        """Return the slices that are run, of so many: see ``share``."""
        return range(count) if self.share is None else self.share

    def check_deadline(self, reached: str) -> None:
        """Keep the time limit.

        Raises:
            TimeLimitError: The deadline passed.
        """
        if self.deadline is not None and time.monotonic() > self.deadline:
            advice = "elimination has no answer before it ends; allow more time, or use another order or device"
            if self.plan.minibuckets is not None:
                advice = "allow more time, or a smaller i-bound (--ibound)"
            raise TimeLimitError(f"the time limit passed with {reached}: {advice}")

    @property
    def state(self) -> State:
        """State from before; ``done`` is the number of slices that have run, in all sweeps."""
        known = self.known or {} if self.checkpoint is None else self.checkpoint.state
        return {"done": 0, **{key: value for key, value in known.items() if key != "steps"}}

    def save(self, state: State) -> None:
        """Save the present state, if there is a checkpoint."""
        if self.checkpoint is not None:
            self.checkpoint.save(state)

    def report(self, share: float) -> None:
        """Pass on the share of this run that is done.

        Raises:
            TimeLimitError: The deadline passed.
        """
        share = (self.part[0] + share) / self.part[1]
        self.check_deadline(f"{share:.0%} of the elimination done")
        if self.progress is not None:
            self.progress(share)


LONG_SECONDS = 60.0
"""Estimated time of a plan from which advice is given."""

_SMALLEST = 2
"""Memory of the smallest mini-buckets, relative to the factors."""

_NAMES_SHOWN = 5

_MUCH_HELD = 1 << 20
"""Bytes of a call besides its plan from which an error names them."""

NO_MACHINE = 2**50
"""Bytes of a plan from which more memory or a larger disk is not advised."""


def statistics(execution: Execution, clock: Mapping[str, float]) -> dict[str, Any]:
    """Return the figures of a run for ``Result.stats``; the clock has seconds by phase."""
    plan = execution.plan
    slicing = plan.slicing
    sliced = {} if slicing is None else {"slices": slicing.number, "sliced": list(slicing.names)}
    if plan.segments is not None:
        sliced = {"segments": len(plan.segments.ends)}
    if plan.shards is not None:
        sliced = {"cards": plan.shards.cards, "bytes_between_cards": plan.shards.moved * plan.itemsize}
    return {
        "induced_width": plan.width,
        "largest_table": plan.largest_table,
        "total_cells": plan.work,
        "peak_bytes": plan.peak_bytes,
        "seconds": {phase: round(value, 6) for phase, value in clock.items()},
        "device": execution.backend.name,
        "dtype": plan.dtype,
        **sliced,
    }


def advice_on(plan: Plan) -> str | None:
    """Return the advice on a plan that does not fit or takes long; None for other plans."""
    if plan.fits and plan.seconds < LONG_SECONDS:
        return None
    if plan.minibuckets is not None:
        return "a smaller i-bound (--ibound)" if plan.minibuckets.ibound > 1 else _what_helps(plan)
    if described(plan.task).is_optimum:
        gained = "search keeps both bounds and the best assignment"
        return f"solve it with a time limit (elimina solve --time-limit): {gained}"
    if described(plan.task).has_bounds:
        return "bound the answer with mini-buckets (elimina solve --method mbe)"
    return _what_helps(plan.whole)


def check_fits(plan: Plan) -> None:
    """Raise MemoryLimitError, with what would help, if a plan needs more memory than it may have."""
    if not plan.fits:
        raise MemoryLimitError(does_not_fit(plan))


def check_kept(plan: Plan, options: Options) -> None:
    """Raise the same error for tables that have to stay in memory, such as a junction tree's."""
    if not plan.fits:
        enough = options.limit_for(plan.peak_bytes, 0) if plan.on_host and options.room is not None else 0
        raise MemoryLimitError(does_not_fit(plan._replace(enough=enough), takes_files=False))


def does_not_fit(plan: Plan, *, takes_files: bool = True) -> str:
    """Return the error of a plan that does not fit: its needs, and the options that help."""
    whole = plan.whole
    tiers = [(whole.device, whole.peak_bytes, whole.memory_limit)]
    tiers += [(tier, whole.bytes.get(tier, 0), limit) for tier, limit in whole.limits]
    lacking = [tier for tier in tiers if tier[1] > tier[2]] or tiers[:1]
    needs = ", ".join(f"{bytes_text(size)} on {tier} and may use {bytes_text(limit)}" for tier, size, limit in lacking)
    tuples = "elimination on sparse tables would fit (--method eliminate --tables sparse)"
    beside = f" beside {bytes_text(plan.held)} that the call holds" if plan.held >= _MUCH_HELD else ""
    return (
        f"the plan needs {needs}{beside} "
        f"(induced width {whole.width}, largest table {count_text(whole.largest_table)} cells, {whole.dtype}); "
        f"{_what_helps(whole, takes_files)}{_enough(plan)}{_slices_needed(plan)}{_bounds_instead(plan)}"
        f"{'; ' + tuples if plan.fits_sparse else ''}"
    )


def _what_helps(plan: Plan, takes_files: bool = True) -> str:
    if plan.has_large_factors:
        size = bytes_text(plan.factor_cells * plan.itemsize)
        return f"the model's own tables take {size} of that: more memory (--memory) or evidence would help"
    if plan.has_large_steps:
        size = bytes_text(plan.planning_bytes)
        return f"to list its steps takes {size} of that: more memory (--memory) or evidence would help"
    smaller = "a better order (--order, a longer --order-time, another --seed) or evidence would help"
    if plan.peak_bytes > NO_MACHINE:
        return f"no machine has that much: {smaller}"
    # Rows have no place in a file.
    is_possible = takes_files and plan.scratch is None and plan.minibuckets is None and plan.sparse is None
    files = ", a directory on a large disk (--scratch)" if is_possible else ""
    return f"more memory (--memory){files}, {smaller}"


def _enough(plan: Plan) -> str:
    """Return the advice of a memory limit with which a plan would fit."""
    if not plan.enough or plan.whole.peak_bytes > NO_MACHINE:
        return ""
    unit, name = (1 << 20, "MiB") if plan.enough >= 1 << 20 else (1 << 10, "KiB")
    return f"; --memory {math.ceil(plan.enough / unit)}{name} would be enough"


def _bounds_instead(plan: Plan) -> str:
    """Return the advice to take mini-buckets, or smaller ones, where that is possible."""
    whole = plan.whole
    if whole.sparse is not None or whole.has_large_factors or whole.has_large_steps:
        return ""
    if whole.minibuckets is not None:
        return "; a smaller i-bound (--ibound) takes less" if whole.minibuckets.ibound > 1 else ""
    if not described(whole.task).has_bounds or _SMALLEST * whole.factor_cells * whole.itemsize > whole.memory_limit:
        return ""
    others = " without --slices and --scratch" if plan.slicing is not None or whole.scratch is not None else ""
    return f"; mini-buckets bound the answer in less memory (--method mbe{others})"


def _slices_needed(plan: Plan) -> str:
    slicing = plan.slicing
    if slicing is None:
        return ""
    names = ", ".join(slicing.names[:_NAMES_SHOWN]) + (", ..." if len(slicing.names) > _NAMES_SHOWN else "")
    return (
        f"; fixing {len(slicing.names)} variables ({names}) would do it in {count_text(slicing.number)} slices of "
        f"{bytes_text(plan.peak_bytes)}, estimated at {seconds_text(plan.seconds)}, which --slices {slicing.number} "
        "allows"
    )


class Scaled(NamedTuple):
    """The number ``fraction * 2**exponent``, which is not negative. Whole numbers below 2^53 are exact.

    Attributes:
        fraction: 0, or a float from 0.5 on and below 1.
        exponent: Power of two; 0 for the number 0.
    """

    fraction: float
    exponent: int

    @staticmethod
    def product(factors: Iterable[float], exponent: int = 0) -> Scaled:
        """Return the product of some finite factors, times a power of two."""
        fraction, exponent = 1.0, int(exponent)
        for factor in factors:
            # The factor first: the product of a number near 1 and a subnormal one would lose digits.
            own, power = math.frexp(factor)
            fraction, carried = math.frexp(fraction * own)
            exponent += power + carried
        own, carried = math.frexp(fraction)
        return Scaled(own, exponent + carried) if own else Scaled(0.0, 0)

    @staticmethod
    def from_log2(log: float) -> Scaled:
        """Return the number of a base-2 logarithm; of minus infinity, 0."""
        if log == -math.inf:
            return Scaled(0.0, 0)
        exponent = math.floor(log)
        return Scaled.product([2.0 ** (log - exponent)], exponent)

    def times(self, other: Scaled) -> Scaled:
        """Return the product with another number."""
        return Scaled.product([self.fraction, other.fraction], self.exponent + other.exponent)

    @property
    def value(self) -> float | None:
        """The number as a float; None where it leaves the normal range."""
        if self.fraction and not sys.float_info.min_exp <= self.exponent <= sys.float_info.max_exp:
            return None
        return math.ldexp(self.fraction, self.exponent)

    @property
    def log10(self) -> float:
        """Base-10 logarithm; minus infinity of 0."""
        if not self.fraction:
            return -math.inf
        value = self.value
        return math.log10(self.fraction) + self.exponent * math.log10(2) if value is None else math.log10(value)


class ScaledSum:
    """A sum to which numbers are added one at a time; reading it rounds once, whatever their sequence.

    Floats that do not overlap (Shewchuk 1997) hold the sum exactly, down to 2^-1074 of the largest number.

    Args:
        top: Power of two by which the floats are multiplied: the largest exponent of the numbers so far.
        parts: Floats whose sum it is.
    """

    def __init__(self, top: int = 0, parts: Iterable[float] = ()) -> None:
        self._top, self._parts = top, list(parts)

    @property
    def state(self) -> tuple[int, list[float]]:
        """Arguments that make the same sum."""
        return self._top, list(self._parts)

    def add(self, number: Scaled) -> None:
        """Add a number."""
        if not number.fraction:
            return
        if not self._parts or number.exponent > self._top:
            lowered = (math.ldexp(part, self._top - number.exponent) for part in self._parts)
            self._top, self._parts = number.exponent, [part for part in lowered if part]
        rest = math.ldexp(number.fraction, number.exponent - self._top)
        parts = []
        for part in self._parts:
            large, small = (rest, part) if rest >= abs(part) else (part, rest)
            rest = large + small
            if lost := small - (rest - large):
                parts.append(lost)
        self._parts = [*parts, rest]

    @property
    def total(self) -> Scaled:
        """The sum."""
        return Scaled.product([math.fsum(self._parts)], self._top)


def partition_result(total: Scaled) -> Result:
    """Return the answer to the task ``pr``."""
    return Result("exact" if total.fraction else "infeasible", "pr", total.value, log10_z=total.log10)


def check_value(
    dtype: str, value: int | float, score: int | float, terms: Sequence[int | float], slack: float = 0.0
) -> None:
    """Check that the assignment's value on the original model is the value that elimination found.

    Args:
        dtype: It was computed in.
        value: Value that elimination found.
        score: Value of the assignment.
        terms: Terms of the score, for the tolerance of floats.
        slack: Largest rounding error besides.

    Raises:
        InternalError: They differ.
    """
    tolerance = slack
    if not dtype.startswith("int"):
        tolerance += (64 + len(terms)) * float(np.finfo(dtype).eps) * max(math.fsum(map(abs, terms)), 1.0)
    if not abs(value - score) <= tolerance:
        raise InternalError(
            f"elimination found the optimum {value!r}, its assignment is worth {score!r} on the model; "
            "please report this"
        )


def check_sum(model: Model, tables: Sequence[Table] | TableList, dtype: str) -> None:
    """Refuse finite costs whose sum may be infinite, which would read as forbidden.

    Args:
        model: Model of the costs.
        tables: Tables that are added to its constant.
        dtype: Floats that add them.

    Raises:
        InputError: The sum may leave the range of these floats.
    """
    if model.sense == "probability":
        return
    ends = [(float(low), float(high)) for low, high in filter(None, allowed_ranges(tables, model.sense))]
    total = sum((max(-low, high, high - low) for low, high in ends), abs(float(model.constant)))
    if total > float(np.finfo(dtype).max):
        way = "use dtype float64" if dtype == "float32" else "scale them down"
        largest = max((max(-low, high) for low, high in ends), default=0.0)
        shown = f"{total:.3g}" if math.isfinite(total) else f"more than {sys.float_info.max:.3g}"
        raise InputError(
            f"the costs, up to {largest:.3g} in a table, may add up to {shown}, which {dtype} cannot hold; {way}, and "
            "write forbidden ones as infinity"
        )


_MORE = 8
"""Roundings of a sum besides its additions: of the tables' own differences, of constants, and of the total."""

TOLERANCES = {"float64": 1e-9, "float32": 1e-3}
"""Gap between the bounds of an optimum, relative to its value (or to 1), from which on it is not called optimal."""


@functools.cache
def epsilon(dtype: str) -> float:
    """Return the relative distance of neighbouring floats."""
    return float(np.finfo(dtype).eps)


def additions(plan: Plan) -> int:
    """Return the largest number of additions on a path from a cell to the roots of a plan."""
    return Steps.packed(plan.steps).additions + Factors.packed(plan.factors).joined + _MORE


def rounding(problem: Problem, plan: Plan, cost: float, constants: Iterable[float], more: int = 0) -> float:
    """Return how far from its true value a plan's optimum may be.

    Args:
        problem: Problem of the plan.
        plan: Plan that adds floats.
        cost: The sum of the plan's roots.
        constants: Constants taken out of its tables.
        more: Additions besides those of the plan.
    """
    slack = (additions(plan) + more) * epsilon(plan.dtype) * abs(cost)
    # Logarithms are rounded themselves.
    return slack + _MORE * epsilon("float64") * math.fsum(map(abs, constants)) * (problem.model.sense == "probability")


def widened(bound: float, *parts: float) -> float:
    """Return a lower bound that is the sum of some floats, less the possible rounding of the sum."""
    return bound - _MORE * epsilon("float64") * sum(map(abs, parts), abs(bound))


class Scales:
    """The accounts of a plan's runs in ``sum-product``.

    Args:
        plan: Any plan whose messages towards the roots are each read once on the way there.
    """

    def __init__(self, plan: Plan) -> None:
        self._steps, self._plan = Steps.packed(plan.steps), plan
        self._smallest = float(np.finfo(plan.dtype).minexp) + 2 * MAX_OPERANDS
        self._largest = float(np.finfo(plan.dtype).maxexp) - 2 * MAX_OPERANDS
        self._operands = self._steps.most_tables
        # A device's library reads the tables of a matrix product unscaled, and multiplies by their scales at the end.
        self._raw = np.zeros((0, 2), dtype=np.int64)
        if "device" in plan.bytes and plan.semiring == "sum-product":
            library = library_steps(self._steps)
            if library.any():
                self._raw = self._table[library[self._steps.readers]].reshape(-1, 2)
        # Up to the last root every step is on the way to one, where it is read once.
        last_ones = Outputs.packed(plan.outputs).steps[list(root_outputs(plan))]
        is_below = np.ones(int(last_ones.max(initial=-1)) + 1, dtype=bool)
        is_below[last_ones] = False
        self._below = np.flatnonzero(is_below)

    @cached_property
    def _table(self) -> NDArray[np.int64]:
        """Each table that is read, by its number among all messages and then all factors."""
        sources = self._steps.sources
        return np.where(sources >= 0, sources, len(self._steps) + self._steps.factors)

    def sum_of(self, run: Run) -> Scaled:
        """Return the product of the roots' values, without scaling."""
        return Scaled.product(roots(self._plan, run), int(self.root_exponents(run.peaks)))

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
        # Most often it is seen at once that nothing comes near.
        (most, least), (_, least_factor) = widest_range(peaks.reshape(-1, 2)), widest_range(ranges)
        least = min(least, least_factor)
        if least > 0 and self._operands * (math.frexp(least)[1] - math.frexp(most)[1]) >= self._smallest:
            return False
        lows = log2_lows(peaks[..., 1]) - scale_exponents(peaks[..., 0], self._plan.dtype)
        lows = np.concatenate([lows.min(axis=tuple(range(lows.ndim - 1))), log2_lows(ranges[:, 1])])
        products = np.bincount(self._steps.readers, weights=lows[self._table], minlength=1)
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
        return tuple(Outputs.packed(plan.outputs).roots.tolist())
    free = set(plan.order)
    return tuple([number for number, (_, scope) in enumerate(plan.outputs) if free.isdisjoint(scope)])


def root_places(plan: Plan) -> NDArray[np.int64]:
    """Return the places in ``Run.zone`` of the values whose product is the whole model's."""
    steps, outputs = plan.steps, Outputs.packed(plan.outputs)
    if isinstance(steps, Steps):
        offsets = outputs.places(steps)[:, 1]
    else:
        offsets = np.array([steps[number].out_offset for number in outputs.steps.tolist()], dtype=np.int64)
    return np.asarray(offsets[outputs.roots] - offsets.min()) if len(offsets) else offsets


def log2_lows(smallest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Base-2 logarithms, rounded down, of tables' smallest positive values; infinity if all values are 0."""
    lows = np.frexp(smallest)[1] - 1.0
    lows[smallest == 0] = np.inf
    return lows
