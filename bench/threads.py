"""Optima with one thread and with several: wall time, nodes, and how many times as fast.

    python bench/threads.py ../shared/data [--match CELAR6] [--threads 1 2 16] [--limit 60] [--record]

Each run is a process on cores of its own; as many run at a time as there are cores. Times are those of whole calls of
``auto``, once the solver is loaded. An open answer counts as the limit. The last line is the median speed over the
instances that take one thread at least 5 s.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import elimina
from minibuckets import TABLES, colouring
from record import Record

FILES = (
    *(f"uai/fabe_mpe/grid/{name}.uai" for name in ("90-46-5", "90-50-5")),
    *(f"uai/2008_MPE/grids/{name}.erg.gz" for name in ("90-38-1e80", "90-38-1e120")),
    *(f"uai/fabe_mpe/pedigree/pedigree{number}.uai" for number in (7, 31, 51)),
    *(f"wcsp/celar6/CELAR6-SUB{number}.wcsp.xz" for number in (1, 2, 4)),
)
COLOURINGS = ("queen5-5-3", "queen5-5-4", "myciel5g-4")
LONG = 5.0
"""Seconds of one thread from which an instance counts."""

CHILD = """
import json, os, sys, time
os.sched_setaffinity(0, json.loads(sys.argv[4]))
import elimina
from elimina.generate import grid_model
elimina.solve(grid_model(12, 4, 0.3, seed=1), device="cpu", time_limit=0.5)
started = time.perf_counter()
found = elimina.solve(elimina.read(sys.argv[1]), device="cpu", time_limit=float(sys.argv[3]),
                      options=elimina.Options(threads=int(sys.argv[2])))
print(json.dumps([time.perf_counter() - started, found.status == "optimal", found.stats.get("nodes") or 0]))
"""


class Run(NamedTuple):
    """Seconds of a call, whether it found the optimum, and nodes of its searches."""

    seconds: float
    is_optimal: bool
    nodes: int


class Cores:
    """Cores of the machine, taken by runs."""

    def __init__(self) -> None:
        self._free = sorted(os.sched_getaffinity(0))
        self.number = len(self._free)
        self._changed = threading.Condition()

    def run(self, path: Path, threads: int, limit: float) -> Run:
        """Run one call on as many cores as it has threads, once they are free."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._free) >= threads)
            mine, self._free = self._free[:threads], self._free[threads:]
        given = [str(path), str(threads), str(limit), json.dumps(mine)]
        try:
            ran = subprocess.run([sys.executable, "-c", CHILD, *given], capture_output=True, text=True, check=True)
        finally:
            with self._changed:
                self._free = sorted([*self._free, *mine])
                self._changed.notify_all()
        return Run(*json.loads(ran.stdout.splitlines()[-1]))


def paths(data: Path, match: str, folder: Path) -> list[Path]:
    """Return the files whose names match, colourings written to a folder."""
    found = [data / file for file in FILES if re.search(match, file)]
    for name in COLOURINGS:
        if re.search(match, name):
            found.append(folder / f"{name}.wcsp")
            elimina.write(colouring(data / "wcsp" / TABLES[name].file, TABLES[name].colours), found[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder that holds uai/ and wcsp/")
    parser.add_argument("--match", default="", help="regular expression on the files' names")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads, 1 first")
    parser.add_argument("--limit", type=float, default=60, help="wall seconds of each run")
    parser.add_argument("--record", action="store_true", help="write bench/results/threads.json")
    args = parser.parse_args()
    one, *several = args.threads
    columns = ["instance", f"{one}: s", "nodes", *(f"{n}: {what}" for n in several for what in ("s", "nodes", "speed"))]
    record, cores = Record("threads", columns), Cores()
    if max(args.threads) > cores.number:
        parser.error(f"--threads {max(args.threads)}: this machine has {cores.number} cores")
    speeds: dict[int, list[float]] = {number: [] for number in several}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(cores.number) as pool:
        files = paths(args.data, args.match, Path(folder))
        runs: dict[tuple[Path, int], Future[Run]] = {
            (path, number): pool.submit(cores.run, path, number, args.limit)
            for number in args.threads
            for path in files
        }
        for path in files:
            first, *others = (runs[path, number].result() for number in args.threads)
            cells = [path.name.split(".")[0], shown(first), f"{first.nodes:,}"]
            for number, run in zip(several, others, strict=True):
                cells += [shown(run), f"{run.nodes:,}", f"{first.seconds / run.seconds:.2f}"]
                if first.seconds >= LONG:
                    speeds[number].append(first.seconds / run.seconds)
            record.add(*cells)
            print(" ".join(f"{cell:>14}" for cell in cells), flush=True)
    for number, found in speeds.items():
        if found:
            print(f"{number} threads: median {statistics.median(found):.2f} over {len(found)} instances")
    if args.record:
        record.save()


def shown(run: Run) -> str:
    """Return the seconds of a run, marked where its answer is open."""
    return f"{'' if run.is_optimal else '>'}{run.seconds:.2f}"


if __name__ == "__main__":
    main()
