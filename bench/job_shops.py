"""Job shops of the literature and open shops: makespan found, lower bound and processor time of the proof.

    python bench/job_shops.py [NAME ...] [--data DATA] [--seconds 60] [--modes default cp-sat] [--record]

DATA is the folder of benchmark files (ELIMINA_DATA by default) with ft06, ft10 and la01 to la20 in `jobshop/`; without
them, only the open shops run. Each run has a process and a thread of its own. `cp-sat` is OR-Tools' CP-SAT with one
worker and intervals, if installed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import elimina
from cp_classics import MODES, Problem, open_shop, run_cp_sat, run_elimina, schedule, tasks_of_jobs
from record import Record

OPEN_SHOPS = {"open shop 5": (5, 1), "open shop 7": (7, 3), "open shop 10": (10, 1)}
"""Number of machines, which is that of jobs, and seed of the generated open shops."""

GROUPS = {"ft06, ft10": "ft", "la01 to la20": "la", "open shops": "open shop"}
"""Beginnings of the names of a group's instances, by the group's title."""

UNPROVEN = "no proof"


def optima_of(data: Path | None) -> dict[str, int]:
    """Return the optimum of each instance, in order; of an open shop, the greatest load of a machine or job."""
    result: dict[str, int] = {}
    table = None if data is None else data / "jobshop" / "optima.tsv"
    if table is not None and table.exists():
        for line in table.read_text().splitlines()[1:]:
            name, _, _, optimum = line.split("\t")
            result[name] = int(optimum)
    for name, (n, seed) in OPEN_SHOPS.items():
        tasks, machines = open_shop(n, seed)
        result[name] = max(sum(task.seconds for task in tasks if r in task.demands) for r in machines)
    return result


def problem_of(name: str, data: Path | None) -> Problem:
    """Return the problem of a name."""
    if name in OPEN_SHOPS:
        n, seed = OPEN_SHOPS[name]
        return schedule(*open_shop(n, seed))
    assert data is not None
    lines = [line for line in (data / "jobshop" / name).read_text().splitlines() if not line.startswith("#")]
    return schedule(*tasks_of_jobs("/".join(lines[1:])))


def figures_of(name: str, mode: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run a problem in a process of its own, and return its figures."""
    command = [sys.executable, __file__, name, "--seconds", str(options.seconds), "--modes", mode, "--figures"]
    if options.data is not None:
        command += ["--data", str(options.data)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=30 * options.seconds + 60, check=True)
    result: dict[str, Any] = json.loads(answer.stdout)
    return result


def proofs(makespans: Record, modes: Sequence[str]) -> Record:
    """Return the record of how many instances of each group are proven, and of their seconds."""
    columns = ["instances", "number"]
    for mode in modes:
        columns += [f"{mode}: proven", "median s", "longest s"]
    result = Record("job-shop-proofs", columns, "Processor seconds until the makespan is proven to be the least.")
    for title, begins in GROUPS.items():
        rows = [row for row in makespans.rows if row[0].startswith(begins)]
        cells: list[Any] = [title, len(rows)]
        for i in range(len(modes)):
            seconds = [float(row[4 + 3 * i]) for row in rows if row[4 + 3 * i] != UNPROVEN]
            longest = (f"{statistics.median(seconds):.1f}", f"{max(seconds):.1f}") if seconds else ("", "")
            cells += [len(seconds), *longest]
        if rows:
            result.add(*cells)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--data", type=Path, default=os.environ.get("ELIMINA_DATA"))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=["default"])
    parser.add_argument("--figures", action="store_true", help="print the figures of one run as JSON")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.figures:
        # The time of imports is not that of a search.
        assert elimina.solve is not None
        problem, mode = problem_of(options.names[0], options.data), options.modes[0]
        run = run_cp_sat(problem, options.seconds) if mode == "cp-sat" else run_elimina(problem, mode, options.seconds)
        print(json.dumps(run))
        return
    optima = optima_of(options.data)
    columns = ["instance", "optimum"]
    for mode in options.modes:
        columns += [f"{mode}: makespan", "bound", "seconds of the proof"]
    record = Record("job-shops", columns, "Makespan, lower bound and processor seconds of the proof.")
    for name in options.names or list(optima):
        cells: list[Any] = [name, optima[name]]
        for mode in options.modes:
            run = figures_of(name, mode, options)
            cells += [run["value"], run["bound"], f"{run['seconds']:.1f}" if run["is_proven"] else UNPROVEN]
        record.add(*cells)
        print(" | ".join(record.rows[-1]), flush=True)
    if options.record:
        record.save()
        proofs(record, options.modes).save()


if __name__ == "__main__":
    main()
