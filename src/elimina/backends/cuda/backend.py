"""The CUDA backend: a whole program in one buffer and few launches, and sparse tables (``kernels/rows.cu``)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import count_path
from elimina.backends.cuda import kernels
from elimina.backends.cuda.device import CudaDevice
from elimina.backends.cuda.matrix import RANGE_BYTES
from elimina.backends.cuda.session import CudaSession
from elimina.backends.cuda.stream import StreamSession
from elimina.backends.protocols import Progress, Run
from elimina.backends.sparse.device import Order, Rows, check_semiring, zero_of
from elimina.errors import DeviceError, MemoryLimitError
from elimina.planning.program import Program
from elimina.planning.step import FactorLayout
from elimina.problem.tasks import SEMIRINGS

if TYPE_CHECKING:
    from elimina.backends.sparse.session import RowsSession


PAIRS = 8 * kernels.THREADS
"""Pairs of runs of a block: ``kRounds`` for each thread."""
WORDS = {16: "complex128", 8: "uint64", 4: "uint32", 2: "uint16"}
"""Number types of so many bytes, in which cells are copied between cards."""


class CudaRows:
    """``SparseTables``' operations on a device; arrays are CuPy's.

    Args:
        backend: Backend of the device.
        semiring: A name of ``SEMIRINGS``.
        dtype: Number type of the values: one of ``DTYPES`` that the semiring has.
        parameter: The forbidden cost of min-sum, the modulus of count (0: 2^64).

    Raises:
        InputError: There are no such sparse tables.
    """

    def __init__(self, backend: CudaDevice, semiring: str, dtype: np.dtype[Any], parameter: float = 0) -> None:
        check_semiring(semiring, dtype, parameter)
        self.semiring, self.dtype, self.parameter = semiring, dtype, parameter
        self._backend, self._cupy = backend, backend.cupy
        self._parameter = dtype.type(parameter)
        self._ring = kernels.semiring_type(semiring, dtype)
        self._word = f"elimina::u{8 * dtype.itemsize}"

    def upload(self, array: NDArray[Any]) -> Any:
        """Return a copy on the device."""
        with self._working(array.nbytes):
            return self._cupy.asarray(array)

    def download(self, array: Any) -> NDArray[Any]:
        """Return a copy on the host."""
        with self._working(0):
            found: NDArray[Any] = array.get()
            return found

    def address(self, array: Any) -> int:
        """Return the address of the first element."""
        return int(array.data.ptr)

    def move(self, keys: Any, segments: NDArray[np.int64], words: int) -> Any:
        """Return the keys in another layout."""
        with self._working(8 * words * len(keys)):
            moved = self._cupy.empty((len(keys), words), dtype=np.uint64)
            name = f"rows_move<{keys.shape[1]}, {words}>"
            self._launch(name, len(keys), keys, len(keys), self._cupy.asarray(segments), len(segments), moved)
            return moved

    def is_sorted(self, keys: Any) -> bool:
        """Return whether no key is less than the one before it."""
        with self._working(0):
            flag = self._cupy.zeros(1, dtype=np.int32)
            self._launch(f"rows_unsorted<{keys.shape[1]}>", len(keys) - 1, keys, len(keys), flag)
            return not flag.get()[0]

    def sort(self, keys: Any, values: Any) -> tuple[Any, Any]:
        """Return the tuples sorted by key."""
        with self._working(keys.nbytes + values.nbytes):
            order = None
            for word in reversed(range(keys.shape[1])):
                column = keys[:, word] if order is None else keys[:, word][order]
                found = self._cupy.argsort(self._cupy.ascontiguousarray(column))
                order = found if order is None else order[found]
            sorted_keys, sorted_values = self._room(len(keys), keys.shape[1])
            name = f"rows_gather<{self._word}, {keys.shape[1]}>"
            self._launch(name, len(keys), keys, values, order, len(keys), sorted_keys, sorted_values)
            return sorted_keys, sorted_values

    def join(self, left: Rows, right: Rows, order: Order, stage: NDArray[np.int64], budget: float) -> tuple[Any, ...]:
        """Join sorted tables: see ``SparseTables.join``.

        Raises:
            MemoryLimitError: There are more than ``order.most`` rows.
        """
        words, rows = left.layout.words, len(left.values)
        with self._working(2 * (left.keys.nbytes + right.keys.nbytes)):
            if not rows or not len(right.values):
                return (*self._room(0, words), 0)
            starts = [self._starts(table, order.low) if order.low else (None, None) for table in (left, right)]
            first, counts = self._match(left, starts[0], right.keys, starts[1], order.group)
            sums = self._cupy.cumsum(counts)
            pairs = int(sums[-1])
            kind = "false" if order.eliminate or not order.low else "true"
            sides = left.keys, left.values, starts[0][0], rows, right.keys, right.values, starts[1][0]
            scalars = np.uint64(order.low), self._cupy.asarray(stage), self.dtype.type(budget), self._parameter
            blocks = -(-pairs // PAIRS)
            made = self._cupy.empty(blocks, dtype=np.int64)
            arguments = (*sides, first, sums, pairs, *scalars)
            name = f"rows_join<{self._ring}, {words}, {kind}, "
            self._launch(name + "false>", blocks * kernels.THREADS, *arguments, made, None, None)
            made = self._cupy.cumsum(made)
            total = int(made[-1]) if blocks else 0
            if total > order.most:
                raise MemoryLimitError(
                    f"a join of {rows} and {len(right.values)} tuples makes {total}, more than {order.most}"
                )
            keys, values = self._room(total, words)
            self._launch(name + "true>", blocks * kernels.THREADS, *arguments, made, keys, values)
            return keys, values, pairs

    def project(self, rows: Rows, low: int) -> tuple[Any, Any]:
        """Eliminate the low field: see ``SparseTables.project``."""
        words = rows.layout.words
        with self._working(rows.keys.nbytes + rows.values.nbytes):
            starts, last = self._starts(rows, low)
            runs = int(last[0]) if len(rows.values) else 0
            keys, values = self._room(runs, words)
            name = f"rows_project<{self._ring}, {words}>"
            arguments = rows.keys, rows.values, starts, runs, np.uint64(low), self._parameter, keys, values
            self._launch(name, runs, *arguments)
            return keys, values

    def semi_join(self, left: Rows, others: Any, group: NDArray[np.uint64]) -> tuple[Any, Any]:
        """Keep the tuples with a match: see ``SparseTables.semi_join``."""
        words, rows = left.layout.words, len(left.values)
        with self._working(left.keys.nbytes + left.values.nbytes):
            _, counts = self._match(left, (None, None), others, (None, None), group)
            sums = self._cupy.cumsum(counts > 0, dtype=np.int64)
            keys, values = self._room(int(sums[-1]) if rows else 0, words)
            self._launch(f"rows_keep<{self._word}, {words}>", rows, left.keys, left.values, sums, rows, keys, values)
            return keys, values

    def from_dense(self, cells: Any, axes: NDArray[np.int64], sizes: NDArray[np.int64], words: int) -> tuple[Any, Any]:
        """List the allowed cells: see ``SparseTables.from_dense``."""
        cupy, number = self._cupy, len(cells)
        with self._working(12 * number):
            flags = cupy.empty(number, dtype=np.int64)
            shape = cells, number, cupy.asarray(axes), cupy.asarray(sizes), np.int32(len(sizes))
            self._launch(f"rows_feasible<{self._ring}>", number, *shape, self._parameter, flags)
            sums = cupy.cumsum(flags)
            keys, values = self._room(int(sums[-1]) if number else 0, words)
            self._launch(f"rows_from_dense<{self._word}, {words}>", number, *shape, sums, keys, values)
            return keys, values

    def to_dense(self, rows: Rows, terms: NDArray[np.int64], cells: int) -> Any:
        """Write the tuples out: see ``SparseTables.to_dense``."""
        number = len(rows.values)
        with self._working(cells * self.dtype.itemsize):
            dense = self._cupy.full(cells, zero_of(self.semiring, self.parameter), dtype=self.dtype)
            name = f"rows_to_dense<{self._word}, {rows.layout.words}>"
            self._launch(name, number, rows.keys, rows.values, number, self._cupy.asarray(terms), len(terms), dense)
            return dense

    def peaks(self, values: Any) -> tuple[float, float]:
        """Return the largest and the smallest value; zeros if there is none."""
        with self._working(0):
            return (float(values.max()), float(values.min())) if len(values) else (0.0, 0.0)

    def scale(self, values: Any, factor: float) -> Any:
        """Return the values times a factor."""
        with self._working(values.nbytes):
            return values * self.dtype.type(factor)

    def _starts(self, rows: Rows, low: int) -> tuple[Any, Any]:
        """Return the start of each run, and the number of runs, both on the device."""
        number = len(rows.values)
        heads = self._cupy.empty(number, dtype=np.int64)
        self._launch(f"rows_heads<{rows.layout.words}>", number, rows.keys, number, np.uint64(low), heads)
        runs = self._cupy.cumsum(heads)
        starts = self._cupy.empty(number + 1, dtype=np.int64)
        self._launch("rows_starts", number, runs, number, starts)
        return starts, runs[-1:]

    def _match(
        self,
        left: Rows,
        left_runs: tuple[Any, Any],
        others: Any,
        other_runs: tuple[Any, Any],
        group: NDArray[np.uint64],
    ) -> tuple[Any, Any]:
        """Return, for each run on the left, the first one of its group among the others, and their number."""
        rows = len(left.values)
        first, counts = (self._cupy.empty(rows, dtype=np.int64) for _ in range(2))
        sides = left.keys, *left_runs, rows, others, *other_runs, len(others)
        mask = self._cupy.asarray(group)
        self._launch(f"rows_match<{left.layout.words}>", rows, *sides, mask, first, counts)
        return first, counts

    def _room(self, rows: int, words: int) -> tuple[Any, Any]:
        return self._cupy.empty((rows, words), dtype=np.uint64), self._cupy.empty(rows, dtype=self.dtype)

    def _launch(self, name: str, threads: int, *arguments: Any) -> None:
        """Queue a kernel; ints become 64-bit words, None a null pointer."""
        if threads <= 0:
            return
        kernel = self._backend.function(f"elimina::{name}")
        words = [np.int64(a or 0) if a is None or isinstance(a, int) else a for a in arguments]
        kernel((-(-threads // kernels.THREADS),), (kernels.THREADS,), tuple(words))

    @contextmanager
    def _working(self, size: int) -> Iterator[None]:
        """Use the device's stream and memory; ``size``: bytes that are needed, for the message if they are missing."""
        try:
            with (
                self._backend.at_work(size),
                self._cupy.cuda.using_allocator(self._backend.device_memory.allocate_array),
            ):
                yield
        except DeviceError as error:
            # How many rows a step makes is not known before: too many may still be made in slices.
            if isinstance(error.__cause__, MemoryError):
                raise MemoryLimitError(f"a sparse step makes more tuples than fit: {error}") from error
            raise


def words_of(
    source: FactorLayout, target: FactorLayout, itemsize: int
) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return the longest words that cells can be copied in.

    Args:
        source: Cells to copy.
        target: Their place, where the axes follow each other as in the source.
        itemsize: Bytes of a cell.

    Returns:
        The bytes of a word; the axes' numbers of words, slow to fast; and the bytes between two words of each axis in
        the source and in the target.
    """
    axes: list[tuple[int, int, int]] = []
    for size, given, own in sorted(zip(source.sizes, source.strides, target.strides, strict=True), key=lambda a: a[1]):
        if axes and (given, own) == (axes[-1][0] * axes[-1][1], axes[-1][0] * axes[-1][2]):
            axes[-1] = (axes[-1][0] * size, *axes[-1][1:])
        elif size > 1:
            axes.append((size, given, own))
    word = 1
    if axes and axes[0][1:] == (1, 1):
        strides = (stride for axis in axes[1:] for stride in axis[1:])
        word = math.gcd(max(WORDS) // itemsize, axes[0][0], source.offset, target.offset, *strides)
        axes[0] = axes[0][0] // word, word, word
    sizes, given_strides, own_strides = zip(*axes[::-1], strict=True) if axes else ((), (), ())
    item = itemsize
    return word * item, sizes, tuple(item * n for n in given_strides), tuple(item * n for n in own_strides)


class CardSession(CudaSession):
    """A program that is divided among cards, on one of them, which reads the arenas of the others.

    What is queued runs after what was queued before.
    """

    def __init__(self, backend: CudaDevice, program: Program, factors: NDArray[np.generic]) -> None:
        super().__init__(backend, program, factors)
        self._copies: list[list[Any]] = []
        count_path("cuda-shards")
        with self._here():
            # The link and the card's own memory are at work at the same time.
            self._local = self._cuda.Stream(non_blocking=True)

    def copy_from(self, boxes: Iterable[tuple[Any, FactorLayout, FactorLayout]]) -> None:
        """Queue copies from other sessions' arenas, over the cards' link.

        Args:
            boxes: Session of each box, its cells in that session's arena, and their place in this one's arena.

        Raises:
            DeviceError: A device failed, or does not reach another one's memory.
        """
        item, here = self._program.dtype.itemsize, self._backend.number
        with self._here():
            ends = [self._cuda.Event() for _ in range(2)]
            ends[0].record(self._stream)
            self._local.wait_event(ends[0])
            for other, source, target in boxes:
                self._backend.reach(other._backend)
                word, sizes, given, own = words_of(source, target, item)
                # CuPy takes the other card's memory as this one's, whose kernel reads it.
                cells = other.view(WORDS[word], item * source.offset, sizes, given, here)
                with self._local if other is self else self._stream:
                    self.view(WORDS[word], item * target.offset, sizes, own, here)[...] = cells
            self._stream.wait_event(self._passed(self._local))
            ends[1].record(self._stream)
            self._copies.append(ends)

    def queue(self, steps: NDArray[np.int64], share: float) -> None:
        """Queue successive steps, after which a share of the program's work is done."""
        phase = copy(self.part)
        phase.layout = phase.layout.phase(int(steps[0]), int(steps[-1]) + 1, len(self._program.starts))
        with self._here():
            self._write_loads()
            self.part.products.find_ranges(self.arena)
            self.launch_steps(phase, False)
            self._marks.append((self._passed(self._stream), share))

    def join_peaks(self, others: Sequence[Any], step: int) -> None:
        """Queue the join of the output range of a step's part with those of its parts in other sessions."""
        cupy = self._backend.cupy
        with self._here():
            high, low = (self._peaks_of(self, step)[end : end + 1] for end in range(2))
            for other in others:
                theirs = self._peaks_of(other, step)
                cupy.maximum(high, theirs[:1], out=high)
                cupy.minimum(low, theirs[1:], out=low)

    def _peaks_of(self, session: CardSession, step: int) -> Any:
        """Return the output range of a step in a session, as an array of this card."""
        at = session._base + self.part.layout.peaks_at + RANGE_BYTES * step
        memory = self._cuda.UnownedMemory(at, RANGE_BYTES, session._memory, self._backend.number)
        return self._backend.cupy.ndarray((2,), np.float64, self._cuda.MemoryPointer(memory, 0))

    def follow(self, others: Sequence[Any]) -> None:
        """Let what is queued from now on wait, on the card, for all that other sessions have queued by now."""
        with self._here():
            for other in others:
                self._backend.reach(other._backend)
                with other._here():
                    passed = self._passed(other._stream)
                self._stream.wait_event(passed)

    def _passed(self, stream: Any) -> Any:
        """Return an event after all that is queued in a stream of the current card."""
        event = self._cuda.Event(disable_timing=True)
        event.record(stream)
        return event

    def finish(self, progress: Progress | None) -> Run:
        """Wait until all that is queued has run; the seconds of the copies are those of the phase ``exchange``."""
        with self._here():
            results, done = self._download(self.part.layout)
            self._wait(done, progress)
            exchange = sum(self._cuda.get_elapsed_time(*ends) for ends in self._copies) / 1000
            self._copies.clear()
            self._staged.clear()
            return self._collect(results, {"exchange": exchange})

    def cancel(self) -> None:
        """End what is queued."""
        with self._here():
            self._stop(self.part)


class CudaBackend(CudaDevice):
    """A CUDA device that runs programs."""

    def open(self, program: Program, factors: NDArray[np.generic]) -> CudaSession | StreamSession | RowsSession:
        """Put a program on the device; see ``backends/__init__.py``.

        Raises:
            DeviceError: The device failed, is out of memory, or lacks the semiring in this dtype.
        """
        dtype = program.dtype.name
        if program.semiring not in SEMIRINGS or dtype not in SEMIRINGS[program.semiring].dtypes:
            raise DeviceError(f"no CUDA kernel for {program.semiring} in {dtype}: use --device cpu")
        self.claim()
        if program.sparse is not None:
            from elimina.backends.cpu import CpuBackend
            from elimina.backends.sparse.session import RowsSession

            count_path("cuda-rows")
            device = CudaRows(self, program.semiring, program.dtype, program.parameter)
            return RowsSession(self, CpuBackend(), device, program, factors)
        if program.stream is not None:
            return StreamSession(self, program, factors)
        session = CudaSession if program.shards is None else CardSession
        return session(self, program, factors)
