"""``elimina``: the commands, and the form of their failures."""

from __future__ import annotations

import os
import sys

import click

from elimina import __version__
from elimina.cli.convert import convert, generate
from elimina.cli.cp import cp, tsp
from elimina.cli.dcop import dcop
from elimina.cli.install import calibrate, completion, install_minizinc
from elimina.cli.models import show_notices
from elimina.cli.plot import plot, report
from elimina.cli.solve import plan, solve
from elimina.errors import EliminaError

FINISHED, ERROR, USAGE = 0, 1, 2


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="elimina")
def commands() -> None:
    """Inference on discrete graphical models by eliminating variables, and constraint propagation, on CPUs and GPUs.

    To solve FlatZinc files, use fzn-elimina, or minizinc after install-minizinc.
    """
    show_notices()


for command in (solve, plan, cp, tsp, dcop, convert, generate, plot, report, calibrate, install_minizinc, completion):
    commands.add_command(command)


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return the exit code.

    Raises:
        KeyboardInterrupt: The user interrupted.
    """
    try:
        commands(arguments, prog_name="elimina", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.UsageError as error:
        error.show()
        return USAGE
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        error.show()
        return ERROR
    except EliminaError as error:
        click.echo(f"elimina: {error}", err=True)
        return ERROR
    except MemoryError as error:
        click.echo(f"elimina: out of memory{f': {error}' if str(error) else ''}", err=True)
        return ERROR
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            click.echo(f"elimina: {error.filename or 'standard output'}: {error.strerror or error}", err=True)
        # What is still buffered cannot be written either: the interpreter must not try again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ERROR
    return FINISHED
