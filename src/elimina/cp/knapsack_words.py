"""Knapsacks as automata: the states are sums of weights, and the symbols are weights (Trick, 2003)."""

from __future__ import annotations

import numpy as np

from elimina.cp.relaxation_rows import LinearRow, WordSequence

MAX_KNAPSACK_STATES = 1 << 11
"""Largest number of sums of a knapsack. A cheapest word takes a step for each sum and column."""
MIN_ITEMS = 3
"""Least number of variables of a knapsack. Sums of fewer variables leave little to gain over the row."""


def knapsack_of(row: LinearRow) -> WordSequence | None:
    """Return the automaton that accepts the columns satisfying a row.

    None is returned if the automaton is too large, or if it would not be stronger than the row.
    """
    if len(row.terms) < MIN_ITEMS:
        return None
    weights = [function.max() - function for function in row.terms.values()]
    capacity = sum(int(function.max()) for function in row.terms.values()) - row.least
    unit = int(np.gcd.reduce(np.concatenate(weights)))
    if unit == 0 or capacity < 0 or (row.is_equation and capacity % unit):
        return None
    capacity //= unit
    # ``numpy.unique`` is not used: it imports ``numpy.ma``, which takes longer than most relaxations.
    distinct = [sorted(set((each // unit).tolist())) for each in weights]
    # If the weights of each variable have no gaps, the row alone has whole optima.
    if capacity >= MAX_KNAPSACK_STATES or all(len(each) == each[-1] + 1 for each in distinct):
        return None
    alphabet = sorted({w for each in distinct for w in each if w <= capacity})
    sums = np.arange(capacity + 1, dtype=np.int64)
    following = sums[:, None] + np.array(alphabet, np.int64)[None, :]
    ranks = [np.minimum(np.searchsorted(alphabet, each // unit), len(alphabet) - 1) for each in weights]
    symbols = [
        np.where(np.array(alphabet)[rank] == each // unit, rank, -1) for rank, each in zip(ranks, weights, strict=True)
    ]
    return WordSequence(
        list(row.terms),
        symbols,
        capacity + 1,
        len(alphabet),
        np.where(following <= capacity, following, -1).ravel(),
        0,
        sums[-1:] if row.is_equation else sums,
    )
