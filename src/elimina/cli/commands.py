"""The group of commands of ``elimina``, the commands for its setup, and the form of failures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import get_completion_class

from elimina.cli import signals
from elimina.cli.terminal import Command, CommandGroup, option, show_notices
from elimina.errors import EliminaError, InputError
from elimina.version import __version__

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


@click.command(cls=Command)
@option("--show", is_flag=True, help="Show the speeds in use, and measure nothing.")
@option("--reset", is_flag=True, help="Forget the measured speeds.")
def calibrate(show: bool, reset: bool) -> None:
    """Measure the speeds of this machine, and of its GPU if it has one.

    elimina uses these speeds to estimate times and to choose methods and devices. They are saved in
    calibration.json in the user's cache folder. The measurement takes less than 20 seconds. Run it while the machine is
    idle.
    """
    from elimina import calibration
    from elimina.planning.machine import Speeds, calibration_file, speeds

    if show and reset:
        raise click.UsageError("--show and --reset exclude each other: leave out one of them")
    if reset:
        removed = calibration.reset()
        click.echo("no speeds were measured before" if removed is None else f"removed {removed}")
        return
    defaults = Speeds()._asdict()
    if show:
        path = calibration_file()
        shown = speeds()
        # A damaged file is ignored.
        is_measured = path is not None and Path(path).exists() and shown != Speeds()
        for name, value in shown._asdict().items():
            click.echo(_line(name, value, defaults[name]))
        click.echo(f"measured, from {path}" if is_measured else "built-in: 'elimina calibrate' measures this machine")
        return
    calibration.prepare_file()  # if the folder cannot be made, this fails now, and not after the measurement
    measured = {}
    for name, value in calibration.measure():
        measured[name] = value
        click.echo(_line(name, value, defaults[name]))
    click.echo(f"wrote {calibration.save(measured)}")


def _line(name: str, value: float, default: float) -> str:
    return f"{name:14} {_amount(name, value):24} built-in: {_amount(name, default)}"


def _amount(name: str, value: float) -> str:
    from elimina.planning.machine import UNITS

    size, prefix = next((pair for pair in _PREFIXES if value >= pair[0]), _PREFIXES[-1])
    return f"{value / size:.3g} {prefix}{UNITS[name]}"


SHELLS = ("bash", "zsh", "fish")


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's completion script for the commands and options of elimina.

    Bash: add 'eval "$(elimina completion bash)"' to ~/.bashrc. Zsh: the same with zsh in ~/.zshrc. Fish: write the
    script to ~/.config/fish/completions/elimina.fish.
    """
    kind = get_completion_class(shell)
    root = context.find_root().command
    if kind is None:
        raise InputError(f"click has no completion for {shell}: upgrade click")
    try:
        script = kind(root, {}, "elimina", "_ELIMINA_COMPLETE").source()
    except RuntimeError as error:
        raise InputError(f"cannot complete in {shell}: {error}") from None
    click.echo(script)


LIBRARY = Path(__file__).parents[1] / "cp" / "mznlib"
"""Library of the global constraints with propagators in the solver."""

ID = "org.elimina.elimina"
NAME = "elimina.msc"

FLAGS = ["-a", "-f", "-i", "-n", "-p", "-r", "-s", "-t", "-v"]
"""Standard flags that MiniZinc may pass on."""

EXTRA_FLAGS = [
    ["--device", "Device that filters AllDifferent constraints", "opt:auto:cpu:cuda", "auto"],
    ["--lns", "Large neighbourhood search", "bool", "false"],
]
"""Extra flags of this solver: name, description, type and default."""


@click.command("install-minizinc", cls=Command)
@option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the file.  [default: MiniZinc's folder of user solvers]",
)
@option("--remove", is_flag=True, help="Remove the file.")
def install_minizinc(folder: Path | None, remove: bool) -> None:
    """Write elimina.msc, so that 'minizinc --solver elimina' works. An existing file is replaced."""
    path = (folder or user_folder()) / NAME
    before = _configuration_in(path)
    if remove:
        if before is None:
            raise InputError(f"cannot remove {path}: it does not exist, or belongs to another solver")
        path.unlink()
        click.echo(f"removed {path}, which ran {before.get('executable')}")
        return
    wanted = configuration()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(wanted, indent=2) + "\n")
    is_installed = shutil.which("minizinc") is not None
    how = "minizinc --solver elimina MODEL.mzn" if is_installed else "minizinc is not on the PATH: install it, too"
    replaced = before.get("executable") if before else None
    instead = f", instead of {replaced}" if replaced not in (None, wanted["executable"]) else ""
    click.echo(f"wrote {path}, which runs {wanted['executable']}{instead}; {how}")
    if folder is not None:
        with suppress(InputError):
            _warn_of_another(user_folder() / NAME, wanted)


def _warn_of_another(path: Path, wanted: dict[str, Any]) -> None:
    """Warn of a different file in the user's folder: MiniZinc prefers it if id and version are equal."""
    other = _configuration_in(path)
    differing = next((key for key in ("executable", "mznlib") if other and other.get(key) != wanted[key]), None)
    if other and differing:
        what = {"executable": "runs", "mznlib": "reads the library"}[differing]
        click.echo(
            f"elimina: MiniZinc prefers {path}, which {what} {other.get(differing)}, if releases are equal; "
            "'elimina install-minizinc' replaces it, and 'elimina install-minizinc --remove' removes it",
            err=True,
        )


def _configuration_in(path: Path) -> dict[str, Any] | None:
    """Return the contents of a solver's file; None if the file is missing or belongs to another solver."""
    try:
        configuration = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return configuration if isinstance(configuration, dict) and configuration.get("id") == ID else None


def configuration() -> dict[str, Any]:
    """Return the contents of the solver's file.

    Raises:
        InputError: ``fzn-elimina`` is not beside this Python, nor on the PATH.
    """
    beside = shutil.which("fzn-elimina", path=str(Path(sys.executable).parent))
    executable = beside or shutil.which("fzn-elimina")
    if executable is None:
        raise InputError(f"fzn-elimina is neither beside {sys.executable} nor on the PATH: install elimina with pip")
    return {
        "id": ID,
        "name": "elimina",
        "description": "Finite-domain constraint propagation",
        "version": __version__,
        "executable": str(Path(executable).absolute()),
        "mznlib": str(LIBRARY),
        "tags": ["cp", "int", "restart"],
        "stdFlags": FLAGS,
        "extraFlags": EXTRA_FLAGS,
        "supportsMzn": False,
        "supportsFzn": True,
        "needsSolns2Out": True,
        "needsMznExecutable": False,
        "needsStdlibDir": False,
        "isGUIApplication": False,
    }


def user_folder() -> Path:
    """Return MiniZinc's folder of user solvers: the one that the installed MiniZinc reports, or the usual one.

    Raises:
        InputError: The installed MiniZinc reports no folder.
    """
    minizinc = shutil.which("minizinc")
    if minizinc is not None:
        answer = subprocess.run([minizinc, "--config-dirs"], capture_output=True, text=True, check=False).stdout
        try:
            return Path(json.loads(answer)["userSolverConfigDir"])
        except (ValueError, KeyError):
            raise InputError(f"{minizinc} --config-dirs lists no folder for solvers: give one with --folder") from None
    return Path.home() / ".minizinc" / "solvers"


FINISHED, ERROR, USAGE = 0, 1, 2


_HOMES = {
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
    "calibrate": ("commands", "Measure the speed of this machine for the planner."),
    "install-minizinc": ("commands", "Register the solver with MiniZinc."),
    "completion": ("commands", "Print the script that completes commands in a shell."),
}
"""Module and description of each command. Modules are imported on use: importing all takes longer than solving a
small problem."""


class _Commands(CommandGroup):
    """Group of the commands, which are imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, sorted."""
        return sorted(_HOMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name; None if there is none."""
        if cmd_name not in _HOMES:
            return None
        with signals.deferred():
            command = getattr(import_module(f"elimina.cli.{_HOMES[cmd_name][0]}"), cmd_name.replace("-", "_"))
        if signals.came():
            raise click.Abort
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return a command and its arguments; the error for an unknown name suggests similar names, or ``solve``."""
        name = args[0]
        if name not in _HOMES and not name.startswith("-") and not ctx.resilient_parsing:
            from elimina.arguments import names_like

            hint = (
                f": to solve a file, write 'elimina solve {name}'" if os.path.isfile(name) else names_like(name, _HOMES)
            )
            ctx.fail(f"No such command {name!r}{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names and the descriptions."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _HOMES[name][1]) for name in self.list_commands(ctx)])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="elimina")
def commands() -> None:
    """Inference on discrete graphical models by eliminating variables, and constraint propagation, on CPUs and GPUs.

    To solve FlatZinc files, use fzn-elimina, or minizinc after install-minizinc.
    """
    show_notices()


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
        # The rest of the buffer cannot be written either: keep the interpreter from trying again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ERROR
    return FINISHED
