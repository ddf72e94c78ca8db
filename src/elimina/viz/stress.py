"""Drawings of undirected graphs in which distances match the numbers of edges between nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_PIVOTS = 50
_ROUNDS, _SPARSE_ROUNDS = 120, 60
_MOST_BY_STRESS = 400
"""Nodes of a part from which on distances to pivots alone count: those of all pairs take the square of the nodes."""

_TOLERANCE = 1e-4

Places = NDArray[np.float64]


def stress_layout(count: int, edges: Sequence[tuple[int, int]], seed: int = 0) -> Places:
    """Return places of the nodes, a float array of shape ``(nodes, 2)``; an edge is about 1 long.

    Connected parts stand side by side. Each begins with pivots (Brandes, Pich, 2007, "Eigensolver methods for
    progressive multidimensional scaling of large data") and minimises the stress by majorisation (Gansner, Koren,
    North, 2004, "Graph drawing by stress majorization"): of all pairs, or in parts of over 400 nodes of neighbours, and
    of nodes and pivots (Ortmann, Klimenta, Brandes, 2016, "A sparse stress model").

    Args:
        count: Number of nodes.
        edges: Pairs of nodes.
        seed: Random seed of the small displacements that keep nodes of equal distances apart.
    """
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    rng = np.random.default_rng(seed)
    parts = _components(neighbours)
    return _side_by_side(count, [(part, _part_layout(part, neighbours, rng)) for part in parts])


def _components(neighbours: Sequence[Sequence[int]]) -> list[list[int]]:
    seen = [False] * len(neighbours)
    parts = []
    for start in range(len(neighbours)):
        if not seen[start]:
            seen[start] = True
            part = [start]
            for node in part:
                for other in neighbours[node]:
                    if not seen[other]:
                        seen[other] = True
                        part.append(other)
            parts.append(part)
    return sorted(parts, key=len, reverse=True)


def _part_layout(part: Sequence[int], neighbours: Sequence[Sequence[int]], rng: np.random.Generator) -> Places:
    n = len(part)
    if n == 1:
        return np.zeros((1, 2))
    place = {v: i for i, v in enumerate(part)}
    local = [[place[u] for u in neighbours[v]] for v in part]
    sources = range(n) if n <= _MOST_BY_STRESS else _far_apart(local, _PIVOTS)
    distances = np.stack([_distances(local, s) for s in sources])
    start = _pivot_places(distances[:: max(len(distances) // _PIVOTS, 1)]) + rng.normal(scale=0.05, size=(n, 2))
    if n <= _MOST_BY_STRESS:
        return _majorise(distances, start)
    links = np.array([(v, u) for v, near in enumerate(local) for u in near])
    return _majorise_sparsely(distances, np.array(sources), links, start)


def _majorise_sparsely(
    distances: NDArray[np.float64], pivots: NDArray[np.int64], links: NDArray[np.int64], places: Places
) -> Places:
    """Majorise the stress of neighbours, and of nodes and pivots, each for all nodes nearest to it.

    Args:
        distances: Float array of shape ``(pivots, nodes)``.
        pivots: Nodes.
        links: Pairs of neighbours, in both directions.
        places: Places to begin with.
    """
    nearest = distances.argmin(axis=0)
    regions = np.bincount(nearest, minlength=len(pivots)).astype(np.float64)
    away = distances.T
    with np.errstate(divide="ignore"):
        weights = np.where(away > 1, regions / away**2, 0)
    heads, tails = links.T
    total = weights.sum(axis=1) + np.bincount(heads, minlength=len(places))
    for _ in range(_SPARSE_ROUNDS):
        moved = np.empty_like(places)
        gaps = [places[:, axis, None] - places[pivots, axis] for axis in (0, 1)]
        ratio = weights * away / np.maximum(np.hypot(*gaps), 1e-9)
        steps = places[heads] - places[tails]
        lengths = np.maximum(np.hypot(*steps.T), 1e-9)
        for axis in (0, 1):
            pull = weights @ places[pivots, axis] + (ratio * gaps[axis]).sum(axis=1)
            near = places[tails, axis] + steps[:, axis] / lengths
            moved[:, axis] = (pull + np.bincount(heads, near, len(places))) / total
        change = np.abs(moved - places).max()
        places = moved
        if change < _TOLERANCE * distances.max():
            break
    return places


def _far_apart(local: Sequence[Sequence[int]], count: int) -> list[int]:
    """Return nodes of which each is as far as possible from those before it."""
    chosen = [0]
    nearest = _distances(local, 0)
    while len(chosen) < count:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _distances(local, chosen[-1]))
    return chosen


def _distances(local: Sequence[Sequence[int]], start: int) -> NDArray[np.float64]:
    distance = [-1] * len(local)
    distance[start] = 0
    queue = [start]
    for node in queue:
        for other in local[node]:
            if distance[other] < 0:
                distance[other] = distance[node] + 1
                queue.append(other)
    return np.array(distance, dtype=np.float64)


def _pivot_places(distances: NDArray[np.float64]) -> Places:
    squares = distances.T**2
    centred = -0.5 * (squares - squares.mean(0) - squares.mean(1, keepdims=True) + squares.mean())
    _, vectors = np.linalg.eigh(centred.T @ centred)
    places = centred @ vectors[:, -2:]
    if places.shape[1] < 2:
        places = np.concatenate([places, np.zeros((len(places), 2 - places.shape[1]))], axis=1)
    spread = np.abs(places).max(axis=0)
    result: Places = places / np.where(spread > 0, spread, 1) * (distances.max() / 2)
    return result


def _majorise(distances: NDArray[np.float64], places: Places) -> Places:
    """Majorise the stress whose weights are 1 / distance^2, all nodes at once."""
    with np.errstate(divide="ignore"):
        weights = np.where(distances > 0, 1 / distances**2, 0)
    total = weights.sum(axis=1, keepdims=True)
    for _ in range(_ROUNDS):
        norms = (places**2).sum(axis=1)
        lengths = np.sqrt(np.maximum(norms[:, None] + norms - 2 * (places @ places.T), 0))
        ratio = weights * distances / np.maximum(lengths, 1e-9)
        pull = weights @ places + ratio.sum(axis=1, keepdims=True) * places - ratio @ places
        moved = pull / total
        change = np.abs(moved - places).max()
        places = moved
        if change < _TOLERANCE * distances.max():
            break
    return places


def _side_by_side(count: int, parts: Sequence[tuple[Sequence[int], Places]]) -> Places:
    """Put the parts into rows of about the same width, single nodes in rows of their own below."""
    gap = 1.0
    boxes = [places.max(axis=0) - places.min(axis=0) + gap for _, places in parts]
    target = max(math.sqrt(sum(float(b[0] * b[1]) for b in boxes)) * 1.3, max((float(b[0]) for b in boxes), default=0))
    result = np.zeros((count, 2))
    x = y = tallest = 0.0
    for (part, places), box in zip(parts, boxes, strict=True):
        if x and (x + box[0] > target or (len(part) == 1 and tallest > gap)):
            x, y, tallest = 0.0, y - tallest, 0.0
        result[list(part)] = places - [places[:, 0].min(), places[:, 1].max()] + [x, y]
        x, tallest = x + float(box[0]), max(tallest, float(box[1]))
    return result
