"""Bounds as they improve, in a file."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator

from elimina.errors import InputError
from elimina.result import Bounds


@contextlib.contextmanager
def tracing(path: str | None) -> Iterator[Callable[[Bounds], None]]:
    """Write each improvement as a JSON object on a line of its own, at once; None: nowhere.

    Raises:
        InputError: The file cannot be written.
    """
    if path is None:
        yield lambda known: None
        return
    last: list[tuple[int | float | None, int | float | None]] = []
    try:
        with open(path, "w") as file:

            def note(known: Bounds) -> None:
                if last[-1:] != [known[1:3]]:
                    last.append(known[1:3])
                    file.write(json.dumps(known._asdict()) + "\n")
                    file.flush()

            yield note
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def read_trace(path: str) -> list[Bounds]:
    """Read what ``tracing`` wrote.

    Raises:
        InputError: The file cannot be read, or is none.
    """
    try:
        with open(path) as file:
            return [Bounds(**json.loads(line)) for line in file if line.strip()]
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise InputError(f"{path} is not a trace of bounds ({error}); elimina solve --trace writes one") from error
