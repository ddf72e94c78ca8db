"""Bayesian networks in the Bayesian interchange format, as XML (XMLBIF 0.3).

A VARIABLE has a NAME and an OUTCOME for each value; a DEFINITION is the conditional distribution of its FOR variable
given its GIVEN variables. Its TABLE counts through the GIVEN variables in their order, the first one slowest, and the
FOR variable fastest. A name with blanks around it is kept by the attribute xml:space="preserve". Source: the format's
page by F. Cozman, 1998.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.io.codecs import Codec
from elimina.io.influence_diagrams import DiagramBuilder
from elimina.io.network import NetworkBuilder, conditionals, read_probabilities, read_utilities
from elimina.io.xml_documents import Document, Element, checked_xml
from elimina.model.decision_network import DiagramParts
from elimina.model.model import Model
from elimina.model.variable import texts_of


def parse_xmlbif(document: Document) -> Model:
    """Read a model whose factors are in the order of the definitions."""
    builder = NetworkBuilder()
    network = _read_network(document, builder)
    document.line = network.line
    return builder.model()


def parse_diagram(document: Document) -> DiagramParts:
    """Read an influence diagram of pyAgrum, in which nodes may be decisions and utilities."""
    builder = DiagramBuilder()
    network = _read_network(document, builder)
    document.line = network.line
    return builder.diagram_parts()


def _read_network(document: Document, builder: NetworkBuilder) -> Element:
    network = document.only(document.root("BIF"), "NETWORK", "<BIF>")
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
    return network


def _read_xml_variable(document: Document, element: Element, builder: NetworkBuilder) -> None:
    name = document.only(element, "NAME", "<VARIABLE>").text
    kind = element.attributes.get("TYPE", "nature")
    if kind not in ("nature", "decision", "utility"):
        raise TextError(f"expected TYPE='nature', 'decision' or 'utility' of {name!r}, found {kind[:40]!r}")
    if kind != "nature" and not isinstance(builder, DiagramBuilder):
        builder.refuse_node(name, kind)
    states = []
    for child in document.visit(element):
        if child.tag == "OUTCOME":
            states.append(child.text)
        elif child.tag not in ("NAME", "PROPERTY"):
            raise TextError(f"expected <OUTCOME> in variable {name!r}, found <{child.tag[:40]}>")
    if isinstance(builder, DiagramBuilder) and kind == "decision":
        builder.add_decision(name, states)
    elif isinstance(builder, DiagramBuilder) and kind == "utility":
        builder.add_utility(name)
    else:
        builder.add_variable(name, states)


def _read_definition(document: Document, element: Element, builder: NetworkBuilder) -> None:
    document.line = element.line
    if sum(entry.tag == "FOR" for entry in element.children) > 1:
        raise UnsupportedError("a definition has several FOR variables; elimina handles one")
    owner = document.only(element, "FOR", "<DEFINITION>").text
    parents = []
    for entry in document.visit(element):
        if entry.tag == "GIVEN":
            parents.append(builder.index(entry.text))
        elif entry.tag not in ("FOR", "TABLE", "PROPERTY"):
            raise TextError(f"expected <GIVEN> or <TABLE> in the definition of {owner!r}, found <{entry.tag[:40]}>")
    if isinstance(builder, DiagramBuilder) and builder.is_utility(owner):
        shape = builder.utility_shape(owner, parents)
        table = document.only(element, "TABLE", f"the definition of {owner!r}")
        utilities = read_utilities(document, table.raw_text.encode(), int(np.prod(shape)), owner)
        builder.set_utility(owner, parents, utilities.reshape(shape))
        return
    child = builder.index(owner)
    if isinstance(builder, DiagramBuilder) and builder.is_decision(child):
        builder.set_observed(child, parents)
        return
    shape = builder.shape(parents, child)
    table = document.only(element, "TABLE", f"the definition of {owner!r}")
    values = read_probabilities(document, table.raw_text.encode(), int(np.prod(shape)), owner)
    builder.add_distribution(parents, child, values.reshape(shape))


def render_xmlbif(model: Model) -> Iterator[str]:
    """Yield the file's text; numbers read back exactly.

    Raises:
        InputError: The model is not a Bayesian network with one factor for each variable, has no variable, or has a
            distribution too large to be written out; or a name has a character that XML cannot hold.
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
    from xml.sax.saxutils import escape  # imported here: it loads modules for URLs, and only writing needs it

    checked_xml(name)
    space = ' xml:space="preserve"' if name != name.strip() else ""
    return f"<{tag}{space}>{escape(name, {chr(13): '&#13;'})}</{tag}>\n"


CODEC = Codec(("probability",), Document, parse_xmlbif, render_xmlbif, holds=("names",), is_of_networks=True)
DIAGRAMS = Codec(("probability",), Document, parse_diagram, holds=("names",), is_of_networks=True)
