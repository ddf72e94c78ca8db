"""The model's graph with its answer: places, colours, and which part is drawn where it is large."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.model import Model
from elimina.reporting.drawing import Colouring, Drawing, on_page
from elimina.reporting.markup import short
from elimina.result import Result, probability_text
from elimina.viz.graph import edges_of
from elimina.viz.layered import is_acyclic, layered_layout
from elimina.viz.stress import stress_layout

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
    """Choose what is drawn of a model's graph, and its places.

    Args:
        model: A model with variables.
        first: Variables that are drawn in any case, if they are not too many: those observed or asked for.
    """
    edges = edges_of(model)
    kept = _kept(len(model.variables), edges, first)
    number = {v: place for place, v in enumerate(kept)}
    shown = [(number[a], number[b]) for a, b in edges if a in number and b in number][:MOST_EDGES]
    bends: list[NDArray[np.float64]] = []
    if model.children is not None and len(kept) <= _MOST_LAYERED and is_acyclic(len(kept), shown):
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
    centred = places - places.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    turned: NDArray[np.float64] = centred @ axes[:, ::-1]
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
        layout: Places.
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
    """Return the variables to draw: those asked for or observed, the hub, and what is near."""
    if count <= MOST_NODES:
        return list(range(count))
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
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
    if result is not None and result.marginals is not None and variable.name in result.marginals:
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
    if result.marginals is not None:
        marginals: Mapping[str, Mapping[Any, float]] = result.marginals
        tops = [max(marginals[name].values()) if name in marginals else None for name in names]
        values = [None if top is None else round(float(top), 4) for top in tops]
        found.append(Colouring("probability of the likeliest state", values, ("0", "1"), True))
    states: list[Any] = []
    if result.assignment is not None:
        states = [result.assignment.get(name) for name in names]
        found.append(_classes("state in the assignment", states))
    elif result.marginals is not None:
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
    neighbours: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
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
