"""Building models of constraints and solving them."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from elimina._core import CpSearch, CpSolver, cp_falls_without_end, cp_variables_beyond_limits
from elimina.arguments import choice, flag, shown, with_options, wrong_type
from elimina.cp.branching import SearchRule, search_rules
from elimina.cp.conflicts import Conflict, minimal_conflict
from elimina.cp.copies import CopyableModel
from elimina.cp.decompositions import DECOMPOSITIONS
from elimina.cp.derived_constraints import DerivedConstraints
from elimina.cp.domains import PropagatedDomains
from elimina.cp.expressions import Combination, Condition, Expression, Operand, Relation, boolean
from elimina.cp.flatzinc_writer import WrittenModel, flatzinc_of
from elimina.cp.from_graphical import add_costs
from elimina.cp.global_conditions import GlobalCondition
from elimina.cp.gpu_filtering import Device, accelerate
from elimina.cp.hints import Hints, hint_rows, read_hints
from elimina.cp.lexicographic import Aim, solve_in_turn
from elimina.cp.operands import MAX_INTEGER, Numbers, is_of_numbers, several, whole, whole_array
from elimina.cp.posting import MAX_VARIABLES, Declaration, Post, build_solver, call_core, is_view, view_of
from elimina.cp.search_options import (
    DEFAULT_OPTIONS,
    MAX_THREADS,
    VALUE_ORDERINGS,
    VARIABLE_ORDERINGS,
    SearchOptions,
    ValueOrdering,
    VariableOrdering,
)
from elimina.cp.search_run import SearchRun, limit_of, memory_in_words, never_stop
from elimina.cp.solution import Solution
from elimina.cp.to_graphical import PostedModel, tabulate
from elimina.cp.unbounded import UNBOUNDED_LIMIT, bounds_advice, missing_bounds_text, warn_of_missing_bounds
from elimina.cp.views import ViewRows
from elimina.display import Displayed, sample
from elimina.errors import InputError, TimeLimitError
from elimina.result import Result

if TYPE_CHECKING:
    from elimina.model.model import Model as GraphicalModel

_MAX_TUPLES = 2**62


class Model(CopyableModel, DerivedConstraints, Displayed):
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

    def __init__(self) -> None:
        super().__init__()
        self._variables: list[Declaration] = []
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self._posts: list[Post] = []
        # First post, last post and name of each named block.
        self._blocks: list[tuple[int, int, str]] = []
        self._rules: list[SearchRule] = []
        # The most important objective comes first.
        self._aims: list[Aim] = []
        self._hints: Hints = {}
        # Variables without bounds in a file, and those whose bounds follow from theirs.
        self._unbounded: set[int] = set()

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

    def _figures(self) -> list[tuple[str, str]]:
        kinds = Counter(name for name, _ in self._posts)
        texts = [f"{count:,} {name}" for name, count in kinds.most_common()]
        names = list(self._names.values())
        texts_of_aims = [f"{'minimise' if sign > 0 else 'maximise'} {aim}" for aim, sign in self._aims]
        return [
            ("variables", f"{len(self._variables):,}" + (f": {sample(names, len(names))}" if names else "")),
            ("constraints", sample(texts, len(texts)) or "none"),
            ("objective", ", then ".join(texts_of_aims) or "none"),
        ]

    def __getitem__(self, name: str) -> Expression:
        """Return the variable of a name.

        Raises:
            InputError: There is none.
        """
        for number, variable_name in self._names.items() if isinstance(name, str) else ():
            if variable_name == name:
                return Expression(self, {number: 1}, 0, name)
        names = list(self._names.values())
        shown_names = f"{', '.join(map(repr, names[:8]))}{', ...' if len(names) > 8 else ''}" if names else "none"
        raise InputError(f"the model has no variable named {name!r}; named ones are {shown_names}")

    def int_var(self, lo: int | Iterable[int], hi: int | None = None, name: str = "") -> Expression:
        """Make a variable.

        Args:
            lo: Smallest value, or a list of all values.
            hi: Largest value; left out if ``lo`` lists all values.
            name: Name in messages, and key of the assignment.

        Raises:
            InputError: There is no value, or one beyond 2^52, or another variable has the name.
        """
        if isinstance(lo, Iterable):
            values = tuple(sorted({whole(x, "a value of a variable") for x in lo}))
            if hi is not None:
                raise InputError("int_var gets two bounds, or the values alone")
            if not values:
                raise InputError(f"variable {name or len(self._variables)} has no value: give at least one")
            return self._new_variable(Declaration(values[0], values[-1], values), name)
        if hi is None:
            raise InputError("int_var gets two bounds, or a list of values")
        return self._new_variable(Declaration(whole(lo, "a lower bound"), whole(hi, "an upper bound"), None), name)

    def _new_variable(self, variable: Declaration, name: str) -> Expression:
        number = len(self._variables)
        if not isinstance(name, str):
            raise wrong_type("name", name, "a string")
        if variable.lo > variable.hi:
            raise InputError(f"variable {name or number} has no value: {variable.lo} is above {variable.hi}")
        if variable.lo < -MAX_INTEGER or variable.hi > MAX_INTEGER:
            raise InputError(
                f"variable {name or number}: {variable.lo}..{variable.hi} is beyond -2^52..2^52; use smaller bounds"
            )
        if name in self._taken:
            raise InputError(f"two variables are named {name!r}: give each a name of its own, or none")
        self._variables.append(variable)
        if name:
            self._names[number] = name
            self._taken.add(name)
        return Expression(self, {number: 1}, 0, name or f"_{number}")

    def int_vars(self, count: int, lo: int | Iterable[int], hi: int | None = None, name: str = "") -> list[Expression]:
        """Make variables of equal domains; with a name, they are ``name[0]``, ``name[1]`` and so on."""
        domain = tuple(lo) if isinstance(lo, Iterable) else lo
        if not 0 <= whole(count, "a number of variables") <= MAX_VARIABLES:
            raise InputError(f"a number of variables is from 0 to {MAX_VARIABLES:,}, not {shown(count)}")
        if not isinstance(name, str):
            raise wrong_type("name", name, "a string")
        return [self.int_var(domain, hi, name and f"{name}[{i}]") for i in range(count)]

    def unbounded_var(self, name: str = "") -> Expression:
        """Make a variable without bounds: it is searched from -2^42 to 2^42, and a proof that needs these ends is none.

        Args:
            name: Name in messages, and key of the assignment.
        """
        variable = self.int_var(-UNBOUNDED_LIMIT, UNBOUNDED_LIMIT, name)
        self._unbounded.update(variable.terms)
        return variable

    def result_var(self, lo: int, hi: int, of: Iterable[Operand], name: str = "") -> Expression:
        """Make a variable for a function of operands; it has no bounds of its own if one of them has none."""
        is_unbounded = not self._unbounded.isdisjoint(var for x in of if isinstance(x, Expression) for var in x.terms)
        variable = self.int_var(lo, hi, name)
        if is_unbounded:
            self._unbounded.update(variable.terms)
        return variable

    def bool_var(self, name: str = "") -> Expression:
        """Make a variable of 0 and 1."""
        return self.int_var(0, 1, name)

    def bool_vars(self, count: int, name: str = "") -> list[Expression]:
        """Make variables of 0 and 1."""
        return self.int_vars(count, 0, 1, name)

    @property
    def objective(self) -> Expression | None:
        """The expression that is minimised or maximised, the first one of several; None if there is none."""
        return self._aims[0].expression if self._aims else None

    @property
    def sign(self) -> int:
        """1 if the objective is minimised, -1 if it is maximised."""
        return self._aims[0].sign if self._aims else 1

    def unproven_limits(self, incumbent: int | None = None) -> list[str]:
        """Return the names of variables without bounds in the file whose limits a complete search relies on.

        There may be solutions beyond these limits. Without names, there are none.

        Args:
            incumbent: Value of the objective; only better solutions count.
        """
        if not self._unbounded:
            return []
        bounds, posts = [(variable.lo, variable.hi) for variable in self._variables], list(self._posts)
        if incumbent is not None and self.objective is not None:
            aim = self.objective * self.sign
            factors = whole_array(list(aim.terms.values()))
            variables = np.array([(var, 1, 0) for var in aim.terms], dtype=np.int64).reshape(-1, 3)
            largest = whole_array([incumbent * self.sign - 1 - aim.constant])
            posts.append(("int_lin_le", [factors, variables, largest]))
        return [self.name_of(var) for var in cp_variables_beyond_limits(bounds, sorted(self._unbounded), posts)]

    def is_unbounded(self) -> bool:
        """Return whether every solution can be improved; False if that is not proven."""
        aim = self.objective
        if not self._unbounded or aim is None or not is_view(aim):
            return False
        bounds = [(variable.lo, variable.hi) for variable in self._variables]
        return cp_falls_without_end(bounds, sorted(self._unbounded), self._posts, view_of(aim * self.sign))

    def name_of(self, var: int) -> str:
        """Return the name of a variable's number."""
        return self._names.get(var, f"_{var}")

    def bounds(self, x: Operand) -> tuple[int, int]:
        """Return the smallest and the largest value that an expression can take, before any constraint."""
        x = self.expression(x)
        self._check(x)
        low = high = x.constant
        for var, factor in x.terms.items():
            ends = factor * self._variables[var].lo, factor * self._variables[var].hi
            low, high = low + min(ends), high + max(ends)
        return low, high

    def domain(self, x: Operand) -> Sequence[int]:
        """Return the values that an operand can take before any constraint, ascending; of a sum, its interval."""
        x = self.expression(x)
        lo, hi = self.bounds(x)
        terms = [(var, factor) for var, factor in x.terms.items() if factor]
        if len(terms) != 1:
            return range(lo, hi + 1)
        ((var, factor),) = terms
        variable = self._variables[var]
        values = range(variable.lo, variable.hi + 1) if variable.values is None else variable.values
        if factor == 1 and x.constant == 0:
            return values
        if isinstance(values, range):
            return range(lo, hi + 1, abs(factor))
        return sorted(factor * value + x.constant for value in values)

    def add(self, condition: Operand, *, iff: Operand | None = None, only_if: Operand | None = None) -> None:
        """Post a comparison of expressions, or a condition made of some.

        Sums are bounds consistent, two variables domain consistent.

        Args:
            condition: Relation such as ``x + 2 * y <= 7``; conditions such as ``(x < y) | ~(y == 3)``; or a Boolean.
            iff: A Boolean or a condition that is 1 exactly if the condition holds.
            only_if: A Boolean or a condition that is 0 if the condition does not hold.

        Raises:
            InputError: It is not a condition, or one of another model, or both Booleans are given.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> x, y = m.int_vars(2, 0, 9)
            >>> m.add((x < 3) | (y > 7))
            >>> m.add((x + y == 10).implies(x >= 5))
            >>> m.maximize(2 * y - x + 3 * (x > 0))
            >>> result = m.solve()
            >>> result[[x, y, x < 3]]
            [2, 9, 1]
        """
        if not isinstance(condition, Condition | Expression):
            raise InputError(f"Model.add gets a condition such as x < y, or a Boolean expression, not {condition!r}")
        if iff is not None and only_if is not None:
            raise InputError(f"{condition}: iff includes only_if; give one of them")
        control = iff if only_if is None else only_if
        guard = None if control is None else self.expression(control)
        suffix = "_reif" if iff is not None else "_imp" if only_if is not None else ""
        if isinstance(condition, Combination):
            self._combine(condition, guard, suffix)
        elif isinstance(condition, Relation):
            self._compare(condition, guard, suffix)
        elif isinstance(condition, GlobalCondition):
            self._post_global(condition, guard, iff is not None)
        else:
            self._compare(self.expression(boolean(condition)) == 1, guard, suffix)

    def _compare(self, relation: Relation, guard: Expression | None, suffix: str) -> None:
        self._check(relation.left)
        name, arguments = _post_of(relation)
        self._posts.append((name + suffix, arguments if guard is None else [*arguments, self._view(guard)]))

    def _combine(self, condition: Combination, guard: Expression | None, suffix: str) -> None:
        if suffix == "_reif":
            self.post(f"array_bool_{condition.name}", condition.parts, guard)
        elif condition.name == "and":
            for part in condition.parts:
                self.add(self.expression(part) if isinstance(part, int) else part, only_if=guard)
        else:
            parts = [*condition.parts, *([] if guard is None else [1 - guard])]
            of_last = next((part for part in parts if isinstance(part, GlobalCondition)), None)
            if of_last is None:
                self.clause(parts)
            else:
                others = [part for part in parts if part is not of_last]
                self.add(of_last, only_if=1 - (self.any_of(others) if len(others) > 1 else self.expression(others[0])))

    def _post_global(self, condition: GlobalCondition, guard: Expression | None, is_full: bool) -> None:
        if condition.model is not self:
            raise InputError(f"{condition} belongs to another model: use variables of this one")
        if guard is None:
            getattr(self, condition.name)(*condition.arguments, **condition.keywords)
            return
        parts = DECOMPOSITIONS[condition.name](self, *condition.arguments, **condition.keywords)
        decomposed = parts if isinstance(parts, Condition) else self.expression(parts)
        self.add(decomposed, **{"iff" if is_full else "only_if": guard})

    def fulfils(self, condition: GlobalCondition, solution: Solution) -> bool:
        """Return whether a global constraint holds in a solution."""
        model = Model()
        arguments, keywords = condition.with_values(lambda x: model.expression(solution[x]))
        getattr(model, condition.name)(*arguments, **keywords)
        return model.solve().status == "feasible"

    def holds(self, condition: Operand) -> Expression:
        """Return a new Boolean that is 1 exactly if a condition holds."""
        b = self.bool_var()
        self.add(condition, iff=b)
        return b

    @contextlib.contextmanager
    def named(self, name: str) -> Iterator[None]:
        """Give the constraints that are posted in a block a name, for `conflict`.

        Several blocks may have one name. Variables that functions make in the block are defined there: a block that
        uses them later depends on it.

        Args:
            name: Name of the constraints.

        Raises:
            InputError: The name is not a string, or is empty.
        """
        if not isinstance(name, str) or not name:
            raise InputError(f"the name of constraints is a string that is not empty, not {name!r}")
        start = len(self._posts)
        try:
            yield
        finally:
            self._blocks.append((start, len(self._posts), name))

    def conflict(self, *, time_limit: float | None = None, seed: int = 0) -> Conflict | None:
        """Return constraints with names that contradict each other; None if the model has a solution.

        Args:
            time_limit: Time limit in seconds, for all searches together.
            seed: Random seed of the searches.

        Raises:
            InputError: A constraint cannot be used as given.
            TimeLimitError: It is not known in time whether there is a solution.
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
        deadline = time.monotonic() + limit_of("time_limit", time_limit)
        names = list(dict.fromkeys(name for _, _, name in self._blocks))
        unknown: list[str] = []

        def status(kept: Sequence[str]) -> str:
            remaining = max(0.0, deadline - time.monotonic())
            result = self._with_blocks(kept).solve(time_limit=remaining, seed=seed)
            if result.ended_by == "interrupt":
                raise KeyboardInterrupt
            unknown.extend(["unknown"] if result.status == "unknown" else [])
            return result.status

        first = status(names)
        if first == "unknown":
            raise TimeLimitError("it is not known whether the constraints have a solution; allow more time")
        if first != "infeasible":
            return None
        conflict = set(minimal_conflict(names, lambda kept: status(kept) == "infeasible"))
        return Conflict(tuple(name for name in names if name in conflict), not unknown)

    def _with_blocks(self, names: Sequence[str]) -> Model:
        """Return a view of this model without its objective and the constraints that have other names."""
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
            bounds: Other objectives, and values than which they may not be worse.
            start: Solution that is tried first; None: there is none.
        """
        limits = [_post_of(expression * sign <= value * sign) for (expression, sign), value in bounds]
        model = self._variant([*self._posts, *limits], [aim])
        if start is not None:
            model._hints = read_hints(self, start)
        return model

    def sum(self, xs: Iterable[Operand]) -> Expression:
        """Return the sum of expressions, in one step: Python's own ``sum`` takes long for thousands."""
        terms: dict[int, int] = {}
        constant = 0
        for x in map(self.expression, xs):
            self._check(x)
            constant += x.constant
            for var, factor in x.terms.items():
                terms[var] = terms.get(var, 0) + factor
        return Expression(self, terms, constant)

    def minimize(self, objective: Operand | Iterable[Operand]) -> None:
        """Look for a solution with the least value of an expression, or of several in turn.

        Args:
            objective: The expression. Of several, the most important one comes first: a later one counts among the
                solutions in which those before it have their best values. ``-x`` maximises x.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> x, y = m.int_vars(2, 0, 9)
            >>> m.add(x + y >= 5)
            >>> m.minimize([x + y, -x])
            >>> result = m.solve()
            >>> result[[x, y]], [objective.value for objective in result.objectives]
            ([5, 0], [5, -5])
        """
        self._aim(objective, 1)

    def maximize(self, objective: Operand | Iterable[Operand]) -> None:
        """Look for a solution with the greatest value of an expression, or of several in turn: see `minimize`."""
        self._aim(objective, -1)

    def _aim(self, objective: Operand | Iterable[Operand], sign: int) -> None:
        expressions = [self.expression(x) for x in (objective if isinstance(objective, Iterable) else [objective])]
        if not expressions:
            raise InputError("there is no objective in the list: give at least one")
        for expression in expressions:
            self._check(expression)
        self._aims = [Aim(expression, sign) for expression in expressions]

    def hint(self, values: Mapping[Expression | Condition | str, int] | Solution) -> None:
        """Set values that searches try first; hints that are wrong cost time only.

        A search that restarts begins by deciding the hinted variables, and prefers their values until there is a
        solution. Later calls add hints; they come before earlier ones.

        Args:
            values: Values of variables, expressions, conditions or names, or a solution.

        Raises:
            InputError: A value is not a whole number within 2^52, or a variable is not of this model.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> x, y = m.int_vars(2, 0, 9)
            >>> m.add(x + y == 9)
            >>> m.hint({x: 4})
            >>> m.solve()[[x, y]]
            [4, 5]
        """
        hints = read_hints(self, values)
        self._hints = hints | {view: value for view, value in self._hints.items() if view not in hints}

    def search(
        self,
        xs: Iterable[Operand],
        variable_ordering: VariableOrdering = "dom_w_deg",
        value_ordering: ValueOrdering = "indomain_min",
    ) -> None:
        """Set the orderings for some variables; these are decided after the variables of earlier calls.

        Args:
            xs: Variables or expressions.
            variable_ordering: Rule that chooses the variable, as in MiniZinc: ``input_order``, ``first_fail``,
                ``anti_first_fail``, ``smallest``, ``largest``, ``occurrence``, ``most_constrained``, ``max_regret``
                or ``dom_w_deg``.
            value_ordering: Rule that chooses its value: ``indomain_min`` (or ``indomain``), ``_max``, ``_median``,
                ``_middle``, ``_random``, ``_split``, ``_reverse_split`` or ``_interval``; ``outdomain_min``
                or ``_max``.

        Raises:
            InputError: An ordering is unknown.
        """
        orderings = (
            choice("variable_ordering", variable_ordering, VARIABLE_ORDERINGS),
            choice("value_ordering", value_ordering, VALUE_ORDERINGS),
        )
        self._rules.append((self._views(several(xs, "search")), *orderings))

    @with_options(SearchOptions._fields, "elimina.cp.SearchOptions")
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
                in any order; limits take effect a little later.
            seed: Random seed of the search.
            device: Device that filters domain-consistent AllDifferent: ``cpu``, ``cuda``, or ``auto`` for the faster
                one.
            on_solution: Function to call with each solution; if it returns False, the search ends.
            options: Settings for experts.

        Returns:
            The answer to the task ``satisfy``, ``minimise`` or ``maximise``, with the best solution found. The status
            is ``optimal`` if that solution is proven to be the best, otherwise ``feasible``; ``infeasible``; or
            ``unknown`` without a solution. Where a file gives variables no bounds, and the proof depends on the
            limits that they get, ``ended_by`` is ``domain-limit``. ``value`` is the value of the objective;
            ``lower_bound``, ``upper_bound`` and ``gap`` say how far it may be from the best one. Of several objectives
            these are the first one's, and ``objectives`` has those of all.
            ``assignment`` maps names to values; ``result[x]`` is the value of a variable or expression, or a list of
            several. ``ended_by`` names the limit or Ctrl-C. ``stats`` has ``complete`` (True if there are no other,
            or no better, solutions), ``nodes``, ``failures``, ``solutions``, ``restarts``, ``nogoods`` (recorded
            before restarts), ``propagations`` (calls of propagators), ``peak_depth`` (decisions) and ``seconds``:
            ``post``, ``search``, ``bounds``, ``other`` and ``total``.

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

        def solve_alone(model: Model, seconds: float | None) -> Result:
            return model._solve_alone(
                all_solutions, solution_limit, seconds, threads, seed, device, on_solution, options
            )

        assumptions = several(options.assumptions, "assumptions")
        assumed = [self._assumed(x) for x in assumptions]
        model = self._variant([*self._posts, *assumed], self._aims) if assumed else self
        started = time.monotonic()
        if len(self._aims) > 1:
            result = solve_in_turn(model, self._aims, time_limit, solve_alone)
        else:
            result = solve_alone(model, time_limit)
        if result.status != "infeasible" or not assumed:
            return result
        deadline = started + limit_of("time_limit", time_limit)

        def is_infeasible(numbers: Sequence[int]) -> bool:
            variant = self._variant([*self._posts, *(assumed[number] for number in numbers)], [])
            remaining = max(0.0, deadline - time.monotonic())
            return variant.solve(time_limit=remaining, threads=threads, seed=seed).status == "infeasible"

        core = minimal_conflict(range(len(assumed)), is_infeasible)
        return result.replace(core=tuple(assumptions[number] for number in sorted(core)))

    def _assumed(self, condition: Operand) -> Post:
        """Return the constraint of an assumption; a condition made of others gets a Boolean, as in an expression."""
        relation = condition if isinstance(condition, Relation) else self.expression(boolean(condition)) == 1
        self._check(relation.left)
        return _post_of(relation)

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
        is_portfolio = options.is_portfolio and (aim is not None or is_first or solution_limit == 1)
        is_relaxed = flag("lns", options.lns) or (is_portfolio and aim is not None)
        settings = options.pace, self._relaxed() if is_relaxed else None, flag("free", options.free), seed
        portfolio = (options.stretch_scale, bool(self._rules)) if is_portfolio else None
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
        """Search for one solution after another; with an objective, each is better than the one before.

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
    def propagated(self) -> list[list[int]] | None:
        """Return the values left to each variable by propagation alone; None if it proves infeasibility.

        Raises:
            InputError: The domains have too many values to list; use `bounds` for their ends.
            MemoryLimitError: Memory ran out.
        """
        solver, _ = self._build()
        return PropagatedDomains(self._variables, solver).listed(self.name_of) if solver.propagate() else None

    @memory_in_words()
    def to_model(self, *, rows: int = 1 << 18) -> GraphicalModel:
        """Return a graphical model for `elimina.solve` with the same number of solutions and the same optimum.

        Each constraint becomes a table of its allowed tuples. Sums, counts, automata and others over many variables
        become several tables over few variables, with auxiliary variables that the others determine. Variables keep
        their names (``_3`` without one), and their values become states. A variable that only names the sum of an
        objective is left out.

        Args:
            rows: Largest number of tuples of a table.

        Raises:
            InputError: A constraint needs more tuples, or a variable has more values; the error names it. Or two
                variables have the same name.
            MemoryLimitError: Memory ran out.
        """
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
        """Return everything that was posted."""
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
        rules = search_rules(self._rules, self._all_views(), objective)
        # In several threads, the search goes on with its solvers while others read the domains.
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

    def solution_of(self, values: npt.NDArray[np.int64]) -> Solution:
        """Return a solution with the values of all variables."""
        return Solution(self, values[: len(self._variables)], {name: var for var, name in self._names.items()})

    def _check(self, x: Expression) -> None:
        if x.model is not self:
            raise InputError(f"{x} belongs to another model: use variables of this one")

    def expression(self, x: Operand) -> Expression:
        """Return an expression of an operand, which may be a whole number."""
        if isinstance(x, Condition):
            return x.truth
        return x if isinstance(x, Expression) else Expression(self, {}, whole(x, "an operand"))

    def variable_of(self, x: Operand) -> Expression:
        """Return a variable that equals an expression, or the expression itself if it is a view of one variable."""
        x = self.expression(x)
        self._check(x)
        if is_view(x):
            return x
        equal = self.result_var(*self.bounds(x), (x,))
        self.add(equal == x)
        return equal

    def _view(self, x: Operand) -> ViewRows:
        return view_of(self.variable_of(x))

    def _views(self, xs: Iterable[Operand]) -> ViewRows:
        views = [self._view(x) for x in xs]
        return np.concatenate(views) if views else np.zeros((0, 3), dtype=np.int64)

    def post(self, name: str, *arguments: Any) -> None:
        """Post a constraint by its name in the core, with FlatZinc's arguments.

        Args:
            name: One of ``elimina.cp.constraint_names()``, such as ``int_times``; with the ending ``_reif`` or
                ``_imp`` for a reified or half-reified form.
            arguments: Operands, sequences of operands, or arrays of whole numbers, which are copied.

        Raises:
            InputError: An argument has another type. Other errors of arguments are raised when the model is solved.
        """
        self._posts.append((name, [self._argument(a) for a in arguments]))

    def _argument(self, argument: Any) -> Numbers:
        if isinstance(argument, Expression | Condition):
            return self._view(argument)
        if isinstance(argument, Sequence | np.ndarray) and not isinstance(argument, str):
            if not is_of_numbers(argument) and any(isinstance(x, Expression | Condition) for x in argument):
                return self._views(argument)
            return whole_array(argument)
        return whole_array([argument])


def _post_of(relation: Relation) -> Post:
    """Return the constraint of a relation, without its Boolean.

    Raises:
        InputError: A number is too large.
    """
    factors = np.array(list(relation.left.terms.values()), dtype=object)
    if len(factors) and max(abs(f) for f in factors) > MAX_INTEGER:
        raise InputError(f"{relation}: a coefficient is beyond 2^52")
    if abs(relation.left.constant) > MAX_INTEGER:
        raise InputError(f"{relation}: the constant is beyond 2^52")
    variables = np.array([(var, 1, 0) for var in relation.left.terms], dtype=np.int64).reshape(-1, 3)
    return f"int_lin_{relation.name}", [factors.astype(np.int64), variables, np.array([-relation.left.constant])]
