"""Input of a backend: a plan packed into words (``include/elimina/program.hpp``)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import CasePlanner, PlannedLayout, PlannedSteps
from elimina.errors import InternalError
from elimina.planning.machine import Machine
from elimina.planning.matrix_products import LIBRARY_DEPTH, LIBRARY_WORK
from elimina.planning.packed_steps import DeferredSteps, Outputs, Steps
from elimina.planning.plan import Plan, Sparse
from elimina.planning.record import DOMAIN, LO_CELLS, MID_CELLS, OUTER_CELLS, TABLES, TABLES_A, TABLES_B
from elimina.problem.semirings import SEMIRINGS

if TYPE_CHECKING:
    from elimina.planning.shard_program import Shards
    from elimina.planning.stream import Stream

_NO_WORDS = np.zeros(0, dtype=np.int64)


class Program(NamedTuple):
    """A program that a backend runs: the packed steps of a plan, and the layout of its arena.

    Attributes:
        semiring: Name of one of ``SEMIRINGS``.
        dtype: Number type of every table in the arena.
        parameter: ``min-sum``: the forbidden value; ``count``: the modulus, 0 for 2^64; otherwise unused.
        words: int64, the packed steps one after another, in an order in which every message is written before it is
            read; empty if they are deferred.
        starts: int64, start of each step's record in ``words``.
        variables: Number of variables of the model (length of an assignment).
        factor_cells: Number of elements at the arena's start that contain the factors.
        arena_cells: Number of elements of the whole arena.
        keep: True if every output has its own memory, so that steps may run in any order that respects their reads.
        decode: True to return the best assignment in addition to the value.
        outputs: int64 of shape (outputs, 3): step, arena offset and span in elements of each part of the answer.
        work: Number of combinations of output cells and eliminated values, over all steps, each counted once.
        stream: Tiles in which the arena passes through a smaller device; None: the arena lies on the device.
        scratch: Directory for the arena's file; None: the arena lies in memory.
        sparse: Unpacked steps, if some of them are sparse; None: all are dense.
        shards: Division among GPUs, each of which runs all steps; None: a single device runs them.
        deferred: The steps, if they are so many that the host packs each one only to run it; otherwise None.
        first_decoded: The first step whose variables are decoded; messages for it and for later steps stay.
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
    first_decoded: int = 0

    @property
    def steps(self) -> int:
        """Number of steps."""
        return len(self.starts) if self.deferred is None else len(self.deferred)

    @property
    def zone(self) -> tuple[int, int]:
        """Start and end of all outputs in the arena, in elements."""
        if not len(self.outputs):
            return 0, 0
        return int(self.outputs[:, 1].min()), int((self.outputs[:, 1] + self.outputs[:, 2]).max())


def work_of(program: Program, steps: NDArray[np.int64]) -> int:
    """Return the number of combinations of output cells and eliminated values in some steps."""
    records = program if program.deferred is None else program.deferred
    headers = records.words[records.starts[steps][:, None] + np.array([DOMAIN, OUTER_CELLS, MID_CELLS, LO_CELLS])]
    return int(headers.prod(axis=1).sum())


def pack(plan: Plan, variables: int, semiring: str | None = None, parameter: float | None = None) -> Program:
    """Pack a plan.

    Args:
        plan: Any plan within its memory limits.
        variables: Number of variables of the model.
        semiring: Semiring to use instead of the plan's, over the same dtype.
        parameter: Parameter to use instead of the plan's forbidden value.

    Raises:
        InternalError: The plan combines moment matching or weights with sparse steps, slices, tiles or decoding, or
            with a semiring that does not support moment matching.
    """
    _check_minibuckets(plan, semiring or plan.semiring)
    steps = Steps.packed(plan.steps if plan.sparse is None else ())
    deferred = steps if isinstance(steps, DeferredSteps) and plan.form.is_resident else None
    return Program(
        semiring=semiring or plan.semiring,
        dtype=np.dtype(plan.dtype),
        parameter=plan.forbidden if parameter is None else parameter,
        words=steps.words if deferred is None else _NO_WORDS,
        starts=steps.starts if deferred is None else _NO_WORDS,
        deferred=deferred,
        first_decoded=plan.first_decoded,
        variables=variables,
        factor_cells=plan.factor_cells,
        arena_cells=plan.arena_cells,
        keep=plan.keep,
        decode=plan.decode,
        outputs=_outputs(plan),
        work=max(_work_once(plan), 1),
        sparse=plan.sparse,
        **plan.form.program_fields(),
    )


def _outputs(plan: Plan) -> NDArray[np.int64]:
    steps = plan.steps
    if not isinstance(steps, Steps):
        rows = [(n, steps[n].out_offset, steps[n].out_span) for n, _ in plan.outputs]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Outputs.packed(plan.outputs).locations(steps)


def _work_once(plan: Plan) -> int:
    """Return the number of combinations in all steps, each counted once."""
    return sum(step.work for step in plan.steps) if plan.form.variables else plan.work


def _check_minibuckets(plan: Plan, semiring: str) -> None:
    # The plan's own properties are checked first, because reading millions of steps takes time.
    is_plain = plan.minibuckets is None and not SEMIRINGS[plan.semiring].is_weighted
    if is_plain or Steps.packed(plan.steps).is_plain:
        return
    others = {
        f"the semiring {semiring}": not SEMIRINGS[semiring].is_matched,
        "decoding": plan.decode,
        "slices": bool(plan.form.variables),
        "tiles": not plan.form.is_resident,
        "rows": plan.sparse is not None,
    }
    for what, present in others.items():
        if present:
            raise InternalError(f"moment matching cannot run on {what}; please report this")


def case_planner(plan: Plan, program: Program, sizes: Sequence[int], least: NDArray[np.float64]) -> CasePlanner:
    """Return a planner of cases on a plan's factors; messages of a case overwrite the plan's messages in the arena.

    Args:
        plan: Plan of the task ``mar`` without kept variables.
        program: Packed program of the plan.
        sizes: Domain size of every variable of the model.
        least: Base-2 logarithm of each factor's smallest positive value, rounded down; infinity if no value is
            positive.
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
    kept_from: int,
    machine: Machine,
    levels: Sequence[int] = (),
    runs: Sequence[int] = (1,),
    most_words: int = 1 << 62,
    deferred_words: int = 1 << 62,
) -> PlannedLayout:
    """Compute the positions of the steps' tables in memory.

    Args:
        steps: Steps of a plan.
        itemsize: Bytes of a cell.
        kept_from: The first step whose tables stay after it has read them; 0: all outputs stay.
        machine: Device whose cost model estimates the time.
        levels: Level of each step, in ascending order (``Form.levels``); empty: all are 0.
        runs: Number of runs of the steps at each level.
        most_words: Largest number of words of records; larger layouts have figures only.
        deferred_words: Number of words of records above which records are written on first use.
    """
    level_array, run_array = np.array(levels, dtype=np.int32), np.array(runs, dtype=np.float64)
    return steps.lay_out(itemsize, kept_from, level_array, run_array, machine.speed, most_words, deferred_words)


def library_steps(steps: Steps | Program) -> NDArray[np.bool_]:
    """Return a mask of steps that a device's library may run: all large enough matrix products, and perhaps others."""
    words, starts = steps.words, steps.starts
    depth = words[starts + DOMAIN]
    if depth.max(initial=0) < LIBRARY_DEPTH:
        return np.zeros(len(starts), dtype=bool)
    cells = words[starts + OUTER_CELLS].astype(np.int64) * words[starts + MID_CELLS] * words[starts + LO_CELLS]
    sides = (words[starts + TABLES] == 2) & (words[starts + TABLES_A] == 1) & (words[starts + TABLES_B] == 1)
    is_product: NDArray[np.bool_] = sides & (depth >= LIBRARY_DEPTH) & (cells * depth >= LIBRARY_WORK)
    return is_product
