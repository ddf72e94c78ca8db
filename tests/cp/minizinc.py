"""MiniZinc with nothing but our solver's configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

needs_minizinc = pytest.mark.skipif(shutil.which("minizinc") is None, reason="there is no minizinc")


def surroundings(home: Path) -> dict[str, str]:
    """The environment of a user who has installed the solver in ``home``, and no other.

    MiniZinc prefers a solver of the same name in the user's home to one that is given by its path.
    """
    environment = {**os.environ, "HOME": str(home)}
    environment.pop("MZN_SOLVER_PATH", None)
    if not (home / ".minizinc").exists():
        program = str(Path(sys.executable).parent / "elimina")
        subprocess.run([program, "install-minizinc"], check=True, capture_output=True, env=environment)
    return environment


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run MiniZinc in the surroundings of ``home``."""
    command = ["minizinc", "--solver", "elimina", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=surroundings(home), timeout=60, check=False)


def compile_model(home: Path, model: Path) -> str:
    """The FlatZinc that MiniZinc makes of ``model`` for our solver."""
    flat = home / "model.fzn"
    result = run(home, "-c", "--fzn", str(flat), "--no-output-ozn", str(model))
    assert result.returncode == 0, result.stderr
    return flat.read_text()
