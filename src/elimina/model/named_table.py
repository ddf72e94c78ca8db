"""Tables of numbers whose axes are variables: answers about several variables, with names and states."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from elimina import arguments
from elimina.display import bars_of, cut, sample, table_of
from elimina.errors import InputError
from elimina.model.states import State
from elimina.model.variable import Variable, index_of, state_array
from elimina.number_texts import counted
from elimina.system import LIBRARIES, frame_of

if TYPE_CHECKING:
    from elimina.system import Library

_ROWS_SHOWN = 24
"""Largest number of rows in a text: a table's cells, or a mapping's tables."""


Columns = tuple[dict[str, Sequence[Any]], dict[str, NDArray[Any]]]
"""Columns of a frame by name: those of states, and those of numbers."""


@arguments.with_checked_methods
class _NumbersOfStates:
    """Base of tables in which each number belongs to states of variables."""

    __slots__ = ()

    def _columns(self) -> Columns:
        """Return the columns of a frame that has a row for each number."""
        raise NotImplementedError

    def to_frame(self, library: Library = "pandas") -> Any:
        """Return a data frame with a row for each number.

        A single table has a column of states for each of its variables, a mapping of tables the columns ``variable``
        and ``state``. The last column holds the numbers.

        Args:
            library: ``pandas``, ``polars`` or ``pyarrow`` (a ``Table``).

        Raises:
            TypeError: ``library`` is not text.
            InputError: ``library`` is another one, or not installed.
        """
        return states_frame(*self._columns(), library)


class NamedTable(_NumbersOfStates, NDArrayOperatorsMixin):
    """A table of numbers whose axes are variables with states.

    The table behaves like its array. It works with NumPy's functions and operators, and has the array's attributes and
    methods, such as ``shape``, ``sum``, ``argmax`` and ``tolist``. Their results are plain arrays or numbers. In an
    index, text selects the state of this name; ``at`` selects states of any type by their variables.

    Examples:
        >>> import elimina
        >>> cpds = {"rain": [0.8, 0.2], ("wet", "rain"): [[0.9, 0.3], [0.1, 0.7]]}
        >>> model = elimina.Model.from_cpds(cpds, states={"rain": ["no", "yes"], "wet": ["no", "yes"]})
        >>> joint = elimina.JunctionTree(model).joint(["wet", "rain"])
        >>> joint.names, joint.states["rain"]
        (('wet', 'rain'), ('no', 'yes'))
        >>> print(joint.at({"wet": "yes", "rain": "yes"}).round(3), joint.sum(axis=1).round(3))
        0.14 [0.78 0.22]
        >>> print(joint["yes", "yes"].round(3), joint["yes"].round(3))
        0.14 [0.08 0.14]

    Attributes:
        array: Numbers, an axis for each variable.
        quantity: Name of the numbers, the last column of a frame.
    """

    __slots__ = ("_variables", "array", "quantity")

    def __init__(self, array: NDArray[Any], variables: Sequence[Variable], quantity: str = "probability") -> None:
        self.array, self.quantity = array, quantity
        self._variables = tuple(variables)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, in the order of the axes."""
        return tuple(variable.name for variable in self._variables)

    @property
    def states(self) -> dict[str, Sequence[State]]:
        """States along each axis: variable name -> its states."""
        return {variable.name: variable.all_states for variable in self._variables}

    def at(self, states: Mapping[str, State]) -> Any:
        """Return the numbers at the states of some variables: a table over the other variables, or one number.

        Args:
            states: Variable name -> its state.

        Raises:
            InputError: The table has no such variable, or the variable no such state.
            TypeError: ``states`` is not a mapping.
        """
        arguments.check_mapping("states", states)
        unknown = next((name for name in states if name not in self.names), None)
        if unknown is not None:
            raise InputError(f"the table has no variable {unknown!r}; its variables are {', '.join(self.names)}")
        pairs = [(variable, variable.name in states) for variable in self._variables]
        key = tuple(index_of(v, states[v.name]) if is_fixed else slice(None) for v, is_fixed in pairs)
        others = [variable for variable, is_fixed in pairs if not is_fixed]
        return NamedTable(self.array[key], others, self.quantity) if others else self.array[key]

    def _columns(self) -> Columns:
        codes = np.indices(self.array.shape).reshape(len(self._variables), -1)
        states = {v.name: state_array(v, x).tolist() for v, x in zip(self._variables, codes, strict=True)}
        return states, {self.quantity: self.array.ravel()}

    @property
    def _columns_shown(self) -> tuple[Variable, ...]:
        """Variables in the order of the columns of a text."""
        return self._variables

    @property
    def _count_of_rows(self) -> int:
        return self.array.size

    def _rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the texts of the states and of the number of each cell."""
        states = itertools.product(*(variable.all_states for variable in self._variables))
        return ((*map(str, x), f"{p:.6g}") for x, p in zip(states, self.array.flat, strict=True))

    def __repr__(self) -> str:
        header = (*(variable.name for variable in self._columns_shown), self.quantity)
        rows = [[cut(cell, 40) for cell in row] for row in (header, *itertools.islice(self._rows(), _ROWS_SHOWN))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return _text_of(lines, self._count_of_rows)

    def _repr_html_(self) -> str:
        if len(self._variables) == 1:
            variable = self._variables[0]
            return bars_of({variable.name: dict(zip(variable.all_states, self.array.tolist(), strict=True))})
        header = (*(variable.name for variable in self._columns_shown), self.quantity)
        return table_of(header, self._rows(), self._count_of_rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        # NumPy 1 has no copy=None, so it is not passed on.
        if copy:
            return np.array(self.array, dtype=dtype)
        return np.asarray(self.array, dtype=dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        outputs = options.get("out", ())
        if outputs:
            options["out"] = tuple(map(_plain, outputs))
        apply: Callable[..., Any] = getattr(ufunc, method)
        numbers = apply(*map(_plain, inputs), **options)
        return outputs[0] if len(outputs) == 1 else numbers

    def __getattr__(self, name: str) -> Any:
        # Python copies an object by looking up private names before ``array`` is set. Without this check, the lookup
        # would recurse without end.
        if name.startswith("_") or name in NamedTable.__slots__ or not hasattr(self.array, name):
            raise AttributeError(f"a NamedTable has no attribute {name!r}")
        return getattr(self.array, name)

    def __getitem__(self, key: Any) -> Any:
        return self.array[self._index(key)]

    def __setitem__(self, key: Any, values: Any) -> None:
        if isinstance(values, list | tuple) and arguments.axis_count(values) is None:
            raise arguments.wrong_type("values", values, "numbers in lists of equal lengths")
        self.array[self._index(key)] = values

    def _index(self, key: Any) -> Any:
        """Return an index of the array; states that are text become their positions.

        Raises:
            InputError: A variable has no such state, or there are more states than variables.
            TypeError: A list has lists of different lengths.
        """
        parts = key if isinstance(key, tuple) else (key,)
        ragged = next((part for part in parts if isinstance(part, list) and arguments.axis_count(part) is None), None)
        if ragged is not None:
            raise arguments.wrong_type("index", ragged, "positions as lists of equal lengths, a slice, or states")
        if not any(isinstance(part, str) for part in parts):
            return _plain(key)
        if len(parts) > len(self._variables):
            raise InputError(f"{counted(len(parts), 'state')} for a table over {', '.join(self.names)}")
        pairs = zip(parts, self._variables, strict=False)
        return tuple(index_of(v, part) if isinstance(part, str) else part for part, v in pairs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.array)

    def __len__(self) -> int:
        return len(self.array)

    def __bool__(self) -> bool:
        return bool(self.array)


class ArraySlices(Mapping[str, NDArray[Any]]):
    """Slices of one array by name. Each is made on access: making all of them takes a quarter of a small query.

    Args:
        array: Array of one axis.
        slices: Name -> its slice.
    """

    __slots__ = ("_array", "_slices")

    def __init__(self, array: NDArray[Any], slices: Mapping[str, slice]) -> None:
        self._array, self._slices = array, slices

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._slices:
            raise arguments.unknown_key("array", name, self._slices)
        return self._array[self._slices[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._slices)

    def __len__(self) -> int:
        return len(self._slices)


class NamedTables(_NumbersOfStates, Mapping[str, NamedTable]):
    """Tables over one variable each as a read-only mapping: variable name -> ``NamedTable``.

    Args:
        arrays: Variable name -> its numbers.
        find_variable: Function that returns the variable with a given name.
        quantity: Name of the numbers, the last column of a frame.
    """

    __slots__ = ("_arrays", "_find_variable", "_quantity")

    def __init__(
        self, arrays: Mapping[str, NDArray[Any]], find_variable: Callable[[str], Variable], quantity: str
    ) -> None:
        self._arrays, self._find_variable, self._quantity = arrays, find_variable, quantity

    def __getitem__(self, name: str) -> NamedTable:
        if name not in self._arrays:
            raise arguments.unknown_key("table", name, self._arrays)
        array = self._arrays[name]
        return NamedTable(array, (self._find_variable(name),), self._quantity)

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def _columns(self) -> Columns:
        names = [name for name, array in self._arrays.items() for _ in array]
        states = [state for name in self._arrays for state in self._find_variable(name).all_states]
        numbers = np.concatenate([*self._arrays.values(), np.zeros(0)])
        return {"variable": names, "state": states}, {self._quantity: numbers}

    def __repr__(self) -> str:
        lines = [
            f"{cut(name, 40)}: {sample((f'{state} {p:.4g}' for state, p in states.items()), len(states))}"
            for name, states in itertools.islice(self._by_state(), _ROWS_SHOWN)
        ]
        return _text_of(lines, len(self))

    def _repr_html_(self) -> str:
        return bars_of(dict(self._by_state()))

    def _by_state(self) -> Iterator[tuple[str, dict[State, float]]]:
        for name, array in self._arrays.items():
            yield name, dict(zip(self._find_variable(name).all_states, array.tolist(), strict=True))


def states_frame(states: Mapping[str, Sequence[Any]], numbers: Mapping[str, Any], library: Library) -> Any:
    """Return a data frame of columns of states, and columns of numbers.

    States of different types in one column become text if the library has only columns of one type.

    Args:
        states: Name -> states.
        numbers: Name -> numbers.
        library: See ``elimina.system.frame_of``.

    Raises:
        TypeError: ``library`` is not text.
        InputError: ``library`` is another one, or not installed.
    """
    columns = dict(states)
    if arguments.choice("library", library, LIBRARIES) != "pandas":
        mixed = [name for name, column in states.items() if len(set(map(type, column))) > 1]
        columns.update((name, list(map(str, states[name]))) for name in mixed)
    return frame_of({**columns, **numbers}, library)


def _plain(values: Any) -> Any:
    """Return the array of a table, other values unchanged."""
    return values.array if isinstance(values, NamedTable) else values


def _text_of(lines: Sequence[str], rows: int) -> str:
    """Return the lines of the first rows as a text, whose last line counts the other rows."""
    others = rows - _ROWS_SHOWN
    return "\n".join([*lines, f"and {others:,} more"] if others > 0 else lines)
