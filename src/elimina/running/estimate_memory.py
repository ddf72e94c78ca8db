"""Memory of estimates, and limits for trying an exact answer before them."""

from __future__ import annotations

from elimina.problem.preparation import Problem

FLOAT_BYTES = 8
"""Bytes of a cell of a table that estimates write out."""

METHOD_MEMORY_SHARE = 0.5
"""Share of the host's memory for the tables of one method, because other methods run at the same time."""

QUICK_ORDER_FACTOR = 256.0
"""If a plan in a quick order needs more than this multiple of the memory limit, no better order is searched for: short
searches save a factor of 30 at most."""


def written_bytes(problem: Problem) -> float:
    """Return the bytes of a problem's tables, written out: the least memory limit with which estimates are made."""
    return FLOAT_BYTES * float(problem.groups.cells(problem.model.sizes).sum())


def can_write_tables(problem: Problem, memory_bytes: int) -> bool:
    """Return whether a problem's tables, written out, fit the memory."""
    return written_bytes(problem) <= memory_bytes
