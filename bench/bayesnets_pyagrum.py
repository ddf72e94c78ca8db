"""pyAgrum on the networks of `bayesnets_files.py`; runs in the peers' environment, which has pyagrum and numpy."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyagrum
from numpy.typing import NDArray

from bayesnets_files import UNOBSERVED, Case, Network, draw_cases, joint_answer

ENGINES = {"lazy": pyagrum.LazyPropagation, "shafer": pyagrum.ShaferShenoyInference}
Inference = pyagrum.LazyPropagation | pyagrum.ShaferShenoyInference


def bayes_net(network: Network) -> pyagrum.BayesNet:
    """The same numbers, table by table through the API: no parser and no normalisation comes between."""
    result = pyagrum.BayesNet(network.name)
    for v, size in enumerate(network.sizes):
        result.add(pyagrum.RangeVariable(f"v{v}", "", 0, size - 1), v)
    for child, parents in enumerate(network.parents):
        # In pyAgrum's tables the child varies fastest, then the parents as their arcs were added.
        for parent in reversed(parents):
            result.addArc(parent, child)
    for child, table in enumerate(network.tables):
        result.cpt(child).fillWith(table.ravel().tolist())
    return result


def observe(inference: Inference, case: Case) -> None:
    """Make the case the evidence; a variable that stays observed only changes its value, so that the tree is kept."""
    for v, value in enumerate(case.tolist()):
        if value == UNOBSERVED:
            if inference.hasEvidence(v):
                inference.eraseEvidence(v)
        elif inference.hasEvidence(v):
            inference.chgEvidence(v, value)
        else:
            inference.addEvidence(v, value)


def tree_cells(net: pyagrum.BayesNet, inference: Inference) -> list[int]:
    """Table size of each clique of its junction tree, which is built if it was not."""
    tree = inference.junctionTree()
    return [math.prod(net.variable(v).domainSize() for v in tree.clique(clique)) for clique in tree.nodes()]


def pruned(net: pyagrum.BayesNet, case: Case) -> Iterator[tuple[int, pyagrum.LazyPropagation]]:
    """Return an engine for each variable not observed: pyAgrum leaves out what is barren or d-separated."""
    for v in np.flatnonzero(case == UNOBSERVED).tolist():
        yield v, alone(net, case, v)


def point_mass(size: int, value: int) -> NDArray[np.float64]:
    return np.eye(size)[value]


def alone(net: pyagrum.BayesNet, case: Case, target: int) -> pyagrum.LazyPropagation:
    inference = pyagrum.LazyPropagation(net)
    observe(inference, case)
    inference.eraseAllTargets()
    inference.addTarget(target)
    return inference


def chained_log10_evidence(net: pyagrum.BayesNet, case: Case) -> float:
    """By the chain rule, parents before children; evidenceProbability() would need the whole tree, not pruned ones."""
    given = np.full_like(case, UNOBSERVED)
    logarithms = []
    for v in net.topologicalOrder():
        if case[v] != UNOBSERVED:
            inference = alone(net, given, v)
            inference.makeInference()
            logarithms.append(math.log10(inference.posterior(v).toarray()[case[v]]))
            given[v] = case[v]
    return math.fsum(logarithms)


def posteriors(inference: Inference, variables: int) -> list[NDArray[np.float64]]:
    inference.makeInference()
    return [inference.posterior(v).toarray() for v in range(variables)]


def check_transfer() -> None:
    """Compare tables, evidence and posteriors with the joint table of a network where every axis order shows.

    Raises:
        AssertionError: They differ.
    """
    rng = np.random.default_rng(0)
    sizes = (2, 3, 4, 2, 5, 3, 2, 3)
    parents: tuple[tuple[int, ...], ...] = ((2, 3), (0, 2), (), (2,), (1, 0, 3), (4, 2, 0), (), (6,))
    tables = []
    for child, before in enumerate(parents):
        table = rng.random((*(sizes[p] for p in before), sizes[child])) ** 4
        tables.append(table / table.sum(axis=-1, keepdims=True))
    network = Network("check", sizes, parents, tuple(tables))
    net = bayes_net(network)
    for case in draw_cases(network).values:
        expected = joint_answer(network, case)
        assert expected is not None
        for engine in ENGINES.values():
            inference = engine(net)
            observe(inference, case)
            found = posteriors(inference, len(sizes))
            assert math.isclose(inference.evidenceProbability(), expected[1], rel_tol=1e-12)
            assert all(np.abs(a - b).max() < 1e-13 for a, b in zip(found, expected[0], strict=True))
        for v, inference in pruned(net, case):
            inference.makeInference()
            assert np.abs(inference.posterior(v).toarray() - expected[0][v]).max() < 1e-13
        assert math.isclose(chained_log10_evidence(net, case), math.log10(expected[1]), rel_tol=1e-12, abs_tol=1e-13)
