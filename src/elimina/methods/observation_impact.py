"""Impact of each observation on a posterior, and conflicts between observations, from one batch of cases."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from elimina.display import with_types_as_written
from elimina.methods.evidence_cases import EvidenceCases
from elimina.methods.information import divergence, total_variation
from elimina.model.row_table import RowTable
from elimina.model.states import State


@with_types_as_written
class Impact(NamedTuple):
    """Impact of an observation on the posterior of the query.

    Attributes:
        variable: Name of the observed variable.
        state: Its observed state; for likelihoods, a text that lists them.
        divergence: Kullback-Leibler divergence of the posterior from the one without this observation, in bits.
        difference: Total variation distance of these two distributions: the largest difference between the two
            probabilities of any set of states.
        divergence_alone: Kullback-Leibler divergence of the posterior given only this observation from the prior, in
            bits.
        difference_alone: Total variation distance of these two distributions.
    """

    variable: str
    state: State
    divergence: float
    difference: float
    divergence_alone: float
    difference_alone: float


class Impacts(RowTable[Impact]):
    """Impacts of all observations on a posterior, the largest divergence first.

    Attributes:
        query: Name of the query variable.
    """

    fields = Impact._fields

    def __init__(self, rows: list[Impact], query: str) -> None:
        super().__init__(sorted(rows, key=lambda row: -row.divergence))
        self.query = query

    def _figures(self) -> list[tuple[str, str]]:
        return [("query", self.query), ("divergences", "bits")]


def observation_impacts(cases: EvidenceCases, query: int, rounding: float) -> Impacts:
    """Return the impact of each observation on the posterior of a variable.

    Args:
        cases: Model with its evidence.
        query: Query variable.
        rounding: Relative difference at which probabilities count as equal.

    Raises:
        ImpossibleEvidenceError: The evidence has probability 0.
        InputError: The query is observed.
    """
    cases.check_unobserved(query, "query")
    observed = list(cases.evidence)
    rows = [cases.whole, {}, *map(cases.without, observed), *(cases.case([v]) for v in observed)]
    answer = cases.run(rows, [query])
    logs, name = answer.log_evidence, cases.model.variables[query].name
    cases.check_possible(logs[1], ())
    cases.check_possible(logs[0], observed)
    posteriors = answer.marginals[name]
    posterior, prior, count = posteriors[0], posteriors[1], len(observed)
    impacts = []
    for v, posterior_without, posterior_alone in zip(
        observed, posteriors[2 : 2 + count], posteriors[2 + count :], strict=True
    ):
        impacts.append(
            Impact(
                cases.model.variables[v].name,
                cases.text_of(v),
                divergence(posterior, posterior_without, rounding),
                total_variation(posterior, posterior_without, rounding),
                divergence(posterior_alone, prior, rounding),
                total_variation(posterior_alone, prior, rounding),
            )
        )
    return Impacts(impacts, name)


@with_types_as_written
class ObservationConflict(NamedTuple):
    """Conflict between an observation and all others.

    Attributes:
        variable: Name of the observed variable.
        state: Its observed state; for likelihoods, a text that lists them.
        probability: Prior probability of the observed state.
        probability_given_others: Its probability given the other observations; NaN if these are jointly impossible.
        conflict: Base-2 logarithm of ``probability`` over ``probability_given_others``: positive if the other
            observations make this one less probable.
    """

    variable: str
    state: Any
    probability: float
    probability_given_others: float
    conflict: float


class Conflict(RowTable[ObservationConflict]):
    """Conflict measure of the evidence (Jensen, Chamberlain, Nordahl and Jensen 1990) and of each observation.

    Attributes:
        bits: Base-2 logarithm of the product of the observations' probabilities over their joint probability. A
            positive number indicates a misfit between the observations and the model, or a rare case.
    """

    fields = ObservationConflict._fields

    def __init__(self, rows: list[ObservationConflict], bits: float) -> None:
        super().__init__(sorted(rows, key=lambda row: (math.isnan(row.conflict), -row.conflict)))
        self.bits = bits

    def _figures(self) -> list[tuple[str, str]]:
        return [("conflict", f"{self.bits:.6g} bits")]


def evidence_conflict(cases: EvidenceCases) -> Conflict:
    """Return the conflict measure of the evidence.

    The measure is infinite if each observation is possible, but not all of them together.

    Args:
        cases: Model with its evidence.

    Raises:
        ImpossibleEvidenceError: A single observation has probability 0.
    """
    observed = list(cases.evidence)
    rows = [cases.whole, {}, *map(cases.without, observed), *(cases.case([v]) for v in observed)]
    logs = cases.run(rows, []).log_evidence
    cases.check_possible(logs[1], ())
    logs = logs - logs[1]
    count = len(observed)
    together, without, alone = float(logs[0]), logs[2 : 2 + count], logs[2 + count :]
    for v, log in zip(observed, alone, strict=True):
        cases.check_possible(log, [v])
    conflicts = []
    for v, log_without, log_alone in zip(observed, without.tolist(), alone.tolist(), strict=True):
        log_given = together - log_without if log_without > -math.inf else math.nan
        conflict = (log_alone - log_given) / math.log(2)
        conflicts.append(
            ObservationConflict(
                cases.model.variables[v].name,
                cases.text_of(v),
                min(1.0, math.exp(log_alone)),
                min(1.0, math.exp(log_given)),
                conflict,
            )
        )
    bits = (float(np.sum(alone)) - together) / math.log(2)
    return Conflict(conflicts, bits + 0.0)
