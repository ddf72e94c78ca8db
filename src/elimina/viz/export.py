"""Graphs as files for other programs: DOT (Graphviz) and GraphML (Gephi, yEd, networkx)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace

from elimina import arguments
from elimina.errors import InputError
from elimina.io.files import save
from elimina.io.sources import ModelLike, as_model
from elimina.io.xml_documents import checked_xml
from elimina.model.model import Model
from elimina.result import Result
from elimina.viz.colours import node_fills
from elimina.viz.diagram import Diagram
from elimina.viz.graph import answer_colourings, graph_diagram

SUFFIXES = (".dot", ".graphml")


@arguments.with_checked_keywords()
def write_graph(
    model: ModelLike,
    path: str | os.PathLike[str],
    result: Result | None = None,
    observed: Sequence[str | int] = (),
) -> None:
    """Write a model's graph: arrows if it is Bayesian, else an edge for each two variables of a factor.

    Args:
        model: Any model, a network of pgmpy or pyAgrum, or the path of a file that ``elimina.read`` takes.
        path: A .dot or .graphml file.
        result: Answer whose posteriors or states become colours, if there is one.
        observed: Observed variables (names or indices), which have a separate colour.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: The suffix is unknown, the model has no such variable, or the file cannot hold a name or be
            written.
        UnsupportedError: The graph has too many edges.

    Examples:
        >>> import elimina
        >>> elimina.viz.write_graph("examples/pump.bif", "pump.graphml")
    """
    if result is not None and not isinstance(result, Result):
        raise arguments.wrong_type("result", result, "an elimina.Result, or None")
    path, model = arguments.file("path", path), as_model(model)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: graphs are written to {' and '.join(SUFFIXES)} files")
    diagram = graph_diagram(model, [model.index(v) for v in observed])
    if result is not None:
        diagram = replace(diagram, colourings=answer_colourings(diagram.names, result))
    save(path, (_dot if suffix == ".dot" else _graphml)(diagram, model))


def _dot(diagram: Diagram, model: Model) -> Iterator[str]:
    kind, link = ("digraph", "->") if diagram.is_directed else ("graph", "--")
    yield f"{kind} {_quoted(model.name or 'model')} {{\n"
    yield '  node [shape=box, style="rounded,filled"];\n'
    for number, (name, fill) in enumerate(zip(diagram.names, node_fills(diagram), strict=True)):
        yield f'  n{number} [label={_quoted(name)}, fillcolor="{fill}"];\n'
    for a, b in diagram.edges:
        yield f"  n{a} {link} n{b};\n"
    yield "}\n"


def _quoted(text: str) -> str:
    """Return a quoted text for DOT, with backslashes escaped, because they begin escapes in labels."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def _graphml(diagram: Diagram, model: Model) -> Iterator[str]:
    from xml.sax.saxutils import escape  # imported here: it loads modules for URLs

    kind = "directed" if diagram.is_directed else "undirected"
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for key, type_ in (("label", "string"), ("states", "int"), ("color", "string")):
        yield f'  <key id="{key}" for="node" attr.name="{key}" attr.type="{type_}"/>\n'
    yield f'  <graph edgedefault="{kind}">\n'
    for number, (variable, fill) in enumerate(zip(model.variables, node_fills(diagram), strict=True)):
        data = f'<data key="label">{escape(checked_xml(variable.name))}</data><data key="states">{variable.size}</data>'
        yield f'    <node id="n{number}">{data}<data key="color">{fill}</data></node>\n'
    for number, (a, b) in enumerate(diagram.edges):
        yield f'    <edge id="e{number}" source="n{a}" target="n{b}"/>\n'
    yield "  </graph>\n</graphml>\n"
