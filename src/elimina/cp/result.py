"""What a search finds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from elimina.cp.expressions import Expression
from elimina.errors import InputError

if TYPE_CHECKING:
    from elimina.cp.model import Model

Status = Literal["optimal", "satisfied", "infeasible", "unknown"]


class Solution:
    """A value for each variable: ``solution[x]`` of a variable, its name or an expression; of several, a list."""

    def __init__(self, model: Model, values: npt.NDArray[np.int64], names: dict[str, int]) -> None:
        self._model, self._values, self._names = model, values, names

    def __getitem__(self, what: Any) -> Any:
        if isinstance(what, str):
            if what not in self._names:
                raise InputError(f"the model has no variable named {what!r}")
            return int(self._values[self._names[what]])
        if isinstance(what, Expression):
            if what.model is not self._model or any(var >= len(self._values) for var in what.terms):
                raise InputError(f"{what} is not of the model as it was solved: it has no value in this solution")
            return what.constant + sum(factor * int(self._values[var]) for var, factor in what.terms.items())
        if isinstance(what, Iterable):
            return [self[x] for x in what]
        return what

    def to_dict(self) -> dict[str, int]:
        """Name -> value, of the variables that were given names."""
        return {name: int(self._values[var]) for name, var in self._names.items()}

    def __repr__(self) -> str:
        return f"Solution({self.to_dict()})"


@dataclass(frozen=True)
class Result:
    """An answer.

    Attributes:
        status: ``optimal``: the objective's best value is proven; ``satisfied``: there is a solution, and no objective
            or no proof; ``infeasible``: there is none; ``unknown``: a limit or Ctrl-C came first.
        solution: The last one found, which is the best one; None if there is none.
        objective: Its value; None without one.
        solutions: All that were asked for, in the order found.
        complete: Whether there are no others (no better ones).
        statistics: ``nodes``, ``failures``, ``solutions``, ``restarts``, ``nogoods`` (recorded before restarts),
            ``propagations`` (calls of propagators), ``peak_depth`` (decisions) and ``seconds``.
    """

    status: Status
    solution: Solution | None
    objective: int | None
    solutions: list[Solution]
    complete: bool
    statistics: dict[str, Any]

    def __getitem__(self, what: Any) -> Any:
        """``result[x]``: values in the last solution.

        Raises:
            InputError: There is none.
        """
        if self.solution is None:
            raise InputError(f"there is no solution to read values from: the status is {self.status}")
        return self.solution[what]
