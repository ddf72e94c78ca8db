"""Runs the command line, in this process or in its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from elimina.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"
PYTHON = re.compile(r"\belimina\.(?!msc|mzn|fish)[a-z]|\b[Ii]n Python\b|\w=(True|False|None)\b|\bModel\.\w|children=")
"""Calls in Python: advice that cannot be followed on the command line."""


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
        assert not PYTHON.search(err), err
        return Ran(int(ended.value.code or 0), out, err)

    return run


@pytest.fixture
def start(tmp_path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start ``elimina ARGUMENTS`` as a process, which ends with the test at the latest."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: object, **options: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "elimina", *map(str, arguments)]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path, **options}
        started.append(subprocess.Popen(command, **streams))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def radio() -> Path:
    """The example that the README solves."""
    return EXAMPLES / "radio.wcsp"
