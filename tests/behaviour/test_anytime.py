"""Calls that are ended: what is known is the answer, wherever the work is at that time."""

from __future__ import annotations

import gc
import math
import signal
import subprocess
import sys
import threading
import time
import weakref
from queue import SimpleQueue

import numpy as np
import pytest

import elimina
from elimina import MemoryLimitError, Model, TimeLimitError
from elimina._core import Stop, Stopped, obey, stopped
from elimina.errors import ClusterError, DeviceError
from elimina.generate import grid_model, random_model
from elimina.methods import and_or_search
from elimina.methods import first_bounds as first_bounds_module
from elimina.methods.first_bounds import first_bounds, result_of_assignment
from elimina.planning import ordering
from elimina.planning.order import find_order
from elimina.problem.preparation import prepare
from elimina.problem.tasks import TASKS, described
from elimina.result import Result
from elimina.running import call_thread, form_search
from elimina.running.call_thread import do_in_thread
from elimina.running.combination import combine
from elimina.running.garbage_collection import without_collection
from elimina.strategies import call, portfolio
from elimina.strategies.call import Call
from tests import calls
from tests.reference import brute
from tests.seeds import run_seed

HARD = random_model(40, 10, 0.5, 0.0, seed=3)
SLACK = 2.0
"""Seconds that a loaded machine may add."""


def left_alone():
    """Return whether work that would not end is still running."""
    return any(thread.is_alive() for thread in call_thread._abandoned_threads)


def interrupting(monkeypatch, module, name):
    """Make a function that takes forever, and interrupt it once it has begun; return the thread, and whether it has."""
    begun = threading.Event()

    def forever(*_, **__):
        begun.set()
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(module, name, forever)

    def interrupt():
        begun.wait(60)
        # In any case, lest the call never end.
        signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread, begun.is_set


def test_a_call_leaves_the_interpreter_to_profilers():
    # In a process of its own: what is profiled there may not end.
    program = """
import cProfile
import elimina
model = elimina.Model.from_arrays([2], [((0,), [1, 2])])
elimina.solve(model, device="cpu")
cProfile.run("elimina.solve(model, device='cpu')")
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=60)


PHASES = [
    (portfolio, "prepare"),
    (portfolio, "plan_call"),
    (portfolio, "rough_order"),
    (form_search, "kept_plan"),
    (portfolio, "eliminate"),
    (and_or_search, "heuristic_of"),
    (and_or_search, "search_tree"),
    (and_or_search, "shift_tables"),
]


@pytest.mark.parametrize(("module", "name"), PHASES)
def test_an_interrupt_in_any_phase(monkeypatch, module, name):
    options = {"method": "search"} if module is and_or_search else {}
    if module is portfolio and name == "eliminate":
        options = {"method": "eliminate"}
        model = grid_model(3, 2, 0.0, seed=1)
    else:
        model = HARD
    thread, has_begun = interrupting(monkeypatch, module, name)
    result = calls.solve(model, device="cpu", order_seconds=0.1, **options)
    assert (result.status, result.ended_by) == ("bounded", "interrupt")
    assert result.lower_bound <= result.upper_bound == result.value
    thread.join()
    assert has_begun()


@pytest.mark.parametrize("task", ["mpe", "pr", "mmap", "count"])
def test_a_time_limit_in_work_that_never_looks_at_it(monkeypatch, stuck, task):
    model = random_model(12, 3, 0.5, 0.0, seed=1) if task in ("mpe", "count") else network()
    query = {"query": ["x0", "x1"]} if task == "mmap" else {}
    monkeypatch.setattr(ordering, "find_order", stuck)
    started = time.monotonic()
    result = calls.solve(model, task, device="cpu", time_limit=0.5, **query)
    assert time.monotonic() - started < 0.5 + SLACK
    assert result.ended_by == "time-limit"
    assert result.lower_bound <= result.upper_bound


def network():
    random = np.random.default_rng(0)
    factors = [((i, (i + 1) % 8), random.random((3, 3)) + 0.1) for i in range(8)]
    return Model.from_arrays([3] * 8, factors, sense="probability")


@pytest.mark.parametrize(
    ("error", "ended_by"),
    [
        (MemoryLimitError("no room"), "memory-limit"),
        (MemoryError("no room"), "memory-limit"),
        (DeviceError("broken"), "device-error"),
        (ClusterError("nobody left"), "worker-lost"),
        # The limit of a strategy passed: the call has none.
        (TimeLimitError("late"), None),
        (KeyboardInterrupt(), "interrupt"),
    ],
)
def test_what_ends_a_call(error, ended_by):
    found = Result("bounded", "mpe", 7, 3, 7, {"x": 0})

    def work():
        run.report(found)
        raise error

    run = Call("mpe")
    result = run.answer(work)
    assert (result.status, result.value, result.lower_bound, result.ended_by) == ("bounded", 7, 3, ended_by)
    run = Call("mpe")
    with pytest.raises(type(error)):
        run.answer(lambda: (_ for _ in ()).throw(error))


def test_failures_are_raised_whatever_is_known():
    def work():
        run.report(Result("bounded", "mpe", 7, 3, 7, {"x": 0}))
        raise ValueError("a defect")

    run = Call("mpe")
    with pytest.raises(ValueError, match="a defect"):
        run.answer(work)


def test_an_exception_that_comes_after_the_work_is_not_raised(monkeypatch):
    class Slow(SimpleQueue):
        def put(self, item):
            for _ in range(30):
                time.sleep(0.01)
            super().put(item)

    strays = []
    monkeypatch.setattr(threading, "excepthook", strays.append)
    others = threading.enumerate()
    run = Call("mpe", time_limit=0.0)
    run._events = Slow()
    with pytest.raises(TimeLimitError):
        run.answer(lambda: None)
    for thread in set(threading.enumerate()).difference(others):
        thread.join(5)
    assert not strays


def test_an_exception_between_the_work_and_its_end_is_caught(monkeypatch):
    strays = []
    monkeypatch.setattr(threading, "excepthook", strays.append)
    monkeypatch.setattr(call, "SOFT_SECONDS", 0.0)
    for number in range(200):
        until = time.monotonic() + 1e-5 * number
        run = Call("mpe", time_limit=0.0)

        def work(until=until):
            while time.monotonic() < until:
                pass

        with pytest.raises(TimeLimitError):
            run.answer(work)
    assert not strays
    threads = [thread for thread in threading.enumerate() if thread.name == "elimina"]
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def begin_at_once(monkeypatch, begun):
    """Let a call attend to its work from the moment at which the work sets an event."""
    do_in_thread = call.do_in_thread

    def started(work):
        thread = do_in_thread(work)
        assert begun.wait(60)
        return thread

    monkeypatch.setattr(call, "do_in_thread", started)


def test_an_exception_that_a_callback_drops_comes_again(monkeypatch):
    strays, places, begun = [], [], threading.Event()
    begin_at_once(monkeypatch, begun)
    monkeypatch.setattr(sys, "unraisablehook", strays.append)
    monkeypatch.setattr(call, "HARD_SECONDS", 60.0)

    class Thing:
        pass

    def wait(place):
        places.append(place)
        while True:
            time.sleep(0.001)

    def work():
        begun.set()
        thing = Thing()
        reference = weakref.ref(thing, lambda _: wait("callback"))
        del thing
        assert reference() is None
        wait("work")

    with pytest.raises(TimeLimitError):
        Call("mpe", time_limit=0.0).answer(work)
    assert places == ["callback", "work"]
    assert not strays
    assert not left_alone()


def test_an_exception_that_a_thread_left_alone_drops_is_not_reported(monkeypatch):
    strays = []
    monkeypatch.setattr(sys, "unraisablehook", strays.append)
    monkeypatch.setattr(call, "HARD_SECONDS", 0.01)
    may_go_on, begun = threading.Event(), threading.Event()
    begin_at_once(monkeypatch, begun)

    class Thing:
        def __del__(self):
            begun.set()
            # The exception is pending while this waits, and comes in this destructor.
            may_go_on.wait(60)

    with pytest.raises(TimeLimitError):
        Call("mpe", time_limit=0.0).answer(lambda: Thing() and None)
    assert left_alone()
    may_go_on.set()
    while left_alone():
        time.sleep(0.001)
    assert not strays

    class Broken:
        def __del__(self):
            raise ValueError

    Broken()
    assert [stray.exc_type for stray in strays] == [ValueError]


@pytest.mark.parametrize("sense", ["min-cost", "max-cost"])
@pytest.mark.parametrize("is_integer", [True, False])
def test_first_bounds_that_do_not_reach_the_upper_bound(sense, is_integer):
    sign = 1 if sense == "min-cost" else -1
    value = np.array([3]) if is_integer else np.array([3.5])
    problem = prepare(Model.from_arrays([1], [((0,), value)], sense=sense), "mpe", {})
    beyond = 1 if is_integer else 0
    for distance, status in ((2, "infeasible"), (-2, "optimal")):
        given = 3 - sign * distance
        result = first_bounds(problem, 1.0, given)
        assert result.status == status
        if status == "infeasible":
            assert (result.lower_bound if sign == 1 else result.upper_bound) == given + sign * beyond


def test_the_number_of_assignments_of_a_large_model_is_counted_at_once():
    count = 300_000
    problem = prepare(Model.from_arrays([3] * count, []), "count", {})
    assert len(problem.free) == count
    started = time.process_time()
    result = result_of_assignment(problem, 0.0, [0] * count)
    assert time.process_time() - started < 2  # three seconds and more, factor by factor
    assert result.upper_bound.bit_length() == math.floor(count * math.log2(3)) + 1


def test_no_garbage_is_searched_for_while_work_is_ended():
    run, seen = Call("pr", 0.01), []

    def work():
        with without_collection():
            while not run._is_ended:
                time.sleep(1e-4)
            seen.append(gc.isenabled())

    with pytest.raises(TimeLimitError):
        run.answer(work)
    assert seen == [False]
    assert gc.isenabled()


def test_a_call_that_ends_at_once_keeps_to_the_upper_bound():
    model = Model([], [], sense="max-cost")
    for limit in (1e-9, 1e-4, 1e-3, 10.0):
        result = calls.solve(model, tables="sparse", upper_bound=1_000_000, time_limit=limit)
        assert result.status == "infeasible"


@pytest.mark.parametrize("sense", ["min-cost", "max-cost"])
@pytest.mark.parametrize("total", [3106503990357580986, 2**53 + 1, -(2**60) - 1])
def test_first_bounds_of_large_integers_are_exact(sense, total):
    """Floats beyond 2^53 would round a bound to the wrong side of the optimum."""
    model = Model.from_arrays([2], [((0,), np.array([total, total])), ((), np.array(1))], sense=sense)
    found = first_bounds(prepare(model, "mpe", {}), 1.0)
    assert (found.lower_bound, found.upper_bound) == (total + 1, total + 1)


@pytest.mark.parametrize("task", TASKS)
def test_a_call_that_ends_at_once_knows_that_nothing_is_allowed(task):
    is_sum = described(task).is_sum
    cells = np.zeros((2, 2)) if is_sum else np.full((2, 2), elimina.FORBIDDEN)
    model = Model.from_arrays([2, 2], [([0, 1], cells)], sense="probability" if is_sum else "min-cost")
    query = ["x0"] if described(task).maximises_query else None
    early, whole = (elimina.solve(model, task, query=query, time_limit=limit) for limit in (1e-9, None))
    for field in ("status", "value", "count", "log10_z", "lower_bound", "upper_bound"):
        assert getattr(early, field) == getattr(whole, field), field


@pytest.mark.parametrize(("limit", "least", "most"), [(None, 0.05, 0.1), (60.0, 0.05, 0.1), (0.2, 0.0, 0.1)])
def test_first_bounds_have_the_time_that_is_left(limit, least, most):
    given = []

    def work():
        if limit != 0.2:
            signal.raise_signal(signal.SIGINT)
        time.sleep(30)

    def fallback(seconds):
        given.append(seconds)
        return Result("bounded", "mpe", 7, 3, 7, {"x": 0})

    run = Call("mpe", limit)
    run.fallback = fallback
    found = run.answer(work)
    assert found.ended_by == ("time-limit" if limit == 0.2 else "interrupt")
    assert least <= given[-1] <= most


@pytest.mark.parametrize("method", ["auto", "eliminate", "search", "mbe"])
@pytest.mark.parametrize("size", [1, 4, 12])
def test_reported_bounds_have_the_decimals_of_the_costs(size, method):
    random = np.random.default_rng([run_seed(), size])
    tables = [((i, i + 1), random.integers(0, 9, (2, 2)) / 10) for i in range(size)]
    tables += [((i,), random.integers(1, 9, 2) / 10) for i in range(size + 2)]
    model = Model.from_arrays([2] * (size + 2), tables)
    model.decimals = 1
    seen: list[elimina.Bounds] = []
    result = calls.solve(model, method=method, on_bounds=seen.append)
    assert (seen[-1].lower, seen[-1].upper) == (result.lower_bound, result.upper_bound)
    ends = [end for bounds in seen for end in (bounds.lower, bounds.upper) if end is not None]
    assert [end for end in ends if 0 < abs(end - round(end, 1)) < 1e-9] == []


def test_the_last_bounds_are_told():
    seen = []

    def work():
        run.report(Result("bounded", "mpe", 7, 3, 7, {"x": 0}))
        time.sleep(0.3)
        run.report(Result("bounded", "mpe", 6, 4, 6, {"x": 1}))
        time.sleep(10)

    run = Call("mpe", time_limit=0.28, listener=seen.append)
    found = run.answer(work)
    assert [bounds[1:3] for bounds in seen][-1] == (found.lower_bound, found.upper_bound)
    assert len({bounds[1:3] for bounds in seen}) == len(seen)


def test_the_exception_of_a_listener_ends_the_work():
    class Stop(Exception):
        pass

    def stop(_):
        raise Stop

    with pytest.raises(Stop):
        calls.solve(HARD, device="cpu", method="search", on_bounds=stop)


def test_seconds_sum_to_the_wall_time():
    started = time.monotonic()
    result = elimina.solve(HARD, device="cpu", time_limit=1.5)
    wall = time.monotonic() - started
    seconds = dict(result.stats["seconds"])
    total = seconds.pop("total")
    assert total == pytest.approx(sum(seconds.values()), abs=1e-4)
    assert wall - SLACK < total <= wall
    assert seconds["other"] < 0.1 * total


def test_bounds_are_combined():
    one = Result("bounded", "mpe", 9, 3, 9, {"x": 1})
    other = Result("bounded", "mpe", None, 5, None)
    assert combine(None, one, 1) == one
    both = combine(one, other, 1)
    assert (both.value, both.lower_bound, both.upper_bound, both.assignment) == (9, 5, 9, {"x": 1})
    assert combine(both, Result("bounded", "mpe", None, 9, None), 1).status == "optimal"
    worst = Result("bounded", "mpe", 2, 2, 8, {"x": 1})
    best = combine(worst, Result("bounded", "mpe", 4, 4, None, {"x": 2}), -1)
    assert (best.value, best.lower_bound, best.upper_bound, best.assignment) == (4, 4, 8, {"x": 2})


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("task", ["mpe", "count"])
def test_first_bounds_hold(task, seed):
    model = random_model(7, 3, 0.6, 0.2, seed=seed)
    found = first_bounds(prepare(model, task, {}), 60)
    best = brute.solve(model, task, {}) if hasattr(brute, "solve") else elimina.solve(model, task, device="cpu")
    value = best.value if isinstance(best, Result) else best
    assert found.lower_bound <= value
    assert found.upper_bound is None or value <= found.upper_bound


def test_first_bounds_of_sums_hold():
    model = network()
    log10_z = elimina.solve(model, "pr", device="cpu").log10_z
    found = first_bounds(prepare(model, "pr", {}), 60)
    assert found.lower_bound <= log10_z <= found.upper_bound
    best = elimina.solve(model, "mmap", query=["x0", "x3"], device="cpu")
    found = first_bounds(prepare(model, "mmap", {}, [0, 3]), 60)
    assert found.lower_bound <= best.value <= found.upper_bound


def test_first_bounds_without_time_hold() -> None:
    """The assignment is not improved, and the bound of the tables is the same."""
    model = random_model(7, 3, 0.6, 0.0, seed=3)
    problem = prepare(model, "mpe", {})
    quick, improved = first_bounds(problem, 0), first_bounds(problem, 60)
    assert quick.lower_bound == improved.lower_bound
    assert quick.value == model.score([0] * 7)
    assert improved.value < quick.value


def test_mini_buckets_leave_the_bound_of_the_largest_that_finished(monkeypatch):
    # A clique of tables whose largest mini-buckets take far longer than the limit.
    model = random_model(40, 4, 0.5, 0.0, seed=2)
    result = calls.solve(model, method="mbe", device="cpu", time_limit=6)
    assert result.status == "bounded"
    assert result.stats["method"] == "mbe"
    assert result.lower_bound <= result.upper_bound == result.value
    assert result.stats["seconds"]["total"] < 6 + SLACK


def test_long_calls_of_the_core_end_once_they_are_asked_to():
    stop = Stop()
    timer = threading.Timer(0.3, stop.request)
    timer.start()
    started = time.monotonic()
    random = np.random.default_rng(0)
    scopes = [random.choice(3000, size=3, replace=False).tolist() for _ in range(9000)]
    obey(stop)
    try:
        with pytest.raises(Stopped):
            find_order([3] * 3000, scopes, seconds=60)
    finally:
        obey(None)
    assert time.monotonic() - started < 5


def test_first_bounds_keep_no_more_copies_than_their_memory() -> None:
    """The bound is that of all tables, whatever the assignment is improved on."""
    rng = np.random.default_rng(4)
    model = Model.from_arrays([6] * 12, [((v, v + 1), rng.integers(0, 99, (6, 6))) for v in range(11)])
    problem = prepare(model, "mpe", {})
    copied = [problem.tables.listed.incumbent("min-cost", 10**6, 0, 36, 36, 36 * number) for number in (11, 5, 0)]
    assert [len(incumbent.values) for incumbent in copied] == [12, 6, 0]
    found = [first_bounds_module.first_bounds(problem, 60, None, memory) for memory in (math.inf, 8 * 36 * 5, 0)]
    assert len({result.lower_bound for result in found if result is not None}) == 1
    assert found[0].upper_bound < found[2].upper_bound


def test_an_interrupt_as_reading_ends_is_not_lost():
    """The model is read, but the call that it is read for is not done."""

    def work():
        signal.raise_signal(signal.SIGINT)
        while not stopped():
            time.sleep(0.01)
        return "read"

    with pytest.raises(KeyboardInterrupt):
        Call("read").result(work)


@pytest.mark.parametrize("begins", [False, True])
def test_an_interrupt_as_the_work_starts(monkeypatch, begins):
    def interrupted(work):
        if begins:
            do_in_thread(work)
        raise KeyboardInterrupt

    monkeypatch.setattr(call, "do_in_thread", interrupted)
    began = []
    monkeypatch.setattr(portfolio.Solver, "begin", lambda self: began.append(1))
    result = calls.solve(HARD)
    assert (result.status, result.ended_by) == ("bounded", "interrupt")
    assert begins or not began


def test_an_interrupt_before_posteriors_are_prepared(monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(call, "do_in_thread", interrupted)
    result = calls.solve(network(), "mar", time_limit=0.1)
    assert (result.status, result.ended_by) == ("estimated", "interrupt")
    with pytest.raises(KeyboardInterrupt):
        calls.solve(network(), "mar", exact=True, time_limit=0.1)


def test_an_interrupt_while_a_time_limit_ends_the_work(monkeypatch):
    """The answer is there, though the work does not stop at once."""
    end, interrupts = Call._end, [KeyboardInterrupt()]

    def interrupted(self, *arguments):
        if interrupts:
            raise interrupts.pop()
        end(self, *arguments)

    monkeypatch.setattr(Call, "_end", interrupted)
    result = calls.solve(HARD, device="cpu", time_limit=0.5)
    assert (result.status, result.ended_by) == ("bounded", "interrupt")
    assert not interrupts
    interrupts += [KeyboardInterrupt(), KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        calls.solve(HARD, device="cpu", time_limit=0.5)
