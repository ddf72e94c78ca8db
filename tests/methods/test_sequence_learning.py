"""Parameters of dynamic models from sequences: against sums over all assignments, hmmlearn, and unrolled networks."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import elimina
from elimina import DynamicModel, Fit, ImpossibleEvidenceError, InputError, MemoryLimitError
from elimina.methods.sequence_learning import SequenceMaximisation, SequenceQuestion, slice_families
from elimina.planning.option_checks import check_options
from tests import calls
from tests.methods.test_dynamic_model import (
    UMBRELLA,
    products,
    random_model,
    random_observations,
    unrolled_evidence,
)


def random_sequences(model, seed):
    """Return columns of up to three sequences, and their lengths."""
    random = np.random.default_rng([seed, 3])
    lengths = random.integers(1, 4, size=random.integers(1, 4)).tolist()
    return random_observations(model, seed, sum(lengths)), lengths


def summed_counts(model, columns, lengths):
    """Return the expected counts of the families of the first slice and of later ones, and the log-likelihood."""
    size = len(model.variables)
    counts = [np.zeros(factor.sizes) for factor in (*model.initial.factors, *model.transition.factors)]
    log_likelihood, first = 0.0, 0
    for length in lengths:
        network = model.unroll(length)
        evidence = {}
        for name, state in unrolled_evidence(columns, first, first + length).items():
            variable, t = name[:-1].rsplit("[", 1)
            evidence[f"{variable}[{int(t) - first}]"] = state
        cells = products(network, evidence)
        total = cells.sum()
        if not total:
            return None
        log_likelihood += math.log(total)
        for n, factor in enumerate(network.factors):
            summed = cells.sum(axis=tuple(v for v in range(cells.ndim) if v not in factor.scope))
            order = np.argsort(np.argsort(factor.scope))
            counts[n if n < size else size + n % size] += summed.transpose(order) / total
        first += length
    return counts, log_likelihood


def tables_of(model):
    return [factor.dense() for factor in (*model.initial.factors, *model.transition.factors)]


def step_of(model, counts, prior):
    """Return the tables after a step from expected counts."""
    size, families = len(model.variables), slice_families(model)
    new = []
    for n, (table, factor) in enumerate(zip(tables_of(model), families.model.factors, strict=True)):
        same = [m for m in range(2 * size) if families.leaders[m] == families.leaders[n]]
        total = sum(counts[m] for m in same) + prior
        axis = factor.scope.index(n)
        sums = total.sum(axis=axis, keepdims=True)
        new.append(np.where(sums > 0, total / np.where(sums > 0, sums, 1), table))
    return new


@pytest.mark.parametrize("is_chain", [True, False])
@given(seed=st.integers(0, 2**32), prior=st.sampled_from([0, 0.5]))
@example(seed=999999, prior=0)  # a sequence without missing cells is impossible
def test_one_iteration_equals_sums_over_all_assignments(is_chain, seed, prior):
    model = random_model(seed, is_chain=is_chain)
    columns, lengths = random_sequences(model, seed)
    expected = summed_counts(model, columns, lengths)
    arguments = {"lengths": lengths, "prior": prior, "start": "model", "max_iterations": 1, "tolerance": 0}
    is_whole = len(columns) == len(model.variables) and all(None not in column for column in columns.values())
    if is_whole:
        return
    if expected is None:
        with pytest.raises(ImpossibleEvidenceError, match="has probability 0 under the starting tables"):
            calls.with_options(elimina.fit, model, columns, kind=elimina.FitOptions, **arguments)
        return
    counts, log_likelihood = expected
    fit = calls.with_options(elimina.fit, model, columns, kind=elimina.FitOptions, **arguments)
    assert fit.log_likelihoods[0] == pytest.approx(log_likelihood, abs=1e-9)
    for table, new in zip(tables_of(fit.model), step_of(model, counts, prior), strict=True):
        np.testing.assert_allclose(table, new, rtol=0, atol=1e-9)
    assert fit.log_likelihood == pytest.approx(np.sum(fit.model.log_likelihood(columns, lengths=lengths)), abs=1e-9)


@given(seed=st.integers(0, 2**32))
def test_no_iteration_is_worse(seed):
    model = random_model(seed, is_chain=bool(seed % 2))
    columns, lengths = random_sequences(model, seed)
    fit = elimina.fit(
        model, columns, prior=0, lengths=lengths, options=elimina.FitOptions(max_iterations=8, tolerance=0)
    )
    assert all(after >= before - 1e-9 for before, after in itertools.pairwise(fit.log_likelihoods))


@given(seed=st.integers(0, 2**32), length=st.integers(1, 5), count=st.integers(1, 4))
def test_equals_the_fit_of_the_unrolled_network(seed, length, count):
    model = random_model(seed, is_chain=bool(seed % 2))
    columns = random_observations(model, seed, length * count)
    if len(columns) == len(model.variables):
        del columns[model.variables[0].name]
    if not columns:
        return
    network, families = model.unroll(length), slice_families(model)
    shared = {n: families.leaders[len(model.variables) + n] == n for n in range(len(model.variables))}
    tied = [[f"{v.name}[{t}]" for t in range(0 if shared[n] else 1, length)] for n, v in enumerate(model.variables)]
    wide = {
        f"{name}[{t}]": [column[s * length + t] for s in range(count)]
        for name, column in columns.items()
        for t in range(length)
    }
    options = elimina.FitOptions(start="model", max_iterations=4, tolerance=0)
    try:
        expected = elimina.fit(network, wide, prior=0, tied=[group for group in tied if group], options=options)
    except ImpossibleEvidenceError:
        with pytest.raises(ImpossibleEvidenceError):
            elimina.fit(model, columns, prior=0, lengths=[length] * count, options=options)
        return
    fit = elimina.fit(model, columns, prior=0, lengths=[length] * count, options=options)
    # Rounding decides in which iteration nothing improves.
    pairs = zip(fit.log_likelihoods, expected.log_likelihoods, strict=False)
    assert all(own == pytest.approx(other, abs=1e-7) for own, other in pairs)
    for factor, other in zip(fit.model.unroll(length).factors, expected.model.factors, strict=True):
        np.testing.assert_allclose(factor.dense(), other.dense(), rtol=0, atol=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_iterations_are_those_of_hmmlearn(seed):
    hmm = pytest.importorskip("hmmlearn.hmm")
    random = np.random.default_rng(seed)
    states, symbols = int(random.integers(2, 6)), int(random.integers(2, 6))
    start, transition = random.dirichlet(np.ones(states)), random.dirichlet(np.ones(states), states)
    emission = random.dirichlet(np.ones(symbols), states)
    lengths = random.integers(1, 60, size=8).tolist()
    observed = random.integers(0, symbols, sum(lengths))
    peer = hmm.CategoricalHMM(states, init_params="", n_iter=8, tol=-np.inf, n_features=symbols)
    peer.startprob_, peer.transmat_, peer.emissionprob_ = start.copy(), transition.copy(), emission.copy()
    peer.fit(observed[:, None], lengths)
    model = DynamicModel.hidden_markov(start, transition, emission)
    options = elimina.FitOptions(start="model", max_iterations=8, tolerance=0)
    fit = elimina.fit(model, observed, prior=0, lengths=lengths, options=options)
    assert fit.log_likelihoods[:8] == pytest.approx(list(peer.monitor_.history), rel=1e-12)
    found = tables_of(fit.model)
    np.testing.assert_allclose(found[0], peer.startprob_, atol=1e-10)
    np.testing.assert_allclose(found[2], peer.transmat_, atol=1e-10)
    np.testing.assert_allclose(found[1], peer.emissionprob_, atol=1e-10)
    np.testing.assert_allclose(found[3], found[1])


def test_complete_sequences_are_counted():
    model = UMBRELLA
    data = {"rain": ["no", "yes", "yes", "no", "no"], "umbrella": ["no", "yes", "no", "no", "yes"]}
    fit = elimina.fit(model, data, lengths=[3, 2], prior=0)
    assert (fit.iterations, fit.converged, fit.rows) == (0, True, 5)
    assert tables_of(fit.model)[0].tolist() == [1, 0]
    # Moves: no-yes, yes-yes, no-no; the umbrella is counted in all slices.
    assert tables_of(fit.model)[2].tolist() == [[0.5, 0.5], [0, 1]]
    assert tables_of(fit.model)[1] == pytest.approx(np.array([[2 / 3, 1 / 3], [1 / 2, 1 / 2]]))
    assert isinstance(fit.model, DynamicModel)
    assert isinstance(fit, Fit)
    assert "rows:               5" in repr(fit)


def test_certain_likelihoods_are_states():
    observed = [0, 1, 1, 0, 1]
    with np.errstate(divide="ignore"):
        logs = np.log(np.eye(2)[observed])
    model = DynamicModel.hidden_markov([0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], [[0.9, 0.1], [0.2, 0.8]])
    options = elimina.FitOptions(start="model", max_iterations=3, tolerance=0)
    by_states = elimina.fit(model, {"observation": observed}, prior=0, options=options)
    by_logs = elimina.fit(model, {"observation": logs}, prior=0, options=options)
    assert by_logs.log_likelihoods == pytest.approx(by_states.log_likelihoods)
    soft = np.log([[0.3, 0.9], [0.5, 0.2]])
    fit = elimina.fit(model, {"observation": soft}, prior=0, options=replace(options, max_iterations=1))
    _, emission, moves, _ = tables_of(model)
    cells = np.einsum("a,ac,ab,bd,c,d->abcd", [0.6, 0.4], emission, moves, emission, *np.exp(soft))
    cells /= cells.sum()
    symbols = cells.sum(axis=(1, 3)) + cells.sum(axis=(0, 2))
    assert tables_of(fit.model)[0] == pytest.approx(cells.sum(axis=(1, 2, 3)))
    assert tables_of(fit.model)[1] == pytest.approx(symbols / symbols.sum(axis=1, keepdims=True))


def test_small_numbers_are_not_lost():
    """The move that a symbol proves has a probability below the least float64 of full precision."""
    tiny = 1e-300
    model = DynamicModel.hidden_markov([1, 0, 0], [[1 - tiny, tiny, 0], [0, 1, 0], [0, 0, 1]], [[1, 0], [0, 1], [0, 1]])
    options = elimina.FitOptions(start="model", max_iterations=1)
    fit = elimina.fit(model, [0, 1, 1], prior=0, options=options)
    assert tables_of(fit.model)[2] == pytest.approx(np.array([[0, 1, 0], [0, 1, 0], [0, 0, 1]]))
    assert fit.log_likelihoods[0] == pytest.approx(math.log(tiny))


def test_several_variables_of_the_interface():
    """Counts of a chain whose states are pairs are those of the unrolled network."""
    model = random_model(7, is_chain=True)
    assert len(model.interface) > 1
    columns, lengths = random_sequences(model, 5)
    counts, _ = summed_counts(model, columns, lengths)
    sequences = model.sequences_of(columns, lengths)
    families = slice_families(model)
    question = SequenceQuestion(model, families, sequences, [np.zeros(shape) for shape in families.sizes])
    work = SequenceMaximisation(question, check_options(elimina.Options()))
    for found, expected in zip(work.expectation(tables_of(model)).counts, counts, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_restarts_find_a_better_fit():
    random = np.random.default_rng(4)
    truth = DynamicModel.hidden_markov([1, 0], [[0.9, 0.1], [0.2, 0.8]], random.dirichlet(np.ones(4) / 3, 2))
    observed = random.integers(0, 4, 60)
    first = elimina.fit(truth, observed)
    best = elimina.fit(truth, observed, options=elimina.FitOptions(restarts=5))
    assert best.log_posteriors[-1] >= first.log_posteriors[-1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"states": {"rain": 2}}, "states does not go with this structure: an elimina.DynamicModel has states"),
        ({"tied": [["rain", "umbrella"]]}, "tied does not go with this structure"),
        ({"lengths": [1, 3]}, "lengths sum to 4, and the observations have 2 slices"),
        ({"prior": {"rain": 1}}, "no variable 'rain'"),
    ],
)
def test_arguments(arguments, problem):
    with pytest.raises(InputError, match=problem):
        elimina.fit(UMBRELLA, {"umbrella": ["no", "yes"]}, **arguments)


def test_other_errors():
    with pytest.raises(InputError, match="lengths does not go with this structure"):
        elimina.fit({"a": []}, {"a": [0, 1]}, lengths=[2])
    with pytest.raises(InputError, match="the data have no rows: fit needs at least one"):
        elimina.fit(UMBRELLA, {"umbrella": []})
    sure = DynamicModel.hidden_markov([1, 0], [[1, 0], [0, 1]], [[1, 0], [0, 1]])
    with pytest.raises(ImpossibleEvidenceError, match="sequence 1 has probability 0 under the starting tables"):
        elimina.fit(sure, [0, 0, 1], lengths=[1, 2], options=elimina.FitOptions(start="model"))
    # The advice works.
    assert elimina.fit(sure, [0, 0, 1], lengths=[1, 2], options=elimina.FitOptions(start="counts")).rows == 3
    with pytest.raises(MemoryLimitError, match="the messages of a sequence of 50,000 slices"):
        elimina.fit(UMBRELLA, ["no"] * 50_000, options=elimina.FitOptions(memory="1MiB"))
