"""Parameters from data: counts, and expectation maximisation against enumeration."""

from __future__ import annotations

import math
import re
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import ImpossibleEvidenceError, InputError, MemoryLimitError, Model, TimeLimitError, learning
from elimina.io.cases import Cases
from tests import calls
from tests.devices import on_devices
from tests.methods.test_marginals import network_model
from tests.packages import installed
from tests.problem.test_relevance import networks
from tests.reference import expectation_maximisation as reference

CHAIN = {"a": [], "b": ["a"], "c": ["b"]}
STATES = {"a": ["x", "y"], "b": ["x", "y", "z"], "c": ["x", "y"]}


def random_rows(model, random, count, missing):
    values = np.stack([random.integers(0, size, count) for size in model.sizes], axis=1)
    return np.where(random.random(values.shape) < missing, -1, values)


def cases_of(rows):
    return Cases(tuple(range(rows.shape[1])), rows.astype(np.int32))


def check_iterations(model, rows, prior, **options):
    """Compare three iterations from the tables of the model."""
    tables = [np.array(factor.values) for factor in model.factors]
    scopes = [factor.scope for factor in model.factors]
    logs = []
    fit = calls.fit(model, cases_of(rows), prior=prior, start="model", max_iterations=3, tolerance=0, **options)
    for _ in fit.log_likelihoods:
        last = tables
        log, tables = reference.iteration(model.sizes, scopes, model.children, rows.tolist(), tables, prior)
        logs.append(log)
    assert fit.log_likelihoods == pytest.approx(logs, rel=1e-9, abs=1e-9)
    for factor, expected in zip(fit.model.factors, last, strict=True):
        np.testing.assert_allclose(factor.values, expected, rtol=0, atol=1e-9)


@on_devices
@settings(max_examples=60, deadline=None)
@given(network=networks(), seed=st.integers(0, 2**32), missing=st.floats(0.05, 1), prior=st.sampled_from([0, 0.5, 2]))
def test_iterations_are_those_of_enumeration(device, network, seed, missing, prior):
    model, random = network_model(network), np.random.default_rng(seed)
    rows = random_rows(model, random, int(random.integers(1, 40)), missing)
    # Complete data need no iteration.
    rows[0, 0] = -1
    check_iterations(model, rows, prior, device=device)


@settings(max_examples=60, deadline=None)
@given(networks(), st.integers(0, 2**32), st.sampled_from([0, 0.5]))
def test_each_iteration_improves(network, seed, prior):
    model, random = network_model(network), np.random.default_rng(seed)
    rows = random_rows(model, random, 30, 0.4)
    fit = calls.fit(model, cases_of(rows), prior=prior, max_iterations=20, seed=seed)
    slack = 1e-9 * (1 + abs(fit.log_posteriors[0]))
    assert all(
        after >= before - slack for before, after in zip(fit.log_posteriors, fit.log_posteriors[1:], strict=False)
    )
    assert prior or fit.log_likelihoods == fit.log_posteriors


@settings(max_examples=60, deadline=None)
@given(networks(), st.integers(0, 2**32), st.sampled_from([0, 1, 2.5]))
def test_complete_data_are_counted(network, seed, prior):
    model, random = network_model(network), np.random.default_rng(seed)
    rows = random_rows(model, random, 25, 0)
    fit = calls.fit(model, cases_of(rows), prior=prior)
    assert (fit.iterations, fit.converged) == (0, True)
    total = 0.0
    for factor, child in zip(fit.model.factors, model.children, strict=True):
        parents = [v for v in factor.scope if v != child]
        for row in rows:
            alike = rows[(rows[:, parents] == row[parents]).all(axis=1)]
            count = (alike[:, child] == row[child]).sum()
            share = (count + prior) / (len(alike) + prior * model.sizes[child])
            cell = factor.values[tuple(row[v] for v in factor.scope)]
            assert cell == pytest.approx(share, rel=1e-12)
            total += math.log(share)
    assert fit.log_likelihood == pytest.approx(total)


def pyagrum_learner(gum, network, frame):
    learner = gum.BNLearner(frame.astype("Int64").astype(str).replace("<NA>", "?"), network, ["?"])
    learner.useNoPrior()
    return learner


def check_tables(model, other):
    for factor, child in zip(model.factors, model.children, strict=True):
        same = other.factors[other.children.index(other.index(model.variables[child].name))]
        names = [other.variables[v].name for v in same.scope]
        axes = [names.index(model.variables[v].name) for v in factor.scope]
        np.testing.assert_allclose(factor.dense(), same.dense().transpose(axes), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(1, 5))
def test_iterations_are_those_of_pyagrum(seed):
    """Both start from the same tables, without noise."""
    gum = installed("pyagrum")
    pytest.importorskip("pandas")
    gum.initRandom(seed)
    network = gum.fastBN("a[2]->b[3]->d[2];a->c[2]->d;c->e[4];b->f[2]")
    frame = elimina.sample(network, 80, seed=seed).to_frame()
    gaps = frame.mask(np.random.default_rng(seed).random(frame.shape) < 0.3)
    network.generateCPTs()
    learner = pyagrum_learner(gum, network, gaps).useEMWithDiffCriterion(1e-12, noise=0)
    learner.EMsetMaxIter(6)
    theirs = elimina.from_pyagrum(learner.learnParameters(network))
    fit = calls.fit(network, gaps, prior=0, start="model", tolerance=0, max_iterations=6)
    assert fit.iterations == learner.EMnbrIterations() == 6
    check_tables(fit.model, theirs)
    evaluated = calls.fit(theirs, gaps, prior=0, start="model", max_iterations=0)
    assert evaluated.log_likelihood == pytest.approx(fit.log_likelihood, rel=1e-12)


def test_counts_are_those_of_pyagrum():
    gum = installed("pyagrum")
    pytest.importorskip("pandas")
    gum.initRandom(9)
    network = gum.fastBN("a[2]->b[3]->d[2];a->c[2]->d")
    frame = elimina.sample(network, 50, seed=2).to_frame()
    for prior in (0.5, 2):
        learner = pyagrum_learner(gum, network, frame).useSmoothingPrior(prior)
        check_tables(
            calls.fit(network, frame, prior=prior).model, elimina.from_pyagrum(learner.learnParameters(network))
        )


def test_tied_families_share_their_counts():
    random = np.random.default_rng(3)
    parents = {"h0": [], "h1": ["h0"], "h2": ["h1"], "e0": ["h0"], "e1": ["h1"], "e2": ["h2"]}
    states = {name: 2 if name.startswith("h") else 3 for name in parents}
    base = calls.fit(parents, {"e0": [0]}, states=states, max_iterations=0, seed=5).model
    groups = [["h1", "h2"], ["e0", "e1", "e2"]]
    by_child = {base.variables[child].name: number for number, child in enumerate(base.children)}
    values = [np.array(factor.values) for factor in base.factors]
    for group in groups:
        for name in group:
            values[by_child[name]] = values[by_child[group[0]]]
    factors = [elimina.Table(factor.scope, table) for factor, table in zip(base.factors, values, strict=True)]
    model = Model(base.variables, factors, sense="probability", children=base.children)
    rows = random_rows(model, random, 30, 0.3)
    rows[:, [model.index(name) for name in ("h0", "h1")]] = -1
    fit = calls.fit(model, cases_of(rows), prior=0.5, tied=groups, start="model", max_iterations=4, tolerance=0)
    tables = values
    scopes, numbers = [factor.scope for factor in factors], [[by_child[name] for name in group] for group in groups]
    for log in fit.log_likelihoods:
        last = tables
        expected, tables = reference.iteration(model.sizes, scopes, model.children, rows.tolist(), tables, 0.5, numbers)
        assert log == pytest.approx(expected, rel=1e-9)
    for factor, table in zip(fit.model.factors, last, strict=True):
        np.testing.assert_allclose(factor.values, table, atol=1e-9)
    for group in groups:
        tied = [fit.model.factors[by_child[name]].values for name in group]
        assert all(np.array_equal(table, tied[0]) for table in tied)


def test_a_latent_class_is_found():
    """Three noisy copies of a hidden bit: its distribution and their noise are identified."""
    random = np.random.default_rng(0)
    hidden = random.random(4000) < 0.3
    columns = {f"x{i}": np.where(random.random(4000) < 0.1, ~hidden, hidden) for i in range(3)}
    parents = {"hidden": [], **{name: ["hidden"] for name in columns}}
    fit = calls.fit(
        parents, columns, states={"hidden": 2}, prior=0, restarts=3, seed=1, max_iterations=500, tolerance=1e-9
    )
    assert fit.converged
    assert sorted(fit.model.factors[0].values) == pytest.approx([0.3, 0.7], abs=0.04)
    for factor in fit.model.factors[1:]:
        assert np.sort(factor.values, axis=None) == pytest.approx([0.1, 0.1, 0.9, 0.9], abs=0.04)


def test_restarts_keep_the_best():
    random = np.random.default_rng(7)
    rows = {name: random.integers(0, 3, 200) for name in "xyz"}
    parents = {"h": [], "x": ["h"], "y": ["h"], "z": ["h"]}
    states = {"h": 3, "x": 3, "y": 3, "z": 3}
    fits = [
        calls.fit(parents, rows, states=states, prior=0, restarts=count, seed=4, max_iterations=30)
        for count in (0, 2, 6)
    ]
    logs = [fit.log_likelihood for fit in fits]
    assert logs == sorted(logs)
    assert logs[2] > logs[0]
    again = calls.fit(parents, rows, states=states, prior=0, restarts=6, seed=4, max_iterations=30)
    assert again.log_likelihoods == fits[2].log_likelihoods
    assert again.start == fits[2].start > 0


def test_equal_rows_count_as_often_as_they_occur():
    few = {"a": ["x", "y", None], "b": ["x", None, "z"], "c": ["x", "x", "y"]}
    many = {
        name: [cell for cell, times in zip(cells, (5, 1, 30), strict=True) for _ in range(times)]
        for name, cells in few.items()
    }
    rows = [
        [STATES[name].index(cell) if cell else -1 for name, cell in zip("abc", row, strict=True)]
        for row in zip(*many.values(), strict=True)
    ]
    model = calls.fit(CHAIN, few, states=STATES, max_iterations=1).model
    check_iterations(model, np.array(rows), 1)


def test_states_come_from_the_data():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": ["n", "m", None], "b": pandas.Categorical(["lo", "hi", "lo"], ["lo", "mid", "hi"])})
    fit = calls.fit({"b": ["a"]}, frame)
    assert fit.model["a"].states == ("m", "n")
    assert fit.model["b"].states == ("lo", "mid", "hi")
    assert fit.model.parents("b") == ["a"]


def test_states_without_a_row_have_the_prior():
    fit = calls.fit({"a": []}, {"a": ["x", "x"]}, states={"a": ["x", "y", "z"]})
    assert fit.model.factors[0].values == pytest.approx([0.6, 0.2, 0.2])
    none = calls.fit(
        {"a": [], "b": ["a"]}, {"a": ["x"], "b": ["x"]}, states={"a": ["x", "y"], "b": ["x", "y"]}, prior=0
    )
    assert none.model.factors[1].values.tolist() == [[1, 0], [0.5, 0.5]]


def test_priors_by_variable():
    fit = calls.fit({"a": [], "b": []}, {"a": [0], "b": [0]}, states={"a": 2, "b": 2}, prior={"a": [1, 2]})
    assert [factor.values.tolist() for factor in fit.model.factors] == [[0.5, 0.5], [1, 0]]


def test_files_and_other_structures(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,b\nx,x\ny,?\ny,z\n")
    fit = calls.fit({"b": ["a"]}, path, states={"a": ["x", "y"], "b": ["x", "y", "z"]})
    again = calls.fit(fit.model, {"a": ["x", "y", "y"], "b": ["x", None, "z"]})
    assert again.log_likelihoods == pytest.approx(fit.log_likelihoods)
    elimina.write(fit.model, tmp_path / "fitted.bif")
    assert calls.fit(tmp_path / "fitted.bif", path).log_likelihood == pytest.approx(fit.log_likelihood)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"frame": {"a": []}}, "no rows"),
        ({"frame": {"a": ["x", "w"]}}, r"row 1: variable 'a' has no state 'w'"),
        ({"frame": {"a": ["x"], "d": ["x"]}}, "no variable 'd'"),
        ({"prior": -1}, "prior is -1"),
        ({"prior": {"a": [1, -1]}}, "prior of 'a' is -1"),
        ({"prior": float("inf")}, "prior is inf"),
        ({"prior": {"a": [1, 2, 3]}}, r"prior of 'a' has the shape \(3,\)"),
        ({"prior": {"d": 1}}, "no variable 'd'"),
        ({"tied": [["a", "b"]]}, "'a' and 'b' cannot be tied"),
        ({"tied": [["a"], ["a"]]}, "tied names variable 'a' twice"),
        ({"tolerance": -1}, "tolerance is -1"),
        ({"start": "random"}, "start"),
        ({"restarts": -1}, "restarts"),
        ({"tied": [["a", "q"]]}, "no variable 'q'"),
        ({"structure": {}}, "structure is empty"),
        ({"structure": {"a": [], "b": ["a", "a"]}}, r"parents of 'b' is \['a', 'a'\]"),
        ({"structure": {"a": ["b"], "b": ["a"]}, "states": {"a": 2, "b": 2}}, "a cycle of parents"),
        ({"states": {**STATES, "d": 2}}, "states names the variable 'd', which the structure lacks"),
        ({"structure": Model.from_cpds({"a": [0.5, 0.5]}), "states": {"a": 2}}, "omit states"),
        ({"frame": "data.csv", "states": None}, "the states of 'a' are unknown"),
        ({"max_iterations": -1}, "max_iterations"),
        ({"seed": -1}, "seed"),
        ({"states": {"a": 2}}, "column 'b' is missing or empty"),
    ],
)
def test_errors_name_the_culprit(arguments, problem):
    taken = {"structure": CHAIN, "frame": {"a": ["x"]}, "states": STATES, **arguments}
    with pytest.raises(InputError, match=problem):
        calls.fit(**taken)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"tied": "ab"}, "tied is 'ab' .*groups of variables"),
        ({"tied": 3}, "tied is 3 "),
        ({"tied": ["a", "b"]}, "a group of tied is 'a' "),
        ({"prior": "1"}, "prior is '1' "),
        ({"prior": [1, 2]}, r"prior is \[1, 2\] "),
        ({"prior": {"a": "1"}}, "prior of 'a' is '1' "),
        ({"prior": {"a": ["x", "y"]}}, r"prior of 'a' is \['x', 'y'\] "),
        ({"structure": {"a": "b"}}, "parents of 'a' is 'b' "),
        ({"structure": {1: []}}, "a variable of the structure is 1 "),
        ({"structure": None}, "None"),
        ({"frame": 3}, "cases is 3 "),
        ({"progress": 3}, "progress is 3 "),
        ({"seed": 1.5}, "seed is 1.5 "),
    ],
)
def test_wrong_types_are_named(arguments, problem):
    with pytest.raises(TypeError, match=problem):
        calls.fit(**{"structure": CHAIN, "frame": {"a": ["x"]}, "states": STATES, **arguments})


def test_a_memory_limit_says_what_is_enough():
    names = [f"v{i}" for i in range(7)]
    parents = {"leaf": names, **{name: [] for name in names}}
    rows, states = {"leaf": [0, 1, 0]}, dict.fromkeys(parents, 3)
    with pytest.raises(MemoryLimitError, match=r"memory=\"\d+KiB\" would be enough") as error:
        calls.fit(parents, rows, states=states, memory="20KiB", device="cpu")
    enough = re.search(r"memory=\"(\d+KiB)", str(error.value))[1]
    assert calls.fit(parents, rows, states=states, memory=enough, device="cpu", max_iterations=1).iterations == 1


def test_a_model_without_distributions_is_refused():
    model = Model.from_arrays([2], [((0,), [1, 3])], sense="probability")
    with pytest.raises(InputError, match="Bayesian network"):
        calls.fit(model, {"0": [1]})


def test_an_impossible_row_is_named():
    model = Model.from_cpds({"a": [0.5, 0.5], ("b", "a"): [[1.0, 0.0], [0.0, 1.0]]})
    rows = {"a": [0, None, 0], "b": [0, 1, 1]}
    model = Model.from_cpds(
        {"a": [0.5, 0.5], ("b", "a"): [[1.0, 0.0], [0.0, 1.0]], ("c", "b"): [[0.5, 0.5], [0.5, 0.5]]}
    )
    with pytest.raises(ImpossibleEvidenceError, match="row 2 has probability 0"):
        calls.fit(model, {**rows, "c": [0, None, None]}, start="model")
    assert calls.fit(model, {**rows, "c": [0, None, None]}).log_likelihood > -math.inf


def test_a_stop_returns_the_best_so_far():
    seen = []

    def stop(fit):
        seen.append(fit)
        if len(seen) == 3:
            raise KeyboardInterrupt

    random = np.random.default_rng(0)
    rows = {name: random.integers(0, 2, 50) for name in "xyz"}
    parents = {"h": [], "x": ["h"], "y": ["h"], "z": ["h"]}
    fit = calls.fit(parents, rows, states=dict.fromkeys("hxyz", 2), tolerance=0, max_iterations=10**6, progress=stop)
    assert (fit.ended_by, fit.converged, fit.iterations) == ("interrupt", False, 2)
    assert fit.log_likelihoods == seen[-1].log_likelihoods
    late = calls.fit(
        parents,
        rows,
        states=dict.fromkeys("hxyz", 2),
        tolerance=0,
        max_iterations=10**9,
        restarts=10**6,
        time_limit=2.0,
    )
    assert late.ended_by == "time-limit"


def test_a_time_limit_before_the_first_iteration_is_an_error(monkeypatch):
    def wait_for_the_end(*_, **__):
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(learning, "rows_of", wait_for_the_end)
    with pytest.raises(TimeLimitError):
        calls.fit({"x": []}, {"x": [0, 1]}, time_limit=0.01)


def test_it_says_what_it_is():
    fit = calls.fit(CHAIN, {"a": ["x", "y"], "b": [None, "z"]}, states=STATES, max_iterations=2, tolerance=0)
    assert repr(fit).splitlines()[0] == "Fit"
    assert "iterations:         2" in repr(fit)
    assert "max-iterations" in fit._repr_html_()


def test_a_structure_of_another_type_is_named():
    edges = [("rain", "wet")]
    with pytest.raises(
        TypeError, match=r"structure is \[\('rain', 'wet'\)\] \(list\); .* mapping from each variable to its p"
    ):
        elimina.fit(edges, {"rain": ["no"], "wet": ["no"]})


def test_whole_floats_are_integer_states():
    """pandas stores integers as floats if a cell of their column is missing."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [0, 1, None, 2, 1]})
    assert frame["a"].dtype == float
    model = elimina.fit({"a": []}, frame, prior=0).model
    assert model["a"].states == (0, 1, 2)
    np.testing.assert_allclose(model.factors[0].values, [0.25, 0.5, 0.25], atol=1e-3)


def test_states_of_arrow_tables():
    arrow = pytest.importorskip("pyarrow")
    columns = {"a": ["x", "y", None, "y"], "b": [1, 2, 3, 3]}
    model = elimina.fit({"a": [], "b": ["a"]}, arrow.table(columns)).model
    assert model["a"].states == ("x", "y")
    assert model["b"].states == (1, 2, 3)


def test_states_that_are_no_states_get_advice():
    with pytest.raises(InputError, match="a state is str, int or bool: divide numbers into intervals"):
        elimina.fit({"a": []}, {"a": [0.5, 0.25]})
