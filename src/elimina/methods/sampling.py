"""Exact samples from a propagation: each variable given those that are drawn before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elimina.display import bytes_text
from elimina.errors import MemoryLimitError
from elimina.planning.plan import Plan
from elimina.planning.tree import bucket_tree
from elimina.running.propagated_tables import DRAWN_BYTES, KEPT_BYTES, at, blocks, choose, logarithms

if TYPE_CHECKING:
    from elimina.running.propagator import Propagator


def check_room(count: int, variables: int, room: int) -> None:
    """Check that samples fit.

    Args:
        count: Number of samples.
        variables: Number of variables.
        room: Bytes that may be used.

    Raises:
        MemoryLimitError: They need more.
    """
    needed = count * variables * (DRAWN_BYTES + KEPT_BYTES)
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
        tables = [(scope, logarithms(values, propagator.logarithmic)) for scope, values in tables]
        size = plan.steps[message_of[node.variable]].domain
        chosen = np.empty(count, dtype=np.int64)
        for rows in blocks(count, size):
            logs = np.zeros((rows.stop - rows.start, size))
            for scope, values in tables:
                logs += at(node.variable, scope, values, samples, rows)
            chosen[rows] = choose(logs, random)
        samples[node.variable] = chosen
    return samples
