"""Conditions and budgets of the schedule on orders whose numbers of cells no float holds."""

from __future__ import annotations

import math
from typing import Any

import pytest

from elimina.generate import grid_model
from elimina.io import convert_sense
from elimina.planning.option_checks import check_options
from elimina.planning.options import Options
from elimina.problem.tasks import Task
from elimina.strategies import conditions, marginal_schedule, optimum_schedule, sum_schedule
from elimina.strategies.call import Call
from elimina.strategies.facts import Facts
from elimina.strategies.portfolio import Question, Solver
from elimina.strategies.row import Condition

CONDITIONS = {name: value for name, value in vars(conditions).items() if isinstance(value, Condition)}
SCHEDULES = (marginal_schedule, optimum_schedule, sum_schedule)
BUDGETS = [value for module in SCHEDULES for name, value in vars(module).items() if name.startswith("seconds_of_")]
SUMS = ("pr", "mar")


def facts_of(task: Task, width: int, states: int, monkeypatch: pytest.MonkeyPatch) -> Facts:
    """Return facts about a small problem, every order of which is said to have this width."""
    costs = grid_model(3, 2, 0.0, seed=1)
    model = convert_sense(costs, "probability") if task in SUMS else costs
    options = check_options(Options("cpu", threads=1), task)
    query = ["x0"] if task == "mar" else None
    solver = Solver(Question(model, task, {}, query), options, Call(task, 100.0))
    solver.begin()
    prepared = solver.plan(options)
    order = solver.rough_order()._replace(
        width=width, total_cells=9 * states ** (width + 1), largest_table=states**width
    )
    monkeypatch.setattr(solver, "rough_order", lambda: order)
    monkeypatch.setattr(solver, "quick_order", lambda seconds: order)
    facts = Facts(solver, options)
    facts.prepared = prepared
    return facts


@pytest.mark.parametrize("width", [1_000, 1_023, 1_024, 1_100, 10_000])
@pytest.mark.parametrize("states", [2, 10])
@pytest.mark.parametrize("task", ["mpe", "pr", "mar", "count"])
def test_widths_beyond_floats(monkeypatch: pytest.MonkeyPatch, task: Any, states: int, width: int) -> None:
    facts = facts_of(task, width, states, monkeypatch)
    assert len(CONDITIONS) > 50
    for name, condition in CONDITIONS.items():
        if name == "ONE_POSTERIOR_IS_ASKED" and task != "mar":  # it asks for marginals
            continue
        if condition.holds(facts):
            assert condition.text(facts), name
    for budget in BUDGETS:
        assert 0 <= budget(facts) < math.inf
    for name in ("ELIMINATION_IS_LONG", "ELIMINATION_IS_HOPELESS", "ELIMINATION_IS_HARD", "QUICK_ORDER_DOES_NOT_FIT"):
        assert CONDITIONS[name].holds(facts)
