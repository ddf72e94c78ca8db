"""Value of information: expected information about a query from observing other variables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from elimina.display import with_types_as_written
from elimina.errors import InputError
from elimina.methods.evidence_cases import EvidenceCases
from elimina.methods.information import entropy, mutual_information
from elimina.model.row_table import RowTable


@with_types_as_written
class ObservationValue(NamedTuple):
    """Value of an observation that has not been made.

    Attributes:
        variable: Name of the variable that may be observed.
        information: Mutual information with the query given the evidence, in bits: the expected reduction of the
            query's entropy.
        remaining_entropy: Expected entropy of the query after the observation, in bits.
        cost: Cost of the observation.
        information_per_cost: Information divided by cost; infinite for positive information at no cost.
    """

    variable: str
    information: float
    remaining_entropy: float
    cost: float
    information_per_cost: float


class ObservationValues(RowTable[ObservationValue]):
    """Values of observations, sorted by information per cost, the largest first.

    Attributes:
        query: Name of the query variable.
        entropy: Entropy of the query before the observation, in bits.
    """

    fields = ObservationValue._fields

    def __init__(self, rows: list[ObservationValue], query: str, entropy: float) -> None:
        super().__init__(sorted(rows, key=lambda row: (-row.information_per_cost, -row.information)))
        self.query, self.entropy = query, entropy

    def _figures(self) -> list[tuple[str, str]]:
        return [("query", f"{self.query}, entropy {self.entropy:.6g} bits")]


def observation_values(
    cases: EvidenceCases, query: int, candidates: Sequence[int], costs: Mapping[int, float], rounding: float
) -> ObservationValues:
    """Return the values of observations of some variables, computed by one case for each state of the query.

    Args:
        cases: Model with its evidence.
        query: Query variable.
        candidates: Variables that may be observed.
        costs: Cost of each observation; others cost 1.
        rounding: Relative difference at which probabilities count as equal.

    Raises:
        ImpossibleEvidenceError: The evidence has probability 0.
        InputError: The query or a candidate is observed, or a candidate is the query.
    """
    variables = cases.model.variables
    cases.check_unobserved(query, "query")
    for v in candidates:
        cases.check_unobserved(v, "candidates")
        if v == query:
            raise InputError(f"candidates names the query, {variables[v].name!r}: leave it out")
    whole = cases.whole
    answer = cases.run([{**whole, query: state} for state in range(variables[query].size)], candidates)
    logs = answer.log_evidence
    cases.check_possible(float(logs.max()), list(cases.evidence))
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    before = entropy(shares)
    rows = []
    for v in candidates:
        joint = shares[:, None] * answer.marginals[variables[v].name]
        information = min(before, mutual_information(joint, rounding))
        cost = costs.get(v, 1.0)
        ratio = information / cost if cost else (math.inf if information else 0.0)
        rows.append(ObservationValue(variables[v].name, information, before - information, cost, ratio))
    return ObservationValues(rows, variables[query].name, before)
