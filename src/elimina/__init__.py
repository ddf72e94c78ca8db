"""Exact and approximate inference on discrete graphical models, by eliminating variables, on CPUs and GPUs."""

from elimina.api import plan, solve
from elimina.errors import (
    DeviceError,
    EliminaError,
    FormatError,
    InputError,
    InternalError,
    MemoryLimitError,
    TimeLimitError,
    UnsupportedError,
)
from elimina.io import read, read_evidence, write
from elimina.model import Model, Variable
from elimina.planning.plan import Plan
from elimina.result import Result
from elimina.table import FORBIDDEN, Table

__version__ = "0.1.0"

__all__ = [
    "FORBIDDEN",
    "DeviceError",
    "EliminaError",
    "FormatError",
    "InputError",
    "InternalError",
    "MemoryLimitError",
    "Model",
    "Plan",
    "Result",
    "Table",
    "TimeLimitError",
    "UnsupportedError",
    "Variable",
    "plan",
    "read",
    "read_evidence",
    "solve",
    "write",
]
