"""Rules of a search: variables in the order of their decision, with their orderings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elimina.cp.views import ViewRows

SearchRule = tuple[ViewRows, str, str]
"""Views to decide, and their variable and value orderings."""


def search_rules(
    model_rules: Sequence[SearchRule], variables: ViewRows, objective: ViewRows | None
) -> list[SearchRule]:
    """Return the rules of a search; an objective without a rule is decided last.

    Without rules of the model, variables are decided by dom/wdeg, their least values first. The objective's domain is
    halved, towards the best value: with single values, the objective would improve in small steps.

    Args:
        model_rules: Rules that the model sets.
        variables: Views of all variables of the model.
        objective: View of the objective; None if there is none.
    """
    ruled = np.concatenate([xs for xs, _, _ in model_rules])[:, 0] if model_rules else variables[:0, 0]
    if objective is None or objective[0, 0] in ruled or objective[0, 0] not in variables[:, 0]:
        return [*model_rules] or [(variables, "dom_w_deg", "indomain_min")]
    remaining_variables = variables[variables[:, 0] != objective[0, 0]]
    first = [*model_rules] or [(remaining_variables, "dom_w_deg", "indomain_min")]
    return [*first, (objective, "input_order", "indomain_split")]
