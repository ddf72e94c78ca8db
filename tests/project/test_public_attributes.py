"""Attributes that users see in ``help`` and completion, against those that docstrings and the reference describe."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import re
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import elimina
from elimina import cp, dcop

PAGES = sorted((Path(__file__).parents[2] / "docs" / "reference").glob("*.md"))
PACKAGES = ("elimina", "elimina.cp", "elimina.dcop", "elimina.distributed", "elimina.io", "elimina.viz")
SETTINGS = (elimina.Options, elimina.FitOptions, cp.SearchOptions, dcop.AgentOptions, dcop.Network)
"""Classes that hold what a user sets, and nothing else."""

INTERNAL_MEMBERS = {
    "Plan": {
        "filled",
        "has_large_factors",
        "has_large_steps",
        "is_plain",
        "is_recorded",
        "itemsize",
        "levels",
        "on_host",
        "runs",
        "whole",
    }
}
"""Members that the reference leaves out, but that are public: the list may only shrink."""


def classes() -> dict[type, set[str] | None]:
    """Return the public classes, with the members that the reference shows; None: it shows all."""
    shown: dict[type, set[str] | None] = {}
    for page in PAGES:
        for name, options in re.findall(
            r"^::: ([\w.]+)\n((?:    .*\n)*)", page.read_text("utf-8") + "\n", re.MULTILINE
        ):
            try:
                found = pydoc.locate(name)
            except pydoc.ErrorDuringImport:  # an adapter of a package that is not installed
                continue
            if inspect.isclass(found):
                members = re.search(r"members: (.*)", options)
                shown[found] = None if members is None else set(re.findall(r"\w+", members[1])) - {"false"}
    for package in map(importlib.import_module, PACKAGES):
        for name in package.__all__:
            if inspect.isclass(found := getattr(package, name)):
                shown.setdefault(found, None)
    return shown


def own_classes(kind: type) -> list[type]:
    return [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "elimina"]


def described(kind: type) -> set[str]:
    """Return the names in the sections ``Attributes`` of a class and its bases."""
    docs = [inspect.cleandoc(base.__doc__ or "").partition("\nAttributes:\n")[2] for base in own_classes(kind)]
    sections = [re.match(r"(?:    .*\n?|\n)*", doc) for doc in docs]
    return {name for section in sections if section for name in re.findall(r"^    (\w+): \S", section[0], re.MULTILINE)}


def members(kind: type) -> set[str]:
    return {name for base in own_classes(kind) for name in vars(base) if not name.startswith("_")} - described(kind)


@pytest.mark.parametrize("kind", SETTINGS, ids=lambda kind: kind.__name__)
def test_settings_are_plain_records(kind: type) -> None:
    """Completion shows the fields of the record, each of them described, and nothing else."""
    assert is_dataclass(kind)
    names = {field.name for field in fields(kind)}
    assert described(kind) == names
    assert {name for name in dir(kind()) if not name.startswith("_")} == names


def test_public_members_are_in_the_reference() -> None:
    shown = classes()
    assert len(shown) > 50
    left_out = {kind.__name__: members(kind) - names for kind, names in shown.items() if names is not None}
    assert {name: names for name, names in left_out.items() if names} == INTERNAL_MEMBERS


def test_public_members_have_a_docstring() -> None:
    without = [
        f"{kind.__qualname__}.{name}"
        for kind in classes()
        for name in sorted(members(kind))
        if callable(member := inspect.getattr_static(kind, name)) or isinstance(member, property | classmethod)
        if not inspect.getdoc(member)
    ]
    assert not without
