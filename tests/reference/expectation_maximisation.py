"""Expectation maximisation by enumeration of all assignments, for networks of a few variables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tables = list[NDArray[Any]]


def iteration(
    sizes: Sequence[int],
    scopes: Sequence[Sequence[int]],
    children: Sequence[int],
    rows: Sequence[Sequence[int]],
    tables: Tables,
    prior: float,
    groups: Sequence[Sequence[int]] = (),
) -> tuple[float, Tables]:
    """Return the log-likelihood of rows (-1: missing) under tables, and the tables after an iteration.

    Args:
        sizes: States of each variable.
        scopes: Variables of each table.
        children: Child of each table.
        rows: Rows, with indices of states.
        tables: Tables of probabilities.
        prior: Pseudo-count of each cell; once for a group.
        groups: Numbers of the tables that are one table.
    """
    counts = [np.zeros(table.shape) for table in tables]
    log_likelihood = 0.0
    for row in rows:
        weights = {}
        for assignment in itertools.product(*map(range, sizes)):
            if all(cell in (-1, x) for cell, x in zip(row, assignment, strict=True)):
                cells = [tuple(assignment[v] for v in scope) for scope in scopes]
                weights[assignment] = math.prod(float(table[cell]) for table, cell in zip(tables, cells, strict=True))
        total = math.fsum(weights.values())
        log_likelihood += math.log(total) if total > 0 else -math.inf
        for assignment, weight in weights.items() if total > 0 else ():
            for count, scope in zip(counts, scopes, strict=True):
                count[tuple(assignment[v] for v in scope)] += weight / total
    together = [next((group for group in groups if n in group), [n]) for n in range(len(tables))]
    summed = [sum(counts[n] for n in group) + prior for group in together]
    fitted = []
    for number, (total, scope, child) in enumerate(zip(summed, scopes, children, strict=True)):
        axis = list(scope).index(child)
        table = np.array(tables[number], dtype=float)
        others = [range(size) for at, size in enumerate(total.shape) if at != axis]
        for parents in itertools.product(*others):
            column = (*parents[:axis], slice(None), *parents[axis:])
            if total[column].sum() > 0:
                table[column] = total[column] / total[column].sum()
        fitted.append(table)
    return log_likelihood, fitted
