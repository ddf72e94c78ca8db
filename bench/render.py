"""Tables of RESULTS.md and of the pages in ``bench/results``, and charts in ``docs/images``, from the records.

    python bench/render.py [--check]

A comment ``<!-- NAME -->`` at the end of a paragraph names the record ``results/NAME.json``; the table that follows is
replaced. ``--check`` writes nothing, and fails if a table or chart differs from its records.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from charts import CHARTS

FOLDER = Path(__file__).parent
IMAGES = FOLDER.parent / "docs" / "images"
PAGES = [FOLDER / "RESULTS.md", *sorted(FOLDER.glob("results/*.md"))]
SECTION = re.compile(
    r"(?P<source>^[^\n]*)(?P<marker> <!-- (?P<name>[a-z0-9-]+) -->\n\n)(?P<table>(?:\|[^\n]*\n)+)", re.MULTILINE
)


def rendered(text: str) -> str:
    """Return a page with the tables of the records."""
    return SECTION.sub(_section, text)


def _section(match: re.Match[str]) -> str:
    record = json.loads((FOLDER / "results" / f"{match['name']}.json").read_text())
    return source(record) + match["marker"] + table(record)


def source(record: dict[str, Any]) -> str:
    """Return the line above a table: command, machine, date, and a note."""
    if "source" in record:
        text: str = record["source"]
        return text
    note = f" {record['note']}" if record["note"] else ""
    return f"`{record['command']}`; {record['machine']}; {record['date']}, commit {record['commit']}.{note}"


def table(record: dict[str, Any]) -> str:
    """Return a record as a table in Markdown."""
    rows = [record["columns"], ["---"] * len(record["columns"]), *record["rows"]]
    lines = ["| " + " | ".join(row) + " |\n" if row[0] != "---" else "|" + "---|" * len(row) + "\n" for row in rows]
    return "".join(lines)


def main() -> None:
    """Write the pages and charts, or check them."""
    made = {page: rendered(page.read_text()) for page in PAGES}
    made |= {IMAGES / name: draw() for name, draw in CHARTS.items()}
    for path, new in made.items():
        if "--check" not in sys.argv[1:]:
            path.write_text(new)
        elif not path.exists() or new != path.read_text():
            sys.exit(f"{path} differs from bench/results: run python bench/render.py")


if __name__ == "__main__":
    main()
