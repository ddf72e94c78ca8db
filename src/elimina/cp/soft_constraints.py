"""Cost functions (soft constraints) of constraint models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elimina.cp.expression_functions import ExpressionFunctions
from elimina.cp.expressions import Expression, Operand
from elimina.cp.operands import MAX_INTEGER, array_of_numbers, several, whole, whole_numbers
from elimina.errors import InputError
from elimina.model.labels import LabelledTable, labelled_table, listed
from elimina.model.table import FORBIDDEN
from elimina.number_texts import counted


class SoftConstraints(ExpressionFunctions):
    """Cost functions by tables."""

    def add_cost(self, xs: Sequence[Operand], costs: ArrayLike | Mapping[tuple[int, ...], float]) -> Expression:
        """Return the cost of a cost function (soft constraint) as a new variable, for use in an objective.

        The function becomes a domain-consistent table with a column for the cost, so the cost's bounds are those of the
        rows that are still possible. A sum of costs is thus at least the sum of the functions' least possible costs,
        even before their variables are decided (partial forward checking: Freuder and Wallace, Artificial Intelligence
        58, 1992).

        Args:
            xs: Variables or expressions.
            costs: An array with an axis for each variable, whose indices are the variable's values from 0 on; or a
                mapping from tuples of values to costs. A pandas Series or DataFrame has the values as its labels, and
                may have the variables' names as the names of its index and columns. A combination of values is
                forbidden if its cost is infinity or ``elimina.FORBIDDEN``, or is missing.

        Returns:
            The cost; a number where it is always the same.

        Raises:
            InputError: A cost is not a whole number within 2^52, the array has another number of axes, a combination of
                values has another length or two costs, labels are not values, or the levels of labels have the names
                of other variables.
        """
        xs = several(xs, "add_cost")
        table = labelled_table("costs", costs)
        if table is not None:
            return self.add_cost_rows(*_labelled_costs(xs, table))
        if isinstance(costs, Mapping):
            if any(not isinstance(row, tuple) or len(row) != len(xs) for row in costs):
                raise InputError(f"add_cost: each cost is of a tuple of values of {counted(len(xs), 'variable')}")
            rows = np.array([whole_numbers(row, "add_cost", "a value") for row in costs], dtype=np.int64)
            rows, values = rows.reshape(len(costs), len(xs)), np.array(list(costs.values()))
        else:
            array = array_of_numbers("costs", costs)
            if array.ndim != len(xs):
                raise InputError(
                    f"add_cost: {counted(len(xs), 'variable')} need an array of as many axes, not of {array.ndim}"
                )
            rows, values = np.indices(array.shape).reshape(array.ndim, array.size).T, array.ravel()
        return self.add_cost_rows(xs, rows, values)

    def add_cost_rows(self, xs: Sequence[Operand], rows: NDArray[np.int64], values: NDArray[Any]) -> Expression:
        """Return the cost of a cost function that is given by distinct rows of values: see `add_cost`.

        Args:
            xs: Variables or expressions.
            rows: Values of the variables, an array of shape (number of rows, number of variables).
            values: The cost of each row; assignments without a row are forbidden.

        Raises:
            InputError: A cost is not a whole number within 2^52, or the shapes or the types do not fit.
        """
        xs = several(xs, "add_cost_rows")
        rows, values = array_of_numbers("rows", rows), array_of_numbers("values", values)
        if values.dtype.kind not in "biuf":
            raise InputError(f"add_cost: costs are numbers, not {values.dtype}")
        if values.ndim != 1 or rows.shape != (len(values), len(xs)) or (rows.size and rows.dtype.kind not in "iu"):
            raise InputError(
                f"add_cost_rows: {counted(values.size, 'cost')} over {counted(len(xs), 'variable')} need rows of whole "
                f"numbers of shape ({values.size}, {len(xs)}), not {rows.dtype} of {rows.shape}"
            )
        allowed = values != (FORBIDDEN if values.dtype.kind in "iu" else np.inf)
        rows, values = rows[allowed], values[allowed]
        whole_values = values.astype(np.int64) if (np.abs(values) <= MAX_INTEGER).all() else np.zeros(0, np.int64)
        if len(whole_values) != len(values) or (whole_values != values).any():
            raise InputError("add_cost: costs are whole numbers within 2^52; scale or round them")
        distinct_costs = np.unique(whole_values).tolist()
        if not distinct_costs:
            self.clause([])
        cost = (
            self.int_var(distinct_costs)
            if len(distinct_costs) > 1
            else self.expression(distinct_costs[0] if distinct_costs else 0)
        )
        columns = [*xs, cost] if len(distinct_costs) > 1 else list(xs)
        if distinct_costs and columns:
            self.post("table_int", columns, np.column_stack([rows, whole_values])[:, : len(columns)].ravel())
        return cost


def _labelled_costs(xs: list[Operand], table: LabelledTable) -> tuple[list[Operand], NDArray[np.int64], NDArray[Any]]:
    """Return the variables in the order of a table's labels, and the values and the cost of each cell.

    Raises:
        InputError: The labels do not fit the variables, or are repeated.
    """
    if len(table.axes) != len(xs):
        raise InputError(
            f"add_cost: expected a table with one level of labels for each of {counted(len(xs), 'variable')}, "
            f"found {len(table.axes)}"
        )
    names = [getattr(x, "name", "") for x in xs]
    order = list(range(len(xs)))
    if any(axis.name is not None for axis in table.axes) and all(names):
        axes = [str(axis.name) for axis in table.axes]
        if sorted(axes) != sorted(names):
            raise InputError(
                f"add_cost: the table's labels are named {listed(axes)}, and the variables {listed(names)}: name each "
                "level after its variable, or drop the names (rename_axis)"
            )
        order = [names.index(name) for name in axes]
    rows, columns = np.indices(table.values.shape).reshape(2, -1)
    labels = [
        np.array([whole(label, "a label of costs") for label in axis.labels], dtype=np.int64)[axis.codes[cells]]
        for axes, cells in ((table.rows, rows), (table.columns, columns))
        for axis in axes
    ]
    values = np.column_stack(labels)
    if len(np.unique(values, axis=0)) < len(values):
        raise InputError("add_cost: the table has two costs for one combination of values")
    return [xs[position] for position in order], values, table.values.ravel()
