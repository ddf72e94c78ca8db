"""Pictures of models: the network, and the junction tree of an elimination order."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, get_args

from elimina.errors import InputError
from elimina.model import Model

__all__ = ["plot"]

What = Literal["graph", "tree"]


def plot(model: Model, path: str | os.PathLike[str], what: What = "graph", *, title: str | None = None) -> None:
    """Draw a model.

    Args:
        model: Any model.
        path: The picture; its suffix (.svg, .png or .pdf) names the format.
        what: ``graph``: the network, with arrows where it is Bayesian, else with an edge where two variables share a
            factor; ``tree``: the junction tree of the order that elimina finds, with clique sizes as areas.
        title: What stands above the picture, before its figures; None for the model's name.

    Raises:
        InputError: matplotlib is not installed, an option is wrong, or the file cannot be written.
    """
    from elimina.viz.canvas import format_of

    path = Path(path)
    format_of(path)
    if what not in get_args(What):
        raise InputError(f"unknown picture {what!r}; it is one of {', '.join(get_args(What))}")
    if not model.variables:
        raise InputError("the model has no variables, so there is nothing to draw")
    heading = model.name if title is None else title
    if what == "graph":
        from elimina.viz.graph import draw_graph

        draw_graph(model, heading).save(path)
    else:
        from elimina.viz.junction import draw_tree

        draw_tree(model, heading).save(path)
