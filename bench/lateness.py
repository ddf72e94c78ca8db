"""Seconds by which calls on large sparse models answer late: after their time limit, or after Ctrl-C.

    python bench/lateness.py [--sizes 100000 1000000] [--families tree chords grid] [--tasks mpe pr mar count] \
        [--limits 0.5 1 3 10] [--interrupts 10] [--threads 2] [--record]

The models are those of `growth.py`. Each model and task has a process of its own, in which the whole call comes first.
Limits and interrupts at random moments within its time follow. Limits beyond its time are left out.
A timer of the system sends the interrupt, so it comes on time however busy the interpreter is. Columns: seconds of the
whole call; for limits and for interrupts the latest answer, and the number of late answers of all calls.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from elimina import Model, Options, Result, TimeLimitError, solve
from growth import FAMILIES, TASKS, model
from limits import ALLOWED_SECONDS, ALLOWED_SHARE
from record import Record

_COLUMNS = "variables", "call, s", "latest after limit, s", "late", "latest after interrupt, s", "late"
_NOTE = "An answer is late after 0.2 s, or 2 % of the limit if that is more."


def answer(problem: Model, task: str, threads: int, limit: float | None) -> str:
    """Return the status of a call, or the name of its error."""
    try:
        found: Result = solve(problem, task, device="cpu", time_limit=limit, options=Options(threads=threads))
    except (TimeLimitError, KeyboardInterrupt) as error:
        return type(error).__name__
    return found.status


def settle() -> None:
    """Wait for threads of calls that were left alone."""
    for thread in threading.enumerate():
        if thread.name == "elimina":
            thread.join()


def limited(problem: Model, task: str, threads: int, limit: float, trace: bool) -> tuple[float, float, str]:
    """Return the time limit of a call, its lateness, and its status."""
    if trace:
        faulthandler.dump_traceback_later(limit + 0.12)
    started = time.monotonic()
    found = answer(problem, task, threads, limit)
    late = time.monotonic() - started - limit
    faulthandler.cancel_dump_traceback_later()
    settle()
    return limit, late, found


def interrupted(problem: Model, task: str, threads: int, moment: float) -> tuple[float, float, str]:
    """Return the same of a call that is interrupted."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    started = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, moment)
        found = answer(problem, task, threads, None)
    except KeyboardInterrupt:
        found = "after the answer"
    late = time.monotonic() - started - moment
    signal.setitimer(signal.ITIMER_REAL, 0)
    settle()
    return moment, late, found


def measure(family: str, size: int, task: str, given: argparse.Namespace) -> dict[str, Any]:
    """Run all calls of one model and task in this process."""
    problem = model(family, size, task)
    answer(model(family, 100, task), task, given.threads, 60.0)
    started = time.monotonic()
    answer(problem, task, given.threads, None)
    whole = time.monotonic() - started
    rng = random.Random(f"{family} {size} {task}")
    moments = [whole * rng.random() for _ in range(given.interrupts)]
    limits = [limit for limit in given.limits if limit < whole] + moments
    return {
        "whole": whole,
        "limits": [limited(problem, task, given.threads, limit, given.trace) for limit in limits],
        "interrupts": [interrupted(problem, task, given.threads, moment) for moment in moments],
    }


def cells(runs: list[tuple[float, float, str]]) -> tuple[str, str]:
    """Return the lateness of the latest run, and the number of late runs."""
    passed = [late > max(ALLOWED_SECONDS, ALLOWED_SHARE * limit) for limit, late, _ in runs]
    return f"{max((late for _, late, _ in runs), default=0.0):.2f}", f"{sum(passed)} of {len(runs)}"


def main() -> None:
    """Run what is asked for, and print a row for each model and task."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=["tree", "chords", "grid"])
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--limits", type=float, nargs="*", default=[0.5, 1, 3, 10])
    parser.add_argument("--interrupts", type=int, default=10, help="Random moments, of limits and of interrupts.")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--record", action="store_true", help="Keep the table as bench/results/lateness.json.")
    parser.add_argument("--trace", action="store_true", help="Print where threads are 0.12 s after a limit.")
    parser.add_argument("--verbose", action="store_true", help="Print each call.")
    parser.add_argument("--one", nargs=3, metavar=("FAMILY", "SIZE", "TASK"), help="Print one model's figures as JSON.")
    given = parser.parse_args()
    if given.one:
        family, size, task = given.one
        print(json.dumps(measure(family, int(size), task, given)))
        return
    record = Record("lateness", ["family, task", *_COLUMNS], _NOTE)
    print(f"{'family':8} {'task':5}", *_COLUMNS, sep="  ")
    for size in given.sizes:
        for family in given.families:
            for task in given.tasks:
                command = [sys.executable, __file__, *sys.argv[1:], "--one", family, str(size), task]
                found = json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
                row = f"{size:,}", f"{found['whole']:.2f}", *cells(found["limits"]), *cells(found["interrupts"])
                print(f"{family:8} {task:5}", *(f"{cell:>10}" for cell in row), flush=True)
                if given.verbose:
                    for kind in ("limits", "interrupts"):
                        for moment, late, status in sorted(found[kind]):
                            print(f"    {kind[:-1]:9} {moment:6.2f} s  {late:6.3f} s  {status}")
                record.add(f"{family} `{task}`", *row)
    if given.record:
        print(f"wrote {record.save()}")


if __name__ == "__main__":
    main()
