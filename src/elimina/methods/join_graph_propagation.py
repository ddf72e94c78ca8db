"""Join-graph propagation: loopy belief propagation, and better approximations with larger clusters.

The clusters are mini-buckets (Mateescu, Kask, Gogate and Dechter 2010, "Join-graph propagation algorithms", section 3).
With messages over one variable, it is belief propagation; if no bucket is partitioned, it is exact.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import JoinGraph, PlannedTree
from elimina.methods.factor_lists import FactorList
from elimina.methods.sum_estimate import Limits, SumEstimate, hellinger_distances
from elimina.model.table import Scopes
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.ordering import rough_order
from elimina.planning.tree import plan_tree
from elimina.problem.preparation import Problem

METHOD = "join-graph propagation"

TOLERANCE = 1e-6
"""Messages have converged if they change by at most this number."""

CELL_BYTES = 16
"""Bytes for each cell of a cluster: its table, its messages and the joined table."""

CELL_GROWTH = 3.0
"""Least growth of a graph, relative to the previous one, that justifies its time."""

MIN_UPDATES = 2
"""Number of updates of each cluster of the first graph that run even beyond the time limit."""

FREE_UPDATES, MAX_UPDATES = 50, 300
"""Number of updates of each cluster before messages are damped, and largest number of updates in total. Messages that
have not converged by then seldom converge later."""

RUNG_TIME_SHARE = 0.3
"""Share of the remaining time for one graph: if it does not converge, most of the time is left for larger ones."""

DAMPING = 0.5
"""Weight of the old message in a damped message."""

DIFFERENCE_FACTOR = 2.0
"""Estimated error of a graph's marginals as a multiple of their distance from the smaller graph's marginals. The
distance alone is too small, because the errors of both graphs are similar and mostly have the same causes. The factor
is fitted to random models, and to files of the UAI competitions."""

UNKNOWN_ERROR = 0.5
"""Estimated error of the first graph's marginals, for which there are no others to compare with."""


class Rung(NamedTuple):
    """Mini-buckets of one size.

    Attributes:
        ibound: Largest number of variables of a message.
        tree: Mini-buckets over positions among the free variables.
        cells: Cells of all clusters.
        is_exact: True if no bucket is partitioned.
    """

    ibound: int
    tree: PlannedTree
    cells: float
    is_exact: bool


def rungs(scopes: Scopes, sizes: NDArray[np.int64], order: Sequence[int], most_cells: float) -> Iterator[Rung]:
    """Yield mini-buckets of growing size up to a number of cells; the smallest ones are always yielded.

    Args:
        scopes: Scopes of groups of factors.
        sizes: Number of states of each variable.
        order: Variables in elimination order.
        most_cells: Largest number of cells of all clusters together.
    """
    last: Rung | None = None
    cells = 0.0
    for ibound in range(1, len(order) + 2):
        tree = plan_tree(scopes, sizes.tolist(), order, ibound=ibound)
        rung = Rung(ibound, tree, _cells(tree, sizes), len(tree.variables) == len(order))
        if ibound == 1:
            # The first graph is yielded at once, because planning a second one takes time.
            yield rung
            if rung.is_exact:
                return
            cells = rung.cells
            continue
        if last is not None and (rung.cells > most_cells or rung.cells >= CELL_GROWTH * cells):
            yield last
            cells, last = last.cells, None
        if rung.cells > most_cells:
            return
        last = rung
        if rung.is_exact:
            break
    if last is not None:
        yield last


def _scopes_of(tree: PlannedTree) -> Scopes:
    """Return the scopes of the clusters: a bucket's variable and the variables of its message."""
    starts, members = tree.separators
    return Scopes(starts + np.arange(len(starts)), np.insert(members, starts[:-1], tree.variables).astype(np.int64))


def _cells(tree: PlannedTree, sizes: NDArray[np.int64]) -> float:
    starts, members = _scopes_of(tree)
    return float(np.multiply.reduceat(sizes[members].astype(np.float64), starts[:-1]).sum()) if len(members) else 0.0


def graph_of(factors: FactorList, rung: Rung, sizes: NDArray[np.int64]) -> JoinGraph:
    """Return the join graph of mini-buckets, with the factors in its clusters.

    Edges lead from each mini-bucket to the receiver of its message, and to the next mini-bucket of the same variable.
    """
    tree = rung.tree
    scopes, parents, variables = _scopes_of(tree), tree.parents, tree.variables
    starts, members = tree.separators
    children = np.flatnonzero(parents >= 0)
    firsts = np.flatnonzero(variables[:-1] == variables[1:])
    lengths = np.concatenate([np.diff(starts)[children], np.ones(len(firsts), dtype=np.int64)])
    of_children = members[np.repeat(parents >= 0, np.diff(starts))]
    graph = JoinGraph(
        sizes,
        scopes.starts,
        scopes.members.astype(np.int32),
        np.stack([np.concatenate([children, firsts]), np.concatenate([parents[children], firsts + 1])], axis=1)
        .astype(np.int32)
        .reshape(-1),
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([of_children, variables[firsts]]).astype(np.int32),
    )
    starts, members = factors.scopes
    graph.multiply(clusters_of(factors, tree), starts, members.astype(np.int32), factors.values)
    return graph


def clusters_of(factors: FactorList, tree: PlannedTree) -> NDArray[np.int64]:
    """Return the index of each factor's cluster."""
    clusters = np.zeros(len(factors.scopes.starts) - 1, dtype=np.int64)
    factor_starts, factor_indices = tree.factors
    clusters[factor_indices] = np.repeat(np.arange(len(tree.variables)), np.diff(factor_starts))
    return clusters


def positions_in_order(problem: Problem, options: CheckedOptions) -> Sequence[int]:
    """Return an elimination order that is found quickly, as positions among the free variables."""
    positions: list[int] = np.searchsorted(problem.free, rough_order(problem, options).order).tolist()
    return positions


def propagate(problem: Problem, options: CheckedOptions, limits: Limits) -> Iterator[SumEstimate]:
    """Yield the estimates of join graphs of growing size.

    Args:
        problem: Problem of a sum of products.
        options: Options of the elimination order.
        limits: Limits of time and memory.
    """
    sizes = problem.free_sizes
    factors = limits.factors_of(problem)
    if factors.log_scale == -math.inf:
        yield SumEstimate(METHOD, -math.inf, 0.0)
        return
    before: NDArray[np.float64] | None = None
    log_before = math.inf
    larger: Iterator[Rung] | None = None
    cell_seconds = 0.0
    while True:
        started = time.monotonic()
        if larger is None:
            order = positions_in_order(problem, options) if limits.order is None else limits.order
            larger = rungs(factors.scopes, sizes, order, limits.memory_bytes / CELL_BYTES)
        rung = next(larger, None)
        if rung is None:
            return
        while cell_seconds * rung.cells > limits.seconds:
            yield SumEstimate(METHOD)
            if limits.is_over:
                return
            started = time.monotonic()
        graph = graph_of(factors, rung, sizes)
        until = time.monotonic() + RUNG_TIME_SHARE * limits.seconds
        updates, is_settled = 0, False
        if before is None:
            # The first updates run even after a long preparation: without them there is no estimate.
            graph.run(TOLERANCE, 0.0, MIN_UPDATES * len(rung.tree.variables), math.inf)
        cell_seconds = (time.monotonic() - started) / max(1.0, rung.cells)
        while not is_settled:
            damping = 0.0 if updates < FREE_UPDATES else DAMPING
            seconds = min(limits.seconds, until - time.monotonic())
            is_settled = graph.run(TOLERANCE, damping, FREE_UPDATES * len(rung.tree.variables), seconds)
            updates += FREE_UPDATES
            is_settled |= graph.is_impossible or updates >= MAX_UPDATES or time.monotonic() >= until
            if not is_settled and not limits.is_over:
                continue
            log_z, shares = graph.log_sum() + factors.log_scale, graph.marginals(np.arange(len(sizes), dtype=np.int32))
            if log_z == -math.inf:
                # A sum of 0 is not proved: messages may have underflowed.
                break
            errors = np.full(len(sizes), UNKNOWN_ERROR)
            if before is not None:
                errors = DIFFERENCE_FACTOR * hellinger_distances(shares, before, sizes)
            # Equal estimates from two graphs do not prove that the error is 0: both may have the same error.
            errors = np.clip(errors + graph.residual, TOLERANCE, 1.0)
            log_error = max(abs(log_z - log_before), TOLERANCE)
            if rung.is_exact and graph.residual <= TOLERANCE:
                errors, log_error = np.zeros(len(sizes)), 0.0
            figures = {"ibound": rung.ibound, "cells": int(rung.cells), "residual": graph.residual}
            yield SumEstimate(METHOD, log_z, log_error, shares, errors, figures=figures)
        before, log_before = shares, log_z
