"""Sequences of clique trees of bounded size, linked by approximate distributions.

A clique tree grows by factors and eliminations as long as its cliques stay within a bound. Then its front, the cliques
that later factors share, is approximated by smaller cliques, with which the next tree begins (Bathla and Vasudevan
2023, "IBIA: an incremental build-infer-approximate framework for approximate inference of partition function").
Marginals need what later trees say about earlier ones. Here both directions are messages of expectation propagation
(Minka 2001) over the cliques of the fronts, so that further passes improve the approximations of the fronts, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.methods.clique_fronts import CliqueFront
from elimina.methods.clique_tables import Floats, Scope, TableShapes, quotient
from elimina.methods.clique_trees import (
    Calibration,
    CliqueForest,
    CliqueTree,
    Interface,
    calibrate,
    edges_of,
)
from elimina.methods.ranked_factors import RankedFactors
from elimina.methods.sum_estimate import Limits

_MESSAGE_BYTES = 16
"""Bytes of a cell of an interface: a number for each direction."""

_CALIBRATED_BYTES = 16
"""Bytes of a cell of a tree while it is calibrated: a belief, and a share of a front or a message."""

_LEAST_FORECAST = 1e-2
"""Smallest weight of a state in a forecast: it must not exclude a state."""

Forecasts = Mapping[int, Sequence[tuple[int, Floats]]]
"""Weights that later factors give to the states of a variable, with the rank of the elimination; by variable."""


class LimitReachedError(Exception):
    """The deadline has passed, or the work is to end."""


class TreesTooLargeError(Exception):
    """The trees need more memory than they may take."""


class ZeroSumError(Exception):
    """The sum of a tree is 0, or too small for floats."""


class LinkedTrees:
    """A sequence of clique trees and the approximate distributions between them.

    Args:
        factors: Factors of a problem.
        most_cells: Largest number of cells of a clique; at least that of the largest factor.
        limits: Deadline and memory.
        forecasts: Weights of states from other trees, by which approximations are made; None: from earlier factors
            alone.

    Attributes:
        trees: The trees, earlier ones first.
        log_z: Natural logarithm of the sum, by the last pass.
        divergence: Sum of the information that approximations removed, in nats.
        bytes: Memory of all interfaces.

    Raises:
        LimitReachedError: The deadline has passed.
        TreesTooLargeError: The interfaces do not fit.
        ZeroSumError: The sum is 0.
    """

    def __init__(
        self, factors: RankedFactors, most_cells: int, limits: Limits, forecasts: Forecasts | None = None
    ) -> None:
        self._factors, self._shapes, self._limits = factors, factors.shapes, limits
        self._most_cells = most_cells
        self._forecasts = {} if forecasts is None else forecasts
        self._homes: dict[int, CliqueTree] = {}
        self._rank = 0
        self.trees: list[CliqueTree] = []
        self.log_z = factors.log_constant
        self.divergence = 0.0
        self.bytes = 0
        for rank, bucket in enumerate(factors.buckets):
            self._check_limits()
            self._rank = rank
            for factor in bucket:
                self._add(factor)
            self._eliminate(rank)

    @property
    def is_exact(self) -> bool:
        """True if nothing was approximated."""
        return all(tree.output is None for tree in self.trees)

    def pass_backward(self) -> NDArray[np.float64]:
        """Update what later trees say about earlier ones, and return the marginals, one rank after another."""
        marginals: dict[int, Floats] = {}
        self.log_z = self._factors.log_constant
        for tree in reversed(self.trees):
            beliefs = self._calibrate(tree).beliefs
            for rank, clique in tree.eliminated.items():
                marginals[rank] = self._shapes.marginal(beliefs[clique], tree.scopes[clique], (rank,))
            for interface in tree.inputs:
                smoothed = interface.project(self._shapes, tree.scopes, beliefs, interface.targets)
                interface.set_backward(smoothed)
        shares = [marginals[rank] / marginals[rank].sum() for rank in range(len(self._factors.order))]
        return np.concatenate(shares) if shares else np.zeros(0)

    def pass_forward(self) -> None:
        """Update what earlier trees say about later ones."""
        self.log_z = self._factors.log_constant
        for tree in self.trees:
            beliefs = self._calibrate(tree).beliefs
            interface = tree.output
            if interface is not None:
                interface.set_forward(interface.project(self._shapes, tree.scopes, beliefs, interface.sources))

    def forecast(self) -> Forecasts:
        """Return the weights that later factors give to states, for trees with other cliques."""
        forecasts: dict[int, list[tuple[int, Floats]]] = {}
        for tree in self.trees:
            interface = tree.output
            if interface is None or interface.backward is None:
                continue
            self._check_limits()
            earlier = {n: table.copy() for n, table in interface.forward.items()}
            both = {n: table * interface.backward[n] for n, table in interface.forward.items()}
            beliefs = [
                calibrate(self._shapes, interface.scopes, interface.edges, tables).beliefs for tables in (earlier, both)
            ]
            for rank, clique in _first_cliques(interface.scopes).items():
                scope = interface.scopes[clique]
                before, after = (self._shapes.marginal(tables[clique], scope, (rank,)) for tables in beliefs)
                ratio = quotient(after, before)
                # The square root hedges: a forecast by rough approximations is often too sure.
                weights = np.maximum(np.sqrt(ratio / max(float(ratio.max()), 1e-300)), _LEAST_FORECAST)
                forecasts.setdefault(rank, []).append((interface.rank, weights))
        return forecasts

    def _check_limits(self) -> None:
        if self._limits.is_over:
            raise LimitReachedError

    def _calibrate(self, tree: CliqueTree) -> Calibration:
        self._check_limits()
        potentials, log_scale = tree.potentials(self._shapes, self._factors.tables)
        calibration = calibrate(self._shapes, tree.scopes, tree.edges, potentials)
        if not math.isfinite(calibration.log_z):
            raise ZeroSumError
        self.log_z += calibration.log_z + log_scale
        return calibration

    def _add(self, factor: int) -> None:
        """Put a factor into a clique of the front."""
        scope = self._factors.tables[factor][0]
        tree = self._home(scope)
        shared = tuple([v for v in scope if v in self._homes])
        if not shared:
            clique = tree.add_front(scope)
        else:
            tree, clique = self._gather(tree, shared)
            if set(tree.scopes[clique]) <= set(scope):
                tree.scopes[clique] = scope
            elif len(shared) < len(scope):
                wider = tree.add_front(scope)
                tree.link(wider, clique)
                clique = wider
        self._homes.update(dict.fromkeys(scope, tree))
        tree.factors.append((factor, clique))

    def _home(self, scope: Scope) -> CliqueTree:
        """Return the growing tree of some variables, one for all of them."""
        trees = list(dict.fromkeys([self._homes[v] for v in scope if v in self._homes]))
        if not trees:
            return CliqueTree()
        for other in trees[1:]:
            trees[0].merge(other)
            self._move(other, trees[0])
        return trees[0]

    def _move(self, tree: CliqueTree, heir: CliqueTree) -> None:
        for clique in tree.front:
            for v in tree.scopes[clique]:
                self._homes[v] = heir

    def _gather(self, tree: CliqueTree, shared: Scope) -> tuple[CliqueTree, int]:
        """Return the tree, or the one after it, and a clique of its front that has some variables."""
        while True:
            start = self._nearest(tree, tree.front, shared)
            missing = set(shared).difference(tree.scopes[start])
            if not missing:
                return tree, start
            path = _path(tree, tree.front, start, min(missing))
            needs = self._needs(tree, path, shared, min(missing))
            if self._oversized(needs) < 0:
                tree.widen_path(path, needs)
            else:
                front, beliefs = self._close(tree)
                self._shorten(front, shared)
                tree = self._follow(tree, front, beliefs)

    def _shorten(self, front: CliqueFront, shared: Scope) -> None:
        """Remove dependences from a front until one of some variables fits on its way to the others."""
        while True:
            start = self._nearest(front, front.scopes, shared)
            missing = set(shared).difference(front.scopes[start])
            if not missing:
                return
            path = _path(front, front.scopes, start, min(missing))
            place = self._oversized(self._needs(front, path, shared, min(missing)))
            if place < 0:
                return
            front.shorten(path, place, shared)

    def _nearest(self, forest: CliqueForest, within: Iterable[int], shared: Scope) -> int:
        """Return the clique that has most of some variables; of these the smallest one."""
        members = set(shared)
        return min(
            within,
            key=lambda n: (-len(members.intersection(forest.scopes[n])), self._shapes.cells(forest.scopes[n]), n),
        )

    def _needs(self, forest: CliqueForest, path: Sequence[int], shared: Scope, variable: int) -> list[Scope]:
        """Return the scopes that carry a variable along a path to its first clique."""
        needs = []
        for place, clique in enumerate(path[:-1]):
            scope = {variable, *forest.separator(clique, path[place + 1])}
            scope.update(forest.separator(clique, path[place - 1]) if place else shared_part(forest, clique, shared))
            needs.append(tuple(sorted(scope)))
        return needs

    def _oversized(self, scopes: Sequence[Scope]) -> int:
        """Return the place of the first scope with too many cells; -1 if there is none."""
        places = (place for place, scope in enumerate(scopes) if self._shapes.cells(scope) > self._most_cells)
        return next(places, -1)

    def _eliminate(self, variable: int) -> None:
        """Sum out a variable whose factors are all in its tree."""
        tree = self._homes.pop(variable, None)
        if tree is None:
            tree = CliqueTree()
            tree.add_front((variable,))
        members, scope = tree.join_of(variable)
        if self._shapes.cells(scope) > self._most_cells:
            front, beliefs = self._close(tree)
            front.separate(variable, self._most_cells)
            tree = self._follow(tree, front, beliefs)
            self._homes.pop(variable)
            members, scope = tree.join_of(variable)
        tree.eliminate(variable, scope, members)
        if not tree.front:
            self._complete(tree)

    def _complete(self, tree: CliqueTree) -> Calibration:
        """Calibrate a tree that does not grow any more."""
        tree.edges = edges_of(tree)
        cells = sum([self._shapes.cells(scope) for scope in tree.scopes.values()])
        if self.bytes + _CALIBRATED_BYTES * cells > self._limits.memory_bytes:
            raise TreesTooLargeError
        self.trees.append(tree)
        return self._calibrate(tree)

    def _close(self, tree: CliqueTree) -> tuple[CliqueFront, dict[int, Floats]]:
        """End a tree, and return its front for approximations, and its beliefs."""
        places: dict[int, int] = {}
        for clique in sorted(tree.front):
            places.update((v, clique) for v in tree.scopes[clique] if v in self._forecasts)
        tree.weights = [(places[v], v, self._forecast(v)) for v in sorted(places)]
        beliefs = self._complete(tree).beliefs
        front = CliqueFront(self._shapes)
        numbers = {clique: front.place(tree.scopes[clique], beliefs[clique], clique) for clique in sorted(tree.front)}
        for clique, number in numbers.items():
            for other in tree.neighbours[clique] & tree.front:
                front.link(number, numbers[other])
        front.absorb()
        return front, beliefs

    def _forecast(self, variable: int) -> Floats:
        """Return the weights of a variable's states by the forecast that was made nearest to this elimination."""
        return min(self._forecasts[variable], key=lambda entry: abs(entry[0] - self._rank))[1]

    def _follow(self, tree: CliqueTree, front: CliqueFront, beliefs: Mapping[int, Floats]) -> CliqueTree:
        """Return a tree that begins with an approximated front of another one."""
        self.divergence += front.divergence
        interface = Interface(front.scopes, edges_of(front), front.sources, self._rank)
        if tree.weights:
            interface.backward = _weighed(self._shapes, interface.scopes, {v: table for _, v, table in tree.weights})
            tree.weights = []
        interface.set_forward(interface.project(self._shapes, tree.scopes, beliefs, interface.sources))
        self.bytes += _MESSAGE_BYTES * sum([table.size for table in interface.forward.values()])
        tree.output = interface
        following = CliqueTree()
        following.begin(front, interface)
        self._move(following, following)
        return following


def shared_part(forest: CliqueForest, clique: int, shared: Scope) -> Scope:
    """Return those of some variables that a clique has."""
    members = set(forest.scopes[clique])
    return tuple([v for v in shared if v in members])


def _path(forest: CliqueForest, within: Iterable[int], start: int, variable: int) -> list[int]:
    """Return the way from a clique to the nearest one with a variable; components without edges are linked."""
    allowed = set(within)
    path = forest.path(start, variable, allowed)
    if path is None:
        end = min(n for n in allowed if variable in forest.scopes[n])
        forest.link(start, end)
        path = [start, end]
    return path


def _first_cliques(scopes: Mapping[int, Scope]) -> dict[int, int]:
    """Return a clique for each variable."""
    cliques: dict[int, int] = {}
    for clique, scope in scopes.items():
        for v in scope:
            cliques.setdefault(v, clique)
    return cliques


def _weighed(shapes: TableShapes, scopes: Mapping[int, Scope], weights: Mapping[int, Floats]) -> dict[int, Floats]:
    """Return a factor for each clique, that together are the product of weights of variables."""
    tables = {clique: shapes.ones(scope) for clique, scope in scopes.items()}
    for v, clique in _first_cliques(scopes).items():
        if v in weights:
            shapes.multiply(tables[clique], scopes[clique], weights[v], (v,))
    return tables
