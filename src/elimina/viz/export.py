"""Graphs of models as files for other programs: DOT (Graphviz) and GraphML (Gephi, yEd, networkx)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from elimina.errors import InputError
from elimina.io import ModelLike, as_model
from elimina.io.files import save
from elimina.model import Model
from elimina.result import Result
from elimina.viz.canvas import FILL
from elimina.viz.graph import colours, edges_of

SUFFIXES = (".dot", ".graphml")


def write_graph(
    model: ModelLike,
    path: str | os.PathLike[str],
    result: Result | None = None,
    observed: Sequence[int] = (),
) -> None:
    """Write a model's graph: arrows where it is a Bayesian network, else an edge where two variables share a factor.

    Args:
        model: Any model, or the path of a file that ``elimina.read`` takes.
        path: A .dot or .graphml file.
        result: Answer whose posteriors or states become colours, if there is one.
        observed: Variables with evidence, which have a colour of their own.

    Raises:
        InputError: The suffix is another one, or the file cannot be written.
    """
    path, model = Path(path), as_model(model)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: graphs are written to {' and '.join(SUFFIXES)} files")
    fills = colours(model, result, observed) if result is not None or observed else [FILL] * len(model.variables)
    save(path, (_dot if suffix == ".dot" else _graphml)(model, fills))


def _dot(model: Model, fills: Sequence[str]) -> Iterator[str]:
    kind, link = ("graph", "--") if model.children is None else ("digraph", "->")
    yield f"{kind} {_quoted(model.name or 'model')} {{\n"
    yield '  node [shape=box, style="rounded,filled"];\n'
    for number, (variable, fill) in enumerate(zip(model.variables, fills, strict=True)):
        yield f'  n{number} [label={_quoted(variable.name)}, fillcolor="{fill}"];\n'
    for a, b in edges_of(model):
        yield f"  n{a} {link} n{b};\n"
    yield "}\n"


def _quoted(text: str) -> str:
    """Return a text of DOT: a backslash begins an escape in labels."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def _graphml(model: Model, fills: Sequence[str]) -> Iterator[str]:
    kind = "undirected" if model.children is None else "directed"
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for key, type_ in (("label", "string"), ("states", "int"), ("color", "string")):
        yield f'  <key id="{key}" for="node" attr.name="{key}" attr.type="{type_}"/>\n'
    yield f'  <graph edgedefault="{kind}">\n'
    for number, (variable, fill) in enumerate(zip(model.variables, fills, strict=True)):
        data = f'<data key="label">{escape(variable.name)}</data><data key="states">{variable.size}</data>'
        yield f'    <node id="n{number}">{data}<data key="color">{fill}</data></node>\n'
    for number, (a, b) in enumerate(edges_of(model)):
        yield f'    <edge id="e{number}" source="n{a}" target="n{b}"/>\n'
    yield "  </graph>\n</graphml>\n"
