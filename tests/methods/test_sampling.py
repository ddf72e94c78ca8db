"""Exact samples against the exact joint distribution, and the best assignment of an engine."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from elimina import ImpossibleEvidenceError, InputError, JunctionTree, MemoryLimitError, Model
from tests.devices import on_devices
from tests.methods.test_batch import chain
from tests.methods.test_junction_tree import joint, random_evidence, random_model
from tests.methods.test_marginals import naive_bayes
from tests.random_models import models


@on_devices
@pytest.mark.parametrize("seed", range(12))
def test_frequencies(device, seed):
    """Chi-square of all joint values; a right sampler exceeds the bound once in some 10^6 seeds."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, zeros=0.2)
    evidence, weights = random_evidence(rng, model)
    expected = joint(model, weights)
    engine = JunctionTree(model, device=device)
    engine.set_evidence(evidence)
    if expected.sum() == 0:
        with pytest.raises(ImpossibleEvidenceError):
            engine.sample(5)
        return
    count = 40000
    samples = engine.sample(count, seed, indices=True)
    assert samples.shape == (count, len(model.variables))
    assert samples.dtype == np.int32
    found = np.zeros(model.sizes)
    np.add.at(found, tuple(samples.T), 1)
    assert (found[expected == 0] == 0).all()
    expected = expected / expected.sum() * count
    often = expected >= 5
    pairs = [(found[often], expected[often]), (found[~often].sum(), expected[~often].sum())]
    terms = [((f - e) ** 2 / np.maximum(e, 5)).sum() for f, e in pairs]
    freedom = int(often.sum())
    assert sum(terms) < freedom + 5 * math.sqrt(2 * max(freedom, 1)) + 12


def test_seeds_names_and_blocks():
    rng = np.random.default_rng(3)
    model = Model.from_arrays(
        [3, 4, 2], [((0, 1), rng.random((3, 4))), ((1, 2), rng.random((4, 2)))], sense="probability"
    )
    engine = JunctionTree(model, device="cpu")
    samples = engine.sample(1000, 7, indices=True)
    assert (engine.sample(1000, 7, indices=True) == samples).all()
    assert (engine.sample(1000, 8, indices=True) != samples).any()
    assert (engine.sample(1000, 7, ["x2", 0], indices=True) == samples[:, [2, 0]]).all()
    assert engine.sample(0, indices=True).shape == (0, 3)
    many = engine.sample(600_000, 7, indices=True)  # in several blocks
    for block in np.split(many, 6):
        for variable, posterior in enumerate(engine.marginals().values()):
            shares = np.bincount(block[:, variable], minlength=len(posterior)) / len(block)
            assert shares == pytest.approx(posterior, abs=0.01)


def test_everything_observed():
    engine = JunctionTree(chain(3, 0.1), device="cpu")
    engine.set_evidence({v: v % 2 for v in range(6)})
    assert (engine.sample(50, indices=True) == [0, 1, 0, 1, 0, 1]).all()


def test_evidence_far_below_the_range_of_floats():
    engine = JunctionTree(chain(20, 1e-40, 1e-80), device="cpu")
    engine.set_evidence({20 + v: v % 2 for v in range(20)})
    samples = engine.sample(100, indices=True)
    assert (samples[:, 20:] == np.arange(20) % 2).all()
    assert (samples[:, :20] == samples[:, :1]).all()
    assert 30 < samples[:, 0].sum() < 70


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [((-1,), "count is -1; it must be at least 0"), ((1, -2), "seed is -2"), ((1, 0, ["z"]), "no variable 'z'")],
)
def test_what_is_refused(arguments, problem):
    with pytest.raises(InputError, match=problem):
        JunctionTree(chain(2, 0.1), device="cpu").sample(*arguments)


def test_messages_that_are_not_kept():
    model = naive_bayes(28, 4)
    kept = JunctionTree(model, device="cpu")
    engine = JunctionTree(model, device="cpu", memory=f"{kept.plan.peak_bytes - 1}B")
    assert not engine.plan.keep
    for value in (1, 0):
        kept.update({8: value})
        engine.update({8: value})
        assert engine.log10_evidence == pytest.approx(kept.log10_evidence)
        assert engine.marginals(["v0"])["v0"] == pytest.approx(kept.marginals(["v0"])["v0"])
    with pytest.raises(MemoryLimitError, match="give more memory"):
        engine.sample(1)


@settings(max_examples=80, deadline=None)
@given(models("probability", max_variables=5, max_cells=200), st.integers(0, 2**32))
def test_mpe(model, seed):
    assume(model.variables)
    evidence, weights = random_evidence(np.random.default_rng(seed), model)
    engine = JunctionTree(model, device="cpu")
    engine.set_evidence(evidence)
    with np.errstate(divide="ignore"):
        terms = [np.log(factor.dense()) for factor in model.factors]
        extra = {v: np.log(w) for v, w in weights.items()}
    scores = {}
    for assignment in np.ndindex(*model.sizes):
        found = [term[tuple(assignment[v] for v in f.scope)] for term, f in zip(terms, model.factors, strict=True)]
        scores[assignment] = model.constant + sum(found) + sum(w[assignment[v]] for v, w in extra.items())
    best = max(scores.values())
    if best == -math.inf:
        with pytest.raises(ImpossibleEvidenceError):
            engine.mpe()
        return
    assignment, score = engine.mpe()
    assert score == pytest.approx(best, rel=1e-12, abs=1e-9)
    assert scores[tuple(int(x) for x in assignment.values())] == pytest.approx(best, rel=1e-12, abs=1e-9)


def test_each_call_draws_other_samples():
    engine = JunctionTree(chain(30, 0.5), device="cpu")
    assert (engine.sample(50, indices=True) != engine.sample(50, indices=True)).any()
    assert (engine.sample(50, seed=0, indices=True) == engine.sample(50, seed=0, indices=True)).all()
