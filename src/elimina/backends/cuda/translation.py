"""Translation of a program to a CUDA device: one buffer, and a list of launches; needs no CUDA."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda.forest import (
    AWAITED,
    MAX_CHUNKS,
    ForestLaunch,
    ForestLists,
    chunks_of,
    forest_lists,
    write_reciprocals,
)
from elimina.backends.cuda.layout import DeviceLayout
from elimina.backends.cuda.matrix_launch import MatrixLaunch
from elimina.backends.cuda.split_sums import ALIGNED_CELLS
from elimina.backends.cuda.step_arrays import StepArrays, step_arrays, tables_from
from elimina.backends.cuda.step_launches import LargeLaunches, launches_of
from elimina.backends.cuda.tile_launch import TileLaunch
from elimina.errors import DeviceError
from elimina.planning.program import Program
from elimina.planning.record import AXES, MAX_OPERANDS, OUT, TABLES, VARIABLE, WORDS
from elimina.planning.step import MATCHING

MAX_DECODE_AXES = 1024
MAX_FOREST_WORK = 1 << 22
"""Largest work of a small step, in combinations of an output cell and a value of the eliminated variable."""
MAX_FOREST_JOIN_WORK = 1 << 15
"""Largest work of a small step that is a join or a moment-matching step."""
MAX_FOREST_REUSING_WORK = 1 << 14
"""Largest work of a small step if outputs share memory."""
MAX_COMPACT_CELLS = 1 << 12
"""Largest number of elements of a compact output, whose place is not reused within a run."""
MAX_FOREST_WORDS = 512
"""Largest number of words of the record of a small step."""
ALIGNMENT = 256


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def lay_out(
    program: Program,
    multiprocessors: int,
    shared_bytes: int,
    sequence: NDArray[np.int64] | None = None,
    library: bool = False,
) -> DeviceLayout:
    """Lay a program out for a device.

    Args:
        program: Program to run.
        multiprocessors: The device's number of multiprocessors.
        shared_bytes: Shared memory that a block may take.
        sequence: The steps to run, ascending; None: all. The buffer's layout does not depend on it.
        library: True if cuBLAS makes the matrix products that are large enough.

    Raises:
        DeviceError: A step is beyond what the kernels can launch.
    """
    words, starts = program.words.copy(), program.starts
    steps = step_arrays(words, starts)
    _check(program, steps)
    count, item = len(starts), program.dtype.itemsize
    runs = np.ones(count, dtype=bool)
    if sequence is not None:
        runs = np.zeros(count, dtype=bool)
        runs[sequence] = True
    outputs = np.zeros(count, dtype=bool)
    outputs[program.outputs[:, 0]] = True
    compact = np.zeros(count, dtype=bool) if program.keep else ~outputs & (steps.spans <= MAX_COMPACT_CELLS)
    if program.shards is not None:
        # Other GPUs copy these outputs from the arena, so they must have a place there.
        compact[list(program.shards.copied)] = False
    own_bytes = _place_compact(words, program, steps, compact)
    assignment_at = own_bytes
    peaks_at = assignment_at + _aligned(4 * program.variables)
    # One more range follows the steps' output ranges. The parts of split sums write it, and nothing reads it.
    arena_at = peaks_at + _aligned(16 * (count + 1))
    _move(words, steps, starts, compact, arena_at // item)

    # Joins and moment-matching steps are not parts of chains of small steps. For large ones, other kernels are faster.
    kept_work = np.where(steps.headers[:, VARIABLE] >= 0, MAX_FOREST_WORK, min(MAX_FOREST_JOIN_WORK, MAX_FOREST_WORK))
    small = (
        runs
        & (steps.headers[:, WORDS] <= MAX_FOREST_WORDS)
        & (steps.work <= (kept_work if program.keep else MAX_FOREST_REUSING_WORK))
    )
    if not program.keep:
        # The memory of an output that is neither compact nor one of the program may be reused. This is safe only in the
        # program's order, which small steps do not keep.
        small &= compact | outputs
        small[steps.readers[(steps.sources >= 0) & ~compact[steps.sources]]] = False
    small[list(steps_on_their_own(program))] = False
    phases, begins, larges = _phases(steps, small, runs)
    write_reciprocals(words, starts[small], steps.headers[small, AXES])
    lists = forest_lists(steps, starts, small, phases, begins, len(words))
    numbers = np.flatnonzero(runs)
    entries_at = len(words) + lists.links.size + len(lists.waits)
    sequence_at = entries_at + len(lists.entries)
    decode_at = sequence_at + len(numbers)
    is_decoded = (steps.headers[:, VARIABLE] >= 0) & (np.arange(count) >= program.first_decoded) & program.decode
    decoded = np.flatnonzero(is_decoded)[::-1]
    longest = int(steps.headers[decoded, WORDS].max()) if len(decoded) else 0
    records_at = decode_at + 1 + len(decoded)
    scratch_at = -(-program.arena_cells // ALIGNED_CELLS) * ALIGNED_CELLS
    large_launches = [
        launches_of(program, words, step, scratch_at, multiprocessors, shared_bytes, library) for step in larges
    ]
    launches, records = _launches(steps, phases, small, lists, records_at, large_launches)
    flags = np.zeros(1 + sum(isinstance(launch, ForestLaunch) for launch in launches), dtype=np.int32)
    state = np.zeros(_aligned(4 * (len(flags) + 2 * count)), dtype=np.uint8)
    state[4 * len(flags) :][: 8 * count].view(np.int32)[:] = np.concatenate([lists.children, lists.unfinished])
    pieces = [words, lists.links.reshape(-1), lists.waits, lists.entries, numbers]
    pieces += [np.array([longest], np.int64), starts[decoded], records]
    arena_cells = max([program.arena_cells, *(scratch_at + large.scratch_cells for large in large_launches)])
    size = arena_at + _aligned(arena_cells * item) + ALIGNMENT
    return DeviceLayout(
        launches=tuple(launches),
        larges=tuple(step for step, large in zip(larges, large_launches, strict=True) for _ in large.launches),
        decode_at=decode_at,
        decode_steps=len(decoded),
        decode_shared=16 * longest,
        links_at=len(words),
        entries_at=entries_at,
        sequence_at=sequence_at,
        sequence=len(numbers),
        words=np.concatenate(pieces),
        state=state,
        pending_at=4 * len(flags),
        assignment_at=assignment_at,
        peaks_at=peaks_at,
        arena_at=arena_at,
        size=size,
        work=int(steps.work[runs].sum()),
        recordings={},
    )


def steps_on_their_own(program: Program) -> tuple[int, ...]:
    """Return the steps that need separate launches, because GPUs wait for each other before or after them."""
    if program.shards is None:
        return ()
    first = (phase.first for phase in program.shards.phases if phase.copies)
    return tuple(sorted({*program.shards.divided, *program.shards.copied, *first}))


def _check(program: Program, steps: StepArrays) -> None:
    axes, tables = steps.headers[:, AXES], steps.headers[:, TABLES]
    if len(axes) and (tables.max() > MAX_OPERANDS or (program.decode and axes.max() > MAX_DECODE_AXES)):
        raise DeviceError(
            f"a step joins {tables.max()} tables over {axes.max()} variables; the most are {MAX_OPERANDS} and 1024; "
            "use the CPU"
        )


def _place_compact(words: NDArray[np.int64], program: Program, steps: StepArrays, compact: NDArray[np.bool_]) -> int:
    """Place the compact outputs at the buffer's start, one after another; return the bytes of all of them."""
    item = program.dtype.itemsize
    per_word = max(1, 16 // item)
    sizes = np.where(compact, -(-steps.spans // per_word) * per_word, 0)
    offsets = np.cumsum(sizes) - sizes
    words[program.starts[compact] + OUT] = offsets[compact]
    words[steps.source_at[tables_from(steps, compact)]] = offsets[steps.sources[tables_from(steps, compact)]]
    return _aligned(int(sizes.sum()) * item)


def _move(
    words: NDArray[np.int64], steps: StepArrays, starts: NDArray[np.int64], compact: NDArray[np.bool_], arena_cells: int
) -> None:
    """Make the offsets of compact outputs relative to the arena, which lies some cells after the buffer's start."""
    words[starts[compact] + OUT] -= arena_cells
    words[steps.source_at[tables_from(steps, compact)]] -= arena_cells


def _phases(
    steps: StepArrays, small: NDArray[np.bool_], runs: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64], list[int]]:
    """Return the number of large steps that precede each step, the step's earliest start, and the list of large steps.

    A step runs as early as its inputs allow. Large steps keep the program's order, so memory that the plan reuses
    among them stays safe. Times assume enough blocks, and are in units of a step of one chunk.
    """
    count = len(small)
    sources: list[list[int]] = [[] for _ in range(count)]
    for reader, source in zip(steps.readers.tolist(), steps.sources.tolist(), strict=True):
        if source >= 0 and runs[source]:
            sources[reader].append(source)
    seconds = (1 + chunks_of(steps)[0] / MAX_CHUNKS).tolist()
    ready, phases, begins, ends = [0] * count, [0] * count, [0.0] * count, [0.0] * count
    larges: list[int] = []
    for step, (is_small, run) in enumerate(zip(small.tolist(), runs.tolist(), strict=True)):
        if not run:
            continue
        for source in sources[step]:
            phases[step] = max(phases[step], ready[source])
            begins[step] = max(begins[step], ends[source])
        ready[step], ends[step] = phases[step], begins[step] + seconds[step]
        if not is_small:
            larges.append(step)
            ready[step] = len(larges)
    return np.array(phases, dtype=np.int64), np.array(begins), larges


def _launches(
    steps: StepArrays,
    phases: NDArray[np.int64],
    small: NDArray[np.bool_],
    lists: ForestLists,
    records_at: int,
    larges: list[LargeLaunches],
) -> tuple[list[ForestLaunch | TileLaunch | MatrixLaunch], NDArray[np.int64]]:
    """Return the launches, and the records of large steps, which will be at `records_at`."""
    is_single = (lists.links[:, 0] != AWAITED) & (lists.links[:, 4] == 1)
    numbers = np.flatnonzero(small)
    by_phase = numbers[np.argsort(phases[numbers], kind="stable")]
    ends = np.searchsorted(phases[by_phase], np.arange(len(larges) + 2))
    launches: list[ForestLaunch | TileLaunch | MatrixLaunch] = []
    records: list[int] = []
    forests = products = 0
    for phase in range(len(larges) + 1):
        members = by_phase[ends[phase] : ends[phase + 1]]
        if len(members):
            forests += 1
            levels, work = bool((steps.headers[members, VARIABLE] == MATCHING).any()), int(steps.work[members].sum())
            first, end = lists.bounds[phase : phase + 2].tolist()
            launches.append(ForestLaunch(first, end - first, forests, bool(is_single[members].all()), levels, work))
        if phase == len(larges):
            break
        for launch, record in zip(larges[phase].launches, larges[phase].records, strict=True):
            placed = launch._replace(record_at=records_at + len(records)) if record else launch
            if isinstance(placed, MatrixLaunch):
                products += 1
                placed = placed._replace(scalar=products)
            launches.append(placed)
            records += record
    return launches, np.array(records, dtype=np.int64)
