"""Upper bounds on expected utilities in diagrams with forgetting, and policies of largest expected utility.

In a relaxation, decisions have additional observations that make the diagram soluble; its maximum expected utility is
an upper bound (Nilsson and Höhle 2001; Yuan, Wu and Hansen 2010). In a long diagram, a decision remembers as many
earlier decisions as memory allows, and observes the state of the world before these. A conflict is a combination of a
decision's original observations at which the policies of the relaxation take several states. Branch and bound then
fixes one of these states. Without conflicts, the policies are also policies of the diagram, and their expected utility
is the bound.
"""

from __future__ import annotations

import contextlib
import copy
import heapq
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.errors import MemoryLimitError
from elimina.methods.single_policy_updating import DecisionQuestion, PolicySet, PolicyUpdates, best_states
from elimina.model.decision_graph import DecisionGraph
from elimina.model.table import Table
from elimina.planning.checked_options import CheckedOptions

Allowed = Mapping[int, NDArray[np.bool_]]
"""Decision -> its allowed states at each combination of its observations."""

_MAX_RELAXED_BYTES = 1 << 24
"""Largest number of bytes for the update of a relaxation's policy: each node recomputes all policies."""

_PROOF_GAP = 1e-11
"""Largest gap at which policies count as optimal, as a share of the range of the utilities."""

_MIN_CONFLICT = 1e-12
"""Least probability of a conflict between the policies of a relaxation and those of the diagram."""


class _Relaxation(NamedTuple):
    """A soluble diagram in which decisions have additional observations.

    Attributes:
        graph: Graph of the diagram.
        order: Decisions in the order in which their policies are computed: the last decision first.
        parents: Decision -> its observations in the diagram itself.
        extra_parents: Decision -> its additional observations.
    """

    graph: DecisionGraph
    order: tuple[int, ...]
    parents: Mapping[int, tuple[int, ...]]
    extra_parents: Mapping[int, tuple[int, ...]]

    def scope(self, decision: int) -> tuple[int, ...]:
        """Return the observations of a decision, followed by the decision."""
        return (*self.parents[decision], *self.extra_parents[decision], decision)


class _Node(NamedTuple):
    """A node of branch and bound.

    Attributes:
        bound: Upper bound on the expected utility.
        allowed: Allowed states of the decisions.
        relaxed: Best policies of the relaxation.
        policies: Policies of the diagram that are closest to those of the relaxation.
        conflict: Decision and combination of its observations at which the relaxation takes several states; None: no
            conflict.
    """

    bound: float
    allowed: Allowed
    relaxed: dict[int, Table]
    policies: dict[int, Table]
    conflict: tuple[int, tuple[int, ...]] | None


def best_policies(
    question: DecisionQuestion,
    options: CheckedOptions,
    report: Callable[[PolicySet], None],
    is_over: Callable[[int], bool],
) -> PolicySet:
    """Return policies of largest expected utility; if the diagram is not soluble, the best ones so far.

    Args:
        question: The diagram, the evidence and the given policies.
        options: Planning options.
        report: Function that is called with the best policies so far whenever they or their bounds improve.
        is_over: Function that returns, from the number of eliminations, whether branch and bound has to end.

    Raises:
        ImpossibleEvidenceError: The evidence has probability 0.
        MemoryLimitError: A joint distribution, or a policy, does not fit into memory.
    """
    updates = PolicyUpdates(question, options)
    upper = math.fsum(float(table.values.max()) for table in question.diagram.utilities.values())
    best: PolicySet | None = None
    for start, policies in enumerate(updates.starts()):
        for policy_set in updates.policy_sets(policies, start):
            if best is None or policy_set.value > best.value:
                best = policy_set if policy_set.is_optimal else _bounded(policy_set, upper, updates)
                report(best)
        if best is not None and best.is_optimal:
            break
    assert best is not None
    if not best.is_optimal:
        for policy_set in _searched(question, updates, best, upper, is_over):
            best = policy_set
            report(best)
    return best


def _searched(
    question: DecisionQuestion,
    updates: PolicyUpdates,
    start: PolicySet,
    upper: float,
    is_over: Callable[[int], bool],
) -> Iterator[PolicySet]:
    """Yield improving policies, with decreasing upper bounds on the largest expected utility.

    Args:
        question: The diagram, the evidence and the given policies.
        updates: Updates of the diagram's policies.
        start: Initial policies. Those of extremal decisions are optimal.
        upper: Upper bound on the expected utility of any policies.
        is_over: Function that returns, from the number of eliminations, whether the search has to end.
    """
    best = start
    for relaxations in _relaxations(question, updates):
        search: _Search | None = None
        with contextlib.suppress(MemoryLimitError):
            for relaxation in relaxations:
                closer = _Search(question, updates, relaxation, best, upper)
                for best in closer.begin():
                    yield best
                search, upper = closer, closer.upper_bound
                if best.is_optimal or is_over(updates.eliminations):
                    return
        if search is not None:
            with contextlib.suppress(MemoryLimitError):
                yield from search.run(best, is_over)
            return


def _relaxations(question: DecisionQuestion, updates: PolicyUpdates) -> list[Iterator[_Relaxation]]:
    """Return two series of soluble relaxations with decreasing bounds; the first non-empty series is used."""
    return [_full_memory(question, updates), _windows(question, updates)]


def _full_memory(question: DecisionQuestion, updates: PolicyUpdates) -> Iterator[_Relaxation]:
    """Yield the relaxation with full memory of all observations, if it is soluble and its policies are small."""
    relaxation, needed = _relaxation(question, updates, len(updates.order.others))
    if relaxation is not None and needed <= _MAX_RELAXED_BYTES:
        yield relaxation


def _windows(question: DecisionQuestion, updates: PolicyUpdates) -> Iterator[_Relaxation]:
    """Yield soluble relaxations that remember more and more earlier decisions, until policies become too large."""
    for window in range(len(updates.order.others)):
        relaxation, needed = _relaxation(question, updates, window)
        if needed > _MAX_RELAXED_BYTES:
            return
        if relaxation is not None:
            yield relaxation


def _relaxation(question: DecisionQuestion, updates: PolicyUpdates, window: int) -> tuple[_Relaxation | None, int]:
    """Return a relaxation (None if it is not soluble), and the bytes of its policies.

    A decision remembers a number of earlier decisions together with their observations. It also observes all variables
    that neither these decisions nor later ones affect, such as the state of the world before them.

    Args:
        question: The diagram, the evidence and the given policies.
        updates: Updates of the diagram's policies.
        window: Number of earlier decisions that are remembered.
    """
    decisions = updates.graph.sequence_of(updates.order.others)
    evidence = set(question.evidence)
    parents = {d: tuple(updates.graph.parents[d]) for d in decisions}
    affected: dict[int, set[int]] = {}
    hidden = set(evidence)
    for d in reversed(decisions):
        hidden |= updates.graph.descendants(d)
        affected[d] = set(hidden)
    graph = copy.deepcopy(updates.graph)
    for n, d in enumerate(decisions):
        first = max(0, n - window)
        observed = {*decisions[first:n], *(v for e in decisions[first : n + 1] for v in parents[e])}
        if n >= window:
            observed |= set(range(len(question.diagram.variables))) - affected[decisions[first]]
        graph.set_parents(d, sorted(observed - evidence))
    graph.remove_idle_arcs(decisions, evidence, parents)
    extra_parents = {d: tuple(v for v in graph.parents[d] if v not in parents[d]) for d in decisions}
    relaxation = _Relaxation(graph, tuple(reversed(decisions)), parents, extra_parents)
    needed = sum(updates.policy_bytes(relaxation.scope(d)) for d in decisions)
    is_soluble = all(graph.is_extremal(d, relaxation.order[n:], evidence) for n, d in enumerate(relaxation.order))
    return relaxation if is_soluble else None, needed


def _bounded(policy_set: PolicySet, upper_bound: float, updates: PolicyUpdates) -> PolicySet:
    """Return policies with an upper bound on the expected utility; policies whose value reaches it are optimal."""
    is_optimal = upper_bound - policy_set.value <= _PROOF_GAP * updates.utility_range
    return policy_set._replace(upper_bound=policy_set.value if is_optimal else upper_bound, is_optimal=is_optimal)


class _Search:
    """Branch and bound with the bounds of one relaxation.

    Args:
        question: The diagram, the evidence and the given policies.
        updates: Updates of the diagram's policies.
        relaxation: The relaxation.
        start: The best policies so far.
        upper_bound: Upper bound on the expected utility of any policies.

    Attributes:
        upper_bound: Largest bound of the open nodes.
    """

    def __init__(
        self,
        question: DecisionQuestion,
        updates: PolicyUpdates,
        relaxation: _Relaxation,
        start: PolicySet,
        upper_bound: float,
    ) -> None:
        self._updates, self._relaxation, self._best, self.upper_bound = updates, relaxation, start, upper_bound
        self._fixed = {d: policy for d, policy in start.policies.items() if d not in relaxation.parents}
        sizes = [v.size for v in question.diagram.variables]
        self._everything = {
            d: np.ones([sizes[v] for v in (*parents, d)], dtype=np.bool_) for d, parents in relaxation.parents.items()
        }
        self._nodes = start.nodes
        self._root: _Node | None = None

    def begin(self) -> Iterator[PolicySet]:
        """Solve the relaxation without restrictions; yield its bound, and then better policies."""
        root = self._root = self._node(self._everything, self.upper_bound, {})
        self.upper_bound = root.bound
        self._best = self._bounded(max(root.bound, self._best.value))
        yield self._best
        yield from self._improve(root.policies, is_updated=True)

    def run(self, best: PolicySet, is_over: Callable[[int], bool]) -> Iterator[PolicySet]:
        """Search below the root node; yield policies like ``_searched``. ``best``: best policies so far."""
        self._best, root = best, self._root
        assert root is not None
        numbers = itertools.count()
        queue = [(-root.bound, next(numbers), root)] if root.conflict else []
        while queue:
            node = queue[0][-1]
            self.upper_bound = node.bound
            self._best = self._bounded(node.bound)
            yield self._best
            if self._best.is_optimal or is_over(self._updates.eliminations):
                return
            heapq.heappop(queue)
            for child in self._children(node):
                # Policies are updated only at nodes whose number is a power of two, to find good policies early.
                yield from self._improve(child.policies, is_updated=self._nodes.bit_count() == 1)
                if child.conflict is not None:
                    heapq.heappush(queue, (-child.bound, next(numbers), child))
        self._best = self._bounded(self._best.value)
        yield self._best

    def _bounded(self, upper_bound: float) -> PolicySet:
        return _bounded(self._best, upper_bound, self._updates)._replace(nodes=self._nodes)

    def _improve(self, policies: dict[int, Table], *, is_updated: bool) -> Iterator[PolicySet]:
        """Yield policies if they are better than the best so far; with ``is_updated``, after each round of updates."""
        if is_updated:
            policy_sets = list(self._updates.improved(dict(policies), self._best.start))
        else:
            utilities = self._updates.expected_utilities(policies)
            policy_sets = [self._best._replace(policies=policies, utilities=utilities)]
        for policy_set in policy_sets:
            if policy_set.value > self._best.value:
                upper = max(self.upper_bound, policy_set.value)
                self._best = policy_set._replace(upper_bound=upper, nodes=self._nodes)
                yield self._best

    def _children(self, node: _Node) -> Iterator[_Node]:
        """Yield a child for each state that resolves a node's conflict."""
        assert node.conflict is not None
        decision, row = node.conflict
        for state in np.flatnonzero(node.allowed[decision][row]).tolist():
            restricted = node.allowed[decision].copy()
            restricted[row] = False
            restricted[row][state] = True
            # The policies of later decisions do not depend on this decision's policy, so those of ``node`` are reused.
            later = self._relaxation.order[: self._relaxation.order.index(decision)]
            yield self._node({**node.allowed, decision: restricted}, node.bound, {d: node.relaxed[d] for d in later})

    def _node(self, allowed: Allowed, bound: float, later: Mapping[int, Table]) -> _Node:
        """Solve the relaxation with restricted policies.

        Args:
            allowed: Allowed states of the decisions.
            bound: Upper bound of the parent.
            later: Best policies of the later decisions.
        """
        self._nodes += 1
        updates, relaxation = self._updates, self._relaxation
        policies = {**self._fixed, **later}
        for d in relaxation.order[len(later) :]:
            scope, axis = relaxation.scope(d), len(relaxation.parents[d])
            weighted, slack = updates.weighted_utilities(policies, d, scope, relaxation.graph)
            mask = np.expand_dims(allowed[d], tuple(range(axis, axis + len(relaxation.extra_parents[d]))))
            policies[d] = Table(scope, best_states(np.where(mask, weighted, -np.inf), slack))
        value = math.fsum(updates.expected_utilities(policies).values())
        network = updates.network(policies)
        closest = dict(self._fixed)
        conflict, largest = None, _MIN_CONFLICT
        for d in relaxation.order:
            parents = relaxation.parents[d]
            joint = np.where(allowed[d], updates.joint(network, [*parents, d]), -1.0)
            closest[d] = Table((*parents, d), best_states(joint, np.zeros(())))
            shares = joint.clip(0).sum(axis=-1) - joint.max(axis=-1)
            row = np.unravel_index(int(shares.argmax()), shares.shape) if parents else ()
            if shares[row] > largest:
                largest, conflict = float(shares[row]), (d, tuple(map(int, row)))
        return _Node(min(bound, value), allowed, policies, closest, conflict)
