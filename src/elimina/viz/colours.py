"""Colours of figures, and of graphs for other programs."""

from __future__ import annotations

from elimina.viz.diagram import Diagram

INK, LINE, FILL, OUTLINE, FAINT = "#1b1f24", "#7d8b99", "#dce9f5", "#2b5c8a", "#56616c"
OBSERVED = "#f2a36b"
BACKGROUND = "#ffffff"
OTHERS = "#d5dbe1"
CLASSES = ("#9ecae9", "#f6cf71", "#9fd8b8", "#e3b4d3", "#f2b8a0", "#c9bfe6", "#d6d68a", "#b3d1d6")
"""Fills of classes, light enough for dark names."""

LIGHT_SCALE, DARK_SCALE = ("#f4f8fc", "#8fb8e0"), ("#cfe1f2", "#08519c")
"""Ends of two scales: a light scale for dark names, and a dark scale for numbers in the ink of ``ink_on``."""

_WHITE_INK_SHARE = 0.65


def node_fills(diagram: Diagram, scale: tuple[str, str] = LIGHT_SCALE) -> list[str]:
    """Return the fill of each node: that of the first colouring, or the default; observed nodes have another colour."""
    fills = [FILL] * len(diagram.names)
    if diagram.colourings:
        colouring = diagram.colourings[0]
        for node, value in enumerate(colouring.values):
            if value is None:
                continue
            if colouring.is_scale:
                fills[node] = blend(float(value), scale)
            else:
                fills[node] = CLASSES[int(value)] if value < len(CLASSES) else OTHERS
    for node in diagram.marked:
        fills[node] = OBSERVED
    return fills


def blend(share: float, scale: tuple[str, str]) -> str:
    """Return the colour at a share of the way from the first end of a scale to the second."""
    ends = zip(*([int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in scale), strict=True)
    return "#" + "".join(f"{round(low + (high - low) * share):02x}" for low, high in ends)


def ink_on(share: float) -> str:
    """Return a legible colour for numbers on the colour at this share of the dark scale."""
    return "#ffffff" if share > _WHITE_INK_SHARE else INK
