"""The thread of a call: it rests for the next one, and garbage collection goes on after it, whatever ends the call."""

from __future__ import annotations

import gc
import os
import threading
import time
import weakref

import numpy as np
import pytest

from elimina import Model, Options, Result, TimeLimitError, solve
from elimina.running import call_thread
from elimina.running.garbage_collection import without_collection
from elimina.strategies import call_plan, portfolio
from elimina.strategies.call import Call


def chain(count=1100):
    pairs = [([v, v + 1], np.ones((2, 2))) for v in range(count - 1)]
    return Model.from_arrays([2] * count, pairs, sense="probability")


def test_nesting_and_the_setting_before():
    with without_collection():
        with without_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with without_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.parametrize("task", ["mpe", "pr", "mar"])
@pytest.mark.parametrize("failure", [None, ValueError, "interrupt"])
def test_plans_are_made_without_collections(monkeypatch, task, failure):
    plan, seen = call_plan.plan_call, []

    def watched(*arguments, **options):
        seen.append(gc.isenabled())
        if failure == "interrupt":
            # What ends a thread may come before the last line of what it does.
            gc.disable()
            raise KeyboardInterrupt
        if failure is not None:
            raise failure
        return plan(*arguments, **options)

    monkeypatch.setattr(portfolio, "plan_call", watched)
    if failure is None:
        solve(chain(), task, device="cpu", options=Options(method="eliminate"))
    else:
        with pytest.raises((ValueError, KeyboardInterrupt)):
            solve(chain(), task, device="cpu", options=Options(method="eliminate"))
    assert seen
    assert not any(seen)
    assert gc.isenabled()


def rests(thread):
    """Return whether it is the thread of a call that has ended."""
    return isinstance(thread, call_thread.CallThread) and thread.is_free


def threads_of(calls, work=lambda run: None, **options):
    """Return the threads of some calls."""
    found = []

    def do(run):
        found.append(threading.current_thread())
        work(run)
        run.report(Result("exact", "pr", 1.0))

    for _ in range(calls):
        run = Call("pr", **options)
        run.answer(lambda run=run: do(run))
    return found


def test_calls_share_a_thread():
    assert len(set(threads_of(20))) == 1


def test_a_thread_that_rests_holds_nothing_of_its_call():
    class Thing:
        pass

    known = []

    def work(run):
        thing = Thing()
        run.thing = thing
        known.append(weakref.ref(thing))

    threads_of(1, work)
    until = time.monotonic() + 10
    while known[0]() is not None and time.monotonic() < until:
        time.sleep(0.001)
    assert known[0]() is None


def test_it_ends_if_no_other_call_comes(monkeypatch):
    monkeypatch.setattr(call_thread, "IDLE_THREAD_SECONDS", 0.01)
    first, *_ = threads_of(3)  # one from before may rest longer
    last = threads_of(1)[0]
    for thread in (first, last):
        thread.join(10)
        assert not thread.is_alive()
    assert threads_of(1)[0].is_alive()


def test_calls_at_the_same_time_have_threads_of_their_own():
    meeting, found = threading.Barrier(3), []
    callers = [
        threading.Thread(target=lambda: found.extend(threads_of(1, lambda run: meeting.wait(10)))) for _ in range(3)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(set(found)) == 3


def test_an_ended_call_leaves_its_thread_to_nobody():
    """An exception that was raised there may come late."""
    found = []
    with pytest.raises(TimeLimitError):
        threads_of(1, lambda run: found.append(threading.current_thread()) or time.sleep(0.3), time_limit=0.1)
    assert found[0] not in threads_of(3)
    found[0].join(10)
    assert not found[0].is_alive()


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no such call")
def test_a_thread_bound_to_other_processors_is_not_taken():
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("one processor")
    free = threads_of(1)[0]
    os.sched_setaffinity(0, {min(before)})
    try:
        seen = []
        bound = threads_of(1, lambda run: seen.append(os.sched_getaffinity(0)))[0]
    finally:
        os.sched_setaffinity(0, before)
    assert seen == [{min(before)}]
    assert bound is not free


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
def test_a_fork_has_threads_of_its_own():
    threads_of(1)
    child = os.fork()
    if not child:
        os._exit(0 if len(set(threads_of(2))) == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
