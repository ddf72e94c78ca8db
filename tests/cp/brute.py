"""Random domains, and a plain oracle: every assignment is tried."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence

from elimina import cp
from tests import calls

Check = Callable[[tuple[int, ...]], bool]


def domains(rng: random.Random, count: int, lo: int, hi: int) -> list[list[int]]:
    """Domains with holes."""
    values = range(lo, hi + 1)
    return [sorted(rng.sample(values, rng.randint(1, len(values)))) for _ in range(count)]


def allowed(given: Sequence[Sequence[int]], check: Check) -> set[tuple[int, ...]]:
    return {values for values in itertools.product(*given) if check(values)}


def supported(given: Sequence[Sequence[int]], check: Check) -> list[list[int]] | None:
    """Domains of domain consistency; None: there is no solution."""
    solutions = allowed(given, check)
    return [sorted(set(column)) for column in zip(*solutions, strict=True)] if solutions else None


def found(model: cp.Model, xs: Sequence[cp.Expression], **options: object) -> set[tuple[int, ...]]:
    """All solutions, each of which is found once in its variables."""
    result = calls.search(model, all_solutions=True, **options)
    values = [tuple(solution[xs]) for solution in result.solutions]
    assert result.stats["complete"]
    assert len(set(values)) == len(values)
    assert result.status == ("feasible" if values else "infeasible")
    return set(values)
