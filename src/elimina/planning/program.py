"""Packing a plan's steps into words that the CPU core and the kernels read (layout: ``include/elimina/program.hpp``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.planning.plan import Step


class Program(NamedTuple):
    """What a backend runs.

    Attributes:
        semiring: ``min-sum``, ``max-sum``, ``max-product``, ``sum-product``, ``log-sum-exp`` or ``count``.
        dtype: Of every table in the arena.
        parameter: ``min-sum`` / ``max-sum``: the forbidden value; ``count``: the modulus, 0 for 2^64; else unused.
        words: int64, the packed steps one after another, in an order in which every message is written before it is read.
        starts: int64, where each step's record starts in ``words``.
        variables: Number of variables of the model (length of an assignment).
        factor_cells: Elements at the arena's start that hold the factors.
        arena_cells: Elements of the whole arena.
        decode: Whether the best assignment is wanted besides the value.
    """

    semiring: str
    dtype: np.dtype[np.generic]
    parameter: float
    words: NDArray[np.int64]
    starts: NDArray[np.int64]
    variables: int
    factor_cells: int
    arena_cells: int
    decode: bool


def pack_steps(steps: Sequence[Step]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the packed words and the start of each step's record."""
    words: list[int] = []
    starts: list[int] = []
    children = [0] * len(steps)
    for step in steps:
        if step.parent >= 0:
            children[step.parent] += 1
    for number, step in enumerate(steps):
        starts.append(len(words))
        lo = step.outer + step.mid
        header = [
            0,
            step.domain,
            step.variable,
            len(step.axes),
            step.outer,
            step.mid,
            math.prod(step.sizes[: step.outer]),
            math.prod(step.sizes[step.outer : lo]),
            math.prod(step.sizes[lo:]),
            len(step.operands),
            step.tables_a,
            step.tables_b,
            step.out_offset,
            step.parent,
            children[number],
        ]
        for axis in zip(step.sizes, step.out_strides, step.axes, strict=True):
            header.extend(axis)
        for operand in step.operands:
            header += [operand.offset, operand.domain_stride, operand.source, *operand.strides]
        header[0] = len(header)
        words += header
    return np.array(words, dtype=np.int64), np.array(starts, dtype=np.int64)
