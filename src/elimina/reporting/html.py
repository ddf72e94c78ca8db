"""Building blocks of a page: HTML in which every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from elimina.display import cut
from elimina.model.model import Model

MAX_LETTERS = 80
"""Largest number of letters of a name or state in a table."""


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def html(content: object) -> Markup:
    """Return HTML unchanged, and any other text escaped."""
    return content if isinstance(content, Markup) else Markup(escape(str(content)))


def short(text: object, letters: int = MAX_LETTERS) -> str:
    """Return a name or state as text, cut to a number of letters."""
    return cut(str(text), letters)


def name_of(model: Model, variable: int, letters: int = MAX_LETTERS) -> str:
    """Return the name of a plan's variable; variables beyond the model's are numbered as auxiliary ones."""
    count = len(model.variables)
    return short(model.variables[variable].name, letters) if variable < count else f"auxiliary {variable - count + 1}"


def joined(contents: Iterable[object]) -> Markup:
    """Return contents as HTML source, separated by newline characters."""
    return Markup("\n".join(map(html, contents)))


def paragraph(text: object, kind: str = "note") -> Markup:
    """Return a paragraph; ``kind`` is its class in the style sheet."""
    return Markup(f'<p class="{kind}">{html(text)}</p>')


def bar(share: float, text: object = "") -> Markup:
    """Return a horizontal bar, filled up to a share, with a text beside it."""
    width = 100 * min(max(share, 0.0), 1.0)
    return Markup(
        f'<span class="bar" aria-hidden="true"><i style="width:{width:.1f}%"></i></span>'
        f'<span class="number">{html(text)}</span>'
    )


def figures(rows: Iterable[tuple[str, object]]) -> Markup:
    """Return names and values as a list of terms."""
    items = "".join(f"<div><dt>{html(name)}</dt><dd>{html(value)}</dd></div>" for name, value in rows)
    return Markup(f'<dl class="figures">{items}</dl>')


def table(caption: object, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table whose first column names the rows.

    Args:
        caption: Text above the table.
        header: Names of the columns.
        rows: Cells, text or HTML.
    """
    head = "".join(f'<th scope="col">{html(name)}</th>' for name in header)
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td>{html(cell)}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{html(first)}</th>{cells}</tr>')
    body = "\n".join(lines)
    return Markup(
        f'<div class="scroll" role="region" tabindex="0" aria-label="{html(caption)}"><table>'
        f"<caption>{html(caption)}</caption><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )
