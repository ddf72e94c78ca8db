"""Forms of a plan in a table, tried in turn: of the plans that fit, the one of least estimated time is chosen.

To add a form, write a module with its record, a subclass of ``planning.plan.Form``, and the function that makes such a
plan, and add a row to ``FORMS`` (one device) or to ``shared_plans.SHARED_FORMS`` (several).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

from elimina import arguments
from elimina.backends.cpu import CpuBackend
from elimina.backends.device_group import devices_of
from elimina.backends.protocols import Backend
from elimina.planning.listed_tables import seconds_written
from elimina.planning.machine import speeds
from elimina.planning.options import Options
from elimina.planning.ordering import elimination_order
from elimina.planning.plan import Plan
from elimina.planning.planner import Conditioning, Elimination, kept_plan, make_plan
from elimina.planning.slice_form import Slicing
from elimina.planning.slicing import MAX_SLICED_SECONDS, make_sliced_plan
from elimina.problem.preparation import restrict
from elimina.running.fused_steps import with_fused_steps
from elimina.running.sparse_plans import (
    MIN_WRITING_SECONDS,
    SLICE_REFINEMENT_FACTOR,
    may_pay,
    sparse_plan,
    sparse_plan_in_fine_slices,
    with_sparse_fit,
)
from elimina.system import cached_property

MIN_COMPARED_FORMS_SECONDS = 2.0
"""Largest estimated delay by segments, in seconds, for which no other form is planned: planning one takes 0.5 to
5 s."""


class PlanSearch(Protocol):
    """A search for a plan, with the plans made so far (``plans``)."""

    plans: list[Plan]


Search = TypeVar("Search", bound=PlanSearch)


class FormRow(NamedTuple, Generic[Search]):
    """A row of a table of forms.

    Attributes:
        name: Name of the form.
        is_tried: Function that returns whether the form is allowed, and may be better than the plans so far.
        make: Function that returns a plan in this form, even if it does not fit; None if there is none.
    """

    name: str
    is_tried: Callable[[Search], bool]
    make: Callable[[Search], Plan | None]


def try_forms(rows: Iterable[FormRow[Search]], search: Search) -> None:
    """Try the rows' forms in turn, and add their plans to the search."""
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

    def __init__(self, backend: Backend, elimination: Elimination, options: Options, refinements: int) -> None:
        self.backend, self.elimination, self.options = backend, elimination, options
        self.times = SLICE_REFINEMENT_FACTOR**refinements
        self._refinements = refinements
        self.whole = kept_plan(elimination)
        self.plans: list[Plan] = []

    @cached_property
    def writing_seconds(self) -> float:
        """Estimated seconds to write out listed tables; 0 if that is short, or sparse tables could not save it."""
        if self.options.tables != "auto" or self.whole.factor_cells <= MIN_WRITING_SECONDS * speeds().encoded:
            return 0.0
        return seconds_written(self.elimination.problem)

    @cached_property
    def sparse(self) -> Plan | None:
        """The plan on sparse tables; None if it is neither requested nor likely to be better, or gains nothing."""
        tables = self.options.tables
        is_open = tables == "auto" and may_pay(self.elimination, self.whole, self.writing_seconds)
        if tables != "sparse" and not is_open:
            return None
        return sparse_plan(self.elimination, self.options, self.whole, self._refinements)

    @property
    def demands_sparse(self) -> bool:
        """True if sparse tables are requested and possible."""
        return self.options.tables == "sparse" and self.sparse is not None

    @property
    def lacks_dense(self) -> bool:
        """True if dense tables are allowed, but do not fit the device's memory."""
        return not self.demands_sparse and not self.whole.fits

    @property
    def lacks_quick(self) -> bool:
        """True if dense tables are allowed, but do not fit, and no segments make them fit at little cost."""
        limit = self.whole.seconds + MIN_COMPARED_FORMS_SECONDS
        return self.lacks_dense and not any(plan.form.is_replanned and plan.seconds <= limit for plan in self.plans)

    def seconds(self, plan: Plan) -> float:
        """Return the estimated seconds of a plan, with its slices divided among the backend's devices."""
        written = self.writing_seconds if plan.sparse is None else 0.0
        if not plan.form.variables:
            return plan.seconds + written
        return self.backend.machine.start + shared_seconds(plan, self.backend, len(devices_of(self.backend))) + written


def shared_seconds(plan: Plan, backend: Backend, count: int) -> float:
    """Return the estimated seconds of a plan's slices on several devices, without their start-up."""
    number = plan.form.slices
    return (plan.seconds - backend.machine.start) * -(-number // count) / number


def _may_have_segments(search: FormSearch) -> bool:
    options = search.options
    return search.lacks_dense and search.whole.decode and not (options.keeps_tables or options.asks_for_slices)


def _in_segments(search: FormSearch) -> Plan | None:
    from elimina.running.segment_plan import make_segmented_plan

    return make_segmented_plan(search.elimination, search.whole, search.options)


def _may_have_streamed_segments(search: FormSearch) -> bool:
    # The last plan is the one in tiers: if it fits, nothing has to be computed again.
    is_open = search.lacks_quick and not search.plans[-1].fits
    return is_open and not search.elimination.machine.on_host and _may_have_segments(search)


def _in_streamed_segments(search: FormSearch) -> Plan | None:
    from elimina.running.segment_plan import make_segmented_plan

    return make_segmented_plan(search.elimination, search.whole, search.options, is_streamed=True)


def _in_tiers(search: FormSearch) -> Plan:
    from elimina.planning.tiers import in_tiers

    options = search.options
    host = CpuBackend(options.threads).memory()
    return in_tiers(search.whole, host, arguments.path("scratch", options.scratch))


def _may_have_slices(search: FormSearch) -> bool:
    return search.options.max_slices > 0 and search.elimination.problem.described.merges_slices


def _in_sparse_slices(search: FormSearch) -> Plan | None:
    assert search.sparse is not None
    problem, _, machine, memory = search.elimination[:4]
    return sparse_plan_in_fine_slices(machine, problem, search.options, search.sparse, memory, search.times)


def _in_slices(search: FormSearch) -> Plan | None:
    elimination, options, whole = search.elimination, search.options, search.whole
    plan = make_sliced_plan(elimination, whole)
    if plan is None:
        return None
    if isinstance(options.order, str):
        # The best order of all variables need not be the best one within a slice. A new order may also need fewer
        # slices.
        fixed = plan.form.variables
        one_slice = restrict(elimination.problem, dict.fromkeys(fixed, 0))
        fresh = elimination_order(one_slice, options._replace(order_seconds=options.order_seconds / 2))
        others = [
            make_plan(elimination._replace(order=fresh), Conditioning(fixed, whole)),
            make_sliced_plan(elimination._replace(order=(*fresh, *fixed)), whole),
        ]
        plan = min((plan, *(p for p in others if p is not None and p.fits)), key=lambda p: p.seconds)
    slicing = plan.form
    assert isinstance(slicing, Slicing)
    is_short = options.slices != "auto" or plan.seconds <= MAX_SLICED_SECONDS
    is_allowed = is_short and slicing.slices <= options.max_slices
    return plan._replace(form=slicing.replace(is_allowed=is_allowed))


FORMS: tuple[FormRow[FormSearch], ...] = (
    FormRow("whole", lambda search: not search.demands_sparse, lambda search: search.whole),
    FormRow("sparse", lambda search: search.sparse is not None, lambda search: search.sparse),
    FormRow(
        "sparse slices",
        lambda search: search.demands_sparse and search.sparse is not None and not search.sparse.fits,
        _in_sparse_slices,
    ),
    FormRow("segments", _may_have_segments, _in_segments),
    FormRow("tiers", lambda search: search.lacks_quick and not search.options.keeps_tables, _in_tiers),
    FormRow("segments in tiers", _may_have_streamed_segments, _in_streamed_segments),
    FormRow("slices", lambda search: search.lacks_quick and _may_have_slices(search), _in_slices),
)
"""The forms on one device. Slices are last: an error quotes the last plan, and theirs is the most informative."""


def fitting_plan(backend: Backend, elimination: Elimination, options: Options, refinements: int = 0) -> Plan:
    """Plan an exact elimination for one backend, in the fastest form that fits.

    Plans with too many slices or too long a time are made, too, so that an error can quote their figures, but they do
    not count as fitting.

    Args:
        backend: Device of the plan.
        elimination: Elimination to plan.
        options: Planning options.
        refinements: Number of times that tuples exceeded the memory: each time, ``SLICE_REFINEMENT_FACTOR`` times as
            many are expected.

    Raises:
        UnsupportedError: Sparse tables are requested, but not possible.
    """
    search = FormSearch(backend, elimination, options, refinements)
    if search.whole.has_large_steps:
        return search.whole
    try_forms(FORMS, search)
    plan = min((plan for plan in search.plans if plan.fits), key=search.seconds, default=search.plans[-1])
    plan = with_fused_steps(elimination, plan)
    return with_sparse_fit(elimination, options, plan) if options.tables == "dense" else plan
