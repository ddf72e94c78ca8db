"""Assignments in the order of their values: beside brute force, by exact messages and by mini-buckets."""

from __future__ import annotations

import contextlib
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import InputError, MemoryLimitError, Model, Options, Table, UnsupportedError, Variable
from elimina.methods import best_assignments
from tests.reference import brute


def random_model(seed, sense, count=6):
    """A few variables, some of them in no table or with one value, with ties and forbidden assignments."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, count).tolist()
    factors = []
    for _ in range(count):
        scope = rng.permutation(count)[: rng.integers(1, 4)].tolist()
        shape = [sizes[v] for v in scope]
        if sense == "probability":
            values = rng.random(shape) * (rng.random(shape) < 0.9)
        else:
            values = rng.integers(0, 4, shape) if seed % 2 else rng.random(shape)
            forbidden = elimina.FORBIDDEN if values.dtype.kind == "i" else math.inf
            values = np.where(rng.random(shape) < 0.1, forbidden, values)
            values = values if sense == "min-cost" else -values
        factors.append((scope, values))
    bound = None
    if sense != "probability" and rng.random() < 0.3:
        bound = 8 if sense == "min-cost" else -8
    return Model.from_arrays(sizes, factors, sense=sense, upper_bound=bound)


def allowed(model, evidence=None):
    """The values of all allowed assignments by the indices of their states, the best first."""
    scores = dict(zip(brute.assignments(model, evidence), brute.scores_of(model, evidence), strict=True))
    kept = {a: x for a, x in scores.items() if math.isfinite(x) and not model.is_beyond_bound(x)}
    return dict(sorted(kept.items(), key=lambda pair: model.sign * pair[1]))


@pytest.fixture
def mini_buckets(monkeypatch):
    """No exact elimination fits, and messages are over one variable."""
    plan_on, plan_within = best_assignments.plan_on, best_assignments.plan_within
    plans = []

    def within(problem, order, options, *limits):
        plans.append(plan_within(problem, order, replace(options, ibound=1), *limits))
        return plans[-1]

    monkeypatch.setattr(best_assignments, "plan_on", lambda *args: plan_on(*args)._replace(memory_limit=-1))
    monkeypatch.setattr(best_assignments, "plan_within", within)
    return plans


@pytest.mark.parametrize("sense", ["min-cost", "max-cost", "probability"])
@given(seed=st.integers(0, 10**6), is_observed=st.booleans())
@settings(max_examples=60, deadline=None)
def test_all_assignments_in_the_order_of_their_values(sense, seed, is_observed):
    model = random_model(seed, sense)
    evidence = {seed % 6: seed % model.sizes[seed % 6]} if is_observed else {}
    expected = allowed(model, evidence)
    ranked = list(elimina.iterate_best(model, evidence=evidence))
    assert [value for value, _ in ranked] == pytest.approx(list(expected.values()), abs=1e-8)
    indices = [tuple(model.indices_of(assignment)) for _, assignment in ranked]
    assert len(set(indices)) == len(indices)
    for (value, _), chosen in zip(ranked, indices, strict=True):
        assert expected[chosen] == value
    if model.is_integer:
        assert all(type(value) is int for value, _ in ranked)


@pytest.mark.parametrize("sense", ["min-cost", "max-cost", "probability"])
def test_messages_that_do_not_fit_are_bounds(sense, mini_buckets):
    for seed in range(60):
        model = random_model(seed, sense)
        expected = allowed(model)
        ranked = list(elimina.iterate_best(model))
        assert [value for value, _ in ranked] == pytest.approx(list(expected.values()), abs=1e-8)
        assert len({tuple(assignment.values()) for _, assignment in ranked}) == len(expected)
    assert any(planned.plan.minibuckets is not None for planned in mini_buckets)


@given(seed=st.integers(0, 10**6), distance=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_each_differs_from_those_before(seed, distance):
    model = random_model(2 * seed + 1, "min-cost")
    remaining = allowed(model)
    ranked = list(elimina.iterate_best(model, distance=distance))
    for value, assignment in ranked:
        assert value == min(remaining.values())
        chosen = model.indices_of(assignment)
        assert remaining[tuple(chosen)] == value
        near = [a for a in remaining if sum(x != y for x, y in zip(a, chosen, strict=True)) < distance]
        for other in near:
            del remaining[other]
    assert not remaining


@given(seed=st.integers(0, 10**6), within=st.integers(0, 3), sense=st.sampled_from(["min-cost", "max-cost"]))
@settings(max_examples=40, deadline=None)
def test_all_within_a_distance_from_the_optimum(seed, within, sense):
    model = random_model(2 * seed + 1, sense)
    values = list(allowed(model).values())
    expected = [value for value in values if abs(value - values[0]) <= within]
    assert [value for value, _ in elimina.iterate_best(model, within=within)] == expected
    if within == 0 and values:
        assert elimina.solve(model, "count-optima").count == len(expected)


def test_all_optima_of_probabilities():
    model = Model.from_arrays([3, 3], [((0,), [0.1, 0.3, 0.3]), ((0, 1), np.full((3, 3), 1 / 3))], sense="probability")
    ranked = list(elimina.iterate_best(model, within=0))
    assert {(a["x0"], a["x1"]) for _, a in ranked} == set(itertools.product([1, 2], range(3)))
    assert [value for value, _ in ranked] == pytest.approx([math.log(0.1)] * 6)


def test_likelihoods_count():
    model = Model.from_arrays([2, 2], [((0, 1), [[4, 3], [2, 1]])], sense="probability")
    ranked = list(elimina.iterate_best(model, evidence={"x0": [0.2, 0.8]}))
    expected = sorted([0.8, 0.6, 1.6, 0.8], reverse=True)
    assert [math.exp(value) for value, _ in ranked] == pytest.approx(expected)


def best_of_chain(unary, pair, count):
    """The least sums along a chain, from lists of the least sums of its beginnings."""
    lists = [[cost] for cost in unary[0]]
    for costs in unary[1:]:
        lists = [
            sorted(total + pair[y, x] + cost for y, totals in enumerate(lists) for total in totals)[:count]
            for x, cost in enumerate(costs)
        ]
    return sorted(itertools.chain(*lists))[:count]


def test_the_best_of_long_chains():
    rng = np.random.default_rng(11)
    unary, pair = rng.integers(0, 50, (300, 4)), rng.integers(0, 50, (4, 4))
    factors = [((v,), costs) for v, costs in enumerate(unary)] + [((v, v + 1), pair) for v in range(299)]
    model = Model.from_arrays([4] * 300, factors)
    ranked = list(itertools.islice(elimina.iterate_best(model), 200))
    assert [value for value, _ in ranked] == best_of_chain(unary.tolist(), pair, 200)
    assert len({tuple(assignment.values()) for _, assignment in ranked}) == 200
    assert all(model.score(model.indices_of(assignment)) == value for value, assignment in ranked)


def test_ties_need_no_room():
    """A search that followed all ties at once would visit 2^200 of them."""
    model = Model.from_arrays([2] * 200, [((v, v + 1), np.zeros((2, 2))) for v in range(199)])
    ranked = list(itertools.islice(elimina.iterate_best(model), 50))
    assert [value for value, _ in ranked] == [0] * 50
    floats = Model.from_arrays([2] * 200, [((v, v + 1), np.full((2, 2), 0.1)) for v in range(199)])
    assert [value for value, _ in itertools.islice(elimina.iterate_best(floats), 50)] == pytest.approx([19.9] * 50)


def test_large_integers_are_told_apart():
    rng = np.random.default_rng(2)
    costs = [int(x) + 3 * 10**14 * (n % 3) for n, x in enumerate(rng.integers(0, 3, 24))]
    model = Model.from_arrays([3] * 3, [((v,), costs[3 * v : 3 * v + 3]) for v in range(3)])
    assert [value for value, _ in elimina.iterate_best(model)] == list(allowed(model).values())
    huge = Model.from_arrays([2] * 2, [((v,), [0, 2**53 - v]) for v in range(2)])
    with pytest.raises(UnsupportedError, match=r"compares costs up to 9,007,.*: scale the costs down"):
        next(iter(elimina.iterate_best(huge)))


def test_models_without_assignments_or_variables():
    forbidden = Model.from_arrays([2], [((0,), [math.inf, math.inf])])
    assert list(elimina.iterate_best(forbidden)) == []
    impossible = Model.from_arrays([2], [((0,), [0.0, 1.0])], sense="probability")
    assert list(elimina.iterate_best(impossible, evidence={"x0": 0})) == []
    assert list(elimina.iterate_best(Model([], [Table([], 3)]))) == [(3, {})]
    lonely = Model([Variable("a", 2, ["x", "y"]), Variable("b", 1)], [])
    assert list(elimina.iterate_best(lonely)) == [(0, {"a": "x", "b": 0}), (0, {"a": "y", "b": 0})]


def test_the_search_keeps_the_memory_limit(monkeypatch):
    monkeypatch.setattr(best_assignments, "host_memory", lambda options: 20_000)
    model = Model.from_arrays([4] * 30, [((v, v + 1), np.eye(4)) for v in range(29)])
    with pytest.raises(MemoryLimitError, match="the paths of the search for the best assignments take more than 19"):
        list(elimina.iterate_best(model))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"within": -1}, InputError, "within is -1; it must not be negative"),
        ({"within": "1"}, TypeError, "within is '1'"),
        ({"distance": 0}, InputError, "distance is 0"),
        ({"evidence": {"x9": 0}}, InputError, "no variable 'x9'"),
        ({"options": Options(slices=2)}, InputError, "elimina.iterate_best does not take the option slices"),
    ],
)
def test_wrong_arguments(arguments, error, message):
    model = Model.from_arrays([2], [((0,), [1, 2])])
    with pytest.raises(error, match=message):
        list(elimina.iterate_best(model, **arguments))


def cancelling_model(size: float) -> Model:
    """Return a model whose large costs cancel in four of its assignments, worth 1, 4, 5 and 5."""
    tables = [
        (("a", "b"), [[size, 0.0], [0.0, size]]),
        (("b", "c"), [[-size, 0.0], [3.0, -size]]),
        (("a",), [1.0, 0.0]),
        (("c",), [0.0, 5.0]),
    ]
    return Model.from_arrays({"a": 2, "b": 2, "c": 2}, tables)


@pytest.mark.parametrize("size", [0.0, 7.0, 1e3, 1e13, 1e200])
def test_assignments_are_in_order_or_rounding_is_said_to_hide_it(size: float) -> None:
    model = cancelling_model(size)
    expected = sorted(model.score(list(x)) for x in itertools.product(range(2), repeat=3))
    found = elimina.solve(model, "kbest", k=8, device="cpu")
    values = [row.value for row in found.ranked]
    assert values == expected[: len(values)]
    assert found.lower_bound <= expected[0] <= found.upper_bound
    assert found.status == ("optimal" if size < 1e13 else "bounded")
    assert len(values) == (8 if size < 1e13 else 2)
    listed = []
    search = elimina.iterate_best(model, device="cpu")
    with (
        pytest.raises(UnsupportedError, match="rounding hides the order") if size >= 1e13 else contextlib.nullcontext()
    ):
        listed.extend(row.value for row in search)
    assert listed == values


def test_the_best_assignment_that_rounding_hides_has_bounds() -> None:
    tables = [((0, 1), [[1e200, 3.0], [5.0, 1e200]]), ((0, 1), [[-1e200, 7.0], [2.0, -1e200]]), ((0,), [-1.0, 0.0])]
    model = Model.from_arrays([2, 2], tables)
    scores = [model.score(list(x)) for x in itertools.product(range(2), repeat=2)]
    found = elimina.solve(model, "kbest", k=4, device="cpu")
    assert (found.status, found.ranked) == ("bounded", ())
    assert found.value in scores
    assert found.lower_bound <= min(scores) <= found.upper_bound == found.value
