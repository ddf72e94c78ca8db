"""Optima by two alternating searches: AND/OR branch and bound with mini-buckets, and soft local consistency.

R. Marinescu, R. Dechter, "AND/OR branch-and-bound search for combinatorial optimization in graphical models",
Artificial Intelligence 173 (2009). The search runs in rounds with growing mini-buckets, so that the first rounds solve
easy problems quickly. Each round starts from the best assignment and bound so far, and is followed by a search with
soft local consistency.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from operator import itemgetter

from elimina import system
from elimina._core import search_tree
from elimina.errors import MemoryLimitError, TimeLimitError, UnsupportedError
from elimina.methods.cost_shifting import MAX_SHIFT_SECONDS, ShiftedProblem, shift_tables
from elimina.methods.local_search import AssignmentSearch
from elimina.methods.mini_buckets import Heuristic, PseudoTreeTables, heuristic_of, mini_bucket_statistics
from elimina.methods.paused_search import MIN_KEPT_MEMORY_BYTES, PausedSearch
from elimina.methods.search_state import Listener, SearchLimits, SearchState
from elimina.methods.soft_consistency import SoftConsistency
from elimina.number_texts import bytes_text
from elimina.option_names import option
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.number_type import cost_bound
from elimina.planning.options import replace
from elimina.planning.order import MAX_SEED
from elimina.planning.ordering import consistency_order, elimination_order
from elimina.problem.preparation import Problem
from elimina.result import Result
from elimina.running.execution import Execution, statistics
from elimina.running.host import host_memory, sharing_threads, turn_share
from elimina.running.memory_shares import Shares, shares_of, shares_of_bytes
from elimina.running.mini_bucket_plans import plan_within
from elimina.running.pool import spread

MAX_COST_SUM = 2**50
"""Limit on sums of integer costs, which the core adds as floats."""

TOTAL_TOLERANCE = 1.001e-9
"""Relative tolerance of an assignment's total if costs are floats: the core's tolerance, plus the rounding of sums of
thousands of terms."""

MAX_MESSAGE_SECONDS = 300.0
"""While a round would repeat the mini-buckets of the previous one, their time budget grows, up to this number of
seconds. A round that reaches this limit is the last one."""

ROUND_GROWTH = 10.0
"""Factor by which the time budget of mini-buckets grows from one round to the next."""

SEARCH_SECONDS_PER_MESSAGE_SECOND = 10.0
"""Seconds of AND/OR search in a round per second of its mini-buckets."""

CONSISTENCY_SECONDS_PER_SEARCH_SECOND = 2.0
"""Seconds of soft local consistency per second of AND/OR search. It gets more time because it resumes where it
stopped."""

LOCAL_SEARCH_SECONDS_PER_SECOND = 0.5
"""Seconds of local search per second of the preceding search, as long as it finds better assignments."""

UNPROMISING_LOCAL_SEARCH_SHARE = 0.25
"""Share of its usual time that local search gets if its last turn found no better assignment."""

MAX_UNREPORTED_SECONDS = 0.5
"""Seconds of local search between reports of its best assignment."""

ORDER_SECONDS_PER_MESSAGE_SECOND = 5.0
"""Seconds of the order search in a round per second of its mini-buckets."""

MIN_ORDER_SECONDS = 1e-3
"""Least seconds of the order search."""

CANDIDATE_ORDERS = 4
"""Number of candidate orders in later rounds: orders of equal width can lead to very different bounds."""

MIN_TURN_SHARE = 0.125
"""Share of its usual time that a search gets while the other search has the better bound: exactly this share for AND/OR
search, and at least this share for soft local consistency."""

MAX_REST_PER_SECOND = 4.0
"""Soft local consistency gets another turn, as long as its time so far, if its estimated remaining time is at most this
multiple of that time. On colourings and CELAR, the estimate is 0.2 to 1 times the true remaining time. For searches
that do not end in time, the ratio is far above this limit."""

MIN_SECONDS_PER_SETUP_SECOND = 0.5
"""Least time of the first turn of soft local consistency, as a multiple of the time of its set-up."""

ROOT_SHIFT_SECONDS = 0.05
"""Time limit of cost shifting before soft local consistency, which then improves the bound. The passes take at most
0.04 s on most problems. With the limit, warehouse location (cap131) takes 0.15 s instead of 0.44 s."""

RIVAL_SHARE, PACKING_RIVAL_SHARE = 0.1, 1.0
"""Seconds of a rival per second of soft local consistency so far: on most problems, and on packings. A rival is a
second search with another order; its set-up is included. A bad order costs up to 100 times the nodes on packings, but
little on grids, CELAR and colourings."""

PACKING_SECONDS = 4.0
"""Seconds of soft local consistency on packings before other searches run, whose bounds are weak on packings."""

MAX_RIVAL_REST = 0.5
"""A rival replaces the current search if the unfinished share of its search tree is at most this multiple of the
current search's unfinished share."""


def check_costs(problem: Problem) -> None:
    """Check that the search can add the costs.

    Raises:
        UnsupportedError: Integer costs are too large.
    """
    if problem.model.is_integer and (bound := cost_bound(problem)) > MAX_COST_SUM:
        raise UnsupportedError(
            f"search adds costs up to {MAX_COST_SUM:,}, and the tables' ranges add up to {bound - 1:,}; use "
            f"{option('method', 'eliminate')}, or scale the costs down"
        )


def searched_optimum(
    problem: Problem,
    options: CheckedOptions,
    limits: SearchLimits,
    tried: Result | None = None,
    listener: Listener | None = None,
    original: ShiftedProblem | None = None,
    paused: PausedSearch | None = None,
) -> Result:
    """Find an optimal assignment, or bounds on the optimum if the time ends first (``bounded``).

    Args:
        problem: Problem of the task ``mpe``.
        options: Options. If ``ibound`` is a number, there is one round with this i-bound; with ``auto`` or None,
            i-bounds increase. The device computes the messages.
        limits: Limits of the search.
        tried: Answer of an earlier strategy.
        listener: Called repeatedly with the result so far.
        original: The problem with its costs shifted; None: they are shifted by this call.
        paused: State of an earlier search, which this search resumes and updates.

    Raises:
        UnsupportedError: Integer costs are too large.
        MemoryLimitError: Not even the factors fit the memory.
        TimeLimitError: The deadline passed before the first result.
        KeyboardInterrupt: The user interrupted the call.
        Stopped: The call ends; the bounds so far were reported.
    """
    check_costs(problem)
    search = _AlternatingSearch(problem, options, limits, listener, paused)
    if tried is not None:
        search.add_result(tried)
    try:
        search.run(original)
    except TimeLimitError:
        if search.bound is None:
            raise
    return search.result()


class _AlternatingSearch(SearchState):
    """AND/OR search and soft local consistency, with the bounds and the assignment so far."""

    def __init__(
        self,
        problem: Problem,
        options: CheckedOptions,
        limits: SearchLimits,
        listener: Listener | None,
        paused: PausedSearch | None = None,
    ) -> None:
        super().__init__(problem, limits, listener)
        self.options = options
        self.is_improving = True
        self.memory = host_memory(options)
        self.paused = (paused or PausedSearch()).within(problem, self.memory)
        self.shares = shares_of(problem, self.memory)
        self.bytes_at_start = system.data_memory()

    @property
    def grown(self) -> int:
        """Bytes by which the process has grown since the search began; 0 if unknown, or if the limit ignores them."""
        if self.bytes_at_start is None or not self.options.is_shared:
            return 0
        system.release_memory()
        return max(0, (system.data_memory() or 0) - self.bytes_at_start)

    def remaining_shares(self) -> Shares:
        """Return the memory shares, reduced if the process has grown more than planned."""
        if self.bytes_at_start is None or not self.options.is_shared:
            return self.shares
        now = shares_of_bytes(host_memory(self.options.after_growth(self.grown)))
        return Shares(*map(min, now, self.shares))

    def threads_for(self, guide: PseudoTreeTables) -> int:
        """Return the number of threads whose data fit into the remaining memory; 0 if not even those of one thread fit.

        Each thread needs some bytes for each table: sixteen threads may need more than the tables of a large problem.

        Raises:
            MemoryLimitError: The data of one thread do not fit, and no other method is left.
        """
        max_threads = self.options.host_threads
        if self.bytes_at_start is None or not self.options.is_shared:
            return max_threads
        room = self.memory - self.grown
        # Only a single thread may use the memory that is reserved for the cache of AND/OR search.
        threads = max(
            guide.threads_within(room - self.remaining_shares().cache, max_threads), guide.threads_within(room, 1)
        )
        if threads == 0 and (self.paused.is_spent or self.limits.is_alone):
            needed = bytes_text(sum(guide.bytes()))
            raise MemoryLimitError(
                f"the search needs {needed} for its lists and may use {bytes_text(max(0, room))}; "
                f"give more memory ({option('memory')})"
            )
        return threads

    def run(self, original: ShiftedProblem | None) -> None:
        """Run rounds until the search is over or the limit of rounds is reached."""
        options, limits = self.options, self.limits
        self.propagate(limits.first_turn)
        self.improve(limits.first_turn / 2)
        if self.is_over or limits.rounds == 0:
            return
        seconds = min(MAX_SHIFT_SECONDS, limits.seconds / 10)
        with self.phase("shift"):
            original = original or self.paused.original or shift_tables(self.problem, options, seconds)
        self.paused.original = original
        problem = original.moved
        # The time limit is rounded to a power of two, so that slightly different times give the same order.
        longest = min(options.order_seconds, 2.0 ** math.floor(math.log2(max(seconds, MIN_ORDER_SECONDS))))
        order: tuple[int, ...] = ()
        budget, previous, order_seconds = limits.messages, None, -1.0
        while not self.is_over:
            if order_seconds < longest:
                order_seconds = min(ORDER_SECONDS_PER_MESSAGE_SECOND * budget, longest)
                order = self.best_order(problem, order, order_seconds)
            with self.phase("plan"):
                turn = min(budget, limits.seconds / 4)
                planned = plan_within(problem, order, options, self.remaining_shares().messages, turn)
                if not planned.plan.fits:
                    planned = plan_within(problem, order, options, self.shares.messages, turn)
            plan = planned.plan
            is_same = plan.minibuckets is not None and plan.minibuckets == previous
            if is_same and budget < min(limits.seconds, MAX_MESSAGE_SECONDS):
                budget *= ROUND_GROWTH
                continue
            is_last = is_same or plan.minibuckets is None or options.ibound not in (None, "auto")
            execution = Execution(problem, plan, planned.backend, deadline=limits.deadline)
            heuristic = heuristic_of(execution, self.clock)
            self.is_empty = math.isinf(heuristic.cost)
            self.raise_bound(original, heuristic, heuristic.cost)
            self.stats.update(
                {**statistics(execution, {}), **mini_bucket_statistics(plan), "rounds": self.stats["rounds"] + 1}
            )
            turn = SEARCH_SECONDS_PER_MESSAGE_SECOND * budget * turn_share(options)
            is_end = self.stats["rounds"] >= limits.rounds or (is_last and limits.nodes < math.inf)
            while not self.is_over:
                alone = is_last and self.paused.is_spent and not limits.is_alone
                self.search(original, heuristic, math.inf if alone else turn * (MIN_TURN_SHARE if self.is_ahead else 1))
                self.propagate(turn * CONSISTENCY_SECONDS_PER_SEARCH_SECOND * self.closeness)
                self.improve(turn)
                if is_end or not is_last:
                    break
                turn *= 2
            budget, previous = budget * ROUND_GROWTH, plan.minibuckets
            # These objects are deleted now to free their memory for the next round's plan and messages.
            del heuristic, execution, plan, planned
            if is_end:
                return

    def best_order(self, problem: Problem, order_so_far: tuple[int, ...], seconds: float) -> tuple[int, ...]:
        """Return the order with the best bound from small mini-buckets: the order so far, or one from a short search.

        If there is no order yet, a single search finds one. Otherwise, several searches are distributed over the
        threads.
        """
        tries = CANDIDATE_ORDERS if order_so_far else 1
        threads = min(tries, self.options.host_threads)
        order_options = replace(
            self.options, threads=self.options.host_threads // threads, order_seconds=seconds / tries
        )

        def orders(_: int, seeds: Iterator[int]) -> Iterator[tuple[int, ...]]:
            for seed in seeds:
                yield elimination_order(problem, replace(order_options, seed=seed))

        with self.phase("order"):
            seeds = [(order_options.seed + number) % MAX_SEED for number in range(tries)]
            orders_found = spread(range(threads), seeds, orders)
            candidates = list(
                dict.fromkeys(
                    [order_so_far] * bool(order_so_far) + [order for order in orders_found if order is not None]
                )
            )
            if len(candidates) == 1:
                return candidates[0]
            # A single thread is used on a GPU, because several would compete for its memory.
            threads = 1 if self.options.needs_gpu else threads
            single_threaded, memory = replace(self.options, threads=1), self.remaining_shares().messages // threads

            def costs(_: int, orders_of_thread: Iterator[tuple[int, ...]]) -> Iterator[float]:
                for order in orders_of_thread:
                    yield self.first_cost(problem, order, single_threaded, memory)

            bounds = spread(range(threads), candidates, costs)
            return max(zip(bounds, candidates, strict=True), key=itemgetter(0))[1]

    def first_cost(self, problem: Problem, order: tuple[int, ...], options: CheckedOptions, memory: int) -> float:
        """Return the bound from an order's mini-buckets, as in the first round; minus infinity if they do not fit."""
        planned = plan_within(problem, order, options, memory, self.limits.messages)
        if not planned.plan.fits:
            return -math.inf
        return heuristic_of(Execution(problem, planned.plan, planned.backend, deadline=self.limits.deadline), {}).cost

    @property
    def is_ahead(self) -> bool:
        """True if soft local consistency has the best bound."""
        return self.paused.consistency is not None and self.paused.consistency.bound == self.bound

    @property
    def closeness(self) -> float:
        """Gap of the best bound, divided by the gap of soft local consistency's bound; 1 if a gap is unknown.

        The ratio is at least ``MIN_TURN_SHARE``.
        """
        search = self.paused.consistency
        if search is None or self.score is None or self.bound is None:
            return 1.0
        gap = self.sign * (self.score - search.bound)
        return max(MIN_TURN_SHARE, self.sign * (self.score - self.bound) / gap) if gap > 0 else 1.0

    def search(self, original: ShiftedProblem, heuristic: Heuristic, seconds: float) -> None:
        """Run AND/OR search for some seconds if memory permits; store its best assignment and its bound.

        Raises:
            KeyboardInterrupt: The user interrupted.
        """
        if self.is_over or not (threads := self.threads_for(heuristic.guide)):
            return
        nodes_before = self.stats["nodes"]

        def poll(lower: float, upper: float, nodes: int, value: list[int] | None) -> bool:
            self.stats["nodes"] = nodes_before + nodes
            self.raise_bound(original, heuristic, lower)
            if value is not None and upper < math.inf:
                self.add_assignment(heuristic.complete(value))
            self.report()
            return not self.is_close

        limit = math.inf if self.score is None else heuristic.cost_of(original.moved_total(self.score))
        if self.chosen is None:
            # The search accepts only costs below the limit. If only the score of an assignment is known, the limit is
            # raised, so that the search can find this assignment.
            limit += max(1.0, TOTAL_TOLERANCE * abs(limit))
        start = None if self.chosen is None else [self.chosen[v] for v in heuristic.plan.order]
        cache = self.remaining_shares().cache
        with self.phase("search"):
            outcome = search_tree(
                *heuristic.tables,
                limit,
                start,
                min(seconds, self.limits.seconds),
                self.limits.nodes,
                threads,
                cache,
                self.options.seed,
                poll,
            )
        self.stats["nodes"] = nodes_before + outcome["nodes"]
        self.stats["peak_bytes"] += outcome["bytes"]
        if math.isfinite(outcome["cost"]):
            self.add_assignment(heuristic.complete(outcome["value"]))
        self.raise_bound(original, heuristic, outcome["bound"])
        if outcome["bound"] >= min(limit, outcome["cost"]):
            # If costs are floats, the search's assignment may have been rejected only because of rounding.
            self.end(not heuristic.is_integer and math.isfinite(outcome["cost"]))
        self.report()
        if outcome["interrupted"]:
            raise KeyboardInterrupt

    def propagate(self, seconds: float) -> None:
        """Run soft local consistency for one time budget, or longer if it is expected to end soon."""
        paused = self.paused
        while not (self.is_over or paused.is_spent or self.limits.is_alone):
            if paused.consistency is None:
                paused.consistency = self.begin_consistency(paused.order)
            if paused.consistency is None:
                paused.is_spent = True
                return
            search = paused.consistency
            if not search.nodes:
                seconds = max(seconds, MIN_SECONDS_PER_SETUP_SECOND * search.setup)
            self.turn(search, seconds)
            seconds = search.seconds
            if not search.is_done and (search.rest > MAX_REST_PER_SECOND * seconds or self.limits.nodes < math.inf):
                rival = self.begin_rival(search)
                is_short = seconds < PACKING_SECONDS and self.limits.nodes == math.inf
                if rival is None and not (search.reduction.is_packing and is_short):
                    return
                paused.consistency = rival or search
            if not paused.consistency.is_done:
                continue
            unit = paused.consistency.units.unit
            # Float costs are rounded to units. A better total permits finer units, in which lower and upper bound may
            # meet.
            paused.is_spent = unit == paused.unit
            self.is_exhausted = paused.is_spent
            paused.consistency, paused.unit = None, unit

    def begin_rival(self, search: SoftConsistency) -> SoftConsistency | None:
        """Search briefly with another order; return the new search if far less of its tree remains, otherwise None.

        No search begins if the order is prescribed, nodes are limited, or time or memory is short.
        """
        share = PACKING_RIVAL_SHARE if search.reduction.is_packing else RIVAL_SHARE
        seconds = share * search.seconds - search.setup
        is_free = isinstance(self.options.order, str) and self.limits.nodes == math.inf
        if seconds <= 0 or not is_free or self.memory < MIN_KEPT_MEMORY_BYTES or self.is_over:
            return None
        self.paused.orders += 1
        rival = self.begin_consistency(self.paused.orders)
        if rival is None:
            return None
        self.turn(rival, seconds)
        if 1 - rival.core.progress > MAX_RIVAL_REST * (1 - search.core.progress):
            return None
        self.paused.order = self.paused.orders
        return rival

    def turn(self, search: SoftConsistency, seconds: float) -> None:
        """Run soft local consistency for some seconds; store its best assignment and its bound.

        Raises:
            KeyboardInterrupt: The user interrupted.
        """
        if self.chosen is not None and self.score is not None:
            search.add_incumbent(self.score, self.chosen)
        before = self.stats["nodes"]

        def poll(bound: int | float, chosen: list[int] | None, nodes: int) -> bool:
            self.stats["nodes"] = before + nodes
            self.raise_to(bound)
            if chosen is not None:
                self.add_assignment(chosen)
            self.report()
            return not self.is_close

        limits = min(seconds, self.limits.seconds), self.limits.nodes, self.shares.nodes
        with self.phase("consistency"):
            turn = search.run(*limits, poll)
        self.stats["nodes"] = before + turn.nodes
        self.stats["turns"] += 1
        self.stats["peak_bytes"] = max(self.stats["peak_bytes"], search.bytes)
        if turn.chosen is not None:
            self.add_assignment(turn.chosen)
        self.raise_to(turn.bound)
        if search.is_done and self.chosen is None:
            self.end(turn.chosen is not None and not isinstance(search.units.unit, int))
        self.report()
        if turn.interrupted:
            raise KeyboardInterrupt

    def improve(self, seconds: float) -> None:
        """Improve the best assignment by local search for a share of ``seconds``; do nothing if nodes are limited."""
        # Runs with a node limit are reproducible, so local search, which depends on the clock, is left out.
        if self.is_over or self.limits.nodes < math.inf:
            return
        if self.paused.improvement is None:
            with self.phase("improve"):
                threads = sharing_threads(self.options)
                self.paused.improvement = AssignmentSearch.of(self.problem, self.memory, self.options.seed, threads)
        search = self.paused.improvement
        if search is None:
            return
        end = time.monotonic() + min(
            LOCAL_SEARCH_SECONDS_PER_SECOND * seconds * (1 if self.is_improving else UNPROMISING_LOCAL_SEARCH_SHARE),
            self.limits.seconds,
        )
        score_before = self.score
        if self.chosen is not None and search.score != self.score:
            search.start(self.chosen)
        while not self.is_over and (remaining := end - time.monotonic()) > 0:
            with self.phase("improve"):
                is_better = search.run(min(remaining, MAX_UNREPORTED_SECONDS))
            if is_better:
                self.add_assignment(search.best)
                self.report()
        self.is_improving = self.score != score_before

    def begin_consistency(self, order: int) -> SoftConsistency | None:
        """Return a new search; None if it is too large. ``order`` is a number: see ``consistency_order``."""
        options = self.options
        seconds = min(ROOT_SHIFT_SECONDS, self.limits.seconds / 10) if options.shifts_tables else 0.0
        with self.phase("consistency"):
            ordered = consistency_order(self.problem, options, order, self.paused.first_order)
            threads = options.host_threads
            is_found = self.chosen is not None
            return SoftConsistency.of(self.problem, ordered, self.score, is_found, threads, self.memory, seconds)

    def raise_bound(self, original: ShiftedProblem, heuristic: Heuristic, cost: float) -> None:
        """Convert a cost of the mini-buckets to a bound; store the bound if it is the best one so far."""
        if math.isfinite(cost):
            self.raise_to(original.bound(heuristic.bound_of(cost)))
