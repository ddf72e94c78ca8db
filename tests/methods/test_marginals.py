"""The task ``mar``: posteriors against brute force, and the choice between one tree and pruned eliminations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import elimina
from elimina.errors import InputError, MemoryLimitError, TimeLimitError
from elimina.generate import grid_model
from elimina.methods import junction_structure
from elimina.methods.junction_structure import choose_structure
from elimina.model.model import Model
from elimina.model.senses import convert_sense
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.relevance import Relevance
from tests import calls
from tests.problem.test_relevance import networks
from tests.random_models import models
from tests.reference import brute

pytestmark = pytest.mark.usefixtures("planned")


def solve(model, **options):
    return calls.solve(model, "mar", device="cpu", **options)


def network_model(network) -> Model:
    sizes, scopes, children, tables = network
    factors = [Table(scope, table) for scope, table in zip(scopes, tables, strict=True)]
    return Model([Variable(f"v{i}", s) for i, s in enumerate(sizes)], factors, sense="probability", children=children)


@st.composite
def weights_of(draw, model: Model) -> dict[int, list[float]]:
    """Some variables observed, some with likelihoods, zeros among them."""
    weights: dict[int, list[float]] = {}
    for v, size in enumerate(model.sizes):
        kind = draw(st.sampled_from(["free", "free", "hard", "soft"]))
        if kind == "hard":
            value = draw(st.integers(0, size - 1))
            weights[v] = [float(x == value) for x in range(size)]
        elif kind == "soft":
            weights[v] = draw(st.lists(st.sampled_from([0.0, 0.25, 1.0, 3.0]), min_size=size, max_size=size))
    return weights


def as_evidence(weights):
    """Observations as indices, likelihoods as arrays."""
    return {
        v: w.index(1.0) if sorted(w)[:-1] == [0.0] * (len(w) - 1) and max(w) == 1 else w for v, w in weights.items()
    }


def check(model, result, expected, tolerance=1e-9):
    log, posteriors = expected
    if log == -math.inf:
        assert (result.status, result.marginals, result.log10_z) == ("infeasible", None, -math.inf)
        return
    assert result.status == "exact"
    for name, values in result.marginals.items():
        v = model.index(name)
        assert list(values) == [model.variables[v].state(x) for x in range(model.sizes[v])]
        assert list(values.values()) == pytest.approx(posteriors[v], rel=0, abs=tolerance)
    if result.log10_z is not None:
        assert result.log10_z == pytest.approx(log / math.log(10), rel=tolerance, abs=tolerance)


def make_eager(patch):
    """Planning and search at no cost."""
    names = "PLANNED_FACTOR_SECONDS", "ESTIMATED_FACTOR_SECONDS", "COLLECTED_FACTOR_SECONDS", "COMPARED_SET_SECONDS"
    for name in names:
        patch.setattr(junction_structure, name, 0.0)


@pytest.fixture
def eager(monkeypatch):
    make_eager(monkeypatch)


@settings(max_examples=150, deadline=None)
@given(models("probability", max_cells=300), st.data())
def test_any_model(model, data):
    assume(model.variables)
    weights = data.draw(weights_of(model))
    result = solve(model, evidence=as_evidence(weights))
    check(model, result, brute.posteriors(model, weights))
    if result.status == "exact":
        assert list(result.marginals) == [v.name for v in model.variables]
        assert result.log10_z is not None


@settings(max_examples=200, deadline=None)
@given(networks(), st.data())
def test_networks_with_whatever_structure(network, data):
    """Planning and search at no cost make eliminations for groups win wherever there are several."""
    model = network_model(network)
    weights = data.draw(weights_of(model))
    query = data.draw(st.none() | st.lists(st.integers(0, len(model.sizes) - 1), min_size=1, unique=True))
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            make_eager(patch)
        result = solve(model, evidence=as_evidence(weights), query=query, dtype=dtype)
    expected = brute.posteriors(model, weights)
    if query is None or result.status == "infeasible" or expected[0] > -math.inf:
        check(model, result, expected, 1e-9 if dtype == "float64" else 1e-5)
    if result.status == "exact":
        names = range(len(model.sizes)) if query is None else query
        assert list(result.marginals) == [model.variables[v].name for v in names]
        assert query is not None or result.log10_z is not None


def naive_bayes(leaves: int, size: int) -> Model:
    """Leaves that each have two of the causes as parents, every pair of causes once: one tree joins all causes."""
    rng = np.random.default_rng(2)
    causes = 8
    pairs = [(i, j) for j in range(causes) for i in range(j)][:leaves]
    factors = [Table([i], rng.dirichlet(np.ones(size))) for i in range(causes)]
    factors += [Table([i, j, causes + n], rng.dirichlet(np.ones(3), (size, size))) for n, (i, j) in enumerate(pairs)]
    sizes = [size] * causes + [3] * len(pairs)
    variables = [Variable(f"v{i}", s) for i, s in enumerate(sizes)]
    return Model(variables, factors, sense="probability", children=range(len(sizes)))


def test_what_is_barren_for_each_query_is_left_out():
    model = naive_bayes(28, 9)
    result = solve(model)
    assert result.stats["structure"].endswith(" eliminations")
    assert result.stats["total_cells"] < 10**6 < 9**8
    assert result.log10_z == 0
    i, j = model.factors[-1].scope[:2]
    expected = np.einsum("a,b,abc->c", model.factors[i].values, model.factors[j].values, model.factors[-1].values)
    assert list(result.marginals["v35"].values()) == pytest.approx(expected, abs=1e-12)


def test_pruned_eliminations_know_the_evidence(eager):
    model = naive_bayes(28, 4)
    observed = {"v8": 0, "v9": [0.5, 0.1, 0.2]}
    result = solve(model, evidence=observed)
    assert result.stats["structure"].endswith(" eliminations")
    engine = elimina.JunctionTree(model, device="cpu")
    engine.set_evidence(observed)
    assert result.log10_z == pytest.approx(engine.log10_evidence, abs=1e-9)
    for name, expected in engine.marginals().items():
        assert list(result.marginals[name].values()) == pytest.approx(expected, abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(networks(), st.data())
def test_sets_of_factors_that_no_other_one_contains(network, data):
    model = network_model(network)
    evidence = data.draw(st.sets(st.integers(0, len(model.sizes) - 1)))
    relevance = Relevance([factor.scope for factor in model.factors], model.children, evidence)
    groups = {}
    for v in set(range(len(model.sizes))) - evidence:
        groups.setdefault(relevance.of((v,)), []).append(v)
    assume(groups)
    marks = {factors: relevance.mark(variables[0], factors) for factors, variables in groups.items()}
    found = junction_structure._grouped_queries(groups, marks, junction_structure._maximal(marks))
    largest = {one for one in groups if not any(one != other and one | other == other for other in groups)}
    assert [factors for factors, _ in found] == sorted(largest, key=lambda factors: (-factors.bit_count(), factors))
    holders = {v: factors for factors, variables in found for v in variables}
    assert sorted(holders) == sorted(v for variables in groups.values() for v in variables)
    for factors, variables in groups.items():
        around = min(other.bit_count() for other in largest if factors | other == other)
        assert all(factors | holders[v] == holders[v] and holders[v].bit_count() == around for v in variables)


def test_many_parts_with_the_same_factors_are_estimated_together(monkeypatch):
    """A dense part, and leaves below one of its causes: an estimate for each leaf would take longer than the run."""
    dense = naive_bayes(28, 9)
    leaves, first = 300, len(dense.sizes)
    rng = np.random.default_rng(3)
    more = [Table([0, first + n], rng.dirichlet(np.ones(2), 9)) for n in range(leaves)]
    variables = [*dense.variables, *(Variable(f"leaf{n}", 2) for n in range(leaves))]
    sizes = range(len(variables))
    model = Model(variables, [*dense.factors, *more], sense="probability", children=sizes)
    estimates = []
    count = junction_structure.cells_of_part
    monkeypatch.setattr(junction_structure, "cells_of_part", lambda *part: estimates.append(part) or count(*part))
    structure = choose_structure(model, {}, None, CheckedOptions())
    assert 1 < structure.trees < 40
    assert len(estimates) < 100


def test_estimates_of_structures_end_where_they_take_longer_than_they_save(monkeypatch):
    model = naive_bayes(28, 9)
    monkeypatch.setattr(
        junction_structure, "cells_of_part", lambda *_: pytest.fail("an estimate that is not worth its time")
    )
    monkeypatch.setattr(junction_structure, "ESTIMATED_FACTOR_SECONDS", 1.0)
    assert choose_structure(model, {}, None, CheckedOptions()).trees == 1


def test_evidence_of_every_effect_leaves_one_tree():
    model = naive_bayes(28, 3)
    result = solve(model, evidence={f"v{8 + n}": 0 for n in range(28)})
    assert result.stats["structure"] == "junction tree"


def test_a_given_order_is_one_tree():
    model = naive_bayes(10, 3)
    result = solve(model, order=range(18))
    assert result.stats["structure"] == "junction tree"
    assert result.log10_z == pytest.approx(0, abs=1e-12)


def test_a_query_leaves_out_what_it_does_not_depend_on():
    model = naive_bayes(28, 6)
    plan = elimina.plan(model, "mar", query=["v35"], device="cpu")
    assert len(plan.order) == 3
    assert solve(model, query=["v35"]).log10_z == 0
    far = solve(model, query=["v7"], evidence={"v8": 1})
    assert far.log10_z is None
    assert list(far.marginals["v7"].values()) == pytest.approx(model.factors[7].values)


def test_distributions_that_do_not_sum_to_one_are_not_left_out():
    factors = [Table([0], [0.5, 0.5]), Table([0, 1], [[0.9, 0.1], [0.2, 0.2]])]
    model = Model([Variable("a", 2), Variable("b", 2)], factors, sense="probability", children=[0, 1], check=False)
    assert solve(model, query=["a"]).marginals["a"][0] == pytest.approx(1 / 1.4)


def test_single_values_and_variables_in_no_table():
    model = Model.from_arrays({"a": 1, "b": 3, "c": 2}, [(["c"], [1.0, 3.0])], sense="probability")
    result = solve(model)
    assert result.marginals == {"a": {0: 1.0}, "b": pytest.approx(dict.fromkeys(range(3), 1 / 3)),
                                "c": {0: 0.25, 1: 0.75}}  # fmt: skip
    assert result.log10_z == pytest.approx(math.log10(12))


def test_everything_observed():
    model = naive_bayes(3, 2)
    result = solve(model, evidence=dict.fromkeys(range(11), 0))
    assert result.marginals["v0"] == {0: 1.0, 1: 0.0}
    expected = sum(math.log10(factor.values.flat[0]) for factor in model.factors)
    assert result.log10_z == pytest.approx(expected)


def test_likelihoods_in_the_other_tasks():
    model = naive_bayes(3, 2)
    weights = {0: [0.5, 2.0], 9: [0.0, 0.5, 0.0]}
    log, _ = brute.posteriors(model, weights)
    assert elimina.solve(model, "pr", evidence=weights).log10_z == pytest.approx(log / math.log(10))
    best = elimina.solve(model, "mpe", evidence=weights)
    chosen = [int(x) for x in best.assignment.values()]
    scores = {a: model.score(a) + math.log([0.5, 2.0][a[0]]) for a in brute.assignments(model) if a[9] == 1}
    assert best.value == pytest.approx(max(scores.values()) + math.log(0.5))
    assert tuple(chosen) == max(scores, key=scores.get)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"evidence": {"v0": [1, 2, 3]}}, "variable 'v0' has 2 states and got likelihoods of shape"),
        ({"evidence": {"v0": [1, -2]}}, "must be finite and not negative"),
        ({"evidence": {"v0": [1, 2], 0: 1}}, "evidence about variable 'v0' is given twice"),
        ({"evidence": {"v9": "x"}}, "variable 'v9' has no state 'x'"),
        ({"query": ["z"]}, "the model has no variable 'z'"),
        ({"task": "joint"}, "unknown task 'joint'; it is one of mpe, map, pr, partition"),
        ({"task": "pr", "query": ["v0"]}, "a query is for the tasks mar and mmap: leave it out for pr$"),
        ({"task": "MAP", "query": ["v0"]}, "leave it out for mpe, or take mmap, the best states of some variables"),
        ({"task": "count", "evidence": {"v0": [1, 2]}}, "which the task count cannot take"),
        ({"dtype": "int32"}, "dtype int32 does not fit sums of probabilities"),
    ],
)
def test_what_is_refused(options, problem):
    with pytest.raises(InputError, match=problem):
        calls.solve(naive_bayes(3, 2), **{"task": "mar", **options})


def test_advice_about_a_query_fits_the_model():
    costs = Model.from_arrays([2], [((0,), [1, 2])])
    with pytest.raises(InputError, match=r"leave it out for mpe$"):
        elimina.solve(costs, query=["x0"])


def test_costs_have_no_marginals():
    with pytest.raises(InputError, match=r"task mar sums probabilities.*sense='probability'"):
        solve(Model.from_arrays([2], [((0,), [1, 2])]))
    with pytest.raises(InputError, match="likelihoods, which a model with costs"):
        elimina.solve(Model.from_arrays([2], [((0,), [1, 2])]), evidence={0: [1.0, 2.0]})


def test_limits():
    model = convert_sense(grid_model(8, 4, 0.0, seed=1), "probability")
    with pytest.raises(MemoryLimitError, match="the plan needs"):
        solve(model, memory="10000B", exact=True)
    with pytest.raises(TimeLimitError):
        solve(model, time_limit=1e-4, exact=True)
