"""Plans in slices: the choice of variables to condition on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.model.table import Scopes
from elimina.planning.machine import Machine
from elimina.planning.plan import MAX_BYTES, Plan, slice_runs
from elimina.planning.planner import Conditioning, Elimination, make_plan
from elimina.planning.slice_dependence import order_slices
from elimina.planning.sparse import make_sparse_plan, tuple_bytes
from elimina.planning.tree import plan_tree
from elimina.problem.preparation import Problem

Floats = NDArray[np.float64]

MAX_SLICED_SECONDS = 3600.0
"""Largest estimated seconds of slices with the option ``auto``."""

MAX_SLICE_COUNT = 1 << 40
MAX_SLICER_SECONDS = 1e9
"""Limits of the choice of variables: number of slices, and estimated seconds of the plan without slices (slices save
memory, but no work)."""

_ROUNDS = 20
"""Largest number of plans to make until one fits."""

_SHRINK = 0.99
"""Next target as a share of the current bytes, if more slices are needed."""

_SPARED = 4
"""Number of variables, among the first ones chosen, that may be dropped at the end if later ones suffice."""

_OVERHEAD = 0.02
"""Cost of each value of a conditioned variable, as a share of the work: it ranks variables that add no work."""

_CANDIDATE_VARIABLES = 8
_PAIRS = 20000
"""Largest number of candidate variables; largest product of their number and the total length of messages' scopes."""

_TABLE_BYTES = 16
"""Bytes of the smallest table in an arena."""

_NORM = 6

_MAX_LOG = 600.0


def make_sliced_plan(elimination: Elimination, unsliced: Plan) -> Plan | None:
    """Condition on variables until the plan fits; return None if no such plan is found, or if it would take too long.

    Args:
        elimination: Elimination of the task ``mpe``, ``pr`` or ``count``.
        unsliced: A plan for the whole problem.
    """
    if unsliced.seconds > MAX_SLICER_SECONDS:
        return None
    slicer = Slicer(*elimination[:3], unsliced)
    memory = min(elimination.memory, MAX_BYTES)
    elimination = elimination._replace(memory=memory)

    def plan_without(fixed: Sequence[int]) -> Plan:
        return make_plan(without(elimination, fixed), Conditioning(fixed, unsliced))

    target = slicer.cut.bytes * min(memory / unsliced.peak_bytes, 0.999)
    for _ in range(_ROUNDS):
        slicer.reduce(target)
        if slicer.number > MAX_SLICE_COUNT or not slicer.cut.fixed:
            return None
        plan = plan_without(slicer.cut.fixed)
        if plan.peak_bytes <= memory:
            break
        target = slicer.cut.bytes * min(memory / plan.peak_bytes, 0.999)
    else:
        return None
    # Later choices may make an early one unnecessary: it is dropped if the plan fits without it.
    for v in slicer.cut.fixed[:-1][:_SPARED]:
        fewer = plan_without([u for u in plan.form.variables if u != v])
        if fewer.peak_bytes <= memory and fewer.seconds <= plan.seconds:
            plan = fewer
    return plan


def make_finer_plan(elimination: Elimination, plan: Plan, least: int) -> Plan:
    """Plan at least ``least`` slices, which will run at the same time, if there are variables to condition on.

    The given plan is returned if the finer one is not faster, or does not fit.

    Args:
        elimination: Elimination of the task ``mpe``, ``pr`` or ``count``; its order includes the sliced variables.
        plan: Plan on dense tables, with fewer slices or none.
        least: Least number of slices.
    """
    unsliced = plan.whole
    slicer = Slicer(*elimination[:3], unsliced)
    slicer.cut = Cut(slicer, plan.form.variables)
    number_before = slicer.number
    while slicer.number < least and len(slicer.cut.fixed) < len(elimination.order):
        slicer.reduce(slicer.cut.bytes * _SHRINK)
    fixed = slicer.cut.fixed
    finer = make_plan(without(elimination._replace(memory=plan.memory_limit), fixed), Conditioning(fixed, unsliced))
    is_gain = finer.seconds / min(slicer.number, least) < plan.seconds / min(number_before, least)
    return finer if finer.fits and is_gain else plan


def without(elimination: Elimination, fixed: Sequence[int]) -> Elimination:
    """Return an elimination without the sliced variables."""
    return elimination._replace(order=[v for v in elimination.order if v not in fixed])


def make_sliced_sparse_plan(
    problem: Problem, machine: Machine, on_rows: Plan, most_bytes: int, max_slices: float, times: float
) -> Plan | None:
    """Plan sparse steps in as many slices as the expected tuples require; None if they are too many, or none fit.

    Variables are chosen whose messages have the most tuples per doubling of the number of slices. If the plan is far
    from fitting, several variables are chosen at a time.

    Args:
        problem: Problem of the task ``mpe``, ``pr`` or ``count``.
        machine: Cost model of the device.
        on_rows: The sparse plan without slices; slices have listed factors only if this plan has them.
        most_bytes: Limit on the expected bytes of a slice.
        max_slices: Largest number of slices.
        times: Factor by which the expected number of tuples exceeds the number for independent tables.
    """
    fixed: tuple[int, ...] = ()
    plan = on_rows
    sizes = problem.model.sizes
    listed = any(factor.tuples is not None for factor in on_rows.factors)
    for _ in range(_ROUNDS):
        if plan.peak_bytes <= most_bytes:
            return plan
        assert plan.sparse is not None
        weights = dict.fromkeys(plan.order, 0.0)
        for step, form in zip(plan.sparse.steps, plan.sparse.forms, strict=True):
            size = min(form.rows, 1e100) * tuple_bytes(step.sizes, plan.itemsize)
            for v in (*step.axes, *((step.variable,) if step.variable >= 0 else ())):
                weights[v] += size**2 / math.log(sizes[v])
        halvings = math.log2(plan.peak_bytes / max(1, most_bytes)) / 2
        for v in sorted(weights, key=weights.__getitem__, reverse=True):
            fixed, halvings = (*fixed, v), halvings - math.log2(sizes[v])
            if halvings <= 0:
                break
        if math.prod(sizes[v] for v in fixed) > max_slices or len(fixed) == len(on_rows.order):
            return None
        order = [v for v in on_rows.order if v not in fixed]
        sliced = make_plan(
            Elimination(problem, order, machine, on_rows.memory_limit, on_rows.dtype), Conditioning(fixed, on_rows)
        )
        sparse_plan = make_sparse_plan(sliced, problem, machine, True, times, listed)
        if sparse_plan is None:
            return None
        plan = sparse_plan
    return None


class Cut:
    """A problem's bucket tree with conditioned variables.

    Args:
        slicer: Choice of variables for the problem.
        fixed: Conditioned variables.

    Attributes:
        fixed: Conditioned variables.
        bytes: Estimated bytes of a slice.
        pressure: Quantity to reduce: the bytes or, if messages are released after they are read, a norm of the memory
            in use at each bucket's elimination. (With the maximum alone, lowering one of several maxima would have no
            effect.)
        work: Number of combinations over all slices.
    """

    def __init__(self, slicer: Slicer, fixed: tuple[int, ...]) -> None:
        self.fixed = fixed
        bits = np.zeros(len(slicer.sizes), dtype=np.int64)
        bits[list(fixed)] = 1 << np.arange(len(fixed))
        is_kept, scopes = slicer.scopes.without(bits > 0)
        masks = slicer.scopes.by_owner(bits).astype(np.int64)[is_kept]
        self._scopes = _Scopes(scopes, slicer.logs)
        order = slicer.order[bits[slicer.order] == 0]
        self._tree = plan_tree(scopes, [1] * len(slicer.sizes), order.tolist())
        self._parents = self._tree.parents.tolist()
        self._messages = _Scopes(Scopes(*self._tree.separators), slicer.logs)
        self._messages_cells = self._messages.cells()
        work = self._messages_cells * slicer.sizes[order]
        starts, factors_of = self._tree.factors
        step_masks = np.zeros(len(order), dtype=np.int64)
        np.bitwise_or.at(step_masks, np.repeat(np.arange(len(order)), np.diff(starts)), masks[factors_of])
        masks_below: list[int] = step_masks.tolist()
        for number, parent in enumerate(self._parents):
            if parent >= 0:
                masks_below[parent] |= masks_below[number]
        ordered = order_slices(masks_below, work.tolist(), slicer.sizes.tolist(), fixed)
        level_of = [ordered.index(v) + 1 for v in fixed]
        depth = {
            mask: max((p for i, p in enumerate(level_of) if mask >> i & 1), default=0) for mask in set(masks_below)
        }
        levels = [depth[mask] for mask in masks_below]
        runs = slice_runs([int(slicer.sizes[v]) for v in ordered])
        self._work = work * np.array([float(runs[level]) for level in levels])
        self.work = float(self._work.sum())
        spans = np.maximum(self._messages_cells * slicer.item, _TABLE_BYTES)
        factors = float(slicer.copies * np.maximum(self._scopes.cells() * slicer.item, _TABLE_BYTES).sum())
        if slicer.keep:
            self._weights = np.ones(len(order))
            self.bytes = self.pressure = float(spans.sum()) + factors
        else:
            filled = self._filled(spans, levels)
            high = float(filled.max(initial=1.0))
            self.bytes = high + factors
            self.pressure = high * float(np.linalg.norm(filled / high, _NORM)) + factors
            self._weights = (filled / high) ** (_NORM - 1)
        self.pairs = self._messages.pairs

    def _filled(self, spans: Floats, levels: Sequence[int]) -> Floats:
        """Return the bytes of messages in memory at each bucket's elimination; messages stay until they are read."""
        sequence = sorted(self._tree.postorder.tolist(), key=levels.__getitem__)
        parents, step_levels = np.array(self._parents, dtype=np.int64), np.array(levels, dtype=np.int64)
        leaves = (parents >= 0) & (step_levels == step_levels[parents])
        freed_bytes = np.bincount(parents[leaves], weights=spans[leaves], minlength=len(spans))[sequence]
        filled = np.zeros(len(spans))
        filled[sequence] = np.cumsum(spans[sequence]) - np.cumsum(freed_bytes) + freed_bytes
        return filled

    def candidates(self, slicer: Slicer, count_limit: int) -> list[int]:
        """Return the best variables to condition on next, the best one first, estimated from this tree."""
        count = len(slicer.sizes)
        variables = self._tree.variables.astype(np.int64)
        saved = self._messages.by_variable(self._messages_cells * self._weights, count)
        saved += slicer.copies * self._scopes.by_variable(self._scopes.cells(), count)
        saved *= slicer.item * (1 - 1 / slicer.sizes)
        above = np.zeros(len(variables))
        for number in range(len(variables) - 1, -1, -1):
            parent = self._parents[number]
            if parent >= 0:
                above[number] = above[parent] + self._work[parent]
        added = (slicer.sizes[variables] - 1) * above - self._work
        score = slicer.score(self, variables, self.pressure - saved[variables], self.work + added)
        return [int(v) for v in variables[np.argsort(score, kind="stable")[:count_limit]]]


class Slicer:
    """A greedy choice of variables for conditioning, by memory saved per additional work.

    Greedy slicing of contraction trees is due to Chen et al. (2018, "Classical simulation of intermediate-size quantum
    circuits") and Gray and Kourtis (2021, "Hyper-optimized tensor network contraction"). Here, a conditioned variable
    is removed from all scopes. The buckets from its own to the root depend on it, so they run for each of its values.

    Args:
        problem: Problem to slice.
        order: The free variables in elimination order.
        machine: Cost model of the device that will run the plan.
        unsliced: Plan without slices.

    Attributes:
        cut: Tree with the variables chosen so far.
    """

    def __init__(self, problem: Problem, order: Sequence[int], machine: Machine, unsliced: Plan) -> None:
        self.order = np.array(order, dtype=np.int64)
        self.sizes = problem.model.size_array.astype(np.float64)
        self.logs = np.log(self.sizes)
        self.scopes = _Scopes(problem.groups.scopes, self.logs)
        self.item = np.dtype(unsliced.dtype).itemsize
        self.keep = unsliced.keep
        self.copies = machine.tiers(1, 1)[machine.home]
        self.cut = Cut(self, ())

    @property
    def number(self) -> int:
        """Number of slices."""
        return math.prod(int(self.sizes[v]) for v in self.cut.fixed)

    def reduce(self, target: float) -> None:
        """Condition on more variables until a slice fits ``target`` bytes, none remains, or slices are too many."""
        while self.cut.bytes > target and self.number <= MAX_SLICE_COUNT and len(self.cut.fixed) < len(self.order):
            looked_at = min(max(_PAIRS // max(1, self.cut.pairs), 1), _CANDIDATE_VARIABLES)
            cuts = [Cut(self, (*self.cut.fixed, v)) for v in self.cut.candidates(self, looked_at)]
            last = np.array([cut.fixed[-1] for cut in cuts])
            costs = np.array([(cut.pressure, cut.work) for cut in cuts]).T
            self.cut = cuts[int(self.score(self.cut, last, *costs).argmin())]

    def score(self, cut: Cut, variables: NDArray[np.int64], sizes: Floats, work: Floats) -> Floats:
        """Return the additional work of conditioning on each variable, relative to the memory saved; less is better.

        Args:
            cut: Tree with the variables chosen so far.
            variables: Variables to compare.
            sizes: ``Cut.pressure`` after conditioning on each of these variables.
            work: ``Cut.work`` after conditioning on each of these variables.
        """
        cost = np.log(np.maximum(work / max(cut.work, 1.0), 1e-3)) + _OVERHEAD * self.logs[variables]
        gain = -np.log(np.clip(sizes / cut.pressure, 1e-9, 1.0))
        return np.where(cost > 0, cost / np.maximum(gain, 1e-9), cost * gain)


class _Scopes:
    """Many scopes as flat arrays of pairs (scope, variable), with the numbers of cells of their tables."""

    def __init__(self, scopes: Scopes, logs: Floats) -> None:
        starts, self._variable = scopes
        self._count, self.pairs = len(starts) - 1, len(self._variable)
        self._owner = np.repeat(np.arange(self._count), np.diff(starts))
        self._cells = np.exp(np.minimum(self.by_owner(logs), _MAX_LOG))

    def without(self, is_fixed: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], Scopes]:
        """Remove fixed variables; return a mask of the scopes that still have variables, and these scopes."""
        is_free = ~is_fixed[self._variable]
        lengths = np.bincount(self._owner[is_free], minlength=self._count)
        is_kept = lengths > 0
        return is_kept, Scopes(np.append(0, np.cumsum(lengths[is_kept])), self._variable[is_free])

    def by_owner(self, weights: NDArray[Any]) -> Floats:
        """Return the sum of the weights of each scope's variables."""
        return np.bincount(self._owner, weights=weights[self._variable], minlength=self._count).astype(np.float64)

    def cells(self) -> Floats:
        """Return the number of cells of each table, capped at a number beyond any memory."""
        return self._cells

    def by_variable(self, weights: Floats, variables: int) -> Floats:
        """Return, for each variable, the sum of the weights of the scopes that contain it."""
        return np.bincount(self._variable, weights=weights[self._owner], minlength=variables).astype(np.float64)
