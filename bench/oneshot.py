"""Whole calls on Bayesian networks against pyAgrum: all posteriors once, from a model that is loaded.

    python bench/oneshot.py FOLDER [--networks asia alarm ...] [--repeat 9]

FOLDER holds the networks as BIF files (``.bif`` or ``.bif.gz``); pyAgrum has to be installed. Both use one thread.
Columns: milliseconds (median) of pyAgrum's LazyPropagation (inference and all posteriors), of
`solve(model, "mar", threads=1)`, of `JunctionTree(model)` with its first marginals, and the ratios to pyAgrum.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pyagrum

import elimina

NETWORKS = [
    "asia",
    "cancer",
    "survey",
    "sachs",
    "child",
    "alarm",
    "insurance",
    "hepar2",
    "andes",
    "water",
    "barley",
    "mildew",
    "pigs",
]


def median_ms(call: Callable[[], object], repeat: int) -> float:
    """Return the median of several calls, in milliseconds, after one that is not counted."""
    call()
    times = []
    for _ in range(repeat):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return 1e3 * statistics.median(times)


def peer(model: elimina.Model) -> Callable[[], object]:
    """Return a call of pyAgrum on a network."""
    network = model.to_pyagrum()

    def call() -> None:
        inference = pyagrum.LazyPropagation(network)
        inference.setNumberOfThreads(1)
        inference.makeInference()
        for node in network.nodes():
            inference.posterior(node)

    return call


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--repeat", type=int, default=9)
    options = parser.parse_args()
    print(f"{'network':12}{'pyAgrum':>10}{'solve':>10}{'ratio':>8}{'JunctionTree':>14}{'ratio':>8}")
    for name in options.networks:
        path = next(path for path in sorted(options.folder.glob(f"{name}.bif*")))
        model = elimina.read(path)
        theirs = median_ms(peer(model), options.repeat)
        ours = median_ms(
            lambda model=model: elimina.solve(model, "mar", device="cpu", options=elimina.Options(threads=1)),
            options.repeat,
        )

        def tree(model: elimina.Model = model) -> None:
            engine = elimina.JunctionTree(model, device="cpu", options=elimina.Options(threads=1))
            engine.marginals()
            engine.close()

        first = median_ms(tree, options.repeat)
        figures = f"{theirs:10.2f}{ours:10.2f}{ours / theirs:8.2f}{first:14.2f}{first / theirs:8.2f}"
        print(f"{name:12}{figures}", flush=True)


if __name__ == "__main__":
    main()
