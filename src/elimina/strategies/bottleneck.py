"""Strategy of the task ``bottleneck``: the best worst cost, found by constraint problems with a threshold."""

from __future__ import annotations

from elimina.errors import UnsupportedError
from elimina.methods.threshold_search import ThresholdSearch
from elimina.result import Result
from elimina.running.bounded_results import result_between
from elimina.running.budget import Budget
from elimina.running.combination import NO_PLAN
from elimina.running.host import host_memory
from elimina.strategies import conditions as when
from elimina.strategies import elimination as eliminate
from elimina.strategies.facts import Facts
from elimina.strategies.k_best import seconds_of_search
from elimina.strategies.row import Row
from elimina.strategies.schedule import BEGIN, BOUNDS_ALONE, PLAN_AND_RUN, Rows
from elimina.strategies.strategy import Strategy


def by_thresholds(facts: Facts, row: Row) -> Strategy:
    """Return a search for the best threshold that an assignment can meet in every table."""
    solver, options, order, task = facts.solver, facts.options, facts.searched_order.order, facts.task
    problem, model = solver.problem, solver.question.model

    def work(budget: Budget) -> Result:
        memory = host_memory(options.after_growth(budget.growth_bytes))
        search = ThresholdSearch(problem, order, options.host_threads, memory)
        best = budget.best_result
        if best is not None and best.assignment is not None and best.value is not None:
            search.start(model.indices_of(best.assignment), best.value)
        search.run(budget.seconds)
        if not search.is_possible:
            raise UnsupportedError("copies of the tables for branch and bound do not fit")
        score = None
        if search.chosen is not None:
            score = model.sign * max(model.sign * term for term in model.terms(search.chosen, logarithms=False))
        stats = {**NO_PLAN, "method": "thresholds", "nodes": search.nodes, "seconds": {}}
        return result_between(model, search.bound, search.chosen, 0.0, score).replace(task=task, stats=stats)

    return Strategy(facts.call, "thresholds", work, seconds=row.budget(facts))


ROWS: Rows = (
    *BEGIN,
    Row(
        "thresholds",
        "branch and bound needs no large table",
        by_thresholds,
        (when.METHOD_IS_AUTO, when.ON_HOST, when.NO_CHECKPOINT, when.ELIMINATION_IS_NOT_SHORT),
        seconds=seconds_of_search,
    ),
    Row("elimination", "it is exact", eliminate.elimination, ends="answered", rows=PLAN_AND_RUN),
    BOUNDS_ALONE,
)
