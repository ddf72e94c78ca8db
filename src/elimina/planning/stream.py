"""Steps whose tables pass through a device in tiles: memory layout and copies; planning needs no device."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.number_texts import bytes_text, counted
from elimina.planning.plan import Form, Plan
from elimina.planning.record import (
    AXES,
    AXIS_STRIDE,
    AXIS_WORDS,
    HEADER,
    LO_CELLS,
    MID_AXES,
    MID_CELLS,
    OUT,
    OUTER_AXES,
    OUTER_CELLS,
    TABLES,
)
from elimina.planning.step import Step

UNIT_BYTES = 64
"""Alignment of the rows of a table's copied part, if the table's layout does not determine it."""


class Window(NamedTuple):
    """Memory of the device for the parts of a table that tiles read or write.

    The memory is divided into slots. Each slot contains one part of the table at a time.

    Attributes:
        start: Start of the first slot on the device, or of the whole table, in elements.
        slots: Number of slots; 0: the whole table stays on the device until the last step that reads it has run.
        span: Number of elements of a slot.
        strides: Stride of each axis of the step's output, in elements.
        domain_stride: Stride of the eliminated variable, in elements.
        whole: True if the only slot contains the whole table, which is copied for the first tile.
    """

    start: int
    slots: int
    span: int
    strides: tuple[int, ...]
    domain_stride: int
    whole: bool = False


class StreamedStep(NamedTuple):
    """A step that a device runs in tiles: boxes of its output's cells.

    Attributes:
        step: Number of the step in the plan.
        lengths: Lengths of a tile along each axis of the output.
        loops: Axes with several tiles, the slowest first.
        windows: Device memory of the operands, followed by that of the output.
        download: True if the output is needed on the host.
        after: Earlier steps whose outputs overlap the memory of this output.
    """

    step: int
    lengths: tuple[int, ...]
    loops: tuple[int, ...]
    windows: tuple[Window, ...]
    download: bool
    after: tuple[int, ...]


class Stream(NamedTuple):
    """A plan whose arena is larger than its device.

    Attributes:
        steps: Steps that the device runs; the host runs the other steps.
        cells: Number of elements of the device's memory.
        up: Number of elements copied to the device.
        down: Number of elements copied to the host.
        seconds: Estimated time of the copies.
        upload_span: Largest number of elements uploaded for one tile.
        download_span: Largest number of elements downloaded after one tile.
    """

    steps: tuple[StreamedStep, ...]
    cells: int
    up: int
    down: int
    seconds: float
    upload_span: int
    download_span: int


class Streamed(Form):
    """Tables of one run that are not stored on the device, but pass through it in tiles.

    Attributes:
        stream: Copies of the tables; None if the plan does not fit and only shows its figures.
        scratch: Directory for the tables' file; None: they lie in host memory.
        limits: Memory limits of the host (if a GPU runs the plan) and of the disk, in bytes.
        is_resident: False, because the tables do not lie on the device.
    """

    stream: Stream | None = None
    scratch: str | None = None
    limits: tuple[tuple[str, int], ...] = ()
    is_resident: bool = False

    def program_fields(self) -> dict[str, Any]:
        """Return the copies and the directory."""
        return {"stream": self.stream, "scratch": self.scratch}

    def rows(self, plan: Plan) -> list[tuple[str, str]]:
        """Return the number of steps in tiles, and the number of copied bytes."""
        if self.stream is None:
            return []
        item = plan.itemsize
        moved = f"{bytes_text(self.stream.up * item)} to the device, {bytes_text(self.stream.down * item)} back"
        return [("streamed", f"{counted(len(self.stream.steps), 'step')} in tiles, {moved}")]


class StreamedTable(NamedTuple):
    """A table in the arena; ``source``: the step that writes it; -1: a factor."""

    offset: int
    domain_stride: int
    source: int
    strides: tuple[int, ...]


class StepTables(NamedTuple):
    """Axes and tables of a step; the output is the last table.

    Attributes:
        domain: Number of values of the eliminated variable.
        sizes: Numbers of values of the output's axes.
        lo: Number of slow and middle axes of the output.
        tables: Tables in the arena.
    """

    domain: int
    sizes: tuple[int, ...]
    lo: int
    tables: tuple[StreamedTable, ...]

    @classmethod
    def of(cls, step: Step) -> StepTables:
        """Return the axes and tables of a step."""
        operands = [StreamedTable(o.offset, o.domain_stride, o.source, o.strides) for o in step.operands]
        output = StreamedTable(step.out_offset, 0, -1, step.out_strides)
        return cls(step.domain, step.sizes, step.outer + step.mid, (*operands, output))


class Copy(NamedTuple):
    """A box of a table, as contiguous runs of elements that repeat along rows.

    Attributes:
        host: Start in the arena.
        device: Start on the device.
        run: Number of elements of a run.
        rows: Count, stride in the arena and stride on the device for each axis of runs, the fastest axis first.
    """

    host: int
    device: int
    run: int
    rows: tuple[tuple[int, int, int], ...]

    @property
    def runs(self) -> int:
        """Number of runs."""
        return math.prod(count for count, _, _ in self.rows)


class StreamTile(NamedTuple):
    """Work of one tile of a step. Tiles are numbered from 1; in ``written`` and the fields after it, 0 means no tile.

    Attributes:
        number: Number of the tile in the run.
        step: Step of the tile.
        lengths: Number of cells along each axis of the output.
        offsets: Offsets on the device of the operands, followed by that of the output.
        streamed: Layout of its tables on the device.
        uploads: Copies to the device before the tile runs.
        downloads: Copies to the arena after the tile ran.
        written: Tile whose download wrote the last of the uploaded bytes.
        ran: Tile that must have run before the uploads.
        fetched: Tile whose download must be complete before the uploads.
        free: Tile whose download must be complete before this tile runs.
    """

    number: int
    step: int
    lengths: tuple[int, ...]
    offsets: tuple[int, ...]
    streamed: StreamedStep
    uploads: tuple[Copy, ...]
    downloads: tuple[Copy, ...]
    written: int
    ran: int
    fetched: int
    free: int


class BoxShape(NamedTuple):
    """Layout of a box on the device.

    ``rows`` lists the axes of its runs: axis (-1: the eliminated variable), count, and stride in the arena.
    """

    strides: tuple[int, ...]
    domain_stride: int
    span: int
    run: int
    rows: tuple[tuple[int, int, int], ...]


def shape_of(record: StepTables, table: StreamedTable, lengths: Sequence[int], itemsize: int) -> BoxShape:
    """Return the layout on the device of the box of cells that a tile reads or writes.

    Axes that the box covers completely keep their strides in the arena, including padding; slower axes are packed. The
    output's fast axes stay contiguous, because kernels depend on it.

    Args:
        record: Record of the step.
        table: One of the step's tables.
        lengths: Lengths of the tile along each axis of the output.
        itemsize: Bytes of an element.
    """
    unit = UNIT_BYTES // itemsize
    axes = [(stride, a) for a, stride in enumerate(table.strides) if stride and record.sizes[a] > 1]
    if table.domain_stride and record.domain > 1:
        axes.append((table.domain_stride, -1))
    strides, domain_stride = [0] * len(lengths), 0
    full, extent, run = True, 1, 1
    rows: list[tuple[int, int, int]] = []
    for stride, a in sorted(axes):
        size, length = (record.domain, record.domain) if a < 0 else (record.sizes[a], lengths[a])
        box_stride = stride if full else extent if a >= record.lo else -(-extent // unit) * unit
        if a < 0:
            domain_stride = box_stride
        else:
            strides[a] = box_stride
        extent += box_stride * (length - 1)
        if full:
            run = extent
        elif length > 1:
            rows.append((a, length, stride))
        full = full and length == size
    return BoxShape(tuple(strides), domain_stride, extent, run, tuple(rows))


class Schedule:
    """The tiles of a run, with consecutive numbers.

    Args:
        words: Words of a packed program.
        starts: Start of each step's record.
        itemsize: Bytes of an element.
    """

    def __init__(self, words: NDArray[np.int64], starts: NDArray[np.int64], itemsize: int) -> None:
        self._words, self._starts, self._item = words, starts, itemsize
        self._last: dict[int, int] = {}
        self.number = 0

    def tiles(self, streamed: StreamedStep) -> Iterator[StreamTile]:
        """Yield the tiles of the next step; steps have to come in the plan's order."""
        start = int(self._starts[streamed.step])
        words = self._words[start : start + self._words[start]].tolist()
        record = StepTables.of(Step.of_record(words, 0, (), [-1] * words[TABLES]))
        *operands, output = zip(record.tables, streamed.windows, strict=True)
        views = [_Operand(table, window, self.number) for table, window in operands]
        output_view = _Output(*output, self.number, max((self._last[step] for step in streamed.after), default=0))
        counts = [-(-record.sizes[a] // streamed.lengths[a]) for a in streamed.loops]
        for index in itertools.product(*map(range, counts)):
            first = [0] * len(record.sizes)
            for a, i in zip(streamed.loops, index, strict=True):
                first[a] = i * streamed.lengths[a]
            lengths = tuple(
                min(n, size - at) for n, size, at in zip(streamed.lengths, record.sizes, first, strict=True)
            )
            box = _Box(record, tuple(first), lengths, self._item)
            self.number += 1
            yield self._tile(streamed, views, output_view, box)
        self._last[streamed.step] = self.number

    def _tile(self, streamed: StreamedStep, views: list[_Operand], output_view: _Output, box: _Box) -> StreamTile:
        uploads: list[Copy] = []
        offsets: list[int] = []
        written = ran = fetched = 0
        for view in views:
            offset, copy = view.reserve(box, self.number)
            offsets.append(offset)
            if copy is not None:
                uploads.append(copy)
                ran, fetched = max(ran, view.ran), max(fetched, view.fetched)
                written = max(written, self._last.get(view.table.source, 0))
        offset, free = output_view.reserve(box, self.number)
        download = (_copy(box, output_view.table, output_view.window, offset),) if streamed.download else ()
        return StreamTile(
            self.number,
            streamed.step,
            box.lengths,
            (*offsets, offset),
            streamed,
            tuple(uploads),
            download,
            written,
            ran,
            fetched,
            free,
        )


class _Box(NamedTuple):
    record: StepTables
    first: tuple[int, ...]
    lengths: tuple[int, ...]
    itemsize: int


def _start(table: StreamedTable, first: Sequence[int]) -> int:
    return sum(at * stride for at, stride in zip(first, table.strides, strict=True))


def _copy(box: _Box, table: StreamedTable, window: Window, device: int) -> Copy:
    shape = shape_of(box.record, table, box.lengths, box.itemsize)
    device_strides = (*window.strides, window.domain_stride)
    rows = tuple((count, stride, device_strides[axis]) for axis, count, stride in shape.rows)
    return Copy(table.offset + _start(table, box.first), device, shape.run, rows)


class _Operand:
    """State of an operand's slots.

    Args:
        table: Table of the operand.
        window: Device memory of its parts.
        before: Last tile of the earlier steps that used the same memory.
    """

    def __init__(self, table: StreamedTable, window: Window, before: int) -> None:
        self.table, self.window = table, window
        self._used = [before] * window.slots
        self._before, self._loads = before, 0
        self._first_cell: tuple[int, ...] | None = None
        self.ran = self.fetched = 0

    def reserve(self, box: _Box, number: int) -> tuple[int, Copy | None]:
        """Return the offset of a tile's input, and the copy that provides it (None if it is on the device already)."""
        if not self.window.slots:
            return self.window.start + _start(self.table, box.first), None
        if self.window.whole:
            return self._reserve_whole(box)
        first_cell = tuple(at for at, stride in zip(box.first, self.table.strides, strict=True) if stride)
        copy = None
        if first_cell != self._first_cell:
            self._first_cell = first_cell
            self._loads += 1
            slot = (self._loads - 1) % self.window.slots
            self.ran = self._used[slot]
            self.fetched = self._before if self._loads <= self.window.slots else 0
            copy = _copy(box, self.table, self.window, self.window.start + slot * self.window.span)
        slot = (self._loads - 1) % self.window.slots
        self._used[slot] = number
        return self.window.start + slot * self.window.span, copy

    def _reserve_whole(self, box: _Box) -> tuple[int, Copy | None]:
        copy = None
        if not self._loads:
            self._loads = 1
            self.ran = self.fetched = self._before
            sizes = box.record.sizes
            whole = box._replace(first=(0,) * len(sizes), lengths=sizes)
            copy = _copy(whole, self.table, self.window, self.window.start)
        steps = zip(box.first, self.window.strides, strict=True)
        return self.window.start + sum(at * stride for at, stride in steps), copy


class _Output:
    """State of an output's slots.

    Args:
        table: The output in the arena.
        window: Device memory of its parts.
        before: Tile whose download must be complete before the first use of a slot.
        after: Tile whose download must be complete before the output is written, if it stays whole on the device.
    """

    def __init__(self, table: StreamedTable, window: Window, before: int, after: int) -> None:
        self.table, self.window = table, window
        self._used = [before] * window.slots
        self._reserved_rows, self._after = 0, after

    def reserve(self, box: _Box, number: int) -> tuple[int, int]:
        """Return the offset of a tile's part, and the tile whose download must be complete before it is written."""
        if not self.window.slots:
            return self.window.start + _start(self.table, box.first), self._after
        slot = self._reserved_rows % self.window.slots
        self._reserved_rows += 1
        free, self._used[slot] = self._used[slot], number
        return self.window.start + slot * self.window.span, free


def tile_record(words: NDArray[np.int64], start: int, tile: StreamTile) -> list[int]:
    """Return the packed step of a tile: the whole step's record with other sizes, strides and offsets."""
    record: list[int] = words[start : start + words[start]].tolist()
    axes, outer, lo = record[AXES], record[OUTER_AXES], record[OUTER_AXES] + record[MID_AXES]
    *windows, output = tile.streamed.windows
    record[OUTER_CELLS] = math.prod(tile.lengths[:outer])
    record[MID_CELLS] = math.prod(tile.lengths[outer:lo])
    record[LO_CELLS] = math.prod(tile.lengths[lo:])
    record[OUT] = tile.offsets[-1]
    at = HEADER + AXIS_WORDS * axes
    record[HEADER:at:AXIS_WORDS] = tile.lengths
    record[HEADER + AXIS_STRIDE : at : AXIS_WORDS] = output.strides
    for window, offset in zip(windows, tile.offsets[:-1], strict=True):
        record[at : at + 2] = offset, window.domain_stride
        record[at + 3 : at + 3 + axes] = window.strides
        at += 3 + axes
    return record
