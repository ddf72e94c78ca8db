"""Generalised belief propagation on region graphs of growing size.

Regions are those of the cluster variation method: the factors, loops of up to four variables, and unions of these, with
all their intersections (Yedidia, Freeman and Weiss 2005, "Constructing free-energy approximations and generalized
belief propagation algorithms"). Kikuchi's free energy is minimised by message passing or, if this does not converge, by
the double loop of Heskes, Albers and Kappen 2003, "Approximate inference and constrained optimization".
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from elimina._core import RegionGraph, RegionPropagation, short_loops
from elimina.methods.sum_estimate import Limits, SumEstimate, hellinger_distances
from elimina.model.table import Scopes
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem

METHOD = "generalised belief propagation"

TOLERANCE = 1e-6
"""Largest difference at which the probabilities of two regions count as equal."""

MAX_RESIDUAL = 0.2
"""Largest difference between the probabilities of regions at which estimates are still returned."""

OUTER_CELL_BYTES, MESSAGE_CELL_BYTES = 8, 16
"""Bytes of a cell of an outer region and of a message."""

MEMBER_BYTES = 32
"""Bytes of a region graph for each variable in a region or an edge."""

CLUSTER_CELLS = (1 << 9, 1 << 16)
"""Largest numbers of cells of clusters made by joining regions, one number for each graph."""

ROUND_SWEEPS = 50
"""Sweeps between checks of the residual."""

DAMPINGS, MIN_PROGRESS = (0.5, 0.5, 0.8), 0.5
"""Damping factors in the sequence in which they are tried. If the residual after a round is more than ``MIN_PROGRESS``
times the residual before it, the next factor is used, and after the last factor the double loop."""

INNER_SWEEPS, INNER_PRECISION = 4, 0.3
"""Largest number of inner sweeps of the double loop, and the share of the outer change at which they end."""

RUNG_TIME_SHARE, MAX_REST = 0.2, 1e-3
"""Share of the remaining time after which the next graph is begun, if the residual is at most the second number."""

TURN_TIME_SHARE = 0.05
"""Share of the remaining time after which other methods run, even if messages have not converged."""

MIN_CELL_GROWTH = 1.5
"""Least growth of the regions for which a change of the marginals indicates their error."""

IRREGULAR_SHARE = 0.5
"""Least error, as a share of the previous change, if messages have hardly converged: the smaller and the larger regions
may then have similar errors."""

SIMILAR_ERROR = 0.05
"""Least estimated error of marginals if they can only be compared with those from regions of a similar size."""

MIN_CHANGE_RATIO = 0.05
"""Least estimated error, as a share of the change of the marginals."""

UNKNOWN_ERROR = 0.5
"""Estimated error of the first graph's marginals, for which there are no others to compare with."""

CELL_SECONDS = 5e-8
"""Expected seconds until the first estimate for each cell of the outer regions."""


class _Regions:
    """Region graphs of a problem, each with larger regions than the previous one.

    Args:
        scopes: Scopes of groups of factors.
        sizes: Number of states of each variable.
        limits: Limits of time and memory.
    """

    def __init__(self, scopes: Scopes, sizes: NDArray[np.int64], limits: Limits) -> None:
        self._scopes, self._sizes, self._limits = scopes, sizes, limits

    def graphs(self) -> Iterator[tuple[str, RegionGraph]]:
        """Yield the kind of a graph's outer regions, and the graph, while graphs fit the memory and the time."""
        graph = self._fitting(self._scopes, 1)
        if graph is None:
            return
        yield "factors", graph
        larger = self._fitting(self._scopes)
        if larger is None:
            return
        if len(larger.inner[0]) != len(graph.inner[0]):
            graph = larger
            yield "factors and intersections", graph
        larger = self._fitting(self._with_loops())
        if larger is None:
            return
        if len(larger.outer[0]) != len(graph.outer[0]):
            graph = larger
            yield "loops", graph
        for cells in CLUSTER_CELLS:
            clusters = Scopes(*graph.grow(cells, self._limits.seconds))
            larger = self._fitting(clusters)
            if larger is None:
                return
            if larger.outer_cells > graph.outer_cells:
                graph = larger
                yield f"clusters of up to {cells} cells", graph

    def _with_loops(self) -> Scopes:
        """Return the scopes together with short loops; if memory is short, with the smallest loops only."""
        starts, members = self._scopes
        count = self._limits.memory_bytes // (4 * MEMBER_BYTES)
        loops = Scopes(*short_loops(len(self._sizes), starts, members.astype(np.int32), count, self._limits.seconds))
        return _joined(self._scopes, loops)

    def _fitting(self, scopes: Scopes, largest: int = 60) -> RegionGraph | None:
        """Return the region graph of clusters; None if it does not fit the memory or the time."""
        starts, members = scopes
        cells = np.multiply.reduceat(self._sizes[members].astype(np.float64), starts[:-1]).sum() if len(members) else 0
        if cells * OUTER_CELL_BYTES > self._limits.memory_bytes:
            return None
        max_members = self._limits.memory_bytes // MEMBER_BYTES
        graph = RegionGraph(self._sizes, starts, members.astype(np.int32), largest, max_members, self._limits.seconds)
        fits = graph.is_complete and _bytes(graph) <= self._limits.memory_bytes
        return graph if fits else None


def _bytes(graph: RegionGraph) -> float:
    return graph.outer_cells * OUTER_CELL_BYTES + graph.message_cells * MESSAGE_CELL_BYTES


def _joined(first: Scopes, second: Scopes) -> Scopes:
    """Return the concatenation of two lists of scopes."""
    return Scopes(
        np.concatenate([first.starts, second.starts[1:] + first.starts[-1]]),
        np.concatenate([first.members, second.members]),
    )


def generalised_belief_propagation(problem: Problem, options: CheckedOptions, limits: Limits) -> Iterator[SumEstimate]:
    """Yield estimates for region graphs of growing size; none if not even the factors fit the memory.

    Args:
        problem: Problem of a sum of products.
        options: Options of the call.
        limits: Limits of time and memory.
    """
    sizes = problem.free_sizes
    if 8 * float(problem.groups.cells(problem.model.size_array).sum()) > limits.memory_bytes:
        return
    factors = limits.factors_of(problem)
    if factors.log_scale == -math.inf:
        yield SumEstimate(METHOD, -math.inf, 0.0)
        return
    changes = _Changes(sizes)
    for kind, graph, is_last in _with_last(_Regions(factors.scopes, sizes, limits).graphs()):
        while CELL_SECONDS * graph.outer_cells > limits.seconds and (limits.has_estimate or changes.has_estimate):
            yield SumEstimate(METHOD)
            if limits.is_over:
                return
        starts, members = factors.scopes
        propagation = RegionPropagation(graph, starts, members.astype(np.int32), factors.values)
        if not propagation.filter_tuples(limits.seconds):
            # A sum of 0 is not proved: values may have underflowed.
            return
        passes, cells = _Passes(propagation, limits, is_last), graph.outer_cells + graph.message_cells
        for _ in passes.run():
            if propagation.residual > MAX_RESIDUAL:
                yield SumEstimate(METHOD)
                continue
            log_z = propagation.log_sum() + factors.log_scale
            shares = propagation.marginals(np.arange(len(sizes), dtype=np.int32))
            errors, log_error = changes.errors(shares, log_z, cells)
            figures: dict[str, int | float | str] = {
                "regions": kind,
                "cells": int(graph.outer_cells),
                "residual": propagation.residual,
            }
            errors = np.clip(errors + propagation.residual, TOLERANCE, 1.0)
            yield SumEstimate(METHOD, log_z, max(log_error, TOLERANCE), shares, errors, figures=figures)
        if propagation.residual <= MAX_RESIDUAL:
            changes.add(shares, log_z, cells, passes.has_settled_early)


class _Changes:
    """Changes of the estimates from one graph to the next, from which their errors are estimated.

    Args:
        sizes: Number of states of each variable.
    """

    def __init__(self, sizes: NDArray[np.int64]) -> None:
        self._sizes = sizes
        self._shares: NDArray[np.float64] | None = None
        self._log_z, self._cells = math.inf, 0.0
        self._change, self._is_regular = 0.0, False

    @property
    def has_estimate(self) -> bool:
        """True if there is an estimate of an earlier graph."""
        return self._shares is not None

    def errors(self, shares: NDArray[np.float64], log_z: float, cells: float) -> tuple[NDArray[np.float64], float]:
        """Return the estimated errors of marginals, and of the logarithm of the sum.

        If the latest change is smaller than the one before, the next change is expected to be smaller by the same
        factor.

        Args:
            shares: Marginals.
            log_z: Logarithm of the sum.
            cells: Cells of regions and messages.
        """
        if self._shares is None:
            return np.full(len(self._sizes), UNKNOWN_ERROR), math.inf
        changes, log_change = hellinger_distances(shares, self._shares, self._sizes), abs(log_z - self._log_z)
        if cells < MIN_CELL_GROWTH * self._cells:
            return np.maximum(changes, SIMILAR_ERROR), log_change
        if not self._is_regular:
            return np.maximum(changes, IRREGULAR_SHARE * self._change), log_change
        ratio = min(1.0, max(MIN_CHANGE_RATIO, float(changes.mean()) / self._change))
        return ratio * changes, ratio * log_change

    def add(self, shares: NDArray[np.float64], log_z: float, cells: float, is_regular: bool) -> None:
        """Store estimates for comparison with later ones, if their graph is far larger than the previous graph.

        Args:
            shares: Marginals.
            log_z: Logarithm of the sum.
            cells: Cells of regions and messages.
            is_regular: False if messages have hardly converged: later changes may then be larger.
        """
        if cells < MIN_CELL_GROWTH * self._cells:
            return
        if self._shares is not None:
            self._change = float(hellinger_distances(shares, self._shares, self._sizes).mean())
            self._is_regular = is_regular and self._change > 0
        self._shares, self._log_z, self._cells = shares, log_z, cells


class _Passes:
    """Passes of messages between the regions of a graph.

    Args:
        propagation: Regions and their messages.
        limits: Limit of time.
        is_last: True if no other graph follows; the passes may then use all of the time.

    Attributes:
        has_settled_early: True if messages converged without the double loop.
    """

    def __init__(self, propagation: RegionPropagation, limits: Limits, is_last: bool) -> None:
        self._propagation, self._limits, self._is_last = propagation, limits, is_last
        self.has_settled_early = False

    def run(self) -> Iterator[None]:
        """Pass messages; yield after each ``TURN_TIME_SHARE`` of the time, at the time limit and at the end."""
        propagation, limits = self._propagation, self._limits
        until = time.monotonic() + RUNG_TIME_SHARE * limits.seconds
        turn_end = time.monotonic() + TURN_TIME_SHARE * limits.seconds
        failures, residual, is_settled = 0, 1.0, False
        while not is_settled:
            if not self._is_last and time.monotonic() >= until and propagation.residual <= MAX_REST:
                break
            if failures < len(DAMPINGS):
                is_settled = propagation.run(TOLERANCE, DAMPINGS[failures], ROUND_SWEEPS, limits.seconds)
                failures += propagation.residual > MIN_PROGRESS * residual
                residual = propagation.residual
                self.has_settled_early = is_settled
            else:
                is_settled = propagation.run_double_loop(
                    TOLERANCE, INNER_PRECISION, INNER_SWEEPS, ROUND_SWEEPS, limits.seconds
                )
            if not is_settled and (limits.is_over or time.monotonic() >= turn_end):
                yield
                turn_end = time.monotonic() + TURN_TIME_SHARE * limits.seconds
        yield


def _with_last(graphs: Iterator[tuple[str, RegionGraph]]) -> Iterator[tuple[str, RegionGraph, bool]]:
    """Yield each graph with its kind and a flag that is True for the last one."""
    latest = next(graphs, None)
    while latest is not None:
        following = next(graphs, None)
        yield *latest, following is None
        latest = following
