"""Short text and HTML of objects, for a REPL and for notebooks; sizes, counts and times with units that people use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

MOST_CHARACTERS = 1900
"""Length of a representation, without the ellipses."""

_MOST_OF_A_VALUE = 150
_MOST_ROWS = 40
"""Rows of a table in a notebook."""

_BAR_WIDTH = 120
"""Pixels of the bar of a probability of 1."""

_MOST_SHOWN_GAP = 9.99
"""Gap, relative, up to which a log shows it."""

Row = tuple[str, str]


class Displayed:
    """An object that a REPL shows as text, and a notebook as HTML."""

    __slots__ = ()

    def _figures(self) -> list[Row]:
        """Return names and values."""
        raise NotImplementedError

    def _details(self) -> str:
        """Return HTML that follows the figures."""
        return ""

    def __repr__(self) -> str:
        return text_of(type(self).__name__, self._figures())

    def _repr_html_(self) -> str:
        return html_of(type(self).__name__, self._figures(), self._details())


def figures_of(shown: Displayed) -> list[Row]:
    """Return the names and values that an object shows of itself."""
    return shown._figures()


def cut(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text, cut to a length with an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def sample(items: Iterable[Any], count: int, most: int = 6) -> str:
    """List a few of so many items, and say how many more there are."""
    few = ", ".join(cut(str(item), 40) for item in islice(items, most))
    return few if count <= most else f"{few} and {count - most:,} more"


def text_of(heading: str, rows: Iterable[Row]) -> str:
    """Return a heading with a line for each row: a name and a value.

    Args:
        heading: First line.
        rows: Names and values, a pair per line.
    """
    lines = [f"  {name + ':':20}{cut(value, _MOST_OF_A_VALUE)}" for name, value in rows]
    return cut("\n".join([cut(heading, _MOST_OF_A_VALUE), *lines]))


def html_of(heading: str, rows: Iterable[Row], *parts: str) -> str:
    """Return HTML: a heading, a table of names and values, and further parts.

    Args:
        heading: Text in bold.
        rows: Names and values, a pair per line.
        parts: HTML that follows the table.
    """
    cells = [(escaped(name), escaped(cut(value, 4 * _MOST_OF_A_VALUE))) for name, value in rows]
    return f"<div><b>{escaped(cut(heading, _MOST_OF_A_VALUE))}</b>{_table(cells, 'th')}{''.join(parts)}</div>"


def table_of(header: Sequence[str], rows: Iterable[Sequence[str]], count: int) -> str:
    """Return an HTML table of the first rows, and a line with the number of the others.

    Args:
        header: Names of the columns.
        rows: Cells of the table, row by row.
        count: Number of all rows.
    """
    cells = [[escaped(cut(cell, _MOST_OF_A_VALUE)) for cell in row] for row in islice(rows, _MOST_ROWS)]
    head = "".join(f"<th>{escaped(name)}</th>" for name in header)
    return _table(cells, "td", f"<thead><tr>{head}</tr></thead>") + _more(count)


def bars_of(marginals: Mapping[str, Mapping[Any, float]]) -> str:
    """Return posteriors as an HTML table with a bar for each probability.

    Args:
        marginals: Variable name -> {state: probability}.
    """
    rows = []
    for name, values in islice(marginals.items(), _MOST_ROWS):
        for number, (state, p) in enumerate(islice(values.items(), _MOST_ROWS)):
            rows.append(
                (escaped(cut(name, 40)) if number == 0 else "", escaped(cut(str(state), 40)), bar(p), f"{p:.4g}")
            )
    return _table(rows, "td") + _more(len(marginals))


def bar(share: float, width: int = _BAR_WIDTH) -> str:
    """Return a horizontal bar that is filled up to a share of its width in pixels."""
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
    return f"<p>and {count - _MOST_ROWS:,} more</p>" if count > _MOST_ROWS else ""


def escaped(text: str) -> str:
    """Return a text as HTML."""
    from html import escape

    return escape(text)


def times_text(one: int, other: int) -> str:
    """Format a ratio: ``1.7 times``."""
    hundredths = 100 * one // max(1, other)
    return f"{hundredths / 100:.2f} times" if hundredths < 10**6 else f"{count_text(hundredths // 100)} times"


def bytes_text(size: int) -> str:
    """Format bytes: ``1.5 GiB``."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        # A size that would round to 1024.0 of the smaller unit is 1.0 of this unit.
        if size * 20480 >= 20479 << power:
            whole = size >> power
            return f"{count_text(whole)} {unit}" if whole > 10**6 else f"{size / (1 << power):.1f} {unit}"
    return f"{size} byte{'s' * (size != 1)}"


def count_text(number: int) -> str:
    """Format a count: exact up to a million, else by powers of ten, however large."""
    if number < 10**6:
        return f"{number:,}"
    exponent = math.log10(number)
    digits = round(100 * 10 ** (exponent % 1))
    return f"{digits / 100:.2f}e{int(exponent)}" if digits < 1000 else f"1.00e{int(exponent) + 1}"


def seconds_text(seconds: float) -> str:
    """Format a time: ``87 us``, ``3.2 ms``, ``4.0 h``, ``2e+09 years``."""
    if seconds == math.inf:
        return "more than 1e+300 years"
    units = (("years", 3.156e7), ("days", 86400), ("h", 3600), ("min", 60), ("s", 1), ("ms", 1e-3), ("us", 1e-6))
    unit, size = next((unit for unit in units if seconds >= unit[1]), units[-1])
    number = seconds / size
    return (
        f"{number:.1f} {unit}" if number < 9.95 else f"{number:.0f} {unit}" if number < 1e4 else f"{number:.0e} {unit}"
    )


def improvement_line(seconds: float, value: int | None, bound: int | None, gap: float, origin: str) -> str:
    """Return a line of the log of a search.

    Args:
        seconds: Time since the call began.
        value: Value of the best solution; None without one.
        bound: Bound that no solution is beyond; None if it is unknown.
        gap: Distance of both, relative to the one that is closer to 0.
        origin: Part of the search that improved one of them.
    """
    texts = ["-" if number is None else f"{number:,}" for number in (value, bound)]
    share = f"{100 * gap:.1f} %" if gap <= _MOST_SHOWN_GAP else "-"
    return f"{seconds:8.2f} s  value {texts[0]:>10}  bound {texts[1]:>10}  gap {share:>7}  {origin}"
