"""Streamed plans against unstreamed ones, on a device of NumPy whose queues run in any order that they may."""

from __future__ import annotations

import numpy as np
import pytest

from elimina.problem.semirings import SEMIRINGS
from tests.reference import program as plain
from tests.reference import stream as device
from tests.reference.random_programs import random_streamed

KINDS = [(name, dtype) for name, semiring in SEMIRINGS.items() for dtype in semiring.dtypes]


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_same_as_unstreamed(semiring, dtype):
    tiles = refused = 0
    for seed in range(25):
        rng = np.random.default_rng([seed, KINDS.index((semiring, dtype))])
        decode = seed % 2 == 0 and SEMIRINGS[semiring].is_idempotent
        budget, host_work = int(rng.choice([1 << 13, 1 << 14, 1 << 16])), int(rng.choice([0, 0, 100]))
        program, factors = random_streamed(rng, semiring, dtype, budget, decode=decode, host_work=host_work, rows=40000)
        if program.stream is None:
            refused += 1
            continue
        assert program.stream.cells * program.dtype.itemsize <= budget
        tiles += sum(bool(step.loops) for step in program.stream.steps)
        found = device.run(program, factors, rng)
        plain.assert_same(program, found, plain.run(program, factors))
    assert tiles > 10
    assert refused < 20
