"""Sum-product buckets that are matrix products, beside NumPy's BLAS or cuBLAS on the same arrays."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from elimina._core import plan_steps
from elimina.planning.machine import cpu_machine
from elimina.planning.packed_steps import Steps
from elimina.planning.program import Program, place_steps
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.tree import plan_tree
from record import Record

REPEATS = 7
"""Runs of each, in alternation; the fastest counts."""


class Shape(NamedTuple):
    """A bucket: A(batch, x, y) and B(batch, y, z), of which y is eliminated."""

    batch: int
    rows: int
    columns: int
    depth: int

    def __str__(self) -> str:
        text = f"{self.rows} x {self.columns} x {self.depth}"
        return text if self.batch == 1 else f"{self.batch} times {text}"


SQUARE = tuple(Shape(1, d, d, d) for d in (256, 512, 1024, 2048))
LARGE = tuple(Shape(1, d, d, d) for d in (4096, 8192))
THIN = Shape(1, 8192, 64, 2048), Shape(1, 64, 8192, 2048), Shape(1, 4096, 4096, 64)
BATCHED = Shape(64, 256, 256, 256), Shape(512, 128, 128, 128)


def program_of(shape: Shape, dtype: str) -> tuple[Program, Any]:
    """Lay a bucket out as the planner does; return the layout, too."""
    sizes = shape.depth, shape.batch, shape.rows, shape.columns
    tree = plan_tree([(0, 1, 2), (0, 1, 3)], sizes, (0,), (1, 2, 3))
    made = plan_steps(tree, "lasting", MAX_OPERANDS, False, np.zeros(0), np.zeros(0, np.int32), True)
    placed = place_steps(made, np.dtype(dtype).itemsize, True, cpu_machine(1))
    program = Program(
        semiring="sum-product",
        dtype=np.dtype(dtype),
        parameter=0,
        words=placed.words,
        starts=placed.starts,
        variables=4,
        factor_cells=int(placed.factor_cells),
        arena_cells=int(placed.arena_cells),
        keep=True,
        decode=False,
        outputs=np.zeros((0, 3), np.int64),
        work=int(placed.work),
    )
    return program, placed


def tables_of(shape: Shape, placed: Any, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both tables as arrays of ``(batch, y, side)`` over the same memory."""
    item, tables, at = factors.itemsize, [], 0
    for number, side in enumerate((shape.rows, shape.columns)):
        depth, batch, along = placed.strides[at : at + 3].tolist()
        at += 3
        start = factors[int(placed.offsets[number]) :]
        strides = [item * stride for stride in (batch, depth, along)]
        tables.append(np.lib.stride_tricks.as_strided(start, (shape.batch, shape.depth, side), strides))
    return tables[0], tables[1]


def _cpu_seconds(call: Callable[[], Any]) -> float:
    """Return the time of all threads: what a loaded host gives them does not matter."""
    started = time.process_time()
    call()
    return time.process_time() - started


def _of_host(session: Any) -> float:
    return _cpu_seconds(session.run)


def _of_device(session: Any) -> float:
    return float(session.run().seconds["run"])


def fastest(*ways: Callable[[], float]) -> list[float]:
    """Return the seconds of each way, measured in alternation."""
    found = [[way() for way in ways] for _ in range(REPEATS)]
    return [min(times) for times in zip(*found, strict=True)]


def on_host(threads: int) -> None:
    """Compare the CPU's tile with NumPy, and record the table."""
    from elimina.backends.cpu import CpuBackend

    with threadpool_limits(threads):
        note = f"One bucket as the engine runs it, beside numpy.matmul; CPU time, {threads} thread(s)."
        _compare("products-cpu", note, (*SQUARE, *THIN[:2], BATCHED[0]), CpuBackend(threads), _of_host, _numpy)


def on_device() -> None:
    """Compare the device's steps with CuPy, and record the table."""
    from elimina.backends.cuda.backend import CudaBackend

    backend = CudaBackend()
    note = f"One bucket as the engine runs it, beside cupy.matmul (cuBLAS); {backend.name}."
    _compare("products-cuda", note, (*SQUARE, *LARGE, *THIN, *BATCHED), backend, _of_device, _cupy)


def _compare(
    name: str,
    note: str,
    shapes: tuple[Shape, ...],
    backend: Any,
    seconds_of: Callable[[Any], float],
    peer_of: Callable[..., tuple[Any, Callable[[], float]]],
) -> None:
    record = Record(name, ["type", "product", "elimina, ms", "peer, ms", "ratio", "GFLOP/s", "difference"], note)
    for dtype in ("float64", "float32"):
        for shape in shapes:
            program, placed = program_of(shape, dtype)
            factors = np.random.default_rng(1).random(program.factor_cells, np.dtype(dtype).type)
            lhs, rhs = tables_of(shape, placed, factors)
            session = backend.open(program, factors)
            session.run()
            expected, peer = peer_of(lhs, rhs)
            own, other = fastest(functools.partial(seconds_of, session), peer)
            worst = _difference(session, placed, shape, expected)
            session.close()
            rate = 2 * program.work / own / 1e9
            record.add(
                dtype,
                shape,
                f"{1000 * own:.3f}",
                f"{1000 * other:.3f}",
                f"{own / other:.2f}",
                f"{rate:,.0f}",
                f"{worst:.1e}",
            )
            print(*record.rows[-1], sep="\t", flush=True)
    record.save()


def _difference(session: Any, placed: Any, shape: Shape, expected: np.ndarray) -> float:
    """Return the largest relative difference of the first rows of the first matrix."""
    step = Steps.of(placed)[-1]
    stride = dict(zip(step.axes, step.out_strides, strict=True))
    count = min(shape.rows, 64)
    out = session.fetch(step.out_offset, (count - 1) * stride[2] + shape.columns)
    strides = [out.itemsize * stride[2], out.itemsize * stride[3]]
    found = np.lib.stride_tricks.as_strided(out, (count, shape.columns), strides)
    return float(np.abs(found / expected[:count] - 1).max())


def _numpy(lhs: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, Callable[[], float]]:
    """Return the first matrix of the product, and NumPy's way to make all."""
    turned = lhs.transpose(0, 2, 1)
    found = np.matmul(turned, rhs)

    def peer() -> float:
        return _cpu_seconds(lambda: np.matmul(turned, rhs, out=found))

    return found[0], peer


def _cupy(lhs: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, Callable[[], float]]:
    """Return the first rows of the product, and cuBLAS' way to make all: several calls, so that the host keeps up."""
    import cupy

    turned, other = cupy.asarray(np.ascontiguousarray(lhs)).transpose(0, 2, 1), cupy.asarray(np.ascontiguousarray(rhs))
    if len(lhs) == 1:
        turned, other = turned[0], other[0]
    found = cupy.matmul(turned, other)
    calls = 20 if found.size * lhs.shape[1] < 1 << 32 else 3

    def peer() -> float:
        events = [cupy.cuda.Event() for _ in range(2)]
        events[0].record()
        for _ in range(calls):
            cupy.matmul(turned, other, out=found)
        events[1].record()
        events[1].synchronize()
        return float(cupy.cuda.get_elapsed_time(*events)) / 1000 / calls

    return cupy.asnumpy(found[:64] if len(lhs) == 1 else found[0]), peer
