"""Table of the forms of a plan, which are tried in turn; of the plans that fit, the fastest by estimate is chosen.

To add a form, write a module with a subclass of ``planning.plan.Form`` and a function that makes such a plan, and add a
row to ``FORMS`` (one device) or to ``shared_plans.SHARED_FORMS`` (several devices).
"""

from __future__ import annotations

from elimina.backends.protocols import Backend
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination
from elimina.running.form_search import FormRow, FormSearch, try_forms
from elimina.running.fused_steps import with_fused_steps
from elimina.running.sparse_plans import sparse_plan_in_fine_slices, with_sparse_fit
from elimina.system import loaded_on_use


def _may_have_segments(search: FormSearch) -> bool:
    options = search.options
    return search.lacks_dense and search.whole.decode and not (options.keeps_tables or options.asks_for_slices)


def _may_have_streamed_segments(search: FormSearch) -> bool:
    # The last plan is the one in memory tiers. It repeats no work, so segments are tried only if it does not fit.
    is_open = search.lacks_quick and not search.plans[-1].fits
    return is_open and not search.elimination.machine.on_host and _may_have_segments(search)


def _may_have_slices(search: FormSearch) -> bool:
    return search.options.max_slices > 0 and search.elimination.problem.described.merges_slices


def _in_sparse_slices(search: FormSearch) -> Plan | None:
    assert search.sparse is not None
    problem, _, machine, memory = search.elimination[:4]
    return sparse_plan_in_fine_slices(machine, problem, search.options, search.sparse, memory, search.times)


FORMS: tuple[FormRow[FormSearch], ...] = (
    FormRow("whole", lambda search: not search.demands_sparse, lambda search: search.whole),
    FormRow("sparse", lambda search: search.sparse is not None, lambda search: search.sparse),
    FormRow(
        "sparse slices",
        lambda search: search.demands_sparse and search.sparse is not None and not search.sparse.fits,
        _in_sparse_slices,
    ),
    FormRow("segments", _may_have_segments, loaded_on_use("elimina.running.segment_plan", "in_segments")),
    FormRow(
        "tiers",
        lambda search: search.lacks_quick and not search.options.keeps_tables,
        loaded_on_use("elimina.running.tiered_plan", "in_memory_tiers"),
    ),
    FormRow(
        "segments in tiers",
        _may_have_streamed_segments,
        loaded_on_use("elimina.running.segment_plan", "in_streamed_segments"),
    ),
    FormRow(
        "slices",
        lambda search: search.lacks_quick and _may_have_slices(search),
        loaded_on_use("elimina.running.slice_plan", "in_slices"),
    ),
)
"""Forms on one device. Slices come last, because an error text quotes the last plan, and their figures help most."""


def fitting_plan(backend: Backend, elimination: Elimination, options: CheckedOptions, refinements: int = 0) -> Plan:
    """Plan an exact elimination for one backend, in the fastest form that fits.

    Plans with too many slices or too long a time are also made, so that an error text can quote their figures, but they
    do not count as fitting.

    Args:
        backend: Device of the plan.
        elimination: Elimination to plan.
        options: Planning options.
        refinements: Number of times that tuples exceeded the memory. Each time multiplies the expected number of tuples
            by ``SLICE_REFINEMENT_FACTOR``.

    Raises:
        UnsupportedError: Sparse tables are requested, but not supported.
    """
    search = FormSearch(backend, elimination, options, refinements)
    if search.whole.has_large_steps:
        return search.whole
    try_forms(FORMS, search)
    plan = min((plan for plan in search.plans if plan.fits), key=search.seconds, default=search.plans[-1])
    plan = with_fused_steps(elimination, plan)
    return with_sparse_fit(elimination, options, plan) if options.tables == "dense" else plan
