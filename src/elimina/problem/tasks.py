"""Tasks of ``solve`` and ``plan``: their names, aliases and descriptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast, get_args

from elimina import arguments

Task = Literal["mpe", "pr", "mar", "mmap", "count", "count-optima", "kbest", "bottleneck"]
TaskName = Literal[
    "mpe", "map", "pr", "partition", "mar", "marginals", "mmap", "count", "count-optima", "kbest", "bottleneck"
]
"""Name or alias of a task."""

TASKS: tuple[Task, ...] = get_args(Task)
NAMES: tuple[TaskName, ...] = get_args(TaskName)


class Description(NamedTuple):
    """Properties of a task, for code that distinguishes tasks.

    Attributes:
        text: Help text.
        semiring: Name of its semiring.
        aliases: Other names.
        problem: Task of the problem to plan; None: the task itself.
        methods: Methods other than ``auto`` and ``eliminate``.
        is_sum: True if the task sums probabilities, so that models of costs are rejected.
        is_optimum: True if it asks for the best assignment of all variables, so that search may answer it.
        is_marginal: True if it asks for a distribution of each variable.
        is_count: True if it asks for the number of allowed assignments.
        is_unrounded: True if it compares sums of integer costs and must not round them to floats.
        is_beyond_optimum: True if a proven optimum is not a complete answer.
        lists_assignments: True if its answer is a list of assignments, so that values must not be merged.
        is_distribution: True if its answer sums to 1, so that factors that only scale it may be left out.
        takes_query: True if it accepts a query of some variables.
        keeps_query: True if all variables except those of its query are eliminated.
        merges_slices: True if the answers of slices combine into one, as conditioning, checkpoints and clusters
            require.
        has_rows: True if its steps may work on sparse tables.
        has_bounds: True if mini-buckets bound its answer.
        has_first_bounds: True if bounds from single tables are the answer when a better one would come too late.
        soft_evidence: Form of likelihoods: ``factors``, or ``leaves`` of a network; None: likelihoods are not
            supported.
        passes: Passes over the tree; see ``planning.planner``.
        shown: Rows on the command line: their names, and the attributes of the result in them.
        uai: Heading of its answer in the format of the UAI competitions.
    """

    text: str
    semiring: str
    aliases: tuple[str, ...] = ()
    problem: Task | None = None
    methods: tuple[str, ...] = ()
    is_sum: bool = False
    is_optimum: bool = False
    is_marginal: bool = False
    is_count: bool = False
    is_unrounded: bool = False
    is_beyond_optimum: bool = False
    lists_assignments: bool = False
    is_distribution: bool = False
    takes_query: bool = False
    keeps_query: bool = False
    merges_slices: bool = False
    has_rows: bool = False
    has_bounds: bool = False
    has_first_bounds: bool = False
    soft_evidence: Literal["factors", "leaves"] | None = None
    passes: str = "postorder"
    shown: tuple[tuple[str, str], ...] = ()
    uai: str | None = None

    @property
    def sums_all(self) -> bool:
        """True if all variables are summed out."""
        return self.is_sum and not self.keeps_query

    @property
    def is_partition(self) -> bool:
        """True if the task asks for a single sum, whose logarithm has bounds."""
        return self.sums_all and not self.is_marginal

    @property
    def counts_optima(self) -> bool:
        """True if the task asks for the number of optimal assignments."""
        return self.is_beyond_optimum and not self.lists_assignments

    @property
    def maximises_query(self) -> bool:
        """True if the task asks for the best states of its query after all other variables are summed out."""
        return self.is_sum and self.takes_query and self.keeps_query


DESCRIPTIONS: dict[str, Description] = {
    "mpe": Description(
        "Best assignment: optimum of a WCSP, MPE of a network.",
        "min-sum",
        aliases=("map",),
        methods=("filter", "search", "mbe"),
        is_optimum=True,
        merges_slices=True,
        has_rows=True,
        has_bounds=True,
        has_first_bounds=True,
        soft_evidence="factors",
        passes="lasting",
        shown=(("value", "value"),),
        uai="MPE",
    ),
    "pr": Description(
        "Partition function, or probability of the evidence.",
        "sum-product",
        aliases=("partition",),
        methods=("mbe",),
        is_sum=True,
        merges_slices=True,
        has_rows=True,
        has_bounds=True,
        has_first_bounds=True,
        soft_evidence="leaves",
        uai="PR",
    ),
    "mar": Description(
        "Posterior marginals.",
        "sum-product",
        aliases=("marginals",),
        is_sum=True,
        is_marginal=True,
        is_distribution=True,
        takes_query=True,
        has_rows=True,
        soft_evidence="leaves",
        passes="both",
        uai="MAR",
    ),
    "mmap": Description(
        "Best states of the query, all other variables summed out.",
        "sum-product",
        methods=("search", "mbe"),
        is_sum=True,
        takes_query=True,
        keeps_query=True,
        has_bounds=True,
        has_first_bounds=True,
        soft_evidence="leaves",
        passes="upward",
        shown=(("value", "value"),),
        uai="MMAP",
    ),
    "count": Description(
        "Number of allowed assignments.",
        "count",
        is_count=True,
        merges_slices=True,
        has_rows=True,
        has_first_bounds=True,
        shown=(("count", "value"),),
    ),
    "count-optima": Description(
        "Number of optimal assignments, of integer costs.",
        "min-sum",
        problem="mpe",
        is_unrounded=True,
        is_beyond_optimum=True,
        has_first_bounds=True,
        shown=(("value", "value"), ("optima", "count")),
    ),
    "kbest": Description(
        "The k best assignments.",
        "min-sum",
        problem="mpe",
        is_beyond_optimum=True,
        lists_assignments=True,
        has_first_bounds=True,
        soft_evidence="factors",
        shown=(("value", "value"),),
    ),
    "bottleneck": Description(
        "Best assignment by its worst cost or satisfaction.",
        "min-max",
        has_rows=True,
        has_first_bounds=True,
        passes="lasting",
        shown=(("worst value", "value"),),
    ),
}
"""Descriptions of the tasks, by name."""

JOINT = Description(
    "Joint distribution of some variables.",
    "sum-product",
    is_sum=True,
    is_distribution=True,
    keeps_query=True,
    passes="joint",
)
"""Description of the problem ``joint``, which other tasks solve."""


def described(task: str) -> Description:
    """Return the description of a task, or of a problem within a task."""
    return JOINT if task == "joint" else DESCRIPTIONS[task]


def tasks_that(has: Callable[[Description], object]) -> tuple[str, ...]:
    """Return the names of the tasks for whose description ``has`` is true."""
    return tuple(name for name, description in DESCRIPTIONS.items() if has(description))


def task_of(name: Any) -> Task:
    """Return the task with a name or an alias, in lower or upper case.

    Raises:
        TypeError: The name is not a text.
        InputError: The task is unknown.
    """
    word = name.lower() if isinstance(name, str) and name.lower() in NAMES else name
    task_name: TaskName = arguments.choice("task", word, NAMES)
    return next((task for task in TASKS if task_name in DESCRIPTIONS[task].aliases), cast(Task, task_name))
