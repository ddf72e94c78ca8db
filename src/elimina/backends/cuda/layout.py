"""Translation of a program to a CUDA device: one buffer, and a list of launches; needs no CUDA."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda import kernels, matrix, tile
from elimina.backends.cuda.tile import choose_level
from elimina.errors import DeviceError
from elimina.planning.program import Program
from elimina.planning.record import (
    AXES,
    AXIS_WORDS,
    DOMAIN,
    HEADER,
    LO_CELLS,
    MAX_OPERANDS,
    MID_CELLS,
    OUT,
    OUTER_CELLS,
    TABLE_STRIDES,
    TABLES,
    VARIABLE,
    WORDS,
    ragged,
    spans,
)
from elimina.planning.step import LEVEL
from elimina.system import lock_for_a_moment

MAX_DECODE_AXES = 1024
CHUNK_WORK = 1 << 11
"""Rows of a small step from which it is cut into chunks."""
MOST_CHUNKS = 264
"""Chunks of a step beyond which they get larger: about as many blocks as run at a time."""
THREAD_WORK = 8
"""Rows that one thread of a block computes of a chunk, if there are no more chunks than that."""
THREADS, WARP = kernels.THREADS, 32
SMALL_WORK = 1 << 22
"""Rows of the largest step that is done that way."""
JOIN_WORK = 1 << 15
"""Likewise, of a join or a moment-matching step."""
REUSING_WORK = 1 << 14
"""Likewise, where outputs share memory."""
COMPACT_CELLS = 1 << 12
"""Elements of the largest output that has a place of its own, never used again within a run."""
SMALL_WORDS = 512
"""Words of the longest record of a small step."""
ALIGNMENT = 256
LINK_WORDS = 10
AWAITED = -2
"""Link of a step that entries of its launch wait for."""
CHUNK_BITS = 20
LAYOUTS = 16
"""Layouts that this process keeps for programs which come again."""
LAYOUT_BYTES = 1 << 20
"""Bytes of the longest program, likewise."""

_layouts: OrderedDict[bytes, Layout] = OrderedDict()
_digests: OrderedDict[int, tuple[NDArray[np.int64], bytes]] = OrderedDict()
"""Records of the latest programs, by identity, and their digests, which take longer than to look up."""
_layouts_lock = lock_for_a_moment()


class Recording:
    """A graph of a part's launches: launched one by one, short steps wait for the host.

    Attributes:
        graph: Function that launches the graph; None as long as the launches are not known to come again.
        runs: Number of times that they were launched one by one.
    """

    def __init__(self) -> None:
        self.graph: Callable[[], None] | None = None
        self.runs = 0


class Forest(NamedTuple):
    """A launch of small steps, which blocks take from a list.

    Attributes:
        first: Number of its first entry.
        slots: Its entries.
        counter: Number of its counter, of entries that are taken.
        tree: True if each step has one chunk and one reader at most, so that no entry waits.
        levels: True if some of its steps are moment-matching steps.
        work: Rows of its steps.
    """

    first: int
    slots: int
    counter: int
    tree: bool
    levels: bool
    work: int

    @property
    def path(self) -> str:
        """Name of the executor path that it is."""
        return "cuda-forest"


class Layout(NamedTuple):
    """A program on the device, or some of its steps.

    One buffer stays as it is for all runs of a program: outputs of compact steps | assignment | output ranges | arena.
    Offsets of compact outputs, relative to the arena, are negative. Another one belongs to the steps that run: words |
    state.

    Attributes:
        launches: Launches in the order of their execution.
        larges: Steps of the launches of one large step each.
        decode_at: Start of the decoding order in the words.
        decode_steps: Number of steps to decode.
        decode_shared: Bytes of shared memory for decoding.
        links_at: Start of the links of small steps in the words.
        entries_at: Start of the entries of all launches of small steps in the words.
        sequence_at: Start of the numbers of the steps that run in the words.
        sequence: Number of these steps.
        words: Words that the kernels read.
        state: Counters as they are before a run, as bytes: the stop flag, one for each launch of small steps, and for
            each step how many it waits for, then how many of its chunks are not finished.
        pending_at: Byte offset of the counters of steps.
        assignment_at, peaks_at, arena_at: Byte offsets in the buffer.
        size: Bytes of the buffer.
        work: Rows of all steps that run.
        recordings: Sessions' recordings of the launches, by the addresses that these are given.
        copies: Copies of words and state that stay on devices, by the device's number; None if none do.
    """

    launches: tuple[Forest | tile.Tile | matrix.Matrix, ...]
    larges: tuple[int, ...]
    decode_at: int
    decode_steps: int
    decode_shared: int
    links_at: int
    entries_at: int
    sequence_at: int
    sequence: int
    words: NDArray[np.int64]
    state: NDArray[np.uint8]
    pending_at: int
    assignment_at: int
    peaks_at: int
    arena_at: int
    size: int
    work: int
    recordings: dict[tuple[Any, ...], Recording]
    copies: dict[int, Any] | None = None

    def phase(self, first: int, end: int, count: int) -> Layout:
        """Return a phase of a program of so many steps that is divided among cards, which a large step ends.

        Small steps run with the next large one.
        """
        places = [number for number, launch in enumerate(self.launches) if not isinstance(launch, Forest)]
        begin, stop = (sum(large < step for large in self.larges) for step in (first, end))
        launches = slice(
            places[begin - 1] + 1 if begin else 0,
            len(self.launches) if end == count else places[stop - 1] + 1 if stop else 0,
        )
        # The ranges of all outputs are reset before the first phase.
        sequence = 0 if first else self.sequence
        return self._replace(launches=self.launches[launches], sequence=sequence, recordings={})


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class _Steps(NamedTuple):
    """A program's steps as arrays, and their tables: where in the words each one's source is, source and reader."""

    headers: NDArray[np.int64]
    work: NDArray[np.int64]
    spans: NDArray[np.int64]
    cells: NDArray[np.int64]
    source_at: NDArray[np.int64]
    sources: NDArray[np.int64]
    readers: NDArray[np.int64]


def kept_layout(program: Program, multiprocessors: int, shared_bytes: int, library: bool) -> Layout:
    """Return the layout of a whole program, the one of an earlier call where that had the same steps."""
    if program.words.nbytes > LAYOUT_BYTES:
        return lay_out(program, multiprocessors, shared_bytes, None, library)
    kind = program.semiring, program.dtype.name, program.keep, program.decode, program.variables, program.arena_cells
    digest = hashlib.blake2b(repr((kind, multiprocessors, shared_bytes, library, _alone(program))).encode())
    for array in (program.starts, program.outputs):
        digest.update(repr(array.shape).encode())
        digest.update(array.tobytes())
    digest.update(_digest(program.words))
    key = digest.digest()
    with _layouts_lock:
        if key in _layouts:
            _layouts.move_to_end(key)
            return _layouts[key]
    layout = lay_out(program, multiprocessors, shared_bytes, None, library)._replace(copies={})
    with _layouts_lock:
        _layouts[key] = layout
        while len(_layouts) > LAYOUTS:
            _layouts.popitem(last=False)
    return layout


def _digest(words: NDArray[np.int64]) -> bytes:
    """Return a digest of a program's records, which a plan that is kept has always in the same array."""
    with _layouts_lock:
        known = _digests.get(id(words))
        if known is None:
            known = _digests[id(words)] = words, hashlib.blake2b(words.tobytes()).digest()
            while len(_digests) > LAYOUTS:
                _digests.popitem(last=False)
        return known[1]


def lay_out(
    program: Program,
    multiprocessors: int,
    shared_bytes: int,
    sequence: NDArray[np.int64] | None = None,
    library: bool = False,
) -> Layout:
    """Lay a program out for a device.

    Args:
        program: Program to run.
        multiprocessors: The device's number of multiprocessors.
        shared_bytes: Shared memory that a block may take.
        sequence: The steps to run, ascending; None: all. The buffer is the same for all of them.
        library: True if cuBLAS makes the matrix products that are large enough.

    Raises:
        DeviceError: A step is beyond what the kernels can launch.
    """
    words, starts = program.words.copy(), program.starts
    steps = _read(words, starts)
    _check(program, steps)
    count, item = len(starts), program.dtype.itemsize
    runs = np.ones(count, dtype=bool)
    if sequence is not None:
        runs = np.zeros(count, dtype=bool)
        runs[sequence] = True
    outputs = np.zeros(count, dtype=bool)
    outputs[program.outputs[:, 0]] = True
    compact = np.zeros(count, dtype=bool) if program.keep else ~outputs & (steps.spans <= COMPACT_CELLS)
    if program.shards is not None:
        # Other cards copy these from the arena.
        compact[list(program.shards.copied)] = False
    own_bytes = _place_compact(words, program, steps, compact)
    assignment_at = own_bytes
    peaks_at = assignment_at + _aligned(4 * program.variables)
    arena_at = peaks_at + _aligned(16 * count)
    _move(words, steps, starts, compact, arena_at // item)

    # A large join or moment matching has no chain of small steps about it, and the tile kernels are faster.
    kept_work = np.where(steps.headers[:, VARIABLE] >= 0, SMALL_WORK, min(JOIN_WORK, SMALL_WORK))
    small = (
        runs & (steps.headers[:, WORDS] <= SMALL_WORDS) & (steps.work <= (kept_work if program.keep else REUSING_WORK))
    )
    if not program.keep:
        # The others' memory may serve again, which only the program's order makes safe.
        small &= compact | outputs
        small[steps.readers[(steps.sources >= 0) & ~compact[steps.sources]]] = False
    small[list(_alone(program))] = False
    phases, begins, larges = _phases(steps, small, runs)
    _write_reciprocals(words, starts[small], steps.headers[small, AXES])
    lists = _lists(steps, starts, small, phases, begins, len(words))
    numbers = np.flatnonzero(runs)
    entries_at = len(words) + lists.links.size + len(lists.waits)
    sequence_at = entries_at + len(lists.entries)
    decode_at = sequence_at + len(numbers)
    decoded = np.flatnonzero(steps.headers[:, VARIABLE] >= 0)[::-1] if program.decode else np.zeros(0, np.int64)
    longest = int(steps.headers[decoded, WORDS].max()) if len(decoded) else 0
    records_at = decode_at + 1 + len(decoded)
    launches, records = _launches(
        program, words, steps, phases, larges, small, lists, records_at, multiprocessors, shared_bytes, library
    )
    flags = np.zeros(1 + sum(isinstance(launch, Forest) for launch in launches), dtype=np.int32)
    state = np.zeros(_aligned(4 * (len(flags) + 2 * count)), dtype=np.uint8)
    state[4 * len(flags) :][: 8 * count].view(np.int32)[:] = np.concatenate([lists.children, lists.unfinished])
    pieces = [words, lists.links.reshape(-1), lists.waits, lists.entries, numbers]
    pieces += [np.array([longest], np.int64), starts[decoded], records]
    size = arena_at + _aligned(program.arena_cells * item) + ALIGNMENT
    return Layout(
        launches=tuple(launches),
        larges=tuple(larges),
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


def _alone(program: Program) -> tuple[int, ...]:
    """Return the steps between which cards wait for each other."""
    if program.shards is None:
        return ()
    first = (phase.first for phase in program.shards.phases if phase.copies)
    return tuple(sorted({*program.shards.divided, *program.shards.copied, *first}))


def _read(words: NDArray[np.int64], starts: NDArray[np.int64]) -> _Steps:
    count = len(starts)
    headers = words[starts[:, None] + np.arange(HEADER)] if count else np.zeros((0, HEADER), np.int64)
    axes, tables = headers[:, AXES], headers[:, TABLES]
    cells = headers[:, OUTER_CELLS] * headers[:, MID_CELLS] * headers[:, LO_CELLS]
    source_at = np.repeat(starts + HEADER + AXIS_WORDS * axes, tables)
    source_at = source_at + np.repeat(TABLE_STRIDES + axes, tables) * ragged(np.zeros_like(tables), tables)
    return _Steps(
        headers,
        cells * headers[:, DOMAIN],
        spans(words, starts, axes),
        cells,
        source_at,
        words[source_at + 2],
        np.repeat(np.arange(count), tables),
    )


def _check(program: Program, steps: _Steps) -> None:
    axes, tables = steps.headers[:, AXES], steps.headers[:, TABLES]
    if len(axes) and (tables.max() > MAX_OPERANDS or (program.decode and axes.max() > MAX_DECODE_AXES)):
        raise DeviceError(
            f"a step joins {tables.max()} tables over {axes.max()} variables; the most are {MAX_OPERANDS} and 1024; "
            "use --device cpu"
        )


def _place_compact(words: NDArray[np.int64], program: Program, steps: _Steps, compact: NDArray[np.bool_]) -> int:
    """Give each compact output a place from the buffer's start on; return the bytes they take."""
    item = program.dtype.itemsize
    per_word = max(1, 16 // item)
    places = np.where(compact, -(-steps.spans // per_word) * per_word, 0)
    own = np.cumsum(places) - places
    words[program.starts[compact] + OUT] = own[compact]
    words[steps.source_at[_from(steps, compact)]] = own[steps.sources[_from(steps, compact)]]
    return _aligned(int(places.sum()) * item)


def _move(
    words: NDArray[np.int64], steps: _Steps, starts: NDArray[np.int64], compact: NDArray[np.bool_], arena_cells: int
) -> None:
    """Make the offsets of compact outputs relative to the arena, which lies so many cells after the buffer's start."""
    words[starts[compact] + OUT] -= arena_cells
    words[steps.source_at[_from(steps, compact)]] -= arena_cells


def _from(steps: _Steps, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the tables that are outputs of the chosen steps."""
    found: NDArray[np.bool_] = steps.sources >= 0
    found[found] = chosen[steps.sources[found]]
    return found


def _phases(
    steps: _Steps, small: NDArray[np.bool_], runs: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64], list[int]]:
    """Return for each step how many large steps run before it, when it could begin, and the large steps.

    A step runs as early as what it reads allows. Large steps keep the program's order, so memory that the plan reuses
    among them stays safe. Times are those of enough blocks, in units of a step of one chunk.
    """
    count = len(small)
    sources: list[list[int]] = [[] for _ in range(count)]
    for reader, source in zip(steps.readers.tolist(), steps.sources.tolist(), strict=True):
        if source >= 0 and runs[source]:
            sources[reader].append(source)
    seconds = (1 + _chunks(steps)[0] / MOST_CHUNKS).tolist()
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


def _write_reciprocals(words: NDArray[np.int64], starts: NDArray[np.int64], axes: NDArray[np.int64]) -> None:
    """Write 2^32 divided by each axis's size beside its variable (``AxisWord`` in ``program.hpp``)."""
    at = np.repeat(starts + HEADER, axes) + AXIS_WORDS * ragged(np.zeros_like(axes), axes)
    words[at + 2] |= np.minimum((1 << 32) // words[at], (1 << 32) - 1) << 32


def _chunks(steps: _Steps) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each small step its number of chunks, and the output cells of a chunk, which leave no thread idle."""
    domain = np.maximum(1, steps.headers[:, DOMAIN])
    # Threads that share a cell, as the kernel chooses them where a chunk has as many cells as the others leave.
    sharing = np.minimum(WARP, 1 << np.ceil(np.log2(np.maximum(1, domain / THREAD_WORK))).astype(np.int64))
    row = THREADS // sharing
    rows = np.maximum(THREAD_WORK // -(-domain // sharing), -(-steps.cells // (row * MOST_CHUNKS)))
    cells = np.where(steps.work > CHUNK_WORK, row * np.maximum(1, rows), np.maximum(1, steps.cells))
    return -(-steps.cells // cells), cells


class _Lists(NamedTuple):
    """Lists that the launches of small steps read besides records (``kernels/forest.cu``).

    Attributes:
        links: Words of ``LinkWord`` of each step.
        waits: Steps that entries wait for.
        entries: Entries of all launches, one after another.
        bounds: Number of the first entry of each launch, by its phase, and of all of them.
        children: Number of steps of its launch that each step reads.
        unfinished: Chunks of each step; none of those that do not run here.
    """

    links: NDArray[np.int64]
    waits: NDArray[np.int64]
    entries: NDArray[np.int64]
    bounds: NDArray[np.int64]
    children: NDArray[np.int64]
    unfinished: NDArray[np.int64]


def _lists(
    steps: _Steps,
    starts: NDArray[np.int64],
    small: NDArray[np.bool_],
    phases: NDArray[np.int64],
    begins: NDArray[np.float64],
    links_at: int,
) -> _Lists:
    """Return the lists of small steps; ``links_at``: where in the words the links and then ``waits`` will be."""
    count = len(small)
    chunks, chunk_cells = _chunks(steps)
    pairs = np.stack([steps.readers, steps.sources], axis=1)[steps.sources >= 0]
    pairs = pairs[small[pairs[:, 0]] & small[pairs[:, 1]]]
    pairs = np.unique(pairs[phases[pairs[:, 0]] == phases[pairs[:, 1]]], axis=0)
    readers, sources = pairs[:, 0], pairs[:, 1]
    children = np.bincount(readers, minlength=count).astype(np.int64)
    walks = small & (children > 0) & (chunks == 1)
    walks[readers[np.bincount(sources, minlength=count)[sources] > 1]] = False

    links = np.full((count, LINK_WORDS), -1, dtype=np.int64)
    is_walk = walks[readers]
    then = readers[is_walk]
    links[sources[is_walk], :4] = np.stack([then, starts[then], steps.headers[then, WORDS], children[then]], axis=1)
    links[sources[~is_walk], 0] = AWAITED
    # ``pairs`` is sorted, so what each step waits for follows one another.
    waiting = np.where(walks, 0, children)
    waits_at = links_at + links.size + np.cumsum(waiting) - waiting
    links[:, 4:] = np.stack([chunks, chunk_cells, starts, steps.headers[:, WORDS], waiting, waits_at], axis=1)
    heads = np.flatnonzero(small & ~walks)
    heads = heads[np.lexsort((begins[heads], phases[heads]))]
    entries = np.repeat(heads << CHUNK_BITS, chunks[heads]) + ragged(np.zeros_like(heads), chunks[heads])
    bounds = np.searchsorted(phases[entries >> CHUNK_BITS], np.arange(phases.max(initial=0) + 2))
    return _Lists(links, sources[~is_walk], entries, bounds, children, np.where(small, chunks, 0))


def _launches(
    program: Program,
    words: NDArray[np.int64],
    steps: _Steps,
    phases: NDArray[np.int64],
    larges: list[int],
    small: NDArray[np.bool_],
    lists: _Lists,
    records_at: int,
    multiprocessors: int,
    shared_bytes: int,
    library: bool,
) -> tuple[list[Forest | tile.Tile | matrix.Matrix], NDArray[np.int64]]:
    """Return the launches, and the records of large steps, which will be at `records_at`."""
    is_single = (lists.links[:, 0] != AWAITED) & (lists.links[:, 4] == 1)
    numbers = np.flatnonzero(small)
    by_phase = numbers[np.argsort(phases[numbers], kind="stable")]
    ends = np.searchsorted(phases[by_phase], np.arange(len(larges) + 2))
    launches: list[Forest | tile.Tile | matrix.Matrix] = []
    records: list[int] = []
    forests = products = 0
    for phase in range(len(larges) + 1):
        members = by_phase[ends[phase] : ends[phase + 1]]
        if len(members):
            forests += 1
            levels, work = bool((steps.headers[members, VARIABLE] == LEVEL).any()), int(steps.work[members].sum())
            first, end = lists.bounds[phase : phase + 2].tolist()
            launches.append(Forest(first, end - first, forests, bool(is_single[members].all()), levels, work))
        if phase < len(larges):
            begin, length = int(program.starts[larges[phase]]), int(steps.headers[larges[phase], WORDS])
            record = words[begin : begin + length].tolist()
            if record[VARIABLE] == LEVEL:
                launches.append(choose_level(program, begin, record, multiprocessors))
                continue
            at = records_at + len(records)
            found = matrix.choose(program, larges[phase], at, record, 1 + products) if library else None
            launches.append(found or tile.choose(program, larges[phase], at, record, multiprocessors, shared_bytes))
            products += found is not None
            records += record
    return launches, np.array(records, dtype=np.int64)
