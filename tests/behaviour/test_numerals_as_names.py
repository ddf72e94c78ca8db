"""Variables whose names are the indices of others answer every question that they answer under other names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import elimina
from elimina import DynamicModel, InfluenceDiagram, JunctionTree, Model, OnlineFilter

LETTERS = {"a": "a", "b": "b", "c": "c", "d": "d"}
NUMERALS = {"a": "2", "b": "3", "c": "1", "d": "0"}
"""Names of the variables; as numerals, each is the index of another variable."""

Names = dict[str, str]


def _network(n: Names) -> Model:
    random = np.random.default_rng(0)
    tables = {}
    for key in (("a",), ("b", "a"), ("c", "a", "b"), ("d", "c")):
        weights = random.random((2,) * len(key))
        tables[tuple(n[letter] for letter in key)] = weights / weights.sum(axis=0)
    return Model.from_cpds(tables)


def _process(n: Names, *, is_chain: bool) -> DynamicModel:
    initial = {n["a"]: [0.4, 0.6], (n["b"], n["a"]): [[0.5, 0.3], [0.5, 0.7]]}
    transition = {(n["a"], f"{n['a']}[-1]"): [[0.6, 0.3], [0.4, 0.7]]}
    if not is_chain:
        transition[n["b"], n["a"], f"{n['a']}[-1]"] = [[[0.9, 0.4], [0.2, 0.1]], [[0.1, 0.6], [0.8, 0.9]]]
    return DynamicModel.from_cpds(initial, transition)


def _diagram(n: Names) -> InfluenceDiagram:
    return InfluenceDiagram.from_tables(
        chance={n["a"]: [0.5, 0.5], (n["b"], n["a"]): [[0.8, 0.3], [0.2, 0.7]]},
        decisions={n["c"]: [n["b"]], n["d"]: [n["b"], n["c"]]},
        utilities={("gain", n["a"], n["c"]): [[1, 2], [3, 0]], ("fee", n["c"], n["d"]): [[0, 1], [1, 0]]},
        states={n["c"]: 2, n["d"]: 2},
    )


def _tree(ask: Callable[[JunctionTree, Names], Any]) -> Callable[[Names], Any]:
    return lambda n: ask(JunctionTree(_network(n), evidence={n["d"]: 1}), n)


def _over_time(ask: Callable[[DynamicModel, Names], Any], *, is_chain: bool) -> Callable[[Names], Any]:
    return lambda n: ask(_process(n, is_chain=is_chain), n)


TREES = {
    "marginals": lambda tree, n: tree.marginals([n["a"], n["c"]])[n["c"]].array,
    "max-marginals": lambda tree, n: tree.max_marginals()[n["a"]].array,
    "joint": lambda tree, n: tree.joint([n["a"], n["b"]]).array,
    "joint of one": lambda tree, n: tree.joint([n["b"]]).array,
    "conditional": lambda tree, n: tree.conditional([n["a"]], [n["b"], n["c"]]).array,
    "entropy": lambda tree, n: tree.entropy([n["a"]]),
    "mutual information": lambda tree, n: tree.mutual_information([n["a"]], [n["b"]]),
    "batch": lambda tree, n: tree.batch({n["a"]: [0, 1]}, [n["b"]], joints=[[n["b"], n["c"]]]).marginals[n["b"]],
    "predict": lambda tree, n: tree.predict({n["a"]: [0, 1]}, n["b"]),
    "predict probabilities": lambda tree, n: tree.predict_proba({n["a"]: [0, 1]}, n["b"]),
    "map of a batch": lambda tree, n: tree.map_batch({n["a"]: [0, 1]}, [n["b"], n["c"]]).states[n["b"]],
    "mpe of a batch": lambda tree, n: tree.mpe_batch({n["a"]: [0, 1]}).states[n["b"]],
    "sample": lambda tree, n: tree.sample(5, seed=1, names=[n["c"], n["a"]])[n["c"]],
    "samples of a batch": lambda tree, n: tree.sample_batch({n["a"]: [0, 1]}, seed=1).states[n["c"]],
    "impacts": lambda tree, n: [row.divergence for row in tree.impacts(n["a"])],
    "conflict": lambda tree, n: tree.conflict().bits,
    "observation values": lambda tree, n: [row.information for row in tree.observation_values(n["a"], [n["b"]])],
    "sensitivities": lambda tree, n: sorted(row.derivative for row in tree.sensitivities({n["a"]: 0})),
    "explanations": lambda tree, n: [row.posterior for row in tree.relevant_explanations([n["a"], n["b"]])],
}

PROCESSES = {
    "filter": lambda model, n: model.filter({n["b"]: [0, None, 1]}).marginals[n["a"]],
    "smooth": lambda model, n: model.smooth({n["b"]: [0, None, 1]}, [n["b"], n["a"]]).marginals[n["a"]],
    "viterbi": lambda model, n: model.viterbi({n["b"]: [0, 1, 1]})[1],
    "predict over time": lambda model, n: model.predict({n["b"]: [0, 1]}, 2).marginals[n["a"]],
    "bare states": lambda model, n: model.filter([0, None, 1]).marginals[n["a"]],
    "bare array": lambda model, n: model.filter(np.array([[0], [1]])).marginals[n["a"]],
    "stream of states": lambda model, n: [tables[n["a"]].array for tables in model.stream([0, 1])],
    "stream": lambda model, n: [tables[n["a"]].array for tables in model.stream([{n["b"]: 0}, {n["b"]: 1}])],
    "predict online": lambda model, n: OnlineFilter(model, [n["a"]]).predict(2)[n["a"]].array,
    "learn": lambda model, n: elimina.fit(model, {n["b"]: [0, 1, 1, 0]}).log_likelihoods[-1],
    "little memory": lambda model, n: model.smooth({n["b"]: [0, 1] * 50}, memory="128KiB").log_evidence,
}

QUESTIONS = {
    **{name: _tree(ask) for name, ask in TREES.items()},
    **{name: _over_time(ask, is_chain=False) for name, ask in PROCESSES.items()},
    **{f"{name} of a chain": _over_time(ask, is_chain=True) for name, ask in PROCESSES.items()},
    "decide": lambda n: _diagram(n).solve().value,
    "decide with memory": lambda n: _diagram(n).with_no_forgetting().solve().value,
    "decide with evidence": lambda n: _diagram(n).solve(evidence={n["a"]: 0}).value,
    "policies": lambda n: _diagram(n).solve(policies=_diagram(n).solve().policies).value,
    "gains": lambda n: [row.gain for row in _diagram(n).observation_gains(n["c"])],
    "best states": lambda n: elimina.solve(_network(n), "mmap", query=[n["c"], n["a"]]).value,
    "posterior": lambda n: list(elimina.solve(_network(n), "mar", query=[n["c"]]).marginals[n["c"]].values()),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_do_not_depend_on_names(question: str):
    expected, answer = (QUESTIONS[question](names) for names in (LETTERS, NUMERALS))
    np.testing.assert_allclose(np.asarray(answer, dtype=float), np.asarray(expected, dtype=float), rtol=1e-9)
