"""Tables over sorted scopes: products, marginals and quotients, with few axes for each operation."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Scope = tuple[int, ...]
"""Ranks of variables, ascending: the first one is the slowest axis of a table."""

_Runs = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]

_LEAST_POSITIVE = np.finfo(np.float64).tiny
"""Least normal number, which stands for 0 where a logarithm is taken."""

_LEAST_DENOMINATOR = 1e-300
"""Probability below which a conditional distribution is 0."""

_KEPT_ALIGNMENTS = 1 << 14
"""Pairs of scopes whose alignment is kept."""


class TableShapes:
    """Shapes of tables over variables that are numbered by rank.

    Args:
        sizes: Size of each variable, by rank.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self._runs: Callable[[Scope, Scope], _Runs] = functools.lru_cache(_KEPT_ALIGNMENTS)(self._align)

    def cells(self, scope: Iterable[int]) -> int:
        """Return the number of cells of a table."""
        return math.prod([self.sizes[v] for v in scope])

    def ones(self, scope: Scope) -> Floats:
        """Return a flat table of ones."""
        return np.ones(self.cells(scope))

    def multiply(self, table: Floats, scope: Scope, factor: Floats, inner: Scope) -> None:
        """Multiply a table by a factor over a part of its scope, in place."""
        if inner == scope:
            table *= factor
            return
        whole, part, _ = self._runs(scope, inner)
        view = table.reshape(whole)
        view *= factor.reshape(part)

    def marginal(self, table: Floats, scope: Scope, inner: Scope) -> Floats:
        """Sum out all variables but those of a part of the scope."""
        if inner == scope:
            return table
        whole, _, summed = self._runs(scope, inner)
        total: Floats = table.reshape(whole).sum(axis=summed)
        return total.reshape(-1)

    def _align(self, scope: Scope, inner: Scope) -> _Runs:
        """Return the axes of a table with neighbours merged, those of a part of it, and those that the part lacks."""
        members = set(inner)
        whole, part = [], []
        for is_kept, run in itertools.groupby(scope, key=members.__contains__):
            cells = self.cells(run)
            whole.append(cells)
            part.append(cells if is_kept else 1)
        first = bool(scope) and scope[0] in members
        return tuple(whole), tuple(part), tuple(range(int(first), len(whole), 2))


def quotient(numerator: Floats, denominator: Floats) -> Floats:
    """Return the quotient of two tables, 0 where the denominator is too small to be told from 0."""
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > _LEAST_DENOMINATOR)


def scaled_quotients(
    numerators: Mapping[int, Floats], denominators: Mapping[int, Floats]
) -> tuple[dict[int, Floats], float]:
    """Return the quotients of tables, each over its largest value, and the natural logarithm of these values."""
    quotients, log_scale = {}, 0.0
    for number, numerator in numerators.items():
        table = quotient(numerator, denominators[number])
        largest = float(table.max())
        if 0 < largest < math.inf:
            table /= largest
            log_scale += math.log(largest)
        quotients[number] = table
    return quotients, log_scale


def entropy(table: Floats) -> float:
    """Return the entropy of a distribution in nats."""
    return -float(table @ np.log(np.maximum(table, _LEAST_POSITIVE)))
