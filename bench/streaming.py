"""Buckets larger than the device's budget, against plain copies of the same bytes and plain reads, in one run.

    python bench/streaming.py [--device cuda|cpu] [--gib G] [--scratch DIR] [--disk-gib G] [--threads N] [--repeat R]

The bucket's tables take G GiB, the device's budget is a quarter of that. 'both': a message over all variables but the
last one, and a binary table; the new message is as large as the old one, so that copies run both ways at once (the
variable that only the new one has is its fastest axis, then its slowest). 'up': the new message is an eighth of the old
one. 'memory': the arena is pinned; the peer copies as many bytes from and to pinned memory, both ways at once. 'disk':
the arena is a file in DIR (cold: the system's cache of it is dropped before each run); the peer reads the file's tables
in order, with reads of 16 MiB.
"""

from __future__ import annotations

import argparse
import mmap
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from elimina.backends.cuda.host_arena import PinnedArena
from elimina.backends.cuda.stream_session import StreamSession
from elimina.backends.registry import get_backend
from elimina.backends.scratch import ScratchFile
from elimina.backends.tiled_session import TiledSession
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.number_texts import bytes_text
from elimina.planning.machine import cuda_machine
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.program import Program, pack
from elimina.planning.tiers import in_tiers
from elimina.problem.preparation import prepare

DOMAIN = 8
PIECE = 64 << 20
READ = 16 << 20


def bucket(size: int, kind: str) -> tuple[Plan, Program]:
    """The first step of an elimination, its tables of so many bytes, streamed through a quarter of them."""
    shares = 1 + (1 if kind.startswith("both") else 1 / DOMAIN)
    cells = int(size / shares) // 4
    sizes = [DOMAIN, DOMAIN]
    while cells >= 2 * DOMAIN * np.prod(sizes[2:], dtype=np.int64):
        sizes.append(min(16, int(cells // (DOMAIN * np.prod(sizes[2:], dtype=np.int64)))))
    scope = [0, *range(2, len(sizes))]
    own_sizes, row = [sizes[v] for v in scope], np.zeros((1, len(scope)), np.int32)
    large = Table(scope, np.zeros(1, np.int64), sizes=own_sizes, rows=row, default=1 << 20)
    other = 1 if kind.startswith("both") else 2
    small = Table([0, other], np.arange(DOMAIN * sizes[other]).reshape(DOMAIN, -1) % 7)
    model = Model.from_arrays(sizes, [])
    model = Model(model.variables, [large, small], sense="min-cost")
    order = [0, *range(2, len(sizes)), 1] if kind == "both, fastest" else range(len(sizes))
    whole = make_plan(Elimination(prepare(model, "mpe", {}), order, cuda_machine(), 1 << 50, "int32"))
    step = whole.steps[0]._replace(readers=())
    own = step.out_offset + step.out_span
    bare = whole._replace(
        steps=(step,), outputs=(whole.outputs[0]._replace(step=0),), arena_cells=own, decode=False, task="pr"
    )
    plan = in_tiers(bare._replace(bytes={"device": 4 * own, "host": 0}, memory_limit=own), 1 << 50, None)
    assert plan.fits
    assert not plan.form.is_resident
    return plan, pack(plan, len(sizes))


def numbers(cells: int) -> Any:
    """Factors, cheap to make."""
    values = np.arange(cells, dtype=np.int32)
    values *= 7919
    values &= 0xFFFF
    return values


def check(plan: Plan, arena: Any, factors: Any) -> None:
    """Compare some cells of the message with NumPy."""
    step, rng = plan.steps[0], np.random.default_rng(0)
    index = [rng.integers(0, size, 10000) for size in step.sizes]
    values = np.zeros((step.domain, 10000), np.int64)
    for operand in step.operands:
        at = operand.offset + sum(i * stride for i, stride in zip(index, operand.strides, strict=True))
        values += factors[at + operand.domain_stride * np.arange(step.domain)[:, None]]
    at = step.out_offset + sum(i * stride for i, stride in zip(index, step.out_strides, strict=True))
    np.testing.assert_array_equal(arena[at], np.minimum(values.min(axis=0), int(plan.forbidden)))


def best(call: Callable[[], float], repeat: int, before: Callable[[], object] = lambda: None) -> float:
    """Seconds of the fastest call, which returns them."""
    times = []
    for _ in range(repeat):
        before()
        times.append(call())
    return min(times)


def copies(backend: Any, arena: PinnedArena, up: int, down: int) -> Callable[[], float]:
    """Copy so many bytes to the device and back at the same time."""
    runtime, cuda = backend.cupy.cuda.runtime, backend.cupy.cuda
    queues = [cuda.Stream(non_blocking=True) for _ in range(2)]
    device = [cuda.alloc(PIECE) for _ in range(2)]
    host = arena.array.ctypes.data

    def copy() -> float:
        started = time.perf_counter()
        for at in range(0, max(up, down), PIECE):
            if at < up:
                size = min(PIECE, up - at)
                runtime.memcpyAsync(device[0].ptr, host + at, size, runtime.memcpyDefault, queues[0].ptr)
            if at < down:
                size = min(PIECE, down - at)
                runtime.memcpyAsync(host + up + at, device[1].ptr, size, runtime.memcpyDefault, queues[1].ptr)
        for queue in queues:
            queue.synchronize()
        return time.perf_counter() - started

    return copy


def drop_cache(file: ScratchFile) -> None:
    """Have the file read from the disk again."""
    file._map.madvise(mmap.MADV_DONTNEED)
    os.fsync(file._file)
    os.posix_fadvise(file._file, 0, 0, os.POSIX_FADV_DONTNEED)


def read_all(file: int, size: int) -> float:
    """Read the file's start."""
    started = time.perf_counter()
    buffer = memoryview(bytearray(READ))
    at = 0
    while at < size:
        at += os.preadv(file, [buffer[: min(READ, size - at)]], at)
    return time.perf_counter() - started


def from_memory(backend: Any, size: int, kind: str, repeat: int) -> str:
    """A bucket in pinned memory."""
    plan, program = bucket(size, kind)
    assert not plan.form.is_resident
    factors = numbers(program.factor_cells)
    session = backend.open(program, factors)
    assert isinstance(session, StreamSession)
    assert isinstance(session._host_arena, PinnedArena)
    step = plan.steps[0]
    # As many bytes as have to be moved: each table once.
    up, down = 4 * sum(o.cells for o in step.operands), 4 * step.out_cells
    session.run()
    check(plan, session.arena, factors)
    run = best(lambda: session.run().seconds["run"], repeat)
    peer = best(copies(backend, session._host_arena, up, down), repeat + 1)
    text = figures(f"memory, {kind}", plan, run, peer, up + down)
    session.close()
    return text


def from_disk(backend: Any, size: int, kind: str, scratch: str, repeat: int, cold: bool) -> str:
    """A bucket in a file, on a GPU or on the CPU."""
    plan, program = bucket(size, kind)
    program = program._replace(scratch=scratch)
    factors = numbers(program.factor_cells)
    session = backend.open(program, factors)
    assert isinstance(session, TiledSession)
    file = session._host_arena._file if isinstance(session, StreamSession) else session._file
    read = 4 * program.factor_cells
    session.run()
    check(plan, session.arena, factors)
    before = (lambda: drop_cache(file)) if cold else (lambda: None)
    run = best(lambda: session.run().seconds["run"], repeat, before)
    peer = best(lambda: read_all(file._file, read), repeat, before)
    text = figures(f"disk {'cold' if cold else 'cached'}, {kind}", plan, run, peer, read)
    session.close()
    return text


def figures(name: str, plan: Plan, run: float, peer: float, moved: int) -> str:
    """One line."""
    tables = bytes_text(4 * plan.arena_cells)
    rates = f"{moved / run / 1e9:6.1f} GB/s, plain {moved / peer / 1e9:6.1f} GB/s, {peer / run:6.1%}"
    return f"{name:24} {tables:>9} through {bytes_text(plan.bytes['device']):>9}: {run * 1e3:8.1f} ms, {rates}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--gib", type=float, default=8.0)
    parser.add_argument("--disk-gib", type=float, default=2.0)
    parser.add_argument("--scratch")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    backend, size = get_backend(args.device, args.threads), int(args.gib * 2**30)
    print(backend.name, flush=True)
    if args.device == "cuda":
        for kind in ("both, fastest", "both, slowest", "up"):
            print(from_memory(backend, size, kind, args.repeat), flush=True)
    if args.scratch:
        for cold in (True, False):
            print(from_disk(backend, int(args.disk_gib * 2**30), "up", args.scratch, args.repeat, cold), flush=True)


if __name__ == "__main__":
    main()
