"""Posting of a model's variables and constraints to the solver of the core."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elimina._core import CpSolver
from elimina.cp.expressions import Expression, Relation
from elimina.cp.operands import MAX_INTEGER, Numbers, whole_array
from elimina.cp.views import ViewRows
from elimina.errors import InputError, TimeLimitError
from elimina.model.table import Sense

MAX_VARIABLES = 1 << 27
"""Largest number of variables in the core."""
_MAX_SCALE = 2**30
"""Largest factor of a view of a variable in the core."""


Post = tuple[str, Sequence[Numbers]]
"""Name of a constraint in the core, and its arguments."""


class Declaration(NamedTuple):
    """A variable before the solver is built: its bounds, and its values if the domain has holes."""

    lo: int
    hi: int
    values: tuple[int, ...] | None


class PostedModel(NamedTuple):
    """Everything that was posted to a constraint model.

    Attributes:
        variables: Bounds of each variable, and its values if the domain has holes.
        names: Names of the variables that have one.
        constraints: Names in the core, and their arguments.
        objective: Variable -> factor; None if there is none.
        constant: Constant term of the objective.
        sense: ``min-cost`` or ``max-cost``.
    """

    variables: Sequence[Declaration]
    names: Mapping[int, str]
    constraints: Sequence[tuple[str, Sequence[npt.NDArray[Any]]]]
    objective: Mapping[int, int] | None
    constant: int
    sense: Sense


def post_of(relation: Relation) -> Post:
    """Return the constraint that requires a relation to hold.

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


def build_solver(
    variables: Iterable[Declaration],
    posts: Iterable[Post],
    objective: Expression | None,
    deadline: float | None,
) -> tuple[CpSolver, ViewRows | None]:
    """Return the solver, and a view of the objective (None if there is none); a sum becomes a new variable.

    Args:
        variables: Variables of the model.
        posts: Names of constraints in the core, and their arguments.
        objective: Objective to be minimised; None if there is none.
        deadline: Deadline by ``time.monotonic``; None: there is none.

    Raises:
        InputError: The core refuses a constraint, or the objective is too large.
        TimeLimitError: The deadline passed.
    """
    solver = CpSolver()
    for variable in variables:
        check_time(deadline)
        if variable.values is None:
            solver.new_variables(1, variable.lo, variable.hi)
        else:
            solver.new_variable_of(np.array(variable.values, dtype=np.int64))
    for name, arguments in posts:
        check_time(deadline)
        call_core(solver.post, name, arguments)
    if objective is None:
        return solver, None
    if is_view(objective):
        return solver, view_of(objective)
    lo, hi = objective.model.bounds(objective)
    total = call_core(solver.new_variables, 1, lo, hi)
    terms = np.array([(var, 1, 0) for var in (*objective.terms, total)], dtype=np.int64)
    call_core(
        solver.post,
        "int_lin_eq",
        [whole_array([*objective.terms.values(), -1]), terms, whole_array([-objective.constant])],
    )
    return solver, np.array([(total, 1, 0)], dtype=np.int64)


def is_view(x: Expression) -> bool:
    """Return whether an expression is a view for the core: at most one variable, and numbers within its limits."""
    return len(x.terms) < 2 and all(abs(f) <= _MAX_SCALE for f in x.terms.values()) and abs(x.constant) <= MAX_INTEGER


def view_of(x: Expression) -> ViewRows:
    """Return an expression of at most one variable in the core's form: variable, factor and constant."""
    var, factor = next(iter(x.terms.items()), (-1, 0))
    return np.array([(var, factor, x.constant)], dtype=np.int64)


def call_core(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the core.

    Raises:
        InputError: The function refuses its arguments.
    """
    try:
        return function(*arguments)
    except (ValueError, IndexError) as error:
        raise InputError(str(error)) from None
    except TypeError:
        raise InputError(f"an option has the wrong type: {arguments[2:]}") from None


def check_time(deadline: float | None) -> None:
    """Check the time limit while constraints are posted.

    Raises:
        TimeLimitError: The deadline passed.
    """
    if deadline is not None and time.monotonic() > deadline:
        raise TimeLimitError("the time limit passed while the constraints were posted; allow more time")
