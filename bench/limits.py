"""Run the largest files of a folder under limits on time and memory, and list those that passed them.

    python bench/limits.py FOLDER [--files 50] [--seconds 0.5 2 10] [--memory 64MiB 512MiB 2GiB] [--jobs 1]

Each run is a process of its own. Its wall time is that of the call. Its memory is the largest resident set, less that
of the same process once it has read the model and loaded the solver.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ALLOWED_SECONDS, ALLOWED_SHARE = 0.2, 0.02
"""Seconds, or share of the time limit if that is more, that a run may take beyond it."""

ALLOWED_MEMORY = 0.05
"""Share of the memory limit that a run may take beyond it."""

SUFFIXES = (".uai", ".wcsp", ".wcsp.xz", ".wcsp.gz", ".cfn", ".cfn.xz", ".cfn.gz", ".bif", ".erg")
TASKS = {"probability": ("mpe", "pr", "mar", "mmap"), "min-cost": ("mpe", "count"), "max-cost": ("mpe", "count")}

CHILD = """
import importlib, json, pkgutil, resource, sys, time
import elimina
from elimina import methods, planning, problem, running, strategies
for part in (methods, planning, problem, running, strategies):
    for module in pkgutil.iter_modules(part.__path__, part.__name__ + "."):
        importlib.import_module(module.name)
path, task, seconds, memory, _ = json.loads(sys.argv[1])
model = elimina.read(path)
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
query = [v.name for v in model.variables[:5]] if task == "mmap" else None
started = time.monotonic()
try:
    found = elimina.solve(model, task, device="cpu", query=query, time_limit=seconds, memory=memory)
    answer = [found.status, found.ended_by, found.lower_bound, found.upper_bound, found.value]
except elimina.EliminaError as error:
    answer = [type(error).__name__, None, None, None, None]
took = time.monotonic() - started
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(json.dumps([took, peak - base, answer], default=str))
sys.stdout.flush()
import os
os._exit(0)
"""


def size_of(text: str) -> int:
    """Return a number of bytes."""
    from elimina.arguments import memory_size

    size = memory_size("memory", text)
    assert size is not None
    return size


def tasks_of(path: Path) -> tuple[str, ...]:
    """Return the tasks that a file allows, by its first word or its suffix."""
    return TASKS["probability" if {"uai", "bif", "erg"}.intersection(path.name.split(".")) else "min-cost"]


def run(path: Path, task: str, seconds: float | None, memory: int | None) -> tuple[float, int, list[object]] | None:
    """Run one call in a process; None if the process died."""
    given = json.dumps([str(path), task, seconds, memory, None])
    longest = 600 if seconds is None else seconds + 120
    try:
        ended = subprocess.run([sys.executable, "-c", CHILD, given], capture_output=True, text=True, timeout=longest)
        took, peak, answer = json.loads(ended.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return None
    return took, peak, answer


def report(path: Path, task: str, seconds: float, memory: int | None) -> bool:
    """Run one call and print its row; return whether it passed a limit."""
    found = run(path, task, seconds, memory)
    what = f"{path.name:40.40} {task:5} {seconds:5g} s {'-' if memory is None else memory >> 20:>5} MiB"
    if found is None:
        print(f"{what}  died", flush=True)
        return True
    took, peak, answer = found
    late = took - seconds > max(ALLOWED_SECONDS, ALLOWED_SHARE * seconds)
    large = memory is not None and peak > (1 + ALLOWED_MEMORY) * memory
    mark = f"{'  LATE' if late else ''}{'  LARGE' if large else ''}"
    print(f"{what}  {took:7.2f} s {peak / 2**20:8.1f} MiB  {answer[0]}, {answer[1]}{mark}", flush=True)
    return late or large


def main() -> None:
    """Run what is asked for, and print a row for each run and the violations."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--seconds", type=float, nargs="*", default=[0.5, 2, 10])
    parser.add_argument("--memory", nargs="*", default=["64MiB", "512MiB", "2GiB"])
    parser.add_argument("--memory-seconds", type=float, default=20, help="time limit of the runs with a memory limit")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, on a machine with more cores than that")
    given = parser.parse_args()
    files = [path for path in given.folder.rglob("*") if path.name.endswith(SUFFIXES) and path.is_file()]
    files = sorted(files, key=lambda path: path.stat().st_size, reverse=True)[: given.files]
    runs = [
        (path, task, seconds, memory)
        for path in files
        for task in tasks_of(path)
        for seconds, memory in (
            *((seconds, None) for seconds in given.seconds),
            *((given.memory_seconds, size_of(memory)) for memory in given.memory),
        )
    ]
    begun = time.monotonic()
    with ThreadPoolExecutor(given.jobs) as pool:
        bad = sum(pool.map(lambda one: report(*one), runs))
    print(f"{bad} of {len(runs)} runs passed a limit or died, in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
