"""The CUDA backend: a whole program in one buffer and few launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda.device import CudaDevice
from elimina.backends.cuda.session import CudaSession
from elimina.backends.cuda.stream import StreamSession
from elimina.errors import DeviceError
from elimina.planning.program import Program
from elimina.semiring import SEMIRINGS

if TYPE_CHECKING:
    from elimina.backends.sparse.session import RowsSession


class CudaBackend(CudaDevice):
    """Runs programs on one CUDA device."""

    def open(self, program: Program, factors: NDArray[np.generic]) -> CudaSession | StreamSession | RowsSession:
        """Put a program on the device; see ``backends/base.py``.

        Raises:
            DeviceError: The device failed, is out of memory, or lacks the semiring in this dtype.
        """
        dtype = program.dtype.name
        if program.semiring not in SEMIRINGS or dtype not in SEMIRINGS[program.semiring].dtypes:
            raise DeviceError(f"no CUDA kernel for {program.semiring} in {dtype}: use --device cpu")
        if program.sparse is not None:
            from elimina.backends.cpu import CpuBackend
            from elimina.backends.cuda.rows import CudaRows
            from elimina.backends.sparse.session import RowsSession

            device = CudaRows(self, program.semiring, program.dtype, program.parameter)
            return RowsSession(self, CpuBackend(), device, program, factors)
        session = CudaSession if program.stream is None else StreamSession
        return session(self, program, factors)
