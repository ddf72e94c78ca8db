"""Statistics of junction trees and plans."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from elimina._core import PlannedTree
from elimina.model.table import SizeProducts
from elimina.number_texts import count_text, counted
from elimina.planning.plan import Plan
from elimina.planning.tree import junction_tree, plan_tree
from elimina.problem.preparation import Problem

_LARGE_AVERAGE = 2.0**53
"""A larger mean number of cells is shown without decimals."""


class Statistics(NamedTuple):
    """Sizes of a junction tree, with tables in cells, as in Table I of Bistaffa et al. (2016) on CUBE.

    Attributes:
        cliques: Number of maximal cliques.
        levels: Number of cliques on the longest path from a root.
        total_cells: Number of cells of all cliques.
        largest_clique, average_clique, smallest_clique: Cells of a clique's table.
        largest_separator, average_separator, smallest_separator: Cells of a separator's table; 0 if there are none.
    """

    cliques: int
    levels: int
    total_cells: int
    largest_clique: int
    average_clique: float
    smallest_clique: int
    largest_separator: int
    average_separator: float
    smallest_separator: int

    def __str__(self) -> str:
        averages = _average_text(self.average_clique), _average_text(self.average_separator)
        rows = [
            (
                "junction tree",
                f"{counted(self.cliques, 'clique')} on {counted(self.levels, 'level')}, "
                f"{counted(self.total_cells, 'cell', is_rounded=True)}",
            ),
            ("cliques, cells", _sizes_text(self.largest_clique, averages[0], self.smallest_clique)),
            ("separators, cells", _sizes_text(self.largest_separator, averages[1], self.smallest_separator)),
        ]
        return "\n".join(f"{name + ':':22}{text}" for name, text in rows)


def _average(cells: Sequence[int]) -> float:
    """Return the mean, rounded down to an integer if the sum exceeds the range of floats."""
    total, count = sum(cells), max(1, len(cells))
    return total / count if total <= sys.float_info.max else total // count


def _average_text(average: float) -> str:
    return f"{average:.1f}" if average < _LARGE_AVERAGE else count_text(int(average))


def _sizes_text(largest: int, average: str, smallest: int) -> str:
    return f"{count_text(largest)} at most, {average} on average, {count_text(smallest)} at least"


def tree_statistics(problem: Problem, order: Sequence[int]) -> Statistics:
    """Return the sizes of the junction tree of an order."""
    sizes = problem.model.sizes
    return _statistics(plan_tree(problem.groups.scopes, sizes, order, problem.kept), sizes)


def plan_statistics(plan: Plan) -> Statistics:
    """Return the sizes of the junction tree of a plan's order, as if all of its cliques were stored."""
    # Sizes come from the factors, which every plan has, even one without recorded steps.
    domains = {v: size for factor in plan.factors for v, size in zip(factor.scope, factor.sizes, strict=True)}
    sizes = [domains.get(v, 1) for v in range(1 + max((*plan.order, *plan.kept), default=-1))]
    return _statistics(plan_tree([factor.scope for factor in plan.factors], sizes, plan.order, plan.kept), sizes)


def _statistics(tree: PlannedTree, sizes: Sequence[int]) -> Statistics:
    cliques = junction_tree(tree)
    product = SizeProducts(sizes)
    tables = [product.of(clique.scope) for clique in cliques]
    separators = [product.of(clique.separator) for clique in cliques if clique.parent >= 0]
    levels: list[int] = [0] * len(cliques)
    for number in reversed(range(len(cliques))):
        parent = cliques[number].parent
        levels[number] = 1 if parent < 0 else levels[parent] + 1
    return Statistics(
        cliques=len(cliques),
        levels=max(levels, default=0),
        total_cells=sum(tables),
        largest_clique=max(tables, default=0),
        average_clique=_average(tables),
        smallest_clique=min(tables, default=0),
        largest_separator=max(separators, default=0),
        average_separator=_average(separators),
        smallest_separator=min(separators, default=0),
    )
