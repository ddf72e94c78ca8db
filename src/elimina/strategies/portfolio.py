"""The solver of one question: its prepared problem, orders, plans and runs."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from elimina import system
from elimina.errors import DeviceError, InputError
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.first_bounds import bounds_of_task, first_bounds
from elimina.methods.paused_search import PausedSearch
from elimina.model.model import Model
from elimina.model.states import Evidence
from elimina.number_texts import bytes_text, counted, seconds_text
from elimina.option_names import option
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import BOUNDED_TABLE_SECONDS
from elimina.planning.option_values import IBound
from elimina.planning.options import replace
from elimina.planning.order import Order
from elimina.planning.ordering import is_settled, quick_order, rough_order
from elimina.planning.plan import Plan
from elimina.problem.evidence import indices_asked, known_total, observe, values_there
from elimina.problem.observations import assignment_of
from elimina.problem.preparation import Problem, prepare
from elimina.problem.tasks import Task, described
from elimina.result import Result
from elimina.running.budget import Budget
from elimina.running.execution import Execution
from elimina.running.garbage_collection import without_collection
from elimina.running.host import host_memory
from elimina.running.plan_choice import plan_problem, without_lost_devices
from elimina.running.planned_problem import PlannedProblem
from elimina.strategies.call import FIRST_BOUNDS_AGE_SECONDS, Call
from elimina.strategies.call_plan import PlannedCall, Preparation, inquire, plan_call
from elimina.strategies.strategy import Strategy

if TYPE_CHECKING:
    from elimina.methods.cost_shifting import ShiftedProblem
    from elimina.methods.junction_structure import MarginalQuery
    from elimina.methods.k_best_search import KBestSearch
    from elimina.methods.posterior_estimation import PosteriorEstimation
    from elimina.methods.sum_estimation import SumEstimation
    from elimina.running.checkpoint import Checkpoint

logger = logging.getLogger("elimina")

EARLY_BOUNDS_TABLES = 200
"""Number of tables above which a call with a time limit computes first bounds at its start, because the time at its end
would not suffice."""

MIN_PLANNING_SECONDS = 1e-3
"""Least time limit that planning assumes, in seconds, even if less time remains."""


class Question(NamedTuple):
    """Arguments of a question, as in ``elimina.solve``."""

    model: Model
    task: Task
    evidence: Evidence
    query: Sequence[str | int] | None


class Solver:
    """State of one question: its problem, orders and plans, each computed once, and strategies that run plans.

    Args:
        question: The question.
        options: Options of the plan and the strategy for optima.
        run: The call, which stores bounds and assignments.
        checkpoint: Checkpoint that stores the progress of elimination.

    Attributes:
        paused: State from which searches resume.
        estimation: Approximate methods with their state, which can resume; None: they have not begun.
        k_best_search: Branch and bound for the k best assignments, which can resume; None: it has not begun.
    """

    def __init__(
        self, question: Question, options: CheckedOptions, run: Call, checkpoint: Checkpoint | None = None
    ) -> None:
        self.question, self.options, self.run, self.checkpoint = question, options, run, checkpoint
        run.sign, run.decimals = question.model.sign, question.model.decimals
        self.paused = PausedSearch()
        self.estimation: PosteriorEstimation | SumEstimation | None = None
        self.k_best_search: KBestSearch | None = None
        self._first: Preparation | None = None
        self._ladder: Iterator[PlannedProblem] | None = None
        self._grown = 0  # bytes that preparation and order searches added; plans count them as their own

    def begin(self) -> None:
        """Prepare the problem."""
        model, task, _, query = self.question
        asked = indices_asked(model, task, query)
        self.options = replace(self.options, upper_bound=known_total(model, self.options.upper_bound))
        self._prepare(asked)

    @without_collection()
    def _prepare(self, asked: tuple[int, ...] | None) -> None:
        model, task, evidence, _ = self.question
        with self.run.phase("prepare"), self._for_planning():
            observed = observe(model, task, evidence, asked)
            if described(task).is_marginal:
                inquiry = inquire(model, observed, asked, self.options)
                self._first = Preparation(inquiry.structure.problem, inquiry.structure.rough, inquiry=inquiry)
            else:
                problem = prepare(observed.model, described(task).problem or task, observed.values, asked)
                self._first = Preparation(problem)

    def provide_bounds(self, memory_share: float) -> None:
        """Provide first bounds in case the call ends without better ones.

        The bounds are computed at the end of the call or, if there are many tables and a time limit, immediately.

        Args:
            memory_share: Share of the host's memory for the bounds' copies of tables.
        """
        problem, run = self.problem, self.run

        def bounds(seconds: float) -> Result | None:
            return self.first_bounds(memory_share, seconds)

        run.fallback = bounds
        if run.deadline is None or len(problem.tables) < EARLY_BOUNDS_TABLES:
            run.fallback_after = max(FIRST_BOUNDS_AGE_SECONDS, BOUNDED_TABLE_SECONDS * len(problem.tables))
            return
        with without_collection(), run.phase("prepare"), self._for_planning():
            early = bounds(math.inf)
        if early is not None:
            run.fallback = lambda _: early

    def first_bounds(self, memory_share: float, seconds: float = math.inf) -> Result | None:
        """Return first bounds; None if there are none.

        Args:
            memory_share: Share of the host's memory for copies of tables.
            seconds: Time limit for improving the bounds' assignment, in seconds.
        """
        memory = host_memory(self.options) * memory_share
        result = first_bounds(self.problem, seconds, self.options.upper_bound, memory)
        return None if result is None else bounds_of_task(self.question.task, result)

    def complete(self, hint: Evidence) -> None:
        """Complete the user's hint to an assignment; if this is possible, store it as the best one so far."""
        from elimina.methods.local_search import first_assignment

        with self.run.phase("hint"):
            model = self.question.model
            states = values_there(model, assignment_of(model, hint, "hint"), self.problem.model)
            result = first_assignment(self.problem, states, self.options, host_memory(self.options))
        if result is not None:
            self.run.report(result)

    @property
    def problem(self) -> Problem:
        """The prepared problem."""
        assert self._first is not None
        return self._first.problem

    @property
    def inquiry(self) -> MarginalQuery:
        """The requested marginals."""
        assert self._first is not None
        assert self._first.inquiry is not None
        return self._first.inquiry

    def next_rung(self) -> Strategy | None:
        """Return the next run in the sequence of growing mini-buckets; None at its end."""
        from elimina.methods.cost_shifting import ShiftedProblem
        from elimina.methods.weighted_mini_buckets import MAX_RUNG_SECONDS, ladder

        run, options, longest = self.run, self.options, math.inf
        if not options.solving.bounds:
            options, longest = options.for_bounds, MAX_RUNG_SECONDS
        if self._ladder is None:
            self._ladder = ladder(
                self.problem, lambda: options.after_growth(run.growth_bytes), lambda: run.seconds, longest
            )
        with run.phase("plan"):
            planned = next(self._ladder, None)
        return None if planned is None else self._bounding(planned, options, ShiftedProblem(self.problem, None))

    def affordable_ibound(self, planned: PlannedProblem, options: CheckedOptions) -> IBound:
        """Return the largest i-bound that fits the time and the memory, for mini-buckets in the order of a plan."""
        from elimina.methods.weighted_mini_buckets import affordable_ibounds

        order = planned.plan.whole.order
        return affordable_ibounds(
            planned.problem, order, options.after_growth(self.run.growth_bytes), self.run.deadline
        )[-1]

    def rough_order(self) -> Order:
        """Return an order found in a quick search, which runs once; ``quick_order`` may replace it by a better one."""
        assert self._first is not None
        if self._first.rough is None:
            with self.run.phase("order"), self._for_planning():
                self._first = self._first._replace(rough=rough_order(self._first.problem, self.options))
        assert self._first.rough is not None
        return self._first.rough

    def quick_order(self, seconds: float) -> Order:
        """Search briefly for an order; store and return the better of this order and the rough order."""
        rough = self.rough_order()
        if is_settled(rough):
            return rough
        with self.run.phase("order"), self._for_planning():
            order = quick_order(self.problem, self.options, seconds)
        if rough.total_cells < order.total_cells:
            # The rough order stays. The time of this search is added to its own, so that a search of the same length is
            # not repeated.
            order = rough._replace(method=order.method, seconds=rough.seconds + order.seconds)
        assert self._first is not None
        self._first = self._first._replace(rough=order)
        return order

    def planned_order(self) -> tuple[int, ...] | None:
        """Return the order of an earlier plan; None: no earlier plan. Free variables that it lacks come first."""
        if self._first is None or self._first.order is None:
            return None
        order = tuple(self._first.order)
        return (*sorted(set(self._first.problem.free).difference(order)), *order)

    def trial_plan(self, order: Order, options: CheckedOptions) -> Plan:
        """Return a plan of which only the estimates are used. An order in the options replaces ``order``."""
        if isinstance(options.order, str):
            options = replace(options, order=order.order)
        with self.run.phase("plan"), self._for_planning():
            return plan_problem(self.problem, options.after_growth(self.run.growth_bytes)).plan

    @without_collection()
    def plan(self, options: CheckedOptions, refinements: int = 0) -> PlannedCall:
        """Plan the prepared problem within the memory that the call does not already use."""
        held = max(0, self.run.growth_bytes - self._grown)
        prepared = self._plan(options.after_growth(held), refinements)
        plan = prepared.planned.plan
        needed = plan.bytes.get("host", 0) - plan.planning_bytes
        if plan.fits and self._is_beyond(options, needed):
            system.release_memory()
            if self._is_beyond(options, needed):
                held = self.run.growth_bytes
                prepared = self._plan(options.after_growth(held), refinements)
        return self._explained(prepared, options, held)

    def _explained(self, prepared: PlannedCall, options: CheckedOptions, held: int) -> PlannedCall:
        """Return a plan; if it exceeds the memory limit, its ``shortfall`` states a sufficient limit."""
        plan = prepared.planned.plan
        if plan.fits or options.memory is None or not plan.on_host:
            return prepared
        held = held if options.is_shared else 0
        plan = plan._replace(
            shortfall=plan.shortfall._replace(held=held, enough=options.limit_for(plan.whole.peak_bytes, held))
        )
        return prepared._replace(planned=prepared.planned._replace(plan=plan))

    @contextlib.contextmanager
    def _for_planning(self) -> Iterator[None]:
        """Count the growth of the process within a block as memory of the plan."""
        before = self.run.growth_bytes
        yield
        self._grown += max(0, self.run.growth_bytes - before)

    def _is_beyond(self, options: CheckedOptions, needed: int) -> bool:
        """Return whether a number of bytes exceeds the remaining memory of the call."""
        room = options.after_growth(self.run.growth_bytes).memory
        return options.is_shared and room is not None and needed > room

    def _plan(self, options: CheckedOptions, refinements: int) -> PlannedCall:
        model, task, evidence, query = self.question
        limit = max(MIN_PLANNING_SECONDS, self.run.seconds)
        with self.run.phase("plan") as part_seconds:
            prepared = plan_call(
                model,
                task,
                evidence,
                query,
                options,
                limit,
                self.checkpoint,
                first=self._first,
                refinements=refinements,
            )
            part_seconds.update(prepared.planned.seconds)
        self._first, plan = prepared.first, prepared.planned.plan
        if not described(task).is_marginal:
            self._first = self._first._replace(order=plan.whole.order)
        _log_plan(plan)
        return prepared._replace(planned=prepared.planned._replace(seconds={}))

    def execution(self, prepared: PlannedCall, options: CheckedOptions) -> Strategy:
        """Return a strategy that runs a plan."""
        first, planned, original = prepared
        if planned.plan.minibuckets is not None or original is not None:
            return self._bounding(planned, options, original)

        def work(budget: Budget) -> Result:
            execution = self.begun(planned, budget)._replace(checkpoint=self.checkpoint, report_bounds=budget.report)
            try:
                return _eliminate(first.inquiry, execution, options)
            except DeviceError as error:
                replanned = None if planned.plan.form.gpus == 1 else without_lost_devices(planned, options)
                if replanned is None:
                    raise
                logger.warning("a plan that was divided among devices starts again on those that are left: %s", error)
                new_execution = execution._replace(plan=replanned.plan, backend=replanned.backend)
            return _eliminate(first.inquiry, new_execution, options)

        return Strategy(self.run, "eliminate", work, planned.plan)

    def begun(self, planned: PlannedProblem, budget: Budget) -> Execution:
        """Return the execution of a plan within a budget, with the user's progress listener."""
        return Execution(planned.problem, planned.plan, planned.backend, self.report_progress, budget.deadline)

    def _bounding(self, planned: PlannedProblem, options: CheckedOptions, original: ShiftedProblem | None) -> Strategy:
        """Return a strategy that runs a plan with mini-buckets.

        Args:
            planned: The plan.
            options: Options of the plan.
            original: Problem before cost shifting, for an optimum.
        """

        def work(budget: Budget) -> Result:
            if described(self.question.task).is_optimum and original is not None:
                from elimina.methods.mini_buckets import bounded_optimum

                return bounded_optimum(self.begun(planned, budget), {}, original)
            if planned.plan.minibuckets is None:
                return eliminate(self.begun(planned, budget), {})
            from elimina.methods.weighted_mini_buckets import bounded_sum

            return bounded_sum(
                self.begun(planned, budget), options.after_growth(budget.growth_bytes), {}, budget.report
            )

        return Strategy(self.run, "bounds", work, planned.plan)

    def report_progress(self, share: float) -> None:
        """Report the finished share of the work to the user's function, if there is one."""
        if callable(self.options.progress):
            self.run.notify(self.options.progress, share)


def _log_plan(plan: Plan) -> None:
    """Log the statistics of a plan."""
    if not logger.isEnabledFor(logging.INFO):
        return
    bounds = "" if plan.minibuckets is None else f"mini-buckets of i-bound {plan.minibuckets.ibound}, "
    sliced = f", {counted(plan.form.slices, 'slice', is_rounded=True)}" if plan.form.variables else ""
    limit = "" if plan.fits else f", which exceeds the limit of {bytes_text(plan.memory_limit)}"
    logger.info(
        f"plan: {bounds}width {plan.width}, {bytes_text(plan.peak_bytes)} on {plan.device}{sliced}{limit}; about "
        f"{seconds_text(plan.seconds)}"
    )


def _eliminate(inquiry: MarginalQuery | None, execution: Execution, options: CheckedOptions) -> Result:
    if inquiry is not None:
        from elimina.methods.marginals import posteriors

        return posteriors(inquiry, execution, options, {})
    if execution.checkpoint is not None and not execution.plan.form.is_resident:
        raise InputError(
            "a checkpoint cannot be combined with tables that pass through memory in tiles; leave out "
            f"{option('checkpoint')} or {option('scratch')}, or give more memory ({option('memory')})"
        )
    result = eliminate(execution, {})
    if execution.checkpoint is not None:
        execution.checkpoint.remove()
    return result
