"""Gaps between the bounds of open instances after a while: with a GPU, and on the CPU alone.

    python bench/gaps.py ../shared/data [--match Grids] [--seconds 60] [--cpu-seconds 600] [--cpu-memory 24GiB]
        [--jobs 8] [--threads 2] [--cards 1] [--record]

Each call of `solve` runs in a process of its own; those on the CPU run beside each other, with so many threads each,
and beside those on the GPUs, which run one after another on each. The instances are those of `bench/anytime.py`, and a
few more.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np

import elimina
from anytime import instances as anytime_instances
from elimina.generate import grid_model
from record import Record

MORE = ("uai/2014_MAP_MMAP/ObjectDetection_11.uai.xz", "wcsp/toulbar2_examples/scen07.wcsp.xz")
GRIDS = ((25, 5), (30, 10), (40, 5), (50, 3))
"""Sides of random grids of integer costs, and the values of their variables."""

SPIN_GLASSES = ((4, 4, 11, 4), (4, 4, 12, 4), (4, 5, 12, 3), (4, 5, 14, 3))
"""Sides of boxes of spins, and their states (Potts glasses: M. Mezard et al., "Spin Glass Theory and Beyond", 1987)."""

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
    for *sides, states in SPIN_GLASSES:
        name = f"spin glass {' x '.join(map(str, sides))} of {states}"
        if re.search(match, name):
            yield name, spin_glass(sides, states, seed=1)


def spin_glass(sides: list[int], states: int, seed: int) -> elimina.Model:
    """Return a box of spins, of which neighbours cost 1 if they are equal, or if they differ, by chance."""
    rng = np.random.default_rng(seed)
    same = np.eye(states, dtype=np.int64)
    numbers = np.arange(math.prod(sides)).reshape(sides)
    tables = []
    for place in itertools.product(*map(range, sides)):
        for axis, side in enumerate(sides):
            if place[axis] + 1 < side:
                other = *place[:axis], place[axis] + 1, *place[axis + 1 :]
                pair = int(numbers[place]), int(numbers[other])
                tables.append(elimina.Table(pair, same if rng.random() < 0.5 else 1 - same))
    return elimina.Model([elimina.Variable(f"s{n}", states) for n in range(numbers.size)], tables)


def solved(path: Path, device: str, threads: int, seconds: float, memory: str = "") -> dict[str, Any]:
    """Solve a file in a process; return its bounds."""
    command = [sys.executable, __file__, "--one", str(path), device, str(threads), str(seconds), memory]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + SLACK)
    if run.returncode:
        raise RuntimeError(run.stderr)
    found: dict[str, Any] = json.loads(run.stdout)
    print(f"  {path.stem}, {device}, {seconds:g} s: {found}", flush=True)
    return found


def one(file: str, device: str, threads: str, seconds: str, memory: str) -> None:
    """Solve a file, and print its bounds."""
    options, limit = elimina.Options(threads=int(threads)), float(seconds)
    model, room = elimina.read(file), memory or None
    started = time.monotonic()
    result = elimina.solve(model, "mpe", device=device, memory=room, time_limit=limit, options=options)
    took = time.monotonic() - started
    ends = {
        "lower": result.lower_bound,
        "upper": result.upper_bound,
        "status": result.status,
        "seconds": round(took, 1),
    }
    print(json.dumps(ends))


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
    parser.add_argument("--cpu-memory", default="", help="of each run on the CPU alone; by default what is free")
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
                    pool.submit(solved, path, "cpu", args.threads, args.cpu_seconds, args.cpu_memory),
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
