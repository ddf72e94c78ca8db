"""Models of any size whose answers follow from how they are made, and random options for ``solve``."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from tests.adversary import answers, solving
from tests.adversary.case import Case, Setting
from tests.adversary.families import Instance, draw, instance_of
from tests.adversary.options import make_options, smaller_options

MEMORY_DIGITS = (4.5, 8.5)
"""Digits of a memory limit, in bytes."""

LIMITED_SECONDS = 3.0
"""Time limit of calls that may take any time: search, filtering, and what memory does not hold."""

SMALLEST = {
    "columns": 2,
    "height": 1,
    "domain": 2,
    "modulus": 2,
    "arity": 2,
    "components": 1,
    "variables": 2,
    "vertices": 3,
    "steps": 1,
}
"""Values down to which parameters shrink; others go down to 1."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random call."""
    parameters = draw(rng)
    instance = instance_of(parameters)
    task = rng.choice(instance.truth.tasks())
    options = {"device": setting.device, "threads": rng.choice([1, 1, 2]), "order_seconds": 0.01}
    if rng.random() < 0.6:
        options = make_options(rng, instance.spec, task, setting.device, MEMORY_DIGITS)
        for name in ("interrupt", "upper_bound", "order"):
            options.pop(name, None)
        if parameters["family"] == "relations":
            # Dense tables of relations may be larger than any memory, and checkpoints need them.
            if options.get("tables") == "dense":
                del options["tables"]
            if options.get("tables") != "sparse":
                options.pop("checkpoint", None)
        if "memory" in options or options.get("method") in ("search", "filter"):
            options.setdefault("time_limit", LIMITED_SECONDS)
    return {"parameters": parameters, "task": task, "options": options}


def call_of(case: Case, instance: Instance) -> Case:
    """Return the case as ``solving`` takes it."""
    evidence = [[v, "index", x] for v, x in sorted(instance.observed.items())]
    query = list(instance.query) if instance.query is not None and case["task"] == "mar" else None
    return {**case, "model": instance.spec, "evidence": evidence, "query": query}


def check(case: Case) -> None:
    """Solve and compare."""
    instance = instance_of(case["parameters"])
    solving.check_call(call_of(case, instance), instance.model(), instance.oracle())


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler calls."""
    for options in smaller_options(case["options"]):
        yield {**case, "options": options}
    for parameters in smaller_parameters(case["parameters"]):
        if case["task"] in instance_of(parameters).truth.tasks():
            yield {**case, "parameters": parameters}


def smaller_parameters(parameters: dict) -> Iterator[dict]:
    """Yield parameters of smaller instances."""
    for name, value in parameters.items():
        if isinstance(value, bool) or name == "seed":
            if value is True:
                yield {**parameters, name: False}
        elif isinstance(value, int):
            least = SMALLEST.get(name, 1)
            for fewer in sorted({least, (least + value) // 2, value - 1}):
                if least <= fewer < value:
                    yield {**parameters, name: fewer}
        elif isinstance(value, float) and value:
            yield {**parameters, name: 0.0}


def script(case: Case) -> str:
    """Return a program that makes the call."""
    instance = instance_of(case["parameters"])
    options = "".join(f", {k}={v!r}" for k, v in case["options"].items() if k not in ("scratch", "checkpoint"))
    query = ", query=instance.query" if case["task"] == "mar" else ""
    folders = "".join(f", {name}=tempfile.mkdtemp()" for name in ("scratch", "checkpoint") if name in case["options"])
    return "\n".join(
        [
            *(["import tempfile"] if folders else []),
            "from tests.adversary.families import instance_of",
            "from tests.calls import solve",
            f"instance = instance_of({case['parameters']!r})",
            f"print(solve(instance.model(), {case['task']!r}, evidence=instance.observed{query}{options}{folders})"
            ".to_json())",
            f"# expected: {_expected(case, instance)}",
        ]
    )


def _expected(case: Case, instance: Instance) -> str:
    if case["task"] == "mar":
        return f"log10 Z {instance.oracle().log_sum() / math.log(10)!r}, marginals instance.truth.marginals"
    return answers.expected(call_of(case, instance), instance.oracle())
