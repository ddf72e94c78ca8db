"""Plain, slow references for elimination orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations


def neighbours_of(count: int, scopes: Sequence[Sequence[int]]) -> list[set[int]]:
    neighbours: list[set[int]] = [set() for _ in range(count)]
    for scope in scopes:
        for v in scope:
            neighbours[v] |= set(scope) - {v}
    return neighbours


def symbolic_elimination(
    sizes: Sequence[int], scopes: Sequence[Sequence[int]], order: Sequence[int]
) -> tuple[int, int, int]:
    """Work, largest message and width of an order, by playing the elimination game on sets."""
    neighbours = neighbours_of(len(sizes), scopes)
    work, largest, width = 0, 1 if sizes else 0, 0
    for v in order:
        around = neighbours[v]
        message = math.prod(sizes[u] for u in around)
        work += message * sizes[v]
        largest = max(largest, message)
        width = max(width, sum(sizes[u] > 1 for u in around))
        for u in around:
            neighbours[u] = (neighbours[u] | around) - {u, v}
    return work, largest, width


def best_work_by_permutations(sizes: Sequence[int], scopes: Sequence[Sequence[int]]) -> int:
    return min(symbolic_elimination(sizes, scopes, order)[0] for order in permutations(range(len(sizes))))


def best_work_by_subsets(sizes: Sequence[int], scopes: Sequence[Sequence[int]]) -> int:
    """Dynamic programming over the sets of eliminated variables (Bodlaender et al., 2012, for treewidth)."""
    count = len(sizes)
    neighbours = neighbours_of(count, scopes)
    best = {frozenset[int](): 0}
    for _ in range(count):
        following: dict[frozenset[int], int] = {}
        for gone, work in best.items():
            for v in set(range(count)) - gone:
                reached, stack = {v}, [v]
                while stack:
                    for u in neighbours[stack.pop()] - reached:
                        reached.add(u)
                        if u in gone:
                            stack.append(u)
                bucket = math.prod(sizes[u] for u in reached - gone)
                after = gone | {v}
                following[after] = min(following.get(after, work + bucket), work + bucket)
        best = following
    return best[frozenset(range(count))]
