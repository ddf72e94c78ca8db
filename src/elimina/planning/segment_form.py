"""The form of a plan for an optimum in segments of the bucket tree."""

from __future__ import annotations

from typing import Any

from elimina.number_texts import bytes_text, seconds_text, times_text
from elimina.planning.plan import Form, Plan


class Segments(Form):
    """A bucket tree in segments; a separate run decodes each of them (``methods.segments``).

    The plan's bytes are those of the largest run; work and seconds are sums over all runs.

    Attributes:
        orders: Elimination order of each run.
        unsegmented: The plan with all messages, which does not fit.
        dtype: Requested dtype of the tables of each run; None: chosen by the planner.
        limits: Memory limits on the host if a GPU runs the plan, in bytes.
        is_streamed: True if tables that exceed the GPU's memory lie in host memory and pass through the GPU in tiles.
        is_resident: True unless tables may lie in host memory while a GPU runs the plan.
        is_replanned: True, because each run makes its own plan.
    """

    orders: tuple[tuple[int, ...], ...]
    unsegmented: Plan
    dtype: str | None
    limits: tuple[tuple[str, int], ...] = ()
    is_streamed: bool = False
    is_resident: bool = True
    is_replanned: bool = True

    def whole(self, plan: Plan) -> Plan:
        """Return the plan with all messages."""
        return self.unsegmented

    def rows(self, plan: Plan) -> list[tuple[str, str]]:
        """Return the number of segments, and their cost."""
        whole = self.unsegmented
        cost = f"{times_text(plan.work, whole.work)} the work of one segment, which needs"
        where = " in tiles" if self.is_streamed else ""
        text = f"{len(self.orders)}{where}; {cost} {bytes_text(whole.peak_bytes)} and {seconds_text(whole.seconds)}"
        return [("segments", text)]

    def figures(self) -> dict[str, Any]:
        """Return the number of segments."""
        return {"segments": len(self.orders)}

    def statistics(self, plan: Plan) -> dict[str, Any]:
        """Return the same as ``figures``."""
        return self.figures()
