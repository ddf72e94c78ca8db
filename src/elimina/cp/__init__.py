"""A finite-domain constraint solver: variables, constraints that shrink their domains, and search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elimina._core import cp_constraint_names as constraint_names
from elimina.cp.conflicts import Conflict
from elimina.cp.expressions import Combination, Condition, Expression, Relation
from elimina.cp.global_conditions import (
    GlobalCondition,
    all_different,
    all_different_except_0,
    bin_packing_load,
    cardinality,
    circuit,
    clause,
    cumulative,
    inverse,
    lex_less,
    lex_lesseq,
    member,
    no_overlap,
    no_overlap_2d,
    precedence,
    regular,
    reservoir,
    subcircuit,
    table,
    value_precede,
)
from elimina.cp.intervals import IntervalVar
from elimina.cp.model import Model
from elimina.cp.search_options import SearchOptions
from elimina.cp.solution import Solution
from elimina.lazy_names import lazy_names
from elimina.result import Result

if TYPE_CHECKING:
    from elimina.cp.reading import read
    from elimina.cp.tour_problem import TourProblem
    from elimina.cp.tsp import solve_tsp
    from elimina.cp.tsplib import read_tour, read_tsp, write_tour

__all__ = [
    "Combination",
    "Condition",
    "Conflict",
    "Expression",
    "GlobalCondition",
    "IntervalVar",
    "Model",
    "Relation",
    "Result",
    "SearchOptions",
    "Solution",
    "TourProblem",
    "all_different",
    "all_different_except_0",
    "bin_packing_load",
    "cardinality",
    "circuit",
    "clause",
    "constraint_names",
    "cumulative",
    "inverse",
    "lex_less",
    "lex_lesseq",
    "member",
    "no_overlap",
    "no_overlap_2d",
    "precedence",
    "read",
    "read_tour",
    "read_tsp",
    "regular",
    "reservoir",
    "solve_tsp",
    "subcircuit",
    "table",
    "value_precede",
    "write_tour",
]

# Imported on first use: a model that is built in Python needs no readers of files and no tours.
__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "cp.reading": ("read",),
        "cp.tour_problem": ("TourProblem",),
        "cp.tsp": ("solve_tsp",),
        "cp.tsplib": ("read_tour", "read_tsp", "write_tour"),
    },
)
