"""Single policy updating: each decision's policy is improved given the policies of the others.

A utility is represented by a variable of two states; the probability of the second state grows with the utility
(Cooper, 1988, "A method for using belief networks as influence diagrams"). The expected utility for each state of a
decision and of its observations is then a joint distribution, which elimination computes. One decision after another
gets the best policy given those of the others (Lauritzen and Nilsson, 2001). In a soluble diagram, such as one without
forgetting, a single pass in the right order is optimal (Jensen, Jensen and Dittmer, 1994).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import ImpossibleEvidenceError, MemoryLimitError
from elimina.methods.marginals import joint_table
from elimina.model.decision_graph import DecisionGraph
from elimina.model.decision_network import DecisionNetwork
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.number_texts import bytes_text
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.observations import impossible_text
from elimina.running.host import host_memory

logger = logging.getLogger("elimina")

Floats = NDArray[np.float64]

_ROUNDING = 1e-12
"""Largest difference at which expected utilities count as equal, as a share of the range of the utilities."""

_BYTES_PER_CELL = 64
"""Bytes for each cell of a policy: in its joint distribution with a utility, in the sum, and in the policy."""


class DecisionQuestion(NamedTuple):
    """Question about a diagram.

    Attributes:
        diagram: The diagram.
        evidence: Index of an observed variable -> index of its state; decisions must not affect observed variables.
        policies: Index of a decision -> its given policy; the policies of other decisions are computed.
        restarts: Number of additional random starts if the diagram is not soluble.
        seed: Random seed of the starts.
    """

    diagram: DecisionNetwork
    evidence: Mapping[int, int]
    policies: Mapping[int, Table]
    restarts: int
    seed: int


class PolicySet(NamedTuple):
    """Policies of all decisions.

    Attributes:
        policies: Policy of each decision; the last axis is that of the decision.
        utilities: Expected value of each utility.
        is_optimal: True if no other policies have a larger expected utility.
        start: Index of the start with these policies: 0 for the first start; restarts follow.
        updates: Number of policies that were computed.
        upper_bound: Upper bound on the expected utility of any policies; None: no bound.
        nodes: Number of nodes of branch and bound.
    """

    policies: dict[int, Table]
    utilities: dict[str, float]
    is_optimal: bool
    start: int
    updates: int
    upper_bound: float | None = None
    nodes: int = 0

    @property
    def value(self) -> float:
        """The expected utility."""
        return math.fsum(self.utilities.values())


class UtilityVariable(NamedTuple):
    """A utility as a variable of two states; the utility, scaled to [0, 1], is the probability of the second state.

    Attributes:
        name: Name of the utility.
        table: Distribution; the last axis is that of the variable.
        low: Least utility.
        width: Difference between the largest and the least utility.
    """

    name: str
    table: Table
    low: float
    width: float


class PolicyUpdates:
    """Updates of one policy after another.

    Args:
        question: The diagram, the evidence and the given policies.
        options: Planning options.

    Attributes:
        graph: Graph of the diagram without arcs that have no effect.
        order: Order of the decisions without a given policy.
        utility_range: Sum of the ranges of all utilities.
        eliminations: Number of eliminations so far.

    Raises:
        MemoryLimitError: A policy does not fit into memory.
    """

    def __init__(self, question: DecisionQuestion, options: CheckedOptions) -> None:
        self._question, self._options = question, options
        diagram = question.diagram
        pending = [d for d in diagram.observed if d not in question.policies]
        self.graph = diagram.graph
        for d, policy in question.policies.items():
            self.graph.set_parents(d, policy.scope[:-1])
        self.order = self.graph.solution_order(pending, set(question.evidence))
        self._utilities = [
            _utility_variable(name, table, number)
            for number, (name, table) in enumerate(diagram.utilities.items(), len(diagram.variables))
        ]
        self.utility_range = sum(utility.width for utility in self._utilities)
        self._updates = self.eliminations = 0
        for d in pending:
            self._check_room(d)

    def policy_bytes(self, scope: Sequence[int]) -> int:
        """Return the number of bytes that the update of a policy over a scope needs."""
        return _BYTES_PER_CELL * math.prod(self._question.diagram.variables[v].size for v in scope)

    def _check_room(self, decision: int) -> None:
        """Raise ``MemoryLimitError`` if the policy of a decision does not fit into memory."""
        variables = self._question.diagram.variables
        members = [*self.order.observed[decision], decision]
        needed = self.policy_bytes(members)
        if needed > (room := host_memory(self._options)):
            names = ", ".join(variables[v].name for v in members[:8])
            raise MemoryLimitError(
                f"the policy of {variables[decision].name!r} depends on {len(members) - 1} observations ({names}, ...) "
                f"and takes {bytes_text(needed)}, while {bytes_text(room)} may be used: let it see fewer variables, or "
                "give more memory"
            )

    def starts(self) -> Iterator[dict[int, Table]]:
        """Yield initial policies: equal probabilities, then random ones if the result depends on the start."""
        yield dict(self._question.policies)
        random = np.random.default_rng(self._question.seed)
        for _ in range(self._question.restarts if self.order.others else 0):
            policies = dict(self._question.policies)
            for d in self.order.others:
                scope = (*self.order.observed[d], d)
                weights = random.exponential(size=[self._question.diagram.variables[v].size for v in scope])
                policies[d] = Table(scope, weights / weights.sum(axis=-1, keepdims=True))
            yield policies

    def policy_sets(self, policies: dict[int, Table], start: int) -> Iterator[PolicySet]:
        """Update all policies in rounds until no update improves a policy; yield all policies after each round.

        Args:
            policies: Initial policies.
            start: Number of the start.
        """
        for d in self.order.extremal:
            self._update(policies, d)
        yield from self.improved(policies, start)

    def improved(self, policies: dict[int, Table], start: int) -> Iterator[PolicySet]:
        """Update policies that depend on each other until no policy improves; yield all policies after each round.

        Args:
            policies: Initial policies.
            start: Number of the start.
        """
        while True:
            improvements = [self._update(policies, d) for d in self.order.others]
            utilities = self.expected_utilities(policies)
            value = math.fsum(utilities.values())
            logger.info("start %d: expected utility %.10g after %d updates of policies", start, value, self._updates)
            yield PolicySet(dict(policies), utilities, not self.order.others, start, self._updates)
            if not any(improvements):
                return

    def _update(self, policies: dict[int, Table], decision: int) -> bool:
        """Replace a decision's policy by the best one given the others; return whether the policy changed."""
        self._updates += 1
        scope = (*self.order.observed[decision], decision)
        weighted, slack = self.weighted_utilities(policies, decision, scope, self.graph)
        best = weighted.max(axis=-1, keepdims=True)
        chosen = best_states(weighted, slack)
        current = policies.get(decision)
        is_changed = True
        if current is not None:
            before = (current.values * weighted).sum(axis=-1, keepdims=True)
            is_replaced = (best > before + slack) | (current.values.max(axis=-1, keepdims=True) < 1)
            is_changed = bool(is_replaced.any())
            chosen = np.where(is_replaced, chosen, current.values)
        policies[decision] = Table(scope, chosen)
        return is_changed

    def weighted_utilities(
        self, policies: Mapping[int, Table], decision: int, scope: Sequence[int], graph: DecisionGraph
    ) -> tuple[Floats, Floats]:
        """Return the weighted expected utility at each combination of observations and state of the decision.

        Args:
            policies: Policies of other decisions; decisions without a policy take all states with equal probabilities.
            decision: A decision.
            scope: The decision's observations, followed by the decision.
            graph: Graph of the diagram with these observations.

        Returns:
            Expected utilities minus the least utilities, multiplied by the probabilities of the observations; and the
            largest differences at which these products count as equal.
        """
        count = len(self._question.diagram.variables)
        shape = [self._question.diagram.variables[v].size for v in scope]
        network = self.network({d: policy for d, policy in policies.items() if d != decision})
        weighted, shares = np.zeros(shape), np.zeros((*shape[:-1], 1))
        for n in sorted(graph.later_utilities(decision)):
            utility = self._utilities[n - count]
            joint = self.joint(network, [n, *scope]) * shape[-1]
            # The least utility is left out, because it adds the same amount to each state of the decision.
            shares = joint.sum(axis=0).mean(axis=-1, keepdims=True)
            weighted += utility.width * joint[1]
        # Without the tolerance, rounding would decide between equally good states, and the iteration could alternate.
        return weighted, _ROUNDING * self.utility_range * shares

    def expected_utilities(self, policies: Mapping[int, Table]) -> dict[str, float]:
        """Return the expected value of each utility for given policies."""
        network, count = self.network(policies), len(self._question.diagram.variables)
        expected = {}
        for n, utility in enumerate(self._utilities, count):
            joint = self.joint(network, [n])
            expected[utility.name] = utility.low + utility.width * float(joint[1])
        return expected

    def network(self, policies: Mapping[int, Table]) -> Model:
        """Return the Bayesian network for given policies, in which utilities are variables."""
        network = self._question.diagram.network_of(policies)
        variables = [*network.variables, *(Variable(utility.name, 2) for utility in self._utilities)]
        tables = [*network.factors, *(utility.table for utility in self._utilities)]
        children = [*(network.children or ()), *range(len(network.variables), len(variables))]
        return Model(variables, tables, sense="probability", children=children, check=False)

    def joint(self, network: Model, asked: Sequence[int]) -> Floats:
        """Return the posterior joint distribution of unobserved variables.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        self.eliminations += 1
        table = joint_table(network, self._question.evidence, asked, self._options)
        if not np.isfinite(table).all():
            raise ImpossibleEvidenceError(impossible_text(network, self._question.evidence))
        return table


def best_states(weighted: Floats, slack: Floats) -> Floats:
    """Return the policy that takes the first of the best states in each row."""
    is_best = weighted >= weighted.max(axis=-1, keepdims=True) - slack
    return np.asarray(np.eye(weighted.shape[-1])[np.argmax(is_best, axis=-1)])


def _utility_variable(name: str, table: Table, number: int) -> UtilityVariable:
    """Return a utility as a variable with index ``number``."""
    low, high = float(table.values.min()), float(table.values.max())
    shares = (table.values - low) / (high - low) if high > low else np.zeros(table.sizes)
    distribution = Table([*table.scope, number], np.stack([1 - shares, shares], axis=-1))
    return UtilityVariable(name, distribution, low, high - low)
