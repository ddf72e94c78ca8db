"""Scales of a dynamic network: powers of two by which the tables of slices are divided to keep numbers near 1."""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

import numpy as np

from elimina.errors import InputError
from elimina.methods.observed_sequences import Floats, Sequences
from elimina.model.dynamic_network import DynamicNetwork
from elimina.model.model import Model
from elimina.model.table import Table

_LARGEST_EXPONENT = 16
"""Largest exponent of two that needs no scaling: products of a slice's tables then stay within the range of floats."""


class SliceScales(NamedTuple):
    """A dynamic network with numbers near 1, and its scales.

    Attributes:
        network: The network with scaled tables; the original one if no table needs scaling.
        first: Natural logarithm of the scale of the first slice.
        later: Natural logarithm of the scale of each later slice.
    """

    network: DynamicNetwork
    first: float = 0.0
    later: float = 0.0

    @staticmethod
    def of(network: DynamicNetwork) -> SliceScales:
        """Return the scales of a network; probability distributions need none, as their largest numbers are near 1.

        Raises:
            InputError: A table has numbers so far apart that scaling loses the smallest ones.
        """
        first, later = _exponents(network.initial), _exponents(network.transition)
        if not any(first) and not any(later):
            return SliceScales(network)
        scaled = DynamicNetwork(_scaled(network.initial, first), _scaled(network.transition, later), network.name)
        return SliceScales(scaled, sum(first) * math.log(2), sum(later) * math.log(2))

    def log_scales(self, sequences: Sequences) -> Floats:
        """Return the logarithms of the scales of all slices of some sequences."""
        scales = np.full(len(sequences.codes), self.later)
        starts = sequences.starts
        scales[starts[:-1][np.diff(starts) > 0]] = self.first
        return scales


def _exponents(model: Model) -> list[int]:
    """Return, for each table, the exponent of the power of two to divide it by."""
    peaks = [max(float(table.values.max(initial=0.0)), float(table.default or 0.0)) for table in model.factors]
    exponents = [math.frexp(peak)[1] for peak in peaks]
    return [exponent if abs(exponent) > _LARGEST_EXPONENT else 0 for exponent in exponents]


def _scaled(model: Model, exponents: list[int]) -> Model:
    pairs = list(zip(model.factors, exponents, strict=True))
    tables = [_divided(table, exponent) if exponent else table for table, exponent in pairs]
    for (table, exponent), divided in zip(pairs, tables, strict=True):
        if exponent > 0:
            _check_smallest(model, table, divided)
    return Model(model.variables, tables, sense="probability", children=model.children, check=False)


def _check_smallest(model: Model, table: Table, divided: Table) -> None:
    """Raise ``InputError`` if a positive number of a table has lost digits by a division."""
    numbers, scaled = (np.append(one.values.ravel(), one.default or 0.0) for one in (table, divided))
    is_lost = (numbers > 0) & (scaled < sys.float_info.min)
    if is_lost.any():
        names = ", ".join(repr(model.variables[v].name) for v in table.scope)
        raise InputError(
            f"the table over {names} has numbers from {numbers[is_lost].min():.3g} to {numbers.max():.3g}, which are "
            "too far apart for floats of one scale: normalise the distributions of the dynamic model, or set the "
            "smallest numbers to 0"
        )


def _divided(table: Table, exponent: int) -> Table:
    """Return a table divided by a power of two."""
    values = np.ldexp(table.values.astype(np.float64), -exponent)
    if table.rows is None:
        return Table(table.scope, values)
    default = math.ldexp(float(table.default or 0.0), -exponent)
    return Table(table.scope, values, sizes=table.sizes, rows=table.rows, default=default)
