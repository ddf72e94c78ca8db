"""Bayesian networks of GeNIe and SMILE (.xdsl), read only.

Each <cpt> under <nodes> is a variable: its id, a <state> with an id for each value, the ids of its <parents> and its
<probabilities>, in which the first parent varies slowest and the variable itself fastest (SMILE's order of the
dimensions of a matrix). A <deterministic> node has <resultingstates> instead: one of its states for each combination of
its parents' states. Ids are kept as names; the captions of the <extensions> are skipped.

In an influence diagram, a <decision> has states and parents, a <utility> has parents and a number for each combination
of their states, the last parent fastest, and a <mau> adds up utilities by <weights>.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.io.codecs import Codec
from elimina.io.influence_diagrams import DiagramBuilder
from elimina.io.network import NetworkBuilder, read_probabilities, read_utilities
from elimina.io.xml_documents import Document, Element
from elimina.model.decision_network import DiagramParts
from elimina.model.model import Model
from elimina.number_texts import counted


def parse_xdsl(document: Document) -> Model:
    """Read a model whose factors are in the order of the nodes."""
    builder = NetworkBuilder()
    nodes = _read_nodes(document, builder)
    document.line = nodes.line
    return builder.model()


def parse_diagram(document: Document) -> DiagramParts:
    """Read an influence diagram, whose decisions forget nothing."""
    builder = DiagramBuilder()
    nodes = _read_nodes(document, builder)
    sums = {_id(node): _read_sum(document, node) for node in nodes.children if node.tag == "mau"}
    weights = _weights_of_utilities(sums, [_id(node) for node in nodes.children if node.tag == "utility"])
    document.line = nodes.line
    return builder.diagram_parts(weights, no_forgetting=True)


def _read_nodes(document: Document, builder: NetworkBuilder) -> Element:
    root = document.root("smile")
    if any(child.tag == "dynamic" for child in document.visit(root)):
        raise UnsupportedError("the network is a dynamic one (it has temporal arcs); unroll it first")
    nodes = document.only(root, "nodes", "<smile>")
    builder.name = root.attributes.get("id", "")
    for node in document.visit(nodes):
        _declare(document, node, builder)
    is_foreign = document.contains(b"created by pyAgrum")
    for node in document.visit(nodes):
        if node.tag != "mau":
            _read_table(document, node, builder, is_foreign)
    return nodes


_TABLES = {
    "cpt": ("probabilities",),
    "deterministic": ("resultingstates",),
    "decision": (),
    "utility": ("utilities",),
    "mau": ("weights",),
}
"""Kinds of nodes, and their elements besides states, parents and properties."""


def _declare(document: Document, node: Element, builder: NetworkBuilder) -> None:
    """Declare the variable or the utility of a node.

    Raises:
        UnsupportedError: The node is of another kind, or has an unknown element.
    """
    name = _id(node)
    if node.tag not in _TABLES:
        raise UnsupportedError(
            f"node {name!r} is a <{node.tag[:40]}> node; elimina handles the nodes {', '.join(_TABLES)} only"
        )
    if node.tag not in ("cpt", "deterministic") and not isinstance(builder, DiagramBuilder):
        builder.refuse_node(name, node.tag)
    states = []
    for child in document.visit(node):
        if child.tag == "state":
            states.append(_id(child))
        elif child.tag not in ("parents", "property", *_TABLES[node.tag]):
            raise UnsupportedError(f"node {name!r} has a <{child.tag[:40]}>, which is not handled")
    if not isinstance(builder, DiagramBuilder) or node.tag in ("cpt", "deterministic"):
        builder.add_variable(name, states)
    elif node.tag == "decision":
        builder.add_decision(name, states)
    elif node.tag == "utility":
        builder.add_utility(name)


def _read_sum(document: Document, node: Element) -> dict[str, float]:
    """Return the weights of the utilities and other sums that a <mau> node adds up."""
    name, parents = _id(node), _parents(document, node)
    if len(set(parents)) < len(parents):
        raise TextError(f"node {name!r} repeats a parent")
    table = document.only(node, "weights", f"node {name!r}")
    weights = read_utilities(document, table.raw_text.encode(), len(parents), name)
    return dict(zip(parents, weights.tolist(), strict=True))


def _weights_of_utilities(sums: dict[str, dict[str, float]], utilities: list[str]) -> dict[str, float]:
    """Return the weight of each utility in the total: the sum of all utilities and sums that are in no other sum.

    Raises:
        TextError: A sum has an unknown term, or contains itself.
    """
    pending = dict.fromkeys((*utilities, *sums), 0)
    for terms in sums.values():
        for term in terms:
            if term not in pending:
                raise TextError(f"expected a utility or a <mau> node, found {term!r}")
            pending[term] += 1
    ready = [name for name, count in pending.items() if not count]
    weights = {name: float(name in ready) for name in pending}
    while ready:
        name = ready.pop()
        for term, share in sums.get(name, {}).items():
            weights[term] += weights[name] * share
            pending[term] -= 1
            if not pending[term]:
                ready.append(term)
    culprits = [name for name in sums if pending[name]]
    if culprits:
        raise TextError(f"node {culprits[0]!r} is a part of its own sum")
    return {name: weights[name] for name in utilities}


def _id(element: Element) -> str:
    if "id" not in element.attributes:
        raise TextError(f"expected an id of the <{element.tag[:40]}>, found none")
    return element.attributes["id"]


def _parents(document: Document, node: Element) -> list[str]:
    return [name for child in document.visit(node) if child.tag == "parents" for name in child.text.split()]


def _read_table(document: Document, node: Element, builder: NetworkBuilder, is_foreign: bool) -> None:
    name = _id(node)
    parents = [builder.index(parent) for parent in _parents(document, node)]
    if is_foreign and len(parents) > 1:
        raise TextError(
            f"node {name!r} has several parents, which pyAgrum orders in another way than GeNIe: save the network as "
            ".bifxml"
        )
    if isinstance(builder, DiagramBuilder) and node.tag == "utility":
        shape = builder.utility_shape(name, parents)
        table = document.only(node, "utilities", f"node {name!r}")
        utilities = read_utilities(document, table.raw_text.encode(), math.prod(shape), name)
        builder.set_utility(name, parents, utilities.reshape(shape))
        return
    child = builder.index(name)
    if isinstance(builder, DiagramBuilder) and builder.is_decision(child):
        builder.set_observed(child, parents)
        return
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
        raise TextError(
            f"expected {counted(math.prod(shape[:-1]), 'resulting state')} of {name!r}, found {len(results)}"
        )
    index = {state: x for x, state in enumerate(states)}
    for result in results:
        if result not in index:
            raise TextError(f"expected a state of {name!r}, found {result[:40]!r}")
    return np.eye(len(states))[[index[result] for result in results]].reshape(shape)


CODEC = Codec(("probability",), Document, parse_xdsl, holds=("names",), is_of_networks=True)
DIAGRAMS = Codec(("probability",), Document, parse_diagram, holds=("names",), is_of_networks=True)
