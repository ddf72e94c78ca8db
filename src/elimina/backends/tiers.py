"""Arenas larger than a device's memory: files, tiles, and the CPU with an arena in a file.

Tables pass through memory in tiles; threads read ahead and write behind.
"""

from __future__ import annotations

import itertools
import math
import mmap
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from elimina import system
from elimina._core import DenseSession, count_path
from elimina.backends.cpu import dense_session
from elimina.backends.protocols import Progress, Run
from elimina.errors import InputError, MemoryLimitError
from elimina.planning.program import Program
from elimina.planning.record import HEADER
from elimina.planning.stream import Copy, Schedule, StreamedStep, StreamTile, tile_record
from elimina.problem.tasks import SEMIRINGS
from elimina.system import available_threads

PIECE_BYTES = 4 << 20
"""Bytes of a file that a thread reads or writes at a time."""

Piece = tuple[int, int, int]
"""Address of some bytes in memory and in the file, and their number."""
Item = TypeVar("Item")


class Scratch:
    """A file without a name: not even a killed process leaves it behind.

    Its space is reserved at once, so that a full disk is an error before the work and not within it.

    Args:
        folder: Folder of the file.
        size: Size of the file in bytes.

    Raises:
        InputError: The folder cannot be written to.
        MemoryLimitError: The disk, a quota or a limit on files leaves no room.
    """

    def __init__(self, folder: str, size: int) -> None:
        self._file = _open(folder)
        try:
            system.reserve(self._file, max(1, size))
            self._map = mmap.mmap(self._file, max(1, size))
        except OSError as error:
            os.close(self._file)
            raise MemoryLimitError(
                f"the scratch directory {folder!r} has no room for {size} bytes ({error.strerror}); "
                "free some, raise the limit on files, or name another directory (--scratch)"
            ) from error
        except BaseException:
            os.close(self._file)
            raise

    def array(self, dtype: np.dtype[np.generic], cells: int) -> NDArray[np.generic]:
        """Return the file as an array, which keeps it."""
        return np.frombuffer(self._map, dtype=dtype, count=cells)

    def read(self, target: memoryview, offset: int) -> None:
        """Read bytes from an offset on."""
        system.read_at(self._file, target, offset)

    def write(self, source: memoryview, offset: int) -> None:
        """Write bytes from an offset on."""
        system.write_at(self._file, source, offset)

    def close(self) -> None:
        """Close the file; its space is free once no array uses it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _open(folder: str) -> int:
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            return os.dup(file.fileno())
    except OSError as error:
        raise InputError(
            f"the scratch directory {folder!r} cannot be used ({error.strerror}); name another one (--scratch)"
        ) from error


def pieces(part: Copy, itemsize: int, closely: int | None = None) -> Iterator[list[Piece]]:
    """Yield a box's runs, cut and joined to amounts that a thread takes at once.

    Args:
        part: Box to cut.
        itemsize: Bytes of an element.
        closely: Address of the runs in memory, one after another; None: as on the device.
    """
    together: list[Piece] = []
    size = 0
    for n, index in enumerate(itertools.product(*(range(count) for count, _, _ in reversed(part.rows)))):
        steps = list(zip(index, reversed(part.rows), strict=True))
        offset = itemsize * (part.host + sum(i * stride for i, (_, stride, _) in steps))
        at = itemsize * (part.device + sum(i * own for i, (_, _, own) in steps))
        if closely is not None:
            at = closely + n * part.run * itemsize
        for first in range(0, part.run * itemsize, PIECE_BYTES):
            taken = min(PIECE_BYTES, part.run * itemsize - first)
            together.append((at + first, offset + first, taken))
            size += taken
            if size >= PIECE_BYTES:
                yield together
                together, size = [], 0
    if together:
        yield together


def with_following(items: Iterator[Item], ahead: int) -> Iterator[tuple[Item, list[Item]]]:
    """Yield each item with the next ones."""
    waiting: list[Item] = []
    for item in items:
        waiting.append(item)
        if len(waiting) > ahead:
            yield waiting[0], waiting[1:]
            waiting.pop(0)
    while waiting:
        yield waiting[0], waiting[1:]
        waiting.pop(0)


Report = Callable[[float], None]


class TiledSession(ABC):
    """A program whose arena lies on the host: see ``Session``.

    Args:
        program: Packed program of a plan with ``stream``.
        arena: All tables, the factors among them.
        threads: Number of threads for the steps that the host does.
        upload: Seconds that it took to get there.
    """

    def __init__(self, program: Program, arena: NDArray[np.generic], threads: int, upload: float) -> None:
        assert program.stream is not None
        self.program, self.arena, self.upload_seconds = program, arena, upload
        self.scaled = SEMIRINGS[program.semiring].scaled
        self.peaks = np.zeros((len(program.starts), 2))
        self._streamed = {step.step: step for step in program.stream.steps}
        self._host = dense_session(program, program.words, program.starts, arena, self.peaks, threads)

    def load(self, offset: int, values: NDArray[np.generic]) -> None:
        """Write elements of the arena: see ``Session.load``."""
        self.arena[offset : offset + len(values)] = values

    def fetch(self, offset: int, span: int) -> NDArray[np.generic]:
        """Return a copy of elements of the arena: see ``Session.fetch``."""
        return self.arena[offset : offset + span].copy()

    def load_peaks(self, peaks: NDArray[np.float64], first: int = 0) -> None:
        """Write the output ranges of an earlier session; a run makes all of them again: see ``Session.load_peaks``."""
        self.peaks[first : first + len(peaks)] = peaks

    def close(self) -> None:
        """Forget the arena."""
        del self._host, self.arena

    def run(self, steps: NDArray[np.int64] | None = None, progress: Progress | None = None) -> Run:
        """Run all of the steps: see ``Session.run``. What lies on the device is there for a whole run only."""
        started = time.perf_counter()
        self.peaks[:] = 0
        if self.scaled:
            self.peaks[list(self._streamed), 1] = np.inf
        self.run_all(progress)
        ran = time.perf_counter()
        self.peaks[np.isinf(self.peaks[:, 1]), 1] = 0
        assignment = self._host.decode(self.program.variables) if self.program.decode else None
        seconds = {"upload": self.upload_seconds, "run": ran - started, "decode": time.perf_counter() - ran}
        return Run(self.arena[slice(*self.program.zone)].copy(), self.peaks.copy(), assignment, seconds)

    def run_all(self, progress: Progress | None) -> None:
        """Run consecutive groups of steps, each on the host or on the device."""
        program, done = self.program, 0
        schedule = Schedule(program.words, program.starts, program.dtype.itemsize)
        numbers = range(len(program.starts))
        for on_device, stretch in itertools.groupby(numbers, self._streamed.__contains__):
            steps = list(stretch)
            report = self._reporter(progress, done)
            if on_device:
                self.run_tiles(schedule, [self._streamed[number] for number in steps], report)
            else:
                self._host.run(np.array(steps, dtype=np.int64), report)
                self.host_steps_ran()
            done += sum(self._work(number) for number in steps)
        if progress is not None:
            progress(1.0)

    @abstractmethod
    def run_tiles(self, schedule: Schedule, steps: Sequence[StreamedStep], report: Report | None) -> None:
        """Run consecutive steps in tiles, and wait until their results are in the arena and the output ranges.

        Args:
            schedule: Schedule of the whole run.
            steps: Some of the stream's.
            report: Called now and then with the work that is done.
        """

    def host_steps_ran(self) -> None:
        """Take the new output ranges of some steps."""
        return

    def _work(self, number: int) -> int:
        start = int(self.program.starts[number])
        words = self.program.words[start : start + 9].tolist()
        return int(words[1] * math.prod(words[6:]))

    def _reporter(self, progress: Progress | None, before: int) -> Report | None:
        if progress is None:
            return None
        return lambda done: progress(min(1.0, (before + done) / self.program.work))


AHEAD = 2
"""Tiles that are read in advance: with the one that is computed, they fill the slots of a table."""
READERS = 8
ALONE = 1 << 24
"""Combinations of a tile up to which one thread computes it while the next one is read."""


class DiskSession(TiledSession):
    """A program whose arena lies in its scratch file: see ``Session``."""

    def __init__(self, program: Program, factors: NDArray[np.generic], threads: int) -> None:
        assert program.scratch is not None
        assert program.stream is not None
        started = time.perf_counter()
        count_path("scratch-tiles")
        item = program.dtype.itemsize
        self._file = Scratch(program.scratch, program.arena_cells * item)
        self._file.write(np.ascontiguousarray(factors).reshape(-1).view(np.uint8).data, 0)
        self._slots = np.empty(program.stream.cells, dtype=program.dtype)
        self._view = self._slots.view(np.uint8).data
        self._threads, self._item = threads, item
        self._pool = ThreadPoolExecutor(min(READERS, 2 * available_threads()))
        self._reads: dict[int, list[Future[None]]] = {}
        self._writes: dict[int, list[Future[None]]] = {}
        self._cores: dict[tuple[int, ...], _Core] = {}
        arena = self._file.array(program.dtype, program.arena_cells)
        super().__init__(program, arena, threads, time.perf_counter() - started)

    def close(self) -> None:
        """Give the file and the memory back."""
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
            for tile, following in with_following(tiles, AHEAD):
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
                    parts = _jobs(tile.downloads, self._item)
                    self._writes[tile.number] = [self._pool.submit(self._write_pieces, part) for part in parts]
        finally:
            self._wait(self._reads)
            self._wait(self._writes)

    def _is_readable(self, tile: StreamTile, current: int) -> bool:
        """Return whether a tile's inputs are written and its slots free while another tile is computed."""
        last = max(tile.written, tile.fetched)
        under_way = [n for n, jobs in self._writes.items() if n <= last and not all(job.done() for job in jobs)]
        return last < current and tile.ran < current and not under_way

    def _read(self, tile: StreamTile) -> None:
        parts = _jobs(tile.uploads, self._item)
        self._reads[tile.number] = [self._pool.submit(self._read_pieces, part) for part in parts]

    def _read_pieces(self, part: list[Piece]) -> None:
        for at, offset, size in part:
            self._file.read(self._view[at : at + size], offset)

    def _write_pieces(self, part: list[Piece]) -> None:
        for at, offset, size in part:
            self._file.write(self._view[at : at + size], offset)

    def _wait(self, jobs: dict[int, list[Future[None]]], last: float = math.inf) -> None:
        """Wait for the reads or writes of the tiles up to one."""
        for number in [number for number in jobs if number <= last]:
            for job in jobs.pop(number):
                job.result()

    def _compute(self, tile: StreamTile, report: Report | None) -> int:
        """Compute a tile; return its work."""
        key = (tile.step, *tile.lengths, *tile.offsets)
        if key not in self._cores:
            record = tile_record(self.program.words, int(self.program.starts[tile.step]), tile)
            self._cores[key] = _Core(self.program, record, self._slots, self._threads)
        core = self._cores[key]
        core.peaks[1:, 0] = self.peaks[core.sources, 0]
        core.session.run(None, report)
        if self.scaled:
            high, low = core.peaks[0].tolist()
            own = self.peaks[tile.step]
            own[:] = max(own[0], high), min(own[1], low if high > 0 else math.inf)
        return core.work


class _Core:
    """A tile as a program of one step; its first peak is the output's, the others are its operands'."""

    def __init__(self, program: Program, record: list[int], slots: NDArray[np.generic], threads: int) -> None:
        axes, tables = record[3], record[9]
        sources = slice(HEADER + 3 * axes + 2, None, 3 + axes)
        given = record[sources]
        record[sources] = [n + 1 if source >= 0 else -1 for n, source in enumerate(given)]
        self.sources = np.maximum(np.array(given, dtype=np.int64), 0)
        self.peaks = np.zeros((tables + 1, 2))
        self.work = int(record[1] * math.prod(record[6:9]))
        words, starts = np.array(record, dtype=np.int64), np.zeros(1, dtype=np.int64)
        threads = 1 if self.work <= ALONE else threads
        self.session: DenseSession = dense_session(program, words, starts, slots, self.peaks, threads)


def _jobs(parts: Iterable[Copy], itemsize: int) -> Iterable[list[Piece]]:
    return itertools.chain.from_iterable(pieces(part, itemsize) for part in parts)


def _shifted(report: Report, before: int) -> Callable[[float], None]:
    return lambda done: report(before + done)
