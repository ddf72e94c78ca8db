"""pyAgrum's figures for `bayesnets.py`; runs in the peers' environment.

    PEER bench/bayesnets_peer.py FOLDER/networks [--match TEXT | --network NAME] [--threads 1 2] [--record FILE]

Prints one JSON object a network (one line). `none` and `ten` (no evidence, ten variables observed): the junction tree's
cells, and for each engine and number of threads the seconds of one full propagation with all posteriors, the better of
two ways: an engine whose tree has been built already is run for the first time; or values of the observed variables
change and it is run again (not without evidence). `pruned`: one inference for each variable on what is not barren or
d-separated from it, trees included. `cases_per_second`: random cases of ten observations, one thread; `reused`: if all
of them observe the same variables, so that the tree is kept.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyagrum

from bayesnets_files import UNOBSERVED, Case, Network, draw_batch, load, same_variables, timed_cases
from bayesnets_pyagrum import ENGINES, Inference, bayes_net, observe, pruned, tree_cells

LARGEST_TREE = 500_000_000
"""Cells; pyAgrum needs 10 GB and minutes for link's 1.3e9."""


def propagate(inference: Inference, variables: int) -> None:
    inference.makeInference()
    for v in range(variables):
        inference.posterior(v)


def median_seconds(calls: Iterable[Callable[[], object]], budget: float) -> float:
    """Median time of the calls; no more of them are begun once the budget is used."""
    times: list[float] = []
    for call in calls:
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
        if sum(times) > budget:
            break
    return statistics.median(times)


def first_run(net: pyagrum.BayesNet, engine: type[Inference], case: Case) -> Callable[[], None]:
    inference = engine(net)
    observe(inference, case)
    inference.junctionTree()
    return lambda: propagate(inference, net.size())


def changed_runs(net: pyagrum.BayesNet, engine: type[Inference], cases: Sequence[Case]) -> Iterable[Callable[[], None]]:
    inference = engine(net)
    observe(inference, cases[0])
    propagate(inference, net.size())
    for case in cases[1:]:
        observe(inference, case)
        yield lambda: propagate(inference, net.size())


def propagation(net: pyagrum.BayesNet, cases: Sequence[Case], threads: list[int], budget: float) -> dict[str, Any]:
    """The tree and the times of all engines; `cases` observe the same variables, or none."""
    inference = pyagrum.LazyPropagation(net)
    observe(inference, cases[0])
    cells = tree_cells(net, inference)
    figures: dict[str, Any] = {"cells": sum(cells), "largest": max(cells), "cliques": len(cells)}
    if sum(cells) > LARGEST_TREE:
        return {**figures, "log10_evidence": None, "seconds": None}
    seconds: dict[str, dict[str, float]] = {}
    for name, engine in ENGINES.items():
        seconds[name] = {}
        for number in threads:
            pyagrum.setNumberOfThreads(number)
            first = median_seconds((first_run(net, engine, case) for case in cases), budget)
            changes = any(value != UNOBSERVED for value in cases[0])
            again = median_seconds(changed_runs(net, engine, cases), budget) if changes else math.inf
            seconds[name][str(number)] = round(min(first, again), 7)
    pyagrum.setNumberOfThreads(1)
    return {**figures, "log10_evidence": math.log10(inference.evidenceProbability()), "seconds": seconds}


def pruned_seconds(net: pyagrum.BayesNet, case: Case) -> float:
    started = time.perf_counter()
    for v, inference in pruned(net, case):
        inference.makeInference()
        inference.posterior(v)
    return round(time.perf_counter() - started, 6)


def cases_per_second(net: pyagrum.BayesNet, cases: Iterable[Case], budget: float) -> float:
    """By the better engine; one object for all cases, of which as many are run as the budget allows."""
    rates = []
    for engine in ENGINES.values():
        inference = engine(net)
        started, done = time.perf_counter(), 0
        for case in cases:
            observe(inference, case)
            propagate(inference, net.size())
            done += 1
            if time.perf_counter() - started > budget:
                break
        rates.append(done / (time.perf_counter() - started))
    return float(f"{max(rates):.4g}")


def figures_of(network: Network, threads: list[int], budget: float) -> dict[str, Any]:
    pyagrum.setNumberOfThreads(1)
    net = bayes_net(network)
    none, ten = timed_cases(network)
    figures: dict[str, Any] = {
        "none": propagation(net, none, threads, budget),
        "ten": propagation(net, ten, threads, budget),
        "pruned": {"none": pruned_seconds(net, none[0]), "ten": pruned_seconds(net, ten[0])},
    }
    if figures["ten"]["seconds"] is not None:
        figures["reused"] = cases_per_second(net, same_variables(network, ten[0], 1000), budget)
    if figures["none"]["seconds"] is not None:
        figures["cases_per_second"] = cases_per_second(net, draw_batch(network, 1000), budget)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", type=Path, help="the folder that bayesnets_export.py wrote")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--match", default="", help="networks whose name contains this")
    chosen.add_argument("--network", help="this one alone")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=3, help="for each median and rate; a run is finished")
    parser.add_argument("--record", type=Path, help="a JSON file in which these networks' figures are replaced")
    args = parser.parse_args()
    names = sorted(path.stem for path in args.networks.glob("*.npz"))
    chosen_names = [name for name in names if (name == args.network if args.network else args.match in name)]
    if not chosen_names:
        raise SystemExit(f"no such network in {args.networks}; there are {', '.join(names) or 'none'}")
    for name in chosen_names:
        figures = figures_of(load(args.networks / f"{name}.npz"), args.threads, args.seconds)
        print(json.dumps({name: figures}), flush=True)
        if args.record:
            recorded = json.loads(args.record.read_text()) if args.record.exists() else {}
            recorded[name] = figures
            lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(recorded.items()))
            args.record.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
