"""Calls of every kind after one another, in little memory, where earlier calls leave some of it or keep trees open.

The tables are outer products, so that all answers are known, however large the messages are.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

from elimina import JunctionTree, Model, Options, solve
from elimina.errors import MemoryLimitError
from elimina.io.cases import Cases
from tests.adversary.case import Case, Defect, Setting
from tests.conftest import cuda_devices

SPARE_BYTES = 3 << 29
"""Bytes of each GPU that are left to the calls, besides those that the library leaves to the driver."""

FILLS_GPUS = True
"""No other worker may use the GPUs beside a case."""

MESSAGE_CELLS = {"cpu": (1 << 6, 1 << 14), "cuda": (1 << 10, 1 << 26)}
"""Fewest and most cells of a message."""

STATES, ROWS = 4, 20_000
MAX_CASE_CELLS = 3e12
"""Cells that all rows of a batch touch at most: about ten seconds of a GPU."""

TOLERANCE = 1e-9


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random succession of calls."""
    return {"device": setting.device, "calls": [_make_call(rng, setting.device) for _ in range(rng.randint(2, 5))]}


def _make_call(rng: random.Random, device: str) -> list[Any]:
    least, most = MESSAGE_CELLS[device]
    cells = math.exp(rng.uniform(math.log(least), math.log(most)))
    return [rng.choice(list(CALLS)), max(2, round(math.log(cells, STATES))), rng.randrange(1000)]


def check(case: Case) -> None:
    """Make the calls, and compare each answer with the one that its model was made for."""
    numbers = range(cuda_devices() if case["device"] == "cuda" else 0)
    devices = [f"cuda:{number}" for number in numbers] or ["cpu"]
    with contextlib.ExitStack() as occupied:
        for number in numbers:
            occupied.enter_context(_occupied(number))
        _make_calls(case, devices)


def _make_calls(case: Case, devices: list[str]) -> None:
    trees: list[JunctionTree] = []
    try:
        for kind, width, seed in case["calls"]:
            chain = Chain(width, seed)
            try:
                CALLS[kind](chain, devices, trees)
            except MemoryLimitError:
                if kind not in KEEPING or chain.stored_bytes() < SPARE_BYTES / 2:
                    raise
    finally:
        for tree in trees:
            tree.close()


@contextlib.contextmanager
def _occupied(number: int) -> Iterator[None]:
    """Leave little memory on a GPU."""
    from elimina.backends.cuda.backend import CudaBackend

    backend = CudaBackend(number)
    with backend.at_work(0):
        backend.device_memory.release()
        memory = backend.cupy.cuda.Memory(backend.memory() - SPARE_BYTES)
    try:
        yield
    finally:
        del memory


class Chain:
    """A long grid whose tables are outer products.

    Args:
        width: Variables of a column: a message has ``STATES`` to this power cells.
        seed: Seed of its numbers.
    """

    def __init__(self, width: int, seed: int) -> None:
        rng, self.count = np.random.default_rng(seed), 3 * width
        self.message_cells = STATES**width
        pairs = [(v, v + 1) for v in range(self.count - 1) if (v + 1) % width]
        pairs += [(v, v + width) for v in range(self.count - width)]
        self.pairs = [(pair, rng.integers(1, 9, (2, STATES))) for pair in pairs]
        self.order = tuple(range(self.count))

    def stored_bytes(self) -> int:
        """Return the bytes that the messages of both passes take at most."""
        return 2 * 8 * self.count * self.message_cells

    def model(self, sense: str) -> Model:
        """Return the model, whose whole numbers are costs or weights."""
        join = np.multiply.outer if sense == "probability" else np.add.outer
        factors = [(pair, join(*parts).astype(float if sense == "probability" else int)) for pair, parts in self.pairs]
        return Model.from_arrays([STATES] * self.count, factors, sense=sense)

    def weights(self) -> np.ndarray:
        """Return the weight of each state of each variable."""
        weights = np.ones((self.count, STATES))
        for pair, parts in self.pairs:
            weights[list(pair)] *= parts
        return weights

    def log10_z(self) -> float:
        """Return the logarithm of the sum of all products."""
        return float(np.log10(self.weights().sum(1)).sum())

    def optimum(self) -> int:
        """Return the smallest sum of costs."""
        costs = np.zeros((self.count, STATES), dtype=int)
        for pair, parts in self.pairs:
            costs[list(pair)] += parts
        return int(costs.min(1).sum())


def _differ(what: str, expected: Any, answer: Any, tolerance: float = TOLERANCE) -> None:
    if answer is None or not np.allclose(answer, expected, rtol=tolerance, atol=tolerance):
        raise Defect(f"{what} is {expected}, not {answer}")


def _sum(chain: Chain, devices: list[str], trees: list[JunctionTree]) -> None:
    options = Options(order=chain.order, slices="never", method="eliminate")
    result = solve(chain.model("probability"), "pr", device=devices[0], options=options)
    _differ("the sum", chain.log10_z(), result.log10_z)


def _divided_sum(chain: Chain, devices: list[str], trees: list[JunctionTree]) -> None:
    """Sum on all GPUs, each of which has memory for a part of the tables."""
    options = Options(order=chain.order, slices="never", method="eliminate")
    memory = int(0.8 * 2 * 8 * chain.message_cells) + (1 << 26)
    result = solve(chain.model("probability"), "pr", device=",".join(devices), memory=memory, options=options)
    _differ("the divided sum", chain.log10_z(), result.log10_z)


def _sliced_sum(chain: Chain, devices: list[str], trees: list[JunctionTree]) -> None:
    memory = max(1 << 16, 4 * chain.message_cells)
    options = Options(order=chain.order, method="eliminate", tables="dense")
    result = solve(chain.model("probability"), "pr", device=",".join(devices), memory=f"{memory}B", options=options)
    _differ("the sum in slices", chain.log10_z(), result.log10_z)


def _optimum(chain: Chain, devices: list[str], trees: list[JunctionTree]) -> None:
    """Find an optimum, whose messages are kept for decoding."""
    model = chain.model("min-cost")
    result = solve(model, device=devices[0], options=Options(order=chain.order, method="eliminate"))
    _differ("the optimum", chain.optimum(), result.value)
    assert result.assignment is not None
    _differ("the assignment's cost", chain.optimum(), model.score([result.assignment[v.name] for v in model.variables]))


def _bounds(chain: Chain, devices: list[str], trees: list[JunctionTree]) -> None:
    options = Options(order=chain.order, method="mbe", ibound=max(1, len(chain.order) // 6))
    result = solve(chain.model("probability"), "pr", device=",".join(devices), options=options)
    value = chain.log10_z()
    if result.status == "exact":
        _differ("the sum", value, result.log10_z)
        return
    assert result.lower_bound is not None
    assert result.upper_bound is not None
    if not result.lower_bound - TOLERANCE <= value <= result.upper_bound + TOLERANCE:
        raise Defect(f"{value} is not between {result.lower_bound} and {result.upper_bound}")


def _tree(chain: Chain, devices: list[str], trees: list[JunctionTree]) -> None:
    """Ask a tree that stays open until the last call has ended."""
    tree = JunctionTree(chain.model("probability"), device=devices[0], options=Options(order=chain.order))
    trees.append(tree)
    weights = chain.weights()
    posterior = weights[0] / weights[0].sum()
    _differ("the posterior", posterior, tree.marginals(["x0"])["x0"])


def _cases(chain: Chain, devices: list[str], trees: list[JunctionTree]) -> None:
    """Ask for the posteriors of many cases, which fill the memory."""
    tree = JunctionTree(chain.model("probability"), device=",".join(devices), options=Options(order=chain.order))
    rng, weights = np.random.default_rng(chain.count), chain.weights()
    observed = tuple(range(1, chain.count, 2))
    rows = ROWS if devices != ["cpu"] else ROWS // 100
    rows = min(rows, int(MAX_CASE_CELLS / (chain.count * chain.message_cells)))
    values = rng.integers(0, STATES, (rows, len(observed)), dtype=np.int32)
    try:
        answer = tree.batch(Cases(observed, values), ["x0"])
    finally:
        tree.close()
    _differ("the cases' posterior", np.tile(weights[0] / weights[0].sum(), (rows, 1)), answer.marginals["x0"])


CALLS = {
    "sum": _sum,
    "divided sum": _divided_sum,
    "sliced sum": _sliced_sum,
    "optimum": _optimum,
    "bounds": _bounds,
    "tree": _tree,
    "cases": _cases,
}
"""Kinds of calls."""

KEEPING = ("optimum", "tree", "cases")
"""Kinds that keep all messages, and may be refused for lack of memory."""


def smaller(case: Case) -> Iterator[Case]:
    """Yield shorter successions, and ones of smaller models."""
    for number, (kind, width, seed) in enumerate(case["calls"]):
        before, after = case["calls"][:number], case["calls"][number + 1 :]
        yield {**case, "calls": before + after}
        if width > 2:
            yield {**case, "calls": [*before, [kind, width - 1, seed], *after]}


def script(case: Case) -> str:
    """Return a program that makes the calls."""
    return f"from tests.adversary import successions\nsuccessions.check({case!r})"
