"""Networks of the UAI competitions (.uai).

The file holds the word MARKOV or BAYES, the number of variables, their domain sizes, the number of tables, the tables'
scopes ("k v1 .. vk") and the tables ("k x1 .. xk"; the scope's last variable varies fastest). In BAYES files the last
variable of a scope is the child of the conditional distribution. Source: the competitions' pages of 2008 and 2014.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from elimina._core import Text, TextError
from elimina.errors import InputError
from elimina.io.codecs import Codec
from elimina.io.network import conditional_tables
from elimina.io.parsing import token_text
from elimina.model.distributions import check_structure
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import MAX_STATES, Variable

logger = logging.getLogger("elimina")

_MAX_EXPONENT = 700.0
_MAX_CONSTANTS = 64
"""Largest number of tables into which a constant is split."""


def _open_text(data: bytes) -> Text:
    """Open a file without comments: comments mark pyAgrum's dialect, which orders the axes of tables differently.

    Raises:
        TextError: There is a comment.
    """
    if (comment := data.find(b"#")) >= 0 and b"\0" not in data:
        raise TextError(
            f"the comment in line {data.count(10, 0, comment) + 1} is that of pyAgrum, whose .uai files order the "
            "parents of a table in another way than the format says: save the network as .bifxml"
        )
    return Text(data)


def parse(text: Text) -> Model:
    """Read a model; the arrays of its factors are views of one array."""
    sizes, scopes, children = read_preamble(text)
    factors, variables = read_tables(text, scopes, sizes), numbered(sizes)
    if children is not None:
        try:
            check_structure(variables, factors, children)
        except InputError as error:
            logger.warning("%s: the file is read as a product of tables", error)
            children = None
    return Model(variables, factors, sense="probability", children=children, check=False)


def read_preamble(text: Text) -> tuple[list[int], list[list[int]], list[int] | None]:
    """Read the domain sizes, the tables' scopes, and the tables' children (None in a MARKOV file)."""
    word = text.token("MARKOV or BAYES")
    kind = word.upper()
    if kind not in (b"MARKOV", b"BAYES"):
        raise TextError(f"expected MARKOV or BAYES, found {token_text(word)}")
    sizes = read_sizes(text)
    count = read_count(text, "a number of tables")
    offsets, members = text.lists(count, len(sizes), "a table's scope")
    if kind == b"BAYES" and count and np.diff(offsets).min() == 0:
        raise TextError("expected a child variable in every scope of a BAYES file, found an empty scope")
    flat, ends = members.tolist(), offsets.tolist()
    scopes = [flat[a:b] for a, b in pairwise(ends)]
    children = [scope[-1] for scope in scopes] if kind == b"BAYES" else None
    return sizes, scopes, children


def numbered(sizes: Sequence[int]) -> list[Variable]:
    """Return variables with the names x0, x1, ..."""
    return [Variable(f"x{i}", size) for i, size in enumerate(sizes)]


def read_count(text: Text, what: str) -> int:
    """Read a number of items, each of which needs at least one more token."""
    count = text.integer(what)
    if count < 0:
        raise TextError(f"expected {what}, found {count}")
    text.need(count, "at least one number")
    return count


def read_sizes(text: Text) -> list[int]:
    """Read the number of variables and their domain sizes."""
    sizes: list[int] = text.integers(read_count(text, "a number of variables"), "a domain size").tolist()
    for v, size in enumerate(sizes):
        if not 1 <= size <= MAX_STATES:
            raise TextError(f"expected a domain size from 1 to {MAX_STATES} for variable {v}, found {size}")
    return sizes


def read_tables(text: Text, scopes: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[Table]:
    """Read one dense table for each scope."""
    shapes = [tuple(sizes[v] for v in scope) for scope in scopes]
    cells = [math.prod(shape) for shape in shapes]
    for i, n in enumerate(cells):
        if n > text.remaining:
            raise TextError(f"table {i} has {n} entries, but only {text.remaining} bytes follow")
    values: NDArray[np.float64] = text.tables(np.array(cells, dtype=np.int64), sum(cells))
    ends = np.cumsum([0, *cells]).tolist()
    return [Table(s, values[ends[i] : ends[i + 1]].reshape(shapes[i])) for i, s in enumerate(scopes)]


def render(model: Model) -> Iterator[str]:
    """Yield the file's text, with exact numbers.

    The model's constant becomes up to 64 tables of arity 0; if it needs more, it is dropped with a warning.
    A factor whose child is not last in its scope is transposed. A model with a constant, or with rows that do not sum
    to 1, is written as MARKOV, even if it was read from a BAYES file: other programs take each row of such a file for
    a distribution.

    Raises:
        InputError: A factor is too large to be written out.
    """
    tables = list(conditional_tables(model))
    constants = _as_factors(model.constant)
    bayes = model.children is not None and not constants and not model.unnormalised
    yield f"{'BAYES' if bayes else 'MARKOV'}\n{len(model.variables)}\n"
    yield " ".join(map(str, model.sizes)) + f"\n{len(tables) + len(constants)}\n"
    for scope, _ in tables:
        yield " ".join(map(str, (len(scope), *scope))) + "\n"
    yield "0\n" * len(constants)
    for _, values in tables:
        yield "\n" + table_text(values)
    for value in constants:
        yield f"\n1\n{value!r}\n"


def table_text(values: NDArray[np.float64]) -> str:
    """Return the number of entries and the entries, a row of the last variable on each line."""
    rows = values.reshape(-1, values.shape[-1] if values.ndim else 1).tolist()
    return f"{values.size}\n" + "".join(" ".join(map(repr, row)) + "\n" for row in rows)


def _as_factors(log_constant: float) -> list[float]:
    """Split exp(log_constant) into factors that doubles hold; if it needs too many, log a warning and return none."""
    if log_constant == 0:
        return []
    if log_constant == -math.inf:
        return [0.0]
    count = max(1, math.ceil(min(abs(log_constant) / _MAX_EXPONENT, _MAX_CONSTANTS + 1)))
    if count > _MAX_CONSTANTS:
        logger.warning(
            "the constant factor exp(%.6g) is not written: it would take over %d numbers; the best assignments stay "
            "the same, but add %.6g to log scores and log Z",
            log_constant,
            _MAX_CONSTANTS,
            log_constant,
        )
        return []
    return [math.exp(log_constant / count)] * count


CODEC = Codec(("probability",), _open_text, parse, render)
