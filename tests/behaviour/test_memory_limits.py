"""Limits on memory: what a call takes, tables and all that lies beside them, in a process of its own."""

from __future__ import annotations

import functools
import json
import math
import re
import subprocess
import sys
import weakref

import numpy as np
import pytest

from elimina import Model, Table, Variable, system
from elimina.errors import MemoryLimitError, TimeLimitError
from elimina.generate import random_model
from elimina.methods import and_or_search, weighted_mini_buckets
from elimina.methods.mini_buckets import PseudoTreeTables, pseudo_tree_tables
from elimina.methods.search_state import SearchLimits
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.machine import cpu_machine
from elimina.planning.mini_buckets import make_bounded_plan
from elimina.planning.order import Order
from elimina.planning.planner import Elimination
from elimina.problem.preparation import prepare
from elimina.result import Result
from elimina.running.memory_shares import can_copy, shares_of, threads_within
from elimina.strategies import call, call_plan
from elimina.strategies import portfolio as portfolio_module
from elimina.strategies.call import Call
from elimina.strategies.strategy import Attempt, Strategy, pursue
from tests import calls
from tests.methods.test_weighted_mini_buckets import lattice
from tests.random_models import with_constraints

CHILD = """
import json, resource, sys
import numpy as np
import elimina
from elimina import Model, Table, Variable, system

kind, memory, seconds, threads = json.loads(sys.argv[1])
noise = np.random.default_rng(0)
variables = [Variable(f"x{n}", 2) for n in range(800)]
scopes = [sorted(noise.choice(800, 3, replace=False).tolist()) for _ in range(12000)]
if kind == "pr":
    tables = [Table(scope, noise.uniform(0.2, 1.0, (2, 2, 2))) for scope in scopes]
    model = Model(variables, tables, sense="probability")
else:
    tables = [Table(scope, noise.integers(0, 50, (2, 2, 2))) for scope in scopes]
    model = Model(variables, tables, sense="min-cost")
base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
options = elimina.Options(threads=threads)
found = elimina.solve(model, kind, device="cpu", memory=memory, time_limit=seconds, options=options)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base
print(json.dumps([peak, found.status, found.lower_bound, found.upper_bound]), flush=True)
import os
os._exit(0)
"""

FIRST_CALL = """
import numpy as np
import elimina
from elimina.methods import task_bounds

noise = np.random.default_rng(0)
side = 30
pairs = [(v, v + 1) for v in range(side**2) if (v + 1) % side] + [(v, v + side) for v in range(side**2 - side)]
factors = [(pair, np.exp(noise.normal() * np.array([[1, -1], [-1, 1]]))) for pair in pairs]
model = elimina.Model.from_arrays([2] * side**2, factors, sense="probability")
limits = []
task_bounds.improve_bounds = lambda problem, options, memory, *_: limits.append(memory) or ()
elimina.solve(model, "pr", device="cpu", memory=64_000_000, time_limit=4)
print(limits[0], flush=True)
"""

MEMORY = 64 << 20


def many_tables(number: int = 800) -> Model:
    """Binary costs of so many variables, 15 tables of three variables for each."""
    noise = np.random.default_rng(0)
    variables = [Variable(f"x{n}", 2) for n in range(number)]
    scopes = [sorted(noise.choice(number, 3, replace=False).tolist()) for _ in range(15 * number)]
    return Model(variables, [Table(scope, noise.integers(0, 50, (2, 2, 2))) for scope in scopes], sense="min-cost")


@pytest.mark.parametrize(("memory", "matched"), [(1 << 22, False), (1 << 30, True)])
def test_moment_matching_only_where_its_records_fit(memory, matched):
    problem = prepare(many_tables(), "mpe", {})
    plan = make_bounded_plan(
        Elimination(problem, problem.free, cpu_machine(1), memory, None), "auto", True, seconds=0.2
    )
    assert plan.minibuckets is not None
    assert plan.minibuckets.matched is matched


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_search_whose_lists_do_not_fit_ends(monkeypatch, is_alone):
    """Soft local consistency goes on as long as it can; then the memory limit is why the call ends."""
    monkeypatch.setattr(PseudoTreeTables, "bytes", lambda _: (1 << 40, 0))
    if is_alone:
        monkeypatch.setattr(and_or_search._AlternatingSearch, "begin_consistency", lambda *_: None)
    model = many_tables(20)
    found = calls.solve(model, "mpe", method="search", ibound=2, memory=MEMORY)
    assert (found.status, found.ended_by) == (("bounded", "memory-limit") if is_alone else ("optimal", None))
    assert found.assignment is not None


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of the largest resident set is the system's own")
@pytest.mark.parametrize(("task", "threads"), [("pr", None), ("mpe", None), ("mpe", 16)])
def test_a_call_with_many_small_tables_keeps_its_limit(task, threads):
    given = json.dumps([task, MEMORY, 6.0, threads])
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, given], capture_output=True, text=True, timeout=120, check=True
    )
    peak, status, lower, upper = json.loads(ended.stdout)
    # Beside its bounds, a sum is estimated if there is time.
    assert status in ("bounded", "estimated")
    assert lower is None or upper is None or lower <= upper
    assert peak <= 1.05 * MEMORY, f"{peak / 2**20:.1f} MiB"


class Held:
    """Anything large that the frame of a failed strategy holds."""


def test_a_failure_holds_nothing_of_what_failed():
    run, seen = Call("count"), []

    def fail(_):
        held = Held()
        seen.append(weakref.ref(held))
        try:
            raise ValueError("inside")
        except ValueError as error:
            raise MemoryLimitError("too large") from error

    def portfolio():
        outcome = yield Strategy(run, "one", fail)
        assert seen[0]() is None
        assert str(outcome.failure) == "too large"
        return Attempt(Result("exact", "count", count=3))

    pursue(run, portfolio())
    assert len(seen) == 1


def test_a_budget_counts_what_the_call_holds(monkeypatch):
    resident = [100]
    monkeypatch.setattr(system, "data_memory", lambda: resident[0])
    run = Call("mpe")
    resident[0] = 150
    assert run.budget().growth_bytes == 50
    assert call.InnerCall(run, lambda found: found, "part").growth_bytes == 50
    resident[0] = 70
    assert run.growth_bytes == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports the memory of data")
def test_a_first_call_leaves_most_of_the_memory_to_its_bounds():
    """Modules and libraries that a call loads are the program, and the tables of its estimates are freed.

    Blocks that the C library keeps for reuse count, and their size varies, so the better of two processes decides.
    """
    limits = []
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-c", FIRST_CALL], capture_output=True, text=True, timeout=120, check=True
        )
        limits.append(int(ended.stdout))
    assert max(limits) > 0.75 * 64_000_000


def test_where_the_system_does_not_tell_nothing_is_held(monkeypatch):
    monkeypatch.setattr(system, "data_memory", lambda: None)
    assert Call("mpe").budget().growth_bytes == 0


@pytest.mark.parametrize(
    ("memory", "left"), [(None, None), (1 << 20, 1 << 20), (64 << 20, 44 << 20), (24 << 20, 6 << 20)]
)
def test_options_leave_out_what_is_held(memory, left):
    assert CheckedOptions("cpu", memory).after_growth(20 << 20).memory == left


@pytest.mark.parametrize("memory", [1 << 16, 1 << 22, 1 << 26, 1 << 34])
def test_the_shares_of_a_search_add_up_to_its_memory(memory):
    problem = prepare(random_model(40, 8, 0.5, 0.2), "mpe", {})
    shares = shares_of(problem, memory)
    assert min(shares) > 0
    assert sum(shares) <= memory


def test_fewer_assignments_of_a_sum_take_less_memory(monkeypatch):
    """The sum given sixteen assignments is a lower bound; in less memory, it is that of the first ones."""
    model, bounds, counts = lattice(6, seed=1), [], []
    plan_on = weighted_mini_buckets.plan_on

    def limited(most, backend, problem, *arguments):
        count = problem.model.sizes[-1]
        counts.append(count)
        plan = plan_on(backend, problem, *arguments)
        return plan if count <= most else plan._replace(memory_limit=0)

    for most, tried in ((16, {16}), (8, {16, 4}), (2, {16, 4, 1}), (0, {16, 4, 1})):
        counts.clear()
        monkeypatch.setattr(weighted_mini_buckets, "plan_on", functools.partial(limited, most))
        found = calls.solve(model, "pr", method="mbe", ibound=2, device="cpu", order="min-fill")
        assert set(counts) == tried
        bounds.append(found.lower_bound)
        assert found.lower_bound <= found.upper_bound
    assert bounds == sorted(bounds, reverse=True)


@pytest.mark.parametrize("grown", [0, 40 << 20])
def test_a_plan_is_made_again_where_planning_has_left_less(monkeypatch, grown):
    """A plan in slices takes the place of one that no longer fits."""
    resident, plans = [0], []
    made = call_plan.plan_call

    def plan_call(*arguments, **options):
        prepared = made(*arguments, **options)
        resident[0] = grown
        plans.append(prepared.planned.plan)
        return prepared

    monkeypatch.setattr(portfolio_module, "plan_call", plan_call)
    monkeypatch.setattr(system, "data_memory", lambda: resident[0])
    noise = np.random.default_rng(0)
    scopes = [(i, j) for i in range(22) for j in range(i)]
    factors = [Table(scope, noise.uniform(0.5, 1.0, (2, 2))) for scope in scopes]
    model = Model([Variable(f"x{n}", 2) for n in range(22)], factors, sense="probability")
    found = calls.solve(model, "pr", method="eliminate", memory=MEMORY)
    assert found.status == "exact"
    sizes = [plan.bytes["host"] for plan in plans]
    assert MEMORY - (40 << 20) < sizes[0] <= MEMORY
    assert len(sizes) == (2 if grown else 1)
    assert sizes[-1] <= MEMORY - grown


def test_threads_of_soft_consistency_have_room_for_their_costs():
    problem = prepare(many_tables(), "mpe", {})
    counts = [threads_within(problem, 16, memory) for memory in (1 << 20, MEMORY, 1 << 28, 1 << 34)]
    assert counts[0] == 1
    assert counts[-1] == 16
    assert counts == sorted(counts)
    assert 1 < counts[1] < 16


def test_threads_of_a_search_have_room_for_their_lists():
    problem = prepare(many_tables(), "mpe", {})
    plan = make_bounded_plan(
        Elimination(problem, problem.free, cpu_machine(1), MEMORY, None), "auto", True, seconds=0.2
    )
    guide = pseudo_tree_tables(plan, problem.model.sizes)
    shared, own = guide.bytes()
    assert guide.threads_within(shared + own - 1, 16) == 0
    assert guide.threads_within(shared + 3 * own, 16) == 3
    assert guide.threads_within(1 << 34, 16) == 16


def test_many_small_tables_are_not_copied_where_their_objects_do_not_fit():
    assert can_copy(100_000, 20_000, 64 << 20)
    assert not can_copy(100_000, 20_000, 48 << 20)
    assert can_copy(10_000, 25_000, 1 << 20)


@functools.cache
def dense_model(variables: int, is_sum: bool) -> Model:
    """Return a random model of binary variables and ternary factors, whose width no float of cells counts."""
    noise = np.random.default_rng(variables)
    scopes = [sorted(noise.choice(variables, 3, replace=False).tolist()) for _ in range(10 * variables)]
    tables = [noise.uniform(0.2, 1.0, (2, 2, 2)) if is_sum else noise.integers(0, 50, (2, 2, 2)) for _ in scopes]
    return Model(
        [Variable(f"x{v}", 2) for v in range(variables)],
        [Table(scope, table) for scope, table in zip(scopes, tables, strict=True)],
        sense="probability" if is_sum else "min-cost",
    )


@pytest.mark.parametrize("variables", [1200, 5000])
@pytest.mark.parametrize("task", ["mpe", "pr", "mar", "mmap", "count"])
def test_widths_beyond_a_thousand_end_as_others_do(task, variables):
    query = ["x0", "x1"] if task == "mmap" else None
    model = dense_model(variables, task in ("pr", "mar", "mmap"))
    if task == "count":
        model = with_constraints(model)
    try:
        found = calls.solve(model, task, query=query, device="cpu", memory=MEMORY, time_limit=1.0, order_seconds=0.1)
    except (MemoryLimitError, TimeLimitError):
        return
    assert found.status in (("bounded",) if task in ("mpe", "mmap") else ("bounded", "estimated"))
    assert None in (found.lower_bound, found.upper_bound) or found.lower_bound <= found.upper_bound


@pytest.mark.parametrize("task", ["mpe", "pr", "mar", "count"])
def test_plans_of_any_width_have_figures(task):
    # The hub is eliminated first, and leaves a table over all the others.
    variables = 1500
    table = np.ones((2, 2)) if task in ("pr", "mar") else np.ones((2, 2), np.int64)
    tables = [Table([0, v], table) for v in range(1, variables)]
    sense = "probability" if task in ("pr", "mar") else "min-cost"
    model = Model([Variable(f"x{v}", 2) for v in range(variables)], tables, sense=sense)
    if task == "count":
        model = with_constraints(model)
    order = [variable.name for variable in model.variables]
    plan = calls.plan(model, task, order=order, device="cpu", memory=MEMORY, slices="never")
    assert not plan.fits
    assert "memory" in str(plan)


def test_an_order_of_any_width_has_an_estimated_time():
    order = Order(tuple(range(5000)), 4999, 2**5001, 2**4999, "min-fill", 0.0)
    assert 1e6 < order.seconds_at(1e9) < math.inf


def test_a_search_shares_out_what_the_process_has_left(monkeypatch):
    """Messages and caches are smaller where the process has grown by more than was planned."""
    problem = prepare(random_model(20, 3, 0.3, seed=1), "mpe", {})
    resident = 100 << 20
    monkeypatch.setattr(and_or_search.system, "data_memory", lambda: resident)
    limited = and_or_search._AlternatingSearch(problem, CheckedOptions(memory=64 << 20), SearchLimits(), None)
    small = and_or_search._AlternatingSearch(problem, CheckedOptions(memory=1 << 20), SearchLimits(), None)
    before = limited.remaining_shares()
    assert before == limited.shares
    resident += 44 << 20
    assert limited.remaining_shares().cache == (20 << 20) // 4 < before.cache
    assert small.remaining_shares() == small.shares


@functools.cache
def chain(variables: int) -> Model:
    """Return a chain of ternary variables, whose plan takes far more memory than its tables."""
    noise = np.random.default_rng(0)
    tables = [Table((v, v + 1), noise.integers(0, 10, (3, 3))) for v in range(variables - 1)]
    return Model([Variable(f"x{v}", 3) for v in range(variables)], tables, sense="min-cost")


MANY = 30_000


@pytest.mark.parametrize("task", ["mpe", "count"])
def test_what_a_plan_shows_is_what_counts(task):
    plan = calls.plan(chain(MANY), task, device="cpu")
    assert plan.planning_bytes > plan.peak_bytes / 2
    assert f"{plan.peak_bytes / 2**20:.1f} MiB" in str(plan)
    found = calls.solve(chain(MANY), task, device="cpu", memory=plan.peak_bytes + (4 << 20))
    assert found.status in ("optimal", "exact")
    assert found.stats["peak_bytes"] == plan.peak_bytes
    for memory in (plan.peak_bytes // 2, plan.peak_bytes - 1):
        assert not calls.plan(chain(MANY), task, device="cpu", memory=memory).fits
        with pytest.raises(MemoryLimitError, match=f"needs {plan.peak_bytes / 2**20:.1f} MiB on cpu and may use"):
            calls.solve(chain(MANY), task, device="cpu", memory=memory, exact=task == "count")


@pytest.mark.parametrize("task", ["mpe", "count"])
@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_plan_of_too_many_steps_is_refused_at_once_with_a_limit_that_is_enough(task, share, caplog):
    memory = int(share * calls.plan(chain(MANY), task, device="cpu").peak_bytes)
    with caplog.at_level("INFO", "elimina"), pytest.raises(MemoryLimitError) as caught:
        calls.solve(chain(MANY), task, device="cpu", memory=memory, exact=task == "count")
    told = re.search(r"to list its steps takes .*; memory=\"(\d+MiB)\" would be enough$", str(caught.value))
    assert told is not None, caught.value
    steps = [record.getMessage().split(":")[0] for record in caplog.records]
    assert [step for step in steps if step != "next"] == ["plan"], "nothing else is tried"
    assert calls.solve(chain(MANY), task, device="cpu", memory=told[1]).status in ("optimal", "exact")


@pytest.mark.parametrize("memory", ["20MB", "40MB"])
def test_a_limit_counts_what_the_call_holds_and_advises_by_it(monkeypatch, memory):
    """The first plan does not fit beside what the call holds; the limit that is advised leaves room for both."""
    resident = iter(range(0, 1 << 40, 1 << 20))
    monkeypatch.setattr(system, "data_memory", lambda: next(resident))
    model = lattice(18, seed=1)
    with pytest.raises(
        MemoryLimitError, match=r"beside \d+\.0 MiB that the call holds.*memory=\"\d+MiB\" would"
    ) as caught:
        calls.solve(model, "mar", device="cpu", memory=memory, order_seconds=0.1, exact=True)
    monkeypatch.undo()
    told = re.search(r"memory=\"(\d+MiB)\" would be enough", str(caught.value))
    assert told is not None
    assert calls.plan(model, "mar", device="cpu", memory=told[1], order_seconds=0.1).fits
