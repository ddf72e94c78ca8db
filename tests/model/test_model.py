"""Variables, models and their scores."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.model.states import StateIndex
from elimina.model.table import CLOSE, FORBIDDEN, Sense, Table, misfit
from elimina.model.variable import Variable


def test_states_and_indices():
    plain, named, whole, flags = (
        Variable("a", 3),
        Variable("b", 2, ["low", "1"]),
        Variable("c", 3, np.array([10, -1, 0])),
        Variable("d", 2, [True, np.False_]),
    )
    assert (plain.states, named.states, whole.states, flags.states) == (None, ("low", "1"), (10, -1, 0), (True, False))
    assert [type(state) for state in (*whole.states, *flags.states)] == [int] * 3 + [bool] * 2
    assert [plain.state(x) for x in range(3)] == [0, 1, 2]
    assert type(plain.state(np.int64(1))) is int
    assert (plain.index(2), plain.index(np.uint8(1)), plain.index(StateIndex(2))) == (2, 1, 2)
    assert (named.index("1"), named.index(StateIndex(0)), named.index(np.str_("low"))) == (1, 0, 0)
    assert (whole.index(10), whole.index(np.int64(-1)), whole.index(StateIndex(np.int8(1)))) == (0, 1, 1)
    assert (flags.index(True), flags.index(np.False_), flags.index(StateIndex(1))) == (0, 1, 1)
    for variable, bad in (
        (plain, ["2", 3, -1, True, 1.0, None, StateIndex(3)]),
        (named, ["0", "high", 0, 1, 2, True, StateIndex(2)]),
        (whole, ["10", 1, True, False, 10.0, "-1", ["10"], StateIndex(3)]),
        (flags, [1, 0, "True", 1.0, StateIndex(2)]),
    ):
        for state in bad:
            with pytest.raises(InputError, match=f"variable '{variable.name}' has no state"):
                variable.index(state)
    with pytest.raises(
        InputError, match=r"no state 1\.0; its states are 0 to 2; 1 is a state, but of type int, not float"
    ):
        plain.index(1.0)


@pytest.mark.parametrize(
    ("size", "states", "problem"),
    [
        (0, None, "has 0 values"),
        (2, ["a"], "has 2 values but the states 'a'"),
        (2, ["a", "a"], "has the state 'a' twice"),
        (3, [1, 2, np.int8(1)], "has the state 1 twice"),
        (2, [1, True], "has the states 1 and True, which are equal in Python"),
        (2, [False, 0], "has the states False and 0, which are equal in Python"),
        (2, [1, "1"], "has the states 1 and '1', which are the same as text"),
        (2, ["True", True], "has the states 'True' and True, which are the same as text"),
        (2, [0.5, 1], "has the state 0.5, a float;"),
        (2, ["a", None], "has the state None, a NoneType"),
        (1, [("a",)], "has the state ('a',), a tuple"),
    ],
)
def test_states_that_are_refused(size, states, problem):
    with pytest.raises(InputError) as caught:
        Variable("c", size, states)
    assert f"variable 'c' {problem}" in str(caught.value)


def test_what_is_no_sequence_of_states():
    for states in ("yn", b"yn", 2, {"y", "n"}):
        with pytest.raises(TypeError, match=r"states is .*; it takes a sequence of str, int or bool"):
            Variable("c", 2, states)
    for index in (1.0, True, "1", None):
        with pytest.raises(TypeError, match=r"index is .*; it takes an integer"):
            StateIndex(index)
    with pytest.raises(InputError, match="index is -1; it must be at least 0"):
        StateIndex(-1)


def test_models_from_arrays():
    model = Model.from_arrays({"a": 2, "b": 3}, [(["b", 0], np.arange(6).reshape(3, 2)), ([], 5)], constant=1)
    assert model.sizes == (2, 3)
    assert model.factors[0].scope == (1, 0)
    assert model.score([1, 2]) == 1 + 5 + 5
    assert model.index("b") == 1
    with pytest.raises(InputError, match="unknown variable 'c'"):
        Model.from_arrays({"a": 2}, [(["c"], [1, 2])])
    for name in (None, 1.5, (0,)):
        with pytest.raises(InputError, match="named by strings or indices, not by"):
            model.index(name)
    for name in ("c", 2, -1):
        with pytest.raises(InputError, match="the model has no variable"):
            model.index(name)


def test_models_from_arrays_with_named_states():
    sizes = {"rain": ["no", "yes"], "day": (1, 2, 3), "x": 2}
    model = Model.from_arrays(sizes, [(["rain", "day"], np.ones((2, 3)))], sense="probability")
    assert [v.states for v in model.variables] == [("no", "yes"), (1, 2, 3), None]
    with pytest.raises(InputError, match="variable 'rain' has the state 'no' twice"):
        Model.from_arrays({"rain": ["no", "no"]}, [])


def test_a_factor_that_names_a_variable_twice_is_named():
    with pytest.raises(InputError, match="factor 1 names variable 'b' twice"):
        Model.from_arrays({"a": 2, "b": 2}, [(("a",), [1, 2]), ((v for v in ("b", "b")), np.ones((2, 2)))])


def test_factors_may_be_scoped_by_a_generator():
    model = Model.from_arrays({"a": 2, "b": 3}, [((v for v in ("b", "a")), np.arange(6).reshape(3, 2))])
    assert model.factors[0].scope == (1, 0)
    with pytest.raises(InputError, match="unknown variable 'c'"):
        Model.from_arrays({"a": 2}, [((v for v in ("c",)), [1, 2])])


def test_a_set_names_no_axes():
    """The order of a set of names changes from run to run."""
    model = Model.from_arrays([2, 2], [((0, 1), np.ones((2, 2)))], sense="probability")
    for call in (
        lambda: Model.from_arrays({"a": 2, "b": 2}, [({"a", "b"}, np.ones((2, 2)))]),
        lambda: Table(frozenset({0, 1}), np.ones((2, 2))),
        lambda: elimina.JunctionTree(model).joint({"x0", "x1"}),
    ):
        with pytest.raises(TypeError, match="takes a sequence in the order of the axes; a set has no order"):
            call()


def test_integer_scores_are_exact():
    model = Model.from_arrays([2], [([0], [2**62, FORBIDDEN]), ([0], [2**62 + 1, 0])], constant=2**62)
    assert model.is_integer
    assert model.score([0]) == 3 * 2**62 + 1
    assert model.score([1]) == math.inf


def test_scores_of_floats_are_rounded_once():
    sums = Model.from_arrays([1], [([0], [1.5e308]), ([0], [1.5e308]), ([0], [-1.5e308])])
    assert sums.score([0]) == 1.5e308
    mixed = Model.from_arrays([1], [([0], [-float(2**53)]), ([0], [0.25])], constant=2**53 + 1)
    assert mixed.score([0]) == 1.25


def test_wrong_assignments():
    model = Model([Variable("a", 2, ["no", "yes"]), Variable("b", 3)], [Table([0, 1], np.arange(6).reshape(2, 3))])
    states = {"a": "yes", "b": 2}
    for assignment in (states, ["yes", 2], 3, None):
        with pytest.raises(TypeError, match=r"^assignment is .*; it takes a sequence with the index of each variable"):
            model.score(assignment)
    assert model.score(model.indices_of(states)) == 5


def test_names_in_a_model():
    model = Model([Variable("a", 2), Variable("b", 3)], [])
    assert "b" in model
    assert "c" not in model
    assert model["a"] in model
    assert 0 not in model


def test_scores_of_each_sense():
    highest = Model.from_arrays([2], [([0], [3, -FORBIDDEN])], sense="max-cost")
    assert (highest.score([0]), highest.score([1])) == (3, -math.inf)
    decimal = Model.from_arrays([2], [([0], [0.5, math.inf])], constant=1)
    assert not decimal.is_integer
    assert (decimal.score([0]), decimal.score([1])) == (1.5, math.inf)
    chance = Model.from_arrays([2], [([0], [0.5, 0.0]), ([], 0.25)], sense="probability", constant=-1.0)
    assert chance.score([0]) == pytest.approx(math.log(0.125) - 1)
    assert chance.score([1]) == -math.inf


@pytest.mark.parametrize("number", [np.int64(2**60), np.int16(3), True])
def test_integers_of_numpy_are_exact(number):
    model = Model.from_arrays([2], [([0], [2**60 + 1, 0])], constant=number, upper_bound=number)
    assert model.is_integer
    assert model.score([0]) == 2**60 + 1 + int(number)
    assert type(model.upper_bound) is int
    assert type(Model([], [], constant=np.float32(0.5)).constant) is float


def test_an_infinite_upper_bound_is_none():
    assert Model([], [], upper_bound=math.inf).upper_bound is None
    assert Model([], [], upper_bound=-math.inf, sense="max-cost").upper_bound is None


def sparse(rows, values, default):
    return Table([0], [values] * rows, sizes=[2], rows=[[0]] * rows, default=default)


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: Model([Variable("a", 2)], [Table([1], [1, 2])]), "names variable 1"),
        (lambda: Model([Variable("a", 2)], [Table([0], [1, 2, 3])]), "has 3 values for variable 'a', which has 2"),
        (lambda: Model([Variable("a", 2), Variable("a", 2)], []), "two variables are named 'a'"),
        (lambda: Model([], [], sense="best"), "unknown sense 'best'"),
        (lambda: Model.from_arrays([2], [([0], [math.nan, 1])]), "contains NaN"),
        (lambda: Model.from_arrays([2], [([0], [-0.1, 1])], sense="probability"), "has the value -0.1"),
        (lambda: Model.from_arrays([2], [([0], [math.inf, 1])], sense="probability"), "has the value inf"),
        (lambda: Model.from_arrays([2], [([0], [-math.inf, 1])]), "has the value -inf in a min-cost model"),
        (lambda: Model.from_arrays([2], [([0], [math.inf, 1])], sense="max-cost"), "has the value inf in a max-cost"),
        (lambda: Model.from_arrays([2], [([0], [-1, 3])], sense="probability"), "has the value -1 in a probability"),
        (lambda: Model([Variable("a", 2)], [sparse(0, 0.5, math.nan)]), "contains NaN"),
        (lambda: Model([Variable("a", 2)], [sparse(1, 0.5, -1.0)], sense="probability"), "has the value -1.0"),
        (lambda: Model([Variable("a", 2)], [sparse(1, 1, -1)], sense="probability"), "has the value -1 in"),
        (lambda: Model([], [], constant=math.nan), "constant is NaN"),
        (lambda: Model([], [], constant=math.inf), "the constant is inf"),
        (lambda: Model([], [], constant=10**400), "constant is 1000.*, which is out of the range of a float"),
        (lambda: Model([], [], upper_bound=math.nan), "upper_bound is NaN"),
        (lambda: Model([], [], upper_bound=-math.inf), "the upper bound of a min-cost model is -inf"),
        (lambda: Model([], [], upper_bound=math.inf, sense="max-cost"), "of a max-cost model is inf"),
        (lambda: Model([], [], upper_bound=1, sense="probability"), "has no upper bound"),
        (lambda: Model([Variable("a", 2)], [Table([0], [1, 2])], children=[]), "1 factor but 0 children"),
        (lambda: Model([Variable("a", 2)], [Table([0], [1, 2])], children=[1]), "does not contain its child 1"),
        (
            lambda: Model.from_arrays([2], [([0], [-0.1, 1])], sense="probability"),
            "; values must be finite and at least",
        ),
        (lambda: Model.from_arrays([2], [([0], [1, 2]), ([0], ["x", "y"])]), r"factor 1 over \(0\): a table holds"),
        (lambda: Model.from_arrays({"a": 2}, [(["a"], [[1, 2]])]), r"factor 0 over \(a\): .* give one axis for each"),
        (lambda: Variable("a", 2.7), "variable 'a' has 2.7 values; that must be an integer"),
        (lambda: Variable("a", ["x", "y"]), "that must be an integer, and states are the next argument"),
    ],
)
def test_what_is_refused(build, problem):
    with pytest.raises(InputError, match=problem):
        build()


def test_public_names():
    assert elimina.Model is Model
    assert elimina.Table is Table
    assert elimina.FORBIDDEN == FORBIDDEN


def costs(values, sense="min-cost", **options):
    return lambda: Model.from_arrays([2], [([0], values)], sense=sense, **options)


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (costs(np.array([FORBIDDEN, 1.5])), r"in floats of a min-cost model, .* is infinity \(math.inf\)"),
        (costs(np.array([FORBIDDEN, np.inf])), r"the value 9.22337203685477\d+e\+18, which looks like"),
        (costs(np.array([FORBIDDEN, 1.5], np.float32)), "in floats of a min-cost model"),
        (costs(np.array([FORBIDDEN, 1.5]) - 10**9), "in floats of a min-cost model"),
        (costs(np.array([FORBIDDEN, 1.5]), "max-cost"), r"minus infinity \(-math.inf\)"),
        (costs(np.array([-FORBIDDEN, 1.5]), "max-cost"), r"minus infinity \(-math.inf\)"),
        (
            costs(np.array([FORBIDDEN, 7]) - 3),
            "the value 9223372036854775804, which looks like .* is elim",
        ),
        (costs([FORBIDDEN - 1, FORBIDDEN]), "the value 9223372036854775806"),
        (costs(-np.array([FORBIDDEN, 7])), "the value -9223372036854775807"),
        (costs([-(2**63), 7]), "the value -9223372036854775808"),
        (costs([FORBIDDEN, 7], "max-cost"), "a forbidden assignment is -elimina.FORBIDDEN"),
        (costs([FORBIDDEN, 7], "probability"), "in integers of a probability model, a forbidden assignment is 0"),
        (costs(np.array([FORBIDDEN, 0.5]), "probability"), "in floats of a probability model, .* is 0"),
        (
            lambda: Model([Variable("a", 2)], [Table([0], [5], sizes=[2], rows=[[0]], default=FORBIDDEN - 1)]),
            r"factor 0 over \(a\) has the value 9223372036854775806",
        ),
    ],
)
def test_costs_that_look_forbidden_but_are_not(build, problem):
    with pytest.raises(InputError, match=problem):
        build()


def test_forbidden_costs_and_large_ones():
    assert costs([FORBIDDEN, 2**62])().score([0]) == math.inf
    assert costs([-FORBIDDEN, -(2**62)], "max-cost")().score([0]) == -math.inf
    assert costs([1e30, math.inf])().score([0]) == 1e30
    assert costs([1e19, 1e300], "probability")().score([0]) == pytest.approx(math.log(1e19))


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: Model([1], []), r"variables\[0\] is 1 \(int\); it takes a Variable"),
        (lambda: Model(3, []), r"variables is 3 \(int\); it takes an iterable of Variable objects"),
        (lambda: Model([], [[1, 2]]), r"factors\[0\] is \[1, 2\] \(list\); it takes a Table"),
        (lambda: Model([], [], sense=None), "sense is None; it takes one of min-cost"),
        (lambda: Model([], [], constant="x"), r"constant is 'x' \(str\); it takes a number"),
        (lambda: Model([], [], upper_bound=[1]), r"upper_bound is \[1\] \(list\)"),
        (lambda: Model([Variable("a", 2)], [Table([0], [1, 2])], children=[0.0]), r"children is \[0.0\] \(list\)"),
        (lambda: Model.from_arrays(2, []), r"sizes is 2 \(int\)"),
        (lambda: Model.from_arrays([2], [[]]), r"factors\[0\] is \[\] \(list\); it takes a pair"),
        (lambda: Model.from_arrays([2], [(0, [1, 2])]), r"factors\[0\]\[0\] is 0 \(int\); it takes a sequence"),
        (lambda: Model.from_arrays([2], 5), r"factors is 5 \(int\)"),
        (lambda: Model.from_arrays({1: 2}, []), r"name is 1 \(int\); it takes text"),
        (lambda: Variable(None, 2), "name is None; it takes text"),
    ],
)
def test_wrong_types(build, problem):
    with pytest.raises(TypeError, match=f"^{problem}"):
        build()


@pytest.mark.parametrize(
    "number",
    [np.longdouble("1e-400"), np.longdouble("1e400"), Fraction(1, 10**400), Fraction(10**400), 2**20000],
    ids=["tiny", "huge", "a tiny fraction", "a huge fraction", "a huge integer"],
)
def test_constants_out_of_range(number):
    with pytest.raises(InputError, match=r"constant is .* out of the range of a float"):
        Model([], [], constant=number)


def test_an_assignment_of_some_variables_has_no_indices():
    model = Model([Variable("a", 2), Variable("b", 2)], [])
    assert model.indices_of({"a": 1, "b": 0}) == [1, 0]
    with pytest.raises(InputError, match="the assignment has no state of variable 'b'"):
        model.indices_of({"a": 1})


def test_parents_form_no_cycle():
    table = np.full((2, 2), 0.5)
    variables = [Variable(name, 2) for name in "abcd"]
    arcs = [Table([0, 1], table), Table([1, 2], table), Table([2, 0], table), Table([3], [0.5, 0.5])]
    for check in (True, False):
        with pytest.raises(InputError, match="a cycle of parents: 'a' <- 'c' <- 'b' <- 'a'"):
            Model(variables, arcs, sense="probability", children=[1, 2, 0, 3], check=check)
        Model(variables, arcs[:2], sense="probability", children=[1, 2], check=check)


def test_a_variable_has_one_distribution():
    variables = [Variable(name, 2) for name in "ab"]
    tables = [Table([0], [0.5, 0.5]), Table([0, 1], np.full((2, 2), 0.5)), Table([0], [0.5, 0.5])]
    with pytest.raises(InputError, match="factors 0 and 2 are both distributions of variable 'a'"):
        Model(variables, tables, sense="probability", children=[0, 1, 0])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 7))
def test_cycles_of_random_parents(seed, count):
    """Networks are refused exactly where networkx finds a cycle."""
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(seed)
    children = rng.permutation(count).tolist()
    graph, tables = networkx.DiGraph(), []
    graph.add_nodes_from(children)
    for child in children:
        parents = [v for v in range(count) if v != child and rng.random() < 0.25]
        graph.add_edges_from((parent, child) for parent in parents)
        tables.append(Table([*parents, child], np.full([2] * (len(parents) + 1), 0.5)))
    try:
        Model([Variable(f"x{v}", 2) for v in range(count)], tables, sense="probability", children=children)
    except InputError as error:
        named = [int(word.strip("'x")) for word in str(error).removeprefix("a cycle of parents: ").split(" <- ")]
        assert named[0] == named[-1]
        assert all(graph.has_edge(parent, child) for child, parent in pairwise(named))
    else:
        assert networkx.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda model: model.states_at([-1, 0]), InputError, "the index of a state of variable 'a' is -1"),
        (lambda model: model.states_at([0, 3]), InputError, "the index of a state of variable 'b' is 3"),
        (lambda model: model.states_at([0]), InputError, "indices has 1 element, and the model has 2 variables"),
        (lambda model: model.states_at(3), TypeError, "indices is 3 (int); it takes a sequence"),
        (lambda model: model.states_at(["x", 0]), TypeError, "it takes an integer"),
        (lambda model: model["a"].state(2), InputError, "it must be from 0 to 1"),
        (lambda model: model.indices_of(None), TypeError, "assignment is None; it takes a mapping"),
        (lambda model: model.factors[0].at(None), TypeError, "assignment is None; it takes a mapping"),
        (lambda model: model.factors[0].restrict([0]), TypeError, "fixed is [0] (list); it takes a mapping"),
    ],
)
def test_wrong_indices_and_assignments_are_named(call, error, text):
    """An index of -1 would count from the end, and one of 3 would be a state that the variable does not have."""
    model = Model.from_arrays({"a": ["x", "y"], "b": 3}, [(("a", "b"), np.zeros((2, 3)))])
    with pytest.raises(error, match=re.escape(text)):
        call(model)


def test_booleans_are_no_indices():
    model = Model.from_arrays([2, 2], [([0, 1], [[1, 2], [3, 4]])], sense="probability")
    for name in (True, False, np.bool_(True)):
        with pytest.raises(InputError, match="variables are named by strings or indices, not by"):
            model.index(name)
        with pytest.raises(InputError, match="a table's scope must be integers"):
            Table([name], [1, 2])
    for call in (
        lambda: elimina.solve(model, "mar", query=[True, False]),
        lambda: elimina.solve(model, "mar", evidence={True: 0}),
    ):
        with pytest.raises(InputError, match="variables are named by strings or indices, not by True"):
            call()


ODD_VALUES = (
    math.nan, math.inf, -math.inf, 0, -0.0, -1, 1e300, -1e300, 5e-324, FORBIDDEN, -FORBIDDEN, FORBIDDEN - 1, CLOSE,
    CLOSE + 1, -CLOSE - 1, -CLOSE,
)  # fmt: skip


@pytest.mark.parametrize("sense", ["min-cost", "max-cost", "probability"])
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_the_first_defect_among_many_factors_is_named(sense: Sense, data: st.DataObject) -> None:
    """Factors are checked together; the oracle looks at each value of each factor."""
    sizes = [2, 3, 9]
    factors = []
    for _ in range(data.draw(st.integers(0, 12))):
        scope = data.draw(st.sampled_from([[], [0], [1], [2], [0, 1], [1, 2], [2, 0], [0, 1, 2], [1, 3]]))
        shape = [sizes[v] if v < 3 and data.draw(st.integers(0, 60)) else 2 for v in scope]
        dtype = data.draw(st.sampled_from([np.float64, np.int64, np.float32]))
        odd = [v for v in ODD_VALUES if dtype != np.int64 or (math.isfinite(v) and abs(v) < 2**63 and v == int(v))]
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
        values = rng.integers(0, 5, shape).astype(dtype)
        with np.errstate(over="ignore", under="ignore"):
            for value in data.draw(st.lists(st.sampled_from(odd), max_size=1)):
                values.flat[rng.integers(values.size)] = value
        if not scope or data.draw(st.booleans()):
            factors.append(Table(scope, values))
            continue
        rows = np.argwhere(np.ones(shape, dtype=bool))
        listed = rng.random(len(rows)) < data.draw(st.sampled_from([0.0, 0.5, 1.0]))
        default = values.flat[0].item()
        factors.append(Table(scope, values.reshape(-1)[listed], sizes=shape, rows=rows[listed], default=default))
    fits = [all(v < 3 and sizes[v] == size for v, size in zip(f.scope, f.sizes, strict=True)) for f in factors]
    wrong = fits.index(False) if False in fits else None
    if wrong is None:
        wrong = next((number for number, factor in enumerate(factors) if misfit(factor, sense) is not None), None)
    variables = [Variable(f"v{v}", size) for v, size in enumerate(sizes)]
    if wrong is None:
        Model(variables, factors, sense=sense)
        return
    with pytest.raises(InputError, match=rf"factor {wrong} "):
        Model(variables, factors, sense=sense)
