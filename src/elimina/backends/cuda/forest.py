"""Launches of small steps (``kernels/forest.cu``): their chunks, entries and links."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.backends.cuda import kernels
from elimina.backends.cuda.step_arrays import StepArrays
from elimina.planning.record import AXIS_WORDS, DOMAIN, HEADER, WORDS, ragged

MIN_CHUNKED_WORK = 1 << 11
"""Largest work of a small step that is not cut into chunks. A unit of work is a combination: one output cell with one
value of the eliminated variable."""
MAX_CHUNKS = 264
"""Largest number of chunks of a step: about as many blocks as run at a time."""
THREAD_WORK = 8
"""Number of combinations of a chunk that one thread computes. There are more if the step has a large domain, or would
otherwise have over ``MAX_CHUNKS`` chunks."""
THREADS, WARP_THREADS = kernels.THREADS, 32
LINK_WORDS = 10
AWAITED = -2
"""Number in a link in place of the next step (``kAwaited``): blocks do not continue with another step, but other
entries of the launch wait for this step."""
CHUNK_BITS = 20


class ForestLaunch(NamedTuple):
    """A launch of small steps. Its blocks take entries, each a step or a chunk of one, from a list.

    Attributes:
        first: Number of its first entry.
        slots: Number of its entries.
        counter: Index of the counter of the entries that blocks have taken.
        tree: True if each step has at most one chunk and one reader, so that no entry has to wait.
        levels: True if some of its steps are moment-matching steps.
        work: Combinations of its steps.
    """

    first: int
    slots: int
    counter: int
    tree: bool
    levels: bool
    work: int

    @property
    def path(self) -> str:
        """Name of its executor path (``core/exec/paths.hpp``)."""
        return "cuda-forest"


def write_reciprocals(words: NDArray[np.int64], starts: NDArray[np.int64], axes: NDArray[np.int64]) -> None:
    """Write 2^32 divided by each axis's size beside its variable (``AxisWord`` in ``program.hpp``)."""
    at = np.repeat(starts + HEADER, axes) + AXIS_WORDS * ragged(np.zeros_like(axes), axes)
    words[at + 2] |= np.minimum((1 << 32) // words[at], (1 << 32) - 1) << 32


def chunks_of(steps: StepArrays) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of chunks of each small step, and the output cells of a chunk, which occupy all threads."""
    domain = np.maximum(1, steps.headers[:, DOMAIN])
    # `sharing` is the number of threads that share a cell. The kernel chooses the same number for a full chunk.
    sharing = np.minimum(WARP_THREADS, 1 << np.ceil(np.log2(np.maximum(1, domain / THREAD_WORK))).astype(np.int64))
    row = THREADS // sharing
    rows = np.maximum(THREAD_WORK // -(-domain // sharing), -(-steps.cells // (row * MAX_CHUNKS)))
    cells = np.where(steps.work > MIN_CHUNKED_WORK, row * np.maximum(1, rows), np.maximum(1, steps.cells))
    return -(-steps.cells // cells), cells


class ForestLists(NamedTuple):
    """Lists that the launches of small steps read besides the records (``kernels/forest.cu``).

    Attributes:
        links: Words of each step's link, as ``LinkWord`` numbers them.
        waits: Steps that entries wait for, those of one entry's step next to each other.
        entries: Entries of all launches, one after another.
        bounds: Number of the first entry of each launch, in the order of the phases; then the number of all entries.
        children: Number of steps of the same launch that each step reads.
        unfinished: Number of chunks of each small step; 0 for other steps.
    """

    links: NDArray[np.int64]
    waits: NDArray[np.int64]
    entries: NDArray[np.int64]
    bounds: NDArray[np.int64]
    children: NDArray[np.int64]
    unfinished: NDArray[np.int64]


def forest_lists(
    steps: StepArrays,
    starts: NDArray[np.int64],
    small: NDArray[np.bool_],
    phases: NDArray[np.int64],
    begins: NDArray[np.float64],
    links_at: int,
) -> ForestLists:
    """Return the lists of small steps; ``links_at``: start of the links in the words, where ``waits`` follows them."""
    count = len(small)
    chunks, chunk_cells = chunks_of(steps)
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
    # ``pairs`` is sorted, so the steps that one step waits for are next to each other.
    waiting = np.where(walks, 0, children)
    waits_at = links_at + links.size + np.cumsum(waiting) - waiting
    links[:, 4:] = np.stack([chunks, chunk_cells, starts, steps.headers[:, WORDS], waiting, waits_at], axis=1)
    heads = np.flatnonzero(small & ~walks)
    heads = heads[np.lexsort((begins[heads], phases[heads]))]
    entries = np.repeat(heads << CHUNK_BITS, chunks[heads]) + ragged(np.zeros_like(heads), chunks[heads])
    bounds = np.searchsorted(phases[entries >> CHUNK_BITS], np.arange(phases.max(initial=0) + 2))
    return ForestLists(links, sources[~is_walk], entries, bounds, children, np.where(small, chunks, 0))
