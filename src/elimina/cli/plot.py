"""``elimina plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from elimina.cli.trace import read_trace
from elimina.io import read


@click.command(short_help="Draw a model, its junction tree, or a trace of bounds.")
@click.argument("file", type=click.Path())
@click.option(
    "--what",
    type=click.Choice(("graph", "tree", "trace")),
    help="The network, its junction tree with clique sizes as areas, or the bounds of a trace.  [default: trace for a "
    ".jsonl file, else graph]",
)
@click.option("-o", "--output", type=click.Path(), required=True, metavar="PICTURE", help="A .svg, .png or .pdf file.")
def plot(file: str, what: Any, output: str) -> None:
    """Draw the model in FILE (any format that solve reads), or the bounds that solve --trace wrote there."""
    what = what or ("trace" if file.endswith(".jsonl") else "graph")
    if what == "trace":
        from elimina.viz.trace import draw_trace

        draw_trace(read_trace(file), Path(output), Path(file).name)
        return
    from elimina.viz import plot

    plot(read(file), output, what, title=Path(file).name)
