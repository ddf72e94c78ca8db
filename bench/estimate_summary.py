"""The tables about the accuracy of estimates in ``docs/how-to/approximate.md``, from the records of ``approximate.py``.

``bench/render.py`` puts them behind their markers.
"""

from __future__ import annotations

import statistics

from charts import read

DISTANCES, COUNTS = "<!-- distances of estimates -->\n\n", "<!-- counts of estimates -->\n\n"
EXTREMES = "<!-- worst estimates -->\n\n"
"""Markers of the tables."""

_INSTANCE, _SECONDS, _STATUS, _DISTANCE, _STATED, _PEER, _BELIEF_PROPAGATION = 0, 1, 2, 4, 5, 9, 10
"""Columns of the record ``estimates-peers``."""

_CRITERIA = {
    "mean distance at most that of the best peer": "posteriors at least as close as those of the best other method",
    "mean distance at most twice that of BP": "distance at most twice that of loopy belief propagation",
    "stated error within a factor of 3 (answers that are not exact)": "estimated error within a factor of 3 of the "
    "true one (estimated answers only)",
}
"""Criterion of the record ``estimates-peers-summary`` -> its words on the page."""


def distances() -> str:
    """Return a table of the distances of estimated posteriors from the exact ones, by program."""
    rows = [row for row in read("estimates-peers")["rows"] if row[_STATUS] == "estimated"]
    limits = sorted({row[_SECONDS] for row in rows}, key=float)
    lines = ["| program | models | median | range |", "|---|---|---|---|"]
    for limit in limits:
        lines.append(_line(f"elimina, {limit} s", [row[_DISTANCE] for row in rows if row[_SECONDS] == limit]))
    first = [row for row in rows if row[_SECONDS] == limits[0]]
    best = "the best of 12 methods of libDAI and merlin, chosen for each model afterwards"
    lines.append(_line(f"{best}, about 3 s", [row[_PEER] for row in first]))
    cells = [row[_BELIEF_PROPAGATION] for row in first]
    lines.append(_line("loopy belief propagation (libDAI), about 3 s", cells))
    return "\n".join(lines) + "\n"


def counts() -> str:
    """Return a table of the numbers of models that meet each criterion."""
    record = read("estimates-peers-summary")
    rows = {row[0]: row[2:] for row in record["rows"]}
    lines = [f"| models with | {' | '.join(record['columns'][2:])} |", "|---|---|---|", _exact()]
    lines += [f"| {words} | {' | '.join(rows[criterion])} |" for criterion, words in _CRITERIA.items()]
    return "\n".join(lines) + "\n"


def _exact() -> str:
    """Return the row of the numbers of models that are answered exactly, by time limit."""
    rows = read("estimates-peers")["rows"]
    limits = sorted({row[_SECONDS] for row in rows}, key=float)
    answers = [[row[_STATUS] for row in rows if row[_SECONDS] == limit] for limit in limits]
    cells = (f"{statuses.count('exact')} of {len(statuses)}" for statuses in answers)
    return f"| exact answers | {' | '.join(cells)} |"


def extremes() -> str:
    """Return a table of the models with the worst answers, by time limit."""
    rows = [row for row in read("estimates-peers")["rows"] if row[_STATUS] == "estimated"]
    limits = sorted({row[_SECONDS] for row in rows}, key=float)
    distances, ratios = [], []
    for limit in limits:
        answers = [row for row in rows if row[_SECONDS] == limit]
        far = max(answers, key=lambda row: float(row[_DISTANCE]))
        distances.append(f"{far[_DISTANCE]} ({far[_INSTANCE]})")
        ratio, name = max((float(row[_DISTANCE]) / float(row[_STATED]), row[_INSTANCE]) for row in answers)
        ratios.append(f"{ratio:.0f} ({name})")
    lines = [f"| worst case | {' | '.join(f'{limit} s' for limit in limits)} |", "|---|---|---|"]
    lines.append(f"| largest distance | {' | '.join(distances)} |")
    lines.append(f"| largest ratio of the true error to the estimated one | {' | '.join(ratios)} |")
    return "\n".join(lines) + "\n"


def _line(name: str, cells: list[str]) -> str:
    values = sorted(float(cell) for cell in cells if cell)
    return f"| {name} | {len(values)} | {statistics.median(values):.2g} | {values[0]:.1g} to {values[-1]:.2g} |"
