"""CPU kernels on single buckets, against a plain copy with as many threads and against NumPy broadcasting, in one run.

    python bench/cpu.py [--threads N] [--repeat R]

Each bucket eliminates one variable of `domain` values from a message over all the bucket's variables (if `message`)
and small
tables over the eliminated variable and one or two others. 'copy' is the share of the copy's bytes a second that the
bucket's
own bytes (every table read once, the output written once) reach; 'numpy' is how many times faster than
`(a + b + ...).min(0)` it is.
"""

from __future__ import annotations

import argparse
import math
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from elimina.model.model import Model
from elimina.planning.machine import cpu_machine
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.program import pack
from elimina.problem.preparation import prepare
from elimina.running.encoding import encode
from timing import median_seconds


def bucket(
    domain: int, others: list[int], scopes: list[tuple[int, ...]], message: bool, dtype: str, seed: int = 0
) -> Model:
    """One bucket whose eliminated variable is variable 0."""
    rng = np.random.default_rng(seed)
    sizes = [domain, *others]
    factors = [tuple(range(len(sizes)))] if message else []
    factors += [(0, *scope) for scope in scopes]
    tables = []
    for scope in factors:
        shape = [sizes[v] for v in scope]
        values = rng.integers(0, 100, shape)
        tables.append((scope, values if dtype.startswith("int") else values.astype(np.float64)))
    return Model.from_arrays(sizes, tables)


def copy_bandwidth(size: int, threads: int, repeat: int) -> float:
    """Bytes a second, read and written ones counted, of a copy split over threads."""
    source, target = np.ones(size // 8), np.zeros(size // 8)
    edges = np.linspace(0, len(source), threads + 1).astype(int)
    with ThreadPoolExecutor(threads) as pool:

        def copy() -> None:
            list(
                pool.map(
                    lambda i: np.copyto(target[edges[i] : edges[i + 1]], source[edges[i] : edges[i + 1]]),
                    range(threads),
                )
            )

        return 2 * size / median_seconds(copy, repeat)


def measure(model: Model, dtype: str, threads: int, repeat: int) -> tuple[float, int, int]:
    """Seconds of the first step (the bucket of interest), its bytes and its combinations."""
    from elimina import _core

    problem = prepare(model, "mpe", {})
    plan = make_plan(Elimination(problem, range(len(model.sizes)), cpu_machine(threads), 1 << 40, dtype))
    encoded = encode(problem, plan)
    program = pack(plan, len(model.sizes))
    arena = np.zeros(program.arena_cells, dtype=program.dtype)
    arena[: program.factor_cells] = encoded.arena
    last = max(i for i, step in enumerate(plan.steps) if step.variable == 0)
    starts = program.starts[: last + 1]
    peaks = np.zeros(2 * len(starts))
    integer = int(plan.forbidden) if dtype.startswith("int") else 0
    outputs = np.zeros(0, dtype=np.int64)

    session = _core.DenseSession(
        plan.semiring, float(plan.forbidden), integer, program.words, starts, outputs, arena, peaks, threads
    )
    step = plan.steps[last]
    cells = step.out_cells + sum(operand.cells for operand in step.operands)
    return median_seconds(session.run, repeat), cells * program.dtype.itemsize, step.work


def numpy_time(model: Model, dtype: str, repeat: int) -> float:
    """Seconds of adding the tables with broadcasting and reducing over the first axis."""
    aligned = []
    for factor in model.factors:
        shape = [size if v in factor.scope else 1 for v, size in enumerate(model.sizes)]
        aligned.append(factor.dense().astype(dtype).reshape(shape))

    def call() -> None:
        total = aligned[-1]
        for table in aligned[-2::-1]:
            total = total + table
        total.min(0)

    return median_seconds(call, repeat)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    copy = copy_bandwidth(1 << 29, args.threads, args.repeat)
    print(f"copy: {copy / 1e9:.1f} GB/s (read + written), {args.threads} threads")
    print(f"{'bucket':34} {'dtype':8} {'ms':>8} {'GB/s':>7} {'copy':>6} {'numpy':>7}  Gcomb/s")
    binary = [(1,), (3,), (5,), (7,)]
    cases = [("message of 10^8, 4 binary, d=10", 10, [10] * 7, binary, True)]
    for domain, others in (
        (2, [2] * 25),
        (3, [3] * 15),
        (7, [7] * 8),
        (13, [13] * 6),
        (50, [50] * 3),
        (100, [100] * 3),
    ):
        edge = [(1 + i * (len(others) - 1) // 3,) for i in range(4)]
        cases.append((f"message of {domain}^{len(others) + 1}, 4 binary", domain, others, sorted(set(edge)), True))
    cases.append(("8 binary, no message, d=50", 50, [8] * 8, [(i,) for i in range(1, 9)], False))
    cases.append(("4 ternary, no message, d=20", 20, [10] * 6, [(1, 4), (2, 5), (3, 6), (1, 6)], False))
    for name, domain, others, scopes, message in cases:
        for dtype in ("int32", "int16", "float32", "float64"):
            if dtype == "float64" and math.prod(others) * domain > 2e8:
                continue
            model = bucket(domain, others, scopes, message, dtype)
            seconds, size, work = measure(model, dtype, args.threads, args.repeat)
            ratio = numpy_time(model, dtype, 1) / seconds
            print(
                f"{name:34} {dtype:8} {seconds * 1e3:8.1f} {size / seconds / 1e9:7.1f}"
                f" {size / seconds / copy:6.0%} {ratio:6.1f}x  {work / seconds / 1e9:.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
