"""Records of benchmarks: a JSON file for each claim, from which ``bench/render.py`` makes the tables of RESULTS.md."""

from __future__ import annotations

import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"


class Record:
    """One run of a benchmark: its command, machine, date and commit, and the rows of its table.

    Args:
        name: Name of the file, without suffix.
        columns: Headings of the table.
        note: Meaning of the figures, in a sentence or two.
    """

    def __init__(self, name: str, columns: Sequence[str], note: str = "") -> None:
        self.name, self.columns, self.note = name, list(columns), note
        self.rows: list[list[str]] = []

    def add(self, *cells: Any) -> None:
        """Add a row of texts and numbers."""
        assert len(cells) == len(self.columns), (self.columns, cells)
        self.rows.append([str(cell) for cell in cells])

    def save(self) -> Path:
        """Write the file, in place of the one of an earlier run."""
        path = FOLDER / f"{self.name}.json"
        found = {
            "command": " ".join(["python", f"bench/{Path(sys.argv[0]).name}", *map(_shown, sys.argv[1:])]),
            "machine": machine(),
            "date": datetime.date.today().isoformat(),
            "commit": commit(),
            "note": self.note,
            "columns": self.columns,
            "rows": self.rows,
        }
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        return path


def _shown(argument: str) -> str:
    """Return an argument, paths of this machine under general names."""
    path = Path(argument)
    if not path.is_absolute():
        return argument
    return "PEER_PYTHON" if os.access(path, os.X_OK) and path.is_file() else f"DATA/{path.name}"


def machine() -> str:
    """Return the processor, its cores, and the load at present."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def commit() -> str:
    """Return the commit that is measured, marked with ``+`` where the tree differs from it."""
    named = ["git", "-C", str(FOLDER), "describe", "--always", "--dirty=+"]
    return subprocess.run(named, capture_output=True, text=True, check=False).stdout.strip()
