"""Tables of RESULTS.md and of the pages in ``bench/results``, and charts in ``docs/images``, from the records.

    python bench/render.py [--check]

A comment ``<!-- NAME -->`` names the record ``results/NAME.json``; the caption, the source and the table after it are
replaced. The README has the table of ``summary.py``, and the page on estimates those of
``estimate_summary.py``. ``--check`` writes nothing, and fails if a table or chart differs
from its records.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import estimate_summary
import summary
from charts import CHARTS

FOLDER = Path(__file__).parent
IMAGES = FOLDER.parent / "docs" / "images"
PAGES = [FOLDER / "RESULTS.md", *sorted(FOLDER.glob("results/*.md"))]
README = FOLDER.parent / "README.md"
ESTIMATES = FOLDER.parent / "docs" / "how-to" / "approximate.md"
SECTION = re.compile(
    r"(?P<marker>^<!-- (?P<name>[a-z0-9-]+) -->\n)(?P<source>(?:(?!\||#|<!--)[^\n]*\n)*)(?P<table>(?:\|[^\n]*\n)+)",
    re.MULTILINE,
)


def rendered(text: str) -> str:
    """Return a page with the tables of the records."""
    return SECTION.sub(_section, text)


def _section(match: re.Match[str]) -> str:
    record = json.loads((FOLDER / "results" / f"{match['name']}.json").read_text())
    return match["marker"] + source(record) + table(record)


def source(record: dict[str, Any]) -> str:
    """Return the lines above a table: its caption, then command, machine and date."""
    commands = [record["command"]] if isinstance(record["command"], str) else record["command"]
    commit = f", commit {record['commit']}" if record["commit"] else ""
    lines = [
        f"- command: {', '.join(f'`{command}`' for command in commands)}",
        f"- machine: {record['machine']}",
        f"- date: {record['date']}{commit}",
    ]
    return "\n".join([*([record["note"], ""] if record["note"] else []), *lines, "", ""])


def table(record: dict[str, Any]) -> str:
    """Return a record as a table in Markdown."""
    rows = [record["columns"], ["---"] * len(record["columns"]), *record["rows"]]
    lines = ["| " + " | ".join(row) + " |\n" if row[0] != "---" else "|" + "---|" * len(row) + "\n" for row in rows]
    return "".join(lines)


def with_estimates(text: str) -> str:
    """Return the page on estimates with the tables about their accuracy."""
    text = summary.inserted(text, estimate_summary.DISTANCES, estimate_summary.distances())
    text = summary.inserted(text, estimate_summary.COUNTS, estimate_summary.counts())
    return summary.inserted(text, estimate_summary.EXTREMES, estimate_summary.extremes())


def main() -> None:
    """Write the pages and charts, or check them."""
    made = {page: rendered(page.read_text()) for page in PAGES}
    made[README] = summary.inserted(README.read_text())
    made[ESTIMATES] = with_estimates(ESTIMATES.read_text())
    made |= {IMAGES / name: draw() for name, draw in CHARTS.items()}
    for path, new in made.items():
        if "--check" not in sys.argv[1:]:
            path.write_text(new)
        elif not path.exists() or new != path.read_text():
            sys.exit(f"{path} differs from bench/results: run python bench/render.py")


if __name__ == "__main__":
    main()
