"""Sparse tables that stay lists of tuples from the model to the answer."""

from __future__ import annotations

import itertools
import math
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elimina
from elimina import FORBIDDEN, Model, Table, Variable, dcop
from elimina._core import rows_decode
from elimina.backends.sparse.cpu import CpuSparseDevice
from elimina.backends.sparse.operations import SparseTables
from elimina.errors import TimeLimitError
from elimina.methods.first_bounds import first_bounds
from elimina.planning import listed_tables
from elimina.planning.key_layout import KeyLayout, signed
from elimina.problem import rewriting
from elimina.problem.preparation import prepare
from elimina.running.call_thread import idle_threads
from elimina.strategies.call import Call
from tests import calls
from tests.random_models import large_relation

SIZE = 100_000


@pytest.fixture
def listed(monkeypatch):
    """List every factor that tables list, however small or full."""
    monkeypatch.setattr(listed_tables, "MIN_LISTED_CELLS", 0)
    monkeypatch.setattr(listed_tables, "_LISTED_SHARE", math.inf)


@st.composite
def sparse_models(draw, sense: str):
    """Draw a model of a few sparse and dense tables; sparse ones forbid what they do not list, some do not."""
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 5]), min_size=2, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_integer = sense != "probability" and draw(st.booleans())
    worst = {"probability": 0.0, "min-cost": math.inf, "max-cost": -math.inf}[sense]
    if is_integer:
        worst = FORBIDDEN if sense == "min-cost" else -FORBIDDEN
    factors = []
    for _ in range(draw(st.integers(1, 6))):
        arity = int(rng.integers(1, min(3, len(sizes)) + 1))
        scope = rng.permutation(len(sizes))[:arity].tolist()
        shape = [sizes[v] for v in scope]
        values = rng.integers(-9, 9, shape) if is_integer else rng.random(shape)
        values = np.where(rng.random(shape) < 0.1, worst, values)
        if rng.random() < 0.25:
            factors.append(Table(scope, values))
            continue
        rows = np.argwhere(rng.random(shape) < rng.choice([0.1, 0.5, 0.9]))
        default = worst if rng.random() < 0.8 else 1
        factors.append(Table(scope, values[tuple(rows.T)], sizes=shape, rows=rng.permutation(rows), default=default))
    return Model([Variable(f"v{n}", size) for n, size in enumerate(sizes)], factors, sense=sense)


def is_listed(model: Model, task: str, **options) -> bool:
    plan = calls.plan(model, task, device="cpu", tables="sparse", **options)
    return plan.sparse is not None and any(factor.tuples is not None for factor in plan.factors)


def is_close(one, other) -> bool:
    """Compare numbers and nested mappings of numbers."""
    if isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_close(one[key], other[key]) for key in other)
    return one == other if other is None else math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)


RELAXED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("sense", ["probability", "min-cost", "max-cost"])
@RELAXED
@given(data=st.data())
def test_listed_factors_give_the_answers_of_dense_ones(listed, sense, data):
    model = data.draw(sparse_models(sense))
    evidence = {}
    if data.draw(st.booleans()):
        evidence["v0"] = data.draw(st.integers(0, model.sizes[0] - 1))
    if sense == "probability" and data.draw(st.booleans()):
        evidence["v1"] = data.draw(
            st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=model.sizes[1], max_size=model.sizes[1])
        )
    for task in ("mpe", "count", "pr", "mar") if sense == "probability" else ("mpe", "count"):
        if task == "count" and "v1" in evidence:
            continue
        options = {"device": "cpu", "evidence": evidence, "method": "eliminate"}
        if task in ("count", "mar", "pr"):
            del options["method"]
        one = calls.solve(model, task, tables="sparse", **options)
        other = calls.solve(model, task, tables="dense", **options)
        assert one.status == other.status
        for key in ("value", "log10_z", *(["marginals"] if task == "mar" and one.status == "exact" else [])):
            assert is_close(getattr(one, key), getattr(other, key))


def pairs(number: int, seed: int = 0, size: int = SIZE) -> np.ndarray:
    """Draw different pairs of values, in no order."""
    rng = np.random.default_rng(seed)
    found = np.unique(rng.integers(0, size, (2 * number, 2)), axis=0)
    return rng.permutation(found)[:number].astype(np.int32)


def permutation(seed: int = 0) -> np.ndarray:
    """Draw pairs of values that have every value once, so that none is left out."""
    return np.stack([np.arange(SIZE), np.random.default_rng(seed).permutation(SIZE)], axis=1)


def costs(rows: np.ndarray, values: np.ndarray, default: float = FORBIDDEN, sense: str = "min-cost") -> Model:
    table = Table([0, 1], values, sizes=(SIZE, SIZE), rows=rows, default=default)
    return Model([Variable("a", SIZE), Variable("b", SIZE)], [table], sense=sense)


def probabilities(number: int = 1000) -> tuple[Model, np.ndarray, np.ndarray]:
    rows, values = pairs(number), np.random.default_rng(1).random(number)
    return costs(rows, values, 0, "probability"), rows, values


@pytest.mark.parametrize("tables", ["auto", "sparse"])
def test_two_tuples_of_ten_billion(tables):
    model = costs(np.array([[5, 7], [99_999, 12]]), np.array([8, 3]))
    found = calls.solve(model, "mpe", device="cpu", tables=tables, memory="64MiB")
    assert (found.status, found.value, found.assignment) == ("optimal", 3, {"a": 99_999, "b": 12})
    assert found.stats["peak_bytes"] < 1 << 20
    assert calls.solve(model, "count", device="cpu", tables=tables, memory="64MiB").value == 2
    assert calls.solve(model, device="cpu", tables=tables, evidence={"a": 5}).value == 8
    assert calls.solve(model, device="cpu", tables=tables, evidence={"a": 6}).status == "infeasible"
    assert calls.solve(model, "count", device="cpu", tables=tables, evidence={"b": 6}).value == 0


@pytest.mark.parametrize("tables", ["auto", "sparse"])
def test_sums_and_marginals_in_closed_form(tables):
    model, rows, values = probabilities()
    options = {"device": "cpu", "tables": tables, "memory": "64MiB"}
    likelihoods = np.random.default_rng(2).random(SIZE)
    for evidence, weights in (({}, np.ones(SIZE)), ({"a": likelihoods}, likelihoods)):
        weighed = values * weights[rows[:, 0]]
        assert calls.solve(model, "pr", evidence=evidence, **options).value == pytest.approx(weighed.sum())
        found = calls.solve(model, "mar", evidence=evidence, **options)
        for name, column in (("a", rows[:, 0]), ("b", rows[:, 1])):
            expected = np.bincount(column, weighed, SIZE) / weighed.sum()
            np.testing.assert_allclose(list(found.marginals[name].values()), expected, rtol=1e-9, atol=1e-15)
        best = rows[weighed.argmax()].tolist()
        assert calls.solve(model, "mpe", evidence=evidence, **options).assignment == {"a": best[0], "b": best[1]}
    state = int(rows[0, 1])
    found = calls.solve(model, "mar", evidence={"b": state}, **options)
    chosen = rows[:, 1] == state
    expected = np.bincount(rows[chosen, 0], values[chosen], SIZE) / values[chosen].sum()
    np.testing.assert_allclose(list(found.marginals["a"].values()), expected, rtol=1e-9, atol=1e-15)


def test_joins_of_listed_tables():
    """A chain of four variables, whose solutions are paths."""
    rows = [pairs(200_000, seed) for seed in range(3)]
    variables = [Variable(name, SIZE) for name in "abcd"]
    factors = [Table([n, n + 1], np.ones(len(r)), sizes=(SIZE, SIZE), rows=r, default=0) for n, r in enumerate(rows)]
    model = Model(variables, factors, sense="probability")
    paths = np.ones(SIZE)
    for r in rows:
        paths = np.bincount(r[:, 1], paths[r[:, 0]], SIZE)
    assert elimina.solve(model, "count", device="cpu", memory="256MiB").value == int(paths.sum())
    found = elimina.solve(model, "mar", device="cpu", memory="256MiB", query=["d"])
    np.testing.assert_allclose(list(found.marginals["d"].values()), paths / paths.sum(), rtol=1e-9)


def test_slices_read_their_own_tuples():
    """Fewer bytes than the messages need: the rows of each slice are those of its tuples."""
    rng = np.random.default_rng(3)
    factors = []
    for scope in itertools.combinations(range(4), 2):
        rows = np.argwhere(rng.random((300, 300)) < 0.05)
        factors.append(Table(scope, rng.random(len(rows)), sizes=(300, 300), rows=rows, default=0))
    model = Model([Variable(f"v{n}", 300) for n in range(4)], factors, sense="probability")
    expected = calls.solve(model, "pr", device="cpu", tables="sparse")
    plan = calls.plan(model, "pr", device="cpu", tables="sparse")
    sliced = calls.solve(model, "pr", device="cpu", tables="sparse", memory=plan.peak_bytes // 2, slices=1000)
    assert all(factor.tuples is not None for factor in plan.factors)
    assert sliced.stats["slices"] > 1
    assert sliced.value == pytest.approx(expected.value)


def test_a_junction_tree_weighs_listed_tuples():
    model, rows, values = probabilities()
    tree = elimina.JunctionTree(model, device="cpu", memory="64MiB")
    rng = np.random.default_rng(4)
    for _ in range(2):
        weights = rng.random(SIZE) * (rng.random(SIZE) < 0.5)
        tree.set_evidence({"a": weights})
        weighed = values * weights[rows[:, 0]]
        expected = np.bincount(rows[:, 1], weighed, SIZE) / weighed.sum()
        np.testing.assert_allclose(tree.marginals(["b"])["b"], expected, rtol=1e-9, atol=1e-15)
        assert tree.log10_evidence == pytest.approx(math.log10(weighed.sum()))
    tree.set_evidence({"a": int(rows[0, 0])})
    assert tree.marginals()["a"].argmax() == rows[0, 0]


def test_a_junction_tree_on_rows_answers_parts_and_draws():
    """A query may need less than the whole plan, and samples read messages as dense tables."""
    rng = np.random.default_rng(5)
    factors = []
    for scope in ((0, 1), (1, 2), (0, 2)):
        rows = np.argwhere(rng.random((1200, 1200)) < 0.002)
        factors.append(Table(scope, rng.random(len(rows)), sizes=(1200, 1200), rows=rows, default=0))
    model = Model([Variable(name, 1200) for name in "abc"], factors, sense="probability")
    tree = elimina.JunctionTree(model, device="cpu")
    assert tree.plan.keep
    assert tree.plan.sparse is not None
    assert tree.log10_evidence == pytest.approx(elimina.solve(model, "pr", device="cpu").log10_z)
    expected = tree.marginals(["a"])["a"]
    drawn = np.bincount(tree.sample(50_000, names=["a"], indices=True)[:, 0], minlength=1200) / 50_000
    assert np.abs(drawn - expected).max() < 0.02


@pytest.mark.parametrize(
    "options", [{"tables": "dense"}, {"method": "mbe"}, {"method": "search"}], ids=["dense", "mbe", "search"]
)
def test_advice_that_works(options):
    """Dense tables do not fit, no file and no order would help; sparse ones do."""
    model = costs(permutation(), np.arange(SIZE) % 6 + 3)
    with pytest.raises(elimina.MemoryLimitError) as caught:
        calls.solve(model, device="cpu", memory="1GiB", **options)
    text = str(caught.value)
    assert "the model's own tables take 18.6 GiB of that: more memory (memory) or evidence would help" in text
    assert 'elimination on sparse tables would fit (method="eliminate" with tables="sparse")' in text
    assert "(scratch)" not in text
    assert 'method="mbe"' not in text
    found = calls.solve(model, device="cpu", memory="1GiB", method="eliminate", tables="sparse")
    assert found.value == 3


def test_tables_of_tuples_come_before_search():
    """Search would write 27 million cells out; the join of the tuples has one for each value."""
    size, rng = 3000, np.random.default_rng(8)
    one, other = rng.permutation(size), rng.permutation(size)
    pairs = {(0, 1): one, (1, 2): other, (0, 2): other[one]}
    own = {scope: rng.integers(0, 1000, size) for scope in pairs}
    rows = {scope: np.stack([np.arange(size), targets], axis=1) for scope, targets in pairs.items()}
    tables = [Table(scope, own[scope], sizes=(size, size), rows=rows[scope], default=FORBIDDEN) for scope in pairs]
    model = Model([Variable(name, size) for name in "abc"], tables)
    found = elimina.solve(model, device="cpu", time_limit=10)
    assert found.status == "optimal"
    assert found.stats["rows_made"] >= size
    assert found.value == (own[0, 1] + own[1, 2][one] + own[0, 2]).min()


def test_a_default_that_is_allowed_is_not_listed(monkeypatch):
    model = costs(np.array([[5, 7]]), np.array([8]), default=1)
    model = Model(model.variables, [*model.factors, *model.factors])
    assert calls.solve(model, device="cpu", tables="sparse", memory="1GiB").value == 2
    model = costs(permutation(), np.arange(SIZE), default=1)
    monkeypatch.setattr(rewriting, "_MAX_CHAIN_CELLS", model.factors[0].cells)  # its table stays as it is
    model = Model(model.variables, [*model.factors, *model.factors])
    with pytest.raises(elimina.MemoryLimitError, match="the plan needs"):
        calls.solve(model, device="cpu", tables="sparse", memory="1GiB")


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("variable", [0, 1, 2])
def test_decoded_value_of_a_variable(variable, dtype):
    """The first of equals, from two tables of tuples, of which one has keys of two words, and from cells."""
    rng = np.random.default_rng(6)
    sizes = (3, 5, 70)
    costs = rng.integers(0, 9, (2, *sizes)).astype(dtype)
    listed = rng.random(costs.shape) < 0.6
    tables = SparseTables(CpuSparseDevice("min-sum", np.dtype(dtype), 1000))
    wide = KeyLayout((0, 1, 2), sizes, ((0, 62), (1, 61), (1, 0)), 2)
    rows = [tables.from_dense((0, 1, 2), np.where(listed[0], costs[0], 1000).astype(dtype))]
    rows.append(tables.arrange(tables.from_dense((0, 1, 2), np.where(listed[1], costs[1], 1000).astype(dtype)), wide))
    fields = [[(v, w, signed(1 << s)) for v, (w, s) in enumerate(table.layout.fields)] for table in rows]
    readable = [(np.array(f), table.keys, table.values) for f, table in zip(fields, rows, strict=True)]
    cells = np.array([5, 0, 1], dtype=dtype)
    readable.append((np.array([[0, 0, 1]]), None, cells))
    for _ in range(10):
        at = [int(rng.integers(size)) for size in sizes]
        others = [v for v in range(3) if v != variable]
        # Values that are given come from tables of one cell each that allow nothing else.
        given = [
            (v, sizes[v], [(np.array([[v, 0, 1]]), None, np.where(np.arange(sizes[v]) == at[v], 0, 99).astype(dtype))])
            for v in others
        ]
        found = rows_decode("min-sum", 3, [*given, (variable, sizes[variable], readable)])
        assert [found[v] for v in others] == [at[v] for v in others]
        line = tuple(slice(None) if v == variable else at[v] for v in range(3))
        total = (costs.sum(axis=0) + cells[:, None, None]).astype(np.float64)[line]
        total[~listed.all(axis=0)[line]] = np.inf
        assert found[variable] == total.argmin()


def test_decoding_takes_no_time_in_the_domain():
    """Two tuples of 2^31 values: only listed values are visited."""
    size = 2**31 - 1
    layout = KeyLayout.of((1, 0), (2, size))
    place = {v: signed(1 << shift) for v, (_, shift) in zip(layout.scope, layout.fields, strict=True)}
    keys = np.array([[5 * place[0] + place[1]], [(size - 1) * place[0]]], dtype=np.uint64)
    keys.sort(axis=0)
    fields = np.array([[v, 0, stride] for v, stride in place.items()])
    ones = np.array([[1, 0, 1]])
    for value, expected in ((0, size - 1), (1, 5)):
        given = (1, 2, [(ones, None, np.array([value, 1 - value], dtype=np.int64))])
        step = (0, size, [(fields, keys, np.array([3, 7], dtype=np.int64))])
        started = time.perf_counter()
        assert rows_decode("min-sum", 2, [given, step])[0] == expected
        assert time.perf_counter() - started < 0.5


@pytest.mark.parametrize("name", ["m.wcsp", "m.cfn", "m.yaml", "m.xml"])
def test_files_keep_lists(name, tmp_path):
    rows, values = pairs(500), np.random.default_rng(7).integers(0, 99, 500)
    model = costs(rows, values)
    if name.endswith(("yaml", "xml")):
        dcop.write(dcop.Problem.from_model(model), tmp_path / name)
        found = dcop.read(tmp_path / name).model
    else:
        elimina.write(model, tmp_path / name)
        found = elimina.read(tmp_path / name)
    (table,) = found.factors
    order = np.lexsort(rows.T[::-1])
    np.testing.assert_array_equal(table.rows[np.lexsort(table.rows.T[::-1])], rows[order])
    assert table.default == FORBIDDEN
    assert elimina.solve(found, device="cpu", memory="64MiB").value == values.min()


def test_first_bounds_do_not_write_lists_out():
    """A hundred tables of a million cells each would take 800 MB."""
    rng = np.random.default_rng(8)
    variables = [Variable(f"v{n}", 1000) for n in range(101)]
    factors = []
    for n in range(100):
        rows = pairs(20, n, 1000)
        factors.append(Table([n, n + 1], rng.random(20), sizes=(1000, 1000), rows=rows, default=math.inf))
    problem = prepare(Model(variables, factors, sense="min-cost"), "mpe", {})
    tracemalloc.start()
    first_bounds(problem, math.inf)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


MILLION = """
import resource, time
import numpy as np
import elimina
size, number = 100_000, 1_000_000
rng = np.random.default_rng(0)
codes = rng.permutation(np.unique(rng.integers(0, size * size, number + 10_000)))[:number]
rows, values = np.stack(np.divmod(codes, size), axis=1).astype(np.int32), rng.random(number)
table = elimina.Table([0, 1], values, sizes=(size, size), rows=rows, default=0)
model = elimina.Model([elimina.Variable(v, size) for v in "ab"], [table], sense="probability")
before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
two = elimina.Options(device="cpu", threads=2)
answers = [elimina.solve(model, task, options=two) for task in ("pr", "mpe", "mar", "count")]
seconds = time.process_time() - started
assert abs(answers[0].value - values.sum()) < 1e-9 * values.sum()
assert answers[3].value == number
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, seconds)
"""


def test_time_and_memory_grow_with_the_tuples():
    """A million tuples of 10^10, in a process whose peak of memory is its own: four tasks in 0.5 s and 150 MiB."""
    found = subprocess.run([sys.executable, "-c", MILLION], capture_output=True, text=True, check=True, timeout=300)
    kilobytes, seconds = map(float, found.stdout.split())
    assert kilobytes < 400 << 10
    assert seconds < 20


def chain_of_lists():
    """Return three lists whose 4,000 x 4,000 cells each, 384 MB in all, would be eliminated quickly once written."""
    rng, size = np.random.default_rng(9), 4000
    factors = []
    for n in range(3):
        rows = pairs(10_000, n, size)
        factors.append(Table([n, n + 1], rng.random(len(rows)), sizes=(size, size), rows=rows, default=0))
    return Model([Variable(f"v{n}", size) for n in range(4)], factors, sense="probability")


def solved_within(peak_bytes, *arguments, **options):
    """Return an answer whose Python memory has a limit."""
    tracemalloc.start()
    result = elimina.solve(*arguments, **options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < peak_bytes
    return result


@pytest.mark.parametrize("memory", ["600MiB", "4GiB"], ids=["slices would fit", "all would fit"])
@pytest.mark.parametrize("task", ["mpe", "pr", "mar", "count"])
def test_lists_are_not_written_out_where_their_cells_would_fit(task, memory):
    result = solved_within(64 << 20, chain_of_lists(), task, device="cpu", memory=memory)
    assert result.status in ("optimal", "exact")
    assert result.stats["peak_bytes"] < 32 << 20


@pytest.mark.parametrize("task", ["mpe", "pr", "mar", "count"])
def test_no_fallback_writes_lists_out(task, monkeypatch):
    """Fallbacks are made beside plans that take long, or whose machine has a high load: here, each one."""

    def provide(one, fallback):
        one.__dict__["fallback"] = fallback
        if fallback is not None:
            fallback(5.0)

    monkeypatch.setattr(Call, "fallback", property(lambda one: one.__dict__["fallback"], provide), raising=False)
    assert solved_within(64 << 20, chain_of_lists(), task, device="cpu").status in ("optimal", "exact")


def wide_model(sense: str, arity: int, size: int, count: int, seed: int) -> tuple[Model, dict[tuple[int, ...], float]]:
    """Make two tables of so many tuples that share two variables, and the values of the tuples that both allow."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, min(6, size), (2, count, 2))
    inner = rng.integers(0, size, (2, count, arity - 2))
    worst = {"probability": 0, "min-cost": FORBIDDEN, "max-cost": -FORBIDDEN}[sense]
    values = rng.integers(1, 100, (2, count))
    rows = np.concatenate([inner[0], ends[0]], axis=1), np.concatenate([ends[1], inner[1]], axis=1)
    scopes = range(arity), range(arity - 2, 2 * arity - 2)
    tables = [
        Table(scope, own, sizes=[size] * arity, rows=tuples, default=worst)
        for scope, own, tuples in zip(scopes, values, rows, strict=True)
    ]
    joined = {
        (*one, *other[2:]): int(a * b if sense == "probability" else a + b)
        for one, a in zip(rows[0].tolist(), values[0], strict=True)
        for other, b in zip(rows[1].tolist(), values[1], strict=True)
        if one[-2:] == other[:2]
    }
    return Model([Variable(f"x{v}", size) for v in range(2 * arity - 2)], tables, sense=sense), joined


@pytest.mark.parametrize(("arity", "size", "count"), [(12, 300, 30), (12, 300, 600), (90, 3, 200), (8, 2**31 - 1, 100)])
@pytest.mark.parametrize("sense", ["probability", "min-cost", "max-cost"])
@pytest.mark.parametrize("tables", ["auto", "sparse"])
def test_tables_of_more_cells_than_64_bits_can_number(sense, arity, size, count, tables):
    model, joined = wide_model(sense, arity, size, count, seed=arity)
    options = {"device": "cpu", "tables": tables}
    tuples = np.array(list(joined))
    numbers = np.array(list(joined.values()))
    best = max(joined.values()) if sense != "min-cost" else min(joined.values())
    found = calls.solve(model, **options)
    chosen = tuple(model.indices_of(found.assignment))
    assert joined[chosen] == best
    assert found.value == pytest.approx(math.log(best) if sense == "probability" else best)
    assert found.stats["peak_bytes"] < 64 << 20
    assert calls.solve(model, "count", **options).value == len(joined)
    state = int(tuples[0, 0])
    is_there = tuples[:, 0] == state
    assert calls.solve(model, "count", evidence={"x0": state}, **options).value == np.count_nonzero(is_there)
    absent = next(x for x in range(size) if x not in tuples[:, 0]) if size > 3 else None
    if absent is not None:
        assert calls.solve(model, evidence={"x0": absent}, **options).status == "infeasible"
    if sense == "probability":
        assert calls.solve(model, "pr", **options).value == pytest.approx(numbers.sum())
        shares = calls.solve(model, "mar", **options).marginals if size < 1000 else {}
        for name, states in shares.items():
            column = tuples[:, int(name[1:])]
            expected = np.bincount(column, numbers, size) / numbers.sum()
            np.testing.assert_allclose(list(states.values()), expected, rtol=1e-9, atol=1e-12)
    else:
        hint = model.states_at(tuples[len(tuples) // 2].tolist())
        assert calls.solve(model, hint=hint, **options).value == best


def test_small_chains_for_large_tables_that_allow_all_other_tuples():
    """Nine tables of 27 million cells, of which they list four each: none is written out, and none for a count."""
    size, rng = 300, np.random.default_rng(1)
    tables = [
        Table([v, v + 1, v + 2], rng.random(4) + 1, sizes=[size] * 3, rows=rng.integers(0, size, (4, 3)), default=0.5)
        for v in range(0, 18, 2)
    ]
    pairs = [Table([v, v + 1], rng.random((size, size))) for v in range(0, 18, 2)]
    model = Model([Variable(f"x{v}", size) for v in range(19)], [*tables, *pairs], sense="probability")
    # The sum over a table is that of its default, and what each tuple adds to it.
    forward = np.ones(size)
    for table, pair in zip(tables, pairs, strict=True):
        following = np.full(size, 0.5 * (forward @ pair.values).sum())
        for (a, b, c), value in zip(table.rows.tolist(), table.values, strict=True):
            following[c] += (value - 0.5) * forward[a] * pair.values[a, b]
        forward = following
    total = math.log10(forward.sum())
    assert elimina.plan(model, "pr", device="cpu").bytes["host"] < 64 << 20
    assert calls.solve(model, "pr", device="cpu").log10_z == pytest.approx(total)
    assert elimina.plan(model, device="cpu").bytes["host"] < 64 << 20
    assert elimina.plan(model, "count", device="cpu").largest_table < 1000
    assert calls.solve(model, "count", device="cpu").value == size**19


def test_junction_trees_draw_and_answer_cases_without_the_cells():
    """A third variable is 1 with a share that depends on the second one; the cells of the first table take 80 GB."""
    model, rows, values = probabilities()
    high = np.unique(rows[:5, 1])
    places = np.stack([np.repeat(high, 2), np.tile([0, 1], len(high))], axis=1)
    soft = Table([1, 2], np.tile([0.25, 0.75], len(places) // 2), sizes=(SIZE, 2), rows=places, default=0.5)
    model = Model([*model.variables, Variable("c", 2)], [*model.factors, soft], sense="probability")
    weights = np.stack([values * 0.5, values * 0.5], axis=1)
    is_high = np.isin(rows[:, 1], high)
    weights[is_high] = values[is_high, None] * [0.25, 0.75]
    expected = weights.sum(axis=0) / weights.sum()
    tree = elimina.JunctionTree(model, device="cpu", memory="64MiB")
    assert tree.joint(["c"]) == pytest.approx(expected)
    assert tree.marginals(["c"])["c"] == pytest.approx(expected)
    drawn = tree.sample(4000, seed=1, indices=True)
    pairs_of = {tuple(row): number for number, row in enumerate(rows.tolist())}
    counts = np.bincount([pairs_of[a, b] for a, b in drawn[:, :2].tolist()], minlength=len(rows))
    shares = weights.sum(axis=1) / weights.sum()
    assert (np.abs(counts / 4000 - shares) < 6 * np.sqrt(shares / 4000) + 1e-3).all()
    assert drawn[:, 2].mean() == pytest.approx(expected[1], abs=0.04)
    found = tree.batch({"c": [0, 1, None]}, ["c"])
    assert found.marginals["c"] == pytest.approx(np.array([[1, 0], [0, 1], expected]))
    assert found.log10_evidence == pytest.approx(np.log10([*weights.sum(axis=0), weights.sum()]))
    tree.set_evidence({"b": int(high[0])})
    assert set(tree.sample(50, seed=2)["b"]) == {int(high[0])}
    assert tree.joint(["c"]) == pytest.approx([0.25, 0.75])


def test_junction_trees_draw_values_that_no_table_lists():
    """A value that stands for others is drawn evenly, or by the weights of a table over the variable alone."""
    size = 2_000_000
    listed = Table([0, 1], [3.0, 9.0], sizes=[size, 2], rows=[[5, 1], [size - 1, 0]], default=1.0)
    variables = [Variable("x", size), Variable("y", 2)]
    tree = elimina.JunctionTree(Model(variables, [listed], sense="probability"), device="cpu")
    drawn = tree.sample(4000, seed=1, indices=True)[:, 0]
    assert np.bincount(drawn // (size // 4), minlength=4) == pytest.approx([1000] * 4, abs=150)
    weights = np.where(np.arange(size) % 2 == 1, 1.0, 0.0)
    tree = elimina.JunctionTree(Model(variables, [listed, Table([0], weights)], sense="probability"), device="cpu")
    drawn = tree.sample(4000, seed=1, indices=True)[:, 0]
    assert (drawn % 2 == 1).all()
    assert np.bincount(drawn // (size // 4), minlength=4) == pytest.approx([1000] * 4, abs=150)


def written_out(sizes):
    """Return a chain with a table that forbids all but a few tuples: a list until a method writes it out."""
    rng = np.random.default_rng(0)
    rows = np.unique(rng.integers(0, sizes, (20, len(sizes))).astype(np.int32), axis=0)
    listed = Table(range(len(sizes)), np.arange(len(rows)), sizes=sizes, rows=rows, default=FORBIDDEN)
    pairs = [Table([v, v + 1], rng.integers(1, 9, sizes[v : v + 2])) for v in range(len(sizes) - 1)]
    return Model([Variable(f"x{v}", size) for v, size in enumerate(sizes)], [listed, *pairs])


@pytest.mark.parametrize("end", ["time limit", "interrupt"])
@pytest.mark.parametrize(("method", "sizes"), [("mbe", [4] * 14), ("search", [4] * 14), ("filter", [4] * 12)])
def test_writing_a_list_out_ends_with_the_call(method, sizes, end):
    """The call returns in time, and so does its thread, which would take memory for up to a minute."""
    model, threads = written_out(sizes), set(threading.enumerate())
    started = time.monotonic()
    if end == "interrupt":
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        found = calls.solve(model, method=method, time_limit=0.3 if end == "time limit" else None, device="cpu")
        assert found.status == "bounded"
    except (TimeLimitError, KeyboardInterrupt):
        pass  # before anything was known
    # A thread that waits for another call has ended its work.
    while (rest := set(threading.enumerate()) - threads - {*idle_threads}) and time.monotonic() < started + 2:
        time.sleep(0.01)
    assert not rest
    assert time.monotonic() < started + 2


@pytest.mark.parametrize("memory", [None, "1GiB"])
@pytest.mark.parametrize("task", ["mpe", "count", "pr"])
def test_a_checkpoint_keeps_lists_that_are_too_large_to_write_out(task, memory, tmp_path):
    model, expected = large_relation(task)
    result = calls.solve(model, task, device="cpu", memory=memory, checkpoint=str(tmp_path / "run"))
    assert result.status == {"mpe": "optimal"}.get(task, "exact")
    assert result.value == pytest.approx(expected)


@pytest.mark.parametrize("observed", [7, 8])
def test_an_observed_domain_of_billions_has_a_marginal(observed: int) -> None:
    size = 2**31 - 1
    rows = np.array([[5, 0], [7, 1], [size - 1, 2]], dtype=np.int32)
    table = Table([0, 1], np.array([0.2, 0.5, 0.3]), sizes=[size, 3], rows=rows, default=0.1)
    model = Model([Variable("a", size), Variable("b", 3)], [table], sense="probability")
    result = calls.solve(model, "mar", evidence={"a": observed})
    weights = [0.1, 0.5 if observed == 7 else 0.1, 0.1]
    assert list(result.marginals["b"].values()) == pytest.approx([weight / sum(weights) for weight in weights])
    marginal = result.marginals["a"]
    assert len(marginal) == size
    assert [marginal[state] for state in (0, 5, 7, 8, size - 1)] == [0, 0, observed == 7, observed == 8, 0]
    assert marginal.mode() == (observed, 1.0)
