"""Sensitivity of an answer to each observation: the answer again, without it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from elimina import api
from elimina.errors import EliminaError, ImpossibleEvidenceError, MemoryLimitError
from elimina.inference.junction import JunctionTree
from elimina.inference.options import Options
from elimina.model import Model
from elimina.reporting.drawing import Markup, bar, joined, paragraph, short, table
from elimina.result import Result, number_text, probability_text
from elimina.tasks import Task

_MOST_ROWS = 60
_MOST_OBSERVATIONS = 500


class Asked(NamedTuple):
    """A question to a model, as a user asks it.

    Attributes:
        model: Model of the question.
        evidence: Variable name -> its state, or likelihoods.
        query: Variables whose posteriors are asked for; None for all.
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
        size: Size of the effect, by which observations are compared.
        cells: Cells of its row in the table.
    """

    variable: str
    size: float
    cells: tuple[str, ...]


def sensitivity_section(asked: Asked, result: Result, deadline: float) -> Markup:
    """Return a table of the observations, the one with the largest effect first.

    Args:
        asked: Question whose answer is explained.
        result: Its answer, with all observations.
        deadline: Time at which it ends with what is known, by ``time.monotonic``.
    """
    evidence = asked.evidence
    names = list(evidence)[:_MOST_OBSERVATIONS]
    try:
        if asked.model.sense == "probability" and result.task in ("mar", "pr"):
            header, effects = _by_junction_tree(asked, result.task, names, deadline)
        else:
            header, effects = _by_solving(asked, result, names, deadline)
    except (MemoryLimitError, ImpossibleEvidenceError) as error:
        return paragraph(f"Not computed: {error}")
    if not effects:
        return paragraph("Not computed: no time was left. Give more by --time-limit.")
    effects.sort(key=lambda one: -one.size)
    largest = max((one.size for one in effects if math.isfinite(one.size)), default=0.0) or 1.0
    shown = effects[:_MOST_ROWS]
    rows = [
        (
            short(one.variable),
            _state_text(evidence[one.variable]),
            *one.cells[:-1],
            bar(one.size / largest, one.cells[-1]),
        )
        for one in shown
    ]
    parts: list[object] = [
        paragraph("Each row is an observation, and the answer without it compared with the answer with all of them."),
        table("Sensitivity to each observation", ("observation", "state", *header), rows),
    ]
    left_out = len(evidence) - len(shown)
    if left_out:
        cause = "no time was left for them" if len(effects) < len(names) else "their effects are smaller"
        parts.append(paragraph(f"{left_out:,} observations are left out: {cause}."))
    return joined(parts)


def _state_text(given: Any) -> str:
    return "likelihoods" if isinstance(given, list | tuple | np.ndarray) else short(given, 40)


def _by_junction_tree(
    asked: Asked, task: str, names: Sequence[str], deadline: float
) -> tuple[tuple[str, ...], list[Effect]]:
    model, evidence, query, options = asked
    taken = Options(device=options.device, memory=options.memory, order=options.order, threads=options.threads)
    tree = JunctionTree(model, options=taken)
    hidden = [name for name in (query or [v.name for v in model.variables]) if name not in evidence]
    tree.set_evidence(evidence)
    whole = tree.log10_evidence
    before = tree.marginals(hidden) if task == "mar" else {}

    def without(name: str) -> Effect:
        tree.update({name: None})
        rest = tree.log10_evidence
        after = tree.marginals(hidden) if before else {}
        tree.update({name: evidence[name]})
        likely = probability_text(10 ** min(whole - rest, 0.0))
        if not before:
            return Effect(name, abs(rest - whole), (likely, f"{rest:.6g}", f"{rest - whole:+.4g}"))
        changes = {other: float(np.abs(after[other] - before[other]).sum()) / 2 for other in before}
        most = max(changes, key=changes.__getitem__)
        variable, moved = model[most], before[most] - after[most]
        state = int(np.abs(moved).argmax())
        text = f"{short(most, 40)}={short(variable.state(state), 30)}"
        numbers = f"{probability_text(float(after[most][state]))} to {probability_text(float(before[most][state]))}"
        return Effect(name, changes[most], (likely, text, numbers, f"{changes[most]:.4f}"))

    effects = _within(deadline, names, without) if hidden or task == "pr" else []
    tree.close()
    if task == "mar":
        return ("its probability, given the others", "changes most", "from, to", "total variation"), effects
    return ("its probability, given the others", "log10 Z without it", "change"), effects


def _by_solving(
    asked: Asked, result: Result, names: Sequence[str], deadline: float
) -> tuple[tuple[str, ...], list[Effect]]:
    model, evidence, query, options = asked
    task: Task = result.task  # type: ignore[assignment]
    value = result.value if result.value is not None else math.nan
    count = len(names)

    def without(name: str) -> Effect | None:
        nonlocal count
        share = None if math.isinf(deadline) else max((deadline - time.monotonic()) / count, 0.05)
        count -= 1
        rest = {other: state for other, state in evidence.items() if other != name}
        try:
            other = api.solve(model, task, evidence=rest, query=query, time_limit=share, options=options)
        except EliminaError:
            return None
        if other.ended_by == "interrupt":
            raise KeyboardInterrupt
        if other.value is None:
            return None
        moved = sum(
            state != (result.assignment or {}).get(known)
            for known, state in (other.assignment or {}).items()
            if known != name and known in (result.assignment or {})
        )
        change = other.value - value
        text = short(number_text(change)) if isinstance(change, int) else f"{change:+.6g}"
        status = "" if other.status in ("optimal", "exact") else f" ({other.status})"
        cells = (f"{short(number_text(other.value), 30)}{status}", f"{moved:,}", text)
        return Effect(name, _size(change), cells)

    effects = _within(deadline, names, without)
    return ("value without it", "variables with another state", "change of the value"), effects


def _size(change: float) -> float:
    """Return a change's size as a float; counts may be beyond it."""
    try:
        size = abs(float(change))
    except OverflowError:
        return math.inf
    return 0.0 if math.isnan(size) else size


def _within(deadline: float, names: Sequence[str], without: Callable[[str], Effect | None]) -> list[Effect]:
    """Return the effects of the observations, as many as the time allows."""
    found: list[Effect] = []
    for name in names:
        if time.monotonic() > deadline:
            break
        effect = without(name)
        if effect is not None:
            found.append(effect)
    return found
