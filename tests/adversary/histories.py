"""Sequences of evidence and queries for junction trees of larger models, against contraction."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from typing import Any

from tests.adversary import trees
from tests.adversary.case import Case, Setting
from tests.adversary.constructed import smaller_parameters
from tests.adversary.families import FAMILIES, instance_of
from tests.adversary.mixed import make_sketch
from tests.adversary.sketches import build, oracle_of, smaller_models, text
from tests.adversary.table_oracle import TableOracle

DRAWN_FAMILIES = ("strip", "components", "hidden chain", "colouring", "ising")

LARGEST_COUNT = 40
"""Variables of a family's instance: the oracle takes a contraction for each posterior."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random session."""
    options: dict[str, Any] = {"device": setting.device, "threads": rng.choice([1, 1, 2]), "order_seconds": 0.01}
    if rng.random() < 0.3:
        options |= {"memory": int(10 ** rng.uniform(4.5, 8.5)), "exact": True}
    if rng.random() < 0.2:
        options["order"] = rng.choice(["min-fill", "min-weight"])
    if rng.random() < 0.6:
        spec = make_sketch(rng, ("probability",))
        return {"parameters": None, "model": spec, "options": options, "calls": trees.make_calls(rng, spec)}
    while True:
        family = rng.choice(DRAWN_FAMILIES)
        parameters = {"family": family, **FAMILIES[family][0](rng), "seed": rng.randrange(10**6)}
        if "sense" in parameters:
            parameters["sense"] = "probability"
        spec = instance_of(parameters).spec
        if len(spec["variables"]) <= LARGEST_COUNT:
            return {"parameters": parameters, "model": spec, "options": options, "calls": trees.make_calls(rng, spec)}


def check(case: Case) -> None:
    """Run a session."""
    if case["parameters"] is None:
        trees.run_session(case, build(case["model"]), functools.partial(oracle_of, case["model"]))
        return
    instance = instance_of(case["parameters"])
    trees.run_session(case, instance.model(), functools.partial(TableOracle, instance.spec, instance.tables, False))


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler sessions."""
    if case["parameters"] is None:
        yield from trees.simpler_sessions(case, smaller_models)
        return
    yield from trees.simpler_sessions(case, lambda spec: iter(()))
    for parameters in smaller_parameters(case["parameters"]):
        spec = instance_of(parameters).spec
        if (
            len(spec["variables"]) == len(case["model"]["variables"])
            and spec["variables"] == case["model"]["variables"]
        ):
            yield {**case, "parameters": parameters, "model": spec}


def script(case: Case) -> str:
    """Return a program that makes the calls."""
    if case["parameters"] is None:
        return trees.program(case, text(case["model"]))
    lines = [
        "from tests.adversary.families import instance_of",
        f"model = instance_of({case['parameters']!r}).model()",
    ]
    return trees.program(case, lines)
