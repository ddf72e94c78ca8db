"""Problems over Boolean variables, which are only read: clauses (CNF, weighted CNF) and quadratic terms (QPBO).

CNF of DIMACS: ``p cnf VARIABLES CLAUSES``, then clauses, literals that end with 0. Weighted CNF of the MaxSAT
evaluations: ``p wcnf VARIABLES CLAUSES [TOP]``, then clauses with their weights in front, those of at least TOP hard;
or (from 2022 on), without a header, clauses with ``h`` (hard) or a weight in front. Lines that start with c are
comments. An assignment costs the weights of the clauses that it violates. Variable i is ``x<i>``, its states are 0
(false) and 1 (true). Sources: the SAT competitions' and the MaxSAT evaluations' format pages.

toulbar2's unconstrained quadratic pseudo-Boolean problems (.qpbo) begin with two numbers: variables, negative if their
values are 1 and -1 instead of 0 and 1; and terms, negative if the sum is maximised. Then a term on each line:
``i j W``, variables from 1 on and a coefficient. The objective is ``x' W x`` of the symmetric matrix W: a term of two
variables counts twice. States are 0 and 1, or 1 and -1 in this order. Source: the description that comes with toulbar2,
"Quadratic pseudo-Boolean optimization format".
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from elimina._core import Text, TextError
from elimina.io.files import Format, shown
from elimina.model import LARGEST_DOMAIN, Model, Variable
from elimina.table import FORBIDDEN, Table


class Lines:
    """A file's lines that are neither blank nor comments, as words.

    Args:
        data: Content of the file.
        comment: First character of a line that is a comment.

    Attributes:
        line: Number of the line that was read last, from 1.
        size: Number of bytes.
    """

    def __init__(self, data: bytes, comment: bytes = b"c") -> None:
        self.line = 1
        self.size = len(data)
        self._lines = data.splitlines()
        self._comment = comment
        self._is_over = False

    def __iter__(self) -> Iterator[list[bytes]]:
        for number, text in enumerate(self._lines, 1):
            if self._is_over:
                break
            self.line = number
            words = text.split()
            if words and not words[0].startswith(self._comment):
                yield words
        self._lines = []

    def skip(self) -> None:
        """Leave the rest of the text unread."""
        self._is_over = True

    def at_end(self) -> bool:
        """Return True at the end of the text."""
        return not any(text.split() for text in self._lines)

    def peek(self) -> bytes:
        """Return the first word."""
        return next((words[0] for text in self._lines if (words := text.split())), b"")


def integer_of(word: bytes, what: str) -> int:
    """Return a word's integer.

    Raises:
        TextError: It is none.
    """
    digits = word[1:] if word[:1] in (b"+", b"-") else word
    if not digits.isdigit() or len(digits) > 400:
        raise TextError(f"expected {what}, found {shown(word)}")
    return int(word)


Clause = tuple[list[int], int]

_MOST_VARIABLES = 2**22
"""Variables that a file may have, however short it is: a variable of a file may be in no clause or term."""

_LARGEST_WEIGHT = 2**53
"""Weights of which a sum of hundreds is still far from ``FORBIDDEN``."""


def parse_clauses(text: Lines) -> Model:
    """Read a model."""
    count: int | None = None
    expected: int | None = None
    top: int | None = None
    is_weighted = True
    clauses: list[Clause] = []
    waiting: list[int] = []
    for words in text:
        if words[0] == b"p":
            if count is not None or clauses:
                raise TextError("a second header; there is one, before all clauses")
            count, expected, top, is_weighted = _header(words)
        elif words[0] == b"%":  # the end of SATLIB's files, before a line with a 0
            text.skip()
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
        raise TextError(f"a clause names variable {largest}; there are {count}")
    if count is None and not clauses:
        raise TextError("expected a header, or clauses, found neither")
    names = _names(largest if count is None else count, text.size)
    tables = [table for clause in clauses if (table := _table(*clause)) is not None]
    return Model([Variable(name, 2) for name in names], tables)


def _names(count: int, size: int) -> list[str]:
    """Return the variables' names.

    Args:
        count: Number of variables.
        size: Number of bytes that the file has at least.

    Raises:
        TextError: There are far more variables than the file can be about.
    """
    most = max(_MOST_VARIABLES, size)
    if count > most:
        raise TextError(f"expected at most {most:,} variables in a file of this size, found {count:,}")
    return [f"x{i}" for i in range(1, count + 1)]


def _header(words: Sequence[bytes]) -> tuple[int, int, int | None, bool]:
    if len(words) < 4 or words[1] not in (b"cnf", b"wcnf") or len(words) > 4 + (words[1] == b"wcnf"):
        raise TextError(f"expected 'p cnf VARIABLES CLAUSES' or 'p wcnf ...', found {shown(b' '.join(words))}")
    numbers = [integer_of(word, "a number in the header") for word in words[2:]]
    if min(numbers) < 0:
        raise TextError(f"expected numbers from 0 on in the header, found {shown(b' '.join(words))}")
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
    if weight > _LARGEST_WEIGHT:
        raise TextError(f"expected a weight of at most 2^53, found {weight}")
    return literals[:-1], weight


def _table(literals: Sequence[int], weight: int) -> Table | None:
    """Return the cost of violating a clause; None if nothing violates it."""
    chosen = dict.fromkeys(literals)
    if weight == 0 or any(-literal in chosen for literal in chosen):
        return None
    scope = [abs(literal) - 1 for literal in chosen]
    if not scope:
        return Table((), np.array(weight))
    row = [[int(literal < 0) for literal in chosen]]
    return Table(scope, [weight], sizes=[2] * len(scope), rows=row, default=0)


CNF = Format(("min-cost",), Lines, parse_clauses)


_BYTES_OF_A_TERM = 6
"""Bytes of the shortest term: three digits and what is between them."""

_LARGEST = 2.0**52
"""Coefficients that are integers are exact up to here."""


def parse_terms(text: Text) -> Model:
    """Read a model; it has integer costs if all coefficients are integers."""
    variables, terms = text.integer("a number of variables"), text.integer("a number of terms")
    text.need(3 * min(abs(terms), LARGEST_DOMAIN), "a number of a term")
    names = _names(abs(variables), _BYTES_OF_A_TERM * abs(terms))
    states = (0, 1) if variables >= 0 else (1, -1)
    sums: dict[tuple[int, int], float] = defaultdict(float)
    for _ in range(abs(terms)):
        pair = sorted(text.integer("a variable of a term") for _ in range(2))
        if not 1 <= pair[0] <= pair[1] <= abs(variables):
            raise TextError(f"expected variables from 1 to {abs(variables)} in a term, found {pair[0]} and {pair[1]}")
        weight = text.real("a coefficient")
        if not math.isfinite(weight):
            raise TextError(f"expected a finite coefficient, found {weight}")
        sums[pair[0] - 1, pair[1] - 1] += weight if pair[0] == pair[1] else 2 * weight
    whole = all(weight.is_integer() and abs(weight) <= _LARGEST for weight in sums.values())
    values = np.array(states, dtype=np.int64 if whole else np.float64)
    tables = []
    for (i, j), weight in sums.items():
        factor = int(weight) if whole else weight
        tables.append(Table([i], factor * values**2) if i == j else Table([i, j], factor * np.outer(values, values)))
    named = [Variable(name, 2, None if variables >= 0 else states) for name in names]
    return Model(named, tables, sense="min-cost" if terms >= 0 else "max-cost")


QPBO = Format(("min-cost", "max-cost"), Text, parse_terms)
