"""What a task's answer consists of."""

from __future__ import annotations

import json
import math
from typing import Any, Literal, NamedTuple

Status = Literal["optimal", "bounded", "infeasible", "feasible"]


class Result(NamedTuple):
    """An answer.

    Attributes:
        status: ``optimal``: exact; ``infeasible``: no assignment is allowed (or the evidence has probability 0).
        task: The task that was answered.
        value: The optimum in the model's units (a cost; the natural logarithm of a probability), the partition function where a
            float can hold it, or a count (an exact int); None if there is none.
        lower_bound: No better than ``value`` when that is minimised; None if it does not apply.
        upper_bound: Likewise.
        assignment: Variable name -> label of its value; None if there is none.
        log10_z: Base-10 logarithm of the partition function or of the evidence's probability; minus infinity if that is 0.
        marginals: Variable name -> {label: probability}.
        stats: Figures of the run: ``induced_width``, ``largest_table`` and ``total_cells`` (cells), ``peak_bytes``, ``seconds`` (by
            phase), ``device``, ``dtype``.
    """

    status: Status
    task: str
    value: int | float | None = None
    lower_bound: int | float | None = None
    upper_bound: int | float | None = None
    assignment: dict[str, str] | None = None
    log10_z: float | None = None
    marginals: dict[str, dict[str, float]] | None = None
    stats: dict[str, Any] = {}  # noqa: RUF012 - the default of a named tuple's field; never written to

    def to_json(self) -> str:
        """One JSON object on one line; what does not apply, or is no finite number, is null."""
        return json.dumps({key: _finite(value) for key, value in self._asdict().items()})


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
