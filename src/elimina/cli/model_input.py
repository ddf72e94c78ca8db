"""Models that commands read from files and standard input, the options for reading, and the library's notices."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import click

from elimina.cli.grouped_options import option, together
from elimina.cli.standard_input import input_source
from elimina.cli.terminal import show_notices
from elimina.errors import InputError, source_text
from elimina.io.files import suffix_of
from elimina.io.formats import by_suffix, format_of
from elimina.io.model_files import read
from elimina.model.model import Model


def _be_verbose(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        show_notices(logging.INFO)


verbose_option = option(
    "-v",
    "--verbose",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_be_verbose,
    group="output",
    help="Log what is done and why, on standard error.",
)
reading_options = together(
    option("--no-check", is_flag=True, group="expert", help="Accept distributions that do not sum to 1 as they are."),
    verbose_option,
)
"""Options for reading models: ``--no-check`` (its parameter is ``no_check``), and ``-v``."""

_ADVICE = {
    "MiniZinc": "run 'elimina install-minizinc' once, then 'minizinc --solver elimina' on this file; to solve a small "
    "model by elimina solve, compile it to a .fzn file first ('minizinc -c')",
    "tour": "use 'elimina tsp'",
}
"""Contents of files that are only for other commands -> advice."""


def _note_format(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    context.meta[__name__] = value


source_option = option(
    "--from",
    metavar="FORMAT",
    group="expert",
    expose_value=False,
    callback=_note_format,
    help="Format of a model on standard input (FILE is -): a suffix, such as wcsp or uai.gz.",
)
"""``--from``, the format of a model on standard input."""


def source_of(path: str) -> str:
    """Return the name of a source: its file's name, or ``-.FORMAT`` for standard input.

    Raises:
        InputError: Standard input has no ``--from``, or a file has one.
    """
    context = click.get_current_context(silent=True)
    form = None if context is None else context.meta.get(__name__)
    if path != "-":
        if form is not None:
            raise InputError(
                f"--from {form} is for standard input (-), not for {path}: "
                f"leave it out, or write - --from {form} < {path}"
            )
        return path
    if form is None:
        example = "fzn" if context is not None and context.info_name == "cp" else "wcsp"
        raise InputError(f"standard input has no suffix: name its format by --from, such as --from {example}")
    return input_source(path, "the model", form.removeprefix("."))


def read_model(path: str, *, no_check: bool = False) -> Model:
    """Read a model: see ``read_with_total``."""
    return read_with_total(path, no_check=no_check)[0]


def read_with_total(path: str, *, no_check: bool = False) -> tuple[Model, str | None]:
    """Read a model. Constraints are converted to tables, and the agents of a distributed problem are ignored.

    Args:
        path: The file, as ``source_of`` names it.
        no_check: True to accept a network's probabilities unchecked.

    Returns:
        The model; and the name of the objective's variable if the model does not contain this variable, otherwise None.
        The value of the variable is the total cost.

    Raises:
        InputError: The file cannot be read, or a constraint's table would be too large.
    """
    form = format_of(Path(path))
    content = None if form is None else form.content
    if content in _ADVICE:
        raise InputError(f"{source_text(path)} is not a graphical model: {_ADVICE[content]}")
    if content == "constraints":
        return _tabulated(path)
    if content == "distributed problem":
        from elimina import dcop

        return dcop.read(path).model, None
    if form is None and Path(path).exists() and not Path(path).is_dir():
        suffix = suffix_of(Path(path))
        suffixes = ", ".join(by_suffix("model", "constraints", "distributed problem"))
        raise InputError(
            f"{path}: unknown suffix {suffix and '.' + suffix!r}; models are {suffixes} (perhaps with .gz or .xz), and "
            "'elimina tsp' reads .tsp files; a file of another name is read from standard input, such as "
            f"- --from wcsp < {path}"
        )
    return read(path, check=not no_check), None


def _tabulated(path: str) -> tuple[Model, str | None]:
    from elimina.cp.reading import read as read_constraints

    constraints = read_constraints(path)
    model, aim = constraints.to_model(), constraints.objective
    if aim is None or aim.constant or list(aim.terms.values()) != [1]:
        return model, None
    name = str(aim)
    return model, None if any(v.name == name for v in model.variables) else name


@contextlib.contextmanager
def explaining(total: str | None) -> Iterator[None]:
    """If the block fails because a variable is unknown, explain that the model lacks the objective's variable.

    Args:
        total: Name of the variable, from ``read_with_total``; None if there is none.
    """
    try:
        yield
    except InputError as error:
        if total is None or not str(error).startswith(f"the model has no variable {total!r}"):
            raise
        raise InputError(
            f"{total!r} is the variable of the objective, which the cost tables do not have: its value is that of the "
            "answer; to fix it, add a constraint to the file that sets it"
        ) from None
