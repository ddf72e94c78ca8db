"""Bounds on an optimum by passes of cost shifting over clusters on a GPU, and beam searches between them."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from elimina._core import FORBIDDEN_COST, count_path
from elimina.errors import MemoryLimitError, UnsupportedError
from elimina.methods.beam_search import BeamResult, beam_searches
from elimina.methods.join_graph import (
    BEAM_SHARE,
    BEAM_STEP_SECONDS,
    MIN_PASS_GAIN,
    ClusterUnits,
    JoinGraph,
    in_units,
    rungs,
)
from elimina.number_texts import count_text
from elimina.planning.checked_options import CheckedOptions
from elimina.result import Result
from elimina.running.bounded_results import result_between
from elimina.running.content_partition import partition_by_content
from elimina.running.encoding import distances
from elimina.running.host import host_memory

if TYPE_CHECKING:
    from elimina.backends.cuda.device import CudaDevice
    from elimina.methods.cost_shifting import ShiftedProblem
    from elimina.running.budget import Budget

logger = logging.getLogger("elimina")

_BYTES_PER_CELL = 24
"""Bytes of a GPU for each cell: of the table, and of the intermediate results of a pass."""

_REPORT_SECONDS = 0.05
"""Seconds between two reports of bounds."""


class _GpuBounds:
    """Bounds and assignment from clusters on a GPU.

    Attributes:
        bound: Largest lower bound, in units.
        result: Result with the bounds and the best assignment so far.
    """

    def __init__(self, original: ShiftedProblem, units: ClusterUnits, budget: Budget, device: str) -> None:
        self.bound, self.result = -math.inf, Result("bounded", "mpe")
        self._original, self._units, self._budget, self._device = original, units, budget, device
        self._least, self._report_time = math.inf, -math.inf
        self._chosen: list[int] | None = None

    def add_constant(self, constant: float) -> None:
        """Report the constant of a pass as a lower bound, at most once in ``_REPORT_SECONDS``."""
        now = time.monotonic()
        if now > self._report_time + _REPORT_SECONDS:
            self.add_bound(constant)
            self._report_time = now

    def add_bound(self, bound: float, end: BeamResult | None = None, constant: float = 0.0) -> None:
        """Store and report a lower bound and the assignment of a beam search, if either of them is an improvement."""
        is_better = end is not None and constant + end.cost < self._least
        if bound <= self.bound and not is_better:
            return
        self.bound = max(self.bound, bound)
        problem, units = self._original.moved, self._units
        if end is not None and is_better:
            self._least = constant + end.cost
            self._chosen = problem.complete(end.values, end.values.values())
        total = None
        if self.bound < math.inf:
            whole = int(self.bound) if problem.model.is_integer else self.bound / units.unit
            total = self._original.bound(units.offset + whole)
        result = result_between(self._original.problem.model, total, self._chosen)
        self.result = result.replace(stats={"method": "search", "device": self._device})
        self._budget.report(self.result)


def bounds_on_gpu(
    original: ShiftedProblem, order: Sequence[int], options: CheckedOptions, gpu: CudaDevice, budget: Budget
) -> Result:
    """Bound an optimum by passes of cost shifting over clusters of growing size on a GPU.

    Beam searches in the clusters' tables find assignments and better bounds.

    Args:
        original: Problem of the task ``mpe``, with its costs shifted between tables.
        order: The free variables in elimination order.
        options: Options with the partition of buckets, and the memory of the GPU.
        gpu: The GPU.
        budget: Time, and the listener for each better bound.

    Raises:
        UnsupportedError: The costs differ too much in size, or were not shifted between tables.
        MemoryLimitError: Not even small clusters fit.
        DeviceError: The device failed or is out of memory.
    """
    problem = original.moved
    count_path("cuda-clusters")
    if original.shifted is None:
        raise UnsupportedError("costs cannot be shifted")
    units = in_units(problem, distances(problem, FORBIDDEN_COST))
    bounds = _GpuBounds(original, units, budget, gpu.name)
    max_cells = (gpu.memory() if options.memory is None else min(options.memory, gpu.memory())) // _BYTES_PER_CELL
    ibounds = list(rungs(problem, order, max_cells))
    for number, ibound in enumerate(ibounds):
        # The time limit doubles from one i-bound to the next.
        seconds = budget.seconds / (2 ** (len(ibounds) - number) - 1)
        until = time.monotonic() + seconds
        partition = None
        if options.partition != "scope":
            memory, threads = host_memory(options), options.host_threads
            partition = partition_by_content(problem, order, ibound, memory, seconds / 2, threads)
        graph = JoinGraph(problem.model.sizes, [scope for scope, _ in units.tables], order, ibound, partition)
        if graph.cells > max_cells:
            break
        logger.info("clusters of i-bound %d on a GPU: %s cells", ibound, count_text(graph.cells))
        _shift_and_search(graph, units, gpu, until, bounds, (max_cells - graph.cells) * _BYTES_PER_CELL)
        # No further graph is begun after one that took twice its time, because other processes may be using the GPU.
        # The first graph is exempt, because its time includes the compilation of kernels.
        is_late = number > 0 and time.monotonic() > until + seconds
        if bounds.result.status != "bounded" or is_late:
            break
    if bounds.bound == -math.inf:
        raise MemoryLimitError("clusters of two variables do not fit the GPU")
    return bounds.result


def _shift_and_search(
    graph: JoinGraph, units: ClusterUnits, gpu: CudaDevice, until: float, bounds: _GpuBounds, room: int
) -> None:
    """Shift costs and run beam searches on one graph of clusters, with ``room`` further bytes of GPU memory."""
    began = time.monotonic()
    seconds = until - began
    # A beam search is run only if its time suffices to assign all variables.
    is_searched = BEAM_SHARE * seconds > BEAM_STEP_SECONDS * len(graph.buckets)
    with gpu.arrays() as arrays:
        uploaded = [(scope, arrays.asarray(table)) for scope, table in units.tables]
        tables = [graph.join(cluster, uploaded, arrays) for cluster in graph.clusters]
        shifted = began + (1.0 - BEAM_SHARE if is_searched else 1.0) * seconds - time.monotonic()
        constant = graph.shift(tables, shifted, max(1.0, MIN_PASS_GAIN * units.spread), gpu, bounds.add_constant)
        bounds.add_bound(constant)
        if is_searched and constant < math.inf:
            for end in beam_searches(graph, tables, until, arrays, room):
                bounds.add_bound(constant + end.bound, end, constant)
