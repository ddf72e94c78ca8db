"""The search for the form of a plan; the forms in a table are tried in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

from elimina.backends.device_group import devices_of
from elimina.backends.protocols import Backend
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.listed_tables import seconds_written
from elimina.planning.machine import speeds
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination, kept_plan
from elimina.running.sparse_plans import MIN_WRITING_SECONDS, SLICE_REFINEMENT_FACTOR, may_pay, sparse_plan
from elimina.system import cached_property

MIN_COMPARED_FORMS_SECONDS = 2.0
"""If a plan in segments takes at most this much longer than the whole plan, no other form is tried, because planning a
form takes 0.5 to 5 s."""


class PlanSearch(Protocol):
    """A search for a plan; ``plans`` are the plans so far."""

    plans: list[Plan]


Search = TypeVar("Search", bound=PlanSearch)


class FormRow(NamedTuple, Generic[Search]):
    """A row of a table of forms.

    Attributes:
        name: Name of the form.
        is_tried: Function that returns whether the form is allowed, and could be better than the plans so far.
        make: Function that returns a plan in this form, fitting or not; None if the form is impossible.
    """

    name: str
    is_tried: Callable[[Search], bool]
    make: Callable[[Search], Plan | None]


def try_forms(rows: Iterable[FormRow[Search]], search: Search) -> None:
    """Try the forms of all rows in turn, and add their plans to the search."""
    for row in rows:
        if row.is_tried(search) and (plan := row.make(search)) is not None:
            search.plans.append(plan)


class FormSearch:
    """A search for the form of a plan: on one device, or in slices that several devices share.

    Args:
        backend: Device of the plan.
        elimination: Elimination to plan.
        options: Planning options.
        refinements: See ``fitting_plan``.

    Attributes:
        whole: The plan with dense tables in the device's memory.
        plans: Plans made so far.
    """

    def __init__(self, backend: Backend, elimination: Elimination, options: CheckedOptions, refinements: int) -> None:
        self.backend, self.elimination, self.options = backend, elimination, options
        self.times = SLICE_REFINEMENT_FACTOR**refinements
        self._refinements = refinements
        self.whole = kept_plan(elimination)
        self.plans: list[Plan] = []

    @cached_property
    def writing_seconds(self) -> float:
        """Estimated seconds for expanding listed tables; 0 if this is short, or if the options fix the layout."""
        if self.options.tables != "auto" or self.whole.factor_cells <= MIN_WRITING_SECONDS * speeds().encoded:
            return 0.0
        return seconds_written(self.elimination.problem)

    @cached_property
    def sparse(self) -> Plan | None:
        """The plan on sparse tables; None if it is neither requested nor likely to be better, or saves nothing."""
        tables = self.options.tables
        is_open = tables == "auto" and may_pay(self.elimination, self.whole, self.writing_seconds)
        if tables != "sparse" and not is_open:
            return None
        return sparse_plan(self.elimination, self.options, self.whole, self._refinements)

    @property
    def demands_sparse(self) -> bool:
        """True if sparse tables are requested and supported."""
        return self.options.tables == "sparse" and self.sparse is not None

    @property
    def lacks_dense(self) -> bool:
        """True if dense tables are allowed, but do not fit the device's memory."""
        return not self.demands_sparse and not self.whole.fits

    @property
    def lacks_quick(self) -> bool:
        """True if dense tables are allowed, but do not fit, and no plan in segments would be about as fast."""
        limit = self.whole.seconds + MIN_COMPARED_FORMS_SECONDS
        return self.lacks_dense and not any(plan.form.is_replanned and plan.seconds <= limit for plan in self.plans)

    def seconds(self, plan: Plan) -> float:
        """Return the estimated seconds of a plan whose slices are divided among the backend's devices."""
        written = self.writing_seconds if plan.sparse is None else 0.0
        if not plan.form.variables:
            return plan.seconds + written
        return self.backend.machine.start + shared_seconds(plan, self.backend, len(devices_of(self.backend))) + written


def shared_seconds(plan: Plan, backend: Backend, count: int) -> float:
    """Return the estimated seconds of a plan's slices on several devices, without the time for starting the devices."""
    number = plan.form.slices
    return (plan.seconds - backend.machine.start) * -(-number // count) / number
