"""pyDCOP 0.1.1's DPOP on problems from standard input; runs in its own environment, with NumPy below 2.

    pip install pydcop==0.1.1 "numpy<2"
    PEER bench/baselines/pydcop_dpop.py < problems

Each line is a JSON object: `sizes` (of the variables), `edges` (pairs of them), `costs` (a table of integers for
each). For each one is printed, as one JSON object a line: `cost` of the assignment, `tree` and `run` (seconds).

Its pseudo-tree is made first, centrally; then its computations get each other's messages one after another. Its own
way, a thread for each agent and an orchestrator, is slower, and ends at its time-out only. What it needs of older
versions of Python and NumPy is put back before it is imported.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import logging
import sys
import time
from collections import deque
from typing import Any

import numpy as np

collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]
np.asscalar = lambda array: array.item()  # type: ignore[attr-defined]

from pydcop.algorithms import AlgoDef, ComputationDef  # noqa: E402
from pydcop.algorithms.dpop import build_computation  # noqa: E402
from pydcop.computations_graph import pseudotree  # noqa: E402
from pydcop.dcop.dcop import DCOP  # noqa: E402
from pydcop.dcop.objects import Domain, Variable  # noqa: E402
from pydcop.dcop.relations import NAryMatrixRelation  # noqa: E402


def solve(given: dict[str, Any]) -> dict[str, float]:
    variables = [
        Variable(f"x{v:04}", Domain(f"d{size}", "", list(range(size)))) for v, size in enumerate(given["sizes"])
    ]
    functions = [
        NAryMatrixRelation([variables[a], variables[b]], np.array(costs), name=f"c{number}")
        for number, ((a, b), costs) in enumerate(zip(given["edges"], given["costs"], strict=True))
    ]
    started = time.perf_counter()
    problem = DCOP(variables={v.name: v for v in variables}, constraints={f.name: f for f in functions})
    graph = pseudotree.build_computation_graph(problem)
    made = time.perf_counter()
    waiting: deque[tuple[str, str, Any]] = deque()
    parts = {node.name: build_computation(ComputationDef(node, AlgoDef("dpop"))) for node in graph.nodes}
    for part in parts.values():
        part.message_sender = lambda source, target, message, *_: waiting.append((source, target, message))
        part.start()
    while waiting:
        source, target, message = waiting.popleft()
        parts[target].on_message(source, message, 0)
    ended = time.perf_counter()
    values = [int(parts[v.name].current_value) for v in variables]
    cost = sum(int(costs[values[a]][values[b]]) for (a, b), costs in zip(given["edges"], given["costs"], strict=True))
    return {"cost": cost, "tree": made - started, "run": ended - made}


def main() -> None:
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        print(json.dumps(solve(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
