"""The table of options: their values and defaults, their flags on the command line, and their conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args

from elimina.planning import option_values as values
from elimina.planning.checked_options import USUAL_ASSIGNMENTS, CheckedOptions
from elimina.planning.option_values import Values, joined
from elimina.planning.options import DIVISIONS, ORDER_SECONDS, SHIFTS, TABLES
from elimina.planning.order import MAX_SEED, Method
from elimina.planning.solve_methods import METHODS, OptimumMethod
from elimina.problem.semirings import FLOATS
from elimina.problem.tasks import Description, described, tasks_that

MAX_ASSIGNMENTS = 10**9
"""Largest number of assignments of a call."""

MAX_THREADS = 1024
"""Largest number of threads or workers of a call: more than any machine has, but few enough to start."""

Engine = Literal[
    "elimina.sample",
    "elimina.iterate_best",
    "elimina.fit",
    "an influence diagram",
    "a junction tree",
    "elimination on a cluster",
    "search on a cluster",
]
"""Algorithms that accept only some of the options; ``plan`` and ``solve`` accept all."""

_SAMPLES: tuple[Engine, ...] = get_args(Engine)
_TREE: tuple[Engine, ...] = _SAMPLES[1:]
_CLUSTER: tuple[Engine, ...] = _TREE[4:]
_CLUSTER_SEARCH: tuple[Engine, ...] = _CLUSTER[1:]

Group = Literal["common", "limits", "output", "expert"]
"""Groups of options in the help of a command."""


class Clash(NamedTuple):
    """A conflict of an option with the task or with other options.

    Attributes:
        is_broken: Function of the options and the task that returns True if they conflict.
        reason: Text of the error; option names in braces stand for their values.
        needs_task: True if the check requires a task.
        reason_of_plan: Text of the error of a plan, whose options have no method; None: ``reason``.
    """

    is_broken: Callable[[CheckedOptions, str], object]
    reason: str
    needs_task: bool = True
    reason_of_plan: str | None = None


class OptionRecord(NamedTuple):
    """An option: the source of its checks, of its flags on the command line, and of its row in the reference.

    Attributes:
        name: Name of the field of ``Options``.
        values: Values that the option accepts.
        default: Default value.
        scope: ``plan``: used by planning; ``run``: used by runs only.
        help: Description, short enough for a help page.
        default_text: Description of the default if it is None.
        group: Group in the help.
        flags: Flags on the command line; None: the name with dashes; empty: no flag.
        metavar: Placeholder of the value in the help; None: the words that the option accepts.
        noun: Noun for the option in an error, with its article.
        tasks: Function of a task's description that returns True if the option applies to the task; None: to all tasks.
        tasks_note: Reason why it applies to these tasks only, after a comma.
        methods: Methods to which it applies; empty: all.
        engines: Other algorithms that accept it.
        is_of_checkpoint: True if a run resumes from a checkpoint only with the same value.
        clashes: Conflicts with other options, or of a value with the task.
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
        """Flags on the command line."""
        return ("--" + self.name.replace("_", "-"),) if self.flags is None else self.flags

    @property
    def tasks_text(self) -> str:
        """The tasks to which the option applies, in a sentence."""
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
                reason_of_plan="a plan of mmap is exact: leave the i-bound out",
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
