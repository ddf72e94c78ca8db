"""AND/OR branch and bound against brute force."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina._core import search_tree
from tests.reference.minibucket import flat, mini_buckets, packed, width

FORBIDDEN = {np.dtype(np.int16): 20000, np.dtype(np.int32): 2**30, np.dtype(np.int64): 2**50}
LIMITS = {
    "upper": math.inf,
    "start": None,
    "seconds": math.inf,
    "nodes": 1e9,
    "threads": 1,
    "memory": 1e6,
    "seed": 0,
    "poll": lambda lower, upper, nodes, value: None,
}


class Problem:
    """Random factors, and what every assignment costs."""

    def __init__(self, seed, dtype, variables=9, forbidden_share=0.0, integral=None):
        rng = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)
        self.integral = self.dtype.kind == "i" if integral is None else integral
        self.forbidden = FORBIDDEN.get(self.dtype, np.inf)
        self.sizes = rng.choice([1, 2, 2, 3, 4], variables).tolist()
        self.order = [int(v) for v in rng.permutation(variables)]
        self.factors = []
        for _ in range(int(rng.integers(0, 2 * variables))):
            scope = [int(v) for v in rng.permutation(variables)[: int(rng.integers(0, min(4, variables + 1)))]]
            shape = [self.sizes[v] for v in scope]
            costs = rng.integers(-5, 30, shape) if self.integral else rng.normal(size=shape) * 10
            costs = np.asarray(costs, self.dtype)
            self.factors.append((scope, np.where(rng.random(shape) < forbidden_share, self.forbidden, costs)))
        if not self.factors:
            self.factors.append(((), np.zeros((), self.dtype)))

    def table(self):
        total = np.zeros(self.sizes)
        for scope, costs in self.factors:
            shape = [self.sizes[v] if v in scope else 1 for v in range(len(self.sizes))]
            costs = np.where(costs >= self.forbidden, np.inf, costs.astype(float))
            total = total + np.transpose(costs, np.argsort(scope)).reshape(shape)
        return total

    def given(self, z):
        tables = mini_buckets(self.sizes, self.factors, self.order, z, self.forbidden)
        data = packed(self.sizes, tables, self.order, self.dtype)
        return data | {"forbidden": self.forbidden, "integral": self.integral}

    def width(self):
        return width(self.factors, self.order)


def search(problem, z, **limits):
    return search_tree(**problem.given(z), **(LIMITS | limits))


def check(problem, result, upper=math.inf):
    """Whatever ended the search: its bounds hold, and what is proven is the optimum."""
    table = problem.table()
    optimum = table.min()
    slack = 0 if problem.integral else 1e-9 * max(1, abs(optimum)) + 1e-9
    if problem.dtype == np.float32:
        slack = 1e-3
    assert result["bound"] <= min(optimum, upper) + slack
    if result["value"]:
        assert table[tuple(result["value"])] == pytest.approx(result["cost"], abs=slack)
        assert result["cost"] >= optimum - slack
    else:
        assert result["cost"] == math.inf
    for before, after in itertools.pairwise(result["events"]):
        assert before.lower <= after.lower
        assert before.upper >= after.upper


def check_proven(problem, result, upper=math.inf):
    check(problem, result, upper)
    optimum = problem.table().min()
    if not optimum < upper:
        assert (result["value"], result["bound"]) == ([], upper)
        return
    assert result["bound"] == result["cost"]
    if problem.integral:
        assert result["cost"] == optimum
    else:
        assert result["cost"] == pytest.approx(optimum, rel=1e-4 if problem.dtype == np.float32 else 1e-8)


DTYPES = st.sampled_from([np.int16, np.int32, np.int64, np.float32, np.float64])


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    dtype=DTYPES,
    variables=st.integers(1, 9),
    share=st.sampled_from([0, 0, 0.1, 0.4, 0.9]),
    threads=st.sampled_from([1, 2, 3, 8]),
    memory=st.sampled_from([0, 2000, 1e6]),
    data=st.data(),
)
def test_optimum(seed, dtype, variables, share, threads, memory, data):
    problem = Problem(seed, dtype, variables, share)
    z = data.draw(st.integers(1, max(1, problem.width())))
    check_proven(problem, search(problem, z, threads=threads, memory=memory))


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), share=st.sampled_from([0, 0.2]), z=st.integers(1, 4))
def test_integers_with_fractional_bounds(seed, share, z):
    """Integer costs as floats: bounds are rounded up."""
    problem = Problem(seed, np.float64, forbidden_share=share, integral=True)
    check_proven(problem, search(problem, z))


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    dtype=DTYPES,
    share=st.sampled_from([0, 0.1, 0.5]),
    nodes=st.integers(0, 60),
    threads=st.sampled_from([1, 2, 3, 8]),
    z=st.integers(1, 3),
)
def test_few_nodes(seed, dtype, share, nodes, threads, z):
    problem = Problem(seed, dtype, 9, share)
    check(problem, search(problem, z, nodes=nodes, threads=threads))


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), off=st.integers(-3, 3), z=st.integers(1, 3))
def test_an_upper_bound(seed, off, z):
    """It bounds the accepted solutions; where nothing is below it, that is proven."""
    problem = Problem(seed, np.int32)
    upper = problem.table().min() + off
    check_proven(problem, search(problem, z, upper=upper), upper)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), z=st.integers(1, 3))
def test_a_start(seed, z):
    problem = Problem(seed, np.int32)
    start = [size - 1 for size in problem.sizes]
    result = search(problem, z, start=start)
    check_proven(problem, result)
    assert result["events"][0].upper == problem.table()[tuple(start)]
    best = search(problem, z, start=result["value"])
    assert best["value"] == result["value"]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), dtype=DTYPES, share=st.sampled_from([0, 0.2]))
def test_exact_messages_need_no_search(seed, dtype, share):
    problem = Problem(seed, dtype, 9, share)
    z = max(1, problem.width())
    result = search(problem, z, nodes=0)
    table = problem.table()
    if math.isfinite(table.min()):
        assert result["cost"] == pytest.approx(table.min(), rel=1e-4)
        assert result["cost"] == pytest.approx(table[tuple(result["value"])], rel=1e-4)


@pytest.mark.parametrize("memory", [0, 1e4, 1e7])
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), threads=st.sampled_from([1, 2, 3, 8]), density=st.sampled_from([0.15, 0.3]))
def test_larger_problems(memory, seed, threads, density):
    """Thousands of nodes: threads skip what others decided, the cache grows and replaces."""
    rng = np.random.default_rng(seed)
    problem = Problem(seed, np.int32, variables=1)
    problem.sizes, problem.order = rng.choice([2, 3], 16).tolist(), [int(v) for v in rng.permutation(16)]
    scopes = [(u, v) for u in range(16) for v in range(u) if rng.random() < density]
    problem.factors = [(s, rng.integers(0, 9, [problem.sizes[v] for v in s])) for s in scopes or [(0, 1)]]
    exact = mini_buckets(problem.sizes, problem.factors, problem.order, 16, problem.forbidden)
    optimum = sum(int(t.values.sum()) for t in exact if not t.scope)
    result = search(problem, 1, threads=threads, memory=memory)
    assert result["cost"] == result["bound"] == optimum
    total = sum(table[tuple(result["value"][v] for v in scope)] for scope, table in problem.factors)
    assert total == optimum


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the processor time of threads from /proc")
def test_no_thread_waits_until_the_cache_grows_again():
    """Threads went on one after another: each that waited for the growth of the cache waited for the next one, too."""
    moments = []

    def poll(*_):
        spent = {}
        for task in Path("/proc/self/task").iterdir():
            # Threads of other tests may end meanwhile.
            with contextlib.suppress(OSError):
                fields = (task / "stat").read_text().rpartition(")")[2].split()
                spent[task.name] = int(fields[11]) + int(fields[12])
        moments.append(spent)

    search(hard(), 2, threads=4, seconds=4.0, memory=1e7, poll=poll)
    later, last = moments[len(moments) // 2], moments[-1]
    assert sum(last[task] > spent for task, spent in later.items() if task in last) >= 4


def test_one_thread_repeats_itself():
    problem = Problem(5, np.int32, variables=10)
    runs = [search(problem, 1) for _ in range(2)]
    for run in runs:
        del run["seconds"], run["first"]
        run["events"] = [(event.lower, event.upper, event.nodes) for event in run["events"]]
    assert runs[0] == runs[1]


def test_long_chains():
    """Far deeper than a recursion could go; messages that are one too low let the search go all the way down."""
    length = 30_000
    costs = np.random.default_rng(3).integers(0, 9, (length - 1, 2, 2))
    words, cells = [], []
    best = np.zeros(2, np.int64)
    for i, table in enumerate(costs):
        best = (best[:, None] + table).min(axis=0)
        words += [6 * i, i, 2, -1, 1, i + 1, 1]
        words += [6 * i + 4, i + 1, 1, i, 0]
        cells += [table.ravel(), best - 1]
    words += [6 * (length - 1), -1, 0, length - 1, 0]
    cells.append([best.min() - 1])
    result = search_tree(
        np.concatenate(cells).astype(np.int32),
        np.array(words),
        [2] * length,
        [*range(1, length), -1],
        *flat([[i + 1] for i in range(length - 1)] + [[]]).values(),
        FORBIDDEN[np.dtype(np.int32)],
        True,
        **(LIMITS | {"memory": 1e7}),
    )
    assert result["cost"] == result["bound"] == best.min()
    assert result["nodes"] >= length


def hard():
    """Too much for a test: dense, without messages to speak of."""
    problem = Problem(1, np.int32, variables=1)
    rng = np.random.default_rng(1)
    problem.sizes, problem.order = [8] * 24, list(range(24))
    problem.factors = [((u, v), rng.integers(0, 1000, (8, 8))) for u in range(24) for v in range(u)]
    return problem


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_interrupts_pass(threads):
    class Stop(Exception):
        pass

    calls = []

    def stop(lower, upper, nodes, value):
        calls.append((lower, upper, nodes))
        raise Stop

    with pytest.raises(Stop):
        search(hard(), 2, threads=threads, poll=stop)
    assert len(calls) == 1
    assert calls[0][0] < calls[0][1]
    assert calls[0][2] > 0


def test_time_that_is_up_leaves_bounds():
    result = search(hard(), 2, seconds=0.5, threads=2)
    assert 0.5 < result["seconds"] < 5
    assert 0 < result["bound"] < result["cost"] < math.inf
    assert len(result["events"]) > 1


MALFORMED = {
    "words end": (ValueError, {"tables": [0, 0, 1, -1, 1, 1]}),
    "words of half a table": (ValueError, {"tables": [0, 0, 1]}),
    "a negative number of variables": (ValueError, {"tables": [0, 0, 1, -1, -1]}),
    "far too many variables": (ValueError, {"tables": [0, 0, 1, -1, 2**62]}),
    "no such home": (IndexError, {"tables": [0, 7, 1, -1, 0]}),
    "no such variable": (IndexError, {"tables": [0, 0, 1, -1, 1, 9, 1]}),
    "no such origin": (IndexError, {"tables": [0, 0, 1, 9, 0]}),
    "an offset outside": (IndexError, {"tables": [4, 0, 1, -1, 0]}),
    "a negative offset": (IndexError, {"tables": [-1, 0, 1, -1, 0]}),
    "rows beyond the end": (IndexError, {"tables": [3, 0, 1, -1, 0]}),
    "a stride beyond the end": (IndexError, {"tables": [0, 0, 1, -1, 1, 1, 3]}),
    "a huge stride": (ValueError, {"tables": [0, 0, 2**63 - 1, -1, 0]}),
    "a negative stride": (ValueError, {"tables": [3, 0, -1, -1, 0]}),
    "a variable that is not an ancestor": (ValueError, {"tables": [0, 1, 2, -1, 1, 0, 1]}),
    "an origin below nothing": (ValueError, {"tables": [0, 0, 1, 0, 0]}),
    "a cycle": (ValueError, {"parents": [1, 0]}),
    "its own parent": (ValueError, {"parents": [0, -1]}),
    "no such parent": (IndexError, {"parents": [2, -1]}),
    "too few parents": (ValueError, {"parents": [-1]}),
    "too few contexts": (ValueError, flat([[]])),
    "a context that lacks a variable": (ValueError, flat([[], []])),
    "a context of no ancestors": (ValueError, flat([[1], [0]])),
    "a context of no variable": (IndexError, flat([[5], []])),
    "starts that end too late": (ValueError, {"starts": np.array([0, 1, 2])}),
    "starts that go back": (ValueError, {"starts": np.array([0, 2, 1])}),
    "a context with one twice": (ValueError, flat([[1, 1], []])),
    "a domain of no values": (ValueError, {"sizes": [2, 0]}),
    "another dtype": (ValueError, {"arena": np.zeros(4, np.uint8)}),
    "no number": (ValueError, {"forbidden": math.nan}),
    "an upper bound that is not a number": (ValueError, {"upper": math.nan}),
    "no threads": (ValueError, {"threads": 0}),
    "less than no memory": (ValueError, {"memory": -1}),
    "a start of other variables": (ValueError, {"start": [0]}),
    "a start beyond the values": (IndexError, {"start": [0, 2]}),
    "costs beyond exact sums": (ValueError, {"arena": np.full(4, 2**53), "forbidden": 2**60}),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name):
    error, culprit = MALFORMED[name]
    good = LIMITS | {
        "arena": np.array([1, 2, 3, 0], np.int64),
        "tables": [0, 0, 2, -1, 1, 1, 1],
        "sizes": [2, 2],
        "parents": [1, -1],
        **flat([[1], []]),
        "forbidden": 2**50,
        "integral": True,
    }
    good["tables"] = np.array(good["tables"])
    assert search_tree(**good)["value"] == [1, 1]
    bad = good | culprit
    bad["tables"] = np.array(bad["tables"], np.int64)
    with pytest.raises(error):
        search_tree(**bad)
