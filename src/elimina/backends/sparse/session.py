"""A program whose large tables are sparse: each step joins tuples, or runs as a dense step if its output is dense."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import Arena, count_path, rows_decode
from elimina.backends.protocols import Backend, Progress, RunOutput, run_once
from elimina.backends.sparse.bounds import TupleBounds
from elimina.backends.sparse.device import SparseDevice, SparseTable
from elimina.backends.sparse.operations import DenseLookup, SparseTables
from elimina.errors import MemoryLimitError
from elimina.number_texts import bytes_text, counted
from elimina.option_names import option
from elimina.planning.arrays import view_of
from elimina.planning.key_layout import KeyLayout, signed
from elimina.planning.listed_tables import cells_span, section
from elimina.planning.packed_steps import Steps
from elimina.planning.plan import Sparse
from elimina.planning.program import Program
from elimina.planning.sparse import Density, exp, groups, joined_sizes, log_cells, predicted_shares, tuple_bytes
from elimina.planning.step import FactorLayout, Operand, Step
from elimina.problem.semirings import SEMIRINGS, scale_exponents

Array = NDArray[np.generic]

_WORKING_COPIES = 3
"""Copies of a table while it is made: inputs are sorted, and the output grows."""

_MAX_LOOKUP_CELLS = 1 << 22
"""Cells of the largest dense table in which tuples are looked up; larger ones become tuples and are joined."""


class DenseTable(NamedTuple):
    """A dense table on the host: elements of an arena, and the scope, sizes and strides of the table in them."""

    cells: Array
    scope: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def view(self) -> Array:
        """An array with an axis for each variable."""
        return view_of(self.cells, 0, self.sizes, self.strides)


class SparseSession:
    """A program with ``sparse``: see ``Session``. Dense steps run on the backend itself, as separate programs.

    The plan chooses the steps that work on tuples, by its predictions of the messages. A step becomes a dense one if
    its input tables turn out to be so full that dense cells take less memory.

    Args:
        backend: Backend that runs the dense steps.
        host: CPU backend, which makes the bounds of tuples; ``backend`` itself if it is a CPU's.
        device: Device that runs the steps on tuples.
        program: Packed program of a plan with ``sparse``.
        factors: The arena's first elements.
    """

    def __init__(self, backend: Backend, host: Backend, device: SparseDevice, program: Program, factors: Array) -> None:
        assert program.sparse is not None
        self._backend, self._host, self._program = backend, host, program
        self._sparse: Sparse = program.sparse
        self._tables = SparseTables(device)
        self._device = device
        self._factors = np.array(factors, dtype=program.dtype)
        self._messages: dict[int, SparseTable | DenseTable] = {}
        self._taken = 0
        self._counts = [0, 0]
        self._bounds: TupleBounds | None = None
        self._peaks = np.zeros((len(self._sparse.steps), 2))
        self._scaled = SEMIRINGS[program.semiring].is_scaled
        self._item = program.dtype.itemsize
        outputs = set(program.outputs[:, 0].tolist())
        steps = enumerate(self._sparse.steps)
        lasting = outputs.union(self._sparse.lasting)
        self._last = [len(self._peaks) if n in lasting or not s.readers else max(s.readers) for n, s in steps]
        # Step -> the messages that no later step reads.
        self._read_last: list[list[int]] = [[] for _ in range(len(self._peaks) + 1)]
        for number, last in enumerate(self._last):
            self._read_last[last].append(number)

    def load(self, offset: int, values: Array) -> None:
        """Write elements of the factors: see ``Session.load``."""
        self._factors[offset : offset + len(values)] = values

    def load_peaks(self, peaks: NDArray[np.float64], first: int = 0) -> None:
        """Write the output ranges of an earlier session: see ``Session.load_peaks``."""
        self._peaks[first : first + len(peaks)] = peaks

    def fetch(self, offset: int, span: int) -> Array:
        """Return a copy of elements of the factors; messages have no place in an arena."""
        return self._factors[offset : offset + span].copy()

    def fetch_message(self, number: int) -> NDArray[np.uint8]:
        """Return a message as bytes: see ``KeepingSession.fetch_message``."""
        table = self._messages[number]
        if isinstance(table, DenseTable):
            head, arrays = np.array([1, 0], dtype=np.int64), [np.ascontiguousarray(table.cells)]
        else:
            layout = table.layout
            fields = zip(layout.scope, layout.sizes, layout.fields, strict=True)
            words = [word for v, size, field in fields for word in (v, size, *field)]
            head = np.array([1 + 1 + 1 + len(words), len(table.values), layout.words, *words], dtype=np.int64)
            arrays = [self._device.download(table.keys), self._device.download(table.values)]
        return np.concatenate([array.reshape(-1).view(np.uint8) for array in (head, *arrays)])

    def load_message(self, number: int, data: NDArray[np.uint8]) -> None:
        """Read a message from bytes: see ``KeepingSession.load_message``."""
        words = int(data[:8].view(np.int64)[0])
        step = self._sparse.steps[number]
        if words == 1:
            cells = data[16:].view(self._program.dtype).copy()
            self._put(number, DenseTable(cells, step.axes, step.sizes, step.out_strides))
            return
        head = data[: 8 * words].view(np.int64)
        rows, key_words = head[1:3].tolist()
        scope, sizes, word, shift = (tuple(column) for column in head[3:].reshape(-1, 4).T.tolist())
        layout = KeyLayout(scope, sizes, tuple(zip(word, shift, strict=True)), key_words)
        end = 8 * words + 8 * rows * key_words
        keys = data[8 * words : end].view(np.uint64).reshape(rows, key_words).copy()
        values = data[end:].view(self._program.dtype).copy()
        self._put(number, SparseTable(layout, self._device.upload(keys), self._device.upload(values)))

    def message_table(self, number: int) -> Array:
        """Return a message as a dense table: see ``KeepingSession.message_table``."""
        step = self._sparse.steps[number]
        return DenseTable(self._cells(number), step.axes, step.sizes, step.out_strides).view

    def factor_table(self, number: int) -> Array:
        """Return a factor as a dense table: see ``KeepingSession.factor_table``."""
        return self._dense_factor(self._sparse.factors[number]).view

    def close(self) -> None:
        """Drop all tables."""
        self._messages.clear()
        self._taken = 0

    def run(self, steps: NDArray[np.int64] | None = None, progress: Progress | None = None) -> RunOutput:
        """Run all or some of the steps: see ``Session.run``.

        Raises:
            MemoryLimitError: A table turned out to be larger than expected, and neither its tuples nor its cells fit.
        """
        started = time.perf_counter()
        chosen = None if steps is None else set(steps.tolist())
        done = 0
        self._counts = [0, 0]
        outside = self._sparse.outside
        if outside is not None:
            count_path("rows-bounds")
            self._bounds = TupleBounds(self._host, self._device, self._program, outside, self._factors)
        for on_rows, group in groups(self._sparse):
            numbers = [number for number in group if chosen is None or number in chosen]
            # Consecutive dense steps run together.
            for numbers_together in [[number] for number in numbers] if on_rows else filter(None, [numbers]):
                if on_rows:
                    self._run_rows(numbers_together[0])
                else:
                    self._run_dense(numbers_together)
                self._forget(numbers_together)
                done += len(numbers_together)
                if progress is not None:
                    progress(done / len(self._sparse.steps))
        ran = time.perf_counter()
        is_whole = all(number in self._messages for number in self._program.outputs[:, 0].tolist())
        assignment = None
        if self._program.decode and is_whole:
            # `read` is a generator: each of the device's tables is on the host only while it is read.
            eliminating = (step for step in reversed(self._sparse.steps) if step.variable >= 0)
            read = ((step.variable, step.domain, [*map(self._readable, step.operands)]) for step in eliminating)
            assignment = rows_decode(self._program.semiring, self._program.variables, read)
        seconds = {"upload": 0.0, "run": ran - started, "decode": time.perf_counter() - ran, "download": 0.0}
        return RunOutput(self._zone(), self._peaks.copy(), assignment, seconds, (self._counts[0], self._counts[1]))

    def _run_rows(self, number: int) -> None:
        """Join the inputs of the step, and eliminate its variable."""
        step = self._sparse.steps[number]
        read = [self._read(operand) for operand in step.operands]
        # The number of tuples that pass bounds cannot be predicted, so a step with bounds stays sparse.
        may_be_dense = self._bounds is None and not self._listed_cells(step)
        if may_be_dense and self._is_smaller_dense(step, self._expected(step, read)):
            count_path("rows-turned-dense")
            self._run_dense([number])
            return
        joined, lookups = self._split(step.operands, read)
        options: dict[str, Any] = {"tables": [table for _, table in lookups]}
        if self._bounds is not None:
            options["guard"] = self._bounds.guard(number, joined, [operand for operand, _ in lookups])
        max_tuples = self._free() // (_WORKING_COPIES * tuple_bytes(joined_sizes(step), self._item))
        variable = step.variable if step.variable >= 0 else None
        try:
            tables = [table for _, table in joined]
            result = self._tables.join_all(tables, eliminate=variable, max_tuples=max(max_tuples, 1), **options)
        except MemoryLimitError as error:
            if (step.out_cells + self._listed_cells(step)) * self._item > self._free():
                expected = self._sparse.forms[number].rows
                raise MemoryLimitError(
                    f"a table over {counted(len(step.axes), 'variable')} has more tuples than the {max_tuples} "
                    f"that the memory "
                    f"limit leaves room for ({expected:.3g} were predicted); give more memory "
                    f"({option('memory')}) or use dense tables ({option('tables', 'dense')})"
                ) from error
            self._run_dense([number])
            return
        self._counts[0] += result.candidates
        self._counts[1] += len(result.rows.values)
        self._keep(number, result.rows)

    def _expected(self, step: Step, tables: Sequence[SparseTable | DenseTable]) -> float:
        """Return the number of tuples that a step is expected to make of these tables."""
        fills = [Density.independent(self._share(table), step.domain) for table in tables]
        return exp(predicted_shares(step.domain, fills)[1] + log_cells(step)) / step.domain

    def _split(
        self, operands: Sequence[Operand], tables: Sequence[SparseTable | DenseTable]
    ) -> tuple[list[tuple[Operand, SparseTable]], list[tuple[Operand, DenseLookup]]]:
        """Return the tables to join, which together have all variables, and those in which tuples are looked up."""
        pairs = list(zip(operands, tables, strict=True))
        joined = [(operand, table) for operand, table in pairs if isinstance(table, SparseTable)]
        joined_variables = {v for _, joined_table in joined for v in joined_table.layout.scope}
        lookups = []
        dense = [(operand, table) for operand, table in pairs if isinstance(table, DenseTable)]
        for operand, table in sorted(dense, key=lambda pair: self._share(pair[1])):
            cells = self._device.upload(np.ascontiguousarray(table.view))
            if joined_variables.issuperset(table.scope) and table.cells.size <= _MAX_LOOKUP_CELLS:
                lookups.append((operand, DenseLookup(table.scope, cells)))
            else:
                joined.append((operand, self._tables.from_dense(table.scope, cells)))
                joined_variables.update(table.scope)
        return joined, lookups

    def _run_dense(self, numbers: Sequence[int]) -> None:
        """Run steps as a separate program: its arena holds its inputs first, then its outputs."""
        count_path("rows-dense-steps")
        inside = {number: position for position, number in enumerate(numbers)}
        arena = Arena(self._item)
        pieces: list[tuple[int, Array]] = []
        place_of: dict[tuple[int, int], int] = {}
        for operand in (o for number in numbers for o in self._sparse.steps[number].operands):
            key = operand.factor, operand.source
            if operand.source not in inside and key not in place_of:
                cells = self._flat(operand).cells
                place_of[key] = arena.allocate(len(cells))
                pieces.append((place_of[key], cells))
        arena.seal()
        factor_cells = arena.height
        leaving = [number for number in numbers if self._program.keep or self._last[number] not in inside]
        sequence = [*leaving, *(number for number in numbers if number not in leaving)]
        if (arena.height + sum(self._sparse.steps[n].out_span for n in sequence)) * self._item > self._free():
            raise MemoryLimitError(
                f"dense tables of {counted(len(numbers), 'step')} do not fit the "
                f"{bytes_text(max(self._free(), 0))} that the "
                f"memory limit leaves; give more memory ({option('memory')})"
            )
        offsets = {number: arena.allocate(self._sparse.steps[number].out_span) for number in sequence}
        steps = [self._moved(number, place_of, inside, offsets) for number in numbers]
        packed = Steps.packed(steps)
        outputs = [(inside[number], offsets[number], self._sparse.steps[number].out_span) for number in leaving]
        program = self._program._replace(
            words=packed.words, starts=packed.starts, factor_cells=factor_cells, arena_cells=arena.height,
            keep=True, decode=False, outputs=np.array(outputs, dtype=np.int64).reshape(-1, 3),
            work=max(1, sum(step.work for step in steps)),
            sparse=None,
        )  # fmt: skip
        factors = np.zeros(factor_cells, dtype=program.dtype)
        for at, cells in pieces:
            factors[at : at + len(cells)] = cells
        run = run_once(self._backend, program, factors)
        first = program.zone[0]
        for number in numbers:
            self._peaks[number] = run.peaks[inside[number]]
        for number in leaving:
            step = self._sparse.steps[number]
            at = offsets[number] - first
            cells = run.zone[at : at + step.out_span].copy()
            if self._scaled and step.readers:
                # Cells between the rows of a padded table are undefined and may be NaN.
                with np.errstate(invalid="ignore"):
                    cells = np.multiply(cells, program.dtype.type(self._scale(number)))
            self._put(number, DenseTable(cells, step.axes, step.sizes, step.out_strides))

    def _moved(
        self,
        number: int,
        place_of: dict[tuple[int, int], int],
        inside: dict[int, int],
        offsets: dict[int, int],
    ) -> Step:
        """Return a step with its tables at other places; outputs of steps outside the program become factors."""
        step = self._sparse.steps[number]
        operands = [
            o._replace(source=inside[o.source], offset=offsets[o.source])
            if o.source in inside
            else o._replace(source=-1, offset=place_of[o.factor, o.source])
            for o in step.operands
        ]
        return step._replace(operands=tuple(operands), out_offset=offsets[number])

    def _read(self, operand: Operand) -> SparseTable | DenseTable:
        if operand.source >= 0:
            return self._messages[operand.source]
        factor = self._sparse.factors[operand.factor]
        return self._dense_factor(factor) if factor.tuples is None else self._listed_factor(factor)

    def _flat(self, operand: Operand) -> DenseTable:
        """Return a table as elements of an arena, in the dense layout of the plan."""
        if operand.source < 0:
            return self._dense_factor(self._sparse.factors[operand.factor])
        step = self._sparse.steps[operand.source]
        return DenseTable(self._cells(operand.source), step.axes, step.sizes, step.out_strides)

    def _listed_factor(self, factor: FactorLayout) -> SparseTable:
        listed_section = section(self._factors, factor)
        keys, values = listed_section.read()
        return SparseTable(listed_section.layout, self._device.upload(keys), self._device.upload(values))

    def _dense_factor(self, factor: FactorLayout) -> DenseTable:
        if factor.tuples is None:
            cells = self._factors[factor.offset : factor.offset + factor.span]
        else:
            rows = self._listed_factor(factor)
            terms = rows.layout.terms(factor.scope, factor.strides)
            cells = self._device.download(self._device.to_dense(rows, terms, cells_span(factor)))
        return DenseTable(cells, factor.scope, factor.sizes, factor.strides)

    def _listed_cells(self, step: Step) -> int:
        """Return the number of cells of a step's listed factors, written out as dense tables."""
        factors = (self._sparse.factors[operand.factor] for operand in step.operands if operand.source < 0)
        return sum(cells_span(factor) for factor in factors if factor.tuples is not None)

    def _cells(self, number: int) -> Array:
        """Return a message as the elements of an arena."""
        table, step = self._messages[number], self._sparse.steps[number]
        if isinstance(table, DenseTable):
            return table.cells
        # If none of the step's tables has a variable, neither have the tuples. All cells along its axis are equal.
        has = [v in table.layout.scope for v in step.axes]
        axes = [(v, stride) for v, stride, is_there in zip(step.axes, step.out_strides, has, strict=True) if is_there]
        terms = table.layout.terms([v for v, _ in axes], [stride for _, stride in axes])
        cells: Array = self._device.download(self._device.to_dense(table, terms, step.out_span))
        if not all(has):
            view = view_of(cells, 0, step.sizes, step.out_strides)
            view[...] = view[tuple(slice(None) if is_there else slice(0, 1) for is_there in has)].copy()
        return cells

    def _keep(self, number: int, rows: SparseTable) -> None:
        if self._scaled:
            self._peaks[number] = self._device.peaks(rows.values)
            if self._sparse.steps[number].readers:
                rows = rows._replace(values=self._device.scale(rows.values, self._scale(number)))
        self._put(number, rows)

    def _scale(self, number: int) -> float:
        """Return the factor by which readers multiply a message."""
        high, dtype = self._peaks[number : number + 1, 0], self._program.dtype.name
        return float(2.0 ** -scale_exponents(high, dtype)[0])

    def _put(self, number: int, table: SparseTable | DenseTable) -> None:
        self._drop(number)
        self._messages[number] = table
        self._taken += _size(table)

    def _drop(self, number: int) -> None:
        table = self._messages.pop(number, None)
        self._taken -= 0 if table is None else _size(table)

    def _forget(self, numbers: Sequence[int]) -> None:
        """Drop the messages whose last readers are these steps."""
        if not self._program.keep:
            for source in (source for number in numbers for source in self._read_last[number]):
                self._drop(source)

    def _is_smaller_dense(self, step: Step, rows: float) -> bool:
        return step.out_cells * self._item <= min(rows * tuple_bytes(joined_sizes(step), self._item) / 2, self._free())

    def _free(self) -> int:
        """Return the bytes that the memory limit still allows."""
        return self._sparse.memory - self._factors.nbytes - self._taken

    def _share(self, table: SparseTable | DenseTable) -> float:
        """Return the share of a table's cells that is feasible."""
        if isinstance(table, SparseTable):
            return len(table.values) * math.exp(-sum(map(math.log, table.layout.sizes)))
        zero = SEMIRINGS[self._program.semiring].zero_of(self._program.dtype, self._program.parameter)
        return int(np.count_nonzero(table.view != zero)) / table.view.size

    def _zone(self) -> Array:
        first, last = self._program.zone
        zone = np.zeros(last - first, dtype=self._program.dtype)
        for number, offset, span in self._program.outputs.tolist():
            # If only some steps run, some outputs may be missing.
            if number not in self._messages:
                continue
            cells = self._cells(number)
            if self._scaled and self._sparse.steps[number].readers:
                cells = np.multiply(cells, self._program.dtype.type(1 / self._scale(number)))
            zone[offset - first : offset - first + span] = cells
        return zone

    def _readable(self, operand: Operand) -> tuple[NDArray[np.int64], NDArray[np.uint64] | None, Array]:
        """Return a table as ``rows_decode`` reads it, on the host."""
        table = self._read(operand)
        if isinstance(table, DenseTable):
            fields = [(v, 0, stride) for v, stride in zip(table.scope, table.strides, strict=True)]
            return np.array(fields, dtype=np.int64).reshape(-1, 3), None, table.cells
        fields = [
            (v, word, signed(1 << shift))
            for v, (word, shift) in zip(table.layout.scope, table.layout.fields, strict=True)
        ]
        download = self._device.download
        return np.array(fields, dtype=np.int64).reshape(-1, 3), download(table.keys), download(table.values)


def _size(table: SparseTable | DenseTable) -> int:
    """Return the size in bytes."""
    return int(table.cells.nbytes if isinstance(table, DenseTable) else table.keys.nbytes + table.values.nbytes)
