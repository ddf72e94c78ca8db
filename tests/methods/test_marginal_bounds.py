"""Bounds on the posterior of one variable hold, and estimates stay between them."""

from __future__ import annotations

import itertools
import json
import math
import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import Model, Result
from elimina.methods import marginal_bounds
from elimina.methods.marginal_bounds import improve_marginal_bounds, shares_between
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import prepare
from elimina.running.combination import combine
from tests import calls
from tests.random_models import models
from tests.reference import brute

MEMORY_BYTES = 1 << 24

LOGARITHMS = st.one_of(st.floats(-50, 50), st.just(-math.inf))


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_bounds_hold_for_any_model(data):
    model = data.draw(models("probability"))
    free = [v for v, size in enumerate(model.sizes) if size > 1]
    if not free:
        return
    variable = data.draw(st.sampled_from(free))
    observed = data.draw(st.sets(st.sampled_from(range(len(model.sizes))), max_size=1)) - {variable}
    evidence = {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in observed}
    logs = np.array(
        [brute.partition(model, {**evidence, variable: state}) for state in range(model.sizes[variable])]
    ) * math.log(10)
    if logs.max() == -math.inf:
        return
    exact = np.exp(logs - np.logaddexp.reduce(logs))
    options = CheckedOptions(threads=1, ibound=data.draw(st.sampled_from([1, 2])))
    problem = prepare(model, "pr", evidence)
    for ends in improve_marginal_bounds(problem, variable, options, MEMORY_BYTES, time.monotonic() + 5):
        assert (ends[:, 0] - 1e-12 <= exact).all()
        assert (exact <= ends[:, 1] + 1e-12).all()
    assert (ends[exact > 0, 1] > 0).all()


@given(st.lists(st.tuples(LOGARITHMS, st.floats(0, 5), st.floats(0, 5)), min_size=1, max_size=5))
def test_shares_are_between_their_bounds(numbers):
    logs = np.array([number for number, _, _ in numbers])
    if logs.max() == -math.inf:
        return
    exact = np.exp(logs - np.logaddexp.reduce(logs))
    ends = shares_between(logs - [below for _, below, _ in numbers], logs + [above for _, _, above in numbers])
    assert (ends[:, 0] <= exact).all()
    assert (exact <= ends[:, 1]).all()
    assert (ends >= 0).all()
    assert (ends <= 1).all()


def test_unknown_sums_leave_shares_open():
    ends = shares_between(np.array([-np.inf, 0.0]), np.array([np.inf, 0.0]))
    assert ends.tolist() == [[0.0, 1.0], [0.0, 1.0]]


@given(
    st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=5),
    st.lists(st.floats(0.01, 1), min_size=5, max_size=5),
)
def test_a_later_estimate_is_moved_between_bounds(exact_and_slack, weights):
    total = math.fsum(share for share, _, _ in exact_and_slack)
    bounds = {}
    for state, (share, below, above) in enumerate(exact_and_slack):
        share /= total
        bounds[state] = share - below * share, share + above * (1 - share)
    size = len(bounds)
    estimate = {state: weights[state] / math.fsum(weights[:size]) for state in range(size)}
    first = Result("estimated", "mar", marginals={"x": dict.fromkeys(range(size), 1 / size)}, error=0.5)
    known = first.replace(marginal_bounds={"x": bounds})
    moved = combine(known, first.replace(marginals={"x": estimate}, error=0.1), 1)
    assert moved.marginal_bounds == {"x": bounds}
    assert moved.error == 0.1
    shares = moved.marginals["x"]
    assert abs(math.fsum(shares.values()) - 1) < 1e-9
    for state, (low, high) in bounds.items():
        assert low - 1e-9 <= shares[state] <= high + 1e-9
    if all(low <= estimate[state] <= high for state, (low, high) in bounds.items()):
        assert np.allclose(list(shares.values()), list(estimate.values()))


def test_answers_show_bounds(monkeypatch):
    rng = np.random.default_rng(0)
    side, factors = 16, []
    for i, j in itertools.product(range(side), range(side)):
        factors.append(((i * side + j,), np.exp(rng.normal(0, 0.3, 2))))
        for a, b in ((i + 1, j), (i, j + 1)):
            if a < side and b < side:
                factors.append(((i * side + j, a * side + b), np.exp(rng.normal(0, 0.5, (2, 2)))))
    model = Model.from_arrays([2] * side**2, factors, sense="probability")

    def bounds(*_):
        yield np.array([[0.0, 1.0], [0.0, 1.0]])
        yield np.array([[0.9, 0.95], [0.05, 0.1]])

    monkeypatch.setattr(marginal_bounds, "improve_marginal_bounds", bounds)
    options = {"memory": 500_000, "time_limit": 3, "device": "cpu"}
    result = calls.solve(model, "mar", query=["x100"], **options)
    assert result.status == "estimated"
    assert result.marginal_bounds == {"x100": {0: (0.9, 0.95), 1: (0.05, 0.1)}}
    assert 0.9 <= result.marginals["x100"][0] <= 0.95
    assert "P(x100): 0 0.900000 to 0.950000, 1 0.050000 to 0.100000" in str(result)
    assert json.loads(result.to_json())["marginal_bounds"] == {"x100": {"0": [0.9, 0.95], "1": [0.05, 0.1]}}
    assert "marginal_bounds" not in json.loads(elimina.solve(model, "pr", evidence={"x100": 0}).to_json())
