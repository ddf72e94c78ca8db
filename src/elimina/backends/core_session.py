"""Packed steps, translated for the compiled core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elimina._core import DenseSession
from elimina.planning.program import Program

NO_STEPS = np.zeros(0, dtype=np.int64)


def dense_session(
    program: Program,
    words: NDArray[np.int64],
    starts: NDArray[np.int64],
    arena: NDArray[np.generic],
    peaks: NDArray[np.float64],
    threads: int,
    *,
    outputs: NDArray[np.int64] = NO_STEPS,
) -> DenseSession:
    """Translate steps for the compiled core.

    Args:
        program: Program of the steps; it sets the semiring and the number type.
        words: Records of the steps; unused if the program defers its steps.
        starts: Start of each record.
        arena: All tables.
        peaks: Output ranges of the steps; each run overwrites them.
        threads: Number of threads.
        outputs: Numbers of the steps whose tables are the answer.
    """
    semiring, parameter, flat = program.semiring, float(program.parameter), peaks.reshape(-1)
    whole = int(program.parameter) if program.dtype.kind in "iu" else 0
    if program.deferred is not None:
        return DenseSession(semiring, parameter, whole, program.deferred.placed, outputs, arena, flat, threads)
    return DenseSession(semiring, parameter, whole, words, starts, outputs, arena, flat, threads)
