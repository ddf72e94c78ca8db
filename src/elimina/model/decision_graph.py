"""The graph of an influence diagram: relevant observations of decisions, and the order of their solution.

Lauritzen and Nilsson, 2001, "Representing and solving decision problems with limited information".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from elimina.model.directed_graph import DirectedGraph


class SolutionOrder(NamedTuple):
    """Decisions in the order in which their policies are computed.

    Attributes:
        extremal: Decisions whose best policies do not depend on the policies of the decisions solved later.
        others: The other decisions, whose policies depend on each other. If there are none, the diagram is soluble: a
            policy for each decision in turn is optimal.
        observed: The variables that each decision needs to observe; the decision's other observations change nothing.
    """

    extremal: tuple[int, ...]
    others: tuple[int, ...]
    observed: dict[int, tuple[int, ...]]


class DecisionGraph(DirectedGraph):
    """A directed acyclic graph over variables and utilities; arcs into a decision come from its observations.

    Args:
        count: Number of variables and utilities.
        scopes: Scopes of distributions, decisions and utilities.
        children: Variable or utility of each scope.
        utilities: Numbers of the utilities.
    """

    def __init__(
        self, count: int, scopes: Sequence[Sequence[int]], children: Sequence[int], utilities: Iterable[int]
    ) -> None:
        super().__init__(count, scopes, children)
        self.utilities = frozenset(utilities)

    def set_parents(self, variable: int, parents: Iterable[int]) -> None:
        """Replace the arcs into a variable."""
        for parent in self.parents[variable]:
            self.children[parent].remove(variable)
        self.parents[variable] = list(parents)
        for parent in self.parents[variable]:
            self.children[parent].append(variable)

    def descendants(self, variable: int) -> set[int]:
        """Return a variable with its children, the children of these, and so on."""
        reached, stack = {variable}, [variable]
        while stack:
            fresh = set(self.children[stack.pop()]) - reached
            reached |= fresh
            stack.extend(fresh)
        return reached

    def later_utilities(self, decision: int) -> set[int]:
        """Return the utilities that a decision affects."""
        return self.descendants(decision) & self.utilities

    def sequence_of(self, decisions: Collection[int]) -> list[int]:
        """Return decisions in an order in which each comes after all of its ancestors."""
        earlier = {d: len(self.ancestors([d])) for d in decisions}
        return sorted(decisions, key=lambda d: earlier[d])

    def solution_order(self, decisions: Collection[int], evidence: Set[int]) -> SolutionOrder:
        """Return the order in which the policies of decisions are computed, and remove the arcs that no policy needs.

        Args:
            decisions: Decisions without a policy.
            evidence: Observed variables, which no decision affects.
        """
        self.remove_idle_arcs(decisions, evidence)
        pending = self.sequence_of(decisions)[::-1]
        extremal: list[int] = []
        while pending:
            decision = next((d for d in pending if self.is_extremal(d, pending, evidence)), None)
            if decision is None:
                break
            pending.remove(decision)
            extremal.append(decision)
        return SolutionOrder(tuple(extremal), tuple(pending), {d: tuple(self.parents[d]) for d in decisions})

    def remove_idle_arcs(
        self, decisions: Collection[int], evidence: Set[int], fixed_arcs: Mapping[int, Collection[int]] | None = None
    ) -> None:
        """Remove the arcs into each decision from observations without information on the utilities that it affects.

        Args:
            decisions: Decisions without a policy.
            evidence: Observed variables, which no decision affects.
            fixed_arcs: Decision -> observations whose arcs stay in any case.
        """
        fixed_arcs = fixed_arcs or {}
        is_reduced = True
        while is_reduced:
            is_reduced = False
            for decision in self.sequence_of(decisions)[::-1]:
                utilities = self.later_utilities(decision)
                # Observations without an active path to the utilities are irrelevant; the rest are tested one by one.
                reached = self.reached(utilities, {decision, *self.parents[decision]} | evidence)
                relevant = [v for v in self.parents[decision] if v in reached or v in fixed_arcs.get(decision, ())]
                if len(relevant) < len(self.parents[decision]):
                    self.set_parents(decision, relevant)
                    is_reduced = True
                for parent in [v for v in self.parents[decision] if v not in fixed_arcs.get(decision, ())]:
                    others = {decision, *self.parents[decision]} - {parent} | evidence
                    if parent in evidence or not utilities & self.reachable([parent], others):
                        self.set_parents(decision, [v for v in self.parents[decision] if v != parent])
                        is_reduced = True

    def is_extremal(self, decision: int, pending: Iterable[int], evidence: Set[int]) -> bool:
        """Return whether a decision's best policy does not depend on the policies of the other pending decisions."""
        utilities = self.later_utilities(decision)
        others = {v for other in pending if other != decision for v in (other, *self.parents[other])}
        return not others & self.reachable(utilities, {decision, *self.parents[decision]} | evidence)


def graph_of(
    count: int,
    distributions: Mapping[int, Sequence[int]],
    observed: Mapping[int, Sequence[int]],
    utilities: Sequence[Sequence[int]],
) -> DecisionGraph:
    """Return the graph of an influence diagram; its utilities are numbered after the variables.

    Args:
        count: Number of variables.
        distributions: Variable -> scope of its distribution.
        observed: Decision -> the variables that it observes.
        utilities: Scope of each utility.
    """
    numbers = range(count, count + len(utilities))
    scopes = [*distributions.values(), *((*observations, d) for d, observations in observed.items())]
    scopes += [(*scope, u) for scope, u in zip(utilities, numbers, strict=True)]
    return DecisionGraph(count + len(utilities), scopes, [*distributions, *observed, *numbers], numbers)
