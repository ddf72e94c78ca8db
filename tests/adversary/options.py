"""Random options of ``solve`` that go together, and which errors they justify."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

from elimina.errors import EliminaError, InputError, MemoryLimitError, TimeLimitError, UnsupportedError
from elimina.system import available_memory
from tests.adversary.models import Spec
from tests.adversary.oracle import Oracle

ORDERS = ("auto", "min-fill", "weighted-min-fill", "min-degree", "min-weight", "sweep", "pseudo-tree")
DTYPES = ("int16", "int32", "int64", "float32", "float64")
MOST_FILTERED_CELLS = 1 << 26
"""Cells of all tables, over domains padded to powers of two, that filtering takes."""

WRITTEN_BYTES = 80
"""Most bytes for each of these cells where tables are written out: ten copies of filtering; the tables, messages and
copies of mini-buckets and search."""

LEAST_SPARE = 256 << 20
"""Bytes from which no tiny model may be refused for lack of memory."""

MOST_COSTS = {"filter": 2**37, "search": 2**49}
"""Sums of magnitudes up to which the methods take integer costs."""


def make_options(
    rng: random.Random, spec: Spec, task: str, device: str, memory_digits: tuple[float, float] = (0, 6)
) -> dict[str, Any]:
    """Draw options; ``scratch`` and ``checkpoint`` are flags that stand for a directory.

    Args:
        rng: Source of random numbers.
        spec: Model.
        task: Task of the call.
        device: ``cpu`` or ``cuda``.
        memory_digits: Decimal logarithms of the smallest and the largest memory limit, in bytes.
    """
    options: dict[str, Any] = {"device": device, "threads": rng.choice([1, 1, 1, 1, 2]), "order_seconds": 0.01}
    method = _method(rng, task)
    if method != "auto":
        options["method"] = method
    if rng.random() < (0.9 if device == "cuda" else 0.35):
        options["memory"] = int(10 ** rng.uniform(*memory_digits))
    if rng.random() < 0.3:
        options["order"] = rng.choice(ORDERS)
        if rng.random() < 0.5:
            options["order"] = _permutation(rng, spec)
    if rng.random() < 0.3:
        options["seed"] = rng.randrange(5)
    if rng.random() < 0.12:
        options["dtype"] = rng.choice(DTYPES)
    if task in ("mpe", "pr") and method in ("mbe", "search") and rng.random() < 0.7:
        options["ibound"] = rng.choice(["auto", 1, 1, 2, 3, 5])
    is_bounded = "ibound" in options or method == "mbe"
    if rng.random() < 0.3:
        options["shift"] = rng.choice(["none", "buckets", "all"] + (["tables", "clusters"] if task == "mpe" else []))
    if rng.random() < 0.3:
        options["partition"] = rng.choice(["auto", "scope"] + (["content"] if task == "mpe" else []))
    if not is_bounded:
        _add_storage(rng, options, task, method)
        if rng.random() < 0.1:
            options["exact"] = True
    if task == "mpe":
        free = "checkpoint" not in options
        if free and spec["sense"] != "probability" and method in ("auto", "filter", "search") and rng.random() < 0.2:
            options["upper_bound"] = rng.choice([rng.randint(-30, 60), rng.randint(-5, 5), 10**6])
        if rng.random() < 0.15:
            options["gap"] = rng.choice([0.01, 0.5, 3.0])
        if rng.random() < 0.15:
            options["interrupt"] = rng.choice([1, 1, 2, 3])
    if rng.random() < 0.08:
        options["time_limit"] = rng.choice([1e-4, 1e-3, 0.01, 0.05, 5.0])
    return options


def _method(rng: random.Random, task: str) -> str:
    if task == "mpe":
        return rng.choice(["auto", "auto", "eliminate", "eliminate", "filter", "search", "mbe"])
    if task == "pr":
        return rng.choice(["auto", "auto", "eliminate", "mbe"])
    if task == "mmap":
        return rng.choice(["auto", "auto", "eliminate", "search", "mbe"])
    return rng.choice(["auto", "eliminate"])


def _add_storage(rng: random.Random, options: dict[str, Any], task: str, method: str) -> None:
    if rng.random() < 0.3:
        options["slices"] = rng.choice(["never", "auto", 1, 4, 50, 5000])
    if rng.random() < 0.3:
        options["tables"] = rng.choice(["dense", "sparse", "sparse", "auto"])
    if rng.random() < 0.15:
        options["scratch"] = True
    keeps = task in ("mpe", "pr", "count") and method in ("auto", "eliminate")
    if keeps and rng.random() < 0.05:
        options["checkpoint"] = True


def _permutation(rng: random.Random, spec: Spec) -> list[Any]:
    order = list(range(len(spec["variables"])))
    rng.shuffle(order)
    return [spec["variables"][v][0] for v in order] if rng.random() < 0.5 else order


def is_justified(error: EliminaError, options: dict[str, Any], task: str, oracle: Oracle) -> bool:
    """Return whether the documented conditions of an error hold."""
    span = oracle.integer_span()
    is_integer, total = span is not None, span or 0
    has_unfit_type = "dtype" in options
    if isinstance(error, MemoryLimitError):
        if options.get("memory", LEAST_SPARE) < LEAST_SPARE:
            return True
        room = min(options.get("memory", math.inf), available_memory())
        return options.get("method") in ("search", "mbe", "filter") and WRITTEN_BYTES * _padded_cells(oracle) > room
    if isinstance(error, TimeLimitError):
        return "time_limit" in options
    if isinstance(error, UnsupportedError):
        if options.get("tables") == "sparse" and (has_unfit_type or total > 2**59 or task == "mmap"):
            return True
        if options.get("method") == "filter" and _padded_cells(oracle) > MOST_FILTERED_CELLS:
            return True
        is_filtered = options.get("method") == "filter" or "upper_bound" in options
        if options.get("method") != "search" and is_filtered:
            return not is_integer or has_unfit_type or total > MOST_COSTS["filter"]
        return options.get("method") == "search" and total > MOST_COSTS["search"]
    if type(error) is InputError:
        is_in_tiles = "scratch" in options and "checkpoint" in options
        is_rounded = "exact" in options and task == "mpe" and not is_integer and _may_cancel(oracle)
        return has_unfit_type or total > 2**59 or is_in_tiles or is_rounded
    return False


def _may_cancel(oracle: Oracle) -> bool:
    """Return whether terms of the tables are so large that their rounding may exceed what an optimum tolerates."""
    return 1e-12 * math.fsum(oracle.largest_terms()) > 1e-9 * max(1.0, abs(oracle.optimum() or 0))


def _padded_cells(oracle: Oracle) -> int:
    """Return the cells of all tables over domains that are padded to powers of two."""
    sizes = [1 << (size - 1).bit_length() for _, size, _ in oracle.spec["variables"]]
    return sum(math.prod(sizes[v] for v in scope) for scope in oracle.scopes)


def smaller_options(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the options with one of them left out."""
    for name in options:
        if name != "device":
            yield {key: value for key, value in options.items() if key != name}
