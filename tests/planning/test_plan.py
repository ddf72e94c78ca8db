"""Plans of known problems: the printed figures, the dtypes, stars with many leaves, hopeless widths, the tree."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina._core import SHARED_WORK, Arena
from elimina.errors import InputError, MemoryLimitError
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable
from elimina.planning import number_type, planner
from elimina.planning.machine import cpu_machine
from elimina.planning.planner import Elimination, kept_plan, make_plan
from elimina.planning.record import MAX_OPERANDS
from elimina.planning.tree import plan_tree, tree_of
from elimina.problem.preparation import prepare
from tests import calls
from tests.random_models import KINDS, models, with_constraints
from tests.reference import brute
from tests.reference.planner import Bucket
from tests.reference.tiles import row_axes, table_strides


def plan_of(model, task="mpe", order=None, memory=2**30, dtype=None, evidence=None):
    problem = prepare(model, task, evidence or {})
    return make_plan(Elimination(problem, problem.free if order is None else order, cpu_machine(2), memory, dtype))


def chain(length, size, high=9):
    table = np.add.outer(np.arange(size), 2 * np.arange(size)) % (high + 1)
    return Model.from_arrays([size] * length, [((i, i + 1), table) for i in range(length - 1)])


def test_the_printed_plan():
    *figures, estimate = str(plan_of(chain(5, 10), memory=2**20)).splitlines()
    assert figures == [
        "task:                 mpe (min-sum, int16)",
        "variables:            5 to eliminate, 4 tables, 5 steps",
        "induced width:        1",
        "largest table:        100 cells",
        "work:                 410 combinations, 710 operations",
        "peak memory, host:    1.8 KiB",
        "memory limit:         1.0 MiB on cpu: fits",
    ]
    assert estimate.startswith("estimated time:  ")


def test_large_counts_have_separators():
    assert "1,200 to eliminate, 1,199 tables, 1,200 steps\n" in str(plan_of(chain(1200, 2)))


def test_a_plan_that_does_not_fit_says_so():
    assert "memory limit:         1000 bytes on cpu: does not fit" in str(plan_of(chain(5, 10), memory=1000))


@pytest.mark.parametrize(
    ("high", "operands", "dtype"),
    [(100, 2, "int16"), (2**15, 2, "int32"), (2**29, 2, "int32"), (2**30, 2, "int64"), (2**61, 2, "int64")],
)
def test_the_narrowest_dtype(high, operands, dtype):
    model = Model.from_arrays([3, 3], [((0,), [0, 1, 2]), ((0, 1), [[0, high, FORBIDDEN]] * 3)])
    assert plan_of(model).dtype == dtype


def test_an_upper_bound_makes_the_dtype_narrower():
    factors = [((0, 1), [[0, 2**40], [7, FORBIDDEN]])]
    assert plan_of(Model.from_arrays([2, 2], factors)).dtype == "int64"
    bounded = plan_of(Model.from_arrays([2, 2], factors, upper_bound=1000))
    assert bounded.dtype == "int16"
    assert bounded.forbidden == 1000


@pytest.mark.parametrize(
    ("task", "sense", "dtype", "problem"),
    [
        ("mpe", "min-cost", "uint64", "does not fit integer costs; use one of int16, int32, int64"),
        ("mpe", "min-cost", "int16", "numbers of up to 40,001, more than int16 holds"),
        ("count", "min-cost", "int64", "does not fit counting; use uint64"),
        ("pr", "probability", "int32", "does not fit sums of probabilities; use float64 or float32"),
        ("mpe", "probability", "int32", "does not fit logarithms of probabilities; use float64 or float32"),
    ],
)
def test_dtypes_that_are_refused(task, sense, dtype, problem):
    model = Model.from_arrays([2], [((0,), [0, 40000])], sense=sense)
    with pytest.raises(InputError, match=problem):
        plan_of(model, task, dtype=dtype)


def test_costs_beyond_int64_are_refused_with_a_way_out():
    tables = [((i,), [0, 2**61]) for i in range(4)]
    with pytest.raises(
        InputError, match=r"more than int64 holds; scale the costs down, or \(task mpe\) use dtype float64"
    ):
        plan_of(Model.from_arrays([2] * 4, tables))
    assert plan_of(Model.from_arrays([2] * 4, tables), dtype="float64").semiring == "min-sum"


@pytest.mark.parametrize("leaves", [MAX_OPERANDS - 1, MAX_OPERANDS, MAX_OPERANDS + 1, 400])
def test_a_star_is_joined_in_parts(leaves):
    model = Model.from_arrays([3] * (leaves + 1), [((0, i), np.eye(3, dtype=int)) for i in range(1, leaves + 1)])
    plan = plan_of(model, order=[*range(1, leaves + 1), 0])
    assert max(len(step.operands) for step in plan.steps) <= MAX_OPERANDS
    joins = [step for step in plan.steps if step.variable < 0]
    assert bool(joins) == (leaves > MAX_OPERANDS)
    assert all(step.out_cells == 3 for step in joins)


def test_many_tables_of_one_scope_are_joined_without_a_search(monkeypatch):
    measured = []
    cells = Bucket.cells
    monkeypatch.setattr(Bucket, "cells", lambda bucket, scope: measured.append(1) or cells(bucket, scope))
    factors = [((0, i), np.ones((3, 3), dtype=int)) for i in range(1, 2001)]
    plan = plan_of(Model.from_arrays([3] * 2001, factors), order=[*range(1, 2001), 0])
    assert len(measured) < 10 * 2000
    assert plan.work == 2000 * 9 + 3 + 3 * sum(step.variable < 0 for step in plan.steps)
    assert sum(step.variable < 0 for step in plan.steps) <= 2000 // (MAX_OPERANDS - 1) + 1


def test_a_table_of_more_cells_than_any_machine_has_is_refused_at_once():
    count = 3000
    rows = np.random.default_rng(0).integers(0, 2, (2000, count))
    table = Table(range(count), np.ones(len(rows), int), sizes=[2] * count, rows=rows, default=0)
    model = Model([Variable(f"x{v}", 2) for v in range(count)], [table])
    with pytest.raises(MemoryLimitError, match=r"2,000 tuples of 3,000 variables, 'x0' among them, has 10\^903 cells"):
        plan_of(model)
    assert plan_of(model, evidence=dict.fromkeys(range(10, count), 0)).largest_table == 2**10


def test_hopeless_problems_are_planned_quickly():
    edges = [(i, j) for i in range(200) for j in range(i + 1, 200)]
    model = Model.from_arrays([4] * 200, [(edge, np.ones((4, 4), dtype=int)) for edge in edges])
    problem = prepare(model, "mpe", {})
    started = time.process_time()
    plan = make_plan(Elimination(problem, problem.free, cpu_machine(1), 2**40))
    assert time.process_time() - started < 5
    assert plan.width == 199
    assert plan.largest_table == 4**199
    assert not plan.fits
    assert "years" in str(plan)


def test_posteriors_that_no_machine_holds_are_planned_at_once():
    """All pairs of 120 variables: only the way to the root is planned."""
    pairs = [((i, j), np.ones((3, 3))) for j in range(120) for i in range(j)]
    model = Model.from_arrays([3] * 120, pairs, sense="probability")
    started = time.process_time()
    plan = plan_of(model, "mar")
    assert time.process_time() - started < 5
    assert not plan.fits
    assert math.isclose(plan.largest_table, 3**119, rel_tol=1e-12)
    assert all(not output.scope for output in plan.outputs)


def test_messages_of_a_sum_make_room_for_others():
    model = chain(200, 30)
    kept, reused = plan_of(model, "mpe"), plan_of(with_constraints(model), "count")
    assert kept.arena_cells - kept.factor_cells > 190 * 30
    assert reused.arena_cells - reused.factor_cells < 10 * 30


def test_groups_hold_each_table_once():
    factors = [((0, 1), np.ones((2, 2))), ((1, 0), np.ones((2, 2))), ((1,), [1.0, 2.0]), ((), 3.0), ((2,), [1.0, 1.0])]
    problem = prepare(Model.from_arrays([2, 2, 2], factors), "mpe", {})
    assert sorted(tuple(sorted(group.members)) for group in problem.groups) == [(0, 1, 2), (4,)]
    assert problem.constants == (3,)


def test_groups_are_kept_by_scopes_and_sizes():
    def groups_of(*sizes):
        scopes = [(0, 1), (0, 2), (0,)]
        factors = [(scope, np.ones([sizes[v] for v in scope])) for scope in scopes]
        return prepare(with_constraints(Model.from_arrays(list(sizes), factors)), "count", {}).groups

    first = groups_of(2, 3, 4)
    assert groups_of(2, 3, 4) is first
    assert [group.members for group in first] == [(0, 2), (1,)]
    assert [group.members for group in groups_of(2, 4, 3)] == [(0,), (1, 2)]
    for size in range(5, 105):
        groups_of(2, 2, size)
    assert groups_of(2, 3, 4) == first
    assert groups_of(2, 3, 4) is not first


def test_evidence_and_domains_of_one_value_are_fixed():
    problem = prepare(Model.from_arrays([1, 2, 2], [((0, 1, 2), np.ones((1, 2, 2)))]), "mpe", {1: 1})
    assert problem.fixed == {0: 0, 1: 1}
    assert problem.free == (2,)
    assert problem.tables[0].scope == (2,)


@pytest.mark.parametrize(("kind", "order"), [(np.int64, "C"), (np.float32, "F"), (np.float64, "C")])
def test_tables_lose_axes_that_they_do_not_depend_on(kind, order):
    some, one, all_of = (2, 1, 3), (1, 4, 1), (2, 4, 3)
    numbers = np.arange(6, dtype=kind).reshape(some)
    tables = [np.broadcast_to(numbers, all_of), np.broadcast_to(np.arange(4, dtype=kind).reshape(one), all_of)]
    given = [Table((0, 1, 2), np.array(table, order=order)) for table in tables]
    last = np.zeros(all_of, dtype=kind)
    last[-1, -1, -1] = 1
    given += [
        Table((2, 1, 0), given[0].values.T),
        Table((0, 1, 2), last),
        Table((0, 1, 2), np.ones(all_of, dtype=kind)),
    ]
    variables = [Variable(f"x{v}", size) for v, size in enumerate(all_of)]
    problem = prepare(Model(variables, given, sense="max-cost"), "mpe", {})
    assert [table.scope for table in problem.tables] == [(0, 2), (1,), (2, 0), (0, 1, 2), (0, 1, 2)]
    for values in itertools.product(*map(range, all_of)):
        assert [table.at(values) for table in problem.tables] == [table.at(values) for table in given]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_narrower_tables_leave_the_optimum_as_it_is(kind, data):
    model = data.draw(models(kind))
    number = len(model.variables)
    wide = [
        Table((*table.scope, number), np.repeat(table.dense()[..., None], 3, axis=-1)) if table.scope else table
        for table in model.factors
    ]
    result = calls.solve(
        Model(
            [*model.variables, Variable("idle", 3)],
            wide,
            sense=model.sense,
            constant=model.constant,
            upper_bound=model.upper_bound,
        ),
        device="cpu",
    )
    best = brute.optimum(model)
    assert (result.value is None) == (best is None)
    assert best is None or result.value == pytest.approx(best, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("task", "evidence", "problem"),
    [
        ("best", {}, "unknown task 'best'; it is one of mpe, pr, mar, mmap, count"),
        ("pr", {}, "this model has costs"),
        ("mpe", {0: 5}, "evidence sets variable 0 to 5"),
    ],
)
def test_what_prepare_refuses(task, evidence, problem):
    with pytest.raises(InputError, match=problem):
        prepare(Model.from_arrays([2], []), task, evidence)


@given(st.lists(st.sampled_from([1, 2, 3, 4, 7, 10, 11, 12, 64]), max_size=6), st.sampled_from([2, 4, 8]))
@settings(deadline=None)
def test_strides(sizes, itemsize):
    strides, span = table_strides(sizes, itemsize)
    rows = row_axes(sizes)
    length = int(np.prod(sizes[rows:]))
    unit = 64 if length >= 1024 else 16 if length >= 64 else itemsize
    assert int(np.prod(sizes)) <= span < int(np.prod(sizes)) + int(np.prod(sizes[:rows])) * max(unit // itemsize, 1)
    assert all(outer >= size * inner for outer, size, inner in zip(strides, sizes[1:], strides[1:], strict=False))
    assert strides[rows:] == tuple(int(np.prod(sizes[axis + 1 :])) for axis in range(rows, len(sizes)))
    assert all(stride * itemsize % unit == 0 for stride in strides[:rows])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3000)), max_size=60))
@settings(deadline=None)
def test_the_arena_never_hands_out_what_is_taken(calls):
    arena, taken = Arena(4), []
    for give_back, number in calls:
        if give_back and taken:
            offset, span = taken.pop(number % len(taken))
            arena.give_back(offset, span)
            continue
        offset = arena.allocate(number)
        assert offset % (64 if number >= 64 else 4) == 0
        assert offset + number <= arena.height
        assert all(offset + max(number, 1) <= o or o + max(s, 1) <= offset for o, s in taken)
        taken.append((offset, number))


@given(st.data())
@settings(deadline=None)
def test_postorder_finishes_each_subtree_first(data):
    count = data.draw(st.integers(0, 12))
    scopes = data.draw(st.lists(st.sets(st.integers(0, max(count - 1, 0)), min_size=1, max_size=3), max_size=12))
    order = data.draw(st.permutations(range(count)))
    planned = plan_tree([sorted(s) for s in scopes] if count else [], [1] * count, order)
    tree, post = tree_of(planned), planned.postorder.tolist()
    assert sorted(post) == list(range(count))
    place = {node: i for i, node in enumerate(post)}
    sizes = {}
    for node in post:
        children = tree.nodes[node].children
        assert all(tree.nodes[child].parent == node for child in children)
        sizes[node] = 1 + sum(sizes[child] for child in children)
        assert sizes[node] == 1 + max((place[node] - place[c] + sizes[c] - 1 for c in children), default=0)


def kept(model, memory=2**30, task="mpe", single=None, **options):
    """Return the kept plan of a model, which is equal to one that is made again."""
    problem = prepare(model, task, {})
    machine = cpu_machine(2)
    elimination = Elimination(problem, problem.free, machine, memory, **options)
    found = kept_plan(elimination, single=single)
    expected = make_plan(elimination, single=single)
    assert found == expected
    return found


def test_plans_of_the_same_structure_are_kept():
    first = kept(chain(5, 10))
    assert kept(chain(5, 10)).steps is first.steps
    assert kept(chain(5, 10), memory=2**31).steps is first.steps
    sums = Model.from_arrays([2, 3], [((0, 1), [[0.5, 1, 2], [3, 4, 5]])], sense="probability")
    others = Model.from_arrays([2, 3], [((0, 1), [[0, 0, 2], [0, 4, 5]])], sense="probability")
    assert kept(sums, task="pr").steps is kept(others, task="pr").steps
    fused = kept(sums, task="pr", single=kept(sums, task="pr"))
    assert kept(others, task="pr", single=kept(others, task="pr")).steps is fused.steps


def test_plans_of_other_problems_differ():
    first = kept(chain(5, 10))
    for plan in (
        kept(chain(6, 10)),
        kept(chain(5, 11)),
        kept(chain(5, 10, high=99)),  # another number stands for 'forbidden'
        kept(chain(5, 10), task="count"),
        kept(chain(5, 10), dtype="int64"),
        kept(chain(5, 10), memory=1000),
    ):
        assert plan.steps is not first.steps
    # Where memory is short, it may decide on the form.
    assert kept(chain(5, 10), memory=2 * first.peak_bytes).steps is not first.steps


def test_few_and_short_plans_are_kept(monkeypatch):
    monkeypatch.setattr(planner, "MAX_KEPT_PLANS", 2)
    first, second = kept(chain(5, 10)), kept(chain(6, 10))
    assert kept(chain(5, 10)).steps is first.steps
    kept(chain(7, 10))
    assert kept(chain(5, 10)).steps is first.steps
    assert kept(chain(6, 10)).steps is not second.steps
    monkeypatch.setattr(planner, "MAX_KEPT_PLAN_WORDS", 10)
    assert kept(chain(8, 10)).steps is not kept(chain(8, 10)).steps


def test_a_solution_that_narrows_the_numbers_is_of_its_values_alone(monkeypatch):
    """A model with other values may have none as good."""
    monkeypatch.setattr(planner, "MIN_INCUMBENT_SECONDS", -1)
    table = 10_000 * np.add.outer(np.arange(10), 2 * np.arange(10))
    model = Model.from_arrays([10] * 5, [((i, i + 1), table) for i in range(4)])
    assert kept(model).forbidden < number_type.cost_bound(prepare(model, "mpe", {}))
    assert kept(model).steps is not kept(model).steps


@pytest.mark.parametrize(("size", "shared"), [(40, False), (120, True)])
def test_threads_shorten_large_steps_only(size, shared):
    """Steps of fewer combinations run on one thread: estimates said that they took a share of its time."""
    tables = [(pair, np.zeros((size, size), np.int64)) for pair in itertools.combinations(range(3), 2)]
    model = Model.from_arrays([size] * 3, tables)
    problem = prepare(model, "mpe", {})
    alone, several = (make_plan(Elimination(problem, problem.free, cpu_machine(n), 2**40)) for n in (1, 8))
    assert (size**3 >= SHARED_WORK) == shared
    assert several.seconds < 0.3 * alone.seconds if shared else several.seconds == alone.seconds
