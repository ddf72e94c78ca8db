"""Models of small and large domains and random options for ``solve``, against contraction in an order of its own.

Scopes are permuted and overlap in three and more variables, so that buckets of every layout of axes occur.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from tests.adversary import solving
from tests.adversary.case import Case, Setting
from tests.adversary.evidence import make_evidence, observed_of, weights_of
from tests.adversary.models import Spec
from tests.adversary.options import make_options
from tests.adversary.sketches import (
    COSTS,
    WEIGHTS,
    build,
    draw_factor,
    is_affordable,
    oracle_of,
    smaller_models,
    text,
)

SIZES = (1, 2, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 16, 17, 40, 40, 64, 300, 300)
"""Sizes of domains, and how often each is drawn."""

LARGEST_TABLE = 200_000
"""Cells of a factor."""

LARGEST_BUCKET = 2_000_000
"""Cells of a bucket of the oracle."""

LARGEST_JOINT = 30_000_000
"""Assignments of a model up to which any order of elimination is affordable."""

LIMITED_SECONDS = 3.0
"""Time limit of calls with little memory: slices may take any time."""

LARGEST_QUERY = 3_000
"""Joint values of the variables that are maximised while others are summed out."""

MEMORY_DIGITS = (3.0, 8.5)
"""Digits of a memory limit, in bytes."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random call."""
    spec = make_sketch(rng)
    names = range(len(spec["variables"]))
    if spec["sense"] == "probability":
        task = rng.choice(["pr", "pr", "mar", "mar", "mar", "mpe", "mmap", "count"])
    else:
        task = rng.choice(["mpe", "mpe", "mpe", "count"])
    query = None
    if task == "mmap" or (task == "mar" and rng.random() < 0.3):
        query = rng.sample(names, rng.randint(1, min(3, len(names))))
    if task == "mmap" and not _is_small_query(spec, query or []):
        task, query = "mar", None
    evidence = make_evidence(rng, spec, soft=spec["sense"] == "probability" and task != "count")
    options = {"device": setting.device, "threads": rng.choice([1, 1, 2]), "order_seconds": 0.01}
    if rng.random() < 0.4:
        options = make_options(rng, spec, task, setting.device, MEMORY_DIGITS)
    if "memory" in options:
        options.setdefault("time_limit", LIMITED_SECONDS)
    if math.prod(size for _, size, _ in spec["variables"]) > LARGEST_JOINT:
        options.pop("order", None)
    elif rng.random() < 0.2:
        options["order"] = rng.choice([rng.sample(names, len(names)), order_by_tables(rng, spec)])
    return {"model": spec, "task": task, "evidence": evidence, "query": query, "options": options}


def order_by_tables(rng: random.Random, spec: Spec) -> list[int]:
    """Return an order that begins with a variable of the most tables, and goes on table by table."""
    factors = [factor["scope"] for factor in spec["factors"]]
    names = list(range(len(spec["variables"])))
    rng.shuffle(names)
    first = max(names, key=lambda v: sum(v in scope for scope in factors))
    order = [first]
    for scope in rng.sample(factors, len(factors)):
        order += [v for v in rng.sample(scope, len(scope)) if v not in order]
    return order + [v for v in names if v not in order]


def make_sketch(
    rng: random.Random, senses: tuple[str, ...] = ("probability", "probability", "min-cost", "max-cost")
) -> Spec:
    """Draw a model that contraction can answer in a few milliseconds."""
    sense = rng.choice(senses)
    sizes = [rng.choice(SIZES) for _ in range(rng.randint(2, 8))]
    spec: Spec = {
        "sense": sense,
        "variables": [[f"x{v}", size, _states(rng, size)] for v, size in enumerate(sizes)],
        "factors": [],
        "constant": 0,
        "upper_bound": None,
        "children": None,
    }
    if sense == "probability" and rng.random() < 0.25:
        _fill_network(rng, spec, sizes)
        return spec
    style = rng.choice(WEIGHTS if sense == "probability" else COSTS)
    forbidden = 0.0 if sense == "probability" else rng.choice([0.0, 0.0, 0.1, 0.5])
    core = rng.sample(range(len(sizes)), min(len(sizes), rng.randint(2, 5)))
    for _ in range(rng.randint(2, len(sizes) + 3)):
        scope = _scope(rng, sizes, core)
        factor = draw_factor(rng, scope, style, forbidden)
        grown = {**spec, "factors": [*spec["factors"], factor]}
        if math.prod(sizes[v] for v in scope) <= LARGEST_TABLE and is_affordable(grown, LARGEST_BUCKET):
            spec = grown
    if rng.random() < 0.2:
        spec["constant"] = rng.choice([-2.5, 700.0] if sense == "probability" or style == "float" else [3, -(10**9)])
    return spec


def largest_table(spec: Spec) -> int:
    """Return the cells of the largest table."""
    return max((math.prod(spec["variables"][v][1] for v in factor["scope"]) for factor in spec["factors"]), default=0)


def _states(rng: random.Random, size: int) -> list[str] | None:
    return [f"{'abc'[x % 3]}{size - x}" for x in range(size)] if size <= 5 and rng.random() < 0.2 else None


def _scope(rng: random.Random, sizes: list[int], core: list[int]) -> list[int]:
    everything = range(len(sizes))
    if rng.random() < 0.4:
        return rng.sample(everything, min(len(sizes), rng.choice([1, 2, 2, 3])))
    scope = rng.sample(core, rng.randint(1, len(core)))
    others = [v for v in everything if v not in scope]
    scope += rng.sample(others, min(len(others), rng.choice([0, 1, 1, 2])))
    rng.shuffle(scope)
    return scope


def _fill_network(rng: random.Random, spec: Spec, sizes: list[int]) -> None:
    numbers = list(range(len(sizes)))
    rng.shuffle(numbers)
    spec["children"] = []
    style, share = rng.choice(["row", "row", "zeros"]), 0.0
    for place, child in enumerate(numbers):
        scope = [*rng.sample(numbers[:place], min(place, rng.choice([0, 1, 2, 2, 3]))), child]
        rng.shuffle(scope)
        factor = {**draw_factor(rng, scope, style, share), "child": child}
        grown = {**spec, "factors": [*spec["factors"], factor]}
        if math.prod(sizes[v] for v in scope) > LARGEST_TABLE or not is_affordable(grown, LARGEST_BUCKET):
            factor = {**factor, "scope": [child]}
        spec["factors"].append(factor)
        spec["children"].append(child)


def _is_small_query(spec: Spec, query: list[int]) -> bool:
    cells = math.prod(spec["variables"][v][1] for v in query)
    return cells <= LARGEST_QUERY and is_affordable(spec, LARGEST_BUCKET, tuple(query))


def check(case: Case) -> None:
    """Solve and compare."""
    solving.check_call(case, build(case["model"]), oracle_of(case["model"], observed_of(case), weights_of(case)))


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler calls."""
    for simpler in solving.simpler_calls(case, smaller_models):
        query = simpler["query"] if simpler["task"] == "mmap" else None
        if is_affordable(simpler["model"], LARGEST_BUCKET) and (
            query is None or _is_small_query(simpler["model"], query)
        ):
            yield simpler


def script(case: Case) -> str:
    """Return a program that makes the call."""
    oracle = oracle_of(case["model"], observed_of(case), weights_of(case))
    return solving.program(case, text(case["model"]), oracle)
