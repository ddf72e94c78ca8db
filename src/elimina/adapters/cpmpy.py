"""A solver of CPMpy: ``model.solve(solver="elimina")`` after ``register()`` (tested with CPMpy 1.1)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from elimina.cp.expressions import Expression
from elimina.cp.model import Model
from elimina.cp.solution import Solution
from elimina.errors import UnsupportedError
from elimina.result import Result
from elimina.system import import_package
from elimina.version import __version__

NAME = "elimina"

_interface: Any = import_package("cpmpy", "cpmpy.solvers.solver_interface")
_decompose: Any = import_package("cpmpy", "cpmpy.transformations.decompose_global")
_safen: Any = import_package("cpmpy", "cpmpy.transformations.safening")
_normalize: Any = import_package("cpmpy", "cpmpy.transformations.normalize")
_variables: Any = import_package("cpmpy", "cpmpy.expressions.variables")
_found_variables: Callable[..., Any] = import_package("cpmpy", "cpmpy.transformations.get_variables").get_variables


def register() -> None:
    """Add elimina to CPMpy's solvers; a second call changes nothing."""
    lookup = import_package("cpmpy", "cpmpy.solvers.utils").SolverLookup
    base_solvers = lookup.base_solvers
    if all(name != NAME for name, _ in base_solvers()):
        lookup.base_solvers = classmethod(lambda cls: [*base_solvers(), (NAME, CPM_elimina)])


class CPM_elimina(_interface.SolverInterface):  # type: ignore[misc]
    """CPMpy's interface of a solver: constraints are posted when they are added.

    Args:
        cpm_model: Model of CPMpy, or None for an empty one.
        subsolver: Has to be None: elimina has no subsolvers.
    """

    supported_global_constraints = frozenset(
        (
            *("alldifferent", "alldifferent_except_0", "allequal", "circuit", "inverse", "table", "indomain", "gcc"),
            *("lex_less", "lex_lesseq", "cumulative", "no_overlap", "increasing", "decreasing"),
            *("strictly_increasing", "strictly_decreasing", "min", "max", "abs", "mul", "div", "mod", "element"),
            *("count", "nvalue"),
        )
    )
    supported_reified_global_constraints: frozenset[str] = frozenset()

    def __init__(self, cpm_model: Any = None, subsolver: str | None = None) -> None:
        if subsolver is not None:
            raise UnsupportedError(f"elimina has no subsolver {subsolver!r}: leave the subsolver out")
        self._model = Model()
        self._aim: Any = None
        super().__init__(name=NAME, cpm_model=cpm_model)

    @staticmethod
    def supported() -> bool:
        """Return True: the solver is installed."""
        return True

    @classmethod
    def version(cls) -> str:
        """Return the version of elimina."""
        return __version__

    @property
    def native_model(self) -> Model:
        """The model of ``elimina.cp``."""
        return self._model

    def solve(self, time_limit: float | None = None, display: Any = None, **options: Any) -> bool:
        """Search for a solution, or the best one, and give its values to CPMpy's variables.

        Args:
            time_limit: Time limit in seconds; None for no limit.
            display: Callback, or expressions that CPMpy prints, at each solution.
            options: Arguments of ``elimina.cp.Model.solve``: ``threads``, ``seed``, ``device``, ``options``.

        Returns:
            True if there is a solution.
        """
        self.solver_vars(list(self.user_vars))
        listener = None if display is None else lambda solution: self._show(solution, display)
        result = self._model.solve(time_limit=time_limit, on_solution=listener, **options)
        statuses = {"optimal": "OPTIMAL", "feasible": "FEASIBLE", "infeasible": "UNSATISFIABLE"}
        self._set_status(result, statuses.get(result.status, "UNKNOWN"))
        if result.assignment is None:
            for variable in self.user_vars:
                variable.clear()
        else:
            self._set_values(result.assignment)
        self.objective_value_ = result.value if self.has_objective() else None
        return bool(self._solve_return(self.cpm_status))

    def solveAll(
        self,
        display: Any = None,
        time_limit: float | None = None,
        solution_limit: int | None = None,
        call_from_model: bool = False,
        **options: Any,
    ) -> int:
        """Search for all solutions, and return their number.

        Args:
            display: Callback, or expressions that CPMpy prints, at each solution.
            time_limit: Time limit in seconds; None for no limit.
            solution_limit: Number of solutions after which the search ends.
            call_from_model: Ignored; CPMpy passes it.
            options: Arguments of ``elimina.cp.Model.solve``.

        Raises:
            UnsupportedError: There is an objective.
        """
        if self.has_objective():
            raise UnsupportedError(
                "solveAll cannot list all optimal solutions: solve once, then constrain the objective to its optimum"
            )
        # Solutions that differ only in auxiliary variables of the decompositions are equal for CPMpy, so they count
        # once.
        variables, solutions_so_far = list(self.user_vars), set()
        expressions = self.solver_vars(variables)

        def report_solution(solution: Solution) -> bool:
            values = tuple(solution[expressions])
            if values not in solutions_so_far:
                solutions_so_far.add(values)
                self._show(solution, display)
            return len(solutions_so_far) != solution_limit

        result = self._model.solve(all_solutions=True, time_limit=time_limit, on_solution=report_solution, **options)
        if not solutions_so_far:
            status = "UNSATISFIABLE" if result.stats.get("complete") else "UNKNOWN"
        else:
            status = "OPTIMAL" if result.stats["complete"] else "FEASIBLE"
        self._set_status(result, status)
        return len(solutions_so_far)

    def has_objective(self) -> bool:
        """Return whether there is an objective."""
        return self._aim is not None

    def objective(self, expr: Any, minimize: bool = True) -> None:
        """Set the objective."""
        _found_variables(expr, self.user_vars)
        aim, safe = _safen.safen_objective(expr)
        aim, defining = _decompose.decompose_objective(
            aim,
            supported=self.supported_global_constraints,
            supported_reified=self.supported_reified_global_constraints,
            csemap=self._csemap,
        )
        self.add([*safe, *defining])
        self._aim = aim
        (self._model.minimize if minimize else self._model.maximize)(self._number(aim))

    def solver_var(self, cpm_var: Any) -> Expression | int:
        """Return the variable of ``elimina.cp`` that stands for a variable of CPMpy; for a number, the number."""
        if not isinstance(cpm_var, _variables._NumVarImpl):
            return int(cpm_var)
        if isinstance(cpm_var, _variables.NegBoolView):
            return 1 - self.solver_var(cpm_var._bv)
        if cpm_var.name not in self._varmap:
            self._varmap[cpm_var.name] = self._model.int_var(int(cpm_var.lb), int(cpm_var.ub), cpm_var.name)
        expression: Expression = self._varmap[cpm_var.name]
        return expression

    def transform(self, cpm_expr: Any) -> list[Any]:
        """Decompose those constraints of CPMpy that elimina does not have."""
        constraints = _safen.no_partial_functions(_normalize.toplevel_list(cpm_expr))
        decomposed: list[Any] = _decompose.decompose_in_tree(
            constraints,
            supported=self.supported_global_constraints,
            supported_reified=self.supported_reified_global_constraints,
            csemap=self._csemap,
        )
        return decomposed

    def add(self, cpm_expr: Any) -> CPM_elimina:
        """Post a constraint, or several; return this solver."""
        _found_variables(cpm_expr, collect=self.user_vars)
        for constraint in self.transform(cpm_expr):
            self._post(constraint)
        return self

    __add__ = add

    def _set_status(self, result: Result, status: str) -> None:
        self.cpm_status = _interface.SolverStatus(self.name)
        self.cpm_status.solve_time = result.stats["seconds"]["total"]
        self.cpm_status.exitstatus = _interface.ExitStatus[status]

    def _show(self, solution: Solution, display: Any) -> None:
        self._set_values(solution)
        self.print_display(display)

    def _set_values(self, solution: Any) -> None:
        for variable in self.user_vars:
            value = solution[variable.name]
            variable._value = bool(value) if variable.is_bool() else value

    def _post(self, constraint: Any) -> None:
        name, model = getattr(constraint, "name", ""), self._model
        if name in _RELATIONS and not isinstance(constraint, _variables._NumVarImpl):
            model.add(self._relation(constraint))
        elif name == "or":
            model.clause(self._numbers(constraint.args))
        elif name == "->":
            condition, then = constraint.args
            model.clause([self._number(then)], [self._number(condition)])
        elif name in _GLOBALS and not isinstance(constraint, _variables._NumVarImpl):
            _GLOBALS[name](self, constraint)
        elif name == "and":
            for argument in constraint.args:
                self._post(argument)
        else:
            model.add(model.expression(self._number(constraint)) >= 1)

    def _relation(self, constraint: Any) -> Any:
        lhs, rhs = (self._model.expression(self._number(argument)) for argument in constraint.args)
        return getattr(lhs, _RELATIONS[constraint.name])(rhs)

    def _numbers(self, expressions: Iterable[Any]) -> list[Any]:
        return [self._number(expression) for expression in expressions]

    def _number(self, expression: Any) -> Any:
        """Return the expression of ``elimina.cp`` for an expression of CPMpy; a condition has the value 0 or 1."""
        if isinstance(expression, _variables._NumVarImpl) or not hasattr(expression, "args"):
            return self.solver_var(expression)
        if expression.name in _RELATIONS:
            return self._model.holds(self._relation(expression))
        if expression.name == "boolval":
            return int(bool(expression.args[0]))
        if expression.name not in _FUNCTIONS:
            raise UnsupportedError(f"the expression {expression} is not supported")
        return _FUNCTIONS[expression.name](self, expression)


_RELATIONS = {"==": "__eq__", "!=": "__ne__", "<=": "__le__", "<": "__lt__", ">=": "__ge__", ">": "__gt__"}

Solver = CPM_elimina


def _sum(solver: Solver, expression: Any) -> Any:
    weights, items = expression.args if expression.name == "wsum" else ([1] * len(expression.args), expression.args)
    return solver._model.sum(int(w) * x for w, x in zip(weights, solver._numbers(items), strict=True))


def _element(solver: Solver, expression: Any) -> Any:
    items, index = expression.args
    return solver._model.element(solver._numbers(items), solver._number(index))


def _count(solver: Solver, expression: Any) -> Any:
    items, value = expression.args
    return solver._model.count(solver._numbers(items), solver._number(value))


def _product(solver: Solver, expression: Any) -> Any:
    first, second = solver._numbers(expression.args)
    return first * second


def _minus(solver: Solver, expression: Any) -> Any:
    values = solver._numbers(expression.args)
    return -values[0] if len(values) == 1 else values[0] - values[1]


def _implies(solver: Solver, expression: Any) -> Any:
    condition, then = solver._numbers(expression.args)
    return solver._model.any_of([1 - condition, then])


_FUNCTIONS: dict[str, Callable[[Solver, Any], Any]] = {
    "sum": _sum,
    "wsum": _sum,
    "sub": _minus,
    "-": _minus,
    "mul": _product,
    "div": lambda solver, term: solver._model.quotient(*solver._numbers(term.args)),
    "mod": lambda solver, term: solver._model.remainder(*solver._numbers(term.args)),
    "abs": lambda solver, term: abs(solver._model.expression(solver._number(term.args[0]))),
    "min": lambda solver, term: solver._model.minimum(solver._numbers(term.args)),
    "max": lambda solver, term: solver._model.maximum(solver._numbers(term.args)),
    "element": _element,
    "count": _count,
    "nvalue": lambda solver, term: solver._model.distinct_values(solver._numbers(term.args)),
    "not": lambda solver, term: 1 - solver._number(term.args[0]),
    "and": lambda solver, term: solver._model.all_of(solver._numbers(term.args)),
    "or": lambda solver, term: solver._model.any_of(solver._numbers(term.args)),
    "->": _implies,
}


def _chain(relation: str) -> Callable[[Solver, Any], None]:
    def post(solver: Solver, constraint: Any) -> None:
        xs = [solver._model.expression(x) for x in solver._numbers(constraint.args)]
        for x, y in itertools.pairwise(xs):
            solver._model.add(getattr(x, relation)(y))

    return post


def _each_other(method: str) -> Callable[[Solver, Any], None]:
    def post(solver: Solver, constraint: Any) -> None:
        getattr(solver._model, method)(*(solver._numbers(xs) for xs in constraint.args))

    return post


def _tasks(solver: Solver, constraint: Any) -> None:
    """Post a ``cumulative`` or ``no_overlap`` constraint of CPMpy, with or without the ends of tasks."""
    args = list(constraint.args)
    demands, capacity = ([1] * len(args[0]), 1) if constraint.name == "no_overlap" else (args.pop(-2), args.pop())
    starts, durations = solver._numbers(args[0]), solver._numbers(args[1])
    model = solver._model
    for x in (*durations, *solver._numbers(demands)):
        model.add(model.expression(x) >= 0)
    for start, duration, end in zip(starts, durations, solver._numbers(args[2]) if len(args) > 2 else (), strict=False):
        model.add(model.expression(start) + duration == end)
    model.cumulative(starts, durations, solver._numbers(demands), solver._number(capacity))


def _cardinality(solver: Solver, constraint: Any) -> None:
    xs, values, counts = constraint.args
    pairs = zip(map(int, values), solver._numbers(counts), strict=True)
    solver._model.cardinality(solver._numbers(xs), dict(pairs), bool(constraint.closed))


_GLOBALS: dict[str, Callable[[Solver, Any], None]] = {
    "alldifferent": lambda solver, term: solver._model.all_different(solver._numbers(term.args)),
    "alldifferent_except_0": lambda solver, term: solver._model.all_different_except_0(solver._numbers(term.args[0])),
    "allequal": _chain("__eq__"),
    "increasing": _chain("__le__"),
    "decreasing": _chain("__ge__"),
    "strictly_increasing": _chain("__lt__"),
    "strictly_decreasing": _chain("__gt__"),
    "circuit": lambda solver, term: solver._model.circuit(solver._numbers(term.args)),
    "inverse": _each_other("inverse"),
    "lex_less": _each_other("lex_less"),
    "lex_lesseq": _each_other("lex_lesseq"),
    "table": lambda solver, term: solver._model.table(
        solver._numbers(term.args[0]), [[int(x) for x in row] for row in term.args[1]]
    ),
    "indomain": lambda solver, term: solver._model.member(
        solver._model.expression(solver._number(term.args[0])), [int(x) for x in term.args[1]]
    ),
    "gcc": _cardinality,
    "cumulative": _tasks,
    "no_overlap": _tasks,
}
