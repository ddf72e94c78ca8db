"""``elimina``: the commands and what they share."""

from __future__ import annotations

import sys

import click

from elimina import __version__
from elimina.cli.bench import bench
from elimina.cli.convert import convert
from elimina.cli.generate import generate
from elimina.cli.solve import plan, solve
from elimina.errors import EliminaError

ERROR, USAGE, INTERRUPTED = 1, 2, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="elimina")
def commands() -> None:
    """Exact inference on discrete graphical models, by eliminating variables, on CPUs and GPUs."""


for command in (solve, plan, convert, generate, bench):
    commands.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exit with 0 (finished), 1 (error), 2 (usage) or 130 (interrupted)."""
    try:
        commands(arguments, standalone_mode=False)
    except click.UsageError as error:
        error.show()
        sys.exit(USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(ERROR)
    except EliminaError as error:
        click.echo(f"elimina: {error}", err=True)
        sys.exit(ERROR)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(ERROR)
    except OSError as error:
        click.echo(f"elimina: {error.filename or ''}: {error.strerror or error}", err=True)
        sys.exit(ERROR)
