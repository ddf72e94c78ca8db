"""Division of the memory among the parts of a search for an optimum.

Copies of the tables come first: for cost shifting, and for soft local consistency. The remaining memory is divided
among the messages of mini-buckets, open nodes, and the cache of AND/OR search.
"""

from __future__ import annotations

from typing import NamedTuple

from elimina.problem.preparation import Problem

_MAX_COPIED_CELLS = 2**26
"""Largest total number of cells of tables that may be copied."""

_CELL_BYTES = 56
"""Bytes of a cell: 8 for each of seven copies (distances, distances in the core's units, costs in the core, shifted
costs, costs of local search, and two copies of the tables)."""

_TABLE_BYTES, _KEPT_BYTES = 2500, 1200
"""Bytes of a table in addition to its cells: during copies, and afterwards; measured on 24,777 tables of 4 cells."""

_BYTES_PER_VALUE, _BYTES_PER_FUNCTION = 24, 40
"""Bytes for each value and each function in a thread of soft local consistency: fitted to the instances 414_VAC and
log-4."""

_TABLE_MEMORY_SHARE = 0.5
"""Largest share of the memory for cells of tables; the rest is for messages and a cache."""

_THREAD_MEMORY_SHARE = 1 / 16
"""Largest share of the memory for the additional threads of soft local consistency: all but the first thread."""

_SMALL_MEMORY_BYTES = 1 << 22
"""Up to this memory limit in bytes, copied tables may use all of the memory: any process uses more anyway."""

_MESSAGE_SHARE, _NODE_SHARE, _CACHE_SHARE = 0.5, 0.25, 0.25
"""Shares of the memory that remains after the tables: for messages, open nodes and the cache."""

_MIN_REMAINING_SHARE = 0.25
"""Least share of the memory for messages, nodes and the cache: even small messages give bounds."""


class Shares(NamedTuple):
    """Bytes for the parts of a search other than the tables.

    Attributes:
        messages: Messages of mini-buckets.
        nodes: Open nodes of soft local consistency.
        cache: Cache of AND/OR search.
    """

    messages: int
    nodes: int
    cache: int


def cells_of(problem: Problem) -> int:
    """Return the total number of cells of all groups' tables, exact up to 2^53."""
    return int(problem.groups.cells(problem.model.size_array).sum())


def can_copy(cells: int, tables: int, memory: int) -> bool:
    """Return whether copies of the tables, for cost shifting or consistency, fit a memory limit.

    Args:
        cells: Total number of cells of the tables.
        tables: Number of tables.
        memory: Memory limit in bytes.
    """
    if cells > min(
        _MAX_COPIED_CELLS, max(int(_TABLE_MEMORY_SHARE * memory), min(memory, _SMALL_MEMORY_BYTES)) // _CELL_BYTES
    ):
        return False
    return memory <= _SMALL_MEMORY_BYTES or _CELL_BYTES * cells + _TABLE_BYTES * tables <= memory


def threads_within(problem: Problem, threads: int, memory: int) -> int:
    """Return the number of threads (at least 1) for soft local consistency or local search; each copies the costs.

    Args:
        problem: Problem of the task ``mpe``.
        threads: Largest number of threads.
        memory: Memory limit in bytes.
    """
    values = int(problem.model.size_array[problem.groups.scopes.members].sum())
    bytes_per_thread = _BYTES_PER_VALUE * values + _BYTES_PER_FUNCTION * len(problem.groups)
    return max(1, min(threads, 1 + int(_THREAD_MEMORY_SHARE * memory // max(1, bytes_per_thread))))


def shares_of(problem: Problem, memory: int) -> Shares:
    """Divide the memory that remains after the tables among the other parts of a search.

    Args:
        problem: Problem of the task ``mpe``.
        memory: Memory limit of the search on the host, in bytes.
    """
    cells, tables, remaining_bytes = cells_of(problem), len(problem.groups), memory
    if memory > _SMALL_MEMORY_BYTES and can_copy(cells, tables, memory):
        remaining_bytes -= _KEPT_BYTES * tables + _CELL_BYTES * cells
        remaining_bytes = max(remaining_bytes, int(_MIN_REMAINING_SHARE * memory))
    return shares_of_bytes(remaining_bytes)


def shares_of_bytes(remaining_bytes: int) -> Shares:
    """Divide the bytes that remain after the tables."""
    return Shares(
        int(_MESSAGE_SHARE * remaining_bytes), int(_NODE_SHARE * remaining_bytes), int(_CACHE_SHARE * remaining_bytes)
    )
