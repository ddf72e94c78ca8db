"""Reference page of the options, made from their table.

``python -m tests.option_page`` writes the page.
"""

from __future__ import annotations

from pathlib import Path

from elimina.planning.option_table import OPTIONS, OptionRecord
from elimina.problem.tasks import tasks_that

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "options.md"
HEADING = """# Options

The fields of [`elimina.Options`](python.md#elimina.Options) are options of `elimina solve`; those of a plan are options
of `elimina plan`, too. An option that does not go with the task or the method is an error. The last column names what
takes the option besides these commands and `elimina.plan` and `elimina.solve`.

"""
COLUMNS = ("option", "command line", "default", "of a", "tasks", "methods", "meaning", "also taken by")


def page() -> str:
    """Return the text of the page."""
    rows = [COLUMNS, ("---",) * len(COLUMNS), *(_row(record) for record in OPTIONS)]
    return HEADING + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(record: OptionRecord) -> tuple[str, ...]:
    default = f"`{record.default}`" if record.default is not None else record.default_text or "none"
    tasks = "all" if record.tasks is None else ", ".join(tasks_that(record.tasks))
    flags = ", ".join(f"`{flag}`" for flag in record.command_line)
    methods = ", ".join(record.methods) or "all"
    return (f"`{record.name}`", flags, default, record.scope, tasks, methods, record.help, ", ".join(record.engines))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
