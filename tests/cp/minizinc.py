"""MiniZinc with nothing but our solver's configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

needs_minizinc = pytest.mark.skipif(shutil.which("minizinc") is None, reason="there is no minizinc")


def run(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """MiniZinc as a user who has installed the solver in ``home``, and no other."""
    surroundings = {**os.environ, "HOME": str(home)}
    surroundings.pop("MZN_SOLVER_PATH", None)
    if not (home / ".minizinc").exists():
        program = str(Path(sys.executable).parent / "elimina")
        subprocess.run([program, "install-minizinc"], check=True, capture_output=True, env=surroundings)
    command = ["minizinc", "--solver", "elimina", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=surroundings, timeout=60, check=False)
