"""Plans in slices, with the best elimination order within a slice."""

from __future__ import annotations

from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.planning.plan import Plan
from elimina.planning.planner import Conditioning, make_plan
from elimina.planning.slice_form import Slicing
from elimina.planning.slicing import MAX_SLICED_SECONDS, make_sliced_plan
from elimina.problem.preparation import restrict
from elimina.running.form_search import FormSearch


def in_slices(search: FormSearch) -> Plan | None:
    """Return the plan in slices with the least estimated time; None if no such plan fits."""
    elimination, options, whole = search.elimination, search.options, search.whole
    plan = make_sliced_plan(elimination, whole)
    if plan is None:
        return None
    if isinstance(options.order, str):
        # The best order of all variables may not be the best one within a slice. A new order may also require fewer
        # slices.
        fixed = plan.form.variables
        one_slice = restrict(elimination.problem, dict.fromkeys(fixed, 0))
        fresh = elimination_order(one_slice, replace(options, order_seconds=options.order_seconds / 2))
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
