"""Functions that depend on a count of values, and cliques of values that exclude each other, against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import Model
from elimina._core import FORBIDDEN_COST, ConsistencySearch, Reduction
from elimina.methods.soft_consistency import SoftConsistency
from elimina.problem.preparation import prepare
from tests.methods.test_soft_consistency import SHARES, Costs, check, functions, run


def excluding(costs, u, x, v, y, cost=0):
    """Forbid a pair of values; the others cost this."""
    table = np.full((2, 2), cost)
    table[x, y] = FORBIDDEN_COST
    costs.add([u, v], table)


def counting(costs, scope, by_count, counted):
    """Add a function of how many variables have their counted value."""
    hits = [np.array([1 - x, x]) for x in counted]
    number = sum((np.reshape(hit, [-1 if k == p else 1 for k in range(len(scope))]) for p, hit in enumerate(hits)))
    costs.add(scope, np.asarray(by_count)[number])


def packing(seed, share):
    """Random conflicts, functions of counts, and soft functions of binary variables and one with more values."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 11))
    costs = Costs.none([2] * count + [3])
    costs.order = [int(v) for v in rng.permutation(count + 1)]
    for v in range(count):
        costs.add([v], rng.integers(0, 20, 2))
    value = rng.integers(0, 2, count)
    for u, v in itertools.combinations(range(count), 2):
        if rng.random() < 0.7:
            flipped = rng.random(2) < 0.1
            excluding(costs, u, value[u] ^ flipped[0], v, value[v] ^ flipped[1], rng.choice([0, 0, 0, 2]))
    for _ in range(int(rng.integers(0, 4))):
        scope = [int(v) for v in rng.permutation(count)[: int(rng.integers(2, count + 1))]]
        by_count = rng.integers(0, 9, len(scope) + 1)
        by_count = np.where(rng.random(len(scope) + 1) < share, FORBIDDEN_COST, by_count)
        counting(costs, scope, by_count, rng.integers(0, 2, len(scope)))
    for _ in range(int(rng.integers(0, 4))):
        scope = [int(v) for v in rng.permutation(count + 1)[:3]]
        costs.add(scope, rng.integers(0, 9, [costs.sizes[v] for v in scope]))
    return costs


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    share=SHARES,
    slack=st.sampled_from([0, 0, 3]),
    threads=st.sampled_from([1, 2]),
    off=st.sampled_from([None, 0, 1, 5]),
)
def test_optimum(seed, share, slack, threads, off):
    costs = packing(seed, share)
    optimum = costs.total.min()
    upper = 10**6 if off is None or math.isinf(optimum) else int(optimum) + off
    found = run(costs.search(upper, slack=slack, threads=threads))
    assert found["done"]
    check(costs, found, upper)


def test_a_variable_whose_last_values_but_one_were_just_removed():
    """Existential support removes values of a variable, and goes on to its other functions."""
    costs = packing(335262, 0)
    assert run(costs.search(86))["bound"] == costs.total.min() == 84


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), share=SHARES, upper=st.sampled_from([20, 50, 10**6]))
def test_the_root_is_equivalent(seed, share, upper):
    """Every assignment that the search accepts is left, and keeps its cost."""
    costs = packing(seed, share)
    search = costs.search(upper)
    assert search.bound <= min(costs.total.min(), upper)
    if search.bound == upper:
        return
    kept = search.kept
    for value in itertools.product(*map(range, costs.sizes)):
        if costs.total[value] < upper:
            assert all(x in kept[v] for v, x in enumerate(value))
    for value in itertools.product(*kept):
        assert search.at_root(list(value)) == min(costs.total[value], FORBIDDEN_COST)


@pytest.mark.parametrize("counted", [0, 1])
def test_a_clique_keeps_all_costs_but_the_largest(counted):
    """Pairs alone bound half of the costs."""
    count = 12
    costs = Costs.none([2] * count)
    for u, v in itertools.combinations(range(count), 2):
        excluding(costs, u, counted, v, counted)
    weight = np.arange(count) + 5
    for v in range(count):
        costs.add([v], weight[v] * (np.arange(2) != counted))
    assert costs.search().bound == weight.sum() - weight.max() == costs.total.min()


def test_a_clique_beyond_the_largest_function():
    """70 values that exclude each other are more than one function has: the rest is left to the next ones."""
    sizes, scopes, tables = [2] * 70, [], []
    for u, v in itertools.combinations(range(70), 2):
        scopes.append([u, v])
        tables.append(np.array([0, 0, 0, FORBIDDEN_COST]))
    for v in range(70):
        scopes.append([v])
        tables.append(np.array([10 + v, 0]))
    found = run(ConsistencySearch(sizes, *functions(scopes, tables), list(range(70)), 0, 10**6, 1, 0, 1))
    assert found["done"]
    assert found["cost"] == sum(range(10, 79))
    assert found["value"] == [0] * 69 + [1]


def test_a_wide_function_of_a_count_bounds_at_once():
    """16,384 cells; exactly three of fourteen variables take the value."""
    count = 14
    costs = Costs.none([2] * count)
    rng = np.random.default_rng(3)
    counted = rng.integers(0, 2, count)
    counting(costs, list(range(count)), np.where(np.arange(count + 1) == 3, 0, FORBIDDEN_COST), counted)
    weight = rng.integers(1, 50, count)
    for v in range(count):
        costs.add([v], weight[v] * (np.arange(2) == counted[v]))
    assert costs.search().bound == np.sort(weight)[:3].sum() == costs.total.min()


def test_costs_of_packings_are_not_shifted():
    """Cliques bound more than shifted pairs do: the bound of the root is the optimum."""
    count = 9
    tables = [([v], np.array([10 + v, 0])) for v in range(count)]
    forbidden = np.array([[0, 0], [0, FORBIDDEN_COST]])
    tables += [([u, v], forbidden) for u, v in itertools.combinations(range(count), 2)]
    scopes, costs = [list(scope) for scope, _ in tables], [np.asarray(cells).reshape(-1) for _, cells in tables]
    assert Reduction([2] * count, *functions(scopes, costs), list(range(count))).is_packing
    soft = [np.where(np.arange(cells.size) == 1, 3, cells) for cells in costs]
    assert not Reduction([2] * count, *functions(scopes, soft), list(range(count))).is_packing
    table = np.where(forbidden > 0, np.inf, 0)
    model = Model.from_arrays(
        [2] * count, [(scope, cells if len(scope) == 1 else table) for scope, cells in tables], sense="min-cost"
    )
    search = SoftConsistency.of(prepare(model, "mpe", {}), list(range(count)), None, False, 1, 1 << 30, 1.0)
    assert search is not None
    assert search.bound == pytest.approx(sum(range(10, 10 + count - 1)))
