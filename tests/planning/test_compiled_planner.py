"""The compiled planner makes the same trees, steps and places as the slow, plain one."""

from __future__ import annotations

import math
import pickle
import random
import re
from pathlib import Path

import numpy as np
import pytest

import elimina
from elimina._core import plan_steps, row_bounds
from elimina.planning import record
from elimina.planning.machine import cpu_machine
from elimina.planning.packed_steps import DeferredSteps, Steps
from elimina.planning.program import place_steps
from elimina.planning.tree import node_weights, plan_tree, tree_of
from elimina.problem.unpacked import rows_of
from tests import calls
from tests.reference.passes import Bounds, Passes
from tests.reference.planner import build_steps, place
from tests.reference.tree import bucket_tree, central_order

MACHINE = cpu_machine(2)


class Case:
    """A random problem: sizes, scopes, an order with a few kept variables."""

    def __init__(self, seed: int, *, may_keep: bool = True) -> None:
        draw = self.draw = random.Random(seed)
        count = draw.randint(1, 24)
        large = draw.choice([2, 3, 5, 5, 20, 100])
        self.sizes = [draw.randint(2, large) for _ in range(count)]
        most = draw.choice([2, 3, 5, 8])
        self.scopes = [
            tuple(draw.sample(range(count), min(count, draw.randint(1, most))))
            for _ in range(draw.randint(0, 3 * count))
        ]
        if count > 3 and draw.random() < 0.2:
            self.scopes += [(0,)] * 40 + [(1, 2)] * 30
        self.kept = tuple(draw.sample(range(count), 2)) if may_keep and count > 4 and draw.random() < 0.3 else ()
        self.order = [v for v in range(count) if v not in self.kept]
        draw.shuffle(self.order)
        position = {v: i for i, v in enumerate((*self.order, *self.kept))}
        self.sorted = [tuple(sorted(scope, key=position.__getitem__)) for scope in self.scopes]
        self.tables = draw.choice([16, 16, 3, 5])

    def trees(self, ibound=None):
        tree = bucket_tree(self.sorted, self.order, self.kept, ibound)
        return tree, plan_tree(self.scopes, self.sizes, self.order, self.kept, ibound)

    def is_hopeless(self, tree):
        return any(math.prod(self.sizes[v] for v in node.separator) > 2**40 for node in tree.nodes)


def check(case, planned, steps, outputs, lasting):
    """Compare steps, their layout in a random type, and the figures."""
    assert planned.most_tables == max((len(step.reads) for step in steps), default=0)
    assert planned.outputs.reshape(-1, 2).tolist() == [list(output) for output in outputs]
    itemsize, kept_from = case.draw.choice([2, 4, 8]), case.draw.choice([0, case.draw.randint(0, len(steps)), 1 << 62])
    last_reader = {read.source: number for number, step in enumerate(steps) for read in step.reads}
    stays = {number for number in range(len(steps)) if number in lasting or last_reader.get(number, -1) >= kept_from}
    members = [(number,) for number in range(len(case.scopes))]
    factors, expected, factor_cells, cells = place(case.sizes, case.sorted, members, steps, itemsize, stays)
    placed = place_steps(planned, itemsize, kept_from, MACHINE)
    found = Steps.of(placed)
    assert list(found) == list(expected)
    packed = Steps.packed(tuple(expected))
    assert found == packed
    assert np.array_equal(found.starts, packed.starts)
    assert (placed.factor_cells, placed.arena_cells) == (factor_cells, cells)
    assert placed.offsets.tolist() == [factor.offset for factor in factors]
    assert placed.spans.tolist() == [factor.span for factor in factors]
    assert placed.strides.tolist() == [stride for factor in factors for stride in factor.strides]
    assert placed.work == sum(step.work for step in expected)
    assert placed.operations == sum(step.work * max(len(step.operands), 1) for step in expected)
    assert placed.largest == max([1, *(step.out_cells for step in expected), *(math.prod(f.sizes) for f in factors)])
    assert math.isclose(placed.seconds, MACHINE.seconds(expected, itemsize, 0), abs_tol=1e-15)
    multiplying = MACHINE.multiplying()
    seconds = place_steps(planned, itemsize, kept_from, multiplying).seconds
    assert math.isclose(seconds, multiplying.seconds(expected, itemsize, 0), abs_tol=1e-15)
    deferred = Steps.of(place_steps(planned, itemsize, kept_from, MACHINE, deferred_words=0))
    assert isinstance(deferred, DeferredSteps)
    assert deferred == packed
    assert list(deferred) == list(expected)
    assert np.array_equal(deferred.starts, packed.starts)
    assert np.array_equal(deferred.factors, packed.factors)
    assert (deferred.record_words, deferred.most_tables) == (packed.record_words, packed.most_tables)
    with_axes = np.array([number for number, step in enumerate(expected) if step.axes], dtype=np.int64)
    assert np.array_equal(deferred.first_sizes_of(with_axes), packed.first_sizes_of(with_axes))
    assert np.array_equal(deferred.offsets_of(with_axes), packed.offsets_of(with_axes))
    assert pickle.loads(pickle.dumps(deferred)) == packed


@pytest.mark.parametrize("seed", range(60))
def test_trees(seed):
    for ibound in (None, 1, 3):
        case = Case(seed)
        tree, planned = case.trees(ibound)
        assert rows_of(planned.scopes) == case.sorted
        assert tree_of(planned) == tree
        assert planned.width == tree.width
        if ibound is None:
            assert tuple(planned.central_order()) == central_order(tree, case.sizes)


@pytest.mark.parametrize("seed", range(60))
def test_upward_pass(seed):
    case = Case(seed, may_keep=False)
    tree, planned = case.trees()
    if case.is_hopeless(tree):
        return
    for passes, nodes in (("lasting", range(len(tree.nodes))), ("postorder", planned.postorder.tolist())):
        steps, written = build_steps(tree, nodes, case.sorted, case.sizes, case.tables)
        read = {read.source for step in steps for read in step.reads}
        outputs = [(number, -1) for number in range(len(steps)) if number not in read]
        found = plan_steps(planned, passes, case.tables, False, np.zeros(0), np.zeros(0, np.int32))
        check(case, found, steps, outputs, set(written.values()) if passes == "lasting" else set())


@pytest.mark.parametrize("seed", range(60))
def test_mini_buckets(seed):
    case = Case(seed, may_keep=False)
    tree, planned = case.trees(case.draw.randint(1, 4))
    matched = case.draw.random() < 0.7
    weights = node_weights(tree, "upper", [False] * len(case.scopes)) if case.draw.random() < 0.5 else None
    steps, written = build_steps(tree, range(len(tree.nodes)), case.sorted, case.sizes, case.tables, matched, weights)
    read = {read.source for step in steps for read in step.reads}
    outputs = [(number, -1) for number in range(len(steps)) if number not in read]
    own = np.array(weights or [], dtype=np.float64)
    found = plan_steps(planned, "lasting", case.tables, matched, own, np.zeros(0, np.int32))
    check(case, found, steps, outputs, set(written.values()))


def check_both_passes(case):
    tree, planned = case.trees()
    if case.is_hopeless(tree):
        return
    wanted = [v for v in case.order if case.draw.random() < 0.6]
    families = {tuple(v for v in scope if v not in case.kept and case.draw.random() < 0.8) for scope in case.sorted}
    families = sorted(family for family in families if len(family) > 1 and case.draw.random() < 0.7)
    passes = Passes(tree, case.sorted, case.sizes, case.kept, case.tables)
    marginals = passes.outward(wanted, families)
    outputs = [(message.source, -1) for message in passes.roots()] + [(marginals[v], v) for v in wanted]
    outputs += [(marginals[family], family[0]) for family in families]
    own = np.array(wanted, np.int32)
    found = plan_steps(planned, "both", case.tables, False, np.zeros(0), own, families=families)
    check(case, found, passes.steps, outputs, set())


@pytest.mark.parametrize("seed", range(60))
def test_both_passes(seed):
    check_both_passes(Case(seed))


@pytest.mark.parametrize("seed", range(4))
def test_both_passes_over_wide_scopes(seed):
    """Sets of variables take several words."""
    case = Case(seed, may_keep=False)
    case.sizes = [2 if v < 10 else 1 for v in range(150)]
    case.scopes = [tuple(case.draw.sample(range(150), 40)) for _ in range(12)]
    case.order = case.draw.sample(range(150), 150)
    position = {v: i for i, v in enumerate(case.order)}
    case.kept, case.sorted = (), [tuple(sorted(scope, key=position.__getitem__)) for scope in case.scopes]
    assert case.trees()[0].width > 64
    check_both_passes(case)


@pytest.mark.parametrize("seed", range(6))
def test_many_gaps_in_the_arena(seed):
    draw = random.Random(seed)
    count = 1500
    case = Case(seed)
    case.sizes = [draw.randint(2, 9) for _ in range(count)]
    near = draw.choice([3, 50, count])
    parents = [draw.randrange(max(0, v - near), v) for v in range(1, count)]
    case.scopes = case.sorted = [(v, parent) for v, parent in enumerate(parents, 1)]
    case.order, case.kept = list(reversed(range(count))), ()
    tree, planned = case.trees()
    passes = Passes(tree, case.sorted, case.sizes, (), 16)
    marginals = passes.outward(case.order)
    outputs = [(message.source, -1) for message in passes.roots()] + [(marginals[v], v) for v in case.order]
    found = plan_steps(planned, "both", 16, False, np.zeros(0), np.array(case.order, np.int32))
    check(case, found, passes.steps, outputs, set())


@pytest.mark.parametrize("seed", range(40))
def test_joint_distributions(seed):
    case = Case(seed)
    tree, planned = case.trees()
    if case.is_hopeless(tree):
        return
    passes = Passes(tree, case.sorted, case.sizes, case.kept, case.tables)
    outputs = [(passes.join_roots(), -1)]
    found = plan_steps(planned, "joint", case.tables, False, np.zeros(0), np.zeros(0, np.int32))
    check(case, found, passes.steps, outputs, set())


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_rows(seed):
    case = Case(seed, may_keep=False)
    tree, planned = case.trees()
    cells = case.draw.choice([8, 100, 4096])
    expected = Bounds(tree, case.sorted, case.sizes, case.tables, cells)
    bounds = row_bounds(planned, case.tables, cells)
    found, up, down = bounds.steps, bounds.upward, bounds.downward

    def named(reads):
        return tuple(read.factor if read.source < 0 else -1 - read.source for read in reads)

    assert rows_of(up) == [named(reads) for reads in expected.up]
    assert rows_of(down) == [named(expected.down.get(number, ())) for number in range(len(tree.nodes))]
    steps = place(case.sizes, case.sorted, [()] * len(case.scopes), expected.steps, 4, range(len(expected.steps)))[1]
    assert list(Steps.of(place_steps(found, 4, True, MACHINE))) == list(steps)


def test_steps_in_another_sequence():
    tree = plan_tree([(0, 1), (1, 2), (3,)], [2, 3, 4, 5], [0, 1, 2, 3])
    steps = plan_steps(tree, "postorder", 16, False, np.zeros(0), np.zeros(0, np.int32))
    factors, work = steps.tables.factors.tolist(), steps.tables.combinations.tolist()
    first = next(n for n, amount in enumerate(work) if amount == 5)
    sequence = [first, *(n for n in range(len(work)) if n != first)]
    moved = steps.moved(np.array(sequence, dtype=np.int32))
    assert moved.tables.combinations.tolist() == [work[n] for n in sequence]
    laid_out = Steps.of(place_steps(moved, 8, True, MACHINE))
    assert all(source < number for number, step in enumerate(laid_out) for source in (o.source for o in step.operands))
    assert {step.variable for step in laid_out} == {0, 1, 2, 3}
    assert sorted(factors) == sorted(moved.tables.factors.tolist())


def test_plans_that_no_machine_holds_have_figures():
    """A clique of 300 variables: its tables have more cells than 64 bits count."""
    pairs = [((i, j), np.ones((9, 9))) for j in range(300) for i in range(j)]
    plan = calls.plan(elimina.Model.from_arrays([9] * 300, pairs, sense="probability"), "pr", slices="never")
    assert plan.width == 299
    assert math.isclose(plan.largest_table, 9**299, rel_tol=1e-9)
    assert not plan.fits
    assert plan.peak_bytes > 9**299


def test_the_record_is_that_of_the_header():
    """``program.hpp`` and ``record.py`` name the same words in the same places."""
    header = (Path(elimina.__file__).parent / "include/elimina/program.hpp").read_text()

    def names(enum):
        body = re.search(rf"enum {enum} : int {{(.*?)}};", header, re.DOTALL).group(1)
        return re.findall(r"\bk(\w+)\b(?=[,\s}]|$)", re.sub(r"//.*", "", body))

    def place_of(name):
        return getattr(record, re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper())

    words = names("StepWord")
    assert [place_of(name) for name in words] == list(range(15))
    assert words[-1] == "Header"
    axis = {"Size": record.AXIS_SIZE, "OutStride": record.AXIS_STRIDE, "AxisVariable": record.AXIS_VARIABLE}
    assert [axis.get(name, record.AXIS_WORDS) for name in names("AxisWord")] == list(range(4))
    table = [record.TABLE_OFFSET, record.TABLE_DOMAIN_STRIDE, record.TABLE_SOURCE, record.TABLE_STRIDES]
    assert names("TableWord") == ["Offset", "DomainStride", "Source", "Strides"]
    assert table == list(range(4))
    assert names("OtherWord") == ["OtherVariable", "OtherValues", "OtherWords"]
    assert record.OTHER_WORDS == 2


@pytest.mark.parametrize(
    ("scopes", "order", "kept"), [([(0, 1)], (0, 1, 5), ()), ([(0, 7)], (0, 1), ()), ([(0, 1)], (0,), (-1,))]
)
def test_variables_without_a_size_are_refused(scopes, order, kept):
    with pytest.raises(IndexError, match="no variable"):
        plan_tree(scopes, [2, 2], order, kept)
