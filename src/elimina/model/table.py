"""A table: a scope and a value for each of its assignments, stored densely or as tuples that differ from a default."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain
from typing import Any, Literal, NamedTuple, TypeGuard, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from elimina._core import TableList
from elimina.arguments import check_mapping, in_order, shown, value_in
from elimina.errors import InputError
from elimina.model.labels import without_labels
from elimina.number_texts import counted
from elimina.system import Slotted, cached_property


class Scopes(NamedTuple):
    """Scopes one after another: scope i is ``members[starts[i] : starts[i + 1]]``."""

    starts: NDArray[np.int64]
    members: NDArray[np.int64]

    @staticmethod
    def of(scopes: Collection[Sequence[int]]) -> Scopes:
        """Put scopes one after another.

        Raises:
            OverflowError: A variable exceeds 64 bits.
        """
        starts = np.fromiter(accumulate(map(len, scopes), initial=0), np.int64, len(scopes) + 1)
        return Scopes(starts, np.fromiter(chain.from_iterable(scopes), np.int64, int(starts[-1])))


Values = NDArray[Any]

FORBIDDEN = int(np.iinfo(np.int64).max)
"""The integer cost of a forbidden assignment in a table to be minimised (its negation where costs are maximised).

Tables of floating-point costs use infinity, tables of probabilities use 0.
"""

Sense = Literal["min-cost", "max-cost", "probability"]
"""Meaning of tables' values: costs to be minimised or maximised, or probabilities."""

_LARGEST_EXACT = 2**53
"""Largest integer up to which floats hold every integer."""

BLOCK_CELLS = 1 << 16
"""Number of cells of a large table to process at a time, so that temporary arrays stay in the cache."""

_SMALL_CELLS = 1 << 12
"""Largest number of cells of a small table: a NumPy call for it alone takes longer than the work on its cells."""

_MAX_VALUES = 2**31

_PLAIN_INTEGERS = frozenset({int})
"""Types of a scope that needs no conversion: a large model has millions of scopes."""

_STORED_TYPES = np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.float32)
"""Types of arrays that tables keep as they are."""

LARGEST_NUMBER = 2**62
"""Largest number of cells of a table whose cells are numbered in 64 bits."""


class Table(Slotted):
    """A function of a few discrete variables.

    Attributes:
        scope: Indices of the variables, in the order of the axes; the last one varies fastest.
        sizes: The variables' domain sizes, in the same order.
        values: Values: an array of shape ``sizes`` (dense), or one value for each listed tuple (sparse). A given array
            of int64 or floats is not copied: do not write to it as long as the table is used.
        rows: Listed tuples of a sparse table, each at most once: an int32 array of shape ``(len(values), len(scope))``.
            None if the table is dense.
        default: Value of all tuples that a sparse table does not list. None if the table is dense.

    Examples:
        >>> import elimina
        >>> table = elimina.Table([0, 1], [[0, 3], [2, 1]])
        >>> print(table.scope, table.values.tolist())
        (0, 1) [[0, 3], [2, 1]]
        >>> rare = elimina.Table([0, 1], [5], sizes=[1000, 1000], rows=[[3, 4]], default=0)
        >>> len(rare.rows)
        1
    """

    __slots__ = ("default", "rows", "scope", "sizes", "values")

    def __init__(
        self,
        scope: Sequence[int],
        values: ArrayLike,
        *,
        sizes: Sequence[int] | None = None,
        rows: ArrayLike | None = None,
        default: float | None = None,
    ) -> None:
        """Build a dense table from an array, or a sparse one from ``sizes``, ``rows``, ``values`` and ``default``.

        Raises:
            TypeError: The scope is a set.
            InputError: A variable occurs twice in the scope, the shapes do not fit one another, a Series or DataFrame
                has labels other than 0, 1, 2, ... (``Model.from_arrays`` aligns them with states), a row is outside the
                domains, listed twice or not of integers, an integer table's default is not an integer, a value is
                masked, not a number or beyond 64 bits, or an integer among floats would be rounded.
        """
        self.scope = _scope(scope)
        if rows is None and type(values) is not np.ndarray:
            values = without_labels("a table's values", values)
        self.values: Values = _numbers(values)
        if rows is None:
            if self.values.ndim != len(self.scope):
                raise InputError(
                    f"a table's scope has length {len(self.scope)}, but its array has dimension {self.values.ndim}: "
                    "give one axis for each variable"
                )
            self.sizes = self.values.shape
            self.rows: NDArray[np.int32] | None = None
            self.default: int | float | None = None
            return
        if sizes is None or default is None or not self.scope:
            raise InputError("a sparse table needs a scope, sizes and a default besides its tuples and values")
        self.sizes = _integers("a table's sizes", sizes)
        self.rows = self._checked_rows(rows)
        self.default = _default(default, self.values.dtype)

    def _checked_rows(self, rows: ArrayLike) -> NDArray[np.int32]:
        listed = unmasked("a table's tuples", rows)
        if listed.size == 0 and self.values.shape == (0,):
            listed = np.zeros((0, len(self.scope)), dtype=np.int32)
        if len(self.sizes) != len(self.scope) or listed.shape != (*self.values.shape, len(self.scope)):
            raise InputError(
                f"a sparse table over {counted(len(self.scope), 'variable')} got {len(self.sizes)} sizes, "
                f"tuples of shape {listed.shape} and values of shape {self.values.shape}"
            )
        if listed.dtype.kind not in "iu":
            raise InputError(f"the tuples of the table over {self.scope} are {listed.dtype}; they must be integers")
        if ((listed < 0) | (listed >= np.array(self.sizes))).any() or max(self.sizes) > _MAX_VALUES:
            raise InputError(f"a tuple of the table over {self.scope} is outside the domain sizes {self.sizes}")
        listed = listed.astype(np.int32, copy=False)
        if _has_duplicates(listed, self.sizes):
            raise InputError(f"a tuple of the table over {self.scope} is listed twice; each may be listed once")
        return listed

    @property
    def cells(self) -> int:
        """Number of assignments of the scope: of cells, if the table is dense."""
        return math.prod(self.sizes)

    def dense(self) -> Values:
        """Return the values as an array of shape ``sizes``. A dense table returns its own array: do not write to it."""
        if self.rows is None:
            return self.values
        full = np.full(self.sizes, self.default, dtype=self.values.dtype)
        full[tuple(self.rows.T)] = self.values
        return full

    def at(self, assignment: Mapping[int, int] | Sequence[int]) -> int | float:
        """Return the value at an assignment (variable index -> value index) that covers the scope.

        Raises:
            InputError: A value is missing, or outside its variable's domain.
        """
        key = tuple(map(partial(value_in, assignment), self.scope, self.sizes))
        if self.rows is None:
            return _number(self.values[key])
        tuple_numbers = np.flatnonzero((self.rows == np.array(key, dtype=np.int32)).all(axis=1))
        if len(tuple_numbers):
            return _number(self.values[tuple_numbers[0]])
        assert self.default is not None
        return self.default

    def restrict(self, fixed: Mapping[int, int]) -> Table:
        """Return the table at fixed values of variables; this table itself if its scope has none of these variables.

        Raises:
            InputError: A value is outside its variable's domain.
            TypeError: ``fixed`` is not a mapping.
        """
        check_mapping("fixed", fixed, "a mapping from variables to values, by index")
        if fixed.keys().isdisjoint(self.scope):
            return self
        scope = tuple([v for v in self.scope if v not in fixed])
        if self.rows is None:
            ends = zip(self.scope, self.sizes, strict=True)
            cells = tuple([value_in(fixed, v, size) if v in fixed else slice(None) for v, size in ends])
            return self._like(scope, np.asarray(self.values[cells]))
        keep = [a for a, v in enumerate(self.scope) if v not in fixed]
        values = {axis: value_in(fixed, v, self.sizes[axis]) for axis, v in enumerate(self.scope) if v in fixed}
        match = np.ones(len(self.rows), dtype=bool)
        for axis, value in values.items():
            match &= self.rows[:, axis] == value
        if not keep:
            return Table((), np.asarray(self.values[match][0] if match.any() else self.default))
        sizes = [self.sizes[a] for a in keep]
        return Table(scope, self.values[match], sizes=sizes, rows=self.rows[match][:, keep], default=self.default)

    def over(self, scope: Sequence[int]) -> Table:
        """Return the same table over other variables.

        Raises:
            InputError: ``scope`` has another length, or a variable occurs twice.
        """
        others = _scope(scope)
        if len(others) != len(self.scope):
            raise InputError(
                f"a table over {counted(len(self.scope), 'variable')} cannot become one over {len(others)}: {others}"
            )
        return self._like(others, self.values)

    def _like(self, scope: tuple[int, ...], values: Values) -> Table:
        """Return a table over another scope or with other values, without checks; a sparse table keeps its tuples."""
        table = object.__new__(Table)
        table.scope, table.values, table.rows, table.default = scope, values, self.rows, self.default
        table.sizes = values.shape if self.rows is None else self.sizes
        return table

    def mapped(self, change: Callable[[Values], Values]) -> Table:
        """Return the table with its values, and its default, changed by a function of arrays."""
        values, default = change(self.values), self.default
        if default is not None:
            default = change(np.array([default], dtype=self.values.dtype))[0].item()
        return Table(self.scope, values, sizes=self.sizes, rows=self.rows, default=default)

    def __repr__(self) -> str:
        kind = f"{counted(len(self.values), 'row')}, default {self.default}" if self.rows is not None else "dense"
        return f"Table(scope={self.scope}, sizes={self.sizes}, {self.values.dtype}, {kind})"


_FEW_SIZES = 64
"""Largest number of sizes that are multiplied one by one. Among more sizes, equal ones become powers."""


class SizeProducts:
    """Exact numbers of cells of tables over any number of variables.

    Args:
        sizes: Size of each variable.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._classes: tuple[list[int], NDArray[np.intp]] | None = None

    def of(self, scope: Sequence[int]) -> int:
        """Return the product of the sizes of some variables."""
        if len(scope) <= _FEW_SIZES:
            return math.prod([int(self._sizes[v]) for v in scope])
        if self._classes is None:
            different, classes = np.unique(np.array(self._sizes, dtype=np.int64), return_inverse=True)
            self._classes = different.tolist(), classes
        values, classes = self._classes
        counts = np.bincount(classes[np.asarray(scope, dtype=np.intp)]).tolist()
        return math.prod([size**count for size, count in zip(values, counts, strict=False)])


class Tables(Sequence[Table]):
    """A sequence of tables, with the list of them that the core reads."""

    def __init__(self, tables: Iterable[Table]) -> None:
        # ``tuple`` does not copy a tuple. A copy would be one more sequence for the garbage collector to visit.
        self.all = tuple(tables)

    def __len__(self) -> int:
        return len(self.all)

    @overload
    def __getitem__(self, number: int) -> Table: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Table, ...]: ...

    def __getitem__(self, number: int | slice) -> Table | tuple[Table, ...]:
        return self.all[number]

    def __iter__(self) -> Iterator[Table]:
        return iter(self.all)

    def __reduce__(self) -> tuple[type[Tables], tuple[tuple[Table, ...]]]:
        return Tables, (self.all,)

    @cached_property
    def form(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """The scopes of all tables, followed by the sizes of all tables."""
        return tuple(table.scope for table in self.all), tuple(table.sizes for table in self.all)

    @cached_property
    def listed(self) -> TableList:
        """The tables in the form that the core reads; their arrays are looked up only once."""
        return TableList(self.all)

    def chosen(self, numbers: NDArray[np.int64]) -> Tables:
        """Return the tables with these numbers; this object itself if these are all."""
        if len(numbers) == len(self):
            return self
        result = Tables([self.all[number] for number in numbers.tolist()])
        result.__dict__["listed"] = self.listed.chosen(numbers)
        return result


class Ends(NamedTuple):
    """Smallest and largest allowed values of tables, as arrays.

    Attributes:
        kinds: 0: the table forbids everything; 1: it holds integers; 2: it holds floats.
        integers: Ends of tables of integers, shape (tables, 2).
        floats: Ends of tables of floats, shape (tables, 2).
    """

    kinds: NDArray[np.uint8]
    integers: NDArray[np.int64]
    floats: NDArray[np.float64]

    @staticmethod
    def of(tables: TableList, sense: Sense) -> Ends:
        """Return the smallest and largest allowed values of all tables."""
        return Ends(*tables.all_ends(sense))

    @property
    def are_allowed(self) -> bool:
        """True if each table allows something."""
        return bool(self.kinds.all())

    def total(self, highest: bool) -> int:
        """Return the exact sum of the smallest or the highest values of the tables of integers."""
        side = self.integers[:, int(highest)].tolist()
        return sum([number for number, kind in zip(side, self.kinds.tolist(), strict=True) if kind == 1])

    def numbers(self, highest: bool) -> list[int | float]:
        """Return the smallest or the highest value of each table that allows something."""
        side = int(highest)
        if (self.kinds == 1).any():
            columns = self.kinds.tolist(), self.integers[:, side].tolist(), self.floats[:, side].tolist()
            return [integer if kind == 1 else number for kind, integer, number in zip(*columns, strict=True) if kind]
        values: list[int | float] = self.floats[self.kinds == 2, side].tolist()
        return values


def forbidden_value(sense: Sense, dtype: DTypeLike) -> int | float:
    """Return the number that stands for a forbidden assignment, given the model's sense and the table's dtype."""
    if sense == "probability":
        return 0
    worst = FORBIDDEN if np.dtype(dtype).kind == "i" else math.inf
    return worst if sense == "min-cost" else -worst


CLOSE = FORBIDDEN - 2**53
"""Cost above which any number but ``FORBIDDEN`` itself is taken for a ``FORBIDDEN`` changed by arithmetic."""

_SENTINELS = {
    ("min-cost", True): "elimina.FORBIDDEN",
    ("max-cost", True): "-elimina.FORBIDDEN",
    ("min-cost", False): "infinity (math.inf)",
    ("max-cost", False): "minus infinity (-math.inf)",
    ("probability", True): "0",
    ("probability", False): "0",
}
"""Notation of a forbidden assignment, by the sense, and by whether values are integers."""

_RANGES = {
    "probability": "values must be finite and at least 0",
    "min-cost": "costs must be finite, or infinity where an assignment is forbidden",
    "max-cost": "costs must be finite, or minus infinity where an assignment is forbidden",
}
"""Values that a table may have, by the sense."""


def misfit(table: Table, sense: Sense) -> str | None:
    """Return the fault of a table's values, given the sense of its model; None if there is none."""
    values = [] if table.default is None else [table.default]
    if table.values.size:
        values += [table.values.min().item(), table.values.max().item()]
    if any(map(math.isnan, values)):
        return "contains NaN; each cell needs a number"
    if values and (max(values) > CLOSE or min(values) < -CLOSE) and (problem := _false_sentinel(table, sense)):
        return problem
    lowest = {"probability": 0.0, "min-cost": -sys.float_info.max, "max-cost": -math.inf}[sense]
    highest = math.inf if sense == "min-cost" else sys.float_info.max
    culprit = next((value for value in values if not lowest <= value <= highest), None)
    return None if culprit is None else f"has the value {culprit} in a {sense} model; {_RANGES[sense]}"


def _false_sentinel(table: Table, sense: Sense) -> str | None:
    """Describe a value that seems to be a forbidden cost, but changed, negated or cast; None if there is none."""
    values = table.values if table.default is None else np.append(table.values, table.default)
    integral = table.values.dtype.kind == "i"
    if sense == "probability":
        close = values == (FORBIDDEN if integral else float(FORBIDDEN))
    else:
        close = (values > CLOSE) | (values < -CLOSE)
        close &= values != forbidden_value(sense, table.values.dtype)
        if not integral:
            close &= np.abs(values) < 2 * float(FORBIDDEN) - CLOSE
    if not close.any():
        return None
    return (
        f"has the value {values[close].flat[0].item()}, which looks like elimina.FORBIDDEN ({FORBIDDEN}) but is not: "
        f"in {'integers' if integral else 'floats'} of a {sense} model, a forbidden assignment is "
        f"{_SENTINELS[sense, integral]}, written after all arithmetic"
    )


def batches(tables: Sequence[Table]) -> Iterator[list[int]]:
    """Yield batches of the tables' indices: several small dense tables of one dtype, or any other table alone.

    NumPy calls for a whole batch take less time than calls for each of its tables.
    """
    waiting: dict[np.dtype[Any], list[int]] = {}
    filled: dict[np.dtype[Any], int] = {}
    for number, table in enumerate(tables):
        dtype, size = table.values.dtype, table.values.size
        if table.rows is not None or size > _SMALL_CELLS:
            yield [number]
            continue
        waiting.setdefault(dtype, []).append(number)
        filled[dtype] = filled.get(dtype, 0) + size
        if filled[dtype] > BLOCK_CELLS:
            yield waiting.pop(dtype)
            del filled[dtype]
    yield from waiting.values()


def joined_values(tables: Sequence[Table]) -> Values:
    """Return the values of dense tables of one dtype as one flat array; those of a single table are not copied."""
    if len(tables) == 1:
        return tables[0].values.reshape(-1)
    return np.concatenate([table.values.reshape(-1) for table in tables])


def cell_numbers(rows: NDArray[np.int32], sizes: Sequence[int], axes: Sequence[int]) -> NDArray[np.int64]:
    """Return the number of each row's cell in a table whose axes are some of the columns, the last one fastest."""
    numbers = np.zeros(len(rows), dtype=np.int64)
    for axis in axes:
        numbers *= sizes[axis]
        numbers += rows[:, axis]
    return numbers


def _has_duplicates(rows: NDArray[np.int32], sizes: Sequence[int]) -> bool:
    if math.prod(sizes) > LARGEST_NUMBER:
        return len(np.unique(rows, axis=0)) < len(rows)
    numbers = cell_numbers(rows, sizes, range(len(sizes)))
    if (numbers[1:] > numbers[:-1]).all():
        return False
    numbers.sort()
    return bool((numbers[1:] == numbers[:-1]).any())


def are_plain_integers(numbers: Any) -> TypeGuard[list[int] | tuple[int, ...]]:
    """Return whether numbers are a list or tuple of Python's integers, which need no conversion."""
    return type(numbers) in (tuple, list) and _PLAIN_INTEGERS.issuperset(map(type, numbers))


def _scope(variables: Sequence[int]) -> tuple[int, ...]:
    scope = _integers("a table's scope", variables)
    if len(set(scope)) != len(scope):
        raise InputError(f"a table's scope names a variable twice: {scope}; join its axes first")
    return scope


def _integers(what: str, numbers: Sequence[int]) -> tuple[int, ...]:
    if are_plain_integers(numbers):
        return tuple(numbers)
    in_order(what, numbers)
    try:
        integers = tuple([operator.index(number) for number in numbers])
        if bool in map(type, numbers):
            raise TypeError  # NumPy would take a list of Booleans as a mask
        return integers
    except TypeError:
        raise InputError(f"{what} must be integers, not {shown(numbers)}") from None


def _numbers(values: ArrayLike) -> Values:
    if type(values) is np.ndarray and values.dtype in _STORED_TYPES:
        return values
    array = unmasked("a table's values", values)
    if array.dtype.kind not in "buif":
        raise InputError(f"a table holds integers of 64 bits or floats, not {_kind(array)}")
    if array.dtype.kind == "u" and array.size and array.max() > FORBIDDEN:
        raise InputError(f"the value {array.max()} does not fit a signed 64-bit integer")
    if array.dtype.kind in "bui":
        return array.astype(np.int64, copy=False)
    if array is not values and array.dtype == np.float64 and np.abs(array).max(initial=0.0) >= _LARGEST_EXACT:
        _check_integers(values)
    if array.dtype in (np.float32, np.float64):
        return array
    return _as_doubles(array)


def unmasked(what: str, values: ArrayLike) -> Values:
    """Return values as an array.

    Args:
        what: Noun for the values in errors.
        values: Numbers.

    Raises:
        InputError: The values are not an array, or some are masked.
    """
    if "numpy.ma" in sys.modules and isinstance(values, np.ma.MaskedArray):  # loading numpy.ma takes 7 ms
        if masked := int(np.count_nonzero(np.ma.getmaskarray(values))):
            raise InputError(
                f"{masked:,} of {what} are masked, and all {values.size:,} are needed: "
                "fill them first (values.filled(...))"
            )
        values = values.data
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InputError(f"{what} are not an array of numbers: {error}") from error


def _kind(array: Values) -> str:
    """Describe the dtype of an array for an error; for objects, the first one that no table can hold."""
    if array.dtype.kind != "O":
        return str(array.dtype)
    for value in array.flat:
        if not isinstance(value, int | float | np.number):
            return f"objects such as {shown(value)} ({type(value).__name__}); convert them, by float for instance"
        if isinstance(value, int) and not -(2**63) <= value <= FORBIDDEN:
            return f"the integer {shown(value)}"
    return "objects; give the array a dtype"


def _check_integers(values: ArrayLike) -> None:
    """Reject integers that the conversion to floats has changed."""
    for value in np.asarray(values, dtype=object).flat:
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            if not -(2**63) <= value <= FORBIDDEN:
                raise InputError(f"the value {value} does not fit a signed 64-bit integer")
            if int(float(value)) != value:
                raise InputError(_mixed(int(value)))


def _mixed(value: int) -> str:
    if abs(value) == FORBIDDEN:
        return "elimina.FORBIDDEN is among floats, where it is not exact: write infinity (math.inf) beside floats"
    return f"the integer {value} is among floats, where it is not exact: give integers only, or round it yourself"


def _as_doubles(array: Values) -> Values:
    with np.errstate(over="ignore", under="ignore"):
        doubles = array.astype(np.float64)
    is_lost = ((doubles == 0) != (array == 0)) | (np.isinf(doubles) != np.isinf(array))
    if is_lost.any():
        raise InputError(
            f"the value {array[is_lost].flat[0]!s} of a table of {array.dtype} is out of the range of 64-bit floats, "
            "4.9e-324 to 1.8e308: scale the table, and give the factor as the model's constant"
        )
    return doubles


def _default(default: float, dtype: np.dtype[Any]) -> int | float:
    try:
        number = float(default) if dtype.kind == "f" else int(default)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"a table of {dtype} cannot have that default: {error}") from error
    if dtype.kind == "i" and (number != default or not -(2**63) <= number <= FORBIDDEN):
        raise InputError(f"a table of integers needs an integer default of 64 bits, not {shown(default)}")
    return number


def _number(value: np.generic) -> int | float:
    number: int | float = value.item()
    return number
