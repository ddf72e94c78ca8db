"""Exact samples: values are drawn from the roots of the bucket tree to its leaves, all samples side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.errors import MemoryLimitError
from elimina.inference.propagator import Propagator
from elimina.planning.plan import Plan, bytes_text
from elimina.tree import bucket_tree

Array = NDArray[Any]

_DRAWN_BYTES, _KEPT_BYTES = 8, 8
"""Bytes of a sample of one variable: while it is drawn, and at most in the array that is returned."""

_CELLS = 1 << 20
"""Samples times values that are worked on at once."""


def check_room(count: int, variables: int, room: int) -> None:
    """Check that samples fit.

    Args:
        count: Number of samples.
        variables: Number of variables.
        room: Bytes that may be used.

    Raises:
        MemoryLimitError: They need more.
    """
    needed = count * variables * (_DRAWN_BYTES + _KEPT_BYTES)
    if needed > room:
        raise MemoryLimitError(
            f"{count:,} samples of {variables:,} variables need {bytes_text(needed)}, and {bytes_text(room)} may be "
            f"used: draw fewer at a time ({room * count // needed:,} fit), each time with another seed"
        )


def draw(propagator: Propagator, plan: Plan, count: int, random: np.random.Generator) -> dict[int, NDArray[np.int64]]:
    """Draw from the distribution that a propagation was run for.

    A bucket's own factors and the messages that it received are, at given values of what is eliminated later, the
    conditional distribution of its variable (Dechter 1999, section 7, run backwards as forward sampling).

    Args:
        propagator: After a run that computed the sum, so that all messages towards the roots are known.
        plan: The propagator's, with its messages kept.
        count: Number of samples.
        random: Random generator.

    Returns:
        Variable -> value indices, shape ``(count,)``, for each variable of the plan's order.
    """
    tree = bucket_tree([factor.scope for factor in plan.factors], plan.order)
    # The pass towards the roots comes first, and eliminates a node's variable once, after any joins.
    message_of: dict[int, int] = {}
    for number, step in enumerate(plan.steps):
        message_of.setdefault(step.variable, number)
    samples: dict[int, NDArray[np.int64]] = {}
    for number in reversed(range(len(tree.nodes))):
        node = tree.nodes[number]
        tables = [propagator.factor_table(factor) for factor in node.factors]
        tables += [propagator.message(message_of[tree.nodes[child].variable]) for child in node.children]
        tables = [(scope, _logarithms(values, propagator.logarithmic)) for scope, values in tables]
        size = plan.steps[message_of[node.variable]].domain
        chosen = np.empty(count, dtype=np.int64)
        for rows in _blocks(count, size):
            logs = np.zeros((rows.stop - rows.start, size))
            for scope, values in tables:
                logs += _at(node.variable, scope, values, samples, rows)
            chosen[rows] = _choose(logs, random)
        samples[node.variable] = chosen
    return samples


def _blocks(count: int, size: int) -> Iterator[slice]:
    rows = max(1, _CELLS // size)
    return (slice(at, min(at + rows, count)) for at in range(0, count, rows))


def _logarithms(values: Array, logarithmic: bool) -> NDArray[np.float64]:
    """Return logarithms: products of messages may leave a float's range where sums of logarithms do not."""
    if logarithmic:
        return values.astype(np.float64)
    with np.errstate(divide="ignore"):
        logs: NDArray[np.float64] = np.log(values.astype(np.float64))
    return logs


def _at(
    variable: int, scope: tuple[int, ...], values: Array, samples: dict[int, NDArray[np.int64]], rows: slice
) -> NDArray[np.float64]:
    """Return a table at the values drawn so far, one row a sample, with the variable's values along it."""
    axis = scope.index(variable)
    others = tuple(samples[v][rows] for v in scope if v != variable)
    found: NDArray[np.float64] = np.moveaxis(values, axis, -1)[others]
    return found


def _choose(logs: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.int64]:
    """Draw a value from each row; never one whose weight is 0."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    sums = weights.cumsum(axis=1)
    points = random.random((len(logs), 1)) * sums[:, -1:]
    last = weights.shape[1] - 1 - (weights[:, ::-1] > 0).argmax(axis=1)
    chosen: NDArray[np.int64] = np.minimum((sums <= points).sum(axis=1), last)
    return chosen
