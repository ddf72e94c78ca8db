"""Rules of a search: the order in which groups of variables are decided, and the orderings within each group."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from elimina.cp.views import ViewRows

SearchRule = tuple[ViewRows, str, str]
"""A group of views to decide, its variable ordering and its value ordering."""


MAX_BRANCHED_RESULT_VALUES = 256
"""Largest number of values with which the result of a function is decided like other variables. A result with more
values is decided later: after some decisions it has fewer values than its operands, so dom/wdeg would choose it, and
try one value after another."""


def search_rules(
    model_rules: Sequence[SearchRule],
    variables: ViewRows,
    objective: ViewRows | None,
    wide_results: Collection[int],
) -> list[SearchRule]:
    """Return the rules of a search; an objective without a rule is decided after the variables with rules.

    If the model sets no rules, variables are decided by dom/wdeg, their least values first. The objective comes next,
    then wide results of functions. The domains of the objective and of wide results are halved. The better half of the
    objective comes first: if single values were tried, the objective would improve in small steps.

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
