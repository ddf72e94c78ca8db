"""The group of commands of ``elimina``, and the messages and exit codes of failures."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module

import click

from elimina.cli import signals
from elimina.cli.grouped_options import CommandGroup
from elimina.cli.terminal import show_notices
from elimina.errors import EliminaError
from elimina.version import __version__

FINISHED, ERROR, USAGE = 0, 1, 2

_COMMAND_MODULES = {
    "solve": ("solve", "Answer a task on a model."),
    "plan": ("solve", "Show the cost of solving a model."),
    "sample": ("sample", "Draw samples of a model's variables."),
    "fit": ("fit", "Fit the distributions of a network to data."),
    "decide": ("decide", "Find policies of largest expected utility."),
    "cp": ("cp", "Solve a model of constraints by propagation and search."),
    "tsp": ("travelling_salesman", "Find a shortest tour of a travelling salesman problem."),
    "dcop": ("dcop", "Solve a distributed problem with message-passing agents."),
    "convert": ("convert", "Write a model in another format."),
    "generate": ("random_problems", "Write a random problem."),
    "plot": ("plot", "Draw a model, its junction tree or pseudo-tree, or bounds over time."),
    "report": ("plot", "Write a page about a model, its plan and its answer."),
    "calibrate": ("calibrate", "Measure the speed of this machine for the planner."),
    "install-minizinc": ("install_minizinc", "Register the solver with MiniZinc."),
    "completion": ("completion", "Print the script that completes commands in a shell."),
}
"""Module and description of each command, the most frequent ones first. Modules are imported on use: importing all
takes longer than solving a small problem."""

_WITHOUT_NUMPY = ("completion", "install-minizinc")
"""Commands that run without NumPy."""


class _Commands(CommandGroup):
    """Group of the commands, which are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, those of the most frequent commands first."""
        return list(_COMMAND_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name; None if there is none."""
        if cmd_name not in _COMMAND_MODULES:
            return None
        with signals.deferred():
            if cmd_name not in _WITHOUT_NUMPY:
                # NumPy is imported here, and not deeper in the stack by the command's modules. CPython allocates frames
                # in blocks of 16 KiB. A deeper import would cross the end of a block 1,500 times, which takes 5 ms.
                import_module("numpy")
            command = getattr(import_module(f"elimina.cli.{_COMMAND_MODULES[cmd_name][0]}"), cmd_name.replace("-", "_"))
        if signals.came():
            raise click.Abort
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return a command and its arguments; the error for an unknown name suggests similar names, or ``solve``."""
        name = args[0]
        if name not in _COMMAND_MODULES and not name.startswith("-") and not ctx.resilient_parsing:
            from elimina.arguments import names_like

            hint = (
                f": to solve a file, write 'elimina solve {name}'"
                if os.path.isfile(name)
                else names_like(name, _COMMAND_MODULES)
            )
            ctx.fail(f"No such command {name!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names and the descriptions."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _COMMAND_MODULES[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="elimina")
def commands() -> None:
    """Inference on discrete graphical models by eliminating variables, and constraint propagation, on CPUs and GPUs.

    To solve FlatZinc files, use fzn-elimina, or minizinc after install-minizinc.
    """
    show_notices()


def _drop_output() -> None:
    """Redirect standard output after a failed write: otherwise the interpreter would write the rest at exit."""
    with contextlib.suppress(OSError):  # a program has replaced the stream by an object without a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def run(arguments: list[str] | None = None) -> int:
    """Run a command and return the exit code.

    Raises:
        KeyboardInterrupt: A signal interrupted the command.
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
        if error.filename is None:
            _drop_output()
        return ERROR
    return FINISHED
