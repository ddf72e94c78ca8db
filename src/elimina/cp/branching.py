"""Rules of a search: variables in the order of their decision, with their orderings."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from elimina.cp.views import ViewRows

SearchRule = tuple[ViewRows, str, str]
"""Views to decide, and their variable and value orderings."""


MAX_BRANCHED_RESULT_VALUES = 256
"""Values of the widest result of a function that is decided like other variables. A wider one has fewer values than its
operands after some decisions, so dom/wdeg would choose it, and try one value after another."""


def search_rules(
    model_rules: Sequence[SearchRule],
    variables: ViewRows,
    objective: ViewRows | None,
    wide_results: Collection[int] = (),
) -> list[SearchRule]:
    """Return the rules of a search; an objective without a rule is decided after the variables with rules.

    Without rules of the model, variables are decided by dom/wdeg, their least values first; then the objective, and
    then wide results of functions. The domains of these are halved, the objective's towards the best value: with single
    values, it would improve in small steps.

    Args:
        model_rules: Rules that the model sets.
        variables: Views of all variables of the model.
        objective: View of the objective; None if there is none.
        wide_results: Variables for results of functions that have more than ``MAX_BRANCHED_RESULT_VALUES`` values.
    """
    numbers = variables[:, 0]
    ruled = np.concatenate([xs for xs, _, _ in model_rules])[:, 0] if model_rules else numbers[:0]
    aims: list[SearchRule] = []
    if objective is not None and objective[0, 0] not in ruled and objective[0, 0] in numbers:
        aims = [(objective, "input_order", "indomain_split")]
    if model_rules:
        return [*model_rules, *aims]
    is_aim = np.isin(numbers, [xs[0, 0] for xs, _, _ in aims])
    is_wide = np.isin(numbers, list(wide_results)) & ~is_aim
    rules: list[SearchRule] = [(variables[~is_aim & ~is_wide], "dom_w_deg", "indomain_min"), *aims]
    return [*rules, (variables[is_wide], "input_order", "indomain_split")] if is_wide.any() else rules
