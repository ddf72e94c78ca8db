"""Posting a model's variables and constraints to a solver of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elimina._core import CpSolver
from elimina.cp.expressions import LIMIT, Expression, Numbers, whole_array
from elimina.cp.running import check_time
from elimina.errors import InputError

Words = npt.NDArray[np.int64]
_SCALES = 2**30
"""Largest factor of a view of a variable in the core."""


class Variable(NamedTuple):
    """A variable before the solver is built: its bounds, and its values where the domain has holes."""

    lo: int
    hi: int
    values: tuple[int, ...] | None


def build_solver(
    variables: Iterable[Variable],
    posts: Iterable[tuple[str, Sequence[Numbers]]],
    aim: Expression | None,
    deadline: float,
) -> tuple[CpSolver, Words | None]:
    """Return the solver and a view of the objective; a sum gets a variable that only the solver has.

    Args:
        variables: Variables of the model.
        posts: Names of constraints in the core, and their arguments.
        aim: Objective to be minimised; None without one.
        deadline: By ``time.monotonic``.

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
        called(solver.post, name, arguments)
    if aim is None:
        return solver, None
    if is_view(aim):
        return solver, view_of(aim)
    lo, hi = aim.model.bounds(aim)
    if max(abs(lo), abs(hi)) > LIMIT:
        raise InputError(f"the objective is from {lo} to {hi}, beyond 2^52: use smaller coefficients or bounds")
    own = called(solver.new_variables, 1, lo, hi)
    terms = np.array([(var, 1, 0) for var in (*aim.terms, own)], dtype=np.int64)
    called(solver.post, "int_lin_eq", [whole_array([*aim.terms.values(), -1]), terms, whole_array([-aim.constant])])
    return solver, np.array([(own, 1, 0)], dtype=np.int64)


def is_view(x: Expression) -> bool:
    """Return whether the core takes an expression as a view of one variable."""
    return len(x.terms) < 2 and all(abs(f) <= _SCALES for f in x.terms.values()) and abs(x.constant) <= LIMIT


def view_of(x: Expression) -> Words:
    """Return an expression of at most one variable as the core takes it: variable, factor and constant."""
    var, factor = next(iter(x.terms.items()), (-1, 0))
    return np.array([(var, factor, x.constant)], dtype=np.int64)


def called(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the core.

    Raises:
        InputError: It refuses its arguments.
    """
    try:
        return function(*arguments)
    except (ValueError, IndexError) as error:
        raise InputError(str(error)) from None
    except TypeError:
        raise InputError(f"an option has the wrong type: {arguments[2:]}") from None
