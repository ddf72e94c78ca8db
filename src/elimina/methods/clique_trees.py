"""Trees of cliques that grow by factors and by eliminations, and their calibration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from elimina.methods.clique_tables import Floats, Scope, TableShapes, quotient, scaled_quotients

_PRODUCTS_PER_SCALING = 8
"""Factors after which a product is divided by its largest value, so that it does not underflow."""


class CliqueForest:
    """Cliques with the running intersection property, joined by edges.

    Attributes:
        scopes: Scope of each clique by its number.
        neighbours: Numbers of the cliques that share an edge with each clique.
    """

    def __init__(self) -> None:
        self.scopes: dict[int, Scope] = {}
        self.neighbours: dict[int, set[int]] = {}
        self._next = 0

    def add_clique(self, scope: Scope) -> int:
        """Add a clique without edges and return its number."""
        number = self._next
        self._next += 1
        self.scopes[number] = scope
        self.neighbours[number] = set()
        return number

    def link(self, first: int, second: int) -> None:
        """Add an edge."""
        self.neighbours[first].add(second)
        self.neighbours[second].add(first)

    def unlink(self, first: int, second: int) -> None:
        """Remove an edge."""
        self.neighbours[first].discard(second)
        self.neighbours[second].discard(first)

    def remove_clique(self, number: int, heir: int | None = None) -> None:
        """Remove a clique; the heir, if there is one, inherits its edges."""
        for other in sorted(self.neighbours[number]):
            self.unlink(number, other)
            if heir is not None and other != heir:
                self.link(heir, other)
        del self.scopes[number], self.neighbours[number]

    def separator(self, first: int, second: int) -> Scope:
        """Return the variables that two cliques share."""
        members = set(self.scopes[second])
        return tuple([v for v in self.scopes[first] if v in members])

    def path(self, start: int, variable: int, within: Iterable[int]) -> list[int] | None:
        """Return the cliques from one to the nearest one with a variable; None: no edges lead to any."""
        allowed, came_from, queue = set(within), {start: start}, [start]
        for number in queue:
            if variable in self.scopes[number]:
                path = [number]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                return path[::-1]
            for other in sorted(self.neighbours[number] & allowed):
                if other not in came_from:
                    came_from[other] = number
                    queue.append(other)
        return None

    def rooted(self) -> list[tuple[int, int]]:
        """Return all cliques with their parents (-1: none), parents first."""
        sequence: list[tuple[int, int]] = []
        visited: set[int] = set()
        for root in self.scopes:
            if root in visited:
                continue
            visited.add(root)
            stack = [(root, -1)]
            while stack:
                number, parent = stack.pop()
                sequence.append((number, parent))
                for other in sorted(self.neighbours[number], reverse=True):
                    if other not in visited:
                        visited.add(other)
                        stack.append((other, number))
        return sequence


class Edge(NamedTuple):
    """A clique of a rooted tree, with the edge to its parent (-1: none)."""

    clique: int
    parent: int
    separator: Scope


def edges_of(forest: CliqueForest) -> list[Edge]:
    """Return the cliques of a forest, rooted, parents first."""
    return [
        Edge(number, parent, forest.separator(number, parent) if parent >= 0 else ())
        for number, parent in forest.rooted()
    ]


class Calibration(NamedTuple):
    """Beliefs of cliques, each normalised, and the natural logarithm of the sum of the potentials' product."""

    beliefs: dict[int, Floats]
    log_z: float


def calibrate(
    shapes: TableShapes, scopes: Mapping[int, Scope], edges: Sequence[Edge], potentials: dict[int, Floats]
) -> Calibration:
    """Pass messages up and down a rooted forest of cliques.

    Args:
        shapes: Shapes of tables.
        scopes: Scope of each clique.
        edges: The cliques, parents first.
        potentials: A table for each clique, which becomes its belief.

    Returns:
        The beliefs; without sense if the sum is 0.
    """
    log_z, messages = 0.0, {}
    for number, parent, separator in reversed(edges):
        table = potentials[number]
        largest = float(table.max())
        if not largest > 0:
            return Calibration(potentials, -math.inf)
        table /= largest
        log_z += math.log(largest)
        if parent >= 0:
            messages[number] = message = shapes.marginal(table, scopes[number], separator)
            shapes.multiply(potentials[parent], scopes[parent], message, separator)
        else:
            total = float(table.sum())
            log_z += math.log(total)
            table /= total
    for number, parent, separator in edges:
        if parent >= 0:
            shared = shapes.marginal(potentials[parent], scopes[parent], separator)
            shapes.multiply(potentials[number], scopes[number], quotient(shared, messages[number]), separator)
    return Calibration(potentials, log_z)


def conditionals(
    shapes: TableShapes, scopes: Mapping[int, Scope], edges: Sequence[Edge], beliefs: Mapping[int, Floats]
) -> dict[int, Floats]:
    """Return calibrated beliefs as factors: each clique's distribution given its separator."""
    factors = {}
    for number, parent, separator in edges:
        table = beliefs[number]
        if parent >= 0:
            table = table.copy()
            shared = shapes.marginal(beliefs[number], scopes[number], separator)
            shapes.multiply(table, scopes[number], quotient(shapes.ones(separator), shared), separator)
        factors[number] = table
    return factors


class Interface:
    """Approximate distribution over the variables that later factors share with a clique tree.

    Attributes:
        scopes, edges: Its cliques, rooted.
        sources: Clique of the tree before it that contains each one.
        targets: Clique of the tree after it that contains each one.
        rank: Rank of the elimination before which it was made.
        forward: Factor of each clique from the tree before it.
        forward_scale: Natural logarithm of what was divided out of these factors.
        backward: Factor of each clique from the tree after it; None before the first backward pass.
        backward_scale: Natural logarithm of what was divided out of these factors.
    """

    def __init__(self, scopes: dict[int, Scope], edges: list[Edge], sources: dict[int, int], rank: int) -> None:
        self.scopes, self.edges, self.sources, self.rank = scopes, edges, sources, rank
        self.targets: dict[int, int] = {}
        self.forward: dict[int, Floats] = {}
        self.forward_scale = 0.0
        self.backward: dict[int, Floats] | None = None
        self.backward_scale = 0.0

    def set_forward(self, smoothed: Mapping[int, Floats]) -> None:
        """Set the factors from the tree before it, so that both directions make up a distribution's factors."""
        if self.backward is None:
            self.forward = dict(smoothed)
            return
        self.forward, log_scale = scaled_quotients(smoothed, self.backward)
        self.forward_scale = log_scale - self.backward_scale

    def set_backward(self, smoothed: Mapping[int, Floats]) -> None:
        """Set the factors from the tree after it, so that both directions make up a distribution's factors."""
        self.backward, log_scale = scaled_quotients(smoothed, self.forward)
        self.backward_scale = log_scale - self.forward_scale

    def project(
        self,
        shapes: TableShapes,
        scopes: Mapping[int, Scope],
        beliefs: Mapping[int, Floats],
        hosts: Mapping[int, int],
    ) -> dict[int, Floats]:
        """Return the factors of the distribution that has the marginals of a calibrated tree on all cliques.

        Args:
            shapes: Shapes of tables.
            scopes: Scopes of the tree's cliques.
            beliefs: Beliefs of the tree's cliques.
            hosts: Clique of the tree that contains each clique of the interface.
        """
        marginals = {
            number: shapes.marginal(beliefs[hosts[number]], scopes[hosts[number]], scope)
            for number, scope in self.scopes.items()
        }
        return conditionals(shapes, self.scopes, self.edges, marginals)


class CliqueTree(CliqueForest):
    """A tree of cliques: approximate distributions of earlier trees, factors, and eliminated variables.

    Attributes:
        front: Cliques of variables that are not eliminated; the others hang below them.
        inputs: Distributions of earlier trees.
        output: Distribution for the next tree; None for the last one.
        factors: Index of each factor, and its clique.
        eliminated: Clique of each variable that is eliminated here.
        weights: Clique, variable and table of each forecast that stands for what later trees say.
        edges: The rooted tree, once it is complete.
    """

    def __init__(self) -> None:
        super().__init__()
        self.front: set[int] = set()
        self.inputs: list[Interface] = []
        self.output: Interface | None = None
        self.factors: list[tuple[int, int]] = []
        self.eliminated: dict[int, int] = {}
        self.weights: list[tuple[int, int, Floats]] = []
        self.edges: list[Edge] = []

    def add_front(self, scope: Scope) -> int:
        """Add a clique of variables that stay for now."""
        number = self.add_clique(scope)
        self.front.add(number)
        return number

    def begin(self, front: CliqueForest, interface: Interface) -> None:
        """Add the cliques of an approximated front, and their tables."""
        interface.targets = {number: self.add_front(scope) for number, scope in front.scopes.items()}
        for number, neighbours in front.neighbours.items():
            for other in neighbours:
                self.link(interface.targets[number], interface.targets[other])
        self.inputs.append(interface)

    def join_of(self, variable: int) -> tuple[list[int], Scope]:
        """Return the front's cliques with a variable, and the scope of their join."""
        members = sorted([number for number in self.front if variable in self.scopes[number]])
        return members, tuple(sorted(set().union(*[self.scopes[number] for number in members])))

    def replace(self, number: int, heir: int) -> None:
        """Remove a clique that another one contains, which takes over its edges and tables."""
        self.remove_clique(number, heir)
        self.front.discard(number)
        for interface in self.inputs:
            for clique, target in interface.targets.items():
                if target == number:
                    interface.targets[clique] = heir
        self.factors = [(factor, heir if clique == number else clique) for factor, clique in self.factors]

    def merge(self, other: CliqueTree) -> None:
        """Add all cliques of another tree."""
        shift = {number: self.add_clique(scope) for number, scope in other.scopes.items()}
        for number, neighbours in other.neighbours.items():
            for neighbour in neighbours:
                self.link(shift[number], shift[neighbour])
        self.front.update(shift[number] for number in other.front)
        for interface in other.inputs:
            interface.targets = {clique: shift[target] for clique, target in interface.targets.items()}
        self.inputs += other.inputs
        self.factors += [(factor, shift[clique]) for factor, clique in other.factors]
        self.eliminated.update((v, shift[clique]) for v, clique in other.eliminated.items())

    def eliminate(self, variable: int, scope: Scope, members: Sequence[int]) -> None:
        """Join the cliques with a variable, and leave the rest of the join in the front."""
        joined = self.add_clique(scope)
        for number in members:
            self.replace(number, joined)
        for number in sorted(self.neighbours[joined] & self.front):
            if set(self.scopes[number]) <= set(scope):
                self.replace(number, joined)
        self.eliminated[variable] = joined
        rest = tuple([v for v in scope if v != variable])
        outer = sorted(self.neighbours[joined] & self.front)
        heir = next((n for n in outer if set(rest) <= set(self.scopes[n])), None)
        if heir is None:
            if not rest and not outer:
                return
            heir = self.add_front(rest)
        for number in outer:
            self.unlink(joined, number)
            if number != heir:
                self.link(heir, number)
        self.link(joined, heir)

    def widen_path(self, path: Sequence[int], needs: Sequence[Scope]) -> None:
        """Carry a variable along a path of cliques to its first one.

        Args:
            path: Cliques of the front; the last one has the variable.
            needs: Scope that replaces or joins each clique but the last, the variable included.
        """
        ends = []
        for number, need in zip(path, needs, strict=False):
            if set(self.scopes[number]) <= set(need):
                self.scopes[number] = need
                ends.append(number)
            else:
                ends.append(self.add_front(need))
                self.link(ends[-1], number)
        ends.append(path[-1])
        for place, (first, second) in enumerate(itertools.pairwise(ends)):
            self.unlink(path[place], path[place + 1])
            self.link(first, second)

    def potentials(
        self, shapes: TableShapes, factors: Sequence[tuple[Scope, Floats]]
    ) -> tuple[dict[int, Floats], float]:
        """Return the product of all tables of each clique, and the natural logarithm of what was divided out."""
        tables = {number: shapes.ones(scope) for number, scope in self.scopes.items()}
        products = dict.fromkeys(tables, 0)
        log_scale = math.fsum([interface.forward_scale for interface in self.inputs])
        if self.output is not None:
            log_scale += self.output.backward_scale
        for factor, number in self.factors:
            shapes.multiply(tables[number], self.scopes[number], factors[factor][1], factors[factor][0])
            products[number] += 1
            if products[number] % _PRODUCTS_PER_SCALING == 0:
                largest = float(tables[number].max())
                if largest > 0:
                    tables[number] /= largest
                    log_scale += math.log(largest)
        for number, table, scope in self._distributions():
            shapes.multiply(tables[number], self.scopes[number], table, scope)
        return tables, log_scale

    def _distributions(self) -> Iterator[tuple[int, Floats, Scope]]:
        for interface in self.inputs:
            for clique, table in interface.forward.items():
                yield interface.targets[clique], table, interface.scopes[clique]
        if self.output is not None and self.output.backward is not None:
            for clique, table in self.output.backward.items():
                yield self.output.sources[clique], table, self.output.scopes[clique]
        for number, variable, table in self.weights:
            yield number, table, (variable,)
