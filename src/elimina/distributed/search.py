"""Search on the workers of a cluster: open nodes of one tree with soft local consistency, and rounds of mini-buckets.

Each worker returns its remaining open nodes to the client, which hands them out again, those with the least bounds
first (A. Beldjilali, P. Montalbano, D. Allouche, G. Katsirelos, S. de Givry, "Parallel hybrid best-first search", CP
2022).
"""

from __future__ import annotations

import heapq
import itertools
import math
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.distributed.cluster import Tasks, stop_if_unwanted
from elimina.errors import TimeLimitError
from elimina.methods.and_or_search import (
    CONSISTENCY_SECONDS_PER_SEARCH_SECOND,
    MAX_MESSAGE_SECONDS,
    MIN_TURN_SHARE,
    ROUND_GROWTH,
    SEARCH_SECONDS_PER_MESSAGE_SECOND,
    check_costs,
    searched_optimum,
)
from elimina.methods.cost_shifting import MAX_SHIFT_SECONDS, ShiftedProblem, shift_tables
from elimina.methods.search_state import FIRST_ROUND_SECONDS, Listener, SearchLimits, SearchState
from elimina.methods.soft_consistency import CoreUnits, SoftConsistency
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.problem.preparation import Problem
from elimina.result import Result
from elimina.running.host import host_memory
from elimina.running.memory_shares import shares_of

_WORDS = 3
"""Number of integers that encode a decision."""

Words = NDArray[np.int64]


class Nodes(NamedTuple):
    """Open nodes of ``elimina._core.ConsistencySearch``.

    Attributes:
        bounds: Lower bound on the solutions below each node, in the core's costs; shape (nodes,).
        lengths: Number of decisions that lead to each node; shape (nodes,).
        decisions: Decisions of all nodes, one after another; shape (decisions * 3,).
    """

    bounds: Words
    lengths: Words
    decisions: Words

    @property
    def least(self) -> int:
        """The least bound."""
        return int(self.bounds.min())


ROOT = Nodes(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))


class Pool:
    """Open nodes without a worker: the least bound comes first and, among equal bounds, the deepest node."""

    def __init__(self, *groups: Nodes) -> None:
        self._heap: list[tuple[int, int, int, Words]] = []
        self._numbers = itertools.count()
        for nodes in groups:
            self.put(nodes)

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def least(self) -> int:
        """The least bound; the pool is not empty."""
        return self._heap[0][0]

    def put(self, nodes: Nodes) -> None:
        """Add the remaining nodes of a worker."""
        ends = np.cumsum(nodes.lengths)[:-1] * _WORDS
        decisions = np.split(nodes.decisions, ends) if len(nodes.bounds) else []
        for bound, length, words in zip(nodes.bounds.tolist(), nodes.lengths.tolist(), decisions, strict=True):
            # The decisions are copied, because a view would keep the whole message alive.
            heapq.heappush(self._heap, (bound, -length, next(self._numbers), words.copy()))

    def pop_nodes(self, max_nodes: int, stride: int) -> Nodes:
        """Remove and return every ``stride``-th of the best nodes, so that other workers also get good ones."""
        candidates = [heapq.heappop(self._heap) for _ in range(min(len(self._heap), max_nodes * stride))]
        for number, node in enumerate(candidates):
            if number % stride:
                heapq.heappush(self._heap, node)
        nodes = candidates[::stride]
        words = [node[3] for node in nodes]
        return Nodes(
            np.array([node[0] for node in nodes], np.int64),
            np.array([-node[1] for node in nodes], np.int64),
            np.concatenate(words) if words else np.zeros(0, np.int64),
        )

    def drop(self, top: int) -> None:
        """Drop the nodes with a bound of at least ``top``."""
        if any(node[0] >= top for node in self._heap):
            self._heap = [node for node in self._heap if node[0] < top]
            heapq.heapify(self._heap)


_FIRST_BUDGET_SECONDS, _MAX_BUDGET_SECONDS = 0.1, 3.0
"""First and longest time budget of a task, in seconds. Other workers get a task's results only when the task ends."""

_MAX_BUDGET_SHARE = 0.03
"""Largest time budget of a task, as a share of the time so far. A lost worker costs one budget."""

_MAX_NODES = 1024
"""Largest number of nodes that a worker gets for one time budget."""

_MAX_OPEN = 500_000
"""Largest number of open nodes on the client. With more, workers search below each of their nodes to the end."""

_SHORT_ROUND_SECONDS = 1.0
"""While no open node waits for a worker, a round of at most this many estimated seconds begins at once."""

_REPORT_SECONDS = 2.0
"""Seconds that tasks have after a time limit to report their results."""


class _Job(NamedTuple):
    """Data shared by all tasks of a search.

    Attributes:
        key: Key under which a worker caches objects made from these data.
        original: The problem before and after cost shifting.
        shift_seconds: Time limit of further cost shifting on a worker, in seconds.
        order: Elimination order; workers shift further costs to its last variables.
        options: Search options.
        memory: Bytes of the host that a task may use.
        score: Value that has to be improved: that of the best assignment, or a given bound; None if there is neither.
        is_found: True if ``score`` is the value of an assignment.
    """

    key: str
    original: ShiftedProblem
    shift_seconds: float
    order: tuple[int, ...]
    options: CheckedOptions
    memory: int
    score: int | float | None
    is_found: bool


class _NodesOutcome(NamedTuple):
    """Result of a search below open nodes, after its time budget.

    Attributes:
        open_nodes: Remaining open nodes.
        bound: Lower bound on the solutions below open and pruned nodes, in the core's costs.
        top: Least cost at which nodes are pruned.
        units: Units of these costs.
        chosen: The best assignment that the worker found.
        nodes: Number of searched nodes.
        bytes: Bytes of tables and cache.
    """

    open_nodes: Nodes
    bound: int
    top: int
    units: CoreUnits
    chosen: list[int] | None
    nodes: int
    bytes: int


class _Running(NamedTuple):
    """A running task: its start, and its open nodes (None: it is a round of mini-buckets)."""

    since: float
    nodes: Nodes | None


class ClusterSearch(SearchState):
    """A resumable search on the workers of a cluster, which may join and leave.

    Args:
        problem: Problem of the task ``mpe``.
        options: Search options; ``memory`` and ``threads`` hold for each task.
        limits: Limits of the search.
        listener: Function to call with both bounds whenever a task ends.

    Raises:
        UnsupportedError: Integer costs are too large.
    """

    def __init__(
        self, problem: Problem, options: CheckedOptions, limits: SearchLimits, listener: Listener | None
    ) -> None:
        check_costs(problem)
        super().__init__(problem, limits, listener)
        self.options = options
        self.stats["tasks"] = 0
        self._job: _Job | None = None
        self._pool = Pool(ROOT)
        self._units: CoreUnits | None = None
        self._top: int | None = None
        self._is_spent = self._is_stale = False
        self._unit: int | float = 0
        self._messages = FIRST_ROUND_SECONDS
        self._times = {"consistency": 0.0, "search": 0.0}
        self._running: dict[int, _Running] = {}

    def run(self, tasks: Tasks, seconds: float = math.inf) -> Result:
        """Search until the bounds are close enough, the time has passed, or the user interrupts.

        Args:
            tasks: Tasks on the workers.
            seconds: Seconds of this call.

        Raises:
            TimeLimitError: The time limit passed without any result.
            ClusterError: There are no workers any more.
        """
        until = time.monotonic() + min(seconds, self.limits.seconds)
        try:
            self._begin(tasks, until)
            with self.phase("search"):
                self._search_until(tasks, until)
        finally:
            self._reclaim_nodes()
        result = self.result()
        return result.replace(stats={**result.stats, **tasks.statistics})

    def _search_until(self, tasks: Tasks, until: float) -> None:
        """Distribute the open nodes until a time, and then wait for the results of running tasks."""
        while not self.is_over and (self._running or time.monotonic() < until):
            self._submit(tasks, until)
            answer = tasks.next(until + _REPORT_SECONDS)
            if answer is None:
                return
            self.stats.update(tasks.statistics)
            self._end(*answer)
            if self._is_stale:
                self._begin(tasks, until)

    def _begin(self, tasks: Tasks, until: float) -> None:
        """Store the data of the search on the workers; the first call shifts costs, once for all workers."""
        self._is_stale = False
        if self._job is None:
            seconds = min(MAX_SHIFT_SECONDS, max(0.0, until - time.monotonic()) / 10)
            with self.phase("shift"):
                self._job = tasks.wait_for(tasks.compute(_job, self.problem, self.options, seconds))
        if self._units is None:
            self._job = self._job._replace(key=uuid.uuid4().hex, score=self.score, is_found=self.chosen is not None)
        self._shared = tasks.store(self._job)

    def _reclaim_nodes(self) -> None:
        """Put the nodes of abandoned tasks back into the pool."""
        for running in self._running.values():
            if running.nodes is not None:
                self._pool.put(running.nodes)
        self._running.clear()

    def _submit(self, tasks: Tasks, until: float) -> None:
        """Submit a task for each idle worker, as long as there are nodes or a round is due."""
        while (idle := tasks.lanes - len(self._running)) > 0 and (remaining_seconds := until - time.monotonic()) > 0:
            number, now = self.stats["tasks"], time.monotonic()
            if self._is_round_due:
                limits = self.limits._replace(rounds=1, messages=self._messages, is_alone=True, deadline=None)
                tasks.submit(_round, self._shared, number, limits, self._result_so_far, remaining_seconds)
                self._running[number] = _Running(now, None)
            elif len(self._pool):
                nodes = self._pool.pop_nodes(_MAX_NODES, max(idle, min(2, tasks.lanes)))
                seconds = min(_MAX_BUDGET_SECONDS, max(_FIRST_BUDGET_SECONDS, _MAX_BUDGET_SHARE * (now - self.started)))
                has_room = len(self._pool) < _MAX_OPEN
                incumbent = None if self.chosen is None or self.score is None else (self.score, self.chosen)
                tasks.submit(
                    _search_nodes, self._shared, number, nodes, incumbent, min(remaining_seconds, seconds), has_room
                )
                self._running[number] = _Running(now, nodes)
            else:
                return
            self.stats["tasks"] += 1

    @property
    def _result_so_far(self) -> Result | None:
        """Best result so far, with which the next round begins; None before there is a bound."""
        return None if self.bound is None else self.result().replace(stats={})

    @property
    def _is_round_due(self) -> bool:
        """True if the next task is a round of mini-buckets. One runs at a time; rounds get a share of the time."""
        if any(running.nodes is None for running in self._running.values()):
            return False
        if self._is_spent:
            return True
        if self._units is None:
            # The first time budget shows whether soft local consistency is possible, and often solves the problem.
            return bool(self._running)
        seconds = (SEARCH_SECONDS_PER_MESSAGE_SECOND + 1) * self._messages
        if seconds < _SHORT_ROUND_SECONDS and not len(self._pool):
            return True
        more = CONSISTENCY_SECONDS_PER_SEARCH_SECOND * (1 / MIN_TURN_SHARE if self._is_ahead else 1.0)
        return self._times["search"] + seconds <= self._times["consistency"] / more

    @property
    def _is_ahead(self) -> bool:
        """True if soft local consistency has the better bound."""
        return self.bound is not None and self._bound_of_nodes() == self.bound

    def _bound_of_nodes(self) -> int | float | None:
        """Return the bound by the open nodes, or the pruning limit if there are none; None before the first result."""
        if self._units is None or self._job is None or self._top is None:
            return None
        ends = [running.nodes.least for running in self._running.values() if running.nodes is not None]
        if len(self._pool):
            ends.append(self._pool.least)
        return self._units.total(min(ends, default=self._top))

    def _end(self, number: int, outcome: _NodesOutcome | Result | None) -> None:
        """Take over the nodes and bounds of a finished task."""
        running = self._running.pop(number, None)
        if running is None:
            return
        seconds = time.monotonic() - running.since
        self._times["search" if running.nodes is None else "consistency"] += seconds
        if isinstance(outcome, Result):
            self._end_round(outcome)
        elif outcome is None:
            self._is_spent = True
            self._pool = Pool()
        else:
            self._end_nodes(outcome)
        self.report()

    def _end_round(self, result: Result) -> None:
        self._messages = min(MAX_MESSAGE_SECONDS, self._messages * ROUND_GROWTH)
        self.is_empty = result.status == "infeasible"
        self.add_result(result)
        plan_figures = {name: result.stats[name] for name in _PLAN_FIGURES if name in result.stats}
        self.stats.update(plan_figures)
        self.stats["nodes"] += result.stats.get("nodes", 0)
        self.stats["rounds"] += result.stats.get("rounds", 0)
        self.stats["peak_bytes"] = max(self.stats["peak_bytes"], result.stats.get("peak_bytes", 0))

    def _end_nodes(self, outcome: _NodesOutcome) -> None:
        self._units = outcome.units
        self._top = outcome.top if self._top is None else min(self._top, outcome.top)
        self._pool.put(outcome.open_nodes)
        self._pool.drop(self._top)
        self.stats["turns"] += 1
        self.stats["nodes"] += outcome.nodes
        self.stats["peak_bytes"] = max(self.stats["peak_bytes"], outcome.bytes)
        if outcome.chosen is not None:
            self.add_assignment(outcome.chosen)
        bound = self._bound_of_nodes()
        assert bound is not None
        if self.score is not None and self.chosen is not None and self.sign * bound > self.sign * self.score:
            bound = self.score
        self.raise_to(bound)
        is_done = not len(self._pool) and all(task.nodes is None for task in self._running.values())
        if is_done and self.chosen is None:
            # The search is complete. With float costs, the assignment found may have been rejected only because of
            # rounding, so the problem need not be infeasible.
            self.end(outcome.chosen is not None and not isinstance(outcome.units.unit, int))
        if is_done and not self.is_over:
            # Float costs are rounded to units. A better total permits finer units, in which the two bounds may become
            # equal, so the search starts again.
            self._is_spent = self.is_exhausted = outcome.units.unit == self._unit
            self._unit, self._units = outcome.units.unit, None
            if not self._is_spent:
                self._pool, self._top, self._is_stale = Pool(ROOT), None, True


_PLAN_FIGURES = ("induced_width", "largest_table", "total_cells", "dtype", "device", "ibound", "divided", "parts")
"""Figures of a round's plan."""


def _job(problem: Problem, options: CheckedOptions, seconds: float) -> _Job:
    """Shift costs, and find an elimination order: workers shift further costs to its last variables."""
    original = shift_tables(problem, options, seconds)
    order = elimination_order(original.moved, replace(options, order="min-fill", order_seconds=0.0))
    shift_seconds = seconds if options.shifts_tables else 0.0
    return _Job("", original, shift_seconds, order, options, host_memory(options), None, False)


def _round(job: _Job, number: int, limits: SearchLimits, previous: Result | None, seconds: float) -> tuple[int, Result]:
    """Return a round's number and the result of its mini-buckets on the whole problem."""
    limits = limits._replace(deadline=None if math.isinf(seconds) else time.monotonic() + seconds)
    try:
        result = searched_optimum(job.original.problem, job.options, limits, previous, stop_if_unwanted, job.original)
    except TimeLimitError:
        result = previous or Result("bounded", "mpe")
    return number, result


_idle: dict[str, list[SoftConsistency]] = {}
_idle_lock = threading.Lock()


def _search_nodes(
    job: _Job,
    number: int,
    nodes: Nodes,
    incumbent: tuple[int | float, Sequence[int]] | None,
    seconds: float,
    room: bool,
) -> tuple[int, _NodesOutcome | None]:
    """Search below open nodes for some seconds; the result is None if soft local consistency is not possible."""
    search = _search_of(job)
    if search is None:
        return number, None
    if incumbent is not None:
        search.add_incumbent(*incumbent)
    search.core.replace_open(*nodes)
    memory = shares_of(job.original.problem, job.memory).nodes if room else 0
    search_run = search.run(seconds, math.inf, memory, _poll)
    open_arrays = search.core.take_open()
    open_nodes = Nodes(open_arrays.bounds, open_arrays.lengths, open_arrays.decisions)
    core, units = search.core, search.units
    outcome = _NodesOutcome(open_nodes, core.bound, core.top, units, search_run.chosen, search_run.nodes, search.bytes)
    with _idle_lock:
        _idle.setdefault(job.key, []).append(search)
    return number, outcome


def _poll(*_: Any) -> bool:
    stop_if_unwanted()
    return True


def _search_of(job: _Job) -> SoftConsistency | None:
    """Return the cached search of an earlier task on this worker, or a new one; None if none is possible."""
    with _idle_lock:
        for key in _idle.keys() - {job.key}:
            del _idle[key]
        if _idle.get(job.key):
            return _idle[job.key].pop()
    threads = job.options.threads or 1
    problem, seconds = job.original.problem, job.shift_seconds
    return SoftConsistency.of(problem, job.order, job.score, job.is_found, threads, job.memory, seconds)
