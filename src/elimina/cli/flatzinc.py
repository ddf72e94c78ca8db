"""Command ``fzn-elimina``: solves a FlatZinc file. Only the core is imported, so that it starts fast."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elimina.answer_texts import improvement_line
from elimina.cli import run_command, signals
from elimina.version import __version__

if TYPE_CHECKING:
    from elimina._core import CpSearch, FlatZinc
    from elimina.cp.flatzinc_bounds import FlatZincBounds

FINISHED, ERROR = 0, 1
_PAUSES = [0.2, 2.0]
"""Seconds after which the search pauses for bounds by other methods. Importing the methods takes about as long as the
time before the first pause, and most searches end before it."""
_MAX_BYTES_WITH_BOUNDS = 1 << 20
"""Largest size in bytes of a model whose search pauses: recording a model of this size for the other methods takes
0.2 s."""
UNSATISFIABLE = b"=====UNSATISFIABLE=====\n"


def main(arguments: list[str] | None = None) -> None:
    """Run ``fzn-elimina``.

    Exit codes: 0 finished, a limit included; 1 error; 2 usage; 130 ended by SIGINT; 143 ended by SIGTERM.
    """
    started = time.monotonic()
    run_command(lambda: _run(started, arguments), arguments is None)


def _run(started: float, arguments: list[str] | None) -> int:
    try:
        # Signals are checked between steps of the search, so that every solution found is printed.
        with signals.deferred():
            options = _options(arguments)
        signals.check()
        return _FlatZincRun(started, options).run()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            _complain(f"{error.filename or 'standard output'}: {error.strerror or error}")
        # The rest of the buffer is discarded: otherwise the interpreter would try to write it at exit, and fail.
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except MemoryError:
        _complain("out of memory")
    return ERROR


def _complain(problem: str) -> None:
    print(f"fzn-elimina: {problem}", file=sys.stderr)


class _Once(argparse.Action):
    """An option that may be repeated only with the same value."""

    _value: Any = None

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Keep the value.

        Raises:
            SystemExit: The value differs from an earlier one.
        """
        if self._value not in (None, values):
            parser.error(f"{option_string} is given twice, as {self._value} and as {values}; give it once")
        self._value = values
        setattr(namespace, self.dest, values)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "fzn-elimina", description="Solve a FlatZinc model.", allow_abbrev=False, add_help=False
    )
    parser.add_argument("model", metavar="MODEL.fzn", type=Path, help="file, or - for standard input")
    search = parser.add_argument_group("Search").add_argument
    search("-a", "--all-solutions", action="store_true", help="print all solutions, or each better one")
    search(
        "-n",
        "--num-solutions",
        metavar="N",
        action=_Once,
        type=_count(1),
        help="stop after N solutions (satisfaction problems)",
    )
    search("-i", "--intermediate", action="store_true", help="print each better solution (optimisation problems)")
    search("-f", "--free-search", action="store_true", help="search with dom/wdeg, restarts and saved values alone")
    search("--lns", action="store_true", help="alternate search near the best solution with search everywhere")
    search(
        "-r", "--random-seed", metavar="SEED", action=_Once, type=_count(0), default=0, help="random seed  [default: 0]"
    )
    limits = parser.add_argument_group("Limits").add_argument
    limits(
        "-t",
        "--time-limit",
        metavar="MS",
        action=_Once,
        type=_count(0),
        help="time limit in milliseconds, from the start; 0: none",
    )
    limits(
        "-p",
        "--parallel",
        metavar="N",
        action=_Once,
        type=_count(1, 1024),
        default=1,
        help="number of threads  [default: 1]",
    )
    limits(
        "--device",
        action=_Once,
        choices=("auto", "cpu", "cuda"),
        default="auto",
        help="device that filters AllDifferent; auto uses the GPU if it is faster, or if the model names it",
    )
    output = parser.add_argument_group("Output").add_argument
    output("-s", "--statistics", action="store_true", help="print statistics at the end")
    output(
        "-v",
        "--verbose",
        action="store_true",
        help="report the size of the model and each better solution, on standard error",
    )
    output("--version", action="version", version=f"%(prog)s {__version__}", help="print the version and exit")
    output("-h", "--help", action="help", help="show this message and exit")
    options = parser.parse_args(arguments)
    if options.parallel > 1 and options.device == "cuda":
        parser.error("--device cuda runs one thread: leave out -p or --device cuda")
    return options


def _count(minimum: int, maximum: int = 2**53 - 1) -> Callable[[str], int]:
    expected = (
        f"a whole number of at least {minimum}"
        if maximum == 2**53 - 1
        else f"a whole number from {minimum} to {maximum}"
    )

    def read(text: str) -> int:
        if not text.isdecimal() or not minimum <= int(text) <= maximum:
            raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
        return int(text)

    return read


class _FlatZincRun:
    def __init__(self, started: float, options: argparse.Namespace) -> None:
        self._started, self._options = started, options
        self._text = b""
        self._bounds: FlatZincBounds | None = None
        self._seconds_of_bounds = 0.0

    def run(self) -> int:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "closed")
        try:
            text = sys.stdin.buffer.read() if str(self._options.model) == "-" else self._options.model.read_bytes()
        except KeyboardInterrupt:
            with signals.deferred():
                return self._end(False)
        with signals.deferred():
            return self._solve(text)

    def _solve(self, text: bytes) -> int:
        options = self._options
        from elimina._core import FlatZinc, TextError

        try:
            if not text[:2].isascii():
                from elimina.io.files import unpacked

                text = unpacked(options.model, text)
            self._text = text
            model = FlatZinc(text, self._may_continue)
        except TextError as error:
            _complain(f"{options.model}: {error}")
            return ERROR
        except ValueError as error:
            is_source = options.model.suffix == ".mzn"
            advice = "; run 'minizinc --solver elimina' on MiniZinc's own files" if is_source else ""
            _complain(f"{options.model}:{error}{advice}")
            return ERROR
        except StopIteration:
            return self._end(False)
        if _may_use_device(model, options):
            from elimina.cp.gpu_filtering import accelerate
            from elimina.errors import DeviceError

            try:
                accelerate(model, options.device)
            except DeviceError as error:
                _complain(str(error))
                return ERROR
        try:
            settings = options.free_search, options.random_seed, self._seconds_left(), options.parallel, options.lns
            # Restarts would delay a search for all solutions.
            lists_all = options.all_solutions or (options.num_solutions or 1) > 1
            is_portfolio = not (model.is_satisfaction and lists_all)
            search = model.search(*settings, self._may_continue, is_portfolio, self._pauses())
        except StopIteration:
            return self._end(False)
        for note in model.notes:
            _complain(f"warning: {note}")
        if options.verbose:
            _complain(f"variables: {model.variables:,}, propagators: {model.propagators:,}")
        read = time.monotonic() - self._started
        code = self._search(model, search)
        if options.statistics:
            self._write(_statistics(model, search, read, self._seconds_of_bounds).encode())
        return code

    def _pauses(self) -> list[float]:
        return _PAUSES if len(self._text) <= _MAX_BYTES_WITH_BOUNDS else []

    def _seconds_left(self) -> float:
        limit = self._options.time_limit or float("inf")
        return max(self._started + limit / 1000 - time.monotonic(), 0.0)

    def _may_continue(self) -> bool:
        return not signals.came() and self._seconds_left() > 0

    def _search(self, model: FlatZinc, search: CpSearch) -> int:
        options = self._options
        limit = options.num_solutions or (None if options.all_solutions else 1)
        shows_each = model.is_satisfaction or options.all_solutions or options.intermediate
        count, last, code = 0, b"", FINISHED
        try:
            while (state := search.next(self._may_continue)) in ("solution", "paused"):
                if state == "paused":
                    if self._is_proven_by_bounds(model, search, count > 0):
                        state = "complete"
                        break
                    continue
                count, last = count + 1, model.show(search)
                if options.verbose and not model.is_satisfaction:
                    self._log(model, search)
                if shows_each:
                    self._write(last)
                if model.is_satisfaction and count == limit:
                    break
        except MemoryError:
            _complain("out of memory")
            state, code = "memory", ERROR
        if not shows_each:
            self._write(last)
        if state == "complete":
            proof = _proof(model, search, count > 0)
            if proof == UNSATISFIABLE and model.assumptions:
                self._write(f"%%%mzn-core: [{', '.join(self._core(model.assumptions))}]\n".encode())
            self._write(proof)
        elif state != "solution":
            self._end(count > 0)
        return code

    def _is_proven_by_bounds(self, model: FlatZinc, search: CpSearch, is_solved: bool) -> bool:
        """Add bounds by other methods, and return whether they prove that there is no (better) solution."""
        from elimina.cp.flatzinc_bounds import FlatZincBounds

        begun = time.monotonic()
        value = model.objective(search) if is_solved else None
        self._bounds = self._bounds or FlatZincBounds(model, self._may_continue)
        is_proven = self._bounds.add(search, value, self._seconds_left())
        self._seconds_of_bounds += time.monotonic() - begun
        return is_proven

    def _core(self, names: list[str]) -> list[str]:
        """Return the names of assumptions that contradict each other and the constraints.

        None of them can be left out, unless the time limit or a signal came first.
        """
        from elimina._core import FlatZinc
        from elimina.cp.conflicts import minimal_conflict

        def is_infeasible(numbers: Sequence[int]) -> bool:
            try:
                model = FlatZinc(self._text, self._may_continue, list(numbers))
                search = model.search(
                    False, self._options.random_seed, self._seconds_left(), 1, False, self._may_continue, True
                )
                return search.next(self._may_continue) == "complete" and not model.unproven_limits(search)
            except StopIteration:
                return False

        return [names[number] for number in sorted(minimal_conflict(range(len(names)), is_infeasible))]

    def _log(self, model: FlatZinc, search: CpSearch) -> None:
        value, end = _in_units(model, model.objective(search)), model.bound(search)
        bound = None if end is None else _in_units(model, end)
        gap = float("inf") if bound is None else abs(value - bound) / max(min(abs(value), abs(bound)), 1e-12)
        _complain(improvement_line(time.monotonic() - self._started, value, bound, gap, search.origin()))

    def _end(self, is_solved: bool) -> int:
        """Write that the search ended early, and the cause if it is the time limit or a signal; return the exit code.

        Args:
            is_solved: True if a solution was written.
        """
        if not is_solved:
            self._write(b"=====UNKNOWN=====\n")
        if signals.came() or self._seconds_left() <= 0:
            cause = signals.word() if signals.came() else "time limit"
            self._write(f"% {cause}\n".encode())
        return FINISHED

    def _write(self, text: bytes) -> None:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()


def _proof(model: FlatZinc, search: CpSearch, is_solved: bool) -> bytes:
    """Return the line that ends a complete search.

    A search that depended on assumed limits of integers without bounds proves nothing. The line then says that the
    objective is unbounded. Otherwise, a warning is written; the line is empty after a solution, or says that nothing is
    known.
    """
    names = model.unproven_limits(search)
    if not names:
        return b"==========\n" if is_solved else UNSATISFIABLE
    if is_solved and model.is_unbounded():
        return b"=====UNBOUNDED=====\n"
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    _complain(
        f"warning: the model gives no bounds for {shown}; "
        "only values from -2^42 to 2^42 were searched, which proves nothing: "
        f"declare bounds, such as var -1000..1000: {names[0]}"
    )
    return b"" if is_solved else b"=====UNKNOWN=====\n"


def _may_use_device(model: FlatZinc, options: argparse.Namespace) -> bool:
    """Return whether a device may be used. Only then is a module imported to look for devices."""
    if options.parallel > 1 or options.device == "cpu":
        return False
    return options.device == "cuda" or model.device_delay() < float("inf")


def _in_units(model: FlatZinc, value: int) -> float:
    """Return a value of the objective in the file's units: the core scales a float objective to an integer."""
    return value / 10**model.objective_decimals if model.objective_decimals else value


def _statistics(model: FlatZinc, search: CpSearch, read: float, seconds_of_bounds: float) -> str:
    counts = search.statistics()
    figures = {
        "parseTime": f"{model.parse_seconds:.6f}",
        "initTime": f"{read:.6f}",
        "solveTime": f"{counts['seconds'] + seconds_of_bounds:.6f}",
        "solutions": counts["solutions"],
        "variables": model.variables,
        "propagators": model.propagators,
        "propagations": counts["propagations"],
        "nodes": counts["nodes"],
        "failures": counts["failures"],
        "restarts": counts["restarts"],
        "nogoods": counts["nogoods"],
        "peakDepth": counts["peak_depth"],
    }
    if counts["solutions"] and not model.is_satisfaction:
        figures["objective"] = _in_units(model, model.objective(search))
    if (bound := model.bound(search)) is not None:
        figures["objectiveBound"] = _in_units(model, bound)
    return "".join(f"%%%mzn-stat: {name}={value}\n" for name, value in figures.items()) + "%%%mzn-stat-end\n"
