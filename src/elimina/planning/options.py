"""Options of plans and runs, and their checks."""

from __future__ import annotations

import functools
import itertools
import operator
import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

from elimina import arguments
from elimina.display import with_types_as_written
from elimina.errors import InputError
from elimina.model.states import Evidence
from elimina.planning import option_values as values
from elimina.planning.devices import gpu_numbers
from elimina.planning.option_values import IBound, Values, joined
from elimina.planning.order import MAX_SEED, Method
from elimina.planning.plan import Plan
from elimina.planning.solve_methods import METHODS, SOLVE_METHODS, OptimumMethod, SolveMethod
from elimina.problem.semirings import FLOATS
from elimina.problem.tasks import Description, Task, described, tasks_that
from elimina.result import Bounds
from elimina.system import available_threads

MAX_ASSIGNMENTS = 10**9
"""Largest number of assignments of a call."""

USUAL_ASSIGNMENTS = 10
"""Number of assignments of a call that names none."""

MAX_THREADS = 1024
"""Largest number of threads and of workers of a call, more than any machine has, but few enough to start."""

Slices = int | Literal["auto", "never"]
"""Conditioning on variables if a plan does not fit, and the largest number of slices."""

MAX_SLICES = 1 << 16
"""Largest number of slices by ``auto``."""

Tables = Literal["auto", "dense", "sparse"]
"""Table layout: sparse tables hold only allowed tuples; ``auto``: sparse if that is expected to be faster."""
TABLES: tuple[Tables, ...] = get_args(Tables)

Shift = Literal["none", "tables", "clusters", "buckets", "all"]
"""Cost shifting for tighter bounds: none; between tables; also between clusters of these; between mini-buckets; all."""
SHIFTS: tuple[Shift, ...] = get_args(Shift)

Division = Literal["auto", "scope", "content"]
"""Partition of buckets by the scopes of tables, or by their contents; ``auto``: by content if that is fast."""
DIVISIONS: tuple[Division, ...] = get_args(Division)

_MIN_SHARED_BYTES = 1 << 24
"""Smallest memory limit that also counts a call's memory besides tables: any process grows by some MiB at its start."""

_MIN_MEMORY_SHARE = 0.25
"""Share of a memory limit that always stays available to tables: even small tables give bounds."""

_SPARE_MEMORY_SHARE = 0.125
"""Reserve in an advised limit, as a share of it: the memory of equal calls differs a little."""

ORDER_SECONDS = 2.0
"""Default time limit of the order search in seconds; it ends earlier if more search would not pay."""


@with_types_as_written
class Options(NamedTuple):
    """Settings for experts: options of ``elimina.plan`` and ``elimina.solve`` besides their arguments.

    Attributes:
        device: Device, unless the call's argument names one; several GPUs as in ``cuda:0,cuda:1``.
        memory: Memory limit on each device, unless the call's argument gives one.
        order: A method of ``elimina.planning.order.find_order``, or the variables (names or indices) in their order.
        order_seconds: Time limit of the search for an order, counted by its work, so that runs are reproducible.
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
              no plan fits; with a checkpoint, neither is used. For ``pr`` and ``mmap``, elimination, or bounds (for
              ``pr``, also an estimate) if no plan fits.
        exact: True: raise an error instead of returning an estimate or bounds, if the exact answer does not fit the
            memory or the time.
        upper_bound: Cost of a known solution (``mpe``), with decimals if the costs have some; assignments that cost
            more are ignored. If all do, the answer is ``infeasible``, and its lower bound is the next higher cost (of
            costs with decimals: this cost).
        hint: An assignment to start from (``mpe``): variable (name or index) -> its state. If it leaves variables out,
            local search completes it. Evidence overrides it. The answer is never worse than the hint.
        k: Number of assignments (``kbest``), unless the call's argument gives one; None for 10.
        gap: Relative distance of the bounds (to the one closer to 0) at which filtering and search end (``bounded``); a
            number, or text such as ``1%``.
        checkpoint: A directory that keeps the progress of a long run (``mpe``, ``pr``, ``count``). However the process
            ended, the same call continues the run. The directory is emptied when the answer is known.
        on_plan: Function to call with the plan before it runs.
        on_bounds: Function to call now and then with the bounds, if they or the nodes of a search have changed.
        progress: Function to call with the share of the work that is done, from 0 to 1. True: shows the phase, the
            bounds and the time of the call, on a terminal or in a notebook.

    Examples:
        >>> import elimina
        >>> options = elimina.Options(method="mbe", ibound=2)
        >>> result = elimina.solve("examples/radio.wcsp", options=options)
        >>> result.status
        'bounded'
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
    exact: bool = False
    upper_bound: float | None = None
    hint: Evidence | None = None
    k: int | None = None
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
    def matches_moments(self) -> bool:
        """True if costs are shifted between mini-buckets."""
        return self.shift in ("buckets", "all")

    @property
    def for_bounds(self) -> Options:
        """The options for mini-buckets in place of a method that does not fit."""
        return self._replace(dtype=None, slices="auto", scratch=None, tables="auto")

    @property
    def names_another_way(self) -> bool:
        """True if slices, files or sparse tables are requested for tables that do not fit."""
        return self.asks_for_slices or self.tables == "sparse"

    @property
    def max_slices(self) -> int:
        """Largest number of slices."""
        return {"auto": MAX_SLICES, "never": 0}[self.slices] if isinstance(self.slices, str) else self.slices

    @property
    def keeps_tables(self) -> bool:
        """True if all tables stay on the device, where a checkpoint saves them."""
        return self.checkpoint is not None and self.scratch is None

    @property
    def planning(self) -> Options:
        """A copy in which options that matter only to runs have their defaults."""
        return self._replace(**{record.name: record.default for record in OPTIONS if record.scope == "run"})

    @property
    def room(self) -> int | None:
        """Bytes that may be used on the device; None: its free memory. The options must have been checked."""
        return cast(int | None, self.memory)

    @property
    def of_checkpoint(self) -> dict[str, str | int | None]:
        """The options that a checkpoint stores, because only a call with equal ones may continue it."""
        # The numbers of the GPUs are left out: there may be fewer after one was lost.
        device = "cuda" if self.needs_gpu else self.device
        order = self.order if isinstance(self.order, str) else " ".join(map(str, self.order))
        plain = self._replace(device=device, order=cast(Method, order))
        return {record.name: getattr(plain, record.name) for record in OPTIONS if record.is_of_checkpoint}

    def beside(self, held: int) -> Options:
        """Return checked options for work that begins while a call holds some memory of the host.

        Args:
            held: Bytes by which the process has grown. They are not subtracted from a GPU's limit, nor from a limit so
                small that the start of the process alone would exceed it.
        """
        room = self.room
        if room is None or not self.is_shared:
            return self
        return self._replace(memory=max(room - held, int(room * _MIN_MEMORY_SHARE)))

    def limit_for(self, needed: int, held: int) -> int:
        """Return a memory limit, with a reserve, that leaves some bytes to new work while a call holds others."""
        spared = needed + int(needed * _SPARE_MEMORY_SHARE)
        return spared if spared < _MIN_SHARED_BYTES else spared + held + int(held * _SPARE_MEMORY_SHARE)

    @property
    def is_shared(self) -> bool:
        """True if the host's memory is limited, and the limit is large enough to include the call's other memory."""
        return self.room is not None and not self.needs_gpu and self.room >= _MIN_SHARED_BYTES

    @property
    def assignments(self) -> int:
        """Number of assignments to find."""
        return USUAL_ASSIGNMENTS if self.k is None else self.k

    @property
    def host_threads(self) -> int:
        """Number of CPU threads that may be used."""
        return self.threads or available_threads()

    @property
    def needs_gpu(self) -> bool:
        """True if a GPU is requested."""
        return bool(gpu_numbers(self.device))

    @property
    def may_use_gpu(self) -> bool:
        """True unless the CPU is requested."""
        return self.chooses_device or self.needs_gpu

    @property
    def chooses_device(self) -> bool:
        """True if the estimates choose the device."""
        return self.device == "auto"

    @property
    def looks_for_optimum(self) -> bool:
        """True if only filtering or search may answer: the method demands it, or ``auto`` has an upper bound."""
        return self.solving.seeks_optimum or (self.solving.is_open and self.upper_bound is not None)

    @property
    def solving(self) -> SolveMethod:
        """Properties of the method."""
        return SOLVE_METHODS[self.method]

    @property
    def asks_for_slices(self) -> bool:
        """True if a number of slices or a directory for tables is given, which requests elimination."""
        return self.scratch is not None or self.slices not in ("auto", "never")

    @property
    def changed(self) -> list[str]:
        """Names of the options with another value than their default."""
        others = itertools.compress(zip(self._fields, self, DEFAULT, strict=True), map(operator.is_not, self, DEFAULT))
        return [name for name, value, default in others if not isinstance(value, str | float) or value != default]

    def only_for(self, engine: Engine) -> Options:
        """Return the options, after a check against an engine.

        Raises:
            InputError: An option has another value than its default, and the engine does not take it.
        """
        changed = self.changed
        for record in OPTIONS:
            if record.name in changed and engine not in record.engines:
                names = ", ".join(record.name for record in OPTIONS if engine in record.engines)
                raise InputError(f"{engine} does not take the option {record.name}; it takes {names}")
        return self

    def checked(self, task: Task | None = None, is_run: bool = False) -> Options:
        """Return the options with plain values (memory in bytes, paths as text), checked as far as no model is needed.

        Args:
            task: Task to check the options against; None: check only the values of the options.
            is_run: True if the plan is run, too.

        Raises:
            TypeError: A field has the wrong type.
            InputError: A field makes no sense, or does not go with the others or the task.
        """
        # Only plain fields are cached: other objects may change or hold much memory, and a directory may be deleted.
        if self.scratch is None and _PLAIN.issuperset(map(type, self)):
            return _checked_before(task, is_run, *cast("tuple[Hashable, ...]", self))
        return self._checked(task, is_run)

    def _checked(self, task: Task | None, is_run: bool) -> Options:
        # Defaults are left out, because they have their plain form already.
        options = self._replace(
            **{
                record.name: record.values.check(record.name, value)
                for record in OPTIONS
                if (value := getattr(self, record.name)) is not record.default
            }
        )
        if is_run and task is not None and options.solving.bounds and options.ibound is None:
            has_mini_buckets = described(task).has_bounds and not described(task).keeps_query
            options = options._replace(ibound="auto") if has_mini_buckets else options
        changed = options.changed
        for record in OPTIONS:
            if record.name in changed:
                options._check_clashes(record, task, is_run)
        if options.scratch is not None:
            from elimina.planning.tiers import check_scratch

            check_scratch(str(options.scratch))
        return options

    def _check_clashes(self, record: OptionRecord, task: Task | None, is_run: bool) -> None:
        """Reject an option that is incompatible with the task, the method or another option."""
        if task is not None and record.tasks is not None and not record.tasks(described(task)):
            raise InputError(f"{record.noun} is for {record.tasks_text}: leave it out for {task}")
        if is_run and record.methods and self.method not in record.methods:
            names = joined(record.methods)
            reason = f"is for the methods {names}, not {self.method}: choose one of them, or leave it out"
            raise InputError(f"{record.noun} {reason}")
        for clash in record.clashes:
            if (task is not None or not clash.needs_task) and clash.is_broken(self, task or ""):
                raise InputError(clash.reason.format(task=task, **self._asdict()))


DEFAULT = Options()

_PLAIN = frozenset((str, int, float, bool, type(None)))
"""Types of the fields of checked options that may be cached."""


@functools.lru_cache(64, typed=True)
def _checked_before(task: Task | None, is_run: bool, *fields: Any) -> Options:
    """Return checked options from a cache: a check takes a third of a small model's time."""
    return Options(*fields)._checked(task, is_run)


def options_of(
    options: Options,
    device: str | Sequence[str] | None = None,
    memory: int | str | None = None,
    k: int | None = None,
) -> Options:
    """Return a call's options, with its arguments where these are given.

    Raises:
        TypeError: The options are something else.
    """
    if not isinstance(options, Options):
        raise arguments.wrong_type("options", options, "elimina.Options")
    arguments_of_call: dict[str, Any] = {"device": device, "memory": memory, "k": k}
    return options._replace(**{name: value for name, value in arguments_of_call.items() if value is not None})


Engine = Literal[
    "elimina.sample",
    "elimina.iterate_best",
    "elimina.fit",
    "an influence diagram",
    "a junction tree",
    "elimination on a cluster",
    "search on a cluster",
]
"""Algorithms with some of the options; ``plan`` and ``solve`` have all."""

_SAMPLES: tuple[Engine, ...] = get_args(Engine)
_TREE: tuple[Engine, ...] = _SAMPLES[1:]
_CLUSTER: tuple[Engine, ...] = _TREE[4:]
_CLUSTER_SEARCH: tuple[Engine, ...] = _CLUSTER[1:]

Group = Literal["common", "limits", "output", "expert"]
"""Groups of options in the help of a command."""


class Clash(NamedTuple):
    """Condition in which an option is incompatible with the task or with other options.

    Attributes:
        is_broken: Function of the options and the task that returns True if they are incompatible.
        reason: Error; options in braces stand for their values.
        needs_task: True to check it only if the task is known.
    """

    is_broken: Callable[[Options, str], object]
    reason: str
    needs_task: bool = True


class OptionRecord(NamedTuple):
    """An option: the source of its checks, its place on the command line and its row of the reference.

    Attributes:
        name: Name of the field of ``Options``.
        values: Values that the option takes.
        default: Value unless another one is given.
        scope: ``plan``: planning asks for it; ``run``: only a run does.
        help: Description, as short as a help page needs.
        default_text: Description of a default that is None.
        group: Group in the help.
        flags: Names on the command line; None: the name with dashes; empty: only programs set it.
        metavar: Placeholder of the value in the help; None: the words that the option takes.
        noun: The option in an error, with its article.
        tasks: Function of a task's description that returns true if the option goes with the task; None: with all.
        tasks_note: Reason why it goes with these tasks only, after a comma.
        methods: Methods that it goes with; empty: all.
        engines: Other algorithms that take it.
        is_of_checkpoint: True if a checkpoint continues with the same value only.
        clashes: Conditions in which it does not go with other options, or a value of it with the task.
    """

    name: str
    values: Values
    default: Any
    scope: Literal["plan", "run"]
    help: str
    default_text: str | None = None
    group: Group = "expert"
    flags: tuple[str, ...] | None = None
    metavar: str | None = None
    noun: str = ""
    tasks: Callable[[Description], object] | None = None
    tasks_note: str = ""
    methods: tuple[OptimumMethod, ...] = ()
    engines: tuple[Engine, ...] = ()
    is_of_checkpoint: bool = False
    clashes: tuple[Clash, ...] = ()

    @property
    def command_line(self) -> tuple[str, ...]:
        """Names on the command line."""
        return ("--" + self.name.replace("_", "-"),) if self.flags is None else self.flags

    @property
    def tasks_text(self) -> str:
        """The tasks that the option goes with, in a sentence."""
        names = tasks_that(self.tasks or bool)
        return f"the task{'s' if names[1:] else ''} {joined(names)}{self.tasks_note}"


def _is_optimum(task: Description) -> bool:
    return task.is_optimum


def _has_bounds(task: Description) -> bool:
    return task.has_bounds


def _lists_assignments(task: Description) -> bool:
    return task.lists_assignments


def _merges_slices(task: Description) -> bool:
    return task.merges_slices


OPTIONS: tuple[OptionRecord, ...] = (
    OptionRecord(
        "device",
        values.DEVICE,
        "auto",
        "plan",
        "cpu, cuda, GPUs by number (0,1), or auto for the fastest.",
        group="common",
        flags=("--device", "--devices"),
        metavar="DEVICE",
        engines=_SAMPLES,
        is_of_checkpoint=True,
    ),
    OptionRecord(
        "memory",
        values.BYTES,
        None,
        "plan",
        "Limit, such as 8GiB.",
        default_text="80 % of free memory",
        group="limits",
        metavar="SIZE",
        engines=_SAMPLES,
        is_of_checkpoint=True,
    ),
    OptionRecord(
        "order",
        values.ORDER,
        "auto",
        "plan",
        f"Elimination order: a heuristic ({', '.join(get_args(Method))}), or a file.",
        metavar="METHOD|FILE",
        engines=_SAMPLES,
        is_of_checkpoint=True,
    ),
    OptionRecord(
        "order_seconds",
        values.SECONDS,
        ORDER_SECONDS,
        "plan",
        "Time limit of the order search in seconds, counted by its work, so that runs repeat.",
        flags=("--order-time",),
        metavar="SECONDS",
        engines=_SAMPLES,
    ),
    OptionRecord(
        "seed",
        values.integer_in(0, MAX_SEED),
        0,
        "plan",
        "Random seed of the order search.",
        metavar="N",
        engines=_SAMPLES,
    ),
    OptionRecord(
        "threads",
        values.integer_in(1, MAX_THREADS, is_optional=True),
        None,
        "plan",
        "Number of CPU threads.",
        default_text="all",
        group="limits",
        metavar="N",
        engines=_SAMPLES,
    ),
    OptionRecord(
        "dtype",
        values.DTYPE,
        None,
        "plan",
        "Number type of the tables: int16, int32, int64, float32, float64 or uint64.",
        default_text="the narrowest exact type",
        metavar="TYPE",
        engines=_TREE,
        is_of_checkpoint=True,
        clashes=(
            Clash(
                lambda options, task: described(task).is_unrounded and options.dtype in FLOATS,
                "{task} compares exact sums of costs, which {dtype} rounds: leave the dtype out, or use an integer",
            ),
        ),
    ),
    OptionRecord(
        "slices",
        values.SLICES,
        "auto",
        "plan",
        "Conditioning on variables if the plan does not fit; N: in at most N slices.",
        metavar="auto|never|N",
        engines=_CLUSTER,
        is_of_checkpoint=True,
    ),
    OptionRecord(
        "scratch",
        values.PATH,
        None,
        "plan",
        "Directory for tables that memory cannot hold. They are deleted at the end.",
        metavar="DIR",
    ),
    OptionRecord(
        "tables",
        values.word_of(TABLES),
        "auto",
        "plan",
        "Table layout. sparse stores allowed tuples only; auto uses it if it is faster.",
        engines=_CLUSTER,
        is_of_checkpoint=True,
    ),
    OptionRecord(
        "ibound",
        values.IBOUND,
        None,
        "plan",
        "Largest number of variables in a message between mini-buckets; auto: as many as memory holds.",
        metavar="auto|N",
        noun="an i-bound",
        tasks=_has_bounds,
        methods=("mbe", "search"),
        clashes=(
            Clash(
                lambda options, _: options.names_another_way,
                "mini-buckets (an i-bound, or the method mbe) cannot be combined with slices, a scratch directory or "
                "sparse tables: leave these out",
                needs_task=False,
            ),
            Clash(
                lambda options, task: described(task).keeps_query and not options.solving.partitions_query,
                "an i-bound of mmap is for the methods mbe and search, not {method}: choose one of them, or leave it "
                "out",
            ),
        ),
    ),
    OptionRecord(
        "shift",
        values.word_of(SHIFTS),
        "all",
        "plan",
        "Cost shifting for tighter bounds: none, tables (mpe), clusters of tables (mpe), buckets (between "
        "mini-buckets) or all.",
        metavar="WHERE",
        engines=_CLUSTER_SEARCH,
        clashes=(
            Clash(
                lambda options, task: (
                    options.ibound is not None
                    and described(task).is_partition
                    and options.shift in ("tables", "clusters")
                ),
                "shift {shift} is for the task mpe: use none, buckets or all",
            ),
        ),
    ),
    OptionRecord(
        "partition",
        values.word_of(DIVISIONS),
        "auto",
        "plan",
        "Partition buckets by scope, or by the contents of their tables (mpe).",
        clashes=(
            Clash(
                lambda options, task: options.partition == "content" and not described(task).is_optimum,
                "partition content is for the task mpe: use scope or auto for {task}",
            ),
        ),
    ),
    OptionRecord(
        "method",
        values.word_of(METHODS),
        "auto",
        "run",
        "auto, eliminate (exact), filter (mpe), search (mpe, mmap) or mbe (mini-buckets; mpe, mmap, pr).",
        group="common",
        metavar="METHOD",
        engines=_CLUSTER,
        clashes=(
            Clash(
                lambda options, task: (
                    not options.solving.is_for_all_tasks and options.method not in described(task).methods
                ),
                "the method {method} cannot answer the task {task}: use auto or eliminate",
            ),
        ),
    ),
    OptionRecord(
        "exact",
        values.FLAG,
        False,
        "run",
        "Neither estimates nor bounds, but an error where the exact answer does not fit.",
        engines=("elimina.sample", "a junction tree"),
    ),
    OptionRecord(
        "upper_bound",
        values.COST,
        None,
        "run",
        "Cost of a known solution; assignments that cost more are ignored (mpe).",
        metavar="COST",
        noun="an upper bound",
        tasks=_is_optimum,
        methods=("auto", "filter", "search"),
        engines=_CLUSTER_SEARCH,
    ),
    OptionRecord(
        "hint",
        values.ASSIGNMENT,
        None,
        "run",
        "Assignment to start from, of all variables or of some: an answer (.json, .MPE, toulbar2's .sol), an evidence "
        "file, or states (mpe). Repeatable.",
        metavar="FILE|A=x,B=y",
        noun="a hint",
        tasks=_is_optimum,
    ),
    OptionRecord(
        "k",
        values.integer_in(1, MAX_ASSIGNMENTS, is_optional=True),
        None,
        "run",
        "Number of assignments (kbest).",
        default_text=f"{USUAL_ASSIGNMENTS}",
        flags=("-k",),
        group="common",
        metavar="N",
        noun="a number of assignments",
        tasks=_lists_assignments,
    ),
    OptionRecord(
        "gap",
        values.GAP,
        0.0,
        "run",
        "Relative gap to stop at, such as 1%.",
        group="limits",
        metavar="SHARE",
        noun="a gap",
        tasks=_has_bounds,
        tasks_note=", whose answers may be bounds",
        engines=_CLUSTER_SEARCH,
    ),
    OptionRecord(
        "checkpoint",
        values.PATH,
        None,
        "run",
        "Directory that keeps the progress of a long run. Repeat the command to resume.",
        metavar="DIR",
        noun="a checkpoint",
        tasks=_merges_slices,
        methods=("auto", "eliminate"),
        clashes=(
            Clash(
                lambda options, _: options.looks_for_optimum,
                "a checkpoint keeps the state of elimination only: leave it out, or leave the upper bound out",
            ),
        ),
    ),
    OptionRecord(
        "on_plan", values.FUNCTION, None, "run", "Function to call with the plan.", flags=(), engines=_CLUSTER
    ),
    OptionRecord(
        "on_bounds", values.FUNCTION, None, "run", "Function to call with new bounds.", flags=(), engines=_CLUSTER
    ),
    OptionRecord(
        "progress",
        values.PROGRESS,
        None,
        "run",
        "Function to call with the share of the work that is done; True: show it.",
        flags=(),
        engines=_CLUSTER,
    ),
)
"""All options, in the order of the help and of the reference."""
