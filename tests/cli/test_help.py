"""Help of the commands, names of the tasks, and the log of a run."""

from __future__ import annotations

import json
import re

import click
import pytest

import elimina as library
from elimina.cli.commands import commands
from elimina.problem.tasks import DESCRIPTIONS, NAMES
from tests.cli.conftest import EXAMPLES

_PUMP = EXAMPLES / "pump.bif"
_SCREEN = 45  # lines of a terminal


def leaves(command, path=()):
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    children = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [leaf for name, child in children for leaf in leaves(child, (*path, name))]


@pytest.mark.parametrize(("path", "command"), leaves(commands))
def test_help_fits_a_screen_and_help_all_shows_every_option(elimina, monkeypatch, path, command):
    monkeypatch.setenv("COLUMNS", "80")
    short = elimina(*path, "--help").out
    assert len(short.splitlines()) <= _SCREEN
    experts = [one.opts[0] for one in command.params if getattr(one, "group", None) == "expert"]
    if not experts:
        assert "--help-all" not in short
        return
    whole = elimina(*path, "--help-all").out
    for name in experts:
        assert f"\n  {name} " not in short, name
        assert f"\n  {name} " in whole, name


@pytest.mark.parametrize("path", [(), ("generate",), *(path for path, _ in leaves(commands))])
def test_every_command_knows_help_all(elimina, path):
    whole, short = elimina(*path, "--help-all"), elimina(*path, "--help")
    assert (whole.code, whole.err) == (0, "")
    assert set(short.out.splitlines()) <= set(whole.out.splitlines())


def test_shift_and_partition_are_expert_options(elimina):
    assert "--shift" not in elimina("solve", "--help").out
    assert "Expert options:\n" in elimina("solve", "--help-all").out


@pytest.mark.parametrize(
    ("alias", "task"), [(alias, task) for task in DESCRIPTIONS for alias in DESCRIPTIONS[task].aliases]
)
def test_other_names_of_tasks(elimina, alias, task):
    pump = library.read(_PUMP)
    result = library.solve(pump, alias, evidence={"Alarm": "on"})
    assert (result.task, result.status) == (task, library.solve(pump, task, evidence={"Alarm": "on"}).status)
    assert library.plan(pump, alias).task == task
    out = json.loads(elimina("solve", _PUMP, "--task", alias, "--evidence", "Alarm=on", "--json").out)
    assert out["task"] == task


def test_the_first_commands_of_the_help_are_those_that_a_newcomer_needs(elimina):
    names = re.findall(r"^  ([a-z-]+)  ", elimina("--help").out.partition("Commands:")[2], re.MULTILINE)
    assert names[:2] == ["solve", "plan"]
    assert names[-1] == "completion"


def test_help_lists_every_name_of_a_task(elimina):
    out = elimina("plan", "--help").out
    for name in NAMES:
        assert name in out


def test_the_log_names_plans_and_strategies(elimina):
    elimina("generate", "random", "-n", 60, "-d", 6, "--p1", 0.12, "--p2", 0.2, "a.wcsp")
    ran = elimina("solve", "a.wcsp", "--time-limit", 3, "--threads", 1, "-v")
    assert "elimina: next: filter for bounds, for 0.3 s (filtering works with these costs; " in ran.err
    assert "elimina: filter: started\nelimina: filter: ended after " in ran.err
    assert elimina("solve", "a.wcsp", "--time-limit", 1).err == ""
    assert "elimina: plan: width " in elimina("solve", _PUMP, "--task", "pr", "-v").err
