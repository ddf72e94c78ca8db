"""The contraction oracle against broadcasting over all assignments."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.reference import contraction


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("digits", [0, 40])
def test_contraction_agrees_with_enumeration(seed, digits):
    draws = np.random.default_rng(seed)
    sizes = draws.integers(1, 5, 5).tolist()
    tables = []
    for _ in range(6):
        scope = tuple(int(v) for v in draws.permutation(5)[: draws.integers(0, 4)])
        cells = draws.random([sizes[v] for v in scope]) * 10.0 ** draws.integers(-digits, 1, [sizes[v] for v in scope])
        tables.append((scope, np.where(draws.random(cells.shape) < 0.2, 0.0, cells)))
    product, allowed, total = np.ones(sizes), np.ones(sizes, dtype=bool), np.zeros(sizes)
    for scope, table in tables:
        wide = contraction.aligned(scope, table, range(5))
        product, allowed, total = product * wide, allowed & (wide > 0), total + wide
    kept = (3, 1)
    axes = (0, 2, 4)
    with np.errstate(divide="ignore"):
        expected = np.log(product.sum(axis=axes).T)
    np.testing.assert_allclose(contraction.log_sums(tables, sizes, kept), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(contraction.best_totals(tables, sizes, kept), total.min(axis=axes).T, rtol=1e-12)
    np.testing.assert_allclose(contraction.best_totals(tables, sizes, kept, -1), total.max(axis=axes).T, rtol=1e-12)
    positive = [(scope, table > 0) for scope, table in tables]
    assert contraction.count(positive, sizes) == allowed.sum()
    assert contraction.is_satisfiable(positive, sizes) == allowed.any()
    for v, posterior in enumerate(contraction.posteriors(tables, sizes)):
        sums = product.sum(axis=tuple(u for u in range(5) if u != v))
        np.testing.assert_allclose(posterior, sums / (sums.sum() or 1), rtol=1e-10, atol=1e-12)


def test_counts_beyond_64_bits_are_exact():
    assert contraction.count([((0, 1), np.ones((2, 2), dtype=bool) ^ np.eye(2, dtype=bool))], [2] * 80) == 2**79


def test_products_beyond_the_range_of_doubles():
    tables = [((0, v), np.full((2, 2), 1e-300)) for v in range(1, 40)]
    assert contraction.log_sums(tables, [2] * 40)[()] == pytest.approx(40 * math.log(2) - 39 * 300 * math.log(10))
