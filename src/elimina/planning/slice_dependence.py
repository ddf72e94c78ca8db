"""Dependence of steps on the variables of slices, and the order of these variables with the fewest repeated steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def dependence(reads: Iterable[Iterable[tuple[int, int]]], factors: Sequence[int]) -> list[int]:
    """Return the bits of all factors on which each step depends, directly or through messages.

    Args:
        reads: Tables of each step, as pairs: the earlier step that wrote the table (-1: none), and the factor.
        factors: Bits of each factor.
    """
    masks: list[int] = []
    for tables in reads:
        mask = 0
        for source, factor in tables:
            mask |= masks[source] if source >= 0 else factors[factor]
        masks.append(mask)
    return masks


_REACHED_KEPT = 1 << 22
"""Largest number of cached step numbers (8 bytes each): sufficient for repeated queries of large networks."""


class Reach:
    """Cache of the steps that can be reached from sets of steps.

    Args:
        following: Successors of each step.
    """

    def __init__(self, following: Sequence[Sequence[int]]) -> None:
        self._following = following
        self._reached: dict[Sequence[int], NDArray[np.int64]] = {}
        self._kept = 0

    def of(self, starts: Sequence[int]) -> NDArray[np.int64]:
        """Return the starts (hashable) and all steps reachable from them, in arbitrary order."""
        if starts not in self._reached:
            reached = dict.fromkeys(starts)
            stack = list(starts)
            while stack:
                for step in self._following[stack.pop()]:
                    if step not in reached:
                        reached[step] = None
                        stack.append(step)
            self._kept += len(reached)
            if self._kept > _REACHED_KEPT:
                self._reached.clear()
                self._kept = len(reached)
            self._reached[starts] = np.fromiter(reached, dtype=np.int64, count=len(reached))
        return self._reached[starts]


def order_slices(
    masks: Sequence[int], work: Sequence[float], sizes: Sequence[float], variables: Sequence[int]
) -> tuple[int, ...]:
    """Order the variables of slices such that few steps depend on the last ones, whose values change most often.

    Args:
        masks: Variables on which each step depends, as bits of their positions in ``variables``.
        work: Work of each step.
        sizes: Number of values of each variable of the model.
        variables: Variables on which the slices condition.
    """
    work_of_mask: dict[int, float] = {}
    for mask, amount in zip(masks, work, strict=True):
        work_of_mask[mask] = work_of_mask.get(mask, 0) + amount
    remaining = dict(enumerate(variables))
    result: list[int] = []
    while remaining:
        total = sum(work_of_mask.values())
        depend = {i: sum(amount for mask, amount in work_of_mask.items() if mask >> i & 1) for i in remaining}
        last = min(remaining, key=lambda i: (depend[i] + (total - depend[i]) / sizes[remaining[i]], remaining[i]))
        work_of_mask = {mask: amount for mask, amount in work_of_mask.items() if not mask >> last & 1}
        result.append(remaining.pop(last))
    return tuple(reversed(result))
