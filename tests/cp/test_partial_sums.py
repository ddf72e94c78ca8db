"""Sums as small tables, by partial sums and by digits: as many solutions as by looking at every assignment."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import cp
from elimina.cp import partial_sums, to_graphical

HOLDS = {"int_lin_eq": np.equal, "int_lin_ne": np.not_equal, "int_lin_le": np.less_equal}
DOMAIN = st.lists(st.integers(-9, 9), min_size=1, max_size=4, unique=True)


@pytest.mark.parametrize("most", [0, partial_sums._MAX_DENSE_CELLS], ids=["digits", "chain"])
@settings(max_examples=150, deadline=None)
@given(
    relation=st.sampled_from(sorted(HOLDS)),
    suffix=st.sampled_from(["", "_reif", "_imp"]),
    domains=st.lists(DOMAIN, min_size=1, max_size=5),
    factors=st.lists(st.integers(-12, 12), min_size=5, max_size=5),
    right=st.integers(-60, 60),
)
def test_the_count_of_a_sum(
    most: int, relation: str, suffix: str, domains: list[list[int]], factors: list[int], right: int
) -> None:
    model = cp.Model()
    xs = [model.int_var(values) for values in domains]
    control = [model.bool_var()] if suffix else []
    model.post(relation + suffix, factors[: len(xs)], xs, right, *control)
    grid = np.array(list(itertools.product(*domains)))
    holds = HOLDS[relation](grid @ np.array(factors[: len(xs)]), right)
    # With the Boolean false, an implication leaves everything open.
    expected = holds.sum() if not suffix else len(holds) + (holds.sum() if suffix == "_imp" else 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(to_graphical, "_MAX_ENUMERATED_CELLS", 0)
        patch.setattr(partial_sums, "_MAX_DENSE_CELLS", most)
        assert elimina.solve(model.to_model(), "count").value == expected


def test_a_knapsack_of_many_partial_sums_has_small_tables() -> None:
    rng = np.random.default_rng(0)
    weights, gains = rng.integers(100, 1000, size=(2, 40)).tolist()
    capacity = sum(weights) // 2
    model = cp.Model()
    taken = model.bool_vars(40)
    model.add(sum(w * x for w, x in zip(weights, taken, strict=True)) <= capacity)
    model.maximize(sum(g * x for g, x in zip(gains, taken, strict=True)))
    best = np.zeros(capacity + 1, np.int64)
    for weight, gain in zip(weights, gains, strict=True):
        best[weight:] = np.maximum(best[weight:], best[:-weight] + gain)
    result = elimina.solve(model.to_model())
    assert result.value == best[-1]
    assert result.stats["largest_table"] < 10 * capacity


@settings(max_examples=150, deadline=None)
@given(
    relations=st.lists(
        st.tuples(st.sampled_from(sorted(HOLDS)), st.sampled_from(["", "_reif", "_imp"]), st.integers(0, 2**32)),
        min_size=1,
        max_size=3,
    ),
    starts=st.lists(st.integers(-2, 2), min_size=4, max_size=8),
)
def test_search_finds_all_solutions_of_sums_of_two_values(relations, starts) -> None:
    """Such sums are kept up to date by what was fixed since the last call."""
    model = cp.Model()
    xs = [model.int_var([start, start + 1]) for start in starts]
    grid = np.array(list(itertools.product(*[(start, start + 1) for start in starts])))
    number = np.ones(len(grid), dtype=int)
    for relation, suffix, seed in relations:
        rng = np.random.default_rng(seed)
        factors = rng.integers(-3, 4, len(xs))
        sums = grid @ factors
        right = int(rng.integers(sums.min() - 1, sums.max() + 2))
        control = [model.bool_var()] if suffix else []
        model.post(relation + suffix, factors.tolist(), xs, right, *control)
        holds = HOLDS[relation](sums, right)
        number *= holds if not suffix else np.where(holds, 2 if suffix == "_imp" else 1, 1)
    assert sum(1 for _ in model.solutions()) == number.sum()


def test_a_sum_of_many_variables_copies_none_of_its_parts() -> None:
    """If each addition copied the terms, this would take minutes."""
    model = cp.Model()
    xs = model.bool_vars(60_000)
    total = sum(xs)
    assert len(total.terms) == len(xs)
    model.add(total - sum(xs[1:]) == 1)
    assert model.solve()[xs[0]] == 1


def test_sums_that_begin_alike() -> None:
    model = cp.Model()
    x, y, z = model.int_vars(3, 0, 9)
    start = x + y
    one, other = start + z, start - 2 * z + 1
    assert [str(e.terms) for e in (x, start, one, other, one - z, start - x)] == [
        "{0: 1}", "{0: 1, 1: 1}", "{0: 1, 1: 1, 2: 1}", "{0: 1, 1: 1, 2: -2}", "{0: 1, 1: 1}", "{1: 1}",
    ]  # fmt: skip
    assert (start + 1).constant == other.constant == 1
    assert x.name
    assert not start.name
