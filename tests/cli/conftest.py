"""Runs the command line, in this process or in its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from elimina.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def elimina(capfd, tmp_path, monkeypatch) -> Callable[..., Ran]:
    """Run ``elimina ARGUMENTS`` within this process, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Ran(int(ended.value.code or 0), out, err)

    return run


@pytest.fixture
def start(tmp_path) -> Callable[..., subprocess.Popen[str]]:
    """Start ``elimina ARGUMENTS`` as a process."""

    def run(*arguments: object, **options: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "elimina", *map(str, arguments)]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path, **options}
        return subprocess.Popen(command, **streams)

    return run


@pytest.fixture
def radio() -> Path:
    """The example that the README solves."""
    return EXAMPLES / "radio.wcsp"
