"""A bar on standard error."""

from __future__ import annotations

import math
import sys
from typing import Any

import click

from elimina.planning.plan import Plan, bytes_text, count_text, seconds_text
from elimina.result import Bounds


class Progress:
    """A bar on standard error while a plan runs, on a terminal and for work that one notices."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._done = 0
        self._is_shown = False

    def __enter__(self) -> Progress:
        return self

    @property
    def is_possible(self) -> bool:
        """True if there is a terminal to show it on."""
        return sys.stderr.isatty()

    def start(self, plan: Plan, runs: float = 1) -> None:
        """Show the bar for so many runs of a plan."""
        seconds = runs * plan.seconds
        self.show(f"width {plan.width}, {bytes_text(plan.peak_bytes)}, about {seconds_text(seconds)}", seconds)

    def show(self, label: str, seconds: float) -> None:
        """Show the bar for work of an estimated time."""
        if sys.stderr.isatty() and seconds > 0.5:
            self._bar = click.progressbar(length=1000, label=label, file=sys.stderr)
            self._bar.__enter__()

    def bounds(self, known: Bounds) -> None:
        """Show bounds on the optimum, on a terminal."""
        if sys.stderr.isatty():
            self._is_shown = True
            ends = " to ".join("unknown" if end is None else str(end) for end in (known.lower, known.upper))
            rate = f", {count_text(round(known.nodes / max(known.seconds, 1e-3)))} nodes/s" if known.nodes else ""
            gap = "" if known.gap == math.inf else f" (gap {100 * known.gap:.3g} %)"
            click.echo(f"\roptimum: {ends}{gap}{rate}\033[K", err=True, nl=False)

    def update(self, share: float) -> None:
        """Move the bar to a share of the work."""
        if self._bar is not None:
            steps = max(round(1000 * share) - self._done, 0)
            self._bar.update(steps)
            self._done += steps

    def __exit__(self, *error: object) -> None:
        if self._is_shown:
            click.echo("\r\033[K", err=True, nl=False)
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
