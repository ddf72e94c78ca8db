"""Posteriors with and without single observations: each case has some of the observations; one batch runs all cases."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.errors import ImpossibleEvidenceError, InputError
from elimina.methods.batch import Batch
from elimina.methods.small_networks import rewritten_for_sums
from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import replace
from elimina.problem.evidence import Observed, with_leaves
from elimina.problem.observations import impossible_text
from elimina.running.propagated_tables import Posteriors

Observation = int | NDArray[Any]
"""Index of a state, or likelihoods."""


class EvidenceCases:
    """The observations of a model, and cases with some of them; likelihoods become observations of additional leaves.

    Args:
        model: A probability model.
        evidence: Variable index -> index of its state, or likelihoods.
        options: Planning options; answers are exact.

    Attributes:
        model: The model.
        evidence: Variable index -> index of its state, or likelihoods.
    """

    def __init__(self, model: Model, evidence: Mapping[int, Observation], options: CheckedOptions) -> None:
        self.model, self.evidence = model, evidence
        observed = with_leaves(model, evidence)
        self._model_with_leaves = observed.model
        self._options = replace(options, order="auto")
        self._values: dict[int, dict[int, int]] = {v: {} for v in evidence}
        # The table of a leaf follows the model's tables, and the leaf is its last axis.
        leaves = {table.scope[1]: table.scope[0] for table in observed.model.factors[len(model.factors) :]}
        for v, value in observed.values.items():
            self._values[leaves.get(v, v)][v] = value

    def case(self, observed: Collection[int]) -> dict[int, int]:
        """Return the case in which only the given variables are observed."""
        return {u: value for v in observed for u, value in self._values[v].items()}

    @property
    def whole(self) -> dict[int, int]:
        """The case with all observations."""
        return self.case(self._values)

    def without(self, variable: int) -> dict[int, int]:
        """Return the case with all observations except that of a variable."""
        return self.case([v for v in self._values if v != variable])

    def run(
        self, cases: Sequence[Mapping[int, int]], asked: Sequence[int], families: Sequence[tuple[int, ...]] = ()
    ) -> Posteriors:
        """Return the posteriors of cases, which share a plan.

        Args:
            cases: Observations of each case: variable index -> index of its state.
            asked: Variables whose posteriors are computed.
            families: Scopes of tables whose joint posteriors are also computed.

        Raises:
            MemoryLimitError: The plan does not fit into memory.
        """
        columns = tuple(dict.fromkeys(v for case in cases for v in case))
        column_of = {v: column for column, v in enumerate(columns)}
        codes = np.full((len(cases), len(columns)), -1, dtype=np.int32)
        for row, case in zip(codes, cases, strict=True):
            row[[column_of[v] for v in case]] = list(case.values())
        queried = (*columns, *asked, *itertools.chain(*families))
        model = rewritten_for_sums(Observed(self._model_with_leaves, {}), frozenset(queried)).model
        batch = Batch(model, columns, tuple(asked), self._options, len(cases), tuple(dict.fromkeys(families)))
        try:
            return batch.run(codes)
        finally:
            batch.close()

    def check_possible(self, log_evidence: float, observed: Collection[int]) -> None:
        """Check that some observations are jointly possible.

        Raises:
            ImpossibleEvidenceError: The logarithm of their probability is minus infinity.
        """
        if log_evidence == -np.inf:
            raise ImpossibleEvidenceError(impossible_text(self.model, {v: self.evidence[v] for v in observed}))

    def check_unobserved(self, variable: int, argument: str) -> None:
        """Check that a variable is not observed.

        Raises:
            InputError: The variable is observed.
        """
        if variable in self.evidence:
            raise InputError(
                f"{argument} names the variable {self.model.variables[variable].name!r}, which is observed, so its "
                "posterior says nothing new: leave it out, or take its observation back"
            )

    def text_of(self, variable: int) -> Any:
        """Return the observed state of a variable, or the text of its likelihoods."""
        observation = self.evidence[variable]
        if isinstance(observation, int):
            return self.model.variables[variable].state(observation)
        return f"likelihoods {observation.tolist()}"
