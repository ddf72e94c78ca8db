"""The form of an optimum's plan in segments of the order."""

from __future__ import annotations

from typing import Any

from elimina.number_texts import bytes_text, seconds_text, times_text
from elimina.planning.plan import Form, Plan


class Segments(Form):
    """An order in segments; one segment at a time keeps all of its messages (``methods.segments``).

    Bytes, work and seconds of the plan are estimates of all runs.

    Attributes:
        ends: Position in the order after the last variable of each segment.
        unsegmented: The plan with all messages, which is too large.
        dtype: Override of the dtype of each segment's tables.
        limits: Bytes that may be used on the host, if a GPU runs the plan.
        is_replanned: True, because each run plans its segment.
    """

    ends: tuple[int, ...]
    unsegmented: Plan
    dtype: str | None
    limits: tuple[tuple[str, int], ...] = ()
    is_replanned: bool = True

    def whole(self, plan: Plan) -> Plan:
        """Return the plan that keeps all messages."""
        return self.unsegmented

    def rows(self, plan: Plan) -> list[tuple[str, str]]:
        """Return the number of segments, and their cost."""
        whole = self.unsegmented
        cost = f"{times_text(plan.work, whole.work)} the work of one segment, which needs"
        text = f"{len(self.ends)}; {cost} {bytes_text(whole.peak_bytes)} and {seconds_text(whole.seconds)}"
        return [("segments", text)]

    def figures(self) -> dict[str, Any]:
        """Return the number of segments."""
        return {"segments": len(self.ends)}

    def statistics(self, plan: Plan) -> dict[str, Any]:
        """Return the same as ``figures``."""
        return self.figures()
