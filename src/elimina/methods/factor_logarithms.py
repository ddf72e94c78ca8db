"""Logarithms of a problem's factors, in the layout of an elimination order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.planning.machine import cpu_machine
from elimina.planning.plan import MAX_BYTES
from elimina.planning.planner import Elimination, Relaxation, make_plan
from elimina.problem.preparation import Problem
from elimina.running.encoding import encode


class FactorLogarithms(NamedTuple):
    """Logarithms of a problem's factors, in the layout of an elimination order.

    Attributes:
        values: Cells of all factors, one factor after another.
        constants: Numbers to add to the sum's logarithm; minus infinity if the sum is 0.
        zeros: Flag of each factor: True if it contains a 0.
    """

    values: NDArray[np.float64]
    constants: tuple[float, ...]
    zeros: Sequence[bool]

    @staticmethod
    def of(problem: Problem, order: Sequence[int]) -> FactorLogarithms:
        """Return the logarithms of the factors of a problem of the task ``pr``."""
        # The layout of the factors does not depend on the mini-buckets, so the smallest ones are planned.
        plan = make_plan(
            Elimination(problem, order, cpu_machine(1), MAX_BYTES, "float64"), relaxation=Relaxation(1, side="upper")
        )
        encoded = encode(problem, plan, "log-sum-exp")
        if encoded.impossible:
            return FactorLogarithms(np.zeros(0), (-math.inf,), ())
        arena = encoded.arena
        tables = [
            np.lib.stride_tricks.as_strided(
                arena[factor.offset :], factor.sizes, [stride * arena.itemsize for stride in factor.strides]
            ).reshape(-1)
            for factor in plan.factors
        ]
        zeros = [bool((table == -math.inf).any()) for table in tables]
        constants = tuple(float(constant) for constant in encoded.constants)
        return FactorLogarithms(np.concatenate([np.zeros(0), *tables]), constants, zeros)
