"""Posteriors of many cases whose shared plan does not fit into memory: each case is exact if it fits alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cpu import CpuBackend
from elimina.errors import MemoryLimitError
from elimina.io.cases import Codes
from elimina.methods.batch import Batch
from elimina.methods.posterior_estimation import ESTIMATE_SECONDS, error_of, posteriors_within
from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.planning.ordering import elimination_order
from elimina.problem.evidence import Observed
from elimina.problem.preparation import prepare
from elimina.result import Marginals, Result
from elimina.running.host import host_memory
from elimina.running.pool import spread
from elimina.running.propagated_tables import Posteriors

Floats = NDArray[np.float64]

_BATCH_SECONDS, _MIN_CASE_SECONDS = 60.0, 0.1
"""Seconds for the estimates of all cases together, and least seconds for one case."""

_ORDER_SECONDS = 0.1
"""Seconds of the order search for cases that observe the same variables."""


class EstimatedBatch:
    """A batch that answers cases one after another, on several threads; equal cases are answered once.

    Cases that observe the same variables share an elimination order.

    Args:
        model: A probability model.
        columns: The variables that the cases may observe.
        asked: The queried variables; None: all.
        options: Planning options.
    """

    is_exact = False
    """False: posteriors may have estimated errors."""

    def __init__(
        self, model: Model, columns: Sequence[int], asked: Sequence[int] | None, options: CheckedOptions
    ) -> None:
        self.model, self.columns = model, tuple(columns)
        self._asked = tuple(range(len(model.variables)) if asked is None else asked)
        self._query = None if asked is None else self._asked
        self.threads = CpuBackend(options.threads).threads
        self.peak_bytes = host_memory(options)
        self._options = replace(options, threads=1, memory=max(1, self.peak_bytes // self.threads))
        self._orders: dict[tuple[int, ...], tuple[int, ...]] = {}

    def suits(
        self, columns: Sequence[int], asked: Sequence[int] | None, _count: int, families: Sequence[tuple[int, ...]] = ()
    ) -> bool:
        """Return whether this batch was made for cases with these columns and queries."""
        return (tuple(columns), asked) == (self.columns, self._query) and not families

    def run(self, values: Codes, progress: Callable[[float], None] | None = None) -> Posteriors:
        """Answer cases.

        Args:
            values: int32 array of shape ``(cases, columns)``: value indices, -1 for missing observations.
            progress: Called repeatedly with the finished share of the cases.
        """
        distinct, distinct_of = np.unique(values, axis=0, return_inverse=True)
        distinct_of = distinct_of.reshape(-1)
        if not self.columns:
            distinct, distinct_of = values[:1], np.zeros(len(values), dtype=np.intp)
        seconds = _BATCH_SECONDS * self.threads / max(1, len(distinct))
        seconds = min(max(seconds, _MIN_CASE_SECONDS), ESTIMATE_SECONDS)

        def answers(_lane: int, cases: Iterator[NDArray[np.int32]]) -> Iterator[Result]:
            for case in cases:
                yield self._answer(case, seconds)

        variables = tuple(self.model.variables[v] for v in self._asked)
        tables = {v.name: np.zeros((len(distinct), v.size)) for v in variables}
        logs, errors = np.empty(len(distinct)), np.empty(len(distinct))
        for number, result in enumerate(spread(range(self.threads), list(distinct), answers)):
            assert result is not None
            logs[number], errors[number] = -math.inf, error_of(result)
            if result.status != "infeasible":
                logs[number] = math.nan if result.log10_z is None else result.log10_z
                assert isinstance(result.marginals, Marginals)
                for name, shares in result.marginals.arrays().items():
                    tables[name][number] = shares
            if progress is not None:
                progress((number + 1) / len(distinct))
        marginals = {name: np.asfortranarray(table[distinct_of]) for name, table in tables.items()}
        return Posteriors(marginals, logs[distinct_of], variables, errors=errors[distinct_of])

    def _answer(self, case: NDArray[np.int32], seconds: float) -> Result:
        """Return the posteriors of a case; if they do not fit into memory, estimate them within a time limit."""
        observed = {v: int(code) for v, code in zip(self.columns, case, strict=True) if code >= 0}
        options = self._options
        pattern = tuple(observed)
        if isinstance(options.order, str):
            if pattern not in self._orders:
                problem = prepare(self.model, "mar", observed)
                self._orders[pattern] = elimination_order(problem, replace(options, order_seconds=_ORDER_SECONDS))
            options = replace(options, order=self._orders[pattern])
        return posteriors_within(Observed(self.model, observed), self._asked, options, seconds)

    def close(self) -> None:
        """Do nothing: the tables of a case are released after it."""


def batch_of(
    model: Model,
    columns: Sequence[int],
    asked: Sequence[int] | None,
    options: CheckedOptions,
    count: int,
    families: Sequence[tuple[int, ...]] = (),
) -> Batch | EstimatedBatch:
    """Return a batch of exact answers if its plan fits into memory; otherwise a batch of estimates, if allowed.

    Args:
        model: A probability model.
        columns: The variables that the cases may observe.
        asked: The queried variables; None: all.
        options: Planning options.
        count: Expected number of cases.
        families: Scopes of additional joint marginals, each within the scope of a factor; these are exact.

    Raises:
        InputError: The model has costs, or an option is invalid.
        MemoryLimitError: Not even a few cases fit, and the options ask for exact answers or a GPU.
        DeviceError: The device is missing or cannot be used.
    """
    try:
        return Batch(model, columns, asked, options, count, families)
    except MemoryLimitError:
        if options.exact or options.needs_gpu or families:
            raise
        return EstimatedBatch(model, columns, asked, options)
