"""Restarted searches: complete, and no solution comes twice."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import cp
from tests import calls
from tests.cp.brute import found
from tests.cp.test_search import models, queens

VALUE_ORDERINGS = [
    "indomain_min",
    "indomain_random",
    "indomain_split",
    "indomain_interval",
    "outdomain_max",
    "indomain_middle",
]


@pytest.mark.parametrize("value_ordering", VALUE_ORDERINGS)
@pytest.mark.parametrize("variable_ordering", ["input_order", "first_fail", "dom_w_deg"])
@pytest.mark.parametrize("scale", [1, 3, 20])
def test_every_solution_once(value_ordering: str, variable_ordering: str, scale: int) -> None:
    model, xs = queens(6)
    model.search(xs, variable_ordering, value_ordering)
    assert len(found(model, xs, restarts="constant", restart_scale=scale, seed=scale)) == 4
    result = calls.search(model, all_solutions=True, restarts="constant", restart_scale=scale)
    assert result.stats["restarts"] > 0
    assert result.stats["nogoods"] > 0


@settings(max_examples=150, deadline=None)
@given(
    models(),
    st.sampled_from(["constant", "luby", "geometric", "linear"]),
    st.integers(1, 4),
    st.sampled_from(VALUE_ORDERINGS),
    st.booleans(),
)
def test_restarts_change_no_answer(
    made: tuple[cp.Model, int], restarts: cp.model.Restarts, scale: int, value_ordering: str, free: bool
) -> None:
    model, count = made
    xs = [cp.Expression(model, {i: 1}) for i in range(count)]
    plain = {tuple(s[xs]) for s in itertools.islice(model.solutions(), 300)}
    if len(plain) == 300:
        return
    model.search(xs, "dom_w_deg", value_ordering)
    options = {"restarts": restarts, "restart_scale": scale, "free": free}
    assert found(model, xs, **options) == plain
    model.minimize(sum(xs, start=0))
    best = calls.search(model, **options)
    assert best.value == (min(map(sum, plain)) if plain else None)
    assert best.stats["complete"]


@pytest.mark.parametrize("scale", [1, 10])
def test_an_infeasible_model_ends(scale: int) -> None:
    """More pigeons than holes, and restarts that never allow for more failures."""
    model = cp.Model()
    xs = model.int_vars(6, 0, 4)
    for x, y in itertools.combinations(xs, 2):
        model.add(x != y)
    model.search(xs, "input_order", "indomain_min")
    result = calls.search(model, restarts="constant", restart_scale=scale)
    assert result.status == "infeasible"
    assert result.stats["restarts"] > 10
    plain = model.solve()
    assert result.stats["failures"] <= 3 * plain.stats["failures"]


def test_what_is_refuted_is_not_searched_again() -> None:
    """The same rule after every restart: there are no more failures than without restarts."""
    model, xs = queens(8)
    model.search(xs, "input_order", "indomain_min")
    plain, restarted = (
        model.solve(all_solutions=True),
        calls.search(model, all_solutions=True, restarts="constant", restart_scale=7),
    )
    assert len(plain.solutions) == len(restarted.solutions)
    assert restarted.stats["restarts"] > 5
    assert restarted.stats["failures"] <= plain.stats["failures"]
