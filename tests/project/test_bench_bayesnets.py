"""Numbers, evidence and batches that the benchmark of networks gives its peers, against joint sums by plain loops."""

from __future__ import annotations

import importlib
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import elimina
from elimina.model.table import Table

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def files(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("bayesnets_files")


@pytest.fixture
def export(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module("bayesnets_export")


def asia() -> elimina.Model:
    """Lauritzen and Spiegelhalter (1988); value 0 is 'yes'. Factors and their axes are in no particular order."""
    names = ["asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"]
    yes = np.array([1.0, 0.0])
    either = np.stack([np.stack([yes, yes]), np.stack([yes, 1 - yes])])
    tables = {
        1: ([0, 1], [[0.05, 0.95], [0.01, 0.99]]),
        0: ([0], [0.01, 0.99]),
        2: ([2], [0.5, 0.5]),
        5: ([1, 3, 5], either),
        3: ([3, 2], np.transpose([[0.1, 0.9], [0.01, 0.99]])),
        4: ([2, 4], [[0.6, 0.4], [0.3, 0.7]]),
        6: ([5, 6], [[0.98, 0.02], [0.05, 0.95]]),
        7: ([4, 7, 5], np.swapaxes([[[0.9, 0.1], [0.8, 0.2]], [[0.7, 0.3], [0.1, 0.9]]], 1, 2)),
    }
    variables = [elimina.Variable(name, 2, ["yes", "no"]) for name in names]
    factors = [Table(scope, values) for scope, values in tables.values()]
    return elimina.Model(variables, factors, sense="probability", children=list(tables))


def skewed() -> elimina.Model:
    """Other sizes on every axis, zeros, and the child's axis in the middle; rows sum to 1 within 1e-6."""
    rng = np.random.default_rng(5)
    first = rng.random((2, 3, 4)) * (rng.random((2, 3, 4)) < 0.7) + np.eye(3, 4)
    first /= first.sum(axis=1, keepdims=True) * (1 + 4e-7)
    variables = [elimina.Variable(name, size) for name, size in (("a", 2), ("b", 3), ("c", 4))]
    factors = [Table([0, 1, 2], first), Table([2, 0], np.full((4, 2), 0.5)), Table([2], [0.1, 0.0, 0.2, 0.7])]
    return elimina.Model(variables, factors, sense="probability", children=[1, 0, 2])


def by_loops(model, case):
    """Posteriors and the probability of the evidence from every joint assignment."""
    sums = [[0.0] * size for size in model.sizes]
    for values in itertools.product(*map(range, model.sizes)):
        if all(seen in (-1, x) for seen, x in zip(case, values, strict=True)):
            for v, x in enumerate(values):
                sums[v][x] += math.exp(model.score(values))
    total = math.fsum(sums[0])
    return [np.array(row) / total for row in sums], total


def test_textbook_posteriors_of_asia(files, export):
    """The prior marginals that are printed with the network."""
    network = export.network_of(asia(), "asia")
    found, total = files.joint_answer(network, np.full(8, -1, np.int16))
    expected = [0.01, 0.0104, 0.5, 0.055, 0.45, 0.064828, 0.11029, 0.4359706]
    assert [row[0] for row in found] == pytest.approx(expected, abs=5e-7)
    assert total == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("make", [asia, skewed])
def test_exported_numbers_and_evidence_are_the_models(files, export, make, tmp_path):
    model = make()
    network = export.network_of(model, "small")
    files.save(tmp_path / "small.npz", network)
    loaded = files.load(tmp_path / "small.npz")
    assert loaded[:3] == network[:3]
    assert all(np.array_equal(a, b) for a, b in zip(loaded.tables, network.tables, strict=True))
    again = export.model_of(loaded, model.variables)
    for case in files.draw_cases(loaded, 5).values:
        found, total = files.joint_answer(loaded, case)
        for other, tolerance in ((again, 1e-14), (model, 2e-6)):
            expected, probability = by_loops(other, case)
            assert total == pytest.approx(probability, rel=tolerance)
            assert np.concatenate(found) == pytest.approx(np.concatenate(expected), abs=tolerance)


def test_rows_are_normalised(export):
    network = export.network_of(skewed(), "skewed")
    assert network.parents == ((2,), (0, 2), ())
    assert [table.shape for table in network.tables] == [(4, 2), (2, 4, 3), (4,)]
    for table in network.tables:
        assert np.abs(table.sum(axis=-1) - 1).max() < 1e-15


def test_drawn_evidence(files, export):
    network = export.network_of(asia(), "asia")
    cases = files.draw_cases(network)
    assert cases.kinds.tolist() == ["none"] + ["ten", "half"] * 20
    observed = (cases.values != files.UNOBSERVED).sum(axis=1)
    assert [set(observed[cases.kinds == kind].tolist()) for kind in files.KINDS] == [{0}, {7}, {4}]
    assert len(np.unique(cases.values, axis=0)) > 30
    assert all(files.joint_answer(network, case)[1] > 0 for case in cases.values)
    assert np.array_equal(cases.values, files.draw_cases(network).values)


def test_frequencies_of_samples(files, export):
    network = export.network_of(skewed(), "skewed")
    count = 40_000
    drawn = files.sample(network, np.random.default_rng(3), count)
    found, _ = files.joint_answer(network, np.full(3, -1, np.int16))
    for column, expected in zip(drawn.T, found, strict=True):
        frequencies = np.bincount(column, minlength=len(expected)) / count
        assert np.abs(frequencies - expected).max() < 5 * math.sqrt(0.25 / count)
        assert (frequencies[expected == 0] == 0).all()


def test_timed_cases_keep_their_variables(files, export):
    network = export.network_of(asia(), "asia")
    none, ten = files.timed_cases(network)
    assert len(ten) == len(none) + 1
    assert all((case == files.UNOBSERVED).all() for case in none)
    assert len({tuple(case == files.UNOBSERVED) for case in ten}) == 1
    assert len({tuple(case) for case in ten}) > 1


def test_batch_is_possible_and_varied(files, export):
    network = export.network_of(asia(), "asia")
    batch = files.draw_batch(network, 50, observed=3)
    assert batch.shape == (50, 8)
    assert ((batch != files.UNOBSERVED).sum(axis=1) == 3).all()
    assert len({tuple(case == files.UNOBSERVED) for case in batch}) > 10
    assert all(files.joint_answer(network, case)[1] > 0 for case in batch)


def test_a_large_joint_is_left_out(files, export):
    network = export.network_of(asia(), "asia")
    assert files.joint_answer(network, np.full(8, -1, np.int16), most_cells=255) is None


def test_what_is_no_network_is_refused(export):
    model = elimina.Model.from_arrays([2], [([0], [0.5, 0.5])], sense="probability")
    with pytest.raises(elimina.InputError, match="chain is not a Bayesian network"):
        export.network_of(model, "chain")
    variables = [elimina.Variable("a", 2)]
    model = elimina.Model(variables, [Table([0], [0.5, 0.6])], sense="probability", children=[0], check=False)
    with pytest.raises(elimina.InputError, match=r"a row of 'a' in half sums to 1\.1"):
        export.network_of(model, "half")


@pytest.mark.data
def test_every_file_is_exported(files, export, data_dir):
    names = []
    for path in export.network_files(data_dir / "bayesnets"):
        if path.stat().st_size < 200_000:
            network = export.network_of(elimina.read(path), export.network_name(path))
            names.append(network.name)
            assert max(np.abs(table.sum(axis=-1) - 1).max() for table in network.tables) < 1e-14
    assert len(set(names)) == len(names) >= 10
