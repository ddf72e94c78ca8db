"""Interface of devices that join sparse tables, and the tables as they are passed to them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from elimina.errors import InputError
from elimina.planning.keys import DTYPES, Layout
from elimina.semiring import SEMIRINGS


class Rows(NamedTuple):
    """A sparse table: only the feasible rows.

    Attributes:
        layout: Layout of the keys.
        keys: uint64 of shape (rows, ``layout.words``), ascending as numbers of that many words; all different.
        values: Shape (rows,), of the semiring's dtype; none is the semiring's zero. Integer costs are not negative, and
            a sum that reaches the forbidden cost is forbidden.
    """

    layout: Layout
    keys: Any
    values: Any


class Order(NamedTuple):
    """Order of a join of two tables (``JoinOrder`` of the core); ``choose`` only with ``eliminate``."""

    group: NDArray[np.uint64]
    low: int
    eliminate: bool
    choose: bool
    most: int


class RowsDevice(Protocol):
    """The operations that differ between devices; arrays are the device's own. ``SparseTables`` puts them together."""

    semiring: str
    dtype: np.dtype[Any]
    parameter: float

    def upload(self, array: NDArray[Any]) -> Any:
        """Return an array on the device."""
        ...

    def download(self, array: Any) -> NDArray[Any]:
        """Return an array on the host."""
        ...

    def address(self, array: Any) -> int:
        """Return the address of an array's first element."""
        ...

    def move(self, keys: Any, segments: NDArray[np.int64], words: int) -> Any:
        """Return the keys in another layout."""
        ...

    def is_sorted(self, keys: Any) -> bool:
        """Return whether no key is less than the one before it."""
        ...

    def sort(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Return the tuples sorted by key."""
        ...

    def join(self, left: Rows, right: Rows, order: Order, stage: NDArray[np.int64], budget: float) -> tuple[Any, ...]:
        """Return keys, values, choices and number of candidates of the join of sorted tables in one layout."""
        ...

    def project(self, rows: Rows, low: int, choose: bool) -> tuple[Any, Any, Any]:
        """Return keys, values and choices without the low field."""
        ...

    def semi_join(self, left: Rows, others: Any, group: NDArray[np.uint64]) -> tuple[Any, Any]:
        """Return the rows whose bits of ``group`` occur among other sorted keys."""
        ...

    def from_dense(self, cells: Any, axes: NDArray[np.int64], sizes: NDArray[np.int64], words: int) -> tuple[Any, Any]:
        """Return the feasible cells, in the order of their keys."""
        ...

    def to_dense(self, rows: Rows, terms: NDArray[np.int64], cells: int) -> Any:
        """Return a dense table's cells, the semiring's zero where there is no row."""
        ...

    def peaks(self, values: Any) -> tuple[float, float]:
        """Return the largest and the smallest value; zeros if there is none."""
        ...

    def scale(self, values: Any, factor: float) -> Any:
        """Return the values times a factor."""
        ...


def check_semiring(semiring: str, dtype: np.dtype[Any], parameter: float) -> None:
    """Check that sparse tables have a semiring in a dtype, and that joins cannot wrap.

    Raises:
        InputError: They have not, or the forbidden cost is too near the dtype's end.
    """
    if semiring not in SEMIRINGS or dtype.name not in SEMIRINGS[semiring].dtypes or dtype.name not in DTYPES:
        raise InputError(f"sparse tables have no {semiring} in {dtype}: use one of {', '.join(DTYPES)}")
    if semiring == "min-sum" and dtype.kind == "i" and not 0 < parameter <= np.iinfo(dtype).max // 2:
        raise InputError(
            f"the forbidden cost {parameter} is not between 1 and {np.iinfo(dtype).max // 2}, "
            f"so that sums of two stay within {dtype}: use a wider dtype"
        )


def zero_of(semiring: str, parameter: float) -> float:
    """Return the value of a forbidden cell."""
    if semiring in ("min-sum", "max-sum"):
        return parameter
    return -math.inf if semiring == "log-sum-exp" else 0
