"""Diagrams of a page: data for the page's script, which draws them, and the controls around them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from elimina.reporting.html import Markup, html, short
from elimina.viz.arrangement import arrange
from elimina.viz.diagram import Diagram, Extents, GraphLayout, Points

_SIDE = 10_000
"""Units of the longer side of a diagram; integer coordinates keep the page small."""

_ASPECT = 1.9
"""Ratio of the width of a diagram on a page to its height."""

_MAX_STRETCHES = np.array([1.7, 3.4])
"""Largest factors, across and upwards, by which a layout is stretched towards the aspect of the page."""

_MAX_NAMED_NODES = 150
"""Largest number of nodes whose names are all shown at first; the layout then leaves space for them."""

_DOT, _NAME_HEIGHT, _NAME_WIDTH, _LETTER, _NAME_LETTERS = 0.33, 0.25, 0.4, 0.09, 16
"""Diameter of a node, height of a name, its width without letters, and width of a letter, in units of about an inch;
largest number of letters of a name."""

_DROP, _GAP, _EDGE = 0.42, 0.05, 0.75


class PageDiagram(NamedTuple):
    """A diagram with its layout.

    Attributes:
        diagram: Content of the diagram.
        layout: Positions of its nodes, and the courses of its edges.
    """

    diagram: Diagram
    layout: GraphLayout

    def data(self) -> dict[str, Any]:
        """Return the data for the page's script."""
        diagram, (positions, bends, _) = self
        # A curve with one bend is a quadratic Bézier curve, which goes only half of the way to its bend.
        middles = [
            (positions[a] + positions[b] + 2 * bend) / 4 if len(bend) == 1 else bend
            for (a, b), bend in zip(diagram.edges, bends, strict=True)
            if len(bend)
        ]
        stacked = np.concatenate([positions, *middles])
        low, high = stacked.min(axis=0), stacked.max(axis=0)
        scale = _SIDE / (float((high - low).max()) or 1.0)

        def placed(points: Points) -> list[int]:
            flipped = np.stack([points[:, 0] - low[0], high[1] - points[:, 1]], axis=1)
            coordinates: list[int] = np.rint(flipped * scale).astype(int).ravel().tolist()
            return coordinates

        return {
            "names": [short(name) for name in diagram.names],
            "positions": placed(positions),
            "extent": np.rint((high - low) * scale).astype(int).tolist(),
            "edges": [end for edge in diagram.edges for end in edge],
            "directed": diagram.is_directed,
            "bends": {str(number): placed(bend) for number, bend in enumerate(bends) if len(bend)},
            "sizes": [round(size, 3) for size in diagram.sizes],
            "marked": list(diagram.marked),
            "dashed": sorted(diagram.dashed),
            "details": [
                [[text, None if share is None else round(share, 4)] for text, share in lines]
                for lines in diagram.details
            ],
            "members": [list(names) for names in diagram.members],
            "colourings": [
                {"name": name, "values": list(values), "labels": list(labels), "scale": is_scale}
                for name, values, labels, is_scale in diagram.colourings
            ],
            "noun": diagram.noun,
        }

    def markup(self) -> Markup:
        """Return the element in which the page's script draws the diagram, with its controls."""
        diagram = self.diagram
        title = "; ".join([f"{diagram.subject}: {diagram.figures}", *diagram.remarks])
        options = "".join(f"<option>{html(colouring.name)}</option>" for colouring in diagram.colourings)
        colours = f"<label>Colour <select>{options}</select></label>" if len(diagram.colourings) > 1 else ""
        keys = "Arrow keys move the diagram, plus and minus zoom, 0 shows all of it, Escape ends a selection."
        return Markup(
            f'<figure class="drawing" data-key="{diagram.key}"><div class="controls"><label>Find a '
            f'{html(diagram.noun)} <input type="search" autocomplete="off" spellcheck="false"></label>{colours}'
            '<button type="button" data-do="in" aria-label="Zoom in">+</button>'
            '<button type="button" data-do="out" aria-label="Zoom out">−</button>'
            '<button type="button" data-do="all">Show all</button>'
            '<span class="found" role="status"></span></div><div class="hits"></div>'
            f'<div class="stage"><canvas tabindex="0" role="img" aria-label="{html(title)}. {keys}"></canvas>'
            '<div class="tip" hidden></div></div><div class="legend"></div><div class="details" role="status"></div>'
            f"<figcaption>{html(title)}. Drag to move; click it and turn the wheel to zoom; click a "
            f"{html(diagram.noun)} for its neighbours.</figcaption></figure>"
        )


def page_layout(diagram: Diagram) -> GraphLayout:
    """Return the layout of a diagram for a page, stretched towards the aspect of the page unless it is a map."""
    count = len(diagram.names)
    widths, below = np.full(count, _DOT), np.full(count, _DOT / 2)
    if count <= _MAX_NAMED_NODES:
        letters = np.array([min(len(name), _NAME_LETTERS) for name in diagram.names])
        widths = np.maximum(widths, _NAME_WIDTH + _LETTER * letters)
        below += _NAME_HEIGHT
    layout = arrange(diagram, Extents(widths, np.full(count, _DOT / 2), below, _GAP, _DROP, _EDGE))
    if diagram.points is not None:
        return layout
    width, height = np.ptp(layout.positions, axis=0)
    ratio = width / _ASPECT / (height or 1.0) or 1.0
    stretch = np.array([1 / ratio, ratio]).clip(1.0, _MAX_STRETCHES)
    return layout._replace(positions=layout.positions * stretch, bends=[bend * stretch for bend in layout.bends])
