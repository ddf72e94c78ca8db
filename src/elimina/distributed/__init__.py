"""Dask clusters: agents of distributed problems, slices of plans, searches and batches of cases on their workers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from elimina import arguments
from elimina.distributed.agents import solve_agents
from elimina.distributed.cluster import connected, local, tasks_on
from elimina.distributed.search import ClusterSearch
from elimina.distributed.slices import ClusterBatch, Job, least_memory, options_for, plan_on, run_slices, solve_slices
from elimina.errors import InputError, TimeLimitError
from elimina.io.sources import EvidenceLike, as_evidence
from elimina.methods.first_bounds import bounds_before_preparation
from elimina.methods.search_state import SearchLimits
from elimina.model.model import Model
from elimina.model.states import Evidence
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.option_checks import check_options
from elimina.planning.options import DEFAULT, Options, replace
from elimina.problem.evidence import known_total, observe
from elimina.problem.preparation import Problem, prepare
from elimina.result import Result, in_terms_of
from elimina.running.budget import Budget
from elimina.strategies.call import Call
from elimina.strategies.conditions import SEARCHED_FROM_SECONDS
from elimina.strategies.optimum_schedule import LONGEST_SEARCH_SECONDS
from elimina.strategies.strategy import Portfolio, Strategy, pursue

if TYPE_CHECKING:
    from distributed import Client


__all__ = ["ClusterBatch", "connected", "local", "solve_agents", "solve_optimum", "solve_slices"]


@arguments.with_checked_keywords(Options, "elimina.Options")
def solve_optimum(
    model: Model,
    *,
    client: Client,
    evidence: EvidenceLike | None = None,
    time_limit: float | None = None,
    options: Options = DEFAULT,
) -> Result:
    """Find the optimum (the task ``mpe``) on the workers of a cluster.

    The client distributes the incumbent and the open nodes of one branch and bound with soft local consistency. A
    worker searches for up to 3 s, and returns the remaining nodes. The nodes of a lost worker are searched again. A
    share of the time goes into rounds of AND/OR search guided by mini-buckets, each on one worker.

    Args:
        model: Any model.
        client: Client of the cluster.
        evidence: Evidence, as in ``elimina.solve``.
        time_limit: Time limit of the whole call, in seconds. A call that reaches it returns the bounds so far.
        options: Options, as in ``solve_slices``, and ``method``. ``search``: search only (also if an upper bound is
            given). ``auto``: slices if the plan takes an estimated 2 s or less. Otherwise search, for as long as the
            workers would take to run the plan, or for a minute if it does not fit. Then slices or, if the plan does not
            fit, the same search again. ``on_bounds`` is called whenever a task of the search ends.

    Returns:
        The result, as of ``elimina.solve``; ``stats`` also has ``workers``, ``tasks``, ``lost_workers`` and
        ``joined_workers``.

    Raises:
        InputError: An option does not fit the model.
        UnsupportedError: Costs are too large to be searched, and slices are not wanted.
        MemoryLimitError: Neither a plan nor a search fits the memory.
        DeviceError: No worker has the device, or it failed.
        TimeLimitError: The time limit passed without any result.
        KeyboardInterrupt: The user interrupted before there was any result.
        ClusterError: There are no usable workers (any more).
    """
    time_limit = arguments.seconds("time_limit", time_limit)
    planning = options_for(options, "search on a cluster")
    asked = check_options(options, "mpe", is_run=True)
    if not (asked.solving.is_open or asked.solving.searches):
        raise InputError(
            f"a cluster finds optima by the methods auto and search, and runs slices; not by {asked.method!r}"
        )
    upper_bound = known_total(model, asked.upper_bound)
    gap = float(asked.gap)
    run = Call("mpe", time_limit, asked.on_bounds, gap)
    run.sign, run.decimals = model.sign, model.decimals
    observations = as_evidence(evidence, model)
    run.fallback = lambda _: bounds_before_preparation(model, "mpe", observations, upper_bound=asked.upper_bound)
    optimum = _Optimum(model, client, observations, planning, SearchLimits(run.deadline, gap, upper_bound), run)

    return in_terms_of(run.answer(lambda: pursue(run, optimum.portfolio(asked))), model)


class _Optimum:
    """A call of ``solve_optimum``."""

    def __init__(
        self,
        model: Model,
        client: Client,
        evidence: Evidence | None,
        options: CheckedOptions,
        limits: SearchLimits,
        run: Call,
    ) -> None:
        self.model, self.client, self.evidence, self.options = model, client, evidence, options
        self.limits, self.run = limits, run
        self.begun: ClusterSearch | None = None

    def portfolio(self, options: CheckedOptions) -> Portfolio:
        """Search first if slices take long; then run slices, if they fit, or else continue the search."""
        if options.looks_for_optimum:
            observed = observe(self.model, "mpe", self.evidence or {})
            return (yield self.search(prepare(observed.model, "mpe", observed.values)))
        is_free = self.options.slices in ("auto", "never")
        job, lanes = self.plan(is_whole=is_free)
        plan = job.plan
        if not is_free or (plan.fits and (plan.seconds < SEARCHED_FROM_SECONDS or not plan.on_host)):
            return (yield self.slices(job, options))
        max_seconds = min(plan.seconds / lanes, LONGEST_SEARCH_SECONDS) if plan.fits else LONGEST_SEARCH_SECONDS
        attempt = yield self.search(job.problem, max_seconds)
        if self.begun is not None and self.begun.is_over and attempt.result is not None:
            return attempt
        if not plan.fits and self.options.slices == "auto":
            job, _ = self.plan()
        # A search that ran out of time may have no result yet, but can continue.
        can_search = attempt.result is not None or isinstance(attempt.failure, TimeLimitError)
        if job.plan.fits or not can_search:
            return (yield self.slices(job, options))
        return (yield self.search(job.problem))

    def search(self, problem: Problem, seconds: float = math.inf) -> Strategy:
        """Return a strategy that searches for a number of seconds, and resumes the search of earlier strategies."""

        def work(budget: Budget) -> Result:
            with tasks_on(self.client, self.options.device) as tasks:
                if self.begun is None:
                    options = self.options
                    if options.memory is None and not options.may_use_gpu:
                        options = replace(options, memory=least_memory(tasks.workers.values()))
                    self.begun = ClusterSearch(problem, options, self.limits, budget.report)
                return self.begun.run(tasks, budget.seconds)

        return Strategy(self.run, "search", work, seconds=seconds)

    def slices(self, job: Job, asked: CheckedOptions) -> Strategy:
        """Return a strategy that runs the slices of a plan."""

        def work(budget: Budget) -> Result:
            with tasks_on(self.client, self.options.device) as tasks:
                return run_slices(tasks, job, self.run, asked, budget.best_result)

        return Strategy(self.run, "eliminate", work, job.plan)

    def plan(self, is_whole: bool = False) -> tuple[Job, int]:
        """Plan on a worker; also return the number of tasks that all workers run at a time."""
        with self.run.phase("plan") as part_seconds, tasks_on(self.client, self.options.device) as tasks:
            job = plan_on(tasks, self.model, "mpe", self.evidence, self.options, is_whole)
            part_seconds.update(job.seconds)
            return job._replace(seconds={}), tasks.lanes
