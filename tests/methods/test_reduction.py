"""Exact reductions of a network against brute force: the rest has the same optimum, and its solutions extend."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from elimina._core import FORBIDDEN_COST, Reduction
from tests.methods.test_soft_consistency import ONE, Costs, functions, variables


def reduced(costs):
    return Reduction(costs.sizes, *costs.functions, costs.order)


def rest_of(reduction):
    """Sizes, scopes and tables of the rest, its constant as a table over no variable."""
    rest = reduction.rest
    sizes, constant, starts, members, costs = rest.sizes, rest.constant, rest.starts, rest.members, rest.costs
    scopes = [part.tolist() for part in np.split(members, starts[1:-1])] if len(starts) > 1 else []
    cells = np.cumsum([int(np.prod([sizes[v] for v in scope])) for scope in scopes])
    tables = np.split(costs, cells[:-1]) if scopes else []
    return sizes, [[], *scopes], [np.array([constant]), *tables]


def cost_of(rest, value):
    """Return the cost of an assignment of the rest, infinite if it is forbidden."""
    sizes, scopes, tables = rest
    total = 0
    for scope, table in zip(scopes, tables, strict=True):
        cell = int(np.ravel_multi_index([value[v] for v in scope], [sizes[v] for v in scope])) if scope else 0
        if table[cell] >= FORBIDDEN_COST:
            return np.inf
        total += int(table[cell])
    return total


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(60))
def test_every_assignment_of_the_rest_costs_its_best_extension(seed, share):
    costs = Costs(seed, share=share, largest=4)
    reduction = reduced(costs)
    rest = rest_of(reduction)
    sizes = rest[0]
    kept = reduction.kept
    assert sizes == [costs.sizes[v] for v in kept]
    for value in itertools.product(*map(range, sizes)):
        index = [slice(None)] * len(costs.sizes)
        for v, x in zip(kept, value, strict=True):
            index[v] = x
        least = np.min(costs.total[tuple(index)])
        assert cost_of(rest, value) == least
        if np.isfinite(least):
            whole = reduction.extend(list(value))
            assert [whole[v] for v in kept] == list(value)
            assert costs.total[tuple(whole)] == least


def test_trees_and_cycles_leave_one_variable():
    rng = np.random.default_rng(0)
    for pairs in ([(i, i // 2) for i in range(1, 9)], [(i, (i + 1) % 9) for i in range(9)]):
        costs = Costs.none([3] * 9)
        for pair in pairs:
            costs.add(list(pair), rng.integers(0, 9, (3, 3)))
        reduction = reduced(costs)
        assert len(reduction.kept) == 1
        assert min(cost_of(rest_of(reduction), [x]) for x in range(3)) == costs.total.min()


def test_a_determined_variable_goes():
    costs = Costs.none([2] * 6)
    rng = np.random.default_rng(1)
    for pair in itertools.combinations(range(5), 2):
        costs.add(list(pair), rng.integers(0, 9, (2, 2)))
    for v in range(4):  # variable 5 is the negation of 4, and meets all others
        costs.add([v, 5], rng.integers(0, 9, (2, 2)))
    costs.add([4, 5], np.array([[FORBIDDEN_COST, 0], [0, FORBIDDEN_COST]]))
    sizes, scopes, _ = rest_of(reduced(costs))
    assert len(sizes) == 5
    assert max(map(len, scopes)) == 2


def test_a_function_loses_what_it_does_not_depend_on():
    costs = Costs.none([2] * 8)
    rng = np.random.default_rng(2)
    for scope in itertools.combinations(range(8), 3):
        costs.add(list(scope), np.repeat(rng.integers(1, 9, (2, 2, 1)), 2, axis=2))
    _, scopes, _ = rest_of(reduced(costs))
    assert {len(scope) for scope in scopes} <= {0, 1, 2}


def test_a_star_of_many_leaves_takes_no_longer_for_each():
    leaves = 30_000
    reduction = Reduction(
        [2] * (leaves + 1),
        *functions([[0, leaf] for leaf in range(1, leaves + 1)], [np.array([0, 1, 2, 0])] * leaves),
        list(range(leaves + 1)),
    )
    assert len(reduction.kept) == 1


@pytest.mark.parametrize(
    ("culprit", "error"),
    [({"order": [0]}, ValueError), ({"order": [0, 0]}, ValueError), (variables(0, 2), IndexError)],
)
def test_wrong_arguments_are_refused(culprit, error):
    good = dict(zip(("starts", "members", "costs"), ONE, strict=True)) | {"sizes": [2, 2], "order": [0, 1]}
    reduction = Reduction(**good)
    with pytest.raises(ValueError, match="other variables"):
        reduction.extend([0, 0, 0])
    with pytest.raises(IndexError):
        reduction.extend([2] * len(reduction.kept))
    with pytest.raises(error):
        Reduction(**(good | culprit))
