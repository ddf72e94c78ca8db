"""Steps and factors of a compiled plan as packed arrays, which are unpacked on first use."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from elimina._core import PlannedLayout, PlannedTree
from elimina.model.table import Scopes
from elimina.planning.record import (
    AXES,
    AXIS_SIZE,
    AXIS_STRIDE,
    AXIS_VARIABLE,
    AXIS_WORDS,
    HEADER,
    OTHER_WORDS,
    OUT,
    TABLE_SOURCE,
    TABLE_STRIDES,
    TABLES,
    VARIABLE,
    WEIGHT,
    WORDS,
)
from elimina.planning.step import FactorLayout, Output, Step
from elimina.problem.table_groups import TableGroups
from elimina.problem.unpacked import Unpacked, rows_of
from elimina.system import cached_property

Integers = NDArray[np.int64]

_MAX_INTEGER = int(np.iinfo(np.int64).max)

_KEPT_WORDS = 1 << 18
"""Largest number of record words for which unpacked steps are cached: these take about ten times as much memory."""


class Steps(Sequence[Step]):
    """A sequence of steps, stored as packed records.

    Args:
        words: Records (``include/elimina/program.hpp``), one after another.
        starts: Start of each record.
        spans: Number of elements of each step's output, including padding.
        factors: Factor of each table that the steps read; -1 for a message.
    """

    def __init__(self, words: Integers, starts: Integers, spans: Integers, factors: NDArray[np.int32]) -> None:
        self.words, self.starts, self.spans, self.factors = words, starts, spans, factors

    @staticmethod
    def of(placed: PlannedLayout) -> Steps:
        """Return the steps of a layout."""
        if placed.is_deferred:
            return DeferredSteps(placed)
        return Steps(placed.words, placed.starts, placed.out_spans, placed.factors)

    @staticmethod
    def packed(steps: Sequence[Step]) -> Steps:
        """Return steps as packed records: unchanged if they are packed, otherwise packed now.

        Numbers of cells above 64 bits are replaced by the largest integer. Only sparse steps have such numbers,
        which they do not use.
        """
        if isinstance(steps, Steps):
            return steps
        words: list[int] = []
        starts: list[int] = []
        for step in steps:
            starts.append(len(words))
            words += step.record()
        spans = _saturated([step.out_span for step in steps])
        factors = np.array([operand.factor for step in steps for operand in step.operands], dtype=np.int32)
        return Steps(_saturated(words), np.array(starts, dtype=np.int64), spans, factors)

    @property
    def record_words(self) -> int:
        """Number of words of all records."""
        return len(self.words)

    def __len__(self) -> int:
        return len(self.spans)

    @overload
    def __getitem__(self, number: int) -> Step: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Step, ...]: ...

    def __getitem__(self, number: int | slice) -> Step | tuple[Step, ...]:
        if self._is_small:
            return self._unpacked[number]
        if isinstance(number, slice):
            return tuple(map(self._unpack, range(len(self))[number]))
        return self._unpack(range(len(self))[number])

    def __iter__(self) -> Iterator[Step]:
        return iter(self._unpacked) if self._is_small else map(self._unpack, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Steps) and np.array_equal(self.words, other.words)

    @cached_property
    def tables(self) -> Integers:
        """Number of tables that each step reads."""
        return self.words[self.starts + TABLES]

    @cached_property
    def most_tables(self) -> int:
        """Largest number of tables that a step reads."""
        return int(self.words[self.starts + TABLES].max(initial=0))

    @cached_property
    def firsts(self) -> Integers:
        """Index of each step's first table in the list of all steps' tables, followed by the length of this list."""
        return np.concatenate([[0], np.cumsum(self.tables)])

    @cached_property
    def readers(self) -> Integers:
        """Number of the step that reads each table, for the tables of all steps."""
        return np.repeat(np.arange(len(self)), self.tables)

    @cached_property
    def sources(self) -> Integers:
        """Number of the step that wrote each table (-1: a factor), for the tables of all steps."""
        axes = self.words[self.starts + AXES]
        tables = self.starts + HEADER + AXIS_WORDS * axes
        operand = np.arange(self.firsts[-1]) - self.firsts[self.readers]
        at = tables[self.readers] + operand * (TABLE_STRIDES + axes[self.readers]) + TABLE_SOURCE
        return np.asarray(self.words[at])

    def offsets_of(self, steps: Integers | int) -> Integers:
        """Return the start in the arena of the outputs of these steps."""
        return np.asarray(self.words[self.starts[steps] + OUT])

    def first_sizes_of(self, steps: Integers) -> Integers:
        """Return the number of values of the first variable of these steps' outputs, which must have variables."""
        return self.words[self.starts[steps] + HEADER + AXIS_SIZE]

    def variables_of(self, step: int) -> set[int]:
        """Return the variables of a step's output."""
        start = int(self.starts[step])
        axes = self.words[start + HEADER : start + HEADER + AXIS_WORDS * int(self.words[start + AXES])]
        return set(axes[AXIS_VARIABLE::AXIS_WORDS].tolist())

    def scope_of(self, step: int) -> tuple[list[int], list[int]]:
        """Return the variables of a step's output, and their strides."""
        start = int(self.starts[step])
        axes = self.words[start + HEADER : start + HEADER + AXIS_WORDS * int(self.words[start + AXES])].tolist()
        return axes[AXIS_VARIABLE::AXIS_WORDS], axes[AXIS_STRIDE::AXIS_WORDS]

    def reads_of(self, step: int) -> Iterator[tuple[int, int]]:
        """Yield the factor and the source step of each table that a step reads; the one that does not apply is -1."""
        begin, end = self.firsts[step : step + 2].tolist()
        return zip(self.factors[begin:end].tolist(), self.sources[begin:end].tolist(), strict=True)

    @cached_property
    def variables(self) -> Integers:
        """Variable that each step eliminates, or the first one of several; negative values as in ``Step.variable``."""
        return self.words[self.starts + VARIABLE]

    def eliminated_from(self, first: int) -> list[int]:
        """Return the variables that a step and all later steps eliminate."""
        starts = self.starts[first:]
        axes, tables, words = (self.words[starts + field] for field in (AXES, TABLES, WORDS))
        ends = HEADER + AXIS_WORDS * axes + tables * (TABLE_STRIDES + axes)
        variables = self.variables[first:]
        result: list[int] = variables[variables >= 0].tolist()
        for number in np.flatnonzero(words > ends).tolist():
            start = int(starts[number])
            result += self.words[start + int(ends[number]) : start + int(words[number]) : OTHER_WORDS].tolist()
        return result

    @cached_property
    def additions(self) -> int:
        """Largest number of additions on a path from a cell of a factor to the output of a step."""
        depths: list[int] = []
        sources = self.sources.tolist()
        for begin, end in itertools.pairwise(self.firsts.tolist()):
            below = max((depths[source] for source in sources[begin:end] if source >= 0), default=0)
            depths.append(below + end - begin)
        return max(depths, default=0)

    @property
    def is_plain(self) -> bool:
        """True if all steps are without moment matching and without weights."""
        return bool((self.variables >= -1).all() and (self._weights == 1).all())

    @property
    def _is_small(self) -> bool:
        return self.record_words <= _KEPT_WORDS

    @cached_property
    def _unpacked(self) -> tuple[Step, ...]:
        words, factors, (starts, readers) = self.words.tolist(), self.factors.tolist(), self._readers
        ends, firsts, spans = [*self.starts.tolist(), len(words)], self.firsts.tolist(), self.spans.tolist()
        readers_of = (tuple(readers[a:b]) for a, b in itertools.pairwise(starts))
        records = (words[a:b] for a, b in itertools.pairwise(ends))
        factors_of = (factors[a:b] for a, b in itertools.pairwise(firsts))
        return tuple(map(Step.of_record, records, spans, readers_of, factors_of))

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        return self.words[self.starts + WEIGHT].view(np.float64)

    @cached_property
    def _readers(self) -> tuple[list[int], list[int]]:
        """Index at which each step's readers start in a list of the readers of all steps, and this list."""
        at = np.flatnonzero(self.sources >= 0)
        at = at[np.argsort(self.sources[at], kind="stable")]
        sources, readers = self.sources[at], self.readers[at]
        is_new = np.ones(len(at), dtype=bool)
        is_new[1:] = (np.diff(sources) != 0) | (np.diff(readers) != 0)
        starts = np.searchsorted(sources[is_new], np.arange(len(self) + 1))
        return starts.tolist(), readers[is_new].tolist()

    def _unpack(self, number: int) -> Step:
        starts, readers = self._readers
        begin = self.starts[number]
        record = self.words[begin : begin + self.words[begin + WORDS]].tolist()
        factors = self.factors[self.firsts[number] : self.firsts[number + 1]].tolist()
        step_readers = tuple(readers[starts[number] : starts[number + 1]])
        return Step.of_record(record, int(self.spans[number]), step_readers, factors)


class DeferredSteps(Steps):
    """Steps of a layout with deferred records, which are written on first use."""

    def __init__(self, placed: PlannedLayout) -> None:
        self.placed, self.spans, self.most_tables = placed, placed.out_spans, placed.most_tables

    @cached_property
    def words(self) -> Integers:  # type: ignore[override]
        """Records, one after another."""
        return self.placed.words

    @cached_property
    def starts(self) -> Integers:  # type: ignore[override]
        """Start of each record."""
        return self.placed.starts

    @cached_property
    def factors(self) -> NDArray[np.int32]:  # type: ignore[override]
        """Factor of each table that the steps read."""
        return self.placed.factors

    @property
    def record_words(self) -> int:
        """Number of words of all records."""
        return self.placed.record_words

    def offsets_of(self, steps: Integers | int) -> Integers:
        """Return the start in the arena of the outputs of these steps."""
        return np.asarray(self.placed.out_offsets[steps])

    def first_sizes_of(self, steps: Integers) -> Integers:
        """Return the number of values of the first variable of these steps' outputs, which must have variables."""
        return self.placed.first_sizes(steps)

    def __reduce__(self) -> tuple[type[Steps], tuple[NDArray[Any], ...]]:
        return Steps, (self.words, self.starts, self.spans, self.factors)


def _saturated(numbers: Sequence[int]) -> Integers:
    return np.array([min(number, _MAX_INTEGER) for number in numbers], dtype=np.int64)


class Outputs(Unpacked[Output]):
    """Outputs as packed arrays.

    Args:
        steps: Step that writes each output.
        scopes: Scopes of the outputs.
    """

    def __init__(self, steps: Integers, scopes: Scopes) -> None:
        self.steps, self.scopes = steps, scopes
        self._locations: tuple[Steps, Integers] | None = None

    @staticmethod
    def packed(outputs: Sequence[Output]) -> Outputs:
        """Return outputs as packed arrays: unchanged if they are packed, otherwise packed now."""
        if isinstance(outputs, Outputs):
            return outputs
        steps = np.array([output.step for output in outputs], dtype=np.int64)
        return Outputs(steps, Scopes.of([output.scope for output in outputs]))

    def __len__(self) -> int:
        return len(self.steps)

    def locations(self, steps: Steps) -> Integers:
        """Return step, offset and span of each output; the result is cached for further runs of the plan."""
        if self._locations is None or self._locations[0] is not steps:
            numbers = self.steps
            self._locations = steps, np.column_stack((numbers, steps.offsets_of(numbers), steps.spans[numbers]))
        return self._locations[1]

    @cached_property
    def roots(self) -> Integers:
        """Numbers of the outputs without variables; these are factors of the answer."""
        return np.flatnonzero(self.scopes.starts[1:] == self.scopes.starts[:-1])

    @cached_property
    def marginals(self) -> Integers:
        """Numbers of the outputs with variables."""
        return np.flatnonzero(self.scopes.starts[1:] != self.scopes.starts[:-1])

    @cached_property
    def _unpacked(self) -> tuple[Output, ...]:
        return tuple(map(Output, self.steps.tolist(), rows_of(self.scopes)))


class Factors(Unpacked[FactorLayout]):
    """Factors as packed arrays; the data of factor f begin at ``starts[f]`` and end at the next start.

    Attributes:
        member_starts: Start of each factor's members.
        members: Tables that are joined to the factors, int32.
        starts: Start of each factor's scope.
        scopes: Variables of each factor, in elimination order, int32.
        sizes: Number of values of each of these variables.
        strides: Stride of each of these variables, in elements.
        offsets: Start of each factor in the arena, in elements.
        spans: Number of elements of each factor, including padding.
    """

    def __init__(self, *arrays: NDArray[Any]) -> None:
        """Store the arrays, in the sequence of the attributes."""
        self.member_starts, self.members, self.starts, self.scopes = arrays[:4]
        self.sizes, self.strides, self.offsets, self.spans = arrays[4:]

    @staticmethod
    def of(
        starts: Integers, members: NDArray[np.int32], sizes: Sequence[int], tree: PlannedTree, placed: PlannedLayout
    ) -> Factors:
        """Return the factors of a tree.

        Args:
            starts: Start of each factor's members.
            members: Tables that are joined to the factors.
            sizes: Domain size of every variable of the model.
            tree: Tree over the factors' scopes.
            placed: Layout of steps over the tree.
        """
        scope_starts, scopes = tree.scopes
        axis_sizes = np.array(sizes, dtype=np.int64)[scopes]
        memory_layout = placed.strides, placed.offsets, placed.spans
        return Factors(starts, members, scope_starts, scopes, axis_sizes, *memory_layout)

    @staticmethod
    def packed(factors: Sequence[FactorLayout]) -> Factors:
        """Return factors as packed arrays: unchanged if they are packed, otherwise packed now."""
        if isinstance(factors, Factors):
            return factors
        sizes, strides, offsets, spans = (
            np.array(column, dtype=np.int64)
            for column in (
                [size for factor in factors for size in factor.sizes],
                [stride for factor in factors for stride in factor.strides],
                [factor.offset for factor in factors],
                [factor.span for factor in factors],
            )
        )
        members, scopes = _lists([f.members for f in factors]), _lists([f.scope for f in factors])
        return Factors(*members, *scopes, sizes, strides, offsets, spans)

    @staticmethod
    def side_by_side(groups: TableGroups, sizes: Sequence[int]) -> Factors:
        """Return groups of tables as consecutive factors without padding; ``sizes``: domain sizes of all variables."""
        starts, members = groups.scopes
        axis_sizes = np.array(sizes, dtype=np.int64)[members]
        strides, ends, axes = np.ones_like(axis_sizes), starts[1:], np.diff(starts)
        for axis in range(2, int(axes.max(initial=0)) + 1):
            inner = ends[axes >= axis] - axis
            strides[inner] = strides[inner + 1] * axis_sizes[inner + 1]
        spans = strides[starts[:-1]] * axis_sizes[starts[:-1]]
        scopes = members.astype(np.int32, copy=False)
        return Factors(
            groups.starts, groups.members, starts, scopes, axis_sizes, strides, np.cumsum(spans) - spans, spans
        )

    def __len__(self) -> int:
        return len(self.offsets)

    @cached_property
    def joined(self) -> int:
        """Largest number of tables joined to one factor."""
        return int(np.diff(self.member_starts).max(initial=0))

    @cached_property
    def _unpacked(self) -> tuple[FactorLayout, ...]:
        scopes, sizes, strides = (rows_of((self.starts, items)) for items in (self.scopes, self.sizes, self.strides))
        members = rows_of((self.member_starts, self.members))
        locations = self.offsets.tolist(), self.spans.tolist()
        return tuple(itertools.starmap(FactorLayout, zip(members, scopes, sizes, strides, *locations, strict=True)))


def _lists(lists: Sequence[Sequence[int]]) -> tuple[Integers, NDArray[np.int32]]:
    """Return lists as an array of starts and an array of all items."""
    starts = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, lists), np.int64, len(lists)), out=starts[1:])
    return starts, np.fromiter(itertools.chain.from_iterable(lists), np.int32, int(starts[-1]))
