"""Time and memory of whole calls on sparse models as they grow: they should be linear in the number of variables.

    python bench/growth.py [--sizes 1000 10000 100000] [--families tree chain chords grid network] \
        [--tasks mpe pr mar count] [--threads 2] [--time-limit SECONDS] [--record]

Each call runs in a process of its own. Columns: seconds of `solve`; its processor time, also in microseconds a variable
and as a ratio to that of the size before; the peak of the resident memory without the interpreter's and the model's
own; the seconds of each phase.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from elimina import Model, Options, solve
from elimina.model.table import Table
from elimina.model.variable import Variable
from record import Record

FAMILIES = ("tree", "chain", "chords", "grid", "network")
TASKS = ("mpe", "pr", "mar", "count")
STATES = 3
_NEAR = 50
"""Largest distance from a variable back to its parent."""
_CHORD = 5
"""Variables between the ends of two chords of a chain."""
_GRID_ROWS = 4
_LAST_COLUMNS = "ratio of the last two times", "peak at the last size, MiB"
_NOTE = "Processor time in microseconds per variable, models of ternary variables."


def edges(family: str, n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Return the pairs of variables that share a table."""
    if family in ("tree", "network"):
        return [(v - 1 - int(rng.integers(min(v, _NEAR))), v) for v in range(1, n)]
    if family == "grid":
        across = [(v, v + _GRID_ROWS) for v in range(n - _GRID_ROWS)]
        return across + [(v, v + 1) for v in range(n - 1) if v % _GRID_ROWS < _GRID_ROWS - 1]
    chain = [(v, v + 1) for v in range(n - 1)]
    return chain if family == "chain" else chain + [(v, v + 2) for v in range(0, n - 2, _CHORD)]


def model(family: str, n: int, task: str) -> Model:
    """Return a random model of a family: costs for ``mpe``, zeros and ones for ``count``, else probabilities."""
    rng = np.random.default_rng(n)
    pairs = edges(family, n, rng)
    if family == "network" and task != "mpe":
        values = rng.dirichlet(np.ones(STATES), size=(n, STATES))
        first = Table([0], values[0, 0])
        tables = [first, *(Table(pair, v) for pair, v in zip(pairs, values[1:], strict=True))]
        variables = [Variable(f"x{i}", STATES) for i in range(n)]
        return Model(variables, tables, sense="probability", children=range(n))
    shape = (len(pairs), STATES, STATES)
    values = rng.integers(0, 100, shape) if task == "mpe" else rng.uniform(0.1, 1, shape)
    if task == "count":
        values = np.where(rng.uniform(size=shape) < 0.2, 0.0, 1.0)
    sense = "min-cost" if task == "mpe" else "probability"
    return Model.from_arrays([STATES] * n, list(zip(pairs, values, strict=True)), sense=sense)


def peak() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure(family: str, n: int, task: str, threads: int, seconds: float | None) -> dict[str, float]:
    """Solve one model in this process."""
    problem = model(family, n, task)
    before = peak()
    started, cpu = time.perf_counter(), time.process_time()
    result = solve(problem, task, device="cpu", time_limit=seconds, options=Options(threads=threads))
    return {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - cpu,
        "bytes": peak() - before,
        "phases": result.stats["seconds"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--time-limit", type=float, help="Seconds for each call.")
    parser.add_argument("--record", action="store_true", help="Keep the table as bench/results/growth.json.")
    parser.add_argument("--one", nargs=3, metavar=("FAMILY", "SIZE", "TASK"), help="Print one call's figures as JSON.")
    arguments = parser.parse_args()
    if arguments.one:
        family, size, task = arguments.one
        print(json.dumps(measure(family, int(size), task, arguments.threads, arguments.time_limit)))
        return
    sizes = arguments.sizes
    record = Record("growth", ["family, task", *(f"{size:,}" for size in sizes), *_LAST_COLUMNS], _NOTE)
    columns = ("variables", 9), ("s", 8), ("CPU s", 8), ("us/var", 7), ("ratio", 6), ("MiB", 7)
    print(f"{'family':8} {'task':5}", *(f"{name:>{width}}" for name, width in columns), " phases, s")
    for family in arguments.families:
        for task in arguments.tasks:
            before, cells = 0.0, []
            for size in arguments.sizes:
                command = [sys.executable, __file__, "--one", family, str(size), task]
                command += ["--threads", str(arguments.threads)]
                command += ["--time-limit", str(arguments.time_limit)] if arguments.time_limit else []
                run = subprocess.run(command, capture_output=True, text=True, check=False)
                if run.returncode:
                    print(f"{family:8} {task:5} {size:9,} failed: {run.stderr.strip().splitlines()[-1]}", flush=True)
                    cells.append("failed")
                    continue
                found = json.loads(run.stdout)
                cpu = found["cpu"]
                ratio = f"{cpu / before:6.1f}" if before else f"{'':6}"
                phases = " ".join(f"{name} {value:.2f}" for name, value in found["phases"].items() if value >= 0.005)
                print(
                    f"{family:8} {task:5} {size:9,} {found['seconds']:8.3f} {cpu:8.3f} {1e6 * cpu / size:7.1f} {ratio} "
                    f"{found['bytes'] / 2**20:7.0f}  {phases}",
                    flush=True,
                )
                before = cpu
                cells.append(f"{1e6 * cpu / size:.0f}")
                last = ratio.strip(), f"{found['bytes'] / 2**20:.0f}"
            record.add(f"{family} `{task}`", *cells, *(last if cells[-1] != "failed" else ("", "")))
    if arguments.record:
        print(f"wrote {record.save()}")


if __name__ == "__main__":
    main()
