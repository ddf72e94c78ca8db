"""Runs of a process that cannot start all of the threads that it asks for."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections import deque
from pathlib import Path
from queue import SimpleQueue

import pytest

import elimina
from elimina import MemoryLimitError, Result
from elimina.generate import random_model
from elimina.running import call_thread, pool
from elimina.strategies.call import Call

BIN = Path(sys.executable).parent
STACK = 1 << 30
QUEENS = Path(__file__).parents[2] / "examples" / "queens.fzn"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("threads") / "model.wcsp"
    elimina.write(random_model(18, 5, 0.4, 0.2, seed=3), path)
    return path


DIFFERENT = """
from elimina import _core, cp

model = cp.Model()
model.all_different(model.int_vars(4, 0, 3), side="gpu")
solver = model._build()[0]
solver.accelerate(_core.CpDevice(4), False)
print(solver.propagate(), solver.device_calls().count > 0)
"""


def run(threads, *command):
    """Run a command in a process that has room for the stacks of so many threads."""

    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        room = (threads * STACK) + STACK * 7 // 8
        resource.setrlimit(resource.RLIMIT_AS, (room, room))

    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [BIN / command[0], *command[1:]],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
        env=environment,
        timeout=60,
    )


@pytest.mark.parametrize("threads", range(6))
@pytest.mark.parametrize("method", ["eliminate", "search"])
def test_an_optimum(model, threads, method):
    ran = run(threads, "elimina", "solve", str(model), "--method", method, "--threads", "4", "--time-limit", "20")
    if threads >= 3:
        assert ran.returncode == 0, ran.stderr
    if ran.returncode == 0:
        optimum = elimina.solve(model).value
        assert f"value:      {optimum}\n" in ran.stdout or "status:     bounded" in ran.stdout
    else:
        assert ran.returncode == 1
        assert len(ran.stderr.splitlines()) == 1, ran.stderr
        assert "raise " in ran.stderr


@pytest.mark.parametrize("threads", range(4))
def test_constraints(threads):
    ran = run(threads, "fzn-elimina", "-p", "4", "-a", str(QUEENS))
    if threads:
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.count("----------") == 92
        assert ran.stdout.endswith("==========\n")
    else:
        assert (ran.returncode, ran.stderr) == (1, "fzn-elimina: out of memory\n")


@pytest.mark.parametrize("threads", range(5))
def test_a_team_that_filters_all_different(threads):
    ran = run(threads, "python", "-c", DIFFERENT)
    assert (ran.returncode, ran.stdout) == (0, "True True\n"), ran.stderr


LITTLE_ROOM = """
import resource, threading
from elimina import MemoryLimitError, system

def mapped():
    with open("/proc/self/statm") as figures:
        return int(figures.read().split()[0]) * resource.getpagesize()

outcomes = []
stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
for step in range(100):
    thread = threading.Thread(target=outcomes.append, args=("started",), daemon=True)
    resource.setrlimit(resource.RLIMIT_AS, (mapped() + stack + step * 16384 * 4, resource.RLIM_INFINITY))
    try:
        system.start_thread(thread)
    except MemoryLimitError:
        outcomes.append("refused")
    else:
        thread.join()
print(*outcomes)
"""


def test_no_thread_starts_without_memory_for_its_first_objects():
    """CPython waits for ever for a thread that ends before it notes its start."""
    command = [sys.executable, "-c", LITTLE_ROOM]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")
    outcomes = ran.stdout.split()
    assert len(outcomes) == 100
    assert set(outcomes) == {"refused", "started"}


@pytest.mark.parametrize("place", ["run", "_next", "release"])
def test_a_thread_that_ends_without_an_answer(monkeypatch, place):
    """A lack of memory outside its work ends a thread, and the call."""

    def end(*_):
        raise MemoryError

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    call_thread.end_idle_threads()
    monkeypatch.setattr(call_thread.CallThread, place, end)
    costs = elimina.Model.from_arrays([2], [((0,), [1, 2])])
    if place == "release":
        assert elimina.solve(costs, device="cpu").value == 1
    else:
        with pytest.raises(MemoryLimitError, match="a thread ran out of memory"):
            elimina.solve(costs, device="cpu")


def test_an_answer_that_no_event_announces(monkeypatch):
    """The queue has no memory for the last event: the thread has ended, and its answer is there."""

    class Full(SimpleQueue):
        def put(self, event):
            if event is None:
                raise MemoryError
            super().put(event)

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    answer = Result("optimal", "mpe", 1, 1, 1, {"x": 0})
    run = Call("mpe")
    run._events = Full()
    assert run.answer(lambda: run.report(answer)).value == 1
    # Nor does the thread that has ended serve the next call.
    assert elimina.solve(elimina.Model.from_arrays([2], [((0,), [1, 2])]), device="cpu").value == 1


def test_a_thread_that_ends_while_it_rests(monkeypatch):
    """The next call gets another thread."""
    wait, has_rested = call_thread.CallThread._next, threading.Event()

    def end_at_rest(self):
        if self.is_free:
            has_rested.set()
            raise MemoryError
        return wait(self)

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    call_thread.end_idle_threads()
    monkeypatch.setattr(call_thread.CallThread, "_next", end_at_rest)
    costs = elimina.Model.from_arrays([2], [((0,), [1, 2])])
    for _ in range(3):
        has_rested.clear()
        assert elimina.solve(costs, device="cpu").value == 1
        assert has_rested.wait(60)
        for thread in threading.enumerate():
            if isinstance(thread, call_thread.CallThread):
                thread.join(60)
        assert not call_thread.idle_threads


@pytest.mark.parametrize("lost", [{0}, {1}, {0, 1}])
def test_a_member_of_a_pool_that_ends_without_its_results(monkeypatch, lost):
    def end(self, member):
        if member in lost:
            self._next_position(deque())
            has_ended.set()
        else:
            has_ended.wait(60)
            serve(self, member)

    has_ended, serve = threading.Event(), pool._Pool._serve
    monkeypatch.setattr(pool._Pool, "_serve", end)
    with pytest.raises(MemoryLimitError, match="a thread ran out of memory"):
        list(pool.spread([0, 1], range(100), lambda _, items: items))
