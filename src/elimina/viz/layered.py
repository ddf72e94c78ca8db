"""Layered drawings of directed acyclic graphs (Sugiyama, Tagawa, Toda, 1981).

Variables are put on layers, edges over several layers get a bend on each, layers are sorted by the medians of their
neighbours (Gansner, Koutsofios, North, Vo, 1993, section 3), and places are the least squares that keep nodes apart.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    height = _heights(children, parents)
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


def _heights(children: Sequence[set[int]], parents: Sequence[set[int]]) -> list[int]:
    """Return the number of edges on the longest path down from each node."""
    waiting = [len(c) for c in children]
    order = [v for v, n in enumerate(waiting) if not n]
    heights = [0] * len(children)
    for v in order:
        for parent in parents[v]:
            heights[parent] = max(heights[parent], heights[v] + 1)
            waiting[parent] -= 1
            if not waiting[parent]:
                order.append(parent)
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
    """Return all nodes, neighbours soon after one another: a first order of the layers."""
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
    """Return places along the layers: each row in turn goes as near to its neighbours as the spans allow."""
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


def is_acyclic(count: int, edges: Sequence[Edge]) -> bool:
    """Return whether no directed cycle exists."""
    waiting = [0] * count
    children: list[list[int]] = [[] for _ in range(count)]
    for tail, head in edges:
        waiting[head] += 1
        children[tail].append(head)
    done = [v for v in range(count) if not waiting[v]]
    for v in done:
        for child in children[v]:
            waiting[child] -= 1
            if not waiting[child]:
                done.append(child)
    return len(done) == count
