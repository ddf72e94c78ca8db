"""Rows of the schedule, changed for a test."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from elimina.strategies import schedule
from elimina.strategies.row import Row
from elimina.strategies.task_portfolio import MODULES, rows_of


def all_rows(rows: tuple[Row, ...]) -> Iterator[Row]:
    """Yield rows, and those within them."""
    for row in rows:
        yield row
        yield from all_rows(row.rows)


def row_of(task: str, name: str) -> Row:
    """Return the row of a task's schedule with a name."""
    (row,) = {id(row): row for row in all_rows(rows_of(task)) if row.name == name}.values()
    return row


def change_row(monkeypatch: pytest.MonkeyPatch, name: str, **changes: Any) -> None:
    """Change the rows with a name in the schedules of all tasks."""
    changed = 0

    def with_changes(rows: tuple[Row, ...]) -> tuple[Row, ...]:
        nonlocal changed
        changed += sum(row.name == name for row in rows)
        inner = (row._replace(rows=with_changes(row.rows)) for row in rows)
        return tuple(row._replace(**changes) if row.name == name else row for row in inner)

    for module in [schedule, *map(import_module, MODULES.values())]:
        monkeypatch.setattr(module, "ROWS", with_changes(module.ROWS))
    assert changed, f"there is no row named {name!r}"
