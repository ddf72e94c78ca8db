"""Choice of the side that filters AllDifferents, without a device and with one that fails."""

from __future__ import annotations

import itertools
import random
from importlib import util

import numpy as np
import pytest

from elimina import _core, cp
from elimina.cp import gpu_filtering
from elimina.errors import DeviceError, InputError
from tests import calls
from tests.conftest import cuda_devices


def queens(n: int, side: cp.globals.Side = "auto") -> cp.Model:
    model = cp.Model()
    xs = model.int_vars(n, 0, n - 1)
    for step in (0, 1, -1):
        model.all_different([x + step * i for i, x in enumerate(xs)], side=side)
    model.search(xs, "first_fail")
    return model


@pytest.mark.parametrize(
    ("n", "side", "delay"), [(8, "auto", float("inf")), (8, "gpu", 0), (600, "auto", 2), (600, "cpu", float("inf"))]
)
def test_when_a_device_is_looked_for(n: int, side: cp.globals.Side, delay: float) -> None:
    solver, _ = queens(n, side)._build()
    assert solver.device_delay() == delay


def test_negated_views_are_for_the_cpu() -> None:
    model = cp.Model()
    model.all_different([-x for x in model.int_vars(600, 0, 600)], side="gpu")
    assert model._build()[0].device_delay() == float("inf")


@pytest.mark.parametrize("measures", [False, True])
def test_same_search(measures: bool) -> None:
    """With a fixed rule, whatever filters: the same nodes, the same solutions."""
    found = []
    for accelerates in (False, True):
        solver, _ = queens(9, "gpu")._build()
        if accelerates:
            solver.accelerate(_core.CpDevice(1), measures)
        xs = np.array([(i, 1, 0) for i in range(9)])
        rules = [(xs, "first_fail", "indomain_min")]
        limits = (float("inf"), 1e9, 1e9)
        search = _core.CpSearch((solver,), rules, None, None, None, False, 0, *limits)
        solutions = []
        while search.next(lambda: True) == "solution":
            solutions.append(search.solution()[:9].tolist())
        found.append((solutions, search.statistics()["nodes"]))
        assert (solver.device_calls().count > 0) == accelerates
    assert found[0] == found[1]
    assert len(found[0][0]) == 352


def take_turns(solvers: list[_core.CpSolver], steps: int) -> list[bool]:
    """Random decisions for two solvers of the same 520 queens, which must leave the same values.

    Returns:
        A bool for each decision, True if the second solver called its device.
    """
    rng = random.Random(1)
    levels, called = 0, []
    assert all(solver.propagate() for solver in solvers)
    for _ in range(steps):
        if levels == 5 or (levels > 0 and rng.random() < 0.4):
            for solver in solvers:
                solver.undo()
            levels -= 1
            continue
        sizes = solvers[0].sizes()
        var = rng.choice([v for v, size in enumerate(sizes) if size > 1])
        value = rng.choice(solvers[0].values_of(var))
        before = solvers[1].device_calls().count
        holds = [solver.decide(var, value, True) for solver in solvers]
        called.append(solvers[1].device_calls().count > before)
        levels += 1
        assert holds[0] == holds[1]
        if not holds[0]:
            for solver in solvers:
                solver.undo()
            levels -= 1
        assert solvers[0].sizes() == solvers[1].sizes()
    assert solvers[0].domains() == solvers[1].domains()
    return called


def test_turns() -> None:
    """The copies of the domains are given up and taken up again; both sides leave the same values."""
    solvers = [queens(520)._build()[0] for _ in range(2)]
    solvers[1].accelerate(_core.CpDevice(1), True)
    turns = [called for called, _ in itertools.groupby(take_turns(solvers, 4000))]
    assert turns.count(True) >= 2  # which side is the faster one is measured, and may change on a busy machine


@pytest.mark.gpu
@pytest.mark.fills_gpu
def test_a_gpu_without_memory_is_given_up() -> None:
    import cupy

    solvers = [queens(520)._build()[0] for _ in range(2)]
    solvers[1].accelerate(gpu_filtering.cuda_device(), True)
    held, size = [], 1 << 36
    try:
        while size >= 256:
            try:
                held.append(cupy.cuda.Memory(size))
            except (MemoryError, cupy.cuda.runtime.CUDARuntimeError):
                size //= 2
        take_turns(solvers, 100)
    finally:
        held.clear()
    assert solvers[1].device_calls().count == 0


def test_no_device_after_all(monkeypatch) -> None:
    """A device that was found and cannot be used leaves a search to the CPU."""
    monkeypatch.setattr(gpu_filtering, "_usable_gpu", lambda: _core.CpDevice(0, b"no module", "divide"))
    result = queens(520).solve(time_limit=2.6)
    assert result.stats["nodes"] > 0


def test_later(monkeypatch) -> None:
    """A search that lasts for a while looks for a device once."""
    asked = []
    monkeypatch.setattr(gpu_filtering, "_usable_gpu", lambda: asked.append(1) or _core.CpDevice(1))
    result = queens(520).solve(time_limit=2.6)
    assert asked == [1] or result.stats["seconds"]["total"] < 2
    monkeypatch.setattr(gpu_filtering, "_usable_gpu", lambda: asked.append(2))
    queens(520).solve(time_limit=0.2)
    queens(520).solve(time_limit=2.2, device="cpu")
    assert 2 not in asked


def test_sides_that_do_not_exist() -> None:
    model = cp.Model()
    xs = model.int_vars(3, 0, 3)
    with pytest.raises(InputError, match="side is auto, cpu or gpu, not 'tpu'"):
        model.all_different(xs, side="tpu")
    with pytest.raises(InputError, match="with bounds consistency the side is auto"):
        model.all_different(xs, "bounds", "gpu")
    with pytest.raises(InputError, match="circuit: the side"):
        model.circuit(xs, "tpu")
    with pytest.raises(InputError, match="unknown device 'tpu'"):
        model.solve(device="tpu")


def test_a_module_that_is_none() -> None:
    """Without a driver as with one, it is an error that says what failed."""
    solver, _ = queens(8)._build()
    with pytest.raises(DeviceError, match=r"CUDA driver|on the GPU"):
        solver.accelerate(_core.CpDevice(0, b"nothing", "divide"), False)
    assert solver.propagate()


@pytest.mark.skipif(cuda_devices() > 0 and util.find_spec("cupy") is not None, reason="there is a CUDA device")
def test_no_device() -> None:
    with pytest.raises(DeviceError, match="use the CPU"):
        queens(8).solve(device="cuda")
    assert queens(8, "gpu").solve().status == "feasible"


@pytest.mark.gpu
def test_a_gpu_that_is_asked_for() -> None:
    model = queens(40, "gpu")
    assert model.solve(device="cuda").status == model.solve().status == model.solve(device="cpu").status == "feasible"


@pytest.mark.gpu
@pytest.mark.parametrize("n", [300, 1500])
def test_many_blocks(n: int) -> None:
    """Parts of many words are divided by several blocks."""
    counts = [calls.search(queens(n), node_limit=300, device=name).stats["failures"] for name in ("cpu", "cuda")]
    assert counts[0] == counts[1]
