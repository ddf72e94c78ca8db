"""Sparse tables against dictionaries: every semiring and dtype, keys of one to three words, skew, edges of dtypes."""

from __future__ import annotations

import math
import threading
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elimina._core import Stop, Stopped, obey
from elimina.backends.sparse.cpu import CpuSparseDevice
from elimina.backends.sparse.operations import DenseLookup, SparseTables, TupleFilter
from elimina.errors import InputError, MemoryLimitError, UnsupportedError
from elimina.planning.key_layout import DTYPES, KeyLayout, field_bits
from elimina.problem.semirings import SEMIRINGS
from tests.reference import rows as reference
from tests.reference.rows import Reference, Ring

KINDS = [(name, dtype) for name, ring in SEMIRINGS.items() for dtype in ring.dtypes if dtype in DTYPES]
EXAMPLES = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)], scope="module")
def make(request):
    """Makes sparse tables of a semiring and dtype."""
    if request.param == "cpu":
        return lambda semiring, dtype, parameter: SparseTables(
            CpuSparseDevice(semiring, np.dtype(dtype), parameter, threads=3)
        )
    from elimina.backends.cuda.backend import CudaBackend
    from elimina.backends.cuda.sparse import CudaSparseDevice

    backend = CudaBackend()
    return lambda semiring, dtype, parameter: SparseTables(
        CudaSparseDevice(backend, semiring, np.dtype(dtype), parameter)
    )


def to_rows(device, rows):
    """Assignments and their values, on the host."""
    keys, layout = device.download(rows.keys), rows.layout
    found = np.zeros((len(keys), len(layout.scope)), dtype=np.int32)
    for axis, ((word, shift), size) in enumerate(zip(layout.fields, layout.sizes, strict=True)):
        found[:, axis] = keys[:, word] >> np.uint64(shift) & np.uint64((1 << field_bits(size)) - 1)
    return found, device.download(rows.values)


def parameter_of(semiring, dtype, rng):
    if semiring in ("min-sum", "min-max"):
        return int(np.iinfo(dtype).max) // 2 if dtype.startswith("int") else math.inf
    if semiring == "count":
        return int(rng.choice([0, 7, 2**31 - 1]))
    return -math.inf


def random_values(rng, semiring, dtype, parameter, count):
    """Small integers, some of them at the edge: forbidden once two are joined."""
    values = rng.integers({"min-sum": 0, "min-max": -9}.get(semiring, 1), 9, count)
    if semiring in ("min-sum", "min-max") and dtype.startswith("int"):
        values = values.astype(object)
        values[rng.random(count) < 0.2] = parameter - 1
    if semiring == "count" and parameter:
        values %= parameter
    return values


class Problem:
    """Two tables that share variables, over up to three words of bits, and dense tables over some of the union."""

    def __init__(self, semiring, dtype, seed):
        rng = self.rng = np.random.default_rng(seed)
        self.semiring, self.dtype = semiring, dtype
        self.parameter = parameter_of(semiring, dtype, rng)
        modulus = self.parameter if semiring == "count" else 0
        self.ring = Ring(semiring, self.parameter, modulus)
        words = int(rng.integers(1, 4))
        shared, own_left, own_right = (int(n) for n in rng.integers([0, 0, 0], [4, 4, 4]))
        names = list(rng.permutation(100))
        count = 1 + shared + own_left + own_right
        # Domains that fill the words up; the rows take few of their values, so that they meet.
        self.sizes = {int(v): int(rng.choice([1, 2, 3, 4, 5, 17, 50])) for v in names[:count]}
        padding = [int(v) for v in names[count : count + (words - 1) * 11]]
        self.sizes |= dict.fromkeys(padding, 50)
        used = list(self.sizes)
        self.last = used[0]
        half = rng.random(len(padding)) < 0.5
        self.left_scope = [*used[: 1 + shared + own_left], *(v for v, h in zip(padding, half, strict=True) if h)]
        self.right_scope = [*used[: 1 + shared], *used[1 + shared + own_left : count]]
        self.right_scope += [v for v, h in zip(padding, half, strict=True) if not h or rng.random() < 0.3]
        self.left, self.right = (self._table(list(rng.permutation(s))) for s in (self.left_scope, self.right_scope))
        union = [v for v in self.sizes if v in self.left_scope or v in self.right_scope]
        self.dense = [self._dense(union) for _ in range(int(rng.integers(0, 3)))]
        self.bounds = [self._dense(union) for _ in range(int(rng.integers(0, 3)))]
        self.budget = int(rng.integers(1, 40)) if semiring == "min-sum" and rng.random() < 0.7 else None

    def _table(self, scope):
        rng, scope = self.rng, tuple(int(v) for v in scope)
        rows = {}
        pools = [np.unique(rng.integers(0, self.sizes[v], 3)) for v in scope]
        for v in (self.last,):
            pools[scope.index(v)] = np.arange(self.sizes[v])
        skewed = rng.random() < 0.3
        for value in random_values(rng, self.semiring, self.dtype, self.parameter, int(rng.choice([0, 1, 5, 60]))):
            row = tuple(int(pool[0] if skewed and rng.random() < 0.8 else rng.choice(pool)) for pool in pools)
            if self.ring.feasible(value):
                rows[row] = int(value)
        return Reference(scope, rows)

    def _dense(self, union):
        rng = self.rng
        scope = tuple(int(v) for v in rng.permutation(union)[: int(rng.integers(1, 3))])
        shape = [self.sizes[v] for v in scope]
        values = random_values(rng, self.semiring, self.dtype, self.parameter, math.prod(shape)).reshape(shape)
        cells = values.astype(self.dtype)
        if self.semiring not in ("log-sum-exp", "count"):
            cells[rng.random(shape) < 0.1] = self.parameter if self.semiring in ("min-sum", "min-max") else 0
        return scope, cells

    def upload(self, tables, table):
        rows = np.array(list(table.rows), dtype=np.int64).reshape(len(table.rows), len(table.scope))
        values = np.array(list(table.rows.values()), dtype=self.dtype)
        return tables.from_rows(table.scope, [self.sizes[v] for v in table.scope], rows, values)

    def lookups(self, tables, dense):
        return tuple(DenseLookup(scope, tables.device.upload(cells)) for scope, cells in dense)


def check(tables, found, expected):
    """The same rows, sorted, whatever the order of the variables."""
    assert set(found.layout.scope) == set(expected.scope)
    rows, values = to_rows(tables.device, found)
    wanted = reference.reorder(expected, found.layout.scope)
    assert len(rows) == len(wanted)
    keys = tables.device.download(found.keys).tolist()
    assert keys == sorted(keys)
    for row, value in zip(map(tuple, rows.tolist()), values.tolist(), strict=True):
        assert wanted[row] == (pytest.approx(value, rel=1e-5) if tables.device.semiring == "log-sum-exp" else value)


@pytest.fixture(params=[True, False], ids=["by value", "by runs"])
def joined(request, monkeypatch):
    """Make every join match a variable's values as other shared ones, or every one meet its runs."""
    monkeypatch.setattr("elimina.backends.sparse.operations._is_scattered", lambda *_: request.param)


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
@EXAMPLES
@given(seed=st.integers(0, 2**32))
def test_joins(make, joined, semiring, dtype, seed):
    problem = Problem(semiring, dtype, seed)
    tables = make(semiring, dtype, problem.parameter)
    left, right = problem.upload(tables, problem.left), problem.upload(tables, problem.right)
    dense, bounds = (problem.lookups(tables, some) for some in (problem.dense, problem.bounds))
    budget = problem.budget
    keep = None if budget is None else TupleFilter(bounds, budget)
    joint = reference.join(problem.ring, problem.left, problem.right, problem.dense, problem.bounds, budget)
    for last in (None, problem.last):
        made = tables.join(left, right, last=last, tables=dense, keep=keep)
        check(tables, made.rows, joint)
        if last is not None:
            assert made.rows.layout.scope[-1] == last
    marginal = reference.project(problem.ring, joint, problem.last)
    fused = tables.join(left, right, eliminate=problem.last, tables=dense, keep=keep)
    check(tables, fused.rows, marginal)
    apart = tables.project(made.rows, problem.last)
    check(tables, apart.rows, marginal)
    if joint.rows:
        with pytest.raises(MemoryLimitError, match="more than"):
            tables.join(left, right, tables=dense, keep=keep, max_tuples=len(joint.rows) - 1)


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
@EXAMPLES
@given(seed=st.integers(0, 2**32))
def test_single_tables(make, semiring, dtype, seed):
    """Semi-joins, lookups, elimination of a variable that only one table has, and dense tables."""
    problem = Problem(semiring, dtype, seed)
    tables, rng = make(semiring, dtype, problem.parameter), problem.rng
    left, right = problem.upload(tables, problem.left), problem.upload(tables, problem.right)
    check(tables, tables.semi_join(left, right), reference.semi_join(problem.left, problem.right))
    inside = [one for one in problem.dense if set(one[0]) <= set(problem.left.scope)]
    one = Reference((), {(): problem.ring.one})
    keep = None if problem.budget is None else TupleFilter((), problem.budget)
    made = tables.lookup(left, problem.lookups(tables, inside), keep)
    check(tables, made.rows, reference.join(problem.ring, problem.left, one, inside, (), problem.budget))
    variable = int(rng.choice(problem.left.scope))
    made = tables.join(left, right, eliminate=variable, tables=problem.lookups(tables, problem.dense))
    joint = reference.join(problem.ring, problem.left, problem.right, problem.dense)
    check(tables, made.rows, reference.project(problem.ring, joint, variable))
    scope, cells = problem._dense(list(problem.sizes))
    rows = tables.from_dense(scope, tables.device.upload(cells))
    listed = {at: x.item() for at, x in np.ndenumerate(cells) if problem.ring.feasible(x.item())}
    check(tables, rows, Reference(scope, listed))
    back = tables.device.download(tables.to_dense(rows, scope[::-1]))
    assert (back == cells.transpose()).all()


@pytest.mark.parametrize(("semiring", "dtype"), KINDS[::3])
@EXAMPLES
@given(seed=st.integers(0, 2**32), count=st.integers(1, 4))
def test_buckets(make, semiring, dtype, seed, count):
    """Several tables that all have the eliminated variable."""
    problem = Problem(semiring, dtype, seed)
    tables, rng = make(semiring, dtype, problem.parameter), problem.rng
    names = [v for v in problem.sizes if v != problem.last][:5]
    parts = [problem._table([problem.last, *rng.permutation(names)[:2]]) for _ in range(count)]
    joint = Reference((), {(): problem.ring.one})
    for part in parts:
        joint = reference.join(problem.ring, joint, part)
    dense = [problem._dense(list(joint.scope)) for _ in range(2)]
    nothing = Reference((), {(): problem.ring.one})
    joint = reference.join(problem.ring, joint, nothing, dense, (), problem.budget)
    keep = None if problem.budget is None else TupleFilter((), problem.budget)
    rows, lookups = [problem.upload(tables, part) for part in parts], problem.lookups(tables, dense)

    def guard(scope, waiting):
        return None if waiting else keep

    check(tables, tables.join_all(rows, tables=lookups, guard=guard).rows, joint)
    found = tables.join_all(rows, eliminate=problem.last, tables=lookups, guard=guard)
    check(tables, found.rows, reference.project(problem.ring, joint, problem.last))


@pytest.mark.parametrize("words", [1, 2, 3, 4])
def test_many_rows_are_sorted(make, words):
    """Several threads and digits."""
    rng = np.random.default_rng(words)
    sizes = [50, 3, 33, *[1000] * (6 * words - 2)]
    rows = np.unique(rng.integers(0, sizes, (70_000, len(sizes))), axis=0)
    shuffled = rng.permutation(len(rows))
    tables = make("min-sum", "int32", 2**30 - 1)
    table = tables.from_rows(range(len(sizes)), sizes, rows[shuffled], shuffled)
    assert table.layout.words == words
    found, values = to_rows(tables.device, table)
    assert (found == rows).all()
    assert (values == np.arange(len(rows))).all()


def test_a_digit_that_most_rows_share(make):
    """Almost all rows fall into one bucket of the sort."""
    rng = np.random.default_rng(9)
    rows = np.unique(np.column_stack([rng.random(200_000) < 0.001, rng.integers(0, 10**9, 200_000)]), axis=0)
    shuffled = rng.permutation(len(rows))
    tables = make("min-sum", "int64", 2**40)
    _, values = to_rows(tables.device, tables.from_rows((0, 1), (2, 10**9), rows[shuffled], shuffled))
    assert (values == np.arange(len(rows))).all()


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.0])
def test_skewed_groups(make, skew):
    """One group holds most rows, and the pieces of it come out in order."""
    rng = np.random.default_rng(3)
    sizes = 500, 3000, 3000, 5
    sides = []
    for count in (900, 1100):
        rows = np.unique(np.column_stack([rng.integers(0, sizes, (count, 4))[:, [0, 1, 3]]]), axis=0)
        rows[rng.random(len(rows)) < skew, 0] = 7
        rows = np.unique(rows, axis=0)
        sides.append((rows, rng.integers(0, 100, len(rows))))
    tables = make("min-sum", "int64", 2**40)
    (a, x), (b, y) = sides
    left = tables.from_rows((0, 1, 3), (sizes[0], sizes[1], sizes[3]), a, x)
    right = tables.from_rows((0, 2, 3), (sizes[0], sizes[2], sizes[3]), b, y)
    i, j = np.nonzero((a[:, None, 0] == b[None, :, 0]) & (a[:, None, 2] == b[None, :, 2]))
    wanted = {(*map(int, (a[m, 0], a[m, 1], b[n, 1], a[m, 2])),): int(x[m] + y[n]) for m, n in zip(i, j, strict=True)}
    joint = Reference((0, 1, 2, 3), wanted)
    for made in (tables.join(left, right), tables.join(left, right, last=3)):
        check(tables, made.rows, joint)
    marginal = reference.project(Ring("min-sum", 2**40), joint, 3)
    check(tables, tables.join(left, right, eliminate=3).rows, marginal)
    cross = tables.join(tables.project(left, 0).rows, tables.project(right, 1 if 1 in right.layout.scope else 2).rows)
    assert cross.rows.layout.scope[0] == 3


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_groups_with_most_of_their_rows(make, semiring, dtype):
    """The CPU lays nearly full runs out as a grid."""
    problem = Problem(semiring, dtype, 1)
    rng, tables = problem.rng, make(semiring, dtype, problem.parameter)
    problem.sizes = {0: 9, 1: 6, 2: 7, 3: 5}
    sides = []
    for scope in ((0, 1, 3), (2, 0, 3)):
        rows = np.argwhere(rng.random([problem.sizes[v] for v in scope]) < 0.7)
        values = random_values(rng, semiring, dtype, problem.parameter, len(rows))
        kept = [(tuple(row), int(x)) for row, x in zip(rows.tolist(), values, strict=True) if problem.ring.feasible(x)]
        sides.append(Reference(scope, dict(kept)))
    left, right = (problem.upload(tables, side) for side in sides)
    joint = reference.join(problem.ring, *sides)
    check(tables, tables.join(left, right, last=3).rows, joint)
    marginal = reference.project(problem.ring, joint, 3)
    check(tables, tables.join(left, right, eliminate=3).rows, marginal)


def test_sums_beyond_the_forbidden_cost_leave_no_row(make):
    for dtype in ("int32", "int64"):
        most = int(np.iinfo(dtype).max) // 2
        tables = make("min-sum", dtype, most)
        table = tables.from_rows((0,), (3,), np.array([[0], [1], [2]]), np.array([most - 1, most // 2, 0]))
        assert to_rows(tables.device, tables.join(table, table).rows)[1].tolist() == [most // 2 * 2, 0][most % 2 == 0 :]
        assert len(tables.join(table, table, eliminate=0).rows.values) == 1
        forbidden = DenseLookup((0,), tables.device.upload(np.full(3, most, dtype=dtype)))
        assert len(tables.join(table, table, tables=[forbidden, forbidden]).rows.values) == 0
        assert len(tables.lookup(table, [forbidden]).rows.values) == 0


@pytest.mark.gpu
def test_more_rows_than_the_memory_of_a_device():
    from elimina.backends.cuda.backend import CudaBackend
    from elimina.backends.cuda.sparse import CudaSparseDevice

    tables = SparseTables(CudaSparseDevice(CudaBackend(), "min-sum", np.dtype("int32"), 1000))
    many = 1 << 18
    sides = [np.stack([np.zeros(many, dtype=int), np.arange(many)], axis=1) for _ in range(2)]
    left, right = (
        tables.from_rows((0, v), (2, many), side, np.zeros(many, dtype=int)) for v, side in enumerate(sides, 1)
    )
    with pytest.raises(MemoryLimitError, match="a sparse step makes more tuples than fit"):
        tables.join(left, right)
    assert len(tables.project(left, 1).rows.values) == 1


def test_errors(make):
    with pytest.raises(UnsupportedError, match="needs 258 bits"):
        KeyLayout.of(range(43), [50] * 43)
    with pytest.raises(InputError, match="no min-sum in int16"):
        make("min-sum", "int16", 100)
    with pytest.raises(InputError, match="forbidden cost"):
        make("min-sum", "int32", 2**31 - 1)
    tables = make("min-sum", "int32", 100)
    table = tables.from_rows((0,), (3,), np.array([[0]]), np.array([5]))
    with pytest.raises(InputError, match="dense table over"):
        tables.lookup(table, [DenseLookup((0,), tables.device.upload(np.zeros(3)))])


def test_long_runs_that_meet_short_ones():
    """A hundred thousand values of the variable that is eliminated, each in few rows: 10^10 pairs of rows to meet."""
    tables = SparseTables(CpuSparseDevice("count", np.dtype("uint64"), 0, threads=2))
    size, rng = 100_000, np.random.default_rng(0)
    left, right = (np.unique(rng.integers(0, size, (size, 2)), axis=0) for _ in range(2))
    one = tables.from_rows((0, 1), (size, size), left, np.ones(len(left)))
    other = tables.from_rows((1, 2), (size, size), right, np.ones(len(right)))
    started = time.process_time()
    made = tables.join(one, other, eliminate=1)
    assert time.process_time() - started < 5
    expected = (np.bincount(left[:, 1], minlength=size) * np.bincount(right[:, 0], minlength=size)).sum()
    assert tables.device.download(made.rows.values).sum() == expected


MANY = 1 << 17
"""Tuples of a table that takes several looks at requests to stop."""


@pytest.mark.parametrize(
    "operation", ["join", "group", "project", "semi-join", "sort", "sorted", "move", "dense", "list"]
)
def test_long_operations_end_once_a_stop_is_requested(operation):
    """One operation may take minutes, so looks between operations are not enough."""
    device = CpuSparseDevice("min-sum", np.dtype(np.int64), 1000, threads=2)
    tables = SparseTables(device)
    numbers = np.arange(MANY)
    ones = np.ones(MANY, dtype=np.int64)
    left = tables.from_rows([0, 1], [MANY, 2], np.stack([numbers, numbers % 2], axis=1), ones)
    right = tables.from_rows([1, 2], [2, MANY], np.stack([numbers % 2, numbers], axis=1), ones)
    same = tables.from_rows([0, 3], [MANY, 2], np.stack([numbers, numbers % 2], axis=1), ones)
    shuffled = np.ascontiguousarray(left.keys[::-1])
    cells = np.ones(MANY, dtype=np.int64)
    work = {
        "join": lambda: tables.join(left, same),
        # Pairs of one group that all exceed the budget: quick to refuse, but there are 2^33.
        "group": lambda: tables.join(left, right, eliminate=1, keep=TupleFilter((), 1)),
        "project": lambda: tables.project(left, 1),
        "semi-join": lambda: tables.semi_join(left, same),
        "sort": lambda: device.sort(shuffled, ones),
        "sorted": lambda: device.is_sorted(left.keys),
        "move": lambda: tables.arrange(left, KeyLayout.of((1, 0), [2, MANY])),
        "dense": lambda: tables.to_dense(left, [0, 1]),
        "list": lambda: tables.from_dense([0], cells),
    }[operation]
    stop = Stop()
    obey(stop)
    try:
        if operation == "group":
            timer = threading.Timer(0.2, stop.request)
            timer.start()
        else:
            stop.request()
        started = time.monotonic()
        with pytest.raises(Stopped):
            work()
        assert time.monotonic() - started < 2
    finally:
        obey(None)
