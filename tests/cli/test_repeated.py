"""Options that are given more than once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from elimina.cli.commands import commands
from tests.cli.conftest import EXAMPLES
from tests.cli.test_help import leaves


@pytest.mark.parametrize(
    ("arguments", "option", "one", "other"),
    [
        (["--trace", "a.jsonl", "--trace", "b.jsonl"], "--trace", "a.jsonl", "b.jsonl"),
        (["-o", "a.txt", "--output", "b.txt"], "-o", "a.txt", "b.txt"),
        (["--threads", 1, "--threads=2"], "--threads", "1", "2"),
        (["--device", "cpu", "--devices", "cuda"], "--device", "cpu", "cuda"),
    ],
)
def test_different_values_are_an_error_that_names_both(elimina, radio, arguments, option, one, other):
    ran = elimina("solve", radio, *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f"Error: {option} is given twice, as {one!r} and as {other!r}; give it once\n")
    assert not list(Path().iterdir())


def test_equal_values_and_flags_may_be_repeated(elimina, radio):
    ran = elimina("solve", radio, "--json", "--json", "--threads", 1, "--threads", 1, "-v", "-v")
    assert (ran.code, json.loads(ran.out)["value"]) == (0, 1352)


def options_of_one_value():
    for path, command in leaves(commands):
        for one in command.params:
            if isinstance(one, click.Option) and not (one.is_flag or one.multiple):
                yield pytest.param(path, one.opts[0], id=" ".join((*path, one.opts[0])))


@pytest.mark.parametrize(("path", "option"), list(options_of_one_value()))
def test_no_command_takes_the_last_of_several_values(elimina, path, option):
    ran = elimina(*path, option, "one", option, "other")
    assert ran.code == 2
    assert f"{option} is given twice, as 'one' and as 'other'" in ran.err


@pytest.mark.parametrize("option", ["-n", "-r", "-t", "-p"])
def test_flatzinc_takes_a_value_once(option):
    command = [sys.executable, "-c", "from elimina.cli.flatzinc import main; main()", str(EXAMPLES / "queens.fzn")]
    ran = subprocess.run([*command, option, "1", option, "2"], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.endswith(f"error: {option} is given twice, as 1 and as 2; give it once\n")
    again = subprocess.run([*command, option, "9999", option, "9999"] if option != "-p" else [*command, "-p1", "-p1"])
    assert again.returncode == 0
