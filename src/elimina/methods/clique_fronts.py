"""Approximation of a calibrated tree of cliques by one of smaller cliques."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from elimina.methods.clique_tables import Floats, Scope, TableShapes, entropy
from elimina.methods.clique_trees import CliqueForest


class _Removal(NamedTuple):
    """Separation of two variables of a clique, or of a variable from all cliques behind an edge."""

    price: float
    variable: int
    clique: int
    behind: int


class CliqueFront(CliqueForest):
    """A calibrated tree of cliques from which dependences are removed, the weakest first.

    Removing the edge of two variables that only one clique has together costs their conditional mutual information
    given the rest of the clique: so much the Kullback-Leibler divergence grows, and all marginals of the cliques that
    remain are as before (Deshpande, Garofalakis and Jordan 2001, "Efficient stepwise selection in decomposable
    models").

    Args:
        shapes: Shapes of tables.

    Attributes:
        beliefs: Distribution of each clique.
        sources: Clique of the tree before it that contains each one.
        divergence: Sum of the information that was removed, in nats.
    """

    def __init__(self, shapes: TableShapes) -> None:
        super().__init__()
        self._shapes = shapes
        self.beliefs: dict[int, Floats] = {}
        self.sources: dict[int, int] = {}
        self.divergence = 0.0

    def place(self, scope: Scope, belief: Floats, source: int) -> int:
        """Add a clique with its belief."""
        number = self.add_clique(scope)
        self.beliefs[number], self.sources[number] = belief, source
        return number

    def absorb(self) -> None:
        """Remove all cliques that a neighbour contains."""
        for number in sorted(self.scopes):
            self._absorb(number)

    def separate(self, variable: int, most_cells: int) -> None:
        """Remove edges of a variable until the cliques that have it join to a table of at most so many cells."""
        while True:
            members = [number for number, scope in self.scopes.items() if variable in scope]
            cliques: dict[int, list[int]] = {}
            for number in members:
                for other in self.scopes[number]:
                    cliques.setdefault(other, []).append(number)
            if self._shapes.cells(cliques) <= most_cells:
                return
            entropies: dict[int, float] = {}
            removals = []
            for other, numbers in cliques.items():
                if other != variable and len(numbers) == 1:
                    information = self._information(numbers[0], (variable,), (other,), entropies)
                    removals.append(_Removal(self._price(information, other), other, numbers[0], -1))
            best = min(removals)
            self._split(best.clique, variable, best.variable)

    def shorten(self, path: Sequence[int], place: int, needed: Collection[int]) -> None:
        """Remove a variable from a clique of a path, and from all cliques on that side of an edge of the path.

        Args:
            path: Cliques in sequence.
            place: Place of the clique that needs too much.
            needed: Variables that have to stay.
        """
        clique = path[place]
        removals = []
        for other in {path[max(place - 1, 0)], path[place + 1]} - {clique}:
            separator = self.separator(clique, other)
            rest = tuple([v for v in self.scopes[clique] if v not in separator])
            for v in separator:
                if v not in needed:
                    removals.append(_Removal(self._price(self._information(clique, (v,), rest), v), v, clique, other))
        best = min(removals)
        self._drop(best.variable, clique, best.behind)

    def _price(self, information: float, variable: int) -> float:
        return information / math.log(self._shapes.sizes[variable])

    def _information(self, clique: int, first: Scope, second: Scope, kept: dict[int, float] | None = None) -> float:
        """Return the mutual information of two sets of a clique's variables given all its others.

        Args:
            clique: A clique.
            first: Some of its variables.
            second: Others of its variables.
            kept: Differences of entropies of cliques for the same first variables.
        """
        if not second:
            return 0.0
        kept = {} if kept is None else kept
        if clique not in kept:
            kept[clique] = entropy(self._without(clique, *first)[1]) - entropy(self.beliefs[clique])
        inner, rest = self._without(clique, *second)
        both = tuple([v for v in inner if v not in first])
        return max(0.0, kept[clique] + entropy(rest) - entropy(self._shapes.marginal(rest, inner, both)))

    def _without(self, clique: int, *variables: int) -> tuple[Scope, Floats]:
        scope = self.scopes[clique]
        inner = tuple([v for v in scope if v not in variables])
        return inner, self._shapes.marginal(self.beliefs[clique], scope, inner)

    def _split(self, clique: int, first: int, second: int) -> None:
        """Divide a clique into two that have one of two variables each."""
        self.divergence += self._information(clique, (first,), (second,))
        source = self.sources[clique]
        with_first = self.place(*self._without(clique, second), source)
        with_second = self.place(*self._without(clique, first), source)
        for other in sorted(self.neighbours[clique]):
            self.link(other, with_first if first in self.scopes[other] else with_second)
        self._discard(clique)
        self.link(with_first, with_second)
        self._absorb(with_first)
        self._absorb(with_second)

    def _drop(self, variable: int, start: int, behind: int) -> None:
        """Remove a variable from a clique and from all others that it leads to, except through one."""
        reached, came_from = [start], {start: behind}
        for number in reached:
            for other in sorted(self.neighbours[number]):
                if other != came_from[number] and variable in self.scopes[other]:
                    came_from[other] = number
                    reached.append(other)
        for number in reversed(reached):
            parent = came_from[number]
            separator = self.separator(number, parent)
            rest = tuple([v for v in self.scopes[number] if v not in separator])
            self.divergence += self._information(number, (variable,), rest)
            self.scopes[number], self.beliefs[number] = self._without(number, variable)
        for number in reversed(reached):
            self._absorb(number)

    def _absorb(self, clique: int) -> None:
        """Remove a clique that a neighbour contains."""
        members = set(self.scopes[clique])
        heirs: Iterable[int] = (n for n in sorted(self.neighbours[clique]) if members <= set(self.scopes[n]))
        heir = next(iter(heirs), None)
        if heir is not None:
            self._discard(clique, heir)

    def _discard(self, clique: int, heir: int | None = None) -> None:
        self.remove_clique(clique, heir)
        del self.beliefs[clique], self.sources[clique]
