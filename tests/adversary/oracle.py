"""Exact answers by looking at every assignment."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from elimina.model.table import FORBIDDEN
from tests.adversary.models import Spec, integer_span

INT64_SAFE = 2**62


class Oracle:
    """All assignments of a model and what each is worth.

    Attributes:
        allowed: Numbers of the assignments that agree with the evidence and are not forbidden (the model's upper bound
            aside).
        scores: Theirs, in the same order: exact ints, correctly rounded sums of floats, or logarithms of products.
        magnitude: The largest sum of absolute terms of an allowed assignment.
    """

    def __init__(
        self,
        spec: Spec,
        observed: Mapping[int, int] | None = None,
        weights: Mapping[int, list[float]] | None = None,
    ) -> None:
        self.spec = spec
        self.scopes = [tuple(factor["scope"]) for factor in spec["factors"]]
        self.sizes = [size for _, size, _ in spec["variables"]]
        count = math.prod(self.sizes)
        numbers = np.arange(count)
        self.columns = []
        stride = count
        for size in self.sizes:
            stride //= size
            self.columns.append(numbers // stride % size)
        is_free = np.ones(count, dtype=bool)
        for v, value in (observed or {}).items():
            is_free &= self.columns[v] == value
        terms = [self._column(factor) for factor in spec["factors"]]
        if spec["sense"] == "probability":
            scores, allowed = self._logarithms(terms, weights or {}, is_free)
        elif all(factor["dtype"] == "int64" for factor in spec["factors"]) and isinstance(spec["constant"], int):
            scores, allowed = self._integers(terms, is_free)
        else:
            scores, allowed = self._floats(terms, is_free)
        self.scores: list[Any] = scores
        self.allowed = allowed

    def _column(self, factor: dict[str, Any]) -> np.ndarray:
        """The place in the table of each assignment."""
        place: Any = np.zeros(math.prod(self.sizes), dtype=np.int64)
        for v in factor["scope"]:
            place = place * self.sizes[v] + self.columns[v]
        return place

    def _integers(self, places: list[np.ndarray], is_free: np.ndarray) -> tuple[list[int], np.ndarray]:
        forbidden = FORBIDDEN if self.spec["sense"] == "min-cost" else -FORBIDDEN
        tables = [np.array(factor["values"], dtype=np.int64) for factor in self.spec["factors"]]
        largest = 0
        for table, place in zip(tables, places, strict=True):
            is_free = is_free & (table != forbidden)[place]
            known = table[table != forbidden]
            largest += 0 if not known.size else max(abs(int(known.min())), abs(int(known.max())))
        self.magnitude = largest + abs(self.spec["constant"])
        allowed = np.flatnonzero(is_free)
        total: Any = np.full(
            len(allowed), self.spec["constant"], dtype=np.int64 if self.magnitude < INT64_SAFE else object
        )
        for table, place in zip(tables, places, strict=True):
            total = total + table[place[allowed]].astype(total.dtype)
        return total.tolist(), allowed

    def _floats(self, places: list[np.ndarray], is_free: np.ndarray) -> tuple[list[float], np.ndarray]:
        parts = []
        for factor, place in zip(self.spec["factors"], places, strict=True):
            part = np.array(factor["values"], dtype=np.float64)
            if factor["dtype"] == "int64":
                part[np.abs(part) >= FORBIDDEN] = math.inf
            part = part[place]
            is_free = is_free & np.isfinite(part)
            parts.append(part)
        allowed = np.flatnonzero(is_free)
        columns = [part[allowed].tolist() for part in parts] + [[float(self.spec["constant"])] * len(allowed)]
        self.magnitude = max((math.fsum(map(abs, row)) for row in zip(*columns, strict=True)), default=0.0)
        return [math.fsum(row) for row in zip(*columns, strict=True)], allowed

    def _logarithms(
        self, places: list[np.ndarray], weights: Mapping[int, list[float]], is_free: np.ndarray
    ) -> tuple[list[float], np.ndarray]:
        tables = [np.array(factor["values"])[place] for factor, place in zip(self.spec["factors"], places, strict=True)]
        tables += [np.array(weight, dtype=float)[self.columns[v]] for v, weight in weights.items()]
        for table in tables:
            is_free = is_free & (table > 0)
        allowed = np.flatnonzero(is_free)
        columns = [np.log(table[allowed]).tolist() for table in tables]
        columns.append([float(self.spec["constant"])] * len(allowed))
        self.magnitude = max((math.fsum(map(abs, row)) for row in zip(*columns, strict=True)), default=0.0)
        return [math.fsum(row) for row in zip(*columns, strict=True)], allowed

    def is_possible(self) -> bool:
        """Return whether some assignment agrees with the evidence and is not forbidden."""
        return bool(self.scores)

    def count(self) -> int:
        """Return the number of these assignments."""
        return len(self.allowed)

    def largest_terms(self) -> list[float]:
        """Return the largest finite magnitude of each factor."""
        return [max((abs(x) for x in f["values"] if math.isfinite(x)), default=0.0) for f in self.spec["factors"]]

    def integer_span(self) -> int | None:
        """Return the largest sum of magnitudes of integer costs, forbidden ones aside; None if some are floats."""
        return integer_span(self.spec)

    def optimum(self) -> Any:
        """Return the best score within the upper bound; None if nothing is allowed."""
        bound = self.spec["upper_bound"]
        if self.spec["sense"] == "min-cost":
            best = min(self.scores, default=None)
            return None if best is None or (bound is not None and best >= bound) else best
        best = max(self.scores, default=None)
        return None if best is None or (bound is not None and best <= bound) else best

    def worst_values(self) -> list[int | float]:
        """Return the worst value among the tables at each allowed assignment."""
        worst = max if self.spec["sense"] == "min-cost" else min
        places = [self._column(factor)[self.allowed] for factor in self.spec["factors"]]
        values = [np.array(factor["values"], dtype=factor["dtype"]) for factor in self.spec["factors"]]
        columns = [table.reshape(-1)[place].tolist() for table, place in zip(values, places, strict=True)]
        return [worst(row) for row in zip(*columns, strict=True)]

    def score(self, values: list[int]) -> Any:
        """Return the score of one assignment; None if it is forbidden."""
        number = 0
        for value, size in zip(values, self.sizes, strict=True):
            number = number * size + value
        at = np.flatnonzero(self.allowed == number)
        return self.scores[at[0]] if len(at) else None

    def log_sum(self) -> float:
        """Return the natural logarithm of the sum of all products."""
        return log_sum(self.scores)

    def log_sums(self, variables: list[int]) -> dict[tuple[int, ...], float]:
        """Return the logarithm of the sum for each joint value of some variables; what is missing is 0."""
        groups: dict[tuple[int, ...], list[float]] = {}
        columns = [self.columns[v][self.allowed].tolist() for v in variables]
        for score, *values in zip(self.scores, *columns, strict=True):
            groups.setdefault(tuple(values), []).append(score)
        return {values: log_sum(scores) for values, scores in groups.items()}

    def marginals(self, v: int) -> list[float]:
        """Return the posterior of a variable."""
        total, parts = self.log_sum(), self.log_sums([v])
        return [math.exp(parts[x,] - total) if (x,) in parts else 0.0 for x in range(self.sizes[v])]

    def max_marginals(self, v: int) -> list[float]:
        """Return the best probability with each value, relative to the best of all."""
        highest = [-math.inf] * self.sizes[v]
        for score, value in zip(self.scores, self.columns[v][self.allowed].tolist(), strict=True):
            highest[value] = max(highest[value], score)
        return [math.exp(score - max(highest)) for score in highest]


def log_sum(scores: list[float]) -> float:
    """Return the logarithm of the sum of exponentials."""
    if not scores:
        return -math.inf
    high = max(scores)
    return high + math.log(math.fsum(math.exp(score - high) for score in scores))
