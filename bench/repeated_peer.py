"""Figures of compiled-knowledge for ``repeated.py``; runs in an environment with ``pip install compiled-knowledge``.

Reads a line of JSON for each network: ``name`` of its example, ``queries``: for each the observed variables and the
indices of their states; or none, which asks for the network itself. Prints a line of JSON for each: the network; or
``seconds`` of each query, of its program alone and with normalised marginals, and the marginals of the last one.
"""

from __future__ import annotations

import functools
import itertools
import json
import sys
import time
from typing import Any

from ck import example
from ck.pgm import PGM
from ck.pgm_circuit.marginals_program import MarginalsProgram
from ck.pgm_compiler import DEFAULT_PGM_COMPILER


def network(pgm: PGM) -> dict[str, Any]:
    """Return name and states of the variables, and scope and values of each factor."""
    factors = []
    for factor in pgm.factors:
        keys = itertools.product(*(range(len(rv)) for rv in factor.rvs))
        factors.append(([rv.idx for rv in factor.rvs], [factor.function[key] for key in keys]))
    return {"variables": [(rv.name, [str(state) for state in rv.states]) for rv in pgm.rvs], "factors": factors}


@functools.cache
def compiled(name: str) -> tuple[PGM, MarginalsProgram]:
    """Return a network and its circuit."""
    pgm = getattr(example, name)()
    return pgm, MarginalsProgram(DEFAULT_PGM_COMPILER(pgm))


def answers(name: str, queries: list[list[tuple[int, int]]]) -> dict[str, Any]:
    """Time each query on the compiled circuit."""
    pgm, program = compiled(name)
    alone, whole = [], []
    for query in queries:
        condition = [pgm.rvs[variable][state] for variable, state in query]
        started = time.perf_counter()
        program.compute_conditioned(*condition)
        alone.append(time.perf_counter() - started)
        started = time.perf_counter()
        found = program.marginal_for_rvs(pgm.rvs, condition=condition)
        whole.append(time.perf_counter() - started)
    last = [[float(share) for share in shares] for shares in found]
    return {"alone": alone, "whole": whole, "last": last}


for line in sys.stdin:
    task = json.loads(line)
    name = task["name"]
    print(json.dumps(answers(name, task["queries"]) if "queries" in task else network(compiled(name)[0])), flush=True)
