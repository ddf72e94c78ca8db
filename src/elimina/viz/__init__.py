"""Pictures of models: the network, and the junction tree of an elimination order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Literal, get_args

from elimina import arguments
from elimina.errors import InputError
from elimina.io.sources import ModelLike, as_model
from elimina.model.states import is_missing
from elimina.result import Result
from elimina.viz.canvas import Picture
from elimina.viz.export import write_graph
from elimina.viz.figure import draw_figure
from elimina.viz.graph import answer_colourings, graph_diagram
from elimina.viz.junction_tree import cliques_of, junction_tree_diagram

__all__ = ["Picture", "plot", "write_graph"]

What = Literal["graph", "tree"]


def plot(
    model: ModelLike,
    what: What = "graph",
    *,
    title: str | None = None,
    answer: Result | None = None,
    evidence: Iterable[str | int] = (),
) -> Picture:
    """Draw a model.

    Args:
        model: Any model, a network of pgmpy or pyAgrum, or the path of a file that ``elimina.read`` takes.
        what: ``graph``: the network, with arrows where it is Bayesian, else with an edge where two variables share a
            factor; ``tree``: the junction tree of the order that elimina finds, with clique sizes as areas.
        title: Text above the picture, before its figures; None for the model's name.
        answer: Answer whose posteriors or states colour the graph, if there is one.
        evidence: Observed variables (names or indices, such as the keys of evidence), which have a colour of their own.

    Returns:
        The picture: notebooks show it, ``save`` writes it.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: matplotlib is not installed, or an option is wrong.
    """
    model = as_model(model)
    arguments.choice("what", what, get_args(What))
    if title is not None and not isinstance(title, str):
        raise arguments.wrong_type("title", title, "text, or None for the model's name")
    if isinstance(evidence, str) or not isinstance(evidence, Iterable):
        raise arguments.wrong_type("evidence", evidence, "a sequence of names or indices of variables")
    if answer is not None and not isinstance(answer, Result):
        raise arguments.wrong_type("answer", answer, "an elimina.Result, or None")
    if not model.variables:
        raise InputError("the model has no variables, so there is nothing to draw")
    heading = model.name if title is None else title
    if what == "tree":
        names = [variable.name for variable in model.variables]
        return draw_figure(junction_tree_diagram(cliques_of(model), model.sizes, names), heading)
    if isinstance(evidence, Mapping):
        evidence = [name for name, state in evidence.items() if not is_missing(state)]
    diagram = graph_diagram(model, [model.index(name) for name in evidence])
    if answer is not None:
        diagram = replace(diagram, colourings=answer_colourings(diagram.names, answer))
    return draw_figure(diagram, heading)
