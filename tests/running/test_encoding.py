"""Tables on their way into an arena: block by block, joined where one scope holds another, and never out of range."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from elimina._core import Stop, Stopped, obey
from elimina.errors import InputError
from elimina.model import table as table_module
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable
from elimina.planning.machine import cpu_machine
from elimina.planning.planner import Elimination, make_plan
from elimina.problem.preparation import allowed_ranges, prepare
from elimina.running.encoding import Encoder, encode
from tests import calls
from tests.paths import counted_paths
from tests.random_models import KINDS, models
from tests.reference import brute
from tests.reference import encode as plain
from tests.seeds import run_seed


def solve(model, *arguments, **options):
    return calls.solve(model, *arguments, device="cpu", **options)


def planned(model, task, order):
    problem = prepare(model, task, {})
    return problem, make_plan(Elimination(problem, order, cpu_machine(1), 1 << 40))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_small_blocks_give_the_same_answers(kind, data):
    model = data.draw(models(kind))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "BLOCK_CELLS", data.draw(st.integers(1, 50)))
        result = solve(model)
        assert solve(model, "count").value == brute.count(model)
        partition = solve(model, "pr").log10_z if kind == "probability" else None
    expected = brute.optimum(model)
    assert result.status == ("infeasible" if expected is None else "optimal")
    if expected is not None:
        assert result.value == pytest.approx(expected, rel=1e-12, abs=1e-9)
    if partition is not None:
        assert partition == pytest.approx(brute.partition(model), rel=1e-11, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_the_core_encodes_as_plain_numpy_does(kind, data):
    model = data.draw(models(kind))
    task = data.draw(st.sampled_from(["mpe", "count", "bottleneck", *(["pr", "mar"] if kind == "probability" else [])]))
    dtype = (
        data.draw(st.sampled_from([None, "float32"]))
        if task in ("pr", "mar") or (task, kind) == ("mpe", "float")
        else None
    )
    if task == "mpe" and "integer" in kind and kind != "big-integer":
        dtype = data.draw(st.sampled_from([None, "float64", "int64"]))
    fixed = [v for v in range(len(model.variables)) if data.draw(st.integers(0, 3)) == 0]
    assume(task != "bottleneck" or model.factors)
    problem = prepare(model, task, {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in fixed})
    assert problem.groups == plain.group(problem.tables)
    ranges = [plain.allowed_range(table, model.sense) for table in problem.tables]
    assert allowed_ranges(problem.tables, model.sense) == ranges
    plan = make_plan(Elimination(problem, data.draw(st.permutations(problem.free)), cpu_machine(1), 1 << 40, dtype))
    semiring = "log-sum-exp" if task == "pr" and data.draw(st.booleans()) else None
    with pytest.MonkeyPatch.context() as patch:
        if data.draw(st.booleans()):
            patch.setattr(table_module, "BLOCK_CELLS", data.draw(st.integers(1, 50)))
        found, expected = encode(problem, plan, semiring), plain.encode(problem, plan, semiring)
    is_logarithm = semiring is not None or (kind == "probability" and task == "mpe")
    np.testing.assert_allclose(
        found.arena, expected.arena, rtol=1e-14 if is_logarithm else 0, atol=1e-12 * is_logarithm
    )
    np.testing.assert_allclose(found.ranges, expected.ranges, rtol=1e-14 * ("float" in kind or is_logarithm))
    assert (found.impossible, found.exact, found.offset) == (expected.impossible, expected.exact, expected.offset)


@pytest.mark.parametrize("sense", ["min-cost", "probability"])
@pytest.mark.parametrize("sizes", [(128, 136), (67, 131), (64, 3, 80), (5, 7, 11, 24), (2, 2, 4096), (250, 16, 2)])
def test_large_tables_are_written_whole_in_any_order_of_their_axes(sense, sizes):
    """Cells of large tables are visited in an order of their own, by parts of two axes."""
    rng = np.random.default_rng([run_seed(), *sizes])
    axes = range(len(sizes))
    for _ in range(6):
        order, layout = rng.permutation(len(sizes)), rng.permutation(len(sizes))
        values = rng.integers(0, 100, [sizes[axis] for axis in layout])
        whole = values.transpose(np.argsort(layout))[:: rng.choice([1, -1])]
        part = rng.integers(1, 50, sizes[-1])
        tables = [(tuple(axes), whole), ((len(sizes) - 1,), part)]
        if sense == "probability":
            tables = [(scope, values / 64) for scope, values in tables]
        problem = prepare(Model.from_arrays(sizes, tables, sense=sense), "mpe" if sense == "min-cost" else "pr", {})
        plan = make_plan(Elimination(problem, order.tolist(), cpu_machine(1), 1 << 40))
        np.testing.assert_array_equal(encode(problem, plan).arena, plain.encode(problem, plan).arena)


ENCODINGS = [
    ("min-cost", int, "mpe", "int16"),
    ("min-cost", int, "mpe", "int64"),
    ("max-cost", int, "mpe", "float64"),
    ("min-cost", float, "mpe", "float32"),
    ("max-cost", float, "bottleneck", None),
    ("min-cost", int, "bottleneck", None),
    ("min-cost", float, "count", None),
    ("probability", float, "mpe", None),
    ("probability", float, "pr", "float64"),
    ("probability", float, "pr", "float32"),
    ("probability", int, "pr", None),
]
"""Sense, kind of numbers, task and dtype: each rule of encoding, and each number type of an arena."""


def _numbers(rng, sense, kind, shape):
    if sense == "probability":
        # Boxes of a factor differ in their exponents.
        values = rng.random(shape) * 10.0 ** rng.integers(-120, 1, (shape[0], *[1] * (len(shape) - 1)))
        return rng.integers(0, 9, shape) if kind is int else np.where(values < 1e-100, 0, values)
    values = rng.integers(0, 9, shape) if kind is int else rng.random(shape)
    return values if kind is int else np.where(values < 0.1, math.inf if sense == "min-cost" else -math.inf, values)


@pytest.mark.parametrize(("sense", "kind", "task", "dtype"), ENCODINGS)
@pytest.mark.parametrize("path", ["encode-large", "encode-groups"])
def test_any_number_of_threads_writes_the_same_bits(sense, kind, task, dtype, path):
    """A large factor between small ones is shared by boxes, and small ones are shared where they are many."""
    rng = np.random.default_rng([run_seed(), len(path)])
    if path == "encode-large":
        sizes = [70, 3, 64, 25]
        scopes = [(1, 3), (2, 0, 1, 3), (0,), (3, 2), (0, 1, 2, 3)]
    else:
        sizes = [40] * 200
        scopes = [(v, v + 1) if v % 3 else (v + 1, v) for v in range(199)] + [(v,) for v in range(0, 200, 7)]
    tables = [(scope, _numbers(rng, sense, kind, [sizes[v] for v in scope])) for scope in scopes]
    problem = prepare(Model.from_arrays(sizes, tables, sense=sense), task, {})
    for order in (range(len(sizes)), rng.permutation(len(sizes)).tolist()):
        plan = make_plan(Elimination(problem, list(order), cpu_machine(1), 1 << 40, dtype))
        one = Encoder(problem, plan)
        for threads in (2, 4):
            with counted_paths() as counts:
                several = Encoder(problem, plan, threads=threads)
            assert counts[path]
            assert several.arena.tobytes() == one.arena.tobytes()
            figures, expected = several.encoded(problem), one.encoded(problem)
            assert figures.constants == expected.constants
            assert (figures.impossible, figures.exact) == (expected.impossible, expected.exact)
            np.testing.assert_array_equal(figures.ranges, expected.ranges)


def test_threads_encode_sparse_tables_to_the_same_bits():
    rng = np.random.default_rng(run_seed())
    sizes = [80, 60, 70]
    rows = np.unique(rng.integers(0, sizes, (5000, 3)), axis=0)
    listed = Table([0, 1, 2], rng.integers(1, 9, len(rows)), sizes=sizes, rows=rows, default=3)
    tables = [listed, Table([2, 0], rng.integers(0, 9, (70, 80)))]
    problem, plan = planned(Model([Variable(f"x{v}", size) for v, size in enumerate(sizes)], tables), "mpe", [1, 2, 0])
    one, four = Encoder(problem, plan), Encoder(problem, plan, threads=4)
    assert one.arena.tobytes() == four.arena.tobytes()


def test_threads_that_encode_obey_a_stop_request():
    sizes = [512, 512, 64]
    model = Model.from_arrays(sizes, [((0, 1, 2), np.ones(sizes))], sense="probability")
    problem, plan = planned(model, "pr", [0, 1, 2])
    stop = Stop()
    stop.request()
    obey(stop)
    try:
        with pytest.raises(Stopped):
            Encoder(problem, plan, threads=2)
    finally:
        obey(None)


@pytest.mark.parametrize(("block", "exact"), [(1, True), (3, False)])
def test_what_a_joined_factor_loses_depends_on_its_blocks(monkeypatch, block, exact):
    """In one block the second product vanishes beside the table's largest value; in its own it does not."""
    monkeypatch.setattr(table_module, "BLOCK_CELLS", block)
    tables = [1.0, 1e-200, 0.0], [1e-150, 1e-170, 1.0]
    model = Model.from_arrays([3], [((0,), values) for values in tables], sense="probability")
    problem = prepare(model, "pr", {})
    plan = make_plan(Elimination(problem, [0], cpu_machine(1), 1 << 40))
    found, expected = encode(problem, plan), plain.encode(problem, plan)
    np.testing.assert_array_equal(found.arena, expected.arena)
    assert found.exact == expected.exact == exact
    assert (found.arena[1] > 0) == exact
    assert solve(model, "pr").log10_z == pytest.approx(-150, abs=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_an_exact_factor_has_lost_no_product(dtype, data):
    """Whatever the blocks are, each cell of an exact factor is the product but for one rounding for each table.

    A factor that is not exact may have lost or blurred any product: the answer comes from another run, in logarithms.
    """
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    sizes, spread = data.draw(st.sampled_from([(4,), (5, 3)])), data.draw(st.sampled_from([10, 100, 150, 300]))
    powers = rng.integers(-spread, 1, (3, *sizes))
    tables = (rng.random((3, *sizes)) + 0.5) * 10.0**powers * (rng.random((3, *sizes)) > 0.2)
    scope = tuple(range(len(sizes)))
    model = Model.from_arrays(sizes, [(scope, table) for table in tables], sense="probability")
    problem = prepare(model, "pr", {})
    plan = make_plan(Elimination(problem, list(scope), cpu_machine(1), 1 << 40, dtype))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "BLOCK_CELLS", data.draw(st.integers(1, 20)))
        found = encode(problem, plan)
    (factor,) = plan.factors
    cells = plain.factor_view(found.arena, factor).reshape(-1)
    exponent = round(found.offset - model.constant / math.log(2))
    places = [tables[t].transpose([scope.index(v) for v in factor.scope]).reshape(-1) for t in range(3)]
    half_unit = Fraction(float(np.finfo(dtype).eps)) / 2
    rounding = (1 + half_unit) ** len(tables) - 1
    for cell, *values in zip(cells.tolist(), *places, strict=True):
        true = math.prod(map(Fraction, values)) / Fraction(2) ** exponent
        assert not found.exact or abs(Fraction(cell) - true) <= rounding * true
        assert (true > 0) >= (cell > 0)
    # No product is further below another one than all tables' smallest values are below their largest ones.
    positive = [table[table > 0] for table in tables if table.any()]
    ratio = math.prod(Fraction(table.min()) / Fraction(table.max()) for table in positive)
    assert found.exact or ratio < 2 * Fraction(float(np.finfo(dtype).tiny))


@pytest.mark.parametrize(("least", "exact"), [(1e-90, True), (1e-180, False)])
def test_what_vanishes_beside_other_blocks_is_told(monkeypatch, least, exact):
    """Each block of a product is in range by itself, but the smallest one may not be beside the largest."""
    monkeypatch.setattr(table_module, "BLOCK_CELLS", 1)
    model = Model.from_arrays([2], [((0,), [1.0, least])] * 2, sense="probability")
    problem = prepare(model, "pr", {})
    plan = make_plan(Elimination(problem, [0], cpu_machine(1), 1 << 40))
    assert encode(problem, plan).exact == exact
    assert solve(model, "pr").log10_z == pytest.approx(0, abs=1e-15)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_tables_of_one_scope_multiply(data):
    """Products of many tables pass the range of floats on both sides; the last digits stay."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    count = data.draw(st.sampled_from([1, 2, 30, 1500]))
    width = data.draw(st.sampled_from([0.5, 20.0, 300.0]))
    tables = 10.0 ** rng.uniform(-width, width, (count, 4))
    tables[rng.random((count, 4)) < 0.3 / count] = 0
    model = Model.from_arrays([4], [((0,), table) for table in tables], sense="probability")
    with np.errstate(divide="ignore"):
        logs = [math.fsum(column) for column in np.log(tables).T]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "BLOCK_CELLS", data.draw(st.integers(1, 4)))
        found = solve(model, "pr").log10_z
    assert found == pytest.approx(float(np.logaddexp.reduce(logs)) / math.log(10), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_arrays_that_are_not_aligned(dtype):
    shape = (3, 2)
    data = b"?" + np.arange(1, 7, dtype=dtype).tobytes()
    table = Table([0, 1], np.frombuffer(data, dtype, 6, offset=1).reshape(shape))
    assert not table.values.flags.aligned
    assert allowed_ranges([table], "min-cost") == [(1, 6)]
    assert solve(Model([Variable("a", 3), Variable("b", 2)], [table], sense="max-cost")).value == 6


@pytest.mark.parametrize(("count", "dtype", "close"), [(2000, None, 1e-12), (300, "float32", 1e-7)])
def test_naive_bayes_with_everything_observed(count, dtype, close):
    rng = np.random.default_rng(0)
    shares = rng.uniform(0.75, 0.95, (count, 2))
    seen = [Table([0, i + 1], [[p, 1 - p], [q, 1 - q]]) for i, (p, q) in enumerate(shares)]
    variables = [Variable(f"x{i}", 2) for i in range(count + 1)]
    factors = [Table([0], [0.5, 0.5]), *seen]
    model = Model(variables, factors, sense="probability", children=range(count + 1))
    result = solve(model, "pr", evidence=dict.fromkeys(range(1, count + 1), 0), dtype=dtype)
    expected = (math.log(0.5) + np.logaddexp(*np.log(shares).sum(axis=0))) / math.log(10)
    assert result.log10_z == pytest.approx(expected, rel=close)


def test_a_value_that_scaling_would_lose():
    model = Model.from_arrays([2, 2], [((0,), [1e300, 1e-300]), ((0, 1), [[0, 0], [0.25, 0.5]])], sense="probability")
    assert solve(model, "pr").log10_z == pytest.approx(-300 + math.log10(0.75), rel=1e-12)


@pytest.mark.parametrize(
    ("costs", "dtype", "problem"),
    [
        ([[1e39, 2e39]], "float32", r"may add up to 2e\+39, which float32 cannot hold; use dtype float64"),
        ([[2e38, 1], [0, 2e38]], "float32", "use dtype float64"),
        ([[1.5e308, 1.6e308], [1.5e308, 1.6e308]], None, "float64 cannot hold; scale them down"),
        ([[-1.5e308, 0], [-1.5e308, 0]], None, "scale them down, and write forbidden ones as infinity"),
    ],
)
def test_costs_that_add_up_beyond_the_range(costs, dtype, problem):
    for scopes in ([(0,), (0,)], [(0,), (1,)]):
        model = Model.from_arrays([2, 2], list(zip(scopes, costs, strict=False)))
        with pytest.raises(InputError, match=problem):
            solve(model, dtype=dtype)


@pytest.mark.parametrize("method", ["eliminate", "search", "mbe"])
def test_every_method_refuses_costs_that_add_up_beyond_the_range(method):
    model = Model.from_arrays([2, 2], [((0,), [1e308, 0]), ((1,), [1e308, 1]), ((0, 1), np.full((2, 2), 1e308))])
    with pytest.raises(InputError, match=r"^the costs, up to 1e\+308 in a table, may add up to more than 1.8e"):
        solve(model, method=method)
    with pytest.raises(InputError, match=r"^the assignment's total is beyond the range of a float; scale"):
        model.score([0, 0])


@pytest.mark.parametrize("method", ["eliminate", "search", "mbe"])
def test_costs_near_the_end_of_the_range_give_no_warning(method):
    tables = [((0, 1), [[math.inf, 0], [0, 0]]), ((1, 2), [[0, 8e307], [2, 1]]), ((1,), [1e20, 8e307])]
    with np.errstate(all="raise"):
        assert solve(Model.from_arrays([2, 2, 2], tables), method=method).value == 1e20


def test_large_costs_that_fit():
    model = Model.from_arrays([2], [((0,), [1e38, math.inf]), ((0,), [2e38, 1.0])])
    assert solve(model).value == pytest.approx(3e38)
    assert solve(model, dtype="float32").value == pytest.approx(3e38)
    assert solve(Model.from_arrays([2], [((0,), [1e39, 2e39])])).value == 1e39


@given(st.integers(0, 2**32 - 1), st.sampled_from([1.0, 1e3, 1e9]), st.sampled_from(["float64", "float32"]))
@settings(max_examples=60, deadline=None)
def test_the_check_of_the_optimum_allows_for_rounding(seed, size, dtype):
    rng = np.random.default_rng(seed)
    constants = [((), rng.random()), ((), rng.random())]
    unary = [((i,), rng.random(3)) for i in range(4)]
    model = Model.from_arrays([3] * 4, constants + unary, constant=size * rng.random())
    best = model.constant + sum(float(np.min(values)) for _, values in constants + unary)
    assert solve(model, dtype=dtype).value == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_long_sums_pass_the_check(dtype):
    chain = Model.from_arrays([2] * 2000, [((i, i + 1), np.full((2, 2), 0.1)) for i in range(1999)])
    assert solve(chain, dtype=dtype, order=range(2000)).value == pytest.approx(199.9)


@pytest.mark.parametrize(
    ("task", "sense", "kind"),
    [("mpe", "min-cost", int), ("mpe", "min-cost", float), ("count", "min-cost", int), ("pr", "probability", float)],
)
@pytest.mark.parametrize("listed", [None, 100])
@pytest.mark.parametrize("turned", [False, True])
def test_temporary_memory_is_small(task, sense, kind, listed, turned):
    size = 18
    scope, shape = list(range(size)), (2,) * size
    rng = np.random.default_rng(0)
    if listed is None:
        table = Table(scope, rng.integers(0, 9, shape).astype(kind))
    else:
        rows = np.argwhere(rng.permutation(2**size).reshape(shape) < listed)
        table = Table(scope, np.arange(listed).astype(kind), sizes=shape, rows=rows, default=5)
    small = Table(scope[:2], np.array([[1, 2], [3, 4]]).astype(kind))
    model = Model([Variable(f"x{v}", 2) for v in scope], [table, small], sense=sense)
    problem, plan = planned(model, task, scope[::-1] if turned else scope)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_module, "BLOCK_CELLS", 1 << 12)
        tracemalloc.start()
        encoded = encode(problem, plan)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak - encoded.arena.nbytes < 1 << 19


def test_a_table_that_is_listed_twice_in_a_model():
    table = Table([0], [3, 5])
    model = Model([Variable("a", 2)], [table, table, Table([0], [FORBIDDEN, 0])])
    assert solve(model).value == 10


def test_a_constant_of_probability_zero():
    model = Model.from_arrays([2], [((0,), [0.25, 0.75])], sense="probability", constant=-math.inf)
    assert solve(model).status == solve(model, "pr").status == "infeasible"
    assert solve(model, "pr").log10_z == -math.inf
    assert solve(model, "count").value == 0
