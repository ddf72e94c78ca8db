"""Answers about a model by contraction of its tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tests.adversary.models import Spec
from tests.reference.contraction import Tables, best_totals, count, is_satisfiable, log_sums, posteriors


class TableOracle:
    """Answers about tables by contraction, with the interface of ``oracle.Oracle``.

    Attributes:
        spec: Sense, variables, constant and upper bound of the model, as in ``models.Spec``.
        sizes: Numbers of the variables' values.
        magnitude: Bound on the sum of absolute terms of an allowed assignment.
    """

    def __init__(
        self,
        spec: Spec,
        tables: Tables,
        is_integer: bool = False,
        observed: Mapping[int, int] | None = None,
        weights: Mapping[int, list[float]] | None = None,
    ) -> None:
        """Apply evidence.

        Args:
            spec: See the attributes.
            tables: Tables of floats; infinity (negated if costs are maximised) or probability 0 for what is forbidden.
            is_integer: True if all costs are integers.
            observed: Variable -> value.
            weights: Variable -> likelihoods.
        """
        self.spec, self.observed = spec, dict(observed or {})
        self.scopes = [tuple(scope) for scope, _ in tables]
        self.sizes = [size for _, size, _ in spec["variables"]]
        self.sign = 1 if spec["sense"] == "min-cost" else -1
        self.is_integer = is_integer and spec["sense"] != "probability" and isinstance(spec["constant"], int)
        self.whole = [*tables, *(((v,), np.array(weight, dtype=float)) for v, weight in (weights or {}).items())]
        self.tables = [(scope, self._restricted(scope, table)) for scope, table in self.whole]
        self.free_sizes = [1 if v in self.observed else size for v, size in enumerate(self.sizes)]
        self._is_possible: bool | None = None
        self._posteriors: list[np.ndarray] | None = None
        self.magnitude = math.fsum([abs(spec["constant"]), *self.largest_terms()])

    def _restricted(self, scope: tuple[int, ...], table: np.ndarray) -> np.ndarray:
        ends = [self.observed.get(v) for v in scope]
        return table[tuple(slice(None) if x is None else slice(x, x + 1) for x in ends)]

    def largest_terms(self) -> list[float]:
        """Return the largest finite magnitude of each factor, of probabilities in logarithms."""
        if self.spec["sense"] == "probability":
            tables = [np.log(table[table > 0]) for _, table in self.tables]
        else:
            tables = [table[np.isfinite(table)] for _, table in self.tables]
        return [float(np.abs(table).max(initial=0)) for table in tables]

    def integer_span(self) -> int | None:
        """Return the largest sum of magnitudes of integer costs, forbidden ones aside; None if some are floats."""
        return round(self.magnitude) + abs(self.spec["upper_bound"] or 0) if self.is_integer else None

    def is_possible(self) -> bool:
        """Return whether some assignment agrees with the evidence and is not forbidden."""
        if self._is_possible is None:
            self._is_possible = is_satisfiable(self._allowed(), self.free_sizes)
        return self._is_possible

    def count(self) -> int:
        """Return the number of these assignments."""
        return count(self._allowed(), self.free_sizes)

    def _allowed(self) -> Tables:
        if self.spec["sense"] == "probability":
            return [(scope, table > 0) for scope, table in self.tables]
        return [(scope, np.isfinite(table)) for scope, table in self.tables]

    def optimum(self) -> Any:
        """Return the best score within the upper bound; None if nothing is allowed."""
        best, bound = self.sign * float(self.totals(()).item()), self.spec["upper_bound"]
        if best == math.inf or (bound is not None and best >= self.sign * bound):
            return None
        return round(self.sign * best) if self.is_integer else self.sign * best

    def totals(self, kept: tuple[int, ...]) -> np.ndarray:
        """Return the best score for each joint value of some variables."""
        tables = self.tables
        if self.spec["sense"] == "probability":
            with np.errstate(divide="ignore"):
                tables = [(scope, np.log(table)) for scope, table in tables]
        return best_totals(tables, self.free_sizes, kept, self.sign) + self.spec["constant"]

    def score(self, values: list[int]) -> Any:
        """Return the score of one assignment; None if it is forbidden or does not agree with the evidence."""
        if any(values[v] != x for v, x in self.observed.items()):
            return None
        terms = [float(table[tuple(values[v] for v in scope)]) for scope, table in self.whole]
        if self.spec["sense"] == "probability":
            terms = [math.log(term) if term > 0 else -math.inf for term in terms]
        if any(map(math.isinf, terms)):
            return None
        if self.is_integer:
            return sum(map(round, terms)) + self.spec["constant"]
        return math.fsum([*terms, self.spec["constant"]])

    def log_sum(self) -> float:
        """Return the natural logarithm of the sum of all products."""
        return float(log_sums(self.tables, self.free_sizes)[()]) + self.spec["constant"]

    def log_table(self, variables: list[int]) -> np.ndarray:
        """Return the logarithms of the sums for each joint value of some variables."""
        part = log_sums(self.tables, self.free_sizes, variables) + self.spec["constant"]
        whole = np.full([self.sizes[v] for v in variables], -math.inf)
        ends = [self.observed.get(v) for v in variables]
        whole[tuple(slice(None) if x is None else slice(x, x + 1) for x in ends)] = part
        return whole

    def log_sums(self, variables: list[int]) -> dict[tuple[int, ...], float]:
        """Return the logarithm of the sum for each joint value of some variables; what is missing is 0."""
        table = self.log_table(variables)
        return {place: float(value) for place, value in np.ndenumerate(table) if value > -math.inf}

    def marginals(self, v: int) -> list[float]:
        """Return the posterior of a variable."""
        if self._posteriors is None:
            self._posteriors = posteriors(self.tables, self.free_sizes)
        whole = np.zeros(self.sizes[v])
        x = self.observed.get(v)
        whole[slice(None) if x is None else slice(x, x + 1)] = self._posteriors[v]
        return list(whole.tolist())

    def max_marginals(self, v: int) -> list[float]:
        """Return the best probability with each state, relative to the best of all."""
        part = self.totals((v,))
        whole = np.full(self.sizes[v], -math.inf)
        x = self.observed.get(v)
        whole[slice(None) if x is None else slice(x, x + 1)] = part
        return list(np.exp(whole - whole.max()).tolist())
