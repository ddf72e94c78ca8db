from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina.problem.relevance import Relevance, bits, prune_barren

Network = tuple[list[int], list[list[int]], list[int], list[np.ndarray]]


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Sizes, scopes (parents, then the child), children and tables of a random network, its factors shuffled."""
    count = draw(st.integers(1, 6))
    sizes = draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
    names = draw(st.permutations(range(count)))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    scopes, children, tables = [], [], []
    for i, child in enumerate(names):
        parents = draw(st.lists(st.sampled_from(names[:i]), unique=True, max_size=3)) if i else []
        scopes.append([*parents, child])
        children.append(child)
        table = random.random([sizes[v] for v in scopes[-1]]) + 0.05
        tables.append(table / table.sum(axis=-1, keepdims=True))
    return sizes, scopes, children, tables


def product_over(network: Network, factors: list[int], observed: dict[int, int], query: list[int]) -> np.ndarray:
    """Sum over all else of the product of some factors, as a table over the query; brute force."""
    sizes, scopes, _, tables = network
    count = len(sizes)
    joint = np.ones(sizes)
    for i in factors:
        shape = [sizes[v] if v in scopes[i] else 1 for v in range(count)]
        joint = joint * np.transpose(tables[i], np.argsort(scopes[i])).reshape(shape)
    for v, value in observed.items():
        joint = joint.take([value], axis=v)
    used = {v for i in factors for v in scopes[i]} | set(query)
    unused = [v for v in range(count) if v not in used]
    for v in unused:
        joint = joint.take([0], axis=v)
    return joint.sum(axis=tuple(v for v in range(count) if v not in query))


@settings(max_examples=200, deadline=None)
@given(networks(), st.data())
def test_pruned_networks_answer_alike(network: Network, data: st.DataObject) -> None:
    sizes, scopes, children, _ = network
    variables = st.sampled_from(range(len(sizes)))
    evidence = {v: data.draw(st.integers(0, sizes[v] - 1)) for v in data.draw(st.sets(variables, max_size=3))}
    everything = list(range(len(scopes)))
    kept = prune_barren(scopes, children, evidence=evidence)
    assert product_over(network, kept, evidence, []) == pytest.approx(product_over(network, everything, evidence, []))
    query = sorted(data.draw(st.sets(variables, min_size=1, max_size=2)) - evidence.keys())
    some = prune_barren(scopes, children, evidence=evidence, query=query)
    assert set(some) <= set(everything)
    posterior, full = (product_over(network, which, evidence, query) for which in (some, everything))
    np.testing.assert_allclose(posterior / posterior.sum(), full / full.sum(), rtol=1e-9)


def test_barren_chains_go_as_a_whole() -> None:
    # 0 -> 1 -> 2 -> 3 and 0 -> 4: only what is above the evidence stays.
    scopes, children = [[0], [1, 0], [2, 1], [3, 2], [4, 0]], [0, 1, 2, 3, 4]
    assert prune_barren(scopes, children) == []
    assert prune_barren(scopes, children, evidence=[2]) == [0, 1, 2]
    assert prune_barren(scopes, children, evidence=[2], query=[3]) == [3]
    assert prune_barren(scopes, children, evidence=[0], query=[4]) == [4]
    assert prune_barren(scopes, children, evidence=[1], query=[0]) == [0, 1]
    assert prune_barren(scopes, children, evidence=[1], query=[1]) == []


def test_an_observed_collider_joins_its_parents() -> None:
    scopes, children = [[0], [1], [0, 1, 2]], [0, 1, 2]
    assert prune_barren(scopes, children, query=[0]) == [0]
    assert prune_barren(scopes, children, evidence=[2], query=[0]) == [0, 1, 2]


@settings(max_examples=200)
@given(networks(), st.data())
def test_relevance_of_each_variable_is_what_pruning_for_it_keeps(network, data):
    sizes, scopes, children, _ = network
    observed = data.draw(st.sets(st.integers(0, len(sizes) - 1)))
    relevance = Relevance(scopes, children, observed)
    assert relevance.acyclic
    assert bits(relevance.of_evidence) == prune_barren(scopes, children, evidence=observed)
    for v in set(range(len(sizes))) - observed:
        assert bits(relevance.of([v])) == prune_barren(scopes, children, evidence=observed, query=[v])
    free = set(range(len(sizes))) - observed
    assert bits(relevance.of(free)) == prune_barren(scopes, children, evidence=observed, query=free)


def test_relevance_sees_cycles():
    assert not Relevance([[0, 1], [1, 0], [0, 2]], [0, 1, 2]).acyclic


@given(st.sets(st.integers(0, 200)))
def test_bits(positions):
    assert bits(sum(1 << i for i in positions)) == sorted(positions)
