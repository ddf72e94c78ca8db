"""One question, and the ways to answer it in turn: what each finds is kept by the call, whatever ends it."""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from elimina.errors import InputError, MemoryLimitError
from elimina.inference.anytime import FIRST_BOUNDS_AFTER, Part, Run
from elimina.inference.bucket import eliminate
from elimina.inference.call import First, Prepared, indices_asked, observe, plan_call
from elimina.inference.choose import LISTED_SECONDS, Planned, host_memory
from elimina.inference.execution import Execution
from elimina.inference.known import first_bounds
from elimina.inference.method import LARGE_WORK, Search
from elimina.inference.options import Options
from elimina.inference.ordering import elimination_order, rough_order
from elimina.inference.shield import uncollected
from elimina.inference.shifting import Original
from elimina.model import Model
from elimina.order import Order
from elimina.planning.listing import seconds_written
from elimina.planning.machine import BOUNDED_TABLE_SECONDS
from elimina.planning.plan import Plan, bytes_text, count_text, seconds_text
from elimina.planning.prepare import Problem, prepare
from elimina.result import Result
from elimina.states import Evidence, indices_of
from elimina.tasks import Task

if TYPE_CHECKING:
    from elimina.inference.checkpoint import Checkpoint
    from elimina.inference.marginals import Inquiry

logger = logging.getLogger("elimina")

_MANY_TABLES = 200
"""Tables from which first bounds are made before there is need of them."""

_FIRST_SHARE = 8
"""Part of the memory for their copies of tables: others come beside them."""

_LEAST_SECONDS = 1e-3
"""Least seconds that a plan is made for, however little time is left."""

_MOST_REFINED = 6
"""Times that rows are made again in finer slices."""


class Question(NamedTuple):
    """Arguments of a question: see ``elimina.solve``."""

    model: Model
    task: Task
    evidence: Evidence
    query: Sequence[str | int] | None


class Solver:
    """The ways to answer a question, in turn.

    Args:
        question: Question to answer.
        options: Options of the plan and the strategy for optima.
        run: The call, which keeps what is found.
    """

    def __init__(self, question: Question, options: Options, run: Run) -> None:
        self.question, self.options, self.run = question, options, run
        self.search = Search(options.method, options.upper_bound, float(options.gap))
        run.sign = 1 if question.model.sense == "min-cost" else -1
        self._kept: Checkpoint | None = None
        self._order: tuple[int, ...] = ()
        self._first: Problem | None = None
        self._rough: Order | None = None

    def solve(self, kept: Checkpoint | None = None) -> None:
        """Answer, and keep what elimination knows in a checkpoint."""
        self._kept = kept
        model, task, _, query = self.question
        indices_asked(model, task, query)
        try:
            if self.question.task == "mmap":
                self._marginal_map()
            elif not self._before_planning():
                if self.search.method == "mbe":
                    self._bounds()
                else:
                    self._attempt(self.options)
        finally:
            if kept is not None:
                kept.close()

    @property
    def _is_over(self) -> bool:
        return self.search.is_end(self.run)

    def _before_planning(self) -> bool:
        """Filter, search, or bound a large sum before anything is planned, if it may be better.

        Returns:
            True if that is the answer.
        """
        task, search = self.question.task, self.search
        if task == "mar":
            return False
        with self.run.phase("prepare"):
            problem = self._first = self._problem()
            self._bound_first(problem)
        if self._kept is not None:
            return False
        if task == "pr" and search.method in ("auto", "mbe"):
            self._bound_quickly(problem)
        if task != "mpe" or search.method not in ("auto", "filter", "search"):
            return self._is_over
        if search.method == "search":
            search.by_search(problem, self.options, self.run)
        elif problem.model.is_integer or self.options.looks_for_optimum:
            search.try_filtering(problem, self._rough_order, self.options, self.run)
        return self.options.looks_for_optimum or self._is_over

    def _bound_first(self, problem: Problem) -> None:
        """Provide first bounds: at the end of the call, or now if they would take too long then."""

        def bounds(seconds: float) -> Result | None:
            return first_bounds(problem, seconds, self.search.upper_bound, host_memory(self.options) / _FIRST_SHARE)

        if self.run.deadline is None or len(problem.tables) < _MANY_TABLES:
            self.run.fallback = bounds
            self.run.fallback_after = max(FIRST_BOUNDS_AFTER, BOUNDED_TABLE_SECONDS * len(problem.tables))
        elif (found := bounds(math.inf)) is not None:
            self.run.fallback = lambda _: found

    @uncollected()
    def _problem(self) -> Problem:
        observed = observe(self.question.model, self.question.task, self.question.evidence)
        return prepare(observed.model, self.question.task, observed.values)

    def _bound_quickly(self, problem: Problem) -> None:
        """Bound a large sum by small mini-buckets in a quick order, before a good order is looked for."""
        from elimina.inference.weighted import quick_bounds

        options = self.options
        if not isinstance(options.order, str) or options.tables == "sparse":
            return
        # Mini-buckets are dense.
        if options.tables == "auto" and seconds_written(problem) > LISTED_SECONDS:
            return
        if self._rough_order().total_cells >= LARGE_WORK:
            logger.info("bounds first: elimination may take long")
            with contextlib.suppress(MemoryLimitError):
                self.run.strategy("bounds", lambda: quick_bounds(problem, options, self.run.deadline, self.run.learn))

    def _rough_order(self) -> Order:
        """Find a quick order of the problem, once."""
        assert self._first is not None
        if self._rough is None:
            with self.run.phase("order"):
                self._rough = rough_order(self._first, self.options)
        return self._rough

    def _bounds(self) -> None:
        """Mini-buckets, small ones first; the largest with costs shifted and without, by contents and by scopes."""
        from elimina.inference.weighted import QUICK_ORDER, QUICK_ORDER_SECONDS, rungs

        problem, options, run = self._first, self.options, self.run
        assert problem is not None
        if self._rough_order().total_cells >= LARGE_WORK:
            quick = options
            if isinstance(options.order, str):
                quick = options._replace(order=QUICK_ORDER, order_seconds=QUICK_ORDER_SECONDS)
            with run.phase("order"):
                order = elimination_order(problem, quick)
            ladder = rungs(problem, order, options, run.seconds)
            while (planned := self._next(ladder)) is not None:
                with contextlib.suppress(MemoryLimitError):
                    self._run_bounds(planned, options, Original(problem, None))
                if self._is_over:
                    return
        self._largest_bounds()

    def _next(self, ladder: Iterator[Planned]) -> Planned | None:
        with self.run.phase("plan"):
            return next(ladder, None)

    def _largest_bounds(self) -> None:
        options = self.options
        for shift in dict.fromkeys((options.shift, "none")):
            for partition in ("auto", "scope") if options.partition == "auto" else (options.partition,):
                one = options._replace(shift=shift, partition=partition, order=self._order or options.order)
                is_last = shift == "none" and partition != "auto"
                with contextlib.suppress(*() if is_last else (MemoryLimitError,)):
                    found = self._attempt(one)
                    if self._is_over:
                        return
                    if found is not None and found.stats.get("partition") != "content":
                        break

    def _attempt(self, options: Options) -> Result | None:
        """Plan and run; what rows cannot hold is run without them."""
        prepared = self._prepared(options)
        if prepared is None:
            return None
        planned = prepared.planned
        self._order = planned.plan.whole.order
        if self._is_bounded_instead(planned.plan, options):
            self._bounds_instead(planned, options)
            return None
        if self.options.on_plan is not None:
            self.run.tell(self.options.on_plan, planned.plan)
        try:
            return self._execute(prepared, options)
        except MemoryLimitError as error:
            finer = options._replace(refined=options.refined + 1)
            logger.info("elimination ran out of memory: %s", error)
            if self._is_worth_finer_slices(planned.plan, finer):
                logger.info("more slices are tried")
                return self._attempt(finer)
            if planned.plan.sparse is None or options.tables != "auto":
                raise
            rows = error
        logger.info("dense tables are tried")
        try:
            return self._attempt(finer._replace(tables="dense"))
        except MemoryLimitError as error:
            raise MemoryLimitError(f"{error}. Rows were tried, too: {rows}") from rows

    def _bounds_instead(self, planned: Planned, options: Options) -> None:
        """Mini-buckets as large as time allows, small ones first, in the order of a plan that does not fit."""
        from elimina.inference.weighted import affordable

        logger.info("mini-buckets bound the sum, as no plan fits")
        order, options = planned.plan.whole.order, options.for_bounds
        for ibound in affordable(planned.problem, order, options, self.run.deadline):
            self.options = options._replace(ibound=ibound, order=order)
            self._largest_bounds()
            if self._is_over:
                break

    def _is_bounded_instead(self, plan: Plan, options: Options) -> bool:
        """Return whether a sum that does not fit is bounded."""
        is_free = self.search.method == "auto" and self.question.task == "pr" and self._kept is None
        return is_free and options.ibound is None and not plan.fits

    def _is_worth_finer_slices(self, plan: Plan, options: Options) -> bool:
        """Return whether rows that turned out too many may be made in slices, or in more of them."""
        return (
            options.tables == "sparse"
            and plan.fits
            and plan.task in ("mpe", "pr", "count")
            and options.slices != "never"
            and options.refined <= _MOST_REFINED
            and self._kept is None
        )

    def _prepared(self, options: Options) -> Prepared | None:
        """Return a plan to run; None where what was tried is the answer."""
        is_free = self.search.method == "auto" and self.question.task == "mpe" and self._kept is None
        # Who names a number of slices, or a directory, wants elimination with them.
        turns = is_free and options.scratch is None and options.slices in ("auto", "never")
        prepared = self._plan(options._replace(slices="never") if turns else options)
        if turns:
            self.search.for_a_while(prepared.planned, options, self.run)
            if self._is_over:
                return None
            if not prepared.planned.plan.fits and options.slices == "auto":
                prepared = self._plan(options)
        if is_free and not prepared.planned.plan.fits:
            self.search.to_the_end(prepared.planned, options, self.run)
            return None
        return prepared

    @uncollected()
    def _plan(self, options: Options) -> Prepared:
        model, task, evidence, query = self.question
        limit = max(_LEAST_SECONDS, self.run.seconds)
        with self.run.phase("plan") as parts:
            first = None if self._first is None else First(self._first, self._rough)
            prepared = plan_call(model, task, evidence, query, options, limit, self._kept, first=first)
            parts.update(prepared.planned.seconds)
        _log_plan(prepared.planned.plan)
        return prepared._replace(planned=prepared.planned._replace(seconds={}))

    def _execute(self, prepared: Prepared, options: Options) -> Result:
        """Run a plan."""
        inquiry, planned, original = prepared
        run = self.run
        execution = Execution(planned.problem, planned.plan, planned.backend, self._tell_progress, run.deadline)
        if planned.plan.minibuckets is not None or original is not None:
            return self._run_bounds(planned, options, original)
        execution = execution._replace(checkpoint=self._kept, learn=run.learn)
        return run.strategy("eliminate", lambda: _eliminate(inquiry, execution, options))

    def _run_bounds(self, planned: Planned, options: Options, original: Original | None) -> Result:
        """Run a plan with mini-buckets; an optimum's was made from the original problem."""
        run = self.run
        execution = Execution(planned.problem, planned.plan, planned.backend, self._tell_progress, run.deadline)
        if self.question.task == "mpe" and original is not None:
            from elimina.inference.minibucket import bounded_optimum

            return run.strategy("bounds", lambda: bounded_optimum(execution, {}, original))
        from elimina.inference.weighted import bounded_sum

        return run.strategy("bounds", lambda: bounded_sum(execution, options, {}, run.learn))

    def _tell_progress(self, share: float) -> None:
        if callable(self.options.progress):
            self.run.tell(self.options.progress, share)

    def _marginal_map(self) -> None:
        """Sum out, and find the best values of what is left by the method that is asked for."""
        from elimina.inference.marginal_map import marginal_map, translated

        options, run, search = self.options, self.run, self.search
        model, _, evidence, query = self.question
        with run.phase("prepare"):
            observed = observe(model, "mmap", evidence)
            self._bound_first(prepare(observed.model, "mmap", observed.values, indices_of(model, query or (), "query")))
        planned = self._plan(options._replace(ibound=None)).planned
        problem = planned.problem
        if not planned.plan.fits and search.method in ("auto", "mbe"):
            from elimina.inference.weighted import bounded_marginal_map

            run.strategy(
                "bounds", lambda: bounded_marginal_map(planned, options, self._tell_progress, run.deadline, run.learn)
            )
            return
        if self.options.on_plan is not None:
            run.tell(self.options.on_plan, planned.plan)

        def optimise(rest: Model) -> Result:
            part = Part(run, lambda found: translated(problem, found), "max")
            own = options._replace(
                order=options.order if isinstance(options.order, str) else "auto",
                on_plan=None,
                progress=None,
                refined=0,
                is_kept=False,
            )
            own = own._replace(ibound="auto" if search.method == "mbe" and own.ibound is None else own.ibound)
            Solver(Question(rest, "mpe", {}, None), own, part).solve()
            assert part.known is not None
            return part.known

        run.strategy("sum out", lambda: marginal_map(planned, {}, optimise, self._tell_progress))


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


def _eliminate(inquiry: Inquiry | None, execution: Execution, options: Options) -> Result:
    if inquiry is not None:
        from elimina.inference.marginals import posteriors

        return posteriors(inquiry, execution, options, {})
    if execution.checkpoint is not None and execution.plan.stream is not None:
        raise InputError(
            "a checkpoint does not go with tables that pass through memory in tiles; leave one of --checkpoint and "
            "--scratch out, or give more memory"
        )
    result = eliminate(execution, {})
    if execution.checkpoint is not None:
        execution.checkpoint.remove()
    return result
