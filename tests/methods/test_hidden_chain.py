"""Expected counts of a hidden Markov chain, from the core and from batches of sequences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from elimina import DynamicModel
from elimina._core import Chain
from elimina.methods import hidden_chain
from elimina.methods.hidden_chain import HiddenChain
from elimina.methods.observed_sequences import RunLimits, read_sequences


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("states", [1, 2, 7, 8, 9, 33])
def test_expected_moves_are_those_of_matrix_products(states: int, threads: int) -> None:
    rng = np.random.default_rng(states)
    lengths = [1, 5, 0, 2, 6, 1, 9]
    starts = np.append(0, np.cumsum(lengths))
    transition = rng.dirichlet(np.ones(states), states)
    filtered, smoothed = rng.dirichlet(np.ones(states), (2, starts[-1]))
    smoothed[3, 0] = 0.0
    expected = np.zeros_like(transition)
    for first, end in itertools.pairwise(starts):
        for t in range(first + 1, end):
            expected += transition * np.outer(filtered[t - 1], smoothed[t] / (filtered[t - 1] @ transition))
    moves, lost = np.empty_like(transition), np.zeros(len(filtered), dtype=np.uint8)
    Chain(transition).count_moves(starts, filtered, smoothed, moves, lost, threads)
    np.testing.assert_allclose(moves, expected, rtol=1e-12)
    assert not lost.any()


def test_a_step_with_too_small_a_prediction_is_not_counted() -> None:
    transition = np.array([[1.0, 1e-295], [0.0, 1.0]])
    filtered, smoothed = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.5]]), np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    moves, lost = np.empty((2, 2)), np.zeros(3, dtype=np.uint8)
    Chain(transition).count_moves(np.array([0, 3]), filtered, smoothed, moves, lost, 1)
    assert lost.tolist() == [0, 1, 1]
    assert not moves.any()


@pytest.mark.parametrize("cells", [1, 8, 50])
def test_counts_do_not_depend_on_batches(cells: int, monkeypatch) -> None:
    rng = np.random.default_rng(cells)
    model = DynamicModel.hidden_markov(*(rng.dirichlet(np.ones(n), k) for n, k in ((3, None), (3, 3), (4, 3))))
    lengths = [4, 1, 0, 7, 2]
    sequences = read_sequences(model.initial, 1, rng.integers(4, size=sum(lengths)), lengths)
    whole = HiddenChain(model).family_counts(sequences, RunLimits(1 << 30, 1))
    monkeypatch.setattr(hidden_chain, "_BATCH_CELLS", cells)
    parts = HiddenChain(model).family_counts(sequences, RunLimits(1 << 30, 1))
    for ours, theirs in zip(parts.initial + parts.later, whole.initial + whole.later, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    np.testing.assert_allclose(parts.log_totals, whole.log_totals, rtol=1e-12)
