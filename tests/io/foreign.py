"""Plain writers of the formats that elimina only reads, to make files of generated networks."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

import numpy as np

from elimina.model.model import Model


def net(model: Model) -> str:
    """Hugin's NET; names must be words, states may be anything."""
    blocks = [f'net {{ name = "{_escaped(model.name)}"; node_size = (80 40); }}']
    for v in model.variables:
        states = " ".join(f'"{_escaped(str(v.state(x)))}"' for x in range(v.size))
        blocks.append(f'node {v.name} {{ label = "{v.name}; %"; states = ({states}); }} % {v.name}')
    for factor in model.factors:
        *parents, child = (model.variables[u].name for u in factor.scope)
        head = f"{child} | {' '.join(parents)}" if parents else child
        blocks.append(f"potential ({head}) {{\n data = {_nested(factor.values)}; % done;\n}}")
    return "\n".join(blocks)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _nested(values: np.ndarray) -> str:
    if values.ndim == 1:
        return f"({' '.join(map(repr, values.tolist()))}) % row;\n"
    return "(" + "".join(_nested(part) for part in values) + ")"


def xdsl(model: Model) -> str:
    """GeNIe's XDSL; names must be words, states may be anything that XML can hold."""
    nodes = []
    for factor in model.factors:
        *parents, child = (model.variables[u] for u in factor.scope)
        states = "".join(f"<state id={quoteattr(str(child.state(x)))} />" for x in range(child.size))
        given = f"<parents>{escape(' '.join(p.name for p in parents))}</parents>" if parents else ""
        numbers = " ".join(map(repr, factor.values.ravel().tolist()))
        nodes.append(f"<cpt id={quoteattr(child.name)}>{states}{given}<probabilities>{numbers}</probabilities></cpt>")
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<smile version="1.0" id={quoteattr(model.name)}>'
    extensions = "<extensions><genie><node id='x'><name>other</name></node></genie></extensions>"
    return f"{head}\n<nodes>\n" + "\n".join(nodes) + f"\n</nodes>{extensions}</smile>\n"
