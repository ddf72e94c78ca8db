"""Relevance of variables and factors to a query: barren nodes, and variables separated by evidence."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from elimina._core import without_barren
from elimina.model.table import Scopes


def prune_barren(
    scopes: Sequence[Sequence[int]],
    children: Sequence[int],
    *,
    evidence: Collection[int] = (),
    query: Collection[int] | None = None,
    lasting: Collection[int] = (),
) -> list[int]:
    """Return the factors on which P(evidence), or the posterior of a query, depends.

    A variable is barren if it is neither observed nor queried and all its children are barren: its conditional
    distribution sums to 1 and is removed (Shachter, 1986, "Evaluating influence diagrams"). For a query, d-separated
    factors are also removed: no path of unobserved variables connects them to the query (Lauritzen et al., 1990,
    "Independence properties of directed Markov fields": separation in the moral graph of the ancestral set).

    Both removals require conditional distributions that sum to 1; neither is valid for maximisation or counting. Only
    P(evidence) reveals impossible evidence: a query may not depend on the factors that the evidence contradicts.

    Args:
        scopes: Scopes of the factors.
        children: Factor i is the distribution of ``children[i]`` given the rest of its scope; all children are
            different.
        evidence: Observed variables.
        query: Variables of a joint posterior; None: P(evidence). The product of the returned factors, summed over the
            other variables, is proportional to the posterior.
        lasting: Variables that are never barren, because their factors do not sum to 1.

    Returns:
        Indices of the factors to keep, in ascending order.
    """
    kept = _without_barren(scopes, children, {*evidence, *(query or ()), *lasting})
    return kept if query is None else _joined(scopes, kept, set(evidence), set(query))


def _without_barren(scopes: Sequence[Sequence[int]], children: Sequence[int], wanted: set[int]) -> list[int]:
    starts, members = Scopes.of(scopes)
    child_array, wanted_array = np.array(children, dtype=np.uint32), np.array(sorted(wanted), dtype=np.uint32)
    relevant: list[int] = without_barren(starts, members.astype(np.uint32), child_array, wanted_array).tolist()
    return relevant


def _joined(scopes: Sequence[Sequence[int]], kept: list[int], evidence: set[int], query: set[int]) -> list[int]:
    factors_of: dict[int, list[int]] = {}
    for factor in kept:
        for v in set(scopes[factor]) - evidence:
            factors_of.setdefault(v, []).append(factor)
    reached = query - evidence
    stack = list(reached)
    factors: set[int] = set()
    while stack:
        for factor in factors_of.get(stack.pop(), ()):
            if factor in factors:
                continue
            factors.add(factor)
            fresh = set(scopes[factor]) - evidence - reached
            reached |= fresh
            stack.extend(fresh)
    return sorted(factors)


class Relevance:
    """The relevant factors of posteriors, for many queries of one model: see ``prune_barren``.

    Sets of factors are integers: bit f represents factor f.

    Args:
        scopes: Scopes of the factors.
        children: Factor i is the distribution of ``children[i]`` given the rest of its scope; all children are
            different.
        evidence: Observed variables.

    Attributes:
        of_evidence: Factors on which P(evidence) depends.
        acyclic: True if the distributions form a directed acyclic graph; otherwise, no variable may be left out.
    """

    def __init__(
        self, scopes: Sequence[Sequence[int]], children: Sequence[int], evidence: Collection[int] = ()
    ) -> None:
        self._scopes, self._evidence = scopes, frozenset(evidence)
        self._factor_of = {child: factor for factor, child in enumerate(children)}
        self.acyclic = not _without_barren(scopes, children, set())
        self._evidence_ancestors = self._ancestors(self._evidence)
        self.of_evidence = _mask(self._evidence_ancestors)
        self._component_of: dict[int, int] = {}
        self._component_masks = [_mask(component) for component in self._find_components()]
        self._component_of_query: dict[int, int] = {}

    def of(self, variables: Collection[int]) -> int:
        """Return the factors on which the joint posterior of unobserved variables depends."""
        mask = 0
        for v in variables:
            mask |= self._of_one(v)
        return mask

    def mark(self, variable: int, factors: int) -> int:
        """Return a factor that identifies this variable's posterior; -1 if there is none.

        Every posterior that depends on this factor depends on all factors of the variable's posterior.

        Args:
            variable: An unobserved variable.
            factors: The factors of the variable's posterior, from ``of``.
        """
        own_factor = self._factor_of.get(variable, -1)
        return (
            own_factor
            if own_factor >= 0 and own_factor not in self._evidence_ancestors
            else (factors & -factors).bit_length() - 1
        )

    def _of_one(self, variable: int) -> int:
        """Return the factors of one variable's posterior: those of its ancestors, and all factors connected to them."""
        masks, stack = self._component_of_query, [variable]
        while stack:
            v = stack[-1]
            factor = self._factor_of.get(v, -1)
            is_above = factor >= 0 and factor not in self._evidence_ancestors
            pending = [u for u in self._scopes[factor] if u != v and u not in masks] if is_above else ()
            if pending and self.acyclic:
                stack.extend(pending)
                continue
            stack.pop()
            # A variable that is an ancestor of the query, but not of the evidence, is unobserved: its parents are
            # relevant.
            mask = self._component_masks[self._component_of[v]] if v in self._component_of else 0
            if is_above:
                mask |= 1 << factor
                for u in self._scopes[factor]:
                    mask |= masks.get(u, 0)
            masks[v] = mask
        return masks[variable]

    def _ancestors(self, variables: Collection[int]) -> set[int]:
        """Return the factors of the variables and their ancestors."""
        factors: set[int] = set()
        stack = list(variables)
        while stack:
            factor = self._factor_of.get(stack.pop(), -1)
            if factor >= 0 and factor not in factors:
                factors.add(factor)
                stack.extend(self._scopes[factor])
        return factors

    def _find_components(self) -> list[set[int]]:
        """Group the factors of the evidence and its ancestors: a common unobserved variable puts factors in one group.

        Set ``_component_of``, the number of each unobserved variable's group.
        """
        components: list[set[int]] = []
        touching: dict[int, list[int]] = {}
        for factor in sorted(self._evidence_ancestors):
            for v in self._scopes[factor]:
                if v not in self._evidence:
                    touching.setdefault(v, []).append(factor)
        for start in touching:
            if start in self._component_of:
                continue
            factors: set[int] = set()
            self._component_of[start] = len(components)
            reached = [start]
            for v in reached:
                for factor in touching[v]:
                    if factor not in factors:
                        factors.add(factor)
                        fresh = [
                            u for u in self._scopes[factor] if u not in self._evidence and u not in self._component_of
                        ]
                        self._component_of.update(dict.fromkeys(fresh, len(components)))
                        reached += fresh
            components.append(factors)
        return components


def _mask(factors: Collection[int]) -> int:
    """Return an integer with these bits set to 1."""
    marks = bytearray(max(factors, default=0) // 8 + 1)
    for factor in factors:
        marks[factor >> 3] |= 1 << (factor & 7)
    return int.from_bytes(marks, "little")


def bits(mask: int) -> list[int]:
    """Return the positions of an integer's bits that are 1, in ascending order."""
    text = bin(mask)[:1:-1]
    result, at = [], text.find("1")
    while at >= 0:
        result.append(at)
        at = text.find("1", at + 1)
    return result


def parents_first(children: Sequence[int], scopes: Sequence[Sequence[int]], count: int) -> list[int]:
    """Return a network's variables, parents before children.

    Args:
        children: Child of each factor.
        scopes: Scope of each factor.
        count: Number of variables.
    """
    families = zip(children, scopes, strict=True)
    parents = {child: [v for v in scope if v != child] for child, scope in families}
    children_of: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for child, parents_of_child in parents.items():
        missing[child] = len(parents_of_child)
        for v in parents_of_child:
            children_of[v].append(child)
    sequence = [v for v in range(count) if missing[v] == 0]
    for v in sequence:
        for child in children_of[v]:
            missing[child] -= 1
            if missing[child] == 0:
                sequence.append(child)
    return sequence
