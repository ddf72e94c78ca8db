"""Proposals from the messages of a join graph (Gogate and Dechter 2011, "SampleSearch", section 2.3: IJGP-sampling).

A variable is drawn in proportion to the product of the factors and messages in its mini-buckets. The sample's weight is
divided by these messages again, so any messages give a valid proposal. Unlike messages of mini-buckets, those of a join
graph depend on the factors on both sides of an edge.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elimina._core import JoinGraph
from elimina.methods.factor_lists import FactorList, factors_of
from elimina.methods.join_graph_propagation import (
    CELL_BYTES,
    DAMPING,
    FREE_UPDATES,
    MAX_UPDATES,
    TOLERANCE,
    Rung,
    clusters_of,
    graph_of,
    rungs,
)
from elimina.methods.proposals import LoggedTables, Proposal
from elimina.problem.preparation import Problem

_TABLE_SECONDS, _CELL_SECONDS = 2e-5, 2e-7
"""Seconds to lay out a table of a graph for a sampler, and seconds of propagation for each cell of a cluster."""

_PROPAGATION_SHARE = 0.5
"""Share of the time for propagation: even without it, samples have correct weights."""


def join_graph_proposal(problem: Problem, order: Sequence[int], memory: int, seconds: float) -> Proposal | None:
    """Return the proposal from the messages of the largest join graph within the limits; None if there is none.

    There is none if the sum is 0, if no graph fits the memory or the time, or if no assignment of positive probability
    is drawn.

    Args:
        problem: Problem of the task ``pr``.
        order: Free variables in elimination order.
        memory: Memory limit of the graph's tables, in bytes.
        seconds: Time limit in seconds.
    """
    started = time.monotonic()
    sizes = problem.free_sizes
    factors = factors_of(problem)
    if factors.log_scale == -math.inf or 2 * _TABLE_SECONDS * (len(factors.scopes.starts) - 1) > seconds:
        return None
    number_of = {v: number for number, v in enumerate(problem.free)}
    positions = [number_of[v] for v in order]
    *_, rung = rungs(factors.scopes, sizes, positions, min(memory / CELL_BYTES, seconds / _CELL_SECONDS))
    if CELL_BYTES * rung.cells > memory:
        return None
    graph = graph_of(factors, rung, sizes)
    deadline = started + _PROPAGATION_SHARE * seconds
    updates = FREE_UPDATES * len(rung.tree.variables)
    for turn in range(MAX_UPDATES // FREE_UPDATES):
        remaining = deadline - time.monotonic()
        if remaining <= 0 or graph.run(TOLERANCE, DAMPING if turn else 0.0, updates, remaining):
            break
    if graph.is_impossible:
        return None
    logged = _logged_tables(factors, rung, graph, sizes, positions)
    rows = sizes[positions]
    sampler = logged.sampler(rows, 0, len(rows), is_weighted=True)
    return Proposal(sampler, tuple(order), factors.log_scale, math.inf, False, 8 * logged.cells)


def _logged_tables(
    factors: FactorList, rung: Rung, graph: JoinGraph, sizes: NDArray[np.int64], order: Sequence[int]
) -> LoggedTables:
    """Return the logarithms of all factors and messages, each in the bucket of the cluster that reads it."""
    tree = rung.tree
    rows = np.empty(len(order), dtype=np.int64)
    rows[list(order)] = np.arange(len(order))
    logged = LoggedTables()
    senders = np.flatnonzero(tree.parents >= 0)
    homes, origins = rows[tree.variables[tree.parents[senders]]].tolist(), rows[tree.variables[senders]].tolist()
    starts, members = tree.separators
    ends = np.cumsum([0, *(int(sizes[members[starts[c] : starts[c + 1]]].prod()) for c in senders.tolist())])
    with np.errstate(divide="ignore"):
        messages, values = np.log(graph.messages(len(senders))), np.log(factors.values)
    for number, sender in enumerate(senders.tolist()):
        scope = members[starts[sender] : starts[sender + 1]]
        logs = messages[ends[number] : ends[number + 1]].reshape(sizes[scope])
        logged.add(rows[scope].tolist(), homes[number], logs, origins[number])
    homes = rows[tree.variables[clusters_of(factors, tree)]].tolist()
    starts, members = factors.scopes
    end = 0
    for number, home in enumerate(homes):
        scope = members[starts[number] : starts[number + 1]]
        begin, end = end, end + int(sizes[scope].prod())
        logged.add(rows[scope].tolist(), home, values[begin:end].reshape(sizes[scope]))
    return logged
