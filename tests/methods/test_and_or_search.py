"""The method ``search``: exact on small models, sound bounds wherever it is ended."""

from __future__ import annotations

import math
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import InputError, Model, UnsupportedError
from elimina.generate import grid_model, random_model
from elimina.methods import and_or_search
from elimina.methods.and_or_search import searched_optimum
from elimina.methods.paused_search import PausedSearch
from elimina.methods.search_state import FIRST_ROUND_SECONDS, SearchLimits
from elimina.methods.soft_consistency import SoftConsistency
from elimina.model.table import FORBIDDEN, Table
from elimina.planning import ordering
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.ordering import consistency_order, elimination_order
from elimina.problem.preparation import prepare
from elimina.running import mini_bucket_plans
from elimina.strategies.call import Call
from elimina.strategies.local_search_strategy import improving
from elimina.strategies.search_strategies import by_search
from tests import calls
from tests.devices import on_devices
from tests.random_models import KINDS, models
from tests.reference import brute

HARD = random_model(30, 8, 0.5, 0.0, seed=1)
"""Far beyond elimination, and beyond what search proves in a second."""


@pytest.fixture
def minibuckets_alone(monkeypatch):
    """No turns of soft local consistency."""
    monkeypatch.setattr(SoftConsistency, "of", staticmethod(lambda *_: None))


@on_devices
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "big-integer"])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_small_models(device, kind, data):
    model = data.draw(models(kind))
    ibound = data.draw(st.sampled_from([None, "auto", 1, 2, 3]))
    costs = data.draw(st.sampled_from(["none", "tables", "buckets", "all"]))
    options = {"ibound": ibound, "shift": costs, "device": device, "order": "min-fill"}
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans(), label="mini-buckets alone"):
            patch.setattr(SoftConsistency, "of", staticmethod(lambda *_: None))
        brute.check_optimum(model, calls.solve(model, method="search", **options))


@pytest.mark.parametrize("kind", ["integer", "max-integer", "probability"])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_bounds_after_a_few_nodes(kind, data):
    model = data.draw(models(kind))
    best = brute.optimum(model)
    limits = SearchLimits(nodes=data.draw(st.integers(0, 20)))
    result = searched_optimum(prepare(model, "mpe", {}), CheckedOptions(device="cpu", ibound=1, threads=1), limits)
    if best is None:
        assert result.status == "infeasible" or result.assignment is None
        return
    slack = 0 if model.is_integer else 1e-9 * max(1.0, abs(best))
    lower, upper = (-math.inf if result.lower_bound is None else result.lower_bound), result.upper_bound
    assert lower - slack <= best <= (math.inf if upper is None else upper) + slack
    if result.assignment is not None:
        assert model.score([v.index(result.assignment[v.name]) for v in model.variables]) == result.value


@pytest.mark.parametrize("memory", [None, 1 << 24])
def test_a_search_goes_on_where_the_one_before_ended(memory):
    problem, paused = prepare(HARD, "mpe", {}), PausedSearch()
    options = CheckedOptions(device="cpu", threads=1, memory=memory)
    limits = SearchLimits(nodes=50, rounds=0, first_turn=1000.0)
    first = searched_optimum(problem, options, limits, paused=paused)
    consistency, original = paused.consistency, paused.original
    second = searched_optimum(problem, options, limits, tried=first, paused=paused)
    assert paused.consistency is consistency
    assert paused.original is original
    assert (consistency is None) == (memory is not None)
    assert first.lower_bound <= second.lower_bound <= second.upper_bound <= first.upper_bound
    if memory is None:
        assert consistency.nodes == first.stats["nodes"] + second.stats["nodes"] >= 100
        # Another problem has its own search.
        searched_optimum(prepare(grid_model(6, 3, 0.2, seed=1), "mpe", {}), options, limits, paused=paused)
        assert paused.consistency is not consistency


@pytest.mark.parametrize("memory", [None, 1 << 24])
def test_local_search_goes_on_in_all_strategies(monkeypatch, memory):
    monkeypatch.setattr(and_or_search, "MAX_REST_PER_SECOND", 0.0)
    problem, paused, run = prepare(HARD, "mpe", {}), PausedSearch(), Call("mpe")
    options = CheckedOptions(device="cpu", threads=1, memory=memory)
    run.report(improving(problem, options, run, paused, 0.01).work(run.budget(0.01)))
    first = paused.improvement
    by_search(problem, options, run, paused, rounds=0, first_turn=0.01).work(run.budget())
    assert paused.improvement is first
    assert (first is None) == (memory is not None)


def test_evidence():
    model = grid_model(4, 3, 0.3, seed=2)
    evidence = {"x0": 1, "x5": 2}
    result = calls.solve(model, method="search", evidence=evidence, device="cpu")
    assert result.value == calls.solve(model, method="eliminate", evidence=evidence, device="cpu").value
    assert (result.assignment["x0"], result.assignment["x5"]) == (1, 2)


@pytest.mark.usefixtures("minibuckets_alone")
def test_rounds_have_rising_ibounds(monkeypatch):
    monkeypatch.setattr(and_or_search, "SEARCH_SECONDS_PER_MESSAGE_SECOND", 0.0)
    model = grid_model(8, 4, 0.0, seed=3)
    result = searched_optimum(prepare(model, "mpe", {}), CheckedOptions(device="cpu"), SearchLimits(messages=1e-6))
    assert result.status == "optimal"
    assert result.stats["rounds"] > 1
    assert result.value == calls.solve(model, method="eliminate", device="cpu").value


def test_a_time_limit_gives_bounds_that_improve():
    seen = []
    result = calls.solve(HARD, method="search", device="cpu", time_limit=3, on_bounds=seen.append)
    assert result.status == "bounded"
    assert result.lower_bound < result.upper_bound == result.value
    lowers = [known.lower for known in seen if known.lower is not None]
    uppers = [known.upper for known in seen if known.upper is not None]
    assert lowers == sorted(lowers)
    assert uppers == sorted(uppers, reverse=True)
    assert result.stats["nodes"] > 1000
    assert [entry[1:3] for entry in result.stats["profile"]][-1] == (result.lower_bound, result.upper_bound)


@pytest.mark.parametrize("method", ["search", "filter", "auto"])
def test_a_gap_ends_it(method):
    limit = 600
    result = calls.solve(HARD, method=method, device="cpu", gap=1.5, time_limit=limit)
    assert result.status in ("bounded", "optimal")
    assert result.upper_bound - result.lower_bound <= 1.5 * result.lower_bound
    assert sum(result.stats["seconds"].values()) < limit / 5


@pytest.mark.parametrize(("bound", "ends"), [(12.0 - 1e-11, True), (12.0, True), (11.99, False)])
def test_bounds_that_meet_up_to_rounding_end_it(bound, ends):
    model = Model.from_arrays([2], [([0], [12.0, 13.0])])
    search = and_or_search._AlternatingSearch(
        prepare(model, "mpe", {}), CheckedOptions(device="cpu"), SearchLimits(), None
    )
    search.add_assignment([0])
    search.bound = bound
    assert search.is_over == ends


@pytest.mark.parametrize(
    ("bound", "shares"),
    [(10, (and_or_search.MIN_TURN_SHARE, 1.0)), (12, (1.0, 0.5)), (13.9, (1.0, and_or_search.MIN_TURN_SHARE))],
)
def test_the_search_with_the_worse_bound_gets_less_time(monkeypatch, bound, shares):
    kind, given = and_or_search._AlternatingSearch, {}
    search = kind(prepare(HARD, "mpe", {}), CheckedOptions(device="cpu", threads=1), SearchLimits(rounds=1), None)
    search.paused.consistency = SimpleNamespace(bound=10)

    def raise_bound(*_):
        search.score, search.bound = 14, bound

    monkeypatch.setattr(search, "raise_bound", raise_bound)
    monkeypatch.setattr(search, "search", lambda _original, _heuristic, seconds: given.update(search=seconds))
    monkeypatch.setattr(search, "propagate", lambda seconds: given.update(propagate=seconds))
    search.run(None)
    turn = and_or_search.SEARCH_SECONDS_PER_MESSAGE_SECOND * FIRST_ROUND_SECONDS
    assert (given["search"], given["propagate"]) == pytest.approx(
        (turn * shares[0], turn * and_or_search.CONSISTENCY_SECONDS_PER_SEARCH_SECOND * shares[1])
    )


@pytest.mark.parametrize(("promising", "status"), [(math.inf, "optimal"), (0.0, "bounded")])
def test_soft_local_consistency_goes_on_while_it_seems_to_end_soon(monkeypatch, promising, status):
    monkeypatch.setattr(and_or_search, "MAX_REST_PER_SECOND", promising)
    problem = prepare(random_model(20, 5, 0.4, 0.0, seed=1), "mpe", {})
    result = searched_optimum(problem, CheckedOptions(device="cpu", threads=1), SearchLimits(rounds=0, first_turn=1e-3))
    assert result.status == status


@pytest.mark.parametrize(("share", "status"), [(1e6, "optimal"), (0.0, "bounded")])
def test_the_first_turn_is_not_short_beside_its_set_up(monkeypatch, share, status):
    monkeypatch.setattr(and_or_search, "MAX_REST_PER_SECOND", -1.0)
    monkeypatch.setattr(and_or_search, "MIN_SECONDS_PER_SETUP_SECOND", share)
    problem = prepare(random_model(20, 5, 0.4, 0.0, seed=1), "mpe", {})
    result = searched_optimum(problem, CheckedOptions(device="cpu", threads=1), SearchLimits(rounds=0, first_turn=1e-9))
    assert result.status == status


@pytest.mark.parametrize(("seconds", "status"), [(math.inf, "optimal"), (0.0, "bounded")])
def test_soft_local_consistency_goes_on_on_packings(monkeypatch, seconds, status):
    monkeypatch.setattr(and_or_search, "MAX_REST_PER_SECOND", -1.0)
    monkeypatch.setattr(and_or_search, "PACKING_SECONDS", seconds)
    monkeypatch.setattr(and_or_search, "PACKING_RIVAL_SHARE", 0.0)
    monkeypatch.setattr(and_or_search, "MIN_SECONDS_PER_SETUP_SECOND", 0.0)
    rng = np.random.default_rng(1)
    starts = rng.integers(0, 40, 60).tolist()
    pairs = [(u, v) for u in range(60) for v in range(u) if abs(starts[u] - starts[v]) < 5]
    excluded = np.array([[0, 0], [0, FORBIDDEN]])
    prices = [((v,), np.array([int(price), 0])) for v, price in enumerate(rng.integers(1, 100, 60))]
    model = Model.from_arrays([2] * 60, [*prices, *((pair, excluded) for pair in pairs)], sense="min-cost")
    limits = SearchLimits(rounds=0, first_turn=1e-9)
    assert searched_optimum(prepare(model, "mpe", {}), CheckedOptions(device="cpu", threads=1), limits).status == status


@pytest.mark.parametrize(("ahead", "order"), [(math.inf, 1), (-1.0, 0)])
def test_a_rival_with_another_order_takes_the_place_of_a_search_that_it_is_ahead_of(monkeypatch, ahead, order):
    monkeypatch.setattr(and_or_search, "MAX_REST_PER_SECOND", -1.0)
    monkeypatch.setattr(and_or_search, "RIVAL_SHARE", 100.0)
    monkeypatch.setattr(and_or_search, "MAX_RIVAL_REST", ahead)
    begun = []
    begin = and_or_search._AlternatingSearch.begin_consistency
    monkeypatch.setattr(
        and_or_search._AlternatingSearch,
        "begin_consistency",
        lambda self, number: begun.append((number, begin(self, number))) or begun[-1][1],
    )

    def search(**options):
        begun.clear()
        paused, limits = PausedSearch(), SearchLimits(rounds=0, first_turn=0.05, deadline=time.monotonic() + 1.0)
        found = searched_optimum(prepare(HARD, "mpe", {}), CheckedOptions(threads=1, **options), limits, paused=paused)
        assert found.lower_bound <= found.upper_bound
        return paused

    paused = search()
    numbers = [number for number, _ in begun]
    assert numbers == list(range(len(numbers)))
    assert paused.orders == numbers[-1] >= 1
    assert paused.order >= order
    assert paused.consistency is begun[paused.order][1]
    # A given order is the only one, and memory is for one search.
    for options in ({"order": tuple(range(30))}, {"memory": 1 << 29}):
        assert search(**options).orders == 0
        assert len(begun) == 1


def test_orders_of_soft_local_consistency(monkeypatch):
    problem = prepare(HARD, "mpe", {})
    found = elimination_order(problem, CheckedOptions(order="min-fill"))
    monkeypatch.setattr(ordering, "elimination_order", lambda *_: found)
    first, back, again, *others = [consistency_order(problem, CheckedOptions(), number) for number in range(5)]
    assert first == again == found == back[::-1]
    assert all(sorted(order) == sorted(problem.free) for order in others)
    assert len({first, back, *others}) == 4
    known = [consistency_order(problem, CheckedOptions(), number, problem.free) for number in range(3)]
    assert known == [problem.free, problem.free[::-1], found]
    assert consistency_order(problem, CheckedOptions(order=back), 3, problem.free) == back


@pytest.mark.usefixtures("minibuckets_alone")
def test_a_model_that_is_not_divided_is_planned_once(monkeypatch):
    made = []
    plan_within = mini_bucket_plans.plan_within
    monkeypatch.setattr(and_or_search, "plan_within", lambda *given: made.append(given) or plan_within(*given))
    assert calls.solve(grid_model(4, 3, 0.3), method="search", device="cpu").status == "optimal"
    assert len(made) == 1


def test_later_rounds_take_the_order_whose_minibuckets_bound_best(monkeypatch):
    problem = prepare(grid_model(8, 4, 0.0, seed=3), "mpe", {})
    limits = SearchLimits(messages=1e-6)
    search = and_or_search._AlternatingSearch(
        problem, CheckedOptions(device="cpu", order_seconds=0.01, threads=4), limits, None
    )
    memory, threads = search.remaining_shares().messages, []
    good = search.best_order(problem, (), 0.01)
    bad = tuple(sorted(good, key=lambda v: v % 7))
    costs = [search.first_cost(problem, order, search.options, memory) for order in (good, bad)]
    assert costs[0] != costs[1]
    better = good if costs[0] > costs[1] else bad
    for known, found in ((good, bad), (bad, good)):

        def order(_, options, found=found):
            threads.append(options.threads)
            return found

        monkeypatch.setattr(and_or_search, "elimination_order", order)
        assert search.best_order(problem, known, 0.01) == better
    assert set(threads) == {1}


def test_nodes_repeat():
    problem = prepare(grid_model(16, 3, 0.0, seed=3), "mpe", {})
    # Without a limit on nodes, local search is given some time, and what it finds differs.
    limits = SearchLimits(is_alone=True, rounds=1, nodes=10**6)
    # So does the order where its search has some time.
    options = CheckedOptions(device="cpu", threads=1, order_seconds=0.0)
    runs = [searched_optimum(problem, options, limits) for _ in range(2)]
    assert runs[0].status == "optimal"
    assert runs[0].stats["nodes"] == runs[1].stats["nodes"] > 100


def test_an_interruption_returns_what_is_known():
    timer = threading.Timer(1.5, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    result = calls.solve(HARD, method="search", device="cpu", order_seconds=0.1, time_limit=60)
    assert (result.status, result.ended_by) == ("bounded", "interrupt")
    assert result.stats["seconds"]["total"] < 30


def test_upper_bounds():
    model = random_model(12, 5, 0.5, 0.2, seed=4)
    best = calls.solve(model, method="eliminate", device="cpu").value
    for given_bound in (best, best + 7):
        result = calls.solve(model, method="search", upper_bound=given_bound, device="cpu")
        assert (result.status, result.value) == ("optimal", best)
    result = calls.solve(model, method="search", upper_bound=best - 1, device="cpu")
    assert (result.status, result.lower_bound, result.assignment) == ("infeasible", best, None)


def test_costs_that_search_cannot_add():
    model = Model.from_arrays([2, 2], [([0, 1], [[2**60, 0], [1, -(2**60)]])])
    with pytest.raises(UnsupportedError, match="search adds costs up to"):
        calls.solve(model, method="search", device="cpu")


@pytest.mark.parametrize("gap", [-0.1, math.inf, math.nan])
def test_bad_gaps(gap):
    with pytest.raises(InputError, match=r"^gap is"):
        calls.solve(HARD, method="search", gap=gap)


def test_auto_searches_where_nothing_fits():
    model = grid_model(14, 3, 0.0, seed=6)
    model = Model(model.variables, [Table(f.scope, f.values + 0.25) for f in model.factors])
    result = calls.solve(model, device="cpu", memory=4 << 20, slices="never", time_limit=60)
    assert result.stats["method"] == "search"
    assert result.status == "optimal"


def test_an_upper_bound_is_a_cost():
    """Each log score is below an upper bound of 0, which would make every assignment a worse one."""
    model = Model.from_arrays([2], [((0,), [0.2, 0.8])], sense="probability")
    for method in ("auto", "search"):
        with pytest.raises(UnsupportedError, match="the upper bound 0 is for costs, and this model has prob"):
            calls.solve(model, method=method, upper_bound=0)
    decimals = Model.from_arrays([2], [((0,), [0.2, 0.8])])
    with pytest.raises(UnsupportedError, match='integer costs; use method="search", or give no upper bound'):
        calls.solve(decimals, method="filter", upper_bound=1)
    for method in ("auto", "search"):
        assert calls.solve(decimals, method=method, upper_bound=1).value == 0.2


def test_a_bound_that_is_reached_but_for_rounding_stays_above_the_limit_of_the_core():
    """The core leaves out what is not better by one part in 10^9; sums are rounded by less than 10^-13."""
    for bound in (1.0, 5.0, 1e17, 3e300):
        core_limit = (bound + and_or_search.TOTAL_TOLERANCE * bound) * (1 - 1e-9)
        assert core_limit > bound * (1 + 1e-13)
