"""The plan: its figures, and which steps take the time and the memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

from elimina.display import sample
from elimina.inference.account import advice_on
from elimina.model import Model
from elimina.planning.plan import JOIN, Plan, Step, bytes_text, count_text, seconds_text
from elimina.reporting.charts import profile_chart
from elimina.reporting.markup import Markup, bar, figures, joined, name_of, paragraph, short, table

_MOST_STEPS = 30
_COLUMNS = 150


def plan_rows(plan: Plan) -> list[tuple[str, object]]:
    """Return the figures of a plan."""
    fits = "fits" if plan.fits else "does not fit"
    rows: list[tuple[str, object]] = [
        ("induced width", plan.width),
        ("largest table", f"{count_text(plan.largest_table)} cells"),
        ("memory", bar(plan.filled, f"{bytes_text(plan.peak_bytes)} of {bytes_text(plan.memory_limit)}: {fits}")),
        ("estimated time", seconds_text(plan.seconds)),
        ("tables", f"{len(plan.factors):,}, as {plan.dtype} on {plan.device}"),
    ]
    if plan.slicing is not None:
        names = sample((short(name) for name in plan.slicing.names), len(plan.slicing.names))
        rows.append(("slices", f"{plan.slicing.number:,}, by {names}"))
    return rows


def plan_section(plan: Plan, model: Model) -> Markup:
    """Return the figures of a plan, its profile, and its most expensive steps."""
    parts: list[object] = [figures(plan_rows(plan))]
    advice = advice_on(plan)
    if advice is not None:
        parts.append(paragraph(advice))
    if not plan.is_recorded:
        parts.append(paragraph("The plan's steps alone would pass the memory limit: they are not listed."))
    elif plan.steps:
        parts += _steps(plan, model)
    return joined(parts)


def _steps(plan: Plan, model: Model) -> list[object]:
    steps, runs = list(plan.steps), plan.runs
    work = [step.work * max(len(step.operands), 1) * times for step, times in zip(steps, runs, strict=True)]
    cells = [step.out_span for step in steps]
    all_work = sum(work) or 1
    first = sorted(range(len(steps)), key=lambda n: (-work[n], n))[:_MOST_STEPS]
    rows = []
    for number in first:
        step = steps[number]
        rows.append(
            (
                f"{number + 1:,}",
                _purpose(step, model),
                sample((name_of(model, v, 30) for v in step.axes), len(step.axes)) or "none",
                bar(work[number] / all_work, f"{100 * work[number] / all_work:.2g} %"),
                bar(cells[number] / (max(cells) or 1), bytes_text(cells[number] * plan.itemsize)),
            )
        )
    shown = sum(work[number] for number in first) / all_work
    caption = f"The {len(first):,} most expensive of {len(steps):,} steps: {100 * shown:.3g} % of all operations"
    title = f"Cells of the tables that {len(steps):,} steps write"
    return [
        profile_chart(title, _columns(cells), ("steps, first to last", "cells")),
        table(caption, ("step", "eliminates", "over", "operations", "memory of its table"), rows),
    ]


def _purpose(step: Step, model: Model) -> str:
    if step.variable >= 0:
        return name_of(model, step.variable)
    return "nothing (joins tables)" if step.variable == JOIN else "nothing (moment matching)"


def _columns(values: Sequence[int]) -> list[float]:
    """Return at most so many columns, each the largest of those in its place."""
    width = math.ceil(len(values) / _COLUMNS)
    return [float(max(values[start : start + width])) for start in range(0, len(values), width)]
