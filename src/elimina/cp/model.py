"""Constraint models: their solutions, their conflicts, and their forms as tables and as FlatZinc."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from elimina._core import CpSearch, CpSolver
from elimina.arguments import flag, seconds, with_checked_keywords, with_checked_methods, wrong_type
from elimina.cp.branching import search_rules
from elimina.cp.conflicts import Conflict, minimal_conflict
from elimina.cp.declared_model import DeclaredModel
from elimina.cp.domains import PropagatedDomains
from elimina.cp.expressions import Operand, Relation, boolean
from elimina.cp.flatzinc_writer import WrittenModel, flatzinc_of
from elimina.cp.from_graphical import add_costs
from elimina.cp.global_conditions import GlobalCondition
from elimina.cp.gpu_filtering import Device, accelerate
from elimina.cp.hints import hint_rows, read_hints
from elimina.cp.lexicographic import Aim, remaining_limit, solve_in_turn
from elimina.cp.operands import several, whole
from elimina.cp.posting import Post, PostedModel, build_solver, call_core, post_of
from elimina.cp.search_options import (
    DEFAULT_OPTIONS,
    MAX_THREADS,
    SearchOptions,
)
from elimina.cp.search_run import SearchRun, deadline_of, memory_in_words, never_stop, remaining_seconds
from elimina.cp.search_settings import is_portfolio, restart_settings, restart_stretch
from elimina.cp.solution import Solution
from elimina.cp.unbounded import bounds_advice, missing_bounds_text, warn_of_missing_bounds
from elimina.cp.views import ViewRows
from elimina.errors import InputError, TimeLimitError
from elimina.result import Result
from elimina.strategies.clock import Clock

if TYPE_CHECKING:
    from elimina.model.model import Model as GraphicalModel

_MAX_TUPLES = 2**62


@with_checked_methods
class Model(DeclaredModel):
    """A constraint model: variables, constraints, an objective and orderings for the search.

    Nothing is propagated before `solve`; a model may be solved again, with more constraints.

    Examples:
        >>> from elimina import cp
        >>> m = cp.Model()
        >>> x, y = m.int_var(0, 9, "x"), m.int_var(0, 9, "y")
        >>> m.add(x + y == 12)
        >>> m.add(x < y)
        >>> m.maximize(x)
        >>> result = m.solve()
        >>> result[x], result[y]
        (5, 7)
    """

    @classmethod
    def from_model(cls, model: GraphicalModel) -> Model:
        """Build a constraint model from a graphical model: cost functions by `add_cost`, their sum as the objective.

        Variables keep their names; their values are the indices of states, from 0 on. If all costs are 0, there is
        no objective. Assignments that the model's upper bound excludes are not solutions.

        Raises:
            InputError: The model is one of probabilities, a cost has decimals, or a function has too many cells.
        """
        result = cls()
        xs, total, max_total = add_costs(result, model)
        if max_total is not None:
            result.add(total <= max_total)
        result.search(xs)
        if total.terms or total.constant:
            if model.sense == "min-cost":
                result.minimize(total)
            else:
                result.maximize(-total)
        return result

    def solution_of(self, values: npt.NDArray[np.int64]) -> Solution:
        """Return the solution with these values of all variables."""
        return Solution(self, values[: len(self._variables)], {name: var for var, name in self._names.items()})

    def fulfils(self, condition: GlobalCondition, solution: Solution) -> bool:
        """Return whether a global constraint holds in a solution."""
        model = Model()
        arguments, keywords = condition.with_values(lambda x: model.expression(solution[x]))
        getattr(model, condition.name)(*arguments, **keywords)
        return model.solve().status == "feasible"

    def conflict(self, *, time_limit: float | None = None, seed: int = 0) -> Conflict | None:
        """Return constraints with names that contradict each other; None if the model has a solution.

        Args:
            time_limit: Time limit in seconds, for all searches together.
            seed: Random seed of the searches.

        Raises:
            InputError: A constraint cannot be used as given.
            TimeLimitError: The time limit passed before the search decided whether there is a solution.
            KeyboardInterrupt: Ctrl-C.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> early, late = m.int_vars(2, 0, 23)
            >>> with m.named("breaks"):
            ...     m.add(late >= early + 8)
            >>> with m.named("opens at ten"):
            ...     m.add(early >= 10)
            >>> with m.named("closes at five"):
            ...     m.add(late <= 17)
            >>> with m.named("even hours"):
            ...     m.add(early % 2 == 0)
            >>> m.conflict().names
            ('breaks', 'opens at ten', 'closes at five')
        """
        deadline = deadline_of(time_limit)
        names = list(dict.fromkeys(name for _, _, name in self._blocks))
        unknown: list[str] = []

        def status(kept: Sequence[str]) -> str:
            result = self._with_blocks(kept).solve(time_limit=remaining_seconds(deadline), seed=seed)
            if result.ended_by == "interrupt":
                raise KeyboardInterrupt
            unknown.extend(["unknown"] if result.status == "unknown" else [])
            return result.status

        first = status(names)
        if first == "unknown":
            raise TimeLimitError("no time was left to decide whether the constraints have a solution; allow more time")
        if first != "infeasible":
            return None
        conflict = set(minimal_conflict(names, lambda kept: status(kept) == "infeasible"))
        return Conflict(tuple(name for name in names if name in conflict), not unknown)

    def _with_blocks(self, names: Sequence[str]) -> Model:
        """Return a view of this model without objectives, and without constraints whose names are not among these."""
        left_out = {number for start, end, name in self._blocks if name not in names for number in range(start, end)}
        return self._variant([post for number, post in enumerate(self._posts) if number not in left_out], [])

    def _variant(self, posts: list[Post], aims: list[Aim]) -> Model:
        """Return a view of this model with other constraints and objectives."""
        model = Model.__new__(Model)
        model.__dict__.update(self.__dict__)
        model._posts, model._aims = posts, aims
        return model

    def with_aim(self, aim: Aim, bounds: Sequence[tuple[Aim, int]], start: Solution | None) -> Model:
        """Return a view of the model with one objective.

        Args:
            aim: The objective.
            bounds: Other objectives, and the worst value that each of them may have.
            start: Solution whose values are tried first; None if there is none.
        """
        limits = [post_of(expression * sign <= value * sign) for (expression, sign), value in bounds]
        model = self._variant([*self._posts, *limits], [aim])
        if start is not None:
            model._hints = read_hints(self, start)
        return model

    @with_checked_keywords(SearchOptions, "elimina.cp.SearchOptions")
    def solve(
        self,
        *,
        all_solutions: bool = False,
        solution_limit: int | None = None,
        time_limit: float | None = None,
        threads: int = 1,
        seed: int = 0,
        device: Device = "auto",
        on_solution: Callable[[Solution], object] | None = None,
        options: SearchOptions = DEFAULT_OPTIONS,
    ) -> Result:
        """Search for a solution, the best one, or all.

        Args:
            all_solutions: Keep every solution in ``Result.solutions``; without an objective, search for all of them.
            solution_limit: Number of solutions after which the search ends.
            time_limit: Time limit in seconds, for posting the constraints and for the search.
            threads: Number of threads, each with a copy of the model. With an objective, they search in different ways
                for two seconds; then each takes parts of the tree (Regin et al., CP 2013). The solutions are the same,
                in any order; limits take effect a few nodes later.
            seed: Random seed of the search.
            device: Device that filters domain-consistent AllDifferent: ``cpu``, ``cuda``, or ``auto`` for the faster
                one.
            on_solution: Function to call with each solution; if it returns False, the search ends.
            options: Settings for experts.

        Returns:
            The answer to the task ``satisfy``, ``minimise`` or ``maximise``, with the best solution found. The status
            is ``optimal`` if that solution is proven to be the best, ``unbounded`` if every solution is proven to be
            improvable, and otherwise ``feasible``. Without a solution it is ``infeasible`` or ``unknown``. Variables
            without bounds in a file get default limits; if the proof depends on these limits, ``ended_by`` is
            ``domain-limit``. ``value`` is the value of the objective; ``lower_bound``, ``upper_bound`` and ``gap`` say
            how far it may be from the best one. With several objectives, they belong to the first one, and
            ``objectives`` has those of all. ``assignment`` maps names to values; ``result[x]`` is the value of a
            variable or expression, or the values of a list of them. ``ended_by`` names the limit or Ctrl-C. ``stats``
            has ``complete`` (True if there are no other, or no better, solutions), ``nodes``, ``failures``,
            ``solutions``, ``restarts``, ``nogoods`` (recorded before restarts), ``propagations`` (calls of
            propagators), ``peak_depth`` (decisions) and ``seconds``: ``post``, ``search``, ``bounds``, ``other`` and
            ``total``.

        Raises:
            InputError: A constraint or an option cannot be used as given.
            DeviceError: ``cuda`` without a usable GPU, or with a failing one.
            MemoryLimitError: Memory ran out before there was a solution.
        """
        if not isinstance(options, SearchOptions):
            raise wrong_type("options", options, "elimina.cp.SearchOptions")
        all_solutions = flag("all_solutions", all_solutions)
        flag("free", options.free)
        if solution_limit is not None and whole(solution_limit, "a solution limit") < 0:
            raise InputError(f"solution_limit is {solution_limit}; it must be a number that is at least 0")
        if on_solution is not None and not callable(on_solution):
            raise InputError(f"on_solution is a function that gets each solution, not {on_solution!r}")

        def solve_alone(model: Model, seconds: float | None, earlier: Sequence[Result] = ()) -> Result:
            limit = remaining_limit(solution_limit, "solutions", earlier)
            remaining = dataclasses.replace(
                options,
                node_limit=remaining_limit(options.node_limit, "nodes", earlier),
                fail_limit=remaining_limit(options.fail_limit, "failures", earlier),
            )
            return model._solve_alone(all_solutions, limit, seconds, threads, seed, device, on_solution, remaining)

        assumptions = several(options.assumptions, "assumptions")
        assumed = [self._assumed(x) for x in assumptions]
        model = self._variant([*self._posts, *assumed], self._aims) if assumed else self
        deadline = deadline_of(time_limit)
        if len(self._aims) > 1:
            result = solve_in_turn(model, self._aims, time_limit, solve_alone)
        else:
            result = solve_alone(model, time_limit)
        if result.status != "infeasible" or not assumed:
            return result

        def is_infeasible(numbers: Sequence[int]) -> bool:
            variant = self._variant([*self._posts, *(assumed[number] for number in numbers)], [])
            result = variant.solve(time_limit=remaining_seconds(deadline), threads=threads, seed=seed)
            return result.status == "infeasible"

        core = minimal_conflict(range(len(assumed)), is_infeasible)
        return result.replace(core=tuple(assumptions[number] for number in sorted(core)))

    def _assumed(self, condition: Operand) -> Post:
        """Return the constraint that an assumption holds; a condition made of others is replaced by its Boolean."""
        relation = condition if isinstance(condition, Relation) else self.expression(boolean(condition)) == 1
        self._check(relation.left)
        return post_of(relation)

    def _solve_alone(
        self,
        all_solutions: bool,
        solution_limit: int | None,
        time_limit: float | None,
        threads: int,
        seed: int,
        device: Device,
        on_solution: Callable[[Solution], object] | None,
        options: SearchOptions,
    ) -> Result:
        """Search with one objective, or none: see `solve`."""
        aim = self.objective
        task = "satisfy" if aim is None else "minimise" if self.sign > 0 else "maximise"
        run = SearchRun(self, task, time_limit, options)
        is_first = solution_limit is None and not all_solutions and aim is None
        # Restarts would delay a search for all solutions.
        has_portfolio = is_portfolio(options) and (aim is not None or is_first or solution_limit == 1)
        is_relaxed = flag("lns", options.lns) or (has_portfolio and aim is not None)
        settings = restart_settings(options), self._relaxed() if is_relaxed else None, flag("free", options.free), seed
        portfolio = (restart_stretch(options), bool(self._rules)) if has_portfolio else None
        with memory_in_words(threads):
            return run.answer(
                lambda: self._start(threads, device, settings, run, portfolio),
                1 if is_first else solution_limit,
                all_solutions,
                on_solution,
                is_enough=is_first,
            )

    def solutions(
        self, *, time_limit: float | None = None, free: bool = False, seed: int = 0, device: Device = "auto"
    ) -> Iterator[Solution]:
        """Yield one solution after another as they are found; with an objective, each is better than the one before.

        The iterator ends after the last solution, or at the time limit.

        Args:
            time_limit: Time limit in seconds.
            free: True for a free search, as in ``SearchOptions``.
            seed: Random seed of the search.
            device: Device, as in ``solve``.

        Raises:
            InputError: A constraint or an option cannot be used as given.
            MemoryLimitError: Memory ran out.
            KeyboardInterrupt: Ctrl-C.
        """
        self._check_single_aim("solutions() lists solutions by one objective", "use solve")
        run = SearchRun(self, "satisfy", time_limit, DEFAULT_OPTIONS)
        incumbent: Solution | None = None
        with memory_in_words():
            try:
                search = self._start(1, device, (None, None, flag("free", free), seed), run)
            except TimeLimitError:
                return
            while (state := search.next(never_stop)) == "solution":
                incumbent = self.solution_of(search.solution())
                yield incumbent
        if state == "stopped":
            raise KeyboardInterrupt
        if state == "complete":
            value = None if incumbent is None or self.objective is None else incumbent[self.objective]
            warn_of_missing_bounds(self.unproven_limits(value))

    @memory_in_words()
    def propagated(self, *, time_limit: float | None = None) -> list[list[int]] | None:
        """Return the domains after propagation alone; None if it proves infeasibility.

        Args:
            time_limit: Time limit in seconds.

        Raises:
            InputError: The domains have too many values to list; use `bounds` for their ends.
            TimeLimitError: The time limit passed before propagation ended.
            MemoryLimitError: Memory ran out.
            KeyboardInterrupt: Ctrl-C.
        """
        clock = Clock(seconds("time_limit", time_limit))
        solver, _ = self._build(clock.deadline)
        is_consistent = solver.propagate(clock.seconds)
        if is_consistent is None:
            raise TimeLimitError("the time limit passed while the domains were propagated; allow more time")
        return PropagatedDomains(self._variables, solver).listed(self.name_of) if is_consistent else None

    @memory_in_words()
    def to_model(self, *, rows: int = 1 << 18) -> GraphicalModel:
        """Return a graphical model for `elimina.solve` with the same number of solutions and the same optimum.

        Each constraint becomes a table of its allowed tuples. Sums, counts, automata and other constraints over many
        variables become several tables over few variables. These are linked by auxiliary variables, whose values follow
        from those of the model's variables. Variables keep their names (``_3`` if they have none), and their values
        become states. A variable that only names the sum of an objective is left out.

        Args:
            rows: Largest number of tuples of a table.

        Raises:
            InputError: A constraint needs more than ``rows`` tuples, a variable has more than ``rows`` values or no
                bounds, two variables have the same name, or there are several objectives.
            MemoryLimitError: Memory ran out.
        """
        from elimina.cp.to_graphical import tabulate

        self._check_single_aim("a graphical model has one objective", "add them up with weights")
        if names := self.unproven_limits():
            raise InputError(
                f"{missing_bounds_text(names)}; a table holds all values of its variables: {bounds_advice(names)}"
            )
        return tabulate(self.posted(), self._build()[0], min(whole(rows, "a number of rows"), _MAX_TUPLES))

    def to_flatzinc(self) -> str:
        """Return the model as FlatZinc, with its objective, its orderings and its hints.

        Variables keep their names, with ``_`` in the place of characters that FlatZinc does not have. Those with names
        are its output. Constraints have the names of MiniZinc's library (``fzn_cumulative``) where it has them, and
        otherwise elimina's (``elimina_reservoir``); `elimina.cp.read` and ``fzn-elimina`` read all of them.

        Raises:
            UnsupportedError: A constraint has no form in FlatZinc.
            InputError: The model has several objectives.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> x, y = m.int_var(0, 9, "x"), m.int_var(0, 4, "y")
            >>> m.add(x + 2 * y <= 9)
            >>> m.maximize(x)
            >>> print(m.to_flatzinc(), end="")
            var 0..9: x :: output_var;
            var 0..4: y :: output_var;
            constraint int_lin_le([1, 2], [x, y], 9);
            solve maximize x;
        """
        self._check_single_aim("FlatZinc has one objective", "write a model for each")
        return flatzinc_of(
            WrittenModel(self._variables, self._names, self._posts, self.objective, self.sign, self._rules, self._hints)
        )

    def posted(self) -> PostedModel:
        """Return all posted variables, constraints and orderings."""
        aim = self.objective
        return PostedModel(
            self._variables,
            self._names,
            self._posts,
            None if aim is None else aim.terms,
            0 if aim is None else aim.constant,
            "min-cost" if self.sign > 0 else "max-cost",
        )

    def _build(self, deadline: float | None = None) -> tuple[CpSolver, ViewRows | None]:
        aim = None if self.objective is None else self.objective * self.sign
        return build_solver(self._variables, self._posts, aim, deadline)

    def _start(
        self,
        threads: int,
        device: Device,
        settings: tuple[tuple[str, float, float] | None, tuple[ViewRows, None] | None, bool, int],
        run: SearchRun,
        portfolio: tuple[float, bool] | None = None,
    ) -> CpSearch:
        if whole(threads, "a number of threads") not in range(1, MAX_THREADS + 1):
            raise InputError(f"a search has from 1 to {MAX_THREADS} threads, not {threads}")
        if not 0 <= whole(settings[-1], "a seed") < 2**63:
            raise InputError(f"the seed is {settings[-1]}; it must be from 0 to 2^63 - 1")
        solver, objective = self._build(run.deadline)
        accelerate(solver, device, threads)
        solvers = (solver, *(self._build(run.deadline)[0] for _ in range(threads - 1)))
        rules = search_rules(self._rules, self._all_views(), objective, self._wide_results)
        # The threads of a portfolio continue while domains are read, so domains are read from a separate solver.
        run.domains = solver if threads == 1 else self._build(run.deadline)[0] if portfolio is not None else solver
        search: CpSearch = call_core(
            CpSearch, solvers, rules, objective, *settings, *run.limits, portfolio, hint_rows(self._hints)
        )
        return search

    def _check_single_aim(self, problem: str, advice: str) -> None:
        if len(self._aims) > 1:
            raise InputError(f"{problem}, and the model has {len(self._aims)}: {advice}")

    def _relaxed(self) -> tuple[ViewRows, None]:
        return np.concatenate([xs for xs, _, _ in self._rules]) if self._rules else self._all_views(), None

    def _all_views(self) -> ViewRows:
        views = np.zeros((len(self._variables), 3), dtype=np.int64)
        views[:, 0] = np.arange(len(views))
        views[:, 1] = 1
        return views
