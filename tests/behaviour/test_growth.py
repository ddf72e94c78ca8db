"""Time and memory grow with the number of variables, not with its square."""

import gc
import itertools
import time
import tracemalloc

import numpy as np
import pytest

import elimina
from elimina._core import Arena, TableList
from elimina.planning import planner
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.option_checks import check_options
from elimina.planning.options import Options
from elimina.planning.program import pack
from elimina.planning.slice_dependence import Reach
from elimina.problem.preparation import prepare
from elimina.running.plan_choice import plan_problem
from elimina.running.propagator import Propagator
from elimina.running.scales import Scales, root_outputs
from tests import calls

FEW, MANY = 250, 2000
"""Variables. Calls of quadratic time or memory take 64 times as much for many as for few."""

TRIES = 3
"""Times that both are measured, at most."""

MOST = 16.0
"""Ratio that a linear call stays below on a busy machine, with its constant share."""


def edges(family, n, seed=0):
    rng = np.random.default_rng(seed)
    if family == "tree":
        return [(v - 1 - int(rng.integers(min(v, 50))), v) for v in range(1, n)]
    if family == "grid":
        return [(v, v + 4) for v in range(n - 4)] + [(v, v + 1) for v in range(n - 1) if v % 4 < 3]
    if family == "star":
        return [(0, v) for v in range(1, n)]
    return [(v, v + 1) for v in range(n - 1)] + [(v, v + 2) for v in range(0, n - 2, 5) if family == "chords"]


def model(family, n, sense="probability", states=3):
    rng = np.random.default_rng(n)
    pairs = edges(family, n)
    if family == "network":
        tables = [elimina.Table([0], np.full(states, 1 / states))]
        rows = rng.dirichlet(np.ones(states), size=(n, states))
        tables += [elimina.Table(pair, row) for pair, row in zip(pairs, rows, strict=False)]
        variables = [elimina.Variable(f"x{v}", states) for v in range(n)]
        return elimina.Model(variables, tables, sense="probability", children=range(n))
    values = rng.uniform(0.1, 1, (len(pairs), states, states))
    if sense != "probability":
        values = rng.integers(0, 100, values.shape)
    return elimina.Model.from_arrays([states] * n, list(zip(pairs, values, strict=True)), sense=sense)


def seconds(call):
    """Return the processor time of a call, without searches for garbage among what other tests have left."""
    gc.disable()
    try:
        started = time.process_time()
        call()
        return time.process_time() - started
    finally:
        gc.enable()


def assert_in_proportion(few, many):
    """Make sure that a call with eight times as many variables takes no more than 16 times as long."""
    few()
    little, much = [], []
    for _ in range(TRIES):
        much.append(seconds(many))
        little.extend(seconds(few) for _ in range(2))
        # What else runs only adds to a time.
        if min(much) < MOST * min(little):
            return
    raise AssertionError(f"{min(much)} s for many variables, and {min(little)} s for few")


def assert_linear(make, call):
    few, many = make(FEW), make(MANY)
    assert_in_proportion(lambda: call(few), lambda: call(many))


@pytest.mark.parametrize("family", ["chain", "tree", "chords", "grid", "star", "network"])
@pytest.mark.parametrize("task", ["mar", "pr", "mpe"])
def test_time_is_linear(family, task):
    sense = "min-cost" if task == "mpe" else "probability"
    assert_linear(
        lambda n: model(family, n, sense), lambda m: calls.solve(m, task, threads=1, device="cpu", order="min-fill")
    )


def test_time_of_much_evidence_and_of_samples_is_linear():
    def query(chain):
        tree = calls.junction_tree(chain, device="cpu", threads=1, order="min-fill")
        tree.set_evidence(dict.fromkeys(range(0, len(chain.variables), 2), 1))
        tree.marginals()
        tree.sample(2)

    assert_linear(lambda n: model("chain", n), query)


def test_posteriors_of_a_long_chain_take_little_memory():
    chain = model("chain", 3000)
    tracemalloc.start()
    calls.solve(chain, "mar", threads=1, device="cpu")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 << 20


def test_tables_for_the_core_leave_nothing_with_their_arrays():
    tables = [elimina.Table([0, 1], np.ones((3, 3))) for _ in range(1000)]
    TableList(tables[:1])
    tracemalloc.start()
    TableList(tables)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert kept < 20 * len(tables)


def test_encoded_factors_are_dropped_where_no_evidence_comes():
    problem = prepare(model("grid", 400), "mar", {})
    planned = plan_problem(problem, CheckedOptions(device="cpu"))
    outputs = range(len(planned.plan.outputs))
    few, many = (Propagator(planned, once=once) for once in (True, False))
    assert len(few._encoded.arena) == 0 < len(many._encoded.arena)
    assert few.run(outputs).log_sum == many.run(outputs).log_sum


def test_posteriors_of_a_long_chain_keep_a_time_limit():
    chain = model("chain", 100_000)
    started = time.monotonic()
    assert calls.solve(chain, "mar", threads=1, device="cpu", time_limit=0.01).status == "estimated"
    assert time.monotonic() - started < 3.0


def test_evidence_and_queries_of_a_long_chain_take_little_memory():
    chain = model("chain", 2000)
    tracemalloc.start()
    tree = calls.junction_tree(chain, threads=1, device="cpu")
    for v in range(0, 2000, 100):
        tree.set_evidence({v: 1})
        tree.marginals([v + 1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 << 20


def test_only_stale_steps_that_the_outputs_need_run_again():
    planned = plan_problem(prepare(model("chain", 30), "mar", {}), CheckedOptions(device="cpu", threads=1), runs=2)
    propagator = Propagator(planned)
    ran = []
    run = propagator._session.run
    propagator._session.run = lambda steps, progress: ran.append(steps) or run(steps, progress)
    everything = range(len(planned.plan.outputs))
    propagator.run(everything)
    propagator.run(everything)
    assert ran[0] is None
    assert len(ran[1]) == 0


@pytest.mark.parametrize("family", ["chain", "tree", "chords", "grid", "star", "network"])
@pytest.mark.parametrize("task", ["mar", "pr", "joint"])
def test_scales_are_of_the_messages_below_the_roots(family, task):
    query = [3, 40] if task == "joint" else None
    plan = plan_problem(prepare(model(family, 60), task, {7: 1}, query), check_options(Options())).plan
    below, stack = [], [plan.outputs[number].step for number in root_outputs(plan)]
    while stack:
        found = [operand.source for operand in plan.steps[stack.pop()].operands if operand.source >= 0]
        below += found
        stack += found
    assert sorted(Scales(plan)._below.tolist()) == sorted(below)


def test_posteriors_that_are_asked_for_once_reuse_memory():
    grid = model("grid", 400)
    once, tree = elimina.plan(grid, "mar", device="cpu"), elimina.JunctionTree(grid, device="cpu")
    assert tree.plan.keep
    assert not once.keep
    assert once.arena_cells < 0.8 * tree.plan.arena_cells
    found, expected = calls.solve(grid, "mar", device="cpu", threads=1), tree.marginals()
    for name, shares in found.marginals.items():
        assert list(shares.values()) == pytest.approx(expected[name], rel=1e-12)


@pytest.mark.parametrize("family", ["tree", "grid"])
def test_records_of_many_steps_are_written_where_they_are_read(monkeypatch, family):
    """Answers stay the same, whatever is observed, and in logarithms."""
    network = model(family, 120)

    def answers(threads):
        tree = elimina.JunctionTree(network, options=Options(threads=threads))
        found = []
        for known in ({}, {3: 1, 50: 2}, {50: 0, 119: 1}):
            tree.set_evidence(known)
            found.append((tree.log10_evidence, {name: values.tolist() for name, values in tree.marginals().items()}))
        for task, sense in (("mpe", "min-cost"), ("mpe", "probability"), ("count", "probability")):
            result = calls.solve(model(family, 120, sense), task, device="cpu", threads=threads)
            found.append((result.value, result.assignment))
        return found

    expected = answers(threads=1)
    monkeypatch.setattr(planner, "DEFERRED_WORDS", 1)
    # Plans for one thread are kept, and their records.
    assert answers(threads=2) == expected
    for task, sense in (("mar", "probability"), ("pr", "probability"), ("mpe", "min-cost"), ("count", "probability")):
        planned = plan_problem(prepare(model(family, 120, sense), task, {}), CheckedOptions(device="cpu", threads=2))
        program = pack(planned.plan, 120)
        assert (len(program.words), program.steps) == (0, len(planned.plan.steps))
        if task != "mar":
            continue
        in_logarithms, in_floats = (
            Propagator(planned, semiring).run(range(120)).log_sum for semiring in ("log-sum-exp", "sum-product")
        )
        assert in_logarithms == pytest.approx(in_floats, rel=1e-12)


def test_long_counts_pack_their_steps_once(monkeypatch):
    packed = []
    monkeypatch.setattr("elimina.running.execution.pack", lambda *args: packed.append(args) or pack(*args))
    chain = elimina.Model.from_arrays([3] * 300, [([v], np.ones(3)) for v in range(300)], sense="probability")
    assert elimina.solve(chain, "count", device="cpu").value == 3**300
    assert len(packed) == 1


def test_queries_in_other_semirings_stay_within_the_memory():
    chain = model("chain", 20)
    needed = elimina.JunctionTree(chain, device="cpu").plan.peak_bytes
    for memory, kept in ((needed, 1), (2 * needed, 2)):
        tree = elimina.JunctionTree(chain, device="cpu", memory=f"{memory}B")
        for _ in range(2):
            expected = tree.marginals()
            tree.max_marginals()
            assert len(tree._propagators) == kept
            assert all((tree.marginals()[name] == found).all() for name, found in expected.items())


def test_a_batch_and_queries_stay_within_the_memory():
    chain = model("chain", 20)
    free = calls.junction_tree(chain, device="cpu", threads=1)
    cases = {"x3": [1] * 40}
    expected = free.batch(cases)
    for memory in range(4 * free.plan.peak_bytes, 2 * free._batch.peak_bytes, free._batch.peak_bytes // 8):
        tree = calls.junction_tree(chain, device="cpu", threads=1, memory=memory)
        tree.marginals()
        tree.max_marginals()
        found = tree.batch(cases)
        assert len(tree._propagators) * tree.plan.peak_bytes + tree._batch.peak_bytes <= memory
        np.testing.assert_allclose(found.marginals["x7"], expected.marginals["x7"])


def test_reach_is_kept_within_bounds(monkeypatch):
    monkeypatch.setattr("elimina.planning.slice_dependence._REACHED_KEPT", 10)
    reach = Reach([(), (0,), (1, 0), (2,)])
    for starts in itertools.permutations(range(4), 2):
        assert set(reach.of(starts).tolist()) == set(range(max(starts) + 1))
        assert sum(map(len, reach._reached.values())) <= 10


class FirstFit:
    """A plain list of free spans, the first that fits."""

    def __init__(self, itemsize):
        self.item, self.free, self.height = itemsize, [], 0

    def rounded(self, span):
        alignment = 256 if span * self.item >= 256 else 16
        return alignment // self.item, -(-max(span, 1) // (16 // self.item)) * (16 // self.item)

    def take(self, span):
        unit, span = self.rounded(span)
        self.free.sort()
        for i, (start, end) in enumerate(self.free):
            offset = -(-start // unit) * unit
            if offset + span <= end:
                self.free[i : i + 1] = [(a, b) for a, b in ((start, offset), (offset + span, end)) if a < b]
                return offset
        start = self.height
        if self.free and self.free[-1][1] == start:
            start = self.free.pop()[0]
        offset = -(-start // unit) * unit
        if offset > start:
            self.free.append((start, offset))
        self.height = offset + span
        return offset

    def give_back(self, offset, span):
        self.free = sorted([*self.free, (offset, offset + self.rounded(span)[1])])
        merged = []
        for start, end in self.free:
            if merged and merged[-1][1] == start:
                merged[-1] = merged[-1][0], end
            else:
                merged.append((start, end))
        self.free = merged


@pytest.mark.parametrize("itemsize", [2, 4, 8])
def test_spans_lie_where_they_fit_first(itemsize):
    rng = np.random.default_rng(itemsize)
    arena, plain = Arena(itemsize), FirstFit(itemsize)
    taken = []
    for _ in range(3000):
        if taken and rng.random() < 0.48:
            offset, span = taken.pop(int(rng.integers(len(taken))))
            arena.give_back(offset, span)
            plain.give_back(offset, span)
        else:
            span = int(rng.choice([1, 3, 9, 27, 81, 243, int(rng.integers(1, 600))]))
            offset = arena.allocate(span)
            assert offset == plain.take(span)
            taken.append((offset, span))
        assert arena.height == plain.height
