"""A finite-domain constraint solver: variables, constraints that shrink their domains, and search."""

from __future__ import annotations

from elimina._core import cp_constraint_names as constraint_names
from elimina.cp.conflicts import Conflict
from elimina.cp.expressions import Combination, Condition, Expression, Relation
from elimina.cp.intervals import IntervalVar
from elimina.cp.model import Model
from elimina.cp.reading import read
from elimina.cp.search_options import SearchOptions
from elimina.cp.solution import Solution
from elimina.result import Result

__all__ = [
    "Combination",
    "Condition",
    "Conflict",
    "Expression",
    "IntervalVar",
    "Model",
    "Relation",
    "Result",
    "SearchOptions",
    "Solution",
    "constraint_names",
    "read",
]
