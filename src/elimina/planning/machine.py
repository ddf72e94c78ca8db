"""Speeds of the machine; costs of steps, tables and slices; and estimates of time from both.

``Speeds`` are measured by ``elimina calibrate``, and stored in a file in the user's cache folder. The numbers in this
module were measured on a virtual machine with two cores of a server's CPU, and on an H200 unless another GPU is named.
"""

from __future__ import annotations

import functools
import logging
import math
import os
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import SHARED_WORK
from elimina.errors import InputError
from elimina.planning.matrix_products import product_of
from elimina.planning.step import MATCHING, Step

logger = logging.getLogger("elimina")

VERSION = 2
"""Version of the calibration file: it changes when a speed is measured in another way, because old files are then
wrong."""

FILE = "ELIMINA_CALIBRATION"
"""Environment variable with the path of the calibration file; an empty value disables the file."""


class Speeds(NamedTuple):
    """Speeds of a machine.

    Attributes:
        bandwidth: Bytes per second that a large step reads and writes on one thread.
        combinations: Combinations per second of a step on one thread with tables in the cache. A combination is a pair
            of an output cell and a value of the eliminated variable.
        fresh: Bytes of new memory per second that the system provides.
        step: Least seconds of a step.
        tuples: Joint tuples per second of a join of sparse tables on one thread, which sums them over a variable. The
            rate is 1.2e7 to 2.5e7 for counts with negated circuit constraints, and 1.0e7 to 4.3e7 for random tables.
        encoded: Cells of factors written per second.
        gpu_bandwidth: Bytes per second that a large copy on the GPU reads and writes.
        gpu_step: Least seconds of a step on the GPU.
        gpu_start: Seconds for creating a GPU's context and loading kernels.
        gpu_link: Bytes per second from the host to the GPU.
    """

    bandwidth: float = 1.2e10
    combinations: float = 1.5e9
    fresh: float = 2.5e9
    step: float = 1e-6
    tuples: float = 1.5e7
    encoded: float = 2e8
    gpu_bandwidth: float = 3.5e12
    gpu_step: float = 2e-6
    gpu_start: float = 1.0
    gpu_link: float = 4.5e10


UNITS = {
    "bandwidth": "bytes/s",
    "combinations": "combinations/s",
    "fresh": "bytes/s",
    "step": "s",
    "tuples": "tuples/s",
    "encoded": "cells/s",
    "gpu_bandwidth": "bytes/s",
    "gpu_step": "s",
    "gpu_start": "s",
    "gpu_link": "bytes/s",
}
"""Units of the speeds."""


def calibration_file() -> str | None:
    """Return the path of the file of measured speeds, which may not exist; None if the file is disabled.

    Raises:
        InputError: No home folder is available for the file.
    """
    named = os.environ.get(FILE)
    if named is not None:
        return named or None
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if cache.startswith("~"):
        raise InputError(f"cannot find the home folder for the calibration: set {FILE} to the path of a file")
    return os.path.join(cache, "elimina", "calibration.json")


@functools.cache
def speeds() -> Speeds:
    """Return the measured speeds of this machine, or the defaults if there is no measurement.

    An invalid file is ignored, with a warning.
    """
    try:
        path = calibration_file()
    except InputError:
        return Speeds()
    if path is None:
        return Speeds()
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return Speeds()
    except (OSError, UnicodeDecodeError) as error:
        return _ignored(path, str(error))
    import json

    try:
        speeds_by_name = json.loads(text)
    except ValueError as error:
        return _ignored(path, str(error))
    if not isinstance(speeds_by_name, dict):
        return _ignored(path, "expected an object of speeds")
    version = speeds_by_name.pop("version", 1)
    if version != VERSION:
        return _ignored(path, f"its speeds have version {version!r}, and elimina reads version {VERSION}")
    for name, value in speeds_by_name.items():
        if name not in Speeds._fields:
            return _ignored(path, f"unknown speed {name!r}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            return _ignored(path, f"{name!r} is {value!r}, not a positive number")
    return Speeds(**{name: float(value) for name, value in speeds_by_name.items()})


def _ignored(path: str, reason: str) -> Speeds:
    advice = "run 'elimina calibrate' or 'elimina calibrate --reset'"
    logger.warning("ignored the calibration in %s: %s; %s", path, reason, advice)
    return Speeds()


# --- constants of the planner's estimates of time: relative costs, seconds, and amounts per second ---

EXPONENTIAL = 20.0
"""Time of a combination with an exponential, relative to one without."""

COUNT_COMBINATION = 2.0
"""Time of a combination of a count modulo 2^64 on the CPU, relative to one of a sum of floats: 1.85 to 2.3 for grids,
random tables and negated circuit constraints."""

PRODUCT_SPEED = 6.0
"""Combinations per second of a step that is a matrix product, relative to those of other steps."""

PRIME_RUN = 2.0
"""Time of a count modulo a prime, relative to a count modulo 2^64."""

BOTH_PASSES = 4.0
"""Time of both passes over a tree, relative to visiting each of its cells once at full speed; measured on networks."""

KEPT_TREE_RUNS = 5
"""Expected number of runs of a junction tree or of a batch; the time limit of the order search grows with it."""

SORTED_TUPLES = 1
GPU_SORTED_TUPLES = 3
"""Cost of sorting an input tuple of a join, relative to making a joint tuple, on the CPU and on a GPU. A CPU sorts
1.1e7 to 3.9e7 tuples per second."""

SPARSE_STEP = 2e-4
GPU_SPARSE_STEP = 2e-3
"""Least seconds of a step on sparse tables, on the CPU and on a GPU."""

GPU_OPEN_START = 0.03
"""Seconds for loading kernels and packing steps in the first run of a model's structure on an open GPU.

Median of six structures on an H100, with 8 to 52 ms (``bench/several_gpus.py --parts starts``); later runs take 2 to
9 ms.
"""

GPU_COMBINATIONS = 3e12
GPU_FRESH = 1e12
GPU_TUPLES = 1e10
"""Combinations, bytes of new memory, and tuples per second on an H200."""

GPU_LINK = 3.5e11
GPU_COPY_SECONDS = 5e-4
GPU_JOIN_SECONDS = 5e-4
"""Bytes per second that a GPU reads from another one's memory, measured on two H100s; least seconds of each copy;
seconds for combining the output ranges of all GPUs."""

GPU_RUN_BYTES = 16
"""Cost of starting a run of contiguous bytes in a copy between GPUs, in bytes."""

SLICE_SECONDS = 2e-4
SLICED_TABLE_SECONDS = 5e-5
"""Seconds of a slice in addition to its steps, and for each table that changes from one slice to the next."""

# --- tiers of memory ---

DISK = 2e9
"""Bytes per second that are read from disk while other tables are computed."""

SAVED = 5e8
"""Bytes per second of messages saved to disk."""

PINNED = 4e9
"""Bytes per second of allocation of pinned memory."""

TILE_SECONDS = 2e-5
"""Seconds of a tile of a streamed step on the device, in addition to its cells."""

QUEUE_SECONDS = 1.5e-4
"""Seconds that the host takes to queue a tile."""

RUN_BYTES = 4096
"""Cost of starting a run of contiguous bytes in a copy, in bytes."""

# --- batches of cases, on one thread ---

CASE_SECONDS = 2e-6
"""Seconds of a case in addition to its steps."""

CASE_STEP_SECONDS = 6e-7
CASE_COMBINATIONS = 3e9
"""Seconds of a step, and combinations per second: the tables of a single case stay in a core's cache."""

OWN_STEP_SECONDS = 2e-7
OWN_PLAN_SECONDS = 8e-7
OWN_ORDER_SHARE = 0.1
"""Seconds of running a step, seconds of planning a step, and time of the order search as a share of the run, all for a
plan of a single case."""

CASE_COLUMN_SECONDS = 4e-5
"""Seconds for each observed or queried variable of a chunk of cases, in addition to the run."""

# --- compute clusters, and proofs of shortest tours ---

DEALT_SECONDS = 1e-3
"""Seconds that a client takes to send a task with Dask."""

PROOF_SECONDS, PROOF_EDGE_SECONDS = 0.3, 4e-5
"""Seconds of a search for a proof before its first check of the time limit: a constant, and seconds per edge."""

# --- structures and bounds ---

PLANNED_FACTOR_SECONDS = 2e-5
"""Seconds per factor for planning and starting an elimination."""

ESTIMATED_FACTOR_SECONDS = 8e-7
"""Seconds per factor for estimating an elimination's work: 0.7 (link) to 0.9 us (munin1)."""

COLLECTED_FACTOR_SECONDS = 1e-7
"""Seconds per factor for collecting the relevant factors of a variable's posterior."""

COMPARED_SET_SECONDS = 1e-7
"""Seconds for comparing two sets of factors."""

BOUNDED_TABLE_SECONDS = 3e-5
"""Seconds per table of first bounds."""

SHIFTED_CELL_SECONDS = 1e-7
SHIFTED_CLUSTER_SECONDS = 1e-4
"""Seconds of a pass of cost shifting for each cell of the join graph, and for each of its clusters."""

GPU_CLUSTER_SECONDS = 4e-4
"""Seconds per cluster of the first pass on a GPU (H100: 0.64 s for 1,600 clusters); later passes are far faster."""

JOINED_CELL_SECONDS = 8e-9
COMPARED_PAIR_SECONDS = 2e-6
PARTITIONED_BUCKET_SECONDS = 3e-5
"""Seconds of a partition by content for each cell of joined tables, each pair of tables, and each mini-bucket."""

PLANNED_BUCKET_SECONDS = 1e-3
"""Seconds for planning a mini-bucket; shorter runs are dominated by planning."""

CONTEXT_SECONDS = 1e-4
"""Seconds that the simulator of agents takes for a small table, including its request and its message."""


class Machine(NamedTuple):
    """Cost model of a device, for the planner.

    Attributes:
        name: ``cpu`` or ``cuda``.
        home: Memory tier of the arena: ``host`` or ``device``.
        bandwidth: Bytes per second that a large copy reads and writes.
        combinations: Combinations per second of a step with tables in the cache. A combination is a pair of an output
            cell and a value of the eliminated variable.
        fresh: Bytes of new memory per second that the system provides.
        step: Least seconds of a step.
        start: Seconds before the first step (for creating a GPU's context and loading kernels).
        rows: Tuples per second that a join of sparse tables produces; sorting its inputs takes additional time.
        rows_step: Least seconds of a step on sparse tables.
        sorted_row: Cost of sorting an input tuple, relative to a joint tuple.
        lone_bandwidth: Bytes per second of a step on one thread.
        lone_combinations: Combinations per second of a step on one thread.
        shared: Least number of combinations of a step that runs on several threads.
        product_speed: Combinations per second of a step that is a matrix product, relative to those of other steps.
    """

    name: str
    home: str
    bandwidth: float
    combinations: float
    fresh: float
    step: float
    start: float
    rows: float
    rows_step: float
    lone_bandwidth: float
    lone_combinations: float
    shared: float
    sorted_row: float
    product_speed: float = 1.0

    @property
    def speed(self) -> NDArray[np.float64]:
        """Figures from which the core estimates the time of dense steps."""
        lone = self.lone_bandwidth, self.lone_combinations, self.shared
        return np.array([self.bandwidth, self.combinations, self.step, *lone, self.product_speed])

    def multiplying(self) -> Machine:
        """Return the cost model of sums of products of floats, of which a CPU computes some as matrix products."""
        return self._replace(product_speed=PRODUCT_SPEED) if self.on_host else self

    def counting(self) -> Machine:
        """Return the cost model of counts: a CPU multiplies integers of 64 bits more slowly than floats."""
        if not self.on_host:
            return self
        return self._replace(
            combinations=self.combinations / COUNT_COMBINATION,
            lone_combinations=self.lone_combinations / COUNT_COMBINATION,
        )

    def step_seconds(self, moved: float, work: float, streamed: float, is_product: bool = False) -> float:
        """Estimate the time of a dense step.

        Args:
            moved: Bytes that the step reads and writes.
            work: Combinations of the step.
            streamed: Number of tables that the step reads at each combination.
            is_product: True if a sum of products of this form runs as a matrix product.
        """
        is_lone = work < self.shared
        bandwidth = self.lone_bandwidth if is_lone else self.bandwidth
        combinations = self.lone_combinations if is_lone else self.combinations
        combinations *= self.product_speed if is_product else 1
        return self.step + max(moved / bandwidth, work * (1 + 0.5 * streamed) / combinations)

    def seconds(self, steps: Iterable[Step], itemsize: int, arena: int) -> float:
        """Return the estimated time of the steps; infinity if it exceeds the range of floats.

        Args:
            steps: Steps of a plan.
            itemsize: Bytes of a cell.
            arena: Bytes of the whole arena.
        """
        try:
            work = sum(self._step_seconds(step, itemsize) for step in steps)
            return self.start + arena / self.fresh + work
        except OverflowError:
            return float("inf")

    def cell_seconds(self, seconds: float, steps: int) -> float:
        """Return the part of a plan's time that depends on its cells.

        Args:
            seconds: Estimated time of the plan.
            steps: Number of its steps, each of which takes a minimum time.
        """
        return seconds - self.start - steps * self.step

    def _step_seconds(self, step: Step, itemsize: int) -> float:
        moved = float(step.out_cells + sum(operand.cells for operand in step.operands)) * itemsize
        streamed = len(step.operands) - (0 if step.variable == MATCHING else step.tables_a + step.tables_b)
        is_product = self.product_speed != 1 and product_of(step) is not None
        return self.step_seconds(moved, float(step.work), streamed, is_product)

    @property
    def on_host(self) -> bool:
        """True if the arena lies in the host's memory."""
        return self.home == "host"

    def tiers(self, arena: int, factors: int, planning: int = 0) -> dict[str, int]:
        """Return a plan's bytes by memory tier: the arena; on the host, also the encoded factors and planning."""
        if self.on_host:
            return {"host": arena + factors + planning}
        return {self.home: arena, "host": factors}


def cpu_machine(threads: int) -> Machine:
    """Return the cost model of a host that uses a number of threads."""
    measured = speeds()
    return Machine(
        name="cpu",
        home="host",
        bandwidth=measured.bandwidth * min(threads, 8),
        combinations=measured.combinations * threads,
        fresh=measured.fresh,
        step=measured.step,
        start=0.0,
        rows=measured.tuples * threads,
        rows_step=SPARSE_STEP,
        lone_bandwidth=measured.bandwidth,
        lone_combinations=measured.combinations,
        shared=SHARED_WORK,
        sorted_row=SORTED_TUPLES,
    )


def machine_of(device: str, threads: int) -> Machine:
    """Return the cost model of a plan's device: ``cuda``, or ``cpu`` with a number of threads."""
    return {"cpu": cpu_machine(threads), "cuda": cuda_machine()}[device]


def cuda_machine(is_open: bool = False) -> Machine:
    """Return the cost model of a data-centre GPU; ``is_open``: True if this process has already started it."""
    measured = speeds()
    return Machine(
        name="cuda",
        home="device",
        bandwidth=measured.gpu_bandwidth,
        combinations=GPU_COMBINATIONS,
        fresh=GPU_FRESH,
        step=measured.gpu_step,
        start=GPU_OPEN_START if is_open else measured.gpu_start,
        rows=GPU_TUPLES,
        rows_step=GPU_SPARSE_STEP,
        lone_bandwidth=measured.gpu_bandwidth,
        lone_combinations=GPU_COMBINATIONS,
        shared=0.0,
        sorted_row=GPU_SORTED_TUPLES,
    )
