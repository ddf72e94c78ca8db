"""Views of variables: a factor times a variable, and a constant."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class View(NamedTuple):
    """``scale * variable + offset``; a constant has the variable -1."""

    var: int
    scale: int
    offset: int

    def of(self, values: Integers) -> Integers:
        """Return the view's values, given those of its variable."""
        return self.scale * values + self.offset


def constant(value: int) -> View:
    """Return a view that has one value."""
    return View(-1, 0, value)


def views_of(argument: npt.NDArray[Any]) -> list[View]:
    """Return the views of an argument of the core: numbers, or rows of variable, scale and offset."""
    if argument.ndim == 1:
        return [constant(value) for value in argument.tolist()]
    return [View(var, scale if var >= 0 else 0, offset) for var, scale, offset in argument.tolist()]


ViewRows = npt.NDArray[np.int64]
