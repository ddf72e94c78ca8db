"""What a program becomes on a CUDA device: one buffer, and a list of launches; needs no CUDA."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.backends import cuda_tile
from elimina.errors import DeviceError
from elimina.planning.program import Program

HEADER = 15
AXIS_WORDS = 3
TABLE_WORDS = 3
MAX_TABLES = 16
MAX_DECODE_AXES = 1024
SMALL_WORK = 1 << 14
"""Rows of the largest step that one block computes on its way to the root."""
COMPACT_CELLS = 1 << 12
"""Elements of the largest output that has a place of its own, never used again within a run."""
SMALL_WORDS = 512
"""Words of the longest record of a small step."""
ALIGNMENT = 256
LINK_WORDS = 4

(
    WORDS,
    DOMAIN,
    VARIABLE,
    AXES,
    OUTER_AXES,
    MID_AXES,
    OUTER_CELLS,
    MID_CELLS,
    LO_CELLS,
    TABLES,
    TABLES_A,
    TABLES_B,
    OUT,
    PARENT,
) = range(14)


class Forest(NamedTuple):
    """A launch of small steps: where its leaves are listed in the words, how many, and the number of its counter."""

    leaves_at: int
    leaves: int
    cursor: int
    work: int


class Layout(NamedTuple):
    """A program on the device.

    The buffer holds, in this order: outputs of compact steps | roots | assignment | peaks | words | counters | arena.
    So what goes up (peaks to factors) is one piece, and what comes down (roots to peaks) is another. Offsets of compact
    outputs, relative to the arena, are negative.

    Attributes:
        launches: In order.
        decode_at: Where the decoding order is in the words.
        decode_steps: Number of steps to decode.
        decode_shared: Bytes of shared memory for decoding.
        links_at: Where the links of small steps are in the words.
        starts_at: Where the starts of the steps' records are in the words.
        head: What goes up before the factors, as bytes.
        roots_at, assignment_at, peaks_at, words_at, counters_at, arena_at: Byte offsets in the buffer.
        roots: Number of roots.
        cursors: Number of counters of forests; they follow the stop flag, and each step's pending children follow them.
        size: Bytes of the buffer.
        work: Rows of all steps.
    """

    launches: tuple[Forest | cuda_tile.Tile, ...]
    decode_at: int
    decode_steps: int
    decode_shared: int
    links_at: int
    starts_at: int
    head: NDArray[np.uint8]
    roots_at: int
    assignment_at: int
    peaks_at: int
    words_at: int
    counters_at: int
    arena_at: int
    roots: int
    cursors: int
    size: int
    work: int


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _ragged(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return starts[i], starts[i] + 1, ... starts[i] + counts[i] - 1 for each i, one after another."""
    ends = np.cumsum(counts)
    ragged: NDArray[np.int64] = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return ragged


def _spans(words: NDArray[np.int64], starts: NDArray[np.int64], axes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Elements from an output's first cell to its last."""
    at = np.repeat(starts + HEADER, axes) + AXIS_WORDS * _ragged(np.zeros_like(axes), axes)
    spans = np.ones(len(starts), dtype=np.int64)
    np.add.at(spans, np.repeat(np.arange(len(starts)), axes), (words[at] - 1) * words[at + 1])
    return spans


def lay_out(program: Program, multiprocessors: int, shared_bytes: int) -> Layout:
    """Lay a program out for a device.

    Args:
        program: What to run.
        multiprocessors: The device's number of multiprocessors.
        shared_bytes: Shared memory that a block may take.

    Raises:
        DeviceError: A step is beyond what the kernels can launch.
    """
    words, starts = program.words.copy(), program.starts
    steps, item = len(starts), program.dtype.itemsize
    headers = words[starts[:, None] + np.arange(HEADER)] if steps else np.zeros((0, HEADER), np.int64)
    axes, tables, parents = headers[:, AXES], headers[:, TABLES], headers[:, PARENT]
    if steps and (tables.max() > MAX_TABLES or (program.decode and axes.max() > MAX_DECODE_AXES)):
        raise DeviceError(
            f"a step joins {tables.max()} tables over {axes.max()} variables; the most are {MAX_TABLES} and 1024"
        )
    spans = _spans(words, starts, axes)
    out_cells = headers[:, OUTER_CELLS] * headers[:, MID_CELLS] * headers[:, LO_CELLS]
    work = out_cells * headers[:, DOMAIN]

    roots = parents < 0
    compact = roots | (spans <= COMPACT_CELLS)
    per_word = max(1, 16 // item)
    places = np.where(compact & ~roots, -(-spans // per_word) * per_word, 0)
    own_cells = _aligned(int(places.sum()) * item) // item
    root_cells = _aligned(int(roots.sum()) * item) // item
    own = np.cumsum(places) - places
    own[roots] = own_cells + np.arange(int(roots.sum()))
    sizes = [
        own_cells * item,
        root_cells * item,
        _aligned(4 * program.variables),
        _aligned(16 * steps),
    ]
    # The words' and counters' sizes are known once the launches are.
    source_at = np.repeat(starts + HEADER + AXIS_WORDS * axes, tables)
    source_at = source_at + np.repeat(TABLE_WORDS + axes, tables) * _ragged(np.zeros_like(tables), tables)
    sources = words[source_at + 2]
    reads_large = np.zeros(steps, dtype=bool)
    readers = np.repeat(np.arange(steps), tables)
    reads_large[readers[(sources >= 0) & ~compact[sources]]] = True
    small = compact & ~reads_large & (work <= SMALL_WORK) & (headers[:, WORDS] <= SMALL_WORDS)

    phases, larges = _phases(parents.tolist(), small.tolist())
    same = small & (parents >= 0)
    same[same] = small[parents[same]] & (phases[parents[same]] == phases[same])
    children = np.bincount(parents[same], minlength=steps).astype(np.int64)

    links = np.full((steps, LINK_WORDS), -1, dtype=np.int64)
    walks = parents[same]
    links[same] = np.stack([walks, starts[walks], headers[walks, WORDS], children[walks]], axis=1)
    pieces = [words, starts, links.reshape(-1)]
    starts_at, links_at = len(words), len(words) + steps
    total = links_at + LINK_WORDS * steps

    launches: list[Forest | cuda_tile.Tile] = []
    small_numbers = np.flatnonzero(small)
    small_phases = phases[small_numbers]
    for phase in range(len(larges) + 1):
        members = (
            small_numbers[small_phases == phase] if len(larges) < 64 or phase in small_phases else small_numbers[:0]
        )
        if len(members):
            leaves = members[children[members] == 0]
            launches.append(Forest(total, len(leaves), len(launches), int(work[members].sum())))
            pieces.append(leaves)
            total += len(leaves)
        if phase < len(larges):
            number = larges[phase]
            record = words[starts[number] : starts[number] + headers[number, WORDS]].tolist()
            begin = int(starts[number])
            tile = cuda_tile.choose(program, number, begin, record, multiprocessors, shared_bytes)
            words[begin : begin + len(record)] = record
            launches.append(tile)

    decoded = np.flatnonzero(headers[:, VARIABLE] >= 0)[::-1] if program.decode else np.zeros(0, np.int64)
    longest = int(headers[decoded, WORDS].max()) if len(decoded) else 0
    decode_at = total
    pieces += [np.array([longest], dtype=np.int64), starts[decoded]]
    total += 1 + len(decoded)

    cursors = len(launches)
    sizes += [_aligned(8 * total), _aligned(4 * (1 + cursors + steps))]
    at = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    arena_at = int(at[-1])
    # Only now do the offsets of compact outputs, relative to the arena, follow.
    moved = own - arena_at // item
    words[starts[compact] + OUT] = moved[compact]
    from_compact = (sources >= 0) & compact[sources]
    words[source_at[from_compact]] = moved[sources[from_compact]]

    head = np.zeros(arena_at - int(at[3]), dtype=np.uint8)
    peaks = head[: 16 * steps].view(np.float64).reshape(steps, 2)
    peaks[:, 1] = np.inf
    packed = np.concatenate(pieces)
    head[at[4] - at[3] :][: packed.nbytes] = packed.view(np.uint8)
    counters = head[at[5] - at[3] :].view(np.int32)
    counters[1 + cursors : 1 + cursors + steps] = children
    size = arena_at + _aligned(program.arena_cells * item) + ALIGNMENT
    return Layout(
        tuple(launches), decode_at, len(decoded), 16 * longest, links_at, starts_at, head,
        int(at[1]), int(at[2]), int(at[3]), int(at[4]), int(at[5]), arena_at,
        int(roots.sum()), cursors, size, int(work.sum()),
    )  # fmt: skip


def _phases(parents: list[int], small: list[bool]) -> tuple[NDArray[np.int64], list[int]]:
    """Return for each step how many large steps run before it, as early as its children allow, and the large steps.

    Large steps keep the program's order, so memory that the plan reuses among them stays safe.
    """
    earliest = [0] * len(parents)
    larges: list[int] = []
    for step, parent in enumerate(parents):
        ready = earliest[step]
        if not small[step]:
            larges.append(step)
            ready = len(larges)
        if parent >= 0 and ready > earliest[parent]:
            earliest[parent] = ready
    return np.array(earliest, dtype=np.int64), larges
