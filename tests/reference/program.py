"""A plain executor of packed programs, straight from ``include/elimina/program.hpp``: the oracle for both backends."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elimina.backends.protocols import RunOutput
from elimina.planning.program import Program
from elimina.planning.record import HEADER
from elimina.planning.step import MATCHING
from elimina.problem.semirings import SEMIRINGS

(WORDS, DOMAIN, VARIABLE, AXES, OUTER_AXES, MID_AXES) = range(6)
(TABLES, TABLES_A, TABLES_B, OUT, WEIGHT) = range(9, HEADER)


def scale(peak: float, dtype: np.dtype[np.generic]) -> float:
    """The power of two that a reader multiplies a message by."""
    limit = 126 if dtype.itemsize == 4 else 1022
    exponent = math.frexp(peak)[1] - 1 if peak > 0 else 0
    return 2.0 ** -max(-limit, min(limit, exponent))


def run(program: Program, factors: NDArray[np.generic]) -> RunOutput:
    """Run a program, one step after another."""
    arena = np.zeros(program.arena_cells, program.dtype)
    arena[: program.factor_cells] = factors
    peaks = np.zeros((len(program.starts), 2))
    for number, start in enumerate(program.starts.tolist()):
        words = program.words[start : start + program.words[start]].tolist()
        if words[VARIABLE] == MATCHING:
            out = _level(program, words, arena)
        else:
            out = _marginal(program, words, _rows(program, words, arena, peaks))
        axes = np.array(words[HEADER : HEADER + 3 * words[AXES]]).reshape(-1, 3)
        _view(arena, words[OUT], axes[:, 1].tolist(), axes[:, 0].tolist())[...] = out
        if program.semiring == "sum-product":
            peaks[number, 0] = out.max()
            peaks[number, 1] = out[out > 0].min() if (out > 0).any() else 0.0
    assignment = _decode(program, arena, peaks) if program.decode else None
    return RunOutput(arena[slice(*program.zone)], peaks, assignment, {})


def cells(program: Program, run: RunOutput) -> NDArray[np.generic]:
    """All cells of a run's outputs, without paddings."""
    found = [np.zeros(0, program.dtype)]
    for number, at, _ in program.outputs.tolist():
        values = run.zone[at - program.zone[0] :]
        start = program.starts[number]
        axes = program.words[start + HEADER : start + HEADER + 3 * program.words[start + AXES]].reshape(-1, 3)
        found.append(_view(values, 0, axes[:, 1].tolist(), axes[:, 0].tolist()).reshape(-1))
    return np.concatenate(found)


def assert_same(program: Program, found: RunOutput, expected: RunOutput, bounded: Sequence[int] = ()) -> None:
    """The same outputs, ranges and assignment: exactly where the order of sums does not matter.

    ``bounded``: steps whose ranges may be wider.
    """
    assert found.zone.dtype == program.dtype
    if program.semiring in ("min-sum", "min-max", "count"):
        np.testing.assert_array_equal(cells(program, found), cells(program, expected))
        np.testing.assert_array_equal(found.peaks, expected.peaks)
    else:
        rtol = 2e-4 if program.dtype == np.float32 else 1e-11
        np.testing.assert_allclose(cells(program, found), cells(program, expected), rtol=rtol, atol=rtol)
        others = np.delete(np.arange(len(found.peaks)), bounded)
        np.testing.assert_allclose(found.peaks[others], expected.peaks[others], rtol=rtol)
        (highs, lows), (most, least) = found.peaks[bounded].T, expected.peaks[bounded].T
        assert (highs >= most * (1 - rtol)).all()
        assert ((lows > 0) | (least == 0)).all()
        assert (lows <= least * (1 + rtol)).all()
    if program.decode:
        np.testing.assert_array_equal(found.assignment, expected.assignment)
    else:
        assert found.assignment is None


def _view(arena, offset, strides, sizes):
    item = arena.itemsize
    return np.lib.stride_tricks.as_strided(arena[offset:], sizes, [stride * item for stride in strides])


def _combine(program, a, b):
    with np.errstate(all="ignore"):
        if program.semiring == "sum-product":
            return a * b
        if program.semiring == "count":
            modulus = np.uint64(program.parameter)
            return a * b % modulus if modulus else a * b
        return np.maximum(a, b) if program.semiring == "min-max" else a + b


def _rows(program, words, arena, peaks):
    """The joint table: axis 0 is the eliminated variable, then the output's axes."""
    axes = words[AXES]
    sizes = [words[DOMAIN], *words[HEADER : HEADER + 3 * axes : 3]]
    at = HEADER + 3 * axes
    one = program.dtype.type(SEMIRINGS[program.semiring].one_of(program.dtype))
    groups: list[list] = [[], [], []]
    for table in range(words[TABLES]):
        offset, domain_stride, source, *strides = words[at : at + 3 + axes]
        at += 3 + axes
        values = _view(arena, offset, [domain_stride, *strides], sizes)
        if source >= 0 and program.semiring == "sum-product":
            values = values * program.dtype.type(scale(peaks[source, 0], program.dtype))
        group = 0 if table < words[TABLES_A] else 1 if table < words[TABLES_A] + words[TABLES_B] else 2
        groups[group].append(values)
    joined = []
    for group in groups[:2]:
        value = np.full(sizes, one, program.dtype)
        for table in group:
            value = _combine(program, value, table)
        joined.append(value)
    value = _combine(program, *joined)
    for table in groups[2]:
        value = _combine(program, value, table)
    return value


def _level(program, words, arena):
    """Return the correction of one mini-bucket, from the marginals of all."""
    axes, count = words[AXES], words[TABLES]
    sizes = words[HEADER : HEADER + 3 * axes : 3]
    records = [words[HEADER + 3 * axes + (3 + axes) * table :][: 3 + axes] for table in range(count)]
    marginals = [_view(arena, offset, strides, sizes) for offset, _, _, *strides in records]
    own = marginals[words[TABLES_A]]
    if program.dtype.kind == "f":
        with np.errstate(all="ignore"):
            total = sum(marginals[1:], marginals[0])
            is_weighted = program.semiring == "log-sum-exp"
            mean = total * program.dtype.type(_weight(words)) if is_weighted else total / program.dtype.type(count)
            return np.where(np.isfinite(mean), mean - own, program.dtype.type(0))
    # Python's integers where a sum of all might wrap, which takes far longer.
    limit = max(max(abs(int(marginal.min())), abs(int(marginal.max()))) for marginal in marginals)
    wide = [marginal.astype(np.int64 if (limit + 1) * count < 2**63 else object) for marginal in marginals]
    mean = (sum(wide) + words[TABLES_A]) // count
    forbidden = np.any([marginal >= program.parameter for marginal in marginals], axis=0)
    level = np.where(forbidden, 0, mean - wide[words[TABLES_A]])
    assert (np.abs(level) <= np.iinfo(program.dtype).max).all()
    return level.astype(program.dtype)


def _weight(words):
    return float(np.array(words[WEIGHT]).view(np.float64))


def _marginal(program, words, rows):
    if program.semiring in ("min-sum", "min-max"):
        return np.minimum(rows.min(axis=0), program.dtype.type(program.parameter))
    if program.semiring == "log-sum-exp":
        with np.errstate(divide="ignore"):
            weight = _weight(words)
            if weight == 0:
                return rows.max(axis=0)
            logs = weight * np.logaddexp.reduce(rows.astype(np.float64) / weight, axis=0)
            return logs.astype(program.dtype)
    if program.semiring == "count":
        total = rows.sum(axis=0, dtype=np.uint64)
        modulus = np.uint64(program.parameter)
        return total % modulus if modulus else total
    total = np.zeros(rows.shape[1:], program.dtype)
    for row in rows:
        total = total + row
    return total


def _decode(program, arena, peaks):
    assignment = np.zeros(program.variables, np.int32)
    for start in reversed(program.starts.tolist()):
        words = program.words[start : start + program.words[start]].tolist()
        if words[VARIABLE] < 0:
            continue
        fixed = [assignment[variable] for variable in words[HEADER + 2 : HEADER + 3 * words[AXES] : 3]]
        row = _rows(program, words, arena, peaks)[(slice(None), *fixed)]
        assignment[words[VARIABLE]] = np.argmin(row) if program.semiring in ("min-sum", "min-max") else np.argmax(row)
    return assignment
