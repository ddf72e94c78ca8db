"""Propositional formulas: DIMACS CNF, and weighted CNF of the MaxSAT evaluations, before and from 2022 on.

CNF: ``p cnf VARIABLES CLAUSES``, then clauses, literals that end with 0. Weighted: ``p wcnf VARIABLES CLAUSES [TOP]``,
then clauses with their weights in front, those of at least TOP hard; or, without a header, clauses with ``h`` (hard) or
a weight in front. Lines that start with c are comments. An assignment costs the weights of the clauses that it
violates. Variable i is ``x<i>``, its states are 0 (false) and 1 (true). Sources: the SAT competitions' and the MaxSAT
evaluations' format pages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from elimina._core import TextError
from elimina.io.files import shown
from elimina.io.uai import LARGEST_DOMAIN
from elimina.model import Model, Sense, Variable
from elimina.table import FORBIDDEN, Table


class Lines:
    """A file's lines that are neither blank nor comments, as words.

    Args:
        data: Content of the file.
        comment: First character of a line that is a comment.

    Attributes:
        line: Number of the line that was read last, from 1.
    """

    def __init__(self, data: bytes, comment: bytes = b"c") -> None:
        self.line = 1
        self._lines = data.splitlines()
        self._comment = comment

    def __iter__(self) -> Iterator[list[bytes]]:
        for number, text in enumerate(self._lines, 1):
            self.line = number
            words = text.split()
            if words and not words[0].startswith(self._comment):
                yield words
        self._lines = []

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


SENSES: tuple[Sense, ...] = ("min-cost",)
IS_OF_NETWORKS = False
HOLDS_NAMES = False

Clause = tuple[list[int], int]

_LARGEST_WEIGHT = 2**53
"""Weights of which a sum of hundreds is still far from ``FORBIDDEN``."""
open_text = Lines


def parse(text: Lines) -> Model:
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
        elif words[0] == b"%":  # the end of SATLIB's files
            break
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
    tables = [table for clause in clauses if (table := _table(*clause)) is not None]
    return Model([Variable(f"x{i}", 2) for i in range(1, (largest if count is None else count) + 1)], tables)


def _header(words: Sequence[bytes]) -> tuple[int, int, int | None, bool]:
    if len(words) < 4 or words[1] not in (b"cnf", b"wcnf") or len(words) > 4 + (words[1] == b"wcnf"):
        raise TextError(f"expected 'p cnf VARIABLES CLAUSES' or 'p wcnf ...', found {shown(b' '.join(words))}")
    numbers = [integer_of(word, "a number in the header") for word in words[2:]]
    if min(numbers) < 0 or numbers[0] > LARGEST_DOMAIN:
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
