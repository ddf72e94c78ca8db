"""Streamed programs against the plain executor: on a stand-in for a device everywhere, on a GPU where there is one."""

from __future__ import annotations

import numpy as np
import pytest

from elimina.backends.cuda.stream_session import StreamSession
from elimina.problem.semirings import SEMIRINGS
from tests.reference import program as plain
from tests.reference.cuda import Device
from tests.reference.random_programs import random_streamed

KINDS = [(name, dtype) for name, semiring in SEMIRINGS.items() for dtype in semiring.dtypes]


@pytest.fixture(params=["stand-in", pytest.param("cuda", marks=pytest.mark.gpu)])
def open_session(request):
    """Put a streamed program on a device."""
    if request.param == "stand-in":
        return lambda program, factors: StreamSession(Device(program), program, factors)
    from elimina.backends.cuda.backend import CudaBackend

    return CudaBackend().open


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_same_as_unstreamed(open_session, tmp_path, on_disk, semiring, dtype):
    ran = 0
    for seed in range(8):
        rng = np.random.default_rng([seed, KINDS.index((semiring, dtype)), on_disk])
        decode = seed % 2 == 0 and SEMIRINGS[semiring].is_idempotent
        program, factors = random_streamed(
            rng, semiring, dtype, int(rng.choice([1 << 13, 1 << 14, 1 << 16])), decode=decode, rows=40000
        )
        if program.stream is None:
            continue
        ran += 1
        if on_disk:
            program = program._replace(scratch=str(tmp_path))
        session = open_session(program, factors)
        shares: list[float] = []
        expected = plain.run(program, factors)
        for _ in range(2):  # a session may run again
            plain.assert_same(program, session.run(progress=shares.append), expected)
        assert shares[-1] == 1.0
        session.close()
        assert not list(tmp_path.iterdir())
    assert ran >= 3


@pytest.mark.parametrize("on_disk", [False, True])
def test_interrupt(open_session, tmp_path, on_disk):
    """A run that is interrupted between two tiles leaves a session that can run again."""
    rng = np.random.default_rng(3)
    program, factors = random_streamed(rng, "min-sum", "int32", 1 << 15, rows=40000)
    program = program._replace(scratch=str(tmp_path) if on_disk else None)
    session = open_session(program, factors)
    reports = 0

    def stop(share):
        nonlocal reports
        reports += 1
        if reports > 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.run(progress=stop)
    plain.assert_same(program, session.run(), plain.run(program, factors))
    session.close()
