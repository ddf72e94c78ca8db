"""Graphs of Bayesian networks beside their definitions: families, d-separation by paths, and interventions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import InputError, JunctionTree, Model, StateIndex, solve

ARROWS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] < pair[1]), max_size=10)


def network(arrows, seed=0, size=2, order=None):
    """A network over six variables with these arrows, its variables and axes in any order."""
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in (order or range(6))]
    factors = []
    for child in range(6):
        scope = [*sorted({a for a, b in arrows if b == child}), child]
        values = rng.dirichlet(np.ones(size), [size] * (len(scope) - 1))
        axes = rng.permutation(len(scope))
        factors.append(([f"v{scope[a]}" for a in axes], np.transpose(values, axes)))
    sizes = dict.fromkeys(names, size)
    return Model.from_arrays(sizes, factors, sense="probability", children=[f"v{i}" for i in range(6)])


def active_paths(arrows, start, end, observed):
    """Return whether a path is active, by all paths of the graph and the variables on them (Pearl 1988)."""
    arrows = set(arrows)
    neighbours = {v: {b for a, b in arrows if a == v} | {a for a, b in arrows if b == v} for v in range(6)}

    def descendants(v):
        return {v}.union(*(descendants(b) for a, b in arrows if a == v))

    def paths(path):
        if path[-1] == end:
            yield path
            return
        for v in neighbours[path[-1]] - set(path):
            yield from paths([*path, v])

    for path in paths([start]):
        is_open = True
        for before, v, after in zip(path, path[1:], path[2:], strict=False):
            is_collider = (before, v) in arrows and (after, v) in arrows
            is_open &= bool(descendants(v) & observed) if is_collider else v not in observed
        if is_open:
            return True
    return False


@settings(max_examples=150, deadline=None)
@given(ARROWS, st.permutations(range(6)), st.permutations(range(6)), st.integers(1, 3), st.integers(1, 3))
def test_d_separation_is_that_of_all_paths(arrows, order, chosen, count, other_count):
    model = network(arrows, order=order)
    one, other = set(chosen[:count]), set(chosen[count : count + other_count])
    for observed in itertools.chain.from_iterable(
        itertools.combinations(chosen[count + other_count :], n) for n in range(7)
    ):
        expected = not any(active_paths(arrows, a, b, set(observed)) for a in one for b in other)
        names = [[f"v{v}" for v in part] for part in (one, other, observed)]
        assert model.is_d_separated(names[0], names[1], given=names[2]) == expected
        assert model.is_d_separated(names[1], names[0], names[2]) == expected


@settings(max_examples=60, deadline=None)
@given(ARROWS, st.permutations(range(6)), st.integers(0, 5))
def test_families_are_those_of_the_arrows(arrows, order, v):
    model, arrows = network(arrows, order=order), set(arrows)
    parents = {f"v{a}" for a, b in arrows if b == v}
    children = {b for a, b in arrows if a == v}
    ancestors = set()
    for _ in range(6):
        ancestors |= {a for a, b in arrows if b == v or b in ancestors}
    spouses = {f"v{a}" for a, b in arrows if b in children} - {f"v{v}"}
    assert set(model.parents(f"v{v}")) == parents
    assert set(model.children_of(f"v{v}")) == {f"v{b}" for b in children}
    assert set(model.ancestors(f"v{v}")) == {f"v{a}" for a in ancestors}
    assert set(model.markov_blanket(f"v{v}")) == parents | {f"v{b}" for b in children} | spouses
    others = set(model.markov_blanket(f"v{v}"))
    rest = {u.name for u in model.variables} - others - {f"v{v}"}
    assert not rest or model.is_d_separated(f"v{v}", rest, given=others)


@settings(max_examples=60, deadline=None)
@given(ARROWS, st.integers(0, 10**6), st.permutations(range(6)), st.integers(1, 3), st.data())
def test_interventions_are_truncated_products(arrows, seed, order, count, data):
    model = network(arrows, seed, size=3, order=order)
    states = {f"v{v}": data.draw(st.integers(0, 2)) for v in order[:count]}
    evidence = {f"v{v}": 0 for v in order[count : count + data.draw(st.integers(0, 2))]}
    names = [v.name for v in model.variables]
    full = np.ones((3,) * 6)
    for factor, child in zip(model.factors, model.children, strict=True):
        if names[child] not in states:
            axes = np.argsort(factor.scope)
            full = full * np.transpose(factor.dense(), axes).reshape([3 if v in factor.scope else 1 for v in range(6)])
    for name, x in (*states.items(), *evidence.items()):
        mask = np.zeros(3)
        mask[x] = 1
        full = full * mask.reshape([3 if names[v] == name else 1 for v in range(6)])
    changed = model.do(states)
    result = solve(changed, "mar", evidence=evidence)
    assert result.log10_z == pytest.approx(math.log10(full.sum()), abs=1e-12)
    for v, name in enumerate(names):
        expected = full.sum(axis=tuple(u for u in range(6) if u != v)) / full.sum()
        np.testing.assert_allclose(list(result.marginals[name].values()), expected, atol=1e-12)
    assert all(changed.parents(name) == [] for name in states)
    assert all(changed.parents(name) == model.parents(name) for name in names if name not in states)


def test_an_intervention_is_no_observation():
    cpds = {
        "rain": {"no": 0.8, "yes": 0.2},
        ("wet", "rain"): {"no": {"no": 0.9, "yes": 0.25}, "yes": {"no": 0.1, "yes": 0.75}},
    }
    model = Model.from_cpds(cpds, name="garden")
    assert solve(model, "mar", evidence={"wet": "yes"}).marginals["rain"]["yes"] == pytest.approx(0.15 / 0.23)
    for changed in (model.do(wet="yes"), model.do({"wet": StateIndex(1)}), model.do({1: "yes"})):
        assert changed.name == "garden"
        assert JunctionTree(changed).marginals()["rain"].tolist() == pytest.approx([0.8, 0.2])
        assert JunctionTree(changed).marginals()["wet"].tolist() == [0, 1]
    assert model.do().children == model.children
    assert model.parents("wet") == ["rain"]


def test_an_intervention_on_a_variable_without_distribution():
    model = Model.from_arrays([2, 2], [((0, 1), [[0.9, 0.1], [0.2, 0.8]])], sense="probability", children=[1])
    assert model.parents(0) == []
    assert solve(model.do(x0=1), "mar").marginals["x1"] == pytest.approx({0: 0.2, 1: 0.8})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.parents("v7"), "no variable 'v7'"),
        (lambda m: m.is_d_separated("v1", ["v2", "v1"]), "variable 'v1' is in both one and other"),
        (lambda m: m.is_d_separated("v1", "v2", {"v2"}), "variable 'v2' is in both other and given"),
        (lambda m: m.do({"v1": 0}, v1=1), "variable 'v1' is set twice"),
        (lambda m: m.do(v1=2), "variable 'v1' has no state 2; its states are 0 to 1"),
        (lambda m: m.do(v1=None), "variable 'v1' has no state None"),
        (lambda m: m.do(v9=0), "no variable 'v9'"),
    ],
)
def test_wrong_questions_to_a_graph(call, message):
    with pytest.raises(InputError, match=message):
        call(network([(0, 1), (1, 2)]))


def test_wrong_types():
    model = network([(0, 1)])
    with pytest.raises(TypeError, match="interventions is"):
        model.do([("v1", 0)])
    with pytest.raises(TypeError, match=r"given is 1\.5"):
        model.is_d_separated("v1", "v2", 1.5)


def test_models_without_conditional_distributions():
    model = Model.from_arrays([2, 2, 2], [((0, 1), np.ones((2, 2))), ((2,), [1, 2])], sense="probability")
    assert model.markov_blanket("x0") == ["x1"]
    calls = (lambda: model.parents("x0"), lambda: model.is_d_separated("x0", "x1"), lambda: model.do(x0=1))
    for call in calls:
        with pytest.raises(InputError, match=r"not conditional distributions: build it with Model\.from_cpds, or with"):
            call()
