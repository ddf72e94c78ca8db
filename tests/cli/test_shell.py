"""Service for shells and scripts: completion, plans as JSON, output without colours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

import elimina as package
from tests.cli.test_sources import EXAMPLES, run


def test_plans_as_json():
    model = EXAMPLES / "radio.wcsp"
    done = run("plan", model, "--json")
    found = json.loads(done.stdout)
    plan = package.plan(model)
    assert done.stdout.count(b"\n") == 1
    assert (found["induced_width"], found["largest_table"], found["fits"]) == (plan.width, plan.largest_table, True)
    sliced = package.plan(model, memory="500KB", options=package.Options(slices=10**6))
    assert sliced.slicing is None or json.loads(sliced.to_json())["slices"] == sliced.slicing.number
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


def test_output_has_no_colours():
    for arguments in (["--help"], ["solve", EXAMPLES / "radio.wcsp"], ["plan", EXAMPLES / "radio.wcsp"]):
        assert b"\x1b" not in run(*arguments).stdout
