"""The best assignment, from messages on the host."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elimina.planning.program import Program
from elimina.planning.record import HEADER
from elimina.planning.stream import read_record


def decode(program: Program, arena: NDArray[np.generic], peaks: NDArray[np.float64]) -> NDArray[np.int32]:
    """Walk the steps from the roots to the leaves; each value is the first best one, given those of the step's axes.

    Args:
        program: In ``min-sum``, ``max-sum`` or ``max-product``; it keeps its messages.
        arena: All tables.
        peaks: See ``Run.peaks``.
    """
    assignment = np.zeros(program.variables, dtype=np.int32)
    for start in reversed(program.starts.tolist()):
        variable, axes = int(program.words[start + 2]), int(program.words[start + 3])
        if variable < 0:
            continue
        digits = assignment[program.words[start + HEADER + 2 : start + HEADER + 2 + 3 * axes : 3]].tolist()
        values = _row(program, start, arena, peaks, digits)
        assignment[variable] = values.argmin() if program.semiring == "min-sum" else values.argmax()
    return assignment


def _row(
    program: Program, start: int, arena: NDArray[np.generic], peaks: NDArray[np.float64], digits: list[int]
) -> NDArray[np.generic]:
    """Return the total of each state of the eliminated variable, associated as when the message was computed."""
    record = read_record(program.words, start)
    tables_a, tables_b = program.words[start + 10 : start + 12].tolist()
    products = program.semiring == "max-product"
    parts: list[NDArray[np.generic]] = [np.full(record.domain, products, dtype=program.dtype) for _ in range(2)]
    for number, table in enumerate(record.tables[:-1]):
        first = table.offset + sum(digit * stride for digit, stride in zip(digits, table.strides, strict=True))
        values = arena[first : first + table.domain_stride * (record.domain - 1) + 1 : table.domain_stride or 1]
        if products and table.source >= 0:
            values = np.multiply(values, program.dtype.type(scale_of(float(peaks[table.source, 0]), program.dtype)))
        if number == tables_a + tables_b:
            parts[0] = _combine(products, *parts)
        side = 1 if tables_a <= number < tables_a + tables_b else 0
        parts[side] = _combine(products, parts[side], values)
    return parts[0] if len(record.tables) - 1 > tables_a + tables_b else _combine(products, *parts)


def _combine(products: bool, a: NDArray[np.generic], b: NDArray[np.generic]) -> NDArray[np.generic]:
    combined: NDArray[np.generic] = (np.multiply if products else np.add)(a, b)
    return combined


def scale_of(peak: float, dtype: np.dtype[np.generic]) -> float:
    """Return the factor of a message's readers by its largest value (``scale_exponent``, ``elimina/semiring.hpp``)."""
    limit = 126 if dtype.itemsize == 4 else 1022
    exponent = math.frexp(peak)[1] - 1 if peak > 0 else 0
    return 2.0 ** -max(-limit, min(limit, exponent))
