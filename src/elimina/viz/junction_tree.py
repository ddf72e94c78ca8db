"""Diagram of a junction tree: areas are the logarithms of cliques' cells, widths those of separators' cells."""

from __future__ import annotations

import math
from collections.abc import Sequence

from elimina.display import cut
from elimina.model.model import Model
from elimina.number_texts import count_text, counted
from elimina.planning.order import find_order
from elimina.planning.tree import Clique, junction_tree, plan_tree
from elimina.viz.diagram import Colouring, Diagram, SizeKey

_MAX_CAPTIONED_CLIQUES = 40
_MAX_CAPTION_LINES = 12
_CAPTION_LETTERS = 22
_LABEL_VARIABLES, _LABEL_LETTERS = 3, 16

_MIN_DIGITS = 0.3
"""Base-10 logarithm of the cells of the smallest node or edge drawn to scale."""


def cliques_of(model: Model) -> tuple[Clique, ...]:
    """Return the cliques of a triangulation by ``find_order``, rooted so that there are the fewest levels."""
    scopes = [f.scope for f in model.factors if f.scope]
    return central_cliques(scopes, model.sizes, find_order(model.sizes, scopes).order)


def central_cliques(
    scopes: Sequence[Sequence[int]], sizes: Sequence[int], order: Sequence[int], kept: Sequence[int] = ()
) -> tuple[Clique, ...]:
    """Return the cliques of an order, rooted so that there are the fewest levels; children come before parents.

    Args:
        scopes: Scopes of the factors.
        sizes: Number of states of each variable.
        order: Elimination order.
        kept: Variables that are not eliminated.
    """
    planned_tree = plan_tree(scopes, sizes, order, kept)
    cliques = [clique.scope for clique in junction_tree(planned_tree)]
    return junction_tree(plan_tree(cliques, sizes, planned_tree.central_order(), kept))


def junction_tree_diagram(
    cliques: Sequence[Clique], sizes: Sequence[int], names: Sequence[str], max_cliques: int | None = None
) -> Diagram:
    """Return the diagram of a junction tree; up to 40 cliques list their variables.

    Args:
        cliques: All cliques.
        sizes: Number of states of each variable.
        names: Name of each variable.
        max_cliques: Largest number of cliques to draw, nearest to the roots; None for all.
    """
    all_cells = [math.prod(sizes[v] for v in clique.scope) for clique in cliques]
    cells = max(all_cells)
    total = counted(sum(all_cells), "cell", is_rounded=True)
    figures = f"{counted(len(cliques), 'clique')}, {total}, {count_text(cells)} in the largest"
    left_out = 0 if max_cliques is None else max(len(cliques) - max_cliques, 0)
    cliques = breadth_first(cliques, max_cliques)
    digits = [_digits(clique.scope, sizes) for clique in cliques]
    largest = max(1, math.ceil(max(digits)))
    steps = [math.log10(2), 1.0] if largest == 1 else sorted({1.0, math.ceil(largest / 2), float(largest)})
    scale = max(*digits, 1.0)
    has_captions = len(cliques) <= _MAX_CAPTIONED_CLIQUES
    members = [[names[v] for v in sorted(clique.scope)] for clique in cliques]
    children = [number for number, clique in enumerate(cliques) if clique.parent >= 0]
    return Diagram(
        "tree",
        "Junction tree",
        figures,
        [_label(clique_names) for clique_names in members],
        [(cliques[number].parent, number) for number in children],
        parents=[clique.parent for clique in cliques],
        sizes=[_size(value) for value in digits],
        weights=[_size(_digits(cliques[number].separator, sizes)) ** 2 for number in children],
        counts=[str(len(clique.scope)) for clique in cliques],
        captions=[_caption(clique_names) for clique_names in members] if has_captions else (),
        members=members,
        colourings=[Colouring("cells", [round(value / scale, 4) for value in digits], ("1", count_text(cells)), True)],
        size_key=SizeKey(
            [_size(step) for step in steps],
            [min(step / scale, 1.0) for step in steps],
            [f"1e{step:.0f}" if step > 3 else str(round(10**step)) for step in steps],
            "cells in a clique (area)",
            "cells in a separator (width)",
        ),
        remarks=[f"{counted(left_out, 'clique')} far from the root are left out"] if left_out else [],
        noun="clique",
    )


def breadth_first(cliques: Sequence[Clique], max_cliques: int | None = None) -> list[Clique]:
    """Return the cliques from the roots on, parents before their children; parents are renumbered accordingly.

    Args:
        cliques: Cliques in any order.
        max_cliques: Largest number of cliques to return; None for all.
    """
    children: list[list[int]] = [[] for _ in cliques]
    queue: list[int] = []
    for number, clique in enumerate(cliques):
        (queue if clique.parent < 0 else children[clique.parent]).append(number)
    for number in queue:
        queue += children[number]
    queue = queue[:max_cliques]
    position = {number: n for n, number in enumerate(queue)}
    return [cliques[number]._replace(parent=position.get(cliques[number].parent, -1)) for number in queue]


def _digits(scope: Sequence[int], sizes: Sequence[int]) -> float:
    """Return the decimal logarithm of the cells of a table over the variables."""
    return math.fsum(math.log10(sizes[v]) for v in scope)


def _size(digits: float) -> float:
    """Return the radius of a node whose area is a number of digits, at least ``_MIN_DIGITS``."""
    return math.sqrt(max(digits, _MIN_DIGITS))


def _label(names: Sequence[str]) -> str:
    few = ", ".join(cut(name, _LABEL_LETTERS) for name in names[:_LABEL_VARIABLES])
    return few if len(names) <= _LABEL_VARIABLES else f"{few} +{len(names) - _LABEL_VARIABLES}"


def _caption(names: Sequence[str]) -> list[str]:
    lines = [cut(name, _CAPTION_LETTERS) for name in names]
    if len(lines) > _MAX_CAPTION_LINES:
        return [*lines[: _MAX_CAPTION_LINES - 1], f"and {len(lines) - _MAX_CAPTION_LINES + 1} more"]
    return lines
