"""Pictures of models (the network, its posteriors, the junction tree of an elimination order) and of answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_args

from elimina import arguments
from elimina.errors import InputError
from elimina.io.sources import ModelLike, as_model
from elimina.methods.junction_tree import JunctionTree
from elimina.methods.parameter_sensitivity import Sensitivities
from elimina.model.model import Model
from elimina.model.named_table import NamedTable
from elimina.model.states import is_missing
from elimina.number_texts import counted
from elimina.result import Result
from elimina.viz.canvas import Picture
from elimina.viz.chart_figure import draw_heat_map, draw_ranges
from elimina.viz.charts import sensitivity_chart
from elimina.viz.export import write_graph
from elimina.viz.figure import draw_figure
from elimina.viz.graph import MAX_NODES_WITH_BARS, answer_colourings, graph_diagram, with_bars
from elimina.viz.junction_tree import cliques_of, junction_tree_diagram

__all__ = ["Picture", "plot", "plot_joint", "plot_sensitivities", "write_graph"]


def __dir__() -> list[str]:
    return __all__


What = Literal["graph", "posteriors", "tree"]


@arguments.with_checked_keywords()
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
        what: ``graph``: the network, with the arrows of a Bayesian network, else with edges between variables of one
            factor; ``posteriors``: the network with a bar for the posterior of each state inside its nodes; ``tree``:
            the junction tree of the order that elimina finds, with clique sizes as areas.
        title: Text above the picture, before the model's size; None for the model's name.
        answer: Answer whose posteriors or states colour the graph, if there is one. ``posteriors`` computes the
            posteriors of all variables if there is none.
        evidence: Observed variables (names or indices, such as the keys of evidence), which have a separate colour.
            A mapping from variables to states is needed if posteriors are computed.

    Returns:
        The picture: notebooks show it, ``save`` writes it.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: matplotlib is not installed, or an option is wrong.
        ImpossibleEvidenceError: The evidence has probability 0, and posteriors are computed.

    Examples:
        >>> import elimina
        >>> elimina.viz.plot("examples/pump.bif").save("pump.svg")
    """
    model = as_model(model)
    arguments.choice("what", what, get_args(What))
    if title is not None and not isinstance(title, str):
        raise arguments.wrong_type("title", title, "text, or None for the model's name")
    if isinstance(evidence, str) or not arguments.is_iterable(evidence):
        raise arguments.wrong_type("evidence", evidence, "a sequence of names or indices of variables")
    if answer is not None and not isinstance(answer, Result):
        raise arguments.wrong_type("answer", answer, "an elimina.Result, or None")
    if not model.variables:
        raise InputError("the model has no variables, so there is nothing to draw")
    heading = model.name if title is None else title
    if what == "tree":
        names = [variable.name for variable in model.variables]
        return draw_figure(junction_tree_diagram(cliques_of(model), model.sizes, names), heading)
    if what == "posteriors":
        marginals = _marginals(model, answer, evidence)
    if isinstance(evidence, Mapping):
        evidence = [name for name, state in evidence.items() if not is_missing(state)]
    diagram = graph_diagram(model, [model.index(name) for name in evidence])
    if what == "posteriors":
        diagram = with_bars(diagram, marginals)
    elif answer is not None:
        diagram = replace(diagram, colourings=answer_colourings(diagram.names, answer))
    return draw_figure(diagram, heading)


def _marginals(model: Model, answer: Result | None, evidence: Iterable[str | int]) -> Mapping[str, Mapping[Any, float]]:
    """Return the posteriors of all variables: those of an answer, or computed if there is none.

    Raises:
        InputError: There are too many variables for a picture, the answer lacks some, or the evidence lacks states.
    """
    count = len(model.variables)
    if count > MAX_NODES_WITH_BARS:
        raise InputError(
            f"the model has {counted(count, 'variable')}, and the posteriors of at most {MAX_NODES_WITH_BARS} "
            f"can be read in "
            "one picture: draw the graph (what='graph') with answer=, which colours it by posteriors"
        )
    if answer is not None:
        if len(answer.marginals) < count:
            raise InputError(
                f"the answer has the posteriors of {len(answer.marginals):,} of {count:,} variables: solve the task "
                "'mar' without a query, or leave the answer out"
            )
        return answer.marginals
    observed = list(evidence)
    if observed and not isinstance(evidence, Mapping):
        raise InputError(
            "evidence names variables without their states: give a mapping from names to states, or the answer"
        )
    tree = JunctionTree(model, evidence=evidence if isinstance(evidence, Mapping) else None)
    marginals = tree.marginals()
    return {name: dict(zip(model[name].all_states, p.tolist(), strict=True)) for name, p in marginals.items()}


def plot_joint(table: NamedTable) -> Picture:
    """Draw a table of two variables as a heat map, such as a joint or conditional distribution.

    Args:
        table: Table of two variables, the first one from top to bottom: ``JunctionTree.joint`` returns one.

    Returns:
        The picture: notebooks show it, ``save`` writes it.

    Raises:
        TypeError: ``table`` is not a ``NamedTable``.
        InputError: matplotlib is not installed, or the table has another number of variables.

    Examples:
        >>> import elimina
        >>> tree = elimina.JunctionTree("examples/pump.bif")
        >>> elimina.viz.plot_joint(tree.joint(["Pump", "Flow"])).save("joint.svg")
    """
    if not isinstance(table, NamedTable):
        raise arguments.wrong_type("table", table, "an elimina.NamedTable, such as JunctionTree.joint returns")
    if len(table.names) != 2:
        raise InputError(
            f"the table has {counted(len(table.names), 'variable')}, and a heat map shows two: ask for the "
            f"joint distribution of "
            "two, or choose states of the others (table.at)"
        )
    return draw_heat_map(table)


@arguments.with_checked_keywords()
def plot_sensitivities(sensitivities: Sensitivities, *, change: float = 0.1, count: int = 12) -> Picture:
    """Draw the range of a posterior over changes of single parameters as bars, the widest at the top (a tornado).

    Args:
        sensitivities: Sensitivities of the posterior, as ``JunctionTree.sensitivities`` returns them.
        change: Share of its value by which each parameter decreases and increases, from 0 to 1.
        count: Largest number of parameters to show; each row of a table shows only the one with the widest range.

    Returns:
        The picture: notebooks show it, ``save`` writes it.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: matplotlib is not installed, or an argument is out of range.

    Examples:
        >>> import elimina
        >>> tree = elimina.JunctionTree("examples/pump.bif", evidence={"Alarm": "on"})
        >>> elimina.viz.plot_sensitivities(tree.sensitivities({"Bearing": "worn"})).save("tornado.svg")
    """
    if not isinstance(sensitivities, Sensitivities):
        raise arguments.wrong_type("sensitivities", sensitivities, "what JunctionTree.sensitivities returns")
    share, max_rows = arguments.share("change", change), arguments.integer("count", count, 1)
    if not 0 < share <= 1:
        raise InputError(f"change is {change}: give a share of the parameters' values above 0 and up to 1, such as 0.1")
    return draw_ranges(sensitivity_chart(sensitivities, share, max_rows))
