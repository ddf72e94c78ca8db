"""Layers of directed acyclic graphs (Sugiyama, Tagawa, Toda, 1981), from the top down.

Edges over several layers get a bend on each, layers are sorted by the medians of their neighbours (Gansner, Koutsofios,
North, Vo, 1993, section 3), and positions come from least squares under the condition that nodes stay apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import numpy as np

from elimina.viz.diagram import Edge, GraphLayout, Points

_SORTING_ROUNDS = 24
_PLACING_ROUNDS = 60
_STRAIGHTNESS = 8.0
"""Pull of a segment between two bends, relative to one between two nodes."""


def layered_layout(count: int, edges: Sequence[Edge], widths: Sequence[float], row_limit: int) -> GraphLayout:
    """Lay a directed acyclic graph out, from the top down; its layers have the ordinates 0, -1, -2, ...

    Args:
        count: Number of nodes.
        edges: Pairs (tail, head).
        widths: Width of each node, the gap to the next one included.
        row_limit: Largest number of nodes of a layer, bends of edges not counted.
    """
    layers = assign_layers(count, edges, row_limit)
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
    return GraphLayout(points[:count], [points[chain[1:-1]] for chain in chains], is_downward=True)


def assign_layers(count: int, edges: Sequence[Edge], row_limit: int) -> list[int]:
    """Return the layer of each node: heads are below tails, with few nodes on a layer (Coffman, Graham, 1972).

    Nodes with more outgoing than incoming edges then move down as far as these edges and the limit allow.
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
    layer_sizes: list[int] = []
    while ready:
        ready.sort(key=lambda v: (-height[v], v))
        row_nodes, ready = ready[:row_limit], ready[row_limit:]
        for v in row_nodes:
            layers[v] = len(layer_sizes)
            for child in sorted(children[v]):
                waiting[child] -= 1
                if not waiting[child]:
                    ready.append(child)
        layer_sizes.append(len(row_nodes))
    for v in sorted(range(count), key=lambda v: -layers[v]):
        # If a node has more outgoing than incoming edges, each further layer down makes all of its edges together
        # shorter.
        if len(children[v]) > len(parents[v]):
            lowest = min(layers[child] for child in children[v]) - 1
            free = [row for row in range(lowest, layers[v], -1) if layer_sizes[row] < row_limit]
            if free:
                layer_sizes[layers[v]] -= 1
                layers[v] = free[0]
                layer_sizes[free[0]] += 1
    occupied = {row: i for i, row in enumerate(sorted(set(layers)))}
    return [occupied[row] for row in layers]


def _heights(children: Sequence[set[int]]) -> list[int]:
    """Return the number of edges on the longest path down from each node."""
    heights = [0] * len(children)
    for v in TopologicalSorter(dict(enumerate(children))).static_order():  # children come before their parents
        heights[v] = max((heights[child] + 1 for child in children[v]), default=0)
    return heights


def _with_bends(layers: Sequence[int], edges: Sequence[Edge]) -> tuple[list[list[int]], list[int]]:
    """Return the nodes and bends along each edge, and the layer of each bend; bends are numbered after the nodes."""
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
    """Return all nodes in depth-first order, which is their first order within the layers."""
    is_visited = [False] * total
    order = []
    for start in sorted(range(total), key=lambda v: len(up[v])):
        stack = [start]
        while stack:
            node = stack.pop()
            if not is_visited[node]:
                is_visited[node] = True
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
            position = {v: float(i) for i, v in enumerate(fixed)}
            scale = len(fixed) / max(len(rows[level]), 1)
            # A node without neighbours in the fixed row keeps its place.
            key = {v: _median([position[u] for u in neighbours[v]], i * scale) for i, v in enumerate(rows[level])}
            rows[level].sort(key=key.__getitem__)
        crossings = _crossings(rows, down)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _median(positions: list[float], otherwise: float) -> float:
    """Return the weighted median of Gansner et al., figure 3-2; ``otherwise`` if there are no positions."""
    if not positions:
        return otherwise
    positions.sort()
    half = len(positions) // 2
    if len(positions) % 2:
        return positions[half]
    if len(positions) == 2:
        return (positions[0] + positions[1]) / 2
    left, right = positions[half - 1] - positions[0], positions[-1] - positions[half]
    if left + right == 0:
        return (positions[half - 1] + positions[half]) / 2
    return (positions[half - 1] * right + positions[half] * left) / (left + right)


def _crossings(rows: Sequence[Sequence[int]], down: Sequence[Sequence[int]]) -> int:
    """Return the number of pairs of segments that cross, by counting inversions."""
    total = 0
    for upper, lower in pairwise(rows):
        position = {v: i for i, v in enumerate(lower)}
        ends = np.array([end for v in upper for end in sorted(position[u] for u in down[v])], dtype=np.int64)
        counts = np.zeros(len(lower) + 1, dtype=np.int64)
        for i, end in enumerate(ends.tolist()):
            total += i - int(counts[: end + 1].sum())
            counts[end] += 1
    return total


def _abscissas(
    rows: Sequence[Sequence[int]],
    up: Sequence[Sequence[int]],
    down: Sequence[Sequence[int]],
    spans: Points,
    count: int,
) -> Points:
    """Return positions along the layers; nodes move as close to their neighbours as the widths in their layer allow."""
    x = np.zeros(len(spans))
    offsets = []
    for row in rows:
        span = spans[list(row)]
        offsets.append(np.cumsum(span) - span / 2)
        x[list(row)] = offsets[-1] - (span.sum() / 2)
    for sweep in range(_PLACING_ROUNDS):
        uses_both_sides = sweep >= _PLACING_ROUNDS // 3
        for level in range(len(rows)) if sweep % 2 == 0 else range(len(rows) - 1, -1, -1):
            row = rows[level]
            targets, weight = np.empty(len(row)), np.empty(len(row))
            for i, v in enumerate(row):
                neighbours = [*up[v], *down[v]] if uses_both_sides else (up[v] if sweep % 2 == 0 else down[v])
                pulls = [_STRAIGHTNESS if v >= count and u >= count else 1.0 for u in neighbours]
                weight[i] = sum(pulls) or 0.01
                targets[i] = (
                    sum(p * x[u] for p, u in zip(pulls, neighbours, strict=True)) / weight[i] if neighbours else x[v]
                )
            x[list(row)] = isotonic(targets - offsets[level], weight) + offsets[level]
    return x


def isotonic(values: Points, weights: Points) -> Points:
    """Return the non-decreasing sequence nearest to the values by weighted least squares (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, mass, size = value, weight, 1
        while blocks and blocks[-1][0] > mean:
            previous_mean, heavy, long = blocks.pop()
            mean, mass, size = (mean * mass + previous_mean * heavy) / (mass + heavy), mass + heavy, size + long
        blocks.append((mean, mass, size))
    return np.repeat([mean for mean, _, _ in blocks], [size for _, _, size in blocks])


def is_acyclic(edges: Iterable[Edge]) -> bool:
    """Return whether a directed graph has no cycle."""
    graph: TopologicalSorter[int] = TopologicalSorter()
    for tail, head in edges:
        graph.add(head, tail)
    try:
        graph.prepare()
    except CycleError:
        return False
    return True


def straightened(layout: GraphLayout, edges: Sequence[Edge], widths: Points, row: float, height: float) -> GraphLayout:
    """Return a layered layout without the bends that are not needed to go round a box.

    Args:
        layout: Layers whose ordinates are multiples of the row.
        edges: Pairs (tail, head).
        widths: Width of each box, with its margin.
        row: Distance between layers.
        height: Height of a box.
    """
    positions = layout.positions
    levels = np.rint(-positions[:, 1] / row).astype(int)
    boxes: dict[int, tuple[Points, Points]] = {}
    for level in set(levels.tolist()):
        boxes_of_level = np.flatnonzero(levels == level)
        boxes_of_level = boxes_of_level[np.argsort(positions[boxes_of_level, 0])]
        boxes[level] = (
            positions[boxes_of_level, 0] - widths[boxes_of_level] / 2,
            positions[boxes_of_level, 0] + widths[boxes_of_level] / 2,
        )

    def is_clear(start: Points, end: Points) -> bool:
        slope = (end[0] - start[0]) / (end[1] - start[1])
        first, last = (round(-y / row) for y in (start[1], end[1]))
        for level in range(first + 1, last):
            x, reach = start[0] + slope * (-level * row - start[1]), abs(slope) * height / 2
            left, right = boxes[level]
            if np.searchsorted(right, x - reach) != np.searchsorted(left, x + reach):
                return False
        return True

    bends = []
    for (tail, head), bend in zip(edges, layout.bends, strict=True):
        stops = np.concatenate([positions[tail][None], bend, positions[head][None]])
        stays = [0]
        while stays[-1] < len(stops) - 1:
            at = stays[-1]
            ahead = range(len(stops) - 1, at, -1)
            stays.append(next(to for to in ahead if to == at + 1 or is_clear(stops[at], stops[to])))
        bends.append(stops[stays[1:-1]])
    return layout._replace(bends=bends)
