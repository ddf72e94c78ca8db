"""Best assignments over time on open instances, beside toulbar2 and its variable neighbourhood search.

    python bench/anytime.py ../shared/data --toulbar2 PYTHON [--match Grids] [--seconds 20] [--jobs 1] [--save]

All run on one thread each. Time is processor time from reading on, so other load does not count. The area is the mean
over the time limit of the primal gap: 0 where the assignment is the best one that any of them found, 1 where none is
known (T. Berthold, "Measuring the impact of primal heuristics", Operations Research Letters 41, 2013). PYTHON is an
interpreter with pytoulbar2. `--save` writes bench/results/anytime.json, from which bench/render.py makes the table, and
docs/images/anytime.svg.
"""

from __future__ import annotations

import argparse
import itertools
import math
import multiprocessing
import re
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import elimina
from elimina.result import Bounds
from elimina.viz.canvas import Picture, need
from elimina.viz.colours import FAINT, INK
from minibuckets import TABLES, colouring
from record import Record

FILES = (
    "uai/fabe_mpe/grid/90-46-5.uai",
    *(
        f"uai/2014_MAP_MMAP/{name}.uai"
        for name in ("wcsp_13", "wcsp_15", "Grids_18", "Grids_26", "Grids_29", "Grids_30")
    ),
    *(f"uai/fabe_mpe/pedigree/pedigree{number}.uai" for number in (31, 51)),
)
COLOURINGS = ("DSJC125.1.4", "le450-5a-3")
WAYS = ("elimina", "toulbar2", "toulbar2 VNS")
SOLUTION = re.compile(r"^New solution: (\S+)(?: energy: (\S+).*?)? \(.* ([0-9.]+) seconds\)", re.MULTILINE)

Curve = list[tuple[float, float]]
"""Seconds and the cost of a new best assignment."""


def instances(data: Path, match: str) -> Iterator[tuple[str, elimina.Model]]:
    for name in COLOURINGS:
        if re.search(match, name):
            yield name, colouring(data / "wcsp" / TABLES[name].file, TABLES[name].colours)
    for file in FILES:
        if re.search(match, file):
            yield Path(file).stem, elimina.read(data / file)


def ours(path: Path, seconds: float) -> Curve:
    """The assignments of one call in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_ours, (str(path), seconds))


def _ours(path: str, seconds: float) -> Curve:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    known: Curve = []
    begun = time.process_time()
    model = elimina.read(path)
    sign = 1 if model.sense == "min-cost" else -1

    def note(bounds: Bounds) -> None:
        best = bounds.upper if sign == 1 else bounds.lower
        if best is not None and math.isfinite(best) and (not known or sign * best < known[-1][1]):
            known.append((time.process_time() - begun, sign * best))

    signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    # The interrupt is answered with what is known, which the listener was told.
    elimina.solve(model, device="cpu", options=elimina.Options(threads=1, on_bounds=note))
    signal.setitimer(signal.ITIMER_PROF, 0)
    return known


def toulbar2(path: Path, seconds: float, python: str, options: Sequence[str]) -> Curve:
    script = Path(__file__).parent / "baselines" / "toulbar2_anytime.py"
    command = [python, str(script), str(path), f"{seconds:g}", *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20 * seconds + 60, check=False)
    found = SOLUTION.findall(ran.stdout)
    return [(float(at), float(energy or cost)) for cost, energy, at in found]


def gap_at(curve: Curve, moment: float, best: float) -> float:
    """The primal gap at a moment, from 0 to 1."""
    known = [cost for at, cost in curve if at <= moment]
    if not known:
        return 1.0
    worst = max(abs(known[-1]), abs(best))
    return 0.0 if worst == 0 else min(1.0, abs(known[-1] - best) / worst)


def area(curve: Curve, seconds: float, best: float) -> float:
    """The mean gap over the limit."""
    moments = [0.0, *(at for at, _ in curve if at < seconds), seconds]
    spans = itertools.pairwise(moments)
    return sum((end - begin) * gap_at(curve, begin, best) for begin, end in spans) / seconds


def draw(curves: dict[str, dict[str, Curve]], bests: dict[str, float], seconds: float) -> Picture:
    """Draw the mean gap of each way over time."""
    figure = need("matplotlib.figure").Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot()
    moments = [0.02 * (seconds / 0.02) ** (n / 200) for n in range(201)]
    for way, style in zip(WAYS, ("-", "--", ":"), strict=True):
        means = [
            statistics.mean(gap_at(found[way], moment, bests[name]) for name, found in curves.items())
            for moment in moments
        ]
        axes.step(moments, means, style, where="post", color=INK, label=way)
    axes.set(xscale="log", xlabel="processor seconds", ylabel="mean primal gap", ylim=(0, 1))
    figure.legend(frameon=False, loc="outside lower center", ncols=3)
    axes.grid(color=FAINT, alpha=0.2)
    return Picture(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the folder that holds uai/ and wcsp/")
    parser.add_argument("--toulbar2", required=True, help="interpreter that has pytoulbar2")
    parser.add_argument("--match", default="", help="regular expression on the files' names")
    parser.add_argument("--seconds", type=float, default=20, help="processor time of each run")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--save", action="store_true", help="write the results and the picture")
    args = parser.parse_args()
    record = Record("anytime", ["instance", *WAYS, *(f"best of {way}" for way in WAYS)])
    curves: dict[str, dict[str, Curve]] = {}
    bests: dict[str, float] = {}
    areas: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        runs: dict[str, list[Future[Curve]]] = {}
        for name, model in instances(args.data, args.match):
            path = Path(folder) / f"{name}.{'wcsp' if model.is_integer else 'uai'}"
            elimina.write(model, path)
            runs[name] = [pool.submit(ours, path, args.seconds)]
            runs[name] += [pool.submit(toulbar2, path, args.seconds, args.toulbar2, given) for given in ([], ["--vns"])]
        for name, started in runs.items():
            found = [run.result() for run in started]
            curves[name] = dict(zip(WAYS, found, strict=True))
            bests[name] = min((curve[-1][1] for curve in found if curve), default=0.0)
            own = [area(curve, args.seconds, bests[name]) for curve in found]
            for way, value in zip(WAYS, own, strict=True):
                areas[way].append(value)
            ends = [f"{curve[-1][1]:.6g}" if curve else "none" for curve in found]
            record.add(name, *(f"{value:.3f}" for value in own), *ends)
            print(" ".join(f"{cell:>14}" for cell in record.rows[-1]), flush=True)
    means = [f"{statistics.mean(areas[way]):.3f}" for way in WAYS]
    record.add("mean", *means, "", "", "")
    print(" ".join(f"{cell:>14}" for cell in record.rows[-1]))
    if args.save:
        record.save()
        draw(curves, bests, args.seconds).save(Path(__file__).parents[1] / "docs" / "images" / "anytime.svg")


if __name__ == "__main__":
    main()
