"""Repeated queries of one network, in turns with compiled-knowledge: three observed variables, all posteriors.

    python bench/repeated.py --peer PEER_PYTHON [--queries 1000] [--record]

``PEER_PYTHON`` is a Python 3.12 with ``pip install compiled-knowledge``, which brings the networks and compiles each
into an arithmetic circuit. The observed states are drawn from the network. The figures are medians over the queries:
our ``set_evidence`` and ``marginals``, the peer's marginals, and a run of its circuit, which normalises nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

import elimina
from record import Record

NETWORKS = ("Asia", "Cancer", "Survey", "Sachs", "Child", "Alarm", "Insurance", "Hailfinder", "Hepar2", "Pathfinder")
OBSERVED = 3
TURN = 50
"""Queries that one of both answers before it is the other's turn."""
WARM_UP = 5
"""Queries of a turn before those that count."""


class Peer:
    """A process with compiled-knowledge that answers a line of JSON by another."""

    def __init__(self, python: str) -> None:
        script = Path(__file__).with_name("repeated_peer.py")
        self._process = subprocess.Popen([python, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **task: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def model_of(found: dict[str, Any]) -> elimina.Model:
    variables = [elimina.Variable(name, len(states), states) for name, states in found["variables"]]
    tables = [
        elimina.Table(scope, np.reshape(values, [variables[v].size for v in scope]))
        for scope, values in found["factors"]
    ]
    return elimina.Model(variables, tables, sense="probability")


def drawn_queries(tree: elimina.JunctionTree, number: int) -> list[list[tuple[int, int]]]:
    rng, variables = random.Random(1), range(len(tree.model.variables))
    samples = tree.sample(number, seed=1, indices=True)
    return [[(v, int(row[v])) for v in sorted(rng.sample(variables, OBSERVED))] for row in samples]


def answered(
    tree: elimina.JunctionTree, queries: list[list[tuple[int, int]]]
) -> tuple[list[float], dict[str, np.ndarray]]:
    """Return the seconds of each query, and the marginals of the last one."""
    variables, seconds = tree.model.variables, []
    for query in queries:
        evidence = {variables[v].name: variables[v].state(state) for v, state in query}
        started = time.perf_counter()
        tree.set_evidence(evidence)
        marginals = tree.marginals()
        seconds.append(time.perf_counter() - started)
    return seconds, marginals


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="Python with compiled-knowledge")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--record", action="store_true", help="write bench/results/repeated-queries.json")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        # Cores of one machine differ by a third where others share them.
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    peer = Peer(options.peer)
    record = Record(
        "repeated-queries",
        ["network", "elimina, us", "peer, us", "ratio", "its circuit alone, us", "ratio", "largest difference"],
        "Microseconds of a query, median, both on one core, in turns of 50 queries; ratio: peer / ours.",
    )
    for name in NETWORKS:
        model = model_of(peer.ask(name=name))
        tree = elimina.JunctionTree(model, options=elimina.Options(threads=1))
        queries = drawn_queries(tree, options.queries)
        ours, whole_of_peer, alone_of_peer = [], [], []
        for first in range(0, len(queries), TURN):
            turn = queries[first : first + TURN]
            theirs = peer.ask(name=name, queries=turn)
            seconds, marginals = answered(tree, turn)
            # The processor's caches are the other's when a turn begins.
            ours += seconds[WARM_UP:]
            whole_of_peer += theirs["whole"][WARM_UP:]
            alone_of_peer += theirs["alone"][WARM_UP:]
        own, whole, alone = (1e6 * statistics.median(seconds) for seconds in (ours, whole_of_peer, alone_of_peer))
        pairs = zip(marginals.values(), theirs["last"], strict=True)
        difference = max(float(np.abs(found - expected).max()) for found, expected in pairs)
        ratios = f"{whole / own:.2f}", f"{alone / own:.2f}"
        record.add(name, f"{own:.1f}", f"{whole:.1f}", ratios[0], f"{alone:.1f}", ratios[1], f"{difference:.0e}")
        print("  ".join(f"{cell:>12}" for cell in record.rows[-1]), flush=True)
    if options.record:
        print(record.save())


if __name__ == "__main__":
    main()
