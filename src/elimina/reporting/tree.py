"""The junction tree of a plan's order as a drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.model import Model
from elimina.planning.plan import Plan, count_text
from elimina.reporting.drawing import Colouring, Drawing, on_page
from elimina.reporting.markup import name_of, short
from elimina.tree import Clique, junction_tree, plan_tree
from elimina.viz.tidy import tidy_layout

_MOST_CLIQUES = 5000
_MOST_TIDY = 150
"""Cliques of a tree that is drawn from the root down; larger ones spread in all directions."""

_MOST_LEVELS = 25
_MOST_NAMES, _FEW_NAMES = 40, 8
_LABEL = 3
_SMALLEST = 0.5


def draw_tree(plan: Plan, model: Model) -> Drawing:
    """Return the junction tree of a plan's order, without what is observed, rooted where it has the fewest levels.

    Args:
        plan: Plan that eliminates at least one variable.
        model: Its model, which names the variables.
    """
    whole = plan.whole
    domains = {v: size for factor in whole.factors for v, size in zip(factor.scope, factor.sizes, strict=True)}
    sizes = [domains.get(v, 1) for v in range(1 + max((*whole.order, *whole.kept)))]
    planned = plan_tree([factor.scope for factor in whole.factors if factor.scope], sizes, whole.order, whole.kept)
    all_cliques = junction_tree(planned)
    scopes = [clique.scope for clique in all_cliques]
    all_cliques = junction_tree(plan_tree(scopes, sizes, planned.central_order(), whole.kept))
    cliques = _nearest(all_cliques)
    digits = [math.fsum(math.log10(sizes[v]) for v in clique.scope) for clique in cliques]
    parents = [clique.parent for clique in cliques]
    edges = [(parent, number) for number, parent in enumerate(parents) if parent >= 0]
    places = tree_places(parents)
    largest = max(digits)
    title = f"Junction tree of {len(cliques):,} cliques, the largest of {count_text(round(10**largest))} cells"
    if len(cliques) < len(all_cliques):
        title += f"; {len(all_cliques) - len(cliques):,} cliques far from the root are left out"
    listed = _MOST_NAMES if len(cliques) <= 1000 else _FEW_NAMES
    most = max(len(clique.scope) for clique in cliques)
    names = [[name_of(model, v) for v in sorted(clique.scope)] for clique in cliques]
    return Drawing(
        "tree",
        title + "; areas grow with the logarithm of the cells",
        [_label(members) for members in names],
        places,
        edges,
        sizes=[math.sqrt(max(size, _SMALLEST)) for size in digits],
        details=[_details(sizes, clique, members, listed) for clique, members in zip(cliques, names, strict=True)],
        members=[members[:listed] for members in names],
        colourings=[
            Colouring(
                "cells",
                [round(size / (largest or 1.0), 4) for size in digits],
                ("1", count_text(round(10**largest))),
                True,
            ),
            Colouring("variables", [round(len(one.scope) / most, 4) for one in cliques], ("0", str(most)), True),
        ],
        noun="clique",
    )


def tree_places(parents: Sequence[int]) -> NDArray[np.float64]:
    """Return places of a tree's nodes: from the top down, or around the root if it is large.

    Args:
        parents: Each node's parent, which comes before it; -1 for a root.
    """
    count = len(parents)
    levels = [0] * count
    leaves = [0] * count
    children: list[list[int]] = [[] for _ in parents]
    roots: list[int] = []
    for node, parent in enumerate(parents):
        (roots if parent < 0 else children[parent]).append(node)
        levels[node] = levels[parent] + 1 if parent >= 0 else 0
    if count <= _MOST_TIDY and max(levels) <= _MOST_LEVELS:
        x, levels = tidy_layout(parents, [1.0] * count)
        places = np.stack([x, -1.0 * np.array(levels)], axis=1)
        return places * on_page(places)
    for node in reversed(range(count)):
        leaves[node] = max(leaves[node], 1)
        if parents[node] >= 0:
            leaves[parents[node]] += leaves[node]
    starts = [0.0] * count
    at = 0.0
    for root in roots:
        starts[root] = at
        at += leaves[root]
    for node in range(count):
        inner = starts[node]
        for child in children[node]:
            starts[child] = inner
            inner += leaves[child]
    angles = np.array([start + own / 2 for start, own in zip(starts, leaves, strict=True)]) * (2 * np.pi / at)
    # Several roots stand around a centre that is not drawn.
    radii = (np.array(levels) + (1 if len(roots) > 1 else 0)) ** 0.85
    return np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=1)


def _label(names: Sequence[str]) -> str:
    few = ", ".join(short(name, 16) for name in names[:_LABEL])
    return few if len(names) <= _LABEL else f"{few} +{len(names) - _LABEL}"


def _details(sizes: Sequence[int], clique: Clique, names: Sequence[str], most: int) -> list[tuple[str, float | None]]:
    cells = math.prod(sizes[v] for v in clique.scope)
    lines = [f"{len(clique.scope):,} variables, {count_text(cells)} cells"]
    if clique.parent >= 0:
        shared = math.prod(sizes[v] for v in clique.separator)
        lines.append(f"separator: {len(clique.separator):,} variables, {count_text(shared)} cells")
    few = ", ".join(names[:most])
    lines.append(few if len(names) <= most else f"{few} and {len(names) - most:,} more")
    return [(line, None) for line in lines]


def _nearest(cliques: Sequence[Clique]) -> list[Clique]:
    """Return the cliques that are nearest to the roots, roots first."""
    children: list[list[int]] = [[] for _ in cliques]
    queue: list[int] = []
    for number, clique in enumerate(cliques):
        (queue if clique.parent < 0 else children[clique.parent]).append(number)
    del queue[_MOST_CLIQUES:]
    for number in queue:
        queue += children[number][: max(_MOST_CLIQUES - len(queue), 0)]
    place = {number: n for n, number in enumerate(queue)}
    return [cliques[number]._replace(parent=place.get(cliques[number].parent, -1)) for number in queue]
