"""The laws of every semiring, in every dtype that the backends compute it in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina.semiring import SEMIRINGS

CASES = [(name, dtype) for name, semiring in SEMIRINGS.items() for dtype in semiring.dtypes]


def element(name: str, dtype: str, number: int) -> np.generic:
    """One of a few values on which the arithmetic is exact enough to compare; 0 stands for the semiring's zero."""
    if dtype in ("int16", "int32", "int64"):
        return np.dtype(dtype).type(number)
    if number == 0:
        return np.dtype(dtype).type(SEMIRINGS[name].zero)
    return np.dtype(dtype).type(number)


@pytest.mark.parametrize(("name", "dtype"), CASES)
@given(numbers=st.tuples(*[st.integers(0, 40)] * 3))
def test_laws(name, dtype, numbers):
    ring = SEMIRINGS[name]
    a, b, c = (element(name, dtype, number) for number in numbers)
    close = {"rtol": 1e-5 if dtype == "float32" else 1e-12}
    for operation in (ring.combine, ring.marginalise):
        np.testing.assert_allclose(operation(a, b), operation(b, a), **close)
        np.testing.assert_allclose(operation(operation(a, b), c), operation(a, operation(b, c)), **close)
    spread = ring.combine(a, ring.marginalise(b, c))
    np.testing.assert_allclose(spread, ring.marginalise(ring.combine(a, b), ring.combine(a, c)), **close)
    assert ring.combine(a, np.dtype(dtype).type(ring.one)) == a
    if not dtype.startswith("int"):
        zero = np.dtype(dtype).type(ring.zero)
        assert ring.combine(a, zero) == zero
        np.testing.assert_allclose(ring.marginalise(a, zero), a, **close)
    if ring.decodes:
        assert ring.marginalise(a, b) in (a, b)
