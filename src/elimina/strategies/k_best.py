"""The k best assignments: by branch and bound, by filtered elimination, or by a search with exact messages."""

from __future__ import annotations

import time
from typing import Any

from elimina.errors import MemoryLimitError, UnsupportedError
from elimina.methods.and_or_search import ROOT_SHIFT_SECONDS
from elimina.methods.best_assignments import BestAssignments
from elimina.methods.filtering import filtered_solutions
from elimina.methods.k_best_search import KBestSearch, Ranked, largest_k, ranked_solutions
from elimina.methods.search_state import SearchLimits
from elimina.model.model import Model
from elimina.result import RankedAssignment, Result, optimistic_bound
from elimina.running.budget import Budget
from elimina.running.combination import NO_PLAN
from elimina.running.host import host_memory
from elimina.strategies import conditions as when
from elimina.strategies import optimum_schedule
from elimina.strategies.call import InnerCall
from elimina.strategies.facts import Facts
from elimina.strategies.portfolio import Solver
from elimina.strategies.row import Row
from elimina.strategies.schedule import BEGIN, Rows, scheduled
from elimina.strategies.strategy import Portfolio, Strategy, until_answered

LONGEST_SEARCH_SECONDS = 60.0
"""Largest time of branch and bound, in seconds, before a search with exact messages."""

SEARCH_TIME_SHARE = 0.5
"""Share of the remaining time for branch and bound, if exact messages do not fit."""

AGE_FACTOR, SHORTEST_TURN_SECONDS, LONGEST_TURN_SECONDS = 1.5, 0.2, 20.0
"""Time of a method that starts from an optimum: as a multiple of the call's time so far, and its least and largest
value in seconds."""

SHIFT_TIME_SHARE = 0.1
"""Share of the time of branch and bound after which no further pass of cost shifting is begun."""


def seconds_of_search(facts: Facts) -> float:
    """Return the time for branch and bound: about as long as the following elimination, or more if it may not fit."""
    seconds = facts.seconds_in(facts.searched_order)
    if 2 * facts.searched_order.largest_table >= facts.memory_bytes:
        seconds = max(seconds, SEARCH_TIME_SHARE * facts.call.seconds)
    return min(seconds, LONGEST_SEARCH_SECONDS)


def seconds_of_turn(facts: Facts) -> float:
    """Return the time for a method that starts from an optimum: about as long as finding the optimum took."""
    return max(SHORTEST_TURN_SECONDS, min(LONGEST_TURN_SECONDS, AGE_FACTOR * facts.call.age))


def seconds_of_last_turn(facts: Facts) -> float:
    """Return the time that remains for branch and bound after its first turn."""
    search = facts.solver.k_best_search
    return max(0.0, seconds_of_search(facts) - (0.0 if search is None else search.seconds))


def optimum(facts: Facts, _: Row) -> Portfolio:
    """Find the best assignment with the strategies of the task ``mpe``."""
    solver = facts.solver

    def translated(result: Result) -> Result:
        """Return the optimum as the first of several assignments."""
        if result.status == "optimal" and result.assignment is not None and result.value is not None:
            first = RankedAssignment(result.value, result.assignment)
            return result.replace(task="kbest", status="bounded", ranked=(first,))
        return result.replace(task="kbest")

    search = InnerCall(facts.call, translated, "optimum")
    question = solver.question._replace(task="mpe")
    portfolio = scheduled(Solver(question, solver.options, search), optimum_schedule.ROWS)
    return (yield from until_answered(search, portfolio))


def k_best_by_search(facts: Facts, row: Row) -> Strategy:
    """Return a strategy that finds the best assignments by branch and bound; a later turn resumes the search."""
    solver, options, order = facts.solver, facts.options, facts.quick_order.order
    problem, model = solver.problem, solver.question.model

    def work(budget: Budget) -> Result:
        if solver.k_best_search is None:
            memory, threads = host_memory(options.after_growth(budget.growth_bytes)), options.host_threads
            shift_seconds = min(ROOT_SHIFT_SECONDS, SHIFT_TIME_SHARE * budget.seconds) if options.shifts_tables else 0.0
            search = KBestSearch(problem, order, options.assignments, threads, memory, shift_seconds=shift_seconds)
            solver.k_best_search = search
            if search.is_possible and (chosen := _best_indices(model, budget)) is not None:
                search.add_assignment(chosen)
        search = solver.k_best_search
        if not search.is_possible:
            raise UnsupportedError("branch and bound does not take the costs, or its copies of the tables do not fit")
        search.run(budget.seconds)
        stats = {**NO_PLAN, "method": "search", "nodes": search.nodes, "seconds": {"search": search.seconds}}
        ranked, bound = search.ranked(lambda: facts.call.is_over), _known_bound(model, budget, search.bound)
        return _result_of(model, ranked, bound, search.is_complete, stats)

    return Strategy(facts.call, "branch and bound", work, seconds=row.budget(facts))


def k_best_by_filtering(facts: Facts, row: Row) -> Strategy:
    """Return a strategy that finds the best assignments by filtered elimination."""
    options, problem, model = facts.options, facts.problem, facts.solver.question.model

    def work(budget: Budget) -> Result:
        memory = host_memory(options.after_growth(budget.growth_bytes))
        if options.assignments > largest_k(problem, memory):
            raise UnsupportedError("filtered elimination keeps all solutions, and so many do not fit")
        start = _best_indices(model, budget)
        limits = SearchLimits(budget.deadline)
        solutions = filtered_solutions(problem, options.assignments, limits, memory, options.seed, start)
        ranked = ranked_solutions(problem, options.assignments, solutions.values, lambda: facts.call.is_over)
        bound = _known_bound(model, budget, solutions.bound)
        return _result_of(model, ranked, bound, solutions.is_complete, solutions.statistics)

    return Strategy(facts.call, "filter", work, seconds=row.budget(facts))


def _best_indices(model: Model, budget: Budget) -> list[int] | None:
    """Return a value index for each variable in the best assignment so far."""
    best = budget.best_result
    return None if best is None or best.assignment is None else list(model.indices_of(best.assignment))


def _known_bound(model: Model, budget: Budget, bound: int | float) -> int | float:
    """Return the better bound on all assignments: ``bound``, or the bound on the optimum so far."""
    best = budget.best_result
    known = None if best is None else optimistic_bound(best, model.sign)
    return bound if known is None else model.sign * max(model.sign * bound, model.sign * known)


def _result_of(model: Model, solutions: Ranked, bound: int | float, is_complete: bool, stats: dict[str, Any]) -> Result:
    """Return the assignments so far as a result.

    Args:
        model: The model.
        solutions: The best assignments so far.
        bound: Bound on the values of all other assignments.
        is_complete: True if the remaining assignments are not better.
        stats: Statistics of the method.
    """
    rows, is_whole = solutions
    ranked = [RankedAssignment(value, model.states_at(chosen)) for value, chosen in rows]
    if is_complete and is_whole:
        return _complete(ranked, stats)
    if not ranked:
        lower, upper = model.ends(bound, None)
        return Result("bounded", "kbest", lower_bound=lower, upper_bound=upper, stats=stats)
    best = ranked[0]
    proven = tuple(row for row in ranked if model.sign * row.value <= model.sign * bound)
    lower, upper = model.ends(best.value if proven else bound, best.value)
    return Result("bounded", "kbest", best.value, lower, upper, best.assignment, ranked=proven, stats=stats)


def k_best(facts: Facts, _: Row) -> Strategy:
    """Return a strategy that finds the best assignments from the messages of elimination."""
    solver = facts.solver
    options, run, problem, model = solver.options, solver.run, solver.problem, solver.question.model

    def work(budget: Budget) -> Result:
        search = BestAssignments(problem, options.after_growth(budget.growth_bytes), is_over=lambda: run.is_over)
        started = time.monotonic()
        ranked: list[RankedAssignment] = []
        failure = None
        try:
            for value, chosen in search:
                ranked.append(RankedAssignment(value, model.states_at(chosen)))
                if len(ranked) == options.assignments:
                    break
        except MemoryLimitError as error:
            failure = error
        seconds = {**search.statistics["seconds"], "search": time.monotonic() - started}
        stats = {**search.statistics, "seconds": seconds}
        if search.is_complete or len(ranked) == options.assignments:
            return _complete(ranked, stats)
        if ranked:
            best = ranked[0]
            lower, upper = model.ends(best.value, best.value)
            result = Result(
                "bounded", "kbest", best.value, lower, upper, best.assignment, ranked=tuple(ranked), stats=stats
            )
        else:
            candidate, states = None, None
            if search.unproven is not None:
                candidate, _, indices = search.unproven
                states = model.states_at(indices)
            lower, upper = model.ends(search.bound, candidate)
            result = Result("bounded", "kbest", candidate, lower, upper, states, stats=stats)
        if failure is not None:
            budget.report(result)
            raise failure
        return result

    return Strategy(run, "k best", work)


def _complete(ranked: list[RankedAssignment], stats: dict[str, Any]) -> Result:
    """Return the final result with all requested assignments; infeasible if there are none."""
    if not ranked:
        return Result("infeasible", "kbest", stats=stats)
    value, assignment = ranked[0]
    return Result("optimal", "kbest", value, value, value, assignment, ranked=tuple(ranked), stats=stats)


ROWS: Rows = (
    *BEGIN,
    Row(
        "optimum first",
        "it has more methods, and assignments near it bound the others",
        optimum,
        (when.ON_HOST, when.QUICK_ELIMINATION_IS_NOT_SHORT),
    ),
    Row(
        "filter",
        "SPOT5 ends as soon as for the optimum",
        k_best_by_filtering,
        (when.ON_HOST, when.CAN_FILTER, when.QUICK_ELIMINATION_IS_NOT_SHORT),
        seconds=seconds_of_turn,
    ),
    Row(
        "branch and bound at once",
        "it ends many wide models before an order is found",
        k_best_by_search,
        (when.ON_HOST, when.QUICK_ELIMINATION_IS_NOT_SHORT),
        seconds=seconds_of_turn,
    ),
    Row(
        "branch and bound",
        "elimination takes as long",
        k_best_by_search,
        (when.ON_HOST, when.ELIMINATION_IS_NOT_SHORT),
        seconds=seconds_of_last_turn,
    ),
    Row("k best", "the messages of one elimination lead to all assignments", k_best, ends="always"),
)
