"""Cost models: how long a plan will take on a device, and which of its bytes lie where."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from elimina.planning.machine import GPU_COMBINATIONS, GPU_FRESH, GPU_SPARSE_STEP, GPU_TUPLES, SPARSE_STEP, speeds
from elimina.planning.plan import LEVEL, Step


class Machine(NamedTuple):
    """A device as the planner sees it.

    Attributes:
        name: ``cpu`` or ``cuda``.
        home: Memory tier that the arena lies in: ``host`` or ``device``.
        bandwidth: Bytes a second of a large copy, read and written ones counted.
        combinations: Combinations a second of one value of the eliminated variable and one output cell, tables in
            cache.
        fresh: Bytes a second at which memory is had from the system.
        step: Seconds that each step takes at least.
        start: Seconds before the first step (a GPU's context, loading of kernels).
        rows: Rows a second that a join of sparse tables makes, sorting of what it reads left out.
        rows_step: Seconds that each step on sparse tables takes at least.
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

    def seconds(self, steps: Iterable[Step], itemsize: int, arena: int) -> float:
        """Return the estimated time of the steps; infinity if it is beyond a float.

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
        """Return the share of a plan's time that depends on the number and size of its cells.

        Args:
            seconds: Estimated time of the plan.
            steps: Number of its steps, each of which takes a while whatever its cells are.
        """
        return seconds - self.start - steps * self.step

    def _step_seconds(self, step: Step, itemsize: int) -> float:
        moved = float(step.out_cells + sum(operand.cells for operand in step.operands)) * itemsize
        streamed = len(step.operands) - (0 if step.variable == LEVEL else step.tables_a + step.tables_b)
        return self.step + max(moved / self.bandwidth, float(step.work) * (1 + 0.5 * streamed) / self.combinations)

    @property
    def on_host(self) -> bool:
        """True if the arena lies in the host's memory."""
        return self.home == "host"

    def tiers(self, arena: int, factors: int) -> dict[str, int]:
        """Return the bytes by memory tier for an arena of so many bytes, its factors among them."""
        if self.on_host:
            return {"host": arena + factors}
        return {self.home: arena, "host": factors}


def cpu_machine(threads: int) -> Machine:
    """Cost model of a host with so many threads."""
    own = speeds()
    return Machine(
        name="cpu",
        home="host",
        bandwidth=own.bandwidth * min(threads, 8),
        combinations=own.combinations * threads,
        fresh=own.fresh,
        step=own.step,
        start=0.0,
        rows=own.tuples * threads,
        rows_step=SPARSE_STEP,
    )


def cuda_machine() -> Machine:
    """Cost model of a data-centre GPU."""
    own = speeds()
    return Machine(
        name="cuda",
        home="device",
        bandwidth=own.gpu_bandwidth,
        combinations=GPU_COMBINATIONS,
        fresh=GPU_FRESH,
        step=own.gpu_step,
        start=own.gpu_start,
        rows=GPU_TUPLES,
        rows_step=GPU_SPARSE_STEP,
    )
