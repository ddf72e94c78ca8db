"""Signatures of what users call: at most eight parameters (``solve``: nine), the rest in ``Options``."""

import importlib
import inspect
import pydoc
import re
from pathlib import Path

import pytest

import elimina
from elimina import InputError, Model, Options
from tests import calls

ROOT = Path(__file__).parents[2]
MOST = 8
LONGEST = {".solve": 9}
"""Its task ``kbest`` asks for a number, which users write beside the task: ``solve(model, "kbest", k=10)``."""
MODULES = ("elimina", "elimina.distributed", "elimina.dcop", "elimina.cp", "elimina.io", "elimina.viz")
DATA = {"AgentOptions", "FitOptions", "Network", "Options", "Plan", "Result", "SearchOptions"}
"""Classes that are data: each field may be given."""

COSTS = Model.from_arrays([2, 3], [([0, 1], [[1, 2, 3], [3, 2, 1]])])
SUMS = Model.from_arrays([2], [([0], [0.25, 0.75])], sense="probability")


def functions():
    for module in map(importlib.import_module, MODULES):
        prefix = module.__name__.partition(".")[2]
        for name in getattr(module, "__all__", vars(module)):
            found = getattr(module, name)
            if name.startswith("_") or not getattr(found, "__module__", "").startswith("elimina"):
                continue
            if inspect.isclass(found):
                if name not in DATA and not issubclass(found, Exception):
                    yield f"{prefix}.{name}()", found
                for method, function in inspect.getmembers(found, inspect.isfunction):
                    if not method.startswith("_"):
                        yield f"{prefix}.{name}.{method}", function
            elif inspect.isfunction(found):
                yield f"{prefix}.{name}", found


def test_public_functions_have_at_most_eight_parameters():
    counts = {}
    for name, function in functions():
        counts[name] = len([p for p in inspect.signature(function).parameters if p != "self"])
    assert len(counts) > 100
    assert {name: count for name, count in counts.items() if count > MOST} == LONGEST


def documented():
    """Yield the names and objects of the reference, and of the public modules."""
    for module in map(importlib.import_module, MODULES):
        yield from ((f"{module.__name__}.{name}", getattr(module, name)) for name in getattr(module, "__all__", ()))
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        names = re.findall(r"^::: ([\w.]+)$", page.read_text(), re.MULTILINE)
        for name in names:
            try:
                yield name, pydoc.locate(name)
            except pydoc.ErrorDuringImport as error:
                # An adapter says with this error which package it needs.
                if error.exc is not InputError:
                    raise


def test_signatures_show_types_as_they_are_written():
    """Named tuples have classes of ``typing`` in place of the text of annotations, and ``help`` prints their names."""
    classes = {name: found for name, found in documented() if inspect.isclass(found)}
    assert len(classes) > 50
    for name, found in classes.items():
        assert issubclass(found, Exception) or "ForwardRef" not in str(inspect.signature(found)), name


def test_arguments_come_before_options():
    options = Options(device="cuda", memory="1KiB", order="min-fill")
    plan = elimina.plan(COSTS, device="cpu", memory=1 << 20, options=options)
    assert (plan.device, plan.memory_limit) == ("cpu", 1 << 20)
    assert elimina.plan(COSTS, options=Options(device="cpu", memory="2KiB")).memory_limit == 2048


def test_options_are_of_their_class():
    for call in (elimina.plan, elimina.solve, elimina.JunctionTree):
        with pytest.raises(TypeError, match=r"options is \{'seed': 1\} \(dict\); it takes elimina.Options"):
            call(SUMS, options={"seed": 1})


def test_a_junction_tree_takes_few_options():
    with pytest.raises(InputError, match="a junction tree does not take the option slices; it takes device, memory, o"):
        elimina.JunctionTree(SUMS, options=Options(slices=4))


def test_a_plan_ignores_options_of_a_run():
    given = {"device": "cpu", "memory": 1 << 20}
    assert calls.plan(COSTS, method="search", gap=0.5, upper_bound=3, **given) == elimina.plan(COSTS, **given)


@pytest.mark.parametrize(
    ("task", "given", "problem"),
    [
        ("count", {"method": "search"}, "method search cannot answer the task count: use auto"),
        ("pr", {"upper_bound": 1}, "an upper bound is for the task mpe: leave it out for pr"),
        ("count", {"gap": 0.1}, "whose answers may be bounds: leave it out for count"),
        ("mpe", {"method": "eliminate", "upper_bound": 1}, "an upper bound is for the methods auto, filter and"),
        ("mpe", {"method": "search", "checkpoint": "x"}, "a checkpoint is for the methods auto and eliminate, not"),
        ("mar", {"checkpoint": "x"}, "a checkpoint is for the tasks mpe, pr and count: leave it out for mar"),
        ("mpe", {"ibound": 2}, "an i-bound is for the methods mbe and search, not auto: choose one of them"),
        (
            "count",
            {"ibound": 2, "method": "auto"},
            "an i-bound is for the tasks mpe, pr and mmap: leave it out for count",
        ),
        (
            "mpe",
            {"ibound": 2, "method": "mbe", "tables": "sparse"},
            "a scratch directory or sparse tables: leave these out",
        ),
        ("pr", {"ibound": 2, "method": "mbe", "shift": "tables"}, "shift tables is for the task mpe: use none"),
        ("pr", {"partition": "content"}, "partition content is for the task mpe: use scope"),
    ],
)
def test_options_that_do_not_go_together(task, given, problem):
    with pytest.raises(InputError, match=problem):
        elimina.solve(SUMS, task, options=Options(**given))
