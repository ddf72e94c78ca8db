"""Exact and approximate inference on discrete graphical models, by eliminating variables, on CPUs and GPUs."""

from elimina.errors import EliminaError
from elimina.model import Model, Variable
from elimina.table import FORBIDDEN, Table

__all__ = ["FORBIDDEN", "EliminaError", "Model", "Table", "Variable"]
