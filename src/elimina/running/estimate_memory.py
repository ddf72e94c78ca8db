"""Memory of estimates, and the limit up to which an exact answer is tried before them."""

from __future__ import annotations

from elimina.problem.preparation import Problem

FLOAT_BYTES = 8
"""Bytes of a cell of a table that an estimate writes out."""

METHOD_MEMORY_SHARE = 0.5
"""Share of the host's memory for the tables of one method, because other methods run at the same time."""

QUICK_ORDER_FACTOR = 256.0
"""If a plan in a quick order needs more than this multiple of the memory limit, no better order is searched for: short
searches save at most a factor of 30."""

SMALL_COPY_BYTES = 1 << 25
"""Bytes of dense tables up to which a fallback always writes them out."""

MAX_WRITTEN_RATIO = 4.0
"""A fallback writes out larger tables only if they take at most this multiple of the memory of the listed values."""


def written_bytes(problem: Problem) -> float:
    """Return the bytes of a problem's tables if they are written out: the least memory limit of estimates."""
    return FLOAT_BYTES * float(problem.groups.cells(problem.model.size_array).sum())


def can_write_tables(problem: Problem, memory_bytes: int) -> bool:
    """Return whether a problem's tables fit the memory if they are written out."""
    return written_bytes(problem) <= memory_bytes


def are_dense_tables_small(problem: Problem) -> bool:
    """Return whether a problem's tables are small, or little larger than lists of tuples, if they are written out."""
    written = written_bytes(problem)
    if written <= SMALL_COPY_BYTES:
        return True
    return written <= MAX_WRITTEN_RATIO * FLOAT_BYTES * sum(table.values.size for table in problem.tables)
