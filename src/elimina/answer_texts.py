"""Texts of answers: assignments, marginals, policies, lines of a log, and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from elimina.number_texts import number_text, probability_text

if TYPE_CHECKING:
    from elimina.model.policy import Policy

MAX_PRINTED_STATES = 1000
"""In Python, ``print`` shows at most this number of states of an answer."""


def labelled(rows: Sequence[tuple[str, str]]) -> str:
    """Return a line for each row: a label and a text. All texts begin in the same column."""
    width = max(12, *(len(label) + 2 for label, _ in rows))
    return "\n".join(f"{label + ':':{width}}{text}" for label, text in rows)


def policies_lines(policies: Mapping[str, Policy]) -> list[str]:
    """Return lines with the policy of each decision: a row for each combination of observations."""
    return [line for name, policy in policies.items() for line in (f"policy of {name}:", *repr(policy).split("\n"))]


def leading_marginals(
    marginals: Mapping[str, Mapping[Any, float]], max_states: int
) -> tuple[dict[str, dict[Any, float]], str]:
    """Return the first marginals, up to ``max_states`` states in all, and a text that counts the rest (empty if none).

    Args:
        marginals: Variable name -> {state: probability}.
        max_states: Largest number of states, of all variables together.
    """
    shown: dict[str, dict[Any, float]] = {}
    remaining, others = max_states, []
    for name, values in marginals.items():
        if remaining <= 0:
            break
        shown[name] = dict(islice(values.items(), remaining))
        remaining -= len(shown[name])
        hidden = len(values) - len(shown[name])
        if hidden:
            others.append(f"{hidden:,} more state{'' if hidden == 1 else 's'} of {name}")
    hidden = len(marginals) - len(shown)
    if hidden:
        others.append(f"{hidden:,} more variable{'' if hidden == 1 else 's'}")
    return shown, f"and {' and '.join(others)}" if others else ""


def marginals_table(
    marginals: Mapping[str, Mapping[Any, float]], width: int | None = None, max_states: int | None = None
) -> str:
    """Lay marginals out as text: a variable on each line, its states with their probabilities in columns.

    Args:
        marginals: Variable name -> {state: probability}.
        width: Characters in a line; a variable whose text is longer continues on the next line. None: the terminal's
            width.
        max_states: Largest number of states; a last line counts the others. None: no limit.
    """
    others = ""
    if max_states is not None:
        marginals, others = leading_marginals(marginals, max_states)
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
    return "\n".join([*lines, others] if others else lines)


def assignment_text(assignment: Mapping[str, Any], max_states: int | None = None) -> str:
    """Return an assignment as text: ``A=yes B=no``.

    Args:
        assignment: Variable name -> state.
        max_states: Largest number of states; the others are counted. None: no limit.
    """
    pairs: Iterable[str] = (f"{name}={state}" for name, state in islice(assignment.items(), max_states))
    if max_states is not None and len(assignment) > max_states:
        pairs = (*pairs, f"and {len(assignment) - max_states:,} more")
    return " ".join(pairs)


def json_text(value: Any) -> str:
    """Return JSON of a value; numbers that are not finite become null, and integers may have any number of digits."""
    import json

    try:
        return json.dumps(value, allow_nan=False, default=_as_dict)
    except ValueError:
        # The value has a number that is not finite, or an integer of more digits than ``str`` writes.
        pass
    if isinstance(value, Mapping):
        keys = [json.dumps(key if isinstance(key, str) else json_text(key)) for key in value]
        return "{" + ", ".join(f"{key}: {json_text(x)}" for key, x in zip(keys, value.values(), strict=True)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(json_text, value)) + "]"
    return "null" if isinstance(value, float) else number_text(value)


def _as_dict(mapping: Mapping[Any, Any]) -> dict[Any, Any]:
    # The pairs of a long mapping are read in blocks; ``dict(mapping)`` would look up one key after another.
    return dict(mapping.items())


_MAX_SHOWN_GAP = 9.99
"""Largest relative gap that a log shows."""


def improvement_line(seconds: float, value: float | None, bound: float | None, gap: float, origin: str) -> str:
    """Return a line of the log of a search.

    Args:
        seconds: Time since the call began.
        value: Value of the best solution; None if there is none.
        bound: Bound on the value of any solution; None if it is unknown.
        gap: Distance between value and bound, relative to the one that is closer to 0.
        origin: Part of the search that improved the value or the bound.
    """
    texts = ["-" if number is None else f"{number:,}" for number in (value, bound)]
    share = f"{100 * gap:.1f} %" if gap <= _MAX_SHOWN_GAP else "-"
    return f"{seconds:8.2f} s  value {texts[0]:>10}  bound {texts[1]:>10}  gap {share:>7}  {origin}"
