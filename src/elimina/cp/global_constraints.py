"""Constraints over many variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from elimina import arguments
from elimina.arguments import flag, wrong_type
from elimina.cp.expressions import Expression, Operand, operand
from elimina.cp.operands import MAX_INTEGER, beyond_limits, check_pairs, several, whole, whole_array, whole_numbers
from elimina.cp.scheduling_constraints import SchedulingConstraints
from elimina.cp.soft_constraints import SoftConstraints
from elimina.errors import InputError
from elimina.number_texts import counted

Consistency = Literal["value", "bounds", "domain"]
Side = Literal["auto", "cpu", "gpu"]
_MAX_TRANSITION_CELLS = 10**8

_MAX_SYMBOL_GAPS = 1024
"""Largest number of columns without a transition in the table of an automaton, for values between its symbols."""


@arguments.with_checked_methods
class GlobalConstraints(SchedulingConstraints, SoftConstraints):
    """Global constraints and cost functions of a model. All indices count from 0."""

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
        self.post("set_in", operand(x, "an operand"), whole_numbers(values, "member", "a value"))

    def all_different(self, xs: Iterable[Operand], consistency: Consistency = "domain", side: Side = "auto") -> None:
        """Require different values for all variables.

        Args:
            xs: Variables or expressions.
            consistency: ``value``: the value of a decided variable is removed from the others. ``bounds``: each bound
                of a variable is in a solution, if holes are ignored (López-Ortiz, Quimper, Tromp and van Beek, IJCAI
                2003). ``domain``: each value of a variable is in a solution (Régin, AAAI 1994); if values are more than
                2^20 apart, ``bounds`` is used.
            side: Device that filters if consistency is ``domain``; ``auto``: the faster one, for each call.

        Raises:
            InputError: The consistency or the side is unknown, or a side is given without ``domain``.

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
            InputError: The side is unknown.

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
            InputError: The side is unknown.

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

        The length is bounded by 1-trees (Held and Karp, Operations Research 18, 1970). Edges that would raise the bound
        too much are ruled out, and edges are required if the bound would rise too much without them (Benchimol, van
        Hoeve, Régin, Rousseau and Rueher, Constraints 17, 2012).

        Args:
            successors: Successors of the nodes, at least three.
            edges: Length of each edge, a pair of nodes that is given in one direction; the circuit has no other edges.

        Returns:
            The length of the circuit, and for each edge a Boolean: whether the circuit has it.

        Raises:
            InputError: There are fewer than three nodes or no edge, an edge is not between two nodes or is given twice,
                or a length is not a whole number.
        """
        successors = several(successors, "weighted_circuit")
        if not isinstance(edges, Mapping):
            raise wrong_type("edges", edges, "a mapping of pairs of nodes to lengths")
        if not edges:
            raise InputError("weighted_circuit: there are no edges")
        for edge in edges:
            if not isinstance(edge, tuple) or len(edge) != 2:
                raise wrong_type("a key of edges", edge, "a pair of nodes, like (0, 1)")
        lengths = whole_numbers(edges.values(), "weighted_circuit", "a length")
        ends = [(whole(i, "a node"), whole(j, "a node")) for i, j in edges]
        n = len(successors)
        _check_edges(n, ends)
        shortest, longest = n * min(lengths), n * max(lengths)
        if shortest < -MAX_INTEGER or longest > MAX_INTEGER:
            raise beyond_limits("the length of a weighted_circuit", shortest, longest)
        length = self.int_var(shortest, longest)
        has = [self.bool_var() for _ in lengths]
        self.post(
            "weighted_circuit", list(successors), [i for i, _ in ends], [j for _, j in ends], lengths, has, length
        )
        return length, has

    def table(self, xs: Sequence[Operand], rows: Iterable[Sequence[int | None]]) -> None:
        """Restrict the variables to listed tuples; domain consistent (Demeulenaere and others, CP 2016).

        Args:
            xs: Variables.
            rows: Tuples with a value for each variable, or a data frame with a column for each; None stands for any
                value.

        Raises:
            InputError: A row does not have a value for each variable.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs = m.int_vars(2, 0, 3)
            >>> m.table(xs, [(0, 3), (2, 1)])
            >>> [solution[xs] for solution in m.solutions()]
            [[0, 3], [2, 1]]
        """
        xs = several(xs, "table")
        cells = [x for row in rows_of(len(xs), rows) for x in row]
        # A comparison with None would make a constraint of an expression.
        stars = [int(x is None) for x in cells]
        numbers = whole_array([0 if x is None else x for x in cells], "table: a value")
        if any(stars):
            self.post("table_starred", xs, numbers, stars)
        else:
            self.post("table_int", xs, numbers)

    def regular(
        self, xs: Sequence[Operand], transitions: Sequence[Mapping[int, int]], start: int, accepting: Iterable[int]
    ) -> None:
        """Make the values a word of a finite automaton; domain consistent (Pesant, CP 2004).

        If symbols are more than 2^16 apart, only the bounds of the variables are filtered.

        Args:
            xs: Variables or expressions, in the order of the word.
            transitions: Symbol -> next state, one mapping for each state.
            start: Initial state.
            accepting: States that the word may end in.

        Raises:
            InputError: A state does not exist, or there are too many states and symbols.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> bits = m.int_vars(4, 0, 1)
            >>> m.regular(bits, [{0: 0, 1: 1}, {0: 0}], 0, [0, 1])  # no two 1 in a row
            >>> len(m.solve(all_solutions=True).solutions)
            8
        """
        transitions, ends = checked_automaton("regular", transitions, start, accepting)
        word: list[Expression] = [self.expression(x) for x in several(xs, "regular")]
        states = len(transitions)
        symbols = sorted({symbol for moves in transitions for symbol in moves})
        if symbols and symbols[-1] - symbols[0] >= len(symbols) + _MAX_SYMBOL_GAPS:
            # A table over all values between the symbols would be large, so the ranks of the symbols are read instead.
            ranks = {symbol: rank for rank, symbol in enumerate(symbols)}
            word = [self._rank_of(x, ranks) for x in word]
            transitions = [{ranks[symbol]: to for symbol, to in moves.items()} for moves in transitions]
            symbols = list(ranks.values())
        smallest, width = (symbols[0], symbols[-1] - symbols[0] + 1) if symbols else (0, 1)
        if width * states > _MAX_TRANSITION_CELLS:
            raise InputError(f"regular: {states:,} states times {width:,} symbols are too many")
        table = np.zeros((states, width), dtype=np.int64)
        for state, moves in enumerate(transitions):
            for symbol, to in moves.items():
                table[state, symbol - smallest] = to + 1
        shifted = [1 - smallest + x for x in word]
        self.post("regular", shifted, states, width, table.ravel(), start + 1, [state + 1 for state in ends])

    def _rank_of(self, x: Expression, ranks: Mapping[int, int]) -> Expression:
        """Return a new variable that is the rank of an expression's value; the expression is required to have one."""
        rank = self.int_var(0, len(ranks) - 1)
        self.table([x, rank], ranks.items())
        return rank

    def cardinality(self, xs: Sequence[Operand], counts: Mapping[int, Operand], closed: bool = False) -> None:
        """Bound the number of occurrences of some values; domain consistent (Régin, AAAI 1996).

        Args:
            xs: Variables or expressions.
            counts: Value -> number of variables that have it.
            closed: True if the variables may have no other values.

        Raises:
            InputError: A value is not a whole number.

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
            raise InputError(f"cardinality: counts is a mapping from values to numbers of variables, not {counts!r}")
        self.post(
            name, several(xs, "cardinality"), whole_numbers(counts, "cardinality", "a value"), list(counts.values())
        )

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

        Raises:
            InputError: The lists differ in length.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs, ys = m.int_vars(3, 0, 2), m.int_vars(3, 0, 2)
            >>> m.inverse(xs, ys)
            >>> m.add(xs[0] == 2)
            >>> m.solve()[ys[2]]
            0
        """
        xs, ys = several(xs, "inverse"), several(ys, "inverse")
        check_pairs("inverse", "xs", "ys", (len(xs), len(ys)))
        self.post("inverse", xs, ys)

    def bin_packing_load(self, loads: Sequence[Operand], bins: Sequence[Operand], sizes: Sequence[int]) -> None:
        """Make the sizes of the items in each bin add up to its load.

        Args:
            loads: Loads of the bins.
            bins: Bins of the items.
            sizes: Sizes of the items, at least 0.

        Raises:
            InputError: The numbers of bins and sizes differ, a size is negative, or the sizes add up to more than 2^52.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> bins = m.int_vars(3, 0, 1)
            >>> m.bin_packing_load([5, 5], bins, [2, 3, 5])
            >>> [solution[bins] for solution in m.solutions()]
            [[0, 0, 1], [1, 1, 0]]
        """
        plain = checked_sizes(sizes)
        loads, bins = several(loads, "bin_packing_load"), several(bins, "bin_packing_load")
        check_pairs("bin_packing_load", "bins", "sizes", (len(bins), len(plain)))
        self.post("bin_packing_load", loads, bins, plain)


def checked_sizes(sizes: Iterable[int]) -> list[int]:
    """Return the sizes of the items of a packing.

    Raises:
        InputError: A size is not a whole number of at least 0, or their sum is beyond 2^52.
    """
    numbers = whole_numbers(sizes, "bin_packing_load", "a size")
    for size in numbers:
        if size < 0:
            raise InputError(f"bin_packing_load: a size is at least 0, not {size}")
    if sum(numbers) > MAX_INTEGER:
        raise InputError(f"bin_packing_load: the sizes add up to {sum(numbers)}, beyond 2^52: use smaller sizes")
    return numbers


def _check_edges(node_count: int, edges: Iterable[tuple[int, int]]) -> None:
    if node_count < 3:
        raise InputError(f"weighted_circuit: {counted(node_count, 'node')}: a circuit has at least three")
    distinct: set[frozenset[int]] = set()
    for i, j in edges:
        if i == j or not (0 <= i < node_count and 0 <= j < node_count):
            raise InputError(
                f"weighted_circuit: the edge ({i}, {j}) is not between two of the nodes 0 to {node_count - 1}"
            )
        if (edge := frozenset((i, j))) in distinct:
            raise InputError(f"weighted_circuit: the edge ({i}, {j}) is given twice: give it in one direction")
        distinct.add(edge)


def rows_of(count: int, rows: Iterable[Sequence[int | None]]) -> list[tuple[int | None, ...]]:
    """Return the rows of a table as tuples.

    Raises:
        InputError: A row does not have a value for each variable.
    """
    listed_rows = [tuple(several(row, "a row of table")) for row in several(rows, "table")]
    for row in listed_rows:
        if len(row) != count:
            raise InputError(f"table: the row {row} has {counted(len(row), 'value')} for {counted(count, 'variable')}")
    return listed_rows


def checked_automaton(
    name: str, transitions: Sequence[Mapping[int, int]], start: int, accepting: Iterable[int]
) -> tuple[list[Mapping[int, int]], list[int]]:
    """Return the transitions and the accepting states of a finite automaton as lists.

    Raises:
        InputError: A state does not exist, a state or a symbol is not a whole number, or the transitions of a state
            are not a mapping.
    """
    listed_transitions = several(transitions, name)
    states = len(listed_transitions)
    ends = [whole(state, "a state") for state in several(accepting, name)]
    for moves in listed_transitions:
        if not isinstance(moves, Mapping):
            raise InputError(f"{name}: the transitions of a state are symbol -> next state, not {moves!r}")
        whole_numbers((*moves, *moves.values()), name, "a symbol or a state")
    for state in [whole(start, "a state"), *ends, *(to for moves in listed_transitions for to in moves.values())]:
        if not 0 <= state < states:
            raise InputError(f"{name}: there is no state {state}: they are 0 to {states - 1}")
    return listed_transitions, ends


def _suffix(name: str, side: str) -> str:
    if not isinstance(side, str) or side not in ("auto", "cpu", "gpu"):
        raise InputError(f"{name}: the side is auto, cpu or gpu, not {side!r}")
    return "" if side == "auto" else f"_{side}"
