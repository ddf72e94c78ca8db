"""Domains of a model's variables after propagation."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from elimina._core import CpSolver
from elimina.cp.posting import Declaration
from elimina.errors import InputError

_MAX_LISTED_VALUES = 1 << 24
"""Largest number of values that are listed at once: as Python integers, they take 0.6 GiB."""


class PropagatedDomains:
    """Values of a model's variables after propagation.

    For a wide domain with holes, the core stores only bounds. Its values are then the declared values between them.

    Attributes:
        sizes: Upper bound on the number of values of each variable.
    """

    def __init__(self, variables: Sequence[Declaration], solver: CpSolver) -> None:
        self._variables, self._solver = variables, solver
        self._sizes = solver.sizes()[: len(variables)]
        self.sizes = [min(size, len(self._declared(v))) for v, size in enumerate(self._sizes)]

    def values(self, v: int) -> list[int]:
        """Return the values of a variable in ascending order."""
        declared, propagated_size = self._declared(v), self._sizes[v]
        if len(declared) <= propagated_size:
            return list(declared)
        values = self._solver.values_of(v)
        return values if isinstance(declared, range) else sorted(set(declared).intersection(values))

    def listed(self, name_of: Callable[[int], str]) -> list[list[int]]:
        """Return the values of all variables.

        Raises:
            InputError: There are too many values.
        """
        if sum(self.sizes) > _MAX_LISTED_VALUES:
            largest = max(range(len(self.sizes)), key=self.sizes.__getitem__)
            raise InputError(
                f"{sum(self.sizes):,} values are left, more than the {_MAX_LISTED_VALUES:,} listed at most; "
                f"{self.sizes[largest]:,} of them to variable {name_of(largest)}: give it a smaller domain"
            )
        return [self.values(v) for v in range(len(self.sizes))]

    def _declared(self, v: int) -> Sequence[int]:
        lo, hi = self._solver.bounds_of(v)
        values = self._variables[v].values
        return range(lo, hi + 1) if values is None else values[bisect_left(values, lo) : bisect_right(values, hi)]
