"""CPU kernels on the shapes of junction trees, against NumPy and a plain copy of the input bytes, in one run.

    python bench/cpu_shapes.py [--threads N] [--repeat R] [--only TEXT]

A shape is written with one letter for each axis, slowest first: `abcx,bx->abc` eliminates x, the fastest axis of both
tables. 'ns' is the time of one combination of an output cell and a value of x; 'copy' how long a copy of the tables and
the output takes relative to the step (100 %: as fast as the copy); 'numpy' how many times faster the step is than the
faster of np.einsum and broadcasting.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np

from elimina import _core
from elimina.planning.packed_steps import Steps
from elimina.planning.step import Operand, Step
from timing import best_seconds

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.reference.planner import choose_tile
from tests.reference.tiles import table_strides

BINARY = "abcdefghijklmnop"
CASES = [
    ("abcx,bcx,ax->abc", {"a": 20, "b": 20, "c": 20, "x": 20}),
    ("abx,bcx,acx->abc", {"a": 20, "b": 20, "c": 20, "x": 20}),
    ("abcx,abcx,cx->abc", {"a": 20, "b": 20, "c": 20, "x": 5}),
    ("abxc,bxc,ax->abc", {"a": 20, "b": 20, "c": 20, "x": 20}),
    ("abxc,abx,bc->abc", {"a": 30, "b": 30, "c": 6, "x": 11}),
    ("xabc,xab,xbc,xac,abc->abc", {"a": 20, "b": 20, "c": 20, "x": 20}),
    ("xabc,xabc,xabc,xabc,xabc,xabc->abc", {"a": 20, "b": 20, "c": 20, "x": 20}),
    (f"{BINARY}x->{BINARY}", {}),
    (f"{BINARY}x,{BINARY}x,{BINARY[4:]}x->{BINARY}", {}),
    (f"{BINARY[:-2]}x{BINARY[-2:]},{BINARY[6:-2]}x{BINARY[-2:]}->{BINARY}", {}),
    (f"{BINARY[:-1]}x{BINARY[-1:]},{BINARY[:8]}x->{BINARY}", {}),
    ("abcdx,cdx,abx->abcd", {"a": 9, "b": 7, "c": 5, "d": 21, "x": 3}),
    ("abcdex,bdx,acex->abcde", {"a": 4, "b": 4, "c": 4, "d": 4, "e": 4, "x": 4}),
    ("abx,ax->ab", {"a": 40, "b": 30, "x": 100}),
    ("abx,ab->ab", {"a": 400, "b": 300, "x": 10}),
    ("xa,x->a", {"a": 5, "x": 1000}),
    ("ax,x->a", {"a": 5, "x": 1000}),
    ("abcx,bx,cx->abc", {"a": 5, "b": 7, "c": 3, "x": 4}),
    ("xabc,xb,xc->abc", {"a": 5, "b": 7, "c": 3, "x": 4}),
    ("abxc,xb,xc->abc", {"a": 5, "b": 7, "c": 3, "x": 4}),
    ("xab,xa->ab", {"a": 2, "b": 2, "x": 2}),
    ("abx,x,ab->ab", {"a": 3, "b": 2, "x": 3}),
]


def make_step(shape: str, sizes: dict[str, int], itemsize: int) -> tuple[Step, int]:
    """The step, and the elements of its arena."""
    scopes, out = shape.split("->")[0].split(","), shape.split("->")[1]
    members = [frozenset(out.index(axis) for axis in scope if axis in out) for scope in scopes]
    tile = choose_tile(sizes["x"], [sizes[axis] for axis in out], members)
    axes = (*tile.outer, *tile.mid, *tile.lo)
    height = 0
    operands: dict[int, Operand] = {}
    for number, scope in enumerate(scopes):
        shape_of = [sizes[axis] for axis in scope]
        strides, span = table_strides(shape_of, itemsize)
        place = dict(zip(scope, strides, strict=True))
        operands[number] = Operand(
            number, -1, height, place.get("x", 0), tuple(place.get(out[a], 0) for a in axes), math.prod(shape_of)
        )
        height += -(-span // 64) * 64
    strides, span = table_strides([sizes[axis] for axis in out], itemsize)
    ordered = (*tile.tables_a, *tile.tables_b, *tile.streamed)
    step = Step(
        0, sizes["x"], axes, tuple(sizes[out[a]] for a in axes), tuple(strides[a] for a in axes), len(tile.outer),
        len(tile.mid), tuple(operands[t] for t in ordered), len(tile.tables_a), len(tile.tables_b), height, span, (),
    )  # fmt: skip
    return step, height + span


def step_time(step: Step, arena: np.ndarray, semiring: str, threads: int, repeat: int) -> float:
    packed = Steps.packed([step])
    runs = max(1, 100_000 // step.work)
    starts = np.tile(packed.starts, runs)
    peaks = np.zeros(2 * runs)
    parameter = 0 if arena.dtype.kind == "f" else 10_000
    outputs = np.zeros(0, dtype=np.int64)

    session = _core.DenseSession(
        semiring, float(parameter), parameter, packed.words, starts, outputs, arena, peaks, threads
    )
    return best_seconds(session.run, repeat) / runs


def numpy_time(shape: str, tables: list[np.ndarray], semiring: str, repeat: int) -> float:
    scopes, out = shape.split("->")[0].split(","), shape.split("->")[1]
    letters = [*sorted(out), "x"]
    aligned = []
    for scope, table in zip(scopes, tables, strict=True):
        moved = table.transpose(sorted(range(len(scope)), key=lambda i: letters.index(scope[i])))
        aligned.append(
            moved.reshape([table.shape[scope.index(letter)] if letter in scope else 1 for letter in letters])
        )

    def broadcast() -> None:
        total = aligned[0]
        for table in aligned[1:]:
            total = total + table if semiring == "min-sum" else total * table
        total.sum(-1) if semiring == "sum-product" else total.min(-1)

    best = best_seconds(broadcast, repeat)
    if semiring == "sum-product":
        best = min(best, best_seconds(lambda: np.einsum(shape, *tables, optimize=False), repeat))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=9)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    print(f"{'shape':50} {'semiring':12} {'dtype':8} {'us':>9} {'ns':>7} {'copy':>6} {'numpy':>7}")
    for shape, sizes in CASES:
        sizes = sizes or dict.fromkeys((*BINARY, "x"), 2)
        for semiring, dtype in (
            ("sum-product", "float64"),
            ("sum-product", "float32"),
            ("min-sum", "float64"),
            ("min-sum", "int32"),
        ):
            label = f"{shape} {' '.join(map(str, sizes.values())) if max(sizes.values()) > 2 else ''}"
            if args.only not in f"{label} {semiring} {dtype}":
                continue
            step, arena_cells = make_step(shape, sizes, np.dtype(dtype).itemsize)
            arena = (rng.random(arena_cells) * (100 if dtype == "int32" else 1)).astype(dtype)
            seconds = step_time(step, arena, semiring, args.threads, args.repeat)
            tables = [arena[: math.prod(sizes[a] for a in scope)].reshape([sizes[a] for a in scope]).copy()
                      for scope in shape.split("->")[0].split(",")]  # fmt: skip
            source = np.zeros(sum(operand.cells for operand in step.operands) + step.out_cells, dtype)
            target = source.copy()
            copy = best_seconds(lambda s=source, t=target: [np.copyto(t, s) for _ in range(10)], args.repeat) / 10
            ratio = numpy_time(shape, tables, semiring, args.repeat) / seconds
            print(
                f"{label:50} {semiring:12} {dtype:8} {seconds * 1e6:9.2f} {seconds / step.work * 1e9:7.3f}"
                f" {copy / seconds:6.0%} {ratio:6.1f}x",
                flush=True,
            )


if __name__ == "__main__":
    main()
