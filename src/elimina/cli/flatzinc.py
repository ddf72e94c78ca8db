"""``fzn-elimina``: solves a FlatZinc file. It starts fast: nothing but the core is imported."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from elimina import __version__

if TYPE_CHECKING:
    from elimina._core import CpSearch, FlatZinc

FINISHED, ERROR = 0, 1


def main(arguments: list[str] | None = None) -> None:
    """Run ``fzn-elimina``; exit with 0 (finished, or ended by a limit or a signal), 1 (error) or 2 (usage)."""
    run = _Run(time.monotonic())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, run.stop)
    try:
        run.take(_options(arguments))
        if sys.stdout is None:
            raise OSError(errno.EBADF, "closed")
        code = run.run()
        sys.stdout.buffer.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            _complain(f"{error.filename or 'standard output'}: {error.strerror or error}")
        # What is still buffered cannot be written either: the interpreter must not try again when it ends.
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = ERROR
    except MemoryError:
        _complain("out of memory")
        code = ERROR
    sys.exit(code)


def _complain(problem: str) -> None:
    print(f"fzn-elimina: {problem}", file=sys.stderr)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "fzn-elimina", description="Solve a FlatZinc model (text or JSON).", allow_abbrev=False
    )
    parser.add_argument("model", metavar="MODEL.fzn", type=Path)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    parser.add_argument(
        "-a", "--all-solutions", action="store_true", help="all solutions; with an objective, each better one"
    )
    parser.add_argument(
        "-n", "--num-solutions", metavar="N", type=_count(1), help="end after N solutions (without an objective)"
    )
    parser.add_argument("-i", "--intermediate", action="store_true", help="with an objective, each better solution")
    parser.add_argument("-s", "--statistics", action="store_true", help="statistics at the end")
    parser.add_argument("-v", "--verbose", action="store_true", help="what is ignored, on standard error")
    parser.add_argument("-f", "--free-search", action="store_true", help="dom/wdeg with restarts and saved values")
    parser.add_argument(
        "-p", "--parallel", metavar="N", type=_count(1, 1024), default=1, help="threads, each with a copy of the model"
    )
    parser.add_argument(
        "--lns", action="store_true", help="with an objective, search near the best solution and everywhere by turns"
    )
    parser.add_argument("-r", "--random-seed", metavar="SEED", type=_count(0), default=0, help="of random values")
    parser.add_argument("-t", "--time-limit", metavar="MS", type=_count(0), help="milliseconds, from the start")
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="what filters AllDifferents; auto: a GPU where it is faster, or where the model says so",
    )
    options = parser.parse_args(arguments)
    if options.parallel > 1 and options.device == "cuda":
        parser.error("a GPU filters for one thread: leave out -p or --device cuda")
    return options


def _count(least: int, most: int = 2**53 - 1) -> type[int]:
    class Count(int):
        def __new__(cls, text: str) -> Count:
            value = int(text)
            if not least <= value <= most:
                raise ValueError
            return super().__new__(cls, value)

    Count.__name__ = f"integer, at least {least}" + (f", at most {most}" if most < 2**53 - 1 else "")
    return Count


class _StoppedReadingError(Exception):
    pass


class _Run:
    def __init__(self, started: float) -> None:
        self._started, self._stopped, self._reads = started, False, False

    def stop(self, *_: object) -> None:
        self._stopped = True
        # A pipe that nothing is written to would be waited for again.
        if self._reads:
            raise _StoppedReadingError

    def take(self, options: argparse.Namespace) -> None:
        self._options = options

    def run(self) -> int:
        options = self._options
        from elimina._core import FlatZinc

        try:
            model = FlatZinc(self._read(options.model), self._goes_on)
        except ValueError as error:
            _complain(f"{options.model}:{error}")
            return ERROR
        except (StopIteration, _StoppedReadingError):
            self._write(b"=====UNKNOWN=====\n")
            return FINISHED
        if _may_use_device(model, options):
            from elimina.cp.device import accelerate
            from elimina.errors import DeviceError

            try:
                accelerate(model, options.device)
            except DeviceError as error:
                _complain(str(error))
                return ERROR
        try:
            how = options.free_search, options.random_seed, self._seconds_left(), options.parallel, options.lns
            search = model.search(*how, self._goes_on)
        except StopIteration:
            self._write(b"=====UNKNOWN=====\n")
            return FINISHED
        if options.verbose:
            for note in model.notes:
                _complain(note)
        read = time.monotonic() - self._started
        self._search(model, search)
        if options.statistics:
            self._write(_statistics(model, search, read).encode())
        return FINISHED

    def _read(self, path: Path) -> bytes:
        self._reads = True
        try:
            return path.read_bytes()
        finally:
            self._reads = False

    def _seconds_left(self) -> float:
        limit = self._options.time_limit
        return float("inf") if limit is None else max(self._started + limit / 1000 - time.monotonic(), 0.0)

    def _goes_on(self) -> bool:
        return not self._stopped and self._seconds_left() > 0

    def _search(self, model: FlatZinc, search: CpSearch) -> None:
        options = self._options
        limit = options.num_solutions or (None if options.all_solutions else 1)
        shows_each = model.is_satisfaction or options.all_solutions or options.intermediate
        count, last = 0, b""
        while (state := search.next(self._goes_on)) == "solution":
            count, last = count + 1, model.show(search)
            if shows_each:
                self._write(last)
            if model.is_satisfaction and count == limit:
                break
        if not shows_each:
            self._write(last)
        if state == "complete":
            unbounded = count > 0 and model.is_unbounded(search)
            ending = b"=====UNBOUNDED=====\n" if unbounded else b"==========\n"
            self._write(ending if count else b"=====UNSATISFIABLE=====\n")
        elif count == 0:
            self._write(b"=====UNKNOWN=====\n")

    def _write(self, text: bytes) -> None:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()


def _may_use_device(model: FlatZinc, options: argparse.Namespace) -> bool:
    """What finds devices is imported only then."""
    if options.parallel > 1 or options.device == "cpu":
        return False
    return options.device == "cuda" or model.device_delay() < float("inf")


def _statistics(model: FlatZinc, search: CpSearch, read: float) -> str:
    found = search.statistics()
    figures = {
        "parseTime": f"{model.parse_seconds:.6f}",
        "initTime": f"{read:.6f}",
        "solveTime": f"{found['seconds']:.6f}",
        "solutions": found["solutions"],
        "variables": model.variables,
        "propagators": model.propagators,
        "propagations": found["propagations"],
        "nodes": found["nodes"],
        "failures": found["failures"],
        "restarts": found["restarts"],
        "nogoods": found["nogoods"],
        "peakDepth": found["peak_depth"],
    }
    if found["solutions"] and not model.is_satisfaction:
        figures["objective"] = model.objective(search)
    return "".join(f"%%%mzn-stat: {name}={value}\n" for name, value in figures.items()) + "%%%mzn-stat-end\n"
