"""The interface of every kind of case."""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple, Protocol

Case = dict[str, Any]
"""Plain values: numbers, texts, lists and dictionaries of them, so that a case prints as what makes it again."""


class Defect(AssertionError):
    """A wrong answer, an exception that is not documented, or a broken promise."""


class Setting(NamedTuple):
    """Settings that all cases of a run share.

    Attributes:
        device: ``cpu`` or ``cuda``.
    """

    device: str = "cpu"


class Kind(Protocol):
    """A module that makes and checks one kind of cases."""

    def make(self, rng: random.Random, setting: Setting) -> Case:
        """Make a random case."""

    def check(self, case: Case) -> None:
        """Run a case; raise ``Defect`` (or let an exception pass) where an answer is wrong."""

    def smaller(self, case: Case) -> Iterator[Case]:
        """Yield simpler cases, the boldest cuts first."""

    def script(self, case: Case) -> str:
        """Return a short program that shows what happens."""


KINDS = {
    "solve": "solving",
    "mixed": "mixed",
    "products": "products",
    "thresholds": "thresholds",
    "constructed": "constructed",
    "slices": "slices",
    "rows": "rows",
    "huge": "huge",
    "wide": "wide",
    "domains": "large_domains",
    "tree": "trees",
    "histories": "histories",
    "dynamic": "dynamic",
    "metamorphic": "metamorphic",
    "interrupts": "interrupts",
    "budgets": "budgets",
    "cp": "constraints",
    "flatzinc": "flatzinc",
    "xcsp": "xcsp",
    "dcop": "agents",
    "tsp": "tours",
    "files": "files",
    "dialects": "dialects",
    "frames": "frames",
    "keywords": "keywords",
    "cli": "commands",
    "misuse": "misuse",
    "successions": "successions",
    "peers": "peers",
    "orders": "orders",
    "steps": "steps",
}
"""Kind -> its module."""


def kind_of(name: str) -> Kind:
    """Return the module of a kind."""
    return import_module(f"tests.adversary.{KINDS[name]}")  # type: ignore[return-value]


def make(name: str, seed: int, setting: Setting) -> Case:
    """Return the case that a seed stands for."""
    return kind_of(name).make(random.Random(f"{name} {seed}"), setting)
