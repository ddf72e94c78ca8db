"""Assignments, joint posteriors and predictions of rows, against enumeration of all assignments."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import elimina
from elimina import ImpossibleEvidenceError, InputError, JunctionTree, Model, Options
from tests.devices import on_devices
from tests.methods.test_batch import random_cases
from tests.packages import installed
from tests.random_models import models

CPDS = {"rain": [0.8, 0.2], ("wet", "rain"): [[0.9, 0.3], [0.1, 0.7]], ("late", "rain"): [[1.0, 0.5], [0.0, 0.5]]}
SEEDS = st.integers(0, 2**32)


def weighted(model, case):
    """Return a scale, and the product of all factors for each assignment that agrees with a case, divided by it.

    The scale is the natural logarithm of the largest product: products may leave the range of floats.
    """
    logs = {}
    for values in itertools.product(*map(range, model.sizes)):
        if all(cell in (-1, value) for cell, value in zip(case, values, strict=True)):
            cells = (float(factor.dense()[tuple(values[v] for v in factor.scope)]) for factor in model.factors)
            logs[values] = math.fsum(math.log(cell) if cell > 0 else -math.inf for cell in cells) + model.constant
    scale = max(logs.values(), default=-math.inf)
    return scale, {values: math.exp(log - scale) if log > -math.inf else 0.0 for values, log in logs.items()}


def log_sum(model, case):
    scale, weights = weighted(model, case)
    return scale + math.log(math.fsum(weights.values())) if scale > -math.inf else scale


def check_best(model, case, codes, log10_probability):
    """Check that an assignment agrees with a case and has the largest product, within rounding."""
    scale, weights = weighted(model, case)
    assert log10_probability * math.log(10) == pytest.approx(scale, rel=1e-9, abs=1e-9)
    assert (codes == -1).all() if scale == -math.inf else weights[tuple(codes.tolist())] == pytest.approx(1, rel=1e-9)


@on_devices
@settings(max_examples=80, deadline=None)
@given(model=models("probability", max_variables=5, max_cells=100), seed=SEEDS, count=st.integers(0, 12))
def test_most_probable_assignments(device, model, seed, count):
    assume(model.variables)
    cases = random_cases(model, np.random.default_rng(seed), count)
    best = JunctionTree(model, device=device).mpe_batch(cases, indices=True)
    assert best.indices.shape == cases.shape
    for case, codes, log in zip(cases, best.indices, best.log10_probability, strict=True):
        check_best(model, case, codes, log)


@on_devices
@settings(max_examples=80, deadline=None)
@given(model=models("probability", max_variables=5, max_cells=100), seed=SEEDS, count=st.integers(0, 12))
def test_most_probable_states_of_some_variables(device, model, seed, count):
    assume(model.variables)
    rng = np.random.default_rng(seed)
    cases = random_cases(model, rng, count)
    asked = rng.permutation(len(model.variables))[: int(rng.integers(1, 4))].tolist()
    best = JunctionTree(model, device=device).map_batch(cases, asked, indices=True)
    assert [v.name for v in best.variables] == [model.variables[v].name for v in asked]
    for case, codes, log in zip(cases, best.indices, best.log10_probability, strict=True):
        scale, weights = weighted(model, case)
        if scale == -math.inf:
            assert log == -math.inf
            assert (codes == -1).all()
            continue
        sums = dict.fromkeys(itertools.product(*(range(model.sizes[v]) for v in asked)), 0.0)
        for values, weight in weights.items():
            sums[tuple(values[v] for v in asked)] += weight
        assert sums[tuple(codes.tolist())] == pytest.approx(max(sums.values()), rel=1e-9)
        assert log * math.log(10) == pytest.approx(scale + math.log(max(sums.values())), rel=1e-9, abs=1e-9)


def test_variables_of_map_are_named():
    tree = JunctionTree(Model.from_cpds(CPDS))
    with pytest.raises(InputError, match="names is empty"):
        tree.map_batch({"wet": [1]}, [])
    with pytest.raises(InputError, match="'rain' twice"):
        tree.map_batch({"wet": [1]}, ["rain", "rain"])


@on_devices
@settings(max_examples=80, deadline=None)
@given(model=models("probability", max_variables=5, max_cells=100), seed=SEEDS, count=st.integers(0, 12))
def test_samples_agree_with_their_case(device, model, seed, count):
    assume(model.variables)
    cases = random_cases(model, np.random.default_rng(seed), count)
    drawn = JunctionTree(model, device=device).sample_batch(cases, seed, indices=True)
    for case, codes, log in zip(cases, drawn.indices, drawn.log10_probability, strict=True):
        assert log * math.log(10) == pytest.approx(log_sum(model, case), rel=1e-9, abs=1e-9)
        assert (codes == -1).all() if log == -math.inf else weighted(model, case)[1][tuple(codes.tolist())] > 0


@settings(max_examples=15, deadline=None)
@given(model=models("probability", max_variables=4, max_cells=60), seed=SEEDS)
def test_samples_have_the_frequencies_of_the_posterior(model, seed):
    assume(model.variables)
    case = random_cases(model, np.random.default_rng(seed), 1, 0.3)[0]
    _, weights = weighted(model, case)
    total = math.fsum(weights.values())
    assume(total > 0)
    count = 4000
    drawn = JunctionTree(model).sample_batch(np.tile(case, (count, 1)), seed, indices=True)
    counts: dict[tuple[int, ...], int] = {}
    for codes in map(tuple, drawn.indices.tolist()):
        counts[codes] = counts.get(codes, 0) + 1
    for values, weight in weights.items():
        share = weight / total
        deviation = math.sqrt(share * (1 - share) / count)
        assert abs(counts.get(values, 0) / count - share) <= 6 * deviation + 1e-9


@on_devices
@settings(max_examples=60, deadline=None)
@given(
    model=models("probability", max_variables=5, max_cells=100),
    seed=SEEDS,
    count=st.integers(0, 10),
    sizes=st.lists(st.integers(0, 3), min_size=1, max_size=3),
)
def test_joint_posteriors(device, model, seed, count, sizes):
    assume(model.variables)
    rng = np.random.default_rng(seed)
    cases = random_cases(model, rng, count)
    scopes = [rng.permutation(len(model.variables))[:size].tolist() for size in sizes]
    posteriors = JunctionTree(model, device=device).batch(cases, joints=scopes, indices=True)
    alone = JunctionTree(model, device=device).batch(cases, indices=True)
    for name, table in posteriors.marginals.items():
        np.testing.assert_allclose(table, alone.marginals[name], atol=1e-12)
    for scope in scopes:
        found = posteriors.joints[tuple(model.variables[v].name for v in scope)]
        assert found.shape == (count, *(model.sizes[v] for v in scope))
        for case, table in zip(cases, found, strict=True):
            expected = np.zeros(table.shape)
            _, weights = weighted(model, case)
            total = math.fsum(weights.values())
            for values, weight in weights.items():
                expected[tuple(values[v] for v in scope)] += weight / total if total > 0 else 0
            np.testing.assert_allclose(table, expected, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(models("probability", max_variables=5, max_cells=100), SEEDS)
def test_evidence_of_the_tree_holds_in_each_row(model, seed):
    assume(model.variables)
    rng = np.random.default_rng(seed)
    cases = random_cases(model, rng, 8)
    v = int(rng.integers(len(model.variables)))
    value = int(rng.integers(model.sizes[v]))
    tree = JunctionTree(model)
    try:
        tree.set_evidence({v: elimina.StateIndex(value)})
    except ImpossibleEvidenceError:
        assume(False)
    best = tree.mpe_batch(cases, indices=True)
    for case, codes, log in zip(cases, best.indices, best.log10_probability, strict=True):
        if case[v] in (-1, value):
            check_best(model, [value if u == v else cell for u, cell in enumerate(case)], codes, log)
        else:
            assert log == -math.inf
            assert (codes == -1).all()


@settings(max_examples=60, deadline=None)
@given(models("probability", max_variables=5, max_cells=100), SEEDS)
def test_predictions_leave_out_their_own_column(model, seed):
    assume(model.variables)
    rng = np.random.default_rng(seed)
    cases = random_cases(model, rng, 8)
    v = int(rng.integers(len(model.variables)))
    tree = JunctionTree(model)
    shares = tree.predict_proba(cases, v, indices=True)
    for case, row in zip(cases, shares, strict=True):
        expected = np.zeros(model.sizes[v])
        others = [-1 if u == v else cell for u, cell in enumerate(case)]
        for values, weight in weighted(model, others)[1].items():
            expected[values[v]] += weight
        total = expected.sum()
        assert row == pytest.approx(expected / total if total > 0 else expected, abs=1e-9)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(tree.predict_log_proba(cases, v, indices=True), np.log(shares))
    possible = shares.sum(axis=1) > 0
    states = tree.predict(cases[possible], v, indices=True)
    indices = [model.variables[v].all_states.index(state) for state in states.tolist()]
    chosen = shares[possible][np.arange(len(indices)), indices]
    np.testing.assert_allclose(chosen, shares[possible].max(axis=1))


@settings(max_examples=60, deadline=None)
@given(models("probability", max_variables=5, max_cells=100), SEEDS)
def test_log_likelihoods(model, seed):
    assume(model.variables)
    cases = random_cases(model, np.random.default_rng(seed), 6)
    logs = JunctionTree(model).log_likelihoods(cases, indices=True)
    for case, log in zip(cases, logs, strict=True):
        assert log == pytest.approx(log_sum(model, case), rel=1e-9, abs=1e-9)


@pytest.fixture
def tree():
    return JunctionTree(Model.from_cpds(CPDS, states={"late": ["no", "yes"]}))


def test_frames_are_filled(tree):
    """Observed cells and other columns stay; missing cells and columns are added."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"wet": [1, None, 0], "late": ["no", "yes", None], "id": [7, 8, 9]}, index=[4, 5, 6])
    filled = tree.fill(frame, ignore_extra=True)
    assert filled["wet"].tolist() == [1, 1, 0]
    assert filled["late"].tolist() == ["no", "yes", "no"]
    assert filled["rain"].tolist() == [0, 1, 0]
    assert filled["id"].tolist() == [7, 8, 9]
    assert filled.index.tolist() == [4, 5, 6]
    assert frame["late"].isna().tolist() == [False, False, True]


def test_frames_of_other_libraries_are_filled(tree):
    columns = {"wet": [1, None, 0], "late": ["no", "yes", None]}
    expected = {"wet": [1, 1, 0], "late": ["no", "yes", "no"], "rain": [0, 1, 0]}
    assert {name: list(cells) for name, cells in tree.fill(columns).items()} == expected
    polars = pytest.importorskip("polars")
    assert tree.fill(polars.DataFrame(columns)).to_dict(as_series=False) == expected
    pyarrow = pytest.importorskip("pyarrow")
    assert tree.fill(pyarrow.table(columns)).to_pydict() == expected


READ_CELLS = [
    # States, cells as a reader of files gives them, the filled column.
    (["FALSE", "TRUE"], [True, None, False], [True, True, False]),
    (["FALSE", "TRUE"], [False, None, False], [False, True, False]),
    (["0", "1"], [1.0, None, 0.0], [1.0, 1.0, 0.0]),
    (["0", "1"], [0.0, None, 0.0], [0.0, 1.0, 0.0]),
    ([False, True], ["False", None, "False"], ["False", "True", "False"]),
    (["a", "b"], ["a", None, "a"], ["a", "b", "a"]),
]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "dict"])
@pytest.mark.parametrize(("states", "cells", "expected"), READ_CELLS)
def test_filled_cells_look_like_those_of_their_column(library, states, cells, expected):
    tree = JunctionTree(Model.from_cpds({"x": [0.4, 0.6]}, states={"x": states}))
    columns = {"x": cells}
    if library == "dict":
        filled = tree.fill(columns)["x"]
    else:
        module = pytest.importorskip(library)
        frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
        column = tree.fill(frame)["x"]
        filled = column.to_pylist() if library == "pyarrow" else list(column)
    assert filled == expected
    assert [type(cell) for cell in filled] == [type(cell) for cell in expected]


def test_categories_are_filled():
    pandas = pytest.importorskip("pandas")
    tree = JunctionTree(Model.from_cpds({"x": [0.4, 0.6]}, states={"x": ["a", "b"]}))
    for categories in (["a", "b"], ["a"]):
        frame = pandas.DataFrame({"x": pandas.Categorical(["a", None], categories=categories)})
        filled = tree.fill(frame)["x"]
        assert filled.tolist() == ["a", "b"]
        assert filled.cat.categories.tolist() == ["a", "b"]
        assert frame["x"].isna().tolist() == [False, True]
    polars = pytest.importorskip("polars")
    series = tree.fill(polars.DataFrame({"x": polars.Series(["a", None], dtype=polars.Enum(["a", "b"]))}))["x"]
    assert series.to_list() == ["a", "b"]
    assert series.dtype == polars.Enum(["a", "b"])
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"x": pyarrow.array(["a", None]).dictionary_encode()})
    assert tree.fill(table)["x"].to_pylist() == ["a", "b"]


def test_samples_are_the_same_in_any_chunks(tree):
    rows = {"wet": [0, 1, None] * 50}
    whole = tree.sample_batch(rows, seed=3).indices
    small = JunctionTree(tree.model, options=Options(memory="4096B", threads=1))
    np.testing.assert_array_equal(small.sample_batch(rows, seed=3).indices, whole)
    assert (tree.sample_batch(rows, seed=4).indices != whole).any()


def test_an_impossible_row_is_named(tree):
    rows = {"rain": [0, 0], "late": ["no", "yes"]}
    with pytest.raises(ImpossibleEvidenceError, match="row 1 has probability 0"):
        tree.fill(rows)
    with pytest.raises(ImpossibleEvidenceError, match="row 1: the case has probability 0"):
        tree.predict(rows, "wet")
    best = tree.mpe_batch(rows)
    assert best.states["wet"].tolist() == [0, None]
    assert "1 of them impossible" in repr(best)


def test_a_seed_repeats_samples(tree):
    rows = {"wet": [0, 1] * 50}
    first, again, other = (tree.sample_batch(rows, seed).indices.tolist() for seed in (3, 3, 4))
    assert first == again != other


def test_assignments_become_frames_and_text(tree):
    pandas = pytest.importorskip("pandas")
    best = tree.mpe_batch(pandas.DataFrame({"wet": [1, 0]}, index=["a", "b"]))
    assert best.to_frame().index.tolist() == ["a", "b"]
    assert best.to_frame()["wet"].tolist() == [1, 0]
    lines = "".join(best.csv_chunks()).splitlines()
    assert lines[0] == "rain,wet,late,log10_probability"
    assert lines[1].startswith("0,1,no,")
    assert float(lines[2].rpartition(",")[2]) == pytest.approx(math.log10(0.8 * 0.9))


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda tree: tree.mpe_batch({"snow": [1]}), "no variable 'snow'"),
        (lambda tree: tree.mpe_batch({"wet": [3]}), "no state 3"),
        (lambda tree: tree.sample_batch({"wet": [1]}, -1), "seed is -1"),
        (lambda tree: tree.predict({"wet": [1]}, "snow"), "no variable 'snow'"),
        (lambda tree: tree.batch({"wet": [1]}, joints=[["wet", "snow"]]), "no variable 'snow'"),
        (lambda tree: tree.batch({"wet": [1]}, joints=[["wet", "wet"]]), "joints names 'wet' twice"),
    ],
)
def test_errors_name_the_culprit(tree, call, problem):
    with pytest.raises(InputError, match=problem):
        call(tree)


def test_assignments_take_the_memory_that_a_batch_keeps():
    """Both fit into the limit alone, and not together."""
    names = [f"v{i}" for i in range(6)]
    leaf = np.random.default_rng(0).dirichlet([1, 1, 1], [3] * 6)
    model = Model.from_cpds({("leaf", *names): np.moveaxis(leaf, -1, 0), **{name: [0.2, 0.3, 0.5] for name in names}})
    rows = {"leaf": [0, 1, 2] * 4}
    for memory, is_kept in (("400KiB", False), ("1GiB", True)):
        tree = JunctionTree(model, device="cpu", memory=memory)
        first = tree.batch(rows).marginals["v0"]
        assert tree.mpe_batch(rows).log10_probability[0] == pytest.approx(
            tree.mpe_batch({"leaf": [0]}).log10_probability
        )
        assert any(tree._batch._propagators) == is_kept
        np.testing.assert_array_equal(tree.batch(rows).marginals["v0"], first)


@pytest.mark.parametrize("seed", range(1, 5))
def test_rows_are_answered_as_pyagrum_answers_each(seed):
    gum = installed("pyagrum")
    pytest.importorskip("pandas")
    gum.initRandom(seed)
    network = gum.fastBN("a[2]->b[3]->d[2];a->c[2]->d;c->e[4];b->f[2]")
    frame = elimina.sample(network, 12, seed=seed).to_frame()
    frame = frame.mask(np.random.default_rng(seed).random(frame.shape) < 0.5)
    tree, single, pair = JunctionTree(network), gum.LazyPropagation(network), gum.LazyPropagation(network)
    shares = tree.predict_proba(frame.drop(columns="a"), "a")
    joint = tree.batch(frame, joints=[["b", "c"]]).joints["b", "c"]
    pair.addJointTarget({"b", "c"})
    for number, row in enumerate(frame.to_dict("records")):
        observed = {name: int(cell) for name, cell in row.items() if cell == cell}
        if observed.keys().isdisjoint(("b", "c")):
            pair.setEvidence(observed)
            expected = pair.jointPosterior({"b", "c"})
            table = [[expected[{"b": b, "c": c}] for c in range(2)] for b in range(3)]
            np.testing.assert_allclose(joint[number], table, atol=1e-12)
        single.setEvidence({name: code for name, code in observed.items() if name != "a"})
        np.testing.assert_allclose(shares[number], single.posterior("a").toarray(), atol=1e-12)
