"""Bayesian networks of GeNIe and SMILE (.xdsl), which are only read.

Each <cpt> under <nodes> is a variable: its id, a <state> with an id for each value, the ids of its <parents> and its
<probabilities>, in which the first parent varies slowest and the variable itself fastest (SMILE's order of the
dimensions of a matrix). A <deterministic> node has <resultingstates> instead: one of its states for each combination of
its parents'. Ids are kept as names; the captions of the <extensions> are read past.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.io.codecs import Codec
from elimina.io.network import NetworkBuilder, read_probabilities
from elimina.io.xml_documents import Document, Element
from elimina.model.model import Model


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


CODEC = Codec(("probability",), Document, parse_xdsl, holds=("names",), is_of_networks=True)
