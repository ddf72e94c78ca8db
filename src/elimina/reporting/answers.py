"""The answer (posteriors with bars, or an optimum with the costly factors), and the plan with its expensive steps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from elimina import api
from elimina.display import sample
from elimina.errors import EliminaError, ImpossibleEvidenceError, MemoryLimitError
from elimina.methods.junction_tree import JunctionTree
from elimina.model.model import Model
from elimina.number_texts import bytes_text, counted, number_text, probability_text, seconds_text
from elimina.option_names import option
from elimina.planning.options import Options
from elimina.planning.plan import Plan
from elimina.planning.step import JOIN, Step
from elimina.problem.tasks import Task, described
from elimina.reporting.html import Markup, bar, figures, html, joined, name_of, paragraph, short, table
from elimina.reporting.page_charts import profile_chart, step_chart
from elimina.result import Bounds, Result, error_rows, log10_z_rows
from elimina.running.advice import advice_on
from elimina.viz.charts import bounds_chart

_MAX_VARIABLES = 300
_MAX_STATES = 10
_MAX_FACTORS = 40


def answer_rows(result: Result) -> list[tuple[str, object]]:
    """Return the figures of an answer."""
    rows: list[tuple[str, object]] = [("task", result.task), ("status", result.status)]
    rows += error_rows(result)
    if result.ended_by is not None:
        rows.append(("ended by", result.ended_by))
    if result.value is not None:
        rows.append(("value", short(number_text(result.value))))
    if result.status == "bounded" and {result.lower_bound, result.upper_bound} != {None}:
        ends = (result.lower_bound, result.upper_bound)
        rows.append(("bounds", " to ".join("unknown" if end is None else short(number_text(end)) for end in ends)))
    rows += [(name, short(text)) for name, text in log10_z_rows(result)]
    stats = result.stats
    if stats.get("method") is not None:
        rows.append(("method", stats["method"]))
    if stats.get("peak_bytes"):
        rows.append(("memory", bytes_text(stats["peak_bytes"])))
    if "seconds" in stats:
        rows.append(("time", seconds_text(stats["seconds"]["total"])))
    return rows


def answer_section(result: Result, model: Model) -> Markup:
    """Return the figures, posteriors and assignment of an answer.

    An assignment of all variables comes with the factors that are farthest from their best values.
    """
    contents: list[object] = [figures(answer_rows(result))]
    if result.marginals:
        contents.append(_posteriors(result.marginals))
    if result.assignment is not None:
        if len(result.assignment) == len(model.variables):
            contents.append(_reasons(result.assignment, model))
        contents.append(assignment_table(result.assignment))
    return joined(contents)


def assignment_table(assignment: Mapping[str, Any]) -> Markup:
    """Return a table of the first variables and their states."""
    rows = [(short(name), short(state)) for name, state in islice(assignment.items(), _MAX_VARIABLES)]
    return table(f"Assignment{_left_out_text(len(rows), len(assignment))}", ("variable", "state"), rows)


def _left_out_text(shown: int, count: int) -> str:
    return "" if shown == count else f": {shown:,} of {count:,} variables, the others are left out"


def _posteriors(marginals: Mapping[str, Mapping[Any, float]]) -> Markup:
    names = list(marginals)
    caption = "Posteriors"
    if len(names) > _MAX_VARIABLES:
        caption += f" of the {_MAX_VARIABLES} least certain of {counted(len(names), 'variable')}"
        names.sort(key=lambda name: max(marginals[name].values()))
    rows: list[tuple[object, ...]] = []
    for name in names[:_MAX_VARIABLES]:
        pairs = list(marginals[name].items())
        if len(pairs) > _MAX_STATES:
            pairs = sorted(pairs, key=lambda pair: -pair[1])[:_MAX_STATES]
        lines = [(short(state, 40), bar(p, probability_text(p))) for state, p in pairs]
        if len(pairs) < len(marginals[name]):
            lines.append((f"and {len(marginals[name]) - len(pairs):,} more", Markup("")))
        states = Markup("".join(f"<div>{html(text)}</div>" for text, _ in lines))
        bars = Markup("".join(f"<div>{mark or '&nbsp;'}</div>" for _, mark in lines))
        rows.append((short(name), states, bars))
    return table(caption, ("variable", "state", "probability"), rows)


class Term(NamedTuple):
    """Contribution of a factor to the value of an assignment.

    Attributes:
        factor: Index of the factor.
        value: The factor's cost, or the logarithm of its probability.
        best: The factor's best possible contribution.
        loss: Distance between ``value`` and ``best``, at least 0.
    """

    factor: int
    value: float
    best: float
    loss: float


def costly_terms(model: Model, assignment: Mapping[str, Any]) -> list[Term]:
    """Return the contributions of all factors, those farthest from the best possible ones first."""
    states = model.indices_of(assignment)
    terms = []
    for number, (factor, value) in enumerate(zip(model.factors, model.terms(states), strict=True)):
        ends = [] if factor.default is None else [factor.default]
        if factor.values.size:
            ends.append((factor.values.min() if model.sense == "min-cost" else factor.values.max()).item())
        best = float(min(ends) if model.sense == "min-cost" else max(ends))
        if model.sense == "probability":
            best = math.log(best) if best > 0 else -math.inf
        loss = 0.0 if value == best else abs(value - best)
        terms.append(Term(number, value, best, loss))
    return sorted(terms, key=lambda term: (-term.loss, term.factor))


def _reasons(assignment: Mapping[str, Any], model: Model) -> Markup:
    terms = costly_terms(model, assignment)
    costly = [term for term in terms if term.loss > 0]
    if not costly:
        return paragraph("Every factor has its best value.")
    total = math.fsum(term.loss for term in costly if math.isfinite(term.loss)) or 1.0
    is_probability = model.sense == "probability"
    largest = costly[0].loss
    rows = []
    for term in costly[:_MAX_FACTORS]:
        scope = model.factors[term.factor].scope
        states = (
            f"{short(model.variables[v].name, 30)}={short(assignment[model.variables[v].name], 30)}" for v in scope
        )
        numbers = (math.exp(term.value), math.exp(term.best)) if is_probability else (term.value, term.best)
        share = term.loss / total if math.isfinite(term.loss) else 1.0
        rows.append(
            (
                f"{term.factor + 1:,}",
                sample(states, len(scope), 8) or "no variable",
                *(f"{number:.6g}" for number in numbers),
                bar(term.loss / largest if math.isfinite(largest) else share, f"{100 * share:.2g} %"),
            )
        )
    noun = "probability" if is_probability else "cost"
    caption = f"Reasons: {len(costly):,} of {len(terms):,} factors do not have their best value" + (
        f"; the {len(rows)} with the largest loss" if len(rows) < len(costly) else ""
    )
    last = "share of log loss" if is_probability else "share of the loss"
    return table(caption, ("factor", "states", noun, f"best {noun} of the factor", last), rows)


def bounds_section(history: Sequence[Bounds], seconds: float) -> Markup:
    """Return a chart of both bounds over time; empty if bounds are known for fewer than two moments."""
    chart = bounds_chart(history, "Bounds on the optimum over time", seconds)
    if chart is None or len({at for series in chart.series for at, _ in series.points}) < 2:
        return Markup("")
    return step_chart(chart)


_MAX_STEPS = 30
_COLUMNS = 150


def plan_rows(plan: Plan) -> list[tuple[str, object]]:
    """Return the figures of a plan."""
    fits = "fits" if plan.fits else "does not fit"
    rows: list[tuple[str, object]] = [
        ("induced width", plan.width),
        ("largest table", counted(plan.largest_table, "cell", is_rounded=True)),
        ("memory", bar(plan.filled, f"{bytes_text(plan.peak_bytes)} of {bytes_text(plan.memory_limit)}: {fits}")),
        ("estimated time", seconds_text(plan.seconds)),
        ("tables", f"{len(plan.factors):,}, as {plan.dtype} on {plan.device}"),
    ]
    if plan.form.variables:
        names = plan.form.figures()["sliced"]
        rows.append(("slices", f"{plan.form.slices:,}, by {sample(map(short, names), len(names))}"))
    return rows


def plan_section(plan: Plan, model: Model) -> Markup:
    """Return the figures of a plan, advice, and its profile and costliest steps, or a note that these are unknown."""
    contents: list[object] = [figures(plan_rows(plan))]
    advice = advice_on(plan)
    if advice is not None:
        contents.append(paragraph(advice))
    if not plan.is_recorded:
        contents.append(paragraph("The plan's steps alone would pass the memory limit: they are not listed."))
    elif plan.steps:
        contents += _steps(plan, model)
    return joined(contents)


def _steps(plan: Plan, model: Model) -> list[object]:
    steps, runs = list(plan.steps), plan.runs
    work = [step.work * max(len(step.operands), 1) * times for step, times in zip(steps, runs, strict=True)]
    cells = [step.out_span for step in steps]
    all_work = sum(work) or 1
    first = sorted(range(len(steps)), key=lambda n: (-work[n], n))[:_MAX_STEPS]
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
    count = counted(len(steps), "step")
    caption = f"The {len(first):,} most expensive of {count}: {100 * shown:.3g} % of all operations"
    title = f"Cells of the tables that {len(steps):,} steps write"
    return [
        profile_chart(title, _columns(cells), ("steps, first to last", "cells")),
        table(caption, ("step", "eliminates", "over", "operations", "memory of its table"), rows),
    ]


def _purpose(step: Step, model: Model) -> str:
    if step.variable >= 0:
        return ", ".join(name_of(model, v) for v in (step.variable, *(v for v, _ in step.others)))
    return "nothing (joins tables)" if step.variable == JOIN else "nothing (moment matching)"


def _columns(values: Sequence[int]) -> list[float]:
    """Return at most `_COLUMNS` columns, each the maximum of several consecutive values."""
    width = math.ceil(len(values) / _COLUMNS)
    return [float(max(values[start : start + width])) for start in range(0, len(values), width)]


_MAX_ROWS = 60
_MAX_OBSERVATIONS = 500


class Question(NamedTuple):
    """A user's question about a model.

    Attributes:
        model: Model of the question.
        evidence: Variable name -> its state, or likelihoods.
        query: Variables of the requested posteriors; None for all.
        options: Device, memory, order and other settings.
    """

    model: Model
    evidence: Mapping[str, Any]
    query: Sequence[str] | None
    options: Options


class Effect(NamedTuple):
    """Effect of an observation.

    Attributes:
        variable: Name of the observed variable.
        size: Size of the effect, for the order of observations.
        cells: Cells of the effect's row in the table, after the observation and its state.
    """

    variable: str
    size: float
    cells: tuple[str, ...]


def sensitivity_section(asked: Question, result: Result, deadline: float) -> Markup:
    """Return a table of the observations, the one with the largest effect first; a note if no effect is known.

    Args:
        asked: Question whose answer is explained.
        result: Answer to the question, with all observations.
        deadline: Time limit, by ``time.monotonic``, at which the table ends with the effects so far.
    """
    evidence = asked.evidence
    names = list(evidence)[:_MAX_OBSERVATIONS]
    try:
        if asked.model.sense == "probability" and described(result.task).sums_all:
            header, effects = _by_junction_tree(asked, result.task, names, deadline)
        else:
            header, effects = _by_solving(asked, result, names, deadline)
    except (MemoryLimitError, ImpossibleEvidenceError) as error:
        return paragraph(f"Not computed: {error}")
    if not effects:
        return paragraph(f"Not computed: no time was left. Give more by {option('time_limit')}.")
    effects.sort(key=lambda effect: -effect.size)
    largest = max((effect.size for effect in effects if math.isfinite(effect.size)), default=0.0) or 1.0
    shown = effects[:_MAX_ROWS]
    rows = [
        (
            short(effect.variable),
            _state_text(evidence[effect.variable]),
            *effect.cells[:-1],
            bar(effect.size / largest, effect.cells[-1]),
        )
        for effect in shown
    ]
    contents: list[object] = [
        paragraph("Each row is an observation, and the answer without it compared with the answer with all of them."),
        table("Sensitivity to each observation", ("observation", "state", *header), rows),
    ]
    left_out = len(evidence) - len(shown)
    if left_out:
        cause = "no time was left for them" if len(effects) < len(names) else "their effects are smaller"
        contents.append(paragraph(f"{left_out:,} observations are left out: {cause}."))
    return joined(contents)


def _state_text(state: Any) -> str:
    return "likelihoods" if isinstance(state, list | tuple | np.ndarray) else short(state, 40)


def _by_junction_tree(
    asked: Question, task: str, names: Sequence[str], deadline: float
) -> tuple[tuple[str, ...], list[Effect]]:
    model, evidence, query, options = asked
    # The posteriors have to be exact: errors of two estimates would look like effects of an observation.
    options_of_tree = Options(
        device=options.device, memory=options.memory, order=options.order, threads=options.threads
    )
    tree_options = replace(options_of_tree, exact=True)
    tree = JunctionTree(model, options=tree_options)
    hidden = [name for name in (query or [v.name for v in model.variables]) if name not in evidence]
    tree.set_evidence(evidence)
    log10_z = tree.log10_evidence
    before = tree.marginals(hidden) if described(task).is_marginal else {}

    def without(name: str) -> Effect:
        tree.update({name: None})
        log10_without = tree.log10_evidence
        after = tree.marginals(hidden) if before else {}
        tree.update({name: evidence[name]})
        likely = probability_text(10 ** min(log10_z - log10_without, 0.0))
        if not before:
            return Effect(
                name, abs(log10_without - log10_z), (likely, f"{log10_without:.6g}", f"{log10_without - log10_z:+.4g}")
            )
        changes = {
            variable_name: float(np.abs(after[variable_name] - before[variable_name]).sum()) / 2
            for variable_name in before
        }
        widest = max(changes, key=changes.__getitem__)
        variable, difference = model[widest], before[widest] - after[widest]
        state = int(np.abs(difference).argmax())
        text = f"{short(widest, 40)}={short(variable.state(state), 30)}"
        numbers = f"{probability_text(float(after[widest][state]))} to {probability_text(float(before[widest][state]))}"
        return Effect(name, changes[widest], (likely, text, numbers, f"{changes[widest]:.4f}"))

    effects = _within(deadline, names, without) if hidden or not described(task).is_marginal else []
    tree.close()
    if described(task).is_marginal:
        return ("its probability, given the others", "changes most", "from, to", "total variation"), effects
    return ("its probability, given the others", "log10 Z without it", "change"), effects


def _by_solving(
    asked: Question, result: Result, names: Sequence[str], deadline: float
) -> tuple[tuple[str, ...], list[Effect]]:
    model, evidence, query, options = asked
    task: Task = result.task  # type: ignore[assignment]
    value = result.value if result.value is not None else math.nan
    count = len(names)

    def without(name: str) -> Effect | None:
        nonlocal count
        share = None if math.isinf(deadline) else max((deadline - time.monotonic()) / count, 0.05)
        count -= 1
        remaining_evidence = {
            result_without: state for result_without, state in evidence.items() if result_without != name
        }
        try:
            result_without = api.solve(
                model, task, evidence=remaining_evidence, query=query, time_limit=share, options=options
            )
        except EliminaError:
            return None
        if result_without.ended_by == "interrupt":
            raise KeyboardInterrupt
        if result_without.value is None:
            return None
        changed_states = sum(
            state != (result.assignment or {}).get(variable)
            for variable, state in (result_without.assignment or {}).items()
            if variable != name and variable in (result.assignment or {})
        )
        change = result_without.value - value
        text = short(number_text(change)) if isinstance(change, int) else f"{change:+.6g}"
        status = "" if result_without.status in ("optimal", "exact") else f" ({result_without.status})"
        cells = (f"{short(number_text(result_without.value), 30)}{status}", f"{changed_states:,}", text)
        return Effect(name, _size(change), cells)

    effects = _within(deadline, names, without)
    return ("value without it", "variables with another state", "change of the value"), effects


def _size(change: float) -> float:
    """Return a change's size as a float; infinity for counts beyond its range, 0 for NaN."""
    try:
        size = abs(float(change))
    except OverflowError:
        return math.inf
    return 0.0 if math.isnan(size) else size


def _within(deadline: float, names: Sequence[str], without: Callable[[str], Effect | None]) -> list[Effect]:
    """Return the effects of the observations, as many as the time allows; unknown effects are left out."""
    effects: list[Effect] = []
    for name in names:
        if time.monotonic() > deadline:
            break
        effect = without(name)
        if effect is not None:
            effects.append(effect)
    return effects
