"""Guide of a search: the places of a plan's tables, and the variables that each subtree depends on.

A variable's tables are those of all its mini-buckets; the messages among them bound what their subtrees cost at least
(Kask and Dechter 2001, "A general scheme for automatic generation of search heuristics from specification
dependencies"). Variables are numbered by their place in the order here, so that a parent's number is above its child's.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.planning.plan import JOIN, LEVEL, Plan
from elimina.planning.steps import Steps
from elimina.tree import plan_tree

_TABLE_BYTES, _OWN_BYTES = 150, 320
"""Bytes of a table of a few variables in the core's lists, and in those of each thread, its local search included."""

_CONTEXT_BYTES, _PASSED_BYTES = 28, 4
"""Bytes of an ancestor in a context (there and in the keys of the cache), and of a variable that a message passes."""


class Guide(NamedTuple):
    """A pseudo-tree (Dechter and Mateescu 2007) and the tables that a search looks up.

    Attributes:
        tables: int64, for each table: its offset in the arena, its home (the variable of its scope that is eliminated
            first; -1: it is one number), the stride of that variable, its origin (the variable whose mini-bucket sent
            it; -1: it is a factor), the number of its other variables, and each one's number and stride.
        sizes: Domain sizes.
        parents: Parent of each variable; -1 for a root.
        starts: int64, place of each variable's first context in ``contexts``, and their number.
        contexts: int32, for each variable the ancestors that its subtree depends on.
    """

    tables: NDArray[np.int64]
    sizes: Sequence[int]
    parents: Sequence[int]
    starts: NDArray[np.int64]
    contexts: NDArray[np.int32]

    def threads_within(self, memory: int, most: int) -> int:
        """Return how many threads have room for their lists; 0: not even one."""
        shared, own = self.bytes()
        return max(0, min(most, (memory - shared) // max(1, own)))

    def bytes(self) -> tuple[int, int]:
        """Return the bytes of the lists that the threads of a search share, and of those that each has of its own."""
        depth = [0] * len(self.sizes)
        for v in reversed(range(len(depth))):
            if self.parents[v] >= 0:
                depth[v] = depth[self.parents[v]] + 1
        words, at, passed, tables = self.tables.data, 0, 0, 0
        while at < len(words):
            home, origin = words[at + 1], words[at + 3]
            if origin >= 0:
                passed += depth[origin] - (depth[home] if home >= 0 else -1)
            tables += 1
            at += 5 + 2 * words[at + 4]
        return (
            _PASSED_BYTES * passed + _CONTEXT_BYTES * len(self.contexts) + _TABLE_BYTES * tables,
            _OWN_BYTES * tables,
        )

    def homes(self) -> list[list[Placed]]:
        """Return the tables of each variable."""
        result: list[list[Placed]] = [[] for _ in self.sizes]
        words = self.tables.tolist()
        at = 0
        while at < len(words):
            offset, home, stride, _, count = words[at : at + 5]
            others = words[at + 5 : at + 5 + 2 * count]
            at += 5 + 2 * count
            if home >= 0:
                result[home].append(Placed(offset, stride, tuple(zip(others[::2], others[1::2], strict=True))))
        return result


class Placed(NamedTuple):
    """Place of a table: its offset, the stride of its home, and the strides of other variables."""

    offset: int
    stride: int
    others: tuple[tuple[int, int], ...]


def guide_of(plan: Plan, sizes: Sequence[int]) -> Guide:
    """Find the tables of a plan for the task ``mpe`` that keeps its messages.

    Args:
        plan: Its buckets may be divided.
        sizes: Domain size of every variable of the model.
    """
    # Steps that are unpacked take ten times the memory of their records.
    steps = Steps.packed(plan.steps)
    number = {v: i for i, v in enumerate(plan.order)}
    words = array("q")
    stack = [output.step for output in plan.outputs]
    for root in stack:
        words.extend((int(steps.offsets[root]), -1, 0, number[int(steps.variables[root])], 0))
    while stack:
        variable = int(steps.variables[reached := stack.pop()])
        for factor, source in _leaves(steps, reached):
            if source < 0:
                layout = plan.factors[factor]
                words.extend(_words(number, variable, layout.offset, -1, layout.scope, layout.strides))
            else:
                origin = number[int(steps.variables[source])]
                words.extend(_words(number, variable, int(steps.offsets[source]), origin, *steps.scope_of(source)))
                stack.append(source)
    tree = plan_tree([factor.scope for factor in plan.factors], sizes, plan.order)
    starts, members = tree.separators
    places = np.zeros(len(sizes), dtype=np.int32)
    places[list(plan.order)] = np.arange(len(plan.order))
    return Guide(
        np.frombuffer(words, dtype=np.int64),
        [sizes[v] for v in plan.order],
        tree.parents.tolist(),
        starts,
        places[members],
    )


def _leaves(steps: Steps, reached: int) -> Iterator[tuple[int, int]]:
    """Yield the factors and messages that a step reads, itself or by joins; moment matching adds up to nothing."""
    stack = [reached]
    while stack:
        for factor, source in steps.reads_of(stack.pop()):
            kind = steps.variables[source] if source >= 0 else 0
            if kind == JOIN:
                stack.append(source)
            elif kind != LEVEL:
                yield factor, source


def _words(
    number: dict[int, int], variable: int, offset: int, origin: int, scope: Sequence[int], strides: Sequence[int]
) -> list[int]:
    places = dict(zip(scope, strides, strict=True))
    others = [word for v, stride in places.items() if v != variable for word in (number[v], stride)]
    return [offset, number[variable], places[variable], origin, len(others) // 2, *others]
