"""Exact samples from a propagation: each variable given the variables drawn before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elimina.errors import MemoryLimitError
from elimina.methods.proposals import LoggedTables
from elimina.number_texts import bytes_text
from elimina.planning.plan import Plan
from elimina.planning.tree import bucket_tree
from elimina.running.propagated_tables import logarithms

if TYPE_CHECKING:
    from elimina.running.propagator import Propagator


DRAWN_BYTES, _KEPT_BYTES = 4, 8
"""Bytes of a sample of one variable: while it is drawn, and at most in the array of its states."""


def seed_word(seed: int | None) -> int:
    """Return a random seed of any size as one of 64 bits; for None, a new one each time."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])


def check_room(count: int, variables: int, room: int, state_bytes: int = DRAWN_BYTES + _KEPT_BYTES) -> None:
    """Check that samples fit.

    Args:
        count: Number of samples.
        variables: Number of variables.
        room: Bytes that may be used.
        state_bytes: Bytes of a sample of one variable.

    Raises:
        MemoryLimitError: The samples need more bytes.
    """
    needed = count * variables * state_bytes
    if needed > room:
        raise MemoryLimitError(
            f"{count:,} samples of {variables:,} variables need {bytes_text(needed)}, and {bytes_text(room)} may be "
            f"used: draw fewer at a time ({room * count // needed:,} fit), each time with another seed"
        )


_BATCH_CELLS = 1 << 20
"""Cells of the tables of variables that are drawn at once."""


def draw(
    propagator: Propagator, plan: Plan, sizes: Sequence[int], count: int, seed: int
) -> dict[int, NDArray[np.int32]]:
    """Draw samples from the distribution of a propagation.

    The product of a bucket's factors and messages, at states of the variables eliminated later, is the conditional
    distribution of its variable up to a constant (Dechter 1999, section 7, run backwards as forward sampling).

    Args:
        propagator: Propagator after a run that computed the sum, so that it has all messages towards the roots.
        plan: Plan of the propagator, which keeps its messages.
        sizes: Domain sizes of all variables of the model.
        count: Number of samples.
        seed: Random seed, below 2^64.

    Returns:
        Variable -> value indices, shape ``(count,)``, for each variable of the plan's order.
    """
    tree = bucket_tree([factor.scope for factor in plan.factors], plan.order)
    # The pass towards the roots comes first, and eliminates a node's variable once, after any joins.
    message_of: dict[int, int] = {}
    for number, step in enumerate(plan.steps):
        message_of.setdefault(step.variable, number)
    row = {node.variable: number for number, node in enumerate(tree.nodes)}
    states = np.zeros((len(row), count), dtype=np.int32)
    domains = np.array([sizes[v] for v in row], dtype=np.int64)
    logged = LoggedTables()
    last = len(row)
    for number in reversed(range(len(row))):
        node = tree.nodes[number]
        tables = [propagator.factor_table(factor) for factor in node.factors]
        tables += [propagator.message(message_of[tree.nodes[child].variable]) for child in node.children]
        for scope, values in tables:
            logged.add([row[v] for v in scope], number, logarithms(values, propagator.logarithmic))
        if logged.cells >= _BATCH_CELLS or number == 0:
            logged.sampler(domains, number, last).draw(seed, 0, states, np.zeros(count), np.zeros(0), 1)
            logged, last = LoggedTables(), number
    return {v: states[row_number] for v, row_number in row.items()}
