"""Choice of the strategy for an optimum, and the options about it."""

from __future__ import annotations

import contextlib
import logging
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import InputError, MemoryLimitError, Model, TimeLimitError, UnsupportedError
from elimina.backends.cpu import CpuBackend
from elimina.generate import grid_model, random_model
from elimina.io import convert_sense
from elimina.methods import and_or_search as search_module
from elimina.methods.paused_search import FIRST_CONSISTENCY_SECONDS, PausedSearch
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import cpu_machine
from elimina.planning.option_checks import check_options
from elimina.planning.options import Options
from elimina.planning.order import CELLS_PER_SECOND, Order
from elimina.planning.ordering import QUICK_SECONDS
from elimina.planning.planner import Elimination, make_plan
from elimina.problem.preparation import prepare
from elimina.result import optimistic_bound
from elimina.running.host import turn_share
from elimina.running.planned_problem import PlannedProblem
from elimina.strategies import (
    call_plan,
    conditions,
    filtering_strategy,
    final_search,
    optimum_schedule,
    search_strategies,
)
from elimina.strategies import facts as facts_module
from elimina.strategies import portfolio as portfolio_module
from elimina.strategies.call import Call
from elimina.strategies.call_plan import PlannedCall, Preparation
from elimina.strategies.facts import Facts
from elimina.strategies.portfolio import Question, Solver
from elimina.strategies.row import Row, walk
from elimina.strategies.strategy import Attempt, Strategy
from elimina.strategies.task_portfolio import task_portfolio
from tests import calls
from tests.random_models import models
from tests.reference import brute
from tests.rows import change_row, row_of

THREADS = 3

LARGE = grid_model(12, 4, 0.3, seed=1)
"""Exact elimination would take 2e9 cells."""


def test_large_problems_are_filtered_small_ones_are_not(monkeypatch):
    monkeypatch.setattr(optimum_schedule, "SHORTEST_FILTER_SECONDS", 60.0)
    # Soft local consistency would end before filtering begins.
    monkeypatch.setattr(conditions, "SEARCH_START_SECONDS_PER_VARIABLE", math.inf)
    seen = []
    result = calls.solve(LARGE, device="cpu", on_bounds=seen.append)
    assert (result.status, result.stats["method"]) == ("optimal", "filter")
    assert LARGE.score([v.index(result.assignment[v.name]) for v in LARGE.variables]) == result.value
    assert all(known.lower <= result.value for known in seen)
    assert len({known[1:] for known in seen}) == len(seen)
    assert "method" not in elimina.solve(grid_model(4, 4, 0.3), device="cpu").stats
    monkeypatch.setattr(conditions, "LONG_ELIMINATION_CELLS", 10)
    assert elimina.solve(grid_model(4, 4, 0.3), device="cpu").stats["method"] == "filter"


def test_huge_easy_models_are_eliminated_at_once(monkeypatch):
    """Other strategies take time for each variable before they begin."""
    monkeypatch.setattr(conditions, "LONG_ELIMINATION_CELLS", 10)
    model = grid_model(4, 4, 0.3)
    monkeypatch.setattr(conditions, "LONG_ELIMINATION_VARIABLES", 1e-3)
    assert "method" not in elimina.solve(model, device="cpu").stats


@pytest.mark.parametrize("task", ["mpe", "pr", "mar", "count"])
def test_a_short_elimination_needs_no_search_for_an_order(monkeypatch, task):
    searched = []
    find_better_order = Solver.quick_order
    monkeypatch.setattr(
        Solver, "quick_order", lambda *arguments: searched.append(arguments) or find_better_order(*arguments)
    )
    costs = grid_model(36, 2, 0.0, seed=1)  # too many variables for an answer at once
    grid = Model(costs.variables, [f for f in costs.factors if max(f.scope) < 36 * 3])
    model = grid if task == "mpe" else convert_sense(grid, "probability")
    assert elimina.solve(model, task, device="cpu").status in ("optimal", "exact")
    assert not searched


def test_an_inner_row_that_answers_ends_the_outer_walk():
    result = elimina.Result("exact", "pr")
    facts = Facts(None, CheckedOptions())

    def outcome_of(inner):
        group = Row("group", "reason", ends="answered", rows=(inner,))
        walked = walk((group, Row("last", "reason", lambda *_: Attempt(None, last), ends="always")), facts)
        with pytest.raises(StopIteration) as end:
            next(walked)
        return end.value.value

    last, early = MemoryLimitError("last"), MemoryLimitError("early")
    answers = Row("answers", "reason", lambda *_: Attempt(result), ends="answered")
    assert outcome_of(answers) == Attempt(result)
    for inner in (
        answers._replace(ends="never"),
        answers._replace(method=lambda *_: Attempt()),
        answers._replace(method=lambda *_: Attempt(None, early)),
        answers._replace(method=lambda *_: Attempt(result, early)),
        answers._replace(conditions=(conditions.HINT_IS_GIVEN,)),
    ):
        assert outcome_of(inner) == Attempt(None, last)


def test_a_number_of_slices_asks_for_elimination(monkeypatch):
    monkeypatch.setattr(conditions, "LONG_ELIMINATION_CELLS", 10)
    assert "method" not in calls.solve(grid_model(4, 4, 0.3), device="cpu", slices=4).stats


def test_what_ends_at_once_takes_no_local_search_and_no_filtering(monkeypatch):
    change_row(monkeypatch, "soft local consistency", seconds=60.0)
    variables = [elimina.Variable(f"x{n}", 3) for n in range(30)]
    differ = (~np.eye(3, dtype=bool)).astype(np.int64)
    tables = [elimina.Table((a, b), differ) for a in range(30) for b in range(a)]
    result = elimina.solve(Model(variables, tables), device="cpu")
    assert (result.status, result.value, result.stats["method"]) == ("optimal", 0, "search")
    assert not {"improve", "filter"} & result.stats["seconds"].keys()


@pytest.mark.data
def test_soft_local_consistency_comes_first_where_elimination_takes_a_tenth_of_a_second(monkeypatch, data_dir):
    change_row(monkeypatch, "soft local consistency", seconds=60.0)
    result = elimina.solve(elimina.read(data_dir / "wcsp/iscas89/c499.wcsp"), device="cpu")
    assert (result.value, result.stats["method"]) == (111, "search")


def order_of(seconds):
    """Return an order in which elimination takes so long on the CPU, in tables that fit any memory."""
    return Order((), 20, int(seconds * CELLS_PER_SECOND), 10**6, "min-fill", 0.0)


def before_planning(monkeypatch, options, quick, searched=None):
    """Return the strategies before a plan, with their limits, and the seconds of searches for an order.

    Args:
        monkeypatch: Fixture.
        options: Options; method ``auto``.
        quick: Seconds of elimination in a quick order, on the CPU.
        searched: Seconds in an order that is searched for; None: the same.
    """
    strategies, ordered = [], []

    def recorded(name, *names):
        def strategy(*arguments, **limits):
            strategies.append((name, {**dict(zip(names, arguments, strict=False)), **limits}))
            return Strategy(arguments[2], name, lambda _: None)

        return strategy

    monkeypatch.setattr(
        search_strategies, "by_search", recorded("search", "problem", "options", "run", "paused", "seconds")
    )
    monkeypatch.setattr(filtering_strategy, "filtering", recorded("filter", "problem", "options", "run", "seconds"))
    model = random_model(12, 6, 0.6, 0.0, seed=1)
    solver = Solver(Question(model, "mpe", {}, None), options, Call("mpe"))
    solver.begin()

    def quick_order(seconds):
        ordered.append(seconds)
        return order_of(quick if searched is None else searched)

    monkeypatch.setattr(solver, "rough_order", lambda: order_of(quick))
    monkeypatch.setattr(solver, "quick_order", quick_order)
    portfolio = walk((row_of("mpe", "before a plan is made"),), Facts(solver, options))
    outcome = None
    with contextlib.suppress(StopIteration):
        while True:
            portfolio.send(outcome)
            outcome = Attempt()
    return strategies, ordered


@pytest.mark.parametrize("seconds", [0.6, 1e4])
def test_filtering_takes_a_second_at_most_before_soft_local_consistency(monkeypatch, seconds):
    strategies, _ = before_planning(monkeypatch, CheckedOptions(device="cpu", threads=1), seconds)
    (first, glance), (second, filtered), (third, turn) = strategies[:3]
    assert (first, second, third) == ("search", "filter", "search")
    assert glance["first_turn"] == row_of("mpe", "soft local consistency").seconds
    assert filtered["seconds"] == min(seconds, optimum_schedule.LONGEST_FILTER_SECONDS)
    assert (turn["rounds"], turn.get("first_turn")) == (0, None)


def before_a_plan(monkeypatch, rough, better):
    """Limits of the searches before a plan, and the seconds of the searches for orders, given the seconds of both."""
    options = CheckedOptions(device="cpu", threads=THREADS, memory=1 << 20)
    strategies, ordered = before_planning(monkeypatch, options, rough, better)
    return [limits for name, limits in strategies if name == "search"], ordered


@pytest.mark.parametrize("seconds", [0.01, 50.0])
def test_what_takes_a_gpu_long_is_searched_for_a_short_time_on_the_cpu(monkeypatch, seconds):
    options = CheckedOptions(device="cuda", memory=1 << 30)
    speed = Facts(None, options).cells_per_second / CELLS_PER_SECOND
    assert speed > 50
    strategies, _ = before_planning(monkeypatch, options, seconds * speed)
    assert bool(strategies) == (seconds == 50.0)
    assert all(name == "search" for name, _ in strategies)
    assert {(limits["options"].device, limits["options"].memory) for _, limits in strategies} <= {("cpu", None)}


@pytest.mark.parametrize(
    ("seconds", "nodes", "rounds"),
    [
        (facts_module.SHORT_ELIMINATION_SECONDS / 2, [], [0, 0]),
        (conditions.SECOND_TURN_ELIMINATION_SECONDS / 2, [], [0, 0, 1]),
        (conditions.SECOND_TURN_ELIMINATION_SECONDS, [], [0, 0, 1, 0]),
        (conditions.HARD_ELIMINATION_SECONDS, [search_strategies.TURN_NODES], [0, 0, 0, 1]),
    ],
)
def test_soft_local_consistency_gets_nodes_where_elimination_takes_long(monkeypatch, seconds, nodes, rounds):
    searches, ordered = before_a_plan(monkeypatch, facts_module.HOPELESS_ELIMINATION_SECONDS / 2, seconds)
    assert [limits["nodes"] for limits in searches if "nodes" in limits] == nodes
    assert [limits["rounds"] for limits in searches][: len(rounds)] == rounds
    assert ordered[0] == facts_module.GLANCE_ORDER_SECONDS


@pytest.mark.parametrize(("threads", "share"), [(1, 1), (2, 1 / 2), (4, 1 / 4), (16, 1 / 4)])
def test_turns_are_shorter_with_more_threads(threads, share):
    """Else several threads would wait for the end of each turn as long as one."""
    assert turn_share(CheckedOptions(threads=threads)) == share


@pytest.mark.parametrize("threads", [1, 2])
def test_a_search_begins_with_its_share_of_a_turn(monkeypatch, threads):
    turns = []
    monkeypatch.setattr(search_module._AlternatingSearch, "propagate", lambda search, seconds: turns.append(seconds))
    problem, options = prepare(grid_model(3, 3, 0.3), "mpe", {}), CheckedOptions(device="cpu", threads=threads)
    strategy = search_strategies.by_search(problem, options, Call("mpe"), PausedSearch(), rounds=0)
    with contextlib.suppress(TimeLimitError):
        strategy.work(strategy.run.budget())
    assert turns == [FIRST_CONSISTENCY_SECONDS / threads]


def test_no_order_is_looked_for_at_first_where_elimination_takes_very_long(monkeypatch):
    searches, ordered = before_a_plan(
        monkeypatch, 2 * facts_module.HOPELESS_ELIMINATION_SECONDS, conditions.HARD_ELIMINATION_SECONDS
    )
    assert [limits.get("nodes") for limits in searches][:2] == [None, search_strategies.TURN_NODES]
    assert ordered == [QUICK_SECONDS]


@pytest.fixture
def planned(monkeypatch):
    """The options of each plan that a call makes."""
    found = []
    plan_call = call_plan.plan_call

    def noted(model, task, evidence, query, options, *rest, **named):
        found.append(options)
        return plan_call(model, task, evidence, query, options, *rest, **named)

    monkeypatch.setattr(portfolio_module, "plan_call", noted)
    return found


@pytest.mark.parametrize(("factor", "kind"), [(0.0, tuple), (2.0**10, str)])
def test_an_order_out_of_reach_is_not_improved_before_search(monkeypatch, planned, factor, kind):
    monkeypatch.setattr(conditions, "UNREACHABLE_CELLS_PER_BYTE", factor)
    assert elimina.solve(grid_model(4, 4, 0.3), device="cpu").status == "optimal"
    assert isinstance(planned[0].order, kind)


@pytest.mark.parametrize("gigabytes", [0, 20])
def test_search_has_more_time_before_a_plan_that_needs_much_new_memory(gigabytes):
    model = random_model(12, 6, 0.6, 0.0, seed=1)
    problem = prepare(model, "mpe", {})
    plan = make_plan(Elimination(problem, problem.free, cpu_machine(1), 1 << 40))
    plan = plan._replace(seconds=3.0, bytes={"host": gigabytes * 10**9})
    planned = PlannedProblem(problem, plan, CpuBackend(1), {})
    options = CheckedOptions(device="cpu", threads=1)
    facts = Facts(Solver(Question(model, "mpe", {}, None), options, Call("mpe")), options)
    facts.prepared = PlannedCall(Preparation(problem), planned, None)
    search = next(walk((row_of("mpe", "before the plan runs"),), facts))
    assert search.seconds == pytest.approx(3.0 + gigabytes * 1e9 / cpu_machine(1).fresh)


@pytest.mark.parametrize(("hopeless", "slices"), [(math.inf, ["never", "auto"]), (0.0, ["never"])])
def test_slices_are_planned_where_there_is_hope(monkeypatch, planned, hopeless, slices):
    monkeypatch.setattr(conditions, "MAX_SLICED_PLAN_SECONDS", hopeless)
    refuse_searches(monkeypatch)
    monkeypatch.setattr(conditions, "LONG_ELIMINATION_CELLS", math.inf)
    model = random_model(10, 4, 0.7, 0.0, seed=1)
    with contextlib.suppress(elimina.MemoryLimitError):
        elimina.solve(model, device="cpu", memory="24KiB")
    assert [options.slices for options in planned] == slices


def refuse_searches(monkeypatch):
    for module in (search_strategies, final_search):
        monkeypatch.setattr(module, "by_search", refused)


def refused(_problem, _options, run, *_, **__):
    """Return a search that refuses the problem."""

    def work(_):
        raise UnsupportedError("no search")

    return Strategy(run, "search", work)


def test_filtering_gives_way_to_a_plan_that_fits(monkeypatch):
    monkeypatch.setattr(conditions, "LONG_ELIMINATION_CELLS", 10)
    monkeypatch.setattr(Order, "seconds_at", lambda *_: 0.0)
    monkeypatch.setattr(optimum_schedule, "SHORTEST_FILTER_SECONDS", 0.0)
    refuse_searches(monkeypatch)
    result = elimina.solve(random_model(12, 6, 0.6, 0.0, seed=1), device="cpu")
    assert (result.status, "method" in result.stats) == ("optimal", False)


def test_bounds_are_the_answer_where_elimination_ends_too_late(monkeypatch):
    monkeypatch.setattr(conditions, "LONG_ELIMINATION_CELLS", 10)
    monkeypatch.setattr(Order, "seconds_at", lambda *_: 0.0)
    monkeypatch.setattr(optimum_schedule, "SHORTEST_FILTER_SECONDS", 0.0)
    refuse_searches(monkeypatch)

    def late(*_):
        raise TimeLimitError("late")

    monkeypatch.setattr(portfolio_module, "eliminate", late)
    result = elimina.solve(random_model(12, 6, 0.6, 0.0, seed=1), device="cpu", time_limit=60)
    # The call's own limit has not passed.
    assert (result.status, result.ended_by) == ("bounded", None)
    assert result.lower_bound < result.upper_bound == result.value


@pytest.mark.parametrize(("seconds", "is_bounded"), [(2.0, False), (0.1, True)])
def test_bounds_come_before_a_long_sum_only(monkeypatch, seconds, is_bounded):
    """They would take longer than a short one: the elimination of this grid takes half a second."""
    rng, factors = np.random.default_rng(0), grid_model(20, 2).factors
    model = Model.from_arrays([2] * 400, [(f.scope, rng.random((2, 2))) for f in factors], sense="probability")
    monkeypatch.setattr(conditions, "BOUNDED_FROM_SECONDS", seconds)
    found = elimina.solve(model, "pr", device="cpu")
    assert found.status == "exact"
    assert ("bounds" in found.stats["seconds"]) == is_bounded


def test_methods_agree():
    model = random_model(16, 6, 0.3, 0.3, seed=4)
    one, other = (calls.solve(model, method=m, device="cpu") for m in ("eliminate", "filter"))
    assert (one.status, one.value) == (other.status, other.value)


@pytest.mark.parametrize("method", ["auto", "filter"])
def test_bounds_from_outside(method):
    best = elimina.solve(LARGE, device="cpu").value
    assert calls.solve(LARGE, device="cpu", method=method, upper_bound=best).value == best
    result = calls.solve(LARGE, device="cpu", method=method, upper_bound=best - 1)
    assert (result.status, result.value, result.lower_bound) == ("infeasible", None, best)


WAYS_WITH_A_BOUND = [
    {"method": "auto"},
    {"method": "filter"},
    {"method": "filter", "tables": "sparse"},
    {"method": "search"},
    {"method": "search", "shift": "none"},
]


@pytest.mark.parametrize("options", WAYS_WITH_A_BOUND)
@settings(max_examples=40, deadline=None)
@given(model=models("integer") | models("max-integer"), off=st.integers(-30, 30))
def test_a_bound_means_the_same_to_all_methods(options, model, off):
    """An optimum above the given upper bound is infeasible, and the bound is the next total."""
    expected = brute.optimum(model)
    sign = 1 if model.sense == "min-cost" else -1
    upper = (expected or 0) + off
    seen = []
    result = calls.solve(model, device="cpu", upper_bound=upper, on_bounds=seen.append, **options)
    assert all(known.lower is None or known.upper is None or known.lower <= known.upper for known in seen)
    if expected is not None and sign * expected <= sign * upper:
        brute.check_optimum(model, result)
        return
    ends = (upper + 1, None) if sign == 1 else (None, upper - 1)
    assert (result.status, result.lower_bound, result.upper_bound) == ("infeasible", *ends)
    assert result.assignment is None


def test_no_total_is_the_next_one_where_costs_are_floats():
    model = Model.from_arrays([1], [([], 1.0), ([], 2.6)], sense="max-cost")
    result = calls.solve(model, method="search", upper_bound=4)
    assert (result.status, result.lower_bound, result.upper_bound) == ("infeasible", None, 4)


@pytest.mark.parametrize("sense", ["min-cost", "max-cost"])
@pytest.mark.parametrize("options", WAYS_WITH_A_BOUND)
def test_a_bound_between_integers_is_the_next_one(options, sense):
    sign = 1 if sense == "min-cost" else -1
    model = Model.from_arrays([2, 2], [([0, 1], sign * np.array([[5, 3], [4, 6]]))], sense=sense)
    assert calls.solve(model, device="cpu", upper_bound=sign * 3.5, **options).value == sign * 3
    below = calls.solve(model, device="cpu", upper_bound=sign * 2.5, **options)
    assert (below.status, optimistic_bound(below, sign)) == ("infeasible", sign * 3)


@pytest.mark.parametrize("options", [{}, {"method": "search"}, {"tables": "sparse"}])
def test_a_bound_of_costs_with_decimals(options):
    model = Model.from_arrays([2, 2], [([0, 1], [[5.25, 3.5], [4.0, 6.5]])])
    assert calls.solve(model, upper_bound=np.float64(12.5), **options).value == 3.5
    assert calls.solve(model, upper_bound=3.5, **options).assignment == {"x0": 0, "x1": 1}
    below = calls.solve(model, upper_bound=3.25, **options)
    assert (below.status, below.lower_bound) == ("infeasible", 3.25)


def test_a_small_search_that_needs_no_gpu_says_that_it_is_on_the_cpu(caplog):
    model = Model.from_arrays([2, 2], [([0, 1], [[5.25, 3.5], [4.0, 6.5]])])
    for options in ({"upper_bound": 4.5}, {"method": "search"}):
        caplog.clear()
        with caplog.at_level("INFO", "elimina"):
            found = calls.solve(model, device="cuda", **options)
        assert (found.value, found.stats["device"]) == (3.5, "cpu")
        assert "soft local consistency first, on the CPU; the GPU" in caplog.text
        caplog.clear()
        with caplog.at_level("INFO", "elimina"):
            calls.solve(model, device="cpu", **options)
        assert "GPU" not in caplog.text


def test_a_bound_of_integer_costs_too_large_to_be_filtered():
    model = Model.from_arrays([2], [([0], [5, 10**12])])
    assert calls.solve(model, upper_bound=7).value == 5


@pytest.mark.parametrize("bound", [100, -10, -(10**15) - 1])
def test_an_upper_bound_of_a_model_whose_costs_lie_far_apart(bound):
    factors = [([0], [-1e15, 1.0]), ([0, 1], [[0.0, 1.0], [2.0, 3.0]])]
    model = Model.from_arrays([2, 2], factors, upper_bound=bound)
    for method in ("eliminate", "search"):
        brute.check_optimum(model, calls.solve(model, method=method, device="cpu"))


@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        ({"method": "best"}, InputError, "unknown method 'best'; it is one of auto, eliminate, filter"),
        ({"method": "mbe", "slices": 8}, InputError, "or the method mbe\\) cannot be combined with slices"),
        ({"method": "mbe", "ibound": 2, "tables": "sparse"}, InputError, "leave these out"),
        ({"method": "eliminate", "upper_bound": 3}, InputError, "for the methods auto, filter and search, not elim"),
        ({"upper_bound": "3.5"}, TypeError, "takes the cost of a known solution, or None"),
        ({"upper_bound": float("inf")}, InputError, "within the range of a float"),
        ({"upper_bound": -(10**400)}, InputError, "within the range of a float"),
        ({"upper_bound": float("nan")}, InputError, "is NaN"),
        ({"task": "count", "method": "filter"}, InputError, "the method filter cannot answer the task count"),
    ],
)
def test_what_is_refused(options, error, problem):
    with pytest.raises(error, match=problem):
        calls.solve(LARGE, **options)


def test_floats_are_not_filtered():
    model = Model.from_arrays([2], [((0,), np.array([0.5, 1.5]))])
    assert elimina.solve(model, device="cpu").value == 0.5
    with pytest.raises(UnsupportedError, match="integer costs"):
        calls.solve(model, method="filter")


def test_integers_as_probabilities_are_no_costs():
    model = Model.from_arrays([3, 2], [([0], [3, 6, 5]), ([0, 1], [[2, 2], [1, 1], [0, 3]])], sense="probability")
    for method in ("auto", "eliminate", "search", "mbe"):
        assert calls.solve(model, method=method).value == pytest.approx(math.log(15))
    for question in ({"method": "filter"}, {"upper_bound": 3}, {"task": "count-optima"}):
        with pytest.raises(UnsupportedError, match=r"(integer|for) costs"):
            calls.solve(model, **question)


def rows_taken(monkeypatch, caplog, model, task, **options):
    """Return the names of the rows that a question takes if each strategy fails, without their work."""
    monkeypatch.setattr(logging.getLogger("elimina"), "propagate", True)
    caplog.set_level(logging.INFO, logger="elimina")
    checked = check_options(Options("cpu", threads=1, order_seconds=0.05, **options), task)
    portfolio = task_portfolio(Solver(Question(model, task, {}, None), checked, Call(task)))
    with contextlib.suppress(StopIteration):
        next(portfolio)
        while True:
            portfolio.send(Attempt(None, MemoryLimitError("no memory")))
    texts = [record.getMessage() for record in caplog.records]
    return [text.removeprefix("next: ").split(" (")[0].split(",")[0] for text in texts if text.startswith("next: ")]


@pytest.mark.parametrize(("side", "row"), [(20, "mini-buckets instead"), (40, "quick bounds as asked")])
def test_a_sum_that_does_not_fit_takes_the_bounds_of_mini_buckets_by_default(monkeypatch, caplog, side, row):
    """Optimised ones come first; where they fail, those of the method ``mbe`` follow."""
    rng, factors = np.random.default_rng(0), grid_model(side, 2).factors
    model = Model.from_arrays([2] * side**2, [(f.scope, rng.random((2, 2))) for f in factors], sense="probability")
    taken = rows_taken(monkeypatch, caplog, model, "pr", memory="1MB", slices="never")
    optimised = [place for place, name in enumerate(taken) if name.startswith("optimised mini-buckets instead")]
    assert optimised
    assert taken.index(row) > optimised[0]
