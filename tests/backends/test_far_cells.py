"""Steps whose tables have cells farther apart than 32 bits tell."""

from __future__ import annotations

import random

import numpy as np
import pytest

from elimina._core import DenseSession, dense_instruction_set, dense_instruction_sets, use_dense_instruction_set
from elimina.backends.cuda import large_steps
from elimina.errors import DeviceError
from elimina.planning.packed_steps import Steps
from elimina.planning.step import Operand, Step
from tests.reference.products import product_program

HOP = 1 << 27
"""Cells between two values of an axis."""


def far_step(size, domain, side):
    """A step with an axis of this size, and the place of its output."""
    out = size * HOP
    read = Operand(0, -1, 0, side, (HOP,), size * domain)
    return Step(0, domain, (1,), (size,), (1,), 0, 0, (read,), 0, 0, out, size, ()), out


@pytest.mark.parametrize("domain", [5, 40, 400])
@pytest.mark.parametrize("side", [1, 2])
def test_cells_beyond_32_bits(tmp_path, domain, side):
    """Three runs: as the step is, translated where it is small, and again; cells alone are ever in memory."""
    size = 40
    path = tmp_path / "arena"
    with open(path, "wb") as file:
        file.truncate(2 * (size * HOP + (1 << 12)))
    arena = np.memmap(path, np.int16, "r+")
    values = np.random.default_rng(0).integers(0, 1000, (size, domain)).astype(np.int16)
    for value, row in enumerate(values):
        arena[value * HOP : value * HOP + side * domain : side] = row
    step, out = far_step(size, domain, side)
    packed = Steps.packed([step])
    used = dense_instruction_set()
    try:
        for name in dense_instruction_sets():
            use_dense_instruction_set(name)
            session = DenseSession(
                "min-sum", 1500, 1500, packed.words, packed.starts, np.zeros(1, np.int64), arena, np.zeros(2), 1
            )
            for _ in range(3):
                arena[out : out + size] = -1
                session.run()
                np.testing.assert_array_equal(arena[out : out + size], values.min(axis=1))
    finally:
        use_dense_instruction_set(used)


def test_a_gpu_refuses_rows_whose_cells_lie_so_far_apart():
    packed = Steps.packed([far_step(40, 400, 1)[0]])
    program = product_program(random.Random(0), "float32")._replace(semiring="min-sum", words=packed.words)
    with pytest.raises(DeviceError, match=r"lie more than 2147483647 apart .* use the CPU"):
        large_steps.choose_large(program, 0, 0, packed.words.tolist(), 132, 232448)
