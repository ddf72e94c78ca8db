"""A program on the CPU whose arena lies in a scratch file; threads read ahead and write behind."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from elimina._core import DenseSession, count_path
from elimina.backends.core_session import dense_session
from elimina.backends.file_pieces import FilePiece, file_pieces
from elimina.backends.scratch import ScratchFile
from elimina.backends.tiled_session import Report, TiledSession, with_following
from elimina.planning.program import Program
from elimina.planning.record import AXES, AXIS_WORDS, DOMAIN, HEADER, LO_CELLS, OUTER_CELLS, TABLES
from elimina.planning.stream import Copy, Schedule, StreamedStep, StreamTile, tile_record
from elimina.system import available_threads

TILES_AHEAD = 2
"""Number of tiles that are read ahead. Each table has slots for these tiles and the current one."""
MAX_READ_THREADS = 8
ONE_THREAD_WORK = 1 << 24
"""Up to this number of combinations, one thread computes a tile: starting other threads would take longer."""


class DiskSession(TiledSession):
    """A program whose arena lies in its scratch file: see ``Session``."""

    def __init__(self, program: Program, factors: NDArray[np.generic], threads: int) -> None:
        assert program.scratch is not None
        assert program.stream is not None
        started = time.perf_counter()
        count_path("scratch-tiles")
        item = program.dtype.itemsize
        self._file = ScratchFile(program.scratch, program.arena_cells * item)
        self._file.write(np.ascontiguousarray(factors).reshape(-1).view(np.uint8).data, 0)
        self._slots = np.empty(program.stream.cells, dtype=program.dtype)
        self._view = self._slots.view(np.uint8).data
        self._threads, self._item = threads, item
        self._pool = ThreadPoolExecutor(min(MAX_READ_THREADS, 2 * available_threads()))
        self._reads: dict[int, list[Future[None]]] = {}
        self._writes: dict[int, list[Future[None]]] = {}
        self._cores: dict[tuple[int, ...], _TileProgram] = {}
        arena = self._file.array(program.dtype, program.arena_cells)
        super().__init__(program, arena, threads, time.perf_counter() - started)

    def close(self) -> None:
        """Release the file and the memory."""
        self._pool.shutdown(cancel_futures=True)
        super().close()
        self._file.close()
        self._cores.clear()
        del self._view, self._slots

    def run_tiles(self, schedule: Schedule, steps: Sequence[StreamedStep], report: Report | None) -> None:
        """Run steps in tiles: see ``TiledSession.run_tiles``."""
        done = 0
        try:
            tiles = itertools.chain.from_iterable(map(schedule.tiles, steps))
            for tile, following in with_following(tiles, TILES_AHEAD):
                if tile.number not in self._reads:
                    self._wait(self._writes, max(tile.written, tile.fetched))
                    self._read(tile)
                for later in following:
                    if later.number not in self._reads and self._is_readable(later, tile.number):
                        self._read(later)
                self._wait(self._reads, tile.number)
                self._wait(self._writes, tile.free)
                done += self._compute(tile, None if report is None else _shifted(report, done))
                if tile.downloads:
                    jobs = _jobs(tile.downloads, self._item)
                    self._writes[tile.number] = [self._pool.submit(self._write_pieces, job) for job in jobs]
        finally:
            self._wait(self._reads)
            self._wait(self._writes)

    def _is_readable(self, tile: StreamTile, current: int) -> bool:
        """Return whether a tile can be read while ``current`` is computed: inputs are written, and slots are free."""
        last = max(tile.written, tile.fetched)
        under_way = [n for n, jobs in self._writes.items() if n <= last and not all(job.done() for job in jobs)]
        return last < current and tile.ran < current and not under_way

    def _read(self, tile: StreamTile) -> None:
        jobs = _jobs(tile.uploads, self._item)
        self._reads[tile.number] = [self._pool.submit(self._read_pieces, job) for job in jobs]

    def _read_pieces(self, pieces: list[FilePiece]) -> None:
        for at, offset, size in pieces:
            self._file.read(self._view[at : at + size], offset)

    def _write_pieces(self, pieces: list[FilePiece]) -> None:
        for at, offset, size in pieces:
            self._file.write(self._view[at : at + size], offset)

    def _wait(self, jobs: dict[int, list[Future[None]]], last: float = math.inf) -> None:
        """Wait for the reads or writes of the tiles up to a number."""
        for number in [number for number in jobs if number <= last]:
            for job in jobs.pop(number):
                job.result()

    def _compute(self, tile: StreamTile, report: Report | None) -> int:
        """Compute a tile; return its work."""
        key = (tile.step, *tile.lengths, *tile.offsets)
        if key not in self._cores:
            record = tile_record(self.program.words, int(self.program.starts[tile.step]), tile)
            self._cores[key] = _TileProgram(self.program, record, self._slots, self._threads)
        core = self._cores[key]
        core.peaks[1:, 0] = self.peaks[core.sources, 0]
        core.session.run(None, report)
        if self.scaled:
            high, low = core.peaks[0].tolist()
            peaks_of_step = self.peaks[tile.step]
            peaks_of_step[:] = max(peaks_of_step[0], high), min(peaks_of_step[1], low if high > 0 else math.inf)
        return core.work


class _TileProgram:
    """A tile as a program of one step; its first output range is that of the output, the others are the operands'."""

    def __init__(self, program: Program, record: list[int], slots: NDArray[np.generic], threads: int) -> None:
        axes, tables = record[AXES], record[TABLES]
        sources = slice(HEADER + AXIS_WORDS * axes + 2, None, 3 + axes)
        sources_of_tables = record[sources]
        record[sources] = [n + 1 if source >= 0 else -1 for n, source in enumerate(sources_of_tables)]
        self.sources = np.maximum(np.array(sources_of_tables, dtype=np.int64), 0)
        self.peaks = np.zeros((tables + 1, 2))
        self.work = int(record[DOMAIN] * math.prod(record[OUTER_CELLS : LO_CELLS + 1]))
        words, starts = np.array(record, dtype=np.int64), np.zeros(1, dtype=np.int64)
        threads = 1 if self.work <= ONE_THREAD_WORK else threads
        self.session: DenseSession = dense_session(program, words, starts, slots, self.peaks, threads)


def _jobs(boxes: Iterable[Copy], itemsize: int) -> Iterable[list[FilePiece]]:
    return itertools.chain.from_iterable(file_pieces(box, itemsize) for box in boxes)


def _shifted(report: Report, before: int) -> Callable[[float], None]:
    return lambda done: report(before + done)
