"""Programs of one matrix product, with axes and strides of any kind."""

from __future__ import annotations

import itertools
import math

import numpy as np

from elimina.planning.packed_steps import Steps
from elimina.planning.program import Program
from elimina.planning.step import JOIN, Operand, Step


def strides_of(axes, sizes):
    """Elements between two values of each axis of a table whose axes lie slow to fast in this order."""
    found, step = {}, 1
    for axis in reversed(axes):
        found[axis] = step
        step *= sizes[axis]
    return found, step


def product_program(
    draw, dtype, *, batch=(), rows=(8,), columns=(8,), depth=16, messages=(False, False), shuffled=True
):
    """A product of two tables whose axes lie in a random order, and the tables' cells at the arena's start.

    ``messages``: whether the left and the right table are written by a step of their own, so that readers scale them.
    ``shuffled``: whether axes lie in any order, not the eliminated one first.
    """
    sizes = {"k": depth}
    names = {}
    for kind, group in (("b", batch), ("m", rows), ("n", columns)):
        names[kind] = [f"{kind}{i}" for i in range(len(group))]
        sizes.update(zip(names[kind], group, strict=True))
    outer, mid, lo = names["b"], names["m"], names["n"]
    if shuffled:
        draw.shuffle(outer)
    sides = (["k", *outer, *mid], ["k", *outer, *lo])
    for side in sides:
        if shuffled and draw.random() < 0.5:
            draw.shuffle(side)
    numbers = {name: number for number, name in enumerate(["k", *outer, *mid, *lo])}
    place, steps, offsets = 0, [], []
    for side in sides:
        offsets.append(place)
        place += strides_of(side, sizes)[1]
    factor_cells = place
    operands = []
    for number, (side, offset, is_message) in enumerate(zip(sides, offsets, messages, strict=True)):
        strides, cells = strides_of(side, sizes)
        source, at = -1, offset
        if is_message:
            own = tuple(strides[axis] for axis in side)
            read = Operand(number, -1, offset, 0, own, cells)
            shape = tuple(numbers[axis] for axis in side), tuple(sizes[axis] for axis in side), own
            steps.append(Step(JOIN, 1, *shape, 0, 0, (read,), 0, 0, place, cells, (sum(messages),)))
            source, at = len(steps) - 1, place
            place += cells
        along = tuple(strides.get(axis, 0) for axis in (*outer, *mid, *lo))
        operands.append(Operand(-1 if is_message else number, source, at, strides["k"], along, cells))
    axes = (*outer, *mid, *lo)
    out, cells = strides_of(axes, sizes)
    step = Step(
        0,
        depth,
        tuple(numbers[axis] for axis in axes),
        tuple(sizes[axis] for axis in axes),
        tuple(out[axis] for axis in axes),
        len(outer),
        len(mid),
        tuple(operands),
        1,
        1,
        place,
        cells,
        (),
    )
    packed = Steps.packed([*steps, step])
    return Program(
        semiring="sum-product",
        dtype=np.dtype(dtype),
        parameter=0,
        words=packed.words,
        starts=packed.starts,
        variables=len(numbers),
        factor_cells=factor_cells,
        arena_cells=place + cells,
        keep=True,
        decode=False,
        outputs=np.array([[len(steps), place, cells]]),
        work=depth * cells,
    )


def by_library(matrix, arena):
    """Do what a device's library is asked for: column-major, with pitches and hops, unscaled."""
    item = arena.itemsize
    for number, places in itertools.product(range(matrix.batch), matrix.offsets):
        views = []
        lines = (matrix.rows, matrix.columns, matrix.rows)
        lengths = (matrix.depth, matrix.depth, matrix.columns)
        for operand, place, line, length in zip(
            (matrix.lhs, matrix.rhs, matrix.out), places, lines, lengths, strict=True
        ):
            start = arena[operand.offset + place + number * operand.hop :]
            is_lines = operand.along_depth or operand is matrix.out
            strides = (operand.pitch, 1) if is_lines else (1, operand.pitch)
            views.append(np.lib.stride_tricks.as_strided(start, (line, length), [item * s for s in strides]))
        views[2][...] = views[0] @ views[1].T
    return math.prod((matrix.batch, len(matrix.offsets)))


def steps_of(program):
    """The steps of a program, with numbers of tables for the factors."""
    tables = int(Steps(program.words, program.starts, None, None).tables.sum())
    spans = np.zeros(len(program.starts), np.int64)
    return Steps(program.words, program.starts, spans, np.zeros(tables, np.int32))
