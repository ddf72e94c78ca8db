"""Constraints over many variables, and the functions that make expressions."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elimina.arguments import flag, wrong_type
from elimina.cp.expressions import Condition, Expression, Operand, boolean
from elimina.cp.intervals import IntervalVar, Task, intervals_of
from elimina.cp.operands import MAX_INTEGER, several, whole, whole_array
from elimina.errors import InputError
from elimina.model.labels import LabelledTable, labelled_table, listed
from elimina.model.table import FORBIDDEN

Consistency = Literal["value", "bounds", "domain"]
Side = Literal["auto", "cpu", "gpu"]
_MAX_TRANSITION_CELLS = 10**8


class GlobalConstraints(ABC):
    """Global constraints and cost functions of a model. All indices count from 0."""

    @abstractmethod
    def int_var(self, lo: int | Iterable[int], hi: int | None = None, name: str = "") -> Expression:
        """Make a variable."""

    @abstractmethod
    def result_var(self, lo: int, hi: int, of: Iterable[Operand], name: str = "") -> Expression:
        """Make a variable for a function of operands, whose bounds follow from theirs."""

    @abstractmethod
    def bool_var(self, name: str = "") -> Expression:
        """Make a variable of 0 and 1."""

    @abstractmethod
    def bounds(self, x: Operand) -> tuple[int, int]:
        """Return the smallest and the largest value that an expression can take."""

    @abstractmethod
    def expression(self, x: Operand) -> Expression:
        """Return an expression of an operand."""

    @abstractmethod
    def sum(self, xs: Iterable[Operand]) -> Expression:
        """Return the sum of expressions."""

    @abstractmethod
    def add(self, condition: Operand, *, iff: Operand | None = None, only_if: Operand | None = None) -> None:
        """Post a condition."""

    @abstractmethod
    def post(self, name: str, *arguments: Any) -> None:
        """Post a constraint by its name in the core."""

    def product(self, x: Operand, y: Operand) -> Expression:
        """Return a new variable that is x times y, bounds consistent."""
        corners = [a * b for a in self.bounds(x) for b in self.bounds(y)]
        if max(map(abs, corners)) > MAX_INTEGER:
            ends = f"{min(corners)} to {max(corners)}"
            raise InputError(f"({x}) * ({y}) is from {ends}, beyond -2^52..2^52: give its variables smaller bounds")
        z = self.result_var(min(corners), max(corners), (x, y))
        self.post("int_times", x, y, z)
        return z

    def quotient(self, x: Operand, y: Operand) -> Expression:
        """Return a new variable equal to x divided by y (not 0), truncated towards 0, bounds consistent."""
        largest = max(map(abs, self.bounds(x)))
        z = self.result_var(-largest, largest, (x,))
        self.post("int_div", x, y, z)
        return z

    def remainder(self, x: Operand, y: Operand) -> Expression:
        """Return a new variable for the remainder of `quotient`; its sign is that of x."""
        largest = min(max(map(abs, self.bounds(x))), max(map(abs, self.bounds(y))))
        z = self.result_var(-largest, largest, (x, y))
        self.post("int_mod", x, y, z)
        return z

    def power(self, x: Operand, y: Operand, lo: int, hi: int) -> Expression:
        """Return a new variable from ``lo`` to ``hi`` that is x to the power y; 0 has no negative power."""
        z = self.int_var(lo, hi)
        self.post("int_pow", x, y, z)
        return z

    def maximum(self, xs: Iterable[Operand]) -> Expression:
        """Return a new variable that is the greatest of several, bounds consistent."""
        return self._extreme("array_int_maximum", several(xs, "maximum"), max)

    def minimum(self, xs: Iterable[Operand]) -> Expression:
        """Return a new variable that is the least of several, bounds consistent."""
        return self._extreme("array_int_minimum", several(xs, "minimum"), min)

    def _extreme(self, name: str, xs: list[Operand], of: Any) -> Expression:
        if not xs:
            raise InputError("maximum and minimum need at least one expression")
        ends = [self.bounds(x) for x in xs]
        z = self.result_var(of(lo for lo, _ in ends), of(hi for _, hi in ends), xs)
        self.post(name, z, xs)
        return z

    def all_of(self, booleans: Iterable[Operand]) -> Expression:
        """Return a new Boolean that is 1 if all of several are 1."""
        b = self.bool_var()
        self.post("array_bool_and", several(booleans, "all_of"), b)
        return b

    def any_of(self, booleans: Iterable[Operand]) -> Expression:
        """Return a new Boolean that is 1 if at least one of several is."""
        b = self.bool_var()
        self.post("array_bool_or", several(booleans, "any_of"), b)
        return b

    def clause(self, positive: Iterable[Operand], negative: Iterable[Operand] = ()) -> None:
        """Require that a Boolean of one list is 1, or a Boolean of another list is 0.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> a, b = m.bool_vars(2)
            >>> m.clause([a], [b])
            >>> len(m.solve(all_solutions=True).solutions)
            3
        """
        self.post("bool_clause", several(positive, "clause"), several(negative, "clause"))

    def holds_member(self, x: Operand, values: Sequence[int]) -> Expression:
        """Return a new Boolean that is 1 exactly if an expression has one of some values."""
        if not values:
            return self.expression(0)
        b = self.bool_var()
        self.post("set_in_reif", x, values, b)
        return b

    def member(self, x: Operand, values: Iterable[int]) -> None:
        """Restrict a variable to a set of values; domain consistent.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> x = m.int_var(0, 9)
            >>> m.member(x, [1, 4])
            >>> [solution[x] for solution in m.solutions()]
            [1, 4]
        """
        self.post("set_in", x, several(values, "member"))

    def element(self, items: Sequence[Any] | NDArray[Any], index: Operand | tuple[Operand, ...]) -> Expression:
        """Return a new variable that is ``items[index]``.

        Args:
            items: Whole numbers, for example a row of a matrix, which is copied (4 bytes each if they fit, in the
                solver 8): domain consistent, but where they are from the start more than 2^16 apart, of the result the
                bounds. Or expressions, too: bounds consistent.
            index: Position, from 0 on; a tuple of positions where items have several dimensions.

        Raises:
            InputError: There are no items, something is not a whole number, or there are more or fewer positions than
                dimensions.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> row, column = m.int_vars(2, 0, 1)
            >>> m.maximize(m.element([[3, 1], [4, 2]], (row, column)))
            >>> m.solve()[[row, column]]
            [1, 0]
        """
        if isinstance(index, tuple):
            items, index = self._row_major(items, index)
        items = items if isinstance(items, np.ndarray) else several(items, "element")
        if not len(items):
            raise InputError("element: there are no items")
        of_variables = not isinstance(items, np.ndarray) and any(isinstance(x, Expression | Condition) for x in items)
        if of_variables:
            ends = [self.bounds(x) for x in items]
            z = self.result_var(min(lo for lo, _ in ends), max(hi for _, hi in ends), items)
        else:
            items = whole_array(items)
            z = self.int_var(int(items.min()), int(items.max()))
        index_from_1 = 1 + index if isinstance(index, Expression | Condition) else 1 + whole(index, "an index")
        self.post("array_var_int_element" if of_variables else "array_int_element", index_from_1, items, z)
        return z

    def _row_major(self, items: Any, indices: tuple[Operand, ...]) -> tuple[Any, Expression]:
        """Return the items of several dimensions as a list, and the position in it."""
        array = np.asarray(items)
        if array.ndim != len(indices):
            raise InputError(f"element: {len(indices)} positions in items of {array.ndim} dimensions")
        position = self.expression(0)
        for size, index in zip(array.shape, indices, strict=True):
            lo, hi = self.bounds(index)
            if lo < 0:
                self.add(self.expression(index) >= 0)
            if hi >= size:
                self.add(self.expression(index) < size)
            position = position * size + index
        return array.ravel() if array.dtype != object else array.ravel().tolist(), position

    def all_different(self, xs: Iterable[Operand], consistency: Consistency = "domain", side: Side = "auto") -> None:
        """Require different values for all variables.

        Args:
            xs: Variables or expressions.
            consistency: ``value``: a value that a variable has is taken from the others; ``bounds``: of each variable,
                there are solutions with both bounds, holes apart (López-Ortiz, Quimper, Tromp and van Beek, IJCAI
                2003); ``domain``: there is one with each value (Régin, AAAI 1994), unless values are more than 2^20
                apart: then it is ``bounds``.
            side: Device that filters if consistency is ``domain``; ``auto``: the faster one, for each call.

        Raises:
            InputError: The consistency or the side is another.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs = m.int_vars(3, 0, 2)
            >>> m.all_different(xs)
            >>> len(m.solve(all_solutions=True).solutions)
            6
        """
        listed = several(xs, "all_different")
        if not isinstance(consistency, str) or consistency not in ("value", "bounds", "domain"):
            raise InputError(f"all_different: the consistency is value, bounds or domain, not {consistency!r}")
        suffix = _suffix("all_different", side)
        if suffix and consistency != "domain":
            raise InputError(f"all_different: with {consistency} consistency the side is auto, not {side!r}")
        self.post(f"all_different_{consistency}{suffix}", listed)

    def all_different_except_0(self, xs: Iterable[Operand]) -> None:
        """Require different values for the variables that are not 0.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs = m.int_vars(2, 0, 2)
            >>> m.all_different_except_0(xs)
            >>> len(m.solve(all_solutions=True).solutions)
            7
        """
        self.post("all_different_except_0", several(xs, "all_different_except_0"))

    def circuit(self, successors: Sequence[Operand], side: Side = "auto") -> None:
        """Make the successors form one circuit through all nodes; ``side`` as in `all_different`.

        Raises:
            InputError: The side is another.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> successors = m.int_vars(3, 0, 2)
            >>> m.circuit(successors)
            >>> [solution[successors] for solution in m.solutions()]
            [[1, 2, 0], [2, 0, 1]]
        """
        listed = several(successors, "circuit")
        self.post("circuit" + _suffix("circuit", side), listed)

    def subcircuit(self, successors: Sequence[Operand], side: Side = "auto") -> None:
        """Make the nodes that are not their own successors form at most one cycle; ``side`` as in `all_different`.

        Raises:
            InputError: The side is another.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> successors = m.int_vars(3, 0, 2)
            >>> m.subcircuit(successors)
            >>> len(m.solve(all_solutions=True).solutions)
            6
        """
        listed = several(successors, "subcircuit")
        self.post("subcircuit" + _suffix("subcircuit", side), listed)

    def weighted_circuit(
        self, successors: Sequence[Operand], edges: Mapping[tuple[int, int], int]
    ) -> tuple[Expression, list[Expression]]:
        """Make the successors form one circuit through all nodes, along undirected edges that have lengths.

        The length is bounded by 1-trees (Held and Karp, Operations Research 18, 1970); edges that would raise the bound
        too much are ruled out, and those whose absence would do so have to be (Benchimol, van Hoeve, Régin, Rousseau
        and Rueher, Constraints 17, 2012).

        Args:
            successors: Successors of the nodes, at least three.
            edges: Length of each edge between two nodes; others do not exist. One direction each.

        Returns:
            The length of the circuit, and for each edge a Boolean: whether the circuit has it.

        Raises:
            InputError: There is no edge, or a length is not a whole number. What else is wrong is known when the model
                is solved.
        """
        successors = several(successors, "weighted_circuit")
        if not isinstance(edges, Mapping):
            raise wrong_type("edges", edges, "a mapping of pairs of nodes to lengths")
        if not edges:
            raise InputError("weighted_circuit: there are no edges")
        for edge in edges:
            if not isinstance(edge, tuple) or len(edge) != 2:
                raise wrong_type("a key of edges", edge, "a pair of nodes, like (0, 1)")
        lengths = [whole(x, "a length") for x in edges.values()]
        ends = [(whole(i, "a node"), whole(j, "a node")) for i, j in edges]
        n = len(successors)
        length = self.int_var(n * min(lengths), n * max(lengths))
        has = [self.bool_var() for _ in lengths]
        self.post(
            "weighted_circuit", list(successors), [i for i, _ in ends], [j for _, j in ends], lengths, has, length
        )
        return length, has

    def table(self, xs: Sequence[Operand], rows: Iterable[Sequence[int]]) -> None:
        """Restrict the variables to listed tuples; domain consistent (Demeulenaere and others, CP 2016).

        Raises:
            InputError: A row has another length.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs = m.int_vars(2, 0, 3)
            >>> m.table(xs, [(0, 3), (2, 1)])
            >>> [solution[xs] for solution in m.solutions()]
            [[0, 3], [2, 1]]
        """
        xs = several(xs, "table")
        self.post("table_int", xs, [x for row in rows_of(len(xs), rows) for x in row])

    def add_cost(self, xs: Sequence[Operand], costs: ArrayLike | Mapping[tuple[int, ...], float]) -> Expression:
        """Return a cost function (a soft constraint): a new variable that is its cost, for an objective to add up.

        It is a table with a column for the cost, domain consistent: the cost's bounds are those of what is still
        possible. So a sum of costs is bounded by what each function costs at least, decided or not, as by partial
        forward checking (Freuder and Wallace, Artificial Intelligence 58, 1992).

        Args:
            xs: Variables or expressions.
            costs: An array with an axis for each variable, by its values from 0 on; or values -> cost. A pandas Series
                or DataFrame has the values as its labels, and may have the variables' names as the names of its index
                and columns. Forbidden: infinity, ``elimina.FORBIDDEN``, and what is not there.

        Returns:
            The cost; a number where it is always the same.

        Raises:
            InputError: A cost is not a whole number within 2^52, the array has another number of axes, or labels are no
                values or named after other variables.
        """
        xs = several(xs, "add_cost")
        table = labelled_table("costs", costs)
        if table is not None:
            return self.add_cost_rows(*_labelled_costs(xs, table))
        if isinstance(costs, Mapping):
            if any(not isinstance(row, tuple) or len(row) != len(xs) for row in costs):
                raise InputError(f"add_cost: each cost is of a tuple of values of {len(xs)} variables")
            rows = np.array([[whole(x, "a value") for x in row] for row in costs], dtype=np.int64)
            rows, values = rows.reshape(len(costs), len(xs)), np.array(list(costs.values()))
        else:
            array = _array("costs", costs)
            if array.ndim != len(xs):
                raise InputError(f"add_cost: {len(xs)} variables need an array of as many axes, not of {array.ndim}")
            rows, values = np.indices(array.shape).reshape(array.ndim, array.size).T, array.ravel()
        return self.add_cost_rows(xs, rows, values)

    def add_cost_rows(self, xs: Sequence[Operand], rows: NDArray[np.int64], values: NDArray[Any]) -> Expression:
        """Return a cost function by rows of values, each at most once: see `add_cost`.

        Args:
            xs: Variables or expressions.
            rows: (number of rows, number of variables).
            values: The cost of each row; a row that is not there is forbidden.
        """
        xs, rows, values = several(xs, "add_cost_rows"), _array("rows", rows), _array("values", values)
        if values.dtype.kind not in "biuf":
            raise InputError(f"add_cost: costs are numbers, not {values.dtype}")
        if values.ndim != 1 or rows.shape != (len(values), len(xs)) or (rows.size and rows.dtype.kind not in "iu"):
            raise InputError(
                f"add_cost_rows: {len(xs)} variables and {values.size} costs need whole numbers of shape "
                f"({values.size}, {len(xs)}), not {rows.dtype} of {rows.shape}"
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

    def regular(
        self, xs: Sequence[Operand], transitions: Sequence[Mapping[int, int]], start: int, accepting: Iterable[int]
    ) -> None:
        """Make the values a word of a finite automaton; domain consistent (Pesant, CP 2004).

        Args:
            xs: Variables or expressions, in the order of the word.
            transitions: Symbol -> next state, one mapping for each state.
            start: Initial state.
            accepting: States that the word may end in.

        Raises:
            InputError: A state does not exist.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> bits = m.int_vars(4, 0, 1)
            >>> m.regular(bits, [{0: 0, 1: 1}, {0: 0}], 0, [0, 1])  # no two 1 in a row
            >>> len(m.solve(all_solutions=True).solutions)
            8
        """
        transitions, ends = checked_automaton("regular", transitions, start, accepting)
        states = len(transitions)
        symbols = sorted({symbol for moves in transitions for symbol in moves})
        smallest, width = (symbols[0], symbols[-1] - symbols[0] + 1) if symbols else (0, 1)
        if width * states > _MAX_TRANSITION_CELLS:
            raise InputError(
                f"regular: {states} states times symbols {smallest} to {smallest + width - 1} are too many"
            )
        table = np.zeros((states, width), dtype=np.int64)
        for state, moves in enumerate(transitions):
            for symbol, to in moves.items():
                table[state, symbol - smallest] = to + 1
        shifted = [1 - smallest + (x if isinstance(x, Expression | Condition) else whole(x, "an item")) for x in xs]
        self.post("regular", shifted, states, width, table.ravel(), start + 1, [state + 1 for state in ends])

    def count(self, xs: Sequence[Operand], value: Operand) -> Expression:
        """Return a new variable that counts the variables with a value."""
        xs = several(xs, "count")
        z = self.int_var(0, len(xs))
        self.post("count_eq", xs, value, z)
        return z

    def cardinality(self, xs: Sequence[Operand], counts: Mapping[int, Operand], closed: bool = False) -> None:
        """Bound the number of occurrences of some values; domain consistent (Régin, AAAI 1996).

        Args:
            xs: Variables or expressions.
            counts: Value -> how many of the variables have it.
            closed: They have no other values.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs = m.int_vars(3, 0, 2)
            >>> m.cardinality(xs, {0: 2})
            >>> len(m.solve(all_solutions=True).solutions)
            6
        """
        name = "global_cardinality_closed" if flag("closed", closed) else "global_cardinality"
        if not isinstance(counts, Mapping):
            raise InputError(f"cardinality: the counts are value -> how many, not {counts!r}")
        self.post(name, several(xs, "cardinality"), list(counts), list(counts.values()))

    def distinct_values(self, xs: Sequence[Operand]) -> Expression:
        """Return a new variable that counts the different values of the variables."""
        xs = several(xs, "distinct_values")
        z = self.int_var(min(1, len(xs)), len(xs))
        self.post("nvalue", z, xs)
        return z

    def interval_var(
        self,
        start: Operand | tuple[int, int],
        duration: Operand | tuple[int, int],
        optional: bool | Operand = False,
        name: str = "",
    ) -> IntervalVar:
        """Make a task for `no_overlap`, `cumulative`, `no_overlap_2d` and `precedence`.

        The start and the duration of an absent task are free.

        Args:
            start: Start, or its bounds.
            duration: Duration, or its bounds; at least 0.
            optional: True if the search may leave the task out, or a Boolean that is 1 if it takes place.
            name: Name of the task; its new variables are ``NAME.start``, ``NAME.duration`` and ``NAME.presence``.

        Raises:
            InputError: The duration may be negative, or bounds exclude all values.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> tasks = [m.interval_var((0, 9), hours, optional=True) for hours in (3, 4, 5)]
            >>> for task in tasks:
            ...     m.add(task.end <= 9)
            >>> m.no_overlap(tasks)
            >>> m.maximize(sum(task.presence * hours for task, hours in zip(tasks, (3, 4, 5))))
            >>> m.solve().value
            9
        """
        ends = self._interval_end(start, f"{name}.start" if name else "")
        length = self._interval_end(duration, f"{name}.duration" if name else "")
        if self.bounds(length)[0] < 0:
            raise InputError(f"interval_var {name}: the duration {length} may be negative: let it be at least 0")
        presence: Operand
        if isinstance(optional, bool):
            presence = self.int_var(0, 1, f"{name}.presence" if name else "") if optional else 1
        else:
            presence = boolean(optional)
        return IntervalVar(self.expression(ends), length, presence, name)

    def _interval_end(self, x: Operand | tuple[int, int], name: str) -> Operand:
        if not isinstance(x, tuple):
            return x
        if len(x) != 2:
            raise InputError(f"interval_var gets an expression or a pair of bounds, not {x!r}")
        return self.int_var(*x, name)

    def precedence(self, before: IntervalVar, after: IntervalVar, delay: Operand = 0) -> None:
        """Make a task start at the end of another one or later, if both are present.

        Args:
            before: The task that comes first.
            after: The task that follows.
            delay: Least time between them.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> first, second = m.interval_var((0, 4), 2), m.interval_var((0, 4), 1)
            >>> m.precedence(first, second)
            >>> m.minimize(second.start)
            >>> m.solve()[second]
            (2, 3)
        """
        for task in (before, after):
            if not isinstance(task, IntervalVar):
                raise wrong_type("a task of precedence", task, "an interval_var")
        optional = [task.presence for task in (before, after) if not isinstance(task.presence, int)]
        absent = [task for task in (before, after) if isinstance(task.presence, int) and not task.presence]
        if not absent:
            order = before.end + delay <= after.start
            self.add(order, only_if=self.all_of(optional) if len(optional) > 1 else next(iter(optional), None))

    def cumulative(
        self,
        starts: Sequence[Task],
        durations: Sequence[Operand] | None = None,
        demands: Sequence[Operand] = (),
        capacity: Operand = 1,
        presences: Sequence[Operand] | None = None,
    ) -> None:
        """Limit the demands of the tasks that run at the same time to the capacity.

        By their time-table, time-table edge finding (Vilim, CPAIOR 2011) and the order of two that exclude each other.

        Args:
            starts: Starts of the tasks, or tasks of `interval_var`.
            durations: Durations, at least 0; None for tasks of `interval_var`.
            demands: Demand of each task, at least 0.
            capacity: Limit of the sum of demands at any time.
            presences: Booleans of the tasks: 0 if one is absent. None: all are present.

        Raises:
            InputError: The lists differ in length.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> tasks = [m.interval_var((0, 5), 3, optional=True) for _ in range(4)]
            >>> m.cumulative(tasks, demands=[1, 2, 2, 3], capacity=3)
            >>> m.add(sum(task.presence for task in tasks) >= 3)
            >>> m.minimize(m.maximum(task.end for task in tasks))
            >>> m.solve().value
            6
        """
        tasks = tasks_of("cumulative", starts, durations, presences, demands=demands)
        present = [
            demand if isinstance(presence, int) and presence == 1 else self.expression(presence) * demand
            for presence, demand in zip(tasks["presences"], tasks["demands"], strict=True)
        ]
        self.post("cumulative", tasks["starts"], tasks["durations"], present, capacity)

    def no_overlap(
        self,
        starts: Sequence[Task],
        durations: Sequence[Operand] | None = None,
        presences: Sequence[Operand] | None = None,
        transition_times: ArrayLike | None = None,
        *,
        strict: bool = False,
    ) -> None:
        """Make tasks run one after another.

        By theta trees: overload checking, detectable precedences, not-first and not-last, edge finding (Vilim, PhD
        thesis 2007; of tasks that may be absent: Vilim, Bartak and Cepek, Constraints 10, 2005). Where all durations
        are constants above 0 and no task may be absent, free searches decide the order of each two of up to 100 tasks
        first (Grimes and Hebrard, INFORMS Journal on Computing 27, 2015).

        Args:
            starts: Starts of the tasks, or tasks of `interval_var`.
            durations: Durations, at least 0; None for tasks of `interval_var`.
            presences: Booleans of the tasks: 0 if one is absent. None: all are present.
            transition_times: Least time from the end of each task (row) to the start of each other task (column) that
                comes later, immediately or not; implies ``strict``.
            strict: Tasks that take no time do not run while another one does, either.

        Raises:
            InputError: The lists differ in length, a duration or a transition time is negative.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> starts = m.int_vars(3, 0, 9)
            >>> m.no_overlap(starts, [3, 2, 4])
            >>> m.minimize(m.maximum([start + hours for start, hours in zip(starts, [3, 2, 4])]))
            >>> m.solve().value
            9
        """
        tasks = tasks_of("no_overlap", starts, durations, presences)
        check_sizes("no_overlap", "duration", tasks["durations"])
        is_strict = flag("strict", strict) or transition_times is not None
        self.post("no_overlap_strict" if is_strict else "no_overlap", *tasks.values())
        if transition_times is None:
            return
        numbers = list(itertools.chain(*transitions_of(len(tasks["starts"]), transition_times)))
        self.post("transition_times", *tasks.values(), numbers)

    def no_overlap_2d(
        self,
        xs: Sequence[Task],
        ys: Sequence[Task],
        widths: Sequence[Operand] | None = None,
        heights: Sequence[Operand] | None = None,
        presences: Sequence[Operand] | None = None,
        *,
        strict: bool = False,
    ) -> None:
        """Make boxes in the plane not overlap.

        By the sides on which each two of them may lie of each other, and by the lengths of those that a line crosses
        (Beldiceanu and Contejean, Mathematical and Computer Modelling 20, 1994).

        Args:
            xs: Left sides of the boxes, or their intervals of `interval_var`.
            ys: Lower sides, or intervals; a box is absent if one of its intervals is.
            widths: Widths, at least 0; None for intervals.
            heights: Heights, at least 0; None for intervals.
            presences: Booleans of the boxes: 0 if one is absent. None: all are present.
            strict: Boxes without an area do not lie inside another one, either.

        Raises:
            InputError: The lists differ in length, a width or a height is negative.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs, ys = m.int_vars(2, 0, 1), m.int_vars(2, 0, 1)
            >>> m.no_overlap_2d(xs, ys, [2, 2], [1, 1])
            >>> len(m.solve(all_solutions=True).solutions)
            8
        """
        boxes = boxes_of(self, xs, ys, widths, heights, presences)
        self.post("diffn" if flag("strict", strict) else "diffn_nonstrict", *boxes.values())

    def reservoir(
        self,
        times: Sequence[Operand],
        changes: Sequence[int],
        min_level: int,
        max_level: int,
        presences: Sequence[Operand] | None = None,
    ) -> None:
        """Keep a level between two limits while events raise and lower it; before the first event it is 0.

        By the least and the greatest level that are possible at each time. Events at the same time count together.

        Args:
            times: Times of the events.
            changes: Change of the level by each event.
            min_level: Least level, at most 0.
            max_level: Greatest level, at least 0.
            presences: Booleans of the events: 0 if one is absent. None: all are present.

        Raises:
            InputError: The lists differ in length, or the limits exclude 0, the level at the beginning.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> delivery, sale = m.int_var(3, 9), m.int_var(0, 9)
            >>> m.reservoir([delivery, sale], [5, -2], 0, 5)
            >>> m.minimize(sale)
            >>> m.solve().value
            3
        """
        events, least, greatest = events_of(times, changes, min_level, max_level, presences)
        self.post("reservoir", *events.values(), least, greatest)

    def lex_less(self, xs: Sequence[Operand], ys: Sequence[Operand]) -> None:
        """Order two sequences lexicographically: the first one comes strictly before the second.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs, ys = m.bool_vars(2), m.bool_vars(2)
            >>> m.lex_less(xs, ys)
            >>> len(m.solve(all_solutions=True).solutions)
            6
        """
        self.post("lex_less", several(xs, "lex_less"), several(ys, "lex_less"))

    def lex_lesseq(self, xs: Sequence[Operand], ys: Sequence[Operand]) -> None:
        """Order two sequences lexicographically: the first one comes before the second, or equals it.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs, ys = m.bool_vars(2), m.bool_vars(2)
            >>> m.lex_lesseq(xs, ys)
            >>> len(m.solve(all_solutions=True).solutions)
            10
        """
        self.post("lex_lesseq", several(xs, "lex_lesseq"), several(ys, "lex_lesseq"))

    def inverse(self, xs: Sequence[Operand], ys: Sequence[Operand]) -> None:
        """Require ``xs[i] == j`` exactly if ``ys[j] == i``.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs, ys = m.int_vars(3, 0, 2), m.int_vars(3, 0, 2)
            >>> m.inverse(xs, ys)
            >>> m.add(xs[0] == 2)
            >>> m.solve()[ys[2]]
            0
        """
        self.post("inverse", several(xs, "inverse"), several(ys, "inverse"))

    def bin_packing_load(self, loads: Sequence[Operand], bins: Sequence[Operand], sizes: Sequence[int]) -> None:
        """Make the sizes of the items in each bin add up to its load.

        Args:
            loads: Loads of the bins.
            bins: Bins of the items.
            sizes: Sizes of the items, at least 0.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> bins = m.int_vars(3, 0, 1)
            >>> m.bin_packing_load([5, 5], bins, [2, 3, 5])
            >>> [solution[bins] for solution in m.solutions()]
            [[0, 0, 1], [1, 1, 0]]
        """
        plain = [whole(x, "a size") for x in several(sizes, "bin_packing_load")]
        self.post("bin_packing_load", *(several(xs, "bin_packing_load") for xs in (loads, bins)), plain)


def rows_of(count: int, rows: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the tuples of a table as tuples.

    Raises:
        InputError: A row has not as many values as the table has variables.
    """
    listed_rows = [tuple(several(row, "a row of table")) for row in several(rows, "table")]
    for row in listed_rows:
        if len(row) != count:
            raise InputError(f"table: the row {row} has {len(row)} values for {count} variables")
    return listed_rows


def transitions_of(count: int, transition_times: ArrayLike) -> list[list[int]]:
    """Return the transition times between each two tasks.

    Raises:
        InputError: They have another shape, or one is negative.
    """
    times = _array("transition_times", transition_times)
    if times.shape != (count, count) and (count or times.size):
        raise InputError(
            f"no_overlap: {count} tasks need transition times of shape ({count}, {count}), not {times.shape}"
        )
    numbers = [[whole(time, "a transition time") for time in row] for row in times.tolist()]
    check_sizes("no_overlap", "transition time", itertools.chain(*numbers))
    return numbers


def boxes_of(
    model: GlobalConstraints,
    xs: Sequence[Task],
    ys: Sequence[Task],
    widths: Sequence[Operand] | None,
    heights: Sequence[Operand] | None,
    presences: Sequence[Operand] | None,
) -> dict[str, list[Any]]:
    """Return the sides, the sizes and the presences of boxes.

    Raises:
        InputError: The lists differ in length, or a size is negative.
    """
    lefts, widths, present_in_x = split_intervals("no_overlap_2d", xs, widths)
    lows, heights, present_in_y = split_intervals("no_overlap_2d", ys, heights)
    if present_in_x is not None and present_in_y is not None and presences is None:
        presences = [_both(model, x, y) for x, y in zip(present_in_x, present_in_y, strict=False)]
    elif present_in_x is not None or present_in_y is not None:
        raise InputError("no_overlap_2d: give intervals for both sides and no presences, or numbers for all")
    boxes = records_of("no_overlap_2d", "box", xs=lefts, ys=lows, widths=widths, heights=heights, presences=presences)
    check_sizes("no_overlap_2d", "width", boxes["widths"])
    check_sizes("no_overlap_2d", "height", boxes["heights"])
    return boxes


def _both(model: GlobalConstraints, x: Operand, y: Operand) -> Operand:
    if x is y:
        return x
    if isinstance(x, int) or isinstance(y, int):
        constant, other = (x, y) if isinstance(x, int) else (y, x)
        return other if constant else 0
    return model.all_of([x, y])


def events_of(
    times: Sequence[Operand],
    changes: Sequence[int],
    min_level: int,
    max_level: int,
    presences: Sequence[Operand] | None,
) -> tuple[dict[str, list[Any]], int, int]:
    """Return the times, changes and presences of the events of a reservoir, and its limits.

    Raises:
        InputError: The lists differ in length, or the limits exclude 0, the level at the beginning.
    """
    events = records_of("reservoir", "event", times=times, changes=changes, presences=presences)
    least, greatest = whole(min_level, "min_level"), whole(max_level, "max_level")
    if not least <= 0 <= greatest:
        raise InputError(
            f"reservoir: the level begins at 0, which is not within {least}..{greatest}: add an event of the "
            "initial level before all others, and widen the limits to contain 0"
        )
    events["changes"] = [whole(change, "a change") for change in events["changes"]]
    return events, least, greatest


def checked_automaton(
    name: str, transitions: Sequence[Mapping[int, int]], start: int, accepting: Iterable[int]
) -> tuple[list[Mapping[int, int]], list[int]]:
    """Return the transitions and the accepting states of a finite automaton as lists.

    Raises:
        InputError: A state does not exist, or something has another type.
    """
    listed_transitions = several(transitions, name)
    states = len(listed_transitions)
    ends = [whole(state, "a state") for state in several(accepting, name)]
    for moves in listed_transitions:
        if not isinstance(moves, Mapping):
            raise InputError(f"{name}: the transitions of a state are symbol -> next state, not {moves!r}")
        for number in (*moves, *moves.values()):
            whole(number, "a symbol or a state")
    for state in [whole(start, "a state"), *ends, *(to for moves in listed_transitions for to in moves.values())]:
        if not 0 <= state < states:
            raise InputError(f"{name}: there is no state {state}: they are 0 to {states - 1}")
    return listed_transitions, ends


def split_intervals(
    name: str, tasks: Sequence[Task], durations: Sequence[Operand] | None
) -> tuple[list[Any], list[Any], list[Operand] | None]:
    """Return the starts, the durations and the presences of tasks; of starts and durations, None for the presences."""
    starts = several(tasks, name)
    intervals = intervals_of(name, starts)
    if intervals is None:
        if durations is None and starts:
            raise InputError(f"{name}: {starts[0]} is a start: give the durations, too, or tasks of interval_var")
        return starts, several(() if durations is None else durations, name), None
    if durations is not None:
        raise InputError(f"{name}: tasks of interval_var have durations: leave the list of durations out")
    return [x.start for x in intervals], [x.duration for x in intervals], [x.presence for x in intervals]


def tasks_of(
    name: str,
    tasks: Sequence[Task],
    durations: Sequence[Operand] | None,
    presences: Sequence[Operand] | None,
    **columns: Any,
) -> dict[str, list[Any]]:
    """Return the starts, durations and presences of tasks, and further lists with an item for each of them."""
    starts, lengths, present = split_intervals(name, tasks, durations)
    if present is not None and presences is not None:
        raise InputError(f"{name}: tasks of interval_var have presences: leave the list of presences out")
    present = present if presences is None else several(presences, name)
    return records_of(name, "task", starts=starts, durations=lengths, **columns, presences=present)


def records_of(name: str, what: str, **columns: Any) -> dict[str, list[Any]]:
    """Return lists with an item for each task, box or event; where there are no presences, all are present."""
    presences = columns.pop("presences")
    lists: dict[str, list[Any]] = {column: several(items, name) for column, items in columns.items()}
    count = len(next(iter(lists.values())))
    lists["presences"] = [1] * count if presences is None else several(presences, name)
    for column, items in lists.items():
        if len(items) != count:
            first = next(iter(lists))
            raise InputError(f"{name}: {count} {first} and {len(items)} {column}: each {what} has one of both")
    return lists


def check_sizes(name: str, what: str, sizes: Iterable[Any]) -> None:
    """Check sizes that are numbers.

    Raises:
        InputError: One is negative.
    """
    for size in sizes:
        if not isinstance(size, Expression | Condition) and whole(size, f"a {what}") < 0:
            raise InputError(f"{name}: a {what} is at least 0, not {size}")


def _labelled_costs(xs: list[Operand], table: LabelledTable) -> tuple[list[Operand], NDArray[np.int64], NDArray[Any]]:
    """Return the variables of a table's labels in the labels' order, the values of each cell, and its cost."""
    if len(table.axes) != len(xs):
        raise InputError(
            f"add_cost: {len(xs)} variables need a table with as many levels of labels, not {len(table.axes)}"
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
    cells = [
        np.array([whole(label, "a label of costs") for label in axis.labels], dtype=np.int64)[axis.codes[places]]
        for axes, places in ((table.rows, rows), (table.columns, columns))
        for axis in axes
    ]
    values = np.column_stack(cells)
    if len(np.unique(values, axis=0)) < len(values):
        raise InputError("add_cost: the table has two costs for one combination of values")
    return [xs[place] for place in order], values, table.values.ravel()


def _array(name: str, array_like: Any) -> NDArray[Any]:
    """Return an array or a list as an array."""
    try:
        return np.asarray(array_like)
    except (TypeError, ValueError):
        raise wrong_type(name, array_like, "an array of numbers") from None


def _suffix(name: str, side: str) -> str:
    if not isinstance(side, str) or side not in ("auto", "cpu", "gpu"):
        raise InputError(f"{name}: the side is auto, cpu or gpu, not {side!r}")
    return "" if side == "auto" else f"_{side}"
