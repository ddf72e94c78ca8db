"""Entropy, relative entropy and mutual information of tables of probabilities, in bits."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROUNDING_FACTOR = 2**13
"""Relative error of a posterior in units of the float type's rounding error; smaller deviations of a ratio from 1 are
ignored."""


def rounding_of(dtype: str | None) -> float:
    """Return the relative rounding error of a posterior.

    Args:
        dtype: Number type of the propagation; None for float64.
    """
    return _ROUNDING_FACTOR * float(np.finfo(dtype or "float64").eps)


def entropy(table: Floats) -> float:
    """Return the entropy of a distribution."""
    positive = table[table > 0]
    return max(0.0, float(-(positive * np.log2(positive)).sum()))


def divergence(table: Floats, other: Floats, rounding: float) -> float:
    """Return the relative entropy (Kullback and Leibler 1951) of a distribution with respect to another one.

    It is computed as a sum of non-negative terms, and is 0 if both distributions are equal up to rounding.

    Args:
        table: Distribution.
        other: Distribution of the same shape, with which ``table`` is compared.
        rounding: Relative difference at which probabilities count as equal.

    Returns:
        Bits; infinity if ``other`` is 0 where ``table`` is positive.
    """
    with np.errstate(divide="ignore"):
        return _divergence(table, other, np.log(other), rounding)


def _divergence(table: Floats, other: Floats, log_other: Floats, rounding: float) -> float:
    """Return the relative entropy in bits; infinity if ``other`` is 0 where ``table`` is positive.

    ``log_other`` has the logarithms of ``other``, including those of probabilities that underflow in ``other``.
    """
    if (table[np.isneginf(log_other)] > 0).any():
        return math.inf
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        surplus = table / other - 1
        near = (1 + surplus) * np.log1p(surplus) - surplus
        far = np.where(table > 0, table * (np.log(table) - log_other), 0.0) - table + other
    # Near a ratio of 1, the difference of logarithms would cancel; far from 1, the ratio may overflow.
    terms = np.where(np.abs(surplus) <= 0.5, other * near, far)
    return max(0.0, float(terms[~(np.abs(surplus) <= rounding)].sum())) / math.log(2)


def mutual_information(joint: Floats, rounding: float) -> float:
    """Return the mutual information of the rows and columns of a joint distribution, in bits.

    Args:
        joint: Matrix of probabilities.
        rounding: See ``divergence``.
    """
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    with np.errstate(divide="ignore"):
        log_independent = np.add.outer(np.log(rows), np.log(columns))
    return _divergence(joint, np.outer(rows, columns), log_independent, rounding)


def total_variation(table: Floats, other: Floats, rounding: float) -> float:
    """Return the total variation distance of two distributions: half the sum of absolute differences.

    Args:
        table: Distribution.
        other: Distribution of the same shape.
        rounding: See ``divergence``.
    """
    differences = np.abs(table - other)
    return float(differences[differences > rounding * np.maximum(table, other)].sum()) / 2
