"""Travelling salesman problems: short tours by local search, bounds by 1-trees, proofs by propagation and search."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from elimina import arguments
from elimina._core import RootBound, TourEdges, TourSearch
from elimina.cp.fixed_edges import with_fixed_edges
from elimina.cp.model import Model
from elimina.cp.tour_problem import Distances, TourProblem
from elimina.planning.machine import PROOF_EDGE_SECONDS, PROOF_SECONDS
from elimina.planning.order import MAX_SEED
from elimina.result import EndedBy, Result, Status
from elimina.strategies.direct_call import DirectCall
from elimina.system import memory_errors_in_words

_KICKS_PER_CITY, _FIRST_LOCAL_SEARCH_SECONDS = 200, 20.0
"""Limits of the local search before the search for a proof: kicks (random changes of the tour) per city; seconds."""
_FIRST_ASCENT_STEPS, _MAX_ASCENT_STEPS, _ROOT_ASCENTS_SECONDS = 1000, 64_000, 20.0
"""Steps of the first ascent and of the longest one, and seconds of all ascents at the root."""
_MIN_GAP_SHARE = 0.02
"""Least share of the gap that an ascent has to close for another ascent to follow."""
_MAX_RESOLUTION, _MAX_SCALED_LENGTH = 1024, 2**50
"""A search for a proof divides the unit of length into parts, and rounds lengths to whole parts. The limits are the
number of parts of a unit, and the length of a tour in parts."""
_EDGES_PER_CITY, _MAX_EDGES = 25, 20_000
"""Largest numbers of edges of a search for a proof: for each city, and in all."""
_FIRST_PROOF_SECONDS = 4.0
"""Seconds of the first search for a proof; later ones take longer."""
_UNLIMITED_KICKS = 2**62
_KICKS_PER_UPDATE, _UPDATE_SECONDS = 10_000, 0.2
"""Largest number of kicks, and of seconds, between two reports of the tour."""


class TourState(NamedTuple):
    """State of a run: seconds, the length of the best tour, and a lower bound on all tours (None: not yet known)."""

    seconds: float
    length: int
    bound: int | None


@memory_errors_in_words("while it looked for a tour", None)
@arguments.with_checked_keywords()
def solve_tsp(
    problem: TourProblem,
    *,
    time_limit: float | None = None,
    seed: int = 0,
    on_improvement: Callable[[TourState], object] = lambda state: None,
) -> Result:
    """Search for a shortest tour, and for the proof that it is shortest.

    Args:
        problem: Cities and their distances.
        time_limit: Time limit in seconds; None for no limit.
        seed: Random seed of the local search.
        on_improvement: Function to call with better tours and bounds.

    Returns:
        Task ``tsp``: ``optimal``, or ``bounded`` (``feasible`` without a bound) when the time limit or Ctrl-C came
        before the proof, as ``ended_by`` says. ``value`` is the length of ``tour``, whose cities count from 1 as in
        files. ``stats`` has ``cities``, ``nodes`` (of the search for proofs) and ``seconds``: ``bound`` (1-trees),
        ``search`` (local search), ``proof``, ``other`` and ``total``.

    Raises:
        TypeError: The problem is of another type.
        InputError: The distances are too large, or a tour cannot have all fixed edges.
        MemoryLimitError: Memory ran out before there was a tour.

    Examples:
        >>> import numpy as np
        >>> from elimina import cp
        >>> square = cp.TourProblem("square", np.array([[0, 2, 3, 2], [2, 0, 2, 3], [3, 2, 0, 2], [2, 3, 2, 0]]))
        >>> result = cp.solve_tsp(square)
        >>> result.status, result.value, len(result.tour)
        ('optimal', 8, 4)
    """
    if not isinstance(problem, TourProblem):
        expected = "an elimina.cp.TourProblem (elimina.cp.read_tsp reads one)"
        raise arguments.wrong_type("problem", problem, expected)
    time_limit = arguments.seconds("time_limit", time_limit)
    seed = arguments.integer("seed", seed, 0, MAX_SEED)
    shift, distances = with_fixed_edges(problem)
    return _TourRun(problem, distances, shift, time_limit, seed, on_improvement).answer()


class _TourRun:
    def __init__(
        self,
        problem: TourProblem,
        distances: Distances,
        shift: int,
        time_limit: float | None,
        seed: int,
        on_improvement: Callable[[TourState], object],
    ) -> None:
        self._problem, self._distances, self._shift = problem, distances, shift
        self._call = DirectCall(time_limit)
        self._seed, self._on_improvement = seed, on_improvement
        self._nodes = 0
        self._steps = _FIRST_ASCENT_STEPS
        self.tour = list(range(problem.cities))
        self.length = problem.length(self.tour) - shift
        self.bound: int | None = None

    def answer(self) -> Result:
        """Search until the tour is proven shortest, or to the end of the call."""

        def work() -> Result:
            self._search()
            return self._result("time-limit")

        return self._call.answer(work, self._result)

    def _result(self, ended_by: EndedBy) -> Result:
        """Return the result so far, without ``ended_by`` if the tour is proven shortest."""
        length = self.length + self._shift
        bound = None if self.bound is None else min(self.bound, self.length) + self._shift
        status: Status = "feasible" if bound is None else "optimal" if bound == length else "bounded"
        stats = {"cities": self._problem.cities, "nodes": self._nodes, "seconds": self._call.phase_seconds()}
        tour = [city + 1 for city in self.tour]
        cause = None if status == "optimal" else ended_by
        return Result(status, "tsp", length, bound, length, tour=tour, ended_by=cause, stats=stats)

    def _search(self) -> None:
        if self._problem.cities <= 3:
            self._update_bounds(bound=self.length + 0)
            return
        if self._call.seconds <= 0:
            self._update_bounds()
            return
        with self._call.phase("search"):
            search = TourSearch(self._distances, self._seed, self._call.seconds / 2)
        self._adopt_tour(search)
        if self._call.seconds <= 0:
            return
        with self._call.phase("bound"):
            self._root = RootBound(self._distances, *search.edges, self._call.seconds)
        self._improve_bound(self._call.seconds / 4)
        self._improve_tour(
            search,
            min(_FIRST_LOCAL_SEARCH_SECONDS, self._call.seconds / 2),
            _KICKS_PER_CITY * self._problem.cities,
        )
        self._bound_at_root()
        self._prove(search)

    def _is_open(self) -> bool:
        return (self.bound is None or self.bound < self.length) and self._call.seconds > 0

    def _update_bounds(self, tour: list[int] | None = None, bound: int | None = None) -> None:
        if tour is not None:
            self.tour = tour
            self.length = int(self._distances[np.array(tour), np.roll(np.array(tour), -1)].sum(dtype=np.int64))
        if bound is not None:
            self.bound = bound
        shown = None if self.bound is None else min(self.bound, self.length) + self._shift
        self._on_improvement(TourState(self._call.age, self.length + self._shift, shown))

    def _adopt_tour(self, search: TourSearch) -> None:
        if self.tour == list(range(len(self.tour))) or search.length < self.length:
            self._update_bounds(tour=search.tour)

    def _improve_tour(self, search: TourSearch, seconds: float, count: int) -> None:
        """Improve the tour by local search until it is proven shortest, or for some seconds or kicks."""
        end = time.monotonic() + seconds
        while count > 0 and self._is_open() and (remaining := end - time.monotonic()) > 0:
            try:
                with self._call.phase("search"):
                    search.kick(min(count, _KICKS_PER_UPDATE), min(remaining, _UPDATE_SECONDS))
            finally:
                self._adopt_tour(search)
            count -= _KICKS_PER_UPDATE

    def _improve_bound(self, seconds: float) -> bool:
        """Improve the bound by an ascent; return whether anything changed."""
        try:
            with self._call.phase("bound"):
                return self._root.improve(self.length, self._steps, seconds)
        finally:
            bound = self._root.bound
            if bound is not None and (self.bound is None or bound > self.bound):
                self._update_bounds(bound=bound)

    def _bound_at_root(self) -> None:
        """Improve the bound by longer and longer ascents, until they gain little."""
        if self.bound is None:
            self._improve_bound(self._call.seconds)
        end = time.monotonic() + min(_ROOT_ASCENTS_SECONDS, self._call.seconds / 2)
        while self.bound is not None and self._is_open() and (remaining := end - time.monotonic()) > 0:
            self._steps = min(4 * self._steps, _MAX_ASCENT_STEPS)
            previous_bound = self.bound
            improved = self._improve_bound(remaining)
            if not improved or self.bound - previous_bound < _MIN_GAP_SHARE * (self.length - previous_bound):
                return

    def _prove(self, search: TourSearch) -> None:
        """Search for tours up to a growing length; the first tour is shortest, since all shorter ones are ruled out."""
        if self.bound is None:
            return
        step, seconds = max(1, (self.length - self.bound) // 4), _FIRST_PROOF_SECONDS
        while self._is_open():
            target = min(self.bound + step - 1, self.length - 1)
            max_edges = min(_EDGES_PER_CITY * self._problem.cities, _MAX_EDGES)
            edges = self._root.survivors(target, max_edges, self._call.seconds)
            if edges is not None and self._call.seconds < PROOF_SECONDS + len(edges.lengths) * PROOF_EDGE_SECONDS:
                self._improve_tour(search, self._call.seconds, _UNLIMITED_KICKS)
                return
            if edges is not None and self._rule_out(edges, target, min(seconds, self._call.seconds)):
                step *= 2
                continue
            step = max(1, step // 2)
            if edges is not None or step == 1:
                self._improve_bound(min(seconds, self._call.seconds / 2))
                if self.length < search.length:
                    search.start(self.tour)
                self._improve_tour(
                    search,
                    min(seconds, self._call.seconds),
                    _UNLIMITED_KICKS if edges is None else _KICKS_PER_CITY * self._problem.cities,
                )
                seconds *= 2

    def _rule_out(self, edges: TourEdges, target: int, seconds: float) -> bool:
        """Search for a proof; return whether it rules out all tours up to the target, or ends with the shortest one.

        Raises:
            KeyboardInterrupt: The user interrupted.
        """
        assert self.bound is not None
        n = self._problem.cities
        model = Model()
        edges_at: list[list[int]] = [[] for _ in range(n)]
        ends = list(zip(edges.ends, edges.other_ends, strict=True))
        for i, j in ends:
            edges_at[i].append(j)
            edges_at[j].append(i)
        if any(len(cities) < 2 for cities in edges_at):
            self._update_bounds(bound=target + 1)
            return True
        successors = [model.int_var(cities) for cities in edges_at]
        # Lengths are shifted by the multipliers of the 1-tree bound, so that the search starts with this bound.
        resolution, shifts = self._shifts()
        lengths = {
            (i, j): resolution * length + shifts[i] + shifts[j]
            for (i, j), length in zip(ends, edges.lengths, strict=True)
        }
        changed, has = model.weighted_circuit(successors, lengths)
        length = model.int_var(self.bound, target)
        model.add(changed == resolution * length + 2 * sum(shifts))
        model.minimize(length)
        model.search(has, "dom_w_deg", "indomain_max")
        model.search(successors, "input_order", "indomain_min")
        with self._call.phase("proof"):
            outcome = model.solve(
                time_limit=seconds,
                seed=self._seed,
                on_solution=lambda solution: self._report_tour(solution[successors]),
            )
        self._nodes += outcome.stats.get("nodes", 0)
        if outcome.ended_by == "interrupt":
            raise KeyboardInterrupt
        is_complete = bool(outcome.stats["complete"])
        if is_complete:
            self._update_bounds(bound=target + 1 if outcome.assignment is None else self.length)
        return is_complete

    def _shifts(self) -> tuple[int, list[int]]:
        """Return the number of parts that a unit of length is divided into, and the cities' multipliers in these parts.

        There are as many parts as the solver's arithmetic allows.
        """
        root = self._root.multipliers
        multipliers, scale = root.parts, root.parts_of_unit
        largest = int(np.abs(self._distances).max()) + 2 * max(abs(x) for x in multipliers) // scale + 1
        resolution = min(_MAX_RESOLUTION, scale)
        while resolution > 1 and resolution * largest * len(multipliers) > _MAX_SCALED_LENGTH:
            resolution //= 2
        if largest * len(multipliers) > _MAX_SCALED_LENGTH:
            return 1, [0] * len(multipliers)
        return resolution, [round(x * resolution / scale) for x in multipliers]

    def _report_tour(self, successors: list[int]) -> None:
        tour = [0]
        while len(tour) < len(successors):
            tour.append(successors[tour[-1]])
        self._update_bounds(tour=tour)
