"""Sums of tables that share large domains, with the axes of small ones in any order, against contraction.

Their buckets are matrix products. Calls have few options besides the defaults, so that many cases are run in a minute.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

from tests.adversary import mixed, solving
from tests.adversary.case import Case, Setting
from tests.adversary.models import Spec
from tests.adversary.sketches import draw_factor, is_affordable, smaller_models

SMALLEST_PRODUCT = 20_000
"""Assignments of the model: fewer make no product of their own."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random call."""
    spec = make_sketch(rng)
    options = {"device": setting.device, "threads": rng.choice([1, 1, 1, 2])}
    if rng.random() < 0.3:
        options["order"] = mixed.order_by_tables(rng, spec)
    return {"model": spec, "task": rng.choice(["pr", "pr", "mar"]), "evidence": [], "query": None, "options": options}


def make_sketch(rng: random.Random) -> Spec:
    """Draw a model that contraction can answer in a few milliseconds."""
    while True:
        spec = rng.choice([_shared_domain, _large_pairs, _large_pairs])(rng)
        joint = math.prod(size for _, size, _ in spec["variables"])
        is_small = is_affordable(spec, mixed.LARGEST_BUCKET) and mixed.largest_table(spec) <= mixed.LARGEST_TABLE
        if is_small and joint >= SMALLEST_PRODUCT:
            return spec


def _group(rng: random.Random, cells: int) -> list[int]:
    """Draw sizes of domains whose product is at least a number."""
    sizes: list[int] = []
    while math.prod(sizes) < cells:
        sizes.append(rng.choice([1, 2, 2, 2, 3, 4, 4, 5, 6, 8, 40]))
    return sizes


def _shared_domain(rng: random.Random) -> Spec:
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


def check(case: Case) -> None:
    """Solve and compare."""
    mixed.check(case)


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler calls."""
    return (
        simpler
        for simpler in solving.simpler_calls(case, smaller_models)
        if is_affordable(simpler["model"], mixed.LARGEST_BUCKET)
    )


def script(case: Case) -> str:
    """Return a program that makes the call."""
    return mixed.script(case)
