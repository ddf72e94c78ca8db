"""Input of a backend: a plan packed into words (``include/elimina/program.hpp``), and its division among cards."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import CasePlanner, PlannedLayout, PlannedSteps
from elimina.errors import InternalError
from elimina.planning.machine import Machine
from elimina.planning.plan import FactorLayout, Plan, Sparse
from elimina.planning.record import DOMAIN, LO_CELLS, MID_CELLS, OUTER_CELLS
from elimina.planning.steps import DeferredSteps, Outputs, Steps
from elimina.tasks import SEMIRINGS

if TYPE_CHECKING:
    from elimina.planning.stream import Stream


_NO_WORDS = np.zeros(0, dtype=np.int64)


class Range(NamedTuple):
    """A variable whose values are divided: card ``k`` has the range of number ``k // stride % parts``."""

    variable: int
    parts: int
    stride: int

    def length(self, size: int) -> int:
        """Return the number of values of each range; the last ones begin again with the first values."""
        return -(-size // self.parts)


Division = tuple[Range, ...]
"""Variables by whose values a table is divided; none: each card has all of it."""


class CardTable(NamedTuple):
    """A table in the arenas of all cards.

    Attributes:
        axes: Its variables.
        sizes: Their numbers of values.
        division: Division of its cells.
        offset: Start in each card's arena, in elements.
        strides: Elements between two values of each variable.
        span: Elements that it takes there.
    """

    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    division: Division
    offset: int
    strides: tuple[int, ...]
    span: int

    @property
    def lengths(self) -> tuple[int, ...]:
        """Number of values of each variable that a card has."""
        return lengths_of(self.axes, self.sizes, self.division)


class Exchange(NamedTuple):
    """A change of a table's division: each card copies its part from the cards that have it."""

    source: CardTable
    target: CardTable


class Box(NamedTuple):
    """A part of a copy: cells that one card has.

    Attributes:
        card: Number of the card.
        source: The cells in that card's arena.
        target: Their place in the arena of the card that copies.
    """

    card: int
    source: FactorLayout
    target: FactorLayout


class Phase(NamedTuple):
    """Steps that all cards run without waiting for each other.

    Attributes:
        copies: Copies before these steps; they begin when all cards have ended the phase before.
        first: Number of the first step.
        end: Number of the step after the last one.
        joined: True if the last step is divided and scaled by the next ones: its parts' output ranges are joined.
    """

    copies: tuple[Exchange, ...]
    first: int
    end: int
    joined: bool


class Shards(NamedTuple):
    """A plan divided among cards.

    Attributes:
        cards: Number of cards.
        phases: Phases in their order.
        copied: Steps whose outputs are copied.
        divided: Steps that are divided.
        moved: Elements that come from other cards, in all.
    """

    cards: int
    phases: tuple[Phase, ...]
    copied: tuple[int, ...]
    divided: tuple[int, ...]
    moved: int


def boxes(copy: Exchange, card: int, cards: int) -> Iterator[Box]:
    """Yield the boxes that a card copies, of which the cards have as many as given."""
    source, target = copy
    given, wanted = ({part.variable: part for part in table.division} for table in copy)
    pieces = [
        list(_pieces(size, given.get(v), wanted.get(v), card))
        for v, size in zip(source.axes, source.sizes, strict=True)
    ]
    for found in itertools.product(*pieces):
        digits = {v: piece.digit for v, piece in zip(source.axes, found, strict=True)}
        owners = ((card + number) % cards for number in range(cards))
        yield Box(
            next(k for k in owners if all(k // s.stride % s.parts == digits[s.variable] for s in source.division)),
            _cells(source, [piece.source for piece in found], [piece.length for piece in found]),
            _cells(target, [piece.target for piece in found], [piece.length for piece in found]),
        )


def _cells(place: CardTable, first: Sequence[int], lengths: Sequence[int]) -> FactorLayout:
    offset = place.offset + sum(at * stride for at, stride in zip(first, place.strides, strict=True))
    return FactorLayout((), place.axes, tuple(lengths), place.strides, offset, place.span)


class _Piece(NamedTuple):
    """Values of a variable that follow one another on both sides; ``digit``: number of the range that has them."""

    target: int
    length: int
    source: int
    digit: int


def _pieces(size: int, given: Range | None, wanted: Range | None, card: int) -> Iterator[_Piece]:
    first, length = 0, size
    if wanted is not None:
        length = wanted.length(size)
        first = card // wanted.stride % wanted.parts * length
    own = size if given is None else given.length(size)
    at = 0
    while at < length:
        value = (first + at) % size
        run = min(length - at, size - value, own - value % own)
        yield _Piece(at, run, value % own, value // own)
        at += run


def lengths_of(axes: Sequence[int], sizes: Sequence[int], division: Division) -> tuple[int, ...]:
    """Return the number of values of each variable that a card has of a divided table."""
    parts = {part.variable: part for part in division}
    return tuple(parts[v].length(size) if v in parts else size for v, size in zip(axes, sizes, strict=True))


class Program(NamedTuple):
    """Input of a backend.

    Attributes:
        semiring: ``min-sum``, ``sum-product``, ``log-sum-exp`` or ``count``.
        dtype: Number type of every table in the arena.
        parameter: ``min-sum``: the forbidden value; ``count``: the modulus, 0 for 2^64; else unused.
        words: int64, the packed steps one after another, in an order in which every message is written before it is
            read; none if they are deferred.
        starts: int64, where each step's record starts in ``words``.
        variables: Number of variables of the model (length of an assignment).
        factor_cells: Elements at the arena's start that hold the factors.
        arena_cells: Elements of the whole arena.
        keep: True if every output has a place of its own, so that steps may run in any order that their reads allow.
        decode: True if the best assignment is wanted besides the value.
        outputs: int64 of shape (outputs, 3): step, arena offset and span in elements of each part of the answer.
        work: Combinations of output cells and eliminated values, over all steps, each run once.
        stream: Passage of the arena through a device that is smaller; None: the arena lies on the device.
        scratch: The directory of the file that the arena lies in; None: it lies in memory.
        sparse: The steps, where some of them work on rows; they are not packed then.
        shards: Division among cards, each of which runs all steps; None: one device runs them.
        deferred: The steps if they are many and the host runs them from its memory: it packs each where it runs it.
    """

    semiring: str
    dtype: np.dtype[np.generic]
    parameter: float
    words: NDArray[np.int64]
    starts: NDArray[np.int64]
    variables: int
    factor_cells: int
    arena_cells: int
    keep: bool
    decode: bool
    outputs: NDArray[np.int64]
    work: int
    stream: Stream | None = None
    scratch: str | None = None
    sparse: Sparse | None = None
    shards: Shards | None = None
    deferred: DeferredSteps | None = None

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.starts) if self.deferred is None else len(self.deferred)

    @property
    def zone(self) -> tuple[int, int]:
        """Arena offsets of the first element of all outputs and of the one after the last."""
        if not len(self.outputs):
            return 0, 0
        return int(self.outputs[:, 1].min()), int((self.outputs[:, 1] + self.outputs[:, 2]).max())


def work_of(program: Program, steps: NDArray[np.int64]) -> int:
    """Return the combinations of output cells and eliminated values of some steps."""
    records = program if program.deferred is None else program.deferred
    headers = records.words[records.starts[steps][:, None] + np.array([DOMAIN, OUTER_CELLS, MID_CELLS, LO_CELLS])]
    return int(headers.prod(axis=1).sum())


def pack(plan: Plan, variables: int, semiring: str | None = None, parameter: float | None = None) -> Program:
    """Pack a plan.

    Args:
        plan: Any plan that fits.
        variables: Number of variables of the model.
        semiring: Another semiring over the same dtype.
        parameter: Another parameter than the plan's forbidden value.

    Raises:
        InternalError: It has moment matching or weights, which sparse steps, slices, tiles and decoding do not support.
    """
    _check_minibuckets(plan, semiring or plan.semiring)
    steps = Steps.packed(plan.steps if plan.sparse is None else ())
    deferred = steps if isinstance(steps, DeferredSteps) and plan.stream is None and plan.scratch is None else None
    return Program(
        semiring=semiring or plan.semiring,
        dtype=np.dtype(plan.dtype),
        parameter=plan.forbidden if parameter is None else parameter,
        words=steps.words if deferred is None else _NO_WORDS,
        starts=steps.starts if deferred is None else _NO_WORDS,
        deferred=deferred,
        variables=variables,
        factor_cells=plan.factor_cells,
        arena_cells=plan.arena_cells,
        keep=plan.keep,
        decode=plan.decode,
        outputs=_outputs(plan),
        work=max(_work_once(plan), 1),
        stream=plan.stream,
        scratch=plan.scratch,
        sparse=plan.sparse,
        shards=plan.shards,
    )


def _outputs(plan: Plan) -> NDArray[np.int64]:
    steps = plan.steps
    if not isinstance(steps, Steps):
        rows = [(n, steps[n].out_offset, steps[n].out_span) for n, _ in plan.outputs]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Outputs.packed(plan.outputs).places(steps)


def _work_once(plan: Plan) -> int:
    """Return the combinations of all steps, each run once."""
    if plan.slicing is None:
        return plan.work
    return sum(step.work for step in plan.steps)


def _check_minibuckets(plan: Plan, semiring: str) -> None:
    # To look through millions of steps takes as long as to run some.
    is_plain = plan.minibuckets is None and plan.semiring != "log-sum-exp"
    if is_plain or Steps.packed(plan.steps).is_plain:
        return
    others = {
        f"the semiring {semiring}": not SEMIRINGS[semiring].levels,
        "decoding": plan.decode,
        "slices": plan.slicing is not None,
        "tiles": plan.stream is not None or plan.scratch is not None,
        "rows": plan.sparse is not None,
    }
    for what, present in others.items():
        if present:
            raise InternalError(f"moment matching cannot run on {what}; please report this")


def case_planner(plan: Plan, program: Program, sizes: Sequence[int], least: NDArray[np.float64]) -> CasePlanner:
    """Return a planner of cases that run on a plan's factors, in the part of its arena where its own messages would be.

    Args:
        plan: Plan of the task ``mar`` without kept variables.
        program: Packed program of the plan.
        sizes: Domain size of every variable of the model.
        least: Base-2 logarithm of the smallest positive value of each factor, rounded down; infinity if there is none.
    """
    factors = plan.factors
    asked = [(output.scope[0], plan.steps[output.step].out_offset) for output in plan.outputs if output.scope]
    first, last = program.zone
    return CasePlanner(
        _words(sizes),
        _words([0, *itertools.accumulate(len(factor.scope) for factor in factors)]),
        np.array([v for factor in factors for v in factor.scope], dtype=np.int32),
        _words([stride for factor in factors for stride in factor.strides]),
        _words([factor.offset for factor in factors]),
        least,
        _words([v for v, _ in asked]),
        _words([offset - first for _, offset in asked]),
        max(last, plan.factor_cells),
        plan.arena_cells,
    )


def _words(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def place_steps(
    steps: PlannedSteps,
    itemsize: int,
    keep: bool,
    machine: Machine,
    levels: Sequence[int] = (),
    runs: Sequence[int] = (1,),
    most_words: int = 1 << 62,
    deferred_words: int = 1 << 62,
) -> PlannedLayout:
    """Lay the steps' tables out in memory.

    Args:
        steps: Steps of a plan.
        itemsize: Bytes of a cell.
        keep: True if outputs stay after they have been read.
        machine: Device whose cost model estimates the time.
        levels: Level of each step, ascending (``Slicing.levels``); empty: all are 0.
        runs: Number of runs of the steps of each level.
        most_words: Words of records; a layout that needs more has figures alone.
        deferred_words: Words of records from which they are written where they are read.
    """
    own, times = np.array(levels, dtype=np.int32), np.array(runs, dtype=np.float64)
    return steps.place(itemsize, keep, own, times, machine.speed, most_words, deferred_words)
