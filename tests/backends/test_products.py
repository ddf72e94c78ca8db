"""Steps in sum-product that are matrix products, on every backend."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina.backends.cpu import CpuBackend
from elimina.backends.cuda import matrix_launch
from elimina.backends.cuda.translation import lay_out
from elimina.backends.protocols import run_once
from elimina.planning.machine import cpu_machine
from elimina.planning.matrix_products import WORK, product_of
from elimina.running.scales import Scales
from tests.reference import program as reference
from tests.reference.products import by_library, product_program, steps_of

SIZES = st.lists(st.sampled_from([1, 2, 3, 5, 8, 17, 40]), min_size=1, max_size=2)
SHAPES = st.fixed_dictionaries(
    {
        "batch": st.lists(st.sampled_from([1, 2, 3]), max_size=2),
        "rows": SIZES,
        "columns": SIZES,
        "depth": st.sampled_from([1, 4, 7, 33, 200]),
        "messages": st.tuples(st.booleans(), st.booleans()),
    }
).filter(lambda shape: work_of(shape) <= MOST_WORK)
MOST_WORK = 1 << 21
"""Combinations of a random product: the oracle lists them all, and each kind of shape has smaller ones."""


def work_of(shape):
    return math.prod([*shape["batch"], *shape["rows"], *shape["columns"], shape["depth"]])


def values_of(program, seed, scales=(1.0, 1.0)):
    """Cells of both tables, a tenth of them 0."""
    draw = np.random.default_rng(seed)
    values = draw.random(program.factor_cells) * (draw.random(program.factor_cells) > 0.1)
    half = int(program.factor_cells // 2)
    values[:half] *= scales[0]
    values[half:] *= scales[1]
    return values.astype(program.dtype)


@given(
    seed=st.integers(0, 2**32), dtype=st.sampled_from(["float64", "float32"]), shape=SHAPES, threads=st.integers(1, 2)
)
@settings(max_examples=60, deadline=None)
def test_any_product_on_the_cpu(seed, dtype, shape, threads):
    program = product_program(random.Random(seed), dtype, **shape)
    factors = values_of(program, seed)
    reference.assert_same(program, run_once(CpuBackend(threads), program, factors), reference.run(program, factors))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("rows", "columns", "depth"), [(130, 97, 401), (8, 1000, 50), (1000, 9, 50), (800, 400, 5)])
def test_large_product_on_the_cpu_with_any_number_of_threads(dtype, rows, columns, depth):
    shape = {"batch": (2,), "rows": (rows,), "columns": (columns,), "depth": depth, "messages": (True, False)}
    program = product_program(random.Random(rows), dtype, **shape)
    assert product_of(steps_of(program)[-1]) == (2, rows, columns, depth)
    factors = values_of(program, 1)
    runs = [run_once(CpuBackend(threads), program, factors) for threads in (1, 2, 3)]
    reference.assert_same(program, runs[0], reference.run(program, factors))
    for run in runs[1:]:
        np.testing.assert_array_equal(run.zone, runs[0].zone)
        np.testing.assert_array_equal(run.peaks, runs[0].peaks)


@given(seed=st.integers(0, 2**32), shape=SHAPES)
@settings(max_examples=100, deadline=None)
def test_any_product_by_a_library(seed, shape):
    """Calls of cuBLAS ask for the right product, wherever they are made."""
    shape["messages"] = (False, False)
    program = product_program(random.Random(seed), "float64", **shape)
    factors = values_of(program, seed)
    record = program.words.tolist()
    found = matrix_launch.choose_matrix(program, 0, 0, record, 1)
    if found is None:
        return
    arena = np.zeros(program.arena_cells)
    arena[: len(factors)] = factors
    by_library(found, arena)
    first, last = program.zone
    expected = reference.run(program, factors)
    np.testing.assert_allclose(arena[first:last], expected.zone, rtol=1e-12)
    # The record that is left has the same cells, for the kernel that looks for their range.
    assert record[6] * record[7] * record[8] * record[1] == found.work == program.work


def test_large_products_go_to_the_library():
    shape = {"batch": (3, 2), "rows": (40, 2), "columns": (64,), "depth": 256, "shuffled": False}
    program = product_program(random.Random(5), "float64", **shape)
    for library in (False, True):
        launches = lay_out(program, 132, 227 << 10, None, library).launches
        assert {isinstance(launch, matrix_launch.MatrixLaunch) for launch in launches} == {library}


def clique(sizes, tables, seed=1, scale=1.0):
    draw = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(len(sizes))]
    variables = [elimina.Variable(name, size) for name, size in zip(names, sizes, strict=True)]
    factors = [elimina.Table(scope, scale * draw.random([sizes[v] for v in scope])) for scope in tables]
    return elimina.Model(variables, factors, sense="probability"), factors


@pytest.mark.parametrize("scale", [1.0, 1e-300, 1e200])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_partition_function_of_products(device, scale):
    model, factors = clique((190, 160, 180), ((0, 1), (1, 2), (0, 2)), scale=scale)
    a, b, c = (factor.values / scale for factor in factors)
    expected = np.log10(np.einsum("xy,yz,xz->", a, b, c)) + 3 * np.log10(scale)
    result = elimina.solve(model, "pr", device=device, options=elimina.Options(order=["v1", "v0", "v2"]))
    assert result.log10_z == pytest.approx(expected, rel=1e-12)


def test_plan_names_products():
    model, _ = clique((190, 160, 180), ((0, 1), (1, 2), (0, 2)))
    plan = elimina.plan(model, "pr", device="cpu", options=elimina.Options(order=["v1", "v0", "v2"]))
    assert "1 step, 190 x 180 x 160" in str(plan)


@pytest.mark.parametrize("sizes", [(190, 160, 180), (60, 50, 70), (20, 9, 12)])
def test_products_have_short_estimates(sizes):
    model, _ = clique(sizes, ((0, 1), (1, 2), (0, 2)))
    plan = elimina.plan(model, "pr", device="cpu", options=elimina.Options(order=["v1", "v0", "v2"], threads=1))
    machine, arena_bytes = cpu_machine(1), plan.arena_cells * plan.itemsize
    assert math.isclose(plan.seconds, machine.multiplying().seconds(plan.steps, plan.itemsize, arena_bytes))
    is_product = product_of(plan.steps[0]) is not None
    assert is_product == (math.prod(sizes) >= WORK)
    assert (plan.seconds < 0.7 * machine.seconds(plan.steps, plan.itemsize, arena_bytes)) == is_product


def test_sides_of_several_tables_are_joined():
    scopes = [(0, v) for v in range(1, 5)]
    model, factors = clique((30, 20, 20, 20, 20), scopes)
    order = [f"v{v}" for v in range(5)]
    plan = elimina.plan(model, "pr", device="cpu", options=elimina.Options(order=order))
    assert "400 x 400 x 30" in str(plan)
    sums = np.prod([factor.values.sum(axis=1) for factor in factors], axis=0).sum()
    result = elimina.solve(model, "pr", device="cpu", options=elimina.Options(order=order))
    assert result.log10_z == pytest.approx(np.log10(sums), rel=1e-12)


def test_range_of_products_that_are_not_scaled():
    """A library reads messages unscaled: products that leave the range are seen, though scaled ones would not."""
    model, _ = clique((190, 160, 180), ((0, 1), (1, 2), (0, 2)))
    plan = elimina.plan(model, "pr", device="cpu", options=elimina.Options(order=["v1", "v0", "v2"]))
    peaks = np.tile([1.0, 0.5], (len(plan.steps), 1))
    for device, ranges, expected in (
        ("cuda", [1.0, 0.5], False),
        ("cuda", [1e-200, 1e-200], True),
        ("cuda", [1e200, 1e200], True),
        ("cpu", [1e200, 1e200], False),
    ):
        tiers = {"device": 1, "host": 1} if device == "cuda" else {"host": 1}
        scales = Scales(plan._replace(bytes=tiers))
        assert scales.may_underflow(np.tile(ranges, (3, 1)), peaks) is expected


@pytest.mark.gpu
@given(seed=st.integers(0, 2**32), dtype=st.sampled_from(["float64", "float32"]), shape=SHAPES)
@settings(max_examples=60, deadline=None)
def test_any_product_on_a_device(seed, dtype, shape):
    from elimina.backends.cuda.backend import CudaBackend

    program = product_program(random.Random(seed), dtype, **shape)
    factors = values_of(program, seed, (1e-3, 1e4))
    session = CudaBackend().open(program, factors)
    reference.assert_same(program, session.run(), reference.run(program, factors), by_the_library(session))
    session.close()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("batch", "rows", "columns", "depth"),
    [((), (500,), (300,), 200), ((), (97,), (801,), 401), ((5,), (64,), (96,), 256), ((3, 2), (40, 2), (256,), 256)],
)
def test_library_products_on_a_device(dtype, batch, rows, columns, depth):
    from elimina.backends.cuda.backend import CudaBackend

    backend = CudaBackend()
    assert backend.blas is not None
    for messages in ((False, False), (True, True)):
        program = product_program(
            random.Random(7),
            dtype,
            batch=batch,
            rows=rows,
            columns=columns,
            depth=depth,
            messages=messages,
            shuffled=False,
        )
        factors = values_of(program, 7, (1e-3, 1e4))
        expected = reference.run(program, factors)
        session = backend.open(program, factors)
        assert by_the_library(session) == [len(program.starts) - 1]
        # The later runs are graphs.
        for _ in range(3):
            reference.assert_same(program, session.run(), expected, by_the_library(session))
        session.close()


def by_the_library(session):
    """Steps that the library computes, whose ranges may be bounds."""
    return [
        launch.number
        for launch in session.whole_program.layout.launches
        if isinstance(launch, matrix_launch.MatrixLaunch)
    ]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("messages", [(False, False), (False, True), (True, True)])
def test_ranges_of_library_products_follow_the_values(dtype, messages):
    """A bound serves where both tables are close together; where they are not, or were changed, the output is read."""
    from elimina.backends.cuda.backend import CudaBackend

    shape = {"rows": (500,), "columns": (300,), "depth": 200, "messages": messages, "shuffled": False}
    program = product_program(random.Random(7), dtype, **shape)
    far = float(np.finfo(dtype).tiny) ** 0.6
    values = values_of(program, 7)
    session = CudaBackend().open(program, values)
    last = len(program.starts) - 1
    for smallest, is_bound in ((None, True), (far, False), (None, True)):
        changed = values.copy()
        if smallest is not None:
            changed[[0, -1]] = smallest
        session.load(0, changed)
        expected = reference.run(program, changed)
        for _ in range(3):
            run = session.run()
            reference.assert_same(program, run, expected, [last])
            is_power = math.frexp(run.peaks[last, 0])[0] == 0.5
            assert is_power is is_bound
            if not is_bound:
                np.testing.assert_allclose(run.peaks[last], expected.peaks[last], rtol=1e-4)
    session.close()
