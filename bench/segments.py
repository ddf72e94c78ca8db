"""Optima in segments: time and memory under smaller and smaller limits, and what slices would cost instead.

    python bench/segments.py [--size 12 100 3] [--shares 1 0.5 0.25 0.125] [--device cpu] [--record]

Each run is a process of its own, by elimination on a grid of random costs, with the limit a share of what all messages
take. The work of slices is that of their plan, which is not run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import resource
import subprocess
import sys
import time

import numpy as np

from elimina import Model, Options, Plan, plan, solve
from elimina.backends.registry import get_backend
from elimina.planning.planner import Elimination
from elimina.planning.slicing import make_sliced_plan
from elimina.problem.preparation import prepare
from elimina.running.host import limits_of
from record import Record

_ORDER_SECONDS = 1.0
_NOTE = (
    "Grid of random costs. Limit: share of the memory of all messages. Memory: peak of the process without what it had "
    "before the call. Work: combinations, relative to one segment; slices: theirs, as planned."
)


def box(sides: list[int], values: int) -> Model:
    """Return a grid of any number of dimensions, with costs between neighbours."""
    rng = np.random.default_rng(0)
    cells = list(itertools.product(*map(range, sides)))
    number = {cell: v for v, cell in enumerate(cells)}
    factors = []
    for cell in cells:
        for axis in range(len(sides)):
            other = tuple(place + (a == axis) for a, place in enumerate(cell))
            if other in number:
                factors.append(((number[cell], number[other]), rng.integers(0, 100, (values, values))))
    return Model.from_arrays([values] * len(cells), factors)


def sliced_work(model: Model, whole: Plan, memory: int, device: str) -> float:
    """Return the work of a plan in slices, relative to that of one in one segment."""
    options = Options(device=device, memory=memory)
    machine, _ = limits_of(get_backend(device), options)
    found = make_sliced_plan(Elimination(prepare(model, "mpe", {}), whole.order, machine, memory, None), whole)
    return math.inf if found is None else found.work / whole.work


def measure(sides: list[int], values: int, memory: int | None, device: str) -> dict[str, float]:
    """Solve in this process."""
    model = box(sides, values)
    options = Options(method="eliminate", order_seconds=_ORDER_SECONDS)
    made = plan(model, "mpe", device=device, memory=memory, options=options)
    if not made.fits:
        return {"bytes": made.peak_bytes, "segments": 0}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    found = solve(model, "mpe", device=device, memory=memory, options=options)
    seconds = time.perf_counter() - started
    return {
        "value": found.value,
        "seconds": seconds,
        "run": found.stats["seconds"]["run"],
        "segments": found.stats.get("segments", 1),
        "slices": found.stats.get("slices", 1),
        "bytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024,
        "planned": made.peak_bytes,
        "work": made.work / made.whole.work,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, nargs="+", default=[12, 100, 3], help="Sides, and values of a variable.")
    parser.add_argument("--shares", type=float, nargs="+", default=[1, 0.5, 0.25, 0.125])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--record", action="store_true", help="Keep the table as bench/results/segments.json.")
    parser.add_argument("--one", type=int, help="Print the figures of one run with so many bytes as JSON.")
    arguments = parser.parse_args()
    *sides, values = arguments.size
    if arguments.one is not None:
        print(json.dumps(measure(sides, values, arguments.one or None, arguments.device)))
        return
    model = box(sides, values)
    options = Options(order_seconds=_ORDER_SECONDS)
    whole = plan(model, "mpe", device=arguments.device, options=options).whole
    columns = ["grid", "limit, GiB", "segments", "seconds", "memory, GiB", "work", "work of slices"]
    record = Record("segments", columns, _NOTE)
    print(f"all messages: {whole.peak_bytes / 2**30:.2f} GiB, {whole.seconds:.1f} s estimated")
    for share in arguments.shares:
        limit = math.ceil(1.001 * share * whole.peak_bytes)
        command = [sys.executable, __file__, "--size", *map(str, arguments.size), "--device", arguments.device]
        given = str(limit) if share < 1 else "0"
        run = subprocess.run([*command, "--one", given], capture_output=True, text=True, check=True)
        found = json.loads(run.stdout)
        work = 1.0 if share >= 1 else sliced_work(model, whole, limit, arguments.device)
        slices = f"{work:.3g}" if math.isfinite(work) else "none fit"
        shape = " x ".join(map(str, sides)) + f", {values} values"
        cells = [shape, f"{limit / 2**30:.2f}", "none fit", "", "", "", slices]
        if found["segments"]:
            cells[2:6] = (
                str(found["segments"]),
                f"{found['seconds']:.1f}",
                f"{found['bytes'] / 2**30:.2f}",
                f"{found['work']:.2f}",
            )
        record.add(*cells)
        print(*cells, found.get("value"), sep="  ", flush=True)
    if arguments.record:
        print(f"wrote {record.save()}")


if __name__ == "__main__":
    main()
