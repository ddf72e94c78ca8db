"""Bayesian networks: the interchange format as text (BIF 0.15) and XML (XMLBIF 0.3), and .xdsl, which is only read.

In BIF each variable has a block with its values, each conditional distribution a block with one row "(p1, .., pk) x1,
.., xn;" for each combination of the parents' values, or with one "table", in which the child varies slowest and the
last parent fastest (the order of the format's definition), or with a "default" row for the combinations that have none.
Commas and bars separate like blanks; comments are C's and C++'s, also right behind a word; properties are read past, up
to a semicolon. Text that is not UTF-8 is Latin-1.

In XMLBIF a VARIABLE has a NAME and an OUTCOME for each value; a DEFINITION is the conditional distribution of its FOR
variable given its GIVEN variables. Its TABLE counts through the GIVEN variables in their order, the first one slowest,
and the FOR variable fastest. A name with blanks around it is kept by the attribute xml:space="preserve". Source: the
format's page by F. Cozman, 1998.

In GeNIe's and SMILE's .xdsl each <cpt> under <nodes> is a variable: its id, a <state> with an id for each value, the
ids of its <parents> and its <probabilities>, in which the first parent varies slowest and the variable itself fastest
(SMILE's order of the dimensions of a matrix). A <deterministic> node has <resultingstates> instead: one of its states
for each combination of its parents'. Ids are kept as names; the captions of the <extensions> are read past.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from elimina._core import Text, TextError
from elimina.errors import InputError, UnsupportedError
from elimina.io.files import Document, Element, Format, checked_xml, shown
from elimina.io.network import NetworkBuilder, conditionals, read_probabilities
from elimina.model.model import Model
from elimina.model.variable import texts_of

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
        elif word != b";" or text.quoted:  # some writers end blocks like statements
            raise TextError(f"expected 'network', 'variable' or 'probability', found {shown(word)}")
    return builder.model()


def _expect(text: Text, *wanted: bytes) -> bytes:
    what = " or ".join(f"'{w.decode()}'" for w in wanted)
    found = text.token(what)
    if found not in wanted or text.quoted:
        raise TextError(f"expected {what}, found {shown(found)}")
    return found


def _word(text: Text, what: str) -> str:
    found = text.token(what)
    if not text.quoted and len(found) == 1 and found in _MARKS.encode():
        raise TextError(f"expected {what}, found {found.decode()!r}")
    return found.decode()


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
    return "" if name == "unknown" else name  # what writers put where there is no name


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
    # Brackets are marks in this place alone: bnlearn writes states such as "[0_1_5]" without quotes.
    words = []
    while not _at(text, b"{"):
        words.append(_word(text, "'discrete', a number of values between brackets or '{'"))
    head = _DISCRETE.fullmatch(" ".join(words))
    if head is None:
        raise TextError(f"expected 'discrete [ N ]' of variable {name!r}, found {shown(' '.join(words).encode())}")
    size = int(head[1])
    text.token("'{'")
    states = []
    while not _at(text, b"}"):
        states.append(_word(text, "a value's name or '}'"))
    text.token("'}'")
    _expect(text, b";")
    if len(states) != size or size < 1:
        raise TextError(f"variable {name!r} is declared with {size} values and lists {len(states)}")
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
    """Read the block's rows into an array of this shape, the child's axis last."""
    size, combinations = shape[-1], math.prod(shape[:-1])
    rows, values, default, table = text.bif_rows(size, states)
    if len(table):
        if len(table) != combinations * size or len(rows) or len(default):
            raise TextError(
                f"expected {combinations * size} values and no rows in the table of {name!r}, found {len(table)}"
            )
        return np.ascontiguousarray(np.moveaxis(table.reshape(size, *shape[:-1]), 0, -1))
    if len(default) not in (0, size):
        raise TextError(f"expected {size} values in the default row of {name!r}, found {len(default)}")
    if not len(default) and len(rows) < combinations:
        raise TextError(f"expected {combinations} rows for {name!r}, found {len(rows)}")
    filled = np.zeros(combinations, dtype=bool)
    filled[rows] = True
    if filled.sum() != len(rows):
        raise TextError(f"a row of {name!r} is given twice")
    result = np.tile(default, (combinations, 1)) if len(default) else np.empty((combinations, size))
    result[rows] = values.reshape(-1, size)
    return result.reshape(shape)


def render_bif(model: Model) -> Iterator[str]:
    """Yield the file's text; names and states are quoted where they need it, numbers read back exactly.

    Raises:
        InputError: The model is not a Bayesian network with one factor for each variable, or a name has a character
            that the format cannot hold.
    """
    tables = conditionals(model, "a BIF file")
    names = [_quoted(v.name) for v in model.variables]
    states = [[_quoted(text) for text in texts_of(v)] for v in model.variables]
    yield f"network {_quoted(model.name or 'unknown')} {{\n}}\n"
    for name, variable, own in zip(names, model.variables, states, strict=True):
        yield f"variable {name} {{\n  type discrete [ {variable.size} ] {{ {', '.join(own)} }};\n}}\n"
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
            given = ", ".join(states[p][x] for p, x in zip(parents, key, strict=True))
            yield f"  ({given}) {', '.join(map(repr, values[key].tolist()))};\n"
    yield "}\n"


def _quoted(name: str) -> str:
    if any(c in '"\\\n' for c in name):
        raise InputError(
            f"a BIF file cannot hold the name {name!r}: it has a quotation mark, a backslash or a new line"
        )
    plain = name and not any(c.isspace() or c in _SEPARATORS + _MARKS + "[]/#" for c in name)
    return name if plain else f'"{name}"'


BIF = Format(
    ("probability",),
    _open_text,
    parse_bif,
    render_bif,
    holds_names=True,
    is_of_networks=True,
    is_often_latin1=True,
)


def parse_xmlbif(document: Document) -> Model:
    """Read a model whose factors are in the order of the definitions."""
    network = document.only(document.root("BIF"), "NETWORK", "<BIF>")
    builder = NetworkBuilder()
    definitions = []
    for element in document.visit(network):
        if element.tag == "NAME":
            builder.name = element.text
        elif element.tag == "VARIABLE":
            _read_xml_variable(document, element, builder)
        elif element.tag == "DEFINITION":
            definitions.append(element)
        elif element.tag != "PROPERTY":
            raise TextError(f"expected <VARIABLE> or <DEFINITION>, found <{element.tag[:40]}>")
    for element in definitions:
        _read_definition(document, element, builder)
    document.line = network.line
    return builder.model()


def _read_xml_variable(document: Document, element: Element, builder: NetworkBuilder) -> None:
    name = document.only(element, "NAME", "<VARIABLE>").text
    kind = element.attributes.get("TYPE", "nature")
    if kind in ("decision", "utility"):
        raise UnsupportedError(f"node {name!r} is a {kind} node; elimina handles chance nodes (TYPE='nature') only")
    if kind != "nature":
        raise TextError(f"expected TYPE='nature' of variable {name!r}, found {kind[:40]!r}")
    states = []
    for part in document.visit(element):
        if part.tag == "OUTCOME":
            states.append(part.text)
        elif part.tag not in ("NAME", "PROPERTY"):
            raise TextError(f"expected <OUTCOME> in variable {name!r}, found <{part.tag[:40]}>")
    builder.add_variable(name, states)


def _read_definition(document: Document, element: Element, builder: NetworkBuilder) -> None:
    document.line = element.line
    if sum(part.tag == "FOR" for part in element.children) > 1:
        raise UnsupportedError("a definition has several FOR variables; elimina handles one")
    child = builder.index(owner := document.only(element, "FOR", "<DEFINITION>").text)
    parents = []
    for part in document.visit(element):
        if part.tag == "GIVEN":
            parents.append(builder.index(part.text))
        elif part.tag not in ("FOR", "TABLE", "PROPERTY"):
            raise TextError(f"expected <GIVEN> or <TABLE> in the definition of {owner!r}, found <{part.tag[:40]}>")
    shape = builder.shape(parents, child)
    table = document.only(element, "TABLE", f"the definition of {owner!r}")
    values = read_probabilities(document, table.raw_text.encode(), int(np.prod(shape)), owner)
    builder.add_distribution(parents, child, values.reshape(shape))


def render_xmlbif(model: Model) -> Iterator[str]:
    """Yield the file's text; numbers read back exactly.

    Raises:
        InputError: The model is not a Bayesian network with one factor for each variable, or a name has a character
            that XML cannot hold.
    """
    tables = conditionals(model, "an XMLBIF file")
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<BIF VERSION="0.3">\n<NETWORK>\n'
    yield _tagged("NAME", model.name) if model.name else ""
    for variable in model.variables:
        yield '<VARIABLE TYPE="nature">\n' + _tagged("NAME", variable.name)
        yield from (_tagged("OUTCOME", text) for text in texts_of(variable))
        yield "</VARIABLE>\n"
    for scope, values in tables:
        *parents, child = (model.variables[v].name for v in scope)
        yield "<DEFINITION>\n" + _tagged("FOR", child)
        yield from (_tagged("GIVEN", parent) for parent in parents)
        yield f"<TABLE>\n{_rows(values)}</TABLE>\n</DEFINITION>\n"
    yield "</NETWORK>\n</BIF>\n"


def _rows(values: NDArray[np.float64]) -> str:
    rows = values.reshape(-1, values.shape[-1]).tolist()
    return "".join(" ".join(map(repr, row)) + "\n" for row in rows)


def _tagged(tag: str, name: str) -> str:
    from xml.sax.saxutils import escape  # for writing alone: it loads what opens URLs

    checked_xml(name)
    space = ' xml:space="preserve"' if name != name.strip() else ""
    return f"<{tag}{space}>{escape(name, {chr(13): '&#13;'})}</{tag}>\n"


XMLBIF = Format(("probability",), Document, parse_xmlbif, render_xmlbif, holds_names=True, is_of_networks=True)


def parse_xdsl(document: Document) -> Model:
    """Read a model whose factors are in the order of the nodes."""
    root = document.root("smile")
    if any(child.tag == "dynamic" for child in document.visit(root)):
        raise UnsupportedError("the network is a dynamic one (it has temporal arcs); unroll it first")
    nodes = document.only(root, "nodes", "<smile>")
    builder = NetworkBuilder()
    builder.name = root.attributes.get("id", "")
    for node in document.visit(nodes):
        name = _id(node)
        if node.tag not in ("cpt", "deterministic"):
            raise UnsupportedError(
                f"node {name!r} is a <{node.tag[:40]}> node; elimina handles <cpt> and <deterministic> nodes only"
            )
        table = "probabilities" if node.tag == "cpt" else "resultingstates"
        states = []
        for part in document.visit(node):
            if part.tag == "state":
                states.append(_id(part))
            elif part.tag not in ("parents", "property", table):
                raise UnsupportedError(f"node {name!r} has a <{part.tag[:40]}>, which is not handled")
        builder.add_variable(name, states)
    is_foreign = document.contains(b"created by pyAgrum")
    for node in document.visit(nodes):
        _read_probabilities(document, node, builder, is_foreign)
    document.line = nodes.line
    return builder.model()


def _id(element: Element) -> str:
    if "id" not in element.attributes:
        raise TextError(f"expected an id of the <{element.tag[:40]}>, found none")
    return element.attributes["id"]


def _read_probabilities(document: Document, node: Element, builder: NetworkBuilder, is_foreign: bool) -> None:
    name = _id(node)
    child = builder.index(name)
    parents = []
    for part in document.visit(node):
        if part.tag == "parents":
            parents += [builder.index(parent) for parent in part.text.split()]
    if is_foreign and len(parents) > 1:
        raise TextError(
            f"node {name!r} has several parents, which pyAgrum orders in another way than GeNIe: save the network as "
            ".bifxml"
        )
    shape = builder.shape(parents, child)
    if node.tag == "deterministic":
        builder.add_distribution(parents, child, _read_results(document, node, builder.states([child])[0], shape))
        return
    table = document.only(node, "probabilities", f"node {name!r}")
    values = read_probabilities(document, table.raw_text.encode(), math.prod(shape), name)
    builder.add_distribution(parents, child, values.reshape(shape))


def _read_results(document: Document, node: Element, states: list[str], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the distribution of a node whose parents determine its state."""
    name = _id(node)
    results = document.only(node, "resultingstates", f"node {name!r}").text.split()
    if len(results) != math.prod(shape[:-1]):
        raise TextError(f"expected {math.prod(shape[:-1])} resulting states of {name!r}, found {len(results)}")
    index = {state: x for x, state in enumerate(states)}
    for result in results:
        if result not in index:
            raise TextError(f"expected a state of {name!r}, found {result[:40]!r}")
    return np.eye(len(states))[[index[result] for result in results]].reshape(shape)


XDSL = Format(("probability",), Document, parse_xdsl, holds_names=True, is_of_networks=True)
