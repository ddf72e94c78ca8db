"""Tables with names: what they compute as arrays, their states, their frames and their texts."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import InputError, JunctionTree, Model, NamedTable, Variable

WEATHER = Variable("weather", 3, ["dry", "wet", "snow"])
OPEN = Variable("open", 2, [False, True])
COUNT = Variable("count", 2)

NUMBERS = np.arange(12.0).reshape(3, 2, 2)
TABLE = NamedTable(NUMBERS.copy(), [WEATHER, OPEN, COUNT])


@pytest.fixture
def network():
    rng = np.random.default_rng(3)
    families = {"a": ["a"], "b": ["a", "b"], "c": ["a", "b", "c"], "d": ["c", "d"]}
    sizes = {"a": 2, "b": 3, "c": 2, "d": 2}
    shapes = [[sizes[v] for v in scope] for scope in families.values()]
    tables = [rng.dirichlet(np.ones(shape[-1]), shape[:-1]) for shape in shapes]
    states = {"a": ["x", "y"], "b": 3, "c": [True, False], "d": 2}
    factors = zip(families.values(), tables, strict=True)
    return Model.from_arrays(states, factors, sense="probability", children=list(families))


def test_text_in_an_index_names_a_state():
    assert np.array_equal(TABLE["wet"], NUMBERS[1])
    assert np.array_equal(TABLE["snow", 1], NUMBERS[2, 1])
    assert np.array_equal(TABLE["dry", :, 0], NUMBERS[0, :, 0])
    table = NamedTable(NUMBERS.copy(), [WEATHER, OPEN, COUNT])
    table["wet"] = 0
    assert table.sum() == NUMBERS[[0, 2]].sum()
    with pytest.raises(InputError, match="variable 'weather' has no state 'fog'; its states are 'dry', 'wet', 'snow'"):
        TABLE["fog"]
    with pytest.raises(InputError, match="variable 'open' has no state 'wet'"):
        TABLE["wet", "wet"]
    with pytest.raises(InputError, match="4 states for a table over weather, open, count"):
        TABLE["wet", 0, 0, 0]


def test_one_network_answers_both_calls_alike(network):
    marginals = JunctionTree(network).marginals()
    assert marginals["a"]["y"] == pytest.approx(elimina.solve(network, "mar").marginals["a"]["y"])


def test_names_and_states():
    assert TABLE.names == ("weather", "open", "count")
    assert {name: list(states) for name, states in TABLE.states.items()} == {
        "weather": ["dry", "wet", "snow"],
        "open": [False, True],
        "count": [0, 1],
    }


def test_every_cell_is_at_its_states():
    for (i, x), (j, y), (k, z) in itertools.product(*(enumerate(v.all_states) for v in (WEATHER, OPEN, COUNT))):
        assert TABLE.at({"count": z, "open": y, "weather": x}) == NUMBERS[i, j, k]
    rest = TABLE.at({"open": True})
    assert rest.names == ("weather", "count")
    np.testing.assert_array_equal(rest, NUMBERS[:, 1])


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ({"wind": 1}, "the table has no variable 'wind'; its variables are weather, open, count"),
        ({"weather": "hail"}, "variable 'weather' has no state 'hail'; its states are 'dry', 'wet', 'snow'"),
        ({"open": 1}, "variable 'open' has no state 1"),
    ],
)
def test_states_that_a_table_does_not_have(states, message):
    with pytest.raises(InputError, match=message):
        TABLE.at(states)
    with pytest.raises(TypeError, match="states is"):
        TABLE.at("dry")


@pytest.mark.parametrize("index", [[[0], [0, 1]], ([[0], [0, 1]], 0), (0, [0, [1]]), ["yes", [1]]])
def test_ragged_lists_are_refused(index):
    table = NamedTable(np.zeros((2, 2)), [Variable("wet", 2, ["no", "yes"]), Variable("rain", 2)])
    message = r"^index is \[.*\] \(list\); it takes positions as lists of equal lengths"
    with pytest.raises(TypeError, match=message):
        table[index]
    with pytest.raises(TypeError, match=message):
        table[index] = 1
    with pytest.raises(TypeError, match=r"^values is .*; it takes numbers in lists of equal lengths"):
        table[0] = [[1], [1, 2]]


def test_a_table_is_an_array_to_numpy():
    plain = [
        TABLE + TABLE - NUMBERS,
        2 * TABLE / 2,
        np.exp(np.log1p(TABLE)) - 1,
        TABLE[:],
        np.asarray(TABLE),
        np.array(TABLE, dtype=float, copy=True),
        TABLE.reshape(3, 2, 2),
        np.einsum("abc->abc", TABLE),
        np.where(TABLE >= 0, TABLE, 7),
    ]
    for array in plain:
        assert type(array) is np.ndarray
        np.testing.assert_allclose(array, NUMBERS, rtol=1e-14)
    assert (TABLE == NUMBERS).all()
    assert (NUMBERS == TABLE).all()
    assert TABLE.shape == (3, 2, 2)
    assert len(TABLE) == 3
    assert TABLE.tolist() == NUMBERS.tolist()
    assert TABLE.sum() == np.sum(TABLE) == NUMBERS.sum()
    np.testing.assert_array_equal(TABLE.sum(axis=0) @ TABLE[0], NUMBERS.sum(axis=0) @ NUMBERS[0])
    np.testing.assert_array_equal(np.stack(list(TABLE)), NUMBERS)
    assert np.asarray(NUMBERS) == pytest.approx(TABLE)
    assert pytest.approx(NUMBERS) == TABLE
    with pytest.raises(ValueError, match="ambiguous"):
        bool(TABLE)
    with pytest.raises(AttributeError, match="a NamedTable has no attribute 'smu'"):
        _ = TABLE.smu


def test_a_table_can_be_changed_and_copied():
    table = copy.deepcopy(TABLE)
    table[0] = 5
    table += 1
    np.add(table, 1, out=table)
    np.testing.assert_array_equal(TABLE, NUMBERS)
    np.testing.assert_array_equal(table, np.concatenate([np.full((1, 2, 2), 7.0), NUMBERS[1:] + 2]))
    assert isinstance(table, NamedTable)
    unpickled = pickle.loads(pickle.dumps(TABLE))
    assert unpickled.names == TABLE.names
    np.testing.assert_array_equal(unpickled, NUMBERS)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_name_each_combination_of_states(library):
    pytest.importorskip(library)
    frame = TABLE.to_frame(library)
    names = frame.column_names if library == "pyarrow" else list(frame.columns)
    columns = {name: frame[name].to_pylist() if library == "pyarrow" else list(frame[name]) for name in names}
    combinations = list(itertools.product(WEATHER.all_states, OPEN.all_states, COUNT.all_states))
    assert list(columns) == ["weather", "open", "count", "probability"]
    assert list(zip(*list(columns.values())[:3], strict=True)) == combinations
    assert columns["probability"] == NUMBERS.ravel().tolist()


def test_a_frame_comes_back_as_a_factor(network):
    pytest.importorskip("pandas")
    joint = JunctionTree(network).joint(["b", "a"])
    series = joint.to_frame().set_index(["a", "b"])["probability"]
    factor = Model.from_arrays(
        {"b": 3, "a": ["x", "y"]}, [(("b", "a"), series.sample(frac=1, random_state=1))], sense="probability"
    ).factors[0]
    np.testing.assert_array_equal(factor.values, joint)


def test_texts():
    lines = repr(TABLE).splitlines()
    assert lines[0].split() == ["weather", "open", "count", "probability"]
    assert lines[1].split() == ["dry", "False", "0", "0"]
    assert len(lines) == 13
    wide = NamedTable(np.full(1000, 1e-3), [Variable("x", 1000)])
    assert repr(wide).splitlines()[-1] == "and 976 more"
    assert TABLE._repr_html_().count("<tr>") == 13
    assert "snow" in TABLE._repr_html_()
    assert NamedTable(np.array([0.25, 0.75]), [OPEN])._repr_html_().count("<tr>") == 2


def test_marginals_have_states(network):
    pandas = pytest.importorskip("pandas")
    tree = JunctionTree(network, evidence={"d": 1})
    marginals = tree.marginals()
    assert list(marginals) == ["a", "b", "c", "d"]
    assert marginals["c"].states == {"c": (True, False)}
    frame = marginals.to_frame()
    rows = [(name, x, p) for name, t in marginals.items() for x, p in zip(t.states[name], t, strict=True)]
    expected = pandas.DataFrame(rows, columns=["variable", "state", "probability"])
    pandas.testing.assert_frame_equal(frame, expected)
    pandas.testing.assert_frame_equal(frame, elimina.solve(network, "mar", evidence={"d": 1}).to_frame(), rtol=1e-9)
    assert repr(tree.marginals(["d"])) == "d: 0 0, 1 1"
    assert "more" not in repr(marginals)
    assert marginals._repr_html_().count("<tr>") == 9
    with pytest.raises(KeyError):
        marginals["e"]
    best = tree.max_marginals(["b"])
    assert list(best.to_frame().columns) == ["variable", "state", "relative_probability"]
    assert best["b"].max() == 1


def test_a_posterior_is_a_likelihood(network):
    first = JunctionTree(network, evidence={"d": 1}).marginals(["a"])["a"]
    second = JunctionTree(network, evidence={"a": first}).marginals(["a"])["a"]
    prior = JunctionTree(network).marginals(["a"])["a"]
    np.testing.assert_allclose(second, first * prior / (first * prior).sum())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_conditionals_are_quotients_of_brute_force(seed, data):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 4).tolist()
    factors = []
    for _ in range(4):
        scope = rng.permutation(4)[: rng.integers(1, 4)].tolist()
        factors.append((scope, rng.random([sizes[v] for v in scope]) * (rng.random([sizes[v] for v in scope]) < 0.9)))
    model = Model.from_arrays(sizes, factors, sense="probability")
    names = [v.name for v in model.variables]
    evidence = {names[0]: 0} if data.draw(st.booleans()) else {}
    order = data.draw(st.permutations(names))
    count = data.draw(st.integers(1, 4))
    split = data.draw(st.integers(0, count))
    full = np.ones(sizes)
    for scope, values in factors:
        order_of_axes = np.argsort(scope)
        shape = [sizes[v] if v in scope else 1 for v in range(4)]
        full = full * np.transpose(values, order_of_axes).reshape(shape)
    if evidence:
        full[1:] = 0
    if full.sum() == 0:
        return
    asked, conditions = order[:split], order[split:count]
    axes = [names.index(v) for v in (*asked, *conditions)]
    joint = np.transpose(full, [*axes, *(v for v in range(4) if v not in axes)])
    joint = joint.reshape([sizes[v] for v in axes] + [-1]).sum(axis=-1)
    with np.errstate(invalid="ignore"):
        expected = joint / joint.sum(axis=tuple(range(split)), keepdims=True)
    table = JunctionTree(model, evidence=evidence).conditional(asked, given=conditions)
    assert table.names == (*asked, *conditions)
    np.testing.assert_allclose(table, expected, rtol=1e-9, atol=1e-12)


def test_conditionals_refuse_what_joints_refuse(network):
    tree = JunctionTree(network)
    with pytest.raises(InputError, match="variable 'a' is named twice"):
        tree.conditional(["a"], given=["b", "a"])
    with pytest.raises(TypeError, match="given is"):
        tree.conditional(["a"], given={"b", "c"})
    with pytest.raises(TypeError, match=r"variables is .*, such as \['a'\]"):
        tree.conditional("a", given=["b"])
