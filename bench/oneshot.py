"""Whole calls on Bayesian networks against pyAgrum: all posteriors once, from a model that is loaded.

    python bench/oneshot.py FOLDER [--networks asia alarm ...] [--repeat 9] [--record]

FOLDER holds the networks as BIF files (``.bif`` or ``.bif.gz``); pyAgrum has to be installed. Both use one thread.
Columns: milliseconds (median) of pyAgrum's LazyPropagation (inference and all posteriors), of
`solve(model, "mar", threads=1)`, of `JunctionTree(model)` with its first marginals, and the ratios pyAgrum / ours.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pyagrum

import elimina
from record import Record
from timing import median_seconds

COLUMNS = ("network", "pyAgrum", "`solve`", "ratio", "`JunctionTree` and first marginals", "ratio")
NOTE = "Milliseconds of all posteriors without evidence, one thread. Ratio: pyAgrum's time / ours."

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


def peer(model: elimina.Model) -> Callable[[], object]:
    """Return a call of pyAgrum on a network."""
    network = elimina.to_pyagrum(model)

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
    parser.add_argument("--record", action="store_true", help="Keep the table as bench/results/one-call.json.")
    options = parser.parse_args()
    record = Record("one-call", COLUMNS, NOTE)
    print(f"{'network':12}{'pyAgrum':>10}{'solve':>10}{'ratio':>8}{'JunctionTree':>14}{'ratio':>8}")
    for name in options.networks:
        path = next(path for path in sorted(options.folder.glob(f"{name}.bif*")))
        model = elimina.read(path)
        theirs = 1e3 * median_seconds(peer(model), options.repeat)
        ours = 1e3 * median_seconds(
            lambda model=model: elimina.solve(model, "mar", device="cpu", options=elimina.Options(threads=1)),
            options.repeat,
        )

        def tree(model: elimina.Model = model) -> None:
            engine = elimina.JunctionTree(model, device="cpu", options=elimina.Options(threads=1))
            engine.marginals()
            engine.close()

        first = 1e3 * median_seconds(tree, options.repeat)
        figures = f"{theirs:10.2f}{ours:10.2f}{theirs / ours:8.1f}{first:14.2f}{theirs / first:8.1f}"
        print(f"{name:12}{figures}", flush=True)
        record.add(name, *figures.split())
    if options.record:
        print(f"wrote {record.save()}")


if __name__ == "__main__":
    main()
