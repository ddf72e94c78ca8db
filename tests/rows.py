"""Rows of the schedule, changed for a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from elimina.strategies import schedule, task_portfolio
from elimina.strategies.row import Row


def all_rows(rows: tuple[Row, ...]) -> Iterator[Row]:
    """Yield rows, and those within them."""
    for row in rows:
        yield row
        yield from all_rows(row.rows)


def row_of(task: str, name: str) -> Row:
    """Return the row of a task's schedule with a name."""
    (row,) = {id(row): row for row in all_rows(task_portfolio.TASKS[task]) if row.name == name}.values()
    return row


def change_row(monkeypatch: pytest.MonkeyPatch, name: str, **changes: Any) -> None:
    """Change the rows with a name in the schedules of all tasks."""
    changed = 0

    def with_changes(rows: tuple[Row, ...]) -> tuple[Row, ...]:
        nonlocal changed
        changed += sum(row.name == name for row in rows)
        inner = (row._replace(rows=with_changes(row.rows)) for row in rows)
        return tuple(row._replace(**changes) if row.name == name else row for row in inner)

    for table in (schedule.SCHEDULE, task_portfolio.TASKS):
        for task in table:
            monkeypatch.setitem(table, task, with_changes(table[task]))
    assert changed, f"there is no row named {name!r}"
