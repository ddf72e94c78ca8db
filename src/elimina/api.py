"""The two calls that most programs need: ``plan`` and ``solve``."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from elimina import arguments
from elimina.backends.host import memory_errors_in_words
from elimina.errors import InputError, MemoryLimitError, TimeLimitError
from elimina.inference.bucket import eliminate
from elimina.inference.call import Prepared, observe, plan_call
from elimina.inference.choose import ORDER_SECONDS, Division, Options, Planned, Shift, Slices, Tables
from elimina.inference.execution import Execution
from elimina.inference.method import OptimumMethod, Search
from elimina.io import ModelLike, as_model
from elimina.model import Model
from elimina.order import Method
from elimina.planning.minibuckets import IBound
from elimina.planning.plan import Plan
from elimina.planning.prepare import Task, prepare
from elimina.result import Result
from elimina.states import Evidence

if TYPE_CHECKING:
    from elimina.inference.checkpoint import Checkpoint
    from elimina.inference.filtering import Listener
    from elimina.inference.marginals import Inquiry

_MOST_REFINED = 6
"""Times that rows are made again in finer slices."""


@memory_errors_in_words("while it planned")
def plan(
    model: ModelLike,
    task: Task = "mpe",
    *,
    evidence: Evidence | None = None,
    query: Sequence[str | int] | None = None,
    device: str = "auto",
    memory: int | str | None = None,
    order: Method | Sequence[int | str] = "auto",
    order_seconds: float = ORDER_SECONDS,
    seed: int = 0,
    threads: int | None = None,
    dtype: str | None = None,
    slices: Slices = "auto",
    scratch: str | os.PathLike[str] | None = None,
    tables: Tables = "auto",
    ibound: IBound | None = None,
    shift: Shift = "all",
    partition: Division = "auto",
) -> Plan:
    """Plan an elimination without allocating anything for it; ``print`` the plan to see its figures.

    Args:
        model: Any model, or the path of a file that ``elimina.read`` takes.
        task: ``mpe``: the best assignment (the optimum of a WCSP, the most probable explanation of a network); ``pr``:
            the partition function, or the probability of the evidence; ``mar``: the posterior marginals; ``mmap``: the
            most probable values of the variables in the query, all others summed out; ``count``: the number of allowed
            assignments.
        evidence: Variable (name or index) -> its state, or (probability models) an array of likelihoods, one for each
            state. An index into named states is written ``elimina.StateIndex(1)``.
        query: ``mar``: the variables whose marginals are asked for; None for all. ``mmap``: those that are not summed
            out; the plan is for summing out the others.
        device: ``cpu``, ``cuda``, or ``auto``: the GPU if there is one and the work is worth its start.
        memory: Bytes that may be used on the device, a number or text such as ``8GiB``; None: what is free there, less
            a reserve.
        order: A method of ``elimina.order.find_order``, or the variables (names or indices) in elimination order.
        order_seconds: Time limit of the search for an order.
        seed: Of the search for an order.
        threads: CPU threads; None for all that the process may use.
        dtype: Override of the tables' dtype; by default the narrowest one that is exact.
        slices: What to do where the plan does not fit (``mpe``, ``pr``, ``count``). ``auto``: fix variables to each
            combination of their values in turn, if that takes no more than 65,536 slices and an estimated hour; a
            number: if it takes no more slices than that, however long; ``never``: do not.
        scratch: A directory for tables that memory does not hold; nothing is left there. None: none are kept on disk.
        tables: Whether steps work on rows, the feasible assignments alone. ``auto``: where so much is forbidden that
            this is expected to be faster, or nothing else fits; ``dense``: never; ``sparse``: all steps.
        ibound: ``mpe``, ``pr``: divide buckets into mini-buckets, so that no message has more variables than this; the
            plan then bounds the optimum, or (by weights) the sum from above. ``auto``: as many variables as the memory
            holds.
        shift: Where costs are shifted for better bounds: ``tables``: between tables, before anything is planned
            (``mpe``); ``clusters``: then between tables joined as mini-buckets do, too, where time and memory suffice
            for the i-bound (``mpe``); ``buckets``: between mini-buckets of a variable; ``all``: everywhere; ``none``:
            nowhere. What is solved by ``mbe`` runs without shifts, too, and the better bounds count.
        partition: How buckets are divided: ``scope``: tables that share most variables go together; ``content``
            (``mpe``): those whose joint message says most more than theirs apart, if the host has the memory for all
            of them; ``auto``: that, where it is quick.

    Returns:
        The plan; ``plan.fits`` says whether it stays within the memory.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: An option or the evidence does not fit the model, or the file of the model cannot be read.
        DeviceError: The device is missing or cannot be used.
        UnsupportedError: Rows are asked for, and the task or the dtype has none.
    """
    options = Options(
        device,
        arguments.memory_size("memory", memory),
        order,
        order_seconds,
        seed,
        threads,
        dtype,
        slices,
        arguments.path("scratch", scratch),
        tables,
        ibound,
        shift,
        partition,
    ).checked()
    return plan_call(as_model(model), task, evidence, query, options, shift_seconds=0.0).planned.plan


@memory_errors_in_words("while it solved the model")
def solve(
    model: ModelLike,
    task: Task = "mpe",
    *,
    evidence: Evidence | None = None,
    query: Sequence[str | int] | None = None,
    device: str = "auto",
    memory: int | str | None = None,
    order: Method | Sequence[int | str] = "auto",
    order_seconds: float = ORDER_SECONDS,
    seed: int = 0,
    threads: int | None = None,
    dtype: str | None = None,
    slices: Slices = "auto",
    scratch: str | os.PathLike[str] | None = None,
    tables: Tables = "auto",
    ibound: IBound | None = None,
    shift: Shift = "all",
    partition: Division = "auto",
    method: OptimumMethod = "auto",
    upper_bound: int | None = None,
    gap: float | str = 0.0,
    time_limit: float | None = None,
    on_plan: Callable[[Plan], None] | None = None,
    on_bounds: Listener | None = None,
    progress: Callable[[float], None] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Result:
    """Answer a task by bucket elimination, exactly where it fits.

    The optimum of integer costs may also be found by filtered elimination, which stores only rows that can be part of a
    better solution than the best one known, and divides the problem where these are too many: ``stats["method"]`` is
    then ``filter``.

    Marginals come from one junction tree, or from several eliminations without what is irrelevant to a group of
    variables, whichever is estimated to take less time: ``stats["structure"]`` says which. The latter take it that each
    distribution of a network sums to 1, which is checked when a network is read or made.

    Args:
        model: Any model, or the path of a file that ``elimina.read`` takes.
        task: See ``plan``.
        evidence: See ``plan``. Evidence of probability 0 is the answer ``infeasible``; where a query does not depend on
            the part of the evidence that contradicts itself, that part is not looked at.
        query: See ``plan``.
        device: See ``plan``.
        memory: See ``plan``.
        order: See ``plan``.
        order_seconds: See ``plan``.
        seed: See ``plan``.
        threads: See ``plan``.
        dtype: See ``plan``.
        slices: See ``plan``.
        scratch: See ``plan``.
        tables: See ``plan``.
        ibound: See ``plan``; with the methods ``mbe``, which takes ``auto`` by default, and ``search``, which starts
            with a small one and raises it.
        shift: See ``plan``.
        partition: See ``plan``.
        method: ``eliminate``: run the plan. ``mbe``: mini-bucket elimination. ``mpe``: it bounds the optimum from one
            side by itself, and from the other by the value of an assignment that it leads to (``bounded``, or
            ``optimal`` where both are the same). ``pr``: weighted mini-buckets (Liu and Ihler 2011) bound log10 Z from
            both sides. ``mmap``: where the summation does not fit, they bound the answer from above, and from below by
            the assignment that this leads to, whose sum is ``value`` if it is known exactly. ``filter``: filtered
            elimination (``mpe`` of integer costs; with ``cuda``, or ``sparse`` tables, by the plan's steps on rows).
            ``search`` (``mpe``; ``mmap``, of what is left): branch and bound, guided by mini-buckets and by soft local
            consistency in turns, which knows both bounds at any time. ``auto``: ``mpe``: filtered elimination and
            search first where a plan takes long, and by turns where nothing fits (neither with a checkpoint, for what
            they know is not kept); ``pr``, ``mmap``: elimination, or bounds of about a minute where nothing fits.
        upper_bound: ``mpe`` of integer costs: a total that is known to be reached, the optimum at best; what is worse
            is not looked for. If nothing reaches it, the answer is ``infeasible`` and its bound the next total, by
            ``auto``, ``filter`` and ``search`` alike.
        gap: A distance of the bounds, relative to the one closer to 0, at which filtering and search end (``bounded``);
            a number or text such as ``1%``.
        time_limit: Seconds for the whole call. What filtered elimination or search knows by then is the answer:
            ``bounded``.
        on_plan: Called with the plan before it runs.
        on_bounds: Called now and then by filtered elimination and search with what is known.
        progress: Called now and then with the share of the work that is done, from 0 to 1.
        checkpoint: A directory to keep what a long run knows in (``mpe``, ``pr``, ``count``); the same call goes on
            from there after the process was ended in any way. It is emptied when the answer is known.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: An option or the evidence does not fit the model, or the file of the model cannot be read.
        MemoryLimitError: The plan needs more memory than it may use, or the process ran out of memory.
        DeviceError: The device is missing, unusable or (a GPU) out of memory.
        TimeLimitError: The time limit passed, and no bounds are known.
    """
    time_limit = arguments.seconds("time_limit", time_limit)
    deadline = None if time_limit is None else time.monotonic() + time_limit
    for name, function in (("on_plan", on_plan), ("on_bounds", on_bounds), ("progress", progress)):
        arguments.function(name, function)
    checkpoint = arguments.path("checkpoint", checkpoint)
    if method == "mbe" and ibound is None:
        ibound = "auto"
    options = Options(
        device,
        arguments.memory_size("memory", memory),
        order,
        order_seconds,
        seed,
        threads,
        dtype,
        slices,
        arguments.path("scratch", scratch),
        tables,
        ibound,
        shift,
        partition,
    ).checked()
    if ibound is not None and method not in ("mbe", "search"):
        raise InputError("an i-bound goes with the methods mbe and search")
    search = Search(method, upper_bound, on_bounds, arguments.share("gap", gap))
    search.check(task, checkpoint is not None)
    if checkpoint is not None and task in ("mar", "mmap"):
        raise InputError(f"a checkpoint goes with the tasks mpe, pr and count, not with {task}")
    if checkpoint is not None:
        options = options._replace(is_kept=options.scratch is None)
        options = options if options.tables == "sparse" else options._replace(tables="dense")
    call = _Call(as_model(model), task, evidence, query, options, search, time_limit, deadline, on_plan, progress)
    if task == "mmap":
        return call.marginal_map()
    return call.run(None if checkpoint is None else _checkpoint(checkpoint))


class _Call:
    """One call of ``solve``: its arguments, and what is known of the optimum so far."""

    def __init__(
        self,
        model: Model,
        task: Task,
        evidence: Evidence | None,
        query: Sequence[str | int] | None,
        options: Options,
        search: Search,
        time_limit: float | None,
        deadline: float | None,
        on_plan: Callable[[Plan], None] | None,
        progress: Callable[[float], None] | None,
    ) -> None:
        self.model, self.task, self.evidence, self.query = model, task, evidence, query
        self.options, self.search = options, search
        self.time_limit, self.deadline = time_limit, deadline
        self.on_plan, self.progress = on_plan, progress
        self.kept: Checkpoint | None = None
        self.tried: Result | None = None
        self.order: tuple[int, ...] = ()

    def run(self, kept: Checkpoint | None) -> Result:
        """Answer the task, keeping what is known there."""
        self.kept = kept
        try:
            if self.is_over(self.before_planning()):
                assert self.tried is not None
                return self.tried
            if self.search.method == "mbe":
                return self.bounds()
            return self.attempt(self.options)
        except TimeLimitError:
            if self.tried is None:
                raise
            return self.tried
        finally:
            if kept is not None:
                kept.close()

    def is_over(self, is_asked_for: bool = False) -> bool:
        """Whether what was tried is the answer."""
        return self.tried is not None and (is_asked_for or self.search.is_end(self.tried, self.deadline))

    def before_planning(self) -> bool:
        """Filter or search before anything is planned, if it may be better; whether it is all that is asked for."""
        if self.task != "mpe" or self.kept is not None or self.search.method not in ("auto", "filter", "search"):
            return False
        self.tried = _withoutplan_call(self.model, self.evidence or {}, self.search, self.options, self.deadline)
        return self.search.is_asked_for

    def bounds(self) -> Result:
        """Mini-buckets with costs shifted and without, divided by content and by scopes, as far as it all fits."""
        from elimina.inference.minibucket import better

        found = None
        for shift in dict.fromkeys((self.options.shift, "none")):
            for partition in ("auto", "scope") if self.options.partition == "auto" else (self.options.partition,):
                options = self.options._replace(
                    shift=shift, partition=partition, order=self.order or self.options.order
                )
                is_last = shift == "none" and partition != "auto"
                with contextlib.suppress(*() if is_last else (MemoryLimitError,)):
                    one = self.attempt(options)
                    found = one if found is None else better(one, found)
                    if found.status != "bounded":
                        return found
                    self.tried = self.tried or found
                    if one.stats.get("partition") != "content":
                        break
        assert found is not None
        return found

    def attempt(self, options: Options) -> Result:
        """Plan and run; what rows cannot hold is run without them."""
        prepared = self.prepared(options)
        if prepared is None:
            assert self.tried is not None
            return self.tried
        planned = prepared.planned
        self.order = planned.plan.whole.order
        if self.is_bounded_instead(planned.plan, options):
            return self.bounds_instead(planned, options)
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise TimeLimitError(
                f"the time limit of {self.time_limit:g} s passed while the elimination was planned; allow more time"
            )
        if self.on_plan is not None:
            self.on_plan(planned.plan)
        try:
            return self.execute(prepared, options)
        except MemoryLimitError as error:
            finer = options._replace(refined=options.refined + 1)
            if self.is_worth_finer_slices(planned.plan, finer):
                return self.attempt(finer)
            if planned.plan.sparse is None or options.tables != "auto":
                raise
            rows = error
        try:
            return self.attempt(options._replace(tables="dense"))
        except MemoryLimitError as error:
            raise MemoryLimitError(f"{error}. Rows were tried, too: {rows}") from rows

    def bounds_instead(self, planned: Planned, options: Options) -> Result:
        """Mini-buckets as large as time allows, small ones first, in the order of a plan that does not fit."""
        from elimina.inference.minibucket import better
        from elimina.inference.weighted import affordable

        order, options = planned.plan.whole.order, options.for_bounds
        for ibound in affordable(planned.problem, order, options, self.deadline):
            self.options = options._replace(ibound=ibound, order=order)
            found = self.bounds()
            self.tried = found if self.tried is None else better(found, self.tried)
            if self.tried.status != "bounded":
                break
        assert self.tried is not None
        return self.tried

    def is_bounded_instead(self, plan: Plan, options: Options) -> bool:
        """Whether a sum that does not fit is bounded."""
        is_free = self.search.method == "auto" and self.task == "pr" and self.kept is None
        return is_free and options.ibound is None and not plan.fits

    def is_worth_finer_slices(self, plan: Plan, options: Options) -> bool:
        """Whether rows that turned out too many may be made in slices, or in more of them."""
        return (
            options.tables == "sparse"
            and plan.fits
            and plan.task in ("mpe", "pr", "count")
            and options.slices != "never"
            and options.refined <= _MOST_REFINED
            and self.kept is None
        )

    def prepared(self, options: Options) -> Prepared | None:
        """A plan to run; None where what was tried is the answer."""
        is_free = self.search.method == "auto" and self.task == "mpe" and self.kept is None
        # Who names a number of slices, or a directory, wants elimination with them.
        turns = is_free and options.scratch is None and options.slices in ("auto", "never")
        prepared = self.plan(options._replace(slices="never") if turns else options)
        if turns:
            self.tried = self.search.for_a_while(prepared.planned, options, self.deadline, self.tried)
            if self.is_over():
                return None
            if not prepared.planned.plan.fits and options.slices == "auto":
                prepared = self.plan(options)
        if is_free and not prepared.planned.plan.fits:
            self.tried = self.search.to_the_end(prepared.planned, options, self.deadline, self.tried)
            return None
        return prepared

    def plan(self, options: Options) -> Prepared:
        return plan_call(self.model, self.task, self.evidence, self.query, options, self.time_limit, self.kept)

    def execute(self, prepared: Prepared, options: Options) -> Result:
        """Run a plan."""
        inquiry, planned, original = prepared
        plan = planned.plan
        execution = Execution(planned.problem, planned.plan, planned.backend, self.progress, self.deadline)
        if original is not None:
            from elimina.inference.minibucket import bounded_optimum

            return bounded_optimum(execution, planned.seconds, original)
        if plan.minibuckets is not None:
            from elimina.inference.weighted import bounded_sum

            return bounded_sum(execution, options, planned.seconds)
        return _run(inquiry, execution._replace(checkpoint=self.kept), options, planned.seconds)

    def marginal_map(self) -> Result:
        """Sum out, and find the best values of what is left by the method that is asked for."""
        from elimina.inference.marginal_map import marginal_map

        options = self.options
        planned = self.plan(options._replace(ibound=None)).planned
        if not planned.plan.fits and self.search.method in ("auto", "mbe"):
            from elimina.inference.weighted import bounded_marginal_map

            return bounded_marginal_map(planned, options, self.progress, self.deadline)
        if self.on_plan is not None:
            self.on_plan(planned.plan)
        execution = Execution(planned.problem, planned.plan, planned.backend, self.progress, self.deadline)

        def optimise(rest: Model) -> Result:
            execution.check_deadline("all variables but the query summed out")
            left = None if self.deadline is None else max(1e-3, self.deadline - time.monotonic())
            own = options._replace(order=options.order if isinstance(options.order, str) else "auto")._asdict()
            del own["refined"], own["is_kept"]
            search = self.search
            return solve(
                rest,
                method=search.method,
                gap=search.gap,
                time_limit=left,
                on_bounds=search.listener,
                **own,
            )

        return marginal_map(planned, planned.seconds, optimise, execution.report)


def _withoutplan_call(
    model: Model, evidence: Evidence, search: Search, options: Options, deadline: float | None
) -> Result | None:
    """Filter or search before anything is planned, if that is asked for or may be better."""
    if not (model.is_integer or search.is_asked_for):
        return None
    started = time.perf_counter()
    observed = observe(model, "mpe", evidence)
    problem = prepare(observed.model, "mpe", observed.values)
    if search.method == "search":
        return search.by_search(problem, options, deadline, None)
    return search.try_filtering(problem, options, deadline, {"prepare": time.perf_counter() - started})


def _run(inquiry: Inquiry | None, execution: Execution, options: Options, seconds: Mapping[str, float]) -> Result:
    if inquiry is not None:
        from elimina.inference.marginals import posteriors

        return posteriors(inquiry, execution, options, dict(seconds))
    if execution.checkpoint is not None and execution.plan.stream is not None:
        raise InputError(
            "a checkpoint does not go with tables that pass through memory in tiles; leave one of --checkpoint and "
            "--scratch out, or give more memory"
        )
    result = eliminate(execution, seconds)
    if execution.checkpoint is not None:
        execution.checkpoint.remove()
    return result


def _checkpoint(folder: str) -> Checkpoint:
    from elimina.inference.checkpoint import Checkpoint

    return Checkpoint(folder)
