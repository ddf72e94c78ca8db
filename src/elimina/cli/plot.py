"""``elimina plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from elimina.cli.dcop import read_problem
from elimina.cli.trace import read_trace
from elimina.dcop.view import HEURISTICS, Heuristic
from elimina.errors import InputError
from elimina.io import read


@click.command(short_help="Draw a model, its junction tree or pseudo-tree, or a trace of bounds.")
@click.argument("file", type=click.Path())
@click.option(
    "--what",
    type=click.Choice(("graph", "tree", "pseudotree", "trace")),
    help="The network, its junction tree with clique sizes as areas, the pseudo-tree that its agents make, or the "
    "bounds of a trace.  [default: trace for a .jsonl file, else graph]",
)
@click.option("-o", "--output", type=click.Path(), required=True, metavar="PICTURE", help="A .svg, .png or .pdf file.")
@click.option(
    "--heuristic",
    type=click.Choice(HEURISTICS),
    default="max-degree",
    show_default=True,
    help="Of the pseudo-tree; see elimina dcop.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the heuristic random.")
def plot(file: str, what: Any, output: str, heuristic: Heuristic, seed: int) -> None:
    """Draw the model or distributed problem in FILE, or the bounds that solve --trace wrote there."""
    what = what or ("trace" if file.endswith(".jsonl") else "graph")
    if what == "trace":
        from elimina.viz.trace import draw_trace

        draw_trace(read_trace(file), Path(output), Path(file).name)
        return
    if what == "pseudotree":
        _plot_pseudotree(file, output, heuristic, seed)
        return
    from elimina.viz import plot

    plot(read(file), output, what, title=Path(file).name)


def _plot_pseudotree(file: str, output: str, heuristic: Heuristic, seed: int) -> None:
    from elimina.dcop.pseudotree import agree_on_tree
    from elimina.viz.canvas import format_of
    from elimina.viz.pseudotree import draw_pseudotree

    format_of(Path(output))
    problem = read_problem(file)
    variables = problem.model.variables
    if not variables:
        raise InputError(f"{file}: the problem has no variables, so there is nothing to draw")
    owners = [problem.agents[owner].name for owner in problem.owners]
    labels = [v.name if v.name == owner else f"{v.name} ({owner})" for v, owner in zip(variables, owners, strict=True)]
    scopes = [table.scope for table in problem.model.factors]
    draw_pseudotree(agree_on_tree(problem, heuristic, seed), scopes, labels, Path(file).name).save(Path(output))
