"""Gaps between the bounds of open instances after a while: with a GPU, and on the CPU alone.

    python bench/gaps.py ../shared/data [--match Grids] [--seconds 60] [--cpu-seconds 600] [--jobs 8] [--threads 2]
        [--cards 1] [--record]

Each call of `solve` runs in a process of its own; those on the CPU run beside each other, with so many threads each,
and beside those on the GPUs, which run one after another on each. The instances are those of `bench/anytime.py`, and a
few more.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import elimina
from anytime import instances as anytime_instances
from elimina.generate import grid_model
from record import Record

MORE = ("uai/2014_MAP_MMAP/ObjectDetection_11.uai.xz", "wcsp/toulbar2_examples/scen07.wcsp.xz")
GRIDS = ((25, 5), (30, 10), (40, 5), (50, 3))
"""Sides of random grids of integer costs, and the values of their variables."""

SLACK = 30
"""Seconds after its time limit at which a process is ended."""


def instances(data: Path, match: str) -> Iterator[tuple[str, elimina.Model]]:
    """Yield the names and models of the instances."""
    yield from anytime_instances(data, match)
    for file in MORE:
        if re.search(match, file):
            yield Path(file).name.split(".")[0], elimina.read(data / file)
    for side, values in GRIDS:
        name = f"random grid {side} x {side} of {values}"
        if re.search(match, name):
            yield name, grid_model(side, values, 0.0, seed=1)


def solved(path: Path, device: str, threads: int, seconds: float) -> dict[str, Any]:
    """Solve a file in a process; return its bounds."""
    command = [sys.executable, __file__, "--one", str(path), device, str(threads), str(seconds)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + SLACK)
    if run.returncode:
        raise RuntimeError(run.stderr)
    found: dict[str, Any] = json.loads(run.stdout)
    print(f"  {path.stem}, {device}, {seconds:g} s: {found}", flush=True)
    return found


def one(file: str, device: str, threads: str, seconds: str) -> None:
    """Solve a file, and print its bounds."""
    options = elimina.Options(threads=int(threads))
    result = elimina.solve(elimina.read(file), "mpe", device=device, time_limit=float(seconds), options=options)
    print(json.dumps({"lower": result.lower_bound, "upper": result.upper_bound, "status": result.status}))


def main() -> None:
    """Print the table."""
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--match", default="")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--cpu-seconds", type=float, default=600)
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cards", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    note = f"Bounds after {args.cpu_seconds:g} s on the CPU alone, and after {args.seconds:g} s with the GPU; "
    note += f"{args.threads} threads each."
    record = Record("gaps", ["instance", "CPU: bounds", "gap", "GPU: bounds", "gap", "ratio of the gaps"], note)
    idle: Queue[str] = Queue()
    for number in range(args.cards):
        idle.put(f"cuda:{number}")

    def on_card(path: Path) -> dict[str, Any]:
        device = idle.get()
        try:
            return solved(path, device, args.threads, args.seconds)
        finally:
            idle.put(device)

    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(args.jobs) as pool,
        ThreadPoolExecutor(args.cards) as cards,
    ):
        runs = []
        for name, model in instances(args.data, args.match):
            path = Path(folder) / (f"{name}.wcsp" if model.is_integer else f"{name}.uai")
            elimina.write(model, path)
            runs.append(
                (
                    name,
                    pool.submit(solved, path, "cpu", args.threads, args.cpu_seconds),
                    cards.submit(on_card, path),
                )
            )
        for name, *both in runs:
            ends = [(run.result()["lower"], run.result()["upper"]) for run in both]
            gaps = [upper - lower for lower, upper in ends]
            cells = [(f"{lower:.8g} to {upper:.8g}", f"{upper - lower:.5g}") for lower, upper in ends]
            ratio = f"{gaps[1] / gaps[0]:.2f}" if gaps[0] else ""
            print(f"{name:24}", *(f"{text:>28} {gap:>10}" for text, gap in cells), f"{ratio:>6}", flush=True)
            record.add(name, *cells[0], *cells[1], ratio)
    if args.record:
        print(f"wrote {record.save()}")


if __name__ == "__main__":
    main()
