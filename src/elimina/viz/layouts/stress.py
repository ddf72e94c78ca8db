"""Layout of graphs by distances: nodes are about as far apart on the page as they are along edges."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.viz.diagram import Edge, Points

_PIVOTS = 50
_ROUNDS, _SPARSE_ROUNDS = 120, 60
_MAX_NODES_OF_ALL_PAIRS = 400
"""Components with more nodes do not use the distances of all pairs, whose number is quadratic."""

_TOLERANCE = 1e-4


def stress_layout(count: int, edges: Sequence[tuple[int, int]]) -> Points:
    """Return positions of the nodes, a float array of shape ``(nodes, 2)``; an edge is about 1 long.

    Connected components stand side by side. Each begins with pivots (Brandes, Pich, 2007, "Eigensolver methods for
    progressive multidimensional scaling of large data") and minimises the stress by majorisation (Gansner, Koren,
    North, 2004, "Graph drawing by stress majorization"). This is the stress of all pairs of nodes or, in components of
    over 400 nodes, that of neighbours and of pairs of a node and a pivot (Ortmann, Klimenta, Brandes, 2016, "A sparse
    stress model").

    Args:
        count: Number of nodes.
        edges: Pairs of nodes.
    """
    neighbours = neighbours_of(count, edges)
    rng = np.random.default_rng(0)
    components = _components(neighbours)
    return _side_by_side(
        count, [(component, _component_layout(component, neighbours, rng)) for component in components]
    )


def neighbours_of(count: int, edges: Iterable[Edge]) -> list[list[int]]:
    """Return the nodes that each node shares an edge with."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    return neighbours


def _components(neighbours: Sequence[Sequence[int]]) -> list[list[int]]:
    is_visited = [False] * len(neighbours)
    components = []
    for start in range(len(neighbours)):
        if not is_visited[start]:
            is_visited[start] = True
            component = [start]
            for node in component:
                for neighbour in neighbours[node]:
                    if not is_visited[neighbour]:
                        is_visited[neighbour] = True
                        component.append(neighbour)
            components.append(component)
    return sorted(components, key=len, reverse=True)


def _component_layout(
    component: Sequence[int], neighbours: Sequence[Sequence[int]], rng: np.random.Generator
) -> Points:
    n = len(component)
    if n == 1:
        return np.zeros((1, 2))
    position = {v: i for i, v in enumerate(component)}
    local = [[position[u] for u in neighbours[v]] for v in component]
    all_pairs = n <= _MAX_NODES_OF_ALL_PAIRS
    pivots = np.arange(n) if all_pairs else _far_apart(local, _PIVOTS)
    distances = np.stack([_distances(local, s) for s in pivots])
    start = _pivot_positions(distances[:: max(len(distances) // _PIVOTS, 1)]) + rng.normal(scale=0.05, size=(n, 2))
    if all_pairs:
        return _majorise(distances, pivots, None, start, _ROUNDS)
    links = np.array([(v, u) for v, near in enumerate(local) for u in near])
    return _majorise(distances, pivots, links, start, _SPARSE_ROUNDS)


def _majorise(
    distances: Points,
    pivots: NDArray[np.int64],
    links: NDArray[np.int64] | None,
    positions: Points,
    rounds: int,
) -> Points:
    """Minimise the stress of neighbours, and of nodes and pivots, by majorisation; return the positions.

    A pivot stands for all nodes nearest to it.

    Args:
        distances: Float array of shape ``(pivots, nodes)``.
        pivots: Nodes with known distances to all nodes.
        links: Pairs of neighbours, in both directions and sorted; None if all nodes are pivots.
        positions: Positions to begin with.
        rounds: Largest number of rounds.
    """
    regions = np.bincount(distances.argmin(axis=0), minlength=len(pivots))
    away = distances.T
    with np.errstate(divide="ignore"):
        weights = np.where(away > (links is not None), regions / away**2, 0)
    weighted = weights * away
    total = weights.sum(axis=1, keepdims=True)
    if links is not None:
        heads, tails = links.T
        degrees = np.bincount(heads)
        firsts = np.cumsum(degrees) - degrees
        total += degrees[:, None]
    for _ in range(rounds):
        ends = positions[pivots]
        squares = (positions**2).sum(axis=1)[:, None] + (ends**2).sum(axis=1) - 2 * (positions @ ends.T)
        ratio = weighted / np.sqrt(np.maximum(squares, 1e-18))
        pull = weights @ ends + ratio.sum(axis=1, keepdims=True) * positions - ratio @ ends
        if links is not None:
            steps = positions[heads] - positions[tails]
            pull += np.add.reduceat(positions[tails] + steps / np.maximum(np.hypot(*steps.T), 1e-9)[:, None], firsts)
        moved = pull / total
        change = np.abs(moved - positions).max()
        positions = moved
        if change < _TOLERANCE * distances.max():
            break
    return positions


def _far_apart(local: Sequence[Sequence[int]], count: int) -> NDArray[np.int64]:
    """Return ``count`` nodes: the first one, and then each as far as possible from those before it."""
    pivots = [0]
    nearest = _distances(local, 0)
    while len(pivots) < count:
        pivots.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _distances(local, pivots[-1]))
    return np.array(pivots)


def _distances(local: Sequence[Sequence[int]], start: int) -> Points:
    distance = [-1] * len(local)
    distance[start] = 0
    queue = [start]
    for node in queue:
        for neighbour in local[node]:
            if distance[neighbour] < 0:
                distance[neighbour] = distance[node] + 1
                queue.append(neighbour)
    return np.array(distance, dtype=np.float64)


def _pivot_positions(distances: Points) -> Points:
    squares = distances.T**2
    centred = -0.5 * (squares - squares.mean(0) - squares.mean(1, keepdims=True) + squares.mean())
    _, vectors = np.linalg.eigh(centred.T @ centred)
    positions = centred @ vectors[:, -2:]
    if positions.shape[1] < 2:
        positions = np.concatenate([positions, np.zeros((len(positions), 2 - positions.shape[1]))], axis=1)
    spread = np.abs(positions).max(axis=0)
    result: Points = positions / np.where(spread > 0, spread, 1) * (distances.max() / 2)
    return result


def _side_by_side(count: int, components: Sequence[tuple[Sequence[int], Points]]) -> Points:
    """Put the components into rows of about the same width, single nodes in rows below."""
    gap = 1.0
    boxes = [positions.max(axis=0) - positions.min(axis=0) + gap for _, positions in components]
    target = max(math.sqrt(sum(float(b[0] * b[1]) for b in boxes)) * 1.3, max((float(b[0]) for b in boxes), default=0))
    result = np.zeros((count, 2))
    x = y = tallest = 0.0
    for (component, positions), box in zip(components, boxes, strict=True):
        if x and (x + box[0] > target or (len(component) == 1 and tallest > gap)):
            x, y, tallest = 0.0, y - tallest, 0.0
        result[list(component)] = positions - [positions[:, 0].min(), positions[:, 1].max()] + [x, y]
        x, tallest = x + float(box[0]), max(tallest, float(box[1]))
    return result
