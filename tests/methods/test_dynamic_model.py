"""Dynamic models: against the unrolled network, the textbook's recursions, and the networks of other packages."""

from __future__ import annotations

import itertools
import math
import os
import pickle
import signal
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import elimina
from elimina import (
    DynamicModel,
    ImpossibleEvidenceError,
    InputError,
    MemoryLimitError,
    Model,
    OnlineFilter,
    Table,
    Variable,
)
from elimina.methods import dynamic_model, hidden_parameters, observed_sequences
from elimina.methods.dynamic_model import HiddenChain, SliceTrees
from elimina.methods.observed_sequences import Message, RunLimits
from elimina.methods.slice_trees import SliceTree
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.option_checks import check_options
from elimina.planning.options import Options
from tests.packages import installed

UMBRELLA = DynamicModel.from_cpds(
    initial={"rain": [0.5, 0.5], ("umbrella", "rain"): [[0.8, 0.1], [0.2, 0.9]]},
    transition={("rain", "rain[-1]"): [[0.7, 0.3], [0.3, 0.7]]},
    states={"rain": ["no", "yes"], "umbrella": ["no", "yes"]},
)


MAX_JOINT_STATES = 6
"""Joint states of a slice of a random model, so that all assignments of six slices can be listed."""


def distribution(random, child, parents, zeros):
    """Return a random distribution, some of whose numbers are 0."""
    table = random.random((*parents, child))
    table[random.random(table.shape) < zeros] = 0
    table[..., random.integers(child)] += 0.05
    return table / table.sum(axis=-1, keepdims=True)


def random_model(seed, *, is_chain):
    """Return a model of a few variables; if it is a chain, variables outside the interface have parents in it alone."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 4))
    sizes = [int(random.integers(1, 4)) for _ in range(count)]
    while math.prod(sizes) > MAX_JOINT_STATES:
        sizes[sizes.index(max(sizes))] -= 1
    variables = [Variable(f"v{n}", size) for n, size in enumerate(sizes)]
    zeros = random.choice([0.0, 0.4])
    hidden = int(random.integers(1, count + 1))
    before = [Variable(f"v{n}[-1]", size) for n, size in enumerate(sizes)]
    tables = {True: [], False: []}
    for v in range(count):
        for is_first in (True, False):
            shift = 0 if is_first else count
            inner = range(min(v, hidden)) if is_chain else range(v)
            parents = [u + shift for u in inner if random.random() < 0.6]
            if not is_first and (v < hidden or not is_chain):
                outer = range(hidden) if is_chain else range(count)
                parents += [u for u in outer if random.random() < 0.6]
            if not is_first and (v == 0 or (is_chain and v < hidden)) and v not in parents:
                parents.append(v)
            shape = [sizes[u % count] for u in parents]
            tables[is_first].append(Table([*parents, v + shift], distribution(random, sizes[v], shape, zeros)))
    initial = Model(variables, tables[True], sense="probability", children=range(count))
    transition = Model([*before, *variables], tables[False], sense="probability", children=range(count, 2 * count))
    return DynamicModel(initial, transition)


def random_observations(model, seed, length):
    """Return columns with missing cells; some variables have none."""
    random = np.random.default_rng([seed, 7])
    columns = {}
    for variable in model.variables:
        if random.random() < 0.7:
            states = random.integers(variable.size, size=length).astype(object)
            states[random.random(length) < 0.3] = None
            columns[variable.name] = states.tolist()
    if not columns:
        columns[model.variables[-1].name] = [None] * length
    return columns


def unrolled_evidence(columns, start, stop):
    named = ((f"{name}[{t}]", column[t]) for name, column in columns.items() for t in range(start, stop))
    return {name: state for name, state in named if state is not None}


def products(network, evidence):
    """Return the product of all tables at each assignment that has the evidence, an axis for each variable."""
    cells = np.ones([v.size for v in network.variables])
    for factor in network.factors:
        order = np.argsort(factor.scope)
        shape = [network.sizes[v] if v in factor.scope else 1 for v in range(cells.ndim)]
        cells = cells * factor.dense().transpose(order).reshape(shape)
    for name, state in evidence.items():
        axis = network.index(name)
        is_other = np.arange(network.sizes[axis]) != state
        np.moveaxis(cells, axis, 0)[is_other] = 0
    return cells


def shares_of(network, cells):
    """Return the distribution of each variable: name -> array."""
    sums = {v.name: cells.sum(axis=tuple(a for a in range(cells.ndim) if a != n)) for n, v in enumerate(network)}
    return {name: table / cells.sum() for name, table in sums.items()}


def log(number):
    return math.log(number) if number > 0 else -math.inf


def by_trees(model, monkeypatch):
    """Let a model pass messages by junction trees."""
    monkeypatch.setattr("elimina.methods.dynamic_model.MAX_STATES", 0)
    assert isinstance(model._engine(CheckedOptions()), SliceTrees)


@pytest.mark.parametrize("kind", ["chain", "chain by trees", "any"])
@given(seed=st.integers(0, 2**32), length=st.integers(1, 4))
def test_answers_equal_those_of_the_unrolled_network(kind, seed, length):
    with pytest.MonkeyPatch.context() as monkeypatch:
        model = random_model(seed, is_chain=kind != "any")
        if kind == "chain":
            assert isinstance(model._engine(CheckedOptions()), HiddenChain)
        if kind == "chain by trees":
            by_trees(model, monkeypatch)
        columns = random_observations(model, seed, length)
        names = [v.name for v in model.variables]
        network = model.unroll(length)
        cells = products(network, unrolled_evidence(columns, 0, length))
        assert model.log_likelihood(columns) == pytest.approx(log(cells.sum()), abs=1e-9)
        if not cells.any():
            for question in (model.smooth, model.filter, model.viterbi):
                with pytest.raises(ImpossibleEvidenceError, match="slice"):
                    question(columns)
            several = model.smooth(columns, lengths=[length])
            assert np.isneginf(several.log10_evidence).any()
            assert all(not table.any() for table in several.marginals.values())
            return
        answer, smoothed = model.smooth(columns, names), shares_of(network, cells)
        for t, name in itertools.product(range(length), names):
            assert answer.marginals[name][t] == pytest.approx(smoothed[f"{name}[{t}]"], abs=1e-9)
        filtered, so_far = model.filter(columns, names), 0.0
        for t in range(length):
            beginning = model.unroll(t + 1)
            part = products(beginning, unrolled_evidence(columns, 0, t + 1))
            so_far += filtered.log_evidence[t]
            assert so_far == pytest.approx(log(part.sum()), abs=1e-9)
            for name in names:
                assert filtered.marginals[name][t] == pytest.approx(
                    shares_of(beginning, part)[f"{name}[{t}]"], abs=1e-9
                )
        longer = model.unroll(length + 2)
        shares = shares_of(longer, products(longer, unrolled_evidence(columns, 0, length)))
        predicted = model.predict(columns, 2)
        for t, name in itertools.product(range(2), names):
            assert predicted.marginals[name][t] == pytest.approx(shares[f"{name}[{length + t}]"], abs=1e-9)
        # All variables but the hidden states are summed out.
        states, log_probability = model.viterbi(columns)
        others = tuple(n for n in range(cells.ndim) if n % len(names) not in model.interface)
        paths = cells.sum(axis=others)
        path = tuple(int(states[model.variables[v].name][t]) for t in range(length) for v in model.interface)
        assert len(states) == len(model.interface)
        assert log_probability == pytest.approx(log(paths.max()), abs=1e-9)
        assert log(paths[path]) == pytest.approx(log_probability, abs=1e-9)


@pytest.mark.parametrize("kind", ["chain", "any"])
@given(seed=st.integers(0, 2**32), length=st.integers(1, 6))
def test_answers_equal_those_of_a_junction_tree(kind, seed, length):
    model = random_model(seed, is_chain=kind == "chain")
    columns = random_observations(model, seed, length)
    tree = elimina.JunctionTree(model.unroll(length), evidence=unrolled_evidence(columns, 0, length))
    assert model.log_likelihood(columns) == pytest.approx(tree.log_evidence, abs=1e-9)
    if tree.log_evidence == -math.inf:
        return
    answer = model.smooth(columns, range(len(model.variables)))
    for name, posterior in tree.marginals().items():
        variable, t = name[:-1].split("[")
        assert answer.marginals[variable][int(t)] == pytest.approx(posterior.array, abs=1e-9)


def scaled_model(model, seed):
    """Return a model with each table times a power of two, and the exponents of a first slice and of a later one."""
    random = np.random.default_rng([seed, 5])
    networks, sums = [], []
    for network in (model.initial, model.transition):
        exponents = random.choice([-1000, -40, 0, 0, 40, 1023], len(network.factors))
        tables = [
            Table(factor.scope, np.ldexp(factor.values, exponent))
            for factor, exponent in zip(network.factors, exponents, strict=True)
        ]
        networks.append(Model(network.variables, tables, sense="probability", children=network.children, check=False))
        sums.append(int(exponents.sum()))
    return DynamicModel(*networks), sums


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["chain", "chain by trees", "any"])
@given(seed=st.integers(0, 2**32), length=st.integers(1, 4))
def test_scales_of_numbers_change_totals_alone(kind, seed, length):
    """Numbers up to 1e308 and down to 1e-301, whose products in a slice no float holds."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        model = random_model(seed, is_chain=kind != "any")
        scaled, (first, later) = scaled_model(model, seed)
        if kind == "chain by trees":
            by_trees(model, monkeypatch)
            by_trees(scaled, monkeypatch)
        columns = random_observations(model, seed, length)
        scale = (first + (length - 1) * later) * math.log(2)
        expected = model.log_likelihood(columns)
        assert scaled.log_likelihood(columns) == pytest.approx(expected + scale, rel=1e-12, abs=1e-9)
        if expected == -math.inf:
            return
        for question in ("smooth", "filter"):
            answer, other = getattr(model, question)(columns), getattr(scaled, question)(columns)
            scales = np.array([first, *[later] * (length - 1)]) * math.log(2)
            assert other.log_evidence == pytest.approx(answer.log_evidence + scales, rel=1e-12, abs=1e-9)
            for name, table in answer.marginals.items():
                assert other.marginals[name] == pytest.approx(table, abs=1e-9)
        assert scaled.viterbi(columns)[1] == pytest.approx(model.viterbi(columns)[1] + scale, rel=1e-12, abs=1e-9)
        online = elimina.OnlineFilter(scaled)
        for t in range(length):
            online.update({name: column[t] for name, column in columns.items() if column[t] is not None})
        assert online.log_likelihood == pytest.approx(expected + scale, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("kind", ["chain", "any"])
@given(seed=st.integers(0, 2**32), lengths=st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_sequences_at_once_equal_each_alone(kind, seed, lengths):
    model = random_model(seed, is_chain=kind == "chain")
    columns = random_observations(model, seed, sum(lengths))
    names = [v.name for v in model.variables]
    together = model.smooth(columns, names, lengths=lengths), model.filter(columns, names, lengths=lengths)
    logs = model.log_likelihood(columns, lengths=lengths)
    begin = 0
    for number, length in enumerate(lengths):
        rows = slice(begin, begin + length)
        begin += length
        alone = {name: column[rows] for name, column in columns.items()}
        assert logs[number] == pytest.approx(model.log_likelihood(alone), abs=1e-9)
        if logs[number] == -math.inf:
            assert all(not answer.marginals[name][rows].any() for answer in together for name in names)
            continue
        for answer, question in zip(together, (model.smooth, model.filter), strict=True):
            single = question(alone, names)
            for name in names:
                assert answer.marginals[name][rows] == pytest.approx(single.marginals[name], abs=1e-9)
    if not np.isneginf(logs).any():
        _, scores = model.viterbi(columns, lengths=lengths)
        begin = 0
        for number, length in enumerate(lengths):
            single = {name: column[begin : begin + length] for name, column in columns.items()}
            begin += length
            assert model.viterbi(single)[1] == pytest.approx(scores[number], abs=1e-9)


def textbook(start, transition, likelihoods):
    """Return filtered and smoothed distributions, and the log-likelihood, by Rabiner's scaled recursions."""
    alphas, logs = [], []
    for t, row in enumerate(likelihoods):
        alpha = (start if t == 0 else alphas[-1] @ transition) * row
        logs.append(math.log(alpha.sum()))
        alphas.append(alpha / alpha.sum())
    betas = [np.ones(len(start))]
    for row in likelihoods[:0:-1]:
        beta = transition @ (row * betas[0])
        betas.insert(0, beta / beta.max())
    gammas = np.array(alphas) * np.array(betas)
    return np.array(alphas), gammas / gammas.sum(axis=1, keepdims=True), sum(logs)


def best_path(start, transition, likelihoods):
    """Return the states of the best path and its log-probability, by Viterbi's recursion."""
    with np.errstate(divide="ignore"):
        scores, moves, logs = np.log(start), np.log(transition), np.log(likelihoods)
    pointers = []
    for t, row in enumerate(logs):
        if t:
            pointers.append((scores[:, None] + moves).argmax(axis=0))
            scores = (scores[:, None] + moves).max(axis=0)
        scores = scores + row
    path = [int(scores.argmax())]
    for pointer in reversed(pointers):
        path.insert(0, int(pointer[path[0]]))
    return path, float(scores.max())


def random_hidden_markov(random, states, symbols):
    rows = [distribution(random, states, (), 0), distribution(random, states, (states,), 0)]
    return *rows, distribution(random, symbols, (states,), 0)


@pytest.mark.parametrize(("states", "length"), [(1, 5), (3, 200), (8, 50), (9, 50), (12, 30), (17, 40)])
def test_hidden_markov_models_follow_the_textbook(states, length):
    random = np.random.default_rng([states, length])
    start, transition, emission = random_hidden_markov(random, states, 6)
    model = DynamicModel.hidden_markov(start, transition, emission)
    for sequences in (1, 2, 3, 11):
        symbols = random.integers(6, size=sequences * length)
        lengths = [length] * sequences
        smoothed, filtered = model.smooth(symbols, lengths=lengths), model.filter(symbols[:, None], lengths=lengths)
        states_of_paths, scores = model.viterbi(symbols, lengths=lengths)
        logs = model.log_likelihood(symbols, lengths=lengths)
        for n in range(sequences):
            rows = slice(n * length, (n + 1) * length)
            alphas, gammas, log_likelihood = textbook(start, transition, emission[:, symbols[rows]].T)
            assert filtered.marginals["state"][rows] == pytest.approx(alphas, abs=1e-12)
            assert smoothed.marginals["state"][rows] == pytest.approx(gammas, abs=1e-12)
            assert logs[n] == pytest.approx(log_likelihood)
            path, score = best_path(start, transition, emission[:, symbols[rows]].T)
            assert scores[n] == pytest.approx(score)
            assert states_of_paths["state"][rows].tolist() == path


def test_log_likelihoods_stand_for_any_emission():
    random = np.random.default_rng(3)
    start, transition, _ = random_hidden_markov(random, 4, 2)
    model = DynamicModel.hidden_markov(start, transition, states=["a", "b", "c", "d"])
    # Gaussian emissions, as hmmlearn computes them.
    points = random.normal(size=30) * 3
    logs = -0.5 * (points[:, None] - np.arange(4)) ** 2 - 0.5 * math.log(2 * math.pi)
    _, gammas, log_likelihood = textbook(start, transition, np.exp(logs))
    assert model.smooth(logs).marginals["state"] == pytest.approx(gammas, abs=1e-12)
    assert model.log_likelihood({"state": logs}) == pytest.approx(log_likelihood)
    path, score = best_path(start, transition, np.exp(logs))
    states, log_probability = model.viterbi(logs)
    assert states["state"].tolist() == ["abcd"[state] for state in path]
    assert log_probability == pytest.approx(score)
    streamed = list(model.stream(logs))
    assert streamed[-1]["state"].array == pytest.approx(model.filter(logs).marginals["state"][-1], abs=1e-12)
    shifted = model.log_likelihood(logs - 2000)
    assert shifted == pytest.approx(log_likelihood - 30 * 2000)


def test_log_likelihoods_of_a_leaf():
    soft = np.log(np.array([[0.3, 0.9], [0.5, 0.5], [0.0001, 1.0]]))
    network = UMBRELLA.unroll(3)
    evidence = {f"umbrella[{t}]": np.exp(row) for t, row in enumerate(soft)}
    tree = elimina.JunctionTree(network, evidence=evidence)
    for question in (UMBRELLA, without_chain(UMBRELLA)):
        answer = question.smooth({"umbrella": soft}, ["rain", "umbrella"])
        for t, name in itertools.product(range(3), ["rain", "umbrella"]):
            assert answer.marginals[name][t] == pytest.approx(tree.marginals()[f"{name}[{t}]"].array, abs=1e-12)
        assert question.log_likelihood({"umbrella": soft}) == pytest.approx(tree.log_evidence)
        states, log_probability = question.viterbi({"umbrella": soft})
        emission = np.array([[0.8, 0.2], [0.1, 0.9]])
        path, value = best_path(np.full(2, 0.5), np.array([[0.7, 0.3], [0.3, 0.7]]), np.exp(soft) @ emission.T)
        assert log_probability == pytest.approx(value)
        assert [UMBRELLA.variables[0].index(state) for state in states["rain"]] == path


def without_chain(model):
    """Return the same model with one more parent, of no influence, so that junction trees pass the messages."""
    umbrella = np.array([[0.8, 0.1], [0.2, 0.9]])
    transition = {
        ("rain", "rain[-1]"): np.array([[0.7, 0.3], [0.3, 0.7]]),
        ("umbrella", "rain", "rain[-1]"): np.repeat(umbrella[..., None], 2, axis=2),
    }
    states = {v.name: v.states for v in model.variables}
    trees = DynamicModel.from_cpds({"rain": [0.5, 0.5], ("umbrella", "rain"): umbrella}, transition, states=states)
    assert isinstance(trees._engine(CheckedOptions()), SliceTrees)
    return trees


def left_to_right(states):
    """Return a chain that moves to the next state or stays; the last one is never left."""
    transition = 0.5 * np.eye(states) + 0.5 * np.eye(states, k=1)
    transition[-1, -1] = 1.0
    return np.eye(states)[0], transition


@pytest.mark.parametrize("factor", [1, 400])
def test_small_probabilities_are_not_lost(factor):
    start, transition = left_to_right(3)
    model = DynamicModel.hidden_markov(start, transition)
    # The first state explains the beginning, and the last one the end, better by far than a float can say.
    logs = factor * np.array([[0.0, -2, -2], [0, -2, -3], [0, -2, -2], [-3, -1, 0], [-3, -2, 0], [-3, -2, 0]])
    with np.errstate(divide="ignore"):
        log_start, log_transition = np.log(start), np.log(transition)
    alphas = [log_start + logs[0]]
    for row in logs[1:]:
        alphas.append(np.logaddexp.reduce(alphas[-1][:, None] + log_transition, axis=0) + row)
    betas = [np.zeros(3)]
    for row in logs[:0:-1]:
        betas.insert(0, np.logaddexp.reduce(log_transition + row + betas[0], axis=1))
    whole = np.logaddexp.reduce(alphas[-1])
    gammas = np.exp(np.array(alphas) + np.array(betas) - whole)
    for lengths in (None, [6], [6, 6, 6, 6]):
        repeated = np.tile(logs, (len(lengths or [6]), 1))
        answer = model.smooth(repeated, lengths=lengths)
        for n in range(len(lengths or [6])):
            assert answer.marginals["state"][6 * n : 6 * n + 6] == pytest.approx(gammas, abs=1e-9)
    assert model.log_likelihood(logs) == pytest.approx(whole)
    filtering = OnlineFilter(model)
    for row in logs:
        filtering.update(row)
    assert filtering.log_likelihood == pytest.approx(whole)
    assert filtering.update(logs[-1])["state"].array == pytest.approx(
        model.filter(np.vstack([logs, logs[-1:]])).marginals["state"][-1], abs=1e-12
    )


@pytest.mark.parametrize("repeats", [1, 5, 100])
def test_best_paths_by_trees_are_of_any_probability(repeats, monkeypatch):
    """States never change: the best one of the beginning is the worst one of the end, by more than a float holds."""
    model = DynamicModel.hidden_markov(np.full(3, 1 / 3), np.eye(3))
    by_trees(model, monkeypatch)
    logs = np.repeat([[0.0, -200, -250], [-300, 0, -100]], repeats, axis=0)
    states, log_probability = model.viterbi(logs)
    assert states["state"].tolist() == [1] * (2 * repeats)
    assert log_probability == pytest.approx(math.log(1 / 3) - 200 * repeats)


@pytest.mark.parametrize("repeats", [1, 5, 100])
@pytest.mark.parametrize("jump", [0.0, 1e-10])
def test_posteriors_by_trees_are_of_any_probability(repeats, jump):
    """Beside those of a chain, which adds logarithms as well."""
    start, transition = np.full(3, 1 / 3), np.eye(3)
    transition[0] = [1 - jump, 0, jump]
    chain, trees = (DynamicModel.hidden_markov(start, transition) for _ in range(2))
    # In the second case, states of one posterior have messages that differ by more than a float holds.
    for phases in ([[0.0, -200, -200.1], [-300, -0.1, 0], [0, 0, 0]], [[0, -200, -100], [-200, 0, -100]]):
        check_trees(chain, trees, np.repeat(np.array(phases, dtype=np.float64), repeats, axis=0))


def check_trees(chain, trees, logs):
    """Compare the posteriors of two models, the second of which passes messages by junction trees."""
    for question in ("smooth", "filter"):
        expected = getattr(chain, question)(logs)
        with pytest.MonkeyPatch.context() as patch:
            by_trees(trees, patch)
            answer = getattr(trees, question)(logs)
            online = OnlineFilter(trees)
            for row in logs:
                online.update(row)
        assert answer.marginals["state"] == pytest.approx(expected.marginals["state"], abs=1e-9)
        assert answer.log10_evidence == pytest.approx(expected.log10_evidence)
        assert online.log_likelihood == pytest.approx(chain.log_likelihood(logs))


def test_a_long_sequence_takes_the_memory_of_its_square_root(monkeypatch):
    random = np.random.default_rng(5)
    start, transition, emission = random_hidden_markov(random, 5, 3)
    model = DynamicModel.hidden_markov(start, transition, emission)
    symbols = random.integers(3, size=1000)
    whole, paths = model.smooth(symbols), model.viterbi(symbols)
    logs = model.log_likelihood(symbols)
    sizes = []
    forward = HiddenChain._run_forward

    def counting(self, rows, *arguments):
        part, suspects = forward(self, rows, *arguments)
        sizes.append(len(part.states))
        return part, suspects

    monkeypatch.setattr(HiddenChain, "_run_forward", counting)
    monkeypatch.setattr(observed_sequences, "_BUFFER_BYTES", 8 * 5 * 10)
    answer = model.smooth(symbols)
    assert answer.marginals["state"] == pytest.approx(whole.marginals["state"], abs=1e-12)
    assert answer.log10_evidence == pytest.approx(whole.log10_evidence, abs=1e-12)
    assert 20 < max(sizes) < 40
    assert model.log_likelihood(symbols) == pytest.approx(logs)
    assert model.viterbi(symbols)[0]["state"].tolist() == paths[0]["state"].tolist()
    assert model.filter(symbols).marginals["state"][-1] == pytest.approx(whole.marginals["state"][-1], abs=1e-12)


def test_long_sequences_of_trees_keep_checkpoints(monkeypatch):
    model = without_chain(UMBRELLA)
    random = np.random.default_rng(8)
    observations = {"umbrella": random.choice(["no", "yes"], size=60)}
    whole, paths = model.smooth(observations), model.viterbi(observations)
    monkeypatch.setattr(observed_sequences, "_BUFFER_BYTES", 8 * 4 * 10)
    assert model.smooth(observations).marginals["rain"] == pytest.approx(whole.marginals["rain"], abs=1e-12)
    assert model.viterbi(observations)[1] == pytest.approx(paths[1])


def test_memory_is_limited():
    with pytest.raises(MemoryLimitError, match=r"100,000 slices take .* ask for fewer variables"):
        UMBRELLA.smooth({"umbrella": ["yes"] * 100_000}, memory="1MiB")
    large = DynamicModel.hidden_markov(np.full(40, 1 / 40), np.full((40, 40), 1 / 40), np.full((40, 2), 0.5))
    with pytest.raises(MemoryLimitError, match="the messages of a sequence"):
        large.smooth(np.zeros(90_000, dtype=int), ["observation"], memory=90_000 * 48 + 100_000)


def test_a_stream_is_the_filter():
    observations = [{"umbrella": "yes"}, {}, None, "no", {"rain": "yes"}, {"umbrella": [0.2, 0.9]}]
    rows = UMBRELLA.filter({"umbrella": ["yes", None, None, "no", None], "rain": [None] * 4 + ["yes"]}, ["rain"])
    for model in (UMBRELLA, without_chain(UMBRELLA)):
        streamed = list(model.stream(iter(observations)) if model is UMBRELLA else model.stream(rows_of(observations)))
        for row, tables in zip(rows.marginals["rain"], streamed, strict=False):
            assert tables["rain"].array == pytest.approx(row, abs=1e-12)
        assert streamed[0]["rain"].names == ("rain",)
    filtering = OnlineFilter(UMBRELLA)
    for observation in observations:
        filtering.update(observation)
    assert filtering.count == 6
    evidence = {"umbrella[0]": "yes", "umbrella[3]": "no", "rain[4]": "yes", "umbrella[5]": [0.2, 0.9]}
    tree = elimina.JunctionTree(UMBRELLA.unroll(9), evidence=evidence)
    assert filtering.log_likelihood == pytest.approx(tree.log_evidence)
    assert filtering.predict(3)["umbrella"].array == pytest.approx(tree.marginals()["umbrella[8]"].array)
    assert filtering.count == 6


def rows_of(observations):
    """Return observations whose variable is named."""
    return [{"umbrella": what} if isinstance(what, str) else what for what in observations]


def test_an_impossible_slice_is_named():
    start, transition = left_to_right(3)
    model = DynamicModel.hidden_markov(start, transition, np.eye(3), symbols=["a", "b", "c"])
    with pytest.raises(
        ImpossibleEvidenceError, match=r"slice 2 \(observation=a\) have probability 0 given those before"
    ):
        model.smooth(["a", "b", "a", "b"])
    with pytest.raises(ImpossibleEvidenceError, match="slice 1 of sequence 2"):
        model.viterbi(["a", "a", "a", "c"], lengths=[1, 1, 2])
    answer = model.smooth(["a", "a", "a", "c"], lengths=[1, 1, 2])
    assert answer.marginals["state"].tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert model.log_likelihood(["a", "c"]) == -math.inf
    filtering = OnlineFilter(model)
    filtering.update("a")
    with pytest.raises(ImpossibleEvidenceError, match="slice 1 "):
        filtering.update("c")
    assert filtering.update("b")["state"].tolist() == [0, 1, 0]
    with pytest.raises(ImpossibleEvidenceError, match="slice 0 "):
        model.predict(["b"], 3)


def test_sequences_without_slices():
    empty = UMBRELLA.smooth({"umbrella": []})
    assert empty.marginals["rain"].shape == (0, 2)
    assert UMBRELLA.log_likelihood({"umbrella": []}) == 0.0
    states, log_probability = UMBRELLA.viterbi([])
    assert (len(states["rain"]), log_probability) == (0, 0.0)
    predicted = UMBRELLA.predict([], 1)
    assert predicted.marginals["rain"].tolist() == [[0.5, 0.5]]
    assert UMBRELLA.predict(["yes"], 0).marginals["rain"].shape == (0, 2)
    assert UMBRELLA.log_likelihood([], lengths=[]).tolist() == []


def test_frames_and_labels():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"umbrella": ["yes", None, "no"]}, index=["mon", "tue", "wed"])
    answer = UMBRELLA.smooth(frame)
    assert answer.to_frame().index.tolist() == ["mon", "tue", "wed"]
    assert answer.marginals["rain"] == pytest.approx(UMBRELLA.smooth(["yes", None, "no"]).marginals["rain"])
    assert answer.marginals["rain"] == pytest.approx(
        UMBRELLA.smooth([{"umbrella": "yes"}, {}, {"umbrella": "no"}]).marginals["rain"]
    )


@pytest.mark.parametrize(
    ("observations", "lengths", "kind", "text"),
    [
        ({"umbrela": ["yes"]}, None, InputError, "no variable 'umbrela'; did you mean 'umbrella'"),
        (["maybe"], None, InputError, "no state 'maybe'"),
        (["yes", "no"], [3], InputError, "lengths sum to 3, and the observations have 2 slices"),
        (["yes"], [-1, 2], InputError, "lengths"),
        (["yes"], 1, TypeError, "lengths is 1"),
        ("yes", None, TypeError, "observations is 'yes'"),
        (3, None, TypeError, "observations is 3"),
        ({"rain": np.zeros((2, 3))}, None, InputError, r"shape \(2, 3\); they take a column for each of its 2"),
        ({"rain": np.full((2, 2), np.nan)}, None, InputError, "'rain' in slice 0 are"),
        ({"rain": np.zeros((2, 2)), "umbrella": ["yes"]}, None, InputError, "about 2 slices, and other"),
        ({"umbrella": ["yes"], 1: np.zeros((1, 2))}, None, InputError, "states and log-likelihoods"),
    ],
)
def test_observations_that_do_not_fit(observations, lengths, kind, text):
    with pytest.raises(kind, match=text):
        UMBRELLA.smooth(observations, lengths=lengths)


def test_bare_sequences_need_one_variable():
    initial = {"rain": [0.5, 0.5], "wind": [0.5, 0.5], "umbrella": [0.5, 0.5]}
    model = DynamicModel.from_cpds(initial, {("rain", "rain[-1]"): np.full((2, 2), 0.5)})
    with pytest.raises(InputError, match="may be about several variables: name them"):
        model.smooth(["yes"])
    with pytest.raises(InputError, match="may be about several variables: name it"):
        OnlineFilter(model).update("yes")
    with pytest.raises(InputError, match="no variable 'x'"):
        UMBRELLA.smooth(["yes"], ["x"])
    with pytest.raises(InputError, match="steps"):
        UMBRELLA.predict(["yes"], -1)
    with pytest.raises(TypeError, match=r"write options=elimina\.Options"):
        UMBRELLA.smooth(["yes"], threads=2)


def test_all_likelihoods_of_a_slice_may_be_zero():
    model = DynamicModel.hidden_markov([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]])
    logs = np.array([[0.0, -1.0], [-np.inf, -np.inf]])
    assert model.log_likelihood(logs) == -math.inf
    with pytest.raises(ImpossibleEvidenceError, match="slice 1 "):
        model.smooth(logs)


def test_a_model_is_pickled_and_shown():
    copy = pickle.loads(pickle.dumps(UMBRELLA))
    assert copy.log_likelihood(["yes"]) == UMBRELLA.log_likelihood(["yes"])
    assert "rain, umbrella" in repr(UMBRELLA)
    assert "rain (2 joint states)" in repr(UMBRELLA)


def test_threads_share_a_model():
    model = without_chain(UMBRELLA)
    sequences = [["yes"] * n + ["no"] * (9 - n) for n in range(8)]
    alone = [model.smooth({"umbrella": symbols}).marginals["rain"] for symbols in sequences]
    answers = {}

    def ask(number):
        answers[number] = model.smooth({"umbrella": sequences[number]}).marginals["rain"]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((answers[n] == alone[n]).all() for n in range(8))


def test_several_threads_give_the_same_answer():
    random = np.random.default_rng(11)
    start, transition, emission = random_hidden_markov(random, 6, 4)
    model = DynamicModel.hidden_markov(start, transition, emission)
    lengths = random.integers(0, 30, size=50).tolist()
    symbols = random.integers(4, size=sum(lengths))
    one, four = (model.smooth(symbols, lengths=lengths, options=Options(threads=n)) for n in (1, 4))
    assert (one.marginals["state"] == four.marginals["state"]).all()
    paths = [model.viterbi(symbols, lengths=lengths, options=Options(threads=n))[0]["state"].tolist() for n in (1, 4)]
    assert paths[0] == paths[1]


def test_many_observed_variables_have_rows_of_their_own(monkeypatch):
    model = random_model(17, is_chain=True)
    columns = random_observations(model, 17, 6)
    answer = model.smooth(columns, [v.name for v in model.variables])
    monkeypatch.setattr(hidden_parameters, "_MAX_LISTED_ROWS", 0)
    again = pickle.loads(pickle.dumps(model)).smooth(columns, [v.name for v in model.variables])
    for name in answer.marginals:
        assert again.marginals[name] == pytest.approx(answer.marginals[name], abs=1e-12)


def test_a_missing_symbol_is_summed_out():
    """The best sequence of states does not depend on the most probable symbol of a state."""
    emission = np.array([[0.5, 0.5], [0.99, 0.01]])
    model = DynamicModel.hidden_markov([0.55, 0.45], [[0.5, 0.5], [0.5, 0.5]], emission)
    states, log_probability = model.viterbi([None])
    assert states["state"].tolist() == [0]
    assert list(states) == ["state"]
    assert log_probability == pytest.approx(math.log(0.55))


def test_best_paths_equal_those_of_hmmlearn():
    hmm = pytest.importorskip("hmmlearn.hmm")
    random = np.random.default_rng(21)
    start, transition, emission = random_hidden_markov(random, 4, 5)
    peer = hmm.CategoricalHMM(4, n_features=5)
    peer.startprob_, peer.transmat_, peer.emissionprob_ = start, transition, emission
    symbols, lengths = random.integers(5, size=90), [20, 30, 40]
    model = DynamicModel.hidden_markov(start, transition, emission)
    states, scores = model.viterbi(symbols, lengths=lengths)
    expected, path = peer.decode(symbols[:, None], lengths)
    assert states["state"].tolist() == path.tolist()
    assert scores.sum() == pytest.approx(expected)
    smoothed = model.smooth(symbols, lengths=lengths).marginals["state"]
    assert smoothed == pytest.approx(peer.predict_proba(symbols[:, None], lengths), abs=1e-10)
    assert model.log_likelihood(symbols, lengths=lengths).sum() == pytest.approx(peer.score(symbols[:, None], lengths))


@pytest.mark.parametrize("question", ["log_likelihood", "viterbi"])
@pytest.mark.parametrize("lengths", [None, [250_000] * 4])
def test_ctrl_c_ends_a_pass(question, lengths):
    """Each pass would take minutes."""
    states = 1000
    model = DynamicModel.hidden_markov(
        np.full(states, 1 / states), np.full((states, states), 1 / states), np.ones((states, 1))
    )
    symbols = np.zeros(1_000_000, dtype=int)
    getattr(model, question)(symbols[:1])
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        getattr(model, question)(symbols, lengths=lengths)
    timer.join()
    assert model.log_likelihood([0]) == pytest.approx(0.0)


def test_ctrl_c_ends_passes_by_trees():
    model = without_chain(UMBRELLA)
    observations = {"umbrella": ["yes"] * 1_000_000}
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.log_likelihood(observations)
    timer.join()
    assert model.log_likelihood({"umbrella": ["yes"]}) == pytest.approx(UMBRELLA.log_likelihood(["yes"]))


def test_a_million_steps_keep_few_messages():
    """All messages would take 160 MB, for each of both passes."""
    random = np.random.default_rng(4)
    model = DynamicModel.hidden_markov(*random_hidden_markov(random, 20, 3))
    symbols = random.integers(3, size=1_000_000)
    whole = model.log_likelihood(symbols, memory="32MiB")
    halves = model.filter(symbols, ["observation"], memory="100MiB").log_evidence.sum()
    assert whole == pytest.approx(halves)
    states, score = model.viterbi(symbols, memory="32MiB")
    assert len(states["state"]) == 1_000_000
    assert score < whole
    with pytest.raises(MemoryLimitError, match="1,000,000 slices"):
        model.smooth(symbols, memory="100MiB")


def test_pairs_of_joint_states_must_fit():
    model = without_chain(UMBRELLA)
    with pytest.raises(MemoryLimitError, match=r"4 pairs of joint states .*mpe\(\)"):
        model._engine(CheckedOptions()).best_paths(model.sequences_of({"umbrella": ["yes"]}, None), RunLimits(20, 1))


@pytest.mark.parametrize(
    "library", ["pandas.Series", "pandas.Index", "polars.Series", "pyarrow.array", "pyarrow.chunked_array"]
)
def test_columns_of_data_frames(library):
    package, _, name = library.partition(".")
    make = getattr(installed(package), name)
    model = DynamicModel.hidden_markov([0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], [[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])
    symbols = [0, None, 2, 1]
    column = make([symbols] if name == "chunked_array" else symbols)
    expected = model.filter({"observation": symbols})
    np.testing.assert_array_equal(model.filter(column).marginals["state"], expected.marginals["state"])
    if name == "Series":
        hidden = make("state", [0, None]) if package == "polars" else make([0, None], name="state", index=["a", "b"])
        answer = model.filter(hidden, ["observation"])
        np.testing.assert_allclose(answer.marginals["observation"][0], [0.5, 0.4, 0.1])
        if package == "pandas":
            assert list(answer.to_frame().index) == ["a", "b"]


def test_streams_take_slices():
    model = DynamicModel.hidden_markov([0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], [[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])
    for wrong in (None, {"observation": [0]}, "01", installed("pandas").DataFrame({"observation": [0]})):
        with pytest.raises(TypeError, match=r"the observations of each slice, such as frame\.to_dict\('records'\)"):
            model.stream(wrong)


@pytest.mark.parametrize(
    ("symbols", "kind", "text"),
    [
        (np.array([0, -1]), InputError, r"row 1: variable 'observation' has no state -1; leave cells .* empty"),
        ([0, 3], InputError, "row 1: variable 'observation' has no state 3; its states are 0 to 2"),
        (np.zeros((2, 2, 2)), InputError, r"observations have the shape \(2, 2, 2\)"),
        (np.zeros((2, 3)), InputError, "a column for each of the 2 variables"),
        ({"observation": [0, 1], "state": [0]}, InputError, "the columns' lengths differ: 1, 2"),
        ([[0, 1], [2]], InputError, r"a list of sequences: put their rows one after another, .* lengths=\[120, 80\]"),
        ([[0, 1], [2, 0]], InputError, "a list of sequences"),
        ([np.zeros(2), np.zeros(3)], InputError, "a list of sequences"),
        ([{"observation": [0]}, [1]], InputError, "a list of sequences"),
        ([[0], 1], InputError, "partly states and partly lists"),
        ([[[0], [1, 2]], [0]], InputError, "a list of sequences"),
        ([np.array(0), np.array(3)], InputError, r"row 0: variable 'observation' has no state array\(0\)"),
        (None, TypeError, "observations is None; it takes a sequence"),
    ],
)
@pytest.mark.parametrize("question", ["filter", "smooth", "viterbi", "log_likelihood"])
def test_symbols_that_do_not_fit(question, symbols, kind, text):
    model = DynamicModel.hidden_markov([0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], [[0.5, 0.4, 0.1], [0.1, 0.3, 0.6]])
    with pytest.raises(kind, match=text):
        getattr(model, question)(symbols)


def test_a_memory_limit_may_be_text_in_each_question():
    data = {"umbrella": ["yes", "no"]}
    for ask in (UMBRELLA.filter, UMBRELLA.smooth, UMBRELLA.log_likelihood, UMBRELLA.viterbi):
        assert ask(data, memory="1GiB") is not None
    assert UMBRELLA.predict(data, 2, memory="1GiB").marginals


def test_likelihoods_of_several_symbols_may_underflow_together():
    """Each symbol has a probability of 1e-200 in one state, and 1e-190 in the other: no float holds their product."""
    rows = [[1.0, 1e-200], [1.0, 1e-190]]
    emissions = {"x": np.array(rows), "y": np.array(rows)}
    model = DynamicModel.hidden_markov([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], emissions)
    columns = {"x": [1, 1], "y": [1, 1]}
    assert model.log_likelihood(columns) == pytest.approx(2 * (math.log(0.5) - 380 * math.log(10)))
    assert model.smooth(columns).marginals["state"] == pytest.approx(np.array([[0, 1], [0, 1]]), abs=1e-15)
    states, score = model.viterbi(columns)
    assert states["state"].tolist() == [1, 1]
    assert score == pytest.approx(2 * (math.log(0.5) - 380 * math.log(10)))


LOST_STATES = {
    "likelihoods": (None, {"state": [[0.0, -800.0]] + [[-200.0, 0.0]] * 5}),
    # The same by two symbols at a time, whose likelihoods have a product that no float holds.
    "symbols": ({name: [[1.0, 0.0, 1e-170], [1.0, 1e-50, 1.0]] for name in "xy"}, {"x": [2, 0, 1], "y": [2, 0, 1]}),
    "overtaking": (
        {name: [[1.0, 1e-170, 1e-60], [1e-170, 1.0, 1.0]] for name in "xy"},
        {"x": [0, *[2] * 8], "y": [0, *[2] * 8]},
    ),
}
"""Emissions and observations by which a state is less likely than any float, and later becomes likely again."""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("engine", ["chain", "trees"])
@pytest.mark.parametrize("case", LOST_STATES)
def test_a_state_below_the_range_of_floats_may_become_likely_again(case, engine, dtype, monkeypatch):
    emissions, observations = LOST_STATES[case]
    tables = None if emissions is None else {name: np.array(rows) for name, rows in emissions.items()}
    model = DynamicModel.hidden_markov([0.5, 0.5], np.eye(2), tables, check=False)
    if engine == "trees":
        by_trees(model, monkeypatch)
    columns = {name: np.array(column) for name, column in observations.items()}
    # States never change, so the logarithms of their likelihoods are sums.
    if emissions is None:
        logs = columns["state"]
    else:
        with np.errstate(divide="ignore"):
            logs = sum(np.log(tables[name]).T[column] for name, column in columns.items())
    totals = math.log(0.5) + np.cumsum(logs, axis=0)
    log_evidence, tolerance = np.logaddexp.reduce(totals, axis=1), 1e-9 if dtype == "float64" else 1e-5
    filtered = np.exp(totals - log_evidence[:, None])
    options = elimina.Options(dtype=dtype) if engine == "trees" else elimina.Options()
    expected = pytest.approx(log_evidence[-1], rel=tolerance)
    assert model.log_likelihood(columns, options=options) == expected
    answer = model.filter(columns, ["state"], options=options)
    assert answer.marginals["state"] == pytest.approx(filtered, abs=tolerance)
    assert answer.log_evidence.sum() == expected
    smoothed = model.smooth(columns, ["state"], options=options)
    assert smoothed.marginals["state"] == pytest.approx(np.tile(filtered[-1], (len(logs), 1)), abs=tolerance)
    assert model.predict(columns, 1, ["state"], options=options).marginals["state"] == pytest.approx(
        filtered[-1:], abs=tolerance
    )
    states, score = model.viterbi(columns, options=options)
    assert set(states["state"].tolist()) == {int(totals[-1].argmax())}
    assert score == pytest.approx(totals[-1].max(), rel=tolerance)
    twice = {name: np.concatenate([column, column]) for name, column in columns.items()}
    assert model.log_likelihood(twice, lengths=[len(logs)] * 2, options=options) == pytest.approx(
        [log_evidence[-1]] * 2, rel=tolerance
    )
    if emissions is not None:
        online = OnlineFilter(model, options=options)
        for row in zip(*columns.values(), strict=True):
            online.update({name: int(symbol) for name, symbol in zip(columns, row, strict=True)})
        assert online.log_likelihood == expected


def test_transitions_whose_products_underflow_are_possible():
    """Two variables that each move with a probability of 1e-200: both have to."""
    moves = np.array([[1.0, 0.0], [1e-200, 1.0]])
    symbols = np.eye(2)
    model = DynamicModel.from_cpds(
        {"a": [1.0, 0.0], "b": [1.0, 0.0], ("x", "a"): symbols, ("y", "b"): symbols},
        {("a", "a[-1]"): moves, ("b", "b[-1]"): moves},
    )
    columns = {"x": [0, 1], "y": [0, 1]}
    assert model.log_likelihood(columns) == pytest.approx(-400 * math.log(10))
    assert model.viterbi(columns)[1] == pytest.approx(-400 * math.log(10))
    assert model.smooth(columns).marginals["a"] == pytest.approx(np.eye(2))


def test_soft_evidence_on_a_symbol_may_underflow():
    """The state of the second symbol becomes likely by later slices, and so does its symbol."""
    model = DynamicModel.hidden_markov([0.5, 0.5], np.eye(2), np.eye(2))
    logs = np.array([[0.0, -800.0], *[[-300.0, 0.0]] * 4])
    answer = model.smooth({"observation": logs}, ["state", "observation"])
    assert answer.marginals["state"] == pytest.approx(np.tile([0.0, 1.0], (5, 1)))
    assert answer.marginals["observation"] == pytest.approx(np.tile([0.0, 1.0], (5, 1)))
    assert model.log_likelihood({"observation": logs}) == pytest.approx(math.log(0.5) - 800)


@pytest.mark.parametrize("is_chain", [True, False])
@pytest.mark.parametrize("question", ["filter", "smooth", "viterbi", "log_likelihood"])
def test_tables_whose_numbers_no_scale_holds_are_refused(is_chain, question):
    """A state of weight 1e-300 beside one of 1e308 became impossible, and its observation with it."""
    emissions = np.array([[1e308, 0.0], [1e-290, 1e-300]])
    names = ["s", "o"] if is_chain else ["s", "o", "t"]
    variables = [Variable(name, 2) for name in names]
    first, later = [Table([0], np.full(2, 0.5))], [Table([0, len(names)], np.full((2, 2), 0.5))]
    for shift, tables in ((0, first), (len(names), later)):
        tables.append(Table([shift, shift + 1], emissions))
        if not is_chain:
            scope = [*([1] if shift else []), *range(shift, shift + 3)]
            tables.append(Table(scope, np.full([2] * len(scope), 0.5)))
    initial = Model(variables, first, sense="probability", children=range(len(names)), check=False)
    both = [Variable(f"{name}[-1]", 2) for name in names] + variables
    children = range(len(names), 2 * len(names))
    transition = Model(both, later, sense="probability", children=children, check=False)
    model = DynamicModel(initial, transition)
    with pytest.raises(InputError, match="the table over 's', 'o' has numbers from 1e-300 to 1e\\+308"):
        getattr(model, question)({"o": [1, 1]})


def test_a_tree_and_its_logarithms_fit_into_memory_in_turn():
    """Slices with and without logarithms alternate; each tree fits into the limit alone."""
    random, size, count = np.random.default_rng(0), 8, 9
    first = [Table([v], random.dirichlet(np.ones(size))) for v in range(count)]
    later = [Table([v, count + v], random.dirichlet(np.ones(size), size)) for v in range(2)]
    for v in range(count + 2, 2 * count):
        later.append(Table([v - 2, v - 1, v], random.dirichlet(np.ones(size), (size, size))))
    variables = [Variable(f"x{v}", size) for v in range(count)]
    initial = Model(variables, first, sense="probability", children=range(count))
    both = [Variable(f"x{v}[-1]", size) for v in range(count)] + variables
    transition = Model(both, later, sense="probability", children=range(count, 2 * count))
    network = DynamicModel(initial, transition)._scales.network

    def tree_within(memory):
        options = check_options(Options(device="cpu", memory=memory), engine="a junction tree")
        return SliceTree(network, False, options)

    free = tree_within(None)
    sizes = free._tree.plan.peak_bytes, free._planned_logarithms.plan.peak_bytes
    tree = tree_within(f"{max(sizes) + 1000}B")
    for has_logarithms in (False, True, False, True):
        logs = np.log(random.dirichlet(np.ones(tree._states)))
        if has_logarithms:
            logs[0] -= 2000
        message = Message(logs, is_logarithmic=True) if has_logarithms else Message(np.exp(logs))
        for observed in (tree, free):
            observed.observe(message, {})
        assert tree._is_logarithmic == has_logarithms
        assert tree.log_sum == pytest.approx(free.log_sum, abs=1e-12)
        assert tree.marginals([5])[0] == pytest.approx(free.marginals([5])[0], abs=1e-12)
        kept = tree._tree._kept_bytes + ("_propagator" in vars(tree)) * sizes[1]
        assert 0 < kept <= tree._tree.plan.memory_limit


def test_weights_and_tables_whose_products_lose_digits(monkeypatch):
    """The second state's weight was 1e-320 for a moment, with few digits, and later slices made it the likeliest."""
    monkeypatch.setattr(dynamic_model, "MAX_STATES", 0)
    x = np.array([[1.0, 1e-74, 1e-197], [1e-151, 1.0, 1.0]])
    y = np.array([[1e-168, 1e-188, 1e-21], [1.0, 1.0, 1e-45], [1e-153, 1e-138, 1.0]])
    model = DynamicModel.from_cpds(
        initial={"state": np.full(3, 1 / 3), ("x", "state"): x, ("y", "state"): y},
        transition={("state", "state[-1]"): np.eye(3), ("x", "state"): x, ("y", "state"): y},
        states={"state": 3, "x": 2, "y": 3},
    )
    logs = np.array([[0.0, -800.0, -800.0], [-300.0, 0.0, -300.0], [-300.0, 0.0, -300.0]])
    answer = model.filter({"state": logs, "x": [1, None, 0], "y": [2, 2, 1]}, ["state"])
    weights = np.log([x[1] * y[2], y[2], x[0] * y[1]])
    totals = np.log(1 / 3) + (logs + weights).cumsum(axis=0)
    log_sums = np.logaddexp.reduce(totals, axis=1)
    np.testing.assert_allclose(answer.log_evidence.cumsum(), log_sums, rtol=1e-13)
    np.testing.assert_allclose(answer.marginals["state"], np.exp(totals - log_sums[:, None]), rtol=1e-10)
