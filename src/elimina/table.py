"""A table: a scope and a value for each assignment of it, stored densely or as rows that differ from a default."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elimina.errors import InputError

Values = NDArray[Any]

FORBIDDEN = int(np.iinfo(np.int64).max)
"""The integer cost of a forbidden assignment in a table to be minimised (its negation where costs are maximised).

Tables of floating-point costs use infinity, tables of probabilities use 0.
"""


class Table:
    """A function of a few discrete variables.

    Attributes:
        scope: Indices of the variables, in the order of the axes; the last one varies fastest.
        sizes: The variables' domain sizes, in the same order.
        values: Dense: an array of shape ``sizes``. Sparse: one value for each row.
        rows: None if dense; else an int32 array of shape ``(len(values), len(scope))``, the assignments that ``values``
            belong to, each at most once.
        default: Sparse: the value of every assignment that is not in ``rows``; None if dense.
    """

    __slots__ = ("default", "rows", "scope", "sizes", "values")

    def __init__(
        self,
        scope: Sequence[int],
        values: ArrayLike,
        *,
        sizes: Sequence[int] | None = None,
        rows: ArrayLike | None = None,
        default: float | None = None,
    ) -> None:
        """Build a dense table from an array, or a sparse one from ``sizes``, ``rows``, ``values`` and ``default``.

        Raises:
            InputError: A variable occurs twice in the scope, the shapes do not fit one another, a row is outside the
                domains, an integer table's default is no integer, or a value is no number or beyond 64 bits.
        """
        self.scope = tuple(int(v) for v in scope)
        if len(set(self.scope)) != len(self.scope):
            raise InputError(f"a table's scope names a variable twice: {self.scope}; join its axes first")
        array = np.asarray(values)
        if array.dtype.kind not in "buif":
            raise InputError(f"a table holds integers of 64 bits or floats, not {array.dtype}")
        if array.dtype.kind == "u" and array.size and array.max() > FORBIDDEN:
            raise InputError(f"the value {array.max()} does not fit a signed 64-bit integer")
        if array.dtype.kind in "bui":
            array = array.astype(np.int64, copy=False)
        elif array.dtype != np.float32:
            array = array.astype(np.float64, copy=False)
        self.values: Values = array
        if rows is None:
            if array.ndim != len(self.scope):
                raise InputError(
                    f"a table over {len(self.scope)} variables needs as many axes, its array has {array.ndim}"
                )
            self.sizes = tuple(int(s) for s in array.shape)
            self.rows: NDArray[np.int32] | None = None
            self.default: int | float | None = None
            return
        if sizes is None or default is None or not self.scope:
            raise InputError("a sparse table needs a scope, sizes and a default besides its rows and values")
        self.sizes = tuple(int(s) for s in sizes)
        self.rows = np.asarray(rows, dtype=np.int32).reshape(array.size, len(self.scope))
        self.default = int(default) if array.dtype.kind == "i" else float(default)
        if len(self.sizes) != len(self.scope) or array.shape != (len(self.rows),):
            raise InputError(
                f"a sparse table over {len(self.scope)} variables got {len(self.sizes)} sizes, "
                f"{len(self.rows)} rows and values of shape {array.shape}"
            )
        if ((self.rows < 0) | (self.rows >= np.array(self.sizes))).any():
            raise InputError(f"a row of the table over {self.scope} is outside the domain sizes {self.sizes}")
        if self.default != default:
            raise InputError(f"a table of integers needs an integer default, not {default}")

    @property
    def cells(self) -> int:
        """Number of assignments of the scope (of cells, were it dense)."""
        return math.prod(self.sizes)

    @property
    def is_sparse(self) -> bool:
        """Whether only the rows that differ from a default are stored."""
        return self.rows is not None

    def dense(self) -> Values:
        """Return the values as an array of shape ``sizes`` (a dense table's own array: do not write to it)."""
        if self.rows is None:
            return self.values
        full = np.full(self.sizes, self.default, dtype=self.values.dtype)
        full[tuple(self.rows.T)] = self.values
        return full

    def at(self, assignment: Mapping[int, int] | Sequence[int]) -> int | float:
        """Value at an assignment (variable index -> value index) that covers the scope."""
        key = tuple(assignment[v] for v in self.scope)
        if self.rows is None:
            return _number(self.values[key])
        found = np.flatnonzero((self.rows == np.array(key, dtype=np.int32)).all(axis=1))
        if len(found):
            return _number(self.values[found[0]])
        assert self.default is not None
        return self.default

    def restrict(self, fixed: Mapping[int, int]) -> Table:
        """Slice by the fixed variables that are in the scope; this table itself if there is none."""
        if not any(v in fixed for v in self.scope):
            return self
        keep = [a for a, v in enumerate(self.scope) if v not in fixed]
        scope = [self.scope[a] for a in keep]
        if self.rows is None:
            return Table(scope, self.values[tuple(fixed.get(v, slice(None)) for v in self.scope)])
        match = np.ones(len(self.rows), dtype=bool)
        for axis, v in enumerate(self.scope):
            if v in fixed:
                match &= self.rows[:, axis] == fixed[v]
        if not keep:
            return Table((), np.asarray(self.values[match][0] if match.any() else self.default))
        sizes = [self.sizes[a] for a in keep]
        return Table(scope, self.values[match], sizes=sizes, rows=self.rows[match][:, keep], default=self.default)

    def __repr__(self) -> str:
        kind = f"{len(self.values)} rows, default {self.default}" if self.rows is not None else "dense"
        return f"Table(scope={self.scope}, sizes={self.sizes}, {self.values.dtype}, {kind})"


def _number(value: np.generic) -> int | float:
    number: int | float = value.item()
    return number
