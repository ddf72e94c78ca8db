"""Traces of a call's bounds over time: files with a JSON object on each line."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from elimina._core import TextError
from elimina.errors import InputError, source_text
from elimina.io.files import load
from elimina.result import Bounds


@contextlib.contextmanager
def tracing(path: str) -> Iterator[Callable[[Bounds], None]]:
    """Yield a function that writes each improvement at once, as a line with a JSON object.

    Raises:
        InputError: The file cannot be written.
    """
    last: list[tuple[int | float | None, int | float | None]] = []
    try:
        with open(path, "w") as file:

            def write_bounds(bounds: Bounds) -> None:
                if last[-1:] != [bounds[1:3]]:
                    last.append(bounds[1:3])
                    file.write(json.dumps(bounds._asdict()) + "\n")
                    file.flush()

            yield write_bounds
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def read_trace(path: str) -> list[Bounds]:
    """Read a trace that ``tracing`` wrote.

    Raises:
        InputError: The file cannot be read, or is not a trace.
    """
    try:
        trace = [Bounds(**json.loads(line)) for line in load(Path(path)).splitlines() if line.strip()]
        numbers = [x for bounds in trace for x in (bounds.seconds, *(end for end in bounds[1:3] if end is not None))]
        if not {type(x) for x in numbers} <= {int, float}:
            raise TypeError
    except (TextError, ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        form = "a JSON object with seconds, lower and upper on each line"
        raise InputError(
            f"{source_text(path)} is not a trace of bounds, {form}; elimina solve --trace writes one"
        ) from error
    return trace
