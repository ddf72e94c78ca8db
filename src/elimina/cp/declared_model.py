"""Declarations of a constraint model: variables, constraints, objectives, orderings and hints."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from elimina import arguments
from elimina._core import cp_check_constraint, cp_falls_without_end, cp_variables_beyond_limits
from elimina.arguments import choice, is_iterable, shown, wrong_type
from elimina.cp.branching import MAX_BRANCHED_RESULT_VALUES, SearchRule
from elimina.cp.copies import CopyableModel
from elimina.cp.decompositions import DECOMPOSITIONS
from elimina.cp.derived_constraints import DerivedConstraints
from elimina.cp.expressions import Combination, Condition, Expression, Operand, Relation, boolean
from elimina.cp.global_conditions import GlobalCondition
from elimina.cp.hints import Hints, read_hints
from elimina.cp.lexicographic import Aim
from elimina.cp.operands import MAX_INTEGER, Numbers, beyond_limits, is_of_numbers, several, whole, whole_array
from elimina.cp.posting import MAX_VARIABLES, Declaration, Post, call_core, is_view, post_of, view_of
from elimina.cp.search_options import (
    VALUE_ORDERINGS,
    VARIABLE_ORDERINGS,
    ValueOrdering,
    VariableOrdering,
)
from elimina.cp.solution import Solution
from elimina.cp.unbounded import UNBOUNDED_LIMIT
from elimina.cp.views import ViewRows
from elimina.display import Displayed, sample
from elimina.errors import InputError

if TYPE_CHECKING:
    pass


@arguments.with_checked_methods
class DeclaredModel(CopyableModel, DerivedConstraints, Displayed):
    """Variables, constraints, objectives, orderings and hints."""

    def __init__(self) -> None:
        super().__init__()
        self._variables: list[Declaration] = []
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self._posts: list[Post] = []
        # Named blocks: number of the first constraint, number after the last one, and name.
        self._blocks: list[tuple[int, int, str]] = []
        self._rules: list[SearchRule] = []
        # The most important objective comes first.
        self._aims: list[Aim] = []
        self._hints: Hints = {}
        # Variables without bounds in a file, and variables whose bounds derive from those of such variables.
        self._unbounded: set[int] = set()
        self._wide_results: set[int] = set()

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
        """Return the variable with this name.

        Raises:
            InputError: No variable has the name.
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
            values = tuple(sorted({whole(x, "a value of a variable") for x in several(lo, "int_var")}))
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
            raise InputError(f"two variables are named {name!r}: give each a different name, or none")
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
        """Make a variable without bounds: search covers -2^42 to 2^42, and proofs must not depend on these limits.

        Args:
            name: Name in messages, and key of the assignment.
        """
        variable = self.int_var(-UNBOUNDED_LIMIT, UNBOUNDED_LIMIT, name)
        self._unbounded.update(variable.terms)
        return variable

    def result_var(self, lo: int, hi: int, of: Iterable[Operand], name: str = "") -> Expression:
        """Make a variable for a function of operands; it is unbounded if an operand is.

        Raises:
            InputError: A bound is beyond 2^52.
        """
        operands = list(of)
        if lo < -MAX_INTEGER or hi > MAX_INTEGER:
            raise beyond_limits(f"a function of {sample(operands, len(operands))}", lo, hi)
        is_unbounded = not self._unbounded.isdisjoint(
            var for x in operands if isinstance(x, Expression) for var in x.terms
        )
        variable = self.int_var(lo, hi, name)
        if is_unbounded:
            self._unbounded.update(variable.terms)
        if hi - lo >= MAX_BRANCHED_RESULT_VALUES:
            self._wide_results.update(variable.terms)
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
        """Return the variables without bounds in the file for which solutions beyond the default limits may exist.

        If no name is returned, the search within the limits is complete.

        Args:
            incumbent: Value of the objective in the best solution; only better solutions matter. None: all matter.
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
        """Return the name of the variable with a number; ``_NUMBER`` for a variable without a name."""
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
        """Return the ascending values of an operand before any constraint; for a sum, all values between its bounds."""
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
        """Post a comparison of expressions, or a condition made of comparisons and Booleans.

        Propagation makes sums bounds consistent, and relations of two variables domain consistent.

        Args:
            condition: Relation such as ``x + 2 * y <= 7``; conditions such as ``(x < y) | ~(y == 3)``; a Boolean; or
                True or False, as Python computes for ``sum([]) <= 3``.
            iff: A Boolean or a condition that is 1 exactly if the condition holds.
            only_if: A Boolean or a condition that is 0 if the condition does not hold.

        Raises:
            InputError: ``condition`` is not a condition or belongs to another model, or both ``iff`` and ``only_if``
                are given, or one of them may have other values than 0 and 1.

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
        if isinstance(condition, bool | np.bool_):
            # A comparison of Python numbers is decided already: sum([]) <= 3.
            condition = self.expression(int(condition))
        if not isinstance(condition, Condition | Expression):
            raise InputError(f"Model.add gets a condition such as x < y, or a Boolean expression, not {condition!r}")
        if iff is not None and only_if is not None:
            raise InputError(f"{condition}: iff includes only_if; give one of them")
        control = iff if only_if is None else only_if
        guard = None if control is None else self.expression(boolean(control))
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
        name, arguments = post_of(relation)
        self._posts.append((name + suffix, arguments if guard is None else [*arguments, self._view(guard)]))

    def _combine(self, condition: Combination, guard: Expression | None, suffix: str) -> None:
        if suffix == "_reif":
            self.post(f"array_bool_{condition.name}", condition.operands, guard)
        elif condition.name == "and":
            for operand in condition.operands:
                self.add(self.expression(operand) if isinstance(operand, int) else operand, only_if=guard)
        else:
            operands = [*condition.operands, *([] if guard is None else [1 - guard])]
            of_last = next((operand for operand in operands if isinstance(operand, GlobalCondition)), None)
            if of_last is None:
                self.clause(operands)
            else:
                others = [operand for operand in operands if operand is not of_last]
                self.add(of_last, only_if=1 - (self.any_of(others) if len(others) > 1 else self.expression(others[0])))

    def _post_global(self, condition: GlobalCondition, guard: Expression | None, is_full: bool) -> None:
        if condition.model is not self:
            raise InputError(f"{condition} belongs to another model: use variables of this one")
        if guard is None:
            getattr(self, condition.name)(*condition.arguments, **condition.keywords)
            return
        decomposition = DECOMPOSITIONS[condition.name](self, *condition.arguments, **condition.keywords)
        decomposed = decomposition if isinstance(decomposition, Condition) else self.expression(decomposition)
        self.add(decomposed, **{"iff" if is_full else "only_if": guard})

    def holds(self, condition: Operand) -> Expression:
        """Return a new Boolean that is 1 exactly if a condition holds."""
        b = self.bool_var()
        self.add(condition, iff=b)
        return b

    @contextlib.contextmanager
    def named(self, name: str) -> Iterator[None]:
        """Give the constraints that are posted in a block a name, for `conflict`.

        Several blocks may have one name. Functions that make variables in the block post their definitions there, so a
        later block that uses these variables depends on it.

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

    def sum(self, xs: Iterable[Operand]) -> Expression:
        """Return the sum of expressions, faster than Python's ``sum`` if there are thousands."""
        terms: dict[int, int] = {}
        constant = 0
        for x in map(self.expression, several(xs, "sum")):
            self._check(x)
            constant += x.constant
            for var, factor in x.terms.items():
                terms[var] = terms.get(var, 0) + factor
        return Expression(self, terms, constant)

    def minimize(self, objective: Operand | Iterable[Operand]) -> None:
        """Search for a solution with the least value of an expression, or of several in order of importance.

        Args:
            objective: The expression. Of several objectives, the most important one comes first: each later one chooses
                among the solutions that are best for all earlier ones. ``-x`` maximises x.

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
        """Search for a solution with the greatest value of an expression, or of several: see `minimize`."""
        self._aim(objective, -1)

    def _aim(self, objective: Operand | Iterable[Operand], sign: int) -> None:
        listed = several(objective, "an objective") if isinstance(objective, Iterable) else [objective]
        expressions = [self.expression(x) for x in listed]
        if not expressions:
            raise InputError("there is no objective in the list: give at least one")
        for expression in expressions:
            self._check(expression)
            if not is_view(expression):
                self._check_range(expression)
        self._aims = [Aim(expression, sign) for expression in expressions]

    def hint(self, values: Mapping[Expression | Condition | str, int] | Solution) -> None:
        """Set values that searches try first; wrong hints only cost time.

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

    def _check(self, x: Expression) -> None:
        if x.model is not self:
            raise InputError(f"{x} belongs to another model: use variables of this one")

    def _check_range(self, x: Expression) -> None:
        lo, hi = self.bounds(x)
        if lo < -MAX_INTEGER or hi > MAX_INTEGER:
            raise beyond_limits(str(x), lo, hi)

    def expression(self, x: Operand) -> Expression:
        """Return an expression of an operand, which may be a whole number."""
        if isinstance(x, Expression):
            return x
        return x.truth if isinstance(x, Condition) else Expression(self, {}, whole(x, "an operand"))

    def variable_of(self, x: Operand) -> Expression:
        """Return a variable that equals an expression, or the expression itself if it is a view of one variable."""
        x = self.expression(x)
        self._check(x)
        if is_view(x):
            return x
        self._check_range(x)
        equal = self.result_var(*self.bounds(x), (x,))
        self.add(equal == x)
        return equal

    def _view(self, x: Operand) -> ViewRows:
        view = self.variable_of(x)
        if view.constant or any(factor != 1 for factor in view.terms.values()):
            self._check_range(view)
        return view_of(view)

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
            InputError: There is no such constraint, or an argument has another type. Other errors of arguments are
                raised when the model is solved.
        """
        if not isinstance(name, str):
            raise wrong_type("name", name, "a string")
        call_core(cp_check_constraint, name, len(arguments))
        self._posts.append((name, [self._argument(a) for a in arguments]))

    def _argument(self, argument: Any) -> Numbers:
        if isinstance(argument, Expression | Condition):
            return self._view(argument)
        if isinstance(argument, Sequence | np.ndarray) and not isinstance(argument, str) and is_iterable(argument):
            if not is_of_numbers(argument) and any(isinstance(x, Expression | Condition) for x in argument):
                return self._views(argument)
            return whole_array(argument)
        return whole_array([argument])
