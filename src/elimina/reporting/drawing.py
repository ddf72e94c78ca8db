"""Graphs as the page's script draws them: plain lists that become JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.reporting.markup import Markup, html

_SIDE = 10_000
"""Units of the longer side of a drawing: coordinates are integers, which keeps the page small."""

_ASPECT, _MOST_STRETCH = 1.9, 1.7


def on_page(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the factors of both axes that bring places nearer to the shape of a page."""
    wide, high = np.ptp(places, axis=0)
    ratio = wide / _ASPECT / (high or 1.0)
    return np.array([min(max(1 / (ratio or 1.0), 1.0), _MOST_STRETCH), min(max(ratio, 1.0), 2 * _MOST_STRETCH)])


@dataclass
class Colouring:
    """A choice of colours for the nodes.

    Attributes:
        name: Label of the choice.
        values: A number for each node: of a class, or from 0 to 1; None where there is none.
        labels: Names of the classes; or of both ends of a scale.
        is_scale: True if the values are a scale.
    """

    name: str
    values: Sequence[int | float | None]
    labels: Sequence[str]
    is_scale: bool = False


@dataclass
class Drawing:
    """A graph with its places.

    Attributes:
        key: Identifier within the page.
        title: Description for readers who do not see the drawing.
        names: Labels of the nodes.
        places: Float array of shape ``(nodes, 2)``; y grows upwards.
        edges: Pairs of nodes.
        is_directed: True if edges have arrows.
        bends: Points between the ends of each edge; none if all edges are straight.
        sizes: Radii of the nodes, relative to one another; none if all are equal.
        marked: Nodes that are marked by a square.
        dashed: Edges, by number, that are dashed.
        details: Lines that describe each node: a text, and a share for a bar or None.
        members: Further names that a search finds each node by.
        colourings: Choices of colours; the first is the one that is shown first.
        noun: Word for a node.
    """

    key: str
    title: str
    names: Sequence[str]
    places: NDArray[np.float64]
    edges: Sequence[tuple[int, int]]
    is_directed: bool = False
    bends: Sequence[NDArray[np.float64]] = ()
    sizes: Sequence[float] = ()
    marked: Sequence[int] = ()
    dashed: Sequence[int] = ()
    details: Sequence[Sequence[tuple[str, float | None]]] = ()
    members: Sequence[Sequence[str]] = ()
    colourings: list[Colouring] = field(default_factory=list)
    noun: str = "variable"

    def data(self) -> dict[str, Any]:
        """Return what the script reads."""
        points = [self.places, *(bend for bend in self.bends if len(bend))]
        stacked = np.concatenate(points)
        low, high = stacked.min(axis=0), stacked.max(axis=0)
        scale = _SIDE / (float((high - low).max()) or 1.0)

        def placed(place: NDArray[np.float64]) -> list[int]:
            flipped = np.stack([place[:, 0] - low[0], high[1] - place[:, 1]], axis=1)
            found: list[int] = np.rint(flipped * scale).astype(int).ravel().tolist()
            return found

        return {
            "names": list(self.names),
            "places": placed(self.places),
            "edges": [end for edge in self.edges for end in edge],
            "directed": self.is_directed,
            "bends": {str(n): placed(bend) for n, bend in enumerate(self.bends) if len(bend)},
            "sizes": [round(size, 3) for size in self.sizes],
            "marked": list(self.marked),
            "dashed": list(self.dashed),
            "details": [
                [[text, None if share is None else round(share, 4)] for text, share in lines] for lines in self.details
            ],
            "members": [list(names) for names in self.members],
            "colourings": [
                {"name": one.name, "values": list(one.values), "labels": list(one.labels), "scale": one.is_scale}
                for one in self.colourings
            ],
            "noun": self.noun,
        }

    def markup(self) -> Markup:
        """Return the place of the drawing in the page, with its controls."""
        options = "".join(f"<option>{html(one.name)}</option>" for one in self.colourings)
        colours = f"<label>Colour <select>{options}</select></label>" if len(self.colourings) > 1 else ""
        keys = "Arrow keys move the drawing, plus and minus zoom, 0 shows all of it, Escape ends a selection."
        return Markup(
            f'<figure class="drawing" data-key="{self.key}"><div class="controls"><label>Find a {html(self.noun)} '
            f'<input type="search" autocomplete="off" spellcheck="false"></label>{colours}'
            '<button type="button" data-do="in" aria-label="Zoom in">+</button>'
            '<button type="button" data-do="out" aria-label="Zoom out">−</button>'
            '<button type="button" data-do="all">Show all</button>'
            '<span class="found" role="status"></span></div><div class="hits"></div>'
            f'<div class="stage"><canvas tabindex="0" role="img" aria-label="{html(self.title)}. {keys}"></canvas>'
            '<div class="tip" hidden></div></div><div class="legend"></div><div class="details" role="status"></div>'
            f"<figcaption>{html(self.title)}. Drag to move; click it and turn the wheel to zoom; click a "
            f"{html(self.noun)} for its neighbours.</figcaption></figure>"
        )
