"""The page of a report: its sections in order, with their style and script."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

from elimina.reporting.diagrams import PageDiagram
from elimina.reporting.html import Markup, html, short
from elimina.version import __version__

_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
"""Escapes of characters that could end the element with the data, or are forbidden in strings of scripts."""

_ORDER = (
    *("figures", "answer", "search", "tour", "bounds", "graph", "tree", "agents", "messages"),
    *("sensitivity", "parameters", "plan"),
)


class PageSection(NamedTuple):
    """A section of the page.

    Attributes:
        key: Identifier of the section, one of ``_ORDER``; sections come in that order.
        title: Heading of the section.
        body: Content of the section, HTML.
    """

    key: str
    title: str
    body: Markup


def page(title: str, sections: Sequence[PageSection], diagrams: Sequence[PageDiagram], notes: Sequence[str]) -> str:
    """Return the whole page.

    Args:
        title: Heading of the page.
        sections: Sections in any order; empty ones are left out.
        diagrams: Diagrams with places in the sections.
        notes: Remarks on omissions of the page.
    """
    shown = sorted((section for section in sections if section.body), key=lambda section: _ORDER.index(section.key))
    links = "".join(f'<a href="#{section.key}">{html(section.title)}</a>' for section in shown)
    bodies = "\n".join(
        f'<section id="{key}" aria-labelledby="h-{key}"><h2 id="h-{key}">{html(heading)}</h2>\n{body}\n</section>'
        for key, heading, body in shown
    )
    data: dict[str, Any] = {diagram.diagram.key: diagram.data() for diagram in diagrams}
    return Template(_template("page.html")).substitute(
        title=html(short(title)),
        style=_template("style.css"),
        script=_template("script.js"),
        links=links,
        notes="".join(f'<p class="warning">{html(note)}</p>' for note in notes),
        sections=bodies,
        data=json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False).translate(_ESCAPED),
        version=__version__,
    )


def _template(name: str) -> str:
    return files("elimina.reporting").joinpath("template", name).read_text("utf-8")
