"""Charts of the records: speed against peers, time per variable as models grow, bounds over time, and
the error of estimates.

``bench/render.py`` writes them to ``docs/images``. They are plain SVG, so that equal records give equal files.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

RECORDS = Path(__file__).parent / "results"

CLAIMS = (
    ("posteriors, compiled: pyAgrum", "posteriors-of-a-compiled-network", 3),
    ("posteriors, one call: pyAgrum", "one-call", 3),
    ("posteriors, many cases: pyAgrum", "posteriors-of-many-cases", 3),
    ("optima: toulbar2", "optima-by-elimination-and-search-against-toulbar2", 4),
    ("optima of SPOT5: toulbar2", "optima-of-spot5-by-filtered-elimination", 5),
    ("distributed problems: pyDCOP", "dpop-against-pydcop", 4),
    ("AllDifferent: Gecode", "domain-consistent-alldifferent-against-gecode", 3),
    ("FlatZinc: Gecode", "flatzinc-against-gecode", 5),
    ("GPU kernels: others", "gpu-kernels-against-other-kernels", 3),
)
"""Label of a claim and its peer, the record, and the column of the ratio."""

COLOURS = ("#3949ab", "#00897b", "#e53935", "#8e24aa")
GREY = "#888"
LEFT, WIDTH, ROW = 240, 730, 26
_POWERS = -1.3, 4.1
"""Ends of the axis of ratios, as powers of ten."""


def read(name: str) -> dict[str, Any]:
    """Return a record."""
    record: dict[str, Any] = json.loads((RECORDS / f"{name}.json").read_text())
    return record


def speed() -> str:
    """Return a chart with a dot for each instance of each claim, at its ratio."""
    marks = []
    for row, (label, name, column) in enumerate(CLAIMS):
        y = ROW * (row + 1)
        marks += [_line(LEFT, y, WIDTH - 20, y, "#8883"), _text(LEFT - 10, y + 4, label, "end")]
        for cells in read(name)["rows"]:
            if cells[column]:
                x = _place(float(cells[column].replace(",", "")), *_POWERS)
                marks.append(
                    f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{COLOURS[0]}" fill-opacity="0.6">'
                    f"<title>{escape(cells[0])}: {escape(cells[column])}</title></circle>"
                )
    bottom = ROW * (len(CLAIMS) + 1)
    for power in (-1, 0, 1, 2, 3, 4):
        x = _place(10.0**power, *_POWERS)
        marks += [_line(x, 10, x, bottom, GREY if power == 0 else "#8884"), _text(x, bottom + 16, f"{10.0**power:g}")]
    marks.append(_text(_place(1, *_POWERS), bottom + 34, "times as fast as the peer (right of 1: elimina is faster)"))
    return _svg(bottom + 44, marks, "Speed against other packages")


def growth() -> str:
    """Return a chart of the time per variable at each size, with a line for each family and task."""
    record = read("growth")
    sizes = [float(name.replace(",", "")) for name in record["columns"][1:4]]
    tasks = list(dict.fromkeys(row[0].split()[1] for row in record["rows"]))
    low, high = math.log10(sizes[0]) - 0.1, math.log10(sizes[-1]) + 0.1
    marks, height = [], 240
    for row in record["rows"]:
        colour = COLOURS[tasks.index(row[0].split()[1])]
        places = [
            (_place(size, low, high), height - 200 * math.log10(float(us)) / 2)
            for size, us in zip(sizes, row[1:4], strict=True)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        marks.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2">'
            f"<title>{escape(row[0].replace('`', ''))}</title></polyline>"
        )
    for number, task in enumerate(tasks):
        marks.append(_text(40, 60 + 20 * number, task.strip("`"), "start", COLOURS[number]))
    for us in (1, 10, 100):
        y = height - 100 * math.log10(us)
        marks += [_line(LEFT, y, WIDTH - 20, y, "#8884"), _text(LEFT - 10, y + 4, f"{us} µs", "end")]
    marks += [_text(_place(size, low, high), height + 18, f"{size:,.0f}") for size in sizes]
    marks.append(_text((LEFT + WIDTH) / 2, height + 36, "variables; processor time per variable (flat: linear growth)"))
    return _svg(height + 46, marks, "Time per variable as models grow")


def bounds() -> str:
    """Return a chart of the lower bound and the cost of the best assignment over time, as steps."""
    record = read("bounds-over-time")
    rows = [[float(cell) for cell in row] for row in record["rows"]]
    low, high = math.log10(rows[0][0]), math.log10(rows[-1][0])
    top = max(row[2] for row in rows)
    marks, height = [], 240
    for column, label in ((2, "best assignment"), (1, "lower bound")):
        colour = COLOURS[column - 1]
        places = [(_place(row[0], low, high), height - 210 * row[column] / top) for row in rows]
        path = f"M{places[0][0]:.1f},{places[0][1]:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])
        marks.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"><title>{label}</title></path>')
        marks.append(_text(40, 60 + 20 * (column == 1), label, "start", colour))
    for cost in (0, rows[-1][1]):
        y = height - 210 * cost / top
        marks += [_line(LEFT, y, WIDTH - 20, y, "#8884"), _text(LEFT - 10, y + 4, f"{cost:,.0f}", "end")]
    for seconds in (10.0**power for power in range(math.ceil(low), math.floor(high) + 1)):
        marks.append(_text(_place(seconds, low, high), height + 18, f"{seconds:g} s"))
    marks.append(_text((LEFT + WIDTH) / 2, height + 36, record["note"]))
    return _svg(height + 46, marks, "Bounds over time")


def estimates() -> str:
    """Return a chart of the median error of estimated marginals at each time limit, with a line for each family."""
    record = read("estimates-beyond-summary")
    columns = [
        (column, float(name.removeprefix("distance, ").removesuffix(" s")))
        for column, name in enumerate(record["columns"])
        if name.startswith("distance, ")
    ]
    low, high = math.log10(columns[0][1]) - 0.1, math.log10(columns[-1][1]) + 0.1
    rows = [row for row in record["rows"] if any(row[column] for column, _ in columns)]
    names = list(dict.fromkeys(row[0] for row in rows))
    methods = list(dict.fromkeys(row[1] for row in rows))
    marks, height, decades = [], 240, 4
    for row in rows:
        colour = COLOURS[names.index(row[0]) % len(COLOURS)]
        dashes = "" if methods.index(row[1]) == 0 else f' stroke-dasharray="{2 + 3 * methods.index(row[1])} 3"'
        places = [
            (_place(seconds, low, high), -210 / decades * max(-decades, math.log10(max(float(row[column]), 1e-9))) + 30)
            for column, seconds in columns
            if row[column]
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        marks.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}>'
            f"<title>{escape(row[0])}, {escape(row[1])}</title></polyline>"
        )
    for number, name in enumerate(names):
        marks.append(_text(40, 60 + 20 * number, name, "start", COLOURS[number % len(COLOURS)]))
    for decade in range(decades + 1):
        y = 30 + 210 / decades * decade
        marks += [_line(LEFT, y, WIDTH - 20, y, "#8884"), _text(LEFT - 10, y + 4, f"{10.0**-decade:g}", "end")]
    marks += [_text(_place(seconds, low, high), height + 18, f"{seconds:g} s") for _, seconds in columns]
    caption = "time limit; median of the mean Hellinger distance of marginals"
    marks.append(_text((LEFT + WIDTH) / 2, height + 36, caption))
    return _svg(height + 46, marks, "Error of estimated marginals over time")


CHARTS = {"speed.svg": speed, "growth.svg": growth, "bounds.svg": bounds, "estimates.svg": estimates}
"""File in ``docs/images`` -> function that draws it."""


def _place(value: float, low: float, high: float) -> float:
    """Return the horizontal place of a value on a logarithmic axis."""
    return LEFT + (WIDTH - 30 - LEFT) * (math.log10(value) - low) / (high - low)


def _line(x: float, y: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle", colour: str = GREY) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(text)}</text>'


def _svg(height: int, marks: list[str], title: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="13"><title>{title}</title>'
    )
    return "\n".join([head, *marks, "</svg>", ""])
