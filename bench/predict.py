"""Predictions for a batch of cases, by elimina's adapters, pgmpy and pyAgrum.

    python bench/predict.py DATA/bayesnets/bif/alarm.bif [--cases 10000] [--columns 10] [--peers 100] [--record]

All run in one process, in an environment with ``pip install pgmpy pyagrum``. The cases are samples of the network, in
which ``--columns`` variables are observed, those without children first. Two tasks: the posterior of the first
variable that is not observed, by the classifier for scikit-learn; and the posteriors of all others, by the adapter's
``predict_probability``. The peers answer the first ``--peers`` cases. pgmpy makes the joint distribution of all
variables of a query, 1.4 TiB for all of alarm, so it gets a query for each variable. Posteriors are compared.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import elimina
from record import Record

WARM_UP = 2  # calls before the one that is timed


def seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    answer = call()
    return time.perf_counter() - started, answer


def cases_of(model: elimina.Model, number: int, columns: int) -> Any:
    import pandas

    pairs = zip(model.factors, model.children, strict=True)
    parents = {v for factor, child in pairs for v in factor.scope if v != child}
    leaves = [v.name for place, v in enumerate(model.variables) if place not in parents]
    inner = [v.name for v in model.variables if v.name not in leaves]
    chosen = [*leaves, *inner][:columns]
    states = elimina.JunctionTree(model).sample(number, seed=1)
    return pandas.DataFrame({name: states[name] for name in chosen})


def by_pgmpy(network: Any, cases: Any, names: list[str]) -> np.ndarray:
    from pgmpy.inference import VariableElimination

    inference = VariableElimination(network)
    rows = []
    for record in cases.to_dict("records"):
        row = []
        for name in names:
            found = inference.query([name], record, show_progress=False)
            row += [found.get_value(**{name: state}) for state in network.states[name]]
        rows.append(row)
    return np.array(rows)


def by_pyagrum(network: Any, cases: Any, names: list[str]) -> np.ndarray:
    import pyagrum

    inference = pyagrum.LazyPropagation(network)
    if len(names) == 1:
        inference.addTarget(names[0])
    rows = []
    for record in cases.to_dict("records"):
        inference.setEvidence(record)
        inference.makeInference()
        rows.append(np.concatenate([inference.posterior(name).toarray() for name in names]))
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("network")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--peers", type=int, default=100, help="cases that the peers answer")
    parser.add_argument("--record", action="store_true", help="write bench/results/batch-prediction.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    from elimina.adapters.pgmpy import VariableElimination
    from elimina.adapters.sklearn import BayesNetClassifier

    model = elimina.read(options.network)
    cases = cases_of(model, options.cases, options.columns)
    few = cases.iloc[: options.peers]
    names = [v.name for v in model.variables if v.name not in cases.columns]
    columns = [f"{name}_{state}" for name in names for state in model[name].states]
    theirs, agrum = elimina.to_pgmpy(model), elimina.to_pyagrum(model)
    adapter, classifier = VariableElimination(theirs), BayesNetClassifier(model, names[0]).fit(None)
    tasks: list[tuple[str, list[str], Callable[[Any], np.ndarray]]] = [
        ("one posterior", names[:1], classifier.predict_proba),
        (f"{len(names)} posteriors", names, lambda frame: adapter.predict_probability(frame)[columns].to_numpy()),
    ]
    note = f"{options.cases:,} cases of {options.columns} observed variables; the peers, of one thread: {len(few):,}."
    record = Record("batch-prediction", ["task", "engine", "cases per second", "ratio", "largest difference"], note)
    for task, wanted, predict in tasks:
        for _ in range(WARM_UP):
            predict(few)
        own, answer = seconds(lambda predict=predict: predict(cases))
        own /= len(cases)
        record.add(task, "elimina", f"{1 / own:,.0f}", "", "")
        for name, call, network in (("pgmpy", by_pgmpy, theirs), ("pyAgrum", by_pyagrum, agrum)):
            peer, found = seconds(lambda call=call, network=network, wanted=wanted: call(network, few, wanted))
            peer /= len(few)
            difference = np.abs(found - answer[: len(few)]).max()
            record.add(task, name, f"{1 / peer:,.1f}", f"{peer / own:,.0f}", f"{difference:.0e}")
    for row in [record.columns, *record.rows]:
        print("  ".join(f"{cell:>20}" for cell in row))
    if options.record:
        print(record.save())


if __name__ == "__main__":
    main()
