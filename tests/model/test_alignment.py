"""Tables of pandas as factors, likelihoods and costs: labels and names decide where a cell goes, never its position."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from elimina import Model, Table, solve
from elimina import cp as constraints
from elimina.adapters.potentials import LogPartition
from elimina.errors import InputError

pd = pytest.importorskip("pandas")

STATES = {"rain": ["yes", "no"], "wet": ["yes", "no"]}


@pytest.fixture
def days():
    return pd.DataFrame({"rain": ["yes", "no", "no", "yes", "no"] * 20, "wet": ["yes", "no", "no", "yes", "yes"] * 20})


def network(rain, wet, scope=("rain", "wet"), states=STATES):
    return Model.from_arrays(states, [(("rain",), rain), (scope, wet)], sense="probability")


def shares(rain, wet, **changes):
    marginals = solve(network(rain, wet, **changes), "mar").marginals
    return {name: {str(state): share for state, share in p.items()} for name, p in marginals.items()}


def test_cross_tables_answer_as_the_data_do(days):
    rain = days.rain.value_counts(normalize=True)
    by_row = pd.crosstab(days.rain, days.wet, normalize="index")
    by_column = pd.crosstab(days.wet, days.rain, normalize="columns")
    categories = days.astype("category")
    tables = {
        "rows": by_row,
        "columns": by_column,
        "transposed": by_row.T,
        "stacked": by_row.stack(),
        "unnamed": by_row.rename_axis(index=None, columns=None),
        "categories": pd.crosstab(categories.rain, categories.wet, normalize="index"),
        "grouped": days.groupby("rain").wet.value_counts(normalize=True).unstack(fill_value=0),
    }
    for form, wet in tables.items():
        found = shares(rain, wet)
        assert found["rain"]["yes"] == pytest.approx((days.rain == "yes").mean()), form
        assert found["wet"]["yes"] == pytest.approx((days.wet == "yes").mean()), form
    assert shares(rain, by_row, scope=("wet", "rain")) == shares(rain, by_row)


def test_each_order_of_rows_and_columns_is_one_table():
    values = np.arange(12.0).reshape(2, 2, 3)
    states = {"a": ["x", "y"], "b": [True, False], "c": 3}
    rows = pd.MultiIndex.from_product([["x", "y"], [True, False]], names=["a", "b"])
    frame = pd.DataFrame(values.reshape(4, 3), index=rows, columns=pd.RangeIndex(3, name="c"))
    for row_order in itertools.permutations(range(4)):
        for columns in itertools.permutations(range(3)):
            mixed = frame.iloc[list(row_order), list(columns)]
            for table in (mixed, mixed.T, mixed.stack(), mixed.unstack("a"), mixed.rename_axis(index=[None, None])):
                factor = Model.from_arrays(states, [(("a", "b", "c"), table)]).factors[0]
                np.testing.assert_array_equal(factor.values, values)


def test_integers_stay_integers():
    frame = pd.DataFrame([[1, 2**53 + 1], [3, 4]], index=["no", "yes"], columns=["no", "yes"])
    factor = Model.from_arrays(STATES, [(("rain", "wet"), frame)]).factors[0]
    assert factor.values.tolist() == [[4, 3], [2**53 + 1, 1]]


@pytest.mark.parametrize(
    ("states", "labels", "expected"),
    [
        ([0, 1], [1, 0], [2, 1]),
        ([1, 0], [0, 1], [2, 1]),
        ([True, False], [False, True], [2, 1]),
        (2, [1, 0], [2, 1]),
        (["no", "yes"], [0, 1], [1, 2]),
        ([5, 6], [0, 1], [1, 2]),
        ([0, 1], ["1", "0"], [2, 1]),
        ([True, False], ["False", "true"], [2, 1]),
        ([0, 1], [1.0, 0.0], [2, 1]),
        (["1", "2"], ["2", "1"], [2, 1]),
        (["0", "1"], [1, 0], [2, 1]),
        (["TRUE", "FALSE"], [False, True], [2, 1]),
    ],
)
def test_labels_name_states_or_are_positions(states, labels, expected):
    series = pd.Series([1, 2], index=labels)
    assert Model.from_arrays({"a": states}, [(("a",), series)]).factors[0].values.tolist() == expected
    model = Model.from_arrays({"a": states}, [(("a",), [1, 1])], sense="probability")
    posterior = solve(model, "mar", evidence={"a": series}).marginals["a"]
    np.testing.assert_allclose(list(posterior.values()), np.array(expected) / 3)


@pytest.mark.parametrize(
    ("states", "labels", "message"),
    [
        (["1", "0"], [0, 1], "labels 0, 1 may be indices of the states of variable 'a'"),
        (["yes", "no"], ["no", "maybe"], "labels 'maybe' name no state of variable 'a'; its states are 'yes', 'no'"),
        (["yes", "no"], [1, 0], "labels 1, 0 name no state"),
        (2, ["no", "yes"], "labels 'no', 'yes' name no state of variable 'a'; its states are 0, 1"),
        (2, [1, 2], "labels 2 name no state"),
        ([1, 2], [0, 1], "labels 0, 1 may be indices"),
        (["yes", "no"], ["yes", float("nan")], "labels nan name no state"),
        ([0, 1], ["1", 1], "labels '1', 1 stand for one state"),
    ],
)
def test_labels_that_are_no_states(states, labels, message):
    series = pd.Series([1.0, 2.0], index=labels)
    with pytest.raises(InputError, match=message):
        Model.from_arrays({"a": states}, [(("a",), series)])
    model = Model.from_arrays({"a": states}, [(("a",), [1, 1])], sense="probability")
    with pytest.raises(InputError, match=message):
        solve(model, "mar", evidence={"a": series})


def test_tables_that_lack_cells_or_repeat_them(days):
    rain, wet = days.rain.value_counts(normalize=True), pd.crosstab(days.rain, days.wet)
    with pytest.raises(
        InputError, match=r"factor 0 over \(rain\): .* no cells for the states 'yes' of variable 'rain'"
    ):
        network(rain.drop("yes"), wet)
    with pytest.raises(InputError, match="two cells for rain=no: give one"):
        network(rain, wet.loc[["no", "yes", "no"]])
    joint = days.value_counts(["rain", "wet"])
    with pytest.raises(InputError, match="no cell for rain=yes, wet=no: give one"):
        network(rain, joint)
    filled = joint.reindex(pd.MultiIndex.from_product(STATES.values(), names=list(STATES)), fill_value=0)
    np.testing.assert_array_equal(network(rain, filled).factors[1].values, [[40, 0], [20, 40]])


def test_names_that_contradict_the_scope(days):
    rain, wet = days.rain.value_counts(normalize=True), pd.crosstab(days.rain, days.wet)
    for names in ({"index": "sun"}, {"index": "wet", "columns": "wet"}):
        with pytest.raises(InputError, match=r"labels are named .*, and its scope is \(rain, wet\): name each level"):
            network(rain, wet.rename_axis(**names))
    assert shares(rain, wet.rename_axis(index=None)) == shares(rain, wet)
    with pytest.raises(InputError, match="1 level of row labels and 1 of column labels for a scope of 1"):
        network(wet, wet)


def test_a_table_without_a_model_has_no_states(days):
    wet = pd.crosstab(days.rain, days.wet)
    for values in (wet, wet.rename_axis(index=None, columns=None), wet.reset_index(drop=True)):
        with pytest.raises(InputError, match=r"labels .* no states to compare them with: Model.from_arrays aligns"):
            Table([0, 1], values)
    assert Table([0, 1], wet.to_numpy()).values.tolist() == wet.to_numpy().tolist()
    assert Table([0, 1], pd.DataFrame([[1, 2], [3, 4]])).values.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InputError, match="labels 1, 0"):
        Table([0], pd.Series([1, 2], index=[1, 0]))
    with pytest.raises(InputError, match="logarithms of table 0 have the labels 'a', 'b'"):
        LogPartition([2], [[0]])([pd.Series([0.1, 0.2], index=["a", "b"])])


def test_rows_in_a_list_and_frames_without_an_index(days):
    rain, wet = days.rain.value_counts(normalize=True), pd.crosstab(days.rain, days.wet)
    with pytest.raises(InputError, match="a list of Series objects, whose labels would be lost"):
        network(rain, [wet.loc["no"], wet.loc["yes"]])
    polars = pytest.importorskip("polars")
    with pytest.raises(InputError, match="a polars DataFrame, whose rows have no labels"):
        network(rain, polars.DataFrame({"yes": [0.5, 0.5], "no": [0.5, 0.5]}))
    assert network(polars.Series([0.25, 0.75]), np.ones((2, 2))).factors[0].values.tolist() == [0.25, 0.75]


def test_states_may_be_an_index_or_an_array():
    states = {"a": pd.Index(["x", "y"]), "b": np.array([3, 1])}
    model = Model.from_arrays(states, [(("a", "b"), pd.DataFrame(np.eye(2), index=["y", "x"], columns=[1, 3]))])
    assert [v.states for v in model.variables] == [("x", "y"), (3, 1)]
    assert model.factors[0].values.tolist() == [[1, 0], [0, 1]]


def test_labels_of_costs_are_values():
    costs = pd.DataFrame(
        [[5, 4], [3, 9], [8, 1]], index=pd.Index([4, 2, 7], name="x"), columns=pd.Index([1, 0], name="y")
    )

    def optimum(table):
        model = constraints.Model()
        x, y = model.int_var(0, 9, name="x"), model.int_var(0, 3, name="y")
        model.minimize(model.add_cost([x, y], table))
        solution = model.solve()
        return dict(solution.assignment), solution.value

    for table in (costs, costs.T, costs.stack(), costs.sort_index(), costs.rename_axis(index=None, columns=None)):
        assert optimum(table) == ({"x": 7, "y": 0}, 1)
    with pytest.raises(InputError, match="labels are named 'x', 'z', and the variables 'x', 'y'"):
        optimum(costs.rename_axis(columns="z"))
    with pytest.raises(InputError, match="two costs for one combination"):
        optimum(costs.loc[[4, 4]])
    with pytest.raises(InputError, match="a label of costs is a whole number"):
        optimum(costs.rename(index={4: "four"}))
    with pytest.raises(InputError, match="expected a table with one level of labels for each of 2 variables, found 1"):
        optimum(costs[1])


def test_children_by_name(days):
    model = Model.from_arrays(
        STATES,
        [
            (("rain",), days.rain.value_counts(normalize=True)),
            (("rain", "wet"), pd.crosstab(days.rain, days.wet, normalize="index")),
        ],
        sense="probability",
        children=["rain", "wet"],
    )
    assert model.children == (0, 1)
    with pytest.raises(InputError, match="children names the unknown variable 'sun'"):
        Model.from_arrays({"a": 2}, [(("a",), [0.5, 0.5])], sense="probability", children=["sun"])
    with pytest.raises(TypeError, match="children"):
        Model.from_arrays({"a": 2}, [(("a",), [0.5, 0.5])], sense="probability", children="a")


def test_tuples_of_a_sparse_table_have_numbers_as_labels():
    listed = pd.DataFrame({"a": [0, 1, 1], "b": [1, 0, 1], "cost": [3, 0, 5]})
    listed = listed[listed.cost > 0]
    table = Table([0, 1], listed.cost, sizes=[2, 2], rows=listed[["a", "b"]], default=0)
    assert table.dense().tolist() == [[0, 3], [0, 5]]
