"""Conditional distributions as users write them by name: arrays, nested mappings of states, and labelled tables."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import InputError
from elimina.model.alignment import aligned_cells, order_of_levels
from elimina.model.cells import without_point
from elimina.model.distributions import ROUNDING
from elimina.model.labels import LabelledAxis, LabelledTable, are_positions, labelled_table, listed
from elimina.model.states import native
from elimina.model.table import Table
from elimina.model.variable import Variable, variable_of

_KEYS = "a name, or a tuple of names: the variable, then its parents"


class Network(NamedTuple):
    """Parts of a Bayesian network.

    Attributes:
        variables: Variables, in the order of their distributions.
        tables: Distribution of each variable, its own axis last.
    """

    variables: list[Variable]
    tables: list[Table]


class _Family(NamedTuple):
    """A distribution as it was written.

    Attributes:
        names: Name of the child, then those of its parents.
        values: An array, or a table with labels.
        is_nested: True if it was written as mappings, in the order of the states.
    """

    names: tuple[str, ...]
    values: NDArray[Any] | LabelledTable
    is_nested: bool = False

    def labels(self, name: str) -> list[Any] | None:
        """Return the labels of a variable in the order of their first appearance; None for an array, which has none."""
        if not isinstance(self.values, LabelledTable):
            return None
        order = order_of_levels(self.values, self.names)
        return self.values.axes[order.index(self.names.index(name))].labels


def network_of(cpds: Any, states: Any, *, check: bool, argument: str = "cpds") -> Network:
    """Return the variables and tables of conditional distributions.

    Args:
        cpds: See ``Model.from_cpds``.
        states: See ``Model.from_cpds``.
        check: See ``Model.from_cpds``.
        argument: The user's name for ``cpds`` in errors.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: A parent has no distribution, the states of a variable are unknown or contradictory, or a table does
            not fit the states.
    """
    check = arguments.flag("check", check)
    families = _families(cpds, argument)
    for family in families.values():
        orphan = next((name for name in family.names if name not in families), None)
        if orphan is not None:
            raise InputError(
                f"{_title(family.names)}: the parent {orphan!r} has no distribution, so add one"
                f"{arguments.names_like(orphan, families)}"
            )
    listed_states = _checked_states(states, families)
    variables = {
        name: variable_of(name, listed_states[name], f"states[{name!r}]")
        if name in listed_states
        else _inferred(name, families)
        for name in families
    }
    numbers = {name: number for number, name in enumerate(variables)}
    tables = []
    for family in families.values():
        with _titled(family.names):
            values = _aligned(family, [variables[name] for name in family.names], check)
        scope = [numbers[name] for name in (*family.names[1:], family.names[0])]
        tables.append(Table(scope, np.moveaxis(values, 0, -1)))
    return Network(list(variables.values()), tables)


def aligned_array(members: Sequence[Variable], values: Any) -> NDArray[Any]:
    """Return a table over some variables, in any form that users may write, as an array with an axis for each variable.

    Args:
        members: Variables of the table.
        values: An array, nested mappings from states (the outermost from those of the first variable), or a table with
            labels.

    Raises:
        InputError: The table does not fit the variables.
    """
    names = tuple(variable.name for variable in members)
    if isinstance(values, Mapping) and names:
        return aligned_cells(members, _nested_table(names, values))
    table = _array_or_table(names, values)
    if isinstance(table, LabelledTable):
        return aligned_cells(members, table)
    sizes = tuple(variable.size for variable in members)
    if table.shape != sizes:
        counts = ", ".join(f"{variable.name!r} has {variable.size}" for variable in members)
        raise InputError(
            f"its array has the shape {table.shape}, and the shape {sizes} is needed: an axis for each variable"
            + (f", in this order ({counts} states)" if counts else ", and this table has none")
        )
    return table


def _title(names: Sequence[str]) -> str:
    """Return the name of a distribution in errors."""
    parents = ", ".join(map(repr, names[1:]))
    return f"the distribution of {names[0]!r}" + (f" given {parents}" if parents else "")


@contextlib.contextmanager
def _titled(names: Sequence[str]) -> Iterator[None]:
    """Put the name of the distribution before the text of an error that the ``with`` block raises."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{_title(names)}: {error}") from None


def _families(cpds: Any, argument: str) -> dict[str, _Family]:
    """Return the distributions by their children, with keys checked and labels read."""
    if not isinstance(cpds, Mapping):
        raise arguments.wrong_type(argument, cpds, "a mapping from names to distributions")
    families: dict[str, _Family] = {}
    for key, values in cpds.items():
        names = (key,) if isinstance(key, str) else key
        if not isinstance(names, tuple) or not names or not all(isinstance(name, str) for name in names):
            raise arguments.wrong_type(f"a key of {argument}", key, _KEYS)
        if len(set(names)) < len(names):
            raise InputError(
                f"the key {key!r} of {argument} names a variable twice: write the variable, then its parents"
            )
        if names[0] in families:
            earlier = families[names[0]].names
            raise InputError(
                f"the keys {earlier!r} and {names!r} of {argument} are both distributions of {names[0]!r}: "
                "leave one out"
            )
        with _titled(names):
            if isinstance(values, Mapping):
                families[names[0]] = _Family(names, _nested_table(names, values), is_nested=True)
            else:
                families[names[0]] = _Family(names, _array_or_table(names, values))
    return families


def _array_or_table(names: Sequence[str], values: Any) -> NDArray[Any] | LabelledTable:
    table = labelled_table("the numbers", values)
    if table is not None:
        order_of_levels(table, names)
        return table
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError("its rows have different lengths; give a number for each combination of states") from None
    if array.dtype.kind not in "buif":
        raise InputError(f"it is {arguments.shown(values)}; give numbers, or mappings from states to numbers")
    return array


def _nested_table(names: Sequence[str], mapping: Mapping[Any, Any]) -> LabelledTable:
    """Return the table of nested mappings from states; the keys of the outermost one are the states of the child."""
    cells = list(_cells(names, (), mapping))
    rows = []
    for position in range(len(names)):
        # Keys contain the type of the state, because 1 and True are equal in Python.
        keys = [(type(path[position]), path[position]) for path, _ in cells]
        codes = {key: code for code, key in enumerate(dict.fromkeys(keys))}
        column = np.array([codes[key] for key in keys], dtype=np.intp)
        rows.append(LabelledAxis(None, [state for _, state in codes], column))
    return LabelledTable(rows, [], np.array([number for _, number in cells]).reshape(-1, 1))


def _cells(names: Sequence[str], path: tuple[Any, ...], values: Any) -> Iterator[tuple[tuple[Any, ...], float]]:
    """Yield the states and the number of each cell of nested mappings; a tuple of states stands for several levels.

    Raises:
        InputError: The mappings are not nested by the variables.
    """
    if isinstance(values, Mapping) and values and len(path) < len(names):
        for state, inner in values.items():
            yield from _cells(names, path + (state if isinstance(state, tuple) else (state,)), inner)
        return
    number = native(values)
    if len(path) != len(names) or not isinstance(number, int | float):
        location = "".join(f"[{state!r}]" for state in path)
        raise InputError(
            f"{arguments.shown(values)} stands at {location}; give one mapping from states for each of the variables "
            f"{', '.join(map(repr, names))}, in this order from the outermost, and numbers in the innermost"
        )
    yield path, number


def _checked_states(states: Any, families: Mapping[str, _Family]) -> Mapping[str, Any]:
    """Return the listed states by name (empty for None), after checking that each name has a distribution."""
    if states is None:
        return {}
    if not isinstance(states, Mapping):
        raise arguments.wrong_type("states", states, "a mapping from names to states, or to their number")
    unknown = next((name for name in states if name not in families), None)
    if unknown is not None:
        raise InputError(
            f"states names the variable {unknown!r}, which has no distribution"
            f"{arguments.names_like(str(unknown), families)}"
        )
    return states


def _inferred(name: str, families: Mapping[str, _Family]) -> Variable:
    """Return a variable with the labels of its own distribution as states, or those of another one if it has none.

    If no labels name states, it has as many states as its own distribution.

    Raises:
        InputError: The order of the states is unknown, or the distribution is a single number.
    """
    uses = [families[name], *(f for f in families.values() if name in f.names[1:])]
    labels = [uses_labels for family in uses if (uses_labels := family.labels(name)) is not None]
    names = [labels_of_use for labels_of_use in labels if not are_positions(labels_of_use)]
    if names and len(labels) < len(uses) and not uses[0].is_nested:
        without = next(family for family in uses if family.labels(name) is None)
        raise InputError(
            f"{_title(without.names)} has no labels, while another table names the states {listed(names[0])} of "
            f"{name!r}: their order is unknown, so give states={{{name!r}: [...]}}"
        )
    if names:
        with _titled(uses[0].names):
            return Variable(name, len(names[0]), [without_point(native(label)) for label in names[0]])
    values = uses[0].values
    if isinstance(values, LabelledTable):
        return Variable(name, len(labels[0]))
    if not values.ndim:
        raise InputError(f"{_title(uses[0].names)} is one number; give one for each state")
    return Variable(name, values.shape[0])


def _aligned(family: _Family, members: Sequence[Variable], check: bool) -> NDArray[Any]:
    """Return the array of a distribution, its axes those of the child and of its parents.

    Raises:
        InputError: The array has another shape, or its axes have another order.
    """
    if isinstance(family.values, LabelledTable):
        return aligned_cells(members, family.values)
    array, sizes = family.values, tuple(variable.size for variable in members)
    # pgmpy has the combinations of all parents along one axis, which is split here.
    if array.shape != sizes and array.shape == (sizes[0], math.prod(sizes[1:])):
        array = array.reshape(sizes)
    if array.shape != sizes:
        counts = ", ".join(f"{variable.name!r} has {variable.size}" for variable in members)
        raise InputError(
            f"its array has the shape {array.shape}, which does not fit the numbers of states: {counts}; its axes are "
            "the variable's own, then those of its parents"
        )
    turned = next((axis for axis in range(1, array.ndim) if _sums_to_one(array, axis)), None) if check else None
    if turned is not None and not _sums_to_one(array, 0):
        raise InputError(
            f"its numbers sum to 1 along axis {turned}, that of {members[turned].name!r}, and not along axis 0, that "
            f"of {members[0].name!r}: move that axis to the front (numpy.moveaxis), or pass check=False"
        )
    return array


def _sums_to_one(array: NDArray[Any], axis: int) -> bool:
    return bool((np.abs(array.sum(axis=axis) - 1) <= ROUNDING).all())
