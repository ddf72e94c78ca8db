"""Global cardinality by flow: domains of variables, and bounds of counts, beside brute force and a textbook flow."""

from __future__ import annotations

import random
from collections.abc import Sequence

import networkx as nx
import numpy as np
import pytest

from elimina import cp

from .brute import allowed, domains, found, supported

Counts = dict[int, tuple[int, int]]


def posted(given: Sequence[Sequence[int]], counts: Counts, closed: bool = False) -> cp.Model:
    model = cp.Model()
    xs = [model.int_var(d) for d in given]
    model.cardinality(xs, {value: model.int_var(lo, hi) for value, (lo, hi) in counts.items()}, closed)
    return model


def holds(v: Sequence[int], counts: Counts) -> bool:
    return all(lo <= v.count(value) <= hi for value, (lo, hi) in counts.items())


def textbook(given: Sequence[Sequence[int]], counts: Counts) -> list[list[int]] | None:
    """Régin (AAAI 1996): a feasible flow by a source and a sink for what must be had, components of what it leaves."""
    graph, needed = nx.DiGraph(), sum(lo for lo, _ in counts.values())
    for i, row in enumerate(given):
        graph.add_edge("source", ("x", i), capacity=1)
        for value in row:
            graph.add_edge(("x", i), ("v", value), capacity=1)
    limits = {value: counts.get(value, (0, len(given))) for value in {v for row in given for v in row} | set(counts)}
    for value, (lo, hi) in limits.items():
        graph.add_edge(("v", value), "end", capacity=hi - lo)
        graph.add_edge(("v", value), "sink", capacity=lo)
    graph.add_edge("end", "sink", capacity=len(given) - needed)
    if needed > len(given):
        return None
    size, flow = nx.maximum_flow(graph, "source", "sink")
    if size < len(given):
        return None
    residual = nx.DiGraph()
    for value, (lo, hi) in limits.items():
        number = lo + flow["v", value]["end"]
        residual.add_edges_from([(("v", value), "end")] * (number < hi) + [("end", ("v", value))] * (number > lo))
    edges = [(("x", i), ("v", value)) for i, row in enumerate(given) for value in row]
    residual.add_edges_from((v, x) if flow[x][v] else (x, v) for x, v in edges)
    component = {node: k for k, nodes in enumerate(nx.strongly_connected_components(residual)) for node in nodes}
    same = {(x[1], v[1]) for x, v in edges if flow[x][v] or component[x] == component[v]}
    return [[value for value in row if (i, value) in same] for i, row in enumerate(given)]


def limits(rng: random.Random, values: Sequence[int], count: int) -> Counts:
    ends = {value: sorted((rng.randint(0, count), rng.randint(0, count))) for value in values}
    return {value: (min(lo, 1) if rng.random() < 0.5 else lo, hi) for value, (lo, hi) in ends.items()}


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("scale", [1, 1000])
def test_domain_consistent_with_bounds_of_counts(closed: bool, scale: int) -> None:
    for seed in range(150):
        rng = random.Random(seed)
        given = [[scale * v for v in d] for d in domains(rng, rng.randint(1, 5), 0, 4)]
        values = [scale * v for v in rng.sample(range(5), rng.randint(1, 4))]
        counts = limits(rng, values, len(given))

        def check(v: tuple[int, ...]) -> bool:
            xs, numbers = v[: len(given)], v[len(given) :]  # noqa: B023
            return tuple(map(xs.count, counts)) == numbers and (not closed or set(xs) <= set(counts))  # noqa: B023

        model = posted(given, counts, closed)
        ranges = [range(lo, hi + 1) for lo, hi in counts.values()]
        assert model.propagated() == supported([*given, *ranges], check), (given, counts)


def test_textbook_is_brute_force() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        given = domains(rng, 4, 0, 3)
        counts = limits(rng, rng.sample(range(4), 3), 4)
        assert textbook(given, counts) == supported(given, lambda v: holds(v, counts)), (given, counts)  # noqa: B023


@pytest.mark.parametrize(("count", "width", "degree"), [(8, 4, 3), (20, 9, 4), (70, 20, 5), (30, 70, 6)])
def test_every_call_of_a_search(count: int, width: int, degree: int) -> None:
    """Decisions at random, with backtracking: the flow that is kept has to follow."""
    for seed in range(4):
        rng = random.Random(seed)
        hidden = [rng.randrange(width) for _ in range(count)]
        given = [sorted({*rng.sample(range(width), degree), v}) for v in hidden]
        counts = {
            v: (max(0, hidden.count(v) - rng.randint(0, 1)), hidden.count(v) + rng.choice([0, 0, 2]))
            for v in range(0, width, 2)
        }
        solver, _ = posted(given, counts)._build()
        assert solver.propagate()
        current = textbook(given, counts)
        assert current is not None
        assert solver.domains()[:count] == current
        stack = [current]
        for _ in range(12):
            open_variables = [i for i, d in enumerate(stack[-1]) if len(d) > 1]
            if not open_variables or rng.random() < 0.2:
                if len(stack) > 1:
                    stack.pop()
                    solver.undo()
                continue
            i = rng.choice(open_variables)
            value, keep = rng.choice(stack[-1][i]), rng.random() < 0.6
            after = [list(d) for d in stack[-1]]
            after[i] = [value] if keep else [v for v in after[i] if v != value]
            expected = textbook(after, counts)
            assert solver.decide(i, value, keep) == (expected is not None)
            if expected is None:
                solver.undo()
                continue
            assert solver.domains()[:count] == expected
            stack.append(expected)


def test_solutions_with_holes_in_counts_and_repeated_variables() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        given = domains(rng, 5, 0, 3)
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.cardinality([*xs[:3], xs[0]], {1: xs[3], 2: xs[4], 7: xs[1]})

        def check(v: tuple[int, ...]) -> bool:
            listed = (*v[:3], v[0])
            return (listed.count(1), listed.count(2), listed.count(7)) == (v[3], v[4], v[1])

        assert found(model, xs, seed=seed) == allowed(given, check), given


def test_pigeons_fail_at_the_root() -> None:
    """Twelve variables and three values that three may have each, some elsewhere: single counts see nothing."""
    model = cp.Model()
    xs = model.int_vars(12, 0, 3)
    model.cardinality(xs[:10], {0: model.int_var(0, 3), 1: model.int_var(0, 3), 2: model.int_var(0, 3)}, closed=True)
    assert model.propagated() is None


def test_values_far_apart() -> None:
    model = cp.Model()
    xs = [model.int_var([0, 5, 10**12]) for _ in range(3)]
    model.cardinality(xs, {0: 1, 10**12: 2})
    assert found(model, xs) == {(0, 10**12, 10**12), (10**12, 0, 10**12), (10**12, 10**12, 0)}


def test_a_flag_that_is_an_array():
    model = cp.Model()
    with pytest.raises(TypeError, match=r"closed is .*; it takes True or False"):
        model.cardinality(model.int_vars(2, 0, 1), {0: 1}, closed=np.array([True, False]))
