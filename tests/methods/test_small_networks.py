"""Small networks, answered by one call of the core, against sums over all assignments and the long way."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import ImpossibleEvidenceError, InputError, JunctionTree, Model, solve
from elimina.methods import small_networks
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.strategies import call
from tests import calls
from tests.reference import brute

few = settings(max_examples=60, deadline=None)


@pytest.fixture
def no_threads(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a thread was started")

    monkeypatch.setattr(call, "Thread", refuse)


def covered(rng, sense="probability"):
    """A few variables, each in a factor."""
    count = int(rng.integers(1, 8))
    sizes = [int(size) for size in rng.integers(1, 5, count)]
    scopes = [[v] for v in range(count)]
    scopes += [[int(v) for v in rng.permutation(count)[: rng.integers(0, min(count, 4) + 1)]] for _ in range(6)]
    factors = []
    for scope in scopes:
        shape = [sizes[v] for v in scope]
        values = rng.random(shape) * (rng.random(shape) >= 0.1)
        factors.append((scope, values if sense == "probability" else np.where(values == 0, np.inf, values)))
    return Model.from_arrays(sizes, factors, sense=sense)


@given(seed=st.integers(0, 2**32))
@few
def test_sums_and_posteriors(seed):
    rng = np.random.default_rng(seed)
    model = covered(rng)
    evidence = {v: int(rng.integers(size)) for v, size in enumerate(model.sizes) if rng.random() < 0.3}
    total = brute.partition(model, evidence)
    network = small_networks.SmallNetwork(model)
    found = network.answer(evidence)
    assert found is not None
    assert found.log_sum / math.log(10) == pytest.approx(total)
    assert small_networks.SmallNetwork(model, "count").answer(evidence).sum == brute.count(model, evidence)
    result = solve(model, "mar", evidence=evidence, device="cpu")
    if total == -math.inf:
        assert result.status == "infeasible"
        return
    weights = {v: np.eye(model.sizes[v])[x].tolist() for v, x in evidence.items()}
    expected = brute.posteriors(model, weights)[1]
    for variable, own in zip(model.variables, expected, strict=True):
        assert list(result.marginals[variable.name].values()) == pytest.approx(own)
    alone = small_networks.SmallNetwork(model, "pr").answer(evidence)
    assert alone.log_sum == pytest.approx(found.log_sum)
    assert alone.shares.size == 0
    again = network.answer({})
    assert again.log_sum / math.log(10) == pytest.approx(brute.partition(model))


@given(seed=st.integers(0, 2**32))
@few
def test_posteriors_of_some_variables(seed):
    rng = np.random.default_rng(seed)
    model = covered(rng)
    evidence = {v: int(rng.integers(size)) for v, size in enumerate(model.sizes) if rng.random() < 0.3}
    asked = rng.integers(len(model.sizes), size=rng.integers(0, 4)).tolist()
    result = solve(model, "mar", evidence=evidence, query=asked)
    if brute.partition(model, evidence) == -math.inf:
        assert result.status == "infeasible"
        return
    expected = brute.posteriors(model, {v: np.eye(model.sizes[v])[x].tolist() for v, x in evidence.items()})[1]
    assert list(result.marginals) == [model.variables[v].name for v in dict.fromkeys(asked)]
    for v in asked:
        assert list(result.marginals[model.variables[v].name].values()) == pytest.approx(expected[v])


def test_a_posterior_alone_takes_no_plan(no_threads):
    model = Model.from_arrays(
        [3] * 9, [((0,), [1, 2, 3]), *(((v, v + 1), np.eye(3) + 1) for v in range(8))], sense="probability"
    )
    every = solve(model, "mar", evidence={0: 1}).marginals
    alone = solve(model, "mar", evidence={0: 1}, query=["x7", 4])
    assert dict(alone.marginals) == {name: every[name] for name in ("x7", "x4")}
    tree = JunctionTree(model)
    for x in (0, 1, 2) * 3:
        tree.set_evidence({0: x})
        np.testing.assert_allclose(tree.joint(["x5"]), tree.marginals(["x5"])["x5"])
        # Seconds by phase are those of propagations, which a small network does without.
        assert tree.seconds == {}


@pytest.mark.parametrize("sense", ["probability", "min-cost", "max-cost"])
def test_counts_of_all_senses(sense, no_threads):
    rng = np.random.default_rng(3)
    model = covered(rng, "probability" if sense == "probability" else "min-cost")
    if sense == "max-cost":
        model = Model(model.variables, [Table(f.scope, -f.values) for f in model.factors], sense=sense)
    assert solve(model, "count", device="cpu").value == brute.count(model)


def chain(count, low=0.5):
    factors = [([v, v + 1], np.array([[low, 1.0], [1.0, low]])) for v in range(count - 1)]
    return Model.from_arrays([2] * count, factors, sense="probability")


def test_small_questions_take_no_thread(no_threads):
    model = chain(30)
    assert sum(solve(model, "mar", evidence={"x3": 1}).marginals["x0"].values()) == pytest.approx(1)
    assert solve(model, "pr").log10_z == pytest.approx(29 * math.log10(1.5) + math.log10(2))
    assert solve(chain(50), "count").value == 2**50
    stats = solve(model, "mar", memory="1GiB").stats
    assert stats["induced_width"] == 1
    assert stats["largest_table"] >= 2
    assert stats["seconds"]["total"] == pytest.approx(sum(v for k, v in stats["seconds"].items() if k != "total"))


def test_sums_take_one_pass():
    model = chain(30)
    one, both = (small_networks.SmallNetwork(model, task).answer({3: 1}) for task in ("pr", "mar"))
    assert one.work < 0.6 * both.work
    assert one.cells < both.cells


def test_what_is_not_small_goes_the_long_way():
    assert solve(chain(60), "count").value == 2**60
    assert solve(chain(1100), "mar").stats["structure"] == "junction tree"
    # Products leave the range of doubles on the way to any one posterior.
    tiny = Model.from_arrays([2] * 3, [([v], np.array([1e-300, 1.0])) for v in range(3)], sense="probability")
    evidence = dict.fromkeys(range(3), 0)
    assert solve(tiny, "pr", evidence=evidence).log10_z == pytest.approx(-900)
    pairs = [([u, v], np.ones((8, 8))) for v in range(9) for u in range(v)]
    crowd = Model.from_arrays([8] * 9, pairs, sense="probability")
    assert small_networks.SmallNetwork(crowd).answer({}) is None
    assert solve(crowd, "pr").log10_z == pytest.approx(9 * math.log10(8))


def test_mistakes_are_told_as_ever():
    model = chain(4)
    with pytest.raises(InputError, match="y"):
        solve(model, "mar", evidence={"y": 0})
    costs = Model([Variable("a", 2)], [Table([0], [1, 2])])
    with pytest.raises(InputError, match="sums probabilities"):
        solve(costs, "mar")


def test_a_junction_tree_is_planned_when_a_plan_is_needed():
    tree = JunctionTree(chain(8), device="cpu")
    before = tree.marginals()
    assert "_planned" not in vars(tree)
    # What is returned belongs to the caller.
    before["x0"][:] = 7
    np.testing.assert_allclose(tree.marginals(["x0"])["x0"], [0.5, 0.5])
    tree.set_evidence({"x0": 1})
    hard = tree.marginals()["x7"]
    tree.set_evidence({"x0": [0.0, 1.0]})
    np.testing.assert_allclose(tree.marginals()["x7"], hard)
    assert "_planned" in vars(tree)
    impossible = JunctionTree(chain(3, low=0.0), device="cpu")
    impossible.set_evidence({"x0": 0, "x1": 0})
    assert impossible.log10_evidence == -math.inf
    with pytest.raises(ImpossibleEvidenceError):
        impossible.marginals()


@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_any_sequence_of_evidence_and_questions(seed):
    """A tree that answers one question after another, as its evidence changes, against a new one for each."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 24))
    sizes = [int(size) for size in rng.integers(1, 4, count)]
    scopes = [(v,) for v in range(count)] + [(int(rng.integers(v)), v) for v in range(1, count)]
    tables = [(scope, rng.random([sizes[v] for v in scope]) + 0.01) for scope in scopes]
    model = Model.from_arrays(sizes, tables, sense="probability")
    tree = JunctionTree(model)
    for _ in range(12):
        kind, names = rng.integers(4), [v.name for v in model.variables]
        evidence: dict = {
            name: int(rng.integers(model[name].size)) for name in rng.permutation(names)[: rng.integers(4)].tolist()
        }
        if kind == 0 and evidence:
            name = min(evidence)
            evidence[name] = rng.random(model[name].size) + 0.1
        tree.set_evidence(evidence)
        fresh = calls.junction_tree(model, order="min-fill", device="cpu")
        fresh.set_evidence(evidence)
        asked = None if rng.random() < 0.5 else rng.permutation(names)[:2].tolist()
        question = "max_marginals" if kind == 1 else "marginals"
        found, expected = getattr(tree, question)(asked), getattr(fresh, question)(asked)
        assert list(found) == list(expected)
        for name in found:
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12)
        assert tree.log10_evidence == pytest.approx(fresh.log10_evidence)
        if kind == 2:
            assert set(tree.sample(2)) == set(names)


def test_whole_orders_are_not_looked_for_where_no_plan_is_small():
    """Such an order takes seconds, whatever the time limit of the call."""
    rng = np.random.default_rng(0)
    scopes = [[v] for v in range(800)] + [sorted(rng.choice(800, 3, replace=False).tolist()) for _ in range(4000)]
    factors = [(scope, rng.uniform(0.2, 1.0, (2,) * len(scope))) for scope in scopes]
    model = Model.from_arrays([2] * 800, factors, sense="probability")
    network = small_networks.SmallNetwork(model)
    started = time.process_time()
    assert network.answer({}) is None
    assert time.process_time() - started < 1


@pytest.mark.parametrize("keeps_plan", [False, True])
def test_all_sets_of_observed_variables(keeps_plan: bool) -> None:
    """A plan for each set, and one plan whose steps are restricted; some sets come again, with other states."""
    rng = np.random.default_rng(0)
    sizes = [*[2] * 11, 1]
    scopes = [(0,), *((v, *rng.choice(v, min(v, 2), replace=False).tolist()) for v in range(1, 12)), ()]
    factors = [(scope, rng.random([sizes[v] for v in scope])) for scope in scopes]
    model = Model.from_arrays(sizes, factors, sense="probability")
    network = small_networks.SmallNetwork(model)
    if keeps_plan:
        assert network.keep(rng.permutation(12).tolist())
    whole = np.einsum(*itertools.chain.from_iterable((table, scope) for scope, table in factors), range(12))
    for number in [*range(1 << 12), *rng.permutation(1 << 12)[:1000].tolist()]:
        observed = {v: int(rng.integers(sizes[v])) for v in range(12) if number >> v & 1}
        found = network.answer(observed)
        assert found is not None
        left = whole[tuple(slice(observed[v], observed[v] + 1) if v in observed else slice(None) for v in range(12))]
        assert found.sum == pytest.approx(left.sum(), rel=1e-12)
        assert found.log_sum == pytest.approx(math.log(left.sum()), rel=1e-12)
        v = int(rng.integers(11))
        states = left.sum(axis=tuple(u for u in range(12) if u != v)) / left.sum()
        expected = np.eye(2)[observed[v]] if v in observed else states
        assert found.shares[2 * v : 2 * v + 2] == pytest.approx(expected, rel=1e-12)
        assert found.shares[-1] == 1


def test_a_plan_that_is_too_large_is_not_kept() -> None:
    count = 24
    pairs = [(u, v) for v in range(count) for u in range(v)]
    model = Model.from_arrays([2] * count, [(pair, np.ones((2, 2))) for pair in pairs], sense="probability")
    network = small_networks.SmallNetwork(model)
    assert not network.keep(range(count))
    assert network.answer(dict.fromkeys(range(20), 0)).sum == 2**4


def test_repeated_questions_are_answered_by_one_plan(monkeypatch) -> None:
    """A junction tree plans once it was asked a few times; it then answers all variables without a propagator."""
    rng = np.random.default_rng(5)
    factors = [((v, *({v // 2} - {v})), rng.random([3] * (1 + (v > 0)))) for v in range(20)]
    model = Model.from_arrays([3] * 20, factors, sense="probability")
    tree = JunctionTree(model)
    found = []
    for turn in range(8):
        if turn == 4:
            monkeypatch.setattr(JunctionTree, "_propagator", None)
        tree.set_evidence({f"x{turn}": turn % 3, "x19": 1})
        found.append((tree.marginals(), tree.log10_evidence))
    for turn, (marginals, log) in enumerate(found):
        expected = solve(model, "mar", evidence={turn: turn % 3, 19: 1})
        assert log == pytest.approx(expected.log10_z)
        for name, shares in marginals.items():
            assert list(expected.marginals[name].values()) == pytest.approx(shares)
