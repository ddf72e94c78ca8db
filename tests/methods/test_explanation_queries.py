"""Explanations of posteriors against sums over all assignments, finite differences, and pyAgrum."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import (
    ImpossibleEvidenceError,
    InputError,
    JunctionTree,
    Model,
    Options,
    StateIndex,
    Table,
    Variable,
    read,
    to_pyagrum,
)
from elimina.methods.information import divergence, entropy, mutual_information, rounding_of
from tests.packages import installed

many = settings(max_examples=60, deadline=None)
EXACT = rounding_of(None)


def random_network(rng, zeros=0.15, most=6):
    """A Bayesian network of a few variables, some of one state, with zeros and child axes in any place."""
    count = int(rng.integers(2, most + 1))
    sizes = rng.choice([1, 2, 2, 3], count).tolist()
    factors = []
    for v in range(count):
        parents = rng.permutation(v)[: rng.integers(0, min(v, 3) + 1)].tolist()
        rows = rng.random([*(sizes[u] for u in parents), sizes[v]]) + 1e-3
        masks = rng.random(rows.shape) >= zeros
        masks[..., 0] = True
        rows = rows * masks
        scope = [*parents, v]
        axes = rng.permutation(len(scope)).tolist()
        values = np.transpose(rows / rows.sum(-1, keepdims=True), axes)
        factors.append(Table([scope[axis] for axis in axes], values))
    variables = [Variable(f"v{v}", size, [f"s{x}" for x in range(size)]) for v, size in enumerate(sizes)]
    return Model(variables, factors, sense="probability", children=range(count))


def joint_of(model, tables=None):
    """Values of all assignments, an axis for each variable."""
    count = len(model.variables)
    product = np.ones(model.sizes)
    for number, factor in enumerate(model.factors):
        values = factor.dense() if tables is None else tables[number]
        ordered = np.transpose(values, np.argsort(factor.scope))
        product = product * np.expand_dims(ordered, tuple(v for v in range(count) if v not in factor.scope))
    return product


def weighted(table, weights):
    """The values times the weights of observations."""
    for v, weight in weights.items():
        table = table * np.expand_dims(weight, tuple(u for u in range(table.ndim) if u != v))
    return table


def over(table, *kept):
    """Sums over all axes but some, which are in increasing order."""
    return table.sum(axis=tuple(v for v in range(table.ndim) if v not in kept))


def random_evidence(rng, model, query, share=0.4):
    """Observations and likelihoods of variables but one, as users give them and as weights."""
    evidence, weights = {}, {}
    for v, variable in enumerate(model.variables):
        if v == query or rng.random() > share:
            continue
        if rng.random() < 0.7:
            state = int(rng.integers(variable.size))
            evidence[variable.name], weights[v] = StateIndex(state), np.eye(variable.size)[state]
        else:
            evidence[variable.name] = weights[v] = rng.random(variable.size) + 0.01
    return evidence, weights


def bits(table, other):
    """Kullback-Leibler divergence as in a textbook."""
    return sum(p * math.log2(p / q) for p, q in zip(table.ravel(), other.ravel(), strict=True) if p > 0)


def posterior(joint, weights, *kept):
    table = over(weighted(joint, weights), *kept)
    return table / table.sum()


def without(weights, v):
    return {u: weight for u, weight in weights.items() if u != v}


def asked(seed):
    rng = np.random.default_rng(seed)
    model = random_network(rng)
    query = int(rng.integers(len(model.variables)))
    return model, query, *random_evidence(rng, model, query), rng


@given(seed=st.integers(0, 2**32))
@many
def test_impacts_against_all_assignments(seed):
    model, query, evidence, weights, _ = asked(seed)
    tree, joint = JunctionTree(model, evidence=evidence), joint_of(model)
    if not weighted(joint, weights).sum():
        with pytest.raises(ImpossibleEvidenceError, match="probability 0"):
            tree.impacts(query)
        return
    impacts = tree.impacts(query)
    assert impacts.query == model.variables[query].name
    assert {impact.variable for impact in impacts} == set(evidence)
    assert [i.divergence for i in impacts] == sorted((i.divergence for i in impacts), reverse=True)
    whole, prior = posterior(joint, weights, query), posterior(joint, {}, query)
    for impact in impacts:
        v = model.index(impact.variable)
        others, alone = posterior(joint, without(weights, v), query), posterior(joint, {v: weights[v]}, query)
        assert impact.divergence == pytest.approx(bits(whole, others), abs=1e-12)
        assert impact.difference == pytest.approx(abs(whole - others).sum() / 2, abs=1e-12)
        assert impact.divergence_alone == pytest.approx(bits(alone, prior), abs=1e-12)
        assert impact.difference_alone == pytest.approx(abs(alone - prior).sum() / 2, abs=1e-12)


@given(seed=st.integers(0, 2**32))
@many
def test_conflict_against_all_assignments(seed):
    model, _, evidence, weights, _ = asked(seed)
    tree, joint = JunctionTree(model, evidence=evidence), joint_of(model)

    def probability(chosen):
        return float(weighted(joint, chosen).sum())

    alone = {v: probability({v: weight}) for v, weight in weights.items()}
    if not all(alone.values()):
        with pytest.raises(ImpossibleEvidenceError, match="probability 0"):
            tree.conflict()
        return
    conflict, together = tree.conflict(), probability(weights)
    if not together:
        assert conflict.bits == math.inf
        return
    assert conflict.bits == pytest.approx(math.log2(math.prod(alone.values()) / together), abs=1e-9)
    for row in conflict:
        v = model.index(row.variable)
        given_others = together / probability(without(weights, v))
        assert row.conflict == pytest.approx(math.log2(alone[v] / given_others), abs=1e-9)
        if weights[v].max() == 1:
            assert (row.probability, row.probability_given_others) == pytest.approx((alone[v], given_others))


@given(seed=st.integers(0, 2**32))
@many
def test_observation_values_against_all_assignments(seed):
    model, query, evidence, weights, rng = asked(seed)
    tree, joint = JunctionTree(model, evidence=evidence), joint_of(model)
    if not weighted(joint, weights).sum():
        with pytest.raises(ImpossibleEvidenceError, match="probability 0"):
            tree.observation_values(query)
        return
    costs = {variable.name: float(rng.integers(0, 4)) for variable in model.variables if rng.random() < 0.5}
    values = tree.observation_values(query, costs=costs)
    hidden = {v.name for v in model.variables} - set(evidence) - {model.variables[query].name}
    assert {value.variable for value in values} == hidden
    before = bits(posterior(joint, weights, query), np.ones(model.sizes[query]))
    assert values.entropy == pytest.approx(-before, abs=1e-12)
    for value in values:
        v = model.index(value.variable)
        pair = posterior(joint, weights, query, v)
        expected = bits(pair, np.outer(pair.sum(1), pair.sum(0)))
        assert value.information == pytest.approx(expected, abs=1e-12)
        assert value.remaining_entropy == pytest.approx(-before - expected, abs=1e-12)
        assert value.cost == costs.get(value.variable, 1.0)
        if value.cost:
            assert value.information_per_cost == pytest.approx(expected / value.cost, abs=1e-12)
        else:
            assert value.information_per_cost == (math.inf if value.information else 0)
    ratios = [value.information_per_cost for value in values]
    assert ratios == sorted(ratios, reverse=True)


def changed(model, number, cell, value):
    """The tables with another value of a parameter, and the other numbers of its row in proportion."""
    tables = [np.array(factor.dense()) for factor in model.factors]
    axis = model.factors[number].scope.index(model.children[number])
    row = np.moveaxis(tables[number], axis, -1)[tuple(x for place, x in enumerate(cell) if place != axis)]
    before = row[cell[axis]]
    row *= (1 - value) / (1 - before)
    row[cell[axis]] = value
    return tables


@given(seed=st.integers(0, 2**32))
@many
def test_sensitivities_against_changed_tables(seed):
    model, query, evidence, weights, rng = asked(seed)
    tree, joint = JunctionTree(model, evidence=evidence), joint_of(model)
    event = {query: int(rng.integers(model.sizes[query]))}
    state = model.variables[query].state(event[query])
    asked_event = {model.variables[query].name: state}
    if not weighted(joint, weights).sum():
        with pytest.raises(ImpossibleEvidenceError, match="probability 0"):
            tree.sensitivities(asked_event)
        return
    sensitivities = tree.sensitivities(asked_event)
    rows = {(s.variable, s.state, tuple(sorted(s.parents.items()))): s for s in sensitivities}
    assert tree.evidence.keys() == evidence.keys()

    def probability(tables):
        return float(posterior(joint_of(model, tables), weights, query)[event[query]])

    assert sensitivities.posterior == pytest.approx(probability(None), abs=1e-12)
    count = 0
    for number, factor in enumerate(model.factors):
        child = model.children[number]
        table = factor.dense()
        for cell in np.ndindex(table.shape):
            value = float(table[cell])
            if value in (0, 1):
                continue
            count += 1
            named = {
                model.variables[v].name: model.variables[v].state(x) for v, x in zip(factor.scope, cell, strict=True)
            }
            variable = model.variables[child].name
            row = rows[variable, named.pop(variable), tuple(sorted(named.items()))]
            assert row.value == value
            assert row.at(value) == pytest.approx(sensitivities.posterior, abs=1e-10)
            for other in (0.25, 0.75):
                assert row.at(other) == pytest.approx(probability(changed(model, number, cell, other)), abs=1e-9)
            step = 1e-4 * min(value, 1 - value)
            ends = [probability(changed(model, number, cell, value + sign * step)) for sign in (-1, 1)]
            difference = (ends[1] - ends[0]) / (2 * step)
            assert row.derivative == pytest.approx(difference, abs=2e-6 * max(1, 1 / value, 1 / (1 - value)))
    assert count == len(sensitivities)


@given(seed=st.integers(0, 2**32))
@many
def test_relevant_explanations_against_all_assignments(seed):
    model, _, evidence, weights, rng = asked(seed)
    hidden = [v for v in range(len(model.variables)) if v not in weights]
    targets = rng.permutation(hidden)[:3].tolist()
    tree, joint = JunctionTree(model, evidence=evidence), joint_of(model)
    if not weights:
        with pytest.raises(InputError, match="no evidence"):
            tree.relevant_explanations(targets)
        return
    if not weighted(joint, weights).sum():
        with pytest.raises(ImpossibleEvidenceError, match="probability 0"):
            tree.relevant_explanations(targets)
        return
    factors = {}
    for size in range(1, len(targets) + 1):
        for chosen in itertools.combinations(targets, size):
            for states in np.ndindex(*(model.sizes[v] for v in chosen)):
                mask = weighted(
                    np.ones(model.sizes), {v: np.eye(model.sizes[v])[x] for v, x in zip(chosen, states, strict=True)}
                )
                sums = [float((weighted(joint, w) * m).sum()) for w in (weights, {}) for m in (mask, 1 - mask)]
                after, after_others, before, before_others = sums
                if before > 0 and before_others > 0 and after > 0:
                    names = {
                        model.variables[v].name: model.variables[v].state(x)
                        for v, x in zip(chosen, states, strict=True)
                    }
                    ratio = (
                        math.inf if after_others <= 1e-13 * after else after / before / (after_others / before_others)
                    )
                    factors[tuple(sorted(names.items()))] = ratio
    explanations = tree.relevant_explanations(targets, 100)
    listed = {tuple(sorted(row.assignment.items())): row.bayes_factor for row in explanations}
    for items, factor in listed.items():
        assert factor == pytest.approx(factors[items], rel=1e-6)
        assert factor > 1
    best = max(factors.values(), default=0)
    if best > 1 + 1e-6:
        assert explanations[0].bayes_factor == pytest.approx(best, rel=1e-6)
    # Each explanation that is left out is dominated by one that is listed.
    for items, factor in factors.items():
        if items not in listed and factor > 1 + 1e-6:
            related = [f for other, f in listed.items() if set(other) <= set(items) or set(other) >= set(items)]
            assert max(related) >= factor * (1 - 1e-6)


PUMP = read(Path(__file__).parents[2] / "examples" / "pump.bif")
OBSERVED = {"Alarm": "on", "Noise": "loud"}


def test_independent_variables_share_no_information():
    names = [variable.name for variable in PUMP.variables]
    for dtype in ("float64", "float32"):
        tree = JunctionTree(PUMP, options=Options(dtype=dtype))
        separated = 0
        for one, other in itertools.combinations(names, 2):
            information = tree.mutual_information([one], [other])
            assert (information == 0) == PUMP.is_d_separated(one, other)
            separated += information == 0
        assert separated > 10
        values = {value.variable: value.information for value in tree.observation_values("Age")}
        assert {name for name, information in values.items() if information == 0} == {
            name for name in values if PUMP.is_d_separated("Age", name)
        }


def test_certain_variables_have_no_entropy():
    tree = JunctionTree(PUMP, evidence={"Power": "out"})
    assert tree.entropy(["Power"]) == 0
    assert tree.entropy(["Pump"]) == 0


def test_states_that_are_improbable_together_count():
    """A probability of 1e-20 beside others, whose ratio to the product is 0 but for rounding."""
    joint = np.array([[0.97, 1e-20], [1e-20, 0.03]])
    assert mutual_information(joint, EXACT) == pytest.approx(entropy(joint.sum(axis=1)))
    joint = np.diag([1.0, 1e-250])  # the square of the second one is below the least float64
    assert mutual_information(joint, EXACT) == pytest.approx(entropy(joint.sum(axis=1)), rel=0.01)


def test_divergences_of_equal_and_of_disjoint_distributions():
    third = np.array([1, 1, 1]) / 3
    assert divergence(third, third * (1 + 1e-15), EXACT) == 0
    assert divergence(np.array([1.0, 0]), np.array([0.0, 1]), EXACT) == math.inf
    assert divergence(np.array([1.0, 0]), np.array([0.5, 0.5]), EXACT) == pytest.approx(1)
    assert entropy(np.array([0.0, 1 + 1e-16])) == 0
    # A difference of 1e-6 is far above rounding, though its divergence is 1e-13.
    close = divergence(np.array([0.5 + 1e-6, 0.5 - 1e-6]), np.array([0.5, 0.5]), EXACT)
    assert close == pytest.approx(2e-12 / math.log(2), rel=1e-4)
    assert mutual_information(np.eye(4) / 4, EXACT) == pytest.approx(2)


def test_explanations_agree_with_pyagrum():
    gum = installed("pyagrum")
    engine = gum.LazyPropagation(to_pyagrum(PUMP))
    engine.setEvidence(OBSERVED)
    values = JunctionTree(PUMP, evidence=OBSERVED).observation_values("Bearing")
    assert len(values) == 9
    for value in values:
        information = gum.InformationTheory(engine, ["Bearing"], [value.variable]).mutualInformationXY()
        assert value.information == pytest.approx(information, abs=1e-12)
    without = gum.LazyPropagation(to_pyagrum(PUMP))
    table = without.evidenceImpact("Bearing", ["Noise", "Alarm"])
    tree = JunctionTree(PUMP, evidence=OBSERVED)
    whole = tree.marginals()["Bearing"].array
    np.testing.assert_allclose(whole, [table[{**OBSERVED, "Bearing": state}] for state in ("good", "worn")], atol=1e-12)
    for impact in tree.impacts("Bearing"):
        others = {name: state for name, state in OBSERVED.items() if name != impact.variable}
        without.setEvidence(others)
        other = without.posterior("Bearing")
        expected = np.array([other[{"Bearing": state}] for state in ("good", "worn")])
        assert impact.divergence == pytest.approx(bits(whole, expected), abs=1e-12)


def test_an_infinite_conflict_names_no_error():
    model = Model.from_cpds({"a": [0.5, 0.5], ("b", "a"): [[1, 0], [0, 1]]})
    conflict = JunctionTree(model, evidence={"a": 0, "b": 1}).conflict()
    assert conflict.bits == math.inf
    assert [row.conflict for row in conflict] == [math.inf, math.inf]
    assert JunctionTree(model).conflict().bits == 0


def test_an_observation_that_explains_nothing_is_no_explanation():
    model = Model.from_cpds({"a": [0.3, 0.7], "b": [0.2, 0.8]})
    tree = JunctionTree(model, evidence={"b": 1})
    assert len(tree.relevant_explanations(["a"])) == 0


def test_sensitivities_have_names_and_ends():
    tree = JunctionTree(PUMP, evidence=OBSERVED)
    first = tree.sensitivities({"Bearing": "worn"})[0]
    assert first.name == "P(Noise=quiet | Bearing=good, Pump=running)"
    low, high = first.ends(0.1)
    assert low == pytest.approx(first.at(0.9 * first.value))
    assert high == pytest.approx(first.at(1.0))
    assert tree.sensitivities({"Bearing": "worn", "Age": "old"}).event == "P(Bearing=worn, Age=old)"
    # The tree answers as before.
    assert tree.evidence == OBSERVED
    assert tree.marginals()["Bearing"].at({"Bearing": "worn"}) == pytest.approx(first.at(first.value))


def test_explanations_are_frames_texts_and_notebook_tables():
    pytest.importorskip("pandas")
    tree = JunctionTree(PUMP, evidence={**OBSERVED, "Season": [0.5, 1]})
    tables = [
        tree.impacts("Bearing"),
        tree.conflict(),
        tree.observation_values("Bearing"),
        tree.sensitivities({"Bearing": "worn"}),
        tree.relevant_explanations(["Bearing", "Filter"]),
    ]
    for table in tables:
        frame = table.to_frame()
        assert list(frame.columns) == list(table[0]._fields)
        assert len(frame) == len(table) == len(list(table))
        assert str(frame.iloc[0, 0]) in repr(table)
        assert "<table>" in table._repr_html_()


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda tree: tree.impacts("Bering"), "Bering.*did you mean 'Bearing'"),
        (lambda tree: tree.impacts("Alarm"), "query names the variable 'Alarm', which is observed"),
        (lambda tree: tree.observation_values("Alarm"), "'Alarm', which is observed"),
        (lambda tree: tree.observation_values("Age", ["Noise"]), "candidates names the variable 'Noise'"),
        (lambda tree: tree.observation_values("Age", ["Age"]), "candidates names the query, 'Age'"),
        (lambda tree: tree.observation_values("Age", costs={"Flow": -1}), "costs.*-1"),
        (lambda tree: tree.observation_values("Age", costs={"Flo": 1}), "'Flo'"),
        (lambda tree: tree.sensitivities({}), "the query is empty"),
        (lambda tree: tree.sensitivities({"Alarm": "on"}), "'Alarm', which is observed"),
        (lambda tree: tree.sensitivities({"Bearing": "old"}), "'old'"),
        (lambda tree: tree.relevant_explanations([]), "targets is empty"),
        (lambda tree: tree.relevant_explanations(["Age", "Age"]), "'Age' is named twice"),
        (lambda tree: tree.relevant_explanations(["Noise"]), "'Noise', which is observed"),
        (lambda tree: tree.relevant_explanations(["Age"], 0), "count"),
    ],
)
def test_errors_name_the_culprit(ask, text):
    with pytest.raises(InputError, match=text):
        ask(JunctionTree(PUMP, evidence=OBSERVED))


def test_many_targets_are_refused_before_any_work():
    model = Model.from_arrays([2] * 20, [([v], [0.5, 0.5]) for v in range(20)], sense="probability")
    with pytest.raises(InputError, match="15 targets have 14,348,906 partial assignments"):
        JunctionTree(model, evidence={"x19": 0}).relevant_explanations(range(15))


def test_sensitivities_need_a_network():
    model = Model.from_arrays([2, 2], [([0, 1], [[1, 2], [3, 4]])], sense="probability")
    with pytest.raises(InputError, match="not a Bayesian network"):
        JunctionTree(model).sensitivities({"x0": 0})
