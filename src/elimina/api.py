"""The two calls that most programs need: ``plan`` and ``solve``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from elimina import arguments
from elimina.backends.host import memory_errors_in_words
from elimina.errors import InputError
from elimina.inference.anytime import Run
from elimina.inference.at_once import answer_at_once
from elimina.inference.call import plan_call
from elimina.inference.method import METHODS, OptimumMethod, Search
from elimina.inference.options import ORDER_SECONDS, Division, Options, Shift, Slices, Tables
from elimina.inference.solver import Question, Solver
from elimina.io import ModelLike, as_model
from elimina.model import Model
from elimina.order import Method
from elimina.planning.minibuckets import IBound
from elimina.planning.plan import Plan
from elimina.result import Bounds, Result
from elimina.states import Evidence
from elimina.tasks import TaskName, task_of

if TYPE_CHECKING:
    from elimina.inference.checkpoint import Checkpoint


@memory_errors_in_words("while it planned")
def plan(
    model: ModelLike,
    task: TaskName = "mpe",
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
        task: ``mpe`` or ``map``: the best assignment (the optimum of a WCSP, the most probable explanation of a
            network); ``pr`` or ``partition``: the partition function, or the probability of the evidence; ``mar`` or
            ``marginals``: the posterior marginals; ``mmap``: the most probable states of the variables in the query,
            all others summed out; ``count``: the number of allowed assignments.
        evidence: Variable (name or index) -> its state, or (probability models) an array of likelihoods, one for each
            state. An index into named states is written ``elimina.StateIndex(1)``.
        query: ``mar``: the variables whose marginals are asked for; None for all. ``mmap``: those that are not summed
            out; the plan is for summing out the others.
        device: ``cpu``, ``cuda``, or ``auto``: the GPU if there is one and the work is worth its start.
        memory: Bytes that may be used on the device, a number or text such as ``8GiB``; None: what is free there, less
            a reserve.
        order: A method of ``elimina.order.find_order``, or the variables (names or indices) in elimination order.
        order_seconds: Time limit of the search for an order.
        seed: Random seed of the order search.
        threads: CPU threads; None for all that the process may use.
        dtype: Override of the tables' dtype; by default the narrowest one that is exact.
        slices: Conditioning where the plan does not fit (``mpe``, ``pr``, ``count``). ``auto``: the problem is solved
            for each combination of some variables' values, if that takes at most 65,536 slices and an estimated hour; a
            number: in at most so many slices, however long; ``never``: no slices.
        scratch: A directory for tables that memory does not hold; nothing is left there. None: none are kept on disk.
        tables: Layout of the tables. ``dense``: all cells; ``sparse``: tuples, the allowed assignments alone; ``auto``:
            tuples where so much is forbidden that they are expected to be faster, or nothing else fits.
        ibound: ``mpe``, ``pr``: divide buckets into mini-buckets, so that no message has more variables than this; the
            plan then bounds the optimum, or (by weights) the sum from above. ``auto``: as many variables as the memory
            holds.
        shift: Cost shifting for tighter bounds. ``tables``: between tables, before the plan is made (``mpe``);
            ``clusters``: then also between tables joined as mini-buckets do, if time and memory suffice for the i-bound
            (``mpe``); ``buckets``: between the mini-buckets of a variable; ``all``: everywhere; ``none``: nowhere. The
            method ``mbe`` runs without shifting, too, and keeps the better bounds.
        partition: Partition of buckets into mini-buckets. ``scope``: tables that share most variables go together;
            ``content`` (``mpe``): tables whose joint message tells most more than theirs apart, if the host's memory
            holds all of them; ``auto``: by content where that is quick.

    Returns:
        The plan; ``plan.fits`` says whether it stays within the memory.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: An option or the evidence does not fit the model, or the file of the model cannot be read.
        DeviceError: The device is missing or cannot be used.
        UnsupportedError: Rows are asked for, and the task or the dtype has none.
    """
    chosen = task_of(task)
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
    return plan_call(as_model(model), chosen, evidence, _listed(query), options, shift_seconds=0.0).planned.plan


@memory_errors_in_words("while it solved the model")
def solve(
    model: ModelLike,
    task: TaskName = "mpe",
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
    on_bounds: Callable[[Bounds], None] | None = None,
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
        time_limit: Seconds for the whole call. What is known by then is the answer: ``bounded``, and ``ended_by`` is
            ``time-limit``.
        on_plan: Called with the plan before it runs.
        on_bounds: Called now and then with the bounds that are known.
        progress: Called now and then with the share of the work that is done, from 0 to 1.
        checkpoint: A directory to keep what a long run knows in (``mpe``, ``pr``, ``count``); the same call goes on
            from there after the process was ended in any way. It is emptied when the answer is known.

    Returns:
        The answer. From the first bound on, whatever ends the call leaves the best assignment and both bounds, and
        ``ended_by`` says what it was: an interrupt (Ctrl-C), the time limit, the memory, a device, or the gap.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: An option or the evidence does not fit the model, or the file of the model cannot be read.
        MemoryLimitError: The plan needs more memory than it may use, or the process ran out of memory, and nothing is
            known.
        DeviceError: The device is missing, unusable or (a GPU) out of memory, and nothing is known.
        TimeLimitError: The time limit passed, and nothing is known.
        KeyboardInterrupt: The user interrupted, and nothing is known.
    """
    chosen = task_of(task)
    arguments.choice("method", method, METHODS)
    time_limit = arguments.seconds("time_limit", time_limit)
    share = arguments.share("gap", gap)
    run = Run(chosen, time_limit, on_bounds, share)
    for name, function in (("on_plan", on_plan), ("on_bounds", on_bounds), ("progress", progress)):
        arguments.function(name, function)
    checkpoint = arguments.path("checkpoint", checkpoint)
    if method == "mbe" and ibound is None and chosen != "mmap":
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
    search = Search(method, upper_bound, share)
    search.check(chosen, checkpoint is not None)
    if checkpoint is not None and chosen in ("mar", "mmap"):
        raise InputError(f"a checkpoint goes with the tasks mpe, pr and count, not with {chosen}")
    if checkpoint is not None:
        options = options._replace(is_kept=options.scratch is None)
        options = options if options.tables == "sparse" else options._replace(tables="dense")

    is_plain = method in ("auto", "eliminate") and query is None and checkpoint is None
    if is_plain and on_plan is None and progress is None and isinstance(model, Model):
        found = answer_at_once(model, chosen, evidence, options, time_limit, run.started)
        if found is not None:
            return found

    def work() -> None:
        with run.phase("read"):
            asked = as_model(model)
        known = {} if evidence is None else evidence
        solver = Solver(Question(asked, chosen, known, _listed(query)), options, search, run)
        solver.on_plan, solver.progress = on_plan, progress
        solver.solve(None if checkpoint is None else _checkpoint(checkpoint))

    return run.answer(work)


def _listed(query: Sequence[str | int] | None) -> Sequence[str | int] | None:
    """Return a query that can be read more than once."""
    return tuple(query) if isinstance(query, Iterator) else query


def _checkpoint(folder: str) -> Checkpoint:
    from elimina.inference.checkpoint import Checkpoint

    return Checkpoint(folder)
