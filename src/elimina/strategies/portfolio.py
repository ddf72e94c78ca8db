"""The strategies of one question, in an order that depends on the results so far."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from elimina import system
from elimina.display import bytes_text, count_text, seconds_text
from elimina.errors import DeviceError, InputError, MemoryLimitError
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.first_bounds import first_bounds
from elimina.methods.local_search import first_assignment
from elimina.methods.paused_search import PausedSearch
from elimina.model.model import Model
from elimina.model.states import Evidence
from elimina.planning.listed_tables import seconds_written
from elimina.planning.machine import BOUNDED_TABLE_SECONDS
from elimina.planning.options import Options
from elimina.planning.order import Order
from elimina.planning.ordering import is_rough_enough, is_settled, quick_order, rough_order
from elimina.planning.plan import Plan
from elimina.problem.evidence import indices_asked, known_total, observe, values_there
from elimina.problem.observations import assignment_of
from elimina.problem.preparation import Problem, prepare
from elimina.problem.tasks import Task, described
from elimina.result import Result
from elimina.running.advice import does_not_fit
from elimina.running.budget import Budget
from elimina.running.execution import Execution
from elimina.running.garbage_collection import without_collection
from elimina.running.host import host_memory, turn_share
from elimina.running.memory_shares import can_copy, cells_of
from elimina.running.plan_choice import MIN_WRITING_SECONDS, plan_problem, without_lost_devices
from elimina.running.planned_problem import PlannedProblem
from elimina.strategies.call import FIRST_BOUNDS_AGE_SECONDS, Call
from elimina.strategies.call_plan import PlannedCall, Preparation, plan_call
from elimina.strategies.schedule import (
    HOPELESS_SECONDS,
    SEARCHED_FROM_SECONDS,
    before_planning,
    by_search,
    clusters_first,
    filtering,
    is_long,
    is_out_of_reach,
    is_worth_bounds,
    search_for_a_while,
    search_to_the_end,
)
from elimina.strategies.strategy import Attempt, Portfolio, Strategy

if TYPE_CHECKING:
    from elimina.methods.cost_shifting import ShiftedProblem
    from elimina.methods.junction_structure import MarginalQuery
    from elimina.running.checkpoint import Checkpoint

logger = logging.getLogger("elimina")

_MANY_TABLES = 200
"""Tables from which first bounds are made before there is need of them."""

_FIRST_SHARE = 8
"""Part of the memory for their copies of tables: others come beside them."""

_LEAST_SECONDS = 1e-3
"""Least seconds that a plan is made for, however little time is left."""

_TOO_LONG = 4.0
"""Estimated seconds of an optimum's elimination, for each second that is left, from which search goes on instead."""

MAX_REFINEMENTS = 6
"""Times that rows are made again in finer slices."""


class Question(NamedTuple):
    """Arguments of a question: see ``elimina.solve``."""

    model: Model
    task: Task
    evidence: Evidence
    query: Sequence[str | int] | None


class Solver:
    """The strategies that answer a question, tried one after another.

    Args:
        question: Question to answer.
        options: Options of the plan and the strategy for optima.
        run: The call, which keeps what is found.
        kept: Checkpoint that keeps what elimination knows.
    """

    def __init__(self, question: Question, options: Options, run: Call, kept: Checkpoint | None = None) -> None:
        self.question, self.options, self.run, self._kept = question, options, run, kept
        run.sign = question.model.sign
        self._first: Preparation | None = None
        self._paused = PausedSearch()
        self._ladder: Iterator[PlannedProblem] | None = None
        self._grown = 0  # bytes, while it prepared and found orders: a plan counts them as its own

    def begin(self) -> None:
        """Prepare the problem, and keep the user's assignment, if there is one."""
        model, task, _, query = self.question
        asked = indices_asked(model, task, query)
        self.options = self.options._replace(upper_bound=known_total(model, self.options.upper_bound))
        if not described(task).is_marginal:
            self._prepare(asked)
        if self.options.hint is not None:
            self._take(self.options.hint)

    def portfolio(self) -> Portfolio:
        """Yield the strategies, each chosen by the results so far."""
        self.begin()
        if self._kept is None and described(self.question.task).is_optimum:
            outcome = yield from self._before_planning()
            if self.options.looks_for_optimum:
                return outcome
        if self._may_be_bounded():
            yield from self._quick_bounds()
        return (
            yield from self._bounds(self.options) if self.options.method == "mbe" else self._elimination(self.options)
        )

    @without_collection()
    def _prepare(self, asked: tuple[int, ...] | None) -> None:
        """Prepare the problem, and provide first bounds: at the end of the call, or now if that were too late."""
        model, task, evidence, _ = self.question
        with self.run.phase("prepare"), self._for_planning():
            observed = observe(model, task, evidence, asked)
            problem = prepare(observed.model, described(task).problem or task, observed.values, asked)
            self._first = Preparation(problem)

            def bounds(seconds: float) -> Result | None:
                room = host_memory(self.options) / _FIRST_SHARE
                found = first_bounds(problem, seconds, self.options.upper_bound, room)
                if found is None or problem.task == task:
                    return found
                # An optimum is not yet the answer to a question about optima.
                return found.replace(task=task, status="bounded" if found.status == "optimal" else found.status)

            if not described(task).has_first_bounds:
                return
            if self.run.deadline is None or len(problem.tables) < _MANY_TABLES:
                self.run.fallback = bounds
                self.run.fallback_after = max(FIRST_BOUNDS_AGE_SECONDS, BOUNDED_TABLE_SECONDS * len(problem.tables))
            elif (found := bounds(math.inf)) is not None:
                self.run.fallback = lambda _: found

    def _take(self, hint: Evidence) -> None:
        """Complete the user's assignment, and keep it as the best one so far."""
        with self.run.phase("hint"):
            model = self.question.model
            given = values_there(model, assignment_of(model, hint, "hint"), self._problem.model)
            found = first_assignment(self._problem, given, self.options, host_memory(self.options))
        if found is not None:
            self.run.learn(found)

    @property
    def _problem(self) -> Problem:
        assert self._first is not None
        return self._first.problem

    def _before_planning(self) -> Portfolio:
        """Filter or search before anything is planned, if it may be better."""
        problem = self._problem
        if self.options.method == "search" or self._is_unfit_for_filtering():
            if self.options.needs_gpu:
                logger.info("soft local consistency first, on the CPU; the GPU eliminates the mini-buckets that follow")
            return (yield by_search(problem, self.options, self.run, self._paused))
        if self.options.looks_for_optimum:
            return (yield filtering(problem, self.options, self.run, math.inf))
        if self.options.method == "auto" and not self._is_short_on_rows():
            orders = self._rough_order, self._quick_order
            return (yield from before_planning(problem, *orders, self.options, self.run, self._paused))
        return Attempt()

    def _is_short_on_rows(self) -> bool:
        """Return whether a plan on sparse tables takes less time than search, which would write listed tables out."""
        problem, options = self._problem, self.options
        if options.tables == "dense" or seconds_written(problem) < MIN_WRITING_SECONDS:
            return False
        rough = self._rough_order()
        if not is_long(rough, options):
            return False
        if isinstance(options.order, str):
            options = options._replace(order=rough.order)
        with self.run.phase("plan"), self._for_planning():
            plan = plan_problem(problem, options.beside(self.run.held)).plan
        return plan.sparse is not None and plan.fits and plan.seconds < SEARCHED_FROM_SECONDS

    def _is_unfit_for_filtering(self) -> bool:
        """Return whether search alone can use the upper bound, where the method is open."""
        if self.options.method != "auto" or self.options.upper_bound is None:
            return False
        if self.options.needs_gpu or self.options.tables == "sparse":
            return not self._problem.model.is_integer
        from elimina.methods.filtering import reason_unsupported

        return reason_unsupported(self._problem) is not None

    def _quick_bounds(self) -> Portfolio:
        """Bound a large sum by small mini-buckets in a quick order, before the search for a good order."""
        options, problem = self.options, self._problem
        if not isinstance(options.order, str) or options.tables == "sparse":
            return Attempt()
        # Mini-buckets are dense.
        if options.tables == "auto" and seconds_written(problem) > MIN_WRITING_SECONDS:
            return Attempt()
        if not is_worth_bounds(self._rough_order(), self._quick_order, options):
            return Attempt()
        logger.info("bounds first: elimination may take long")
        rung = self._next_rung()
        return Attempt() if rung is None else (yield rung)

    def _next_rung(self) -> Strategy | None:
        """Return the next run of the ladder of mini-buckets; None at its end."""
        from elimina.methods.cost_shifting import ShiftedProblem
        from elimina.methods.weighted_mini_buckets import MAX_RUNG_SECONDS, ladder

        run, options, longest = self.run, self.options, math.inf
        if options.method != "mbe":
            options, longest = options.for_bounds, MAX_RUNG_SECONDS
        if self._ladder is None:
            self._ladder = ladder(self._problem, lambda: options.beside(run.held), lambda: run.seconds, longest)
        with run.phase("plan"):
            planned = next(self._ladder, None)
        return None if planned is None else self._bounding(planned, options, ShiftedProblem(self._problem, None))

    def _rough_order(self) -> Order:
        """Find a quick order of the problem, once."""
        assert self._first is not None
        if self._first.rough is None:
            with self.run.phase("order"), self._for_planning():
                self._first = self._first._replace(rough=rough_order(self._first.problem, self.options))
        assert self._first.rough is not None
        return self._first.rough

    def _quick_order(self, seconds: float) -> Order:
        """Find a better order by a short search, and keep it in place of the quick one."""
        rough = self._rough_order()
        if is_settled(rough):
            return rough
        with self.run.phase("order"), self._for_planning():
            found = quick_order(self._problem, self.options, seconds)
        if rough.total_cells < found.total_cells:
            # So much time has gone into it that a search of the same length is not worth while.
            found = dataclasses.replace(rough, method=found.method, seconds=rough.seconds + found.seconds)
        assert self._first is not None
        self._first = self._first._replace(rough=found)
        return found

    def _bounds(self, options: Options) -> Portfolio:
        """Mini-buckets, small ones first; the largest with costs shifted and without, by contents and by scopes.

        Args:
            options: Options of the largest ones.
        """
        outcome = Attempt()
        if is_long(self._rough_order(), self.options):
            while (rung := self._next_rung()) is not None:
                outcome = _better(outcome, (yield rung))
        for shift in dict.fromkeys((options.shift, "none")):
            for partition in ("auto", "scope") if options.partition == "auto" else (options.partition,):
                one = options._replace(shift=shift, partition=partition, order=self._known_order() or options.order)
                last = yield from self._elimination(one)
                # An i-bound that is asked for has to fit.
                outcome = last if self.options.ibound not in (None, "auto") else _better(outcome, last)
                if last.found is not None and last.found.stats.get("partition") != "content":
                    break
        return outcome

    def _known_order(self) -> tuple[int, ...] | None:
        """Return the order of a plan that was made, with the variables that no table of shifted costs depends on."""
        if self._first is None or self._first.order is None:
            return None
        order = tuple(self._first.order)
        return (*sorted(set(self._first.problem.free).difference(order)), *order)

    def _elimination(self, options: Options) -> Portfolio:
        """Plan and run; if sparse tables do not fit, run in finer slices, or with dense tables."""
        rows: MemoryLimitError | None = None
        refinements = 0
        while True:
            (found, failure), plan = yield from self._planned(options, refinements)
            if plan is None or not isinstance(failure, MemoryLimitError):
                return Attempt(found, failure)
            if rows is not None:
                return Attempt(None, MemoryLimitError(f"{failure}. Rows were tried, too: {rows}"))
            refinements += 1
            logger.info("elimination ran out of memory: %s", failure)
            if self._is_worth_finer_slices(plan, options, refinements):
                logger.info("more slices are tried")
                continue
            if plan.sparse is None or options.tables != "auto":
                return Attempt(None, failure)
            rows = failure
            options = options._replace(tables="dense")
            logger.info("dense tables are tried")

    def _planned(self, options: Options, refinements: int) -> Generator[Strategy, Attempt, tuple[Attempt, Plan | None]]:
        """Plan, and run the plan; None is returned if another strategy answered."""
        is_free = self.options.method == "auto" and described(self.question.task).is_optimum and self._kept is None
        turns = is_free and not options.asks_for_slices
        first = options
        if turns:
            first = options._replace(slices="never")
        if turns and isinstance(options.order, str):
            rough = self._rough_order()
            if is_out_of_reach(rough, options):
                first = first._replace(order=rough.order)
            elif not is_rough_enough(self._problem, options, rough):
                first = first._replace(order_seconds=options.order_seconds * turn_share(options))
        prepared = self.plan(first, refinements)
        is_out = prepared.planned.plan.has_large_steps
        if is_out and not (is_free and self._can_search(options)):
            return Attempt(None, MemoryLimitError(does_not_fit(prepared.planned.plan))), None
        if turns and not is_out:
            yield from clusters_first(prepared.planned, options, self.run)
            yield from search_for_a_while(prepared.planned, options, self.run, self._paused)
            self._paused.clear()
            plan = prepared.planned.plan
            if not plan.fits and options.slices == "auto" and plan.seconds < HOPELESS_SECONDS:
                prepared = self.plan(options, refinements)
        planned = prepared.planned
        if is_free and not planned.plan.fits:
            problem, reason = planned.problem, does_not_fit(planned.plan)
            # A plan that does not fit may itself be large.
            del prepared, planned
            return (yield from search_to_the_end(problem, reason, options, self.run)), None
        if turns and planned.plan.seconds > _TOO_LONG * self.run.seconds:
            logger.info("search to the end: elimination would not end in time")
            outcome = yield from search_to_the_end(planned.problem, "", options, self.run)
            if outcome.failure is None:
                return outcome, None
        if self._is_bounded_instead(planned.plan, options):
            return (yield from self._bounds_instead(planned, options)), None
        if self.options.on_plan is not None:
            self.run.tell(self.options.on_plan, planned.plan)
        return (yield self._execution(prepared, options)), planned.plan

    def _can_search(self, options: Options) -> bool:
        """Return whether the copies of tables that a search works on fit."""
        problem, left = self._problem, options.beside(self.run.held)
        return can_copy(cells_of(problem), len(problem.groups), host_memory(left))

    def _bounds_instead(self, planned: PlannedProblem, options: Options) -> Portfolio:
        """Mini-buckets as large as time allows, small ones first, in the order of a plan that does not fit."""
        from elimina.methods.weighted_mini_buckets import affordable_ibounds

        logger.info("mini-buckets bound the sum, as no plan fits")
        order, options = planned.plan.whole.order, options.for_bounds
        ibound = affordable_ibounds(planned.problem, order, options.beside(self.run.held), self.run.deadline)[-1]
        return (yield from self._bounds(options._replace(ibound=ibound, order=order)))

    def _may_be_bounded(self) -> bool:
        """Return whether bounds on a sum may stand for it."""
        return self._kept is None and self.question.task == "pr" and self.options.method in ("auto", "mbe")

    def _is_bounded_instead(self, plan: Plan, options: Options) -> bool:
        """Return whether a sum that does not fit is bounded."""
        return self._may_be_bounded() and options.ibound is None and not plan.fits

    def _is_worth_finer_slices(self, plan: Plan, options: Options, refinements: int) -> bool:
        """Return whether rows that turned out too many may be made in slices, or in more of them."""
        return (
            options.tables == "sparse"
            and plan.fits
            and described(plan.task).merges_slices
            and options.slices != "never"
            and refinements <= MAX_REFINEMENTS
            and self._kept is None
        )

    @without_collection()
    def plan(self, options: Options, refinements: int = 0) -> PlannedCall:
        """Plan the prepared problem, beside what the call holds once it is planned; see ``plan_call``."""
        held = max(0, self.run.held - self._grown)
        prepared = self._plan(options.beside(held), refinements)
        plan = prepared.planned.plan
        needed = plan.bytes.get("host", 0) - plan.planning_bytes
        if plan.fits and self._is_beyond(options, needed):
            system.release_memory()
            if self._is_beyond(options, needed):
                held = self.run.held
                prepared = self._plan(options.beside(held), refinements)
        return self._explained(prepared, options, held)

    def _explained(self, prepared: PlannedCall, options: Options, held: int) -> PlannedCall:
        """Return a plan with a limit that would be enough, if it does not fit the one that is given."""
        plan = prepared.planned.plan
        if plan.fits or options.room is None or not plan.on_host:
            return prepared
        held = held if options.is_shared else 0
        plan = plan._replace(held=held, enough=options.limit_for(plan.whole.peak_bytes, held))
        return prepared._replace(planned=prepared.planned._replace(plan=plan))

    @contextlib.contextmanager
    def _for_planning(self) -> Iterator[None]:
        """Add the bytes by which the process grows to those that count as the plan's."""
        before = self.run.held
        yield
        self._grown += max(0, self.run.held - before)

    def _is_beyond(self, options: Options, needed: int) -> bool:
        """Return whether so many bytes are more than a limit has left beside what the call holds."""
        room = options.beside(self.run.held).room
        return options.is_shared and room is not None and needed > room

    def _plan(self, options: Options, refinements: int) -> PlannedCall:
        model, task, evidence, query = self.question
        limit = max(_LEAST_SECONDS, self.run.seconds)
        with self.run.phase("plan") as parts:
            prepared = plan_call(
                model, task, evidence, query, options, limit, self._kept, first=self._first, refinements=refinements
            )
            parts.update(prepared.planned.seconds)
        self._first, plan = prepared.first, prepared.planned.plan
        if not described(task).is_marginal:
            self._first = self._first._replace(order=plan.whole.order)
        _log_plan(plan)
        return prepared._replace(planned=prepared.planned._replace(seconds={}))

    def _execution(self, prepared: PlannedCall, options: Options) -> Strategy:
        """Return the run of a plan."""
        first, planned, original = prepared
        if planned.plan.minibuckets is not None or original is not None:
            return self._bounding(planned, options, original)

        def work(budget: Budget) -> Result:
            execution = self.begun(planned, budget)._replace(checkpoint=self._kept, learn=budget.learn)
            try:
                return _eliminate(first.inquiry, execution, options)
            except DeviceError as error:
                rest = None if planned.plan.shards is None else without_lost_devices(planned, options)
                if rest is None:
                    raise
                logger.warning("a plan that was divided among devices starts again on those that are left: %s", error)
                others = execution._replace(plan=rest.plan, backend=rest.backend)
            return _eliminate(first.inquiry, others, options)

        return Strategy(self.run, "eliminate", work, planned.plan)

    def begun(self, planned: PlannedProblem, budget: Budget) -> Execution:
        """Return a plan that begins to run."""
        return Execution(planned.problem, planned.plan, planned.backend, self.tell_progress, budget.deadline)

    def _bounding(self, planned: PlannedProblem, options: Options, original: ShiftedProblem | None) -> Strategy:
        """Return the run of a plan with mini-buckets; an optimum's was made from the original problem."""

        def work(budget: Budget) -> Result:
            if described(self.question.task).is_optimum and original is not None:
                from elimina.methods.mini_buckets import bounded_optimum

                return bounded_optimum(self.begun(planned, budget), {}, original)
            if planned.plan.minibuckets is None:
                return eliminate(self.begun(planned, budget), {})
            from elimina.methods.weighted_mini_buckets import bounded_sum

            return bounded_sum(self.begun(planned, budget), options.beside(budget.held), {}, budget.learn)

        return Strategy(self.run, "bounds", work, planned.plan)

    def tell_progress(self, share: float) -> None:
        """Tell the user's function the share of the work that is done."""
        if callable(self.options.progress):
            self.run.tell(self.options.progress, share)


def _better(one: Attempt, other: Attempt) -> Attempt:
    """Return the later one of two attempts that have not failed, or the one that has not."""
    return one if other.found is None and one.found is not None else other


def _log_plan(plan: Plan) -> None:
    """Log the figures of a plan."""
    if not logger.isEnabledFor(logging.INFO):
        return
    bounds = "" if plan.minibuckets is None else f"mini-buckets of i-bound {plan.minibuckets.ibound}, "
    sliced = "" if plan.slicing is None else f", {count_text(plan.slicing.number)} slices"
    limit = "" if plan.fits else f", which exceeds the limit of {bytes_text(plan.memory_limit)}"
    logger.info(
        f"plan: {bounds}width {plan.width}, {bytes_text(plan.peak_bytes)} on {plan.device}{sliced}{limit}; about "
        f"{seconds_text(plan.seconds)}"
    )


def _eliminate(inquiry: MarginalQuery | None, execution: Execution, options: Options) -> Result:
    if inquiry is not None:
        from elimina.methods.marginals import posteriors

        return posteriors(inquiry, execution, options, {})
    if execution.checkpoint is not None and execution.plan.stream is not None:
        raise InputError(
            "a checkpoint cannot be combined with tables that pass through memory in tiles; leave out --checkpoint or "
            "--scratch, or give more memory (--memory)"
        )
    result = eliminate(execution, {})
    if execution.checkpoint is not None:
        execution.checkpoint.remove()
    return result
