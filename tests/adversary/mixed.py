"""Models of small and large domains and random options for ``solve``, against contraction in an order of its own.

Scopes are permuted and overlap in three and more variables, so that buckets of every layout of axes occur.
"""

from __future__ import annotations

import itertools
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

SMALLEST_PRODUCT = 20_000
"""Assignments of two tables that share a large domain: fewer take no path of their own."""

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
        options["order"] = rng.choice([rng.sample(names, len(names)), _by_tables(rng, spec)])
    return {"model": spec, "task": task, "evidence": evidence, "query": query, "options": options}


def _by_tables(rng: random.Random, spec: Spec) -> list[int]:
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
    if sense == "probability" and rng.random() < 0.4:
        while True:
            spec = rng.choice([_product, _large_pairs])(rng)
            joint = math.prod(size for _, size, _ in spec["variables"])
            is_small = is_affordable(spec, LARGEST_BUCKET) and _largest_table(spec) <= LARGEST_TABLE
            if is_small and joint >= SMALLEST_PRODUCT:
                return spec
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


def _group(rng: random.Random, cells: int) -> list[int]:
    """Draw sizes of domains whose product is at least a number."""
    sizes: list[int] = []
    while math.prod(sizes) < cells:
        sizes.append(rng.choice([1, 2, 2, 2, 3, 4, 4, 5, 6, 8, 40]))
    return sizes


def _largest_table(spec: Spec) -> int:
    return max((math.prod(spec["variables"][v][1] for v in factor["scope"]) for factor in spec["factors"]), default=0)


def _product(rng: random.Random) -> Spec:
    """Draw tables that share a large domain, over groups of small ones that further tables tie in another order."""
    shared = rng.choice([4, 16, 17, 40, 64, 100, 300])
    groups = [_group(rng, rng.choice([4, 12, 32, 60])) for _ in range(2)]
    groups.append(_group(rng, rng.choice([1, 1, 1, 2, 6])))
    small = [size for group in groups for size in group]
    places = list(range(len(small) + 1))
    rng.shuffle(places)
    sizes = [0] * len(places)
    for place, size in zip(places, [shared, *small], strict=True):
        sizes[place] = size
    pivot, places = places[0], places[1:]
    rows, columns = places[: len(groups[0])], places[len(groups[0]) : len(groups[0]) + len(groups[1])]
    batch = places[len(groups[0]) + len(groups[1]) :]
    scopes = [[pivot, *rows, *batch], [pivot, *columns, *batch]]
    # A variable of one table is eliminated before the shared domain, which leaves a smaller product.
    mixed = rng.sample(places, len(places))
    step = rng.choice([2, 2, 3])
    scopes += [mixed[n : n + step] for n in range(0, len(mixed), step)] if rng.random() < 0.8 else []
    scopes += [rng.sample(places, rng.randint(1, min(3, len(places)))) for _ in range(rng.choice([0, 0, 1, 3]))]
    if rng.random() < 0.3:
        scopes.append([pivot, *rng.sample(places, min(len(places), rng.randint(0, 1)))])
    return _weighted(rng, sizes, scopes)


def _large_pairs(rng: random.Random) -> Spec:
    """Draw a few large domains, tied in pairs and to groups of small ones."""
    large, small = range(rng.randint(2, 3)), rng.randint(2, 4)
    sizes = [rng.choice([16, 40, 40, 64, 100, 300]) for _ in large] + [
        rng.choice([2, 2, 2, 2, 2, 3, 4, 6]) for _ in range(small)
    ]
    others = range(len(large), len(sizes))
    scopes = [list(pair) for pair in itertools.combinations(large, 2) if rng.random() < 0.7]
    for v in large:
        scopes += [[v, *rng.sample(others, rng.randint(1, small))] for _ in range(rng.choice([0, 1, 1, 2]))]
    if rng.random() < 0.5:
        scopes.append(rng.sample(others, rng.randint(1, small)))
    places = rng.sample(range(len(sizes)), len(sizes))
    return _weighted(
        rng, [sizes[places.index(v)] for v in range(len(sizes))], [[places[v] for v in scope] for scope in scopes]
    )


def _weighted(rng: random.Random, sizes: list[int], scopes: list[list[int]]) -> Spec:
    """Draw tables over scopes, their axes in any order."""
    style = rng.choice(["uniform", "uniform", "zeros", "spread"])
    return {
        "sense": "probability",
        "variables": [[f"x{v}", size, None] for v, size in enumerate(sizes)],
        "factors": [draw_factor(rng, rng.sample(scope, len(scope)), style, 0.0) for scope in scopes],
        "constant": 0,
        "upper_bound": None,
        "children": None,
    }


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
