"""The k best assignments of a model, beside its optimum alone, and beside toulbar2.

    python bench/k_best.py [DATA] [--best 10] [--limit 30] [--match spot5] [--repeat 3] [--record]

DATA is the folder of benchmark files (ELIMINA_DATA by default): SPOT5's cost functions and the pedigrees of the UAI
evaluation of 2008. Each row has the processor time of `solve` for the optimum and for the k best assignments, on one
thread of a process that has read the file, medians of some calls in turns.

toulbar2 (pytoulbar2, where it is installed) finds one assignment after another, each the best one that differs from all
before. It also enumerates assignments below a bound: this time, which starts from the k-th best value, is that of the
proof alone. One process a file, after the file is read.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import elimina
from elimina.problem.tasks import Task
from record import Record

FOLDERS = ("wcsp/spot5", "uai/2008_MPE/linkage")
OPTIONS = elimina.Options(threads=1)

PEER = """
import json, sys, time
from pytoulbar2 import CFN
path, best, limit, distance, excess = sys.argv[1], *map(int, sys.argv[2:])
bound = None
if not distance:
    optimum = CFN(vac=False)
    optimum.Read(path)
    bound = int(optimum.Solve(timeLimit=limit)[1]) + excess + 1
network = CFN(vac=False)
network.Read(path)
if bound is not None:
    network.UpdateUB(bound)
started = time.process_time()
network.Solve(allSolutions=best, diversityBound=distance, timeLimit=limit)
seconds = time.process_time() - started
print(json.dumps([seconds, sorted(cost for cost, _ in network.GetSolutions())[:best]]))
"""
"""Program that prints toulbar2's seconds and its best costs."""


def peer_seconds(path: Path, best: int, limit: float, excess: int | None) -> float | None:
    """Return toulbar2's seconds for the best assignments; None if it did not find them in time.

    Args:
        path: File that toulbar2 reads.
        best: Number of assignments.
        limit: Limit of time, in seconds.
        excess: Cost of the last one above the optimum, for the enumeration below a bound; None: one after another.
    """
    distance, above = (1, 0) if excess is None else (0, excess)
    command = [sys.executable, "-c", PEER, *map(str, (path, best, round(limit), distance, above))]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=3 * limit + 5, check=False)
    except subprocess.TimeoutExpired:
        return None
    if run.returncode != 0:
        return None
    seconds, costs = json.loads(run.stdout.splitlines()[-1])
    return seconds if len(costs) == best and seconds < limit else None


def peer_cells(model: elimina.Model, result: elimina.Result, best: int, limit: float) -> list[str]:
    """Return toulbar2's milliseconds, one after another and below a bound, where it is installed."""
    if importlib.util.find_spec("pytoulbar2") is None or result.status != "optimal":
        return ["-", "-"]
    excess = result.ranked[-1].value - result.ranked[0].value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{'wcsp' if model.is_integer else 'uai'}"
        elimina.io.write(model, path)
        # Its costs of probabilities have other units.
        bounded = peer_seconds(path, best, limit, int(excess)) if model.is_integer or excess == 0 else None
        return [text(None if t is None else 1e3 * t) for t in (peer_seconds(path, best, limit, None), bounded)]


def instances(data: Path, match: str) -> Iterator[Path]:
    """Yield the files of the families, small ones first."""
    for folder in FOLDERS:
        files = [path for path in (data / folder).glob("*") if path.name.endswith((".wcsp", ".erg.gz", ".wcsp.xz"))]
        yield from sorted((path for path in files if match in f"{path}"), key=lambda path: path.stat().st_size)


def seconds_of(model: elimina.Model, task: Task, best: int, limit: float) -> tuple[float, elimina.Result]:
    """Return the processor time of a call, and its answer."""
    options = OPTIONS if task == "mpe" else elimina.Options(threads=1, k=best)
    started = time.process_time()
    result = elimina.solve(model, task, device="cpu", time_limit=limit, options=options)
    return time.process_time() - started, result


def main() -> None:
    folder = os.environ.get("ELIMINA_DATA")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=folder and Path(folder))
    parser.add_argument("--best", type=int, default=10)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds")
    parser.add_argument("--match", default="")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--record", action="store_true", help="write bench/results/k-best.json")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    record = Record(
        "k-best",
        [
            "instance",
            "optimum, ms",
            f"{args.best} best, ms",
            "ratio",
            "toulbar2, one after another, ms",
            "toulbar2, last value given, ms",
        ],
        f"Limit {args.limit:g} s; '-': not all of them were proved in time.",
    )
    ratios = []
    for path in instances(args.data, args.match):
        model = elimina.read(path)
        times: dict[Task, list[float]] = {"mpe": [], "kbest": []}
        done = dict.fromkeys(times, True)
        for _ in range(args.repeat):
            for task in times:
                seconds, result = seconds_of(model, task, args.best, args.limit)
                times[task].append(seconds)
                done[task] &= result.status == "optimal"
            if not all(done.values()):
                break
        optimum, best = (statistics.median(times[task]) if done[task] else None for task in times)
        ratio = None if optimum is None or best is None else best / optimum
        if ratio is not None:
            ratios.append(ratio)
        record.add(
            path.name.split(".")[0],
            *(text(None if t is None else 1e3 * t) for t in (optimum, best)),
            text(ratio),
            *peer_cells(model, result, args.best, args.limit),
        )
        print(*record.rows[-1], sep="  ", flush=True)
    record.add(f"median of {len(ratios)}", "", "", text(statistics.median(ratios)), "", "")
    print(*record.rows[-1], sep="  ")
    if args.record:
        print(record.save())


def text(number: float | None) -> str:
    """Return a number with two or three digits; '-' if there is none."""
    if number is None:
        return "-"
    return f"{number:.3g}" if number < 100 else f"{number:,.0f}"


if __name__ == "__main__":
    main()
