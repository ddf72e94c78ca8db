"""Moment-matching steps on the CPU: exact to the cell, cancelling, within the range that is proved; bounds stay
bounds.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.backends.cpu import CpuBackend
from elimina.backends.protocols import run_once
from elimina.errors import InternalError
from elimina.planning.packed_steps import Steps
from elimina.planning.plan import MiniBuckets, Plan
from elimina.planning.program import pack
from elimina.planning.slice_form import Slicing
from elimina.planning.step import MATCHING, Output
from elimina.planning.stream import Streamed
from elimina.problem.semirings import SEMIRINGS
from tests.reference import program as reference
from tests.reference.planner import Bucket, Read, place
from tests.reference.random_programs import Builder, one_levelling, planned_levelling

KINDS = [(name, dtype) for name, ring in SEMIRINGS.items() if ring.is_matched for dtype in ring.dtypes]


def tables(builder, factors):
    """The factors over the builder's variables in order."""
    found = []
    for step in builder.steps:
        if step.variable == MATCHING:
            break
        operand = step.operands[0]
        view = reference._view(factors, operand.offset, operand.strides, step.sizes)
        found.append(view.transpose(np.argsort(step.axes)))
    return found


def outputs(builder, program, run):
    """Return the results of moment matching, with axes as above."""
    found = []
    for number, at, _ in program.outputs.tolist():
        step = builder.steps[number]
        view = reference._view(run.zone, at - program.zone[0], step.out_strides, step.sizes)
        found.append(view.transpose(np.argsort(step.axes)))
    return found


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
@given(
    sizes=st.lists(st.sampled_from([1, 2, 3, 5, 8, 17, 40]), min_size=1, max_size=5).filter(
        lambda s: np.prod(s) < 9000
    ),
    count=st.integers(2, 16),
    same_order=st.booleans(),
    padding=st.sampled_from([0.0, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None)
def test_each_cell_is_exact(semiring, dtype, sizes, count, same_order, padding, seed):
    parameter = {"i": 1500, "f": np.inf if semiring == "min-sum" else -np.inf}[np.dtype(dtype).kind]
    builder, _ = one_levelling(
        np.random.default_rng(seed), semiring, dtype, sizes, count,
        same_order=same_order, padding=padding, parameter=parameter,
    )  # fmt: skip
    program, factors = builder.program()
    run = run_once(CpuBackend(1), program, factors)
    reference.assert_same(program, run, reference.run(program, factors))
    marginals, levels = tables(builder, factors), outputs(builder, program, run)
    assert len(levels) == count
    for cell in np.random.default_rng(seed).integers(0, sizes, (20, len(sizes))):
        values = [marginal[tuple(cell)] for marginal in marginals]
        found = [level[tuple(cell)] for level in levels]
        if any(value == parameter for value in values):
            assert found == [0] * count
        elif program.dtype.kind == "i":
            total = sum(map(int, values))
            expected = [(total + k) // count - int(value) for k, value in enumerate(values)]
            assert found == expected
            assert sum(map(int, found)) == 0
            assert max(int(v) + f for v, f in zip(values, found, strict=True)) <= -(-total // count)
        elif semiring == "log-sum-exp":
            parts = [step.weight for step in builder.steps if step.variable == MATCHING]
            expected = [part * sum(map(float, values)) - float(v) for part, v in zip(parts, values, strict=True)]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4 if dtype == "float32" else 1e-13)
        else:
            mean = sum(map(Fraction, map(float, values))) / count
            expected = [float(mean - Fraction(float(value))) for value in values]
            np.testing.assert_allclose(found, expected, atol=1e-5 if dtype == "float32" else 1e-14)


@pytest.mark.parametrize("count", [2, 3, 7])
@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_large_scopes_on_two_threads(semiring, dtype, count):
    scopes = [((2000, 210), 0.0), ((45, 9000), 1.0), ((600, 33, 20), 1.0)]
    # The plain implementation takes seconds for many tables.
    for sizes, padding in scopes if count < 7 else scopes[2:]:
        program, factors = one_levelling(
            np.random.default_rng(count), semiring, dtype, sizes, count, padding=padding
        )[0].program()  # fmt: skip
        one, two = (run_once(CpuBackend(threads), program, factors) for threads in (1, 2))
        np.testing.assert_array_equal(reference.cells(program, one), reference.cells(program, two))
        reference.assert_same(program, two, reference.run(program, factors))


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_padded_rows(semiring, dtype):
    for sizes in [(9,), (33, 65), (400, 71), (300, 3, 43), (7, 2, 3001)]:
        program, factors = planned_levelling(np.random.default_rng(6), semiring, dtype, sizes, 3)
        run = run_once(CpuBackend(2), program, factors)
        reference.assert_same(program, run, reference.run(program, factors))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_overflowing_means_change_nothing(dtype):
    """A mean that is beyond a float would be an infinite cost."""
    program, factors = one_levelling(
        np.random.default_rng(0), "min-sum", dtype, (3, 5), 3, parameter=np.inf, padding=0.0
    )[0].program()
    factors[:] = np.finfo(dtype).max * 0.9
    assert reference.cells(program, run_once(CpuBackend(1), program, factors)).tolist() == [0] * 45


def chain(dtype, parameter, count, length, seed):
    """Buckets in mini-buckets one after another; every second one's messages are forbidden here and there."""
    rng = np.random.default_rng(seed)
    builder = Builder(rng, "min-sum", dtype, parameter=parameter)
    variables = [builder.variable(3) for _ in range(length + 2)]
    sent = []
    for n in range(length):
        own, *rest = variables[n : n + 3]
        parts = [[builder.step(-1, scope, [scope], [])] for scope in [[own, rest[0]], [own, *rest], [own, rest[1]]] * 2]
        parts = parts[:count]
        for at, message in enumerate(sent):
            parts[at % count].append(message)
        sent = builder.minibuckets(own, parts, [own])
    top = builder.step(-1, variables[-2:], [], sent)
    builder.step(variables[-1], [], [], [builder.step(variables[-2], variables[-1:], [], [top])])
    return builder.program()


@pytest.mark.parametrize(("dtype", "count"), [("int16", 2), ("int16", 5), ("int32", 3), ("int32", 6)])
def test_integers_within_the_proved_range_never_wrap(dtype, count):
    """Costs at the limit of the range proof agree with those in wider integers."""
    for seed in range(20):
        most = 8
        edge = int(np.iinfo(dtype).max) // most
        program, factors = chain(dtype, edge, count, 12, seed)
        assert max(program.words[start + 9] for start in program.starts) <= most
        rng = np.random.default_rng(seed)
        factors[:] = rng.choice([0, 1, edge - 2, edge - 1, edge], len(factors))
        found = run_once(CpuBackend(1), program, factors)
        wide = program._replace(dtype=np.dtype(np.int64))
        expected = reference.cells(wide, reference.run(wide, factors.astype(np.int64)))
        np.testing.assert_array_equal(reference.cells(program, found), expected)
        assert 0 <= expected.min() <= expected.max() <= edge


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_long_chains(semiring, dtype):
    program, factors = chain(dtype, 1500, 4, 60, 1)
    if semiring != "min-sum":
        program, factors = program._replace(semiring=semiring, parameter=-np.inf), -factors
    run = run_once(CpuBackend(1), program, factors)
    reference.assert_same(program, run, reference.run(program, factors))


def minibucket_plan(sizes, scopes, parts, shared, *, matched):
    """Eliminate variable 0 of a bucket in mini-buckets, by the planner's own parts; one output for each of them."""
    position = {v: v for v in range(len(sizes))}
    steps, messages = [], []
    reads = [[Read(f, -1, scopes[f]) for f in part] for part in parts]
    extra: list[list[Read]] = [[] for _ in parts]
    if matched:
        marginals = []
        for part in reads:
            left = [*part]
            for v in sorted({v for read in part for v in read.scope} - set(shared), reverse=True):
                axes = tuple(sorted({u for read in left for u in read.scope} - {v}))
                left = [Bucket(v, axes, sizes, position, steps).eliminate(left, 16)]
            if len(left) > 1:
                left = [Bucket(-1, shared, sizes, position, steps).eliminate(left, 16)]
            marginals += left
        levels = Bucket(0, shared, sizes, position, steps).level(marginals, [1 / len(marginals)] * len(marginals))
        extra = [[level] for level in levels]
    for part, more in zip(reads, extra, strict=True):
        axes = tuple(sorted({v for read in part for v in read.scope} - {0}))
        messages.append(Bucket(0, axes, sizes, position, steps).eliminate([*part, *more], 16).source)
    members = [(f,) for f in range(len(scopes))]
    factors, placed, factor_cells, cells = place(sizes, scopes, members, steps, 4, range(len(steps)))
    return Plan(
        task="mpe", semiring="min-sum", dtype="int32", forbidden=10**6, order=(0,), kept=(), width=2, factors=factors,
        steps=placed, outputs=tuple(Output(n, placed[n].axes) for n in messages), factor_cells=factor_cells,
        arena_cells=cells, keep=True, decode=False, device="cpu", memory_limit=2**40, bytes={}, seconds=0.0,
        largest_table=max(step.out_cells for step in placed), work=sum(step.work for step in placed),
        operations=sum(step.work * len(step.operands) for step in placed),
        minibuckets=MiniBuckets(len(sizes), 1, len(parts), matched),
    )  # fmt: skip


def messages_of(plan, costs):
    """The messages as functions of all variables but the first."""
    program = pack(plan, len(plan.order))
    arena = np.zeros(plan.factor_cells, np.int32)
    for layout in plan.factors:
        reference._view(arena, layout.offset, layout.strides, layout.sizes)[...] = costs[layout.members[0]]
    run = run_once(CpuBackend(1), program, arena)
    reference.assert_same(program, run, reference.run(program, arena))
    found = []
    for output in plan.outputs:
        step = plan.steps[output.step]
        at = step.out_offset - program.zone[0]
        order = np.argsort(step.axes)
        view = reference._view(run.zone, at, step.out_strides, step.sizes).transpose(order)
        found.append((tuple(step.axes[i] for i in order), view))
    return found


@given(seed=st.integers(0, 2**32 - 1), forbidden=st.sampled_from([0.0, 0.2]))
@settings(max_examples=60, deadline=None)
def test_messages_of_levelled_mini_buckets_bound_the_bucket(seed, forbidden):
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in rng.integers(2, 5, 5)]
    scopes = [(0, 1, 2), (0, 1, 3), (0, 1, 4), (0, 2), (0, 1)]
    parts, shared = [(0, 3), (1,), (2, 4)], (0, 1)
    costs = [rng.integers(0, 50, [sizes[v] for v in scope]) for scope in scopes]
    costs = [np.where(rng.random(c.shape) < forbidden, 10**6, c) for c in costs]
    exact = np.full(sizes[1:], 10**6)
    for values in itertools.product(*map(range, sizes)):
        total = sum(int(c[tuple(values[v] for v in scope)]) for c, scope in zip(costs, scopes, strict=True))
        exact[values[1:]] = min(exact[values[1:]], total)
    bounds = []
    for matched in (False, True):
        total = np.zeros(sizes[1:], np.int64)
        for axes, values in messages_of(minibucket_plan(sizes, scopes, parts, shared, matched=matched), costs):
            assert values.min() >= 0
            total += values.reshape([sizes[v] if v in axes else 1 for v in range(1, 5)])
        assert (np.minimum(total, 10**6) <= exact).all()
        bounds.append(int(total.min()))
    if not forbidden:
        # The mini-buckets have only the matched variables in common.
        assert bounds[0] <= bounds[1] == exact.min()


def test_the_planner_places_levellings():
    plan = minibucket_plan([3, 4, 5, 6, 2], [(0, 1, 2), (0, 1, 3), (0, 1, 4)], [(0,), (1,), (2,)], (0, 1), matched=True)
    steps = [step for step in plan.steps if step.variable == MATCHING]
    assert [step.tables_a for step in steps] == [0, 1, 2]
    assert len({tuple(o.source for o in step.operands) for step in steps}) == 1
    packed = Steps.packed(steps)
    words = packed.words[packed.starts[1] :].tolist()
    assert words[:12] == [words[0], 1, -2, 2, 2, 0, 12, 1, 1, 3, 1, 0]


PLAN = minibucket_plan([3, 4, 5], [(0, 1), (0, 2)], [(0,), (1,)], (0,), matched=True)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"decode": True}, "decoding"),
        ({"semiring": "sum-product"}, "the semiring sum-product"),
        ({"form": Streamed()}, "tiles"),
        ({"form": Streamed(scratch=".")}, "tiles"),
        ({"form": Slicing(variables=(0,), names=("v0",), sizes=(3,), levels=(0, 1), unsliced=PLAN)}, "slices"),
        ({"sparse": ()}, "rows"),
    ],
)
def test_what_knows_nothing_of_levellings_is_refused(changes, what):
    with pytest.raises(InternalError, match=f"cannot run on {what}"):
        pack(PLAN._replace(**changes), 3)
    plain = minibucket_plan([3, 4, 5], [(0, 1), (0, 2)], [(0,), (1,)], (0,), matched=False)
    assert len(pack(plain._replace(**{k: v for k, v in changes.items() if k != "sparse"}), 3).starts) == 2
