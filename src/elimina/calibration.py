"""Measurement of this machine's speeds, which are saved for the planner."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from elimina.api import plan, solve
from elimina.backends.cpu import CpuBackend
from elimina.backends.protocols import run_once
from elimina.backends.sparse.cpu import CpuSparseDevice
from elimina.backends.sparse.operations import SparseTables
from elimina.errors import DeviceError, InputError
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.planning.machine import FILE, SORTED_TUPLES, VERSION, Machine, calibration_file, speeds
from elimina.planning.options import Options
from elimina.planning.plan import Plan
from elimina.planning.program import Program, pack
from elimina.problem.semirings import Dtype
from elimina.problem.tasks import TaskName

REPEATS = 5
"""Runs of a measurement. The fastest one counts, since other work on the machine only slows it down."""

_CHAIN = 20_000
"""Number of variables of a chain, whose elimination consists of small steps."""

_GRID = 11, 4
"""Side and domain size of a grid whose tables stay in cache."""

_WIDE = 24
"""Number of binary variables of a single large table. A measured run reads each cell of it once."""

_FRESH_BYTES = 1 << 28
_COPY_BYTES = 1 << 30
"""``_FRESH_BYTES`` of newly allocated memory are filled; ``_COPY_BYTES`` are copied on the GPU, or to it."""

_TUPLES = 50_000
"""Number of tuples of each table of a join."""

_DIGITS = 3
"""Number of significant digits of a speed in the file."""

_START = "from elimina.calibration import gpu_start; print(gpu_start())"
"""Program of a new process, which has no context on the GPU yet: it prints ``gpu_start()``."""


class Measured(NamedTuple):
    """A measured speed: its name, a field of ``planning.machine.Speeds``, and its value."""

    name: str
    value: float


def measure() -> Iterator[Measured]:
    """Yield the speeds of this machine's CPU, then those of its GPU if it can be used, within a few seconds."""
    yield from _measured_cpu()
    if util.find_spec("cupy") is not None:
        try:
            yield from _measured_gpu()
        except DeviceError:
            return


def save(rates: Mapping[str, float]) -> Path:
    """Keep measured speeds in the user's cache folder, and return the path of the file.

    Raises:
        InputError: The environment variable for the file's path is empty, or the file cannot be written.
    """
    path = prepare_file()
    rounded_rates = {name: float(f"{value:.{_DIGITS}g}") for name, value in rates.items()}
    text = json.dumps({"version": VERSION, **rounded_rates}, indent=2)
    with _writing(path):
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            file.write(text + "\n")
        os.replace(file.name, path)
    speeds.cache_clear()
    return path


def prepare_file() -> Path:
    """Make the folder of the file of measured speeds, and return the path of the file.

    Raises:
        InputError: The environment variable for the file's path is empty, or the folder cannot be made.
    """
    path = _file()
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot save the calibration in {path}: {error.strerror or error}; set {FILE} to the path of a file in "
            "another folder"
        ) from error


def reset() -> Path | None:
    """Remove the file of measured speeds, and return its path; None if there is none."""
    path = _file()
    speeds.cache_clear()
    try:
        path.unlink()
    except FileNotFoundError:
        return None
    return path


def _file() -> Path:
    path = calibration_file()
    if path is None:
        raise InputError(f"cannot save the calibration: {FILE} is empty; unset it, or set it to the path of a file")
    return Path(path)


def _measured_cpu() -> Iterator[Measured]:
    chain = _chain()
    measured_plan, program = _program(chain)
    yield Measured("step", _fastest(program) / len(measured_plan.steps))

    measured_plan, program = _program(_grid(), "pr")
    work = _unit(combinations=1.0).seconds(measured_plan.steps, measured_plan.itemsize, 0)
    yield Measured("combinations", work / _fastest(program))

    wide = _wide()
    encoded = [solve(wide, device="cpu", options=Options(threads=1, method="eliminate")) for _ in range(2)]
    yield Measured("encoded", 2**_WIDE / min(float(result.stats["seconds"]["encode"]) for result in encoded))
    measured_plan, program = _program(wide, dtype="float64")  # the table exceeds all caches, so it is read from memory
    moved = _unit(bandwidth=1.0).seconds(measured_plan.steps, measured_plan.itemsize, 0)
    yield Measured("bandwidth", moved / _fastest(program))

    yield Measured("fresh", _FRESH_BYTES / _best(lambda: np.empty(_FRESH_BYTES, dtype=np.uint8).fill(1)))
    yield Measured("tuples", _tuple_rate())


def _unit(bandwidth: float = float("inf"), combinations: float = float("inf")) -> Machine:
    """Return a machine with infinite speeds except the given one.

    If the given speed is 1, the estimated seconds of a step are its amount of work: its bytes, or its combinations.
    """
    never = float("inf")
    return Machine(
        "cpu", "host", bandwidth, combinations, never, 0.0, 0.0, never, 0.0, bandwidth, combinations, 0.0, 0.0
    )


def _chain() -> Model:
    variables = [Variable(f"x{n}", 4) for n in range(_CHAIN)]
    return Model(variables, [Table([n, n + 1], _costs(4, 4)) for n in range(_CHAIN - 1)])


def _grid() -> Model:
    side, domain = _GRID
    number = np.arange(side * side).reshape(side, side)
    pairs = [*zip(number[:, :-1].flat, number[:, 1:].flat, strict=True)]
    pairs += zip(number[:-1].flat, number[1:].flat, strict=True)
    tables = [Table([int(a), int(b)], 1.0 + _costs(domain, domain)) for a, b in pairs]
    return Model([Variable(f"x{n}", domain) for n in range(side * side)], tables, sense="probability")


def _wide() -> Model:
    return Model([Variable(f"x{n}", 2) for n in range(_WIDE)], [Table(range(_WIDE), _costs(*[2] * _WIDE))])


def _costs(*sizes: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 100, sizes)


def _program(model: Model, task: TaskName = "mpe", dtype: Dtype | None = None) -> tuple[Plan, Program]:
    """Return the plan of an elimination on one thread, and its program."""
    options = Options(threads=1, method="eliminate", order_seconds=0.5, dtype=dtype)
    program_plan = plan(model, task, device="cpu", options=options)
    return program_plan, pack(program_plan, len(model.variables))


def _fastest(program: Program) -> float:
    """Return the shortest run time of a program on one thread, in seconds; the values of its factors do not matter."""
    session = CpuBackend(1).open(program, np.ones(program.factor_cells, dtype=program.dtype))
    try:
        return min(session.run().seconds["run"] for _ in range(REPEATS))
    finally:
        session.close()


def _best(call: Callable[[], object]) -> float:
    """Call a function a few times, and return the seconds of the fastest call."""
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _tuple_rate() -> float:
    """Return the joint tuples per second of a join that sums them on one thread, the sorting of its inputs included."""
    dtype = np.dtype(np.int32)
    tables = SparseTables(CpuSparseDevice("min-sum", dtype, 2**30 - 1, 1))
    rng, size = np.random.default_rng(0), 1000
    rows = [np.stack(np.divmod(np.sort(rng.choice(size * size, _TUPLES, False)), size), 1) for _ in range(2)]
    values = np.ones(_TUPLES, dtype)
    left, right = (
        tables.from_rows((0 + n, 1 + n), (size, size), keys_of_table.astype(np.int32), values)
        for n, keys_of_table in enumerate(rows)
    )
    joint = len(tables.join(left, right).rows.values)
    return (joint + SORTED_TUPLES * 2 * _TUPLES) / _best(lambda: tables.join(left, right, eliminate=1))


def _measured_gpu() -> Iterator[Measured]:
    from elimina.backends.cuda.backend import CudaBackend

    backend = CudaBackend()
    ran = subprocess.run([sys.executable, "-c", _START], capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        yield Measured("gpu_start", float(ran.stdout))
    planned, program = _program(_chain())
    factors = np.ones(program.factor_cells, dtype=program.dtype)
    took = min(run_once(backend, program, factors).seconds["run"] for _ in range(REPEATS))
    yield Measured("gpu_step", took / len(planned.steps))
    yield from _measured_copies(backend.cupy)


def _measured_copies(cupy: Any) -> Iterator[Measured]:
    """Yield the speeds of copies on the GPU, and to it from pinned memory."""
    source, target = cupy.zeros(_COPY_BYTES, dtype=np.uint8), cupy.empty(_COPY_BYTES, dtype=np.uint8)
    pinned = cupy.cuda.alloc_pinned_memory(_COPY_BYTES)
    host = np.frombuffer(pinned, dtype=np.uint8, count=_COPY_BYTES)
    wait = cupy.cuda.get_current_stream().synchronize

    def copy() -> None:
        cupy.copyto(target, source)
        wait()

    def upload() -> None:
        target.set(host)
        wait()

    yield Measured("gpu_bandwidth", 2 * _COPY_BYTES / _best(copy))
    yield Measured("gpu_link", _COPY_BYTES / _best(upload))


def gpu_start() -> float:
    """Return the seconds that a process without a context on the GPU takes to finish its first, small run there."""
    model = Model([Variable("x", 2), Variable("y", 2)], [Table([0, 1], _costs(2, 2))])
    _, program = _program(model)
    started = time.perf_counter()
    from elimina.backends.cuda.backend import CudaBackend

    run_once(CudaBackend(), program, np.ones(program.factor_cells, dtype=program.dtype))
    return time.perf_counter() - started
