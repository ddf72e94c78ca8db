"""Command ``elimina install-minizinc``."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from elimina.cli.grouped_options import Command, option
from elimina.errors import InputError
from elimina.version import __version__

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
    previous = _configuration_in(path)
    if remove:
        if previous is None:
            raise InputError(f"cannot remove {path}: it does not exist, or belongs to another solver")
        path.unlink()
        click.echo(f"removed {path}, which ran {previous.get('executable')}")
        return
    contents = configuration()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(contents, indent=2) + "\n")
    is_installed = shutil.which("minizinc") is not None
    solver = "elimina" if folder is None else path
    advice = f"to use it: minizinc --solver {solver} MODEL.mzn"
    if not is_installed:
        advice = "minizinc is not on the PATH: install it, too"
    replaced = previous.get("executable") if previous else None
    replacement = f", instead of {replaced}" if replaced not in (None, contents["executable"]) else ""
    click.echo(f"wrote {path}, which runs {contents['executable']}{replacement}; {advice}")
    if folder is not None:
        with suppress(InputError):
            _warn_of_another(user_folder() / NAME, contents)


def _warn_of_another(path: Path, contents: dict[str, Any]) -> None:
    """Warn of a different file in the user's folder: MiniZinc prefers that file if id and version are equal."""
    user_contents = _configuration_in(path)
    differing = next(
        (key for key in ("executable", "mznlib") if user_contents and user_contents.get(key) != contents[key]), None
    )
    if user_contents and differing:
        difference = {"executable": "runs", "mznlib": "reads the library"}[differing]
        click.echo(
            f"elimina: MiniZinc prefers {path}, which {difference} {user_contents.get(differing)}, if releases are "
            "equal; 'elimina install-minizinc' replaces it, and 'elimina install-minizinc --remove' removes it",
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
