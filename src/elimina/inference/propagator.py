"""A plan of both passes on a device: evidence comes and goes, and only what it changes is computed again."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.backends import Run
from elimina.backends.base import Progress
from elimina.inference.choose import Planned
from elimina.inference.encode import encode, factor_view
from elimina.inference.scales import Scales
from elimina.planning.plan import FactorLayout, Step
from elimina.planning.program import pack

Array = NDArray[Any]


class Written:
    """Where outputs of a program lie in the zone: their steps, and their axes as in ``Plan.outputs``."""

    def __init__(self, steps: Sequence[tuple[Step, tuple[int, ...]]], first: int) -> None:
        self._steps, self._first = steps, first

    def tables(self, zone: Array) -> list[Array]:
        """Each output as an array."""
        return [step_table(step, zone[step.out_offset - self._first :], scope) for step, scope in self._steps]

    @functools.cached_property
    def vectors(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], list[slice]]:
        """Of outputs with one axis each, one after another: their places, starts, sizes and slices."""
        sizes = np.array([step.sizes[0] for step, _ in self._steps], dtype=np.int64)
        starts = np.cumsum(sizes) - sizes
        at = np.array([step.out_offset - self._first for step, _ in self._steps], dtype=np.int64)
        places = np.arange(sizes.sum()) + np.repeat(at - starts, sizes)
        ends = (starts + sizes).tolist()
        return places, starts, sizes, [slice(*span) for span in zip(starts.tolist(), ends, strict=True)]


class Answer(NamedTuple):
    """What a propagation gives.

    Attributes:
        zone: The elements of the program's outputs.
        written: Where those are that were asked for.
        log_sum: Natural logarithm of the model's sum given the evidence (``max-sum``: of the best product), a scalar or
            one for each case; None if it was not asked for.
        logarithmic: Whether tables hold natural logarithms.
        sound: False if a product may have left the dtype's range: then ask again in ``log-sum-exp``.
    """

    zone: Array
    written: Written
    log_sum: NDArray[np.float64] | None
    logarithmic: bool
    sound: bool

    @property
    def tables(self) -> list[Array]:
        """For each asked-for output, unnormalised, its axes those of ``Plan.outputs``."""
        return self.written.tables(self.zone)

    def vectors(self, scale: str = "sum") -> list[NDArray[np.float64]]:
        """Marginals of one variable each, without cases, divided by their sum (or ``max``: by the largest)."""
        places, starts, sizes, slices = self.written.vectors
        if not slices:
            return []
        cells = self.zone[places].astype(np.float64)
        highs = np.repeat(np.maximum.reduceat(cells, starts), sizes)
        cells = np.exp(cells - highs) if self.logarithmic else cells / highs
        if scale == "sum":
            cells /= np.repeat(np.add.reduceat(cells, starts), sizes)
        return [cells[part] for part in slices]


class Propagator:
    """Runs a plan of the tasks ``mar`` or ``joint``, weighing variables in between.

    Args:
        planned: A plan that keeps its messages, and its backend.
        semiring: ``sum-product``; ``log-sum-exp``: slower, but nothing underflows; ``max-sum``: logarithms of
            max-marginals.

    Attributes:
        seconds: Time of the last run by phase: see ``Run.seconds``.
    """

    def __init__(self, planned: Planned, semiring: str = "sum-product") -> None:
        problem, self._plan = planned.problem, planned.plan
        self._semiring = semiring
        self._encoded = encode(problem, self._plan, semiring)
        self._scales = Scales(self._plan)
        self._ranges = self._encoded.ranges.copy()
        self._homes = self._find_homes()
        self._weights: dict[int, dict[int, Array]] = {}
        program = pack(self._plan, len(problem.model.variables), semiring, -math.inf)
        self._session = planned.backend.open(program, self._encoded.arena)
        self._levels_of: dict[int, Array] = {}
        self._stale = np.ones(len(self._plan.steps), dtype=bool)
        self._cones: dict[int, NDArray[np.int64]] = {}
        free = set(self._plan.order)
        self._roots = tuple(n for n, output in enumerate(self._plan.outputs) if free.isdisjoint(output.scope))
        self._places: dict[tuple[int, ...], Written] = {}
        self._zone = program.zone[0]
        self.seconds: dict[str, float] = {}

    def close(self) -> None:
        """Give the device's memory back."""
        self._session.close()

    def _find_homes(self) -> dict[int, int]:
        """The smallest factor with each variable (and the kept ones, if a factor has them): its weights go there."""
        homes: dict[int, tuple[bool, int, int]] = {}
        kept = self._plan.kept
        for number, factor in enumerate(self._plan.factors):
            key = not set(kept).issubset(factor.scope), math.prod(factor.sizes), number
            for v in factor.scope:
                homes[v] = min(homes.get(v, key), key)
        return {v: number for v, (_, _, number) in homes.items()}

    def weigh(self, changes: Mapping[int, Array | None]) -> None:
        """Multiply variables' values by weights, instead of by what was given before; None: by 1.

        Args:
            changes: Variable -> weights, not negative (bool: values allowed or not), of shape (size,), or (size, cases)
                where a factor has cases.
        """
        touched = set()
        for v, weights in changes.items():
            home = self._homes[v]
            own = self._weights.setdefault(home, {})
            if weights is None:
                own.pop(v, None)
            else:
                own[v] = weights
            touched.add(home)
        for home in touched:
            self._load(home)
            if self._plan.keep:
                self._stale |= self._after[:, home]

    def observe(self, variables: Sequence[int], values: NDArray[np.intp]) -> None:
        """Observe values in each case, instead of those before; for variables with a factor over them and the cases.

        Args:
            variables: Of the rows.
            values: Shape ``(variables, cases)``; -1 where nothing is observed.
        """
        for v, row in zip(variables, values, strict=True):
            factor = self._plan.factors[self._homes[v]]
            region = np.empty(factor.span, dtype=self._plan.dtype)
            np.take(self._levels(v), row, axis=1, out=factor_view(region, factor._replace(offset=0)), mode="wrap")
            self._session.load(factor.offset, region)
        # Steps without cases are cheap beside the others.
        self._stale[:] = True

    def _levels(self, variable: int) -> Array:
        """A factor of a variable and cases for each value that is observed in a case (columns; the last one: none)."""
        if variable not in self._levels_of:
            values = factor_view(self._encoded.arena, self._plan.factors[self._homes[variable]])[:, :1]
            forbidden = 0.0 if self._semiring == "sum-product" else -math.inf
            levels = np.where(np.eye(len(values), len(values) + 1, dtype=bool), values, forbidden)
            levels[:, -1:] = values
            self._levels_of[variable] = levels.astype(self._plan.dtype)
        return self._levels_of[variable]

    def _load(self, number: int) -> None:
        factor = self._plan.factors[number]
        region = self._encoded.arena[factor.offset : factor.offset + factor.span].copy()
        view = factor_view(region, factor._replace(offset=0))
        least = most = 1.0
        for v, weights in self._weights[number].items():
            shaped = weights.reshape(_shape(factor, (v, *self._plan.kept[: weights.ndim - 1])))
            if weights.dtype != bool:
                least *= float(np.min(weights, initial=1.0, where=weights > 0))
                most *= float(np.max(weights, initial=1.0))
            if self._semiring == "sum-product":
                view *= shaped
            else:
                with np.errstate(divide="ignore"):
                    view += np.log(shaped)
        if len(self._ranges):
            self._ranges[number] = self._encoded.ranges[number] * (most, least)
        self._session.load(factor.offset, region)

    @functools.cached_property
    def _after(self) -> NDArray[np.bool_]:
        """Whether a factor (column) has a say in a step (row)."""
        masks: list[int] = []
        for step in self._plan.steps:
            mask = 0
            for operand in step.operands:
                mask |= masks[operand.source] if operand.source >= 0 else 1 << operand.factor
            masks.append(mask)
        count = -(-max(1, len(self._plan.factors)) // 8)
        rows = np.frombuffer(b"".join(mask.to_bytes(count, "little") for mask in masks), dtype=np.uint8)
        return np.unpackbits(rows.reshape(len(masks), count), axis=1, bitorder="little").astype(bool)

    def _before(self, output: int) -> NDArray[np.int64]:
        """The steps that an output depends on, ascending."""
        if output not in self._cones:
            found = set()
            stack = [self._plan.outputs[output].step]
            while stack:
                number = stack.pop()
                if number not in found:
                    found.add(number)
                    stack += [o.source for o in self._plan.steps[number].operands if o.source >= 0]
            self._cones[output] = np.array(sorted(found), dtype=np.int64)
        return self._cones[output]

    def run(self, outputs: Sequence[int], *, log_sum: bool = True, progress: Progress | None = None) -> Answer:
        """Compute outputs of the plan (and the sum of everything), as far as they are not known from runs before."""
        if len(outputs) + log_sum * len(self._roots) == len(self._plan.outputs) or not self._plan.keep:
            steps = self._stale.nonzero()[0]
        else:
            needed = np.zeros(len(self._plan.steps), dtype=bool)
            for output in (*outputs, *(self._roots if log_sum else ())):
                needed[self._before(output)] = True
            steps = np.flatnonzero(needed & self._stale)
        run = self._session.run(None if len(steps) == len(self._stale) else steps, progress)
        self.seconds = run.seconds
        # Messages that make room for others are gone afterwards.
        self._stale[steps] = not self._plan.keep
        total = self._log_sum(run) if log_sum else None
        answer = Answer(run.zone, self._written(tuple(outputs)), total, self.logarithmic, True)
        return answer._replace(sound=self.logarithmic or self._is_sound(outputs, answer, run))

    def _is_sound(self, outputs: Sequence[int], answer: Answer, run: Run) -> bool:
        """Whether no product can have become 0, or what may be missing is nothing beside what is there."""
        if not self._encoded.exact:
            return False
        if not self._scales.may_underflow(self._ranges, run.peaks):
            return True
        errors = self._scales.errors(self._ranges, run.peaks)
        enough = math.log2(np.finfo(self._plan.dtype).eps)
        asked = [*outputs, *self._roots]
        for output, table in zip(asked, self._written(tuple(asked)).tables(answer.zone), strict=True):
            number, scope = self._plan.outputs[output]
            totals = table.sum(axis=tuple(a for a, v in enumerate(scope) if v not in self._plan.kept))
            least = float(totals.min())
            if least <= 0 or errors[number] - math.log2(least) > enough:
                return False
        return True

    def _written(self, outputs: tuple[int, ...]) -> Written:
        if outputs not in self._places:
            found = [self._plan.outputs[output] for output in outputs]
            self._places[outputs] = Written([(self._plan.steps[n], scope) for n, scope in found], self._zone)
        return self._places[outputs]

    def _log_sum(self, run: Run) -> NDArray[np.float64]:
        if self._encoded.impossible:
            return np.asarray(-np.inf)
        values = self._written(self._roots).tables(run.zone)
        if self.logarithmic:
            return np.asarray(sum(values, start=np.float64(0.0)) + self._encoded.offset)
        exponents = self._encoded.offset + self._scales.root_exponent(run)
        if not self._plan.kept:
            logs = [math.log(value.item()) if value.item() > 0 else -math.inf for value in values]
            return np.asarray(math.fsum(logs) + math.log(2) * exponents)
        with np.errstate(divide="ignore"):
            total = sum((np.log(value) for value in values), start=np.float64(0.0))
        return np.asarray(total + math.log(2) * exponents)

    def factor_table(self, number: int) -> tuple[tuple[int, ...], Array]:
        """A factor as weighed at present, up to a constant: its scope and values."""
        factor = self._plan.factors[number]
        region = self._session.fetch(factor.offset, factor.span)
        return factor.scope, np.array(factor_view(region, factor._replace(offset=0)))

    @property
    def logarithmic(self) -> bool:
        """Whether tables hold natural logarithms."""
        return self._semiring != "sum-product"

    def message(self, number: int) -> tuple[tuple[int, ...], Array]:
        """The output of a step of the last run, up to a constant: its scope and values."""
        step = self._plan.steps[number]
        return step.axes, np.array(step_table(step, self._session.fetch(step.out_offset, step.out_span), step.axes))


def step_table(step: Step, values: Array, scope: Sequence[int]) -> Array:
    """A step's output as an array whose axes are those of the scope (of length 1 where the output lacks one)."""
    if not step.sizes:
        return values[:1].reshape((1,) * len(scope)) if scope else values[0]
    item = values.itemsize
    view = np.lib.stride_tricks.as_strided(values, step.sizes, [stride * item for stride in step.out_strides])
    axes = [step.axes.index(v) for v in scope if v in step.axes]
    shape = [step.sizes[step.axes.index(v)] if v in step.axes else 1 for v in scope]
    table: Array = view.transpose(axes).reshape(shape)
    return table


def _shape(factor: FactorLayout, scope: Sequence[int]) -> list[int]:
    return [size if v in scope else 1 for v, size in zip(factor.scope, factor.sizes, strict=True)]
