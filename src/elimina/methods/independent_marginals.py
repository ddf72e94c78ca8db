"""Independent marginals: the estimate of a call whose time ends before its model is prepared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from elimina.methods.message_sweeps import UNKNOWN_ERROR
from elimina.model.model import Model
from elimina.model.states import Evidence
from elimina.problem.evidence import indices_asked, weights_of
from elimina.problem.observations import evidence_of
from elimina.problem.preparation import check_sense
from elimina.result import Marginals, Result
from elimina.running.combination import NO_PLAN

METHOD = "independent marginals"

MAX_TABLES, MAX_STATES = 20_000, 10_000_000
"""Largest number of tables that are read, and largest number of states in the result. The limits keep the estimate
quick, because the time limit of the call has already passed."""


def independent_posteriors(model: Model, evidence: Evidence, query: Sequence[str | int] | None) -> Result | None:
    """Estimate posteriors as if variables were independent: from tables over one variable and the evidence on it.

    Return None if the queried variables have more than ``MAX_STATES`` states.

    Args:
        model: Any model of probabilities.
        evidence: See ``elimina.solve``.
        query: See ``elimina.solve``.

    Raises:
        InputError: The question does not fit the model.
    """
    check_sense(model, "mar")
    indices = indices_asked(model, "mar", query)
    asked = np.arange(len(model.variables)) if indices is None else np.array(indices, dtype=np.int64)
    variables = model.variables if indices is None else [model.variables[v] for v in indices]
    sizes = model.size_array[asked]
    ends = sizes.cumsum()
    if sizes.sum() > MAX_STATES:
        return None
    shares = np.repeat(1 / sizes, sizes)
    positions = np.full(len(model.variables), -1)
    positions[asked] = np.arange(len(asked))

    def marginal_of(v: int) -> NDArray[np.float64]:
        return shares[ends[positions[v]] - sizes[positions[v]] : ends[positions[v]]]

    def multiply(v: int, values: NDArray[np.float64]) -> None:
        marginal = marginal_of(v)
        product = marginal * (values / (values.max() or 1.0))
        # A product of 0 is ignored: it may be an underflow, and does not prove that the evidence is impossible.
        if total := product.sum():
            marginal[:] = product / total

    for table in islice(model.factors, MAX_TABLES):
        if len(table.scope) == 1 and positions[table.scope[0]] >= 0:
            multiply(table.scope[0], table.dense().astype(np.float64))
    for v, observation in evidence_of(model, evidence).items():
        if positions[v] < 0:
            continue
        weights = weights_of(model.variables[v], observation)
        if isinstance(observation, int):
            marginal_of(v)[:] = weights
        else:
            multiply(v, weights)
    stats = {**NO_PLAN, "method": METHOD, "seconds": {}}
    return Result("estimated", "mar", marginals=Marginals(variables, shares), error=UNKNOWN_ERROR, stats=stats)
