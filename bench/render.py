"""Tables of RESULTS.md and of the pages in ``bench/results`` from the records there.

    python bench/render.py [--check]

A comment ``<!-- NAME -->`` at the end of a paragraph names the record ``results/NAME.json``; the table that follows is
replaced. ``--check`` writes nothing, and fails if a table differs from its record.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
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
    """Write the pages, or check them."""
    for page in PAGES:
        text = page.read_text()
        new = rendered(text)
        if "--check" not in sys.argv[1:]:
            page.write_text(new)
        elif new != text:
            sys.exit(f"{page} differs from bench/results: run python bench/render.py")


if __name__ == "__main__":
    main()
