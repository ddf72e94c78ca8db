"""The interface of pyAgrum's LazyPropagation gives pyAgrum's answers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.packages import installed

pytestmark = pytest.mark.filterwarnings("ignore")

gum = installed("pyagrum")

from elimina.adapters.pyagrum import LazyPropagation  # noqa: E402
from elimina.errors import InputError  # noqa: E402


def test_the_water_sprinkler():
    """The example of pyAgrum's tutorial."""
    network = gum.fastBN("c->s->w;c->r->w")
    network.cpt("c").fillWith([0.5, 0.5])
    network.cpt("s")[:] = [[0.5, 0.5], [0.9, 0.1]]
    network.cpt("r")[:] = [[0.8, 0.2], [0.2, 0.8]]
    for rain, sprinkler, wet in ((0, 0, 0.0), (0, 1, 0.9), (1, 0, 0.9), (1, 1, 0.99)):
        network.cpt("w")[{"r": rain, "s": sprinkler}] = [1 - wet, wet]
    for evidence in ({}, {"s": 0, "c": 0}, {"s": [0.5, 1], "w": [0, 1]}):
        ours, theirs = LazyPropagation(network), gum.LazyPropagation(network)
        for one in (ours, theirs):
            one.setEvidence(evidence)
            one.makeInference()
        for name in network.names():
            np.testing.assert_allclose(ours.posterior(name).toarray(), theirs.posterior(name).toarray(), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_common_calls(seed):
    gum.initRandom(seed + 1)
    network = gum.fastBN("A{x|y|z}->B{u|v}->C[3];A->D[2]->C;D->E{p|q}")
    ours, theirs = LazyPropagation(network), gum.LazyPropagation(network)
    for one in (ours, theirs):
        one.setTargets({"A"})
        one.addTarget("B")
        one.addAllTargets()
        one.addJointTarget({"A", "D"})
    for change in (
        lambda one: None,
        lambda one: one.setEvidence({"B": "v", "E": [0.2, 0.7]}),
        lambda one: one.addEvidence("C", 2),
        lambda one: one.chgEvidence("B", 0),
        lambda one: one.eraseEvidence("E"),
        lambda one: one.updateEvidence({"D": 1}),
        lambda one: one.eraseAllEvidence(),
    ):
        change(ours)
        change(theirs)
        for one in (ours, theirs):
            one.makeInference()
        for name in network.names():
            found, expected = ours.posterior(name), theirs.posterior(name)
            assert found.names == expected.names
            np.testing.assert_allclose(found.toarray(), expected.toarray(), atol=1e-9)
        assert ours.evidenceProbability() == pytest.approx(theirs.evidenceProbability())
        assert ours.H("A") == pytest.approx(theirs.H("A"), abs=1e-9)
        joint = ours.jointPosterior({"A", "D"})
        expected = theirs.jointPosterior({"A", "D"})
        for states in expected.loopIn():
            assert joint[states.todict()] == pytest.approx(expected[states.todict()], abs=1e-9)
    assert ours.posterior(network.idFromName("B")).names == ("B",)
    with pytest.raises(InputError, match="no variable 'Z'"):
        ours.setTargets({"Z"})


@pytest.mark.parametrize("evidence", [{}, {"B": "v"}, {"B": "v", "E": [0.2, 0.7]}])
def test_the_most_probable_explanation(evidence):
    gum.initRandom(1)
    network = gum.fastBN("A{x|y|z}->B{u|v}->C[3];A->D[2]->C;D->E{p|q}")
    ours, theirs = LazyPropagation(network), gum.LazyPropagation(network)
    for one in (ours, theirs):
        one.setEvidence(evidence)
    (best, found), (wanted, expected) = ours.mpeLog2Posterior(), theirs.mpeLog2Posterior()
    assert best.todict() == ours.mpe().todict() == wanted.todict()
    assert found == pytest.approx(expected)


@pytest.fixture
def numbers():
    """Variables whose labels are numbers, of every kind that pyAgrum has."""
    network = gum.BayesNet()
    network.add(gum.RangeVariable("range", "", 1, 3))
    network.add(gum.IntegerVariable("integer", "", [5, 1, 9]))
    network.add(gum.LabelizedVariable("label", "", ["1", "0"]))
    network.add(gum.DiscretizedVariable("interval", "", [0, 1, 2.5]))
    for name in ("integer", "label", "interval"):
        network.addArc("range", name)
    gum.initRandom(3)
    network.generateCPTs()
    return network


@pytest.mark.parametrize("what", [0, 1, 2, True, "0", "1", "2", "5", "1.0", "0.5", "x", -1, 99])
@pytest.mark.parametrize("name", ["range", "integer", "label", "interval"])
def test_an_integer_is_an_index_and_a_text_a_label(numbers, name, what):
    ours, theirs = LazyPropagation(numbers), gum.LazyPropagation(numbers)
    other = "integer" if name == "range" else "range"
    try:
        theirs.setEvidence({name: what})
        expected = theirs.posterior(other).toarray()
    except (gum.GumException, TypeError):
        ours.addEvidence(other, 0)
        with pytest.raises(InputError, match=f"variable '{name}' has no "):
            ours.addEvidence(name, what)
        ours.eraseEvidence(other)  # what was refused is not kept
        assert ours.evidenceProbability() == pytest.approx(1)
    else:
        ours.setEvidence({name: what})
        np.testing.assert_allclose(ours.posterior(other).toarray(), expected, atol=1e-12)


def test_what_names_no_variable_or_one_twice_is_refused(numbers):
    ours = LazyPropagation(numbers)
    for call, problem in (
        (lambda: ours.setEvidence({77: 0}), "no variable of the id 77"),
        (lambda: ours.posterior(77), "no variable of the id 77"),
        (lambda: ours.eraseEvidence("colour"), "no variable 'colour'"),
        (lambda: ours.setEvidence({"range": 1, numbers.idFromName("range"): 0}), "variable 'range' twice"),
    ):
        with pytest.raises(InputError, match=problem):
            call()
    for call, problem in (
        (lambda: ours.setEvidence([("range", 1)]), "evidence is .*a mapping"),
        (lambda: ours.setEvidence(None), "evidence is None"),
        (lambda: ours.jointPosterior("range"), "variables is 'range'"),
    ):
        with pytest.raises(TypeError, match=problem):
            call()


def test_targets_and_observed_variables_are_tracked_as_in_pyagrum():
    network = gum.fastBN("a->b->c")
    changes = [
        lambda one: one.targets(),
        lambda one: (one.addTarget("a"), one.targets()),
        lambda one: (one.addTarget(1), one.targets(), one.isTarget("b"), one.isTarget(2)),
        lambda one: (one.eraseTarget("a"), one.targets()),
        lambda one: (one.eraseAllTargets(), one.targets()),
        lambda one: (one.addAllTargets(), one.targets()),
        lambda one: (one.setTargets({"a", "c"}), one.targets()),
        lambda one: (one.setEvidence({"a": 1, "b": [0.2, 0.8], "c": [0, 0.5]}), one.hasEvidence("a")),
        lambda one: (one.nbrEvidence(), one.hardEvidenceNodes(), one.softEvidenceNodes()),
        lambda one: (one.eraseEvidence(0), one.hasEvidence(0), one.hardEvidenceNodes()),
    ]
    ours, theirs = LazyPropagation(network), gum.LazyPropagation(network)
    for number, change in enumerate(changes):
        assert str(change(ours)) == str(change(theirs)), number
    for first in (lambda one: one.eraseTarget("b"), lambda one: one.addJointTarget({"a", "b"})):
        ours, theirs = LazyPropagation(network), gum.LazyPropagation(network)
        first(ours)
        first(theirs)
        assert ours.targets() == theirs.targets()


@pytest.mark.parametrize("kind", ["NoisyOR", "Logit", "MAX"])
def test_tables_that_pyagrum_computes(kind):
    network = gum.BayesNet()
    for name in "abc":
        add = network.add if name != "c" else getattr(network, f"add{kind}")
        add(gum.RangeVariable(name, name, 0, 1), *([0.1] if name == "c" and kind != "MAX" else []))
    for name, weight in (("a", 0.4), ("b", 0.7)):
        network.cpt(name).fillWith([0.3, 0.7])
        network.addArc(name, "c") if kind == "MAX" else network.addWeightedArc(name, "c", weight)
    ours, theirs = LazyPropagation(network), gum.LazyPropagation(network)
    for one in (ours, theirs):
        one.setEvidence({"c": 1})
        one.makeInference()
    for name in "abc":
        np.testing.assert_allclose(ours.posterior(name).tolist(), theirs.posterior(name).tolist(), atol=1e-9)
