"""Plans for an optimum in segments of the bucket tree: see ``methods.segments``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import Machine
from elimina.planning.ordering import quick_order
from elimina.planning.packed_steps import Steps
from elimina.planning.plan import Plan
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.segment_form import Segments
from elimina.planning.slicing import MAX_SLICED_SECONDS
from elimina.planning.tiers import in_tiers
from elimina.planning.tree import plan_tree
from elimina.problem.preparation import Problem, restrict
from elimina.problem.semirings import FLOATS
from elimina.problem.table_groups import Group, TableGroups
from elimina.running.form_search import FormSearch
from elimina.running.fused_steps import with_fused_steps
from elimina.running.host import host_memory

_MAX_SEGMENTS = 4096
"""Largest number of segments; each takes time to plan."""

_RESTRICTED_CELL_BYTES = 8
"""Bytes of a cell in copies of the model's tables that are restricted to decoded values."""

_ORDER_SHARE = 1 / 16
"""Time of the order search for a segment, relative to that for the whole order."""

_MIN_ORDER_SECONDS = 0.2
"""Estimated seconds of a run above which a separate order is searched for it."""


def restricted_bytes(plan: Plan) -> int:
    """Return the host's bytes for tables restricted to decoded values, in addition to a segment's plan."""
    return int(plan.factor_cells) * _RESTRICTED_CELL_BYTES


class SegmentProblems:
    """The problems of segments, each restricted to previously decoded values.

    Args:
        problem: The whole problem.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem, model = problem, problem.model
        # The constant and the upper bound are left out: they apply to the whole model, and segments only determine
        # values.
        self._model = Model(model.variables, model.factors, sense=model.sense, check=False)

    def given(self, values: Mapping[int, int], variables: Sequence[int]) -> Problem:
        """Return the problem of a segment, restricted to the decoded values.

        Args:
            values: Decoded variable -> value index.
            variables: The segment's variables. No table may contain both one of them and an undecoded variable of
                another segment.
        """
        problem = self._problem
        inside = np.zeros(len(problem.model.sizes), dtype=bool)
        inside[list(variables)] = True
        starts, members = problem.groups.scopes
        touched = np.flatnonzero(np.logical_or.reduceat(inside[members], starts[:-1]))
        groups = [problem.groups[number] for number in touched.tolist()]
        numbers = sorted(member for group in groups for member in group.members)
        place = {member: number for number, member in enumerate(numbers)}
        part = problem._replace(
            model=self._model,
            free=tuple(sorted({v for group in groups for v in group.scope})),
            tables=problem.tables.chosen(np.array(numbers, dtype=np.int64)),
            groups=TableGroups.of(Group(group.scope, tuple(place[m] for m in group.members)) for group in groups),
            constants=(),
        )
        return restrict(part, {v: values[v] for v in part.free if not inside[v]})


class SegmentLimits(NamedTuple):
    """Device and memory of the runs of segments.

    Attributes:
        machine: Cost model of the device.
        memory: Memory limit of a run on the device, in bytes.
        host: Host memory for tables that pass through a GPU in tiles, in bytes; 0: all tables lie on the device.
        dtype: Requested dtype; None: chosen by the planner.
    """

    machine: Machine
    memory: int
    host: int
    dtype: str | None

    @classmethod
    def of(cls, machine: Machine, plan: Plan, form: Segments) -> SegmentLimits:
        """Return the limits of the runs of a plan."""
        restricted = restricted_bytes(form.unsegmented)
        memory = plan.memory_limit - (restricted if machine.on_host else 0)
        return cls(machine, memory, dict(form.limits)["host"] - restricted if form.is_streamed else 0, form.dtype)


def segment_plan(limits: SegmentLimits, whole: Plan, problem: Problem, order: Sequence[int]) -> Plan:
    """Plan a run that decodes as many variables as fit, beginning at the root.

    Args:
        limits: Device and memory of the run.
        whole: The plan with all messages.
        problem: Problem of the run.
        order: Elimination order of the problem.
    """
    is_float = whole.dtype in FLOATS
    # If all other variables have optimal values, a bound on the optimum of all tables also bounds that of a segment's
    # tables.
    bound = None if is_float else int(whole.forbidden)
    dtype = whole.dtype if is_float else limits.dtype
    elimination = Elimination(problem, order, limits.machine, limits.memory, dtype, decodes_part=True, bound=bound)
    plan = make_plan(elimination)
    if plan.fits or not limits.host:
        return with_fused_steps(elimination, plan)
    in_host = make_plan(elimination._replace(memory=limits.host))
    return in_tiers(in_host._replace(memory_limit=limits.memory), limits.host, None)


def decoded_variables(plan: Plan) -> list[int]:
    """Return the variables that a plan decodes."""
    return Steps.packed(plan.steps).eliminated_from(plan.first_decoded)


class _Subtree(NamedTuple):
    """The variables of an undecoded subtree, and the number of cells of its messages given the decoded values."""

    variables: list[int]
    cells: float


def _subtrees(problem: Problem, plan: Plan) -> list[_Subtree]:
    """Return the largest subtrees without decoded variables."""
    sizes = problem.model.size_array.astype(np.float64)
    sizes[decoded_variables(plan)] = 1
    tree = plan_tree(problem.groups.scopes, problem.model.sizes, plan.order)
    starts, separators = tree.separators
    logs = np.append(0.0, np.cumsum(np.log(sizes[separators])))
    cells = np.exp(logs[starts[1:]] - logs[starts[:-1]]).tolist()
    is_decoded, variables, parents = (
        (sizes[tree.variables] == 1).tolist(),
        tree.variables.tolist(),
        tree.parents.tolist(),
    )
    subtrees: list[_Subtree] = []
    number_of = [-1] * len(parents)
    for node in range(len(parents) - 1, -1, -1):
        if is_decoded[node]:
            continue
        number = number_of[parents[node]] if parents[node] >= 0 else -1
        if number < 0:
            number = len(subtrees)
            subtrees.append(_Subtree([], 0.0))
        number_of[node] = number
        variables_of_subtree, subtree_cells = subtrees[number]
        variables_of_subtree.append(variables[node])
        subtrees[number] = _Subtree(variables_of_subtree, subtree_cells + cells[node])
    return subtrees


def _gathered(subtrees: Sequence[_Subtree], cells: float) -> list[list[int]]:
    """Return lists of the subtrees' variables; small subtrees are combined as long as all their messages fit."""
    gathered: list[list[int]] = []
    room = 0.0
    for subtree in sorted(subtrees, key=lambda subtree: subtree.cells):
        if subtree.cells > room:
            gathered.append([])
            room = cells
        gathered[-1] += subtree.variables
        room -= subtree.cells
    return gathered


def _central_order(problem: Problem, order: Sequence[int]) -> tuple[int, ...]:
    """Return an order with the same cliques and the root in the middle of the tree, so that all subtrees are small."""
    return tuple(plan_tree(problem.groups.scopes, problem.model.sizes, order).central_order())


class _SegmentPlanner:
    """A planner of all runs of an optimum in segments.

    Args:
        elimination: Elimination of the whole problem.
        options: Planning options.
        whole: The plan with all messages.
        form: Form of the plan with its limits, but without orders.

    Attributes:
        plans: Plans of the runs so far.
        seconds: Estimated seconds of these runs.
    """

    def __init__(self, elimination: Elimination, options: CheckedOptions, whole: Plan, form: Segments) -> None:
        self._elimination, self._options, self._whole = elimination, options, whole
        self._limits = SegmentLimits.of(elimination.machine, whole, form)
        self.plans: list[Plan] = []
        self.seconds = elimination.machine.start

    def is_made(self) -> bool:
        """Plan all runs; return False if a run does not fit, or if the runs take too long."""
        problem = self._elimination.problem
        values = dict.fromkeys(problem.free, 0)
        problems = SegmentProblems(problem)
        position = {v: number for number, v in enumerate(self._elimination.order)}
        pending: list[list[int]] = [list(problem.free)]
        while pending:
            variables = pending.pop()
            part = problems.given(values, variables) if self.plans else problem
            plan = self._plan(part, sorted(variables, key=position.__getitem__))
            self.plans.append(plan)
            self.seconds += plan.seconds - self._elimination.machine.start
            if not plan.fits or self.seconds > MAX_SLICED_SECONDS or len(self.plans) > _MAX_SEGMENTS:
                return False
            pending += _gathered(_subtrees(part, plan), self._limits.memory // plan.itemsize - plan.factor_cells)
        return True

    def _plan(self, problem: Problem, order: Sequence[int]) -> Plan:
        """Return the plan of a run, in the given order or in an order searched for this run."""
        plan = self._plan_in(problem, order)
        running = plan.seconds - self._elimination.machine.start
        if self.plans and isinstance(self._options.order, str) and running > _MIN_ORDER_SECONDS:
            fresh = quick_order(problem, self._options, self._options.order_seconds * _ORDER_SHARE)
            plan = min(plan, self._plan_in(problem, fresh.order), key=lambda plan: (not plan.fits, plan.seconds))
        return plan

    def _plan_in(self, problem: Problem, order: Sequence[int]) -> Plan:
        return segment_plan(self._limits, self._whole, problem, _central_order(problem, order))


def make_segmented_plan(
    elimination: Elimination, whole: Plan, options: CheckedOptions, is_streamed: bool = False
) -> Plan | None:
    """Plan an optimum in segments; return None if a segment does not fit, or if the runs take too long.

    Args:
        elimination: Elimination of an optimum.
        whole: The plan with all messages.
        options: Planning options.
        is_streamed: See ``Segments``.
    """
    if whole.seconds > MAX_SLICED_SECONDS:
        return None
    machine = elimination.machine
    form = Segments(
        orders=(),
        unsegmented=whole,
        dtype=elimination.dtype,
        limits=() if machine.on_host else (("host", host_memory(options)),),
        is_streamed=is_streamed,
        is_resident=not is_streamed,
    )
    planner = _SegmentPlanner(elimination, options, whole, form)
    if not planner.is_made():
        return None
    plans = planner.plans
    tiers = {tier: max(plan.bytes.get(tier, 0) for plan in plans) for tier in whole.bytes}
    tiers["host"] = tiers.get("host", 0) + restricted_bytes(whole)
    plan = whole._replace(
        bytes=tiers,
        seconds=planner.seconds,
        work=sum(plan.work for plan in plans),
        operations=sum(plan.operations for plan in plans),
        form=form.replace(orders=tuple(plan.order for plan in plans)),
    )
    return plan if plan.fits else None


def in_segments(search: FormSearch) -> Plan | None:
    """Plan the elimination in segments; return None if no such plan fits."""
    return make_segmented_plan(search.elimination, search.whole, search.options)


def in_streamed_segments(search: FormSearch) -> Plan | None:
    """Plan the elimination in segments that pass through the device in tiles; return None if no such plan fits."""
    return make_segmented_plan(search.elimination, search.whole, search.options, is_streamed=True)
