"""Bounds by other methods for FlatZinc models, while their search pauses."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from elimina._core import CpSearch, FlatZinc, FlatZincRecord
from elimina.cp.bound_schedule import PausedSearch, findings_of
from elimina.cp.expressions import Expression
from elimina.cp.model import Model
from elimina.cp.posting import Declaration, PostedModel, build_solver
from elimina.errors import EliminaError
from elimina.strategies.clock import Clock

_PROPAGATION_SECONDS = 1.0
"""Time limit of propagation: bounds of wide domains may change by one at a time."""

_RECORDING_FACTOR = 4.0
"""Estimated time for recording the model's items, as a multiple of the time that the core took to parse the text."""


class FlatZincBounds:
    """Bounds of a FlatZinc model, whose items are recorded at the first pause of its search.

    Args:
        model: The model.
        may_continue: Function that returns false to end the recording.
    """

    def __init__(self, model: FlatZinc, may_continue: Callable[[], bool]) -> None:
        self._model, self._may_continue = model, may_continue
        self._record: FlatZincRecord | None = None
        self._pauses = 0

    def add(self, search: CpSearch, value: int | None, seconds: float) -> bool:
        """Add bounds and costs of values to a paused search; return whether no better solution exists.

        Args:
            search: The search.
            value: Value of the objective in the best solution; None if there is no solution.
            seconds: Seconds until the time limit; infinity if there is none.
        """
        if self._record is None:
            if seconds < _RECORDING_FACTOR * self._model.parse_seconds:
                return False
            try:
                self._record = self._model.record(self._may_continue)
            except StopIteration:
                return False
        pauses, self._pauses = self._pauses, self._pauses + 1
        return _add_bounds(self._record, search, value, pauses, Clock(None if math.isinf(seconds) else seconds))


def _add_bounds(record: FlatZincRecord, search: CpSearch, value: int | None, pauses: int, clock: Clock) -> bool:
    posted, aim = _posted(record), _aim(record)
    incumbent = None if value is None else record.sign * value
    try:
        domains, _ = build_solver(posted.variables, posted.constraints, None, clock.deadline)
    except EliminaError:
        return False
    if aim is not None and incumbent is not None:
        factors = np.array(list(aim.terms.values()), np.int64)
        variables = np.array([(var, 1, 0) for var in aim.terms], np.int64)
        domains.post("int_lin_le", [factors, variables, np.array([incumbent - 1 - aim.constant])])
    is_consistent = domains.propagate(min(clock.seconds, _PROPAGATION_SECONDS))
    if is_consistent is None:
        return False
    paused = PausedSearch(posted, domains, aim, record.sign, incumbent, clock, pauses)
    is_proven = not is_consistent or _add_findings(record, search, paused)
    if is_proven and incumbent is not None:
        search.raise_bound(incumbent)
    return is_proven


def _add_findings(record: FlatZincRecord, search: CpSearch, paused: PausedSearch) -> bool:
    # Variables with names have the same numbers in the record and in the search; other variables may differ.
    shared = 1 + max((int(view[0, 0]) for _, view in record.names), default=-1)
    for finding in findings_of(paused):
        bound = finding.lower_bound
        if bound is not None:
            search.raise_bound(bound)
        is_closed = bound is not None and paused.incumbent is not None and bound >= paused.incumbent
        if finding.is_refuted or is_closed:
            return True
        if finding.value_costs is not None and paused.aim is not None:
            rows, unit = finding.value_costs
            search.set_costs(np.ascontiguousarray(rows[rows[:, 0] < shared]), unit, paused.aim.constant)
        if finding.ended_by is not None:
            break
    return False


def _posted(record: FlatZincRecord) -> PostedModel:
    aim = _aim(record)
    return PostedModel(
        [Declaration(lo, hi, None) for lo, hi in record.bounds],
        {},
        record.posts,
        None if aim is None else {var: record.sign * factor for var, factor in aim.terms.items()},
        0 if aim is None else record.sign * aim.constant,
        "max-cost" if record.sign < 0 else "min-cost",
    )


def _aim(record: FlatZincRecord) -> Expression | None:
    """Return the objective to be minimised; None if there is none."""
    if record.objective is None:
        return None
    ((var, scale, offset),) = record.objective.tolist()
    return Expression(Model(), {var: record.sign * scale} if var >= 0 else {}, record.sign * offset)
