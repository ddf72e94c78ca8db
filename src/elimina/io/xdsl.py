"""GeNIe's and SMILE's files of Bayesian networks (.xdsl), read only.

Each <cpt> under <nodes> is a variable: its id, a <state> with an id for each value, the ids of its <parents> and its
<probabilities>, in which the first parent varies slowest and the variable itself fastest (SMILE's order of the
dimensions of a matrix). Ids are kept as names; the captions of the <extensions> are read past.
"""

from __future__ import annotations

import math

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.io.files import Document, Element
from elimina.io.network import NetworkBuilder, read_probabilities
from elimina.model import Model, Sense

SENSES: tuple[Sense, ...] = ("probability",)
IS_OF_NETWORKS = True
HOLDS_NAMES = True
open_text = Document


def parse(document: Document) -> Model:
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
        _read_distribution(document, node, builder)
    document.line = nodes.line
    return builder.model()


def _id(element: Element) -> str:
    if "id" not in element.attributes:
        raise TextError(f"expected an id of the <{element.tag[:40]}>, found none")
    return element.attributes["id"]


def _read_distribution(document: Document, node: Element, builder: NetworkBuilder) -> None:
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
