"""Factors of a problem over variables that are numbered in elimination order."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from elimina.methods.clique_tables import Floats, Scope, TableShapes
from elimina.planning.order import find_order
from elimina.planning.tree import bucket_tree
from elimina.problem.preparation import Problem


class RankedFactors:
    """Factors over ranks, each divided by its largest value.

    Args:
        order: Variable of each rank.
        shapes: Shapes of tables over ranks.
        tables: Scope and cells of each factor.
        log_constant: Natural logarithm of what the factors leave out; minus infinity: the sum is 0.

    Attributes:
        buckets: Factors of each rank whose first variable it is.
    """

    def __init__(
        self, order: Sequence[int], shapes: TableShapes, tables: list[tuple[Scope, Floats]], log_constant: float
    ) -> None:
        self.order, self.shapes, self.tables, self.log_constant = order, shapes, tables, log_constant
        self.buckets: list[list[int]] = [[] for _ in order]
        for number, (scope, _) in enumerate(tables):
            self.buckets[scope[0]].append(number)

    @staticmethod
    def of(problem: Problem, seed: int, seconds: float) -> RankedFactors:
        """Return the factors of a problem, by an order that a search finds.

        Args:
            problem: Problem of the task ``pr``.
            seed: Seed of the search for an order.
            seconds: Time limit of the search.
        """
        scopes = [group.scope for group in problem.groups]
        order = _depth_first_order(problem, scopes, seed, seconds)
        rank = {v: place for place, v in enumerate(order)}
        shapes = TableShapes([problem.model.sizes[v] for v in order])
        tables: list[tuple[Scope, Floats]] = []
        log_constant = float(problem.model.constant)
        constants = [float(problem.tables[index].values) for index in problem.constants]
        for group in problem.groups:
            scope = tuple(sorted([rank[v] for v in group.scope]))
            product = shapes.ones(scope)
            for member in group.members:
                table = problem.tables[member]
                axes = sorted(range(len(table.scope)), key=lambda axis: rank[table.scope[axis]])
                cells = np.ascontiguousarray(table.dense().transpose(axes), dtype=np.float64).reshape(-1)
                largest = float(cells.max())
                constants.append(largest)
                if largest > 0:
                    inner = tuple(sorted([rank[v] for v in table.scope]))
                    shapes.multiply(product, scope, cells / largest, inner)
            tables.append((scope, product))
        log_constant += math.fsum([math.log(value) if value > 0 else -math.inf for value in constants])
        return RankedFactors(order, shapes, tables, log_constant)

    def supports(self) -> RankedFactors:
        """Return factors that are 1 wherever these are positive."""
        tables = [(scope, (table > 0).astype(np.float64)) for scope, table in self.tables]
        return RankedFactors(self.order, self.shapes, tables, 0.0)


def _depth_first_order(problem: Problem, scopes: Sequence[Scope], seed: int, seconds: float) -> list[int]:
    """Return an order in which subtrees are eliminated one after another, those that need most room first."""
    sizes = [problem.model.sizes[v] for v in problem.free]
    place = {v: number for number, v in enumerate(problem.free)}
    order = find_order(sizes, [[place[v] for v in scope] for scope in scopes], seconds=seconds, seed=seed)
    nodes = bucket_tree(scopes, [problem.free[v] for v in order.order]).nodes
    bits = [sum([math.log2(problem.model.sizes[v]) for v in node.separator]) for node in nodes]
    peaks: list[float] = []
    children: list[list[int]] = []
    for number, node in enumerate(nodes):
        children.append(sorted(node.children, key=lambda child: bits[child] - peaks[child]))
        held, peak = 0.0, bits[number] + math.log2(problem.model.sizes[node.variable])
        for child in children[-1]:
            peak = max(peak, held + peaks[child])
            held += bits[child]
        peaks.append(max(peak, held))
    # Parents before children, the last children first: reversed, this is the order.
    sequence: list[int] = []
    stack = [number for number, node in enumerate(nodes) if node.parent < 0]
    while stack:
        number = stack.pop()
        sequence.append(nodes[number].variable)
        stack += children[number]
    return sequence[::-1]
