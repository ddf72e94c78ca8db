"""Buckets large enough for tiles, of many shapes, against broadcasting."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina.backends.registry import get_backend
from elimina.methods.bucket_elimination import eliminate
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN
from elimina.planning.machine import cpu_machine, cuda_machine
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.step import Output
from elimina.planning.tree import bucket_tree
from elimina.problem.preparation import prepare
from elimina.running.execution import Execution
from tests import calls
from tests.devices import on_devices
from tests.reference import broadcast, planner


@st.composite
def shapes(draw):
    """Domain sizes (the first variable is eliminated first) and scopes that all hold the first variable."""
    sizes = [draw(st.sampled_from([1, 2, 3, 5, 10, 17, 50, 65, 97, 200]))]
    while len(sizes) < 7:
        size = draw(st.sampled_from([1, 2, 2, 3, 4, 7, 10, 13, 50, 77, 130]))
        if math.prod(sizes) * size > 200_000:
            break
        sizes.append(size)
    rest = list(range(1, len(sizes)))
    scopes = [(0, *rest)] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(0 if scopes else 1, 8))):
        scopes.append((0, *draw(st.lists(st.sampled_from(rest), max_size=4, unique=True) if rest else st.just([]))))
    return sizes, scopes, draw(st.integers(0, 2**32 - 1))


@on_devices
@pytest.mark.parametrize("width", [100, 2000, 10**6, 2**55])
@given(shape=shapes())
@settings(max_examples=60, deadline=None)
def test_integers(device, width, shape):
    sizes, scopes, seed = shape
    rng = np.random.default_rng(seed)
    factors = []
    for scope in scopes:
        values = rng.integers(-width, width, [sizes[v] for v in scope])
        factors.append((scope, np.where(rng.random(values.shape) < 0.3 * rng.random(), FORBIDDEN, values)))
    model = Model.from_arrays(sizes, factors)
    order = list(range(len(sizes)))
    result = calls.solve(model, order=order, device=device)
    joint = broadcast.costs(model)
    best = int(joint.min())
    if best == FORBIDDEN:
        assert result.status == "infeasible"
        return
    assert result.value == best
    chosen = tuple(int(value) for value in result.assignment.values())
    assert int(joint[chosen]) == best
    # Ties: the variables that are eliminated last choose first, each the smallest value.
    last_first = joint.transpose(order[::-1])
    assert chosen[::-1] == tuple(np.argwhere(last_first == best)[0])


@on_devices
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(shape=shapes())
@settings(max_examples=60, deadline=None)
def test_float_costs(device, dtype, shape):
    sizes, scopes, seed = shape
    rng = np.random.default_rng(seed)
    model = Model.from_arrays(sizes, [(scope, rng.normal(size=[sizes[v] for v in scope])) for scope in scopes])
    result = calls.solve(model, order=list(range(len(sizes))), device=device, dtype=dtype)
    assert result.value == pytest.approx(float(broadcast.costs(model).min()), abs=1e-5 if dtype == "float32" else 1e-12)


@on_devices
@given(shape=shapes())
@settings(max_examples=60, deadline=None)
def test_probabilities(device, shape):
    sizes, scopes, seed = shape
    rng = np.random.default_rng(seed)
    factors = []
    for scope in scopes:
        values = rng.random([sizes[v] for v in scope])
        factors.append((scope, np.where(rng.random(values.shape) < 0.2, 0.0, values)))
    model = Model.from_arrays(sizes, factors, sense="probability")
    joint = broadcast.products(model)
    order = list(range(len(sizes)))
    total = calls.solve(model, "pr", order=order, device=device)
    best = calls.solve(model, "mpe", order=order, device=device)
    number = calls.solve(model, "count", order=order, device=device)
    assert number.value == int(np.count_nonzero(joint))
    if joint.max() == 0:
        assert total.status == best.status == "infeasible"
        return
    assert total.value == pytest.approx(float(joint.sum()), rel=1e-11)
    assert best.value == pytest.approx(math.log(float(joint.max())), abs=1e-10)


@on_devices
@given(shape=shapes(), gain=st.sampled_from([1, 8]))
@settings(max_examples=60, deadline=None)
def test_tables_joined_before_a_bucket(device, shape, gain):
    """Tables are joined first where a bucket is told to have much work."""
    sizes, scopes, seed = shape
    rng = np.random.default_rng(seed)
    factors = [(scope, rng.integers(-50, 50, [sizes[v] for v in scope])) for scope in scopes]
    model = Model.from_arrays(sizes, factors)
    order = list(range(len(sizes)))
    joint = broadcast.costs(model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "PACK_WORK", 1)
        patch.setattr(planner, "PACK_GAIN", gain)
        for dtype in (None, "int64", "float32"):
            result = eliminate(packed(model, order, dtype, device), {})
            chosen = tuple(int(value) for value in result.assignment.values())
            assert result.value == joint.min() == joint[chosen]


def packed(model, order, dtype, device):
    """A plan whose steps are those of the planner in the reference, which joins sides of buckets of any size."""
    problem = prepare(model, "mpe", {})
    order = [v for v in order if v in problem.free]
    backend = get_backend(device)
    machine = cuda_machine() if device == "cuda" else cpu_machine(backend.threads)
    plan = make_plan(Elimination(problem, order, machine, backend.memory(), dtype))
    scopes = [factor.scope for factor in plan.factors]
    tree = bucket_tree(scopes, order)
    steps, _ = planner.build_steps(tree, range(len(tree.nodes)), scopes, model.sizes)
    members = [factor.members for factor in plan.factors]
    everything = range(len(steps))
    factors, steps, factor_cells, cells = planner.place(model.sizes, scopes, members, steps, plan.itemsize, everything)
    plan = plan._replace(
        factors=factors,
        steps=steps,
        outputs=tuple(Output(number, ()) for number in everything if not steps[number].readers),
        factor_cells=factor_cells,
        arena_cells=cells,
    )
    return Execution(problem, plan, backend)


@on_devices
@pytest.mark.parametrize("size", [4095, 4096, 5000])
def test_a_root_of_many_values(device, size):
    values = np.arange(size)[::-1]
    assert elimina.solve(Model.from_arrays([size], [((0,), values)]), device=device).value == 0
    assert elimina.solve(Model.from_arrays([size], []), "count", device=device).value == size
    model = Model.from_arrays([size], [((0,), values + 1.0)], sense="probability")
    assert elimina.solve(model, "pr", device=device).value == pytest.approx(size * (size + 1) / 2, rel=1e-12)
    pair = Model.from_arrays([size, 2], [((0, 1), np.arange(2 * size).reshape(size, 2))])
    assert calls.solve(pair, order=[1, 0], device=device).value == 0
