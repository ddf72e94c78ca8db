"""Memory tier of a plan's arena (device, host or file), and tiles of arenas that exceed the device."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from elimina.errors import InputError
from elimina.planning.machine import DISK, PINNED, QUEUE_SECONDS, RUN_BYTES, TILE_SECONDS, speeds
from elimina.planning.plan import Plan
from elimina.planning.step import Step
from elimina.planning.stream import (
    BoxShape,
    StepTables,
    Stream,
    Streamed,
    StreamedStep,
    StreamedTable,
    Window,
    shape_of,
)

HOST_WORK = 1 << 17
"""Largest number of combinations of a step that the host runs itself, because its tables are already there."""
SLOTS = 3
"""Number of parts of a table on the device: one is uploaded, one is used, and one is downloaded."""

_STAGING_BYTES = 1 << 30
"""Largest number of bytes on the device for parts in transit, which are also limited to half of its memory."""

_ACCEPTED_SECONDS_FACTOR = 1.2
"""A tile is accepted without further search if it takes at most this many times the least possible time."""

_WHOLE_TABLE_SHARE = 1 / 32
"""Tables that take at most this share of the memory for parts are copied whole: copying them in parts would delay the
copies of larger tables."""

_UNIT = 256
"""Alignment of tables on the device, in bytes."""


class _Tiling(NamedTuple):
    seconds: float
    lengths: tuple[int, ...]
    loops: tuple[int, ...]
    up: int


def plan_stream(
    steps: Sequence[Step],
    outputs: Collection[int],
    itemsize: int,
    cells: int,
    decoded_from: int,
    host_work: int,
) -> Stream | None:
    """Plan a program's tiles and copies on a device with too little memory for the arena; None if a step does not fit.

    A message that a later step on the device reads stays there if there is room; the message that is read last is
    dropped first (Belady 1966). Messages for decoding, for the host or for a later upload are copied to the host.

    Args:
        steps: Steps of the plan.
        outputs: Steps that are part of the answer.
        itemsize: Bytes of an element.
        cells: Number of elements of the device's memory.
        decoded_from: First step whose messages are decoded; the number of steps if no message is decoded.
        host_work: Largest number of combinations of a step that the host runs.
    """
    unit = _UNIT // itemsize
    staging = min(cells // 2, _STAGING_BYTES // itemsize) // unit * unit
    room = _MessageArea(max(0, cells - staging) // unit * unit, unit)
    on_device = {n for n, step in enumerate(steps) if step.work > host_work}
    streamed_steps: list[StreamedStep] = []
    wanted = {
        n
        for n in on_device
        if n in outputs
        or not on_device.issuperset(steps[n].readers)
        or max(steps[n].readers, default=-1) >= decoded_from
    }
    seconds, up = 0.0, 0
    choices: dict[tuple[Any, ...], _Tiling | None] = {}
    for number in sorted(on_device):
        step = steps[number]
        here = {o.source for o in step.operands if o.source in room.starts}
        later = [reader for reader in step.readers if reader in on_device]
        stays = bool(later) and room.admit(number, step.out_span, max(later), here, wanted)
        if not stays:
            wanted.add(number)
        record = StepTables.of(step)
        # Choices are cached, because many steps have the same shape (such as those of all rows of a grid).
        tables = tuple((table.domain_stride, table.strides, table.source in here) for table in record.tables)
        key = record.domain, record.sizes, record.lo, tables, stays
        if key not in choices:
            choices[key] = _choose(record, here, stays, itemsize, staging)
        choice = choices[key]
        if choice is None:
            return None
        seconds, up = seconds + choice.seconds, up + choice.up
        windows = _windows(record, choice.lengths, room, number if stays else -1, itemsize, staging)
        after = room.before(number) if stays else ()
        streamed_steps.append(StreamedStep(number, choice.lengths, choice.loops, windows, True, after))
        room.release(number)
    steps_made = [streamed._replace(download=streamed.step in wanted) for streamed in streamed_steps]
    spans = [_tile_spans(streamed) for streamed in steps_made]
    ends = [w.start + w.slots * w.span for streamed in streamed_steps for w in streamed.windows if w.slots]
    down = sum(steps[streamed.step].out_span for streamed in steps_made if streamed.download)
    return Stream(
        tuple(steps_made),
        max(ends, default=room.height),
        up,
        down,
        seconds,
        max((span for span, _ in spans), default=0),
        max((span for _, span in spans), default=0),
    )


def _tile_spans(streamed: StreamedStep) -> tuple[int, int]:
    """Return the number of elements that a tile fills in its operands' slots, and in a part of the output."""
    *operands, output = streamed.windows
    return sum(window.span for window in operands if window.slots), output.span


class _MessageArea:
    """The device memory for messages that stay.

    Args:
        cells: Size of this memory in elements.
        unit: Alignment in elements.
    """

    def __init__(self, cells: int, unit: int) -> None:
        self.cells, self._unit = cells, unit
        self.height = 0
        self.starts: dict[int, int] = {}
        self._spans: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._released: list[tuple[int, int, int]] = []

    def admit(self, step: int, span: int, last: int, locked: Collection[int], wanted: set[int]) -> bool:
        """Allocate an output, if necessary by dropping outputs that are read later; return whether there is room.

        Args:
            step: The step that writes the output.
            span: Number of elements of the output.
            last: The last step on the device that reads the output.
            locked: Outputs that must not be dropped.
            wanted: Outputs that are copied to the host; dropped outputs are added.
        """
        span = -(-span // self._unit) * self._unit
        if span > self.cells:
            return False
        while (start := self._gap(span)) is None:
            later = [message for message in self.starts if message not in locked and self._last[message] > last]
            if not later:
                return False
            victim = max(later, key=self._last.__getitem__)
            wanted.add(victim)
            self._remove(victim)
        self.starts[step], self._spans[step], self._last[step] = start, span, last
        self.height = max(self.height, start + span)
        return True

    def before(self, step: int) -> tuple[int, ...]:
        """Return the earlier steps whose outputs overlap the memory of a step's output."""
        start, end = self.starts[step], self.starts[step] + self._spans[step]
        return tuple(sorted({message for message, first, last in self._released if first < end and start < last}))

    def release(self, step: int) -> None:
        """Release the outputs that no step after this one reads."""
        for message in [message for message, last in self._last.items() if message in self.starts and last <= step]:
            self._remove(message)

    def _remove(self, step: int) -> None:
        start = self.starts.pop(step)
        end = start + self._spans[step]
        # Later outputs in this memory wait for this output, which has waited for the earlier ones in its range.
        self._released = [released for released in self._released if not (start <= released[1] and released[2] <= end)]
        self._released.append((step, start, end))

    def _gap(self, span: int) -> int | None:
        start = 0
        for step in sorted(self.starts, key=self.starts.__getitem__):
            if self.starts[step] - start >= span:
                return start
            start = self.starts[step] + self._spans[step]
        return start if self.cells - start >= span else None


def _choose(record: StepTables, here: Collection[int], stays: bool, itemsize: int, room: int) -> _Tiling | None:
    """Return the tile with the least estimated time, and the order of the tiles; None if no tile fits."""
    best: _Tiling | None = None
    whole = _whole_shapes(record, itemsize)
    tables_of_lengths: dict[tuple[int, ...], list[_TiledTable]] = {}  # many priorities lead to the same tiles
    for priority in _priorities(record):
        if best is not None and best.seconds <= _ACCEPTED_SECONDS_FACTOR * _least(record, here, itemsize):
            break
        for lengths, cut in _cuts(record.sizes, priority):
            if best is not None and _tiles(record.sizes, lengths) * (QUEUE_SECONDS + TILE_SECONDS) >= best.seconds:
                break  # smaller tiles only add tiles
            if not _in_one_row(record, lengths, stays):
                continue
            if lengths not in tables_of_lengths:
                tables_of_lengths[lengths] = _tiled_tables(record, lengths, here, itemsize, room, whole)
            tables = tables_of_lengths[lengths]
            spans = [table.slots * table.span for table in tables]
            if sum(spans[:-1]) + (0 if stays else spans[-1]) > room:
                continue
            for loops in _orders(cut, priority[0] if priority else -1):
                choice = _estimate(record, lengths, loops, tables, itemsize)
                if best is None or choice.seconds < best.seconds:
                    best = choice
    return best


def _tiles(sizes: Sequence[int], lengths: Sequence[int]) -> int:
    return math.prod([-(-size // length) for size, length in zip(sizes, lengths, strict=True)])


def _least(record: StepTables, here: Collection[int], itemsize: int) -> float:
    """Return a lower bound on the time of a step: that of copying each table once."""
    operands = [table for table in record.tables[:-1] if table.source not in here]
    whole = [shape_of(record, table, record.sizes, itemsize).span for table in (*operands, record.tables[-1])]
    return max(sum(whole[:-1]), whole[-1]) * itemsize / speeds().gpu_link + TILE_SECONDS


def _priorities(record: StepTables) -> Iterator[tuple[int, ...]]:
    """Yield orders in which axes are cut: from the slowest to the fastest, then with one or two other axes first."""
    strides = record.tables[-1].strides
    natural = sorted((a for a, n in enumerate(record.sizes) if n > 1), key=lambda a: -strides[a])
    yield tuple(natural)
    fronts = [(a,) for a in natural[1:]] + [(a, b) for a in natural for b in natural if a != b]
    for front in fronts:
        yield (*front, *(a for a in natural if a not in front))


def _cuts(sizes: Sequence[int], priority: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the lengths of tiles of decreasing size, and the axes that they cut."""
    lengths = list(sizes)
    yield tuple(lengths), ()
    for position, axis in enumerate(priority):
        while lengths[axis] > 1:
            lengths[axis] = -(-lengths[axis] // 2)
            yield tuple(lengths), tuple(priority[: position + 1])


def _in_one_row(record: StepTables, lengths: Sequence[int], stays: bool) -> bool:
    """Return whether each tile writes its fast cells contiguously, as kernels require.

    Consider the fast axes after the first one along which a tile has several cells. If the whole output stays on the
    device (``stays``), no tile may cut these axes. In a slot, tiles may cut them into equal parts.
    """
    axes = [a for a in range(record.lo, len(lengths)) if record.sizes[a] > 1]
    wide = next((i for i, a in enumerate(axes) if lengths[a] > 1), len(axes))
    rest = [(record.sizes[a], lengths[a]) for a in axes[wide + 1 :]]
    return all(size == length or (not stays and size % length == 0) for size, length in rest)


def _orders(cut: tuple[int, ...], front: int) -> Iterator[tuple[int, ...]]:
    """Yield orders of the loops over tiles: that of the cuts; if it starts with ``front``, also with this axis last."""
    yield cut
    if len(cut) > 1 and cut[0] == front:
        yield (*cut[1:], cut[0])


class _TiledTable(NamedTuple):
    """A table of a step in a tile: its layout in a slot, the number of elements of a slot, and the number of slots.

    ``whole`` is True for an input that is cut by tiles, but small enough to be copied as a whole.
    """

    table: StreamedTable
    shape: BoxShape
    span: int
    slots: int
    whole: bool


def _whole_shapes(record: StepTables, itemsize: int) -> list[BoxShape]:
    """Return the layout of each of a step's tables if tiles do not cut it."""
    return [shape_of(record, table, record.sizes, itemsize) for table in record.tables]


def _tiled_tables(
    record: StepTables,
    lengths: tuple[int, ...],
    here: Collection[int],
    itemsize: int,
    room: int,
    shapes: Sequence[BoxShape],
) -> list[_TiledTable]:
    """Return all tables of a step, the output last.

    ``room``: elements for parts; ``shapes``: layouts of tables that tiles do not cut.
    """
    unit = _UNIT // itemsize
    tables = []
    for number, (table, shape) in enumerate(zip(record.tables, shapes, strict=True)):
        is_output = number == len(record.tables) - 1
        cut = any(stride and n < size for stride, n, size in zip(table.strides, lengths, record.sizes, strict=True))
        whole = cut and not is_output and shape.span <= _WHOLE_TABLE_SHARE * room
        if cut and not whole:
            shape = shape_of(record, table, lengths, itemsize)
        slots = 0 if table.source in here else SLOTS if cut and not whole else 1
        tables.append(_TiledTable(table, shape, -(-shape.span // unit) * unit, slots, whole))
    return tables


def _estimate(
    record: StepTables, lengths: tuple[int, ...], loops: tuple[int, ...], tables: Sequence[_TiledTable], itemsize: int
) -> _Tiling:
    counts = [-(-record.sizes[a] // lengths[a]) for a in loops]
    tiles = math.prod(counts)
    moved, charged, first = 0, 0.0, 0
    for table in tables[:-1]:
        if not table.slots:
            continue
        deepest = max((i + 1 for i, a in enumerate(loops) if table.table.strides[a]), default=0)
        loads = 1 if table.whole else math.prod(counts[:deepest])
        moved += loads * table.span
        charged += loads * _charge(table, itemsize)
        first += table.span
    back = tiles * _charge(tables[-1], itemsize)
    copies = max(max(charged, back) / speeds().gpu_link, tiles * QUEUE_SECONDS)
    seconds = copies + (first + tables[-1].span) * itemsize / speeds().gpu_link + tiles * TILE_SECONDS
    return _Tiling(seconds, lengths, loops, moved)


def _charge(table: _TiledTable, itemsize: int) -> int:
    """Return the bytes of a copy, including the cost of its runs in bytes."""
    return table.span * itemsize + RUN_BYTES * math.prod(count for _, count, _ in table.shape.rows)


def _windows(
    record: StepTables, lengths: tuple[int, ...], room: _MessageArea, stays: int, itemsize: int, staging: int
) -> tuple[Window, ...]:
    """Return the windows of a step's tables; their slots follow the message area.

    ``stays``: number of the step if its output is in the message area; otherwise -1.
    """
    windows: list[Window] = []
    at = room.cells
    tables = _tiled_tables(record, lengths, room.starts, itemsize, staging, _whole_shapes(record, itemsize))
    for number, (table, shape, span, slots, whole) in enumerate(tables):
        step = stays if number == len(tables) - 1 else table.source
        if step in room.starts:
            windows.append(Window(room.starts[step], 0, span, table.strides, table.domain_stride))
            continue
        windows.append(Window(at, slots, span, shape.strides, shape.domain_stride, whole))
        at += slots * span
    return tuple(windows)


UPLOAD_STAGES = 4
DOWNLOAD_STAGES = 3
"""Numbers of buffers in pinned memory between a file and a device: for uploads and for downloads."""

RECORDS = 16
"""Number of packed tiles on the device at a time."""
RECORD_BYTES = 1 << 14
"""Bytes of the longest packed tile."""
MARGIN = 256
"""Unused bytes before and after the tables: kernels read whole vectors, which may extend beyond a table."""


def fixed_bytes(steps: int) -> int:
    """Return the bytes of the device for a streamed program, without its tables."""
    return (16 * steps + RECORDS * RECORD_BYTES) // MARGIN * MARGIN + 3 * MARGIN


def stage_bytes(stream: Stream, itemsize: int) -> int:
    """Return the bytes of pinned memory between a file and a device."""
    return itemsize * (UPLOAD_STAGES * stream.upload_span + DOWNLOAD_STAGES * stream.download_span)


def check_scratch(folder: str) -> None:
    """Check a directory for scratch files.

    Raises:
        InputError: The path is not a writable directory.
    """
    if not os.path.isdir(folder):
        raise InputError(f"the scratch directory {folder!r} is not a directory; name an existing one")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"the scratch directory {folder!r} cannot be written to; name another one")


def in_tiers(plan: Plan, host: int, scratch: str | None) -> Plan:
    """If a plan exceeds its memory, move its arena to the first tier that suffices: the host, then a file.

    Args:
        plan: Any plan.
        host: Memory limit on the host, in bytes.
        scratch: Directory for a file; None: no file.

    Returns:
        The plan that fits; if there is none, a plan that shows the shortage.
    """
    if plan.fits:
        return plan
    item = plan.itemsize
    arena, factors = plan.arena_cells * item, plan.factor_cells * item
    outputs = {output.step for output in plan.outputs}
    decoded_from = plan.first_decoded if plan.decode else len(plan.steps)
    if plan.on_host:
        return plan if scratch is None else _from_disk(plan, outputs, decoded_from, scratch)
    limits = (("host", host),)
    if arena + factors > host and scratch is None:
        return plan._replace(
            bytes={"device": plan.bytes["device"], "host": arena + factors}, form=Streamed(limits=limits)
        )
    if arena + factors > host and scratch is not None and arena > _free(scratch):
        return _on_disk(plan, {**plan.bytes, "disk": arena}, scratch, 0.0)
    fixed = fixed_bytes(len(plan.steps))
    stream = plan_stream(plan.steps, outputs, item, (plan.memory_limit - fixed) // item, decoded_from, HOST_WORK)
    if stream is None:
        return plan
    device = stream.cells * item + fixed
    form = Streamed(stream=stream, limits=limits)
    streamed = plan._replace(form=form, bytes={"device": device, "host": arena + factors})
    if streamed.fits or scratch is None:
        return streamed._replace(seconds=plan.seconds + stream.seconds + arena / PINNED)
    tiers = {"device": device, "host": factors + stage_bytes(stream, item), "disk": arena}
    return _on_disk(streamed, tiers, scratch, max(stream.up, stream.down) * item / DISK)


def _from_disk(plan: Plan, outputs: set[int], decoded_from: int, scratch: str) -> Plan:
    """Return a plan for the CPU with its arena in a file; the given plan if one of its steps does not fit."""
    item = plan.itemsize
    arena, fixed = plan.arena_cells * item, plan.factor_cells * item + plan.planning_bytes
    if arena > _free(scratch):
        return _on_disk(plan, {"host": fixed, "disk": arena}, scratch, 0.0)
    room = max(0, plan.memory_limit - fixed) // item
    stream = plan_stream(plan.steps, outputs, item, room, decoded_from, HOST_WORK)
    if stream is None:
        return plan
    moved = max(stream.up, stream.down) * item / DISK
    tiers = {"host": fixed + stream.cells * item, "disk": arena}
    return _on_disk(plan._replace(form=Streamed(stream=stream)), tiers, scratch, moved)


def _on_disk(plan: Plan, tiers: dict[str, int], scratch: str, seconds: float) -> Plan:
    limits = (*plan.form.limits, ("disk", _free(scratch)))
    form = Streamed(stream=plan.form.program_fields().get("stream"), scratch=scratch, limits=limits)
    return plan._replace(bytes=tiers, form=form, seconds=plan.seconds + seconds)


def _free(folder: str) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
