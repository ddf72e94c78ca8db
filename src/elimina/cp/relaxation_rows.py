"""Parts of a relaxation: linear rows, and sequences of variables whose values spell a word of an automaton."""

from __future__ import annotations

from typing import NamedTuple

from elimina.cp.views import Integers


class LinearRow(NamedTuple):
    """A row: a sum of functions, each of one variable, has to be at least a number, or to equal it.

    Attributes:
        terms: Variable -> values of its function, for each column of the variable.
        least: The number.
        is_equation: True if the sum is exactly the number.
    """

    terms: dict[int, Integers]
    least: int
    is_equation: bool


class WordSequence(NamedTuple):
    """Variables whose values spell a word of an automaton.

    Attributes:
        variables: The variables, each once.
        symbols: Symbol of each of a variable's columns, counted from 0; -1 for a value that is not a symbol.
        states: Number of states.
        alphabet: Number of symbols.
        transitions: Next states for all symbols in the first state, then in the second one, and so on; -1 where there
            is none.
        start: First state.
        accepting: Last states.
    """

    variables: list[int]
    symbols: list[Integers]
    states: int
    alphabet: int
    transitions: Integers
    start: int
    accepting: Integers
