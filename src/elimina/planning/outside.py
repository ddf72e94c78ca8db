"""Lower bounds on the rest of the problem for a sparse step, by mini-buckets over the same tree.

Mini-bucket tree elimination (R. Mateescu, R. Dechter, K. Kask, "Tree approximation for belief updating", AAAI 2002):
one pass towards the roots bounds each bucket's message from below, one back bounds all that is outside its subtree. A
row whose value and bounds together are forbidden can be no part of a solution (function filtering: M. Sanchez,
J. Larrosa, P. Meseguer, "Improving tree decomposition methods with function filtering", IJCAI 2005).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from elimina._core import row_bounds
from elimina.planning.machine import cpu_machine
from elimina.planning.plan import JOIN, FactorLayout, Operand, Plan, Step
from elimina.planning.program import place_steps
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.steps import Steps
from elimina.tree import plan_tree, rows_of

CELLS = 1 << 12
"""Cells of a mini-bucket's message, unless its tables are larger: larger messages drop few more rows."""


class Place(NamedTuple):
    """A table of an arena.

    Attributes:
        offset: Start of the table, in elements.
        scope: Variables of the table.
        sizes: Their numbers of values.
        strides: Elements between two values of each.
    """

    offset: int
    scope: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class Outside(NamedTuple):
    """A program over a plan's factors, and the places of its answers.

    Attributes:
        steps: Their arena begins with the plan's factors.
        arena_cells: Elements of that arena.
        factors: Places of the plan's factors.
        own: Tables that together bound each step's output from below.
        rest: Tables that bound, for each step, the factors that neither it nor its subtree has, without other trees.
        trees: Numbers that bound each tree.
        tree_of: Number of each step's tree.
    """

    steps: Steps
    arena_cells: int
    factors: tuple[Place, ...]
    own: tuple[tuple[Place, ...], ...]
    rest: tuple[tuple[Place, ...], ...]
    trees: tuple[tuple[Place, ...], ...]
    tree_of: tuple[int, ...]


def outside(plan: Plan, sizes: Sequence[int]) -> Outside:
    """Plan the bounds of a plan's steps.

    Args:
        plan: Exact, for the optimum of integer costs (``min-sum``).
        sizes: Domain size of every variable of the model.
    """
    tree = plan_tree([factor.scope for factor in plan.factors], sizes, plan.order)
    most = int(np.iinfo(plan.dtype).max // max(1, int(plan.forbidden)))
    bounds, up, down = row_bounds(tree, min(MAX_OPERANDS, most), CELLS)
    placed = place_steps(bounds, plan.itemsize, True, cpu_machine(1))
    steps = Steps.of(placed)
    where = _Places(plan.factors, steps)
    nodes = {variable: number for number, variable in enumerate(tree.variables.tolist())}
    parents = tree.parents.tolist()
    inside, around = ([where.all(tables) for tables in rows_of(lists)] for lists in (up, down))
    own: list[tuple[Place, ...]] = []
    for step in plan.steps:
        if step.variable == JOIN:
            own.append(tuple(table for operand in step.operands for table in where.under(operand, own)))
        else:
            own.append(inside[nodes[step.variable]])
    roots = [number for number, parent in enumerate(parents) if parent < 0]
    tree_number = {root: number for number, root in enumerate(roots)}
    root_of = [0] * len(parents)
    for number in range(len(parents) - 1, -1, -1):
        root_of[number] = tree_number[number] if parents[number] < 0 else root_of[parents[number]]
    rest: list[tuple[Place, ...]] = [()] * len(plan.steps)
    tree_of = [0] * len(plan.steps)
    for number in range(len(plan.steps) - 1, -1, -1):
        step = plan.steps[number]
        if step.variable == JOIN:
            reader = step.readers[0]
            others = (operand for operand in plan.steps[reader].operands if operand.source != number)
            rest[number] = rest[reader] + tuple(table for other in others for table in where.under(other, own))
            tree_of[number] = tree_of[reader]
            continue
        node = nodes[step.variable]
        rest[number] = around[node]
        tree_of[number] = root_of[node]
    trees = tuple(inside[root] for root in roots)
    factors = tuple(where.factor(number) for number in range(len(plan.factors)))
    return Outside(steps, int(placed.arena_cells), factors, tuple(own), tuple(rest), trees, tuple(tree_of))


class _Places:
    """Places of the tables of both programs."""

    def __init__(self, factors: Sequence[FactorLayout], steps: Sequence[Step]) -> None:
        self._factors, self._steps = factors, steps

    def all(self, tables: Iterable[int]) -> tuple[Place, ...]:
        return tuple(self.factor(table) if table >= 0 else self._message(-1 - table) for table in tables)

    def under(self, operand: Operand, own: Sequence[tuple[Place, ...]]) -> tuple[Place, ...]:
        """Return the tables that bound what a step of the plan reads."""
        return (self.factor(operand.factor),) if operand.source < 0 else own[operand.source]

    def factor(self, number: int) -> Place:
        factor = self._factors[number]
        return Place(factor.offset, factor.scope, factor.sizes, factor.strides)

    def _message(self, number: int) -> Place:
        step = self._steps[number]
        return Place(step.out_offset, step.axes, step.sizes, step.out_strides)
