"""Measurements of the CUDA kernels on single buckets and on chains, against the device's own limits."""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elimina.backends.cuda.backend import CudaBackend
from elimina.backends.cuda.compilation import compile_options
from elimina.backends.cuda.kernels import CELL_TYPES, THREADS, policy_type
from elimina.backends.cuda.session import CudaSession
from elimina.backends.protocols import run_once
from elimina.planning.packed_steps import Steps
from elimina.planning.program import Program
from elimina.planning.step import Operand, Step

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.reference.buckets import Bucket, bucket_program

SOURCE = Path(__file__).with_suffix(".cu")

REPEATS = 15
PAUSE = 1 << 19
"""Cycles that the device waits, so that the host has queued a call before its time starts."""
DTYPES = ("int32", "float32", "int16", "float64")


def _memory_bound(domain: int, axes: int, last: int | None = None) -> Bucket:
    sizes = (domain,) * (axes - 1) + (last or domain,)
    small = sorted({1, (axes + 1) // 2, max(1, axes - 1), axes})
    return Bucket(domain, sizes, (tuple(range(1, axes + 1)), *((v,) for v in small)))


MEMORY_BOUND = {
    "10^9": Bucket(10, (10,) * 8, ((1, 2, 3, 4, 5, 6, 7, 8), (1,), (3,), (6,), (8,))),
    "2^29": _memory_bound(2, 28),
    "3^18": _memory_bound(3, 17),
    "7^10": _memory_bound(7, 9),
    "13^7x5": _memory_bound(13, 7, 5),
    "50^5": _memory_bound(50, 4),
    "100^4x3": _memory_bound(100, 4, 3),
}
"""One message over all variables and four binary tables."""

COMPUTE_BOUND = {
    "50^6 binary": Bucket(50, (50,) * 5, ((1,), (2,), (3,), (4,), (5,))),
    "100^4x20 binary": Bucket(100, (100, 100, 100, 20), ((1,), (2,), (3,), (4,), (1,), (4,))),
    "64^5 ternary": Bucket(64, (64,) * 4, ((1, 2), (2, 3), (3, 4), (1, 4))),
    "100^4x10 ternary": Bucket(100, (10, 100, 100, 100), ((1, 2, 3), (2, 3), (1, 2, 4), (4,))),
    "97^4 triangle": Bucket(97, (97, 97, 97), ((1, 2), (2, 3), (1, 3))),
}
"""Small tables only: the work is in combining them."""


def chain_program(length: int, domain: int) -> tuple[Program, np.ndarray]:
    """Return a chain of small buckets: each reads a binary table, a unary one and the message before."""
    table, unary = domain * domain, domain
    stride = -(-(table + unary) // 64) * 64
    base = length * stride
    apart = -(-domain // 4) * 4  # as the planner packs small messages
    steps = []
    for n in range(length):
        last = n + 1 == length
        operands = [Operand(2 * n, -1, n * stride, 1, () if last else (0,), unary)]
        if n > 0:
            operands.append(Operand(-1, n - 1, base + (n - 1) * apart, 1, () if last else (0,), domain))
        tables_a = len(operands)
        if not last:
            operands.append(Operand(2 * n + 1, -1, n * stride + unary, domain, (1,), table))
        sizes, axes = ((), ()) if last else ((domain,), (n + 1,))
        out = base + n * apart
        steps.append(
            Step(
                n,
                domain,
                axes,
                sizes,
                (1,) * len(sizes),
                0,
                0,
                tuple(operands),
                tables_a,
                0,
                out,
                domain,
                () if last else (n + 1,),
            )
        )
    packed = Steps.packed(steps)
    factors = np.random.default_rng(0).integers(0, 100, base).astype(np.int32)
    program = Program(
        "min-sum", np.dtype(np.int32), 10**8, packed.words, packed.starts, length,
        base, base + apart * length, True, True,
        np.array([[length - 1, base + apart * (length - 1), 1]], np.int64), sum(step.work for step in steps),
    )  # fmt: skip
    return program, factors


class Bench:
    """The device under measurement."""

    def __init__(self, backend: CudaBackend) -> None:
        self.backend = backend
        self.cupy = backend.cupy
        self._kernels: dict[str, Any] = {}

    def kernel(self, name: str) -> Any:
        """Return a kernel of ``kernel_bench.cu`` by its name expression."""
        if name not in self._kernels:
            module = self.cupy.RawModule(
                code=SOURCE.read_text("utf-8"), options=compile_options(), name_expressions=(name,)
            )
            self._kernels[name] = module.get_function(name)
        return self._kernels[name]

    def seconds(self, call: Callable[[], Any], repeats: int = REPEATS) -> float:
        """Median device time of a call, without the time that the host takes to queue it."""
        event, stream = self.cupy.cuda.Event, self.backend.stream
        pause = self.kernel("elimina::pause")
        times = []
        with stream:
            for number in range(repeats + 3):
                begin, end = event(), event()
                pause((1,), (1,), (np.int64(PAUSE),))
                begin.record(stream)
                call()
                end.record(stream)
                end.synchronize()
                if number >= 3:
                    times.append(self.cupy.cuda.get_elapsed_time(begin, end) / 1000)
        return float(np.median(times))

    def copy_bandwidth(self, size: int = 4 << 30) -> float:
        """Return the bytes per second of a device-to-device copy, read and written ones counted."""
        source = self.cupy.zeros(size // 4, dtype=np.int32)
        target = self.cupy.empty_like(source)
        self.fill(source)
        runtime, stream = self.cupy.cuda.runtime, self.backend.stream
        return (
            2
            * size
            / self.seconds(
                lambda: runtime.memcpyAsync(
                    target.data.ptr, source.data.ptr, size, runtime.memcpyDeviceToDevice, stream.ptr
                )
            )
        )

    def fill(self, array: Any) -> None:
        """Fill a device array with values 0 ... 99."""
        cell = CELL_TYPES[array.dtype.name].replace("i", "elimina::i")
        kernel = self.kernel(f"elimina::fill<{cell}>")
        kernel((2048,), (THREADS,), (array, np.int64(array.size)))
        self.cupy.cuda.Device().synchronize()

    def bucket(self, bucket: Bucket, dtype: str) -> tuple[float, str]:
        """Return the seconds of one bucket, its steps one graph as in a session's later runs, and a word on its cut."""
        program = bucket_program(bucket, dtype)
        session = CudaSession(self.backend, program, np.zeros(0, program.dtype))
        layout = session.whole_program.layout
        try:
            with self.backend.stream:
                memory = self.cupy.cuda.UnownedMemory(
                    session.arena, program.factor_cells * program.dtype.itemsize, session
                )
                arena = self.cupy.ndarray(
                    (program.factor_cells,), program.dtype, self.cupy.cuda.MemoryPointer(memory, 0)
                )
                self.fill(arena)
            with self.backend.stream:
                session.launch(session.whole_program, False)
            seconds = self.seconds(lambda: session.launch(session.whole_program, False))
            tile: Any = layout.launches[-1]
            kind = tile.kernel.name.removeprefix("elimina::").partition("<")[0]
            note = f"{kind} {re.sub(r'^.*?(?=, )|>$', '', tile.kernel.name)[2:]} cut {tile.arguments[3:-1]} "
            note += f"blocks {tile.blocks} shared {tile.shared >> 10}K launches {len(layout.launches)}"
            return seconds, note
        finally:
            session.close()

    def rate(self, dtype: str) -> float:
        """Return the tuples per second of the innermost instructions alone, in registers."""
        policy = policy_type("min-sum", np.dtype(dtype))
        kernel = self.kernel(f"elimina::rate<{policy}>")
        blocks, rounds = self.backend.multiprocessors * 8, 4096
        out = self.cupy.empty(blocks * THREADS, dtype)
        width = 2 if dtype == "int16" else 1
        arguments = (out, np.int32(rounds), np.dtype(dtype).type(10000))
        return blocks * THREADS * rounds * 32 * width / self.seconds(lambda: kernel((blocks,), (THREADS,), arguments))

    def chain(self, length: int = 10000, domain: int = 10) -> tuple[float, float]:
        """Return the microseconds per bucket of a chain, to eliminate and to decode."""
        program, factors = chain_program(length, domain)
        runs = [run_once(self.backend, program, factors).seconds for _ in range(5)]
        run, decode = (1e6 * float(np.median([run[key] for run in runs])) / length for key in ("run", "decode"))
        return run, decode


def memory_bound_rows(
    bench: Bench, dtypes: Sequence[str], buckets: dict[str, Bucket], copy: float, report: Callable[[str], None]
) -> None:
    """Measure memory-bound buckets; `report` gets a line for each."""
    for dtype in dtypes:
        for name, bucket in buckets.items():
            seconds, note = bench.bucket(bucket, dtype)
            size = bucket.bytes(np.dtype(dtype).itemsize)
            report(
                f"{name:>10} {dtype:8} {1e3 * seconds:8.3f} ms {size / seconds / 1e12:6.2f} TB/s "
                f"{size / seconds / copy:6.1%}  {note}"
            )


def compute_bound_rows(
    bench: Bench, dtypes: Sequence[str], buckets: dict[str, Bucket], report: Callable[[str], None]
) -> None:
    """Measure compute-bound buckets; `report` gets a line for each."""
    for dtype in dtypes:
        limit = bench.rate(dtype)
        report(f"{dtype}: the instructions alone make {limit / 1e12:.2f}e12 rows/s")
        for name, bucket in buckets.items():
            seconds, note = bench.bucket(bucket, dtype)
            report(
                f"{name:>18} {dtype:8} {1e3 * seconds:8.3f} ms {bucket.rows / seconds / 1e12:6.2f}e12 rows/s "
                f"{bucket.rows / seconds / limit:6.1%}  {note}"
            )


def report_kernels(report: Callable[[str], None], dtypes: Sequence[str] = DTYPES) -> Bench:
    """Measure everything that needs no peer, and return the bench for more; `report` gets a line for each figure.

    Raises:
        DeviceError: There is no usable CUDA device.
    """
    bench = Bench(CudaBackend())
    copy = bench.copy_bandwidth()
    report(f"{datetime.date.today()} {bench.backend.name}: a copy moves {copy / 1e12:.2f} TB/s")
    memory_bound_rows(bench, dtypes, MEMORY_BOUND, copy, report)
    compute_bound_rows(bench, dtypes, COMPUTE_BOUND, report)
    for domain in (4, 10, 30):
        run, decode = bench.chain(domain=domain)
        report(f"chain of 10000 buckets of domain {domain}: {run:.2f} us a bucket, decoding {decode:.2f} us")
    return bench
