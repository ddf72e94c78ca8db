"""Exact samples from a propagation: each variable is drawn given the variables before it."""

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
"""Bytes for one variable of a sample: while it is drawn, and at most in the final array of its states."""


def seed_word(seed: int | None) -> int:
    """Return a seed of 64 bits for a random seed of any size; for None, a new seed for each call."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])


def check_room(count: int, variables: int, room: int, state_bytes: int = DRAWN_BYTES + _KEPT_BYTES) -> None:
    """Check that samples fit into memory.

    Args:
        count: Number of samples.
        variables: Number of variables.
        room: Available bytes.
        state_bytes: Bytes for one variable of a sample.

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
"""Largest number of cells in the tables of variables that are drawn at once."""


def draw(
    propagator: Propagator, plan: Plan, sizes: Sequence[int], count: int, seed: int
) -> dict[int, NDArray[np.int32]]:
    """Draw samples from the distribution of a propagation.

    At fixed states of the variables eliminated later, the product of a bucket's factors and messages is proportional to
    the conditional distribution of the bucket's variable (Dechter 1999, section 7).

    Args:
        propagator: Propagator that has computed the sum, and thus all messages towards the roots.
        plan: Plan of the propagator, which stores its messages.
        sizes: Domain sizes of all variables of the model.
        count: Number of samples.
        seed: Random seed, below 2^64.

    Returns:
        Variable -> indices of its states, shape ``(count,)``, for each variable of the plan's order.
    """
    tree = bucket_tree([factor.scope for factor in plan.factors], plan.order)
    # A variable's first step eliminates it in the pass towards the roots; the steps of other passes come later.
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
