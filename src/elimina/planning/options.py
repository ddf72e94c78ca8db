"""Options of plans and runs, and their checks."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np

from elimina import arguments
from elimina.arguments import check_mapping
from elimina.errors import InputError
from elimina.model.states import Evidence
from elimina.planning.devices import cards_of, device_name
from elimina.planning.mini_buckets import MAX_IBOUND, IBound
from elimina.planning.order import MAX_SEED, Method
from elimina.planning.plan import Plan
from elimina.problem.tasks import FLOATS, Task, described
from elimina.result import Bounds
from elimina.system import available_threads

MOST_THREADS = 1024
"""Most threads of a call, and most workers: more than a machine has, and few enough to start."""

Slices = int | Literal["auto", "never"]
"""Conditioning on variables where a plan does not fit, and the most slices that it may make."""

Tables = Literal["auto", "dense", "sparse"]
"""Table layout: sparse tables hold allowed tuples alone; ``auto``: sparse where that is expected to be faster."""
TABLES: tuple[Tables, ...] = get_args(Tables)

Shift = Literal["none", "tables", "clusters", "buckets", "all"]
"""Cost shifting for tighter bounds: none; between tables; also between clusters of these; between mini-buckets; all."""
SHIFTS: tuple[Shift, ...] = get_args(Shift)

Division = Literal["auto", "scope", "content"]
"""Partition of buckets by the scopes of tables, or by their contents; ``auto``: by content where that is quick."""
DIVISIONS: tuple[Division, ...] = get_args(Division)

_LEAST_SHARED = 1 << 24
"""Limit in bytes from which a call's own memory counts: any process grows by some MiB as it begins to work."""

_LEAST_PART = 4
"""Part of a limit that stays available, whatever a call holds: small tables give bounds, too."""

_SPARE = 8
"""Part of a limit that is to spare where one is advised: what calls hold differs a little from one to the next."""

ORDER_SECONDS = 2.0
"""Default limit on the search for an order; it ends earlier where the plan would not gain."""

OptimumMethod = Literal["auto", "eliminate", "filter", "mbe", "search"]
METHODS: tuple[OptimumMethod, ...] = get_args(OptimumMethod)


class Options(NamedTuple):
    """Settings for experts: options of ``elimina.plan`` and ``elimina.solve`` besides their arguments.

    Attributes:
        device: Device, unless the call's argument names one; several GPUs as in ``cuda:0,cuda:1``.
        memory: Memory limit on each device, unless the call's argument gives one.
        order: A method of ``elimina.planning.order.find_order``, or the variables (names or indices) in their order.
        order_seconds: Time limit of the search for an order, counted by its work, so that runs repeat.
        seed: Random seed of the order search.
        threads: Number of CPU threads; None for all that the process may use.
        dtype: Number type of the tables; None for the narrowest one that is exact.
        slices: Conditioning if the plan does not fit (``mpe``, ``pr``, ``count``): the problem is solved for each
            combination of values of some variables. ``auto``: at most 65,536 slices, and only if they take an estimated
            hour or less; a number: at most this many slices, however long they take; ``never``: no slices.
        scratch: A directory for tables that memory cannot hold; they are deleted at the end. None: all tables stay in
            memory.
        tables: Layout of the tables. ``dense``: all cells; ``sparse``: only the allowed tuples; ``auto``: sparse if
            this is likely to be faster, or if nothing else fits.
        ibound: Largest number of variables in a message between mini-buckets (``mpe``, ``pr``). The plan then bounds
            the optimum or, with weights, bounds the sum from above. ``auto``: as many variables as memory holds. The
            method ``mbe`` takes ``auto`` by default; ``search`` starts with a small i-bound and raises it.
        shift: Cost shifting for tighter bounds. ``tables``: between tables, before the plan is made (``mpe``);
            ``clusters``: also between joined tables, if time and memory suffice for the i-bound (``mpe``); ``buckets``:
            between the mini-buckets of a variable; ``all``: everywhere; ``none``: nowhere. The method ``mbe`` also runs
            without shifting, and keeps the better bounds.
        partition: Partition of buckets into mini-buckets. ``scope``: tables that share most variables go together;
            ``content`` (``mpe``): tables go together if their joint message exceeds the sum of their own messages by
            the most, provided that the host's memory holds all messages; ``auto``: by content if this is quick.
        method: Method of solving.

            - ``eliminate``: run the plan.
            - ``mbe``: mini-bucket elimination. For ``mpe`` it bounds the optimum from one side, and an assignment that
              follows from the messages bounds it from the other. The answer is ``optimal`` if both bounds are equal,
              otherwise ``bounded``. For ``pr``, weighted mini-buckets (Liu and Ihler 2011) bound log10 Z from both
              sides. For ``mmap``, if the sum does not fit, they give the upper bound; the assignment that they lead to
              gives the lower bound, and its sum is ``value`` if it is known exactly.
            - ``filter``: filtered elimination of integer costs (``mpe``). With ``cuda`` or ``sparse`` tables, the
              sparse steps of the plan do the filtering.
            - ``search``: branch and bound (``mpe``, and the maximisation of ``mmap``). It alternates between
              mini-buckets and soft local consistency as its guide, and knows both bounds at any time.
            - ``auto``: for ``mpe``, filtered elimination and search come first if a plan takes long, and alternate if
              no plan fits; with a checkpoint, neither is used. For ``pr`` and ``mmap``, elimination, or bounds
              within about a minute if no plan fits.
        upper_bound: Cost of a known solution (``mpe``), with decimals if the costs have some; assignments that cost
            more are ignored. If all do, the answer is ``infeasible``, and its lower bound is the next higher cost (of
            costs with decimals: this cost).
        hint: An assignment to start from (``mpe``): variable (name or index) -> its state. If it leaves variables out,
            local search completes it. Evidence overrides it. The answer is never worse than the hint.
        gap: Relative distance of the bounds (to the one closer to 0) at which filtering and search end (``bounded``); a
            number, or text such as ``1%``.
        checkpoint: A directory that keeps the progress of a long run (``mpe``, ``pr``, ``count``). However the process
            ended, the same call continues the run. The directory is emptied when the answer is known.
        on_plan: Function to call with the plan before it runs.
        on_bounds: Function to call with the bounds, now and then, if they or the nodes of a search have changed.
        progress: Function to call with the share of the work that is done, from 0 to 1. True: shows the phase, the
            bounds and the time of the call, on a terminal or in a notebook.
    """

    device: str = "auto"
    memory: int | str | None = None
    order: Method | Sequence[int | str] = "auto"
    order_seconds: float = ORDER_SECONDS
    seed: int = 0
    threads: int | None = None
    dtype: str | None = None
    slices: Slices = "auto"
    scratch: str | os.PathLike[str] | None = None
    tables: Tables = "auto"
    ibound: IBound | None = None
    shift: Shift = "all"
    partition: Division = "auto"
    method: OptimumMethod = "auto"
    upper_bound: float | None = None
    hint: Evidence | None = None
    gap: float | str = 0.0
    checkpoint: str | os.PathLike[str] | None = None
    on_plan: Callable[[Plan], None] | None = None
    on_bounds: Callable[[Bounds], None] | None = None
    progress: Callable[[float], None] | bool | None = None

    def __repr__(self) -> str:
        defaults = (repr(default) for default in self._field_defaults.values())
        pairs = zip(self._fields, map(repr, self), defaults, strict=True)
        return f"Options({', '.join(f'{name}={value}' for name, value, default in pairs if value != default)})"

    @property
    def shifts_tables(self) -> bool:
        """True if costs are shifted between tables."""
        return self.shift in ("tables", "clusters", "all")

    @property
    def shifts_clusters(self) -> bool:
        """True if costs are shifted between joined tables, too."""
        return self.shift in ("clusters", "all")

    @property
    def levels_buckets(self) -> bool:
        """True if costs are shifted between mini-buckets."""
        return self.shift in ("buckets", "all")

    @property
    def for_bounds(self) -> Options:
        """The options for mini-buckets if the requested method does not fit."""
        return self._replace(dtype=None, slices="auto", scratch=None, tables="auto")

    @property
    def names_another_way(self) -> bool:
        """True if slices, files or rows are asked for, where tables do not fit."""
        return self.asks_for_slices or self.tables == "sparse"

    @property
    def keeps_tables(self) -> bool:
        """True if all tables stay on the device, where a checkpoint saves them."""
        return self.checkpoint is not None and self.scratch is None

    @property
    def planning(self) -> Options:
        """The options of planning; those of a run have their defaults."""
        run = {name: Options._field_defaults[name] for name in _OF_A_RUN}
        return self._replace(**run)

    @property
    def room(self) -> int | None:
        """Bytes that may be used on the device; None: the free memory there. For checked options."""
        return cast(int | None, self.memory)

    def beside(self, held: int) -> Options:
        """Return the options for work that begins while a call holds so many bytes of the host; checked options.

        Args:
            held: Bytes that the process has grown by. Of small limits, which a process passes as it starts, and limits
                of a GPU nothing is taken.
        """
        room = self.room
        if room is None or not self.is_shared:
            return self
        return self._replace(memory=max(room - held, room // _LEAST_PART))

    def limit_for(self, needed: int, held: int) -> int:
        """Return a limit that leaves so many bytes to work that begins while a call holds others, and some to spare."""
        spared = needed + needed // _SPARE
        return spared if spared < _LEAST_SHARED else spared + held + held // _SPARE

    @property
    def is_shared(self) -> bool:
        """True if a limit of the host's memory is given, and large enough that what a call holds counts."""
        return self.room is not None and not self.needs_gpu and self.room >= _LEAST_SHARED

    @property
    def host_threads(self) -> int:
        """CPU threads that may be used."""
        return self.threads or available_threads()

    @property
    def needs_gpu(self) -> bool:
        """True if a GPU is asked for."""
        return bool(cards_of(self.device))

    @property
    def may_use_gpu(self) -> bool:
        """True unless the CPU is asked for."""
        return self.chooses_device or self.needs_gpu

    @property
    def chooses_device(self) -> bool:
        """True if the estimates choose the device."""
        return self.device == "auto"

    @property
    def looks_for_optimum(self) -> bool:
        """True if filtering or search is the only way."""
        return self.method in ("filter", "search") or (self.method == "auto" and self.upper_bound is not None)

    @property
    def asks_for_slices(self) -> bool:
        """True if a number of slices, or a directory for tables, is named: elimination is wanted then."""
        return self.scratch is not None or self.slices not in ("auto", "never")

    def only(self, *names: str, what: str) -> Options:
        """Return the options with defaults for all but these, ``device`` and ``memory``.

        Raises:
            InputError: Another one is given.
        """
        for name, given, default in zip(self._fields, self, self._field_defaults.values(), strict=True):
            if given is default or name in ("device", "memory", *names):
                continue
            if not isinstance(given, str | float) or given != default:
                raise InputError(f"{what} does not take the option {name}; it takes {', '.join(names)}")
        return self

    def checked(self, task: Task | None = None, is_run: bool = False) -> Options:
        """Return the options with plain values (memory in bytes, paths as text), checked as far as no model is needed.

        Args:
            task: The task of a call, whose options have to go with it and with each other; None: values alone matter.
            is_run: True if the plan is run, too.

        Raises:
            TypeError: A field has the wrong type.
            InputError: A field makes no sense, or does not go with the others or the task.
        """
        # Fields of other types may change or keep much memory alive, and folders may go.
        if self.scratch is None and _PLAIN.issuperset(map(type, self)):
            return _checked_before(task, is_run, *cast("tuple[Hashable, ...]", self))
        return self._checked(task, is_run)

    def _checked(self, task: Task | None, is_run: bool) -> Options:
        options = self._replace(
            device=_checked_device(self.device),
            memory=arguments.memory_size("memory", self.memory),
            order=_checked_order(self.order),
            order_seconds=_checked_seconds(self.order_seconds),
            seed=arguments.integer("seed", self.seed, 0, MAX_SEED),
            threads=None if self.threads is None else arguments.integer("threads", self.threads, 1, MOST_THREADS),
            dtype=_dtype_name(self.dtype),
            slices=_word_or_count("slices", self.slices, ("auto", "never"), "auto, never or the most slices allowed"),
            scratch=arguments.path("scratch", self.scratch),
            tables=arguments.choice("tables", self.tables, TABLES),
            ibound=None if self.ibound is None else _checked_ibound(self.ibound),
            shift=arguments.choice("shift", self.shift, SHIFTS),
            partition=arguments.choice("partition", self.partition, DIVISIONS),
            method=arguments.choice("method", self.method, METHODS),
            upper_bound=_checked_bound(self.upper_bound),
            gap=arguments.share("gap", self.gap),
            checkpoint=arguments.path("checkpoint", self.checkpoint),
        )
        if is_run and options.method == "mbe" and options.ibound is None and task != "mmap":
            options = options._replace(ibound="auto")
        if self.hint is not None:
            check_mapping("hint", self.hint)
        for name in ("on_plan", "on_bounds", "progress"):
            if name != "progress" or not isinstance(self.progress, bool):
                arguments.function(name, getattr(self, name))
        clashes = (*_CLASHES, *(() if task is None else _CLASHES_WITH_TASKS), *(_CLASHES_OF_RUNS if is_run else ()))
        for is_broken, reason in clashes:
            if is_broken(options, task or ""):
                raise InputError(reason.format(task=task, **options._asdict()))
        if options.scratch is not None:
            from elimina.planning.tiers import check_scratch

            check_scratch(str(options.scratch))
        return options


DEFAULT = Options()

_PLAIN = frozenset((str, int, float, bool, type(None)))
"""Types of fields of which checked options are kept."""


@functools.lru_cache(64, typed=True)
def _checked_before(task: Task | None, is_run: bool, *fields: Any) -> Options:
    """Return checked options, which small models would take a third of their time to check again."""
    return Options(*fields)._checked(task, is_run)


def options_of(options: Options, device: str | Sequence[str] | None = None, memory: int | str | None = None) -> Options:
    """Return a call's options, with its arguments where these are given.

    Raises:
        TypeError: The options are something else.
    """
    if not isinstance(options, Options):
        raise arguments.wrong_type("options", options, "elimina.Options")
    given: dict[str, Any] = {"device": device, "memory": memory}
    return options._replace(**{name: value for name, value in given.items() if value is not None})


_OF_A_RUN = Options._fields[Options._fields.index("method") :]

_Clash = tuple[Callable[[Options, str], object], str]

_CLASHES: tuple[_Clash, ...] = (
    (
        lambda o, _: o.ibound is not None and o.names_another_way,
        "mini-buckets (an i-bound, or the method mbe) cannot be combined with slices, a scratch directory or sparse "
        "tables: leave these out",
    ),
)
"""Options that exclude each other for every task, with the reasons."""

_BOUNDED_REST = {("mmap", "mbe"), ("mmap", "search")}
"""Tasks and methods in which mini-buckets may bound the remaining maximisation."""

_CLASHES_WITH_TASKS: tuple[_Clash, ...] = (
    (
        lambda o, task: o.method not in ("auto", "eliminate", *described(task).methods),
        "the method {method} cannot answer the task {task}: use auto or eliminate",
    ),
    (
        lambda o, task: described(task).is_unrounded and o.dtype in FLOATS,
        "{task} compares exact sums of costs, which {dtype} rounds: leave the dtype out, or use an integer",
    ),
    (
        lambda o, task: not described(task).is_optimum and o.upper_bound is not None,
        "an upper bound is for the task mpe: leave it out for {task}",
    ),
    (
        lambda o, task: bool(o.gap) and not described(task).has_bounds,
        "a gap is for the tasks mpe, pr and mmap, whose answers may be bounds: leave it out for {task}",
    ),
    (
        lambda o, task: not described(task).is_optimum and o.hint is not None,
        "a hint is for the task mpe: leave it out for {task}",
    ),
    (
        lambda o, _: o.checkpoint is not None and (o.method == "mbe" or o.looks_for_optimum),
        "a checkpoint keeps the state of elimination only: leave it out, or use eliminate without an upper bound",
    ),
    (
        lambda o, _: o.method in ("eliminate", "mbe") and o.upper_bound is not None,
        "the method {method} cannot use an upper bound: leave it out, or use filter or search",
    ),
    (
        lambda o, task: o.checkpoint is not None and not described(task).merges_slices,
        "a checkpoint is for the tasks mpe, pr and count: leave it out for {task}",
    ),
    (
        lambda o, task: o.ibound is not None and not described(task).has_bounds,
        "an i-bound is for the tasks mpe, pr and mmap: leave it out for {task}",
    ),
    (
        lambda o, task: o.ibound is not None and task not in ("mpe", "pr") and (task, o.method) not in _BOUNDED_REST,
        "an i-bound of mmap is for the methods mbe and search, not {method}: choose one of them, or leave it out",
    ),
    (
        lambda o, task: o.ibound is not None and task == "pr" and o.shift in ("tables", "clusters"),
        "shift {shift} is for the task mpe: use none, buckets or all",
    ),
    (
        lambda o, task: o.partition == "content" and not described(task).is_optimum,
        "partition content is for the task mpe: use scope or auto for {task}",
    ),
)
"""Options that do not go together or with a task."""

_CLASHES_OF_RUNS: tuple[_Clash, ...] = (
    (
        lambda o, _: o.ibound is not None and o.method not in ("mbe", "search"),
        "an i-bound is for the methods mbe and search, not {method}: choose one of them, or leave the i-bound out",
    ),
)
"""Options that do not go together where a plan is run."""


def _checked_device(device: Any) -> str:
    """Return a device's name, or those of several GPUs in one text."""
    if not isinstance(device, str | list | tuple):
        raise arguments.wrong_type("device", device, "a name such as 'cuda', or a list of GPUs such as ['cuda:0']")
    return device_name(device)


def _checked_seconds(seconds: Any) -> float:
    """Return a limit of the search for an order, as long as it makes sense."""
    checked = arguments.number("order_seconds", seconds, "a number of seconds")
    if checked < 0:
        raise InputError(f"order_seconds is {arguments.shown(checked)}; it cannot be negative")
    return min(checked, 1e9)


def _checked_bound(upper_bound: Any) -> int | float | None:
    if upper_bound is None:
        return None
    bound = arguments.number("upper_bound", upper_bound, "the cost of a known solution, or None")
    if abs(bound) > sys.float_info.max:
        raise InputError(f"upper_bound is {arguments.shown(bound)}; it takes a number within the range of a float")
    return bound


def _checked_ibound(given: Any) -> IBound:
    ibound = _word_or_count("ibound", given, ("auto",), "auto, a number of variables, or None")
    return "auto" if ibound == "auto" else min(ibound, MAX_IBOUND)


def _word_or_count(name: str, given: Any, words: tuple[str, ...], taken: str) -> Any:
    if isinstance(given, str):
        if given in words:
            return given
        raise InputError(f"{name} is {arguments.shown(given)}; it takes {taken}")
    return arguments.integer(name, given, 1, taken=taken)


def _checked_order(order: Any) -> Any:
    """Return a method's name, which the search for an order checks, or a tuple of names and indices."""
    if isinstance(order, str):
        return order
    if not isinstance(order, bytes | Mapping | Set):
        try:
            return tuple(order)
        except TypeError:
            pass
    raise arguments.wrong_type("order", order, f"a method ({', '.join(get_args(Method))}) or a sequence of variables")


def _dtype_name(dtype: Any) -> str | None:
    """Name of a NumPy dtype; a name is checked against the task by the planner."""
    if dtype is None or isinstance(dtype, str):
        return dtype
    try:
        if isinstance(dtype, type | np.dtype):
            return np.dtype(dtype).name
    except TypeError:
        pass
    taken = "the name of a dtype such as 'float32', or None for the narrowest exact one"
    raise arguments.wrong_type("dtype", dtype, taken)
