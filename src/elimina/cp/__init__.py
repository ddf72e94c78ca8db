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
from elimina.result import Result

if TYPE_CHECKING:
    from elimina.cp.reading import read

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
    "regular",
    "reservoir",
    "subcircuit",
    "table",
    "value_precede",
]


def __getattr__(name: str) -> object:
    # Models that are built in Python need no registry of file formats.
    if name != "read":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from elimina.cp.reading import read

    globals()[name] = read
    return read
