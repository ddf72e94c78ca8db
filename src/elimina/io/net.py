"""Hugin's NET files of Bayesian networks (.net), read only.

Each "node" block declares a variable with its "states"; each "potential ( A | B C )" has as "data" the conditional
distribution of A: a list of lists of rows, the first parent varies slowest and A itself fastest (or one flat list in
that order). Rows are normalised, as Hugin does, whatever they sum to; a potential without data is uniform. Comments run
from "%" or "//" to the end of the line, or are C's. Text that is not UTF-8 is Latin-1. Other attributes are skipped.
Source: the chapter on the NET language of Hugin's manual.
"""

from __future__ import annotations

import logging
import math
import re

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.io.codecs import Codec
from elimina.io.network import NetworkBuilder, number_starts, read_probabilities
from elimina.io.parsing import token_text
from elimina.model.model import Model
from elimina.number_texts import counted

_COMMENT = re.compile(rb"%[^\n]*+|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/")
_TOKEN = re.compile(
    rb"(?:\s++|" + _COMMENT.pattern + rb')*+("(?:[^"\\]|\\.)*+"|[(){}=;|]|(?:[^\s"%(){}=;|/]|/(?![/*]))++)?', re.DOTALL
)
_TO_SEMICOLON = re.compile(rb"(?:[^;%/]++|" + _COMMENT.pattern + rb"|/)*+;")
_NO_PARENTHESIS = bytes(set(range(256)) - set(b"()"))
_MAX_SUM_ERROR = 1e-3
"""Largest distance of a row's sum from 1 that counts as rounding of decimals, as for other formats."""

_logger = logging.getLogger("elimina")

_UNSUPPORTED_NODES = ("continuous", "decision", "utility", "function", "instance")


class Tokens:
    """Words, quotations and marks of a NET file; ``line`` is the line of the last one read, from 1."""

    def __init__(self, data: bytes) -> None:
        self._data = data.rstrip()
        self._next = 0
        self._mark = 0
        self._below = 0

    @property
    def line(self) -> int:
        """Line of the last token, unless it was set to another one since."""
        return self._data.count(b"\n", 0, self._mark) + 1 + self._below

    @line.setter
    def line(self, line: int) -> None:
        self._below += line - self.line

    def at_end(self) -> bool:
        """Return whether only blanks and comments are left."""
        return not self.peek()

    def peek(self) -> bytes:
        """Return the next token, quotation marks included; b"" at the end. It stays unread.

        Raises:
            TextError: A quotation or a comment has no end.
        """
        match = _TOKEN.match(self._data, self._next)
        assert match is not None
        self._mark, self._below = match.end() if match[1] is None else match.start(1), 0
        if match[1] is None and match.end() < len(self._data):
            is_quotation = self._data[self._mark : self._mark + 1] == b'"'
            raise TextError(f"the {'quotation' if is_quotation else 'comment'} that starts here has no end")
        return match[1] or b""

    def token(self, what: str) -> bytes:
        """Read the next token; ``what`` describes it in the error that is raised if the file ends before it."""
        token = self.peek()
        if not token:
            raise TextError(f"expected {what}, but the file ends here")
        self._next = self._mark + len(token)
        return token

    def expect(self, *expected: bytes) -> bytes:
        """Read a token, which must be one of the given ones."""
        choices = " or ".join(f"'{w.decode()}'" for w in expected)
        token = self.token(choices)
        if token not in expected:
            raise TextError(f"expected {choices}, found {token_text(token)}")
        return token

    def word(self, what: str) -> str:
        """Read a word or a quotation, the latter without its marks."""
        token = self.token(what)
        if token in (b"(", b")", b"{", b"}", b"=", b";", b"|"):
            raise TextError(f"expected {what}, found {token_text(token)}")
        if token[:1] == b'"':
            token = re.sub(rb"\\(.)", rb"\1", token[1:-1], flags=re.DOTALL)
        return token.decode()

    def skip_value(self) -> None:
        """Skip the rest of an attribute, its semicolon included."""
        while self.token("';' after the attribute") != b";":
            pass

    def numbers(self, what: str) -> bytes:
        """Read up to the next semicolon and return the text before it, comments blanked out."""
        self.peek()
        match = _TO_SEMICOLON.match(self._data, self._mark)
        if match is None:
            raise TextError(f"expected ';' after {what}, but the file ends before it")
        self._next = match.end()
        return _COMMENT.sub(lambda comment: b" " + b"\n" * comment[0].count(b"\n"), match[0][:-1])


def parse(text: Tokens) -> Model:
    """Read a model whose factors are in the order of the potentials."""
    builder = NetworkBuilder()
    while not text.at_end():
        word = text.word("'net', 'node' or 'potential'")
        if word == "net":
            _read_header(text, builder)
        elif word == "potential":
            _read_potential(text, builder)
        elif word in ("node", "discrete"):
            _read_node(text, word, builder)
        elif word in _UNSUPPORTED_NODES:
            kind = [word]
            while text.peek() not in (b"{", b":", b""):
                kind.append(text.word("a node's name"))
            raise UnsupportedError(f"node {kind[-1]!r} is a {word} node; elimina handles discrete chance nodes only")
        elif word == "class":
            raise UnsupportedError(
                f"{text.word('a name')!r} is a class of an object-oriented network; flatten it first"
            )
        else:
            raise TextError(f"expected 'net', 'node' or 'potential', found {token_text(word.encode())}")
    return builder.model()


def _read_header(text: Tokens, builder: NetworkBuilder) -> None:
    text.expect(b"{")
    while text.peek() != b"}":
        attribute = text.word("an attribute or '}'")
        text.expect(b"=")
        if attribute == "name" and text.peek() != b";":
            builder.name = text.word("a name")
        text.skip_value()
    text.expect(b"}")


def _read_node(text: Tokens, word: str, builder: NetworkBuilder) -> None:
    if word == "discrete":
        kind = text.word("'node'")
        if kind != "node":
            raise UnsupportedError(f"{text.word('a name')!r} is a discrete {kind}; elimina handles chance nodes only")
    name = text.word("a node's name")
    text.expect(b"{")
    states: list[str] | None = None
    while text.peek() != b"}":
        attribute = text.word("an attribute or '}'")
        text.expect(b"=")
        if attribute != "states":
            text.skip_value()
            continue
        if states is not None:
            raise TextError(f"node {name!r} has two lists of states")
        states = []
        text.expect(b"(")
        while text.peek() != b")":
            states.append(text.word("a state's name or ')'"))
        text.expect(b")")
        text.expect(b";")
    text.expect(b"}")
    builder.add_variable(name, states or ())


def _read_potential(text: Tokens, builder: NetworkBuilder) -> None:
    text.expect(b"(")
    children, parents = _read_names(text, b"|", b")"), []
    if text.expect(b"|", b")") == b"|":
        parents = _read_names(text, b")")
        text.expect(b")")
    if len(children) != 1:
        raise UnsupportedError(f"a potential is over {len(children)} children {children}; elimina handles one")
    owner = children[0]
    child, scope = builder.index(owner), [builder.index(parent) for parent in parents]
    shape = builder.shape(scope, child)
    text.expect(b"{")
    has_data = False
    while text.peek() != b"}":
        attribute = text.word("an attribute or '}'")
        text.expect(b"=")
        if attribute in ("model_nodes", "model_data"):
            raise UnsupportedError(f"the potential of {owner!r} is given by expressions ({attribute}), not by data")
        if attribute != "data":
            text.skip_value()
        elif has_data:
            raise TextError(f"the potential of {owner!r} has data twice")
        else:
            has_data = True
            _read_data(text, builder, scope, child, owner, shape)
    text.expect(b"}")
    if not has_data:
        builder.add_distribution(scope, child, np.full(shape, 1.0 / shape[-1]))


def _read_names(text: Tokens, *ends: bytes) -> list[str]:
    names = []
    while text.peek() not in ends:
        names.append(text.word("a node's name"))
    return names


def _read_data(
    text: Tokens, builder: NetworkBuilder, parents: list[int], child: int, owner: str, shape: tuple[int, ...]
) -> None:
    data = text.numbers(f"the data of {owner!r}")
    values = read_probabilities(text, data, math.prod(shape), owner, blanks="()")
    _check_nesting(data, shape, owner)
    builder.add_distribution(parents, child, _normalised(values.reshape(shape), owner))


def _normalised(values: NDArray[np.float64], owner: str) -> NDArray[np.float64]:
    """Divide rows by their sums, as Hugin does, unless the sums are 1 up to rounding; a row of zeros is an error."""
    peaks = values.max(axis=-1, keepdims=True)
    if not peaks.all():
        row = int(np.argmin(peaks.ravel() != 0)) + 1
        raise TextError(f"expected a probability above 0 in row {row} of {owner!r}, found zeros only")
    scaled = values / peaks  # the sum of values could overflow
    totals = scaled.sum(axis=-1, keepdims=True)
    with np.errstate(over="ignore"):
        sums = totals * peaks
    is_off = np.abs(sums - 1) > _MAX_SUM_ERROR
    if is_off.any():
        _logger.warning(
            "rows of %r do not sum to 1 (the first such one to %g): they are normalised, as Hugin does",
            owner,
            sums[is_off][0],
        )
    return np.where(is_off, scaled / totals, values)


def _check_nesting(data: bytes, shape: tuple[int, ...], owner: str) -> None:
    """Reject parentheses that do not group the numbers by the table's axes; one pair around all of them is allowed."""
    nested = b"()"
    for size in reversed(shape[:-1]):
        nested = b"(" + nested * size + b")"
    marks = data.translate(None, _NO_PARENTHESIS)
    if marks == b"()":
        return
    if marks != nested:
        raise TextError(f"expected the data of {owner!r} nested as {' x '.join(map(str, shape))} values or flat")
    codes = np.frombuffer(data, dtype=np.uint8)
    parentheses = np.flatnonzero((codes == ord("(")) | (codes == ord(")")))
    read = np.cumsum(number_starts(data, b"()"))[parentheses]
    is_open = codes[parentheses] == ord("(")
    rows = np.diff(read)[is_open[:-1] & ~is_open[1:]]
    if (rows != shape[-1]).any():
        row = int(np.argmax(rows != shape[-1]))
        raise TextError(
            f"expected {counted(shape[-1], 'value')} in each row of {owner!r}, found {rows[row]} in row {row + 1}"
        )


CODEC = Codec(("probability",), Tokens, parse, holds=("names",), is_of_networks=True, is_often_latin1=True)
