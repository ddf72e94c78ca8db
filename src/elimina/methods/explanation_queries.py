"""Questions about the evidence: impacts, conflicts, values of observations, sensitivities and explanations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from elimina import arguments
from elimina.errors import InputError, MemoryLimitError
from elimina.methods.compiled_tree import Observations, memory_errors_of_trees, one_call_at_a_time
from elimina.methods.posterior_queries import PosteriorQueries
from elimina.model.model import Model, variable_index, variable_indices
from elimina.model.states import State
from elimina.problem.observations import assignment_of

if TYPE_CHECKING:
    from elimina.methods.evidence_cases import EvidenceCases
    from elimina.methods.observation_impact import Conflict, Impacts
    from elimina.methods.observation_value import ObservationValues
    from elimina.methods.parameter_sensitivity import Sensitivities
    from elimina.methods.relevant_explanation import Explanations


@arguments.with_checked_methods
class ExplanationQueries(PosteriorQueries):
    """Questions that compare posteriors with and without parts of the evidence."""

    @one_call_at_a_time
    @memory_errors_of_trees
    def impacts(self, query: str | int) -> Impacts:
        """Return the impact of each observation on the posterior of a variable, the largest one first.

        Each observation is measured in two ways: the posterior given all observations is compared with the posterior
        without this one, and the posterior given only this one is compared with the prior.

        Args:
            query: Name or index of a variable that is not observed.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: The variable is unknown or observed.
            MemoryLimitError: The cases do not fit into memory.

        Examples:
            >>> import elimina
            >>> cpds = {"rain": [0.8, 0.2], "sprinkler": [0.9, 0.1], ("wet", "rain", "sprinkler"): [
            ...     [[0.95, 0.2], [0.1, 0.05]], [[0.05, 0.8], [0.9, 0.95]]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds), evidence={"wet": 1, "sprinkler": 1})
            >>> [(impact.variable, round(impact.divergence, 3)) for impact in tree.impacts("rain")]
            [('sprinkler', 0.519), ('wet', 0.004)]
        """
        from elimina.methods.observation_impact import observation_impacts

        return observation_impacts(self._cases(), variable_index(self.model, query), self._rounding)

    @one_call_at_a_time
    @memory_errors_of_trees
    def conflict(self) -> Conflict:
        """Return the conflict measure of the evidence, in bits; a positive value indicates a disagreement.

        The measure is infinite if each observation is possible, but not all of them together.

        Raises:
            ImpossibleEvidenceError: A single observation has probability 0.
            MemoryLimitError: The cases do not fit into memory.

        Examples:
            >>> import elimina
            >>> cpds = {"flu": [0.9, 0.1], ("fever", "flu"): [[0.95, 0.2], [0.05, 0.8]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds), evidence={"flu": 1, "fever": 0})
            >>> round(tree.conflict().bits, 3)
            2.129
        """
        from elimina.methods.observation_impact import evidence_conflict

        return evidence_conflict(self._cases())

    @one_call_at_a_time
    @memory_errors_of_trees
    def observation_values(
        self,
        query: str | int,
        candidates: Sequence[str | int] | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> ObservationValues:
        """Return the expected information from observing each variable about a query, sorted by information per cost.

        Args:
            query: Name or index of a variable that is not observed.
            candidates: Variables that may be observed; None: all other unobserved variables.
            costs: Cost of observing a variable, by name; 1 by default.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: A variable is unknown, a candidate is observed or is the query, the query is observed, or a cost
                is negative or not finite.
            MemoryLimitError: The cases do not fit into memory.

        Examples:
            >>> import elimina
            >>> cpds = {"flu": [0.9, 0.1], ("fever", "flu"): [[0.95, 0.2], [0.05, 0.8]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds))
            >>> value = tree.observation_values("flu")[0]
            >>> value.variable, round(value.information, 3)
            ('fever', 0.214)
        """
        from elimina.methods.observation_value import observation_values

        asked = variable_index(self.model, query)
        if candidates is None:
            variables = [v for v in range(len(self.model.variables)) if v != asked and v not in self._observations]
        else:
            variables = list(dict.fromkeys(variable_indices(self.model, candidates, "candidates")))
        return observation_values(self._cases(), asked, variables, _checked_costs(self.model, costs), self._rounding)

    @one_call_at_a_time
    @memory_errors_of_trees
    def sensitivities(self, query: Mapping[str, State]) -> Sensitivities:
        """Return the sensitivity of a posterior to each parameter in the tables of a Bayesian network.

        When a parameter changes, the other parameters of its row change in proportion, and the row still sums to 1.
        Parameters of 0 and 1 count as certain, and are left out.

        Args:
            query: Event whose posterior is analysed: variable name -> its state.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: The query is empty, a variable or state is unknown, a variable is observed, or the model is not
                a Bayesian network.
            MemoryLimitError: The messages, or the posteriors of the families, do not fit into memory.

        Examples:
            >>> import elimina
            >>> cpds = {"flu": [0.9, 0.1], ("fever", "flu"): [[0.95, 0.2], [0.05, 0.8]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds), evidence={"fever": 1})
            >>> sensitivity = tree.sensitivities({"flu": 1})[0]
            >>> sensitivity.name, round(sensitivity.derivative, 3), round(sensitivity.at(0.1), 3)
            ('P(fever=0 | flu=0)', 4.608, 0.09)
        """
        from elimina.methods.parameter_sensitivity import parameter_sensitivities

        event = assignment_of(self.model, query, "query")
        if not event:
            raise InputError("the query is empty: name a variable and its state, such as {'Alarm': 'on'}")
        cases = self._cases()
        for v in event:
            cases.check_unobserved(v, "query")
        if self.model.children is None:
            raise InputError(
                "the model is not a Bayesian network, so its numbers are not probabilities whose change has a meaning: "
                "build it with Model.from_cpds, or with children="
            )
        self._check_exact()
        answer = cases.run([cases.whole, {**cases.whole, **event}], [], [factor.scope for factor in self.model.factors])
        log_evidence, log_joint = answer.log_evidence.tolist()
        cases.check_possible(log_evidence, list(self._observations))
        posterior = min(1.0, math.exp(log_joint - log_evidence))
        return parameter_sensitivities(self.model, event, posterior, answer.joints or {}, self._rounding)

    @one_call_at_a_time
    @memory_errors_of_trees
    def relevant_explanations(self, targets: Sequence[str | int], count: int = 10) -> Explanations:
        """Return the assignments of some of the targets that explain the evidence best (most relevant explanations).

        The best explanations have the largest generalised Bayes factors. An explanation contains only the targets that
        matter: an assignment is left out if it extends a better one, or is a part of a better one.

        Args:
            targets: Names or indices of variables that may explain the evidence.
            count: Largest number of explanations to return.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: There is no evidence, a target is unknown, observed or named twice, or the targets have too many
                states.
            MemoryLimitError: The messages, or the joint distribution of the targets, do not fit into memory.
            TypeError: The targets are a set, which has no order.

        Examples:
            >>> import elimina
            >>> cpds = {"flu": [0.9, 0.1], ("fever", "flu"): [[0.95, 0.2], [0.05, 0.8]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds), evidence={"fever": 1})
            >>> best = tree.relevant_explanations(["flu"])[0]
            >>> best.assignment, round(best.bayes_factor, 1)
            ({'flu': 1}, 16.0)
        """
        from elimina.methods.relevant_explanation import check_target_count, relevant_explanations

        arguments.in_order("targets", targets)
        asked, cases = variable_indices(self.model, targets, "targets"), self._cases()
        count = arguments.integer("count", count, 1)
        if not self._observations:
            raise InputError("there is no evidence to explain: set it first (set_evidence)")
        for v in asked:
            cases.check_unobserved(v, "targets")
        variables = [self.model.variables[v] for v in asked]
        check_target_count(variables)
        self._check_exact()
        posterior = self._joint(asked)
        with self._temporary_evidence({}):
            prior = self._joint(asked)
        return relevant_explanations(variables, posterior, prior, count)

    @contextmanager
    def _temporary_evidence(self, observations: Observations) -> Iterator[None]:
        evidence = self._observations
        self._set_observations(observations)
        try:
            yield
        finally:
            self._set_observations(evidence)

    def _cases(self) -> EvidenceCases:
        from elimina.methods.evidence_cases import EvidenceCases

        return EvidenceCases(self.model, self._observations, self._options)

    def _check_exact(self) -> None:
        """Reject estimates (``MemoryLimitError``): their errors would look like differences between posteriors."""
        if not self.is_exact:
            raise MemoryLimitError(
                "explanations compare exact posteriors, and the messages of this model do not fit into memory: give "
                "more memory, or a smaller model"
            )


def _checked_costs(model: Model, costs: Mapping[str, float] | None) -> dict[int, float]:
    """Return the costs of observations by the indices of their variables; empty if ``costs`` is None.

    Raises:
        InputError: A cost is negative or not finite.
    """
    if costs is None:
        return {}
    arguments.check_mapping("costs", costs, "a mapping from variables to costs, such as {'Alarm': 2.5}")
    checked = {}
    for name, cost in costs.items():
        number = arguments.real(f"costs[{name!r}]", cost)
        if not 0 <= number < math.inf:
            raise InputError(f"costs[{name!r}] is {number}: give a finite cost that is not negative")
        checked[variable_index(model, name)] = number
    return checked
