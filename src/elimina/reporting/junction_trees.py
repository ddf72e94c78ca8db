"""The junction tree of a plan's order on a page, with the details of its cliques."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from elimina.model.model import Model
from elimina.number_texts import counted
from elimina.planning.plan import Plan
from elimina.planning.tree import Clique
from elimina.reporting.html import name_of
from elimina.viz.diagram import Colouring, Diagram
from elimina.viz.junction_tree import breadth_first, central_cliques, junction_tree_diagram

MAX_CLIQUES = 5000
_MAX_LISTED, _MAX_LISTED_OF_MANY, _MANY_CLIQUES = 40, 8, 1000
"""Largest number of variables in a clique's details. Trees of more than ``_MANY_CLIQUES`` cliques list fewer, to keep
the page small."""


def shown_tree(plan: Plan, model: Model) -> Diagram:
    """Return the junction tree of a plan's order, without observed variables, rooted for the fewest levels.

    Args:
        plan: Plan that eliminates at least one variable.
        model: Model of the plan, for the names of variables.
    """
    whole_plan = plan.whole
    domains = {v: size for factor in whole_plan.factors for v, size in zip(factor.scope, factor.sizes, strict=True)}
    sizes = [domains.get(v, 1) for v in range(1 + max((*whole_plan.order, *whole_plan.kept)))]
    scopes = [factor.scope for factor in whole_plan.factors if factor.scope]
    cliques = central_cliques(scopes, sizes, whole_plan.order, whole_plan.kept)
    names = [name_of(model, v) for v in range(len(sizes))]
    diagram = junction_tree_diagram(cliques, sizes, names, MAX_CLIQUES)
    shown = breadth_first(cliques, MAX_CLIQUES)
    largest = max(len(clique.scope) for clique in shown)
    listed = _MAX_LISTED if len(shown) <= _MANY_CLIQUES else _MAX_LISTED_OF_MANY
    by_variables = [round(len(clique.scope) / largest, 4) for clique in shown]
    return replace(
        diagram,
        remarks=[*diagram.remarks, "areas grow with the logarithm of the cells"],
        details=[
            _clique_details(sizes, clique, members, listed)
            for clique, members in zip(shown, diagram.members, strict=True)
        ],
        members=[members[:listed] for members in diagram.members],
        colourings=[*diagram.colourings, Colouring("variables", by_variables, ("0", str(largest)), True)],
    )


def _clique_details(
    sizes: Sequence[int], clique: Clique, names: Sequence[str], listed: int
) -> list[tuple[str, float | None]]:
    cells = math.prod(sizes[v] for v in clique.scope)
    lines = [f"{counted(len(clique.scope), 'variable')}, {counted(cells, 'cell', is_rounded=True)}"]
    if clique.parent >= 0:
        shared = math.prod(sizes[v] for v in clique.separator)
        lines.append(
            f"separator: {counted(len(clique.separator), 'variable')}, {counted(shared, 'cell', is_rounded=True)}"
        )
    few = ", ".join(names[:listed])
    lines.append(few if len(names) <= listed else f"{few} and {len(names) - listed:,} more")
    return [(line, None) for line in lines]
