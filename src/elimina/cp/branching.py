"""Rules of a search: variables, in the order in which they are decided, and their orderings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elimina.cp.views import ViewRows

SearchRule = tuple[ViewRows, str, str]
"""Views that are decided, and their variable and value orderings."""


def search_rules(given: Sequence[SearchRule], own: ViewRows, objective: ViewRows | None) -> list[SearchRule]:
    """Return the rules of a search, where an objective that has no rule is decided after the others.

    Its domain is halved, towards the best value: by single values, a search may find each of them before the best one.

    Args:
        given: The model's rules.
        own: Views of all variables of the model.
        objective: View of the objective; None without one.
    """
    ruled = np.concatenate([xs for xs, _, _ in given])[:, 0] if given else own[:0, 0]
    if objective is None or objective[0, 0] in ruled or objective[0, 0] not in own[:, 0]:
        return [*given] or [(own, "dom_w_deg", "indomain_min")]
    others = own[own[:, 0] != objective[0, 0]]
    first = [*given] or [(others, "dom_w_deg", "indomain_min")]
    return [*first, (objective, "input_order", "indomain_split")]
