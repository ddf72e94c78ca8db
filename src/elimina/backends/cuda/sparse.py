"""Sparse tables on a CUDA device (``kernels/rows.cu``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda import kernels
from elimina.backends.cuda.device import CudaDevice
from elimina.backends.sparse.device import JoinOrder, SparseTable, check_semiring
from elimina.errors import DeviceError, MemoryLimitError
from elimina.number_texts import counted
from elimina.problem.semirings import SEMIRINGS

PAIRS_PER_BLOCK = 8 * kernels.THREADS
"""Pairs of runs that a block joins: ``kRounds`` for each thread (``kernels/rows.cu``)."""


class CudaSparseDevice:
    """The operations of ``SparseTables`` on a CUDA device; arrays are CuPy's.

    Args:
        backend: Backend of the device.
        semiring: A name of ``SEMIRINGS``.
        dtype: Number type of the values: one of ``DTYPES`` that the semiring has.
        parameter: The forbidden cost of min-sum, the modulus of count (0: 2^64).

    Raises:
        InputError: Sparse tables do not support the semiring, the dtype or the parameter.
    """

    def __init__(self, backend: CudaDevice, semiring: str, dtype: np.dtype[Any], parameter: float = 0) -> None:
        check_semiring(semiring, dtype, parameter)
        self.semiring, self.dtype, self.parameter = semiring, dtype, parameter
        self._backend, self._cupy = backend, backend.cupy
        self._parameter = dtype.type(parameter)
        self._ring = kernels.semiring_type(semiring, dtype)
        self._word = f"elimina::u{8 * dtype.itemsize}"

    def upload(self, array: NDArray[Any]) -> Any:
        """Return a copy on the device."""
        with self._working(array.nbytes):
            return self._cupy.asarray(array)

    def download(self, array: Any) -> NDArray[Any]:
        """Return a copy on the host."""
        with self._working(0):
            cells: NDArray[Any] = array.get()
            return cells

    def address(self, array: Any) -> int:
        """Return the address of the first element."""
        return int(array.data.ptr)

    def move(self, keys: Any, segments: NDArray[np.int64], words: int) -> Any:
        """Return the keys in another layout."""
        with self._working(8 * words * len(keys)):
            moved = self._cupy.empty((len(keys), words), dtype=np.uint64)
            name = f"rows_move<{keys.shape[1]}, {words}>"
            self._launch(name, len(keys), keys, len(keys), self._cupy.asarray(segments), len(segments), moved)
            return moved

    def is_sorted(self, keys: Any) -> bool:
        """Return whether no key is less than the one before it."""
        with self._working(0):
            flag = self._cupy.zeros(1, dtype=np.int32)
            self._launch(f"rows_unsorted<{keys.shape[1]}>", len(keys) - 1, keys, len(keys), flag)
            return not flag.get()[0]

    def sort(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Return the tuples sorted by key."""
        with self._working(keys.nbytes + values.nbytes):
            order = None
            for word in reversed(range(keys.shape[1])):
                column = keys[:, word] if order is None else keys[:, word][order]
                permutation = self._cupy.argsort(self._cupy.ascontiguousarray(column))
                order = permutation if order is None else order[permutation]
            sorted_keys, sorted_values = self._room(len(keys), keys.shape[1])
            name = f"rows_gather<{self._word}, {keys.shape[1]}>"
            self._launch(name, len(keys), keys, values, order, len(keys), sorted_keys, sorted_values)
            return sorted_keys, sorted_values

    def join(
        self, lhs: SparseTable, rhs: SparseTable, order: JoinOrder, stage: NDArray[np.int64], budget: float
    ) -> tuple[Any, ...]:
        """Join sorted tables: see ``SparseTables.join``.

        Raises:
            MemoryLimitError: There are more than ``order.max_tuples`` tuples.
        """
        words, rows = lhs.layout.words, len(lhs.values)
        with self._working(2 * (lhs.keys.nbytes + rhs.keys.nbytes)):
            if not rows or not len(rhs.values):
                return (*self._room(0, words), 0)
            starts = [self._starts(table, order.low) if order.low else (None, None) for table in (lhs, rhs)]
            first, counts = self._match(lhs, starts[0], rhs.keys, starts[1], order.group)
            sums = self._cupy.cumsum(counts)
            pairs = int(sums[-1])
            kind = "false" if order.eliminate or not order.low else "true"
            sides = lhs.keys, lhs.values, starts[0][0], rows, rhs.keys, rhs.values, starts[1][0]
            scalars = np.uint64(order.low), self._cupy.asarray(stage), self.dtype.type(budget), self._parameter
            blocks = -(-pairs // PAIRS_PER_BLOCK)
            ends = self._cupy.empty(blocks, dtype=np.int64)
            arguments = (*sides, first, sums, pairs, *scalars)
            name = f"rows_join<{self._ring}, {words}, {kind}, "
            self._launch(name + "false>", blocks * kernels.THREADS, *arguments, ends, None, None)
            ends = self._cupy.cumsum(ends)
            total = int(ends[-1]) if blocks else 0
            if total > order.max_tuples:
                raise MemoryLimitError(
                    f"a join of {rows} and {counted(len(rhs.values), 'tuple')} makes {total}, more than "
                    f"{order.max_tuples}"
                )
            keys, values = self._room(total, words)
            self._launch(name + "true>", blocks * kernels.THREADS, *arguments, ends, keys, values)
            return keys, values, pairs

    def project(self, rows: SparseTable, low: int) -> tuple[Any, Any]:
        """Eliminate the low field: see ``SparseTables.project``."""
        words = rows.layout.words
        with self._working(rows.keys.nbytes + rows.values.nbytes):
            starts, last = self._starts(rows, low)
            runs = int(last[0]) if len(rows.values) else 0
            keys, values = self._room(runs, words)
            name = f"rows_project<{self._ring}, {words}>"
            arguments = rows.keys, rows.values, starts, runs, np.uint64(low), self._parameter, keys, values
            self._launch(name, runs, *arguments)
            return keys, values

    def semi_join(self, lhs: SparseTable, rhs_keys: Any, group: NDArray[np.uint64]) -> tuple[Any, Any]:
        """Keep the tuples with a match: see ``SparseTables.semi_join``."""
        words, rows = lhs.layout.words, len(lhs.values)
        with self._working(lhs.keys.nbytes + lhs.values.nbytes):
            _, counts = self._match(lhs, (None, None), rhs_keys, (None, None), group)
            sums = self._cupy.cumsum(counts > 0, dtype=np.int64)
            keys, values = self._room(int(sums[-1]) if rows else 0, words)
            self._launch(f"rows_keep<{self._word}, {words}>", rows, lhs.keys, lhs.values, sums, rows, keys, values)
            return keys, values

    def from_dense(self, cells: Any, axes: NDArray[np.int64], sizes: NDArray[np.int64], words: int) -> tuple[Any, Any]:
        """List the allowed cells: see ``SparseTables.from_dense``."""
        cupy, number = self._cupy, len(cells)
        with self._working(12 * number):
            flags = cupy.empty(number, dtype=np.int64)
            shape = cells, number, cupy.asarray(axes), cupy.asarray(sizes), np.int32(len(sizes))
            self._launch(f"rows_feasible<{self._ring}>", number, *shape, self._parameter, flags)
            sums = cupy.cumsum(flags)
            keys, values = self._room(int(sums[-1]) if number else 0, words)
            self._launch(f"rows_from_dense<{self._word}, {words}>", number, *shape, sums, keys, values)
            return keys, values

    def to_dense(self, rows: SparseTable, terms: NDArray[np.int64], cells: int) -> Any:
        """Return a dense table: see ``SparseTables.to_dense``."""
        number = len(rows.values)
        with self._working(cells * self.dtype.itemsize):
            dense = self._cupy.full(
                cells, SEMIRINGS[self.semiring].zero_of(self.dtype, self.parameter), dtype=self.dtype
            )
            name = f"rows_to_dense<{self._word}, {rows.layout.words}>"
            self._launch(name, number, rows.keys, rows.values, number, self._cupy.asarray(terms), len(terms), dense)
            return dense

    def peaks(self, values: Any) -> tuple[float, float]:
        """Return the largest and the smallest value; zeros if there is none."""
        with self._working(0):
            return (float(values.max()), float(values.min())) if len(values) else (0.0, 0.0)

    def scale(self, values: Any, factor: float) -> Any:
        """Return the values times a factor."""
        with self._working(values.nbytes):
            return values * self.dtype.type(factor)

    def _starts(self, rows: SparseTable, low: int) -> tuple[Any, Any]:
        """Return the start of each run, and the number of runs, both on the device."""
        number = len(rows.values)
        heads = self._cupy.empty(number, dtype=np.int64)
        self._launch(f"rows_heads<{rows.layout.words}>", number, rows.keys, number, np.uint64(low), heads)
        runs = self._cupy.cumsum(heads)
        starts = self._cupy.empty(number + 1, dtype=np.int64)
        self._launch("rows_starts", number, runs, number, starts)
        return starts, runs[-1:]

    def _match(
        self,
        lhs: SparseTable,
        lhs_runs: tuple[Any, Any],
        rhs_keys: Any,
        rhs_runs: tuple[Any, Any],
        group: NDArray[np.uint64],
    ) -> tuple[Any, Any]:
        """Return, for each run of the left table, the first matching run of the right one, and how many match."""
        rows = len(lhs.values)
        first, counts = (self._cupy.empty(rows, dtype=np.int64) for _ in range(2))
        sides = lhs.keys, *lhs_runs, rows, rhs_keys, *rhs_runs, len(rhs_keys)
        mask = self._cupy.asarray(group)
        self._launch(f"rows_match<{lhs.layout.words}>", rows, *sides, mask, first, counts)
        return first, counts

    def _room(self, rows: int, words: int) -> tuple[Any, Any]:
        return self._cupy.empty((rows, words), dtype=np.uint64), self._cupy.empty(rows, dtype=self.dtype)

    def _launch(self, name: str, threads: int, *arguments: Any) -> None:
        """Queue a kernel; ints become 64-bit words, None a null pointer."""
        if threads <= 0:
            return
        kernel = self._backend.function(f"elimina::{name}")
        words = [np.int64(a or 0) if a is None or isinstance(a, int) else a for a in arguments]
        kernel((-(-threads // kernels.THREADS),), (kernels.THREADS,), tuple(words))

    @contextmanager
    def _working(self, size: int) -> Iterator[None]:
        """Use the device's stream and memory; ``size``: bytes that are needed, for the message if they are missing."""
        try:
            with (
                self._backend.at_work(size),
                self._cupy.cuda.using_allocator(self._backend.device_memory.allocate_array),
            ):
                yield
        except DeviceError as error:
            # The number of tuples of a step is not known in advance. If they do not fit, those of slices may.
            if isinstance(error.__cause__, MemoryError):
                raise MemoryLimitError(f"a sparse step makes more tuples than fit: {error}") from error
            raise
