"""Solving a text in this process."""

from __future__ import annotations

import math
from typing import Any

from elimina._core import FlatZinc
from tests.reference.flatzinc import parse_solutions


def solved(text: str | bytes, *, free: bool = False, threads: int = 1, relax: bool = False) -> list[dict[str, Any]]:
    """Every solution; with an objective, each better one."""
    model = FlatZinc(text if isinstance(text, bytes) else text.encode(), lambda: True)
    search = model.search(free, 0, math.inf, threads, relax, lambda: True)
    printed = b""
    while (state := search.next(lambda: True)) == "solution":
        printed += model.show(search)
    assert state == "complete"
    return parse_solutions(printed.decode())
