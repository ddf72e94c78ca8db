"""The page: its sections, the data of its drawings, and one HTML file of all of it."""

from __future__ import annotations

import json
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

from elimina import __version__
from elimina.reporting.drawing import Drawing
from elimina.reporting.markup import Markup, html, short

_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Characters that could end the element of the data, or that scripts do not take in texts."""

_ORDER = (
    *("figures", "answer", "search", "tour", "bounds", "graph", "tree", "agents", "messages", "timeline"),
    *("sensitivity", "plan"),
)


class Section(NamedTuple):
    """A part of the page.

    Attributes:
        key: Identifier, one of a fixed list that gives the order on the page.
        title: Heading.
        body: Content.
    """

    key: str
    title: str
    body: Markup


def page(title: str, sections: list[Section], drawings: list[Drawing], notes: list[str]) -> str:
    """Return the whole page.

    Args:
        title: Heading of the page.
        sections: Parts in any order.
        drawings: Graphs whose places are in the parts.
        notes: Remarks on what the page lacks.
    """
    shown = sorted((one for one in sections if one.body), key=lambda one: _ORDER.index(one.key))
    links = "".join(f'<a href="#{one.key}">{html(one.title)}</a>' for one in shown)
    bodies = "\n".join(
        f'<section id="{one.key}" aria-labelledby="h-{one.key}"><h2 id="h-{one.key}">{html(one.title)}</h2>'
        f"\n{one.body}\n</section>"
        for one in shown
    )
    data: dict[str, Any] = {drawing.key: drawing.data() for drawing in drawings}
    return Template(_part("page.html")).substitute(
        title=html(short(title)),
        style=_part("style.css"),
        script=_part("script.js"),
        links=links,
        notes="".join(f'<p class="warning">{html(note)}</p>' for note in notes),
        sections=bodies,
        data=json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False).translate(_ESCAPED),
        version=__version__,
    )


def _part(name: str) -> str:
    return files("elimina.reporting").joinpath("template", name).read_text("utf-8")
