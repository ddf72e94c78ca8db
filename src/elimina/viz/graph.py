"""Diagram of a network, and its colours by an answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from elimina.display import cut
from elimina.errors import UnsupportedError
from elimina.model.model import Model
from elimina.number_texts import counted
from elimina.result import Result
from elimina.viz.diagram import Colouring, Diagram, Edge
from elimina.viz.short_labels import short_labels

MAX_EDGES = 4_000_000
"""Largest number of edges of a graph to list; listing them takes a second or two."""

MAX_CLASSES = 8
"""Largest number of classes with separate colours."""

_STATE_LETTERS = 30

MAX_NODES_WITH_BARS = 250
"""Largest number of nodes with legible posteriors in one picture."""

_MAX_ROWS, _ROW_LETTERS = 6, 14
"""Largest numbers of rows of posteriors inside a node, and of letters of a state there."""


def edges_of(model: Model) -> list[Edge]:
    """Return the distinct edges: (parent, child) in a Bayesian network, else pairs that share a factor.

    Raises:
        UnsupportedError: There are too many edges to list.
    """
    if model.children is not None:
        pairs = zip(model.factors, model.children, strict=True)
        return sorted({(parent, child) for factor, child in pairs for parent in factor.scope if parent != child})
    count = sum(math.comb(len(factor.scope), 2) for factor in model.factors)
    if count > MAX_EDGES:
        widest = max(model.factors, key=lambda factor: len(factor.scope))
        raise UnsupportedError(
            f"the graph has up to {count:,} edges, too many to list: a factor over "
            f"{counted(len(widest.scope), 'variable')} "
            "joins each pair of them"
        )
    return sorted({pair for factor in model.factors for pair in combinations(sorted(factor.scope), 2)})


def graph_diagram(model: Model, observed: Sequence[int] = ()) -> Diagram:
    """Return the network: arrows if it is Bayesian, else an edge for each two variables of a factor.

    Args:
        model: A model with variables.
        observed: Variables with evidence.
    """
    return part_of_graph(model, range(len(model.variables)), edges_of(model), observed)


def part_of_graph(model: Model, variables: Sequence[int], edges: Sequence[Edge], observed: Sequence[int]) -> Diagram:
    """Return some of a network's variables and edges as a diagram.

    Args:
        model: Model of the variables.
        variables: Variables to draw.
        edges: Pairs of positions in the variables.
        observed: Variables with evidence.
    """
    is_directed = model.children is not None
    evidence = frozenset(observed)
    return Diagram(
        "graph",
        "Graph",
        f"{counted(len(variables), 'variable')}, {len(edges):,} {'arrows' if is_directed else 'edges'}",
        [model.variables[v].name for v in variables],
        edges,
        is_directed,
        marked=[node for node, v in enumerate(variables) if v in evidence],
    )


def answer_colourings(names: Sequence[str], result: Result) -> list[Colouring]:
    """Return the colourings of variables by an answer: by probabilities, and by states.

    Args:
        names: Names of the variables.
        result: Answer for some or all of them.
    """
    colourings = []
    marginals: Mapping[str, Mapping[Any, float]] = result.marginals
    if marginals:
        peaks = [round(float(max(marginals[name].values())), 4) if name in marginals else None for name in names]
        colourings.append(Colouring("probability of the likeliest state", peaks, ("0", "1"), True))
    if result.assignment is not None:
        colourings.append(_state_colouring("state in the assignment", [result.assignment.get(name) for name in names]))
    elif marginals:
        tables = (marginals.get(name) for name in names)
        states = [max(table, key=table.__getitem__) if table else None for table in tables]
        colourings.append(_state_colouring("likeliest state", states))
    return colourings


def _state_colouring(name: str, states: Sequence[Any]) -> Colouring:
    """Return a colour for each of the most frequent states, and one for all others."""
    texts = [None if state is None else cut(str(state), _STATE_LETTERS) for state in states]
    frequent = Counter(text for text in texts if text is not None).most_common(MAX_CLASSES)
    # Numbers in their order, then texts: a key in the order of frequencies would be hard to search.
    state_of = dict(zip(texts, states, strict=True))
    listed = sorted((text for text, _ in frequent), key=lambda text: (isinstance(state_of[text], str), state_of[text]))
    rank = {text: n for n, text in enumerate(listed)}
    labels = list(rank)
    if any(text is not None and text not in rank for text in texts):
        labels.append("others")
    return Colouring(name, [None if text is None else rank.get(text, MAX_CLASSES) for text in texts], labels)


def with_bars(diagram: Diagram, marginals: Mapping[str, Mapping[Any, float]]) -> Diagram:
    """Return a diagram whose nodes show their posteriors.

    Args:
        diagram: Diagram of variables.
        marginals: Variable name -> {state: probability}, for all variables of the diagram.
    """
    return replace(diagram, colourings=(), bars=[_bar_rows(marginals[name]) for name in diagram.names])


def _bar_rows(shares: Mapping[Any, float]) -> list[tuple[str, float]]:
    """Return the rows of a variable: its states, or the most probable ones and the sum of all others."""
    pairs = list(shares.items())
    if len(pairs) <= _MAX_ROWS:
        listed, others = pairs, []
    else:
        chosen = set(sorted(range(len(pairs)), key=lambda n: -pairs[n][1])[: _MAX_ROWS - 1])
        listed = [pair for n, pair in enumerate(pairs) if n in chosen]
        others = [p for n, (_, p) in enumerate(pairs) if n not in chosen]
    labels = short_labels([str(state) for state, _ in listed], _ROW_LETTERS)
    rows = [(label, float(p)) for label, (_, p) in zip(labels, listed, strict=True)]
    return [*rows, (f"{len(others):,} others", min(1.0, math.fsum(others)))] if others else rows
