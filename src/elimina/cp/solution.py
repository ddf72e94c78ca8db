"""Solutions: a value for each variable."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from elimina.cp.expressions import Combination, Expression, ExpressionModel, Relation
from elimina.cp.global_conditions import GlobalCondition
from elimina.cp.intervals import IntervalVar
from elimina.display import sample
from elimina.errors import InputError

_COMPARISONS = {"eq": operator.eq, "ne": operator.ne, "le": operator.le}


class SolvedModel(ExpressionModel, Protocol):
    """The methods of a constraint model that its solutions use."""

    def fulfils(self, condition: GlobalCondition, solution: Solution) -> bool:
        """Return whether a global constraint holds in a solution."""


class Solution(Mapping[str, int]):
    """A value for each variable.

    The keys of the mapping are the names of variables that have one. ``solution[x]`` also takes a variable, an
    expression, a condition (1 if it holds), a task of `Model.interval_var` (its start and end; None if it is absent),
    or a list of them, for which it returns a list. A solution of a copied or pickled model takes the variables of the
    original.

    Examples:
        >>> from elimina import cp
        >>> m = cp.Model()
        >>> x = m.int_var(1, 3, "x")
        >>> [solution[x] for solution in m.solutions()]
        [1, 2, 3]
    """

    def __init__(self, model: SolvedModel, values: npt.NDArray[np.int64], names: dict[str, int]) -> None:
        self._model, self._values, self._names = model, values, names

    def __getitem__(self, what: Any) -> Any:
        if isinstance(what, str):
            if what not in self._names:
                raise InputError(f"the model has no variable named {what!r}")
            return int(self._values[self._names[what]])
        if isinstance(what, Expression):
            if not all(var < len(self._values) and self._shares(what.model, var) for var in what.terms):
                raise InputError(f"{what} is not of the model as it was solved: it has no value in this solution")
            return what.constant + sum(factor * int(self._values[var]) for var, factor in what.terms.items())
        if isinstance(what, Relation):
            return int(_COMPARISONS[what.name](self[what.left], 0))
        if isinstance(what, Combination):
            return int((all if what.name == "and" else any)(self[what.operands]))
        if isinstance(what, GlobalCondition):
            return int(self._model.fulfils(what, self))
        if isinstance(what, IntervalVar):
            return (self[what.start], self[what.end]) if self[what.presence] else None
        if isinstance(what, Iterable):
            return [self[x] for x in what]
        return what

    def numbered(self, model: ExpressionModel) -> dict[int, int]:
        """Return the values of the variables that a model shares, by their numbers.

        Raises:
            InputError: The model shares no variable.
        """
        shared = {var: value for var, value in enumerate(self._values.tolist()) if self._shares(model, var)}
        if len(self._values) and not shared:
            raise InputError("the solution is of another model: none of its variables is one of this model")
        return shared

    def _shares(self, model: ExpressionModel, var: int) -> bool:
        return model is self._model or model.maker(var) == self._model.maker(var)

    def __contains__(self, what: object) -> bool:
        return what in self._names if isinstance(what, str) else False

    def get(self, what: str, default: Any = None) -> Any:
        """Return the value of the variable with this name, or the default if there is no such variable."""
        return self[what] if what in self._names else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        values = (f"{name}={self[name]}" for name in self)
        return f"Solution({sample(values, len(self))})"
