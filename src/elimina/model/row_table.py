"""Answers that are lists of rows: named tuples with a text, a data frame and a notebook table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from elimina.display import Displayed, cut, table_of, text_of
from elimina.model.named_table import states_frame

if TYPE_CHECKING:
    from elimina.system import Library

Row = TypeVar("Row", bound=tuple[Any, ...])

_ROWS_SHOWN = 24
"""Largest number of rows in a text."""

_CELL_LETTERS = 40


class RowTable(Displayed, Sequence[Row], Generic[Row]):
    """A read-only sequence of rows, which are named tuples of one class.

    Args:
        rows: Rows, the most important one first.
    """

    fields: ClassVar[tuple[str, ...]] = ()
    """Names of the columns."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def to_frame(self, library: Library = "pandas") -> Any:
        """Return a data frame with a column for each field of the rows.

        Args:
            library: ``pandas``, ``polars`` or ``pyarrow`` (a ``Table``).

        Raises:
            TypeError: ``library`` is not text.
            InputError: ``library`` is another one, or not installed.
        """
        columns = {name: [row[column] for row in self._rows] for column, name in enumerate(self.fields)}
        numbers = {name: cells for name, cells in columns.items() if all(isinstance(cell, float) for cell in cells)}
        states = {
            name: [cell if isinstance(cell, str | int | bool) else _text(cell) for cell in cells]
            for name, cells in columns.items()
            if name not in numbers
        }
        frame = states_frame(states, numbers, library)
        return frame.select(list(self.fields)) if library != "pandas" else frame[list(self.fields)]

    def _cells(self) -> Iterator[tuple[str, ...]]:
        """Yield the texts of each row."""
        return (tuple(map(_text, row)) for row in self._rows)

    def __repr__(self) -> str:
        shown = [self.fields, *islice(self._cells(), _ROWS_SHOWN)]
        cells = [[cut(cell, _CELL_LETTERS) for cell in row] for row in shown]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
        ]
        more = len(self) - _ROWS_SHOWN
        return "\n".join([text_of(type(self).__name__, self._figures()), *lines, *[f"and {more:,} more"] * (more > 0)])

    def _details(self) -> str:
        return table_of(self.fields, self._cells(), len(self))


def _text(cell: Any) -> str:
    """Return the text of a cell: six digits of a number, pairs of a mapping."""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    if isinstance(cell, dict):
        return ", ".join(f"{name}={state}" for name, state in cell.items()) or "none"
    return str(cell)
