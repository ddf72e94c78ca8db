"""Repeated runs of a plan with the upward and the downward pass.

``Propagator``: after a change of evidence, only the steps that depend on it run again. ``Resident``: weights and
posteriors are arrays on the device.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import count_path
from elimina.backends.protocols import GatheringSession, KeepingSession, Progress, SlicingSession
from elimina.errors import InputError, InternalError
from elimina.planning.packed_steps import Outputs, Steps
from elimina.planning.plan import Plan
from elimina.planning.program import case_planner, pack
from elimina.planning.slice_dependence import Reach
from elimina.planning.step import FactorLayout
from elimina.problem.evidence import LogWeights, weights_of
from elimina.problem.semirings import SEMIRINGS
from elimina.running.encoding import ListedValues, encode, factor_view, scaled
from elimina.running.planned_problem import PlannedProblem
from elimina.running.propagated_tables import OutputLayout, PropagatedTables, step_table
from elimina.running.scales import Scales, log2_lows, root_outputs, root_places
from elimina.system import cached_property

if TYPE_CHECKING:
    from elimina._core import CasePlanner

Array = NDArray[Any]

_ONE_BY_ONE = 16
"""Largest number of changes for which dependent steps are found one change at a time, from a cache; for more changes,
they are found together."""

WHOLE_SECONDS = 5e-4
"""Estimated seconds up to which propagations always run in full, because finding the changed messages takes 50 us."""

_RESIDENT_SEMIRING = "log-sum-exp"
"""Semiring for weights on a device: it cannot underflow, so the host need not check the weights."""

_LARGE_HOME = 1 << 12
"""Number of cells above which a separate launch multiplies a table by weights; smaller tables share launches."""

_LEAST = math.ulp(0.0)
"""The smallest positive float."""


class Propagator:
    """A plan of the task ``mar``, ``mmap`` or ``joint`` for repeated runs; evidence may change between runs.

    Args:
        planned: A plan with stored messages, and its backend.
        semiring: ``sum-product``; ``log-sum-exp``: slower, but without underflow; ``min-sum``: max-marginals, as
            negated logarithms.
        once: True if no evidence will be observed: the encoded factors are released when the session has its own copy.

    Attributes:
        seconds: Seconds of the last run by phase: see ``RunOutput.seconds``.
    """

    def __init__(self, planned: PlannedProblem, semiring: str = "sum-product", *, once: bool = False) -> None:
        problem, self._plan = planned.problem, planned.plan
        self._ring = SEMIRINGS[semiring]
        self._sign, self._zero = -self._ring.sign, self._ring.zero
        self._encoded = encode(problem, self._plan, semiring, planned.backend.threads)
        self._scales = Scales(self._plan)
        self._ranges = self._encoded.ranges.copy()
        self._variables = problem.model.variables
        self._weights: dict[int, int | Array | LogWeights] = {}
        # Natural logarithm of the divisor of each factor's weights.
        self._taken: dict[int, float] = {}
        program = pack(self._plan, len(problem.model.variables), semiring, self._zero)
        self._session = planned.backend.open(program, self._encoded.arena)
        if once:
            self._encoded = self._encoded._replace(arena=self._encoded.arena[:0].copy())
        self._levels_of: dict[int, Array] = {}
        self._values = self._unobserved = np.full(len(problem.model.variables), -1, dtype=np.int32)
        self._stale = np.ones(len(self._plan.steps), dtype=bool)
        self._roots = root_outputs(self._plan)
        self._root_places = root_places(self._plan)
        self._layouts: dict[tuple[int, ...], OutputLayout] = {}
        self._zone = program.zone[0]
        self._new_planner = functools.partial(case_planner, self._plan, program, problem.model.sizes)
        self.seconds: dict[str, float] = {}

    def close(self) -> None:
        """Release the device's memory."""
        self._session.close()

    @cached_property
    def _slicing(self) -> SlicingSession | None:
        """The session, if it supports observed values and the plan has no cases; otherwise None."""
        return self._session if isinstance(self._session, SlicingSession) and not self._plan.kept else None

    @cached_property
    def _homes(self) -> dict[int, int]:
        """Variable -> number of the factor into which its weights are multiplied."""
        return _smallest_factors(self._plan)

    def observe(self, evidence: Mapping[int, int | Array | LogWeights]) -> None:
        """Replace all evidence or, in a plan with cases, the evidence on the given variables.

        Args:
            evidence: Variable -> index of its state, non-negative weights of its states, or (if tables contain
                logarithms) their logarithms. With cases: variable with a factor over the cases -> index of its state in
                each case, -1 for missing observations.
        """
        if self._plan.kept:
            for v, codes in evidence.items():
                self._load_cases(v, np.asarray(codes))
            # All steps are run again: those that do not depend on the cases take little time anyway.
            self._stale[:] = True
            return
        values, weights = self._unobserved.copy(), {}
        for v, observation in evidence.items():
            if isinstance(observation, int) and self._slicing is not None:
                values[v] = observation
            else:
                weights[v] = observation
        before, self._weights = self._weights, weights
        touched = {self._homes[v] for v in before.keys() | weights if not _is_same(before.get(v), weights.get(v))}
        for number in touched:
            self._load(number)
        if self._plan.seconds <= WHOLE_SECONDS:
            self._stale[:] = True
        elif self._plan.keep:
            touched.update((len(self._plan.factors) + (values != self._values).nonzero()[0]).tolist())
            starts = [self._touched.get(number, ()) for number in touched]
            if len(starts) > _ONE_BY_ONE:
                starts = [tuple(sorted({step for steps in starts for step in steps}))]
            for steps in starts:
                self._stale[self._after.of(steps)] = True
        self._values = values
        if self._slicing is not None:
            self._slicing.fix(values)

    def _load_cases(self, variable: int, codes: NDArray[np.intp]) -> None:
        """Write the observations of a variable to its factor over the cases."""
        factor = self._plan.factors[self._homes[variable]]
        region = np.empty(factor.span, dtype=self._plan.dtype)
        np.take(self._levels(variable), codes, axis=1, out=factor_view(region, factor._replace(offset=0)), mode="wrap")
        self._session.load(factor.offset, region)

    def _levels(self, variable: int) -> Array:
        """Return the possible columns of a factor for a case: one per observed value, and one for a missing value."""
        if variable not in self._levels_of:
            values = factor_view(self._encoded.arena, self._plan.factors[self._homes[variable]])[:, :1]
            levels = np.where(np.eye(len(values), len(values) + 1, dtype=bool), values, self._zero)
            levels[:, -1:] = values
            self._levels_of[variable] = levels.astype(self._plan.dtype)
        return self._levels_of[variable]

    def _load(self, number: int) -> None:
        factor = self._plan.factors[number]
        region = self._encoded.arena[factor.offset : factor.offset + factor.span].copy()
        local_layout = factor._replace(offset=0)
        listed = None if factor.tuples is None else ListedValues(region, local_layout)
        view = factor_view(region, local_layout) if listed is None else listed.values
        least = greatest = 1.0
        log_divisor = 0.0
        for v in factor.scope:
            if v not in self._weights or self._homes[v] != number:
                continue
            observation = self._weights[v]
            if isinstance(observation, LogWeights):
                weights, in_logs = observation.logs, True
            else:
                weights, in_logs = weights_of(self._variables[v], observation), False
            shape = [-1 if u == v else 1 for u in factor.scope]
            shaped = weights.reshape(shape) if listed is None else listed.at(v, weights)
            if self.logarithmic:
                with np.errstate(divide="ignore"):
                    logs = shaped if in_logs else np.log(shaped)
                high = largest if (largest := float(logs.max(initial=-math.inf))) > -math.inf else 0.0
                log_divisor += high
                view += self._sign * (logs - high)
            elif weights.dtype == bool:
                view *= shaped
            else:
                low = float(shaped.min(initial=math.inf, where=shaped > 0))
                shaped, exponent = scaled(shaped) if shaped.size else (shaped, 0)
                log_divisor += math.log(2) * exponent
                least *= min(1.0, math.ldexp(low, -exponent))
                greatest *= float(shaped.max(initial=1.0))
                view *= shaped
        if listed is not None:
            listed.drop(self._zero)
        self._taken[number] = log_divisor
        if len(self._ranges):
            high, low = self._encoded.ranges[number]
            # A product that may have underflowed is replaced by a small positive number, because 0 means impossible.
            self._ranges[number] = high * greatest, max(low * least, _LEAST) if low > 0 else 0.0
        self._session.load(factor.offset, region)

    @cached_property
    def _after(self) -> Reach:
        return Reach([step.readers for step in self._plan.steps])

    @cached_property
    def _before(self) -> Reach:
        return Reach([[o.source for o in step.operands if o.source >= 0] for step in self._plan.steps])

    @cached_property
    def _touched(self) -> dict[int, tuple[int, ...]]:
        """The steps that read each factor or contain each variable; variables are numbered after the factors."""
        factors = len(self._plan.factors)
        readers: dict[int, list[int]] = {}
        for number, step in enumerate(self._plan.steps):
            variable_keys = [factors + v for v in (*step.axes, step.variable) if v >= 0]
            for key in (*variable_keys, *(o.factor for o in step.operands if o.source < 0)):
                readers.setdefault(key, []).append(number)
        return {key: tuple(steps) for key, steps in readers.items()}

    def run(
        self, outputs: Sequence[int], *, log_sum: bool = True, progress: Progress | None = None
    ) -> PropagatedTables:
        """Compute outputs of the plan and, with ``log_sum``, the sum.

        If messages are stored, a step only runs if its message is outdated and needed for the outputs or the sum.
        """
        count_path("upward-and-downward")
        steps = self._stale.nonzero()[0]
        if self._plan.keep:
            asked = {*outputs, *self._roots} if log_sum else set(outputs)
            if len(asked) < len(self._plan.outputs):
                needed = np.zeros(len(self._plan.steps), dtype=bool)
                needed[self._before.of(tuple(sorted({self._plan.outputs[output].step for output in asked})))] = True
                steps = np.flatnonzero(needed & self._stale)
        run = self._session.run(None if len(steps) == len(self._stale) else steps, progress)
        self.seconds = run.seconds
        # If messages are not stored, the run has reused their memory, so its steps stay outdated.
        self._stale[steps] = not self._plan.keep
        zone = run.zone if self._sign == 1 else np.negative(run.zone)
        total = self._sum_of(zone, run.peaks) if log_sum else None
        possible = not log_sum or self._is_possible(zone)
        answer = PropagatedTables(zone, self._layout_of(tuple(outputs)), possible, total, self.logarithmic, True)
        is_sound = self.logarithmic or self._is_sound(outputs, answer, run.peaks)
        return answer if is_sound else answer._replace(sound=False)

    def run_cases(
        self, variables: Sequence[int], values: NDArray[np.int32], *, own_plans: bool = False
    ) -> tuple[PropagatedTables, NDArray[np.bool_]]:
        """Compute all outputs for each row of observations; earlier observations are dropped.

        Args:
            variables: Variables of the columns.
            values: int32 array of shape ``(cases, columns)``: value indices, -1 for missing observations.
            own_plans: True to make a plan for each case (``sum-product``); a case whose plan does not fit is not sound.

        Returns:
            The tables, with the cases along the first axis of their zone, and a mask of the sound cases: see
            ``PropagatedTables.sound``.
        """
        assert self._slicing is not None
        columns = np.array(variables, dtype=np.int32)
        outputs = tuple(Outputs.packed(self._plan.outputs).marginals.tolist())
        self._stale[:] = True
        count_path("batch-plans" if own_plans else "batch-cases")
        if own_plans:
            zone, logs, sound = self._slicing.run_planned(self._planner, columns, values)
            log_sum = logs + (-math.inf if self._encoded.impossible else math.log(2) * self._encoded.offset)
            return PropagatedTables(
                zone, self._layout_of(outputs), True, lambda: log_sum, False, True
            ), sound & self._encoded.exact
        zone, peaks = self._slicing.run_cases(columns, values)
        self._values = self._unobserved.copy()
        self._values[columns] = values[-1]
        answer = PropagatedTables(
            zone, self._layout_of(outputs), True, self._sum_of(zone, peaks), self.logarithmic, True
        )
        sound = np.ones(len(values), dtype=bool)
        if not self.logarithmic and (not self._encoded.exact or self._scales.may_underflow(self._ranges, peaks)):
            for case, run in enumerate(zip(zone, peaks, strict=True)):
                sound[case] = self._is_sound(outputs, answer._replace(zone=run[0]), run[1])
        return answer, sound

    @cached_property
    def _planner(self) -> CasePlanner:
        return self._new_planner(log2_lows(self._encoded.ranges[:, 1]))

    def _is_sound(self, outputs: Sequence[int], answer: PropagatedTables, peaks: NDArray[np.float64]) -> bool:
        """Return whether the factors are exact, and products that may have underflowed to 0 are negligible."""
        if not self._encoded.exact:
            return False
        if not self._scales.may_underflow(self._ranges, peaks):
            return True
        errors = self._scales.errors(self._ranges, peaks)
        enough = math.log2(np.finfo(self._plan.dtype).eps)
        asked = [*outputs, *self._roots]
        for output, table in zip(asked, self._layout_of(tuple(asked)).tables(answer.zone), strict=True):
            number, scope = self._plan.outputs[output]
            totals = table.sum(axis=tuple(a for a, v in enumerate(scope) if v not in self._plan.kept))
            least = float(totals.min())
            if least <= 0 or errors[number] - math.log2(least) > enough:
                return False
        return True

    def _layout_of(self, outputs: tuple[int, ...]) -> OutputLayout:
        if outputs not in self._layouts:
            steps_of_plan = Steps.packed(self._plan.steps), self._plan.outputs
            self._layouts[outputs] = OutputLayout(*steps_of_plan, outputs, self._zone)
        return self._layouts[outputs]

    def _is_possible(self, zone: Array) -> bool:
        """Return False if a factor or a root of a run shows that the sum is 0.

        With cases, roots are not checked here, because the sum of each case is checked later.
        """
        if self._encoded.impossible:
            return False
        roots = zone.take(self._root_places)
        return bool((roots > -math.inf).all() if self.logarithmic else np.count_nonzero(roots) == len(roots))

    def _sum_of(self, zone: Array, peaks: NDArray[np.float64]) -> Callable[[], NDArray[np.float64]]:
        """Return a function that computes the logarithm of the runs' sums with the current weights."""
        return functools.partial(self._log_sum, zone, peaks, math.fsum(self._taken.values()))

    def _log_sum(self, zone: Array, peaks: NDArray[np.float64], log_divisor: float) -> NDArray[np.float64]:
        if self._encoded.impossible:
            return np.asarray(-np.inf)
        if self._plan.kept:
            roots = [table[..., None] for table in self._layout_of(self._roots).tables(zone)]
        else:
            roots = [zone[..., self._root_places]]
        with np.errstate(divide="ignore"):
            logs = [(root if self.logarithmic else np.log(root)).sum(axis=-1) for root in roots]
        total = sum(logs, start=np.float64(0.0)) + log_divisor
        if self.logarithmic:
            return np.asarray(total + self._encoded.offset)
        exponents = self._encoded.offset + self._scales.root_exponents(peaks)
        return np.asarray(total + math.log(2) * exponents)

    def factor_table(self, number: int) -> tuple[tuple[int, ...], Array]:
        """Return the scope and the values of a factor with the current evidence, up to a constant."""
        factor = self._plan.factors[number]
        if isinstance(self._session, KeepingSession):
            return factor.scope, self._session.factor_table(number)
        region = self._session.fetch(factor.offset, factor.span)
        table = self._nothing(factor.sizes)
        cells = self._observed_cells(factor.scope)
        table[cells] = factor_view(region, factor._replace(offset=0))[cells]
        return factor.scope, table

    @property
    def constant(self) -> float:
        """Total constant of logarithmic tables; minus infinity if no assignment is possible."""
        return -math.inf if self._encoded.impossible else self._encoded.offset + math.fsum(self._taken.values())

    @property
    def logarithmic(self) -> bool:
        """True if tables contain natural logarithms."""
        return self._ring.is_logarithmic

    def message(self, number: int) -> tuple[tuple[int, ...], Array]:
        """Return the scope and the values of a step's output in the last run, up to a constant."""
        step = self._plan.steps[number]
        if isinstance(self._session, KeepingSession):
            return step.axes, self._session.message_table(number)
        cells = self._session.fetch(step.out_offset, step.out_span)
        observed = self._observed_cells(step.axes)
        if all(isinstance(index, slice) for index in observed):
            return step.axes, np.array(step_table(step, cells, step.axes))
        table = self._nothing(step.sizes)
        region = table[observed]
        table[observed] = cells[: region.size].reshape(region.shape)
        return step.axes, table

    def _observed_cells(self, scope: Sequence[int]) -> tuple[int | slice, ...]:
        """Return the indices of the cells that are consistent with the observed values."""
        return tuple(int(self._values[v]) if self._values[v] >= 0 else slice(None) for v in scope)

    def _nothing(self, sizes: Sequence[int]) -> Array:
        return np.full(sizes, self._zero, dtype=self._plan.dtype)


class Resident:
    """Posteriors of variables from arrays of logarithmic weights on a plan's device.

    Args:
        planned: A plan of the task ``mar`` with dense tables, and its backend.
        variables: The variables with weights, each of them in a factor; repeated variables have their weights
            multiplied.

    Raises:
        DeviceError: The device failed or is out of memory.
        InternalError: The plan's tables are not stored contiguously on one device.
    """

    def __init__(self, planned: PlannedProblem, variables: Sequence[int]) -> None:
        plan, model = planned.plan, planned.problem.model
        encoded = encode(planned.problem, plan, _RESIDENT_SEMIRING)
        program = pack(plan, len(model.variables), _RESIDENT_SEMIRING, -math.inf)
        session = planned.backend.open(program, encoded.arena)
        if not isinstance(session, GatheringSession):
            session.close()
            raise InternalError(f"tables of a plan for {planned.backend.name} do not lie in one piece")
        self._session, self._offset = session, float("-inf") if encoded.impossible else encoded.offset
        self._roots = root_places(plan)
        # Variables with one state come last, because the plan does not contain them.
        sizes = {v: model.variables[v].size for v in sorted(set(variables), key=lambda v: model.variables[v].size == 1)}
        variables_with_states = [v for v, size in sizes.items() if size > 1]
        ends = list(itertools.accumulate(sizes.values(), initial=0))
        starts = dict(zip(sizes, ends, strict=False))
        outputs = {output.scope[0]: number for number, output in enumerate(plan.outputs) if output.scope}
        layout = OutputLayout(
            Steps.packed(plan.steps), plan.outputs, [outputs[v] for v in variables_with_states], program.zone[0]
        )
        homes: dict[int, list[int]] = {}
        for v, number in _smallest_factors(plan).items():
            if v in starts:
                homes.setdefault(number, []).append(v)
        targets = [np.zeros(0, dtype=np.int64)]
        sources = [np.zeros(0, dtype=np.int64)]
        self._large: list[tuple[FactorLayout, int, slice]] = []
        for number, hosted in homes.items():
            factor = plan.factors[number]
            for v in hosted:
                axis = factor.scope.index(v)
                if factor.cells > _LARGE_HOME:
                    self._large.append((factor, axis, slice(starts[v], starts[v] + sizes[v])))
                    continue
                cells = factor_view(np.arange(factor.span), factor._replace(offset=0))
                targets.append(factor.offset + cells.ravel())
                sources.append(starts[v] + np.indices(factor.sizes)[axis].ravel())
        host = {
            "weight": np.concatenate([starts[v] + np.arange(sizes[v]) for v in variables]),
            "factors": encoded.arena,
            "target": np.concatenate(targets),
            "source": np.concatenate(sources),
            "output": layout.vectors[0] + program.zone[0],
            "owner": layout.vectors[2],
        }
        self._counts = ends[-1], len(sizes) - len(variables_with_states)
        with session.arena_in_place() as (package, _):
            self._arrays = {name: package.asarray(array) for name, array in host.items()}

    def __call__(self, logs: Any) -> tuple[float, Any]:
        """Return the natural logarithm of the sum, and the probabilities of the states of all variables.

        Args:
            logs: Natural logarithms of the weights, one variable after another, in an array on the device of any
                package that supports DLPack.

        Returns:
            The logarithm; and the probabilities in the order of ``logs``, as a float64 array of NumPy or CuPy on the
            device. They are NaN if the sum is 0.

        Raises:
            DeviceError: The device failed.
            InputError: A weight is NaN or plus infinity.
        """
        cells, single = self._counts
        at = self._arrays
        with self._session.arena_in_place() as (package, arena):
            log_weights = package.from_dlpack(logs).astype(np.float64)
            if not bool((log_weights < np.inf).all()):
                raise InputError("a table holds NaN or plus infinity; logarithms are finite, or minus infinity")
            weights = package.zeros(cells)
            package.add.at(weights, at["weight"], log_weights)
            arena[: len(at["factors"])] = at["factors"]
            package.add.at(arena, at["target"], weights[at["source"]])
            for factor, axis, states in self._large:
                strides = [stride * arena.itemsize for stride in factor.strides]
                view = package.lib.stride_tricks.as_strided(arena[factor.offset :], factor.sizes, strides)
                view += weights[states].reshape([-1 if number == axis else 1 for number in range(len(factor.sizes))])
            constant = float(weights[cells - single :].sum()) if single else 0.0
        zone: NDArray[Any] = self._session.run().zone
        with self._session.arena_in_place() as (package, arena), np.errstate(invalid="ignore"):
            read, owner = arena[at["output"]], at["owner"]
            highs = package.full(cells, -np.inf)
            package.maximum.at(highs, owner, read)
            shares = package.ones(cells)
            shares_of_outputs = shares[: cells - single]
            shares_of_outputs[...] = package.exp(read - highs[owner])
            totals = package.zeros(cells)
            package.add.at(totals, owner, shares_of_outputs)
            shares_of_outputs /= totals[owner]
            shares = shares[at["weight"]]
        return self._offset + constant + float(zone[self._roots].sum()), shares

    def close(self) -> None:
        """Release the device's memory."""
        self._session.close()


def _smallest_factors(plan: Plan) -> dict[int, int]:
    """Return the number of each variable's smallest factor, preferably one with all kept variables."""
    smallest: dict[int, tuple[bool, int, int]] = {}
    for number, factor in enumerate(plan.factors):
        key = not set(plan.kept).issubset(factor.scope), factor.cells, number
        for v in factor.scope:
            smallest[v] = min(smallest.get(v, key), key)
    return {v: number for v, (_, _, number) in smallest.items()}


def _is_same(first: int | Array | LogWeights | None, second: int | Array | LogWeights | None) -> bool:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.array_equal(first, second)
    return type(first) is type(second) and first == second
