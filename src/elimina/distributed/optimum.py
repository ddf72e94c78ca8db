"""The optimum on the workers of a cluster: by slices of a plan, by search, or by search and then slices."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from elimina import arguments
from elimina.distributed.search import ClusterSearch
from elimina.distributed.slices import Job, least_memory, options_for, plan_on, run_slices
from elimina.distributed.tasks import Tasks, tasks_on
from elimina.errors import InputError, TimeLimitError, UnsupportedError
from elimina.inference.anytime import Run
from elimina.inference.call import observe
from elimina.inference.knowledge import Limits
from elimina.inference.method import LONGEST_TRY, SEARCHED_FROM_SECONDS
from elimina.inference.options import DEFAULT, Options
from elimina.model import Model
from elimina.planning.prepare import Problem, prepare
from elimina.result import Result
from elimina.states import Evidence

if TYPE_CHECKING:
    from distributed import Client


def solve_optimum(
    model: Model,
    *,
    client: Client,
    evidence: Evidence | None = None,
    time_limit: float | None = None,
    options: Options = DEFAULT,
) -> Result:
    """Find the optimum (the task ``mpe``) on the workers of a cluster.

    Search: the client deals out the open nodes of one branch and bound with soft local consistency and the best
    assignment known, in turns of up to 3 s; workers return what they leave, and a lost worker's turns are done again. A
    share of the time goes into rounds of AND/OR search guided by mini-buckets, each on one worker.

    Args:
        model: Any model.
        client: Client of the cluster.
        evidence: See ``elimina.plan``.
        time_limit: Seconds for the whole call. What is known by then is the answer: ``bounded``.
        options: See ``solve_slices``. ``method`` is ``search``: only that, as where an upper bound is given; or
            ``auto``: slices where the plan is estimated at less than 2 s; else search for as long as workers would
            take, or for a minute if nothing fits; then slices, or what was begun. ``on_bounds`` is called whenever a
            task of the search ends.

    Returns:
        The result, as of ``elimina.solve``; ``stats`` has ``workers``, ``tasks``, ``lost_workers``, ``joined_workers``
        besides.

    Raises:
        InputError: An option does not fit the model.
        UnsupportedError: Costs are too large to be searched, and slices are not wanted.
        MemoryLimitError: Neither a plan nor a search fits the memory.
        DeviceError: No worker has the device, or it failed.
        TimeLimitError: The time limit passed, and nothing is known.
        KeyboardInterrupt: The user interrupted likewise; else the answer is what is known.
        ClusterError: There are no usable workers (any more).
    """
    time_limit = arguments.seconds("time_limit", time_limit)
    planning = options_for(options)
    asked = options._replace(ibound=None).checked("mpe", is_run=True)
    if asked.method not in ("auto", "search"):
        raise InputError(
            f"a cluster finds optima by the methods auto and search, and runs slices; not by {asked.method!r}"
        )
    gap = float(asked.gap)
    run = Run("mpe", time_limit, asked.on_bounds, gap)
    run.sign = 1 if model.sense == "min-cost" else -1
    optimum = _Optimum(model, client, evidence, planning, Limits(run.deadline, gap, asked.upper_bound), run)

    def work() -> None:
        if asked.looks_for_optimum:
            observed = observe(model, "mpe", evidence or {})
            run.strategy("search", lambda: optimum.search(prepare(observed.model, "mpe", observed.values), math.inf))
        else:
            run.strategy("eliminate", lambda: optimum.auto(asked))

    return run.answer(work)


class _Optimum:
    """One call of ``solve_optimum``."""

    def __init__(
        self,
        model: Model,
        client: Client,
        evidence: Evidence | None,
        options: Options,
        limits: Limits,
        run: Run,
    ) -> None:
        self.model, self.client, self.evidence, self.options = model, client, evidence, options
        self.limits, self.run = limits, run
        self.begun: ClusterSearch | None = None

    def search(self, problem: Problem, seconds: float) -> Result:
        """Search for so many seconds; again it goes on where it was left."""
        with tasks_on(self.client, self.options.device) as tasks:
            if self.begun is None:
                options = self.options
                if options.room is None and options.device == "cpu":
                    options = options._replace(memory=least_memory(tasks.workers.values()))
                self.begun = ClusterSearch(problem, options, self.limits, self.run.learn)
            return self.begun.run(tasks, seconds)

    def auto(self, asked: Options) -> Result:
        """Search first where slices take long; then slices, if they fit."""
        is_free = self.options.slices in ("auto", "never")
        with tasks_on(self.client, self.options.device) as tasks:
            job = self.plan(tasks, is_whole=is_free)
            plan, lanes = job.plan, tasks.lanes
            if not is_free or (plan.fits and (plan.seconds < SEARCHED_FROM_SECONDS or plan.device == "cuda")):
                return run_slices(tasks, job, self.run, asked)
        most = min(plan.seconds / lanes, LONGEST_TRY) if plan.fits else LONGEST_TRY
        tried = self.try_search(job.problem, most)
        if tried is not None and (self.begun is None or self.begun.is_over):
            return tried
        with tasks_on(self.client, self.options.device) as tasks:
            if not plan.fits and self.options.slices == "auto":
                job = self.plan(tasks)
            if job.plan.fits or tried is None:
                try:
                    return run_slices(tasks, job, self.run, asked, tried)
                except TimeLimitError:
                    if tried is None:
                        raise
                    return tried
        return self.search(job.problem, math.inf)

    def plan(self, tasks: Tasks, is_whole: bool = False) -> Job:
        return plan_on(tasks, self.model, "mpe", self.evidence, self.options, is_whole)

    def try_search(self, problem: Problem, seconds: float) -> Result | None:
        """Search for a while; None if that is not possible, or nothing is known."""
        try:
            return self.search(problem, seconds)
        except (UnsupportedError, TimeLimitError):
            return None
