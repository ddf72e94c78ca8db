"""Several devices that share out slices, cases and bounds, against one; here the devices are CPU backends."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import elimina
from elimina import DeviceError, InputError, Model, TimeLimitError
from elimina.backends import gpu_start
from elimina.backends.device_group import DeviceGroup
from elimina.generate import grid_model
from elimina.io.cases import Cases
from elimina.methods import cost_shifting, slice_bounds, weighted_mini_buckets
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.devices import device_name
from elimina.planning.machine import GPU_OPEN_START, cuda_machine
from elimina.problem.preparation import prepare
from elimina.running import host, plan_choice, shared_plans
from elimina.running.pool import spread
from tests import calls
from tests.cpu_devices import CpuDevice
from tests.methods.test_weighted_mini_buckets import lattice
from tests.random_models import with_constraints
from tests.running.test_call_thread import rests

GPUS = "cuda:0,cuda:1"


class Gpu(CpuDevice):
    """A device whose sessions fail after so many runs."""

    def __init__(self, runs: float = float("inf")) -> None:
        super().__init__(1)
        self.left, self.ran = runs, 0

    def open(self, program, factors):
        session = super().open(program, factors)
        run = session.run

        def counted(steps=None, progress=None):
            if self.left <= 0:
                raise DeviceError("the GPU fell off the bus")
            self.left -= 1
            self.ran += 1
            return run(steps, progress)

        session.run = counted
        return session


class SlowGpu(Gpu):
    """A GPU whose runs take a fifth of a second longer."""

    def open(self, program, factors):
        session = super().open(program, factors)
        run = session.run

        def slow(steps=None, progress=None):
            time.sleep(0.2)
            return run(steps, progress)

        session.run = slow
        return session


@pytest.fixture
def gpus(monkeypatch):
    """A function that puts devices in the place of the GPUs that a call names."""

    def use(*found):
        monkeypatch.setattr(host, "get_backend", lambda device, threads=None: DeviceGroup(found))
        monkeypatch.setattr(plan_choice, "get_backend", lambda device, threads=None: DeviceGroup(found))
        return found

    return use


@pytest.fixture(autouse=True)
def no_threads_are_left():
    before = set(threading.enumerate())
    yield
    left = [
        thread
        for thread in threading.enumerate()
        if thread not in before and thread.name == "elimina" and not rests(thread)
    ]
    for thread in left:
        thread.join(60)
        assert not thread.is_alive()


def numbers_of(results):
    return list(itertools.chain.from_iterable(results))


@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 50])
@pytest.mark.parametrize("together", [1, 3, 10])
def test_results_come_in_the_sequence_of_the_items(members, count, together):
    def work(member, items):
        for item in items:
            time.sleep(0.0005 * (item % 3))
            yield item

    found = list(spread(range(members), range(count), work, lambda item: item % 4 != 1, together))
    assert found == [None if item % 4 == 1 else item for item in range(count)]


def test_each_item_is_done_once_and_by_all_members():
    met = threading.Barrier(2, timeout=60)
    done = []

    def work(member, items):
        for number, item in enumerate(items):
            if number == 0:
                met.wait()
            done.append((member, item))
            yield item

    assert list(spread("ab", range(100), work)) == list(range(100))
    assert sorted(item for _, item in done) == list(range(100))
    assert {member for member, _ in done} == {"a", "b"}


def test_the_items_of_a_failed_member_are_done_by_the_others():
    has_failed = threading.Event()

    def work(member, items):
        for item in items:
            if member == "a":
                has_failed.set()
                raise DeviceError("lost")
            has_failed.wait(60)
            yield item

    assert list(spread("ab", range(20), work)) == list(range(20))


def test_one_item_goes_to_the_next_member_where_the_first_one_fails():
    def work(member, items):
        for item in items:
            if member != "c":
                raise DeviceError("lost")
            yield member, item

    assert list(spread("abc", [5], work)) == [("c", 5)]


def test_all_members_fail():
    def work(member, items):
        for _ in items:
            raise DeviceError(f"{member} is lost")
        yield

    with pytest.raises(DeviceError, match=r"^all 2 devices failed, the last one so: [ab] is lost$"):
        list(spread("ab", range(20), work))


def test_another_error_ends_all_members():
    def work(member, items):
        for item in items:
            if item == 3:
                raise InputError("wrong")
            yield item

    with pytest.raises(InputError, match="wrong"):
        list(spread("ab", range(1000), work))


def test_results_that_nobody_wants_end_the_work():
    ended = []

    def work(member, items):
        try:
            yield from items
        finally:
            ended.append(member)

    with contextlib.closing(spread("ab", range(10**6), work)) as found:
        assert next(found) == 0
    assert sorted(ended) in (["a"], ["b"], ["a", "b"])


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("cuda", "cuda"),
        ("auto", "auto"),
        ("cuda:1", "cuda:1"),
        (["cuda:0", "cuda:1"], GPUS),
        ("cuda:0, cuda:1", GPUS),
        (["cpu"], "cpu"),
    ],
)
def test_names_of_devices(given, name):
    assert device_name(given) == name


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ("tpu", InputError, "unknown device 'tpu': expected auto, cpu, cuda, a GPU such as cuda:1, or"),
        ("cuda:x", InputError, "unknown device 'cuda:x'"),
        ([], InputError, "device is an empty list"),
        (["cuda:0", "cuda:0"], InputError, "invalid device 'cuda:0,cuda:0': cuda:0 is named twice"),
        (["cuda:0", "cpu"], InputError, "invalid device 'cuda:0,cpu': cpu cannot be combined with others"),
        (["cuda:0", 1], TypeError, "device is"),
        (7, TypeError, r"device is 7 \(int\)"),
    ],
)
def test_devices_that_are_wrong(given, error, text):
    with pytest.raises(error, match=text):
        elimina.solve(grid_model(2, 2), device=given)


def sliced(model, task, device, time_limit=None, **options):
    """A run in slices, whatever the machine's memory."""
    needed = calls.plan(model, task, device="cpu", order="min-fill", **options).peak_bytes
    known = {"memory": needed // 3 if task == "mpe" else int(needed / 1.8), "slices": 10**4, "order": "min-fill"}
    return calls.solve(model, task, device=device, method="eliminate", time_limit=time_limit, **known, **options)


KINDS = [
    ("mpe", {}),
    ("mpe", {"dtype": "int64"}),
    ("mpe", {"dtype": "float32"}),
    ("count", {}),
    ("pr", {}),
    ("pr", {"dtype": "float32"}),
]


def costs(side, size):
    """A grid of soft costs."""
    rng, last = np.random.default_rng(5), side * side
    pairs = [(v, v + 1) for v in range(last) if (v + 1) % side] + [(v, v + side) for v in range(last - side)]
    factors = [(pair, rng.integers(0, 50, (size, size))) for pair in pairs]
    return Model.from_arrays([size] * last, factors, sense="min-cost")


def model_for(task):
    """A grid of probabilities, some of them 0, or of costs."""
    model = costs(6, 3) if task == "mpe" else lattice(6, size=3, zeros=0.1)
    return with_constraints(model) if task == "count" else model


def same(found, expected):
    kept = ("status", "value", "lower_bound", "upper_bound", "assignment", "log10_z", "ended_by")
    assert {name: getattr(found, name) for name in kept} == {name: getattr(expected, name) for name in kept}


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(("task", "options"), KINDS)
def test_slices_of_several_gpus(gpus, monkeypatch, task, options, bounded):
    if bounded:
        monkeypatch.setattr(slice_bounds, "MIN_BOUNDED_PLAN_SECONDS", 0.0)
    model = model_for(task)
    expected = sliced(model, task, "cpu", **options)
    gpus(Gpu(), Gpu(), Gpu())
    found = sliced(model, task, ["cuda:0", "cuda:1", "cuda:2"], **options)
    same(found, expected)
    assert found.stats["slices"] == expected.stats["slices"] > 3
    assert found.stats["device"] == "3 x cpu"


@pytest.mark.parametrize(("task", "options"), KINDS)
@pytest.mark.parametrize("runs", [0, 1, 3])
def test_a_gpu_that_is_lost(gpus, task, options, runs):
    model = model_for(task)
    expected = sliced(model, task, "cpu", **options)
    gpus(Gpu(runs), Gpu())
    same(sliced(model, task, GPUS, **options), expected)


def test_all_gpus_are_lost(gpus):
    gpus(Gpu(1), Gpu(1))
    with pytest.raises(DeviceError, match="all 2 devices failed, the last one so: the GPU fell off the bus"):
        sliced(model_for("count"), "count", GPUS)


def test_what_is_known_is_kept_where_all_gpus_are_lost(gpus):
    gpus(Gpu(2), Gpu(2))
    found = sliced(model_for("mpe"), "mpe", GPUS)
    assert (found.status, found.ended_by) == ("bounded", "device-error")
    assert found.assignment is not None


def test_a_plan_without_slices_goes_to_the_next_gpu(gpus):
    model = model_for("mpe")
    _, other = gpus(Gpu(0), Gpu())
    same(calls.solve(model, device=GPUS, method="eliminate"), calls.solve(model, device="cpu", method="eliminate"))
    assert other.ran == 1


def test_a_checkpoint_of_gpus_that_were_lost(gpus, tmp_path):
    model, folder = model_for("mpe"), tmp_path / "kept"
    expected = sliced(model, "mpe", "cpu")
    gpus(Gpu(4), Gpu(3))
    assert sliced(model, "mpe", GPUS, checkpoint=folder).ended_by == "device-error"
    gpus(Gpu())
    found = sliced(model, "mpe", ["cuda:0"], checkpoint=folder)
    same(found, expected)
    assert found.stats["resumed_slices"] >= 1


def test_the_time_limit_ends_all_gpus(gpus):
    first, second = gpus(SlowGpu(), SlowGpu())
    with contextlib.suppress(TimeLimitError):
        found = sliced(model_for("mpe"), "mpe", GPUS, time_limit=1.0)
        assert (found.status, found.ended_by) == ("bounded", "time-limit")
    # Of 81 slices that take 0.2 s each.
    assert first.ran + second.ran < 80


@pytest.mark.parametrize("runs", [float("inf"), 2])
def test_cases_of_several_gpus(gpus, runs):
    model = lattice(4, size=3)
    rng = np.random.default_rng(0)
    values = rng.integers(0, 3, (300, 5)).astype(np.int32)
    expected = elimina.JunctionTree(model, device="cpu").batch(Cases(tuple(range(5)), values))
    gpus(Gpu(runs), Gpu())
    found = elimina.JunctionTree(model, device=GPUS).batch(Cases(tuple(range(5)), values))
    for name, table in expected.marginals.items():
        np.testing.assert_allclose(found.marginals[name], table, rtol=1e-10)
    np.testing.assert_allclose(found.log10_evidence, expected.log10_evidence, rtol=1e-10)


@pytest.mark.parametrize("together", [0.0, 60.0])
@pytest.mark.parametrize("runs", [float("inf"), 0, 1])
def test_bounds_of_several_gpus(gpus, monkeypatch, runs, together):
    """Short bounds are made one after another, and a GPU that is lost is replaced all the same."""
    monkeypatch.setattr(weighted_mini_buckets, "_MIN_CONCURRENT_RUN_SECONDS", together - 1.0)
    model = lattice(6, size=3)
    expected = calls.solve(model, "pr", device="cpu", method="mbe", ibound=3, order="min-fill")
    gpus(Gpu(runs), Gpu())
    shared = []

    def seen(members, items, *more):
        shared.append(tuple(items))
        return spread(members, items, *more)

    monkeypatch.setattr(weighted_mini_buckets, "spread", seen)
    found = calls.solve(model, "pr", device=GPUS, method="mbe", ibound=3, order="min-fill")
    same(found, expected)
    together_or_not = ("upper", "lower") if together == 0.0 else ("upper",)
    assert {sides for sides in shared if "upper" in sides} == {together_or_not}


def test_plans_are_cut_where_that_gains_alone(gpus, monkeypatch):
    model, options = costs(7, 6), {"method": "eliminate", "order": "min-fill"}
    whole = calls.solve(model, device="cpu", **options)
    monkeypatch.setattr(shared_plans, "MIN_SHARED_PLAN_SECONDS", 0.0)
    gpus(*(Gpu() for _ in range(4)))
    monkeypatch.setattr(shared_plans, "MAX_SHARED_TIME_SHARE", 0.0)
    found = calls.solve(model, device=GPUS, **options)
    assert "slices" not in found.stats
    monkeypatch.setattr(shared_plans, "MAX_SHARED_TIME_SHARE", 100.0)
    found = calls.solve(model, device=GPUS, **options)
    assert found.stats["slices"] > 1
    same(found, whole)
    found = calls.solve(model, device=GPUS, slices="never", **options)
    assert "slices" not in found.stats


def test_bounds_of_slices_take_a_share_of_the_time_of_all_gpus(gpus, monkeypatch):
    """Two GPUs need half of one GPU's time for the slices, so bounds get half as well."""
    given, shift = [], cost_shifting.shift_tables

    def noted(problem, options, seconds):
        given.append(seconds)
        return shift(problem, options, seconds)

    monkeypatch.setattr(cost_shifting, "shift_tables", noted)
    monkeypatch.setattr(slice_bounds, "MIN_BOUNDED_PLAN_SECONDS", 0.0)
    for number in (1, 2):
        gpus(*(Gpu() for _ in range(number)))
        sliced(costs(6, 3), "mpe", GPUS)
    assert given[0] == pytest.approx(2 * given[1])


@pytest.mark.parametrize("free", [1 << 40, 0])
def test_all_gpus_are_taken_where_that_gains_alone(monkeypatch, free):
    """``auto``: others are opened only for a plan that is expected to gain, and taken only if they have memory."""
    model, one = model_for("mpe"), Gpu()
    planned = calls.plan(model, device="cpu", order="min-fill")
    asked, cut = [], [0.0]

    def others(backend, least):
        asked.append(least)
        return DeviceGroup([backend, Gpu()]) if free >= least else backend

    def shared(backend, count, problem, options, plan):
        assert count == 2
        return plan._replace(seconds=cut[0], form=SimpleNamespace(slices=2, variables=(0,), gpus=1))

    monkeypatch.setattr(shared_plans, "gpu_count", lambda backend: 2)
    monkeypatch.setattr(shared_plans, "with_other_gpus", others)
    monkeypatch.setattr(shared_plans, "shared_plan", shared)
    monkeypatch.setattr(Gpu, "machine", one.machine._replace(start=1.0), raising=False)
    problem = prepare(model, "mpe", {})
    order = [*planned.order]
    # A cut that makes nothing faster, a plan no longer than a start, and one that gains.
    for seconds, cut[0], is_asked in ((9.0, 17.0, False), (2.2, 2.2, False), (9.0, 9.0, True)):
        plan = planned._replace(seconds=seconds)
        backend, found = shared_plans.shared_out(one, problem, order, CheckedOptions("auto", None), plan)
        assert bool(asked) == is_asked
        is_shared = is_asked and free > 0
        assert (isinstance(backend, DeviceGroup), found is not plan) == (is_shared, is_shared)


def test_a_gpu_that_is_open_begins_at_once(monkeypatch):
    monkeypatch.setattr(gpu_start, "open_gpus", set())
    start = cuda_machine().start
    assert not gpu_start.outlasts_gpu_start(1.99 * start)
    assert gpu_start.outlasts_gpu_start(2.01 * start)
    gpu_start.open_gpus.add(0)
    assert not gpu_start.outlasts_gpu_start(1.99 * GPU_OPEN_START)
    assert gpu_start.outlasts_gpu_start(2.01 * GPU_OPEN_START)


@pytest.mark.gpu
def test_a_gpu_that_is_open_takes_shorter_runs():
    """The processor would take less than twice the second that a GPU takes to be opened."""
    model, one = lattice(22), CheckedOptions(threads=1)
    assert 0.2 < elimina.plan(model, "pr", device="cpu", options=one).seconds < 2
    elimina.solve(lattice(3), "pr", device="cuda")
    assert elimina.plan(model, "pr", options=one).device == "cuda"
