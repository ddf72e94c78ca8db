"""Large neighbourhood search: never a wrong answer, the optimum is still proven, and better tours come sooner."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import _core, cp
from tests import calls
from tests.cp.flatzinc_solver import solved
from tests.cp.test_search import golomb, models


@settings(max_examples=150, deadline=None)
@given(models(), st.booleans(), st.integers(1, 5), st.integers(0, 3))
def test_the_optimum_is_proven(made: tuple[cp.Model, int], free: bool, scale: int, seed: int) -> None:
    model, count = made
    xs = [cp.Expression(model, {i: 1}) for i in range(count)]
    plain = {tuple(s[xs]) for s in itertools.islice(model.solutions(), 300)}
    if len(plain) == 300:
        return
    model.maximize(xs[0] - xs[1] + 2 * xs[2])
    result = calls.search(model, lns=True, free=free, restarts="constant", restart_scale=scale, seed=seed)
    assert result.value == (max(s[0] - s[1] + 2 * s[2] for s in plain) if plain else None)
    assert result.stats["complete"]


def test_golomb() -> None:
    model, _ = golomb(7)
    result = calls.search(model, lns=True, restart_scale=20, restarts="luby")
    assert (result.status, result.value) == ("optimal", 25)
    assert result.stats["restarts"] > 2


def tour(count: int) -> tuple[cp.Model, list[cp.Expression]]:
    rng = random.Random(1)
    places = [(rng.randrange(1000), rng.randrange(1000)) for _ in range(count)]
    model = cp.Model()
    xs = model.int_vars(count, 0, count - 1)
    model.circuit(xs)
    lengths = [[round(((a - c) ** 2 + (b - d) ** 2) ** 0.5) for c, d in places] for a, b in places]
    model.minimize(sum((model.element(lengths[i], x) for i, x in enumerate(xs)), start=0))
    model.search(xs, "first_fail", "indomain_min")
    return model, xs


def test_tours_are_shorter_and_the_same_with_a_seed() -> None:
    model, xs = tour(30)
    plain = calls.search(model, fail_limit=5000, restarts="none")
    near = [calls.search(model, fail_limit=5000, lns=True, seed=seed) for seed in (1, 1, 2)]
    assert near[0].status == "feasible"
    assert near[0][xs] == near[1][xs]
    assert near[0].stats["nodes"] == near[1].stats["nodes"] != near[2].stats["nodes"]
    assert max(result.value for result in near) < 0.9 * plain.value


def test_without_an_objective_it_means_nothing() -> None:
    model = cp.Model()
    model.int_vars(3, 0, 2)
    assert len(calls.search(model, all_solutions=True, lns=True).solutions) == 27


TEXT = """array [1..5] of var 1..5: x :: output_array([1..5]); var 0..99: o :: output_var;
constraint fzn_all_different_int(x); constraint int_lin_eq([5,4,3,2,1,-1],[x[1],x[2],x[3],x[4],x[5],o],0);
solve :: int_search(x, input_order, indomain_max) :: restart_constant(2) {} {} o;"""


@pytest.mark.parametrize("share", [0, 50, 100])
def test_the_annotation(share: int) -> None:
    note = f":: relax_and_reconstruct(x, {share})"
    assert solved(TEXT.format(note, "minimize"))[-1]["o"] == 35
    assert solved(TEXT.format(note, "maximize"))[-1]["o"] == 55
    assert solved(TEXT.format("", "minimize"), relax=True)[-1]["o"] == 35


@pytest.mark.parametrize("share", ["101", "-1", "x", "0.5"])
def test_a_bad_share_is_refused(share: str) -> None:
    with pytest.raises(ValueError, match=r"3:.*from 0 to 100"):
        _core.FlatZinc(TEXT.format(f":: relax_and_reconstruct(x, {share})", "minimize").encode(), lambda: True)
