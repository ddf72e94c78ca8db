"""Calls with all options as keywords: ``plan(model, task, device="cpu", order="min-fill")``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import elimina
from elimina.inference.options import Options

_ARGUMENTS = ("model", "task", "evidence", "query", "device", "memory", "time_limit", "client")


def with_options(function: Callable[..., Any], *arguments: Any, **given: Any) -> Any:
    """Call a function whose other options are fields of ``elimina.Options``."""
    own = {name: value for name, value in given.items() if name in _ARGUMENTS}
    rest = {name: value for name, value in given.items() if name not in _ARGUMENTS}
    return function(*arguments, **own, **({"options": Options(**rest)} if rest else {}))


def plan(*arguments: Any, **given: Any) -> elimina.Plan:
    """Call ``elimina.plan``."""
    return with_options(elimina.plan, *arguments, **given)


def solve(*arguments: Any, **given: Any) -> elimina.Result:
    """Call ``elimina.solve``."""
    return with_options(elimina.solve, *arguments, **given)


def junction_tree(*arguments: Any, **given: Any) -> elimina.JunctionTree:
    """Call ``elimina.JunctionTree``."""
    return with_options(elimina.JunctionTree, *arguments, **given)
