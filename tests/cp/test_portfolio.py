"""The default search: optima are proven, bounds hold at any time, and each stretch of the schedule is reached."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import Bounds, InputError, _core, cp
from elimina.cp import bound_schedule, flatzinc_bounds
from elimina.strategies.clock import Clock
from tests import calls
from tests.cp.test_search import golomb, models


@settings(max_examples=150, deadline=None)
@given(models(), st.sampled_from([1, 2, 10]), st.integers(0, 3), st.sampled_from([1, 1, 2]), st.integers(0, 30))
def test_bounds_never_cross_the_optimum(
    made: tuple[cp.Model, int], scale: int, seed: int, threads: int, fail_limit: int
) -> None:
    model, count = made
    xs = [cp.Expression(model, {i: 1}) for i in range(count)]
    plain = {tuple(s[xs]) for s in itertools.islice(model.solutions(), 300)}
    if len(plain) == 300:
        return
    model.maximize(xs[0] - xs[1] + 2 * xs[2])
    best = max((s[0] - s[1] + 2 * s[2] for s in plain), default=None)
    for limit in (None, fail_limit):
        reported: list[Bounds] = []
        result = calls.search(
            model, restart_scale=scale, seed=seed, threads=threads, fail_limit=limit, on_bounds=reported.append
        )
        if limit is None:
            assert result.stats["complete"]
            assert (result.status, result.value) == (("infeasible", None) if best is None else ("optimal", best))
        for lower, upper in [(b.lower, b.upper) for b in reported] + [(result.lower_bound, result.upper_bound)]:
            assert best is None or lower is None or lower <= best
            assert best is None or upper is None or upper >= best
        assert [b.upper for b in reported] == sorted((b.upper for b in reported), reverse=True)


def knapsack(rng: random.Random, count: int) -> tuple[cp.Model, int]:
    """A knapsack, and its optimum by dynamic programming."""
    weights = [rng.randint(20, 200) for _ in range(count)]
    values = [w + rng.randint(-15, 30) for w in weights]
    capacity = sum(weights) // 2
    best = [0] * (capacity + 1)
    for w, v in zip(weights, values, strict=True):
        best = [max(b, best[c - w] + v if c >= w else b) for c, b in enumerate(best)]
    model = cp.Model()
    taken = model.bool_vars(count)
    model.add(model.sum(w * x for w, x in zip(weights, taken, strict=True)) <= capacity)
    model.maximize(model.sum(v * x for v, x in zip(values, taken, strict=True)))
    return model, best[-1]


@pytest.mark.parametrize("seed", range(3))
def test_elimination_proves_knapsacks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tuple(row._replace(seconds=(60.0, 60.0)) for row in bound_schedule.BOUND_ROWS)
    monkeypatch.setattr(bound_schedule, "BOUND_ROWS", rows)
    model, best = knapsack(random.Random(seed), 40)
    result = model.solve(options=cp.SearchOptions(fail_limit=10_000))
    assert (result.status, result.value, result.gap) == ("optimal", best, 0)
    assert result.lower_bound == result.upper_bound == best


@pytest.mark.parametrize(("size", "is_eliminated"), [(5, True), (30, False)])
def test_cliques_beyond_memory_are_not_eliminated(size: int, is_eliminated: bool) -> None:
    m = cp.Model()
    xs = m.int_vars(size, 1, size)
    m.all_different(xs)
    m.minimize(m.sum(i * x for i, x in enumerate(xs)))
    assert is_applied(m, "elimination of tables") == is_eliminated


@pytest.mark.parametrize(("size", "is_eliminated"), [(8, True), (20, False)])
def test_dense_graphs_are_not_eliminated(size: int, is_eliminated: bool) -> None:
    """A chain of 200 variables is eliminated at once; differences of all pairs of variables need a table over them."""
    m = cp.Model()
    chain, xs = m.int_vars(200, 0, 9), m.int_vars(size, 1, size)
    for x, y in [*itertools.pairwise(chain), *itertools.combinations(xs, 2)]:
        m.add(x != y)
    m.minimize(m.sum([*chain, *xs]))
    assert is_applied(m, "elimination of tables") == is_eliminated


def paused(model: cp.Model, pauses: int) -> bound_schedule.PausedSearch:
    solver, _ = model._build()
    assert solver.propagate()
    return bound_schedule.PausedSearch(model.posted(), solver, model.objective, 1, None, Clock(), pauses)


def is_applied(model: cp.Model, name: str) -> bool:
    (row,) = (row for row in bound_schedule.BOUND_ROWS if row.name == name)
    return row.applies(paused(model, 0))


def test_large_relaxations_of_a_last_mark_wait_for_the_second_pause() -> None:
    model, _ = golomb(9)
    assert not [*bound_schedule.findings_of(paused(model, 0))]
    assert [finding.lower_bound for finding in bound_schedule.findings_of(paused(model, 1))] != [None]
    model.minimize(model.sum(cp.Expression(model, {i: 1}) for i in range(4)))
    assert [*bound_schedule.findings_of(paused(model, 0))]


def test_bounds_do_not_depend_on_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a loaded machine, seconds pass between two steps of an ascent."""
    model, _ = knapsack(random.Random(1), 40)
    seconds = itertools.count()
    bounds = []
    for clock in (time.monotonic, lambda: float(next(seconds))):
        monkeypatch.setattr(time, "monotonic", clock)
        bounds.append(next(bound_schedule.findings_of(paused(model, 0))).lower_bound)
    assert bounds[0] == bounds[1]


def test_the_gap_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    # Targets alone: other methods may prove the optimum first.
    monkeypatch.setattr(bound_schedule, "BOUND_ROWS", ())
    model, _ = golomb(8)
    result = calls.search(model, gap="40%")
    assert result.ended_by == "gap"
    assert result.status == "feasible"
    assert 0 < result.gap <= 0.4
    assert "gap" not in (model.solve(options=cp.SearchOptions(fail_limit=50)).ended_by or "")


@pytest.mark.parametrize(("name", "value"), [("gap", -1), ("gap", "much"), ("on_bounds", 3)])
def test_wrong_options_are_named(name: str, value: object) -> None:
    model, _ = golomb(4)
    with pytest.raises((InputError, TypeError), match=name):
        calls.search(model, **{name: value})


def test_targets_are_refuted_where_propagation_is_weak() -> None:
    model, _ = golomb(8)
    root = model.solve(options=cp.SearchOptions(node_limit=1))
    result = calls.search(model, restart_scale=10, fail_limit=1500)
    assert root.lower_bound < result.lower_bound <= 34 <= result.upper_bound


def test_enumeration_does_not_restart() -> None:
    model = cp.Model()
    xs = model.int_vars(7, 0, 6)
    model.all_different(xs)
    model.all_different([x + i for i, x in enumerate(xs)])
    model.all_different([x - i for i, x in enumerate(xs)])
    result = calls.search(model, all_solutions=True, restart_scale=1)
    assert (len(result.solutions), result.stats["restarts"]) == (40, 0)
    assert calls.search(model, restart_scale=1).status == "feasible"


def test_threads_race_and_split() -> None:
    model, _ = golomb(8)
    result = calls.search(model, threads=3)
    assert (result.status, result.value, result.lower_bound) == ("optimal", 34, 34)


def test_an_adopted_solution_has_to_be_improved() -> None:
    model, _ = golomb(5)
    solution = model.solve().assignment
    solver, objective = model._build()
    search = _core.CpSearch((solver,), [], objective, None, None, False, 0, 60.0, 1e9, 1e9)
    search.adopt(solution._values.tolist())
    assert search.next(lambda: True) == "complete"
    assert search.bound() == 11


MODEL = b"""
var 0..9: a;
var 0..9: b;
var 0..9: c;
var 0..9: d;
var 0..36: total :: output_var;
constraint int_lin_eq([1,1,1,1,-1], [a,b,c,d,total], 0);
constraint int_lin_le([-2,-3,-1,-5], [a,b,c,d], -31);
solve minimize total;
"""


def test_flatzinc_has_a_bound() -> None:
    model = _core.FlatZinc(MODEL, lambda: True)
    search = model.search(False, 0, 60.0, 1, False, lambda: True, True)
    while search.next(lambda: True) == "solution":
        pass
    assert model.objective(search) == model.bound(search) == 7


class CountedModel:
    """A FlatZinc model that counts its records, and says how long its text took to parse."""

    def __init__(self, model: _core.FlatZinc, parse_seconds: float) -> None:
        self._model, self.parse_seconds, self.records = model, parse_seconds, 0

    def record(self, may_continue: Callable[[], bool]) -> _core.FlatZincRecord:
        self.records += 1
        return self._model.record(may_continue)


def test_pauses_of_a_flatzinc_search_share_a_record() -> None:
    model = _core.FlatZinc(MODEL, lambda: True)
    search = model.search(False, 0, 60.0, 1, False, lambda: True, True)
    counted = CountedModel(model, 0.0)
    bounds = flatzinc_bounds.FlatZincBounds(counted, lambda: True)
    for _ in range(2):
        assert not bounds.add(search, None, math.inf)
        assert model.bound(search) == 7
    assert counted.records == 1


def test_nothing_is_recorded_shortly_before_the_time_limit() -> None:
    model = _core.FlatZinc(MODEL, lambda: True)
    search = model.search(False, 0, 60.0, 1, False, lambda: True, True)
    # A text that took 1 s to parse takes longer than 3 s to record.
    assert not flatzinc_bounds.FlatZincBounds(CountedModel(model, 1.0), lambda: True).add(search, None, 3.0)
    assert model.bound(search) is None


def test_an_interrupt_ends_a_record() -> None:
    model = _core.FlatZinc(MODEL, lambda: True)
    search = model.search(False, 0, 60.0, 1, False, lambda: True, True)
    assert not flatzinc_bounds.FlatZincBounds(model, lambda: False).add(search, None, math.inf)
    assert model.bound(search) is None


FLOATS = b"""
var 0..1: a :: output_var;
var 0..1: b :: output_var;
var 0..1: c :: output_var;
var 0.0..1.0: x;
var 0.0..1.0: y;
var 0.0..1.0: z;
var 0.0..100.0: worth :: output_var;
constraint int_lin_le([2, 3, 4], [a, b, c], 6);
constraint int2float(a, x);
constraint int2float(b, y);
constraint int2float(c, z);
constraint float_lin_eq([1.5, 2.25, 3.5, -1.0], [x, y, z, worth], 0.0);
solve maximize worth;
"""


def test_a_float_objective_is_bounded_while_its_search_pauses() -> None:
    """The relaxation of this knapsack takes whole items, so its bound is the optimum, 5."""
    model = _core.FlatZinc(FLOATS, lambda: True)
    search = model.search(False, 0, 60.0, 1, False, lambda: True, True)
    unit = 10**model.objective_decimals
    before = model.bound(search)
    assert before is None or before > 5 * unit
    assert not flatzinc_bounds.FlatZincBounds(model, lambda: True).add(search, None, math.inf)
    assert model.bound(search) == 5 * unit


@pytest.mark.parametrize(("points", "size", "index"), [(7, 3, 1), (6, 3, 2), (6, 3, 8)])
def test_without_an_objective_old_failures_count_as_much_as_new_ones(points: int, size: int, index: int) -> None:
    """The default is then the free search, which finds block designs within a few thousand nodes."""
    blocks = index * points * (points - 1) // (size * (size - 1))
    model = cp.Model()
    rows = [model.bool_vars(blocks) for _ in range(points)]
    columns = list(zip(*rows, strict=True))
    for row in rows:
        model.add(model.sum(row) == blocks * size // points)
    for column in columns:
        model.add(model.sum(column) == size)
    for left, right in itertools.combinations(rows, 2):
        products = model.bool_vars(blocks)
        for product, x, y in zip(products, left, right, strict=True):
            model.add(product == x * y)
        model.add(model.sum(products) == index)
    for lines in (rows, columns):
        for line, following in itertools.pairwise(lines):
            model.lex_lesseq(line, following)
    result = model.solve(options=cp.SearchOptions(node_limit=20_000))
    assert result.status == "feasible"
    assert result.stats["nodes"] == model.solve(options=cp.SearchOptions(free=True)).stats["nodes"]
