"""pgmpy (tested with 1.1): its networks as models and back, and its interface of exact inference."""

from elimina.adapters.pgmpy.variable_elimination import VariableElimination
from elimina.io.pgmpy_networks import from_pgmpy, to_pgmpy

__all__ = ["VariableElimination", "from_pgmpy", "to_pgmpy"]
