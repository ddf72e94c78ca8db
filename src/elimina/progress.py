"""Progress of a call as one line on a terminal, or as a bar in a notebook: its phase, bounds and time."""

from __future__ import annotations

import math
import sys
import time
from importlib import import_module
from typing import Any

from elimina.number_texts import bytes_text, count_text, seconds_text
from elimina.planning.plan import Plan
from elimina.result import Bounds

_PAUSE = 0.1
"""Shortest time between two updates, in seconds."""

_NOTICED = 0.5
"""Longest estimated time, in seconds, of work that shows no bar."""

_WIDTH = 24

_PLANNING = "planning"
"""Phase before there is a plan."""


class Progress:
    """Display of a call's progress, on a terminal's standard error or in a notebook; elsewhere nothing is shown.

    As a context manager it removes the line of a terminal at the end. A notebook keeps the last picture.
    """

    def __init__(self) -> None:
        self._started = self._shown = time.monotonic()
        self._phase, self._bounds = _PLANNING, ""
        self._share: float | None = None
        self._seconds = 0.0
        self._handle: Any = None
        self._is_shown = False
        self._is_notebook = _is_notebook()

    def __enter__(self) -> Progress:
        return self

    @property
    def is_possible(self) -> bool:
        """True if there is a terminal or a notebook that can show the progress."""
        return self._is_notebook or sys.stderr.isatty()

    def start(self, plan: Plan, runs: float = 1) -> None:
        """Show the bar for a number of runs of a plan."""
        seconds = runs * plan.seconds
        self.show(f"width {plan.width}, {bytes_text(plan.peak_bytes)}, about {seconds_text(seconds)}", seconds)

    def show(self, label: str, seconds: float) -> None:
        """Set the label and the estimated time of the current work, and show the bar unless this time is short."""
        self._phase, self._seconds = label, seconds
        if seconds > _NOTICED:
            self._share = 0.0
            self._picture()

    def bounds(self, latest: Bounds) -> None:
        """Show bounds on the optimum."""
        ends = " to ".join("unknown" if end is None else str(end) for end in (latest.lower, latest.upper))
        rate = f", {count_text(round(latest.nodes / max(latest.seconds, 1e-3)))} nodes/s" if latest.nodes else ""
        gap = "" if latest.gap == math.inf else f" (gap {_percent(latest.gap)})"
        if self._phase == _PLANNING and latest.nodes:
            self._phase = "searching"
        self._bounds = f"optimum: {ends}{gap}{rate}"
        self._picture()

    def update(self, share: float) -> None:
        """Move the bar to a share of the work."""
        if self._share is not None:
            self._share = min(max(share, self._share), 1.0)
            if time.monotonic() - self._shown > _PAUSE:
                self._picture()

    def __exit__(self, *error: object) -> None:
        if self._handle is not None:
            self._handle.update(self)
        elif self._is_shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()

    def __repr__(self) -> str:
        elapsed = time.monotonic() - self._started
        texts = [self._phase, self._bounds, f"{seconds_text(elapsed)} so far"]
        if self._share:
            texts.append(f"about {seconds_text(elapsed * (1 - self._share) / self._share)} left")
        text = "; ".join(words for words in texts if words)
        if self._share is None:
            return text
        filled = round(_WIDTH * self._share)
        return f"[{'#' * filled}{'-' * (_WIDTH - filled)}] {100 * self._share:3.0f} %  {text}"

    def _repr_html_(self) -> str:
        from html import escape

        bar = "" if self._share is None else f'<progress value="{self._share:.3f}" max="1"></progress> '
        return f"<div>{bar}{escape(repr(self).rpartition('%  ')[2])}</div>"

    def _picture(self) -> None:
        self._shown = time.monotonic()
        if self._is_notebook:
            self._show_in_notebook()
        elif sys.stderr.isatty():
            self._is_shown = True
            sys.stderr.write(f"\r{self!r}\033[K")
            sys.stderr.flush()

    def _show_in_notebook(self) -> None:
        if self._handle is None:
            self._handle = import_module("IPython.display").display(self, display_id=True)
        else:
            self._handle.update(self)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %" if share < 9.995 else f"{100 * share:,.0f} %"


def _is_notebook() -> bool:
    """Return True if a notebook's kernel runs this process."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return shell is not None and hasattr(shell, "kernel")
