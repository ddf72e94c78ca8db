"""Runs of a plan slice by slice, or in groups of steps.

Steps that are the same in all slices run once. A checkpoint stores the messages after each group of steps.
"""

from __future__ import annotations

import bisect
import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import count_path
from elimina.backends.device_group import devices_of
from elimina.backends.protocols import ExpectingSession, KeepingSession, ReservingBackend, RunOutput, Session
from elimina.model.table import Tables
from elimina.planning.machine import SAVED
from elimina.planning.plan import RESIDENT, Plan
from elimina.planning.program import Program
from elimina.planning.sparse import tuple_bytes
from elimina.problem.preparation import Problem, restrict
from elimina.problem.semirings import SEMIRINGS
from elimina.running.encoding import Encoded, Encoder
from elimina.running.execution import Execution
from elimina.running.pool import spread
from elimina.system import cached_property

if TYPE_CHECKING:
    from elimina.running.checkpoint import Checkpoint, State

GROUP_SECONDS = 5.0
"""Least estimated seconds of a group of steps."""

_GROUP_SECONDS_PER_SAVING_SECOND = 4
"""Least estimated time of a group, relative to the time for writing its messages."""


def ends_of_groups(plan: Plan) -> list[int]:
    """Return the end of each group of a plan's steps (exclusive); the last end is the number of steps."""
    item = np.dtype(plan.dtype).itemsize
    work, sizes = [step.work for step in plan.steps], [step.out_span * item for step in plan.steps]
    if plan.sparse is not None:
        rows = [math.ceil(min(form.rows, 2.0**62)) for form in plan.sparse.forms]
        work = [count + 1 for count in rows]
        sizes = [count * tuple_bytes(step.sizes, item) for count, step in zip(rows, plan.steps, strict=True)]
    rate = plan.seconds / max(1, sum(work))
    last = [max(step.readers, default=len(plan.steps)) for step in plan.steps]
    ends: list[int] = []
    begin = live = 0
    elapsed = 0.0
    for number, step in enumerate(plan.steps):
        elapsed += work[number] * rate
        live += sizes[number]
        if not plan.keep:
            read = {o.source for o in step.operands if o.source >= begin}
            live -= sum(sizes[source] for source in read if last[source] == number)
        if elapsed >= max(GROUP_SECONDS, _GROUP_SECONDS_PER_SAVING_SECOND * live / SAVED):
            ends.append(number + 1)
            begin, live, elapsed = number + 1, 0, 0.0
    return [*(end for end in ends if end < len(plan.steps)), len(plan.steps)]


class StepGroups:
    """Groups of a plan's steps, which run one after another; the messages of each group but the last are stored.

    Args:
        plan: A plan without slices, whose messages can be fetched after each group.
        checkpoint: Checkpoint that stores the messages.
        semiring: Semiring of the run.
        key: Key of this run, different from those of other runs of the same plan.
    """

    def __init__(self, plan: Plan, checkpoint: Checkpoint, semiring: str, key: str) -> None:
        self._plan, self._checkpoint, self._key = plan, checkpoint, key
        self._scaled = SEMIRINGS[semiring].is_scaled
        self._last = [max(step.readers, default=len(plan.steps)) for step in plan.steps]
        state: State = checkpoint.steps
        self._state: State = state if state.get("key") == key else {"key": key, "done": 0, "files": [], "peaks": []}

    def run(self, session: Session, ends: list[int], report: Callable[[float], None]) -> Iterator[RunOutput]:
        """Run the unfinished groups; yield the output of each."""
        self._restore(session)
        total = max(1, self._plan.work)
        done = sum(step.work for step in self._plan.steps[: self._state["done"]])
        for end in (end for end in ends if end > self._state["done"]):
            begin = self._state["done"]
            share = sum(step.work for step in self._plan.steps[begin:end])

            def progress(share_of_group: float, done: int = done, share: int = share) -> None:
                report((done + share_of_group * share) / total)

            run = session.run(np.arange(begin, end, dtype=np.int64), progress)
            done += share
            yield run
            if end < len(self._plan.steps):
                self._save(session, begin, end, run)
                report(done / total)

    def _restore(self, session: Session) -> None:
        for saved, steps in self._state["files"]:
            data = self._checkpoint.read_messages(saved)
            at = 0
            for number, size in steps:
                if isinstance(session, KeepingSession):
                    session.load_message(number, data[at : at + size])
                else:
                    session.load(self._plan.steps[number].out_offset, data[at : at + size].view(self._plan.dtype))
                at += size
        if self._state["peaks"]:
            session.load_peaks(np.array(self._state["peaks"]))

    def _save(self, session: Session, begin: int, end: int, run: RunOutput) -> None:
        sizes: list[list[int]] = []

        def arrays() -> Iterator[NDArray[np.generic]]:
            for number in (n for n in range(begin, end) if self._is_needed(n, end)):
                step = self._plan.steps[number]
                if isinstance(session, KeepingSession):
                    array: NDArray[np.generic] = session.fetch_message(number)
                else:
                    array = session.fetch(step.out_offset, step.out_span)
                sizes.append([number, array.nbytes])
                yield array

        files = [pair for pair in self._state["files"] if any(self._is_needed(n, end) for n, _ in pair[1])]
        files.append([self._checkpoint.save_messages(end, arrays()), sizes])
        peaks = run.peaks.tolist() if self._scaled else []
        self._state = {"key": self._key, "done": end, "files": files, "peaks": peaks}
        self._checkpoint.save_steps(self._state)
        self._checkpoint.drop_messages([saved[0] for saved, _ in files])

    def _is_needed(self, number: int, end: int) -> bool:
        return self._plan.keep or self._last[number] >= end


class Slice(NamedTuple):
    """A finished slice.

    Attributes:
        number: Number of the slice; the value of the last conditioned variable changes fastest.
        problem: The problem restricted to the slice's values.
        encoded: Factors of the slice.
        run: Output of the backend; None if the factors alone show that no assignment is allowed.
    """

    number: int
    problem: Problem
    encoded: Encoded
    run: RunOutput | None


class Sweep:
    """The slices of a plan (a plan without slices has one), on the devices of its backend.

    Args:
        execution: The plan, with its problem and backend.
        clock: Seconds by phase, to which the sweep's time is added; with several devices, the time of the slowest one.
        semiring: Semiring of the run, with the same dtype; None: the plan's.

    Attributes:
        done: Number of slices that have run or were not needed, for progress reports.
    """

    def __init__(self, execution: Execution, clock: dict[str, float], semiring: str | None = None) -> None:
        self._execution, self._clock, self._semiring = execution, clock, semiring
        is_divided = execution.plan.form.gpus > 1
        self._devices = (execution.backend,) if is_divided else devices_of(execution.backend)
        self._lanes: dict[int, _DeviceSlices] = {}
        self.done = 0

    @property
    def count(self) -> int:
        """Number of slices."""
        return self._execution.plan.form.slices

    @property
    def rows(self) -> tuple[int, int]:
        """Numbers of tuples of sparse tables so far: those that were considered, and those that were kept."""
        considered_rows, kept_rows = zip((0, 0), *(lane.rows for lane in self._lanes.values()), strict=True)
        return sum(considered_rows), sum(kept_rows)

    def reserve(self) -> None:
        """Start to allocate the slices' memory on the devices; the caller continues meanwhile."""
        program = self._execution.program(self._semiring)
        for device in self._devices:
            if isinstance(device, ReservingBackend):
                device.reserve(program)

    def run(
        self,
        numbers: Sequence[int],
        parameter: int | None = None,
        part: tuple[int, int] = (0, 1),
        wanted: Callable[[int], bool] | None = None,
    ) -> Iterator[Slice | None]:
        """Run slices; the devices' sessions are closed when all slices are finished, or when the iterator is closed.

        Args:
            numbers: Numbers of the slices, in any sequence; consecutive slices that differ only in the last
                conditioned variables share most steps.
            parameter: ``Program.parameter`` of the run; None: the plan's.
            part: Number of this sweep, and number of all sweeps, for progress reports.
            wanted: Function that returns whether a slice is needed, called before it begins; None: all are needed.

        Yields:
            The slices in the given sequence; None for slices that are not needed.

        Raises:
            TimeLimitError: The deadline has passed.
            DeviceError: All devices failed.
        """
        execution = self._execution._replace(part=part)
        # With several devices, progress counts finished slices, because each device only knows its own progress.
        is_alone = len(self._devices) == 1 or len(numbers) == 1
        reporting_execution = execution if is_alone else execution._replace(progress=None)

        def work(device: int, numbers: Iterator[int]) -> Iterator[Slice]:
            if device not in self._lanes:
                device_execution = execution._replace(backend=self._devices[device])
                self._lanes[device] = _DeviceSlices(device_execution, self._semiring)
            return self._lanes[device].run(numbers, parameter, functools.partial(self._report, reporting_execution))

        sizes = execution.plan.form.sizes
        together = sizes[-1] if sizes else 1
        try:
            for slice_ in spread(range(len(self._devices)), numbers, work, wanted, together):
                yield slice_
                self.done += 1
                if slice_ is not None:
                    execution.report(self.done / self.count)
        finally:
            for phase in {phase for lane in self._lanes.values() for phase in lane.clock}:
                seconds = max(lane.clock.get(phase, 0.0) for lane in self._lanes.values())
                self._clock[phase] = self._clock.get(phase, 0.0) + seconds
            for lane in self._lanes.values():
                lane.clock.clear()

    def _report(self, execution: Execution, share: float) -> None:
        execution.report((self.done + share) / self.count)


class _DeviceSlices:
    """Slices on one device, in one session at a time.

    From one slice to the next, only the changed factors are written, and only the steps that depend on them run. These
    steps are at the end of the plan (``Form.levels``).

    Args:
        execution: The plan, with its problem and device.
        semiring: See ``Sweep``.

    Attributes:
        rows: Numbers of tuples of sparse tables so far: those that were considered, and those that were kept.
        clock: Seconds by phase.
    """

    def __init__(self, execution: Execution, semiring: str | None) -> None:
        started = time.perf_counter()
        self._execution, self._semiring = execution, semiring
        plan = self._plan = execution.plan
        self._variables, self._sizes, self._levels = plan.form.variables, plan.form.sizes, plan.levels
        self._whole = execution.problem
        self._values = [0] * len(self._variables)
        self._problem = self._whole
        if self._variables:
            self._problem = restrict(self._whole, dict.fromkeys(self._variables, 0))
        self._tables = list(self._problem.tables) if self._variables else []
        self._touched = _dependent_parts(self._whole, plan, self._variables)
        self._encoder = Encoder(self._problem, plan, semiring, self._whole, threads=execution.backend.threads)
        self.rows = [0, 0]
        self.clock: dict[str, float] = {}
        self._record_seconds("encode", time.perf_counter() - started)
        execution.check_deadline("the tables encoded")

    def run(self, numbers: Iterable[int], parameter: int | None, report: Callable[[float], None]) -> Iterator[Slice]:
        """Run slices, and yield each of them: see ``Sweep.run``; ``report`` receives the finished share of a slice."""
        program = self._program if parameter is None else self._program._replace(parameter=parameter)
        if self._variables:
            count_path(
                "filtered-slices" if program.sparse is not None and program.sparse.outside is not None else "slices"
            )
        if SEMIRINGS[program.semiring].is_weighted:
            count_path("logarithms")
        session: Session | None = None
        run: RunOutput | None = None
        stale = 0
        try:
            for number in numbers:
                stale = min(stale, self._move(number, session))
                problem, encoded = self._present
                if encoded.impossible:
                    yield Slice(number, problem, encoded, None)
                    continue
                if session is None:
                    session = self._execution.backend.open(program, self._encoder.arena)
                    self._expect(session)
                first = bisect.bisect_left(self._levels, stale)
                if run is None or first < len(self._levels):
                    for run in self._runs(session, parameter, first, report):
                        for phase, seconds in run.seconds.items():
                            self._record_seconds(phase, seconds)
                        self.rows = [count + new for count, new in zip(self.rows, run.rows, strict=True)]
                assert run is not None
                stale = len(self._variables) + 1
                yield Slice(number, problem, encoded, run)
        finally:
            if session is not None:
                session.close()

    def _expect(self, session: Session) -> None:
        """Announce to a new session the steps that run together when a variable's value changes."""
        if self._variables and isinstance(session, ExpectingSession):
            for level in range(1, len(self._variables) + 1):
                session.expect(self._steps_from(bisect.bisect_left(self._levels, level)))

    def _steps_from(self, first: int) -> NDArray[np.int64]:
        return np.arange(first, len(self._levels), dtype=np.int64)

    def _runs(
        self, session: Session, parameter: int | None, first: int, report: Callable[[float], None]
    ) -> Iterator[RunOutput]:
        """Run the steps from number ``first`` on; yield the output.

        A long plan without slices, but with a checkpoint, runs in groups: the output of each group is yielded.
        """
        plan, checkpoint = self._plan, self._execution.checkpoint
        # On a GPU, messages can be fetched after a group only if the plan stores them in the arena.
        can_keep = plan.keep or plan.on_host or plan.sparse is not None
        if checkpoint is not None and plan.form == RESIDENT and can_keep:
            ends = ends_of_groups(plan)
            if len(ends) > 1:
                semiring = self._semiring or plan.semiring
                yield from StepGroups(plan, checkpoint, semiring, f"{semiring} {parameter}").run(session, ends, report)
                return
        yield session.run(self._steps_from(first) if first else None, report)

    def _move(self, number: int, session: Session | None) -> int:
        """Restrict the problem to a slice's values; return the level from which on steps have to run again.

        If no value changes, this level is above that of all steps.
        """
        started = time.perf_counter()
        values = _digits(number, self._sizes)
        changed = [i for i, pair in enumerate(zip(values, self._values, strict=True)) if pair[0] != pair[1]]
        if not changed:
            return len(self._variables) + 1
        self.__dict__.pop("_present", None)
        self._values = values
        fixed = dict(zip(self._variables, values, strict=True))
        tables = {t for i in changed for t in self._touched[i].tables}
        restricted = {table: self._whole.tables[table].restrict(fixed) for table in sorted(tables)}
        for number, table in restricted.items():
            self._tables[number] = table
        factors = sorted({f for i in changed for f in self._touched[i].factors})
        self._encoder.replace(restricted, factors)
        if session is not None:
            for factor in map(self._plan.factors.__getitem__, factors):
                session.load(factor.offset, self._encoder.arena[factor.offset : factor.offset + factor.span])
        self._record_seconds("encode", time.perf_counter() - started)
        return changed[0] + 1

    @cached_property
    def _program(self) -> Program:
        return self._execution.program(self._semiring)

    @cached_property
    def _present(self) -> tuple[Problem, Encoded]:
        """The problem of the current slice, and its factors."""
        if not self._variables:
            return self._whole, self._encoder.encoded(self._whole)
        fixed = {**self._whole.fixed, **dict(zip(self._variables, self._values, strict=True))}
        problem = self._problem._replace(tables=Tables(self._tables), fixed=fixed)
        return problem, self._encoder.encoded(problem)

    def _record_seconds(self, phase: str, seconds: float) -> None:
        self.clock[phase] = self.clock.get(phase, 0.0) + seconds


class _DependentParts(NamedTuple):
    """Numbers of the tables and factors that depend on one conditioned variable."""

    tables: tuple[int, ...]
    factors: tuple[int, ...]


def _dependent_parts(problem: Problem, plan: Plan, variables: Sequence[int]) -> list[_DependentParts]:
    result = []
    for v in variables:
        tables = {number for number, table in enumerate(problem.tables) if v in table.scope}
        factors = (number for number, factor in enumerate(plan.factors) if not tables.isdisjoint(factor.members))
        result.append(_DependentParts(tuple(tables), tuple(factors)))
    return result


def _digits(number: int, sizes: Sequence[int]) -> list[int]:
    """Return a number's digits in mixed radix, the most significant one first."""
    digits = []
    for size in reversed(sizes):
        number, digit = divmod(number, size)
        digits.append(digit)
    return digits[::-1]
