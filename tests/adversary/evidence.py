"""Random evidence: a list of [variable, form, a value's number, likelihoods, or None where nothing is observed]."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from tests.adversary.case import Case
from tests.adversary.models import Spec

FORMS = ("name", "name", "index", "row")
"""The variable by its name or index; a row has floats for integers, and NaN instead of None."""

LONGEST_LIKELIHOODS = 16
"""States of a variable with likelihoods, which a program lists."""


def make_evidence(rng: random.Random, spec: Spec, soft: bool) -> list[list[Any]]:
    """Draw evidence about distinct variables."""
    variables = spec["variables"]
    if rng.random() < 0.5 or not variables:
        return []
    found = []
    for v in rng.sample(range(len(variables)), rng.randint(1, min(3, len(variables)))):
        how = rng.choice(FORMS)
        if rng.random() < 0.15:
            found.append([v, how, None])
        elif soft and variables[v][1] <= LONGEST_LIKELIHOODS and rng.random() < 0.5:
            found.append([v, how, _likelihoods(rng, variables[v][1])])
        else:
            found.append([v, how, rng.randrange(variables[v][1])])
    return found


def _likelihoods(rng: random.Random, size: int) -> list[float]:
    style = rng.choice(["plain", "zeros", "tiny", "mixed"])
    if style == "plain":
        return [rng.random() for _ in range(size)]
    if style == "zeros":
        return [rng.choice([0.0, 0.5, 2.0]) for _ in range(size)]
    if style == "tiny":
        scale = 10.0 ** -rng.randint(100, 300)
        return [rng.random() * scale for _ in range(size)]
    return [rng.random() * 10.0 ** -rng.choice([0, 5, 120, 200]) for _ in range(size)]


def observed_of(case: Case) -> dict[int, int]:
    """Hard evidence: variable -> value's number."""
    return {v: known for v, _, known in case["evidence"] if isinstance(known, int)}


def weights_of(case: Case) -> dict[int, list[float]]:
    """Soft evidence: variable -> likelihoods."""
    return {v: known for v, _, known in case["evidence"] if isinstance(known, list)}


def state_of(spec: Spec, v: int, value: int) -> Any:
    """The state that a value's number stands for."""
    states = spec["variables"][v][2]
    return value if states is None else states[value]


def stated(case: Case) -> dict[Any, Any]:
    """The evidence as a call takes it."""
    return as_mapping(case["model"], case["evidence"])


def as_mapping(spec: Spec, evidence: list[list[Any]]) -> dict[Any, Any]:
    """Evidence as a mapping; an index that is another variable's name would be an error."""
    names = [name for name, *_ in spec["variables"]]
    return {
        v if how == "index" and str(v) not in names[:v] + names[v + 1 :] else names[v]: _value(spec, v, how, known)
        for v, how, known in evidence
    }


def _value(spec: Spec, v: int, how: str, known: Any) -> Any:
    """A state, likelihoods or a missing value, in the form of the evidence."""
    if known is None:
        return math.nan if how == "row" else None
    if isinstance(known, list):
        return known
    state = state_of(spec, v, known)
    return float(state) if how == "row" and type(state) is int else state


def shown(case: Case) -> str:
    """The evidence as Python's source."""
    return repr(stated(case))


def smaller_evidence(evidence: list[Any]) -> Iterator[list[Any]]:
    """Yield less or simpler evidence."""
    for i, (v, how, known) in enumerate(evidence):
        yield evidence[:i] + evidence[i + 1 :]
        if isinstance(known, list):
            for j, value in enumerate(known):
                if value not in (0.0, 1.0):
                    for simple in (1.0, 0.5, float(f"{value:.1g}")):
                        if simple != value:
                            weights = [*known[:j], simple, *known[j + 1 :]]
                            yield [*evidence[:i], [v, how, weights], *evidence[i + 1 :]]
        elif known:
            yield [*evidence[:i], [v, how, 0], *evidence[i + 1 :]]
        if how != "name":
            yield [*evidence[:i], [v, "name", known], *evidence[i + 1 :]]
