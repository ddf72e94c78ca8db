"""Bayesian networks by name: every form of a distribution gives the same network, and what does not fit is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import InputError, JunctionTree, Model, Variable, solve

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

STATES = {"a": ["x", "y"], "b": [2, 0, 1], "c": [True, False]}
KEYS = ["a", ("b", "a"), ("c", "b", "a")]


def distributions(seed):
    """An array for each key, the child's axis first."""
    rng = np.random.default_rng(seed)
    scopes = [(key,) if isinstance(key, str) else key for key in KEYS]
    shapes = [[len(STATES[v]) for v in scope] for scope in scopes]
    return {
        key: np.moveaxis(rng.dirichlet(np.ones(shape[0]), shape[1:]), -1, 0)
        for key, shape in zip(KEYS, shapes, strict=True)
    }


def nested(names, array):
    """Nested mappings from states, in any order."""
    if not names:
        return float(array)
    return {x: nested(names[1:], array[STATES[names[0]].index(x)]) for x in reversed(STATES[names[0]])}


def tuples(names, array):
    combinations = itertools.product(*(enumerate(STATES[v]) for v in names))
    return {tuple(x for _, x in pairs): array[tuple(i for i, _ in pairs)] for pairs in combinations}


def series(names, array, is_named=True):
    index = pd.MultiIndex.from_product([STATES[v] for v in names], names=names if is_named else None)
    return pd.Series(array.ravel(), index=index).sample(frac=1, random_state=3)


FORMS = {
    "array": lambda names, array: array,
    "list": lambda names, array: array.tolist(),
    "pgmpy's": lambda names, array: array.reshape(len(array), -1),
    "nested": nested,
    "tuples": tuples,
    "series": series,
    "unnamed": lambda names, array: series(names, array, is_named=False),
    "frame": lambda names, array: series(names, array).unstack(names[-1]) if len(names) > 1 else series(names, array),
    "turned": lambda names, array: series(names, array).unstack(names[0]) if len(names) > 1 else series(names, array),
}


@settings(max_examples=120, deadline=None)
@given(st.lists(st.sampled_from(sorted(FORMS)), min_size=3, max_size=3), st.permutations(KEYS), st.integers(0, 99))
def test_all_forms_are_one_network(forms, order, seed):
    arrays = distributions(seed)
    forms_of = dict(zip(KEYS, forms, strict=True))
    cpds = {key: FORMS[forms_of[key]]((key,) if isinstance(key, str) else key, arrays[key]) for key in order}
    model = Model.from_cpds(cpds, states=STATES)
    assert model.children is not None
    factors = {model.variables[child].name: f for f, child in zip(model.factors, model.children, strict=True)}
    for key, array in arrays.items():
        names = (key,) if isinstance(key, str) else key
        factor = factors[names[0]]
        scope = [model.variables[v].name for v in factor.scope]
        np.testing.assert_array_equal(np.transpose(factor.dense(), [scope.index(v) for v in names]), array)
        assert model.parents(names[0]) == list(names[1:])
        assert list(model[names[0]].all_states) == STATES[names[0]]


@pytest.mark.parametrize("form", ["nested", "series", "frame"])
def test_labels_are_the_states(form):
    arrays = distributions(1)
    cpds = {k: FORMS[form]((k,) if isinstance(k, str) else k, p) for k, p in arrays.items()}
    model = Model.from_cpds(cpds, name="named")
    assert model.name == "named"
    assert {v.name: set(v.all_states) for v in model.variables} == {name: set(x) for name, x in STATES.items()}
    joint = JunctionTree(model).joint(["c", "b", "a"])
    expected = arrays["a"] * arrays["b", "a"] * arrays["c", "b", "a"]
    for c, b, a in itertools.product(*(range(len(STATES[v])) for v in "cba")):
        states = {"c": STATES["c"][c], "b": STATES["b"][b], "a": STATES["a"][a]}
        assert joint.at(states) == pytest.approx(expected[c, b, a])


def test_arrays_without_states_count_from_0():
    model = Model.from_cpds({"a": [0.5, 0.5], ("b", "a"): [[0.1, 0.6], [0.2, 0.3], [0.7, 0.1]]})
    assert [v.states for v in model.variables] == [None, None]
    assert model.sizes == (2, 3)
    assert solve(model, "mar").marginals["b"] == pytest.approx({0: 0.35, 1: 0.25, 2: 0.4})
    frames = Model.from_cpds({"a": pd.Series([0.5, 0.5]), ("b", "a"): pd.DataFrame([[0.1, 0.6], [0.9, 0.4]])})
    assert [v.states for v in frames.variables] == [None, None]


def test_a_mapping_says_the_order_of_states_to_arrays():
    model = Model.from_cpds({"a": {"no": 0.2, "yes": 0.8}, ("b", "a"): [[0.1, 0.6], [0.9, 0.4]]})
    assert model["a"].states == ("no", "yes")
    assert solve(model, "mar").marginals["b"][0] == pytest.approx(0.2 * 0.1 + 0.8 * 0.6)


def test_cross_tables_answer_as_the_data_do():
    rng = np.random.default_rng(5)
    rain = rng.choice(["no", "yes"], 400, p=[0.7, 0.3])
    hose = rng.choice(["off", "on", "broken"], 400)
    wet = np.where((rain == "yes") | (hose == "on"), "wet", np.where(rng.random(400) < 0.2, "damp", "dry"))
    days = pd.DataFrame({"rain": rain, "hose": hose, "wet": wet})
    model = Model.from_cpds(
        {
            "rain": days.rain.value_counts(normalize=True),
            ("hose", "rain"): pd.crosstab(days.rain, days.hose, normalize="index"),
            ("wet", "rain", "hose"): pd.crosstab(days.wet, [days.hose, days.rain], normalize="columns"),
        }
    )
    joint = JunctionTree(model).joint(["wet", "rain", "hose"])
    for states, share in days.value_counts(["wet", "rain", "hose"], normalize=True).items():
        assert joint.at(dict(zip(joint.names, states, strict=True))) == pytest.approx(share)


@pytest.mark.parametrize("kind", [np.array, pd.Index, pd.Categorical, pd.Series, tuple])
@pytest.mark.parametrize("labels", [["lo", "hi"], [3, 1], [True, False]])
def test_states_of_any_package(kind, labels):
    expected = tuple(labels)
    states = kind(labels)
    assert Variable("a", 2, states).states == expected
    assert Model.from_arrays({"a": states}, [(("a",), [1, 2])])["a"].states == expected
    model = Model.from_cpds({"a": [0.3, 0.7]}, states={"a": states})
    assert model["a"].states == expected
    assert all(type(state) in (str, int, bool) for state in model["a"].states)
    assert solve(model, "mar", evidence={"a": states[1]}).marginals["a"][expected[1]] == 1


WET = ("wet", "rain")
RAIN = {"no": 0.8, "yes": 0.2}
BY_LABEL = pd.DataFrame([[0.9, 0.2], [0.1, 0.8]], index=["dry", "wet"], columns=["no", "yes"])


@pytest.mark.parametrize(
    ("cpds", "states", "message"),
    [
        (
            {"rain": RAIN, ("wet", "rane"): [[1, 1]]},
            None,
            "given 'rane': the parent 'rane' has no distribution, .*'rain'",
        ),
        ({"rain": RAIN, ("rain", "rain"): [[1]]}, None, "names a variable twice"),
        ({"rain": RAIN, ("rain",): [1, 0]}, None, "are both distributions of 'rain': leave one out"),
        ({"a": [0.5, 0.6]}, None, "the distribution of 'a' sums to 1.1, not 1"),
        (
            {"rain": RAIN, WET: [[0.9, 0.1], [0.2, 0.8]]},
            None,
            r"sum to 1 along axis 1, that of 'rain', and not along ax",
        ),
        (
            {"rain": RAIN, WET: [[0.9, 0.2, 0.1]]},
            None,
            r"shape \(1, 3\), which does not fit .*: 'wet' has 1, 'rain' has 2",
        ),
        ({"rain": RAIN, WET: [[0.9, 0.2], [0.1]]}, None, "given 'rain': its rows have different lengths"),
        ({"rain": "0.2"}, None, "the distribution of 'rain': it is '0.2'; give numbers"),
        ({"rain": 1.0}, None, "the distribution of 'rain' is one number"),
        ({"rain": {"no": 0.8, "yes": "0.2"}}, None, r"'0.2' stands at \['yes'\]; give one mapping"),
        ({"rain": {}}, None, r"the distribution of 'rain': \{\} stands at ; give one mapping from states for each"),
        (
            {"rain": RAIN, WET: {"dry": 0.5, "wet": 0.5}},
            None,
            r"0.5 stands at \['dry'\]; give one mapping .* 'wet', 'rain'",
        ),
        ({"rain": {"no": {"a": 1}}}, None, r"stands at \['no'\]"),
        ({"rain": {("no", "a"): 1}}, None, r"1 stands at \['no'\]\['a'\]"),
        (
            {"rain": RAIN, WET: {"dry": {"no": 0.9, "yes": 0.3}, "wet": {"no": 0.1}}},
            None,
            "no cell for wet=wet, rain=yes",
        ),
        ({"rain": RAIN, WET: {"dry": {"no": 0.9}, "wet": {"no": 0.1}}}, None, "no cells for the states 'yes' of var"),
        (
            {"rain": RAIN, WET: BY_LABEL.rename(columns={"no": "none"})},
            None,
            "labels 'none' name no state of variable 'rain'",
        ),
        (
            {"rain": [0.8, 0.2], WET: BY_LABEL},
            None,
            r"of 'rain' has no labels, .* 'no', 'yes' of 'rain': .* states=\{'rain': ",
        ),
        ({"rain": pd.Series(RAIN), WET: [[0.9, 0.2], [0.1, 0.8]]}, None, "of 'wet' given 'rain' has no labels, while"),
        ({"rain": RAIN, WET: BY_LABEL.stack()}, {"wet": 3}, "no state of variable 'wet'"),
        (
            {"rain": RAIN, WET: BY_LABEL.rename_axis("rain")},
            None,
            "labels 'dry', 'wet' name no state of variable 'rain'",
        ),
        (
            {"rain": RAIN, WET: BY_LABEL.rename_axis("sun")},
            None,
            r"labels are named 'sun', and its scope is \(wet, rain\)",
        ),
        (
            {"rain": RAIN, WET: BY_LABEL["no"]},
            None,
            "given 'rain': the table has 1 level of row labels and 0 of column",
        ),
        (
            {"rain": pl.DataFrame({"p": [0.8, 0.2]})},
            None,
            "the distribution of 'rain': the numbers are a polars DataFrame",
        ),
        ({"rain": RAIN}, {"rainn": ["no", "yes"]}, "states names the variable 'rainn', .*'rain'"),
        ({"rain": RAIN}, {"rain": ["no", "no"]}, "has the state 'no' twice"),
        ({"rain": RAIN}, {"rain": ["no", "maybe"]}, "labels 'yes' name no state"),
        ({"a": {0.5: 1.0}}, None, "has the state 0.5, a float"),
        ({"a": [[0.5, 0.1]]}, None, r"the distribution of 'a': its array has the shape \(1, 2\)"),
        ({("a", "b"): np.full((2, 2), 0.5), ("b", "a"): np.full((2, 2), 0.5)}, None, "a cycle of parents"),
        ({"a": [0.5, np.nan]}, None, "NaN"),
        ({"a": [1.5, -0.5]}, None, "has the value -0.5 in a probability model"),
    ],
)
def test_distributions_that_do_not_fit(cpds, states, message):
    with pytest.raises(InputError, match=message):
        Model.from_cpds(cpds, states=states)


@pytest.mark.parametrize(
    ("cpds", "states", "message"),
    [
        ([("a", [0.5, 0.5])], None, "cpds is"),
        ({1: [0.5, 0.5]}, None, r"a key of cpds is 1 \(int\); it takes a name, or a tuple of names"),
        ({("a", 2): [0.5, 0.5]}, None, "a key of cpds is"),
        ({(): [0.5, 0.5]}, None, "a key of cpds is"),
        ({"a": [0.5, 0.5]}, ["x"], "states is"),
        ({"a": [0.5, 0.5]}, {"a": {"x", "y"}}, r"states\['a'\] is .*; it takes the states in a sequence"),
        ({"a": [0.5, 0.5]}, {"a": "xy"}, r"states\['a'\] is 'xy'"),
        ({"a": [0.5, 0.5]}, {"a": None}, r"states\['a'\] is None"),
    ],
)
def test_wrong_types(cpds, states, message):
    with pytest.raises((TypeError, InputError), match=message):
        Model.from_cpds(cpds, states=states)


def test_unchecked_rows_are_taken_as_they_are():
    model = Model.from_cpds({"a": [0.5, 0.5], ("b", "a"): [[1, 2], [3, 4]]}, check=False)
    assert model.factors[1].dense().tolist() == [[1, 3], [2, 4]]
    assert model.unnormalised == {1}
