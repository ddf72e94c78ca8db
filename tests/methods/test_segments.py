"""Optima in segments: against brute force within any memory, and plans that fit because of them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import Model
from elimina.backends.registry import get_backend
from elimina.errors import InputError, MemoryLimitError
from elimina.methods.bucket_elimination import eliminate
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.ordering import rough_order
from elimina.planning.plan import RESIDENT
from elimina.planning.planner import Elimination, make_plan
from elimina.planning.segment_form import Segments
from elimina.planning.tiers import in_tiers
from elimina.problem.preparation import prepare
from elimina.running import segment_plan
from elimina.running.execution import Execution
from elimina.running.segment_plan import decoded_variables, make_segmented_plan, restricted_bytes
from elimina.running.sweep import Sweep
from elimina.strategies import conditions
from tests import calls
from tests.devices import on_devices
from tests.methods.test_bottleneck import check as check_worst
from tests.random_models import KINDS, models
from tests.reference import brute
from tests.simulated import simulate


def grid(rows, columns, values=3, forbidden=0.0, seed=0):
    rng = np.random.default_rng(seed)
    factors = []
    for v in range(rows * columns):
        for u in ([v + 1] if v % rows < rows - 1 else []) + ([v + rows] if v + rows < rows * columns else []):
            costs = rng.integers(0, 100, (values, values))
            factors.append(((v, u), np.where(rng.random(costs.shape) < forbidden, elimina.FORBIDDEN, costs)))
    return Model.from_arrays([values] * (rows * columns), factors)


def box(sides, values, seed=0):
    """Return a grid of any number of dimensions, with costs between neighbours."""
    rng = np.random.default_rng(seed)
    numbers = np.arange(math.prod(sides)).reshape(sides)
    pairs = [
        pair
        for axis in range(len(sides))
        for pair in zip(
            np.delete(numbers, -1, axis).ravel().tolist(), np.delete(numbers, 0, axis).ravel().tolist(), strict=True
        )
    ]
    return Model.from_arrays(
        [values] * numbers.size, [(pair, rng.integers(0, 100, (values, values))) for pair in pairs]
    )


def planned(problem, order, backend, missing):
    """Return the plan in segments, with the given bytes less than all messages take; None if none fits."""
    elimination = Elimination(problem, order, backend.machine, 1 << 30)
    whole = make_plan(elimination)
    beside = restricted_bytes(whole) if backend.machine.on_host else 0
    memory = whole.peak_bytes + beside - missing(whole)
    options = CheckedOptions(order=tuple(order), memory=memory)
    with pytest.MonkeyPatch.context() as patch:
        # The memory of these small models is a GPU's own: the host has room for their tables.
        patch.setattr(segment_plan, "host_memory", lambda _: 1 << 30)
        plan = make_segmented_plan(elimination._replace(memory=memory), whole._replace(memory_limit=memory), options)
    assert plan is None or plan.peak_bytes <= memory
    return plan


def message_bytes(plan):
    return max(0, plan.arena_cells - plan.factor_cells) * plan.itemsize


@on_devices
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["mpe", "bottleneck"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_memory_gives_the_optimum(device, task, kind, data):
    model = data.draw(models(kind).filter(lambda model: model.factors and model.sizes))
    observed = data.draw(st.dictionaries(st.integers(0, len(model.sizes) - 1), st.just(0), max_size=2))
    problem = prepare(model, task, observed)
    order = data.draw(st.permutations(problem.free))
    try:
        plan = planned(
            problem, order, get_backend(device), lambda whole: data.draw(st.integers(0, message_bytes(whole)))
        )
    except InputError:  # costs beyond 64 bits
        return
    if plan is None:
        return
    result = eliminate(Execution(problem, plan, get_backend(device)), {})
    if task == "mpe":
        brute.check_optimum(model, result, observed)
    else:
        check_worst(model, result, observed)


def near(rng, count):
    """Return up to three variables whose numbers differ by less than five."""
    first = int(rng.integers(0, count - 5))
    return (first + rng.choice(5, rng.integers(1, 4), replace=False)).tolist()


@on_devices
@pytest.mark.parametrize("task", ["mpe", "bottleneck"])
def test_random_graphs_in_many_segments(device, task):
    """The values of all segments together are an optimum, whatever the order, the structure and the memory."""
    backend, counts = get_backend(device), []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(2, 5, 90).tolist()
        scopes = [near(rng, len(sizes)) for _ in range(int(rng.integers(90, 250)))]
        costs = [rng.integers(0, 50, [sizes[v] for v in scope]) for scope in scopes]
        if seed % 2:
            costs = [table / 7 for table in costs]
        model = Model.from_arrays(sizes, list(zip(scopes, costs, strict=True)))
        problem = prepare(model, task, {})
        order, share = rough_order(problem, CheckedOptions()).order, 1 - rng.random() ** 2
        plan = planned(problem, order, backend, lambda whole, share=share: int(share * message_bytes(whole)))
        if plan is None:
            continue
        counts.append(len(plan.form.orders))
        found = eliminate(Execution(problem, plan, backend), {})
        expected = calls.solve(model, task, device="cpu", method="eliminate")
        assert found.status == expected.status == "optimal"
        assert found.value == pytest.approx(expected.value, rel=1e-9)
    assert len(counts) >= 20
    assert max(counts) >= 3


def plan_of(model, **options):
    return calls.plan(model, "mpe", device="cpu", **options)


@pytest.mark.parametrize("forbidden", [0.0, 0.1])
def test_a_plan_fits_in_segments(forbidden):
    """Half of the memory of all messages takes less than twice the work, and the answer is the same."""
    model = grid(8, 60, forbidden=forbidden)
    whole = plan_of(model)
    assert whole.form == RESIDENT
    memory = whole.peak_bytes * 3 // 4
    plan = plan_of(model, memory=memory, tables="dense")
    assert plan.fits
    assert isinstance(plan.form, Segments)
    assert whole.work < plan.work <= 2 * whole.work
    assert sorted(plan.order) == list(range(len(model.sizes)))
    assert set().union(*plan.form.orders) == set(plan.order)
    assert plan.whole == whole._replace(memory_limit=memory)
    expected = calls.solve(model, device="cpu", method="eliminate")
    shares = []
    options = {"method": "eliminate", "memory": memory, "tables": "dense", "progress": shares.append}
    found = calls.solve(model, device="cpu", **options)
    assert (found.value, found.status) == (expected.value, "optimal")
    assert found.stats["segments"] == len(plan.form.orders)
    assert shares == sorted(shares)
    assert shares[-1] <= 1
    assert f"segments:             {len(plan.form.orders)}; " in str(plan)
    assert json.loads(plan.to_json())["segments"] == len(plan.form.orders)


def test_more_segments_fit_less_memory():
    model = grid(10, 60)
    whole = plan_of(model)
    plans = [plan_of(model, memory=int(whole.peak_bytes * share)) for share in (0.8, 0.5, 0.3)]
    counts = [len(plan.form.orders) for plan in plans]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    assert all(plan.fits and plan.peak_bytes <= plan.memory_limit for plan in plans)


@pytest.mark.parametrize("share", [0.3, 0.1])
def test_a_gpu_decodes_within_its_memory(monkeypatch, share):
    model = grid(8, 60)
    expected = calls.solve(model, device="cpu")
    limit = int(plan_of(model).peak_bytes * share)
    simulate(monkeypatch, limit)
    plan = calls.plan(model, "mpe", device="cuda", tables="dense")
    assert isinstance(plan.form, Segments)
    assert plan.peak_bytes == plan.bytes["device"] <= limit
    assert plan.bytes["host"] <= dict(plan.form.limits)["host"]
    found = calls.solve(model, device="cuda", method="eliminate", tables="dense")
    assert (found.value, found.status) == (expected.value, "optimal")
    assert found.stats["segments"] == len(plan.form.orders) > 1


@pytest.mark.parametrize("device_bytes", [150_000, 80_000])
def test_tables_of_segments_pass_through_a_small_gpu(monkeypatch, device_bytes):
    """Neither the device holds the tables of a segment, nor the host all messages."""
    model = grid(8, 60)
    expected = calls.solve(model, device="cpu")
    host = plan_of(model).peak_bytes // 2
    simulate(monkeypatch, device_bytes, host)
    plan = calls.plan(model, "mpe", device="cuda", tables="dense")
    assert isinstance(plan.form, Segments)
    assert plan.form.is_streamed
    assert f"segments:             {len(plan.form.orders)} in tiles; " in str(plan)
    assert plan.bytes["device"] <= device_bytes
    assert device_bytes < plan.bytes["host"] <= host
    found = calls.solve(model, device="cuda", method="eliminate", tables="dense")
    assert (found.value, found.status) == (expected.value, "optimal")
    assert found.stats["segments"] == len(plan.form.orders) > 1


def test_tiles_keep_the_messages_of_decoded_steps(tmp_path):
    """A run in tiles decodes the same values as one in memory, whatever part of the steps they belong to."""
    model, backend = grid(11, 14, seed=3), get_backend("cpu")
    problem = prepare(model, "mpe", {})
    elimination = Elimination(problem, range(154), backend.machine, 1 << 30, "int32")
    whole = make_plan(elimination)
    for share in (0.9, 0.6, 0.4):
        memory = int(whole.peak_bytes * share)
        part = make_plan(elimination._replace(memory=memory, decodes_part=True))
        assert 0 < part.first_decoded < len(part.steps)
        tiled = in_tiers(part._replace(memory_limit=4 << 20), 0, str(tmp_path))
        assert tiled.fits
        assert len(tiled.form.program_fields()["stream"].steps) > 50
        runs = [Sweep(Execution(problem, plan, backend), {}).run([0]) for plan in (part, tiled)]
        (in_memory,), (in_tiles,) = runs
        assert in_tiles.run.assignment.tolist() == in_memory.run.assignment.tolist()
        assert any(in_memory.run.assignment[decoded_variables(part)])


def test_a_box_within_a_small_share_of_its_messages():
    """A twelfth of all messages takes less than twice the work: conditioning on decoded values narrows the rest."""
    model = box([3, 3, 12], 3)
    expected = calls.solve(model, device="cpu", method="eliminate")
    memory = plan_of(model).peak_bytes // 12
    plan = plan_of(model, memory=memory)
    assert isinstance(plan.form, Segments)
    assert plan.work < 2 * plan.whole.work
    found = calls.solve(model, device="cpu", method="eliminate", memory=memory)
    assert (found.value, found.status) == (expected.value, "optimal")


@pytest.mark.parametrize("asked", [{"slices": 100_000}, {"scratch": "."}])
def test_slices_and_files_that_are_asked_for_are_made(asked):
    model = grid(8, 60)
    assert not isinstance(plan_of(model, memory=plan_of(model).peak_bytes * 3 // 4, **asked).form, Segments)


_PEAK = """
import sys
from tests.methods.test_segments import grid
from tests import calls
def peak():
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM"))
model = grid(11, 60)
before = peak()
found = calls.solve(model, device="cpu", method="eliminate", memory=int(sys.argv[1]), threads=1)
print(found.value, found.stats.get("segments", 1), peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks are read from /proc")
def test_memory_stays_within_the_limit():
    """240 MiB of messages are decoded within 64 MiB."""
    limit = 64 << 20
    runs = [
        subprocess.run([sys.executable, "-c", _PEAK, str(memory)], check=True, capture_output=True, text=True).stdout
        for memory in (1 << 30, limit)
    ]
    (value, one, most), (same, segments, peak) = (map(int, run.split()) for run in runs)
    assert (value, one) == (same, 1)
    assert segments > 1
    assert peak < 1.25 * limit < most


def test_what_a_checkpoint_rules_out_is_advised(tmp_path):
    model = grid(8, 60)
    memory = calls.plan(model, device="cpu").peak_bytes * 3 // 4
    asked = {"device": "cpu", "method": "eliminate", "memory": memory, "slices": "never"}
    with pytest.raises(MemoryLimitError, match=r"segments .* may need less: leave out checkpoint"):
        calls.solve(model, checkpoint=tmp_path, **asked)
    found = calls.solve(model, **asked)
    assert (found.status, found.stats["segments"] > 1) == ("optimal", True)


def test_a_limit_ends_segments():
    """The bounds known by then are the answer."""
    model = grid(12, 100)
    memory = plan_of(model, order_seconds=0.2).peak_bytes // 2
    started = time.perf_counter()
    found = calls.solve(model, device="cpu", method="eliminate", memory=memory, time_limit=0.6, order_seconds=0.2)
    assert time.perf_counter() - started < 1.2
    assert found.status == "bounded"
    assert found.lower_bound <= found.upper_bound == model.score(model.indices_of(found.assignment))


def test_a_failure_in_a_segment_is_passed_on():
    model = grid(8, 60)

    def stop(share):
        if share > 0.5:
            raise ZeroDivisionError

    memory = plan_of(model).peak_bytes * 3 // 4
    with pytest.raises(ZeroDivisionError):
        calls.solve(model, device="cpu", method="eliminate", memory=memory, progress=stop)


@pytest.mark.parametrize("limit", [None, 60.0])
def test_search_goes_on_where_elimination_would_not_end_in_time(monkeypatch, caplog, limit):
    """However short: here no time is enough, if there is a limit at all."""
    monkeypatch.setattr(conditions, "LATE_PLAN_FACTOR", 0.0)
    caplog.set_level("INFO", logger="elimina")
    model = grid(6, 6)
    found = calls.solve(model, device="cpu", time_limit=limit)
    assert found.status == "optimal"
    assert found.value == calls.solve(model, device="cpu", method="eliminate").value
    assert ("search to the end" in caplog.text) == (limit is not None)
