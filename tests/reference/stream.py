"""A device of NumPy for streamed programs: three queues that run ahead of each other as far as they may."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.lib.stride_tricks import as_strided

from elimina.backends.protocols import RunOutput
from elimina.planning.record import HEADER
from elimina.planning.stream import Schedule, tile_record
from tests.reference import program as plain

UP, RUN, DOWN = range(3)


def run(program, factors, rng):
    """Run a streamed program; whatever the tiles do not wait for happens in a random order."""
    arena = np.zeros(program.arena_cells, program.dtype)
    arena[: program.factor_cells] = factors
    device = garbage(rng, program.stream.cells, program.dtype)
    peaks = np.zeros((len(program.starts), 2))
    peaks[[streamed.step for streamed in program.stream.steps], 1] = np.inf
    streamed = {step.step: step for step in program.stream.steps}
    schedule = Schedule(program.words, program.starts, program.dtype.itemsize)
    on_host = [step not in streamed for step in range(len(program.starts))]
    for host, steps in itertools.groupby(range(len(program.starts)), on_host.__getitem__):
        if host:
            for step in steps:
                start = program.starts[step]
                words = program.words[start : start + program.words[start]].tolist()
                compute(program, words, arena, peaks, step)
        else:
            tiles = [tile for step in steps for tile in schedule.tiles(streamed[step])]
            run_tiles(program, tiles, arena, device, peaks, rng)
    peaks[np.isinf(peaks[:, 1]), 1] = 0
    if program.semiring != "sum-product":
        peaks[:] = 0
    assignment = plain._decode(program, arena, peaks) if program.decode else None
    return RunOutput(arena[slice(*program.zone)], peaks, assignment, {})


def garbage(rng, cells, dtype):
    """Return values for cells that must not be read."""
    return rng.integers(1, 100, cells).astype(dtype)


def compute(program, words, memory, peaks, step):
    """A step, or a tile of one, over some memory."""
    assert_lo_contiguous(words)
    out = plain._marginal(program, words, plain._rows(program, words, memory, peaks))
    axes = np.array(words[HEADER : HEADER + 3 * words[plain.AXES]]).reshape(-1, 3)
    plain._view(memory, words[plain.OUT], axes[:, 1].tolist(), axes[:, 0].tolist())[...] = out
    if program.semiring == "sum-product":
        positive = out[out > 0]
        peaks[step, 0] = max(peaks[step, 0], out.max())
        low = positive.min() if positive.size else np.inf
        # A step of the host has no value before; one of the device starts from infinity.
        peaks[step, 1] = min(peaks[step, 1] or np.inf, low)


def assert_lo_contiguous(words):
    """Kernels write an output's lo cells one after another."""
    axes = np.array(words[HEADER : HEADER + 3 * words[plain.AXES]]).reshape(-1, 3)
    cells = 1
    for size, stride, _ in reversed(axes[words[plain.OUTER_AXES] + words[plain.MID_AXES] :].tolist()):
        assert size == 1 or stride == cells, (words, axes.tolist(), cells)
        cells *= size


def run_tiles(program, tiles, arena, device, peaks, rng):
    """The tiles, each queue in order, the queues in any order that the waits allow."""
    first = tiles[0].number
    done = [first - 1] * 3
    while min(done) < tiles[-1].number:
        ready = []
        for queue in (UP, RUN, DOWN):
            if done[queue] == tiles[-1].number:
                continue
            tile = tiles[done[queue] + 1 - first]
            waits = {
                UP: done[RUN] >= tile.ran and done[DOWN] >= max(tile.fetched, tile.written),
                RUN: done[UP] >= tile.number and done[DOWN] >= tile.free,
                DOWN: done[RUN] >= tile.number,
            }
            if waits[queue]:
                ready.append((queue, tile))
        assert ready, "deadlock"
        queue, tile = ready[rng.integers(len(ready))]
        if queue == RUN:
            compute(program, tile_record(program.words, program.starts[tile.step], tile), device, peaks, tile.step)
        for part in {UP: tile.uploads, RUN: (), DOWN: tile.downloads}[queue]:
            copy(part, arena, device, upload=queue == UP)
        done[queue] += 1


def copy(part, arena, device, *, upload):
    """One box."""
    assert all(host >= 0 and own >= 0 for _, host, own in part.rows)
    of_arena = box(arena, part.host, [(count, stride) for count, stride, _ in part.rows], part.run)
    of_device = box(device, part.device, [(count, stride) for count, _, stride in part.rows], part.run)
    if upload:
        of_device[...] = of_arena
    else:
        of_arena[...] = of_device


def box(memory, start, rows, run):
    """Return a view of rows of cells, whose strides are not negative."""
    assert 0 <= start <= start + sum((count - 1) * stride for count, stride in rows) + run <= len(memory)
    shape, strides = [*(count for count, _ in rows), run], [*(stride for _, stride in rows), 1]
    return as_strided(memory[start:], shape, [stride * memory.itemsize for stride in strides])
