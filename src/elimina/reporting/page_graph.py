"""The model's graph with its answer, the junction tree of a plan's order, and tours, as drawings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.cp.tour_problem import TourProblem
from elimina.display import count_text, seconds_text
from elimina.model.model import Model
from elimina.planning.plan import Plan
from elimina.planning.tree import Clique, junction_tree, plan_tree
from elimina.reporting.drawing import (
    Colouring,
    Drawing,
    Markup,
    figures,
    joined,
    name_of,
    on_page,
    paragraph,
    short,
    time_chart,
)
from elimina.result import Bounds, Result, probability_text
from elimina.viz.graph import edges_of
from elimina.viz.layouts import is_acyclic, layered_layout, neighbours_of, stress_layout, tidy_layout

MOST_NODES, MOST_EDGES = 10_000, 40_000
_MOST_LAYERED = 150
"""Variables from which on the long edges of layers cover everything."""

_MOST_CLUSTERS = 8
_ROUNDS = 10
_GAP, _PUSHES, _MOST_PUSHED = 0.55, 30, 2500
"""Distance that nodes are pushed to, where an edge is about 1 long; rounds; nodes whose pairs take about a second."""
_MOST_STATES = 8

Edge = tuple[int, int]


class Layout(NamedTuple):
    """The part of a graph that is drawn, and its places.

    Attributes:
        kept: Variables that are drawn.
        edges: Pairs of places in ``kept``.
        bends: Points between the ends of each edge; none if all edges are straight.
        places: Float array of shape ``(variables drawn, 2)``.
        left_out: Description of what is not drawn.
    """

    kept: list[int]
    edges: list[Edge]
    bends: list[NDArray[np.float64]]
    places: NDArray[np.float64]
    left_out: str


def lay_out(model: Model, first: Sequence[int]) -> Layout:
    """Choose the part of a model's graph to draw, and its places.

    Args:
        model: A model with variables.
        first: Variables that are drawn in any case, if they are not too many: those observed or asked for.
    """
    edges = edges_of(model)
    kept = _kept(len(model.variables), edges, first)
    number = {v: place for place, v in enumerate(kept)}
    shown = [(number[a], number[b]) for a, b in edges if a in number and b in number][:MOST_EDGES]
    bends: list[NDArray[np.float64]] = []
    if model.children is not None and len(kept) <= _MOST_LAYERED and is_acyclic(shown):
        widths = [0.35 + 0.09 * min(len(model.variables[v].name), 16) for v in kept]
        layout = layered_layout(len(kept), shown, widths, max(4, round(1.6 * len(kept) ** 0.5)))
        scale = on_page(layout.places)
        places, bends = layout.places * scale, [bend * scale for bend in layout.bends]
    else:
        places = spread(stress_layout(len(kept), shown))
    left_out = []
    if len(kept) < len(model.variables):
        left_out.append(f"{len(model.variables) - len(kept):,} variables")
    if len(shown) < len(edges):
        left_out.append(f"{len(edges) - len(shown):,} edges")
    return Layout(kept, shown, bends, places, " and ".join(left_out))


def spread(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return places with the longer axis across, which suits a page, and with nodes further apart that coincide."""
    turned: NDArray[np.float64] = places - places.mean(axis=0)
    _, axes = np.linalg.eigh(turned.T @ turned)
    along = turned @ axes[:, ::-1]
    # Parts that stand side by side in rows need more room if the rows run askew.
    if np.ptp(along, axis=0).prod() < np.ptp(turned, axis=0).prod():
        turned = along
    elif np.ptp(turned[:, 1]) > np.ptp(turned[:, 0]):
        turned = turned[:, ::-1].copy()
    if len(turned) <= _MOST_PUSHED:
        for _ in range(_PUSHES):
            steps = [turned[:, axis, None] - turned[:, axis] for axis in (0, 1)]
            away = np.hypot(*steps)
            push = np.where(away < _GAP, 0.4 * (_GAP - away) / np.maximum(away, 1e-6), 0.0)
            turned += np.stack([(push * step).sum(axis=1) for step in steps], axis=1).clip(-_GAP / 2, _GAP / 2)
    return turned * on_page(turned)


def draw_graph(model: Model, layout: Layout, result: Result | None, observed: Sequence[int]) -> Drawing:
    """Return the graph with the answer as colours.

    Args:
        model: Model of the layout.
        layout: Places of the nodes.
        result: Answer, if there is one.
        observed: Variables with evidence.
    """
    kept, edges, bends, places, left_out = layout
    kind = "arrows" if model.children is not None else "edges"
    title = f"Graph of {len(kept):,} variables and {len(edges):,} {kind}"
    title += f"; {left_out} are left out" if left_out else ""
    known = frozenset(observed)
    marked = [place for place, v in enumerate(kept) if v in known]
    if marked:
        title += "; squares are observed"
    return Drawing(
        "graph",
        title,
        [short(model.variables[v].name) for v in kept],
        places,
        edges,
        model.children is not None,
        bends,
        marked=marked,
        details=[_details(model, result, v, v in known) for v in kept],
        colourings=[*_by_answer(model, result, kept), *_by_structure(len(kept), edges)],
    )


def _kept(count: int, edges: Sequence[Edge], first: Sequence[int]) -> list[int]:
    """Return the variables to draw: queried and observed ones, the hub, and variables near them."""
    if count <= MOST_NODES:
        return list(range(count))
    neighbours = neighbours_of(count, edges)
    hubs = sorted(range(count), key=lambda v: -len(neighbours[v]))
    found = dict.fromkeys(first[:MOST_NODES])
    for start in hubs:
        if len(found) >= MOST_NODES:
            break
        found.setdefault(start)
        queue = list(found)
        for node in queue:
            for other in neighbours[node]:
                if other not in found and len(found) < MOST_NODES:
                    found[other] = None
                    queue.append(other)
    return sorted(found)


def _details(model: Model, result: Result | None, v: int, is_observed: bool) -> list[tuple[str, float | None]]:
    variable = model.variables[v]
    lines: list[tuple[str, float | None]] = [(f"{variable.size:,} states{', observed' if is_observed else ''}", None)]
    if result is not None and variable.name in result.marginals:
        pairs = sorted(result.marginals[variable.name].items(), key=lambda pair: -pair[1])
        lines += [(f"{short(state, 40)}: {probability_text(p)}", p) for state, p in pairs[:_MOST_STATES]]
        if len(pairs) > _MOST_STATES:
            lines.append((f"and {len(pairs) - _MOST_STATES:,} states more", None))
    if result is not None and result.assignment is not None and variable.name in result.assignment:
        lines.append((f"assigned {short(result.assignment[variable.name], 40)}", None))
    return lines


def _by_answer(model: Model, result: Result | None, kept: Sequence[int]) -> list[Colouring]:
    if result is None:
        return []
    names = [model.variables[v].name for v in kept]
    found = []
    if result.marginals:
        marginals: Mapping[str, Mapping[Any, float]] = result.marginals
        tops = [max(marginals[name].values()) if name in marginals else None for name in names]
        values = [None if top is None else round(float(top), 4) for top in tops]
        found.append(Colouring("probability of the likeliest state", values, ("0", "1"), True))
    states: list[Any] = []
    if result.assignment is not None:
        states = [result.assignment.get(name) for name in names]
        found.append(_classes("state in the assignment", states))
    elif result.marginals:
        likely = (result.marginals.get(name) for name in names)
        found.append(_classes("likeliest state", [max(one, key=one.__getitem__) if one else None for one in likely]))
    return found


def _classes(name: str, values: Sequence[Any]) -> Colouring:
    """Return a colour for each of the most frequent values, and one for all others."""
    texts = [None if value is None else short(value, 30) for value in values]
    frequent = Counter(text for text in texts if text is not None).most_common(_MOST_CLUSTERS)
    place = {text: n for n, (text, _) in enumerate(frequent)}
    labels = [text for text, _ in frequent]
    if any(text is not None and text not in place for text in texts):
        labels.append("others")
    return Colouring(name, [None if text is None else place.get(text, len(place)) for text in texts], labels)


def _by_structure(count: int, edges: Sequence[Edge]) -> list[Colouring]:
    degrees = np.bincount(np.array(edges, dtype=np.int64).ravel(), minlength=count)
    most = int(degrees.max(initial=1)) or 1
    shares = (np.log1p(degrees) / np.log1p(most)).round(4).tolist()
    found = [Colouring("number of neighbours", shares, ("0", f"{most:,}"), True)]
    if count > _MOST_CLUSTERS:
        own = clusters(count, edges)
        sizes = Counter(own)
        rank = {cluster: n for n, (cluster, _) in enumerate(sizes.most_common())}
        values = [min(rank[one], _MOST_CLUSTERS) for one in own]
        labels = [f"cluster {n + 1} ({size:,})" for n, (_, size) in enumerate(sizes.most_common(_MOST_CLUSTERS))]
        found.append(Colouring("cluster", values, [*labels, "others"] if len(sizes) > _MOST_CLUSTERS else labels))
    return found


def clusters(count: int, edges: Iterable[Edge]) -> list[int]:
    """Return a cluster for each node, by label propagation (Raghavan, Albert, Kumara, 2007) in a fixed order."""
    neighbours = neighbours_of(count, edges)
    labels = list(range(count))
    order = np.random.default_rng(0).permutation(count).tolist()
    for _ in range(_ROUNDS):
        changed = False
        for node in order:
            if neighbours[node]:
                counts = Counter(labels[other] for other in neighbours[node])
                best = max(counts.items(), key=lambda pair: (pair[1], pair[0] == labels[node], -pair[0]))[0]
                changed |= best != labels[node]
                labels[node] = best
        if not changed:
            break
    return labels


_MOST_CLIQUES = 5000
_MOST_TIDY = 150
"""Cliques of a tree that is drawn from the root down; larger ones spread in all directions."""

_MOST_LEVELS = 25
_MOST_NAMES, _FEW_NAMES = 40, 8
_LABEL = 3
_SMALLEST = 0.5


def draw_tree(plan: Plan, model: Model) -> Drawing:
    """Return the junction tree of a plan's order, without observed variables, rooted for the fewest levels.

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
        details=[
            _clique_details(sizes, clique, members, listed) for clique, members in zip(cliques, names, strict=True)
        ],
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


def _clique_details(
    sizes: Sequence[int], clique: Clique, names: Sequence[str], most: int
) -> list[tuple[str, float | None]]:
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


_MOST_CITIES = 20_000
_MOST_LISTED = 1000


def draw_tour(problem: TourProblem, tour: Sequence[int]) -> Drawing | None:
    """Return the tour (cities from 1 on) as a drawing; None if the problem has no coordinates or too many cities."""
    if problem.points is None or problem.cities > _MOST_CITIES:
        return None
    places = np.asarray(problem.points, dtype=np.float64)
    cities = [city - 1 for city in tour]
    edges = [(a, cities[(place + 1) % len(cities)]) for place, a in enumerate(cities)]
    lengths = [int(problem.distances[a, b]) for a, b in edges]
    after = {a: (b, length) for (a, b), length in zip(edges, lengths, strict=True)}
    details: list[list[tuple[str, float | None]]] = []
    for city in range(problem.cities):
        to, length = after[city]
        details.append([(f"to city {to + 1:,}: {length:,}", length / (max(lengths) or 1))])
    names = [f"{city + 1}" for city in range(problem.cities)]
    title = f"Tour of {problem.cities:,} cities, of length {problem.length(cities):,}"
    return Drawing("tour", title, names, places, edges, details=details, noun="city")


def tour_section(problem: TourProblem, result: Result, known: Sequence[Bounds]) -> Markup:
    """Return the figures of a tour, its bounds over time, and its cities in turn."""
    seconds = result.stats["seconds"]["total"]
    rows: list[tuple[str, object]] = [
        ("cities", f"{problem.cities:,}"),
        ("status", result.status),
        ("length", "unknown" if result.value is None else f"{result.value:,}"),
        ("lower bound", "unknown" if result.lower_bound is None else f"{result.lower_bound:,}"),
        ("time", seconds_text(seconds)),
    ]
    if result.ended_by is not None:
        rows.append(("ended by", result.ended_by))
    parts: list[object] = [figures(rows)]
    lines = [
        (name, [(one.seconds, float(value)) for one in known if (value := getattr(one, bound)) is not None])
        for name, bound in (("lower bound", "lower"), ("length of the best tour", "upper"))
    ]
    lines = [(name, points) for name, points in lines if points]
    if lines:
        parts.append(time_chart("Length and bound over time", lines, seconds, "length"))
    tour = result.tour or ()
    more = f", and {len(tour) - _MOST_LISTED:,} more" if len(tour) > _MOST_LISTED else ""
    parts.append(paragraph(f"Tour: {' '.join(map(str, tour[:_MOST_LISTED]))}{more}", "tour"))
    return joined(parts)
