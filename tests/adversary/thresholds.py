"""Models of the sizes at which paths of the executors begin, and of random seeds.

Each scenario names the path that it is there for. ``core/exec/paths.hpp`` lists all paths.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.adversary import constructed, mixed
from tests.adversary.case import Case, Setting
from tests.adversary.families import Parameters, instance_of
from tests.adversary.models import Spec

Scenario = tuple[str, str, dict[str, Any], Callable[[int], Any]]
"""Path, task, options and the function of a seed that makes a sketch or a family's parameters."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Draw a scenario and a seed."""
    return case_of(rng.choice(list(SCENARIOS)), rng.randrange(10**6), setting)


def case_of(name: str, seed: int, setting: Setting) -> Case:
    """Return the case of a scenario and a seed."""
    _, task, options, model_of = SCENARIOS[name]
    model = model_of(seed)
    options = {"device": setting.device, "threads": 1, "order_seconds": 0.01, **options}
    order = options.get("order")
    case = {"scenario": name, "task": task, "options": options}
    if "family" in model:
        options["order"] = _order(model, order) if callable(order) else options.get("order", "auto")
        return {**case, "parameters": model}
    return {**case, "model": model, "evidence": [], "query": None}


def _order(parameters: Parameters, key: Callable[[int, int], Any]) -> list[int]:
    """Return the variables by a key of their size and of the number of lists of tuples they are in."""
    instance = instance_of(parameters)
    sizes = [size for _, size, _ in instance.spec["variables"]]
    counts = [sum(v in table.scope for table in instance.listed) for v in range(len(sizes))]
    return sorted(range(len(sizes)), key=lambda v: key(sizes[v], counts[v]))


def check(case: Case) -> None:
    """Solve and compare."""
    (constructed if "parameters" in case else mixed).check(case)


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler calls."""
    return (constructed if "parameters" in case else mixed).smaller(case)


def script(case: Case) -> str:
    """Return a program that makes the call."""
    return (constructed if "parameters" in case else mixed).script(case)


def _tables(
    seed: int, sizes: list[int], scopes: list[list[int]], sense: str = "probability", style: str = "uniform"
) -> Spec:
    """Return a sketch whose tables have seeds of their own."""
    forbidden = 0.3 if style == "zeros" else 0.0
    plain = {"style": style, "forbidden": forbidden, "child": None, "is_listed": False, "layout": "rows"}
    return {
        "sense": sense,
        "variables": [[f"x{v}", size, None] for v, size in enumerate(sizes)],
        "factors": [{"scope": scope, "seed": seed + number, **plain} for number, scope in enumerate(scopes)],
        "constant": 0,
        "upper_bound": None,
        "children": None,
    }


def _band(count: int, width: int) -> list[list[int]]:
    """Return the pairs of variables less than ``width`` apart."""
    return [[a, b] for a, b in itertools.combinations(range(count), 2) if b - a < width]


def _relations(seed: int) -> Parameters:
    shape = {"relations": 2, "arity": 7, "shared": 1, "domain": 300, "tuples": 3000}
    return {"family": "relations", **shape, "sense": "probability", "seed": seed}


def _steep_chain(seed: int) -> Parameters:
    shape = {"height": 1, "domain": 3, "columns": 8, "is_ring": False, "is_round": False}
    return {"family": "strip", **shape, "zeros": 0.0, "digits": 150, "sense": "probability", "seed": seed}


def _tree(seed: int) -> Parameters:
    return {"family": "colouring", "graph": "tree", "vertices": 150, "colours": 40, "seed": seed}


def _ising(seed: int) -> Parameters:
    return {"family": "ising", "rows": 7, "columns": 7, "coupling": 0.5, "seed": seed}


def _code(seed: int) -> Parameters:
    shape = {"variables": 60, "checks": 40, "weight": 6, "window": 16, "modulus": 2, "is_consistent": True}
    return {"family": "code", **shape, "sense": "probability", "seed": seed}


def _skewed(seed: int) -> Parameters:
    return {"family": "skewed", "domain": 5000, "rows": 280, "rare": 5, "sense": "probability", "seed": seed}


SPARSE = {"tables": "sparse", "method": "eliminate"}
DENSE = {"method": "eliminate"}

SCENARIOS: dict[str, Scenario] = {
    "threads": (
        "several-threads",
        "mpe",
        {**DENSE, "threads": 2},
        lambda seed: _tables(seed, [16] * 5, _band(5, 5), "min-cost", "small"),
    ),
    "threads that encode a table": (
        "encode-large",
        "pr",
        {**DENSE, "threads": 2},
        lambda seed: _tables(seed, [700, 2, 400], [[0, 1, 2], [2]]),
    ),
    "threads that encode many tables": (
        "encode-groups",
        "mpe",
        {**DENSE, "threads": 2},
        lambda seed: _tables(seed, [50] * 110, [[v, v + 1] for v in range(109)], "min-cost", "small"),
    ),
    "wide outputs": (
        "vector-tile-past-caches",
        "mpe",
        {**DENSE, "order": [0, 1, 2, 3]},
        lambda seed: _tables(seed, [2, 110, 110, 110], [[0, 1], [0, 2], [0, 3]], "min-cost", "float"),
    ),
    "a message that passes through": (
        "several-variables",
        "pr",
        {**DENSE, "order": [0, 1, 2, 3, 4]},
        lambda seed: _tables(seed, [2, 2, 81, 81, 81], [[0, 1, 2, 3, 4], [2, 3], [3, 4]]),
    ),
    "rows and columns": (
        "product-contiguous-rows",
        "pr",
        {},
        lambda seed: _tables(seed, [100, 96, 64], [[0, 1], [1, 2], [0, 2]]),
    ),
    "transposed rows": (
        "product-scattered-rows",
        "mar",
        {},
        lambda seed: _tables(seed, [40, 4, 300, 2, 2], [[0, 3, 1], [1, 3, 4, 2], [2, 4], [0, 2]]),
    ),
    "a batch of products": (
        "product-batch",
        "pr",
        {**DENSE, "order": [0, 1, 2, 3]},
        lambda seed: _tables(seed, [64, 6, 40, 40], [[0, 1, 2], [0, 1, 3], [1, 2, 3]]),
    ),
    "transposed columns": (
        "product-scattered-columns",
        "pr",
        {**DENSE, "order": [0, 1, 2, 3, 4]},
        lambda seed: _tables(seed, [64, 40, 2, 5, 4], [[0, 1], [0, 4, 2, 3], [1, 2], [3, 4]]),
    ),
    "segments": (
        "segments",
        "mpe",
        {**DENSE, "memory": 400_000, "slices": "never"},
        lambda seed: _tables(seed, [6] * 30, _band(30, 6), "min-cost", "small"),
    ),
    "files of tiles": (
        "scratch-tiles",
        "mpe",
        {**DENSE, "memory": 100_000, "slices": "never", "scratch": True},
        lambda seed: _tables(seed, [6] * 30, _band(30, 6), "min-cost", "small"),
    ),
    "slices": (
        "slices",
        "pr",
        {**DENSE, "memory": 60_000, "slices": 4096},
        lambda seed: _tables(seed, [3] * 12, _band(12, 12)),
    ),
    "products out of range": ("logarithms", "pr", {}, _steep_chain),
    "a count beyond 64 bits": ("long-integers", "count", {}, _tree),
    "weighted mini-buckets": ("weighted-mini-buckets", "pr", {"method": "mbe", "memory": 10_000}, _ising),
    "tuples of a code": ("join-eliminating", "pr", SPARSE, _code),
    "many tuples": (
        "rows-sort-dealt",
        "pr",
        SPARSE,
        lambda seed: _tables(seed, [64, 64, 64, 8], [[0, 1, 2], [2, 3], [0, 3]], style="zeros"),
    ),
    "pairs of long groups": (
        "join-split-group",
        "pr",
        {**SPARSE, "order": [0, 1, 2, 3]},
        lambda seed: _tables(seed, [2, 300, 300, 3], [[0, 1], [0, 2], [1, 3], [2, 3]], style="zeros"),
    ),
    "keys of several words": (
        "rows-long-keys",
        "pr",
        {**SPARSE, "order": lambda size, lists: -lists},
        _relations,
    ),
    "tuples that share a value": (
        "rows-sort-large-bucket",
        "pr",
        {**SPARSE, "order": lambda size, lists: size},
        _skewed,
    ),
}
"""Scenario by name."""
