"""Runs of a plan's slices, and of a batch's cases, on the workers of a cluster."""

from __future__ import annotations

import itertools
import math
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from elimina import arguments
from elimina.backends.registry import get_backend
from elimina.distributed.cluster import Tasks, Worker, stop_if_unwanted, tasks_on, workers_for
from elimina.errors import InputError, TimeLimitError
from elimina.io.cases import Codes
from elimina.io.sources import EvidenceLike, as_evidence
from elimina.methods.batch import Batch
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.first_bounds import bounds_before_preparation, first_bounds
from elimina.methods.optimum import initial_state
from elimina.model.model import Model
from elimina.model.states import Evidence
from elimina.option_names import by_interface
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.fixed_tables import with_fixed_tables
from elimina.planning.machine import DEALT_SECONDS
from elimina.planning.option_checks import check_options, options_of, plan_options
from elimina.planning.option_table import Engine
from elimina.planning.options import DEFAULT, Options, replace
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination
from elimina.planning.slicing import make_finer_plan
from elimina.problem.preparation import Problem
from elimina.problem.tasks import Task, TaskName, described, task_of, tasks_that
from elimina.result import Result, in_terms_of, optimistic_bound
from elimina.running.advice import check_fits
from elimina.running.bounded_results import result_between
from elimina.running.budget import Budget
from elimina.running.checkpoint import State
from elimina.running.execution import Execution
from elimina.running.host import limits_of
from elimina.running.planned_problem import PlannedProblem
from elimina.running.propagated_tables import Posteriors
from elimina.running.rounding import TOLERANCES
from elimina.running.scaled import ScaledNumber, ScaledSum, partition_result
from elimina.strategies.call import Call
from elimina.strategies.call_plan import plan_call
from elimina.strategies.strategy import Strategy, portfolio_of, pursue

if TYPE_CHECKING:
    from distributed import Client


MEMORY_SHARE = 0.6
"""Share of a worker's memory for its plans; Dask pauses workers that use more than 0.8 of it."""

WORTH_SECONDS = 0.5
"""A plan that fits is divided only if its estimated time is at least this many seconds."""

_MAX_TASKS_PER_WORKER = 8
"""Largest number of tasks for each worker. With several tasks, a lost one costs little, and workers finish at about the
same time."""

_MAX_QUICK_TASKS = 64
"""Largest number of tasks whose submission takes negligible time."""

_SUBMITTED_PER_WORKER = 2
"""Number of tasks for each worker that are submitted at a time; tasks that are submitted later start from better
solutions."""


_ADDED_FIGURES = ("slices_skipped", "rows_made", "rows_filtered")
"""Figures of the result that are sums over all tasks."""


class Job(NamedTuple):
    """Problem, plan and number of threads of all tasks of a run, and the seconds of planning by phase."""

    problem: Problem
    plan: Plan
    threads: int
    seconds: dict[str, float]


@arguments.with_checked_keywords(Options, "elimina.Options")
def solve_slices(
    model: Model,
    task: TaskName = "mpe",
    *,
    client: Client,
    evidence: EvidenceLike | None = None,
    time_limit: float | None = None,
    options: Options = DEFAULT,
) -> Result:
    """Answer a task by elimination, with the slices of its plan on the workers of a cluster.

    A plan that fits is also divided if several workers then finish earlier. Slices of a lost worker are run again by
    other workers.

    Args:
        model: Any model.
        task: ``mpe``, ``pr`` or ``count``: see ``elimina.solve``.
        client: Client of the cluster.
        evidence: Evidence, as in ``elimina.solve``.
        time_limit: Seconds for the whole call.
        options: Planning options, and ``on_plan`` and ``progress``. ``memory`` is per worker; None: 60 % of the limit
            that Dask sets (on GPUs: the free memory). With ``cuda``, only workers with GPUs get tasks, one for each GPU
            at a time. ``threads`` is per task.

    Returns:
        The result, as of ``elimina.solve``; ``stats`` also has ``workers``, ``tasks`` and ``lost_workers``.

    Raises:
        InputError: The task cannot be divided, or an option does not fit the model.
        MemoryLimitError: The plan needs more memory; nothing was allocated.
        DeviceError: No worker has the device, or it failed.
        TimeLimitError: The time limit passed.
        ClusterError: There are no usable workers (any more).
    """
    time_limit = arguments.seconds("time_limit", time_limit)
    task = task_of(task)
    if not described(task).merges_slices:
        tasks = ", ".join(tasks_that(lambda task: task.merges_slices))
        cases = by_interface("elimina.distributed.ClusterBatch", "--cases")
        raise InputError(
            f"a cluster does not run the task {task}: it runs slices of the tasks {tasks}, and cases ({cases})"
        )
    planning = options_for(options, "elimination on a cluster")
    asked = check_options(options, task, is_run=True)
    if not asked.solving.may_eliminate:
        raise InputError(f"slices run by the methods auto and eliminate, not by {asked.method!r}: use one of these")
    run = Call(task, time_limit)
    run.sign = model.sign
    observations = as_evidence(evidence, model)
    run.fallback = lambda _: bounds_before_preparation(model, task, observations)

    def slices(_: Budget) -> Result:
        with tasks_on(client, planning.device) as tasks:
            job = plan_on(tasks, model, task, observations, planning)
            run.fallback = lambda seconds: first_bounds(job.problem, seconds)
            return run_slices(tasks, job, run, asked)

    return in_terms_of(run.answer(lambda: pursue(run, portfolio_of(Strategy(run, "eliminate", slices)))), model)


def plan_on(
    tasks: Tasks, model: Model, task: Task, evidence: Evidence | None, options: CheckedOptions, is_whole: bool = False
) -> Job:
    """Plan on a worker.

    Args:
        tasks: Tasks on the workers.
        model: Model, as in ``solve_slices``.
        task: Task, as in ``solve_slices``.
        evidence: Evidence, as in ``solve_slices``.
        options: Options from ``options_for``.
        is_whole: True to plan without slices, even if the plan then does not fit.
    """
    if options.memory is None and not options.may_use_gpu:
        options = replace(options, memory=least_memory(tasks.workers.values()))
    options = with_fixed_tables(options, task, model)
    job: Job = tasks.wait_for(
        tasks.compute(_plan, model, task, evidence, options, tasks.lanes, WORTH_SECONDS, is_whole)
    )
    return job


def run_slices(
    tasks: Tasks,
    job: Job,
    run: Call,
    asked: CheckedOptions,
    tried: Result | None = None,
) -> Result:
    """Run a plan's slices as tasks.

    Args:
        tasks: Tasks on the workers.
        job: Job from ``plan_on``.
        run: The call, which keeps the slices' bounds and assignments.
        asked: Options with the listeners: see ``solve_slices``.
        tried: Known bounds on the optimum.

    Raises:
        MemoryLimitError: See ``solve_slices``.
        TimeLimitError: See ``solve_slices``.
        DeviceError: See ``solve_slices``.
        ClusterError: See ``solve_slices``.
    """
    check_fits(job.plan)
    if asked.on_plan is not None:
        run.notify(asked.on_plan, job.plan)
    begun = time.perf_counter()
    shares = _SliceTasks(tasks, job, run, asked.progress if callable(asked.progress) else None, tried)
    answer = shares.answer()
    clock = {**job.seconds, "run": time.perf_counter() - begun}
    seconds = {phase: round(value, 6) for phase, value in clock.items()}
    return answer.replace(stats={**shares.stats, "seconds": seconds, **tasks.statistics})


def options_for(options: Options, engine: Engine) -> CheckedOptions:
    """Return options for workers: one device; by default, one thread per task.

    Raises:
        InputError: The algorithm does not take one of the options.
    """
    checked = plan_options(check_options(options_of(options), engine=engine))
    device = "cpu" if checked.chooses_device else checked.device
    return replace(checked, device=device, threads=checked.threads or 1)


def least_memory(workers: Iterable[Worker]) -> int | None:
    """Return the bytes that a task may use on each of the workers; None if no worker has a limit."""
    limits = [int(MEMORY_SHARE * worker.memory / worker.threads) for worker in workers if worker.memory]
    return min(limits, default=None)


def _plan(
    model: Model,
    task: Task,
    evidence: Evidence | None,
    options: CheckedOptions,
    lanes: int,
    worth: float,
    is_whole: bool,
) -> Job:
    """Plan on a worker; cut a long run into as many slices as tasks run at a time, if that is faster."""
    first = replace(options, slices="never") if is_whole else options
    whole_plan = plan_call(model, task, evidence, None, first).planned
    plan = _finer(whole_plan, options, lanes) if whole_plan.plan.seconds > worth else whole_plan.plan
    return Job(whole_plan.problem, plan, options.threads or 1, whole_plan.seconds)


def _finer(planned: PlannedProblem, options: CheckedOptions, lanes: int) -> Plan:
    plan = planned.plan
    number = plan.form.slices
    can = plan.fits and plan.sparse is None and plan.form.is_resident and options.slices != "never"
    if not can or number >= lanes:
        return plan
    machine, _ = limits_of(planned.backend, options)
    max_slices = lanes if options.slices == "auto" else min(lanes, int(options.slices))
    order = (*plan.order, *plan.form.variables)
    elimination = Elimination(planned.problem, order, machine, plan.memory_limit, options.dtype)
    finer = make_finer_plan(elimination, plan, max_slices)
    return finer if options.slices == "auto" or finer.form.slices <= max(1, max_slices) else plan


def task_number(slices: int, seconds: float, lanes: int) -> int:
    """Return the number of tasks that slices are divided into.

    Args:
        slices: Slices of the plan.
        seconds: Estimated time of all slices, one after another.
        lanes: Tasks that run at the same time.
    """
    # With many workers, tasks are larger, so that no worker waits for the client.
    slices_per_task = int(seconds / lanes / (2 * DEALT_SECONDS) / lanes)
    return min(slices, _MAX_TASKS_PER_WORKER * lanes, max(_MAX_QUICK_TASKS, lanes * max(slices_per_task, 1)))


class _SliceTasks:
    """Slices of a plan as tasks, and the combination of the tasks' answers.

    Args:
        tasks: Tasks on the workers.
        job: Job to run.
        run: The call, which keeps the slices' bounds and assignments.
        progress: Function to call with the share of the tasks that are done.
        tried: Known bounds on the optimum.

    Attributes:
        stats: Figures of all tasks.
    """

    def __init__(
        self,
        tasks: Tasks,
        job: Job,
        run: Call,
        progress: Callable[[float], None] | None,
        tried: Result | None,
    ) -> None:
        self._tasks, self._job, self._run, self._progress = tasks, job, run, progress
        number = job.plan.form.slices
        self._count = task_number(number, job.plan.seconds, tasks.lanes)
        ends = [number * share // self._count for share in range(self._count + 1)]
        self._waiting_shares = deque(range(*pair) for pair in itertools.pairwise(ends))
        self._best: Result | None = None
        if tried is not None and tried.assignment is not None:
            self._best = Result("optimal", "mpe", tried.value, tried.value, tried.value, tried.assignment)
        self._results: list[Result] = []
        self._total = ScaledSum()
        self.stats: dict[str, Any] = {}

    def answer(self) -> Result:
        """Run all slices, and return the answer combined from the slices' answers."""
        # All tasks get the same plan and the same bounds: if each task planned, plans could differ.
        self._shared = self._tasks.store(self._job)
        first: State = self._tasks.wait_for(self._tasks.compute(_first, self._shared, self._seconds()))
        self._bounds = self._tasks.store(first)
        running = 0
        while self._waiting_shares or running:
            while self._waiting_shares and running < _SUBMITTED_PER_WORKER * self._tasks.lanes:
                best_state = self._best_state()
                self._tasks.submit(
                    _share, self._shared, self._bounds, self._seconds(), self._waiting_shares.popleft(), best_state
                )
                running += 1
            self._add(self._tasks.next())
            running -= 1
            if self._progress is not None:
                self._run.notify(self._progress, len(self._results) / self._count)
        self.stats = {**self._results[0].stats, "tasks": self._count}
        for name in _ADDED_FIGURES:
            if name in self.stats:
                self.stats[name] = sum(result.stats[name] for result in self._results)
        return self._joined()

    def _seconds(self) -> float | None:
        """Return the seconds left until the deadline; None if there is no deadline.

        Raises:
            TimeLimitError: No time is left.
        """
        remaining = None if self._run.deadline is None else self._run.seconds
        if remaining is not None and remaining <= 0:
            raise TimeLimitError(
                f"the time limit passed with {len(self._results)} of {self._count} tasks done; allow more time, or use "
                "more workers"
            )
        return remaining

    def _add(self, result: Result) -> None:
        self._results.append(result)
        sign = self._job.problem.model.sign
        best = None if self._best is None else self._best.value
        if result.value is not None and (best is None or sign * result.value < sign * best):
            self._best = result
        stats = {**result.stats, **self._tasks.statistics}
        task = self._job.plan.task
        if described(task).is_optimum and self._best is result:
            ends = self._job.problem.model.ends(None, result.value)
            self._run.report(Result("bounded", task, result.value, *ends, result.assignment, stats=stats))
        elif described(task).is_sum and result.log10_z is not None:
            value, log2 = result.value, result.log10_z / math.log10(2)
            self._total.add(ScaledNumber.from_log2(log2) if value is None else ScaledNumber.product([value]))
            self._run.report(Result("bounded", task, None, self._sum().log10_z, None, stats=stats))

    def _best_state(self) -> State:
        """Return the best solution so far; empty if there is none."""
        if self._best is None or self._best.assignment is None:
            return {}
        chosen = self._job.problem.model.indices_of(self._best.assignment)
        return {"best": self._best.value, "chosen": chosen}

    def _bounded(self, best: Result) -> Result:
        """Return the best answer with the bound from all tasks; with float costs, rounding may keep the two apart."""
        model = self._job.problem.model
        if model.is_integer or best.assignment is None:
            return best
        sign = model.sign
        ends = [optimistic_bound(result, sign) for result in (*self._results, best)]
        chosen = model.indices_of(best.assignment)
        bound = sign * min(sign * end for end in ends if end is not None)
        return result_between(model, bound, chosen, TOLERANCES[self._job.plan.dtype])

    def _joined(self) -> Result:
        """Combine the answers of all tasks."""
        task = self._job.plan.task
        if described(task).is_optimum:
            best = self._best or next(
                (result for result in self._results if result.status == "bounded"), self._results[0]
            )
            return self._bounded(best)
        if described(task).is_count:
            return self._results[0].replace(value=sum(int(result.value or 0) for result in self._results))
        return self._sum()

    def _sum(self) -> Result:
        """Return the sum over the slices that have run."""
        return partition_result(self._total.total)


def _execution(job: Job, seconds: float | None, share: range | None, state: State) -> Execution:
    deadline = None if seconds is None else time.monotonic() + seconds
    backend = get_backend(job.plan.device, job.threads)
    return Execution(
        job.problem, job.plan, backend, deadline=deadline, share=share, start_state=state, progress=stop_if_unwanted
    )


def _first(job: Job, seconds: float | None) -> State:
    return initial_state(_execution(job, seconds, None, {}))


def _share(job: Job, first: State, seconds: float | None, share: range, state: State) -> Result:
    return eliminate(_execution(job, seconds, share, {**first, **state}), {})


_BATCH_SHARES = 4
"""Number of tasks of a batch for each worker."""

_LEAST_CASES = 256
"""Least number of cases of a task, so that running it takes longer than the transfers."""


class _BatchJob(NamedTuple):
    """Data shared by all tasks of a batch.

    Attributes:
        key: Key under which a worker caches the batch made from these data.
        model: Model, as for ``Batch``.
        columns: Observed variables, as for ``Batch``.
        asked: Variables whose posteriors are wanted, as for ``Batch``.
        options: Planning options.
        cases: Expected number of cases of a worker.
    """

    key: str
    model: Model
    columns: tuple[int, ...]
    asked: tuple[int, ...] | None
    options: CheckedOptions
    cases: int


@arguments.with_checked_methods
class ClusterBatch:
    """A batch that answers cases as ``Batch`` does, but on the workers of a cluster.

    Cases of a lost worker are answered by others. All answers are exact.

    Args:
        client: Client of the cluster.
        model: Model, as for ``Batch``.
        columns: Observed variables, as for ``Batch``.
        asked: Variables whose posteriors are wanted, as for ``Batch``.
        options: Planning options; ``memory`` and ``threads`` are per task. None: 60 % of the memory that Dask allows a
            worker, and one thread.
        count: Number of cases, as for ``Batch``.

    Raises:
        DeviceError: No worker has the device.
        ClusterError: There are no usable workers.
    """

    is_exact = True
    """True: posteriors are exact, so they have no estimated errors."""

    def __init__(
        self,
        client: Client,
        model: Model,
        columns: Sequence[int],
        asked: Sequence[int] | None,
        options: Options,
        count: int,
    ) -> None:
        checked = check_options(options)
        device = "cpu" if checked.chooses_device else checked.device
        workers = workers_for(client, device)
        checked = replace(checked, device=device, threads=checked.threads or 1)
        if checked.memory is None and not checked.may_use_gpu:
            checked = replace(checked, memory=least_memory(workers))
        self._client, self._device = client, device
        self._lanes = sum(worker.lanes(device) for worker in workers)
        queried = None if asked is None else tuple(asked)
        self._job = _BatchJob(uuid.uuid4().hex, model, tuple(columns), queried, checked, -(-count // self._lanes))

    def run(self, values: Codes, progress: Callable[[float], None] | None = None) -> Posteriors:
        """Answer cases: see ``Batch.run``.

        Raises:
            InputError: The model has costs, or an option makes no sense.
            MemoryLimitError: Not even a few cases fit.
            ClusterError: There are no workers any more.
        """
        size = max(_LEAST_CASES, -(-len(values) // (_BATCH_SHARES * self._lanes)))
        starts = range(0, len(values), size) or range(1)
        answers: dict[int, Posteriors] = {}
        with tasks_on(self._client, self._device) as tasks:
            shared = tasks.store(self._job)
            for start in starts:
                tasks.submit(_answer, shared, values[start : start + size], start)
            for _ in starts:
                start, posteriors = tasks.next()
                answers[start] = posteriors
                if progress is not None:
                    progress(len(answers) / len(starts))
        batches = [answers[start] for start in starts]
        marginals = {
            name: np.concatenate([batch.marginals[name] for batch in batches]) for name in batches[0].marginals
        }
        log10_evidence = np.concatenate([batch.log10_evidence for batch in batches])
        return Posteriors(marginals, log10_evidence, batches[0].variables)


_made: dict[str, Batch] = {}
_making = threading.Lock()


def _answer(job: _BatchJob, values: Codes, start: int) -> tuple[int, Posteriors]:
    """Return the position of the first case, and the answers to the cases.

    A worker caches its plan for the next chunk of the batch.
    """
    with _making:
        if job.key not in _made:
            for batch in _made.values():
                batch.close()
            _made.clear()
            _made[job.key] = Batch(job.model, job.columns, job.asked, job.options, job.cases)
        batch = _made[job.key]
    return start, batch.run(values)
