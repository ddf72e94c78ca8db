"""Service for shells and scripts: completion, plans as JSON, output for terminals and pipes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

import elimina as package
from elimina.cli.terminal import folded
from tests.cli.test_sources import EXAMPLES, run


def test_plans_as_json():
    model = EXAMPLES / "radio.wcsp"
    done = run("plan", model, "--json")
    found = json.loads(done.stdout)
    plan = package.plan(model)
    assert done.stdout.count(b"\n") == 1
    assert (found["induced_width"], found["largest_table"], found["fits"]) == (plan.width, plan.largest_table, True)
    sliced = package.plan(model, memory="500KB", options=package.Options(slices=10**6))
    assert not sliced.form.variables or json.loads(sliced.to_json())["slices"] == sliced.form.slices
    assert found["bytes"] == plan.bytes


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell):
    if shutil.which("bash") is None:
        pytest.skip("click asks bash for its version")
    script = run("completion", shell).stdout.decode()
    assert "_ELIMINA_COMPLETE" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_what_is_completed():
    environment = {**os.environ, "_ELIMINA_COMPLETE": "bash_complete", "COMP_WORDS": "elimina so", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "elimina"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "plain,solve\n"


def test_output_of_pipes_has_no_colours():
    for arguments in (["--help"], ["solve", EXAMPLES / "radio.wcsp"], ["plan", EXAMPLES / "radio.wcsp"]):
        assert b"\x1b" not in run(*arguments).stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(("variable", "has_colour"), [(None, True), ("NO_COLOR", False)])
def test_answers_are_folded_on_terminals(variable, has_colour):
    import pty

    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {"COLUMNS": "60", "TERM": "xterm", **({variable: "1"} if variable else {})}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "elimina", "solve", str(EXAMPLES / "radio.wcsp")]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=environment) as process:
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 4096):
                parts.append(part)
        except OSError:  # Linux' end of a terminal
            pass
    os.close(ours)
    assert process.returncode == 0
    shown = b"".join(parts).decode()
    assert ("\x1b[1mstatus:\x1b[0m     optimal" in shown) == has_colour
    plain = shown.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "\x1b" not in plain
    lines = plain.splitlines()
    assert max(map(len, lines)) <= 60
    start = next(place for place, line in enumerate(lines) if line.startswith("assignment: x0="))
    assert len(lines) > start + 3
    assert all(line.startswith(" " * 12 + "x") for line in lines[start + 1 :])


def test_lines_that_are_folded():
    assert folded("value:      1\nno label " + "x" * 99, 50, False) == "value:      1\nno label " + "x" * 99
    assert folded("a: " + "word " * 9, 10, False) == "a: word word word word word word word\n   word word"
    assert folded("induced width:        6", 80, True) == "\x1b[1minduced width:\x1b[0m        6"
    assert folded("peak memory, host:    2 B", 80, True) == "\x1b[1mpeak memory, host:\x1b[0m    2 B"
    assert folded("Age   new 0.5   old 0.5", 80, True) == "Age   new 0.5   old 0.5"
