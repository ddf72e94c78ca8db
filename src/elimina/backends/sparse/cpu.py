"""Sparse tables on the CPU, by the compiled core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import (
    TableRows,
    rows_from_dense,
    rows_join,
    rows_move,
    rows_project,
    rows_semi_join,
    rows_sort,
    rows_sorted,
    rows_to_dense,
)
from elimina.backends.sparse.device import JoinOrder, SparseTable, check_semiring
from elimina.errors import MemoryLimitError
from elimina.number_texts import counted
from elimina.problem.semirings import SEMIRINGS
from elimina.system import available_threads


class CpuSparseDevice:
    """The operations of ``SparseTables`` on the CPU.

    Args:
        semiring: A name of ``SEMIRINGS``.
        dtype: Number type of the values: one of ``DTYPES`` that the semiring has.
        parameter: The forbidden cost of min-sum, the modulus of count (0: 2^64).
        threads: Number of threads; None for as many as the process may use.

    Raises:
        InputError: Sparse tables do not support the semiring, the dtype or the parameter.
    """

    def __init__(self, semiring: str, dtype: np.dtype[Any], parameter: float = 0, threads: int | None = None) -> None:
        check_semiring(semiring, dtype, parameter)
        self.semiring, self.dtype, self.parameter = semiring, dtype, parameter
        self.threads = threads or available_threads()
        self._ring = semiring, float(parameter), _integer(dtype, parameter)

    def upload(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array unchanged: the CPU needs no copy."""
        return array

    def download(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the array unchanged: the CPU needs no copy."""
        return array

    def address(self, array: NDArray[Any]) -> int:
        """Return the address of the first element."""
        return int(array.ctypes.data)

    def move(self, keys: NDArray[np.uint64], segments: NDArray[np.int64], words: int) -> NDArray[np.uint64]:
        """Return the keys in another layout."""
        return rows_move(keys, segments, words, self.threads)

    def is_sorted(self, keys: NDArray[np.uint64]) -> bool:
        """Return whether no key is less than the one before it."""
        return rows_sorted(keys, self.threads)

    def sort(self, keys: NDArray[np.uint64], values: NDArray[Any]) -> tuple[Any, Any]:
        """Return the tuples sorted by key."""
        return _keys_and_values(rows_sort(keys, values, self.threads))

    def join(
        self, lhs: SparseTable, rhs: SparseTable, order: JoinOrder, stage: NDArray[np.int64], budget: float
    ) -> tuple[Any, ...]:
        """Join sorted tables: see ``SparseTables.join``.

        Raises:
            MemoryLimitError: There are more than ``order.max_tuples`` tuples.
        """
        try:
            rows = rows_join(
                *self._ring, lhs.keys, lhs.values, rhs.keys, rhs.values,
                order.group, order.low, order.eliminate,
                stage, float(budget), _integer(self.dtype, budget), order.max_tuples, self.threads,
            )  # fmt: skip
            return rows.keys, rows.values, rows.candidates
        except OverflowError as error:
            raise MemoryLimitError(
                f"a join of {len(lhs.values)} and {counted(len(rhs.values), 'tuple')} makes more than "
                f"{order.max_tuples}"
            ) from error

    def project(self, rows: SparseTable, low: int) -> tuple[Any, Any]:
        """Eliminate the low field: see ``SparseTables.project``."""
        return _keys_and_values(rows_project(*self._ring, rows.keys, rows.values, low, self.threads))

    def semi_join(self, lhs: SparseTable, rhs_keys: NDArray[np.uint64], group: NDArray[np.uint64]) -> tuple[Any, Any]:
        """Keep the tuples with a match: see ``SparseTables.semi_join``."""
        return _keys_and_values(rows_semi_join(lhs.keys, lhs.values, rhs_keys, group, self.threads))

    def from_dense(
        self, cells: NDArray[Any], axes: NDArray[np.int64], sizes: NDArray[np.int64], words: int
    ) -> tuple[Any, Any]:
        """List the allowed cells: see ``SparseTables.from_dense``."""
        return _keys_and_values(rows_from_dense(*self._ring, np.ascontiguousarray(cells), axes, sizes, words))

    def to_dense(self, rows: SparseTable, terms: NDArray[np.int64], cells: int) -> NDArray[Any]:
        """Return a dense table: see ``SparseTables.to_dense``."""
        dense = np.full(cells, SEMIRINGS[self.semiring].zero_of(self.dtype, self.parameter), dtype=self.dtype)
        rows_to_dense(rows.keys, rows.values, terms, dense)
        return dense

    def peaks(self, values: NDArray[Any]) -> tuple[float, float]:
        """Return the largest and the smallest value; zeros if there is none."""
        return (float(values.max()), float(values.min())) if len(values) else (0.0, 0.0)

    def scale(self, values: NDArray[Any], factor: float) -> NDArray[Any]:
        """Return the values times a factor."""
        scaled: NDArray[Any] = values * self.dtype.type(factor)
        return scaled


def _keys_and_values(rows: TableRows) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    return rows.keys, rows.values


def _integer(dtype: np.dtype[Any], number: float) -> int:
    return int(number) if dtype.kind in "iu" else 0
