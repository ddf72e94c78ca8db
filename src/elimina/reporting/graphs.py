"""The model's graph on a page: the drawn variables, their details, and their colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from elimina.model.model import Model
from elimina.number_texts import counted, probability_text
from elimina.reporting.html import short
from elimina.result import Result
from elimina.viz.diagram import Colouring, Diagram, Edge
from elimina.viz.graph import MAX_CLASSES, answer_colourings, edges_of, part_of_graph
from elimina.viz.layouts.stress import neighbours_of

MAX_NODES, MAX_EDGES = 10_000, 40_000

_MAX_ROUNDS = 10
"""Largest number of rounds of label propagation."""

_MAX_STATES = 8
_STATE_LETTERS = 40


def shown_graph(model: Model, queried: Sequence[int], observed: Sequence[int]) -> Diagram:
    """Return the part of a model's graph that a page shows.

    Args:
        model: A model with variables.
        queried: Variables to draw first, unless there are too many.
        observed: Variables with evidence, also to draw first.
    """
    edges = edges_of(model)
    variables = _shown_variables(len(model.variables), edges, [*queried, *observed])
    node = {v: number for number, v in enumerate(variables)}
    shown = [(node[a], node[b]) for a, b in edges if a in node and b in node][:MAX_EDGES]
    left_out = []
    if len(variables) < len(model.variables):
        left_out.append(counted(len(model.variables) - len(variables), "variable"))
    if len(shown) < len(edges):
        left_out.append(counted(len(edges) - len(shown), "edge"))
    remarks = [f"{' and '.join(left_out)} are left out"] if left_out else []
    diagram = part_of_graph(model, variables, shown, observed)
    return replace(diagram, remarks=[*remarks, *(["squares are observed"] if diagram.marked else [])])


def with_answer(diagram: Diagram, model: Model, result: Result | None) -> Diagram:
    """Return the graph with the details of its variables, and with colours by the answer and by its structure.

    Args:
        diagram: Graph of the model.
        model: Model of the graph.
        result: Answer, if there is one.
    """
    observed = frozenset(diagram.marked)
    colourings = [] if result is None else answer_colourings(diagram.names, result)
    return replace(
        diagram,
        details=[_details(model, result, name, node in observed) for node, name in enumerate(diagram.names)],
        colourings=[*colourings, *_structure_colourings(len(diagram.names), diagram.edges)],
    )


def _shown_variables(count: int, edges: Sequence[Edge], first: Sequence[int]) -> list[int]:
    """Return the variables to draw: all if there are few, otherwise ``first``, hubs, and variables near these."""
    if count <= MAX_NODES:
        return list(range(count))
    neighbours = neighbours_of(count, edges)
    hubs = sorted(range(count), key=lambda v: -len(neighbours[v]))
    shown = dict.fromkeys(first[:MAX_NODES])
    for start in hubs:
        if len(shown) >= MAX_NODES:
            break
        shown.setdefault(start)
        queue = list(shown)
        for node in queue:
            for neighbour in neighbours[node]:
                if neighbour not in shown and len(shown) < MAX_NODES:
                    shown[neighbour] = None
                    queue.append(neighbour)
    return sorted(shown)


def _details(model: Model, result: Result | None, name: str, is_observed: bool) -> list[tuple[str, float | None]]:
    variable = model[name]
    lines: list[tuple[str, float | None]] = [
        (f"{counted(variable.size, 'state')}{', observed' if is_observed else ''}", None)
    ]
    if result is not None and variable.name in result.marginals:
        pairs = sorted(result.marginals[variable.name].items(), key=lambda pair: -pair[1])
        lines += [(f"{short(state, _STATE_LETTERS)}: {probability_text(p)}", p) for state, p in pairs[:_MAX_STATES]]
        if len(pairs) > _MAX_STATES:
            lines.append((f"and {len(pairs) - _MAX_STATES:,} more states", None))
    if result is not None and result.assignment is not None and variable.name in result.assignment:
        lines.append((f"assigned {short(result.assignment[variable.name], _STATE_LETTERS)}", None))
    return lines


def _structure_colourings(count: int, edges: Sequence[Edge]) -> list[Colouring]:
    degrees = np.bincount(np.array(edges, dtype=np.int64).ravel(), minlength=count)
    max_degree = int(degrees.max(initial=1)) or 1
    shares = (np.log1p(degrees) / np.log1p(max_degree)).round(4).tolist()
    colourings = [Colouring("number of neighbours", shares, ("0", f"{max_degree:,}"), True)]
    if count > MAX_CLASSES:
        cluster_of = clusters(count, edges)
        sizes = Counter(cluster_of)
        rank = {cluster: n for n, (cluster, _) in enumerate(sizes.most_common())}
        values = [min(rank[number], MAX_CLASSES) for number in cluster_of]
        labels = [f"cluster {n + 1} ({size:,})" for n, (_, size) in enumerate(sizes.most_common(MAX_CLASSES))]
        colourings.append(Colouring("cluster", values, [*labels, "others"] if len(sizes) > MAX_CLASSES else labels))
    return colourings


def clusters(count: int, edges: Iterable[Edge]) -> list[int]:
    """Return a cluster for each node, by label propagation (Raghavan, Albert, Kumara, 2007) in a fixed order."""
    neighbours = neighbours_of(count, edges)
    labels = list(range(count))
    order = np.random.default_rng(0).permutation(count).tolist()
    for _ in range(_MAX_ROUNDS):
        changed = False
        for node in order:
            if neighbours[node]:
                counts = Counter(labels[neighbour] for neighbour in neighbours[node])
                best = max(counts.items(), key=lambda pair: (pair[1], pair[0] == labels[node], -pair[0]))[0]
                changed |= best != labels[node]
                labels[node] = best
        if not changed:
            break
    return labels
