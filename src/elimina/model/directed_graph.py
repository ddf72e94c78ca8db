"""The directed graph of a Bayesian network: parents, children, ancestors and d-separation."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set


class DirectedGraph:
    """A directed acyclic graph over numbered variables.

    Args:
        count: Number of variables.
        scopes: Scopes of the conditional distributions.
        children: Distribution i is that of variable ``children[i]`` given the rest of its scope.

    Attributes:
        parents: Parents of each variable, in the order of its distribution.
        children: Children of each variable, in the order of the distributions.
    """

    def __init__(self, count: int, scopes: Sequence[Sequence[int]], children: Sequence[int]) -> None:
        self.parents: list[list[int]] = [[] for _ in range(count)]
        self.children: list[list[int]] = [[] for _ in range(count)]
        for scope, child in zip(scopes, children, strict=True):
            self.parents[child] = [v for v in scope if v != child]
            for parent in self.parents[child]:
                self.children[parent].append(child)

    def ancestors(self, variables: Collection[int]) -> set[int]:
        """Return variables with their parents, the parents of these, and so on."""
        reached, stack = set(variables), list(variables)
        while stack:
            fresh = set(self.parents[stack.pop()]) - reached
            reached |= fresh
            stack.extend(fresh)
        return reached

    def reachable(self, variables: Collection[int], observed: Set[int]) -> set[int]:
        """Return the unobserved variables that an active path joins to some variables: see ``reached``."""
        return self.reached(variables, observed) - observed

    def reached(self, variables: Collection[int], observed: Set[int]) -> set[int]:
        """Return the variables, observed ones included, at which an active path from some of ``variables`` ends.

        A path is active if each of its colliders (where two arrows meet) is observed or an ancestor of an observed
        variable, and none of its other variables is observed (Koller and Friedman, 2009, algorithm 3.1).
        """
        opening = self.ancestors(observed)
        # Pairs: a variable, and True if the last arc of the path to it comes from one of its parents.
        stack = [(v, False) for v in variables]
        visited: set[tuple[int, bool]] = set()
        while stack:
            v, is_downward = stack.pop()
            if (v, is_downward) in visited:
                continue
            visited.add((v, is_downward))
            if v not in observed:
                stack.extend((child, True) for child in self.children[v])
            if v in opening if is_downward else v not in observed:
                stack.extend((parent, False) for parent in self.parents[v])
        return {v for v, _ in visited}
