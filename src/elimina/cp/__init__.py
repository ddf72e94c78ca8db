"""A finite-domain constraint solver: variables, constraints that shrink their domains, and search."""

from elimina._core import cp_constraint_names as constraint_names
from elimina.cp.expressions import Expression, Relation
from elimina.cp.files import read
from elimina.cp.model import Model, SearchOptions
from elimina.cp.running import Solution
from elimina.result import Result

__all__ = ["Expression", "Model", "Relation", "Result", "SearchOptions", "Solution", "constraint_names", "read"]
