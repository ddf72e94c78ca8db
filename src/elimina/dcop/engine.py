"""Computations of agents, one bucket at a time. They use plans, programs and backends, as other eliminations do."""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from elimina._core import plan_steps
from elimina.backends.memory_reuse import keeping_memory
from elimina.backends.protocols import Backend, TableSession
from elimina.backends.registry import get_backend
from elimina.backends.sparse.cpu import CpuSparseDevice
from elimina.backends.sparse.operations import SparseTables
from elimina.dcop.problem import Utility
from elimina.errors import DeviceError, MemoryLimitError, TimeLimitError
from elimina.number_texts import bytes_text, counted
from elimina.planning.devices import gpu_numbers
from elimina.planning.machine import Machine, machine_of
from elimina.planning.number_type import exact_integer
from elimina.planning.packed_steps import Factors, Steps
from elimina.planning.plan import MAX_BYTES, Plan
from elimina.planning.program import Program, pack, place_steps
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.step import FactorLayout, Output
from elimina.planning.tree import plan_tree
from elimina.problem.semirings import INTEGERS, LARGEST, Dtype


def bucket_dtype(tables: int, spread: int | float) -> Dtype:
    """Return the narrowest number type that holds integer costs from 0 to a spread exactly; float64 for floats.

    Args:
        tables: Number of tables.
        spread: Largest sum of the tables' allowed costs.

    Raises:
        InputError: No integers are wide enough.
    """
    if isinstance(spread, int):
        return exact_integer(_operands(tables), spread + 1)
    return "float64"


def forbidden_in(tables: int, dtype: Dtype) -> int | float:
    """Return the number for 'forbidden': infinity for floats, else the largest integer whose sums do not overflow.

    A step adds one such number for each of its tables.
    """
    return LARGEST[dtype] // _operands(tables) if dtype in LARGEST else math.inf


def _operands(tables: int) -> int:
    return max(2, min(tables, MAX_OPERANDS))


def plan_bucket(
    sizes: Sequence[int], scopes: Sequence[tuple[int, ...]], dtype: Dtype, machine: Machine, memory: int
) -> Plan:
    """Plan the elimination of variable 0 from tables, which are the plan's factors.

    The number for 'forbidden' depends on the dtype and the number of tables, and not on the costs: buckets of one shape
    share a plan.

    Args:
        sizes: Domain sizes of the eliminated variable, then of the message's variables in their elimination order.
        scopes: Scopes of the tables, ascending: variable 0 is in each, and each other variable in at least one.
        dtype: Number type from ``bucket_dtype``.
        machine: The device that will run it.
        memory: Bytes that the plan may use there.
    """
    separator = tuple(range(1, len(sizes)))
    tree = plan_tree(scopes, sizes, (0,), separator)
    made = plan_steps(tree, "lasting", MAX_OPERANDS, False, np.zeros(0), np.zeros(0, dtype=np.int32))
    itemsize = np.dtype(dtype).itemsize
    placed = place_steps(made, itemsize, 0, machine)
    steps, cells = Steps.of(placed), int(placed.arena_cells)
    return Plan(
        task="mpe",
        semiring="min-sum",
        dtype=dtype,
        forbidden=forbidden_in(len(scopes), dtype),
        order=(0,),
        kept=separator,
        width=len(separator),
        factors=Factors.of(np.arange(len(scopes) + 1), np.arange(len(scopes), dtype=np.int32), sizes, tree, placed),
        steps=steps,
        outputs=(Output(len(steps) - 1, separator),),
        factor_cells=int(placed.factor_cells),
        arena_cells=cells,
        keep=True,
        decode=False,
        device=machine.name,
        memory_limit=memory,
        bytes=machine.tiers(cells * itemsize, 0),
        seconds=machine.start + cells * itemsize / machine.fresh + placed.seconds,
        largest_table=int(placed.largest),
        work=int(placed.work),
        operations=int(placed.operations),
    )


Shape = tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]
"""Sizes of a bucket's variables, and the scope of each of its tables as positions among these variables."""

_SHAPES = 4096
"""Number of plans in the cache."""

MIN_CHECKED_BYTES = 64 << 20
"""Smallest number of bytes of an elimination for which the device's free memory is checked."""

MIN_GPU_COMBINATIONS = 1 << 24
"""Smallest number of combinations of a bucket for a GPU. With fewer, a CPU core is faster: for 10^7 combinations, it
takes 2 ms, and a GPU takes 4 ms."""

MAX_JOINED_COMBINATIONS = 1 << 12
"""Up to this number of combinations, a bucket is joined as one array: planning would take longer than the join."""

FORBIDDEN_COST = 1 << 40
"""Cost of forbidden cells: larger than any sum of allowed 32-bit costs, and small enough for sums in 64 bits."""

_FORBIDDEN_CELL = np.int64(FORBIDDEN_COST)

JOINED_CELL_BYTES = _FORBIDDEN_CELL.itemsize
"""Bytes of a cell in a join of tables as one array."""

_NO_OUTPUTS = np.zeros((0, 3), dtype=np.int64)

_HOST_TYPES = (np.ndarray, np.generic)


class MessageTable(NamedTuple):
    """A message's table, and the work for it.

    Attributes:
        values: An array over the separator; an array without axes if the separator is empty.
        forbidden: Cells with at least this value are forbidden; infinity if the values are floats.
        spread: Upper bound on the values of allowed cells.
        operations: Number of table reads: one for each table and combination of values.
        bytes: Memory of the computation, besides the tables that the agent stores.
        dtype: Number type of the values.
    """

    values: Any
    forbidden: int | float
    spread: int | float
    operations: int
    bytes: int
    dtype: str


class _Shaped(NamedTuple):
    """Plan and program of buckets of one shape: backend, position of the message, bytes and operations of a run."""

    backend: Backend
    plan: Plan
    program: Program
    output: FactorLayout
    bytes: int
    operations: int


class Engine:
    """An engine that eliminates variables on one device; agents of a process may share it.

    Args:
        device: ``cpu``, or one GPU, where buckets of little work are left to the CPU.
        threads: Number of CPU threads; None for all.

    Attributes:
        deadline: Deadline by ``time.monotonic``.
        received: Bytes of tables from other GPUs.

    Raises:
        InputError: Unknown device.
        DeviceError: There is no such device, or it cannot be used.
    """

    def __init__(self, device: str = "cpu", threads: int | None = None) -> None:
        self._backends: dict[str, Backend] = {
            name: get_backend(name, threads) for name in dict.fromkeys(("cpu", device))
        }
        self.device, self._threads, self.deadline, self.received = device, threads, math.inf, 0
        self._shaped = functools.lru_cache(_SHAPES)(self._shape)

    def _shape(self, sizes: tuple[int, ...], scopes: tuple[tuple[int, ...], ...], dtype: Dtype) -> _Shaped:
        device = "cpu" if math.prod(sizes) < MIN_GPU_COMBINATIONS else self.device
        plan = plan_bucket(sizes, scopes, dtype, machine_of(device.partition(":")[0], 1), MAX_BYTES)
        # The program has no outputs, because a run copies no result to the host. It has no cells of factors either,
        # because tables are loaded after the session is opened.
        program = pack(plan, len(sizes))._replace(outputs=_NO_OUTPUTS, factor_cells=0)
        step = plan.steps[-1]
        stride_of = dict(zip(step.axes, step.out_strides, strict=True))
        strides = tuple(stride_of[v] for v in plan.kept)
        output = FactorLayout((), plan.kept, sizes[1:], strides, step.out_offset, step.out_span)
        size = (plan.arena_cells + math.prod(sizes[1:])) * plan.itemsize
        return _Shaped(self._backends[device], plan, program, output, size, plan.operations)

    def eliminate(
        self, sizes: tuple[int, ...], tables: Sequence[tuple[tuple[int, ...], Utility]], room: int | None
    ) -> MessageTable:
        """Join tables and eliminate their first variable.

        Args:
            sizes: Domain sizes of the eliminated variable and of the message's variables.
            tables: Tables, each with the positions of its scope among these variables.
            room: Usable bytes; None: no limit.

        Raises:
            InputError: No numbers are wide enough for the costs.
            MemoryLimitError: There is too little memory; nothing was allocated.
            DeviceError: The device failed or is out of memory.
            TimeLimitError: The deadline has passed.
        """
        self._check_time()
        spread = sum(table.spread for _, table in tables)
        dtype = bucket_dtype(len(tables), spread)
        cells = math.prod(sizes)
        if dtype != "int64" and cells <= MAX_JOINED_COMBINATIONS and (room is None or 8 * cells <= room):
            return _join_as_array(sizes, tables, spread, dtype)
        backend, plan, program, output, size, operations = self._shaped(
            sizes, tuple(scope for scope, _ in tables), dtype
        )
        if size > MIN_CHECKED_BYTES:
            free_bytes = backend.memory()
            room = free_bytes if room is None else min(free_bytes, room)
        if room is not None and size > room:
            raise MemoryLimitError(
                f"needs {bytes_text(size)} for a message over {counted(len(sizes) - 1, 'variable')}, and "
                f"{bytes_text(room)} "
                "are left"
            )
        session = cast(TableSession, backend.open(program, np.zeros(0, dtype=dtype)))
        try:
            for layout, (_, table) in zip(plan.factors, tables, strict=True):
                values = _on_host(table.values) if plan.on_host else self.within_reach(table.values)
                session.put(layout, values, table.forbidden if dtype in INTEGERS else None, plan.forbidden)
                self._check_time()
            session.run(progress=self._check_time)
            values = session.read_table(output)
        finally:
            session.close()
        return MessageTable(values, plan.forbidden, spread, operations, size, dtype)

    def planned_effort(self, shape: Shape, dtype: Dtype) -> tuple[int, int]:
        """Return the operations and bytes of ``eliminate`` where it makes a plan; see ``MessageTable``."""
        shaped = self._shaped(*shape, dtype)
        return shaped.operations, shaped.bytes

    @property
    def host(self) -> Backend:
        """The CPU, with the engine's threads."""
        return self._backends["cpu"]

    def holds(self, values: Any) -> bool:
        """Return whether a table is on this engine's GPU."""
        return not isinstance(values, _HOST_TYPES) and int(values.device.id) in gpu_numbers(self.device)

    def within_reach(self, values: Any) -> Any:
        """Return a table that this engine's GPU can copy; another GPU's table with gaps is copied to the host first."""
        if isinstance(values, _HOST_TYPES) or self.holds(values):
            return values
        self.received += int(values.nbytes)
        return values if values.flags.c_contiguous else _on_host(values)

    def keeping_memory(self) -> AbstractContextManager[None]:
        """Reuse the memory of each elimination on a GPU: allocating memory often takes as long as a step."""
        return keeping_memory(self._backends[self.device])

    def works(self) -> bool:
        """Return whether the device still answers."""
        try:
            self._backends[self.device].memory()
        except DeviceError:
            return False
        return True

    def _check_time(self, share: float = 0.0) -> None:
        """Raise TimeLimitError if the deadline passed during an elimination."""
        if time.monotonic() > self.deadline:
            raise TimeLimitError("the time limit passed within an elimination")

    def rows(self, forbidden: int, dtype: str) -> SparseTables:
        """Return the operations on sparse tables of costs below ``forbidden``; they always run on the CPU."""
        return SparseTables(CpuSparseDevice("min-sum", np.dtype(dtype), forbidden, self._threads))

    def memory(self) -> int:
        """Return the free memory of the host in bytes."""
        return self._backends["cpu"].memory()


def _join_as_array(
    sizes: tuple[int, ...],
    tables: Sequence[tuple[tuple[int, ...], Utility]],
    spread: int | float,
    dtype: Dtype,
) -> MessageTable:
    """Join small tables as one array; the result equals that of a plan."""
    total: NDArray[Any] | None = None
    for scope, table in tables:
        cells = _on_host(table.values)
        if table.forbidden < FORBIDDEN_COST:
            cells = np.where(cells < table.forbidden, cells, _FORBIDDEN_CELL)
        cells = cells.reshape([size if axis in scope else 1 for axis, size in enumerate(sizes)])
        total = cells if total is None else total + cells
    if total is None:
        total = np.zeros(sizes, dtype=np.float64 if dtype == "float64" else np.int64)
    least = total.min(axis=0)
    forbidden = forbidden_in(len(tables), dtype)
    if dtype != "float64":
        least = np.minimum(least, forbidden)
    operations = max(len(tables), 1) * total.size
    return MessageTable(least.astype(dtype), forbidden, spread, operations, total.nbytes, dtype)


def row(table: Utility, cells: tuple[int | slice, ...]) -> NDArray[Any]:
    """Return the cells of a table on the host."""
    return _on_host(table.values[cells])


def _on_host(values: Any) -> NDArray[Any]:
    if isinstance(values, _HOST_TYPES):
        return cast("NDArray[Any]", values)
    try:
        return cast("NDArray[Any]", values.get())
    except RuntimeError as error:
        raise DeviceError(f"cuda:{values.device.id} failed: {error}") from error


class _GpuWork:
    """Pending work for a GPU: see ``GpuPool.submit``."""

    def __init__(self, work: Callable[[Engine], Any], tables: Sequence[Any], then: Callable[[Any], None]) -> None:
        self.work, self.tables, self.then = work, tables, then

    def bytes_on(self, engine: Engine) -> int:
        """Return the bytes of the work's tables that are already on a GPU."""
        return sum(int(values.nbytes) for values in self.tables if engine.holds(values))


class GpuPool:
    """Engines of several GPUs; each does one job at a time in a separate thread.

    Args:
        engines: One for each GPU.

    Attributes:
        failed: The engine whose device failed.
    """

    def __init__(self, engines: Iterable[Engine]) -> None:
        self._idle = list(engines)
        self._engines = tuple(self._idle)
        self._pool = ThreadPoolExecutor(len(self._engines), "elimina")
        self._waiting: list[_GpuWork] = []
        self._running: dict[Future[Any], tuple[Engine, _GpuWork]] = {}
        self.failed: Engine | None = None

    @staticmethod
    def takes(combinations: int) -> bool:
        """Return whether a bucket with this number of combinations is worth a GPU."""
        return combinations >= MIN_GPU_COMBINATIONS

    def submit(self, work: Callable[[Engine], Any], tables: Sequence[Any], then: Callable[[Any], None]) -> None:
        """Give work to the first idle engine; among several, to the one that holds most bytes of the work's tables.

        Args:
            work: Work of an engine.
            tables: Tables that it reads.
            then: Function that receives its result, in the thread of ``collect``.
        """
        self._waiting.append(_GpuWork(work, tables, then))
        self._begin()

    def _begin(self) -> None:
        while self._waiting and self._idle:
            # The job with most bytes of tables on an idle GPU goes to that GPU: copies between GPUs take longer than
            # most steps.
            pairs = itertools.product(self._waiting, self._idle)
            job, engine = max(pairs, key=lambda pair: pair[0].bytes_on(pair[1]))
            self._waiting.remove(job)
            self._idle.remove(engine)
            self._running[self._pool.submit(job.work, engine)] = engine, job

    def collect(self, is_patient: bool) -> bool:
        """Pass on finished results; return False if no work is pending.

        Args:
            is_patient: True to wait for a result.

        Raises:
            DeviceError: A GPU failed.
        """
        if not self._running:
            return False
        for future in wait(self._running, None if is_patient else 0, FIRST_COMPLETED).done:
            engine, job = self._running.pop(future)
            self._idle.append(engine)
            try:
                result = future.result()
            except DeviceError:
                self.failed = engine
                raise
            job.then(result)
        self._begin()
        return True

    def close(self) -> None:
        """End all work and discard its results."""
        deadlines = [engine.deadline for engine in self._engines]
        for engine in self._engines:
            engine.deadline = -math.inf
        self._pool.shutdown(cancel_futures=True)
        for engine, deadline in zip(self._engines, deadlines, strict=True):
            engine.deadline = deadline
