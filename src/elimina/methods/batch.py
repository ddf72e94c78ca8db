"""Posteriors for many cases, computed together or one after another.

If cases run together, the number of the case is the fastest axis of their common tables. A separate run for each case
is faster if its evidence removes most of the network.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from elimina._core import normalise_columns
from elimina.backends.cpu import CpuBackend
from elimina.backends.device_group import devices_of
from elimina.backends.gpu_start import outlasts_gpu_start
from elimina.backends.protocols import Backend
from elimina.backends.registry import find_cuda, with_other_gpus
from elimina.io.cases import Codes
from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import (
    CASE_COLUMN_SECONDS,
    CASE_COMBINATIONS,
    CASE_SECONDS,
    CASE_STEP_SECONDS,
    KEPT_TREE_RUNS,
    OWN_ORDER_SHARE,
    OWN_PLAN_SECONDS,
    OWN_STEP_SECONDS,
    cuda_machine,
)
from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.planning.plan import Plan
from elimina.planning.program import case_planner, pack
from elimina.problem.cases import prepare_batch
from elimina.problem.preparation import Problem, with_units
from elimina.running.advice import check_kept
from elimina.running.host import backend_of
from elimina.running.plan_choice import plan_on
from elimina.running.planned_problem import PlannedProblem
from elimina.running.pool import spread
from elimina.running.propagated_tables import Posteriors, PropagatedTables, normalised
from elimina.running.propagator import Propagator
from elimina.system import cached_property

if TYPE_CHECKING:
    from elimina._core import CasePlanner

Floats = NDArray[np.float64]

_SAMPLED_CASES = 64
"""Number of sampled cases from which the time of all cases is estimated."""


class CaseByCase:
    """A method that answers cases one by one with a shared plan, without the axes of observed variables in its steps.

    Args:
        planned: A plan for a single case, on the CPU.
        columns: The variables that the cases may observe.
    """

    def __init__(self, planned: PlannedProblem, columns: tuple[int, ...]) -> None:
        self.planned, self.columns = planned, columns
        self._asked = [output.scope[0] for output in planned.plan.outputs if output.scope]

    def least_seconds(self, values: Codes) -> float:
        """Return a lower bound, computed quickly, on the seconds of a case on one thread."""
        return CASE_STEP_SECONDS * len(self.planned.plan.steps)

    def seconds(self, values: Codes) -> float:
        """Return the estimated seconds of a case on one thread."""
        sample = _sample(values)
        free = np.ones((len(sample), len(self.planned.problem.model.variables)))
        free[:, list(self.columns)] = sample < 0
        logs, factors = _step_costs(self.planned.plan, free.shape[1])
        work = np.exp(free @ logs.T) @ factors
        return float(work.mean() / CASE_COMBINATIONS) + self.least_seconds(values)

    def sequence(self, values: Codes) -> NDArray[np.intp]:
        """Return the order in which the cases should run."""
        return np.arange(len(values))

    def run(self, propagators: dict[str, Propagator], values: Codes) -> tuple[dict[int, Floats], Floats]:
        """Answer cases with a thread's own propagators, which are created on first use.

        Returns:
            Variable -> posteriors, shape ``(cases, size)``, and the natural logarithms of the evidence's probabilities.
        """
        answer, sound = self._answer(propagators, values)
        tables, sums = answer.vectors(), np.broadcast_to(answer.log_sum, len(values)).copy()
        if not sound.all():
            log_tables, log_sums = self._unsound(propagators, values[~sound])
            sums[~sound] = log_sums
            for v, table in zip(self._asked, tables, strict=True):
                table[~sound] = log_tables[v]
        return dict(zip(self._asked, tables, strict=True)), sums

    def _answer(self, propagators: dict[str, Propagator], values: Codes) -> tuple[PropagatedTables, NDArray[np.bool_]]:
        return self._propagator(propagators, "sum-product").run_cases(self.columns, values)

    def _unsound(self, propagators: dict[str, Propagator], values: Codes) -> tuple[dict[int, Floats], Floats]:
        """Compute marginals and log sums of cases again in logarithms, because products left the dtype's range."""
        answer, _ = self._propagator(propagators, "log-sum-exp").run_cases(self.columns, values)
        return dict(zip(self._asked, answer.vectors(), strict=True)), np.broadcast_to(answer.log_sum, len(values))

    def _propagator(self, propagators: dict[str, Propagator], semiring: str) -> Propagator:
        name = f"case by case, {semiring}"
        if name not in propagators:
            propagators[name] = Propagator(self.planned, semiring)
        return propagators[name]


class PlannedCases(CaseByCase):
    """A method that answers cases one by one, each by its own plan, or by a shared plan if its own is too large."""

    def least_seconds(self, values: Codes) -> float:
        """Return a quick lower bound on the seconds of a case on one thread: two steps per unobserved variable."""
        return 2 * OWN_STEP_SECONDS * (len(self.planned.plan.order) - float((values >= 0).sum(axis=1).mean()))

    def seconds(self, values: Codes) -> float:
        """Return the estimated seconds of a case on one thread."""
        codes = np.full(len(self.planned.problem.model.variables), -1, dtype=np.int32)
        plans_of_cases = []
        for row in _sample(values):
            codes[list(self.columns)] = row
            plans_of_cases.append(self._planner.measure(codes))
        fitting = [plan for plan in plans_of_cases if plan is not None]
        if len(fitting) < len(plans_of_cases):
            return self._help.seconds(values)
        work = np.mean([plan.combinations for plan in fitting])
        steps = np.mean([plan.steps for plan in fitting])
        plans = (_patterns(values).max() + 1) / len(values)
        run = work / CASE_COMBINATIONS * (1 + OWN_ORDER_SHARE * plans)
        return float(run + (OWN_STEP_SECONDS + OWN_PLAN_SECONDS * plans) * steps + CASE_SECONDS)

    def sequence(self, values: Codes) -> NDArray[np.intp]:
        """Return the cases grouped by their observed variables; each group shares a plan."""
        return np.argsort(_patterns(values), kind="stable")

    def _answer(self, propagators: dict[str, Propagator], values: Codes) -> tuple[PropagatedTables, NDArray[np.bool_]]:
        return self._propagator(propagators, "sum-product").run_cases(self.columns, values, own_plans=True)

    def _unsound(self, propagators: dict[str, Propagator], values: Codes) -> tuple[dict[int, Floats], Floats]:
        return self._help.run(propagators, values)

    @property
    def _help(self) -> CaseByCase:
        return CaseByCase(self.planned, self.columns)

    @cached_property
    def _planner(self) -> CasePlanner:
        plan, model = self.planned.plan, self.planned.problem.model
        return case_planner(plan, pack(plan, len(model.variables)), model.sizes, np.zeros(len(plan.factors)))


def _sample(values: Codes) -> Codes:
    return values[:: max(1, len(values) // _SAMPLED_CASES)]


def _patterns(values: Codes) -> NDArray[np.intp]:
    """Return a number for each case, equal for cases that observe the same columns."""
    if not values.shape[1]:
        return np.zeros(len(values), dtype=np.intp)
    numbers: NDArray[np.intp] = np.unique(np.packbits(values >= 0, axis=1), axis=0, return_inverse=True)[1]
    return numbers.reshape(-1)


def _step_costs(plan: Plan, variables: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logarithms of the sizes of each step's variables, and each step's cost per combination of values."""
    logs = np.zeros((len(plan.steps), variables))
    for row, step in zip(logs, plan.steps, strict=True):
        _set_logs(row, (*step.axes, step.variable), (*step.sizes, step.domain))
    streamed = [len(step.operands) - step.tables_a - step.tables_b for step in plan.steps]
    return logs, 1 + 0.5 * np.array(streamed)


def _set_logs(row: NDArray[np.float64], variables: Sequence[int], sizes: Sequence[int]) -> None:
    for v, size in zip(variables, sizes, strict=True):
        if v >= 0:
            row[v] = np.log(size)


_MAX_CASES = 8192
_CASE_MULTIPLE = 16
"""The number of cases in a chunk is a multiple of this number, to fill whole vectors. Chunks of up to 8 cases are
exempt."""

_CACHE_BYTES = 4 << 20
"""Largest number of bytes of a chunk's tables, which then stay in a core's cache."""

_CASES_PER_ITEM = 64
"""Number of cases that a thread runs before it writes their posteriors."""

_CASE_ARENA_FACTOR = 2
"""Size of the arena for plans of single cases, relative to that of the shared plan."""

Chunk = tuple[PropagatedTables, slice]
"""Answer for a chunk of cases, and the rows of these cases."""

Received = TypeVar("Received")


class ObservedCases(NamedTuple):
    """Observations of cases, checked against the evidence that all cases share.

    Attributes:
        columns: The variables that the cases may observe.
        values: int32 array of shape ``(cases, columns)``: value indices, -1 for missing observations.
        contradicted: True for each case in which an observation contradicts the evidence.
    """

    columns: tuple[int, ...]
    values: Codes
    contradicted: NDArray[np.bool_]


def with_observations(columns: Sequence[int], values: Codes, evidence: Mapping[int, int]) -> ObservedCases:
    """Add observations to all cases.

    Args:
        columns: Variables of the cases.
        values: Value indices of the cases, -1 for missing observations.
        evidence: Variable -> index of its state, observed in all cases.
    """
    every = (*columns, *(v for v in evidence if v not in columns))
    added = np.full((len(values), len(every) - len(columns)), -1, dtype=np.int32)
    combined = np.hstack((values, added)) if evidence else values
    contradicted = np.zeros(len(values), dtype=bool)
    for column, v in enumerate(every):
        if v in evidence:
            codes = combined[:, column]
            contradicted |= (codes >= 0) & (codes != evidence[v])
            codes[:] = evidence[v]
    return ObservedCases(every, combined, contradicted)


class Batch:
    """A plan for cases that observe a fixed set of variables; ``run`` answers the cases.

    On the CPU, a thread computes either a chunk of cases together, small enough for its cache, or one case after
    another. Single cases share a plan or have their own plans. The method with the least estimated time is used. On a
    GPU, a chunk is as large as memory allows, up to 8192 cases, and several GPUs process chunks in turn.

    Args:
        model: A probability model.
        columns: The variables that the cases may observe.
        asked: The queried variables; None: all.
        options: Planning options.
        count: Expected number of cases, which determines the choice of the device and of a chunk's size.
        families: Scopes of additional joint marginals, each within the scope of a factor.
        maximised: True for max-marginals: all tables are logarithms, and the best product replaces the sum.

    Raises:
        InputError: The model has costs, or an option is invalid.
        MemoryLimitError: Not even a few cases fit.
        DeviceError: The device is missing or cannot be used.
    """

    is_exact = True
    """True: posteriors are exact, without estimated errors."""

    def __init__(
        self,
        model: Model,
        columns: Sequence[int],
        asked: Sequence[int] | None,
        options: CheckedOptions,
        count: int,
        families: Sequence[tuple[int, ...]] = (),
        *,
        maximised: bool = False,
    ) -> None:
        self.model, self.columns, self.families = model, tuple(columns), tuple(families)
        # All cases of a message share one scaling exponent, so cases that are far less probable than others may
        # underflow. If this happens, the chunk runs again in logarithms.
        self._semirings = ("min-sum",) if maximised else ("sum-product", "log-sum-exp")
        self._asked = tuple(range(len(model.variables)) if asked is None else asked)
        self._query = None if asked is None else self._asked
        # Variables with one state are in no table, so joint marginals are computed without them.
        self._families = [tuple(v for v in family if model.variables[v].size > 1) for family in families]
        self._options = replace(options, threads=1)
        # The posteriors of all variables are stored in one array, in which each variable has a slice of rows.
        ends = itertools.accumulate(model.variables[v].size for v in self._asked)
        self._state_slices = {
            v: slice(end - model.variables[v].size, end) for v, end in zip(self._asked, ends, strict=True)
        }
        probe = self._prepare(_CASE_MULTIPLE)
        self._order = elimination_order(probe, options, runs=KEPT_TREE_RUNS)
        self._plan_chunks(probe, count, CpuBackend(options.threads).threads)
        self._ways = self._other_ways()
        # Propagators by semiring or plan, separate for each thread or GPU.
        self._propagators: list[dict[str, Propagator]] = [{} for _ in range(self.threads)]

    def _other_ways(self) -> list[CaseByCase]:
        """Return the methods for single cases on the CPU; none if the threads' tables do not fit."""
        backend = self.planned.backend
        if not isinstance(backend, CpuBackend) or self._families:
            return []
        single = self._plan_on(backend, self._prepare(1))
        memory = backend.memory() if self._options.memory is None else self._options.memory
        memory //= 2 * self.threads
        if not single.plan.keep or single.plan.peak_bytes > memory:
            return []
        # Plans for single cases are made quickly and place tables less tightly, so they need a larger arena.
        roomy = _with_arena(single.plan, _CASE_ARENA_FACTOR * single.plan.arena_cells)
        if roomy.peak_bytes > memory:
            return [CaseByCase(single, self.columns)]
        single = single._replace(plan=roomy)
        return [CaseByCase(single, self.columns), PlannedCases(single, self.columns)]

    def _prepare(self, cases: int) -> Problem:
        # The joint marginal of a single variable is its marginal, so the variable becomes part of the query.
        singles = [v for family in self._families if len(family) == 1 for v in family]
        query = None if self._query is None else (*self._query, *singles)
        joint = dict.fromkeys(family for family in self._families if len(family) > 1)
        return prepare_batch(with_units(self.model), self.columns, query, cases, tuple(joint))

    def _plan_on(self, backend: Backend, problem: Problem) -> PlannedProblem:
        return PlannedProblem(problem, plan_on(backend, problem, self._order, self._options), backend, {})

    def _plan_chunks(self, probe: Problem, count: int, threads: int) -> None:
        backend = backend_of(self._options)
        first = self._plan_on(backend, probe)
        expected = first.plan.seconds / _CASE_MULTIPLE * count / threads
        if self._options.chooses_device and outlasts_gpu_start(expected):
            cuda = find_cuda(self._options.threads)
            if cuda is not None:
                backend, first = cuda, self._plan_on(cuda, probe)
                cells = cuda.machine.cell_seconds(first.plan.seconds, len(first.plan.steps))
                if cells / _CASE_MULTIPLE * count > 2 * cuda_machine().start:
                    backend = with_other_gpus(cuda, cuda.memory() // 2)
        memory = backend.memory() if self._options.memory is None else self._options.memory
        # A chunk may run again in another semiring with separate tables, so half of the memory is reserved.
        memory //= 2
        is_cpu = isinstance(backend, CpuBackend)
        lanes = threads if is_cpu else len(devices_of(backend))
        best, share = _MAX_CASES, -(-count // lanes)
        if is_cpu:
            best = max(_CACHE_BYTES // max(1, _case_bytes(first.plan)), self._amortised_cases(first.plan))
        max_cases = max(2, (memory - _static_bytes(first.plan)) // max(1, _case_bytes(first.plan)))
        # Chunks have equal sizes: a smaller last chunk would be padded to full size anyway.
        chunks = max(1, -(-share // min(max(best, _CASE_MULTIPLE), _MAX_CASES, max_cases)))
        while True:
            cases = _rounded(-(-share // chunks))
            self.planned = first if cases == _CASE_MULTIPLE else self._plan_on(backend, self._prepare(cases))
            if self.planned.plan.peak_bytes <= memory or cases <= 2:
                break
            chunks += -(-chunks // 8)
        check_kept(self.planned.plan, self._options)
        self.cases = cases
        numbers = {output.scope[:-1]: n for n, output in enumerate(self.planned.plan.outputs) if len(output.scope) > 1}
        self._outputs = {
            n: scope[0] for scope, n in numbers.items() if len(scope) == 1 and scope[0] in self._state_slices
        }
        family_numbers = (numbers[family] for family in self._families if family)
        self._output_numbers = (*self._outputs, *family_numbers)
        self._enough = count if share < min(best, max_cases) else sys.maxsize
        self.threads = max(1, min(lanes, memory // max(1, self.planned.plan.peak_bytes))) if is_cpu else lanes

    @property
    def peak_bytes(self) -> int:
        """Largest number of bytes of the tables of all threads, in up to two semirings."""
        return 2 * self.threads * max(p.plan.peak_bytes for p in (self.planned, *(way.planned for way in self._ways)))

    def _amortised_cases(self, plan: Plan) -> int:
        """Return the number of cases that take as long as the overhead of a chunk."""
        around = CASE_COLUMN_SECONDS * (len(self.columns) + len(plan.outputs)) + 1e-6 * len(plan.steps)
        return int(around / max(1e-9, (plan.seconds - 1e-6 * len(plan.steps)) / _CASE_MULTIPLE))

    def suits(
        self, columns: Sequence[int], asked: Sequence[int] | None, count: int, families: Sequence[tuple[int, ...]] = ()
    ) -> bool:
        """Return whether this batch has these columns and queries, and chunks large enough for this number of cases."""
        question = tuple(columns), asked, tuple(families)
        return question == (self.columns, self._query, self.families) and count <= self._enough

    def use_tables(self, model: Model) -> None:
        """Use other tables with the same scopes, and keep the plan."""
        self.model = model
        self.planned = self.planned._replace(problem=self._prepare(self.cases))
        self._ways = self._other_ways()
        self.close()

    def run(self, values: Codes, progress: Callable[[float], None] | None = None) -> Posteriors:
        """Answer cases; the posteriors of impossible cases are 0.

        Args:
            values: int32 array of shape ``(cases, columns)``: value indices, -1 for missing observations.
            progress: Called repeatedly with the finished share of the cases.
        """
        count = len(values)
        # Only the rows of variables with one state are written here. The system allocates memory at the first write, so
        # the other rows are left to the threads, which write them in parallel.
        shares = np.empty((sum(self.model.variables[v].size for v in self._asked), count))
        marginals = {v: shares[states].T for v, states in self._state_slices.items()}
        for table in marginals.values():
            if table.shape[1] == 1:
                table[:] = 1.0
        log_sums = np.empty(count)
        joints = [np.zeros((*self._shape(family), count)) for family in self.families]
        way = self._choose(values)
        if way is None:
            steps = self.propagate(values, functools.partial(self._write, shares, joints, log_sums))
            chunks = -(-count // self.cases)
        else:
            sequence = way.sequence(values)
            size = min(_CASES_PER_ITEM, -(-count // self.threads))
            rows = [sequence[at : at + size] for at in range(0, count, size)]
            steps = spread(range(self.threads), rows, functools.partial(self._singly, way, values, shares, log_sums))
            chunks = len(rows)
        for finished_chunks, _ in enumerate(steps, 1):
            if progress is not None:
                progress(finished_chunks / chunks)
        impossible = log_sums == -np.inf
        if impossible.any():
            for table in marginals.values():
                table[impossible] = 0.0
            for joint in joints:
                joint[..., impossible] = 0.0
        named = {self.model.variables[v].name: table for v, table in marginals.items()}
        variables = tuple(self.model.variables[v] for v in marginals)
        tables = {
            tuple(self.model.variables[v].name for v in family): np.moveaxis(joint, -1, 0)
            for family, joint in zip(self.families, joints, strict=True)
        }
        return Posteriors(named, log_sums / math.log(10), variables, joints=tables or None)

    def propagate(self, values: Codes, receive: Callable[[Chunk], Received]) -> Generator[Received]:
        """Propagate cases in chunks.

        Args:
            values: int32 array of shape ``(cases, columns)``: value indices, -1 for missing observations.
            receive: Function that is called with the answer for each chunk, in the chunk's thread.

        Yields:
            The results of ``receive``, in the sequence of the cases.
        """
        rows = [slice(at, min(at + self.cases, len(values))) for at in range(0, len(values), self.cases)]
        yield from cast(
            "Generator[Received]",
            spread(range(self.threads), rows, functools.partial(self._chunks, values, receive)),
        )

    def joint_tables(self, chunk: Chunk) -> Iterator[Floats]:
        """Yield the joint posteriors of each family for the cases of a chunk.

        Their shape is ``(cells, cases)``, or ``(cells, 1)`` if they do not depend on the case.
        """
        for table in self.family_tables(chunk):
            yield normalised(table.reshape(-1, table.shape[-1]), chunk[0].logarithmic)

    def family_tables(self, chunk: Chunk) -> Iterator[Floats]:
        """Yield tables proportional to the joint posteriors of each family, or the logarithms of such tables.

        The axes are the family's variables, then the cases; the last axis has length 1 if the table does not depend on
        the case.
        """
        answer, rows = chunk
        tables = iter(answer.tables[len(self._outputs) :])
        for family, wide in zip(self.families, self._families, strict=True):
            table = next(tables)[..., : rows.stop - rows.start] if wide else np.ones(1)
            yield table.reshape(*self._shape(family), table.shape[-1])

    def _shape(self, family: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.model.variables[v].size for v in family)

    def _choose(self, values: Codes) -> CaseByCase | None:
        """Return the method for single cases if it is faster than chunks; otherwise None."""
        best, method = self.planned.plan.seconds / self.cases, None
        for way in self._ways if len(values) else ():
            if way.least_seconds(values) < best and (seconds := way.seconds(values)) < best:
                best, method = seconds, way
        return method

    def close(self) -> None:
        """Release the memory; the next run allocates it again."""
        for propagators in self._propagators:
            while propagators:
                propagators.popitem()[1].close()

    @contextlib.contextmanager
    def _lane(self, lane: int) -> Iterator[dict[str, Propagator]]:
        """Yield the propagators of a thread or GPU by semiring or plan; close all of them after an exception."""
        propagators = self._propagators[lane]
        try:
            yield propagators
        except BaseException:
            # After an interrupt, the tables of a propagator are in an undefined state.
            while propagators:
                propagators.popitem()[1].close()
            raise

    def _chunks(
        self, values: Codes, receive: Callable[[Chunk], Received], lane: int, rows: Iterator[slice]
    ) -> Iterator[Received]:
        """Propagate chunks in a thread; yield the result of ``receive`` for each chunk."""
        devices = devices_of(self.planned.backend)
        planned = self.planned._replace(backend=devices[lane % len(devices)])
        with self._lane(lane) as propagators:
            for chunk in rows:
                yield receive((self._propagate(planned, propagators, values[chunk]), chunk))

    def _singly(
        self,
        way: CaseByCase,
        values: Codes,
        shares: Floats,
        log_sums: Floats,
        lane: int,
        rows: Iterator[NDArray[np.intp]],
    ) -> Iterator[None]:
        """Answer groups of cases in a thread, and write the answers to their rows; yield None after each group."""
        with self._lane(lane) as propagators:
            for cases_of_turn in rows:
                tables, log_sums[cases_of_turn] = way.run(propagators, values[cases_of_turn])
                for v in self._state_slices.keys() & tables.keys():
                    shares[self._state_slices[v], cases_of_turn] = tables[v].T
                yield

    def _write(self, shares: Floats, joints: Sequence[Floats], log_sums: Floats, chunk: Chunk) -> None:
        """Write the answer for a chunk to its rows."""
        answer, rows = chunk
        count = rows.stop - rows.start
        slices = [self._state_slices[v] for v in self._outputs.values()]
        is_normalised = np.zeros(len(slices), dtype=bool)
        if slices and answer.zone.dtype == np.float64 and not answer.logarithmic:
            columns = answer.layout.columns(answer.zone)[: len(slices)]
            outputs = np.column_stack((columns, [states.start for states in slices]))
            is_normalised = normalise_columns(answer.zone, outputs, shares[:, rows])
        if not is_normalised.all():
            for is_done, table, states in zip(is_normalised, answer.tables[: len(slices)], slices, strict=True):
                if not is_done:
                    normalised(table[:, :count], answer.logarithmic, out=shares[states, rows])
        for joint, table in zip(joints, self.joint_tables(chunk), strict=True):
            joint.reshape(-1, joint.shape[-1])[:, rows] = table
        log_sums[rows] = np.broadcast_to(answer.log_sum, self.cases)[:count]

    def _propagate(
        self, planned: PlannedProblem, propagators: dict[str, Propagator], values: Codes
    ) -> PropagatedTables:
        """Propagate a chunk with a thread's own propagators, which are created on first use."""
        wide = [self.model.variables[v].size > 1 for v in self.columns]
        codes = np.full((sum(wide), self.cases), -1, dtype=np.intp)
        codes[:, : len(values)] = values.T[wide]
        columns = [v for v, has_values in zip(self.columns, wide, strict=True) if has_values]
        observed = dict(zip(columns, codes, strict=True))
        for semiring in self._semirings:
            if semiring not in propagators:
                propagators[semiring] = Propagator(planned, semiring)
            propagators[semiring].observe(observed)
            answer = propagators[semiring].run(self._output_numbers)
            if answer.sound:
                break
        return answer


def _rounded(cases: int) -> int:
    """Round a number of cases up to whole vectors; numbers up to half a vector are only raised to at least 2."""
    return max(2, cases) if cases <= _CASE_MULTIPLE // 2 else -(-cases // _CASE_MULTIPLE) * _CASE_MULTIPLE


def _static_bytes(plan: Plan) -> int:
    """Return the bytes of the plan and of the tables that do not depend on the case."""
    item = np.dtype(plan.dtype).itemsize
    tables = item * sum(factor.span for factor in plan.factors if plan.kept[0] not in factor.scope)
    return tables + plan.planning_bytes


def _case_bytes(plan: Plan) -> int:
    """Return the bytes per case, estimated from a plan for a few cases."""
    return (plan.peak_bytes - _static_bytes(plan)) // _CASE_MULTIPLE


def _with_arena(plan: Plan, cells: int) -> Plan:
    """Return the plan, which uses the host's memory, with a larger arena of ``cells`` cells."""
    host = plan.bytes["host"] + (cells - plan.arena_cells) * plan.itemsize
    return plan._replace(arena_cells=cells, bytes={**plan.bytes, "host": host})
