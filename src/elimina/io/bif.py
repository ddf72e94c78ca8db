"""Bayesian networks in the Bayesian interchange format, as text (BIF 0.15).

Each variable has a block with its values, each conditional distribution a block with one row "(p1, .., pk) x1, .., xn;"
for each combination of the parents' values, or with one "table", in which the child varies slowest and the last parent
fastest (the order of the format's definition), or with a "default" row for all other combinations. Commas and
bars separate words like blanks. Comments are those of C and C++, and may follow a word without a blank. Properties are
skipped, up to a semicolon. Text that is not UTF-8 is read as Latin-1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from elimina._core import Text, TextError
from elimina.errors import InputError
from elimina.io.codecs import Codec
from elimina.io.network import NetworkBuilder, conditionals
from elimina.io.parsing import token_text
from elimina.model.model import Model
from elimina.model.variable import texts_of
from elimina.number_texts import counted

_SEPARATORS = ",|"
_MARKS = "{}();"
_DISCRETE = re.compile(r"discrete ?\[ ?\+?(\d{1,18}) ?\]")
_open_text = partial(Text, blanks=_SEPARATORS, marks=_MARKS, quotes=True, block_comments=True, line_comments=True)


def parse_bif(text: Text) -> Model:
    """Read a model whose factors are in the file's order."""
    builder = NetworkBuilder()
    while not text.at_end():
        word = text.token("'network', 'variable' or 'probability'")
        if word == b"network":
            builder.name = _read_header(text)
        elif word == b"variable":
            _read_variable(text, builder)
        elif word == b"probability":
            _read_distribution(text, builder)
        elif word != b";" or text.quoted:  # some writers put a semicolon after a block
            raise TextError(f"expected 'network', 'variable' or 'probability', found {token_text(word)}")
    return builder.model()


def _expect(text: Text, *expected: bytes) -> bytes:
    choices = " or ".join(f"'{w.decode()}'" for w in expected)
    token = text.token(choices)
    if token not in expected or text.quoted:
        raise TextError(f"expected {choices}, found {token_text(token)}")
    return token


def _word(text: Text, what: str) -> str:
    token = text.token(what)
    if not text.quoted and len(token) == 1 and token in _MARKS.encode():
        raise TextError(f"expected {what}, found {token.decode()!r}")
    return token.decode()


def _at(text: Text, mark: bytes) -> bool:
    return text.peek() == mark and not text.quoted


def _skip_property(text: Text) -> None:
    text.skip_past(";", "';' after the property")


def _read_header(text: Text) -> str:
    words = []
    while not _at(text, b"{"):
        words.append(_word(text, "the network's name or '{'"))
    text.token("'{'")
    while _expect(text, b"property", b"}") == b"property":
        _skip_property(text)
    name = " ".join(words)
    return "" if name == "unknown" else name  # written by programs if the network has no name


def _read_variable(text: Text, builder: NetworkBuilder) -> None:
    name = _word(text, "a variable's name")
    _expect(text, b"{")
    states: list[str] | None = None
    while (word := _expect(text, b"type", b"property", b"}")) != b"}":
        if word == b"property":
            _skip_property(text)
        elif states is not None:
            raise TextError(f"variable {name!r} has two types")
        else:
            states = _read_type(text, name)
    if states is None:
        raise TextError(f"variable {name!r} has no type")
    builder.add_variable(name, states)


def _read_type(text: Text, name: str) -> list[str]:
    # Brackets are separate words only in a type: bnlearn writes states such as "[0_1_5]" without quotes.
    words = []
    while not _at(text, b"{"):
        words.append(_word(text, "'discrete', a number of values between brackets or '{'"))
    head = _DISCRETE.fullmatch(" ".join(words))
    if head is None:
        raise TextError(f"expected 'discrete [ N ]' of variable {name!r}, found {token_text(' '.join(words).encode())}")
    size = int(head[1])
    text.token("'{'")
    states = []
    while not _at(text, b"}"):
        states.append(_word(text, "a value's name or '}'"))
    text.token("'}'")
    _expect(text, b";")
    if len(states) != size or size < 1:
        raise TextError(f"variable {name!r} is declared with {counted(size, 'value')}, but lists {len(states)}")
    return states


def _read_distribution(text: Text, builder: NetworkBuilder) -> None:
    _expect(text, b"(")
    scope = []
    while not _at(text, b")"):
        scope.append(builder.index(_word(text, "a variable's name or ')'")))
    text.token("')'")
    _expect(text, b"{")
    if not scope:
        raise TextError("expected a variable in the probability block's head")
    child, *parents = scope
    shape = builder.shape(parents, child)
    builder.add_distribution(parents, child, _read_rows(text, shape, builder.states(parents), builder.name_of(child)))


def _read_rows(text: Text, shape: tuple[int, ...], states: list[list[str]], name: str) -> NDArray[np.float64]:
    """Read a block's table, or its rows and default row, into an array of this shape, the child's axis last."""
    size, combinations = shape[-1], math.prod(shape[:-1])
    block = text.bif_rows(size, states)
    rows, values, default, table = block.parents, block.values, block.defaults, block.table
    if len(table):
        if len(table) != combinations * size or len(rows) or len(default):
            raise TextError(
                f"expected {combinations * size} values and no rows in the table of {name!r}, found {len(table)}"
            )
        return np.ascontiguousarray(np.moveaxis(table.reshape(size, *shape[:-1]), 0, -1))
    if len(default) not in (0, size):
        raise TextError(f"expected {counted(size, 'value')} in the default row of {name!r}, found {len(default)}")
    if not len(default) and len(rows) < combinations:
        raise TextError(f"expected {counted(combinations, 'row')} for {name!r}, found {len(rows)}")
    filled = np.zeros(combinations, dtype=bool)
    filled[rows] = True
    if filled.sum() != len(rows):
        raise TextError(f"a row of {name!r} is given twice")
    result = np.tile(default, (combinations, 1)) if len(default) else np.empty((combinations, size))
    result[rows] = values.reshape(-1, size)
    return result.reshape(shape)


def render_bif(model: Model) -> Iterator[str]:
    """Yield the file's text; names and states are quoted if needed, and numbers are exact.

    Raises:
        InputError: The model is not a Bayesian network with one factor for each variable, has no variable, or has a
            distribution too large to be written out; or a name has a character that the format cannot hold.
    """
    tables = conditionals(model, "a BIF file")
    names = [_quoted(v.name) for v in model.variables]
    states = [[_quoted(text) for text in texts_of(v)] for v in model.variables]
    yield f"network {_quoted(model.name or 'unknown')} {{\n}}\n"
    for name, variable, labels in zip(names, model.variables, states, strict=True):
        yield f"variable {name} {{\n  type discrete [ {variable.size} ] {{ {', '.join(labels)} }};\n}}\n"
    for scope, values in tables:
        yield from _render_block(scope, values, names, states)


def _render_block(
    scope: Sequence[int], values: NDArray[np.float64], names: Sequence[str], states: Sequence[Sequence[str]]
) -> Iterator[str]:
    parents, child = scope[:-1], scope[-1]
    head = f"{names[child]} | {', '.join(names[p] for p in parents)}" if parents else names[child]
    yield f"probability ( {head} ) {{\n"
    if not parents:
        yield f"  table {', '.join(map(repr, values.tolist()))};\n"
    else:
        for key in np.ndindex(*values.shape[:-1]):
            condition = ", ".join(states[p][x] for p, x in zip(parents, key, strict=True))
            yield f"  ({condition}) {', '.join(map(repr, values[key].tolist()))};\n"
    yield "}\n"


def _quoted(name: str) -> str:
    if any(c in '"\\\n' for c in name):
        raise InputError(
            f"a BIF file cannot hold the name {name!r}: it has a quotation mark, a backslash or a new line"
        )
    plain = name and not any(c.isspace() or c in _SEPARATORS + _MARKS + "[]/#" for c in name)
    return name if plain else f'"{name}"'


CODEC = Codec(
    ("probability",),
    _open_text,
    parse_bif,
    render_bif,
    holds=("names",),
    is_of_networks=True,
    is_often_latin1=True,
)
