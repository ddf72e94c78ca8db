"""Output of models and answers by commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from elimina.cli.terminal import show
from elimina.io.files import save as save_text
from elimina.io.files import suffix_of
from elimina.io.model_files import check_suffix, write
from elimina.model.model import Model
from elimina.model.senses import convert_sense
from elimina.result import Result

if TYPE_CHECKING:
    from elimina.dcop import Problem


def check_target(target: str) -> None:
    """Raise InputError before any work is done if ``save`` does not support the suffix of a file."""
    from elimina.dcop import formats

    if suffix_of(Path(target)) not in formats.FORMATS:
        check_suffix(Path(target))


def save(model: Model, target: str, problem: Problem | None = None) -> None:
    """Write a model, as a graphical model or as a distributed problem: the suffix decides.

    A probability model in an .xml file is a graphical model; in other distributed problems, its probabilities become
    costs.

    Args:
        model: Model to write.
        target: File to write.
        problem: The distributed problem of the model; None for one with an agent for each variable.
    """
    from elimina.dcop import Problem, formats

    suffix = suffix_of(Path(target))
    if suffix not in formats.FORMATS or (suffix == "xml" and model.sense == "probability"):
        write(model, target)
        return
    if problem is None:
        problem = Problem.from_model(convert_sense(model, "min-cost") if model.sense == "probability" else model)
    formats.write(problem, target)


def write_answer(result: Result, text_of: Callable[[Result], str], format_: str, output: str | None) -> None:
    """Write an answer to the file ``output``, or print it if this is None: as JSON, or as the text of ``text_of``."""
    text = result.to_json() if format_ == "json" else text_of(result)
    if output is not None:
        save_text(Path(output), [text, "\n"])
    elif format_ == "json":
        click.echo(text)
    else:
        show(text)
