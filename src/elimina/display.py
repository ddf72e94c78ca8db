"""Short text and HTML of objects, for a REPL and for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

MAX_CHARACTERS = 1900
"""Largest length of a text for a REPL."""

_MAX_VALUE_CHARACTERS = 150
_MAX_ROWS = 40
"""Largest number of rows of a table in a notebook."""

_BAR_WIDTH = 120
"""Pixels of the bar of a probability of 1."""


Row = tuple[str, str]
Class = TypeVar("Class", bound=type)


def with_types_as_written(named_tuple: Class) -> Class:
    """Make ``help`` show the types of a named tuple's fields as in the source, instead of as ``ForwardRef``."""
    written = named_tuple.__new__.__annotations__
    written.update({name: getattr(kind, "__forward_arg__", kind) for name, kind in written.items()})
    return named_tuple


class Displayed:
    """An object that a REPL shows as text, and a notebook as HTML."""

    __slots__ = ()

    def _figures(self) -> list[Row]:
        """Return the names and values to show."""
        raise NotImplementedError

    def _details(self) -> str:
        """Return HTML that follows the figures; empty unless a class has more to show."""
        return ""

    def __repr__(self) -> str:
        return text_of(type(self).__name__, self._figures())

    def _repr_html_(self) -> str:
        return html_of(type(self).__name__, self._figures(), self._details())


def figures_of(shown: Displayed) -> list[Row]:
    """Return the names and values that an object shows."""
    return shown._figures()


def cut(text: str, max_characters: int = MAX_CHARACTERS) -> str:
    """Return a text; if it is longer than a limit, it is cut, and ends in an ellipsis."""
    return text if len(text) <= max_characters else text[: max_characters - 1] + "…"


def sample(items: Iterable[Any], count: int, max_items: int = 6) -> str:
    """Return the first items as text, separated by commas, and the number of further ones."""
    few = ", ".join(cut(str(item), 40) for item in islice(items, max_items))
    return few if count <= max_items else f"{few} and {count - max_items:,} more"


def text_of(heading: str, rows: Iterable[Row]) -> str:
    """Return a heading with a line for each row: a name and a value.

    Args:
        heading: First line.
        rows: Names and values, a pair per line.
    """
    lines = [f"  {name + ':':20}{cut(value, _MAX_VALUE_CHARACTERS)}" for name, value in rows]
    return cut("\n".join([cut(heading, _MAX_VALUE_CHARACTERS), *lines]))


def html_of(heading: str, rows: Iterable[Row], *sections: str) -> str:
    """Return HTML: a heading, a table of names and values, and further parts.

    Args:
        heading: Text in bold.
        rows: Names and values, a pair per line.
        sections: HTML that follows the table.
    """
    cells = [(escaped(name), escaped(cut(value, 4 * _MAX_VALUE_CHARACTERS))) for name, value in rows]
    return f"<div><b>{escaped(cut(heading, _MAX_VALUE_CHARACTERS))}</b>{_table(cells, 'th')}{''.join(sections)}</div>"


def table_of(header: Sequence[str], rows: Iterable[Sequence[str]], count: int) -> str:
    """Return an HTML table of the first rows, and a line with the number of further ones.

    Args:
        header: Names of the columns.
        rows: Cells of the table, row by row.
        count: Number of all rows.
    """
    cells = [[escaped(cut(cell, _MAX_VALUE_CHARACTERS)) for cell in row] for row in islice(rows, _MAX_ROWS)]
    head = "".join(f"<th>{escaped(name)}</th>" for name in header)
    return _table(cells, "td", f"<thead><tr>{head}</tr></thead>") + _more(count)


def bars_of(marginals: Mapping[str, Mapping[Any, float]]) -> str:
    """Return posteriors as an HTML table with a bar for each probability.

    Args:
        marginals: Variable name -> {state: probability}.
    """
    rows = []
    for name, values in islice(marginals.items(), _MAX_ROWS):
        for number, (state, p) in enumerate(islice(values.items(), _MAX_ROWS)):
            rows.append(
                (escaped(cut(name, 40)) if number == 0 else "", escaped(cut(str(state), 40)), bar(p), f"{p:.4g}")
            )
    return _table(rows, "td") + _more(len(marginals))


def bar(share: float, width: int = _BAR_WIDTH) -> str:
    """Return the HTML of a horizontal bar of ``width`` pixels, filled up to a share of its width."""
    filled = round(width * min(max(share, 0.0), 1.0))
    return (
        f'<div style="width:{width}px;background:#dce9f5"><div style="width:{filled}px;height:0.8em;'
        'background:#2b5c8a"></div></div>'
    )


def _table(rows: Iterable[Sequence[str]], first: str, head: str = "") -> str:
    style = ' style="text-align:left"'
    lines = []
    for cells in rows:
        others = "".join(f"<td{style}>{cell}</td>" for cell in cells[1:])
        lines.append(f"<tr><{first}{style}>{cells[0]}</{first}>{others}</tr>")
    return f"<table>{head}<tbody>{''.join(lines)}</tbody></table>"


def _more(count: int) -> str:
    return f"<p>and {count - _MAX_ROWS:,} more</p>" if count > _MAX_ROWS else ""


def escaped(text: str) -> str:
    """Return a text as HTML."""
    from html import escape

    return escape(text)
