"""Layouts of graphs: layers for directed ones, distances for undirected ones, and tidy trees.

Layered drawings (Sugiyama, Tagawa, Toda, 1981): variables are put on layers, edges over several layers get a bend on
each, layers are sorted by the medians of their neighbours (Gansner, Koutsofios, North, Vo, 1993, section 3), and places
are the least squares that keep nodes apart. Undirected graphs: distances match the numbers of edges between nodes. Tidy
trees (Reingold, Tilford, 1981): equal subtrees look equal, parents stand over their children.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Edge = tuple[int, int]

_SORTING_ROUNDS = 24
_PLACING_ROUNDS = 60
_STRAIGHTNESS = 8.0
"""Pull of a segment between two bends, relative to one between two nodes."""


class Layered(NamedTuple):
    """Places of nodes and courses of edges.

    Attributes:
        places: Float array of shape ``(nodes, 2)``; layers have the ordinates 0, -1, -2, ...
        bends: Points between the ends of each edge, from the tail on.
    """

    places: NDArray[np.float64]
    bends: list[NDArray[np.float64]]


def layered_layout(count: int, edges: Sequence[Edge], widths: Sequence[float], most: int) -> Layered:
    """Lay a directed acyclic graph out, from the top down.

    Args:
        count: Number of nodes.
        edges: Pairs (tail, head).
        widths: Width of each node, the gap to the next one included.
        most: Nodes that a layer may hold before the next one begins.
    """
    layers = assign_layers(count, edges, most)
    chains, levels = _with_bends(layers, edges)
    level_of = np.concatenate([np.asarray(layers), np.asarray(levels, dtype=np.int64)]).astype(int)
    total = count + len(levels)
    up: list[list[int]] = [[] for _ in range(total)]
    down: list[list[int]] = [[] for _ in range(total)]
    for chain in chains:
        for a, b in pairwise(chain):
            down[a].append(b)
            up[b].append(a)
    rows: list[list[int]] = [[] for _ in range(int(level_of.max(initial=-1)) + 1)]
    for node in _depth_first(total, up, down):
        rows[level_of[node]].append(node)
    rows = _sorted_rows(rows, up, down)
    spans = np.concatenate([np.asarray(widths, dtype=float), np.full(len(levels), min(widths, default=1.0) / 3)])
    x = _abscissas(rows, up, down, spans, count)
    points = np.stack([x, -level_of.astype(float)], axis=1)
    return Layered(points[:count], [points[chain[1:-1]] for chain in chains])


def assign_layers(count: int, edges: Sequence[Edge], most: int) -> list[int]:
    """Layer of each node, heads below tails, at most ``most`` nodes on each (Coffman, Graham, 1972).

    Then nodes move down to where their edges are shortest, if the layer there has a place left.
    """
    parents: list[set[int]] = [set() for _ in range(count)]
    children: list[set[int]] = [set() for _ in range(count)]
    for tail, head in edges:
        parents[head].add(tail)
        children[tail].add(head)
    height = _heights(children)
    waiting = [len(p) for p in parents]
    ready = [v for v in range(count) if not waiting[v]]
    layers = [0] * count
    used: list[int] = []
    while ready:
        ready.sort(key=lambda v: (-height[v], v))
        chosen, ready = ready[:most], ready[most:]
        for v in chosen:
            layers[v] = len(used)
            for child in sorted(children[v]):
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        used.append(len(chosen))
    for v in sorted(range(count), key=lambda v: -layers[v]):
        # Where more edges leave a node than enter it, each layer further down makes them shorter.
        if len(children[v]) > len(parents[v]):
            lowest = min(layers[child] for child in children[v]) - 1
            free = [row for row in range(lowest, layers[v], -1) if used[row] < most]
            if free:
                used[layers[v]] -= 1
                layers[v] = free[0]
                used[free[0]] += 1
    occupied = {row: i for i, row in enumerate(sorted(set(layers)))}
    return [occupied[row] for row in layers]


def _heights(children: Sequence[set[int]]) -> list[int]:
    """Return the number of edges on the longest path down from each node."""
    heights = [0] * len(children)
    for v in TopologicalSorter(dict(enumerate(children))).static_order():  # children come before their parents
        heights[v] = max((heights[child] + 1 for child in children[v]), default=0)
    return heights


def _with_bends(layers: Sequence[int], edges: Sequence[Edge]) -> tuple[list[list[int]], list[int]]:
    """Return the nodes and bends along each edge, and the layer of each bend (bends are numbered after the nodes)."""
    levels: list[int] = []
    chains = []
    for tail, head in edges:
        chain = [tail]
        for level in range(layers[tail] + 1, layers[head]):
            chain.append(len(layers) + len(levels))
            levels.append(level)
        chains.append([*chain, head])
    return chains, levels


def _depth_first(total: int, up: Sequence[Sequence[int]], down: Sequence[Sequence[int]]) -> list[int]:
    """Return all nodes in depth-first order, the first order of the layers."""
    seen = [False] * total
    order = []
    for start in sorted(range(total), key=lambda v: len(up[v])):
        stack = [start]
        while stack:
            node = stack.pop()
            if not seen[node]:
                seen[node] = True
                order.append(node)
                stack += [*down[node][::-1], *up[node][::-1]]
    return order


def _sorted_rows(rows: list[list[int]], up: Sequence[Sequence[int]], down: Sequence[Sequence[int]]) -> list[list[int]]:
    best, fewest = [list(row) for row in rows], _crossings(rows, down)
    for sweep in range(_SORTING_ROUNDS):
        downwards = sweep % 2 == 0
        neighbours = up if downwards else down
        for level in range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1):
            fixed = rows[level - 1 if downwards else level + 1]
            place = {v: float(i) for i, v in enumerate(fixed)}
            scale = len(fixed) / max(len(rows[level]), 1)
            # A node without neighbours there keeps its place in the row.
            key = {v: _median([place[u] for u in neighbours[v]], i * scale) for i, v in enumerate(rows[level])}
            rows[level].sort(key=key.__getitem__)
        crossings = _crossings(rows, down)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _median(places: list[float], otherwise: float) -> float:
    """Return the weighted median of Gansner et al., figure 3-2."""
    if not places:
        return otherwise
    places.sort()
    half = len(places) // 2
    if len(places) % 2:
        return places[half]
    if len(places) == 2:
        return (places[0] + places[1]) / 2
    left, right = places[half - 1] - places[0], places[-1] - places[half]
    if left + right == 0:
        return (places[half - 1] + places[half]) / 2
    return (places[half - 1] * right + places[half] * left) / (left + right)


def _crossings(rows: Sequence[Sequence[int]], down: Sequence[Sequence[int]]) -> int:
    """Return the number of pairs of segments that cross, by counting inversions."""
    total = 0
    for upper, lower in pairwise(rows):
        place = {v: i for i, v in enumerate(lower)}
        ends = np.array([end for v in upper for end in sorted(place[u] for u in down[v])], dtype=np.int64)
        counts = np.zeros(len(lower) + 1, dtype=np.int64)
        for i, end in enumerate(ends.tolist()):
            total += i - int(counts[: end + 1].sum())
            counts[end] += 1
    return total


def _abscissas(
    rows: Sequence[Sequence[int]],
    up: Sequence[Sequence[int]],
    down: Sequence[Sequence[int]],
    spans: NDArray[np.float64],
    count: int,
) -> NDArray[np.float64]:
    """Return positions along the layers; each row moves as close to its neighbours as the spans allow."""
    x = np.zeros(len(spans))
    offsets = []
    for row in rows:
        span = spans[list(row)]
        offsets.append(np.cumsum(span) - span / 2)
        x[list(row)] = offsets[-1] - (span.sum() / 2)
    for sweep in range(_PLACING_ROUNDS):
        both = sweep >= _PLACING_ROUNDS // 3
        for level in range(len(rows)) if sweep % 2 == 0 else range(len(rows) - 1, -1, -1):
            row = rows[level]
            wanted, weight = np.empty(len(row)), np.empty(len(row))
            for i, v in enumerate(row):
                near = [*up[v], *down[v]] if both else (up[v] if sweep % 2 == 0 else down[v])
                pulls = [_STRAIGHTNESS if v >= count and u >= count else 1.0 for u in near]
                weight[i] = sum(pulls) or 0.01
                wanted[i] = sum(p * x[u] for p, u in zip(pulls, near, strict=True)) / weight[i] if near else x[v]
            x[list(row)] = isotonic(wanted - offsets[level], weight) + offsets[level]
    return x


def isotonic(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the non-decreasing sequence of the least weighted squares to the values (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, mass, size = value, weight, 1
        while blocks and blocks[-1][0] > mean:
            before, heavy, long = blocks.pop()
            mean, mass, size = (mean * mass + before * heavy) / (mass + heavy), mass + heavy, size + long
        blocks.append((mean, mass, size))
    return np.repeat([mean for mean, _, _ in blocks], [size for _, _, size in blocks])


def is_acyclic(edges: Iterable[Edge]) -> bool:
    """Return whether no directed cycle exists."""
    graph: TopologicalSorter[int] = TopologicalSorter()
    for tail, head in edges:
        graph.add(head, tail)
    try:
        graph.prepare()
    except CycleError:
        return False
    return True


_PIVOTS = 50
_ROUNDS, _SPARSE_ROUNDS = 120, 60
_MOST_BY_STRESS = 400
"""Nodes of a part from which on distances to pivots alone count: those of all pairs take the square of the nodes."""

_TOLERANCE = 1e-4

Places = NDArray[np.float64]


def stress_layout(count: int, edges: Sequence[tuple[int, int]]) -> Places:
    """Return places of the nodes, a float array of shape ``(nodes, 2)``; an edge is about 1 long.

    Connected parts stand side by side. Each begins with pivots (Brandes, Pich, 2007, "Eigensolver methods for
    progressive multidimensional scaling of large data") and minimises the stress by majorisation (Gansner, Koren,
    North, 2004, "Graph drawing by stress majorization"): of all pairs, or in parts of over 400 nodes of neighbours, and
    of nodes and pivots (Ortmann, Klimenta, Brandes, 2016, "A sparse stress model").

    Args:
        count: Number of nodes.
        edges: Pairs of nodes.
    """
    neighbours = neighbours_of(count, edges)
    rng = np.random.default_rng(0)
    parts = _components(neighbours)
    return _side_by_side(count, [(part, _part_layout(part, neighbours, rng)) for part in parts])


def neighbours_of(count: int, edges: Iterable[Edge]) -> list[list[int]]:
    """Return the nodes that each node shares an edge with."""
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    return neighbours


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
    all_pairs = n <= _MOST_BY_STRESS
    pivots = np.arange(n) if all_pairs else _far_apart(local, _PIVOTS)
    distances = np.stack([_distances(local, s) for s in pivots])
    start = _pivot_places(distances[:: max(len(distances) // _PIVOTS, 1)]) + rng.normal(scale=0.05, size=(n, 2))
    if all_pairs:
        return _majorise(distances, pivots, None, start, _ROUNDS)
    links = np.array([(v, u) for v, near in enumerate(local) for u in near])
    return _majorise(distances, pivots, links, start, _SPARSE_ROUNDS)


def _majorise(
    distances: NDArray[np.float64],
    pivots: NDArray[np.int64],
    links: NDArray[np.int64] | None,
    places: Places,
    rounds: int,
) -> Places:
    """Majorise the stress of neighbours, and of nodes and pivots, each for all nodes nearest to it.

    Args:
        distances: Float array of shape ``(pivots, nodes)``.
        pivots: Nodes.
        links: Pairs of neighbours, in both directions and sorted; None where all nodes are pivots.
        places: Places to begin with.
        rounds: Most rounds.
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
        ends = places[pivots]
        squares = (places**2).sum(axis=1)[:, None] + (ends**2).sum(axis=1) - 2 * (places @ ends.T)
        ratio = weighted / np.sqrt(np.maximum(squares, 1e-18))
        pull = weights @ ends + ratio.sum(axis=1, keepdims=True) * places - ratio @ ends
        if links is not None:
            steps = places[heads] - places[tails]
            pull += np.add.reduceat(places[tails] + steps / np.maximum(np.hypot(*steps.T), 1e-9)[:, None], firsts)
        moved = pull / total
        change = np.abs(moved - places).max()
        places = moved
        if change < _TOLERANCE * distances.max():
            break
    return places


def _far_apart(local: Sequence[Sequence[int]], count: int) -> NDArray[np.int64]:
    """Return nodes of which each is as far as possible from those before it."""
    chosen = [0]
    nearest = _distances(local, 0)
    while len(chosen) < count:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _distances(local, chosen[-1]))
    return np.array(chosen)


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


def tidy_layout(parents: Sequence[int], widths: Sequence[float]) -> tuple[NDArray[np.float64], list[int]]:
    """Return abscissas (float array of shape ``(nodes,)``) and the level of each node, the roots' being 0.

    Args:
        parents: Each node's parent; -1 for a root. Several roots stand side by side.
        widths: Width of each node, the gap to the next one included.
    """
    children: list[list[int]] = [[] for _ in parents]
    roots: list[int] = []
    for node, parent in enumerate(parents):
        (children[parent] if parent >= 0 else roots).append(node)
    levels = [0] * len(parents)
    order = list(roots)
    for node in order:
        for child in children[node]:
            levels[child] = levels[node] + 1
            order.append(child)
    shift = np.zeros(len(parents))
    outlines: dict[int, tuple[list[float], list[float]]] = {}
    for node in reversed(order):
        below = _pack([outlines.pop(child) for child in children[node]], children[node], shift)
        middle = float(shift[children[node][0]] + shift[children[node][-1]]) / 2 if children[node] else 0.0
        shift[children[node]] -= middle
        half = widths[node] / 2
        outlines[node] = ([-half, *(x - middle for x in below[0])], [half, *(x - middle for x in below[1])])
    _pack([outlines[root] for root in roots], roots, shift)
    for node in order:
        if parents[node] >= 0:
            shift[node] += shift[parents[node]]
    return shift, levels


def _pack(
    outlines: Sequence[tuple[list[float], list[float]]], nodes: Sequence[int], shift: NDArray[np.float64]
) -> tuple[list[float], list[float]]:
    """Push subtrees together from the left, and return their common left and right outlines, level by level."""
    left: list[float] = []
    right: list[float] = []
    for (own_left, own_right), node in zip(outlines, nodes, strict=True):
        place = max((r - mine for r, mine in zip(right, own_left, strict=False)), default=0.0)
        shift[node] = place
        left += [x + place for x in own_left[len(left) :]]
        right = [x + place for x in own_right] + right[len(own_right) :]
    return left, right
