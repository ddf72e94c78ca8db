"""Canvas of the pictures: a page in inches, and a few kinds of marks."""

from __future__ import annotations

import io
import logging
import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elimina import arguments
from elimina.display import cut, sample
from elimina.errors import InputError
from elimina.io.files import replacement_of
from elimina.io.xml_documents import not_xml
from elimina.option_names import by_interface
from elimina.system import require
from elimina.viz.colours import FAINT, FILL, INK, LINE, OUTLINE
from elimina.viz.diagram import Points

SUFFIXES = ("svg", "png", "pdf")

POINTS_PER_INCH = 72

_MARGIN = 0.25
_MAX_ROUNDING = 0.075
"""Radius of a box's corners, in inches."""

_DOTS_PER_INCH = 150
_MAX_DOTS = 8_000
"""Largest number of dots along the longer side of a picture."""

_TITLE_LETTERS = 60
_MIN_TITLE_POINTS, _TITLE_POINTS_PER_INCH = 10.0, 0.6

_logger = logging.getLogger("elimina")

_BREAKS = str.maketrans("\t\n\r", "   ")


def _line(text: str) -> str:
    """Return a text as one line of characters allowed in XML."""
    return not_xml().sub("\ufffd", text).translate(_BREAKS)


def need(module: str) -> Any:
    """Return a module of matplotlib; without matplotlib, an InputError says how to install it."""
    return require(module, "plot", "plotting")


def format_of(path: Path) -> str:
    """Return the picture's format by the file's suffix.

    Raises:
        InputError: The suffix is unknown.
    """
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in SUFFIXES:
        raise InputError(
            f"{path}: pictures are written to {', '.join('.' + s for s in SUFFIXES)} files, and a model's graph also "
            f"to .dot and .graphml files{by_interface(' (elimina.viz.write_graph)', '')}"
        )
    return suffix


class Picture:
    """A picture: a notebook shows it, and ``save`` writes it.

    Args:
        figure: Figure of matplotlib.

    Examples:
        >>> import elimina
        >>> picture = elimina.viz.plot("examples/pump.bif")
        >>> picture.save("pump.pdf")
    """

    def __init__(self, figure: Any) -> None:
        self._figure = figure

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture; the file appears only once it is complete.

        Args:
            path: A .svg, .png or .pdf file.

        Raises:
            InputError: The suffix is unknown, or the file cannot be written.
        """
        path = arguments.file("path", path)
        suffix = format_of(path)
        try:
            with replacement_of(path) as file:
                self._render(file, suffix)
        except OSError as error:
            raise InputError(f"cannot write {path}: {error.strerror or error}") from error

    def __repr__(self) -> str:
        return "Picture: save(path) writes it, and a notebook shows it"

    def svg(self) -> str:
        """Return the picture as the text of an SVG file."""
        text = io.StringIO()
        self._render(text, "svg")
        return text.getvalue()

    def _repr_svg_(self) -> str:
        return self.svg()

    def _render(self, target: Path | io.StringIO, suffix: str) -> None:
        figure, dots = self._prepared()
        stamp = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[suffix]
        settings = {"svg.fonttype": "none", "svg.hashsalt": "elimina", "pdf.fonttype": 42}
        with need("matplotlib").rc_context(settings), warnings.catch_warnings():
            # The font draws boxes for letters that it lacks; matplotlib would warn of each of them.
            warnings.filterwarnings("ignore", message="Glyph")
            figure.savefig(target, format=suffix, dpi=dots, metadata=stamp)

    def _prepared(self) -> tuple[Any, float]:
        """Return the figure, and its resolution in dots per inch for pixel formats."""
        return self._figure, _DOTS_PER_INCH


class Canvas(Picture):
    """A page whose coordinates are inches; it grows with the drawing."""

    def __init__(self) -> None:
        super().__init__(need("matplotlib.figure").Figure())
        self._letters: set[str] = set()
        self._axes = self._figure.add_axes((0, 0, 1, 1))
        self._axes.axis("off")
        self._measure = need("matplotlib.textpath").TextToPath()
        self._path = need("matplotlib.path").Path
        self._low = np.array([math.inf, math.inf])
        self._high = -self._low

    @property
    def bounds(self) -> tuple[Points, Points]:
        """The lower left and upper right corners of the drawing; infinite before the first mark."""
        return self._low, self._high

    def text_width(self, text: str, points: float) -> float:
        """Return the width of a line of text in inches."""
        font = need("matplotlib.font_manager").FontProperties(size=points)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")
            width: float = self._measure.get_text_width_height_descent(_line(text), font, False)[0]
        return width / POINTS_PER_INCH

    def text(
        self, x: float, y: float, text: str, points: float, *, gid: str, centred: bool = True, **style: Any
    ) -> None:
        """Write a line of text that is centred on ``x`` or begins there; ``y`` is the middle of its height."""
        text = _line(text)
        self._letters.update(text)
        style = {"color": INK, "va": "center", "ha": "center" if centred else "left", **style}
        self._axes.text(x, y, text, gid=gid, fontsize=points, parse_math=False, **style)
        width, height = self.text_width(text, points), points * 1.2 / POINTS_PER_INCH
        left, low = x - width / 2 if centred else x, y - height / 2
        self._cover(np.array([[left, low], [left + width, low + height]]))

    def title(self, title: str, figures: str, gap: float = 0.15) -> None:
        """Write a title and figures above the drawing, in a size that fits the picture."""
        low, high = self.bounds
        size = max(_MIN_TITLE_POINTS, _TITLE_POINTS_PER_INCH * float(high[0] - low[0]))
        text = f"{cut(title, _TITLE_LETTERS)}: {figures}" if title else figures
        self.text(low[0], high[1] + gap + size / POINTS_PER_INCH, text, size, gid="title", centred=False, color=FAINT)

    def boxes(self, centres: Points, widths: Points, heights: Points, gid: str, fill: Any = FILL) -> None:
        """Draw rounded boxes with outlines; ``fill`` is a colour or one for each."""
        style = need("matplotlib.patches").BoxStyle.Round(
            pad=0, rounding_size=min(_MAX_ROUNDING, 0.3 * float(heights.min()))
        )
        sides = np.stack([widths, heights], axis=1)
        corners = centres - sides / 2
        paths = [style(x, y, w, h, 1) for (x, y), (w, h) in zip(corners, sides, strict=True)]
        self._paths(paths, gid, facecolor=fill, edgecolor=OUTLINE, linewidth=0.8, zorder=3)
        self._cover(corners)
        self._cover(corners + sides)

    def rectangles(self, corners: Points, sides: Points, gid: str, fill: str) -> None:
        """Draw rectangles without outlines, from their lower left corners."""
        paths = [
            self._path([(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)], closed=True)
            for (x, y), (w, h) in zip(corners, sides, strict=True)
        ]
        self._paths(paths, gid, facecolor=fill, edgecolor="none", zorder=4)
        self._cover(corners)
        self._cover(corners + sides)

    def circles(self, centres: Points, radii: Points, gid: str, fill: Any = FILL) -> None:
        """Draw circles with outlines; ``fill`` is a colour or one for each."""
        paths = [self._path.circle(tuple(c), r) for c, r in zip(centres, radii, strict=True)]
        self._paths(paths, gid, facecolor=fill, edgecolor=OUTLINE, linewidth=0.7, zorder=3)
        self._cover(centres - radii[:, None])
        self._cover(centres + radii[:, None])

    def lines(self, runs: Sequence[Points], gid: str, widths: float | Sequence[float] = 0.8) -> None:
        """Draw straight segments through points."""
        self._strokes([self._path(run) for run in runs], runs, gid, widths)

    def curves(self, runs: Sequence[Points], gid: str, widths: float | Sequence[float] = 0.8) -> None:
        """Draw curves through points: vertical at inner points, and along the first and last segment at the ends."""
        self._strokes([self._curve(run) for run in runs], runs, gid, widths)

    def _curve(self, run: Points) -> Any:
        steps = np.diff(run, axis=0)
        upright = steps * [0.0, 0.5]
        start, end = run[:-1] + upright, run[1:] - upright
        start[0], end[-1] = run[0] + steps[0] / 3, run[-1] - steps[-1] / 3
        controls = np.stack([start, end, run[1:]], axis=1).reshape(-1, 2)
        codes = [self._path.MOVETO] + [self._path.CURVE4] * len(controls)
        return self._path(np.concatenate([run[:1], controls]), codes)

    def links(self, starts: Points, ends: Points, gid: str, widths: Sequence[float]) -> None:
        """Draw curves that leave their starts and reach their ends straight down."""
        codes = [self._path.MOVETO] + [self._path.CURVE4] * 3
        paths = []
        for (x0, y0), (x1, y1) in zip(starts, ends, strict=True):
            middle = (y0 + y1) / 2
            paths.append(self._path([(x0, y0), (x0, middle), (x1, middle), (x1, y1)], codes))
        self._strokes(paths, [starts, ends], gid, widths)

    def dotted_arcs(self, runs: Sequence[Points], gid: str) -> None:
        """Draw dotted curves from the first to the last of three points, bent towards the second."""
        codes = [self._path.MOVETO, self._path.CURVE3, self._path.CURVE3]
        paths = [self._path(run, codes) for run in runs]
        self._paths(paths, gid, facecolor="none", edgecolor=OUTLINE, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
        for first, middle, last in runs:
            self._cover(np.array([first, (first + 2 * middle + last) / 4, last]))

    def _strokes(self, paths: list[Any], covered: Sequence[Points], gid: str, widths: float | Sequence[float]) -> None:
        self._paths(paths, gid, facecolor="none", edgecolor=LINE, linewidth=widths, zorder=1)
        for points in covered:
            self._cover(points)

    def arrow_heads(self, tips: Points, directions: Points, length: float, gid: str) -> None:
        """Draw filled triangles at the ends of edges; directions are unit vectors."""
        across = np.stack([-directions[:, 1], directions[:, 0]], axis=1) * (length * 0.36)
        tails = tips - directions * length
        shapes = np.stack([tips, tails + across, tails - across, tips], axis=1)
        paths = [self._path(shape, closed=True) for shape in shapes]
        self._paths(paths, gid, facecolor=LINE, edgecolor="none", zorder=2)

    def _paths(self, paths: list[Any], gid: str, **style: Any) -> None:
        marks = need("matplotlib.collections").PathCollection(paths, **style)
        marks.set_gid(gid)
        self._axes.add_collection(marks, autolim=False)

    def _cover(self, points: Points) -> None:
        if len(points):
            self._low = np.minimum(self._low, points.min(axis=0))
            self._high = np.maximum(self._high, points.max(axis=0))

    def _render(self, target: Path | io.StringIO, suffix: str) -> None:
        # Letters are missing in other formats only: a viewer of SVG chooses a font that has them.
        if suffix != "svg" and (missing := self._missing()):
            _logger.warning(
                "the picture's font, %s, lacks %s, and boxes take their place; write a .svg file",
                *(need("matplotlib").rcParams["font.sans-serif"][0], sample(map(repr, missing), len(missing))),
            )
        super()._render(target, suffix)

    def _missing(self) -> list[str]:
        """Return the letters of the drawing that the font lacks, sorted."""
        fonts = need("matplotlib.font_manager")
        letters = fonts.get_font(fonts.findfont(fonts.FontProperties())).get_charmap()
        return sorted(letter for letter in self._letters if ord(letter) not in letters)

    def _prepared(self) -> tuple[Any, float]:
        low, high = self._low - _MARGIN, self._high + _MARGIN
        self._axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        self._figure.set_size_inches(*(high - low))
        return self._figure, min(_DOTS_PER_INCH, _MAX_DOTS / float((high - low).max()))
