"""Invariants of every plan, recomputed plainly."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from hypothesis import given, settings

from elimina.planning.program import pack
from elimina.planning.record import HEADER, MAX_OPERANDS
from elimina.problem.preparation import allowed_ranges
from tests.planning.problems import planned
from tests.reference import brute

plans = settings(max_examples=150, deadline=None)


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@given(planned())
@plans
def test_no_two_live_tables_share_memory(case):
    plan = case.plan
    factors = [(f.offset, f.offset + f.span) for f in plan.factors]
    live = {-1 - i: place for i, place in enumerate(factors)}
    for i, place in live.items():
        assert place[1] <= plan.factor_cells
        assert not any(overlap(place, other) for j, other in live.items() if j != i)
    for number, step in enumerate(plan.steps):
        place = (step.out_offset, step.out_offset + step.out_span)
        assert place[1] <= plan.arena_cells
        assert not any(overlap(place, other) for other in live.values())
        if not plan.keep:
            for source in {operand.source for operand in step.operands if operand.source >= 0}:
                if plan.steps[source].readers[-1] == number:
                    del live[source]
        live[number] = place


@given(planned())
@plans
def test_every_table_is_read_once_after_it_was_written(case):
    plan = case.plan
    messages = [(o.source, number) for number, step in enumerate(plan.steps) for o in step.operands if o.source >= 0]
    assert sorted(messages) == [(n, reader) for n, step in enumerate(plan.steps) for reader in step.readers]
    assert all(source < reader for source, reader in messages)
    assert all(len(step.readers) <= 1 for step in plan.steps)
    assert [n for n, step in enumerate(plan.steps) if not step.readers] == [output.step for output in plan.outputs]
    assert all(plan.steps[output.step].out_cells == 1 and output.scope == () for output in plan.outputs)
    read = [o.factor for step in plan.steps for o in step.operands if o.source < 0]
    assert sorted(read) == list(range(len(plan.factors)))
    members = [m for factor in plan.factors for m in factor.members] + list(case.problem.constants)
    assert sorted(members) == list(range(len(case.problem.tables)))


@given(planned())
@plans
def test_strides_are_those_of_what_was_written(case):
    plan, sizes = case.plan, case.problem.model.sizes
    for step in plan.steps:
        assert step.sizes == tuple(sizes[v] for v in step.axes)
        assert step.domain == (1 if step.variable < 0 else sizes[step.variable])
        for o in step.operands:
            if o.source >= 0:
                source = plan.steps[o.source]
                axes, offset = dict(zip(source.axes, source.out_strides, strict=True)), source.out_offset
            else:
                factor = plan.factors[o.factor]
                axes, offset = dict(zip(factor.scope, factor.strides, strict=True)), factor.offset
            assert o.offset == offset
            assert set(axes) <= {*step.axes, step.variable}
            assert o.cells == math.prod(sizes[v] for v in axes)
            assert o.strides == tuple(axes.get(v, 0) for v in step.axes)
            assert o.domain_stride == axes.get(step.variable, 0)


@given(planned())
@plans
def test_cells_of_a_table_are_apart_and_within_its_span(case):
    tables = [(s.sizes, s.out_strides, s.out_span) for s in case.plan.steps]
    tables += [(f.sizes, f.strides, f.span) for f in case.plan.factors]
    for sizes, strides, span in tables:
        reach = 0
        for stride, size in sorted(zip(strides, sizes, strict=True)):
            assert stride > reach
            reach += stride * (size - 1)
        assert reach < span


@given(planned())
@plans
def test_classes_of_axes_and_operands(case):
    for step in case.plan.steps:
        lo = step.outer + step.mid
        assert 0 <= step.outer <= lo <= len(step.axes)
        contiguous = 1
        for size, stride in reversed(list(zip(step.sizes[lo:], step.out_strides[lo:], strict=True))):
            assert stride == contiguous
            contiguous *= size
        assert len(step.operands) <= MAX_OPERANDS
        a, b = step.tables_a, step.tables_a + step.tables_b
        assert not any(any(o.strides[lo:]) for o in step.operands[:a])
        assert not any(any(o.strides[step.outer : lo]) for o in step.operands[a:b])
        assert all(any(o.strides[lo:]) for o in step.operands[a:])


@given(planned())
@plans
def test_figures_against_symbolic_elimination(case):
    plan, sizes = case.plan, case.problem.model.sizes
    scopes = [set(group.scope) for group in case.problem.groups]
    buckets = {}
    for v in plan.order:
        union = set().union(*(scope for scope in scopes if v in scope)) - {v}
        scopes = [scope for scope in scopes if v not in scope] + [union]
        buckets[v] = union
    assert plan.width == max(map(len, buckets.values()), default=0)
    eliminations = {step.variable: step for step in plan.steps if step.variable >= 0}
    assert set(eliminations) == set(plan.order) == set(case.problem.free)
    for v, union in buckets.items():
        assert set(eliminations[v].axes) == union
        assert eliminations[v].work == sizes[v] * math.prod(sizes[u] for u in union)
    assert plan.work == sum(step.domain * math.prod(step.sizes) for step in plan.steps)
    tables = [math.prod(s.sizes) for s in plan.steps] + [math.prod(f.sizes) for f in plan.factors]
    assert plan.largest_table == max(tables, default=1)
    itemsize = np.dtype(plan.dtype).itemsize
    if plan.device == "cpu":
        assert plan.bytes == {"host": (plan.arena_cells + plan.factor_cells) * itemsize}
    else:
        assert plan.bytes == {"device": plan.arena_cells * itemsize, "host": plan.factor_cells * itemsize}
    height = max((step.out_offset + step.out_span for step in plan.steps), default=plan.factor_cells)
    assert max(height, plan.factor_cells) <= plan.arena_cells < max(height, plan.factor_cells) + 256


@given(planned())
@plans
def test_limit_of_memory(case):
    plan = case.plan
    assert plan._replace(memory_limit=plan.peak_bytes).fits
    assert not plan._replace(memory_limit=plan.peak_bytes - 1).fits


@given(planned())
@plans
def test_integers_have_the_narrowest_dtype_that_no_step_can_leave(case):
    plan = case.plan
    if plan.semiring != "min-sum":
        return
    operands = max((len(step.operands) for step in plan.steps), default=0)
    assert operands * plan.forbidden <= np.iinfo(plan.dtype).max
    if plan.dtype != "int16":
        narrower = {"int32": "int16", "int64": "int32"}[plan.dtype]
        assert max(operands, 2) * plan.forbidden > np.iinfo(narrower).max


@given(planned(max_cells=2000))
@plans
def test_no_optimum_reads_as_forbidden(case):
    plan, model = case.plan, case.problem.model
    if plan.semiring != "min-sum":
        return
    best = brute.optimum(model, case.problem.fixed)
    if best is not None:
        ranges = allowed_ranges(case.problem.tables, model.sense)
        least = sum(low if model.sense == "min-cost" else high for low, high in filter(None, ranges))
        assert abs(best - model.constant - least) < plan.forbidden


@given(planned())
@plans
def test_packed_words(case):
    plan = case.plan
    program = pack(plan, len(case.problem.model.variables))
    starts = [*program.starts.tolist(), len(program.words)]
    assert len(starts) == len(plan.steps) + 1
    for step, (start, end) in zip(plan.steps, pairwise(starts), strict=True):
        words = program.words[start:end].tolist()
        lo = step.outer + step.mid
        assert words[0] == len(words) == HEADER + 3 * len(step.axes) + len(step.operands) * (3 + len(step.axes))
        assert words[1:6] == [step.domain, step.variable, len(step.axes), step.outer, step.mid]
        cells = [math.prod(part) for part in (step.sizes[: step.outer], step.sizes[step.outer : lo], step.sizes[lo:])]
        assert words[6:9] == cells
        assert words[9:13] == [len(step.operands), step.tables_a, step.tables_b, step.out_offset]
        assert np.array(words[13:14]).view(np.float64)[0] == step.weight == 1
    assert program.work == max(plan.work, 1)
    assert program.outputs.tolist() == [
        [n, step.out_offset, step.out_span] for n, step in enumerate(plan.steps) if not step.readers
    ]
