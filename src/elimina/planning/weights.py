"""Weights of mini-buckets: Hölder's inequality bounds sums of products.

For positive weights w_r of a bucket's parts that add up to 1, the sum over x of the product of f_r(x) is at most that
of
(sum over x of f_r(x)^(1 / w_r))^w_r; it is at least that if one weight is positive (above 1, then) and the others are
negative. A weight of 0 is the limit: the largest value (Liu and Ihler 2011, "Bounding the partition function using
Hölder's inequality").
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Literal

from elimina.tree import Tree

_NEGATIVE = 2.0
"""Weight of all other mini-buckets of a bucket together, in bounds from below: nearly the best that rounding allows."""


Bound = Literal["upper", "lower"]
"""Sides of the bounds on a sum."""


def node_weights(tree: Tree, bound: Bound, zeros: Sequence[bool], maximised: Collection[int] = ()) -> list[float]:
    """Return the weight of each node's elimination.

    In upper bounds it is in proportion to a part's variables. Lower bounds are 0 wherever a part of negative weight is,
    so the positive weight goes to a part that may be; then to the one of most variables.

    Args:
        tree: A bucket tree.
        bound: Side of the bound.
        zeros: True if each factor has a value of 0.
        maximised: Variables that are not summed over (upper bounds only).
    """
    weights = [1.0] * len(tree.nodes)
    may_be_zero = [False] * len(tree.nodes)
    for variable, group in groupby(range(len(tree.nodes)), key=lambda number: tree.nodes[number].variable):
        parts = list(group)
        for number in parts:
            node = tree.nodes[number]
            may_be_zero[number] = any(zeros[f] for f in node.factors) or any(may_be_zero[c] for c in node.children)
        variables = {number: 1 + len(tree.nodes[number].separator) for number in parts}
        first = max(parts, key=lambda number: (may_be_zero[number], variables[number]))
        for number in parts:
            if variable in maximised:
                weights[number] = 0.0
            elif bound == "upper":
                weights[number] = variables[number] / sum(variables.values())
            elif len(parts) > 1:
                weights[number] = 1 + _NEGATIVE if number == first else -_NEGATIVE / (len(parts) - 1)
    return weights


def shares(weights: Sequence[float]) -> list[float]:
    """Return weights normalised to sum to 1; equal weights where all are 0."""
    total = sum(weights)
    return [weight / total for weight in weights] if total else [1 / len(weights)] * len(weights)
