"""Settings of the core's search that follow from a user's options."""

from __future__ import annotations

from typing import Any

from elimina.arguments import choice, flag, real, shown
from elimina.cp.search_options import DEFAULT_OPTIONS, RESTARTS, SearchOptions
from elimina.errors import InputError


def restart_settings(options: SearchOptions) -> tuple[str, float, float] | None:
    """Return the restarts in the core's form: kind, scale and growth; None if the kind is not set or is ``none``."""
    if options.restarts is None or choice("restarts", options.restarts, RESTARTS) == "none":
        return None
    growth = _number_from_one("restart_growth", options.restart_growth)
    return options.restarts, _number_from_one("restart_scale", options.restart_scale), growth


def restart_stretch(options: SearchOptions) -> float:
    """Return the factor by which the numbers of failures between a portfolio's restarts are multiplied."""
    return _number_from_one("restart_scale", options.restart_scale) / DEFAULT_OPTIONS.restart_scale


def is_portfolio(options: SearchOptions) -> bool:
    """Return whether the search is a portfolio: it is one if no option sets the kind of search."""
    return options.restarts is None and not flag("free", options.free) and not flag("lns", options.lns)


def _number_from_one(name: str, argument: Any) -> float:
    value = real(name, argument, "a number that is at least 1")
    if not value >= 1:
        raise InputError(f"{name} is {shown(argument)}; it must be at least 1")
    return value
