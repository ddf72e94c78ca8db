"""Searches for elimination orders of small dense graphs: figures by definition, and processor time."""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Iterator
from typing import Any

from elimina.planning.order import find_order
from tests.adversary.case import Case, Defect, Setting
from tests.adversary.options import ORDERS

CLOCK_FACTOR = 10
"""Time after which the clock ends a search, as a multiple of the seconds that it is given."""

MOST_SECONDS = 1.0
"""Processor time of a search beyond its time limit, or of one that ends by itself."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random graph, and the options of a search."""
    count = rng.randint(1, 14)
    sizes = [rng.choice([1, 2, 2, 2, 3, 3, 5, 16, 40, 300]) for _ in range(count)]
    most = min(count, rng.choice([2, 2, 3, 4]))
    scopes = [rng.sample(range(count), rng.randint(1, most)) for _ in range(rng.randint(0, 4 * count))]
    options: dict[str, Any] = {"method": rng.choice(ORDERS), "seed": rng.randrange(3), "threads": rng.choice([1, 2])}
    options.update(rng.choice([{}, {"seconds": 0.05}, {"seconds": 2.0}, {"iterations": rng.randrange(40)}]))
    if rng.random() < 0.2:
        options["max_table_cells"] = 10 ** rng.randint(1, 5)
    return {"sizes": sizes, "scopes": scopes, "options": options}


def check(case: Case) -> None:
    """Search, and compare the figures with an elimination of the graph.

    Raises:
        Defect: The order is none, its figures are wrong, or the search took long.
    """
    begun, started = time.monotonic(), time.process_time()
    order = find_order(case["sizes"], case["scopes"], **case["options"])
    seconds = time.process_time() - started
    if seconds > case["options"]["threads"] * case["options"].get("seconds", 0.0) + MOST_SECONDS:
        raise Defect(f"the search took {seconds:.1f} s of processor time")
    if sorted(order.order) != list(range(len(case["sizes"]))):
        raise Defect(f"{order.order} is no order of {len(case['sizes'])} variables")
    width, cells = _figures(case["sizes"], case["scopes"], order.order)
    if (order.width, order.total_cells) != (width, cells):
        raise Defect(f"width {order.width} and {order.total_cells} cells, but an elimination has {width} and {cells}")
    alone = find_order(case["sizes"], case["scopes"], **{**case["options"], "threads": 1})
    # On a busy machine, the clock may end a search before it has done the work of its seconds.
    is_whole = time.monotonic() - begun < CLOCK_FACTOR * case["options"].get("seconds", math.inf)
    if alone.order != order.order and is_whole:
        raise Defect(f"the order depends on the number of threads: {alone.order}, {order.order}")


def _figures(sizes: list[int], scopes: list[list[int]], order: tuple[int, ...]) -> tuple[int, int]:
    """Return the width of an order, in which variables of one state do not count, and the cells of all buckets."""
    neighbours: list[set[int]] = [set() for _ in sizes]
    for a, b in itertools.chain.from_iterable(itertools.permutations(scope, 2) for scope in scopes):
        neighbours[a].add(b)
    width = cells = 0
    for v in order:
        bucket = sizes[v]
        for u in neighbours[v]:
            bucket *= sizes[u]
            neighbours[u] |= neighbours[v]
            neighbours[u] -= {u, v}
        width, cells = max(width, sum(sizes[u] > 1 for u in neighbours[v])), cells + bucket
    return width, cells


def smaller(case: Case) -> Iterator[Case]:
    """Yield searches in smaller graphs."""
    for number in range(len(case["scopes"])):
        yield {**case, "scopes": case["scopes"][:number] + case["scopes"][number + 1 :]}
    for v, size in enumerate(case["sizes"]):
        if size > 2:
            yield {**case, "sizes": [*case["sizes"][:v], 2, *case["sizes"][v + 1 :]]}


def script(case: Case) -> str:
    """Return a program that searches."""
    given = ", ".join(f"{name}={value!r}" for name, value in case["options"].items())
    return (
        f"from elimina.planning.order import find_order\nprint(find_order({case['sizes']}, {case['scopes']}, {given}))"
    )
