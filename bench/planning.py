"""Time before elimination begins against the time that it runs, on every file of some folders.

    python bench/planning.py FOLDER... [--tasks mpe pr mar count] [--repeat 3] [--seconds 2] [--rows 25] [--record]

Each call has one thread and a model that is read again. Columns: milliseconds of preparing, ordering, planning and
encoding, all of these together, and of all else (the run) in the fastest of some calls. They are of processor time,
which other processes do not change. Calls of a second or more, and those that the limit on time ends, are left out.
The table holds the worst; the last line counts those where planning takes longer than the run and longer than 2 ms.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import elimina
from record import Record

SUFFIXES = (".uai", ".wcsp", ".wcsp.xz", ".wcsp.gz", ".cfn", ".cfn.xz", ".cfn.gz", ".bif", ".bif.gz", ".uai.gz")
TASKS = {"probability": ("mpe", "pr", "mar"), "min-cost": ("mpe",), "max-cost": ("mpe",)}

BEFORE = ("prepare", "order", "plan", "encode")
COLUMNS = ("file", "task", *BEFORE, "before the run", "run", "ratio")
NOTE = "Milliseconds of processor time, one thread, no evidence. Ratio above 1: longer before the run than running."

LONGEST_CALL = 1.0
"""Seconds of a call from which planning is not looked at."""

ALLOWED = 2e-3
"""Seconds that planning may take, however short the run."""

EXACT = ("exact", "optimal", "infeasible")


def measure(path: Path, task: elimina.TaskName, repeat: int, limit: float) -> dict[str, float] | None:
    """Return the seconds of each phase in the fastest of some calls; None if a call is not of interest."""
    best: dict[str, float] | None = None
    options = elimina.Options(threads=1)
    for number in range(repeat + 1):
        model = elimina.read(path)
        try:
            # A limit calls for first bounds, so it is for the first call alone, which is not counted.
            result = elimina.solve(model, task, device="cpu", time_limit=None if number else limit, options=options)
        except elimina.EliminaError:
            return None
        seconds = result.stats["seconds"]
        if result.status not in EXACT or seconds["total"] >= LONGEST_CALL or result.ended_by is not None:
            return None
        if number and (best is None or seconds["total"] < best["total"]):
            best = seconds
    return best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--tasks", nargs="+")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="limit of each call")
    parser.add_argument("--rows", type=int, default=25, help="rows of the table")
    parser.add_argument("--record", action="store_true", help="Keep the table as bench/results/planning-times.json.")
    options = parser.parse_args()
    time.perf_counter = time.monotonic = time.process_time
    rows: list[tuple[float, bool, list[str]]] = []
    for folder in options.folders:
        files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name.endswith(SUFFIXES))
        for path in files:
            try:
                sense = elimina.read(path).sense
            except elimina.EliminaError:
                continue
            for task in options.tasks or TASKS[sense]:
                found = measure(path, task, options.repeat, options.seconds)
                if found is None:
                    continue
                before = sum(found.get(name, 0.0) for name in BEFORE)
                run = found["total"] - before
                late = before > max(run, ALLOWED)
                cells = [f"{1e3 * value:.2f}" for value in (*(found.get(name, 0.0) for name in BEFORE), before, run)]
                name = str(path.relative_to(folder.parent))
                rows.append((before - max(run, ALLOWED), late, [name, task, *cells, f"{before / max(run, 1e-9):.1f}"]))
                if late:
                    print(*(f"{name:56} {task:5}", *(f"{cell:>9}" for cell in rows[-1][2][2:])), flush=True)
    record = Record("planning-times", COLUMNS, NOTE)
    for _, _, row in sorted(rows, key=lambda row: -row[0])[: options.rows]:
        record.add(*row)
    late = sum(row[1] for row in rows)
    record.note += f" Of {len(rows)} calls, {late} are above 1 and above {1e3 * ALLOWED:.0f} ms; the worst are shown."
    print(f"{len(rows)} calls, {late} of them later than their run and {1e3 * ALLOWED:.0f} ms")
    if options.record:
        print(f"wrote {record.save()}")


if __name__ == "__main__":
    main()
