"""Clauses of CNF and weighted CNF: lines, literals, weights, and their tables.

Variable i is ``x<i>``, its states are 0 (false) and 1 (true). Lines that start with c are comments. The model counting
competitions give two of them a meaning. "c p weight LITERAL WEIGHT 0" makes the model one of probabilities; without a
weight of its own, the negated literal has 1 minus this weight. "c p show" lists the variables of a projected count. It
must list all variables: elimina does not count projections. Sources: the format pages of the SAT competitions, the
MaxSAT evaluations and the model counting competitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.io.parsing import token_text
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable
from elimina.number_texts import counted


class Lines:
    """A file's lines that are not blank, as words.

    Args:
        data: Content of the file.

    Attributes:
        line: Number of the last line read, from 1.
        size: Number of bytes.
    """

    def __init__(self, data: bytes) -> None:
        self.line = 1
        self.size = len(data)
        self._lines = data.splitlines()

    def __iter__(self) -> Iterator[list[bytes]]:
        for number, text in enumerate(self._lines, 1):
            if words := text.split():
                self.line = number
                yield words
        self._lines = []

    def at_end(self) -> bool:
        """Return whether no line with words is left."""
        return not any(text.split() for text in self._lines)

    def peek(self) -> bytes:
        """Return the first word of the next line with words; empty if there is none."""
        return next((words[0] for text in self._lines if (words := text.split())), b"")


def integer_of(word: bytes, what: str) -> int:
    """Return a word's integer.

    Raises:
        TextError: The word is not an integer, or has over 400 digits.
    """
    digits = word[1:] if word[:1] in (b"+", b"-") else word
    if not digits.isdigit() or len(digits) > 400:
        raise TextError(f"expected {what}, found {token_text(word)}")
    return int(word)


Clause = tuple[list[int], int]

_MAX_VARIABLES_OF_SHORT_FILES = 2**22
"""Largest number of variables of a short file: variables need not occur in a clause or term."""

_MAX_WEIGHT = 2**53
"""Largest weight, so that sums of hundreds of weights stay far below ``FORBIDDEN``."""


@dataclass
class _Counting:
    """Weights and projections from comments, as the model counting competitions define them.

    Attributes:
        weights: Literal -> its weight.
        projected: Variables of a projected count, and the line that names the first of them; None if all are counted.
    """

    weights: dict[int, float] = field(default_factory=dict)
    projected: tuple[set[int], int] | None = None

    def read(self, words: Sequence[bytes], line: int) -> None:
        """Read a comment; one that gives no weight or projection is ignored."""
        if words[:3] == [b"c", b"p", b"weight"]:
            if len(words) not in (5, 6) or words[5:] not in ([], [b"0"]):
                raise TextError(f"expected 'c p weight LITERAL WEIGHT 0', found {token_text(b' '.join(words))}")
            literal, weight = integer_of(words[3], "a literal"), _weight_of(words[4])
            if self.weights.setdefault(literal, weight) != weight:
                raise TextError(f"the literal {literal} has the weights {self.weights[literal]:g} and {weight:g}")
            return
        for head in ([b"c", b"p", b"show"], [b"c", b"ind"], [b"cr"]):
            if words[: len(head)] == head:
                variables = {integer_of(word, "a variable") for word in words[len(head) :]} - {0}
                listed_variables, first = self.projected or (set(), line)
                self.projected = listed_variables | variables, first

    def check_projection(self, count: int, text: Lines) -> None:
        """Reject a count over only some of the variables.

        Raises:
            UnsupportedError: Not all variables are named.
        """
        if self.projected is not None and len(self.projected[0]) < count:
            text.line = self.projected[1]
            raise UnsupportedError(
                f"the count is projected on {len(self.projected[0])} of {count} variables; remove the lines "
                "'c p show', 'c ind' and 'cr' to solve the problem over all of them"
            )

    def weight_tables(self, count: int) -> list[Table]:
        """Return a table of both literals' weights for each variable of which a literal has a weight.

        Raises:
            TextError: There is no such variable.
            UnsupportedError: A weight is negative.
        """
        tables = []
        for v in sorted({abs(literal) for literal in self.weights}):
            if not 1 <= v <= count:
                raise TextError(f"a weight names variable {v}, but the file has {counted(count, 'variable')}")
            positive, negative = self.weights.get(v), self.weights.get(-v)
            # The competitions' rule: if one literal has no weight, both weights add up to 1.
            positive = 1.0 - (negative or 0.0) if positive is None else positive
            negative = 1.0 - positive if negative is None else negative
            for literal, weight in ((v, positive), (-v, negative)):
                if weight < 0:
                    rule = "" if literal in self.weights else f" (1 minus that of literal {-literal})"
                    raise UnsupportedError(f"the literal {literal} has the negative weight {weight:g}{rule}")
            tables.append(Table([v - 1], np.array([negative, positive])))
        return tables


def _weight_of(word: bytes) -> float:
    try:
        weight = float(Fraction(word.decode()))
    except (ValueError, ZeroDivisionError, OverflowError):
        weight = math.nan
    if not math.isfinite(weight):
        raise TextError(f"expected a weight, found {token_text(word)}")
    return weight


def parse_clauses(text: Lines, *, needs_header: bool) -> Model:
    """Read a model: costs, or probabilities if comments give weights to literals.

    Args:
        text: Content of the file.
        needs_header: True to reject clauses without a header, False to read them as weighted ones.
    """
    count: int | None = None
    expected: int | None = None
    top: int | None = None
    is_weighted, is_over = True, False
    clauses: list[Clause] = []
    waiting: list[int] = []
    counting = _Counting()
    for words in text:
        if words[0].startswith(b"c"):
            counting.read(words, text.line)
        elif is_over:
            if words != [b"0"]:
                raise TextError(f"expected the end of the file after %, found {token_text(b' '.join(words))}")
        elif words[0] == b"p":
            if count is not None or clauses:
                raise TextError("expected one header, before all clauses, found a second one")
            count, expected, top, is_weighted = _header(words)
        elif count is None and needs_header:
            raise TextError(
                "expected the header 'p cnf VARIABLES CLAUSES' before the clauses, "
                f"found {token_text(b' '.join(words))}; "
                "if each clause has h or a weight in front, name the file .wcnf"
            )
        elif words[0] == b"%":  # SATLIB's files end with % and a line with 0
            if waiting:
                raise TextError("the last clause does not end with 0")
            is_over = True
        elif is_weighted:
            clauses.append(_weighted(words, top))
        else:
            for literal in (integer_of(word, "a literal") for word in words):
                if literal == 0:
                    clauses.append((waiting, FORBIDDEN))
                    waiting = []
                else:
                    waiting.append(literal)
    if waiting:
        raise TextError("the last clause does not end with 0")
    if expected is not None and len(clauses) != expected:
        raise TextError(f"expected {expected} clauses, found {len(clauses)}")
    largest = max((abs(literal) for literals, _ in clauses for literal in literals), default=0)
    if count is not None and largest > count:
        raise TextError(f"a clause names variable {largest}, but the file has {counted(count, 'variable')}")
    if count is None and not clauses:
        raise TextError("expected a header, or clauses, found neither")
    names = variable_names(largest if count is None else count, text.size)
    counting.check_projection(len(names), text)
    variables = [Variable(name, 2) for name in names]
    tables = [table for clause in clauses if (table := _table(*clause)) is not None]
    if not counting.weights:
        return Model(variables, tables)
    if any(cost != FORBIDDEN for _, cost in clauses):
        raise UnsupportedError("the file has weights of literals and of clauses; elimina reads files with one of them")
    hard = [table.mapped(lambda costs: np.where(costs == FORBIDDEN, 0.0, 1.0)) for table in tables]
    return Model(variables, [*hard, *counting.weight_tables(len(names))], sense="probability")


def variable_names(count: int, size: int) -> list[str]:
    """Return the variables' names.

    Args:
        count: Number of variables.
        size: Lower bound on the number of bytes of the file.

    Raises:
        TextError: There are far more variables than a file of this size can use.
    """
    max_variables = max(_MAX_VARIABLES_OF_SHORT_FILES, size)
    if count > max_variables:
        raise TextError(f"expected at most {max_variables:,} variables in a file of this size, found {count:,}")
    return [f"x{i}" for i in range(1, count + 1)]


def _header(words: Sequence[bytes]) -> tuple[int, int, int | None, bool]:
    if len(words) < 4 or words[1] not in (b"cnf", b"wcnf") or len(words) > 4 + (words[1] == b"wcnf"):
        raise TextError(f"expected 'p cnf VARIABLES CLAUSES' or 'p wcnf ...', found {token_text(b' '.join(words))}")
    numbers = [integer_of(word, "a number in the header") for word in words[2:]]
    if min(numbers) < 0:
        raise TextError(f"expected numbers from 0 on in the header, found {token_text(b' '.join(words))}")
    return numbers[0], numbers[1], (numbers[2] if len(numbers) > 2 else None), words[1] == b"wcnf"


def _weighted(words: Sequence[bytes], top: int | None) -> Clause:
    literals = [integer_of(word, "a literal") for word in words[1:]]
    if not literals or literals[-1] != 0 or 0 in literals[:-1]:
        raise TextError("expected a weight, literals and 0 on a line")
    if words[0] == b"h":
        return literals[:-1], FORBIDDEN
    weight = integer_of(words[0], "a weight or h")
    if weight < 0:
        raise TextError(f"expected a weight of at least 0, found {weight}")
    if top is not None and weight >= top:
        return literals[:-1], FORBIDDEN
    if weight > _MAX_WEIGHT:
        raise TextError(f"expected a weight of at most 2^53, found {weight}")
    return literals[:-1], weight


def _table(literals: Sequence[int], weight: int) -> Table | None:
    """Return a clause's table; None if a violation costs nothing, or no assignment violates the clause."""
    chosen = dict.fromkeys(literals)
    if weight == 0 or any(-literal in chosen for literal in chosen):
        return None
    scope = [abs(literal) - 1 for literal in chosen]
    if not scope:
        return Table((), np.array(weight))
    row = [[int(literal < 0) for literal in chosen]]
    return Table(scope, [weight], sizes=[2] * len(scope), rows=row, default=0)
