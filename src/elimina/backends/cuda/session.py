"""A program on a CUDA device: its buffers, and how it is launched."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import Stopped, count_path, stopped
from elimina.backends.cuda import kernels
from elimina.backends.cuda.array_copy import copy_array, forbidding_copy
from elimina.backends.cuda.events import has_passed
from elimina.backends.cuda.forest import ForestLaunch
from elimina.backends.cuda.layout import DeviceLayout, LaunchRecording
from elimina.backends.cuda.layout_cache import MAX_KEPT_WORDS_BYTES
from elimina.backends.cuda.matrix_launch import MatrixLaunch
from elimina.backends.cuda.matrix_queue import RANGE_BYTES, MatrixQueue
from elimina.backends.cuda.tile_launch import TileLaunch
from elimina.backends.cuda.uploads import contiguous_pieces, slices_of
from elimina.backends.protocols import RunOutput
from elimina.planning.bucket_tables import BucketTables, ValueCosts
from elimina.planning.program import Program, work_of
from elimina.planning.step import FactorLayout
from elimina.problem.semirings import SEMIRINGS
from elimina.system import processors

if TYPE_CHECKING:
    from elimina.backends.cuda.device import CudaDevice

STAGE_BYTES = 32 << 20
"""Bytes of each of the two pinned buffers of a large copy."""
MAX_WRITERS = 8
"""Largest number of threads that copy from or to pinned memory: each moves 1 to 5 GB/s, the GPU's link 55 GB/s."""
MAX_MARKS = 64
"""Largest number of reports of progress in a run."""
MIN_MARKED_WORK = 1 << 34
"""Least combinations of a run that reports progress."""
MAX_RECORDINGS = 4
"""Largest number of recordings that are kept of one layout, at different addresses."""
MIN_SAVED_WORK = 1 << 33
"""Least number of combinations that a run of only some steps must save to get a layout of its own."""
MAX_PARTIAL_LAYOUTS = 16
"""Largest number of kept layouts of partial runs."""
DECODED_VARIABLES = 4096
"""Number of variables that a launch decodes from buckets: some milliseconds of work, between looks for an interrupt."""
FLAG_BYTES = 4
"""Bytes of the stop flag."""
SPIN_SECONDS, MIN_SLEEP_SECONDS, MAX_SLEEP_SECONDS = 0.005, 5e-5, 1e-3
"""Seconds for which a wait polls without sleep if only one session runs; shortest and longest sleep in seconds."""
SLEEP_SHARE = 1 / 512
"""Duration of a sleep, as a share of the time waited so far. On average, half of the last sleep is lost."""

_running: set[int] = set()
"""``id`` of each session of this process in which a run is in progress."""


class ResidentSteps:
    """Some of a program's steps on the device: the inputs of the kernels, and the counters before a run."""

    def __init__(self, session: CudaSession, layout: DeviceLayout) -> None:
        self.layout = layout
        matrices = [launch for launch in layout.launches if isinstance(launch, MatrixLaunch)]
        self.products = MatrixQueue(session._backend, session._program, matrices)
        self.copy, self.memory = session.copy_of(layout), session.allocate(len(layout.state) + self.products.size)
        self.words_at, self.state_at = int(self.copy.ptr), int(self.memory.ptr)
        self.pristine_at = self.words_at + layout.words.nbytes
        self.products.set_address(self.state_at + len(layout.state))
        self.recording = session.recording(self)
        session._copy(self.state_at, self.pristine_at, len(layout.state))
        session.upload(self.state_at + len(layout.state), self.products.pieces)


class CudaSession:
    """A program on one device, its arena kept between runs: see ``Session``."""

    def __init__(self, backend: CudaDevice, program: Program, factors: NDArray[np.generic]) -> None:
        self._backend, self._program = backend, program
        self._cuda, self._stream = backend.cupy.cuda, backend.stream
        self._resident: dict[bytes | None, ResidentSteps] = {}
        self._asked: set[bytes] = set()
        self._expected: list[NDArray[np.int64]] = []
        self._marks: list[tuple[Any, float]] = []
        self._loads: dict[int, NDArray[np.uint8]] = {}
        self._staged: list[Any] = []
        """Pinned memory whose copy to the device is pending."""
        layout = backend.lay_out(program)
        if not layout.recordings:
            backend.compile(_kernels_of(program, layout))
        with backend.at_work(layout.size):
            self._memory = self.allocate(layout.size)
            self._base = int(self._memory.ptr)
            ends = [self._cuda.Event() for _ in range(2)]
            ends[0].record(self._stream)
            self._resident[None] = ResidentSteps(self, layout)
            self.upload(self._base + layout.arena_at, [np.ascontiguousarray(factors).reshape(-1).view(np.uint8)])
            ends[1].record(self._stream)
            self._uploads = [ends]
            """Pairs of events around uploads whose time no run has reported yet."""

    def _here(self) -> AbstractContextManager[None]:
        return self._backend.at_work(self.whole_program.layout.size)

    def load(self, offset: int, values: NDArray[np.generic]) -> None:
        """Write elements of the arena, before any other use of it: see ``Session.load``."""
        self._loads[offset * self._program.dtype.itemsize] = np.ascontiguousarray(values).view(np.uint8)

    def _write_loads(self) -> None:
        """Queue the pending writes; adjacent pieces are written as one."""
        for first, pieces in contiguous_pieces(self._loads):
            self.upload(self.arena + first, pieces)
        if self._loads:
            self._forget_ranges()
        self._loads.clear()

    def _forget_ranges(self) -> None:
        """Make the next run compute the ranges of factors again, because their values may have changed."""
        for resident in self._resident.values():
            resident.products.are_ranges_known = False

    def run(self, steps: NDArray[np.int64] | None = None, progress: Callable[[float], None] | None = None) -> RunOutput:
        """Run all or some of the steps: see ``Session.run``."""
        with self._here():
            resident = self._resident_steps(steps)
            events = [self._cuda.Event() for _ in range(3)]
            _running.add(id(self))
            try:
                self._write_loads()
                resident.products.find_ranges(self.arena)
                events[0].record(self._stream)
                marked = progress is not None and resident.layout.work >= MIN_MARKED_WORK
                self.launch(resident, marked)
                events[1].record(self._stream)
                if self._program.decode:
                    self._decode(resident)
                events[2].record(self._stream)
                results, done = self._download(resident.layout)
                if self._program.keep and not self._program.decode and not marked:
                    # The program is likely to run again: its graph is made while the device is busy with this run.
                    self._record(resident)
                while self._expected and not has_passed(self._cuda.runtime, done):
                    self._laid_out(self._expected.pop())
                self._expected.clear()
                self._wait(done, progress)
                self._staged.clear()
            except BaseException:
                self._stop(resident)
                raise
            finally:
                _running.discard(id(self))
            seconds = [self._cuda.get_elapsed_time(a, b) / 1000 for a, b in itertools.pairwise(events)]
            upload = sum(self._cuda.get_elapsed_time(*ends) for ends in self._uploads) / 1000
            self._uploads.clear()
            download = self._cuda.get_elapsed_time(events[2], done) / 1000
            phases = {"upload": upload, "run": seconds[0], "decode": seconds[1], "download": download}
            return self._collect(results, phases)

    def fetch(self, offset: int, span: int) -> NDArray[np.generic]:
        """Return a copy of elements of the arena: see ``Session.fetch``."""
        item = self._program.dtype.itemsize
        values = np.empty(span, dtype=self._program.dtype)
        whole = values.view(np.uint8)
        stages_of_data = [
            slice(first, min(first + STAGE_BYTES, len(whole))) for first in range(0, len(whole), STAGE_BYTES)
        ]
        writing: deque[list[Future[None]]] = deque(maxlen=2)
        with self._here(), ThreadPoolExecutor(min(MAX_WRITERS, processors())) as writers:
            self._write_loads()
            stages = [self._backend.pinned.malloc(min(STAGE_BYTES, len(whole))) for _ in stages_of_data[:2]]
            for number, stage_of_data in enumerate(stages_of_data):
                stage, size = stages[number % 2], stage_of_data.stop - stage_of_data.start
                for done in writing[0] if len(writing) == 2 else ():
                    done.result()
                self._copy(stage.ptr, self.arena + offset * item + stage_of_data.start, size)
                self._stream.synchronize()
                writing.append(_written(writers, whole[stage_of_data], as_bytes(stage, size)))
            self._staged.clear()
        return values

    def gather(self, cells: NDArray[np.int64]) -> NDArray[np.generic]:
        """Return the elements of the arena at the given places: see ``GatheringSession.gather``."""
        with self.arena_in_place() as (cupy, arena):
            values: NDArray[np.generic] = cupy.asnumpy(arena[cupy.asarray(cells)], stream=self._stream)
        return values

    def decode_buckets(self, tables: BucketTables, costs: ValueCosts) -> NDArray[np.int32]:
        """Decode assignments on the device: see ``GatheringSession.decode_buckets``."""
        variables, count, largest = len(tables.sizes), costs.assignments, int(tables.sizes.max(initial=0))
        kernel = self._backend.function(kernels.decode_buckets_kernel(self.dtype))
        with self.arena_in_place() as (cupy, arena):
            words = cupy.asarray(np.concatenate(tables))
            lengths = [np.int64(length) for length in (variables, len(tables.offsets), len(tables.axis_variables))]
            state_ends = np.concatenate([[0], np.cumsum(tables.sizes)])
            noise = cupy.asarray(costs.noise)
            room = cupy.empty(count * largest, np.float64)
            assignments = cupy.empty((count, variables), np.int32)
            for end in range(variables, 0, -DECODED_VARIABLES):
                begin = max(0, end - DECODED_VARIABLES)
                kernel(
                    (count,), (kernels.DECODING_THREADS,),
                    (arena, words, *lengths, np.int64(begin), np.int64(end), noise, np.int64(noise.shape[1]),
                     state_ends[end], room, np.int64(largest), np.float64(costs.sign), self.dtype.type(costs.forbidden),
                     assignments),
                )  # fmt: skip
                done = self._cuda.Event()
                done.record(self._stream)
                self._wait(done, None)
            values: NDArray[np.int32] = cupy.asnumpy(assignments, stream=self._stream)
        return values

    @contextmanager
    def arena_in_place(self) -> Iterator[tuple[Any, Any]]:
        """Give access to the arena on the backend's stream: see ``GatheringSession.arena_in_place``."""
        cupy = self._backend.cupy
        with self._here(), self._cuda.using_allocator(self._backend.device_memory.allocate_array):
            self._write_loads()
            self._forget_ranges()
            cells, item = self._program.arena_cells, self._program.dtype.itemsize
            try:
                yield cupy, self.view(self._program.dtype, 0, (cells,), (item,), self._backend.number)
            finally:
                # The caller's arrays are freed next, and queued work may still use them.
                self._stream.synchronize()
                self._staged.clear()

    def put(self, table: FactorLayout, values: Any, limit: float | None, forbidden: float) -> None:
        """Write a table; values on the device are copied there: see ``TableSession.put``."""
        with self._here(), self._cuda.using_allocator(self._backend.device_memory.allocate_array):
            self._forget_ranges()
            view = self._view(table)
            source = self._backend.cupy.asarray(values)
            if copy_array(self._backend, source, view, limit, forbidden):
                return
            if limit is None:
                view[...] = source
            else:
                forbid = forbidding_copy(self._backend.cupy)
                forbid(source, source.dtype.type(limit), self._program.dtype.type(forbidden), view)

    def read_table(self, table: FactorLayout) -> Any:
        """Copy a table on the device: see ``TableSession.read_table``."""
        with self._here(), self._cuda.using_allocator(self._backend.device_memory.allocate_array):
            view = self._view(table)
            taken = self._backend.cupy.empty(table.sizes, self._program.dtype)
            if not copy_array(self._backend, view, taken):
                taken[...] = view
            self._stream.synchronize()
        return taken

    def view(self, dtype: Any, offset: int, sizes: Sequence[int], strides: Sequence[int], device: int) -> Any:
        """Return cells of the arena as an array in place.

        Args:
            dtype: Type of the array.
            offset: Bytes from the arena's start to the first cell.
            sizes: Sizes of the axes.
            strides: Bytes between neighbouring values of each axis.
            device: Number of the GPU that uses the array.
        """
        size = self._program.arena_cells * self._program.dtype.itemsize
        memory = self._cuda.UnownedMemory(self.arena, size, self._memory, device)
        return self._backend.cupy.ndarray(sizes, dtype, self._cuda.MemoryPointer(memory, offset), strides)

    def _view(self, table: FactorLayout) -> Any:
        item = self._program.dtype.itemsize
        strides = tuple(item * stride for stride in table.strides)
        return self.view(self._program.dtype, item * table.offset, table.sizes, strides, self._backend.number)

    def load_peaks(self, peaks: NDArray[np.float64], first: int = 0) -> None:
        """Write the output ranges of another session: see ``Session.load_peaks``."""
        with self._here():
            values = np.ascontiguousarray(peaks).reshape(-1).view(np.uint8)
            self.upload(self._base + self.whole_program.layout.peaks_at + RANGE_BYTES * first, [values])

    def close(self) -> None:
        """Release the memory."""
        self._resident.clear()
        del self._memory
        self._backend.trim()

    @property
    def whole_program(self) -> ResidentSteps:
        """The whole program on the device."""
        return self._resident[None]

    @property
    def arena(self) -> int:
        """Address of the arena on the device."""
        return self._base + self.whole_program.layout.arena_at

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Type of the arena's cells."""
        return self._program.dtype

    def allocate(self, size: int) -> Any:
        """Return device memory, which is idle again when the result is deleted."""
        return self._backend.device_memory.allocate(size)

    def expect(self, steps: NDArray[np.int64]) -> None:
        """Lay these steps out while the device is busy with the next run: see ``ExpectingSession.expect``."""
        if self._saves(steps) and self._program.words.nbytes <= MAX_KEPT_WORDS_BYTES:
            self._expected.append(steps)

    def _saves(self, steps: NDArray[np.int64]) -> bool:
        """Return whether running only these steps saves enough work to lay them out separately."""
        return self._program.work - work_of(self._program, steps) >= MIN_SAVED_WORK

    def _resident_steps(self, steps: NDArray[np.int64] | None) -> ResidentSteps:
        if steps is None:
            return self.whole_program
        key = steps.tobytes()
        if key not in self._asked and not self._saves(steps):
            # The steps may never be requested again, so they are not laid out for the first request.
            self._asked.add(key)
            return self.whole_program
        return self._laid_out(steps)

    def _laid_out(self, steps: NDArray[np.int64]) -> ResidentSteps:
        key = steps.tobytes()
        if key not in self._resident:
            if len(self._resident) > MAX_PARTIAL_LAYOUTS:
                del self._resident[next(steps_key for steps_key in self._resident if steps_key is not None)]
            self._resident[key] = ResidentSteps(self, self._backend.lay_out(self._program, steps))
        return self._resident[key]

    def _copy(self, to: int, source: int, size: int) -> None:
        self._cuda.runtime.memcpyAsync(to, source, size, self._cuda.runtime.memcpyDefault, self._stream.ptr)

    def upload(self, to: int, pieces: list[NDArray[np.uint8]]) -> None:
        """Queue the copy of bytes to the device, one piece after another, through pinned memory."""
        # A stage is neither overwritten nor given back to the pool before the copy from it has finished.
        total = sum(map(len, pieces))
        if not total:
            return
        if total <= STAGE_BYTES:
            stage = self._backend.pinned.malloc(total)
            np.concatenate(pieces, out=as_bytes(stage, total))
            self._copy(to, stage.ptr, total)
            self._staged.append(stage)
            return
        stages = [self._backend.pinned.malloc(STAGE_BYTES) for _ in range(2)]
        busy: list[Any] = [None, None]
        with ThreadPoolExecutor(min(MAX_WRITERS, processors())) as writers:
            for turn, (address, piece) in enumerate(slices_of(to, pieces, STAGE_BYTES)):
                if busy[turn % 2] is not None:
                    busy[turn % 2].synchronize()
                for done in _written(writers, as_bytes(stages[turn % 2], len(piece)), piece):
                    done.result()
                self._copy(address, stages[turn % 2].ptr, len(piece))
                busy[turn % 2] = self._cuda.Event(disable_timing=True)
                busy[turn % 2].record(self._stream)
        self._stream.synchronize()

    def copy_of(self, layout: DeviceLayout) -> Any:
        """Return device memory with a layout's words and state; if the layout is kept, the memory is kept with it."""
        copies, number, pieces = layout.copies, self._backend.number, [layout.words.view(np.uint8), layout.state]
        if copies is not None and number in copies:
            return copies[number]
        memory = self.allocate(sum(map(len, pieces)))
        self.upload(int(memory.ptr), pieces)
        if copies is not None:
            # Other streams read the copy without waiting for this one.
            self._stream.synchronize()
            copies[number] = memory
        return memory

    def recording(self, resident: ResidentSteps) -> LaunchRecording:
        """Return the recording of some steps' launches. Another session at the same addresses may have made it."""
        layout, where = resident.layout, (resident.words_at, resident.state_at, self._base)
        blas = self._backend.blas if any(isinstance(launch, MatrixLaunch) for launch in layout.launches) else None
        # A graph runs in the stream in which it was recorded, so a session in another stream must not use it.
        key = self._backend.number, self._stream.ptr, *where, blas, self._program.parameter
        if key not in layout.recordings and len(layout.recordings) >= MAX_RECORDINGS:
            layout.recordings.clear()
        return layout.recordings.setdefault(key, LaunchRecording())

    def launch(self, resident: ResidentSteps, marked: bool) -> None:
        """Queue every step, as one graph if the launches are repeated."""
        recording = resident.recording
        if not marked and recording.runs:
            self._record(resident)
        if marked or recording.graph is None:
            self.launch_steps(resident, marked)
            recording.runs += 1
        else:
            recording.graph()

    def _record(self, resident: ResidentSteps) -> None:
        """Make the graph of the launches of some steps, if there is none."""
        if resident.recording.graph is None:
            resident.recording.graph = self._backend.recorded(lambda: self.launch_steps(resident, False))

    def launch_steps(self, resident: ResidentSteps, marked: bool) -> None:
        """Queue every step; ``marked``: with events for the progress."""
        layout, program, backend = resident.layout, self._program, self._backend
        if any(isinstance(launch, ForestLaunch) for launch in layout.launches):
            # The stop flag precedes the counters. It is not reset here, because it has to end all queued work.
            self._copy(
                resident.state_at + FLAG_BYTES, resident.pristine_at + FLAG_BYTES, len(layout.state) - FLAG_BYTES
            )
        words, arena = np.uint64(resident.words_at), np.uint64(self.arena)
        peaks, stop = np.uint64(self._base + layout.peaks_at), np.uint64(resident.state_at)
        pending = np.uint64(resident.state_at + layout.pending_at)
        parameter = program.dtype.type(program.parameter)
        if SEMIRINGS[program.semiring].is_scaled and layout.sequence:
            blocks = -(-layout.sequence // kernels.THREADS)
            sequence = np.int64(layout.sequence_at), np.int64(layout.sequence)
            backend.function("elimina::peaks")((blocks,), (kernels.THREADS,), (words, *sequence, peaks))
        done, reported = 0, 0.0
        for launch in layout.launches:
            count_path(launch.path)
            if isinstance(launch, ForestLaunch):
                kind = program.semiring, program.dtype, launch.tree, launch.levels
                kernel = backend.function(kernels.forest_kernel(*kind))
                taken = np.uint64(resident.state_at + 4 * launch.counter)
                where = [np.int64(n) for n in (layout.links_at, layout.entries_at + launch.first)]
                sizes = [np.int64(n) for n in (launch.slots, len(program.starts))]
                blocks = min(launch.slots, kernels.FOREST_BLOCKS * backend.multiprocessors)
                arguments = (words, *where, *sizes, taken, pending, arena, peaks, stop, parameter)
                kernel((blocks,), (kernels.THREADS,), arguments)
            elif isinstance(launch, MatrixLaunch):
                record = np.uint64(resident.words_at + 8 * launch.record_at)
                resident.products.queue(launch, record, arena, peaks, stop)
            else:
                self._launch_tile(resident, launch, (arena, peaks, stop, parameter))
            done += launch.work
            share = done / max(1, layout.work)
            if marked and share - reported >= 1 / MAX_MARKS:
                reported = share
                event = self._cuda.Event(disable_timing=True)
                event.record(self._stream)
                self._marks.append((event, share))

    def _launch_tile(self, resident: ResidentSteps, tile: TileLaunch, pointers: tuple[Any, ...]) -> None:
        kernel = self._backend.function(tile.kernel.name, tile.shared)
        record = np.uint64(resident.words_at + 8 * tile.record_at)
        arguments = (record, *map(np.int32, tile.arguments), *pointers)
        kernel((tile.blocks,), (tile.threads,), arguments, shared_mem=tile.shared)

    def _decode(self, resident: ResidentSteps) -> None:
        layout, program = resident.layout, self._program
        kernel = self._backend.function(kernels.decode_kernel(program.semiring, program.dtype))
        assignment = self._base + layout.assignment_at
        self._cuda.runtime.memsetAsync(assignment, 0, 4 * program.variables, self._stream.ptr)
        if not layout.decode_steps:
            return
        pointers = [np.uint64(at) for at in (self.arena, self._base + layout.peaks_at, assignment, resident.state_at)]
        where = np.uint64(resident.words_at), np.int64(layout.decode_at), np.int64(layout.decode_steps)
        kernel(
            (1,), (kernels.THREADS,), (*where, *pointers, program.dtype.type(program.parameter)),
            shared_mem=layout.decode_shared,
        )  # fmt: skip

    def _download(self, layout: DeviceLayout) -> tuple[list[NDArray[np.uint8]], Any]:
        """Queue copies of assignment, output ranges and outputs; return their targets, and an event after them."""
        first, last = self._program.zone
        item = self._program.dtype.itemsize
        spans = [
            (self._base + layout.assignment_at, layout.arena_at - layout.assignment_at),
            (self.arena + first * item, (last - first) * item),
        ]
        results = []
        for at, size in spans:
            memory = self._backend.pinned.malloc(max(1, size))
            self._copy(memory.ptr, at, size)
            results.append(as_bytes(memory, size))
        done = self._cuda.Event()
        done.record(self._stream)
        return results, done

    def _wait(self, last: Any, progress: Callable[[float], None] | None) -> None:
        """Poll, so that an interrupt is noticed. Polling begins without sleeps, since most runs are short.

        If several sessions run, the thread always sleeps. Polling without sleep would keep the interpreter from the
        threads of other GPUs for milliseconds at a time.
        """
        began, reported, runtime = time.perf_counter(), 0, self._cuda.runtime
        while not has_passed(runtime, last):
            if stopped():
                raise Stopped
            if progress is not None:
                finished = reported
                while finished < len(self._marks) and has_passed(runtime, self._marks[finished][0]):
                    finished += 1
                if finished > reported:
                    progress(self._marks[finished - 1][1])
                    reported = finished
            waited = time.perf_counter() - began
            if waited > SPIN_SECONDS or len(_running) > 1:
                time.sleep(min(max(MIN_SLEEP_SECONDS, SLEEP_SHARE * waited), MAX_SLEEP_SECONDS))
        self._marks.clear()
        if progress is not None:
            progress(1.0)

    def _stop(self, resident: ResidentSteps) -> None:
        """Cancel queued launches, and wait for the running one."""
        stream = self._cuda.Stream(non_blocking=True)
        self._cuda.runtime.memsetAsync(resident.state_at, 1, FLAG_BYTES, stream.ptr)
        stream.synchronize()
        self._stream.synchronize()
        self._cuda.runtime.memsetAsync(resident.state_at, 0, FLAG_BYTES, self._stream.ptr)
        self._stream.synchronize()

    def _collect(self, results: list[NDArray[np.uint8]], seconds: dict[str, float]) -> RunOutput:
        layout, program = self.whole_program.layout, self._program
        head, cells = results[0], results[1].view(program.dtype)
        peaks = head[layout.peaks_at - layout.assignment_at :].view(np.float64)[: 2 * len(program.starts)]
        peaks = peaks.reshape(-1, 2).copy()
        if not SEMIRINGS[program.semiring].is_scaled:
            peaks[:] = 0
        peaks[np.isinf(peaks[:, 1]), 1] = 0
        assignment = head[: 4 * program.variables].view(np.int32).copy() if program.decode else None
        # ``cells`` need no copy: pinned memory is reused only after its last array is released.
        return RunOutput(cells, peaks, assignment, seconds)


def _kernels_of(program: Program, layout: DeviceLayout) -> Iterator[str]:
    """Yield the names of the kernels that a program runs."""
    kind = program.semiring, program.dtype
    if program.decode:
        yield kernels.decode_kernel(*kind)
    if SEMIRINGS[program.semiring].is_scaled and layout.sequence:
        yield "elimina::peaks"
    for launch in layout.launches:
        if isinstance(launch, ForestLaunch):
            yield kernels.forest_kernel(*kind, launch.tree, launch.levels)
        else:
            yield from launch.kernel_names(*kind)


def _written(writers: ThreadPoolExecutor, to: NDArray[np.uint8], data: NDArray[np.uint8]) -> list[Future[None]]:
    """Write data, and return the pending jobs: none if the data are so small that this thread writes them."""
    if len(data) < STAGE_BYTES:
        to[:] = data
        return []
    share = -(-STAGE_BYTES // MAX_WRITERS)
    return [
        writers.submit(np.copyto, to[first : first + share], data[first : first + share])
        for first in range(0, len(data), share)
    ]


def as_bytes(memory: Any, size: int) -> NDArray[np.uint8]:
    """Return pinned memory as an array of bytes."""
    return np.frombuffer(memory, dtype=np.uint8, count=size)
