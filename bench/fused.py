"""Chains of memory-bound buckets whose variables are eliminated several at a time, beside one at a time.

    python bench/fused.py [--device cuda] [--bits 29] [--repeat 7] [--record]

`clique`: one table over all variables, and for each variable three binary tables; eliminated from the first to the
last, so that every message has one variable less. `grid`: binary tables between neighbours, row by row, so that
messages stay as large as they are. Each runs in steps for one variable, and in steps for several, in turns.
Combinations a second are those of one variable at a time, for both.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from elimina._core import plan_steps
from elimina.backends.registry import get_backend
from elimina.planning.machine import cpu_machine, cuda_machine
from elimina.planning.packed_steps import Steps
from elimina.planning.program import Program, place_steps
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.tree import plan_tree
from record import Record

COLUMNS = ("chain", "cells", "steps", "most variables", "one at a time, ms", "together, ms", "ratio", "10^9/s")
KINDS = {"int16": "min-sum", "int32": "min-sum", "float32": "min-sum", "float64": "sum-product"}

Scopes = list[tuple[int, ...]]


def clique(variables: int) -> Scopes:
    """Return a scope of all variables, and three binary ones for each."""
    scopes: Scopes = [tuple(range(variables))]
    for v in range(variables):
        others = {(v + 1) % variables, (v + variables // 2) % variables, variables - 1} - {v}
        scopes += [(v, other) for other in sorted(others)]
    return scopes


def grid(rows: int, columns: int) -> Scopes:
    """Return the pairs of neighbours of a grid."""
    number = np.arange(rows * columns).reshape(rows, columns)
    pairs = [
        *zip(number[:, :-1].flat, number[:, 1:].flat, strict=False),
        *zip(number[:-1].flat, number[1:].flat, strict=False),
    ]
    return [(int(a), int(b)) for a, b in pairs]


def program_of(scopes: Scopes, sizes: Sequence[int], dtype: str, device: str, fused: bool) -> tuple[Program, Steps]:
    """Lay out the elimination of all variables, from the first to the last; messages make room for later ones."""
    tree = plan_tree(scopes, sizes, range(len(sizes)), ())
    made = plan_steps(tree, "postorder", MAX_OPERANDS, False, np.zeros(0), np.zeros(0, np.int32), False, fused)
    machine = cuda_machine() if device == "cuda" else cpu_machine(1)
    placed = place_steps(made, np.dtype(dtype).itemsize, False, machine)
    last, steps = len(placed.starts) - 1, Steps.of(placed)
    program = Program(
        semiring=KINDS[dtype],
        dtype=np.dtype(dtype),
        parameter=1e9 if dtype.startswith("float") else int(np.iinfo(dtype).max) // MAX_OPERANDS,
        words=placed.words,
        starts=placed.starts,
        variables=len(sizes),
        factor_cells=int(placed.factor_cells),
        arena_cells=int(placed.arena_cells),
        keep=False,
        decode=False,
        outputs=np.array([[last, int(steps.offsets_of(last)), 1]], np.int64),
        work=int(placed.work),
    )
    return program, steps


def seconds_of(session: Any, device: str) -> float:
    """Return the device's time of a run; on the CPU, what the process takes, whatever else runs there."""
    started = time.process_time()
    run = session.run()
    return time.process_time() - started if device == "cpu" else float(run.seconds["run"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="device that runs the plans")
    parser.add_argument("--bits", type=int, default=22, help="logarithm of the cells of a clique's table")
    parser.add_argument("--cells", nargs="+", choices=list(KINDS), default=list(KINDS), help="types of cells")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each plan, of which the fastest counts")
    parser.add_argument("--match", default="", help="chains whose name contains this")
    parser.add_argument("--record", action="store_true", help="write the table to bench/results")
    args = parser.parse_args()
    backend = get_backend(args.device, 1)
    clock = "processor time of one thread" if args.device == "cpu" else backend.name
    note = f"Fastest of {args.repeat} runs each, in turns; {clock}. 10^9/s: combinations of one variable at a time."
    record = Record(f"fused-{args.device}", COLUMNS, note)
    ternary, width = round(args.bits / math.log2(3)), args.bits - 3
    narrow = round(width / math.log2(3))
    chains = {
        f"clique 2^{args.bits}": (clique(args.bits), [2] * args.bits),
        f"clique 3^{ternary}": (clique(ternary), [3] * ternary),
        f"grid {width} x {width} of 2": (grid(width, width), [2] * width**2),
        f"grid {narrow} x {narrow} of 3": (grid(narrow, narrow), [3] * narrow**2),
    }
    for name, (scopes, sizes) in chains.items():
        for dtype in args.cells if args.match in name else ():
            found = [program_of(scopes, sizes, dtype, args.device, fused) for fused in (False, True)]
            programs, steps = [program for program, _ in found], found[1][1]
            draw = np.random.default_rng(0).integers(1, 100, 1 << 20)
            factors = np.resize(draw / 101 if KINDS[dtype] == "sum-product" else draw, programs[0].factor_cells)
            factors = factors.astype(dtype, copy=False)
            sessions = [backend.open(program, factors) for program in programs]
            answers = [session.run().zone.tolist() for session in sessions]
            times = [[seconds_of(session, args.device) for session in sessions] for _ in range(args.repeat)]
            for session in sessions:
                session.close()
            one, together = map(min, zip(*times, strict=True))
            is_exact = dtype.startswith("int")
            assert np.array_equal(*answers) if is_exact else np.allclose(*answers, rtol=1e-4), (name, dtype, answers)
            most = 1 + max(len(step.others) for step in steps)
            rate = programs[0].work / together / 1e9
            numbers = f"{1e3 * one:.3f}", f"{1e3 * together:.3f}", f"{one / together:.2f}", f"{rate:,.1f}"
            record.add(name, dtype, f"{len(programs[0].starts)} / {len(programs[1].starts)}", most, *numbers)
            print(*record.rows[-1], sep=" | ", flush=True)
    if args.record:
        print(record.save())


if __name__ == "__main__":
    main()
