"""Copies of models, which share the variables made before the copy."""

from __future__ import annotations

import copy
import os
from bisect import bisect_right
from operator import itemgetter
from typing import Any, Self

from elimina.cp.posting import Declaration


class CopyableModel:
    """Base of models of constraints: a copy is independent, and shares the variables made before it.

    Attributes:
        _makers: Pairs of the number of a variable and a random mark. The mark identifies the object that made this
            variable and those after it, up to the variable of the next pair.
    """

    _variables: list[Declaration]

    def __init__(self) -> None:
        self._makers = [(0, os.urandom(8))]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a copied or pickled model; later variables belong to this object only."""
        self.__dict__.update(state)
        self._makers = [*self._makers, (len(self._variables), os.urandom(8))]

    def __copy__(self) -> Self:
        return copy.deepcopy(self)

    def maker(self, var: int) -> bytes:
        """Return the mark of the object that made a variable: the same in all copies that have the variable."""
        return self._makers[bisect_right(self._makers, var, key=itemgetter(0)) - 1][1]
