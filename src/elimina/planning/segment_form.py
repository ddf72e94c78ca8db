"""The form of an optimum's plan in segments of the bucket tree."""

from __future__ import annotations

from typing import Any

from elimina.number_texts import bytes_text, seconds_text, times_text
from elimina.planning.plan import Form, Plan


class Segments(Form):
    """A bucket tree in segments, each decoded by a run of its own (``methods.segments``).

    Bytes of the plan are the largest of any run; work and seconds are sums over all runs.

    Attributes:
        orders: Elimination order of each run.
        unsegmented: The plan with all messages, which is too large.
        dtype: Override of the dtype of each run's tables.
        limits: Bytes that may be used on the host, if a GPU runs the plan.
        is_streamed: True if a run's tables lie in the host's memory and pass through the GPU in tiles if they do not
            fit there.
        is_resident: False if tables may lie in the host's memory.
        is_replanned: True, because each run has a plan of its own.
    """

    orders: tuple[tuple[int, ...], ...]
    unsegmented: Plan
    dtype: str | None
    limits: tuple[tuple[str, int], ...] = ()
    is_streamed: bool = False
    is_resident: bool = True
    is_replanned: bool = True

    def whole(self, plan: Plan) -> Plan:
        """Return the plan that keeps all messages."""
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
