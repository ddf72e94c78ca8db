"""The CUDA backend."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elimina._core import count_path
from elimina.backends.cpu import CpuBackend
from elimina.backends.cuda.device import CudaDevice
from elimina.backends.cuda.peer_session import PeerSession
from elimina.backends.cuda.session import CudaSession
from elimina.backends.cuda.sparse import CudaSparseDevice
from elimina.backends.cuda.stream_session import StreamSession
from elimina.backends.sparse.session import SparseSession
from elimina.errors import DeviceError
from elimina.planning.program import Program
from elimina.problem.semirings import SEMIRINGS


class CudaBackend(CudaDevice):
    """A CUDA device that runs programs."""

    def open(self, program: Program, factors: NDArray[np.generic]) -> CudaSession | StreamSession | SparseSession:
        """Put a program on the device; see ``Backend.open``.

        Raises:
            DeviceError: The device failed, is out of memory, or lacks the semiring in this dtype.
        """
        dtype = program.dtype.name
        if program.semiring not in SEMIRINGS or dtype not in SEMIRINGS[program.semiring].dtypes:
            raise DeviceError(f"no CUDA kernel for {program.semiring} in {dtype}: use the CPU")
        self.claim()
        if program.sparse is not None:
            count_path("cuda-rows")
            device = CudaSparseDevice(self, program.semiring, program.dtype, program.parameter)
            return SparseSession(self, CpuBackend(), device, program, factors)
        if program.stream is not None:
            return StreamSession(self, program, factors)
        session = CudaSession if program.shards is None else PeerSession
        return session(self, program, factors)
