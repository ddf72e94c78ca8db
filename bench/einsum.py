"""Sums of products against opt_einsum: all of a call, and the call of an expression that was prepared.

    python bench/einsum.py [--cases "grid 20 x 20 of 2" ...] [--record]

opt_einsum has to be installed. Both use one thread, and take the same arrays. A call of elimina makes the model and
solves it; `contract` searches for a path and contracts; the expression (`contract_expression`) has its path already.
Calls take turns; the figures are medians, of 100 calls where they take less than 20 ms, otherwise of three.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read as NumPy is imported

import numpy as np
import opt_einsum

import elimina
from record import Record

COLUMNS = (
    "sum",
    "opt_einsum's `contract`",
    "its prepared expression",
    "elimina",
    "ratio to `contract`",
    "ratio to the expression",
    "relative difference",
)
NOTE = "Milliseconds of a call, median, one thread. Ratio: opt_einsum's time / ours."
MANY, FEW, SHORT_SECONDS = 100, 3, 0.02


class Sum(NamedTuple):
    """The sum over all variables of a product of arrays of two axes."""

    name: str
    variables: int
    size: int
    scopes: list[tuple[int, int]]

    def arrays(self) -> list[np.ndarray]:
        """Return random arrays; their sums stay in the range of floats."""
        rng = np.random.default_rng(0)
        return [2 / self.size * rng.random((self.size, self.size)) for _ in self.scopes]


def cycle(count: int, size: int) -> Sum:
    return Sum(f"cycle of {count}, size {size}", count, size, [(v, (v + 1) % count) for v in range(count)])


def chain(count: int, size: int) -> Sum:
    return Sum(f"chain of {count} of {size}", count, size, [(v, v + 1) for v in range(count - 1)])


def grid(rows: int, columns: int, size: int) -> Sum:
    along = [(v, v + 1) for v in range(rows * columns) if (v + 1) % columns]
    across = [(v, v + columns) for v in range((rows - 1) * columns)]
    return Sum(f"grid {rows} x {columns} of {size}", rows * columns, size, along + across)


CASES = [
    cycle(4, 3),
    cycle(4, 30),
    cycle(4, 300),
    chain(100, 10),
    chain(1000, 10),
    grid(6, 30, 5),
    grid(9, 9, 6),
    grid(20, 20, 2),
]


def calls(case: Sum) -> Iterator[Callable[[], float]]:
    """Return the calls of a case: ours is the last one."""
    arrays = case.arrays()
    operands = [part for array, scope in zip(arrays, case.scopes, strict=True) for part in (array, scope)]
    yield lambda: float(opt_einsum.contract(*operands, ()))
    shapes = [part for array, scope in zip(arrays, case.scopes, strict=True) for part in (array.shape, scope)]
    expression = opt_einsum.contract_expression(*shapes, ())
    yield lambda: float(expression(*arrays))
    sizes, factors = [case.size] * case.variables, list(zip(case.scopes, arrays, strict=True))
    options = elimina.Options(threads=1)

    def ours() -> float:
        model = elimina.Model.from_arrays(sizes, factors, sense="probability")
        return elimina.solve(model, "pr", device="cpu", options=options).value

    yield ours


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=[case.name for case in CASES])
    parser.add_argument("--record", action="store_true", help="Keep the table as bench/results/einsum.json.")
    options = parser.parse_args()
    record = Record("einsum", COLUMNS, NOTE)
    for case in CASES:
        if options.cases and case.name not in options.cases:
            continue
        turns = list(calls(case))
        values, seconds = [], [[] for _ in turns]
        for call, own in zip(turns, seconds, strict=True):
            started = time.perf_counter()
            values.append(call())
            own.append(time.perf_counter() - started)
        repeat = MANY if max(own[0] for own in seconds) < SHORT_SECONDS else FEW
        for _ in range(repeat):
            for call, own in zip(turns, seconds, strict=True):
                started = time.perf_counter()
                call()
                own.append(time.perf_counter() - started)
        contract, expression, ours = (1e3 * statistics.median(own[1:]) for own in seconds)
        difference = max(abs(value / values[-1] - 1) for value in values)
        assert math.isclose(difference, 0, abs_tol=1e-9), values
        figures = (f"{float(f'{figure:.3g}'):,g}" for figure in (contract, expression, ours))
        record.add(case.name, *figures, f"{contract / ours:.2g}", f"{expression / ours:.2g}", f"{difference:.0e}")
        print("  ".join(f"{cell:>20}" for cell in record.rows[-1]), flush=True)
    if options.record:
        print(record.save())


if __name__ == "__main__":
    main()
