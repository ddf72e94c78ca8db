"""Error texts for plans beyond the memory, with options that help."""

from __future__ import annotations

import math

from elimina.errors import MemoryLimitError
from elimina.number_texts import bytes_text, counted
from elimina.option_names import by_interface, option
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.plan import Plan, Shortfall
from elimina.problem.tasks import described

MIN_LONG_SECONDS = 60.0
"""Estimated seconds above which a plan gets advice although it fits."""

_MIN_BUCKET_BYTES_PER_FACTOR_BYTE = 2
"""Memory of the smallest mini-buckets, relative to the memory of the factors."""

_MIN_HELD_BYTES = 1 << 20
"""An error text also states the memory that the call already holds, if it has at least this number of bytes."""

MAX_MACHINE_BYTES = 2**46
"""Number of bytes above which plans get no advice to use more memory or a larger disk."""

_UNITS = ((100 << 30, 1 << 30, "GiB"), (1 << 20, 1 << 20, "MiB"), (0, 1 << 10, "KiB"))
"""Units of an advised limit: least number of bytes, bytes of the unit, and its name."""


def advice_on(plan: Plan) -> str | None:
    """Return advice for a plan that does not fit or takes long; None for other plans."""
    if plan.fits and plan.seconds < MIN_LONG_SECONDS:
        return None
    if plan.minibuckets is not None:
        return f"a smaller i-bound ({option('ibound')})" if plan.minibuckets.ibound > 1 else _what_helps(plan)
    if described(plan.task).is_optimum:
        gained = "search keeps both bounds and the best assignment"
        return f"solve it with a time limit ({_of_solve(option('time_limit'))}): {gained}"
    if described(plan.task).has_bounds:
        return f"bound the answer with mini-buckets ({_of_solve(option('method', 'mbe'))})"
    return _what_helps(plan.whole)


def _of_solve(option_text: str) -> str:
    """Return the text that names an option of ``solve`` on the command line or in Python."""
    return by_interface(f"{option_text} of elimina.solve", f"elimina solve {option_text}")


def check_fits(plan: Plan) -> None:
    """Raise ``MemoryLimitError`` with advice if a plan exceeds its memory limit."""
    if not plan.fits:
        raise MemoryLimitError(does_not_fit(plan))


def check_kept(plan: Plan, options: CheckedOptions) -> None:
    """Raise ``MemoryLimitError`` if a plan exceeds its memory limit, without advice to use files.

    This applies to tables that have to stay in memory, such as those of a junction tree.
    """
    if not plan.fits:
        enough = options.limit_for(plan.peak_bytes, 0) if plan.on_host and options.memory is not None else 0
        raise MemoryLimitError(does_not_fit(plan._replace(shortfall=Shortfall(enough=enough)), takes_files=False))


def does_not_fit(plan: Plan, *, takes_files: bool = True) -> str:
    """Return the error text for a plan beyond the memory, with its needs and the options that help."""
    whole, held = plan.whole, plan.shortfall.held
    tiers = [(whole.device, whole.peak_bytes, whole.memory_limit)]
    tiers += [(tier, whole.bytes.get(tier, 0), limit) for tier, limit in whole.form.limits]
    lacking = [tier for tier in tiers if tier[1] > tier[2]] or tiers[:1]
    needs = ", ".join(f"{bytes_text(size)} on {tier} and may use {bytes_text(limit)}" for tier, size, limit in lacking)
    tuples = (
        f"elimination on sparse tables would fit ({option('method', 'eliminate')} with {option('tables', 'sparse')})"
    )
    beside = f" beside {bytes_text(held)} that the call holds" if held >= _MIN_HELD_BYTES else ""
    return (
        f"the plan needs {needs}{beside} "
        f"(induced width {whole.width}, largest table {counted(whole.largest_table, 'cell', is_rounded=True)}, "
        f"{whole.dtype}); "
        f"{_what_helps(whole, takes_files)}{_memory_advice(plan)}{plan.form.advice(plan)}{_bounds_instead(plan)}"
        f"{'; ' + tuples if plan.shortfall.fits_sparse else ''}"
    )


def _what_helps(plan: Plan, takes_files: bool = True) -> str:
    if plan.has_large_factors:
        size = bytes_text(plan.factor_cells * plan.itemsize)
        return f"the model's own tables take {size} of that: more memory ({option('memory')}) or evidence would help"
    if plan.has_large_steps:
        size = bytes_text(plan.planning_bytes)
        return f"to list its steps takes {size} of that: more memory ({option('memory')}) or evidence would help"
    smaller = (
        f"a better order ({option('order')}, a longer {option('order_seconds')}, another {option('seed')}) or evidence "
        "would help"
    )
    if plan.peak_bytes > MAX_MACHINE_BYTES:
        return f"no machine has that much: {smaller}"
    # Sparse tables cannot be stored in a file.
    is_possible = takes_files and "disk" not in plan.bytes and plan.minibuckets is None and plan.sparse is None
    files = f", a directory on a large disk ({option('scratch')})" if is_possible else ""
    return f"more memory ({option('memory')}){files}, {smaller}"


def _memory_advice(plan: Plan) -> str:
    """Return advice to allow enough memory for a plan; "" if the size is unknown, or exceeds any machine's memory."""
    enough = plan.shortfall.enough
    if not enough or plan.whole.peak_bytes > MAX_MACHINE_BYTES:
        return ""
    return f"; {memory_limit(enough)} would be enough"


def memory_limit(enough: float) -> str:
    """Return the option that allows a number of bytes, rounded up."""
    unit, name = next((unit, name) for least, unit, name in _UNITS if enough >= least)
    return option("memory", f"{max(1, math.ceil(enough / unit))}{name}")


def needs_for_estimate(failure: str, needed: float) -> str:
    """Return the error text if neither the exact answer nor the tables of an estimate fit.

    Args:
        failure: Error text for the exact answer.
        needed: Bytes of the tables of an estimate.
    """
    return f"{failure}; for an estimate, {memory_limit(needed)} would be enough"


def _bounds_instead(plan: Plan) -> str:
    """Return advice to use mini-buckets, or smaller ones; "" if neither is possible."""
    whole = plan.whole
    if whole.sparse is not None or whole.has_large_factors or whole.has_large_steps:
        return ""
    if whole.minibuckets is not None:
        return f"; a smaller i-bound ({option('ibound')}) takes less" if whole.minibuckets.ibound > 1 else ""
    if (
        not described(whole.task).has_bounds
        or _MIN_BUCKET_BYTES_PER_FACTOR_BYTE * whole.factor_cells * whole.itemsize > whole.memory_limit
    ):
        return ""
    others = (
        f" without {option('slices')} and {option('scratch')}" if plan.form.variables or "disk" in whole.bytes else ""
    )
    return f"; mini-buckets bound the answer in less memory ({option('method', 'mbe')}{others})"
