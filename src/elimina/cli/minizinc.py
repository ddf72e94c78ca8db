"""``elimina install-minizinc``: makes MiniZinc know the solver."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from elimina import __version__
from elimina.errors import InputError

# What MiniZinc may pass on.
FLAGS = ["-a", "-f", "-i", "-n", "-p", "-r", "-s", "-t", "-v"]


@click.command("install-minizinc")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where to write; default: MiniZinc's user folder.",
)
def install_minizinc(folder: Path | None) -> None:
    """Write elimina.msc, so that 'minizinc --solver elimina' works."""
    folder = folder or user_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "elimina.msc"
    path.write_text(json.dumps(configuration(), indent=2) + "\n")
    click.echo(f"wrote {path}")


def configuration() -> dict[str, Any]:
    """What MiniZinc has to know of the solver.

    Raises:
        InputError: ``fzn-elimina`` is not beside this Python, nor on the PATH.
    """
    beside = shutil.which("fzn-elimina", path=str(Path(sys.executable).parent))
    executable = beside or shutil.which("fzn-elimina")
    if executable is None:
        raise InputError(f"fzn-elimina is neither beside {sys.executable} nor on the PATH: install elimina by pip")
    return {
        "id": "org.elimina.elimina",
        "name": "elimina",
        "description": "Finite-domain constraint propagation",
        "version": __version__,
        "executable": str(Path(executable).absolute()),
        "mznlib": str(Path(__file__).parents[1] / "cp" / "mznlib"),
        "tags": ["cp", "int", "restart"],
        "stdFlags": FLAGS,
        "extraFlags": [["--lns", "Search near the best solution and everywhere by turns", "bool", "false"]],
        "supportsMzn": False,
        "supportsFzn": True,
        "needsSolns2Out": True,
        "needsMznExecutable": False,
        "needsStdlibDir": False,
        "isGUIApplication": False,
    }


def user_folder() -> Path:
    """MiniZinc's folder of the user's solvers, by MiniZinc's own word where it is installed."""
    minizinc = shutil.which("minizinc")
    if minizinc is not None:
        answer = subprocess.run([minizinc, "--config-dirs"], capture_output=True, text=True, check=False).stdout
        try:
            return Path(json.loads(answer)["userSolverConfigDir"])
        except (ValueError, KeyError):
            raise InputError(f"{minizinc} --config-dirs names no folder: give one by --folder") from None
    return Path.home() / ".minizinc" / "solvers"
