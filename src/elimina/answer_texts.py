"""Texts of answers: assignments, marginals, policies, lines of a log, and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elimina.number_texts import number_text, probability_text

if TYPE_CHECKING:
    from elimina.model.policy import Policy


def labelled(rows: Sequence[tuple[str, str]]) -> str:
    """Return a line for each label and text; the texts are aligned."""
    width = max(12, *(len(label) + 2 for label, _ in rows))
    return "\n".join(f"{label + ':':{width}}{text}" for label, text in rows)


def policies_lines(policies: Mapping[str, Policy]) -> list[str]:
    """Return lines with the policy of each decision: a row for each combination of observations."""
    return [line for name, policy in policies.items() for line in (f"policy of {name}:", *repr(policy).split("\n"))]


def marginals_table(marginals: Mapping[str, Mapping[Any, float]], width: int | None = None) -> str:
    """Lay marginals out as text: a variable on each line, its states with their probabilities in columns.

    Args:
        marginals: Variable name -> {state: probability}.
        width: Characters in a line; a variable with more continues on the next one. None: the terminal's width.
    """
    if width is None:
        import shutil

        width = shutil.get_terminal_size((100, 24)).columns
    name_width = max((len(name) for name in marginals), default=0)
    pairs = {
        name: [(str(state), probability_text(p)) for state, p in values.items()] for name, values in marginals.items()
    }
    state_width = max((len(state) for cells in pairs.values() for state, _ in cells), default=0)
    text_width = max((len(text) for cells in pairs.values() for _, text in cells), default=0)
    across = max((width - name_width) // (3 + state_width + text_width), 1)
    lines: list[str] = []
    for name, cells in pairs.items():
        texts = [f"  {state:<{state_width}} {text:<{text_width}}" for state, text in cells]
        starts = range(0, len(texts), across)
        lines += [f"{'' if i else name:<{name_width}}{''.join(texts[i : i + across])}".rstrip() for i in starts]
    return "\n".join(lines)


def assignment_text(assignment: Mapping[str, Any]) -> str:
    """Return an assignment as text: ``A=yes B=no``."""
    return " ".join(f"{name}={state}" for name, state in assignment.items())


def json_text(value: Any) -> str:
    """Return JSON of a value; numbers that are not finite become null, and integers may have any number of digits."""
    import json

    try:
        return json.dumps(value, allow_nan=False, default=dict)
    except ValueError:
        # The value has a number that is not finite, or an integer of more digits than ``str`` writes.
        pass
    if isinstance(value, Mapping):
        keys = [json.dumps(key if isinstance(key, str) else json_text(key)) for key in value]
        return "{" + ", ".join(f"{key}: {json_text(x)}" for key, x in zip(keys, value.values(), strict=True)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return "null" if isinstance(value, float) else number_text(value)


_MAX_SHOWN_GAP = 9.99
"""Largest relative gap that a log shows."""


def improvement_line(seconds: float, value: float | None, bound: float | None, gap: float, origin: str) -> str:
    """Return a line of the log of a search.

    Args:
        seconds: Time since the call began.
        value: Value of the best solution; None without one.
        bound: Bound that no solution is beyond; None if it is unknown.
        gap: Distance between value and bound, relative to the one that is closer to 0.
        origin: Part of the search that improved the value or the bound.
    """
    texts = ["-" if number is None else f"{number:,}" for number in (value, bound)]
    share = f"{100 * gap:.1f} %" if gap <= _MAX_SHOWN_GAP else "-"
    return f"{seconds:8.2f} s  value {texts[0]:>10}  bound {texts[1]:>10}  gap {share:>7}  {origin}"
