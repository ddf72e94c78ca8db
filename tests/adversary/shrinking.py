"""A smaller case with the same failure."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.adversary.case import Case, kind_of


def failure_of(kind: str, case: Case) -> BaseException | None:
    """Run a case; return what it raises."""
    try:
        kind_of(kind).check(case)
    except BaseException as error:
        return error
    return None


def signature(error: BaseException) -> str:
    """Return what stays the same when a case shrinks: the type, and the place or the words without numbers."""
    words = " ".join(word for word in str(error).split() if word.isalpha())
    return f"{type(error).__name__}: {words[:40]}"


def shrink(case: Case, fails: Callable[[Case], bool], smaller: Callable[[Case], object], seconds: float = 20.0) -> Case:
    """Take the first simpler case that fails likewise, again and again, until there is none or time is up."""
    until = time.monotonic() + seconds
    is_smaller = True
    while is_smaller and time.monotonic() < until:
        is_smaller = False
        for simpler in smaller(case):  # type: ignore[attr-defined]
            if time.monotonic() > until:
                break
            if simpler != case and fails(simpler):
                case, is_smaller = simpler, True
                break
    return case
