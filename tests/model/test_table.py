"""Tables, dense and sparse."""

from __future__ import annotations

import itertools
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina.errors import InputError
from elimina.model.table import FORBIDDEN, Table


@st.composite
def pairs(draw):
    """A dense table and the same one stored sparsely."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    scope = draw(st.permutations(range(5)))[: len(sizes)]
    cost = st.integers(-3, 3) | st.sampled_from([FORBIDDEN, 2**62])
    values = np.array(draw(st.lists(cost, min_size=int(np.prod(sizes)), max_size=int(np.prod(sizes)))))
    values = values.reshape(sizes)
    default = int(values.flat[0])
    rows = np.argwhere(values != default)
    return Table(scope, values), Table(scope, values[tuple(rows.T)], sizes=sizes, rows=rows, default=default)


@given(pairs())
def test_sparse_and_dense_agree(tables):
    dense, sparse = tables
    assert dense.rows is None
    assert len(sparse.rows) == len(sparse.values)
    assert sparse.cells == dense.cells == dense.values.size
    np.testing.assert_array_equal(sparse.dense(), dense.values)
    for key in itertools.product(*map(range, dense.sizes)):
        assignment = dict(zip(dense.scope, key, strict=True))
        assert dense.at(assignment) == sparse.at(assignment) == dense.values[key]


@given(pairs(), st.data())
def test_restriction_fixes_variables(tables, data):
    fixed = {}
    for v, size in zip(tables[0].scope, tables[0].sizes, strict=True):
        if data.draw(st.booleans()):
            fixed[v] = data.draw(st.integers(0, size - 1))
    for table in tables:
        part = table.restrict({**fixed, 99: 0})
        assert part.scope == tuple(v for v in table.scope if v not in fixed)
        for key in itertools.product(*map(range, part.sizes)):
            assignment = {**fixed, **dict(zip(part.scope, key, strict=True))}
            assert part.at(assignment) == table.at(assignment)


def test_restriction_to_other_variables_is_the_table_itself():
    table = Table([0], [1, 2])
    assert table.restrict({1: 0}) is table


def test_dtypes():
    assert Table([0], [True, False]).values.dtype == np.int64
    assert Table([0], np.array([1, 2], np.uint8)).values.dtype == np.int64
    assert Table([0], np.array([1, 2], np.float32)).values.dtype == np.float32
    assert Table([0], np.array([1, 2], np.float16)).values.dtype == np.float64
    assert isinstance(Table([0], [1, 2]).at([1]), int)
    assert isinstance(Table((), 2.5).at([]), float)


@pytest.mark.parametrize(
    ("arguments", "options", "problem"),
    [
        (([0, 0], [[1]]), {}, "names a variable twice"),
        (([0], [[1]]), {}, "give one axis for each variable"),
        (([0], [1]), {"rows": [[0]]}, "needs a scope, sizes and a default"),
        (([], [1]), {"rows": [[]], "sizes": [], "default": 0}, "needs a scope"),
        (([0], [1]), {"rows": [[0]], "sizes": [2, 2], "default": 0}, "got 2 sizes"),
        (([0], [1]), {"rows": [[2]], "sizes": [2], "default": 0}, "outside the domain sizes"),
        (([0], [1]), {"rows": [[-1]], "sizes": [2], "default": 0}, "outside the domain sizes"),
        (([0], [1]), {"rows": [[0]], "sizes": [2], "default": 0.5}, "needs an integer default of 64 bits"),
        (([0], [1]), {"rows": [[0]], "sizes": [2], "default": np.inf}, "cannot have that default"),
        (([0], [1]), {"rows": [[0]], "sizes": [2], "default": np.nan}, "cannot have that default"),
        (([0], [1]), {"rows": [[0]], "sizes": [2], "default": 2**63}, "an integer default of 64 bits, not 92233"),
        (([0], [1]), {"rows": [[0]], "sizes": [2], "default": 10**5000}, "not an integer of 16,610 bits"),
        (([0], [1.0]), {"rows": [[0]], "sizes": [2], "default": 10**400}, "cannot have that default"),
        (([0], [1]), {"rows": [[2**32]], "sizes": [2], "default": 0}, "outside the domain sizes"),
        (([0], [1]), {"rows": np.array([[2**63]], np.uint64), "sizes": [2], "default": 0}, "outside the domain sizes"),
        (([0], [1]), {"rows": [[2**32]], "sizes": [2**40], "default": 0}, "outside the domain sizes"),
        (([0], [1]), {"rows": [[0.7]], "sizes": [2], "default": 0}, "are float64; they must be integers"),
        (([0], [1, 5]), {"rows": [[0], [0]], "sizes": [2], "default": 9}, "listed twice"),
        (([0, 1], [1, 5, 1]), {"rows": [[1, 0], [0, 1], [1, 0]], "sizes": [2, 2], "default": 9}, "listed twice"),
        (([0], [1, 2]), {"rows": [[0, 1, 2]], "sizes": [2], "default": 0}, r"tuples of shape \(1, 3\) and values of"),
        (([0], [[1]]), {"rows": [[0]], "sizes": [2], "default": 0}, r"values of shape \(1, 1\)"),
        (([0.9], [1, 2]), {}, "a table's scope must be integers"),
        (([0], [[1, 2], [3]]), {}, "not an array of numbers"),
        (([0], np.array([2**63], np.uint64)), {}, "does not fit a signed 64-bit integer"),
    ],
)
def test_what_is_refused(arguments, options, problem):
    with pytest.raises(InputError, match=problem):
        Table(*arguments, **options)


def test_rows_of_a_huge_table_are_listed_once():
    rows = np.eye(70, dtype=int)
    assert Table(range(70), range(70), sizes=[2] * 70, rows=rows, default=0).at([0] * 70) == 0
    with pytest.raises(InputError, match="listed twice"):
        Table(range(70), range(71), sizes=[2] * 70, rows=[*rows, rows[3]], default=0)


def test_values_outside_the_domains():
    for table in (Table([0], [1, 2]), Table([0], [1], sizes=[2], rows=[[0]], default=3)):
        for value in (-1, 2):
            with pytest.raises(InputError, match=f"variable 0 has the values 0 to 1, not {value}"):
                table.at([value])


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([2**70, 0], "integers of 64 bits or floats, not the integer 1180591620717411303424"),
        (["1", "2"], "integers of 64 bits or floats, not <U1"),
        ([1j, 0], "integers of 64 bits or floats, not complex128"),
    ],
)
def test_values_that_are_no_numbers_of_ours(values, problem):
    with pytest.raises(InputError, match=problem):
        Table([0], values)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([2**63, 2], "the value 9223372036854775808 does not fit a signed 64-bit integer"),
        ([2, -(2**63) - 1], "the value -9223372036854775809 does not fit|not the integer -9223372036854775809"),
        ([2**63, -1], "the value 9223372036854775808 does not fit a signed 64-bit integer"),
        ([FORBIDDEN, 1.5], r"FORBIDDEN is among floats, where it is not exact: write infinity \(math.inf\)"),
        ([0.5, -FORBIDDEN], "FORBIDDEN is among floats"),
        ([2**53 + 1, 0.5], "the integer 9007199254740993 is among floats, where it is not exact"),
        (np.ma.masked_array([1, 2], [False, True]), "1 of a table's values are masked, and all 2 are needed"),
        (np.array([np.longdouble("1e-400"), 1]), "the value 1e-400 of a table of float128 is out of the range"),
        (np.array([np.longdouble("1e400"), 1]), r"the value 1e\+400 of a table of float128"),
        ([Fraction(1, 2), 1], r"objects such as Fraction\(1, 2\) \(Fraction\); convert them, by float"),
        ([None, 1], r"objects such as None \(NoneType\)"),
        (np.array([1.0, 2.0], object), "objects; give the array a dtype"),
        (np.array(["2020-01-01", "2021-01-01"], "M8[D]"), r"not datetime64\[D\]"),
        ([b"1", b"2"], r"not \|S1"),
        ("ab", "not <U2"),
    ],
)
def test_numbers_that_would_change_silently(values, problem):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match=problem):
            Table([0], values)


def test_numbers_that_stay_the_same():
    assert Table([0], [2**53, 0.5]).values.tolist() == [2.0**53, 0.5]
    assert Table([0], [2**60, 0.5]).values.tolist() == [2.0**60, 0.5]
    assert Table([0], np.array([2, 0, np.inf, np.nan], np.longdouble)).values[:3].tolist() == [2.0, 0.0, np.inf]
    assert Table([0], np.ma.masked_array([1, 2], [False, False])).values.tolist() == [1, 2]
    assert type(Table([0], np.ma.masked_array([1, 2])).values) is np.ndarray
    assert Table([0], [True, 2]).values.dtype == np.int64


def test_masked_tuples():
    rows = np.ma.masked_array([[0], [1]], [[False], [True]])
    with pytest.raises(InputError, match="1 of a table's tuples are masked"):
        Table([0], [1, 2], sizes=[2], rows=rows, default=0)


def test_values_that_are_mapped_and_variables_that_are_renamed():
    dense = Table([0, 1], [[1, 2], [3, 4]])
    assert dense.mapped(np.negative).values.tolist() == [[-1, -2], [-3, -4]]
    assert (dense.over([5, 3]).scope, dense.over([5, 3]).sizes) == ((5, 3), (2, 2))
    sparse = (
        Table([0, 1], [7.0], sizes=[2, 3], rows=[[1, 2]], default=0.5).mapped(lambda values: 2 * values).over([4, 1])
    )
    assert (sparse.scope, sparse.values.tolist(), sparse.default) == ((4, 1), [14.0], 1.0)
    assert sparse.dense().tolist() == [[1, 1, 1], [1, 1, 14]]


@pytest.mark.parametrize("value", [-1, 2, 0.5, "a", None])
def test_values_outside_the_domain_are_refused(value):
    dense, sparse = Table([3], [1, 2]), Table([3], [1], sizes=[2], rows=[[0]], default=7)
    for table in (dense, sparse):
        for call in (table.at, table.restrict):
            with pytest.raises(InputError, match="variable 3 has the values 0 to 1, not "):
                call({3: value})
        with pytest.raises(InputError, match="the assignment has no value of variable 3"):
            table.at([0])
        assert table.at({3: np.int8(0)}) == table.restrict({3: np.int8(0)}).at([]) == 1


@pytest.mark.parametrize("scope", [[1], [1, 2, 3]])
def test_a_table_over_other_variables_has_as_many(scope):
    table = Table([0, 1], [[1, 2], [3, 4]])
    assert table.over([5, 2]).scope == (5, 2)
    with pytest.raises(InputError, match=f"over 2 variables cannot become one over {len(scope)}"):
        table.over(scope)
    with pytest.raises(InputError, match="twice"):
        table.over([3, 3])
