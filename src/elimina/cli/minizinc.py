"""Command ``elimina install-minizinc``: registers the solver with MiniZinc."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from elimina import __version__
from elimina.cli.help import Command, option
from elimina.errors import InputError

LIBRARY = Path(__file__).parents[1] / "cp" / "mznlib"
"""Library of the global constraints that the solver propagates itself."""

ID = "org.elimina.elimina"
NAME = "elimina.msc"

FLAGS = ["-a", "-f", "-i", "-n", "-p", "-r", "-s", "-t", "-v"]
"""Standard flags that MiniZinc may pass on."""

EXTRA_FLAGS = [
    ["--device", "Device that filters AllDifferent constraints", "opt:auto:cpu:cuda", "auto"],
    ["--lns", "Large neighbourhood search", "bool", "false"],
]
"""Flags of this solver alone: name, description, type and default."""


@click.command("install-minizinc", cls=Command, short_help="Register the solver with MiniZinc.")
@option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the file.  [default: MiniZinc's folder of user solvers]",
)
@option("--remove", is_flag=True, help="Remove the file.")
def install_minizinc(folder: Path | None, remove: bool) -> None:
    """Write elimina.msc, so that 'minizinc --solver elimina' works. An existing file is replaced."""
    path = (folder or user_folder()) / NAME
    before = _executable_of(path)
    if remove:
        if before is None:
            raise InputError(f"cannot remove {path}: it does not exist, or belongs to another solver")
        path.unlink()
        click.echo(f"removed {path}, which ran {before}")
        return
    wanted = configuration()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(wanted, indent=2) + "\n")
    known = shutil.which("minizinc") is not None
    how = "minizinc --solver elimina MODEL.mzn" if known else "minizinc is not on the PATH: install it, too"
    instead = f", instead of {before}" if before not in (None, wanted["executable"]) else ""
    click.echo(f"wrote {path}, which runs {wanted['executable']}{instead}; {how}")
    if folder is not None:
        with suppress(InputError):
            _warn_of_another(user_folder() / NAME, wanted["executable"])


def _warn_of_another(path: Path, executable: str) -> None:
    """Warn of the file in the user's own folder: MiniZinc prefers it where id and release are equal."""
    other = _executable_of(path)
    if other not in (None, executable):
        click.echo(
            f"elimina: MiniZinc prefers {path}, which runs {other}, if releases are equal; "
            "'elimina install-minizinc' replaces it, and 'elimina install-minizinc --remove' removes it",
            err=True,
        )


def _executable_of(path: Path) -> str | None:
    """Return the executable in a solver's file; None if there is no file, or it is of another solver."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return str(found.get("executable")) if isinstance(found, dict) and found.get("id") == ID else None


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
    """Return MiniZinc's folder of user solvers, as the installed MiniZinc reports it."""
    minizinc = shutil.which("minizinc")
    if minizinc is not None:
        answer = subprocess.run([minizinc, "--config-dirs"], capture_output=True, text=True, check=False).stdout
        try:
            return Path(json.loads(answer)["userSolverConfigDir"])
        except (ValueError, KeyError):
            raise InputError(f"{minizinc} --config-dirs lists no folder for solvers: give one with --folder") from None
    return Path.home() / ".minizinc" / "solvers"
