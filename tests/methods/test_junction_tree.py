"""Posteriors on a junction tree against sums over all assignments, evidence coming and going."""

from __future__ import annotations

import copy
import pickle
import re
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import (
    ImpossibleEvidenceError,
    InputError,
    JunctionTree,
    MemoryLimitError,
    Model,
    Options,
    StateIndex,
    Variable,
)
from elimina.methods import junction_tree
from elimina.running.propagator import Propagator
from tests import calls
from tests.devices import on_devices

pytestmark = pytest.mark.usefixtures("planned")

few = settings(max_examples=40, deadline=None)


def random_model(rng, zeros=0.1):
    """A few variables and factors; some components, some variables in no factor, some of one value."""
    count = int(rng.integers(1, 8))
    sizes = [int(size) for size in rng.integers(1, 5, count)]
    factors = []
    for _ in range(rng.integers(0, 9)):
        scope = [int(v) for v in rng.permutation(count)[: rng.integers(0, min(count, 4) + 1)]]
        shape = [sizes[v] for v in scope]
        factors.append((scope, rng.random(shape) * (rng.random(shape) >= zeros)))
    return Model.from_arrays(sizes, factors, sense="probability")


def joint(model, weights):
    """The weighted model's values, an axis for each variable."""
    count = len(model.variables)
    table = np.ones(model.sizes)
    for factor in model.factors:
        ordered = np.transpose(factor.dense(), np.argsort(factor.scope))
        table = table * np.expand_dims(ordered, tuple(v for v in range(count) if v not in factor.scope))
    for v, values in weights.items():
        table = table * np.expand_dims(values, tuple(u for u in range(count) if u != v))
    return table


def over(table, kept, reduce=np.sum):
    """Reduced over all but the kept axes, those in the given order."""
    rest = reduce(table, axis=tuple(v for v in range(table.ndim) if v not in kept))
    return np.transpose(rest, np.argsort(np.argsort(kept)))


def random_evidence(rng, model):
    """Evidence as a user gives it, and the weights that it stands for."""
    evidence, weights = {}, {}
    for v, variable in enumerate(model.variables):
        if rng.random() < 0.2:
            value = int(rng.integers(variable.size))
            evidence[variable.name], weights[v] = value, np.eye(variable.size)[value]
        elif rng.random() < 0.2:
            evidence[v] = weights[v] = rng.random(variable.size)
    return evidence, weights


@on_devices
@given(seed=st.integers(0, 2**32))
@few
def test_answers_against_all_assignments(device, seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    tree = JunctionTree(model, device=device)
    for _ in range(3):
        evidence, weights = random_evidence(rng, model)
        tree.set_evidence(evidence)
        table = joint(model, weights)
        if table.sum() == 0:
            assert tree.log10_evidence == -np.inf
            for ask in (tree.marginals, tree.max_marginals, lambda: tree.joint([0])):
                with pytest.raises(ImpossibleEvidenceError, match="0"):
                    ask()
            continue
        assert tree.log10_evidence == pytest.approx(np.log10(table.sum()), rel=1e-9, abs=1e-9)
        asked = [int(v) for v in rng.permutation(len(model.variables))[: rng.integers(0, 4)]]
        for found in (tree.marginals(asked), tree.marginals()):
            for name, values in found.items():
                np.testing.assert_allclose(values, over(table, [model.index(name)]) / table.sum(), atol=1e-12)
        for name, values in tree.max_marginals().items():
            best = over(table, [model.index(name)], np.max) / table.max()
            np.testing.assert_allclose(values, best, atol=1e-10)
        pair = [int(v) for v in rng.permutation(len(model.variables))[:2]]
        np.testing.assert_allclose(tree.joint(pair), over(table, pair) / table.sum(), atol=1e-12)
    tree.close()


@on_devices
@given(seed=st.integers(0, 2**32))
@few
def test_updates_equal_a_fresh_start(device, seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, zeros=0.0)
    tree = JunctionTree(model, device=device)
    known = {}
    for _ in range(6):
        changes = {}
        for v, variable in enumerate(model.variables):
            if rng.random() < 0.3:
                changes[v] = None if rng.random() < 0.4 else int(rng.integers(variable.size))
        tree.update(changes)
        known = {v: value for v, value in {**known, **changes}.items() if value is not None}
        if rng.random() < 0.3:
            continue
        fresh = JunctionTree(model, device="cpu")
        fresh.set_evidence(known)
        asked = [v for v in range(len(model.variables)) if rng.random() < 0.5]
        for name, values in fresh.marginals(asked).items():
            np.testing.assert_allclose(tree.marginals(asked)[name], values, atol=1e-12)
        assert tree.log10_evidence == pytest.approx(fresh.log10_evidence, rel=1e-9, abs=1e-9)


def chain(length, size=3, seed=0, low=0.0):
    """A chain of pairwise factors."""
    rng = np.random.default_rng(seed)
    factors = [((v, v + 1), low + rng.random((size, size))) for v in range(length - 1)]
    return Model.from_arrays([size] * length, factors, sense="probability")


@on_devices
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_chains_do_not_underflow(device, dtype):
    model = chain(3000)
    scaled = Model(model.variables, [type(f)(f.scope, f.values * 1e-30) for f in model.factors], sense="probability")
    tree = calls.junction_tree(scaled, device=device, dtype=dtype)
    tree.set_evidence({0: 1, 2999: 2})
    forward = np.eye(3)[1]
    for factor in model.factors:
        forward = forward @ factor.values
        forward /= forward.sum()
    expected, total = np.eye(3)[1], 0.0
    for factor in scaled.factors:
        expected = expected @ (factor.values * 1e30)
        total += np.log10(expected.sum()) - 30
        expected /= expected.sum()
    assert tree.log10_evidence == pytest.approx(total + np.log10(expected[2]), rel=1e-6)
    assert tree.log10_evidence < -80000
    backward = model.factors[-1].values[:, 2]
    before = np.eye(3)[1]
    for factor in model.factors[:-1]:
        before = before @ factor.values
        before /= before.sum()
    posterior = before * backward / (before * backward).sum()
    np.testing.assert_allclose(tree.marginals([2998])["x2998"], posterior, rtol=1e-4 if dtype == "float32" else 1e-9)


def test_products_that_would_underflow_are_done_in_logarithms():
    tiny = np.array([[1e-300, 1.0], [1.0, 1e-300]])
    model = Model.from_arrays([2, 2], [((0, 1), tiny), ((1, 0), tiny), ((0,), [1.0, 1e-300])], sense="probability")
    tree = JunctionTree(model, device="cpu")
    tree.set_evidence({0: 1, 1: 1})
    assert tree.log10_evidence == pytest.approx(-900)
    np.testing.assert_allclose(tree.marginals([1])["x1"], [0.0, 1.0])


def test_only_what_changed_is_computed_again():
    tree = calls.junction_tree(chain(200), device="cpu")
    tree.marginals()
    propagator = tree._propagators["sum-product"]
    ran = []
    run = propagator._session.run
    propagator._session.run = lambda steps=None, progress=None: (ran.append(steps), run(steps))[1]
    tree.marginals()
    assert len(ran[-1]) == 0
    tree.update({0: 1})
    tree.marginals([199])
    one_way = len(ran[-1])
    assert 0 < one_way < len(tree.plan.steps) / 2
    tree.marginals()
    assert 0 < len(ran[-1]) < len(tree.plan.steps) - one_way


def test_information():
    rng = np.random.default_rng(5)
    model = random_model(rng, zeros=0.0)
    tree = JunctionTree(model, device="cpu")
    table = joint(model, {})
    table /= table.sum()
    pair = over(table, [0, 1])
    expected = -(pair * np.log2(pair)).sum()
    assert tree.entropy([0, 1]) == pytest.approx(expected)
    product = np.outer(over(table, [0]), over(table, [1]))
    assert tree.mutual_information([0], [1]) == pytest.approx((pair * np.log2(pair / product)).sum(), abs=1e-12)


def test_statistics_of_a_known_tree():
    model = chain(4, size=5)
    statistics = JunctionTree(model, device="cpu").statistics
    assert statistics.cliques == 3
    assert statistics.levels == 2
    assert (statistics.total_cells, statistics.largest_clique, statistics.largest_separator) == (75, 25, 5)


@pytest.mark.parametrize(
    ("evidence", "problem"),
    [
        ({"y": 0}, "no variable 'y'"),
        ({"x0": 3}, "no state 3"),
        ({"x0": [0.5, 0.5]}, "shape"),
        ({"x0": [0.5, -1, 0]}, "not negative"),
        ({"x0": {0: 0.5, 3: 1}}, "no state 3; its states are 0 to 2"),
        ({"x0": {0: 0.5, 1: -1}}, "not negative"),
        ({"x0": {0: 0.5, StateIndex(0): 1}}, "name the state 0 twice"),
        ({"y": None}, "no variable 'y'"),
        ({"x0": 1, 0: None}, "evidence about variable 'x0' is given and taken back at once"),
        ({"x0": [0.5, np.nan, 0]}, "finite"),
        ({"x0": ["a", "b", "c"]}, "not numbers"),
        ({"x0": ["0.5", "0.5", "0"]}, "not numbers"),
        ({"x0": np.array([0.5, "0.5", 0], dtype=object)}, "not numbers"),
        ({"x0": [0.5, 0.5j, 0]}, "not numbers"),
        ({"x0": [[0.5], [0.5, 0.5]]}, "the likelihoods of variable 'x0' are not an array of numbers"),
        ({"x0": np.ma.masked_array([0.5, 0.5, 1], [0, 0, 1])}, "1 of the likelihoods of variable 'x0' are masked"),
        ({"x0": 1, 0: 2}, "two states: 1 and 2"),
        ({"x0": 1, 0: [1.0, 0, 0]}, "given twice, and one of them is soft"),
    ],
)
def test_evidence_that_makes_no_sense(evidence, problem):
    tree = JunctionTree(chain(3), device="cpu")
    before = tree.marginals()["x2"]
    with pytest.raises(InputError, match=problem):
        tree.set_evidence(evidence)
    np.testing.assert_array_equal(tree.marginals()["x2"], before)


def test_options_that_make_no_sense():
    with pytest.raises(InputError, match="sums probabilities"):
        JunctionTree(Model.from_arrays([2], [((0,), [1, 2])]))
    with pytest.raises(InputError, match="unknown device"):
        JunctionTree(chain(3), device="tpu")
    with pytest.raises(MemoryLimitError, match="may use"):
        JunctionTree(chain(30), device="cpu", memory="100B", options=Options(exact=True))
    with pytest.raises(MemoryLimitError, match="may use"):
        JunctionTree(chain(30), device="cpu", memory="100B").marginals()
    with pytest.raises(InputError, match="twice"):
        JunctionTree(chain(3), device="cpu").joint([0, 0])


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_observed_values_are_left_out_rightly(data):
    """An observation leaves cells out where likelihoods of 0 and 1 multiply them; steps are large enough for tiles."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    sizes = data.draw(st.lists(st.integers(1, 12), min_size=3, max_size=9))
    scopes = [rng.choice(len(sizes), min(len(sizes), 3), replace=False).tolist() for _ in range(len(sizes))]
    tables = [(scope, rng.random([sizes[v] for v in scope]) + 0.1) for scope in scopes]
    model = Model.from_arrays(sizes, tables, sense="probability")
    dtype = data.draw(st.sampled_from(["float64", "float32"]))
    hard, soft = (calls.junction_tree(model, device="cpu", dtype=dtype) for _ in range(2))
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    for _ in range(4):
        values = {v: int(rng.integers(size)) for v, size in enumerate(sizes) if rng.random() < 0.4}
        hard.set_evidence(values)
        soft.set_evidence({v: np.eye(sizes[v])[x] for v, x in values.items()})
        asked = None if rng.random() < 0.5 else [int(rng.integers(len(sizes)))]
        assert hard.log10_evidence == pytest.approx(soft.log10_evidence, rel=tolerance, abs=tolerance)
        for found, expected in ((hard.marginals, soft.marginals), (hard.max_marginals, soft.max_marginals)):
            other = expected(asked)
            for name, table in found(asked).items():
                assert table == pytest.approx(other[name], abs=tolerance)
        assert (
            np.array_equal(hard.sample(20, seed=1, indices=True), soft.sample(20, seed=1, indices=True))
            or dtype == "float32"
        )


def test_copies():
    """A copy has the model, the options and the evidence, whatever was asked before."""
    model = chain(20)
    for known in ({}, {"x3": 1, "x5": [0.2, 0.3, 0.4]}):
        tree = JunctionTree(model, options=Options(order=list(range(20))))
        tree.set_evidence(known)
        for use in (tree.marginals, lambda: tree.batch({"x0": [0, 1]}), lambda: tree.sample(1)):  # noqa: B023
            use()
            for copied in (copy.deepcopy(tree), pickle.loads(pickle.dumps(tree))):
                np.testing.assert_allclose(copied.marginals(["x4"])["x4"], tree.marginals(["x4"])["x4"])
                assert copied.log10_evidence == pytest.approx(tree.log10_evidence)
                assert copied.plan.order == tree.plan.order


def test_the_evidence_is_told():
    """Evidence is told as it was given, also after a change that failed; likelihoods are copied."""
    tree = JunctionTree(Model([Variable("a", 2, ["no", "yes"]), Variable("b", 3)], [], sense="probability"))
    assert tree.evidence == {}
    tree.set_evidence({"a": StateIndex(1), 1: [0.5, 0, 2]})
    with pytest.raises(InputError):
        tree.update({"a": None, "z": 1})
    told = tree.evidence
    assert told["a"] == "yes"
    assert told["b"].tolist() == [0.5, 0, 2]
    told["b"][:] = 0
    assert tree.evidence["b"].tolist() == [0.5, 0, 2]
    tree.update({"a": None})
    other = JunctionTree(tree.model)
    other.set_evidence(tree.evidence)
    assert list(other.evidence) == ["b"]


@pytest.mark.parametrize(
    ("use", "errors"),
    [
        (lambda tree: tree.max_marginals(), 1),
        (lambda tree: tree.sample(3), 1),
        (lambda tree: tree.batch({"x0": [0, 1, 2] * 50}), 1),
        (lambda tree: tree.joint(range(8)), 2),
    ],
    ids=["max-marginals", "sample", "batch", "joint"],
)
def test_advice_on_memory_can_be_followed(use, errors):
    """A junction tree has no files, so that a limit is named that is enough: for its plan, and for that of a joint."""
    memory = "1KiB"
    for _ in range(errors):
        with pytest.raises(MemoryLimitError, match=r"more memory .* would be enough") as caught:
            use(JunctionTree(chain(20), memory=memory, options=Options(exact=True)))
        assert "(scratch)" not in str(caught.value)
        memory = re.search(r"memory=\"(\w+)\" would", str(caught.value)).group(1)
    use(JunctionTree(chain(20), memory=memory, options=Options(exact=True)))


def in_threads(count, work):
    """Run some work in threads at once, and return what they raised."""
    raised = []

    def guarded():
        try:
            work()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.fixture
def eager_threads():
    """Switch between threads as often as Python can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("eager_threads")
@pytest.mark.parametrize("known", [{"x3": 1}, {"x3": 1, "x5": [0.2, 0.3, 0.4]}])
def test_threads_share_a_tree(known):
    tree = JunctionTree(chain(30))
    tree.set_evidence(known)
    expected, log_sum = tree.marginals(), tree.log10_evidence

    def ask():
        for _ in range(30):
            tree.set_evidence(dict(known))
            np.testing.assert_allclose(tree.marginals()["x4"], expected["x4"])
            assert tree.log10_evidence == pytest.approx(log_sum)

    assert in_threads(6, ask) == []


def test_a_lock_keeps_evidence_and_question_together():
    tree = JunctionTree(chain(8))
    calls = {
        "set_evidence": lambda: tree.set_evidence({"x0": 1}),
        "update": lambda: tree.update({"x0": 2}),
        "marginals": tree.marginals,
        "max_marginals": tree.max_marginals,
        "log10_evidence": lambda: tree.log10_evidence,
        "joint": lambda: tree.joint(["x1"]),
        "entropy": lambda: tree.entropy(["x1"]),
        "sample": lambda: tree.sample(1),
        "batch": lambda: tree.batch({"x0": [0]}),
        "close": tree.close,
    }
    done = []
    threads = [threading.Thread(target=lambda name=name: (calls[name](), done.append(name))) for name in calls]
    with tree.lock:
        for thread in threads:
            thread.start()
        threads[0].join(0.05)
        tree.set_evidence({"x0": 0})
        assert tree.marginals(["x0"])["x0"].tolist() == [1, 0, 0]
        assert done == []
    for thread in threads:
        thread.join()
    assert sorted(done) == sorted(calls)


def test_an_interrupt_between_two_sets_of_evidence(monkeypatch):
    model = chain(30)
    tree, fresh = calls.junction_tree(model, device="cpu"), calls.junction_tree(model, device="cpu")
    tree.marginals()
    for evidence in ({0: 1}, {0: [0.5] * model.sizes[0]}):
        with monkeypatch.context() as patch:
            patch.setattr(Propagator, "observe", interrupted)
            tree.set_evidence(evidence)
            with pytest.raises(KeyboardInterrupt):
                tree.marginals()
        tree.set_evidence({1: 1})
        fresh.set_evidence({1: 1})
        found, expected = tree.marginals(), fresh.marginals()
        for name in found:
            np.testing.assert_allclose(found[name], expected[name])


def interrupted(*_):
    raise KeyboardInterrupt


@given(seed=st.integers(0, 2**32))
def test_most_probable_assignments_share_a_plan(seed):
    """Evidence with other states, likelihoods and zeros, and then about other variables, beside all assignments."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 4, size=4).tolist()
    scopes = [(0,), (0, 1), (1, 2), (0, 2, 3)]
    tables = [
        random.random([sizes[v] for v in scope]) * (random.random([sizes[v] for v in scope]) < 0.8) for scope in scopes
    ]
    tree = JunctionTree(Model.from_arrays(sizes, list(zip(scopes, tables, strict=True)), sense="probability"))
    joint = np.einsum("a,ab,bc,acd->abcd", *tables)
    for observed in ([1, 3], [1, 3], [1, 3], [0], [1, 3]):
        cells, evidence = joint.copy(), {}
        for v in observed:
            weights = random.random(sizes[v]) if random.random() < 0.4 else np.eye(sizes[v])[random.integers(sizes[v])]
            evidence[v] = int(weights.argmax()) if np.count_nonzero(weights) == 1 else weights
            weights = np.eye(sizes[v])[evidence[v]] if isinstance(evidence[v], int) else weights
            cells *= weights.reshape([-1 if axis == v else 1 for axis in range(4)])
        tree.set_evidence(evidence)
        if not cells.any():
            with pytest.raises(ImpossibleEvidenceError):
                tree.mpe()
            continue
        assignment, log_product = tree.mpe()
        assert log_product == pytest.approx(np.log(cells.max()))
        assert cells[tuple(assignment[f"x{v}"] for v in range(4))] == pytest.approx(cells.max())


def test_the_plan_of_a_most_probable_assignment_is_kept(monkeypatch):
    plans = []
    plan = junction_tree.plan_problem

    def counting(problem, *arguments, **named):
        plans.append(problem.task)
        return plan(problem, *arguments, **named)

    tables = [((0, 1), [[0.1, 0.9], [0.6, 0.4]]), ((1, 2), [[0.7, 0.3], [0.2, 0.8]])]
    tree = JunctionTree(Model.from_arrays([2, 2, 2], tables, sense="probability"))
    monkeypatch.setattr(junction_tree, "plan_problem", counting)
    answers = []
    for state in (0, 1, 0):
        tree.set_evidence({0: state})
        answers.append(tree.mpe())
    assert plans == ["mpe"]
    assert answers[0] == answers[2] != answers[1]
    tree.set_evidence({1: 0})
    tree.mpe()
    assert plans == ["mpe"] * 2


@pytest.mark.parametrize(("value", "memory"), [(0.0, 117), ([[0.0, 0.0]] * 2, 300)], ids=["constant", "table"])
def test_a_joint_distribution_beyond_memory_knows_that_evidence_elsewhere_is_impossible(value, memory):
    variables = {"a": 2, "b": 5, "c": 2, "d": 2}
    model = Model.from_arrays(variables, [([2, 3] if np.ndim(value) else [], np.array(value))], sense="probability")
    tree = JunctionTree(model, memory=f"{memory}B")
    assert not tree.is_exact
    for ask in (tree.joint, tree.entropy, tree.marginals):
        with pytest.raises(ImpossibleEvidenceError):
            ask(["a"])


def test_an_estimated_batch_may_be_asked_for_nothing():
    tree = JunctionTree(Model.from_arrays({"a": 6, "b": 2}, [], sense="probability"), memory="101B")
    posteriors = tree.batch({"a": [2, 3]}, [])
    assert dict(posteriors.marginals) == {}
    assert posteriors.log10_evidence == pytest.approx([np.log10(2)] * 2)
