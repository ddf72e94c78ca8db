"""The form of a plan in slices, one for each combination of values of a few variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from elimina.number_texts import bytes_text, count_text, counted, seconds_text, times_text
from elimina.option_names import option
from elimina.planning.plan import Form, Plan

_MAX_NAMES = 5
"""Largest number of variables that an error text lists."""


class Slicing(Form):
    """A problem in slices; steps, width, tables and bytes of the plan are those of one slice.

    Attributes:
        variables: Conditioned variables; the one that changes least often comes first.
        names: Names of these variables.
        sizes: Number of values of each of these variables.
        levels: Level of each step: the number of leading ``variables`` whose changes make the step run again.
        unsliced: The plan without slices, which does not fit.
        is_allowed: True if the options allow the number of slices and the time.
    """

    variables: tuple[int, ...]
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    levels: tuple[int, ...]
    unsliced: Plan
    is_allowed: bool = True

    @property
    def shared(self) -> int:
        """Number of steps that run once for all slices."""
        return self.levels.count(0)

    def whole(self, plan: Plan) -> Plan:
        """Return the plan without slices."""
        return self.unsliced

    def with_levels(self, levels: Sequence[int]) -> Slicing:
        """Return the slices with new levels of the steps."""
        return self.replace(levels=tuple(levels))

    def rows(self, plan: Plan) -> list[tuple[str, str]]:
        """Return the number of slices, the conditioned variables, and the cost of slicing."""
        whole = self.unsliced
        fixed = ", ".join(f"{name} ({size})" for name, size in zip(self.names, self.sizes, strict=True))
        excess = "" if self.is_allowed else ", more than are allowed"
        return [
            ("slices", f"{count_text(self.slices)}{excess}; {self.shared} of {len(plan.steps)} steps run once"),
            ("conditioned on", f"{len(self.names)}: {fixed}"),
            (
                "cost of slicing",
                f"{times_text(plan.work, whole.work)} the work of the unsliced plan, which needs "
                f"{bytes_text(whole.peak_bytes)} and {seconds_text(whole.seconds)}",
            ),
        ]

    def figures(self) -> dict[str, Any]:
        """Return the number of slices, and the names of the conditioned variables."""
        return {"slices": self.slices, "sliced": list(self.names)}

    def statistics(self, plan: Plan) -> dict[str, Any]:
        """Return the same as ``figures``."""
        return self.figures()

    def advice(self, plan: Plan) -> str:
        """Return the sufficient number of slices, and the option that allows it."""
        names = ", ".join(self.names[:_MAX_NAMES]) + (", ..." if len(self.names) > _MAX_NAMES else "")
        return (
            f"; fixing {counted(len(self.names), 'variable')} ({names}) would do it in "
            f"{counted(self.slices, 'slice', is_rounded=True)} of "
            f"{bytes_text(plan.peak_bytes)}, estimated at {seconds_text(plan.seconds)}, which "
            f"{option('slices', self.slices)} allows"
        )
