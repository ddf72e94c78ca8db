"""Sparse tables, and the operations on them that a device has."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.planning.key_layout import DTYPES, KeyLayout
from elimina.problem.semirings import SEMIRINGS


class SparseTable(NamedTuple):
    """A sparse table: only the feasible tuples.

    Attributes:
        layout: Layout of the keys.
        keys: uint64 of shape (tuples, ``layout.words``), ascending as numbers of ``layout.words`` words; all different.
        values: Shape (tuples,), of the semiring's dtype; none is the semiring's zero. Integer costs are not negative,
            and a sum that reaches the forbidden cost is forbidden.
    """

    layout: KeyLayout
    keys: Any
    values: Any


class JoinOrder(NamedTuple):
    """Order of a join of two tables (``JoinOrder`` of the core).

    Attributes:
        group: Mask of the shared fields besides the low one, a number for each word of a key.
        low: Mask of the least significant field, if both tables have its variable; 0: there is none.
        eliminate: True to eliminate that variable.
        max_tuples: Largest number of tuples of the result.
    """

    group: NDArray[np.uint64]
    low: int
    eliminate: bool
    max_tuples: int


class SparseDevice(Protocol):
    """A device that joins sparse tables of one semiring; ``SparseTables`` combines its operations.

    Arrays are in the device's memory unless stated otherwise.

    Attributes:
        semiring: A name of ``SEMIRINGS``.
        dtype: Number type of the values.
        parameter: The forbidden cost of min-sum, the modulus of count (0: 2^64).
    """

    semiring: str
    dtype: np.dtype[Any]
    parameter: float

    def upload(self, array: NDArray[Any]) -> Any:
        """Return a copy on the device of an array of the host."""
        ...

    def download(self, array: Any) -> NDArray[Any]:
        """Return a copy on the host of an array of the device."""
        ...

    def address(self, array: Any) -> int:
        """Return the address of the first element."""
        ...

    def move(self, keys: Any, segments: NDArray[np.int64], words: int) -> Any:
        """Return the keys in another layout.

        Args:
            keys: Keys of a table.
            segments: Moves of bits (``KeyLayout.segments``), on the host.
            words: Words of a key in the other layout.
        """
        ...

    def is_sorted(self, keys: Any) -> bool:
        """Return whether no key is less than the one before it."""
        ...

    def sort(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Return the tuples sorted by key."""
        ...

    def join(
        self, lhs: SparseTable, rhs: SparseTable, order: JoinOrder, stage: NDArray[np.int64], budget: float
    ) -> tuple[Any, ...]:
        """Join sorted tables of one layout.

        Args:
            lhs: Table whose key has the shared fields first.
            rhs: The other table.
            order: Order of the join.
            stage: Dense tables that are joined too, and the bounds of a filter, as words.
            budget: Worst total that the filter keeps.

        Returns:
            Keys, values and the number of tuples considered.

        Raises:
            MemoryLimitError: There are more than ``order.max_tuples`` tuples.
        """
        ...

    def project(self, rows: SparseTable, low: int) -> tuple[Any, Any]:
        """Return keys and values without the least significant field; ``low``: its mask."""
        ...

    def semi_join(self, lhs: SparseTable, rhs_keys: Any, group: NDArray[np.uint64]) -> tuple[Any, Any]:
        """Return keys and values of the tuples whose fields in ``group`` match one of the other keys."""
        ...

    def from_dense(self, cells: Any, axes: NDArray[np.int64], sizes: NDArray[np.int64], words: int) -> tuple[Any, Any]:
        """Return keys and values of the allowed cells.

        Args:
            cells: Cells of a dense table, without gaps.
            axes: Word, shift, mask and stride of each axis.
            sizes: Sizes of the axes.
            words: Words of a key.
        """
        ...

    def to_dense(self, rows: SparseTable, terms: NDArray[np.int64], cells: int) -> Any:
        """Return a dense table.

        Args:
            rows: Tuples to write.
            terms: Terms of the cells' offsets (``KeyLayout.terms``), on the host.
            cells: Number of cells; cells without a tuple get the semiring's zero.
        """
        ...

    def peaks(self, values: Any) -> tuple[float, float]:
        """Return the largest and the smallest value; zeros if there is none."""
        ...

    def scale(self, values: Any, factor: float) -> Any:
        """Return the values times a factor."""
        ...


def check_semiring(semiring: str, dtype: np.dtype[Any], parameter: float) -> None:
    """Check that sparse tables support a semiring and a dtype without overflow of joins.

    Raises:
        InputError: Sparse tables do not support them, or the forbidden cost is too close to the dtype's largest number.
    """
    if semiring not in SEMIRINGS or dtype.name not in SEMIRINGS[semiring].dtypes or dtype.name not in DTYPES:
        raise InputError(f"sparse tables have no {semiring} in {dtype}: use one of {', '.join(DTYPES)}")
    if dtype.kind == "i" and not 0 < parameter <= np.iinfo(dtype).max // 2:
        raise InputError(
            f"the forbidden cost {parameter} is not between 1 and {np.iinfo(dtype).max // 2}, "
            f"so that sums of two stay within {dtype}: use a wider dtype"
        )
