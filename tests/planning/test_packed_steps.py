"""Records of steps: how they are unpacked, and what becomes of plans whose records are too large."""

from __future__ import annotations

import collections
import itertools
import json

import numpy as np
import pytest

import elimina
from elimina import Model, Table, Variable, errors
from elimina.methods.mini_buckets import pseudo_tree_tables
from elimina.planning import packed_steps, planner
from elimina.planning.machine import cpu_machine
from elimina.planning.mini_buckets import make_bounded_plan
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.step import Step
from elimina.planning.tree_statistics import plan_statistics
from elimina.problem.preparation import prepare


def clique(size: int) -> Model:
    """Return a model in which every two variables share a table, each a probability for every pair."""
    rng = np.random.default_rng(size)
    pairs = itertools.combinations(range(size), 2)
    tables = [Table(pair, rng.random((2, 2)) + 0.1) for pair in pairs]
    return Model([Variable(f"x{v}", 2) for v in range(size)], tables, sense="probability")


@pytest.mark.parametrize("task", ["pr", "mpe", "mar"])
@pytest.mark.parametrize("size", [8, 140])
def test_steps_are_the_same_however_they_are_unpacked(task, size) -> None:
    """Few are unpacked together and kept, many one by one where they are read."""
    steps = elimina.plan(clique(size), task, device="cpu").steps
    assert isinstance(steps, packed_steps.Steps)
    assert (steps[0] is steps[0]) == (size == 8)
    unpacked = tuple(steps)
    assert len(unpacked) == len(steps)
    assert tuple(steps[n] for n in range(-len(steps), len(steps))) == unpacked + unpacked
    assert steps[1:3] == unpacked[1:3]
    readers: dict[int, list[int]] = collections.defaultdict(list)
    for number, step in enumerate(unpacked):
        for source in {operand.source for operand in step.operands}:
            readers[source].append(number)
    for number, step in enumerate(unpacked):
        assert steps.scope_of(number) == (list(step.axes), list(step.out_strides))
        assert list(steps.reads_of(number)) == [(operand.factor, operand.source) for operand in step.operands]
        assert step.readers == tuple(readers[number])
    for first in range(len(steps) + 1):
        assert steps.eliminated_from(first) == [step.variable for step in unpacked[first:] if step.variable >= 0]
    with pytest.raises(IndexError):
        steps[len(steps)]


def test_a_search_reads_records_without_unpacking_them(monkeypatch) -> None:
    model = clique(9)
    problem = prepare(model, "mpe", {})
    plan = make_bounded_plan(Elimination(problem, tuple(range(9)), cpu_machine(1), 1 << 20, None), 3, False)
    unpacked = tuple(plan.steps)
    made = plan.steps
    assert isinstance(made, packed_steps.Steps)
    for number, step in enumerate(unpacked):
        assert made.scope_of(number) == (list(step.axes), list(step.out_strides))
        assert list(made.reads_of(number)) == [(operand.factor, operand.source) for operand in step.operands]
        assert made.variables[number] == step.variable
    depths: list[int] = []
    for step in unpacked:
        below = max((depths[operand.source] for operand in step.operands if operand.source >= 0), default=0)
        depths.append(below + len(step.operands))
    monkeypatch.setattr(Step, "of_record", None)
    fresh = packed_steps.Steps(made.words, made.starts, made.spans, made.factors)
    assert fresh.additions == max(depths)
    guide = pseudo_tree_tables(plan._replace(steps=fresh), model.sizes)
    assert len(guide.parents) == len(guide.starts) - 1 == 9
    assert len(guide.buckets.offsets) == sum(len(step.operands) for step in unpacked)


@pytest.mark.parametrize("task", ["pr", "mpe", "mar"])
def test_a_plan_whose_records_are_too_large_does_not_fit(task, monkeypatch) -> None:
    monkeypatch.setattr(planner, "MIN_RECORD_BYTES", 64)
    problem = prepare(clique(12), task, {})
    order = tuple(range(12))
    whole = make_plan(Elimination(problem, order, cpu_machine(1), 1 << 30))
    records = 8 * len(whole.steps.words)
    assert whole.fits
    assert len(whole.steps) > 0
    for memory in (records, 4 * records - 8):
        plan = make_plan(Elimination(problem, order, cpu_machine(1), memory))
        assert not plan.fits
        assert len(plan.steps) == 0
        assert not plan.is_recorded
        assert plan.bytes["host"] > memory
        assert (plan.width, plan.largest_table, plan.work) == (whole.width, whole.largest_table, whole.work)
        assert "steps too many to list" in str(plan)
        assert json.loads(plan.to_json())["steps"] is None
        assert plan_statistics(plan) == plan_statistics(whole)


def test_mini_buckets_are_small_enough_for_their_records(monkeypatch) -> None:
    monkeypatch.setattr(planner, "MIN_RECORD_BYTES", 64)
    problem = prepare(clique(30), "mpe", {})
    plan = make_bounded_plan(
        Elimination(problem, tuple(range(30)), cpu_machine(1), 1 << 19, None), "auto", matched=False
    )
    assert plan.fits
    assert plan.planning_bytes == 5 * (8 * len(plan.steps.words) - 64)
    assert plan.planning_bytes + (plan.arena_cells + plan.factor_cells) * plan.itemsize == plan.peak_bytes <= 1 << 19


def test_a_call_says_that_records_are_too_large(monkeypatch) -> None:
    monkeypatch.setattr(planner, "MIN_RECORD_BYTES", 64)
    with pytest.raises(errors.MemoryLimitError, match="the plan needs"):
        elimina.solve(clique(12), "mar", device="cpu", memory="4096B", options=elimina.Options(exact=True))


@pytest.mark.parametrize("task", ["mpe", "pr"])
def test_steps_on_tuples_may_have_more_cells_than_64_bits_count(task) -> None:
    count = 70
    equal = np.diag([0.25, 0.5])
    tables = [Table(pair, equal) for pair in itertools.combinations(range(count), 2)]
    model = Model([Variable(f"x{v}", 2) for v in range(count)], tables, sense="probability")
    options = elimina.Options(method="eliminate", tables="sparse", slices="never")
    plan = elimina.plan(model, task, device="cpu", options=options)
    assert plan.sparse is not None
    assert plan.largest_table > 2**63
    result = elimina.solve(model, task, device="cpu", options=options)
    log = result.value if task == "mpe" else result.log10_z * np.log(10)
    assert log == pytest.approx(len(tables) * np.log(0.5))


@pytest.mark.parametrize("is_deferred", [False, True])
def test_planning_counts_deferred_records_by_half(is_deferred, monkeypatch) -> None:
    monkeypatch.setattr(planner, "MIN_RECORD_BYTES", 64)
    monkeypatch.setattr(planner, "DEFERRED_WORDS", 64 if is_deferred else 1 << 30)
    problem = prepare(clique(12), "pr", {})
    order = tuple(range(12))
    plan = make_plan(Elimination(problem, order, cpu_machine(1), 1 << 30))
    words = packed_steps.Steps.packed(plan.steps).words
    assert plan.planning_bytes == 5 * ((4 if is_deferred else 8) * len(words) - 64)
    assert make_plan(Elimination(problem, order, cpu_machine(1), plan.planning_bytes)).is_recorded
    assert not make_plan(Elimination(problem, order, cpu_machine(1), plan.planning_bytes - 64)).is_recorded
