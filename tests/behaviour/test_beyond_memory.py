"""The README's promise of an answer to every question whose tables do not fit, task by task."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import elimina
from elimina.generate import grid_model
from elimina.problem.tasks import TASKS, described

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SIDE = 26
MEMORY = "2MiB"


def spins() -> elimina.Model:
    """An Ising grid, whose exact answers need tables of 2^26 cells."""
    rng = np.random.default_rng(5)
    numbers = np.arange(SIDE * SIDE).reshape(SIDE, SIDE)
    signs = np.array([1, -1])
    tables = [([v], np.exp(rng.normal(0, 0.3) * signs)) for v in numbers.flat]
    for ends in (
        zip(numbers[:, :-1].flat, numbers[:, 1:].flat, strict=True),
        zip(numbers[:-1].flat, numbers[1:].flat, strict=True),
    ):
        tables += [(edge, np.exp(rng.normal(0, 0.5) * np.outer(signs, signs))) for edge in ends]
    return elimina.Model.from_arrays([2] * numbers.size, tables, sense="probability")


@pytest.fixture(scope="module")
def models() -> dict[bool, elimina.Model]:
    """A model of probabilities and one of costs."""
    return {True: spins(), False: grid_model(SIDE, 4, 0.07, seed=1)}


def test_the_readme_promises_an_answer():
    text = " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", README).split())
    assert "If the problem fits into memory, the answer is exact; otherwise you get bounds or an estimate" in text


@pytest.mark.parametrize("task", TASKS)
def test_a_model_beyond_memory_has_an_answer(task, models):
    description = described(task)
    model = models[description.is_sum]
    query = [v.name for v in model.variables[::9]] if description.keeps_query else None

    result = elimina.solve(model, task, query=query, device="cpu", memory=MEMORY, time_limit=8)
    assert result.status in ("bounded", "estimated")
    if result.status == "estimated":
        assert result.error is not None or result.interval is not None
        assert result.marginals or result.log10_z is not None or result.value is not None
    if result.status == "bounded":
        ends = [end for end in (result.lower_bound, result.upper_bound) if end is not None]
        assert ends
        assert ends == sorted(ends)
        assert result.marginals or len(ends) == 2 or not description.is_optimum


@pytest.mark.parametrize("task", ["mar", "count", "count-optima", "bottleneck"])
def test_an_exact_answer_or_an_error(task, models):
    options = elimina.Options(exact=True)
    with pytest.raises(elimina.MemoryLimitError):
        elimina.solve(models[described(task).is_sum], task, device="cpu", memory=MEMORY, options=options)
