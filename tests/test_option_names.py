"""Options in messages: arguments in Python, flags on the command line."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import elimina
from elimina import dcop
from elimina.cli import main
from elimina.cli.commands import commands
from elimina.errors import InputError, MemoryLimitError
from elimina.learning import FitOptions
from elimina.option_names import FLAGS, option, use_flags, uses_flags

SOURCE = Path(elimina.__file__).parent
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
OF_OTHER_PROGRAMS = {"--nthreads", "--resources", "--solver", "--reset", "--std"}
"""Flags of Dask, MiniZinc, NVRTC and ``elimina calibrate``, which both doors name."""

COMMAND = re.compile(r"(?<![-.\w])elimina (?:convert|cp|dcop|decide|fit|generate|plan|plot|report|sample|solve|tsp)\b")


def _messages(path: Path) -> list[tuple[int, str]]:
    """Return the line and text of each string that is not a docstring, nor for one interface only."""
    tree = ast.parse(path.read_text("utf-8"))
    choices = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    chosen = {id(part) for node in choices if getattr(node.func, "id", "") == "by_interface" for part in ast.walk(node)}
    docstrings = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(body := getattr(node, "body", None), list)
        for statement in body
        if isinstance(statement, ast.Expr)
    }
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings)
    return [(node.lineno, node.value) for node in constants if isinstance(node.value, str) and id(node) not in chosen]


def test_messages_outside_the_command_line_name_neither_flags_nor_commands():
    """Callers in Python cannot follow them. ``tests/cli/conftest.py`` checks that commands do not advise calls."""
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {advice}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.parent.name != "cli" and path.name not in ("option_names.py", "option_table.py")
        for line, text in _messages(path)
        for advice in (*FLAG.findall(text), *COMMAND.findall(text))
        if advice not in OF_OTHER_PROGRAMS
    ]
    assert found == []


def _named() -> dict[str, str]:
    """Return each option that a message names, and one place."""
    return {
        node.args[0].value: f"{path.relative_to(SOURCE)}:{node.lineno}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.parent.name != "cli"
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "option"
        if isinstance(node.args[0], ast.Constant)
    }


def _flags(command: click.Command) -> Iterator[str]:
    """Yield the flags of a command and of those within it."""
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            yield from parameter.opts
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _flags(inner)


def test_named_options_exist_at_both_doors():
    functions = [elimina.solve, elimina.sample, elimina.read, elimina.JunctionTree.batch, elimina.fit, dcop.solve]
    functions += [function for _, function in inspect.getmembers(elimina.generate, inspect.isfunction)]
    taken = {name for function in functions for name in inspect.signature(function).parameters}
    for kind in (elimina.Options, dcop.AgentOptions, FitOptions):
        taken.update(field.name for field in dataclasses.fields(kind))
    flags = set(_flags(commands))
    named = _named()
    assert len(named) > 20
    use_flags(True)
    try:
        spelled = {name: option(name, False) if name == "check" else option(name) for name in named}
    finally:
        use_flags(False)
    assert {place for name, place in named.items() if name not in taken} == set()
    assert {named[name] for name, flag in spelled.items() if flag not in flags} == set()
    assert FLAGS.keys() <= named.keys()


@pytest.mark.parametrize(
    ("value", "argument", "flag"),
    [
        (None, "order_seconds", "--order-time"),
        (3, "order_seconds=3", "--order-time 3"),
        ("500MB", 'order_seconds="500MB"', "--order-time 500MB"),
        (["A", "B"], 'order_seconds=["A", "B"]', "--order-time A,B"),
        (True, "order_seconds=True", "--order-time"),
        (False, "order_seconds=False", "--no-order-time"),
    ],
)
def test_options_are_spelled_for_their_door(value, argument, flag):
    assert option("order_seconds", value) == argument
    use_flags(True)
    try:
        assert option("order_seconds", value) == flag
    finally:
        use_flags(False)


def test_advice_is_right_for_its_door(tmp_path, capsys):
    model = elimina.generate.grid_model(4, 3, 0.1)
    problem = dcop.Problem.from_model(model)
    with pytest.raises(InputError, match=r'such as memory="500MB"$'):
        dcop.solve(problem, "mb-dpop")
    with pytest.raises(InputError, match=r"such as ibound=3$"):
        dcop.solve(problem, "adpop")
    with pytest.raises(MemoryLimitError, match=r'more memory \(memory\).* \(method="mbe"\)'):
        elimina.solve(
            elimina.generate.grid_model(8, 4, 0.1),
            memory="20KiB",
            options=elimina.Options(method="eliminate", slices="never"),
        )
    path = tmp_path / "agents.json"
    dcop.write(problem, path)
    with pytest.raises(SystemExit):
        main(["dcop", str(path), "--algo", "mb-dpop"])
    assert "such as --memory 500MB\n" in capsys.readouterr().err
    # A command within a program gives the door back.
    assert not uses_flags()


def test_a_process_without_cupy_is_advised_of_the_cpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(elimina.DeviceError, match=r"or use the CPU$"):
        elimina.solve(elimina.generate.grid_model(3, 2, 0.1), device="cuda")
