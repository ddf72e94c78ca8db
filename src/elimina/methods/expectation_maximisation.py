"""Expectation maximisation (Dempster, Laird and Rubin 1977; Lauritzen 1995) for the parameters of a Bayesian network.

Each iteration propagates the rows in batches, and sums the joint posteriors of all families.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import ImpossibleEvidenceError
from elimina.methods.batch import Batch, Chunk
from elimina.methods.family_counts import Families, WeightedRows, counts_of, log_likelihood_of
from elimina.option_names import option
from elimina.planning.checked_options import CheckedOptions

Floats = NDArray[np.float64]


class Iterate(NamedTuple):
    """Parameters of an iteration.

    Attributes:
        tables: Distribution of each family.
        log_likelihood: Natural logarithm of the probability of all rows.
        log_posterior: ``log_likelihood`` plus each pseudo-count times the logarithm of its probability.
    """

    tables: list[Floats]
    log_likelihood: float
    log_posterior: float


class Expectation(NamedTuple):
    """Expected counts of the families, and the logarithm of the probability of all data."""

    counts: list[Floats]
    log_likelihood: float


class ExpectationMaximisation(ABC):
    """Expectation maximisation of the tables of some families.

    Args:
        families: Families of the network.
        prior: Pseudo-counts of each family.
    """

    def __init__(self, families: Families, prior: Sequence[Floats]) -> None:
        self._families, self._prior = families, prior

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """True if no cell is missing; one iteration is then enough."""

    @abstractmethod
    def expectation(self, tables: Sequence[Floats]) -> Expectation:
        """Return the expected counts for given tables.

        Raises:
            ImpossibleEvidenceError: Some data have probability 0.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the memory."""

    def iterates(self, tables: Sequence[Floats]) -> Iterator[Iterate]:
        """Yield the starting tables, then the tables of one iteration after another, without end.

        Args:
            tables: Starting tables; those of tied families are equal.

        Raises:
            ImpossibleEvidenceError: Some data have probability 0.
        """
        current = list(tables)
        while True:
            expected = self.expectation(current)
            log_prior = log_likelihood_of(self._prior, current)
            yield Iterate(current, expected.log_likelihood, expected.log_likelihood + log_prior)
            counts = [count + prior for count, prior in zip(expected.counts, self._prior, strict=True)]
            current = self._families.tables_of(counts, fallback=current)


class RowMaximisation(ExpectationMaximisation):
    """Expectation maximisation on one set of rows.

    Args:
        families: Families of the network.
        rows: Distinct rows.
        prior: Pseudo-counts of each family.
        options: Planning options.

    Raises:
        MemoryLimitError: The messages for a small batch of rows do not fit.
        DeviceError: The device is missing or cannot be used.
    """

    def __init__(
        self, families: Families, rows: WeightedRows, prior: Sequence[Floats], options: CheckedOptions
    ) -> None:
        super().__init__(families, prior)
        is_whole = rows.is_whole
        self._complete_counts = counts_of(rows.chosen(is_whole), families)
        self._rows = rows.chosen(~is_whole)
        self._observed = np.flatnonzero((self._rows.values >= 0).any(axis=0))
        self._batch: Batch | None = None
        if not self.is_complete:
            columns, count = self._observed.tolist(), len(self._rows.values)
            self._batch = Batch(families.model, columns, (), options, count, families.scopes)

    @property
    def is_complete(self) -> bool:
        """True if no cell is missing; one iteration is then enough."""
        return not len(self._rows.values)

    def close(self) -> None:
        """Release the memory."""
        if self._batch is not None:
            self._batch.close()

    def expectation(self, tables: Sequence[Floats]) -> Expectation:
        """Return the expected counts for given tables.

        Raises:
            ImpossibleEvidenceError: A row has probability 0.
        """
        totals = [counts.copy() for counts in self._complete_counts]
        log_likelihood = log_likelihood_of(totals, tables)
        if self._batch is None:
            return Expectation(totals, log_likelihood)
        self._batch.use_tables(self._families.with_tables(tables))
        begin = 0
        for counts, logs in self._batch.propagate(self._rows.values[:, self._observed], self._chunk_counts):
            rows = slice(begin, begin + len(logs))
            if np.isneginf(logs).any():
                first = int(self._rows.first[rows][np.isneginf(logs)].min())
                raise ImpossibleEvidenceError(
                    f"row {first} has probability 0 under the starting tables, so it has no expected counts: remove "
                    f"it, or start with other tables ({option('start', 'counts')})"
                )
            log_likelihood += float(self._rows.weights[rows] @ logs)
            for total, count in zip(totals, counts, strict=True):
                total += count.reshape(total.shape)
            begin = rows.stop
        return Expectation(totals, log_likelihood)

    def _chunk_counts(self, chunk: Chunk) -> tuple[list[Floats], Floats]:
        """Return the expected counts of a chunk, and the natural logarithm of each row's probability."""
        assert self._batch is not None
        answer, rows = chunk
        weights = self._rows.weights[rows]
        logs = np.broadcast_to(answer.log_sum, self._batch.cases)[: len(weights)]
        counts = [
            table @ weights if table.shape[1] == len(weights) else table[:, 0] * weights.sum()
            for table in self._batch.joint_tables(chunk)
        ]
        return counts, logs


def is_converged(iterates: Sequence[float], rows: float, tolerance: float) -> bool:
    """Return whether the last iteration increased the log-posterior by at most the tolerance; False for the first one.

    Args:
        iterates: Log-posterior of the parameters after each iteration.
        rows: Number of rows.
        tolerance: Largest increase per row at which iterations have converged.
    """
    if len(iterates) < 2 or not math.isfinite(iterates[-2]):
        return False
    return iterates[-1] - iterates[-2] <= tolerance * rows
