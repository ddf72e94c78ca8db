"""Calls with all options as keywords: ``plan(model, task, device="cpu", order="min-fill")``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import elimina
from elimina import cp, dcop
from elimina.planning.options import Options


@functools.cache
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


def with_options(function: Callable[..., Any], *arguments: Any, kind: Any = Options, **given: Any) -> Any:
    """Call a function whose other options are fields of a class: of ``elimina.Options``, if no other one is given.

    A number as ``memory`` is in bytes, however small.
    """
    if type(given.get("memory")) is int and given["memory"] > 0:
        given["memory"] = f"{given['memory']}B"
    taken = _parameters(function)
    own = {name: value for name, value in given.items() if name in taken}
    rest = {name: value for name, value in given.items() if name not in taken}
    return function(*arguments, **own, **({"options": kind(**rest)} if rest else {}))


def plan(*arguments: Any, **given: Any) -> elimina.Plan:
    """Call ``elimina.plan``."""
    return with_options(elimina.plan, *arguments, **given)


def solve(*arguments: Any, **given: Any) -> elimina.Result:
    """Call ``elimina.solve``."""
    return with_options(elimina.solve, *arguments, **given)


def junction_tree(*arguments: Any, **given: Any) -> elimina.JunctionTree:
    """Call ``elimina.JunctionTree``."""
    return with_options(elimina.JunctionTree, *arguments, **given)


def fit(*arguments: Any, **given: Any) -> elimina.Fit:
    """Call ``elimina.fit``."""
    return with_options(elimina.fit, *arguments, kind=elimina.FitOptions, **given)


def solve_by_agents(*arguments: Any, **given: Any) -> elimina.Result:
    """Call ``elimina.dcop.solve``."""
    return with_options(dcop.solve, *arguments, kind=dcop.AgentOptions, **given)


def search(model: cp.Model, **given: Any) -> cp.Result:
    """Call ``elimina.cp.Model.solve``."""
    return with_options(model.solve, kind=cp.SearchOptions, **given)
