"""Branch and bound with soft local consistency against brute force, in the core and on models."""

from __future__ import annotations

import itertools
import math
import time
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import Model
from elimina._core import FORBIDDEN_COST, ConsistencySearch, shift_costs
from elimina.methods import and_or_search
from elimina.methods import soft_consistency as consistency_module
from elimina.methods.and_or_search import _AlternatingSearch
from elimina.methods.search_state import SearchLimits
from elimina.methods.soft_consistency import SoftConsistency
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import prepare
from tests import calls
from tests.random_models import KINDS, models
from tests.reference import brute


def functions(scopes, tables):
    """Scopes and costs one after another: starts and variables of the scopes, and all cells."""
    starts = np.cumsum([0, *map(len, scopes)], dtype=np.int64)
    members = np.array([v for scope in scopes for v in scope], dtype=np.int32)
    return starts, members, np.concatenate([*map(np.ravel, tables), np.empty(0, np.int64)])


ONE = functions([[0, 1]], [np.array([1, 2, 3, 0])])


class Costs:
    """Random functions of up to four variables, and what every assignment costs."""

    def __init__(self, seed, variables=None, largest=6, share=0.0, most=10):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 8)) if variables is None else variables
        self.sizes = rng.integers(1, largest + 1, count).tolist()
        self.order = [int(v) for v in rng.permutation(count)]
        self.scopes, self.tables = [], []
        self.total = np.zeros(self.sizes)
        for _ in range(int(rng.integers(0, 3 * count))):
            scope = [int(v) for v in rng.permutation(count)[: int(rng.integers(0, 5))]]
            shape = [self.sizes[v] for v in scope]
            costs = rng.integers(0, most, shape) * (rng.random(shape) < 0.7)
            self.add(scope, np.where(rng.random(shape) < share, FORBIDDEN_COST, costs))

    @staticmethod
    def none(sizes):
        """No functions yet; the last variable is eliminated first."""
        costs = Costs(0, variables=1)
        costs.sizes, costs.order, costs.total = sizes, list(range(len(sizes)))[::-1], np.zeros(sizes)
        costs.scopes, costs.tables = [], []
        return costs

    def add(self, scope, costs):
        self.scopes.append(scope)
        self.tables.append(np.ascontiguousarray(costs, np.int64).reshape(-1))
        shape = [self.sizes[v] if v in scope else 1 for v in range(len(self.sizes))]
        costs = np.where(costs >= FORBIDDEN_COST, np.inf, costs.astype(float))
        self.total = self.total + np.transpose(costs, np.argsort(scope)).reshape(shape)

    def search(self, upper=10**6, step=1, slack=0, threads=1):
        return ConsistencySearch(self.sizes, *self.functions, self.order, 0, upper, step, slack, threads)

    @property
    def functions(self):
        return functions(self.scopes, self.tables)


def run(search, seconds=60.0, nodes=1e9, memory=1e6, poll=lambda *_: None):
    return search.run(seconds, nodes, memory, poll)


def check(costs, found, upper):
    """A proven cost is the optimum, and any other cost bounds it."""
    optimum = costs.total.min()
    assert found["bound"] <= min(optimum, upper)
    if found["value"]:
        assert costs.total[tuple(found["value"])] == found["cost"] >= optimum
    if not found["done"]:
        return
    assert found["bound"] == min(optimum, upper)
    assert found["cost"] == (optimum if optimum < upper else FORBIDDEN_COST)


def open_nodes(search):
    taken = search.take_open()
    return taken.bounds, taken.lengths, taken.decisions


def hand_over(search, other, keep=slice(None)):
    """Some of what a search has left, to another one; the least bound of the rest."""
    bounds, lengths, decisions = open_nodes(search)
    ends = np.cumsum(lengths) * 3
    parts = [decisions[end - 3 * length : end] for end, length in zip(ends, lengths, strict=True)]
    chosen = np.arange(len(bounds))[keep]
    words = np.concatenate([parts[n] for n in chosen]) if len(chosen) else decisions[:0]
    other.replace_open(bounds[chosen], lengths[chosen], words)
    return min(np.delete(bounds, chosen), default=None)


SHARES = st.sampled_from([0, 0, 0.1, 0.4, 0.9])
MEMORY = st.sampled_from([0, 1e6])


@settings(max_examples=300, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    share=SHARES,
    most=st.sampled_from([2, 10, 10**6]),
    slack=st.sampled_from([0, 0, 3]),
    threads=st.sampled_from([1, 2, 3, 8]),
    memory=MEMORY,
    off=st.sampled_from([None, 0, 1, 5]),
)
def test_optimum(seed, share, most, slack, threads, memory, off):
    costs = Costs(seed, share=share, most=most)
    optimum = costs.total.min()
    upper = 10**8 if off is None or math.isinf(optimum) else int(optimum) + off
    found = run(costs.search(upper, slack=slack, threads=threads), memory=memory)
    assert found["done"]
    check(costs, found, upper)


def test_progress_is_the_share_of_the_tree_that_is_closed():
    search = hard(variables=8, threads=1)
    shares, nodes = [search.progress], 8
    while not run(search, nodes=nodes)["done"]:
        bounds, lengths, decisions = open_nodes(search)
        search.replace_open(bounds, lengths, decisions)
        shares.append(search.progress)
        assert shares[-1] == pytest.approx(1 - sum(0.5 ** lengths.astype(float)))
        nodes += 8
    shares.append(search.progress)
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    assert 0 < shares[1] < 1


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), share=SHARES, most=st.sampled_from([2, 10, 10**6]), slack=st.sampled_from([0, 3]))
def test_rows_of_many_values(seed, share, most, slack):
    """Rows of many values are read as a whole, as long as enough of the values are left."""
    costs = Costs(seed, variables=4, largest=20, share=share, most=most)
    found = run(costs.search(10**8, slack=slack))
    assert found["done"]
    check(costs, found, 10**8)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    share=SHARES,
    nodes=st.lists(st.integers(0, 20), max_size=4),
    threads=st.sampled_from([1, 2, 3, 8]),
)
def test_turns(seed, share, nodes, threads):
    """Wherever a turn ends its bound holds and does not fall, and the next one goes on."""
    costs = Costs(seed, share=share)
    search = costs.search(threads=threads)
    before, spent = search.bound, 0
    for more in nodes:
        found = run(search, nodes=spent + more)
        check(costs, found, 10**6)
        assert before <= found["bound"]
        before, spent = found["bound"], found["nodes"]
    found = run(search)
    assert found["done"]
    check(costs, found, 10**6)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), share=SHARES, upper=st.sampled_from([5, 12, 10**6]), slack=st.sampled_from([0, 2]))
def test_the_root_is_equivalent(seed, share, upper, slack):
    """Every assignment that the search accepts is left, and keeps its cost."""
    costs = Costs(seed, variables=4, largest=5, share=share)
    search = costs.search(upper, slack=slack)
    assert search.bound <= min(costs.total.min(), upper)
    kept = search.kept
    for value in itertools.product(*map(range, costs.sizes)):
        if costs.total[value] < upper:
            assert all(x in kept[v] for v, x in enumerate(value))
    if search.bound < upper:
        for value in itertools.product(*kept):
            assert search.at_root(list(value)) == min(costs.total[value], FORBIDDEN_COST)


def test_trees_need_no_search():
    """Directional consistency is exact along the order."""
    costs = Costs.none([3] * 7)
    rng = np.random.default_rng(4)
    for v in range(1, 7):
        costs.add([(v - 1) // 2, v], rng.integers(0, 50, (3, 3)))
    assert costs.search().bound == costs.total.min()


@pytest.mark.parametrize("seed", range(5))
def test_rings_around_a_hub_are_eliminated(seed):
    """Once the hub has a value, each variable of the ring has two neighbours: no node branches on them."""
    rng = np.random.default_rng(seed)
    count, size = 12, 2
    costs = Costs.none([size] * (count + 1))
    for v in range(count):
        costs.add([v, (v + 1) % count], rng.integers(0, 100, (size, size)))
        costs.add([v, count], rng.integers(0, 100, (size, size)))
    found = run(costs.search())
    assert found["cost"] == costs.total.min()
    assert costs.total[tuple(found["value"])] == found["cost"]
    assert found["nodes"] <= 6


def test_existential_supports_raise_the_bound():
    """Each value of the variable in the middle is refused by one neighbour: arc consistency alone does not see it."""
    costs = Costs.none([2, 2, 2])
    costs.order = [1, 0, 2]
    costs.add([0], np.array([0, 9]))
    costs.add([2], np.array([9, 0]))
    costs.add([0, 1], np.array([[0, 5], [0, 0]]))
    costs.add([1, 2], np.array([[0, 4], [0, 0]]))
    assert costs.search().bound == costs.total.min() == 4


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), known=st.integers(0, 2**32))
def test_a_known_solution(seed, known):
    costs = Costs(seed)
    value = [known % size for size in costs.sizes]
    search = costs.search()
    search.update_incumbent(int(costs.total[tuple(value)]), value)
    found = run(search)
    assert found["bound"] == costs.total.min()
    assert (found["value"] == []) == (costs.total[tuple(value)] == costs.total.min())


def hard(variables=24, threads=2):
    costs = Costs.none([2])
    rng = np.random.default_rng(1)
    costs.sizes, costs.order = [8] * variables, list(range(variables))
    costs.scopes = [[u, v] for u in range(variables) for v in range(u)]
    costs.tables = [rng.integers(0, 1000, 64) for _ in costs.scopes]
    return costs.search(threads=threads)


def test_the_poll_sees_bounds_close_in():
    seen = []
    search = hard()
    found = run(search, seconds=1.0, poll=lambda *known: seen.append(known))
    assert not found["done"]
    assert len(seen) > 1
    assert [s[0] for s in seen] == sorted(s[0] for s in seen)
    assert [s[1] for s in seen] == sorted((s[1] for s in seen), reverse=True)
    assert 0 < found["bound"] < found["cost"] < FORBIDDEN_COST


def test_cost_shifting_ends_when_a_pass_gains_a_small_share_of_the_bound(monkeypatch):
    """Warehouse location: the bound rises for more than a hundred passes."""
    rng = np.random.default_rng(1)
    factors = [((w,), np.array([0, 7500])) for w in range(15)]
    for customer in range(15, 40):
        factors.append(((customer,), rng.integers(100, 20_000, 15)))
        for w in range(15):
            closed = np.zeros((2, 15), dtype=np.int64)
            closed[0, w] = FORBIDDEN_COST
            factors.append(((w, customer), closed))
    problem = prepare(Model.from_arrays([2] * 15 + [15] * 25, factors, sense="min-cost"), "mpe", {})
    passes, bounds = [], []
    for share in (0.0, consistency_module._MIN_GAIN_SHARE):
        passes.append(0)

        def counted(*given):
            def tell(*state):
                passes[-1] += 1
                return given[-1](*state)

            return shift_costs(*given[:-1], tell)

        monkeypatch.setattr(consistency_module, "shift_costs", counted)
        monkeypatch.setattr(consistency_module, "_MIN_GAIN_SHARE", share)
        bounds.append(SoftConsistency.of(problem, problem.free, None, False, 1, 1 << 30, 60.0).bound)
    assert passes[1] < passes[0] / 2
    assert bounds[1] > 0.8 * bounds[0]


def test_cost_shifting_may_end_while_cells_are_dropped():
    """At any moment, totals below the upper bound are the same as before."""
    rng = np.random.default_rng(2)
    size, scopes = 40, [(0, 1, 2), (1, 2, 3), (0, 2, 3)]
    costs = [rng.integers(0, 99, (size,) * 3) for _ in scopes]
    before = sum(
        np.expand_dims(table, ({0, 1, 2, 3} - set(scope)).pop()) for table, scope in zip(costs, scopes, strict=True)
    )
    upper = int(np.quantile(before, 0.001))
    flat, starts, members = np.ravel(costs), np.arange(0, 12, 3), np.array(scopes, np.int32).ravel()
    for seconds in [0.0, *np.geomspace(1e-4, 0.02, 30)]:
        shifted = shift_costs([size] * 4, starts, members, flat, 0, upper, seconds, 1, lambda *_: True)
        tables = np.split(np.asarray(shifted.costs), np.cumsum([size**3] * 3))
        after = shifted.constant + sum(
            np.expand_dims(table.reshape((size,) * 3), ({0, 1, 2, 3} - set(scope)).pop())
            for table, scope in zip(tables, scopes, strict=False)
        )
        for axis, table in enumerate(np.split(tables[3], 4)):
            after = after + np.expand_dims(table, tuple({0, 1, 2, 3} - {axis}))
        is_low = before < upper
        assert (after[is_low] == before[is_low]).all()


@pytest.mark.parametrize(("limit", "seconds"), [(None, and_or_search.ROOT_SHIFT_SECONDS), (0.1, 0.01)])
def test_cost_shifting_leaves_time_for_the_search(monkeypatch, limit, seconds):
    given = []
    monkeypatch.setattr(consistency_module.SoftConsistency, "of", lambda *arguments: given.append(arguments[-1]))
    deadline = None if limit is None else time.monotonic() + limit
    searched(Model.from_arrays([2, 2], [((0, 1), [[1, 2], [3, 0]])]), SearchLimits(deadline))
    assert given == [pytest.approx(seconds, abs=0.005)]


def test_interrupts_pass():
    class Stop(Exception):
        pass

    def stop(*known):
        raise Stop

    with pytest.raises(Stop):
        run(hard(), poll=stop)


def test_one_thread_repeats_itself():
    runs = [run(Costs(8, variables=7).search()) for _ in range(2)]
    assert runs[0] == runs[1]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32), share=SHARES, nodes=st.lists(st.integers(1, 12), min_size=1, max_size=8), memory=MEMORY
)
def test_open_nodes_go_from_search_to_search(seed, share, nodes, memory):
    """Two searches take turns on one tree, and know each other's best solution only now and then."""
    costs = Costs(seed, share=share)
    searches = [costs.search(), costs.search()]
    spent, best = [0, 0], FORBIDDEN_COST
    for turn, more in enumerate([*nodes, 10**9]):
        number = turn % 2
        found = run(searches[number], nodes=spent[number] + more, memory=memory)
        spent[number], best = found["nodes"], min(best, found["cost"])
        assert min(found["bound"], best) <= min(costs.total.min(), 10**6)
        hand_over(searches[number], searches[1 - number])
    assert found["done"]
    assert best == (costs.total.min() if np.isfinite(costs.total.min()) else FORBIDDEN_COST)


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32), share=SHARES, nodes=st.integers(1, 20))
def test_open_nodes_are_divided(seed, share, nodes):
    """Whatever one search does not get is left to the other."""
    costs = Costs(seed, share=share)
    first, second = costs.search(), costs.search()
    run(first, nodes=nodes)
    kept = open_nodes(first)
    second.replace_open(*kept)
    rest = hand_over(second, first, slice(0, None, 2))
    second.replace_open(*kept)
    hand_over(second, second, slice(1, None, 2))
    assert rest is None or second.bound <= rest
    best = min(run(search)["cost"] for search in (first, second))
    assert best == (costs.total.min() if np.isfinite(costs.total.min()) else FORBIDDEN_COST)


@pytest.mark.parametrize(
    ("nodes", "error"),
    [
        (([0, 0], [0], []), ValueError),
        (([-1], [0], []), ValueError),
        (([0], [-1], []), ValueError),
        (([0], [1], []), ValueError),
        (([0], [2], [0, 0, 0]), ValueError),
        (([0], [0], [0, 0, 0]), ValueError),
        (([0], [2**62], [0, 0, 0]), ValueError),
        (([0], [1], [2, 0, 0]), IndexError),
        (([0], [1], [-1, 0, 0]), IndexError),
        (([0], [1], [0, 2, 0]), IndexError),
        (([0], [1], [0, 0, 4]), ValueError),
    ],
)
def test_malformed_open_nodes(nodes, error):
    search = ConsistencySearch([2, 2], *ONE, [0, 1], 0, 100, 1, 0, 1)
    with pytest.raises(error):
        search.replace_open(*(np.array(words, dtype=np.int64) for words in nodes))
    assert run(search)["value"] == [1, 1]


def variables(*members):
    return {"members": np.array(members, np.int32)}


def starts(*numbers):
    return {"starts": np.array(numbers, np.int64)}


MALFORMED = {
    "no scope": (ValueError, starts(0)),
    "no starts": (ValueError, starts()),
    "a scope that starts late": (ValueError, starts(1, 2)),
    "a scope that ends early": (ValueError, starts(0, 1)),
    "a scope that ends before it starts": (ValueError, starts(0, 3, 2)),
    "cells of another scope": (ValueError, {"costs": np.zeros(3, np.int64)}),
    "cells of two scopes": (ValueError, {**starts(0, 1, 2), "costs": np.zeros(5, np.int64)}),
    "no such variable": (IndexError, variables(0, 7)),
    "a negative variable": (IndexError, variables(0, -1)),
    "a variable twice": (ValueError, variables(1, 1)),
    "a negative cost": (ValueError, {"costs": np.array([0, -1, 0, 0])}),
    "a negative constant": (ValueError, {"constant": -1}),
    "no values": (ValueError, {"sizes": [2, 0]}),
    "an order of other variables": (ValueError, {"order": [0, 0]}),
    "a short order": (ValueError, {"order": [0]}),
    "an upper bound too large": (ValueError, {"upper": 2**49}),
    "a negative upper bound": (ValueError, {"upper": -1}),
    "no step": (ValueError, {"step": 0}),
    "a negative slack": (ValueError, {"slack": -1}),
    "no threads": (ValueError, {"threads": 0}),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name):
    error, culprit = MALFORMED[name]
    good = dict(zip(("starts", "members", "costs"), ONE, strict=True)) | {
        "sizes": [2, 2],
        "order": [0, 1],
        "constant": 0,
    }
    good |= {"upper": 100, "step": 1, "slack": 0, "threads": 1}
    assert run(ConsistencySearch(**good))["value"] == [1, 1]
    with pytest.raises(error):
        ConsistencySearch(**(good | culprit))


@pytest.mark.parametrize("values", [[0], [0, 2], [0, -1]])
def test_malformed_values(values):
    search = ConsistencySearch([2, 2], *ONE, [0, 1], 0, 100, 1, 0, 1)
    for take in (search.at_root, lambda value: search.update_incumbent(3, value)):
        with pytest.raises((ValueError, IndexError)):
            take(values)


def searched(model, limits=None, shift="tables"):
    """Only turns of soft local consistency."""
    options = CheckedOptions(device="cpu", threads=1, shift=shift)
    search = _AlternatingSearch(prepare(model, "mpe", {}), options, limits or SearchLimits(), None)
    search.propagate(60.0)
    return search


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "big-integer"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_models(kind, data):
    model = data.draw(models(kind))
    shift = data.draw(st.sampled_from(["none", "tables"]))
    search = searched(model, shift=shift)
    best = brute.optimum(model)
    if best is None:
        assert search.chosen is None
        return
    if search.chosen is None:
        # Without free variables, or costs that the core can hold, there is no such search.
        assert search.paused.is_spent
        assert search.bound is None
        return
    assert search.is_close
    assert search.score == pytest.approx(best, rel=1e-9, abs=1e-9)
    assert search.sign * search.bound <= search.sign * best + 1e-9 * max(1.0, abs(best))


@pytest.mark.parametrize(
    ("constant", "first", "second"),
    [
        (0.0, [0.0, -1e17], [0.0, 1e300]),
        (-1e15, [0.0, np.inf], [0.0, -1e300]),
        (1e17, [0.0, np.inf], [1.0, -1e300]),
    ],
)
def test_floats_of_very_different_sizes(constant, first, second):
    tables = [((), np.array(constant)), ((0,), np.array(first)), ((0,), np.array(second))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = calls.solve(Model.from_arrays([2], tables), method="search")
    assert result.lower_bound <= constant == result.value


def test_floats_in_finer_units(monkeypatch):
    """Units of the first search are coarse where costs are large; once a total is known, they are finer."""
    rng = np.random.default_rng(0)
    tables = [([v, v + 1], np.where(np.eye(3) > 0, rng.random((3, 3)), 1e9)) for v in range(9)]
    model = Model.from_arrays([3] * 10, tables)
    made = []
    of = SoftConsistency.of
    monkeypatch.setattr(
        consistency_module.SoftConsistency, "of", staticmethod(lambda *args: made.append(of(*args)) or made[-1])
    )
    search = searched(model, shift="none")
    assert search.is_close
    assert [one.units.unit for one in made] == sorted(one.units.unit for one in made)
    assert made[0].units.unit < made[-1].units.unit
    assert search.score == pytest.approx(calls.solve(model, method="eliminate", device="cpu").value, rel=1e-12)


@pytest.mark.data
@pytest.mark.parametrize(("name", "optimum"), [("CELAR6-SUB0", 159), ("CELAR6-SUB4-20", 2716)])
def test_celar(data_dir, name, optimum):
    search = searched(elimina.read(data_dir / "wcsp" / "celar6" / f"{name}.wcsp"))
    assert (search.bound, search.score) == (optimum, optimum)


@pytest.mark.data
def test_promedas(data_dir):
    model = elimina.read(data_dir / "uai" / "2014_MAP_MMAP" / "Promedas_11.uai")
    search = searched(model)
    assert search.is_close
    assert search.score == pytest.approx(-0.76035, abs=1e-5)
