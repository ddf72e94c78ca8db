"""Sources of models: files of distributed problems, and standard input."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(*arguments, given=b""):
    command = [sys.executable, "-m", "elimina", *map(str, arguments)]
    return subprocess.run(command, input=given, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize("command", ["solve", "plan"])
def test_distributed_problems(command, elimina):
    pytest.importorskip("yaml")
    assert elimina(command, EXAMPLES / "meetings.yaml").code == 0


def test_distributed_problems_have_the_same_optimum(elimina):
    pytest.importorskip("yaml")
    agents = json.loads(elimina("dcop", EXAMPLES / "meetings.yaml", "--json").out)
    assert json.loads(elimina("solve", EXAMPLES / "meetings.yaml", "--json").out)["value"] == agents["value"]


def test_standard_input(tmp_path):
    data = (EXAMPLES / "radio.wcsp").read_bytes()
    expected = json.loads(run("solve", EXAMPLES / "radio.wcsp", "--json").stdout)["value"]
    assert json.loads(run("solve", "-", "--from", "wcsp", "--json", given=data).stdout)["value"] == expected
    packed = run("plan", "-", "--from", "wcsp.gz", given=gzip.compress(data))
    assert b"induced width" in packed.stdout
    run("convert", "-", tmp_path / "x.uai", "--from", "wcsp", given=data)
    assert (tmp_path / "x.uai").exists()
    assert json.loads(run("dcop", "-", "--from", "wcsp", "--json", given=data).stdout)["value"] == expected


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["solve", "-"], "standard input has no suffix: name its format by --from, such as --from wcsp"),
        (["cp", "-"], "standard input has no suffix: name its format by --from, such as --from fzn"),
        (["solve", "x.wcsp", "--from", "wcsp"], "or write - --from wcsp < x.wcsp"),
        (["solve", "-", "--from", "docx"], "unknown suffix '.docx'"),
        (["plan", "-", "--from", "uai"], "elimina: standard input:1: expected MARKOV or BAYES"),
    ],
)
def test_errors(arguments, problem):
    done = run(*arguments, given=b"nothing")
    assert done.returncode == 1
    assert problem in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1
