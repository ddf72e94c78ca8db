"""Sums over a few variables of hundreds or thousands of states: the default method against mini-buckets alone.

Both have the same memory, and the default method more time, because other work may delay it. Its bounds may hardly be
wider than those of mini-buckets. The sum of a cycle is known: it is the trace of the product of its tables.
"""

from __future__ import annotations

import functools
import itertools
import math
import random
import time
from collections.abc import Iterator

import numpy as np

from elimina import MemoryLimitError, Model, Result
from tests import calls
from tests.adversary.case import Case, Defect, Setting

SECONDS = 2.0
"""Time limit of the default method."""

BUCKETS_SHARE = 0.25
"""Time limit of mini-buckets, relative to that of the default method."""

LONGEST_END = 15.0
"""Seconds that a call may take to end on a loaded machine."""

WIDER = 1.0
"""Largest difference between the gaps of the two methods' bounds, in log10."""

MOST_CELLS = 8_000_000
"""Largest number of cells of all tables together."""

OFF = 1e-9
"""Rounding of a logarithm, relative to it or to 1."""

_SHAPES = ("cycle", "clique", "grid")
_SIZES = (100, 300, 700, 2000)


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random model and its limits."""
    while True:
        shape = rng.choice(_SHAPES)
        case = {
            "seed": rng.randrange(10**6),
            "shape": shape,
            "side": rng.randint(2, 4) if shape == "grid" else rng.randint(3, 8),
            "sizes": [rng.choice(_SIZES), *([2] if rng.random() < 0.5 else [])],
            "coupling": rng.choice([0.3, 1.0, 2.0]),
            "has_zeros": rng.random() < 0.3,
            "options": {
                "device": setting.device,
                "threads": rng.choice([1, 2]),
                "memory": rng.choice([None, 6 * 10**7, 2 * 10**8]),
            },
        }
        sizes, pairs = _network(case)
        if sum(sizes[u] * sizes[v] for u, v in pairs) <= MOST_CELLS:
            return case


def _network(case: Case) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the sizes of the variables, and the pairs that share a table."""
    side = case["side"]
    count = side**2 if case["shape"] == "grid" else side
    sizes = [case["sizes"][v % len(case["sizes"])] for v in range(count)]
    if case["shape"] == "cycle":
        return sizes, [(v, (v + 1) % count) for v in range(count)]
    if case["shape"] == "clique":
        return sizes, list(itertools.combinations(range(count), 2))
    rights = [(v, v + 1) for v in range(count) if v % side < side - 1]
    return sizes, [*rights, *((v, v + side) for v in range(count - side))]


def _factors(case: Case) -> list[tuple[tuple[int, int], np.ndarray]]:
    rng = np.random.default_rng(case["seed"])
    sizes, pairs = _network(case)
    tables = [np.exp(case["coupling"] * rng.normal(size=(sizes[u], sizes[v]))) for u, v in pairs]
    for table in tables if case["has_zeros"] else ():
        # The first states are possible together.
        table[1:, 1:] *= rng.random((table.shape[0] - 1, table.shape[1] - 1)) < 0.7
    return list(zip(pairs, tables, strict=True))


def check(case: Case) -> None:
    """Compare the default method with mini-buckets, and both with the sum if it is known."""
    factors = _factors(case)
    model = Model.from_arrays(_network(case)[0], factors, sense="probability")
    default = _solve(model, case, "auto", SECONDS)
    buckets = _solve(model, case, "mbe", BUCKETS_SHARE * SECONDS)
    log_z = _log_of_cycle([table for _, table in factors]) if case["shape"] == "cycle" else None
    for result in (default, buckets):
        if result is not None:
            _check_ends(result, log_z)
    if buckets is None:
        return
    if default is None:
        raise Defect("the default method refuses what mini-buckets bound")
    slack = OFF * max(1.0, abs(_ends(buckets)[1]))
    if _ends(default)[0] > _ends(buckets)[1] + slack or _ends(buckets)[0] > _ends(default)[1] + slack:
        raise Defect(f"bounds exclude each other: {_ends(default)} by default, {_ends(buckets)} by mini-buckets")
    gaps = [upper - lower for lower, upper in (_ends(default), _ends(buckets))]
    if gaps[0] > gaps[1] + WIDER:
        raise Defect(f"the gap is {gaps[0]:.3f} by default, and {gaps[1]:.3f} by mini-buckets")


def _solve(model: Model, case: Case, method: str, seconds: float) -> Result | None:
    """Return the answer; None if it is refused for its memory."""
    started = time.monotonic()
    try:
        result = calls.solve(model, "pr", method=method, time_limit=seconds, **case["options"])
    except MemoryLimitError:
        return None
    if time.monotonic() - started > seconds + LONGEST_END:
        raise Defect(f"{method} ended {time.monotonic() - started - seconds:.0f} s after its limit")
    return result


def _ends(result: Result) -> tuple[float, float]:
    if result.log10_z is not None and result.status == "exact":
        return result.log10_z, result.log10_z
    lower, upper = result.lower_bound, result.upper_bound
    return -math.inf if lower is None else lower, math.inf if upper is None else upper


def _check_ends(result: Result, log_z: float | None) -> None:
    if result.status == "estimated" and result.error == 0:
        raise Defect("an estimate claims to be exact")
    lower, upper = _ends(result)
    slack = OFF * max(1.0, abs(log_z or 0.0))
    if log_z is not None and not lower - slack <= log_z <= upper + slack:
        raise Defect(f"the bounds {lower} to {upper} exclude {log_z}")


def _log_of_cycle(tables: list[np.ndarray]) -> float:
    """Return the base-10 logarithm of the trace of a product of tables."""
    scale = 0.0

    def times(product: np.ndarray, table: np.ndarray) -> np.ndarray:
        nonlocal scale
        product = product @ table
        peak = product.max()
        scale += math.log10(peak)
        return product / peak

    return math.log10(np.trace(functools.reduce(times, tables))) + scale


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler cases."""
    if case["side"] > (2 if case["shape"] == "grid" else 3):
        yield {**case, "side": case["side"] - 1}
    if case["sizes"][0] > _SIZES[0]:
        yield {**case, "sizes": [_SIZES[0], *case["sizes"][1:]]}
    if len(case["sizes"]) > 1:
        yield {**case, "sizes": case["sizes"][:1]}
    if case["options"]["memory"] is not None:
        yield {**case, "options": {**case["options"], "memory": None}}


def script(case: Case) -> str:
    """Return a short program that shows what happens."""
    return f"from tests.adversary import large_domains\ncase = {case!r}\nlarge_domains.check(case)\n"
