"""Models of any induced width: tables that list tuples over many variables, large domains, and random graphs.

An answer is bounds, or an error of one line, and all that prints it takes numbers of cells that no float holds.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Iterator

import numpy as np

import elimina
from elimina import EliminaError, InputError, MemoryLimitError, Model, Table, TimeLimitError, UnsupportedError, Variable
from tests import calls
from tests.adversary.case import Case, Defect, Setting

SECONDS, CLIQUE_SECONDS = 1.0, 4.0
"""Time limit of a call; of one on a clique, whose first order takes a second."""

CLIQUE_VARIABLES = 320
"""Variables of ten states whose clique has more cells than a float holds."""

_PLAIN = (InputError, MemoryLimitError, TimeLimitError, UnsupportedError)
_SIZES = [1, 2, 3, 10, 10, 300, 2**20, 2**31 - 1]
_METHODS = ["auto", "auto", "eliminate", "mbe", "search"]
WRITTEN_STATES = 10**7
"""Largest number of posteriors of an answer that is written as JSON."""

READ_STATES = 2**20
"""Largest number of posteriors of a variable that are read."""

LONGEST_END = 15.0
"""Seconds that a call may take to end on a loaded machine: models have a thousand tables."""

_TASKS = ["mpe", "mpe", "pr", "pr", "mar", "mmap", "count", "count-optima"]


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random model and a call."""
    # A graph of degree 12 has an induced width of a third of its variables, and takes long to order; a clique does not.
    chance = rng.random()
    is_clique, is_dense = chance < 0.15, chance < 0.3
    count = CLIQUE_VARIABLES if is_clique else 1100 if is_dense else rng.choice([3, 40, 300, 1100])
    task = rng.choice(_TASKS)
    sums = task in ("pr", "mar", "mmap")
    return {
        "seed": rng.randrange(10**6),
        "sizes": [10] if is_dense else [rng.choice(_SIZES) for _ in range(rng.choice([1, 1, 2, 3]))],
        "variables": count,
        "lengths": [rng.choice([count, count // 2 + 1, min(count, 64)]) for _ in range(rng.choice([0, 1, 1, 2]))],
        "pairs": 0 if is_clique else 6 * count if is_dense else rng.choice([0, count, 6 * count]),
        "is_clique": is_clique,
        "sense": "probability" if sums else rng.choice(["probability", "min-cost", "max-cost"]),
        "task": task,
        "plans": rng.random() < 0.3,
        "options": {
            "device": setting.device,
            "threads": 1,
            "method": rng.choice(_METHODS),
            "tables": rng.choice(["auto", "auto", "dense", "sparse"]),
            "memory": rng.choice([None, None, 10**6, 10**8]),
        },
    }


def build(case: Case) -> Model:
    """Return a case's model: tables of a few tuples, and tables of pairs whose variables are small."""
    rng = random.Random(case["seed"])
    is_sum = case["sense"] == "probability"
    sizes = [case["sizes"][v % len(case["sizes"])] for v in range(case["variables"])]
    tables = []
    for length in case["lengths"]:
        scope = rng.sample(range(len(sizes)), length)
        rows = sorted({tuple(rng.randrange(min(sizes[v], 4)) for v in scope) for _ in range(rng.randint(1, 3))})
        values = [0.25 * rng.randint(1, 4) if is_sum else rng.randint(0, 9) for _ in rows]
        kept = [sizes[v] for v in scope]
        default = rng.choice([0.0, 1.0]) if is_sum else rng.choice([0, 5])
        tables.append(Table(scope, np.array(values), sizes=kept, rows=np.array(rows, np.int32), default=default))
    for _ in range(case["pairs"]):
        scope = rng.sample(range(len(sizes)), 2)
        shape = [sizes[v] for v in scope]
        if shape[0] * shape[1] <= 100:
            cells = np.array([rng.randint(1, 9) for _ in range(shape[0] * shape[1])]).reshape(shape)
            tables.append(Table(scope, cells / 2 if is_sum else cells))
    if case["is_clique"]:
        weights = [np.array([rng.randint(1, 9) for _ in range(100)]).reshape(10, 10) for _ in range(9)]
        kinds = [cells / 2 if is_sum else cells for cells in weights]
        pairs = enumerate(itertools.combinations(range(len(sizes)), 2))
        tables += [Table(pair, kinds[number % len(kinds)]) for number, pair in pairs]
    return Model([Variable(f"x{v}", size) for v, size in enumerate(sizes)], tables, sense=case["sense"])


def check(case: Case) -> None:
    """Answer or plan, and print what comes of it."""
    try:
        model = build(case)
        asked = {"query": ["x0"]} if case["task"] == "mmap" else {}
        if case["plans"]:
            plan = calls.plan(model, case["task"], **asked, **case["options"])
            str(plan), repr(plan), plan.to_json()
            return
        known: list[elimina.Bounds] = []
        started = time.monotonic()
        limit = CLIQUE_SECONDS if case["is_clique"] else SECONDS
        call = {"time_limit": limit, "on_bounds": known.append, **asked, **case["options"]}
        found = calls.solve(model, case["task"], **call)
        seconds = time.monotonic() - started
    except _PLAIN as error:
        if "\n" in str(error):
            raise Defect(f"an error of several lines: {error}") from error
        return
    except EliminaError as error:
        raise Defect(f"an answer or a refusal was expected, not {error!r}") from error
    if seconds > limit + LONGEST_END:
        raise Defect(f"the call ended {seconds - limit:.0f} s after its limit")
    str(found), repr(found), found._repr_html_(), [one.gap for one in known]
    if case["task"] == "mar" and found.marginals:
        first = model.variables[0]
        if len(found.marginals) != len(model.variables) or first.name not in found.marginals:
            raise Defect(f"there are {len(found.marginals)} marginals of {len(model.variables)} variables")
        if first.size <= READ_STATES and not math.isclose(math.fsum(found.marginals[first.name].values()), 1):
            raise Defect(f"the marginal of {first.name!r} does not add up to 1")
    if case["task"] != "mar" or sum(model.sizes) <= WRITTEN_STATES:
        found.to_json()
    lower, upper = found.lower_bound, found.upper_bound
    if lower is not None and upper is not None and lower > upper:
        raise Defect(f"the lower bound {lower} is above the upper one, {upper}")


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler cases, the boldest cuts first."""
    half = case["variables"] // 2
    if half >= 2:
        lengths = [min(length, half) for length in case["lengths"]]
        yield {**case, "variables": half, "lengths": lengths, "pairs": case["pairs"] // 2}
    if case["pairs"]:
        yield {**case, "pairs": case["pairs"] // 2}
    for place in range(len(case["lengths"])):
        yield {**case, "lengths": case["lengths"][:place] + case["lengths"][place + 1 :]}
    if len(case["sizes"]) > 1:
        yield {**case, "sizes": case["sizes"][:1]}


def script(case: Case) -> str:
    """Return a short program that shows what happens."""
    return f"from tests.adversary import wide\ncase = {case!r}\nwide.check(case)\n"
