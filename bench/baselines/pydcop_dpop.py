"""pyDCOP 0.1.1's DPOP on the problem from standard input; runs in its own environment, with NumPy below 2.

    pip install pydcop==0.1.1 "numpy<2"
    PEER bench/baselines/pydcop_dpop.py < problem

The problem is a JSON object: `sizes` (of the variables), `edges` (pairs of them), `costs` (a table of integers for each
edge). What is printed is one, too: `cost` of the assignment, and seconds: `tree`, for its pseudo-tree, which it makes
centrally; `run`, its computations alone, which get each other's messages one after another; and `threads`, its own way,
an orchestrator and a thread for each agent, from their start to the last value chosen (it ends at a time-out only);
`processor`, what all threads of that took of the processor, with the tree.
What it needs of older versions of Python and NumPy is put back before it is imported.
"""

from __future__ import annotations

import collections
import collections.abc
import json
import logging
import os
import sys
import threading
import time
from collections import deque
from typing import Any

import numpy as np

collections.Iterable = collections.abc.Iterable  # type: ignore[attr-defined]
np.asscalar = lambda array: array.item()  # type: ignore[attr-defined]

from pydcop.algorithms import AlgoDef, ComputationDef  # noqa: E402
from pydcop.algorithms.dpop import (  # noqa: E402
    DpopAlgo,
    build_computation,
    communication_load,
    computation_memory,
)
from pydcop.computations_graph import pseudotree  # noqa: E402
from pydcop.dcop.dcop import DCOP  # noqa: E402
from pydcop.dcop.objects import AgentDef, Domain, Variable  # noqa: E402
from pydcop.dcop.relations import NAryMatrixRelation  # noqa: E402
from pydcop.distribution import oneagent  # noqa: E402
from pydcop.infrastructure.run import INFINITY, run_local_thread_dcop  # noqa: E402


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
    of_tree = time.process_time()
    pseudotree.build_computation_graph(problem)
    threads = in_threads(problem, graph)
    processor = time.process_time() - of_tree
    values = [int(parts[v.name].current_value) for v in variables]
    cost = sum(int(costs[values[a]][values[b]]) for (a, b), costs in zip(given["edges"], given["costs"], strict=True))
    return {"cost": cost, "tree": made - started, "run": ended - made, "threads": threads, "processor": processor}


def in_threads(problem: DCOP, graph: Any) -> float:
    """Seconds from the start of all agents to the last value; they are left running."""
    left, done = {node.name for node in graph.nodes}, threading.Event()
    select = DpopAlgo.value_selection

    def note(self: DpopAlgo, *arguments: Any) -> None:
        select(self, *arguments)
        left.discard(self.name)
        if not left:
            done.set()

    DpopAlgo.value_selection = note
    problem._agents_def = {f"a{name}": AgentDef(f"a{name}", capacity=100) for name in sorted(left)}
    places = oneagent.distribute(graph, problem.agents.values(), None, computation_memory, communication_load)
    started = time.perf_counter()
    orchestrator = run_local_thread_dcop(AlgoDef("dpop"), graph, places, problem, INFINITY)
    orchestrator.deploy_computations()
    threading.Thread(target=orchestrator.run, daemon=True).start()
    done.wait()
    return time.perf_counter() - started


def main() -> None:
    logging.disable(logging.CRITICAL)
    print(json.dumps(solve(json.load(sys.stdin))), flush=True)
    # Its threads would go on.
    os._exit(0)


if __name__ == "__main__":
    main()
