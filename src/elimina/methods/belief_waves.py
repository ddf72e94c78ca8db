"""Loopy belief propagation in waves on a GPU, for models of very many small factors.

All messages of a wave are computed at the same time from the messages of the previous wave (Pearl 1988, "Probabilistic
Reasoning in Intelligent Systems", section 4.4), with damping if they do not converge.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from elimina._core import stopped
from elimina.backends.device_group import devices_of
from elimina.backends.factor_classes import FactorClass
from elimina.backends.gpu_start import outlasts_gpu_start
from elimina.backends.registry import find_cuda
from elimina.errors import DeviceError
from elimina.methods.factor_lists import FactorList, table_bytes
from elimina.methods.sum_estimate import Limits, SumEstimate
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import Problem
from elimina.running.host import backend_of

if TYPE_CHECKING:
    from elimina.backends.cuda.device import CudaDevice
    from elimina.backends.cuda.message_waves import MessageWaves

logger = logging.getLogger("elimina")

METHOD = "belief propagation in waves"

TOLERANCE = 1e-6
"""Largest change of a probability at which messages have converged."""

ROUND_WAVES, MAX_WAVES = 32, 2048
"""Number of waves between checks of the residual, which must be even; and largest number of waves: messages that have
not converged by then seldom converge later."""

MIN_TIME_SHARE = 0.25
"""Least running time of the waves, even after the time limit, as a share of the time of their preparation."""

DAMPINGS, MIN_PROGRESS = (0.25, 0.5, 0.8), 0.5
"""Damping factors. If the residual after a round is more than ``MIN_PROGRESS`` times the residual before it, the next
factor is used."""

UNKNOWN_ERROR = 0.5
"""Estimated error of marginals if there is no other estimate to compare them with."""

MAX_AXES, MAX_CELLS = 8, 1 << 10
"""Largest numbers of variables and cells of a factor: one thread computes all of its messages."""

EXPECTED_WAVES, CPU_CELLS_PER_SECOND = 100, 3e7
"""Expected waves until convergence, and message cells per second on a CPU, to decide whether starting a GPU pays."""


class _Arrays(NamedTuple):
    """Arrays for kernels: the summed logarithms of one-variable factors by state, and other factors grouped by size."""

    biases: NDArray[np.float64]
    classes: list[FactorClass]


def arrays_of(factors: FactorList, sizes: NDArray[np.int64]) -> _Arrays:
    """Return the factors of one variable as logarithms, and the other factors grouped by their sizes.

    Args:
        factors: Factors of a problem.
        sizes: Number of states of each variable.
    """
    starts, members = factors.scopes
    axes = np.diff(starts)
    cells = np.multiply.reduceat(sizes[members], starts[:-1]) if len(members) else np.empty(0, dtype=np.int64)
    offsets = np.cumsum(cells) - cells
    first_states = np.cumsum(sizes) - sizes
    biases = np.zeros(int(sizes.sum()))
    classes = []
    for count in np.unique(axes):
        numbers = np.flatnonzero(axes == count)
        scopes = members[starts[numbers] + np.arange(count)[:, None]]
        axis_sizes = sizes[scopes]
        shape_of = np.zeros(len(numbers), dtype=np.int64)
        for axis in axis_sizes:
            shape_of = np.unique(shape_of * (axis.max() + 1) + axis, return_inverse=True)[1]
        for shape in range(int(shape_of.max()) + 1):
            chosen = np.flatnonzero(shape_of == shape)
            shape_sizes = axis_sizes[:, chosen[0]]
            at = offsets[numbers[chosen]] + np.arange(shape_sizes.prod())[:, None]
            tables, scope = factors.values[at], scopes[:, chosen]
            if count == 1:
                with np.errstate(divide="ignore"):
                    np.add.at(biases, first_states[scope] + np.arange(shape_sizes[0])[:, None], np.log(tables))
            else:
                classes.append(FactorClass(tuple(shape_sizes.tolist()), scope, tables))
    return _Arrays(biases, classes)


def belief_waves(problem: Problem, options: CheckedOptions, limits: Limits) -> Iterator[SumEstimate]:
    """Yield estimates of belief propagation; none if tables are too large, or a GPU is not allowed or not worth it.

    Args:
        problem: Problem of a sum of products.
        options: Options of the call.
        limits: Limits of time and memory.
    """
    if not options.may_use_gpu or table_bytes(problem) > limits.memory_bytes:
        return
    starts, members = problem.groups.scopes
    axis_sizes = problem.model.size_array[members].astype(np.float64)
    cells = np.multiply.reduceat(axis_sizes, starts[:-1]) if len(members) else np.empty(0)
    if not len(cells) or cells.max() > MAX_CELLS or np.diff(starts).max() > MAX_AXES:
        return
    seconds = EXPECTED_WAVES * float(axis_sizes.sum()) / CPU_CELLS_PER_SECOND
    if not options.needs_gpu and not outlasts_gpu_start(seconds):
        return
    started = time.monotonic()
    backend = backend_of(options) if options.needs_gpu else find_cuda(options.threads)
    if backend is None:
        return
    sizes = problem.free_sizes
    factors = limits.factors_of(problem)
    if factors.log_scale == -math.inf:
        yield SumEstimate(METHOD, -math.inf, 0.0)
        return
    device = cast("CudaDevice", devices_of(backend)[0])
    # Imported here because calls on the CPU need no CuPy.
    from elimina.backends.cuda.message_waves import MessageWaves

    try:
        with device.arrays() as cupy:
            waves = MessageWaves(device, cupy, sizes, *arrays_of(factors, sizes))
        yield from _estimates(device, waves, sizes, factors.log_scale, limits, time.monotonic() - started)
    except DeviceError as error:
        logger.warning("a GPU failed, and the CPU estimates without it: %s", error)


def _estimates(
    device: CudaDevice,
    waves: MessageWaves,
    sizes: NDArray[np.int64],
    log_scale: float,
    limits: Limits,
    preparation: float,
) -> Iterator[SumEstimate]:
    # The device is released between estimates, while other methods run.
    count, failures, residual, started = 0, 0, math.inf, time.monotonic()
    while residual > TOLERANCE and count < MAX_WAVES:
        before = residual
        with device.arrays():
            residual = waves.run(ROUND_WAVES // 2, DAMPINGS[min(failures, len(DAMPINGS) - 1)])
        count += ROUND_WAVES
        failures += residual > MIN_PROGRESS * before
        has_minimum = stopped() or time.monotonic() - started > MIN_TIME_SHARE * preparation
        if limits.is_over and has_minimum and residual > TOLERANCE:
            yield from _estimate(device, waves, sizes, log_scale, residual, count)
    yield from _estimate(device, waves, sizes, log_scale, residual, count)


def _estimate(
    device: CudaDevice,
    waves: MessageWaves,
    sizes: NDArray[np.int64],
    log_scale: float,
    residual: float,
    count: int,
) -> Iterator[SumEstimate]:
    with device.arrays():
        log_z, marginals = waves.log_sum(), waves.marginals()
    if log_z == -math.inf:
        # A sum of 0 is not proved: messages may have underflowed.
        return
    errors = np.full(len(sizes), min(1.0, UNKNOWN_ERROR + residual))
    figures = {"waves": count, "residual": residual}
    yield SumEstimate(METHOD, log_z + log_scale, math.inf, marginals, errors, figures=figures)
