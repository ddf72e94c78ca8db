"""Constraints and functions composed of others."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from elimina.arguments import check_mapping
from elimina.cp.expressions import Expression, Operand
from elimina.cp.global_constraints import GlobalConstraints, checked_automaton
from elimina.cp.operands import MAX_INTEGER, several, whole, whole_numbers
from elimina.errors import InputError


class DerivedConstraints(GlobalConstraints):
    """Constraints and functions of a model that are composed of others. All indices count from 0."""

    def floor_division(self, x: Operand, y: Operand) -> tuple[Expression, Expression]:
        """Return the quotient, rounded down, and the remainder, which has the sign of y or is 0: Python's ``divmod``.

        If y is a number, the remainder is a linear expression of x and the new quotient; otherwise y is required to
        differ from 0.

        Raises:
            InputError: y is 0.
        """
        x, y = self.expression(x), self.expression(y)
        smallest, largest = self.bounds(y)
        if not y.terms and not y.constant:
            raise InputError(f"({x}) // 0: the divisor is 0")
        divisors = {smallest + (smallest == 0), largest - (largest == 0)}
        if smallest < 0 < largest:
            divisors |= {-1, 1}
        quotients = [end // divisor for end in self.bounds(x) for divisor in divisors]
        quotient = self.result_var(min(quotients), max(quotients), (x, y))
        remainder = x - quotient * (y if y.terms else y.constant)
        is_like_positive = (remainder >= 0) & (remainder < y)
        is_like_negative = (remainder <= 0) & (remainder > y)
        if y.terms:
            self.add(y != 0)
        if smallest >= 0:
            self.add(is_like_positive)
        elif largest <= 0:
            self.add(is_like_negative)
        else:
            self.add(is_like_positive, only_if=y > 0)
            self.add(is_like_negative, only_if=y < 0)
        return quotient, remainder

    def whole_power(self, x: Operand, y: Operand) -> Expression:
        """Return a new variable equal to x to the power y, for y of at least 0; 0 to the power 0 is 1.

        Raises:
            InputError: y may be negative, or the power is beyond 2^52.
        """
        x, y = self.expression(x), self.expression(y)
        (least, greatest), (least_exponent, greatest_exponent) = self.bounds(x), self.bounds(y)
        if least_exponent < 0:
            raise InputError(f"({x}) ** ({y}): the exponent is from {least_exponent}; Model.power takes negative ones")
        size = max(abs(least), abs(greatest))
        if size > 1 and greatest_exponent * math.log2(size) > MAX_INTEGER.bit_length() - 1:
            raise InputError(
                f"({x}) ** ({y}) is up to {size} ** {greatest_exponent}, beyond 2^52: give its variables smaller bounds"
            )
        ends = [
            base**exponent
            for base in (least, greatest)
            for exponent in (least_exponent, max(least_exponent, greatest_exponent - 1), greatest_exponent)
        ]
        ends += [0**least_exponent] if least <= 0 <= greatest else []
        power = self.result_var(min(ends), max(ends), (x, y))
        self.post("int_pow", x, y, power)
        return power

    def arg_max(self, xs: Iterable[Operand]) -> Expression:
        """Return a new variable for the position of the greatest of several expressions, the first of equal ones.

        Raises:
            InputError: There are no expressions.
        """
        return self._first_equal(xs := several(xs, "arg_max"), self.maximum(xs))

    def arg_min(self, xs: Iterable[Operand]) -> Expression:
        """Return a new variable for the position of the least of several expressions: see `arg_max`."""
        return self._first_equal(xs := several(xs, "arg_min"), self.minimum(xs))

    def _first_equal(self, xs: Sequence[Operand], value: Expression) -> Expression:
        position = self.int_var(0, len(xs) - 1)
        are_equal = [(self.expression(x) == value).truth for x in xs]
        self.add(self.element(are_equal, position) == 1)
        for earliest, is_equal in enumerate(are_equal):
            self.add(position <= earliest, only_if=is_equal)
        return position

    def sort(self, xs: Iterable[Operand]) -> list[Expression]:
        """Return new variables for the values of several expressions, in ascending order.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs = m.int_vars(3, 0, 5)
            >>> least, middle, greatest = m.sort(xs)
            >>> m.add(middle - least >= 3)
            >>> m.minimize(sum(xs))
            >>> m.solve()[[least, middle, greatest]]
            [0, 3, 3]
        """
        xs = several(xs, "sort")
        ends = [self.bounds(x) for x in xs]
        lows, highs = sorted(lo for lo, _ in ends), sorted(hi for _, hi in ends)
        values = [self.result_var(lo, hi, xs) for lo, hi in zip(lows, highs, strict=True)]
        origins = [self.int_var(0, len(xs) - 1) for _ in xs]
        self.all_different(origins)
        for value, origin in zip(values, origins, strict=True):
            self.add(self.element(xs, origin) == value)
        for rank, (value, following) in enumerate(itertools.pairwise(values)):
            self.add(value <= following)
            # Equal values keep their order, so that each solution is found only once.
            self.add(origins[rank] < origins[rank + 1], only_if=value == following)
        return values

    def value_precede(self, values: Sequence[int], xs: Iterable[Operand]) -> None:
        """Require each value of a list to come in the variables only after the value before it in the list.

        This breaks the symmetry of values that can be exchanged (Law and Lee, CP 2004).

        Args:
            values: The values, in their order.
            xs: Variables or expressions.

        Examples:
            >>> from elimina import cp
            >>> m = cp.Model()
            >>> xs = m.int_vars(3, 1, 3)
            >>> m.value_precede([1, 2, 3], xs)
            >>> len(m.solve(all_solutions=True).solutions)
            5
        """
        expressions = [self.expression(x) for x in several(xs, "value_precede")]
        values = [whole(value, "a value") for value in several(values, "value_precede")]
        are_equal = {value: [(x == value).truth for x in expressions] for value in dict.fromkeys(values)}
        for first, second in itertools.pairwise(values):
            is_preceded: Operand = 0
            for is_first, is_second in zip(are_equal[first], are_equal[second], strict=True):
                self.clause([is_preceded], [is_second])
                is_preceded = self.any_of([is_preceded, is_first])

    def cost_regular(
        self,
        xs: Iterable[Operand],
        transitions: Sequence[Mapping[int, int]],
        start: int,
        accepting: Iterable[int],
        costs: Sequence[Mapping[int, int]],
    ) -> Expression:
        """Make the values a word of a finite automaton, and return the cost of its transitions.

        There is a table for each position; costs aside, this is domain consistent. The bound on the cost is the sum of
        the least costs of all positions (Demassey, Pesant and Rousseau, Constraints 11, 2006, have a stronger one).

        Args:
            xs: Variables or expressions, in the order of the word.
            transitions: Symbol -> next state, one mapping for each state.
            start: Initial state.
            accepting: States that the word may end in.
            costs: Symbol -> cost, one mapping for each state.

        Raises:
            InputError: A state does not exist, or a transition has no cost.
        """
        transitions, ends = checked_automaton("cost_regular", transitions, start, accepting)
        costs = several(costs, "cost_regular")
        if len(costs) != len(transitions):
            raise InputError(
                f"cost_regular: {len(transitions)} states need as many mappings of costs, not {len(costs)}"
            )
        rows, prices = [], []
        for state, (moves, prices_of_state) in enumerate(zip(transitions, costs, strict=True)):
            check_mapping(f"costs[{state}]", prices_of_state, "a mapping from symbols to costs")
            for symbol, following in moves.items():
                if symbol not in prices_of_state:
                    raise InputError(f"cost_regular: the transition of state {state} by {symbol} has no cost")
                rows.append((state, symbol, following))
                prices.append(prices_of_state[symbol])
        table = np.array(rows, dtype=np.int64).reshape(-1, 3)
        values = np.array(whole_numbers(prices, "cost_regular", "a cost"), dtype=np.int64)
        previous_state: Operand = start
        total = self.expression(0)
        for x in several(xs, "cost_regular"):
            next_state = self.int_var(0, len(transitions) - 1)
            total = total + self.add_cost_rows([previous_state, x, next_state], table, values)
            previous_state = next_state
        self.member(previous_state, ends)
        return total
