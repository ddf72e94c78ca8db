"""Plans of whole problems: the tree, the steps, and the positions of their tables."""

from __future__ import annotations

import functools
import itertools
import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina._core import PlannedLayout, PlannedSteps, PlannedTree, plan_steps
from elimina.model.table import Scopes
from elimina.planning.machine import EXPONENTIAL, SLICE_SECONDS, SLICED_TABLE_SECONDS, Machine, speeds
from elimina.planning.number_type import Encoding, choose_encoding, cost_bound, incumbent_cost, operand_limits
from elimina.planning.packed_steps import Factors, Outputs, Steps
from elimina.planning.plan import MAX_BYTES, RESIDENT, Form, MiniBuckets, Plan, slice_runs
from elimina.planning.program import place_steps
from elimina.planning.record import HEADER, MAX_OPERANDS
from elimina.planning.slice_dependence import dependence, order_slices
from elimina.planning.slice_form import Slicing
from elimina.planning.tree import Bound, Partition, node_weights, plan_tree, tree_of
from elimina.problem.preparation import Problem, restrict
from elimina.problem.semirings import INTEGERS, LARGEST, SEMIRINGS
from elimina.problem.table_groups import Group
from elimina.system import lock_for_a_moment

MIN_RECORD_BYTES = 1 << 20
"""Bytes of records that do not count towards the memory limit: any process grows by as much during a call."""

PLANNING_BYTES_PER_RECORD_BYTE = 5
"""Bytes of memory that planning takes per byte of records (chains: 3.5 to 4.5). If this estimate exceeds the memory
limit, the plan states sizes and times, but has no records of its steps."""


def planning_bytes(records: int) -> int:
    """Return the number of bytes that planning counts towards the memory limit, for a number of bytes of records."""
    return PLANNING_BYTES_PER_RECORD_BYTE * max(0, records - MIN_RECORD_BYTES)


DEFERRED_WORDS, _DEFERRED_BYTES = 1 << 22, 4
"""Number of record words above which a plan writes its records on first use, and largest number of bytes of a word in
such a plan."""

MAX_KEPT_PLANS = 16
"""Largest number of plans that the process keeps for later calls."""

MAX_KEPT_PLAN_WORDS = 1 << 17
"""Largest number of record words of a kept plan: some 1,000 steps."""

ROOM = 8
"""If the memory limit is this many times a plan's memory, the limit no longer affects the choice of the form."""

_plans: OrderedDict[tuple[Any, ...], tuple[Plan, Plan | None]] = OrderedDict()
_plans_lock = lock_for_a_moment()


class _PlacedPlan(NamedTuple):
    """Layout, encoding and slices of a plan.

    Attributes:
        encoding: Encoding of the arena's numbers.
        placed: Figures and records from the core.
        outputs: Step and variable (-1: none) of each output, in pairs.
        slices: Order of the sliced variables, and the levels that depend on it.
        operands: Largest number of tables that a step may read.
        kept_from: See ``program.place_steps``.
        seconds: Estimated time in seconds.
        planning_bytes: Bytes of the host for planning.
    """

    encoding: Encoding
    placed: PlannedLayout
    outputs: NDArray[np.int64]
    slices: _SliceVariables
    operands: int
    kept_from: int
    seconds: float
    planning_bytes: int

    def tiers(self, machine: Machine) -> dict[str, int]:
        """Return the bytes by memory tier."""
        itemsize = np.dtype(self.encoding.dtype).itemsize
        arena, factors = (_counted(cells) * itemsize for cells in (self.placed.arena_cells, self.placed.factor_cells))
        tiers = machine.tiers(arena, factors, self.planning_bytes)
        if not self.is_recorded and not machine.on_host:
            # The figures of a plan without records include the memory that its records would need.
            tiers[machine.home] += self.planning_bytes
        return tiers

    @property
    def is_recorded(self) -> bool:
        """True if there are records; they are left out if they do not fit into memory."""
        return not self.placed.record_words or len(self.placed.out_spans) > 0

    def is_too_large(self, machine: Machine, memory: int) -> bool:
        """Return whether the arena exceeds the memory of its tier."""
        return self.tiers(machine)[machine.home] > memory


class _SliceVariables(NamedTuple):
    """Conditioned variables in their order, and the levels of steps and factors (see ``Form.levels``)."""

    fixed: tuple[int, ...] = ()
    levels: tuple[int, ...] = ()
    factor_levels: tuple[int, ...] = ()


MIN_INCUMBENT_SECONDS = 0.5
"""Estimated seconds of a plan above which a solution is searched for, because its cost may permit a narrower dtype."""

_HOPELESS_PLAN_SECONDS = 1e9
"""Estimated seconds above which a plan is made only for its figures."""

_NONE_KEPT = sys.maxsize
"""Value of ``kept_from`` in ``program.place_steps`` with which all tables may be overwritten."""

_DECODED_STEPS_TOLERANCE = 0.01
"""Accuracy of the largest number of decoded steps, as a share of all steps; each trial layout takes time."""

_MAX_COUNTED = 1e300
"""Largest figure of a plan, which keeps bytes and their sums finite as floats."""


def _counted(figure: float) -> int:
    return int(min(figure, _MAX_COUNTED))


class Elimination(NamedTuple):
    """An elimination to plan.

    Attributes:
        problem: Problem to eliminate.
        order: The free variables in elimination order, without conditioned variables.
        machine: Cost model of the device that will run the plan.
        memory: Memory limit on the device, in bytes.
        dtype: Requested dtype of the arena; None: chosen by the planner.
        is_hasty: True to skip the search for a solution, whose cost may permit a narrower number type.
        runs_once: True if marginals are computed once, so that messages need not be kept for a second run.
        keeps_messages: True if messages stay on the host until the end, as those of weighted mini-buckets do (``pr``).
        decodes_part: True to decode only as many of the last variables as fit, if not all messages fit.
        bound: A number above the cost of the optimum that represents 'forbidden'; None: computed from the tables.
    """

    problem: Problem
    order: Sequence[int]
    machine: Machine
    memory: int
    dtype: str | None = None
    is_hasty: bool = False
    runs_once: bool = False
    keeps_messages: bool = False
    decodes_part: bool = False
    bound: int | None = None


class Conditioning(NamedTuple):
    """Variables to condition on, and the plan without slices."""

    variables: Sequence[int]
    unsliced: Plan


class Relaxation(NamedTuple):
    """A relaxation to mini-buckets, which bounds the answer.

    Attributes:
        ibound: Largest number of variables of a message: buckets with larger messages are partitioned.
        matched: True for moment matching between the mini-buckets of a variable.
        side: Side of the bound on a sum; None for an optimum.
        partition: Mini-buckets of each bucket; None: buckets are partitioned by scopes.
    """

    ibound: int
    matched: bool = False
    side: Bound | None = None
    partition: Partition | None = None


def make_plan(
    elimination: Elimination,
    conditioning: Conditioning | None = None,
    relaxation: Relaxation | None = None,
    single: Plan | None = None,
) -> Plan:
    """Lay out a whole elimination.

    Args:
        elimination: The problem, its order, and the device.
        conditioning: Variables to condition on (tasks ``mpe``, ``pr``, ``count``).
        relaxation: Mini-buckets (``mpe``, ``pr``); None: the plan is exact.
        single: Reference plan with one eliminated variable per step. If it is given, steps may eliminate several
            variables; only for dense tables.

    Raises:
        InputError: The dtype does not fit the task or cannot hold the costs exactly.
    """
    problem, order, machine, memory, dtype = elimination[:5]
    if problem.described.is_count:
        machine = machine.counting()
    sliced, unsliced = ((), None) if conditioning is None else conditioning
    conditioned = restrict(problem, dict.fromkeys(sliced, 0)) if sliced else problem
    scopes = conditioned.groups.scopes
    tree = _tree(conditioned, scopes, order, relaxation)
    if problem.described.is_marginal:
        order = [v for v in tree.central_order() if v not in problem.kept]
        tree = _tree(problem, scopes, order)
    minibuckets = None if relaxation is None else _minibuckets(tree, len(order), relaxation)
    matched = relaxation is not None and relaxation.matched
    weights: Sequence[float] = ()
    if relaxation is not None and relaxation.side is not None and (minibuckets is not None or conditioned.maximised):
        zeros = [_has_zeros(conditioned, group) for group in conditioned.groups]
        weights = node_weights(tree_of(tree), relaxation.side, zeros, conditioned.maximised)
    decode = SEMIRINGS[problem.described.semiring].is_idempotent and minibuckets is None and not problem.kept
    # On a GPU, messages remain in the arena until the end only if all of them are kept.
    keep = decode or ((minibuckets is not None or bool(weights)) and not machine.on_host)

    most_bytes = min(memory // PLANNING_BYTES_PER_RECORD_BYTE, MAX_BYTES) + MIN_RECORD_BYTES

    lasting = None if elimination.decodes_part else elimination.keeps_messages or bool(weights)

    @functools.cache
    def steps_of(operands: int) -> tuple[PlannedSteps, _SliceVariables]:
        steps = _plan_steps(conditioned, tree, operands, matched, weights, single is not None, lasting)
        return _slice_steps(problem, conditioned, steps, sliced)

    def lay_out(bound: int, operands: int = MAX_OPERANDS, kept_from: int = 0 if keep else _NONE_KEPT) -> _PlacedPlan:
        steps, slices = steps_of(operands)
        encoding = choose_encoding(problem, steps.most_tables, bound, dtype, bool(weights))
        placed = _lay_out(conditioned, steps, slices, encoding, kept_from, machine, most_bytes)
        return placed._replace(operands=operands)

    # A bound on the costs of the whole problem is valid in each slice.
    bound = cost_bound(problem) if elimination.bound is None else elimination.bound
    # The search for a solution runs at most once: a reference plan has already run it.
    reference = single or unsliced
    searched = (
        elimination.is_hasty
        or elimination.bound is not None
        or (reference is not None and reference.dtype in INTEGERS and reference.seconds < _HOPELESS_PLAN_SECONDS)
    )
    if reference is not None and reference.dtype in INTEGERS:
        bound = min(bound, int(reference.forbidden))
    max_operands = MAX_OPERANDS
    if single is not None and single.dtype in INTEGERS and dtype is not None:
        max_operands = min(MAX_OPERANDS, max(LARGEST[single.dtype] // bound, 2))
    # All messages of marginals are kept if a later run may read them. No later run does with ``runs_once`` or in a
    # batch (``kept``), but a GPU keeps them nevertheless, so that it may run steps in any order.
    reuse = not problem.described.is_marginal or ((elimination.runs_once or bool(problem.kept)) and machine.on_host)
    chosen = lay_out(bound, max_operands, 0 if keep or not reuse else _NONE_KEPT)
    if problem.described.is_marginal and chosen.kept_from == 0 and chosen.is_too_large(machine, memory):
        chosen = lay_out(bound)
    if dtype is None and chosen.encoding.dtype in INTEGERS[1:] and chosen.seconds < _HOPELESS_PLAN_SECONDS:
        is_slow = machine.cell_seconds(chosen.seconds, len(chosen.placed.out_spans)) > MIN_INCUMBENT_SECONDS
        if not searched and not problem.kept and (is_slow or chosen.is_too_large(machine, memory)):
            cost = incumbent_cost(problem)
            bound = bound if cost is None else min(bound, cost + 1)
        alternatives = [lay_out(bound, operands) for operands in operand_limits(bound, chosen.encoding.dtype)]
        chosen = min(
            [chosen, *alternatives],
            key=lambda layout: (
                layout.is_too_large(machine, memory),
                layout.seconds,
                INTEGERS.index(layout.encoding.dtype),
            ),
        )
    if elimination.decodes_part and decode and chosen.is_too_large(machine, memory):
        planned, encoding = steps_of(chosen.operands), chosen.encoding
        chosen = _decoding_part(
            lambda first: _lay_out(conditioned, *planned, encoding, first, machine, most_bytes),
            chosen,
            lambda layout: layout.is_too_large(machine, memory),
        )
    form: Form = RESIDENT
    if unsliced is not None:
        fixed = chosen.slices.fixed
        sizes = tuple(problem.model.sizes[v] for v in fixed)
        names = tuple(problem.model.variables[v].name for v in fixed)
        form = Slicing(variables=fixed, names=names, sizes=sizes, levels=chosen.slices.levels, unsliced=unsliced)
    placed = chosen.placed
    steps = Steps.of(placed)
    return Plan(
        task=problem.task,
        semiring=chosen.encoding.semiring,
        dtype=chosen.encoding.dtype,
        forbidden=chosen.encoding.forbidden,
        order=tuple(order),
        kept=problem.kept,
        width=tree.width,
        factors=Factors.of(
            conditioned.groups.starts, conditioned.groups.members, conditioned.model.sizes, tree, placed
        ),
        steps=steps,
        outputs=_outputs(steps, chosen.outputs, problem) if chosen.is_recorded else (),
        factor_cells=_counted(placed.factor_cells),
        arena_cells=_counted(placed.arena_cells),
        keep=chosen.kept_from == 0,
        decode=decode,
        device=machine.name,
        memory_limit=memory,
        bytes=chosen.tiers(machine),
        seconds=chosen.seconds,
        largest_table=_counted(placed.largest),
        work=_counted(placed.work),
        operations=_counted(placed.operations),
        form=form,
        minibuckets=minibuckets,
        planning_bytes=chosen.planning_bytes if machine.on_host else 0,
        first_decoded=chosen.kept_from if decode else 0,
    )


def kept_plan(elimination: Elimination, single: Plan | None = None) -> Plan:
    """Return the plan of a whole problem; a cached plan is reused if its problem differs only in values.

    Args:
        elimination: See ``make_plan``.
        single: See ``make_plan``.

    Raises:
        InputError: The dtype does not fit the task or cannot hold the costs exactly.
    """
    problem, order, machine, memory = elimination[:4]
    if len(order) * HEADER > MAX_KEPT_PLAN_WORDS:
        return make_plan(elimination, single=single)
    model, bound = problem.model, cost_bound(problem)
    values = model.sense, model.is_integer, bound
    asked = problem.kept, problem.wanted, problem.maximised, problem.families
    structure = problem.task, model.sizes, problem.groups, *asked
    # The id of steps is unique as long as they exist, and ``_plans`` keeps them alive.
    key = (*values, *structure, tuple(order), machine, *elimination[4:], None if single is None else id(single.steps))
    with _plans_lock:
        plan = _plans.get(key, (None, None))[0]
        if plan is not None and ROOM * plan.peak_bytes <= memory:
            _plans.move_to_end(key)
            return plan._replace(memory_limit=memory)
    plan = make_plan(elimination, single=single)
    is_short = Steps.packed(plan.steps).record_words <= MAX_KEPT_PLAN_WORDS
    # A narrower number for 'forbidden' depends on the tables' values, so such a plan cannot be reused.
    is_general = plan.dtype not in INTEGERS or plan.forbidden == bound
    if is_short and is_general and ROOM * plan.peak_bytes <= memory:
        with _plans_lock:
            _plans[key] = plan, single
            while len(_plans) > MAX_KEPT_PLANS:
                _plans.popitem(last=False)
    return plan


def _tree(problem: Problem, scopes: Scopes, order: Sequence[int], relaxation: Relaxation | None = None) -> PlannedTree:
    limits = (None, None) if relaxation is None else (relaxation.ibound, relaxation.partition)
    return plan_tree(scopes, problem.model.sizes, order, problem.kept, *limits)


def _minibuckets(tree: PlannedTree, buckets: int, relaxation: Relaxation) -> MiniBuckets | None:
    """Return the partition of the buckets; None if no bucket is partitioned."""
    nodes = len(tree.variables)
    if nodes == buckets:
        return None
    divided = int((np.unique(tree.variables, return_counts=True)[1] > 1).sum())
    by_content = relaxation.partition is not None
    return MiniBuckets(relaxation.ibound, divided, nodes, relaxation.matched, by_content)


def _has_zeros(problem: Problem, group: Group) -> bool:
    return any(problem.tables[m].default == 0 or not problem.tables[m].values.all() for m in group.members)


def _plan_steps(
    problem: Problem,
    tree: PlannedTree,
    operands: int,
    matched: bool,
    weights: Sequence[float],
    fused: bool,
    lasting: bool | None,
) -> PlannedSteps:
    """Return the steps of the passes of the task.

    ``lasting`` says which messages keep their memory until the end: all (True), those that the task asks for (False),
    or those of the variables to decode, if these are not all variables (None).
    """
    passes = problem.described.passes
    if problem.kept:
        passes = {"lasting": "upward", "postorder": "both"}.get(passes, passes)
    elif lasting is None or (lasting and passes == "postorder"):
        passes = "lasting" if lasting else "postorder"
    wanted = problem.wanted if passes == "both" else ()
    arrays = np.array(weights, np.float64), np.array(wanted, np.int32)
    is_sum = problem.model.sense == "probability" and problem.described.is_sum
    fused = fused and passes in ("postorder", "lasting")
    families = problem.families if passes == "both" else ()
    return plan_steps(tree, passes, operands, matched, *arrays, is_sum and not weights, fused, families)


def _slice_steps(
    problem: Problem, conditioned: Problem, steps: PlannedSteps, sliced: Sequence[int]
) -> tuple[PlannedSteps, _SliceVariables]:
    """Order the sliced variables and, by them, the steps: those with the fewest repetitions come first."""
    if not sliced:
        return steps, _SliceVariables()
    tables = steps.tables
    firsts, sources, factors = tables.starts.tolist(), tables.sources.tolist(), tables.factors.tolist()
    work = tables.combinations.tolist()
    reads = [list(zip(sources[a:b], factors[a:b], strict=True)) for a, b in itertools.pairwise(firsts)]
    fixed = order_slices(
        dependence(reads, _factor_masks(problem, conditioned, sliced)), work, problem.model.sizes, sliced
    )
    masks = _factor_masks(problem, conditioned, fixed)
    levels = [mask.bit_length() for mask in dependence(reads, masks)]
    sequence = sorted(range(len(levels)), key=levels.__getitem__)
    slices = _SliceVariables(fixed, tuple(levels[old] for old in sequence), tuple(mask.bit_length() for mask in masks))
    return steps.moved(np.array(sequence, dtype=np.int32)), slices


def _factor_masks(problem: Problem, conditioned: Problem, sliced: Sequence[int]) -> list[int]:
    """Return the sliced variables of each factor as a bit mask of positions."""
    bits = {v: 1 << i for i, v in enumerate(sliced)}
    tables = [sum(bits.get(v, 0) for v in table.scope) for table in problem.tables]
    return [functools.reduce(operator.or_, (tables[m] for m in group.members)) for group in conditioned.groups]


def _lay_out(
    problem: Problem,
    steps: PlannedSteps,
    slices: _SliceVariables,
    encoding: Encoding,
    kept_from: int,
    machine: Machine,
    most_bytes: int,
) -> _PlacedPlan:
    itemsize = np.dtype(encoding.dtype).itemsize
    if SEMIRINGS[encoding.semiring].is_product:
        machine = machine.multiplying()
    runs = slice_runs([problem.model.sizes[v] for v in slices.fixed])
    is_weighted = SEMIRINGS[encoding.semiring].is_weighted
    may_defer = machine.on_host and not is_weighted and not slices.fixed
    most_deferred = most_bytes // _DEFERRED_BYTES if may_defer else 0
    most_words = max(most_bytes // 8, most_deferred if most_deferred >= DEFERRED_WORDS else 0)
    deferred_words = DEFERRED_WORDS if may_defer else sys.maxsize
    placed = place_steps(steps, itemsize, kept_from, machine, slices.levels, runs, most_words, deferred_words)
    seconds = placed.arena_cells * itemsize / machine.fresh + placed.seconds
    if is_weighted:
        seconds *= EXPONENTIAL
    if slices.fixed:
        changes = zip(placed.spans.tolist(), slices.factor_levels, strict=True)
        again = sum(runs[level] * (SLICED_TABLE_SECONDS + span / speeds().encoded) for span, level in changes if level)
        seconds += again + runs[-1] * SLICE_SECONDS
    planning = planning_bytes(placed.record_words * (_DEFERRED_BYTES if placed.record_words >= deferred_words else 8))
    return _PlacedPlan(
        encoding, placed, steps.outputs, slices, MAX_OPERANDS, kept_from, machine.start + seconds, planning
    )


def _decoding_part(
    lay_out: Callable[[int], _PlacedPlan], whole: _PlacedPlan, is_too_large: Callable[[_PlacedPlan], bool]
) -> _PlacedPlan:
    """Return a layout that keeps the tables of as many last steps as fit, but at least one, for decoding.

    Args:
        lay_out: Function of a step that returns the layout in which the tables of this step and of later ones stay.
        whole: The layout of all messages, which is too large.
        is_too_large: Function that returns whether a layout does not fit.
    """
    first, last = 0, len(whole.placed.out_spans) - 1
    if last < 0:
        return whole
    chosen = lay_out(last)
    if is_too_large(chosen):
        return chosen
    while last - first > max(1, int(_DECODED_STEPS_TOLERANCE * len(chosen.placed.out_spans))):
        middle = (first + last) // 2
        layout = lay_out(middle)
        if is_too_large(layout):
            first = middle
        else:
            last, chosen = middle, layout
    return chosen


def _outputs(steps: Steps, records: NDArray[np.int64], problem: Problem) -> Outputs:
    """Return the outputs: marginals of variables, then of families, and tables over kept variables."""
    kept = problem.kept
    numbers, variables = records.reshape(-1, 2).T.copy()
    is_marginal = variables >= 0
    if not kept and not problem.families:
        return Outputs(numbers, Scopes(np.append(0, np.cumsum(is_marginal)), variables[is_marginal]))
    scopes = [(v, *kept) for v in variables.tolist()]
    for number in np.flatnonzero(~is_marginal).tolist():
        axes = steps.variables_of(numbers[number])
        scopes[number] = tuple(v for v in kept if v in axes)
    if problem.families and is_marginal.any():
        scopes[-len(problem.families) :] = [(*family, *kept) for family in problem.families]
    return Outputs(numbers, Scopes.of(scopes))
