"""Several devices of one kind as one backend."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.backends.protocols import Backend, GpuBackend, Session
from elimina.planning.machine import Machine
from elimina.planning.program import Program


class DeviceGroup:
    """Devices of one kind as one backend: plans are made for each single device, and independent work is divided.

    Args:
        members: Backends of the devices, which share no memory; the first one runs all work that cannot be divided.
    """

    def __init__(self, members: Sequence[Backend]) -> None:
        self.members = tuple(members)

    @property
    def name(self) -> str:
        """Number of the devices and the first one's name."""
        return f"{len(self.members)} x {self.members[0].name}"

    @property
    def machine(self) -> Machine:
        """Description of one of the devices for the planner."""
        return self.members[0].machine

    @property
    def threads(self) -> int:
        """Number of CPU threads for the host's share of the work."""
        return self.members[0].threads

    def memory(self) -> int:
        """Return the bytes that a program may take at present on each of the devices."""
        return min(member.memory() for member in self.members)

    def open(self, program: Program, factors: NDArray[np.generic]) -> Session:
        """Put a program on the first device, or a divided one on all: see ``Backend.open``."""
        if program.shards is not None:
            from elimina.backends.sharded_session import ShardedSession

            return ShardedSession(self.members[: program.shards.gpus], program, factors)
        return self.members[0].open(program, factors)


def devices_of(backend: Backend) -> tuple[Backend, ...]:
    """Return the backends of single devices that a backend consists of."""
    return backend.members if isinstance(backend, DeviceGroup) else (backend,)


def gpu_count(backend: Backend) -> int:
    """Return the number of GPUs of a GPU's machine without opening any; 1 for other devices."""
    return backend.count if isinstance(backend, GpuBackend) else 1


def reach_each_other(backend: Backend, count: int) -> bool:
    """Return whether this many devices can read each other's memory; devices other than GPUs share the host's."""
    gpus = [device for device in devices_of(backend) if isinstance(device, GpuBackend)]
    numbers = range(count) if len(gpus) == 1 else [gpu.number for gpu in gpus]
    return all(gpu.reaches(number) for gpu in gpus for number in numbers)
