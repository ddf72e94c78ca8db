"""Agents that share several GPUs; here the GPUs are CPU backends, and in ``tests/backends/cuda`` real ones."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from elimina import DeviceError, InputError, MemoryLimitError, Model, TimeLimitError
from elimina.backends.cpu import CpuBackend
from elimina.dcop import Network, Problem
from elimina.dcop import engine as engines
from elimina.dcop.engine import Engine, GpuPool
from elimina.dcop.network_settings import ORDERS
from elimina.dcop.problem import HEURISTICS
from tests import calls
from tests.calls import solve_by_agents as solve
from tests.dcop.running import random_problem
from tests.running.test_call_thread import rests

GPUS = "cuda:0,cuda:1"
KINDS = ("random", "scale-free", "grid")


class Gpu(CpuBackend):
    """A device that fails after so many runs, and then for good."""

    def __init__(self, runs: float = float("inf")) -> None:
        super().__init__(1)
        self.left, self.ran = runs, 0
        self.before = lambda: None

    def memory(self):
        if self.left < 0:
            raise DeviceError("the GPU fell off the bus")
        return super().memory()

    def open(self, program, factors):
        session = super().open(program, factors)
        run = session.run

        def counted(steps=None, progress=None):
            self.left -= 1
            if self.left < 0:
                raise DeviceError("the GPU fell off the bus")
            self.ran += 1
            self.before()
            return run(steps, progress)

        session.run = counted
        return session


@pytest.fixture
def gpus(monkeypatch):
    """A function that puts devices in the place of GPUs, to which it leaves all buckets."""

    def use(*found, least=0):
        known = {f"cuda:{number}": gpu for number, gpu in enumerate(found)}
        monkeypatch.setattr(engines, "get_backend", lambda name, threads=None: known.get(name) or CpuBackend(1))
        monkeypatch.setattr(engines, "MIN_GPU_COMBINATIONS", least)
        monkeypatch.setattr(engines, "MAX_JOINED_COMBINATIONS", 0)
        return found

    return use


@pytest.fixture(autouse=True)
def no_threads_are_left():
    before = set(threading.enumerate())
    yield
    added = set(threading.enumerate()) - before
    assert not [thread for thread in added if thread.name.startswith("elimina") and not rests(thread)]


def stars(arms: int, length: int, size: int = 3, seed: int = 0) -> Model:
    """Chains of triples of variables that meet in one variable: subtrees that do not depend on each other."""
    rng, scopes = np.random.default_rng(seed), []
    for arm in range(arms):
        chain = [0, *range(1 + arm * length, 1 + (arm + 1) * length)]
        scopes += [tuple(chain[at : at + 3]) for at in range(length - 1)]
    factors = [(scope, rng.integers(0, 100, (size,) * 3)) for scope in scopes]
    return Model.from_arrays([size] * (1 + arms * length), factors, sense="min-cost")


def same(found, expected, is_integer=True):
    close = expected.value if is_integer or expected.value is None else pytest.approx(expected.value, rel=1e-12)
    assert (found.status, found.value, found.assignment) == (expected.status, close, expected.assignment)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("least", [0, 20])
def test_answers_are_those_of_one_device(gpus, kind, order, least):
    gpus(Gpu(), Gpu(), least=least)
    counted = ("total_operations", "largest_table", "dtype", "induced_width", "depth")
    for seed in range(25):
        problem = random_problem(kind, seed, most=12)
        given = {"network": Network(order=order), "heuristic": HEURISTICS[seed % 4], "threads": 1, "timer": float}
        expected = solve(problem, agents="cpu", **given)
        found = solve(problem, agents=GPUS, **given)
        same(found, expected, problem.model.is_integer)
        assert [found.stats[name] for name in counted] == [expected.stats[name] for name in counted]
        sent = [result.stats["message_bytes"].get("util") for result in (found, expected)]
        assert sent[0] == sent[1]


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("adpop", {"ibound": 2}),
        ("mb-dpop", {"memory": "800B"}),
        ("dpop", {"filtering": 2}),
        ("dpop", {"memory": "1GiB"}),
    ],
)
def test_all_algorithms(gpus, algorithm, options):
    gpus(Gpu(), Gpu(), Gpu())
    for seed in range(25):
        problem = random_problem(KINDS[seed % 3], seed, most=10)
        if not problem.model.is_integer:
            continue
        expected = solve(problem, algorithm, agents="cpu", **options)
        found = solve(problem, algorithm, agents="cuda:0,cuda:1,cuda:2", **options)
        assert (found.lower_bound, found.upper_bound) == (expected.lower_bound, expected.upper_bound)
        same(found, expected)


@pytest.mark.parametrize("seed", range(6))
def test_networks_with_faults(gpus, seed):
    """A crash also ends what an agent does on a GPU; its messages come again."""
    gpus(Gpu(), Gpu())
    problem = random_problem(KINDS[seed % 3], seed + 100, most=10, least=2)
    names = [agent.name for agent in problem.agents]
    crashes = {name: 1 + number % 5 for number, name in enumerate(names)}
    network = Network(loss=0.1, duplicate=0.1, jitter=0.01, crashes=crashes, downtime=0.01, seed=seed)
    same(solve(problem, agents=GPUS, network=network), solve(problem), problem.model.is_integer)


def test_subtrees_are_eliminated_at_the_same_time(gpus):
    """Each GPU waits in its first run until the other one is in a run as well."""
    met, both = threading.Barrier(2, timeout=60), [Gpu(), Gpu()]
    for gpu in both:
        gpu.before = lambda gpu=gpu: met.wait() if gpu.ran == 1 else None
    gpus(*both)
    model = stars(4, 5)
    same(solve(Problem.from_model(model), agents=GPUS), solve(Problem.from_model(model)))
    assert sum(gpu.ran for gpu in both) == len(model.variables)
    assert calls.solve(model, device="cpu").value == solve(Problem.from_model(model), agents=GPUS).value


def test_small_buckets_stay_on_the_cpu(gpus):
    both = gpus(Gpu(), Gpu(), least=1 << 20)
    problem = Problem.from_model(stars(3, 4))
    same(solve(problem, agents=["cuda:0", "cuda:1"]), solve(problem))
    assert [gpu.ran for gpu in both] == [0, 0]


@pytest.mark.parametrize("runs", [0, 1, 5])
def test_the_others_answer_where_a_gpu_is_lost(gpus, runs, caplog):
    lost, other = gpus(Gpu(runs), Gpu())
    # The first one does most of the work.
    other.before = lambda: threading.Event().wait(0.01)
    problem = Problem.from_model(stars(4, 5))
    found = solve(problem, agents=GPUS)
    same(found, solve(problem))
    assert lost.left < 0
    assert (found.stats["device"], found.stats["gpus"], found.stats["bytes_between_gpus"]) == (GPUS, 1, 0)
    assert other.ran >= len(problem.model.variables)
    assert "the GPU fell off the bus" in caplog.text
    # Also after those that were stopped.
    same(solve(problem, agents="cuda:1"), found)


def test_one_error_where_all_gpus_are_lost(gpus):
    gpus(Gpu(3), Gpu(2))
    with pytest.raises(DeviceError, match="the GPU fell off the bus"):
        solve(Problem.from_model(stars(4, 5)), agents=GPUS)


def test_a_time_limit_ends_all_gpus(gpus):
    both = [Gpu(), Gpu()]
    gpus(*both)
    for gpu in both:
        gpu.before = lambda: threading.Event().wait(0.2)
    found = solve(Problem.from_model(stars(4, 6)), agents=GPUS, time_limit=0.3)
    assert (found.status, found.ended_by) == ("bounded", "time-limit")
    assert sum(gpu.ran for gpu in both) < 8


def test_errors_of_a_gpu_are_those_of_one(gpus):
    """With the agent's name and its advice."""
    gpus(Gpu(), Gpu())
    with pytest.raises(MemoryLimitError, match=r"agent 'x\d+' needs .* for a message over .*\(memory\)"):
        solve(Problem.from_model(stars(2, 5)), agents=GPUS, memory="100B")


class Array:
    """A table on a GPU."""

    def __init__(self, number, values):
        self.device, self._values = SimpleNamespace(id=number), values
        self.nbytes, self.flags = values.nbytes, values.flags

    def get(self):
        if self.device.id == 7:
            raise RuntimeError("an illegal memory access")
        return self._values


def test_tables_of_other_gpus(gpus):
    """They are copied by the GPU, or through the host if they have gaps."""
    gpus(Gpu(), Gpu())
    engine, whole = Engine("cuda:1"), np.arange(12).reshape(3, 4)
    assert engine.within_reach(whole) is whole
    own, other, gaps = Array(1, whole[:, 1:]), Array(0, whole), Array(0, whole[:, 1:])
    assert engine.within_reach(own) is own
    assert engine.received == 0
    assert engine.within_reach(other) is other
    np.testing.assert_array_equal(engine.within_reach(gaps), whole[:, 1:])
    assert engine.received == (12 + 9) * whole.itemsize
    with pytest.raises(DeviceError, match="cuda:7 failed: an illegal memory access"):
        engine.within_reach(Array(7, whole[:, 1:]))


def test_agents_need_devices_by_name():
    with pytest.raises(InputError, match=r"not on 'auto': name them, such as cuda or cuda:0,cuda:1"):
        solve(Problem.from_model(stars(1, 2)), agents="auto")


class Home(Engine):
    """An engine that holds the tables of its name."""

    def __init__(self, name):
        super().__init__()
        self.device = name

    def holds(self, values):
        return values.home == self.device


def table_on(name):
    return SimpleNamespace(home=name, nbytes=10)


def test_work_goes_to_the_gpu_that_holds_its_tables():
    gpus, done = GpuPool([Home("first"), Home("second")]), []
    gpus.submit(lambda engine: engine.device, [table_on("second")], done.append)
    assert gpus.collect(is_patient=True)
    assert done == ["second"]
    assert not gpus.collect(is_patient=True)
    gpus.close()


def test_a_gpu_goes_on_with_the_tables_that_it_holds():
    gpus, done, free = GpuPool([Home("first")]), [], threading.Event()
    gpus.submit(lambda engine: free.wait(60), [], lambda result: None)
    for name in ("second", "first"):
        gpus.submit(lambda engine, name=name: name, [table_on(name)], done.append)
    free.set()
    while gpus.collect(is_patient=True):
        pass
    assert done == ["first", "second"]
    gpus.close()


def test_what_ends_gpus_keeps_their_deadlines():
    engine, begun = Engine(), threading.Event()
    engine.deadline = 1e300

    def endless(own):
        begun.set()
        while True:
            own._check_time()

    gpus = GpuPool([engine])
    gpus.submit(endless, [], lambda result: None)
    begun.wait(60)
    gpus.close()
    assert engine.deadline == 1e300
    engine.deadline = 0.0
    with pytest.raises(TimeLimitError):
        engine._check_time()
