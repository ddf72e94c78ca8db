"""Bayesian networks as XML: the interchange format XMLBIF 0.3, and GeNIe's and SMILE's .xdsl, which is only read.

In XMLBIF a VARIABLE has a NAME and an OUTCOME for each value; a DEFINITION is the conditional distribution of its FOR
variable given its GIVEN variables. Its TABLE counts through the GIVEN variables in their order, the first one slowest,
and the FOR variable fastest. A name with blanks around it is kept by the attribute xml:space="preserve". Source: the
format's page by F. Cozman, 1998.

In .xdsl each <cpt> under <nodes> is a variable: its id, a <state> with an id for each value, the ids of its <parents>
and its <probabilities>, in which the first parent varies slowest and the variable itself fastest (SMILE's order of the
dimensions of a matrix). Ids are kept as names; the captions of the <extensions> are read past.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.errors import InputError, UnsupportedError
from elimina.io.files import Document, Element, Format
from elimina.io.network import NetworkBuilder, conditionals, read_probabilities
from elimina.model import Model
from elimina.states import texts_of

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse_xmlbif(document: Document) -> Model:
    """Read a model whose factors are in the order of the definitions."""
    network = document.only(document.root("BIF"), "NETWORK", "<BIF>")
    builder = NetworkBuilder()
    definitions = []
    for element in document.visit(network):
        if element.tag == "NAME":
            builder.name = element.text
        elif element.tag == "VARIABLE":
            _read_variable(document, element, builder)
        elif element.tag == "DEFINITION":
            definitions.append(element)
        elif element.tag != "PROPERTY":
            raise TextError(f"expected <VARIABLE> or <DEFINITION>, found <{element.tag[:40]}>")
    for element in definitions:
        _read_definition(document, element, builder)
    document.line = network.line
    return builder.model()


def _read_variable(document: Document, element: Element, builder: NetworkBuilder) -> None:
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
    found = _NOT_XML.search(name)
    if found:
        raise InputError(f"an XML file cannot hold the name {name!r}: it has the character {found.group()!r}")
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
        if node.tag != "cpt":
            raise UnsupportedError(f"node {name!r} is a <{node.tag[:40]}> node; elimina handles <cpt> nodes only")
        builder.add_variable(name, [_id(part) for part in document.visit(node) if part.tag == "state"])
    for node in document.visit(nodes):
        _read_probabilities(document, node, builder)
    document.line = nodes.line
    return builder.model()


def _id(element: Element) -> str:
    if "id" not in element.attributes:
        raise TextError(f"expected an id of the <{element.tag[:40]}>, found none")
    return element.attributes["id"]


def _read_probabilities(document: Document, node: Element, builder: NetworkBuilder) -> None:
    name = _id(node)
    child = builder.index(name)
    parents = []
    for part in document.visit(node):
        if part.tag == "parents":
            parents += [builder.index(parent) for parent in part.text.split()]
    shape = builder.shape(parents, child)
    table = document.only(node, "probabilities", f"node {name!r}")
    values = read_probabilities(document, table.raw_text.encode(), math.prod(shape), name)
    builder.add_distribution(parents, child, values.reshape(shape))


XDSL = Format(("probability",), Document, parse_xdsl, holds_names=True, is_of_networks=True)
