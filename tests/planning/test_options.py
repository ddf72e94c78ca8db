"""The table of options, and checks of options: once for plain values, each time for what may change."""

from __future__ import annotations

import gc
import inspect
import pickle
import random
import re
import weakref
from dataclasses import fields

import click
import pytest

from elimina import InputError, JunctionTree, Model, Options, solve
from elimina.cli.commands import commands
from elimina.planning import option_checks
from elimina.planning.option_checks import check_options, plan_options
from elimina.planning.option_table import OPTIONS
from elimina.problem.tasks import NAMES, described, task_of
from tests import option_page

COSTS = Model.from_arrays([2, 3], [([0, 1], [[1, 2, 3], [3, 2, 1]])])
SUMS = Model.from_arrays([2], [([0], [0.25, 0.75])], sense="probability")
OTHER_VALUES = {
    "device": "cpu",
    "memory": 1 << 30,
    "order": "min-fill",
    "order_seconds": 1.0,
    "seed": 3,
    "threads": 1,
    "dtype": "float64",
    "slices": 4,
    "k": 3,
    "tables": "sparse",
    "ibound": 2,
    "shift": "none",
    "partition": "scope",
    "method": "eliminate",
    "exact": True,
    "upper_bound": 9,
    "hint": {0: 1},
    "gap": 0.5,
    "on_plan": print,
    "on_bounds": print,
    "progress": print,
}
"""A value of each option that is not its default; paths are left to the tests."""


def parameters_of(command):
    return {parameter.name: parameter for parameter in command.params}


def test_the_class_has_the_options_of_the_table():
    assert {record.name: record.default for record in OPTIONS} == {
        field.name: field.default for field in fields(Options)
    }
    assert len({record.name for record in OPTIONS}) == len(OPTIONS)


def test_the_class_describes_each_option():
    section = inspect.getdoc(Options).partition("Attributes:")[2]
    assert re.findall(r"^    (\w+): \S", section, re.MULTILINE) == [field.name for field in fields(Options)]


def test_commands_have_the_options_of_the_table():
    for command, scopes in (("plan", {"plan"}), ("solve", {"plan", "run"})):
        parameters = parameters_of(commands.get_command(click.Context(commands), command))
        for record in OPTIONS:
            assert (record.name in parameters) == (record.scope in scopes and bool(record.command_line)), record.name
            if record.name in parameters:
                parameter = parameters[record.name]
                assert (tuple(parameter.opts), parameter.group) == (record.command_line, record.group)
                assert parameter.help.startswith(record.help)


def test_the_page_shows_the_table():
    assert option_page.PAGE.read_text("utf-8") == option_page.page(), "run python -m tests.option_page"


def test_options_that_are_printed_and_pickled():
    options = Options(seed=7, method="search", gap="1%")
    assert repr(options) == "Options(seed=7, method='search', gap='1%')"
    assert pickle.loads(pickle.dumps(options)) == options
    assert eval(repr(options), {"Options": Options}) == options


def test_a_plan_keeps_the_options_of_a_plan_alone(tmp_path):
    values = {**OTHER_VALUES, "scratch": tmp_path, "checkpoint": tmp_path}
    assert values.keys() == {field.name for field in fields(Options)}
    planning = plan_options(Options(**values))
    for record in OPTIONS:
        expected = values[record.name] if record.scope == "plan" else record.default
        assert getattr(planning, record.name) is expected


def test_the_order_of_the_table_has_no_meaning(monkeypatch):
    options = Options(memory="1MiB", gap="50%", ibound=2, method="mbe", threads=2)
    expected = plan_options(options), check_options(options, "mpe", is_run=True)
    shuffled = random.Random(1).sample(OPTIONS, len(OPTIONS))
    monkeypatch.setattr(option_checks, "OPTIONS", tuple(shuffled))
    option_checks._checked_before.cache_clear()
    assert (plan_options(options), check_options(options, "mpe", is_run=True)) == expected


@pytest.mark.parametrize("task", sorted(set(map(task_of, NAMES))))
@pytest.mark.parametrize("record", [record for record in OPTIONS if record.tasks], ids=lambda record: record.name)
def test_options_of_some_tasks(task, record, tmp_path):
    method = {"method": record.methods[0]} if record.methods else {}
    options = Options(**{record.name: OTHER_VALUES.get(record.name, tmp_path), **method})
    if record.tasks(described(task)):
        assert check_options(options, task)
    else:
        with pytest.raises(InputError, match=f"{record.noun} is for the tasks? .*: leave it out for {task}$"):
            check_options(options, task)


@pytest.mark.parametrize("record", OPTIONS, ids=lambda record: record.name)
def test_options_of_some_algorithms(record, tmp_path):
    options = Options(**{record.name: OTHER_VALUES.get(record.name, tmp_path)})
    for engine in ("a junction tree", "elimination on a cluster", "search on a cluster"):
        if engine in record.engines:
            assert check_options(options, engine=engine)
        else:
            with pytest.raises(InputError, match=f"^{engine} does not take the option {record.name}; it takes device,"):
                check_options(options, engine=engine)
    if "a junction tree" in record.engines:
        assert JunctionTree(SUMS, options=options).marginals()
    else:
        with pytest.raises(InputError, match="a junction tree does not take"):
            JunctionTree(SUMS, options=options)


def test_flags_read_the_values_that_the_class_takes():
    """Each word or number that a flag takes passes the check of the class."""
    command = commands.get_command(click.Context(commands), "solve")
    context, parameters = click.Context(command), parameters_of(command)
    for record in OPTIONS:
        if record.command_line and not record.values.is_repeatable:
            value = OTHER_VALUES.get(record.name, "folder")
            parameter = parameters[record.name]
            read = parameter.type_cast_value(context, [str(value)] if parameter.multiple else str(value))
            assert record.values.check(record.name, read) == value
            assert record.values.check(record.name, record.default) == record.default


def test_a_method_that_cannot_answer_is_the_culprit():
    with pytest.raises(InputError, match="the method mbe cannot answer the task count"):
        solve(COSTS, "count", options=Options(method="mbe"))


def test_plain_options_are_checked_once():
    options = Options(seed=7, threads=2)
    assert check_options(options, "pr", is_run=True) is check_options(Options(seed=7, threads=2), "pr", is_run=True)
    with pytest.raises(TypeError, match="threads is True"):
        check_options(Options(seed=7, threads=True), "pr", is_run=True)
    with pytest.raises(InputError, match="an upper bound is for the task mpe"):
        check_options(Options(upper_bound=3), "pr")


def test_checked_options_keep_no_function():
    def listener(bounds):
        raise AssertionError

    alive = weakref.ref(listener)
    assert check_options(Options(on_bounds=listener), "mpe").on_bounds is listener
    del listener
    gc.collect()
    assert alive() is None


def test_a_scratch_directory_is_looked_up_each_time(tmp_path):
    options = Options(scratch=str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    assert check_options(options, "mpe").scratch == str(tmp_path / "own")
    (tmp_path / "own").rmdir()
    with pytest.raises(InputError, match="scratch"):
        check_options(options, "mpe")
