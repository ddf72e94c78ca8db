"""Tasks of ``solve`` and ``plan``: their names, other names for them, and descriptions."""

from __future__ import annotations

from typing import Any, Literal, get_args

from elimina import arguments

Task = Literal["mpe", "pr", "mar", "mmap", "count"]
TaskName = Literal["mpe", "map", "pr", "partition", "mar", "marginals", "mmap", "count"]
"""A task or another name for it."""

TASKS: tuple[Task, ...] = get_args(Task)
NAMES: tuple[TaskName, ...] = get_args(TaskName)
ALIASES: dict[TaskName, Task] = {"map": "mpe", "partition": "pr", "marginals": "mar"}

DESCRIPTIONS: dict[Task, str] = {
    "mpe": "Best assignment: optimum of a WCSP, MPE of a network.",
    "pr": "Partition function, or probability of the evidence.",
    "mar": "Posterior marginals.",
    "mmap": "Best states of the query, all other variables summed out.",
    "count": "Number of allowed assignments.",
}


def task_of(name: Any) -> Task:
    """Return the task that a name or an alias stands for.

    Raises:
        TypeError: The name is not a text.
        InputError: There is no such task.
    """
    chosen: TaskName = arguments.choice("task", name, NAMES)
    return ALIASES.get(chosen, chosen)  # type: ignore[arg-type]
