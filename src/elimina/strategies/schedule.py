"""The schedule: rows shared by all tasks, and the rows of tasks that only elimination answers.

A row is a method with its conditions and its budget, and the reasons for both. Tasks with more methods have their own
rows in the modules listed in ``task_portfolio``.
"""

from __future__ import annotations

from elimina.strategies import conditions as when
from elimina.strategies import elimination as eliminate
from elimina.strategies import estimate_strategies as estimate
from elimina.strategies.facts import Facts
from elimina.strategies.portfolio import Solver
from elimina.strategies.row import Row, walk
from elimina.strategies.strategy import Attempt, Portfolio

Rows = tuple[Row, ...]

# --- rows of all tasks ---


def _provide_bounds(facts: Facts, row: Row) -> Attempt:
    facts.solver.provide_bounds(row.memory_share)
    return Attempt()


def _complete_hint(facts: Facts, _: Row) -> Attempt:
    assert facts.options.hint is not None
    facts.solver.complete(facts.options.hint)
    return Attempt()


FIRST_BOUNDS = Row(
    "first bounds at the end of the call",
    "a call that is ended early still answers; other copies of tables come beside these",
    _provide_bounds,
    (when.HAS_FIRST_BOUNDS,),
    memory_share=0.125,
)
BOUNDS_ALONE = Row(
    "first bounds",
    "nothing else answers without the memory for elimination",
    eliminate.bounds_of_tables,
    (when.HAS_FIRST_BOUNDS, when.ESTIMATES_ARE_ALLOWED, when.ELIMINATION_DID_NOT_FIT),
    ends="always",
    memory_share=0.125,
)
MEMORY_OF_ESTIMATES = Row(
    "memory of estimates",
    "the error names the least memory that is enough",
    estimate.least_memory,
    (when.ESTIMATES_ARE_ALLOWED, when.ELIMINATION_DID_NOT_FIT, when.TABLES_DO_NOT_FIT),
    ends="always",
)
HINT = Row(
    "hint",
    "an assignment narrows all that follows, and the answer is never worse",
    _complete_hint,
    (when.HINT_IS_GIVEN,),
)
BEGIN: Rows = (FIRST_BOUNDS, HINT)

RUN = Row(
    "run the plan",
    "nothing else has answered",
    eliminate.run_plan,
    ends="always",
)
PLAN_AND_RUN: Rows = (
    Row("plan", "elimination is the method", eliminate.plan_as_asked, ends="failed"),
    RUN,
)


def elimination_by(plans: Rows) -> Rows:
    """Return a row of mini-buckets (if bounds are requested), and a row of elimination; ``plans``: their inner rows."""
    return (
        Row(
            "mini-buckets",
            "the user asks for bounds",
            eliminate.mini_buckets,
            (when.METHOD_IS_MBE,),
            ends="always",
            rows=plans,
        ),
        Row("elimination", "it is exact", eliminate.elimination, ends="answered", rows=plans),
    )


ROWS: Rows = (
    *BEGIN,
    Row("elimination", "it is exact", eliminate.elimination, ends="answered", rows=PLAN_AND_RUN),
    BOUNDS_ALONE,
)
"""Rows of a task that only elimination answers."""


def scheduled(solver: Solver, rows: Rows) -> Portfolio:
    """Return the strategies for a solver's question.

    Args:
        solver: Solver that has not begun.
        rows: Rows to run.
    """
    solver.begin()
    return walk(rows, Facts(solver, solver.options))
