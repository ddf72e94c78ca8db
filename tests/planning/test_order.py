from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Sequence
from functools import partial
from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import _core
from elimina._core import cells_of_part
from elimina.errors import InputError
from elimina.generate import grid_model
from elimina.model.model import Model
from elimina.model.table import Scopes
from elimina.planning import ordering
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.order import evaluate_order, find_order, find_partial_order, pseudo_tree_order
from elimina.problem.preparation import prepare
from elimina.problem.tasks import Task
from tests.reference.order import best_work_by_permutations, best_work_by_subsets, neighbours_of, symbolic_elimination
from tests.reference.tree import finishes_subtrees

METHODS = ["auto", "min-fill", "weighted-min-fill", "min-degree", "min-weight", "sweep", "pseudo-tree"]


@st.composite
def problems(draw: st.DrawFn, most: int = 12) -> tuple[list[int], list[list[int]]]:
    sizes = draw(st.lists(st.integers(1, 5), max_size=most))
    if not sizes:
        return sizes, []
    variables = st.integers(0, len(sizes) - 1)
    return sizes, draw(st.lists(st.lists(variables, unique=True, max_size=4), max_size=2 * most))


def grid(rows: int, columns: int) -> list[tuple[int, int]]:
    right = [(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)]
    return right + [(v, v + columns) for v in range((rows - 1) * columns)]


def mixed(rows: int, columns: int) -> tuple[list[int], list[tuple[int, int]]]:
    return [2 + v * 7 % 5 for v in range(rows * columns)], grid(rows, columns)


@settings(max_examples=100, deadline=None)
@given(problems(), st.data())
def test_the_work_of_a_part_is_that_of_its_order_by_fill_in(
    problem: tuple[list[int], list[list[int]]], data: st.DataObject
) -> None:
    sizes, scopes = problem
    chosen = data.draw(st.lists(st.booleans(), min_size=len(scopes), max_size=len(scopes)))
    marks = sum(1 << i for i, is_in in enumerate(chosen) if is_in).to_bytes(len(scopes) // 8 + 1, "little")
    starts, members = Scopes.of(scopes)
    found = cells_of_part(np.array(sizes, dtype=np.float64), starts, members.astype(np.uint32), marks)
    part = [scope for scope, is_in in zip(scopes, chosen, strict=True) if is_in]
    names = sorted({v for scope in part for v in scope})
    own = [[names.index(v) for v in scope] for scope in part]
    assert found == pytest.approx(find_order([sizes[v] for v in names], own, method="min-fill").total_cells)


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from(METHODS), st.integers(0, 3))
def test_every_order_is_a_permutation_with_true_figures(
    problem: tuple[list[int], list[list[int]]], method: str, seed: int
) -> None:
    sizes, scopes = problem
    found = find_order(sizes, scopes, method=method, iterations=30, seed=seed)
    assert sorted(found.order) == list(range(len(sizes)))
    assert (found.total_cells, found.largest_table, found.width) == symbolic_elimination(sizes, scopes, found.order)
    again = evaluate_order(sizes, scopes, found.order)
    assert (again.total_cells, again.largest_table, again.width) == (
        found.total_cells,
        found.largest_table,
        found.width,
    )


@settings(max_examples=150, deadline=None)
@given(problems(), st.integers(0, 3), st.sampled_from([1, 10, 100, 10**18]))
def test_a_partial_order_ends_at_the_first_elimination_that_is_too_large(
    problem: tuple[list[int], list[list[int]]], seed: int, max_cells: int
) -> None:
    sizes, scopes = problem
    found = find_partial_order(sizes, scopes, seed=seed, max_cells=max_cells)
    assert sorted(found.order) == list(range(len(sizes)))
    total, largest, width = symbolic_elimination(sizes, scopes, found.order)
    if found.is_complete:
        assert (found.total_cells, found.largest_table, found.width) == (total, largest, width)
    else:
        assert max_cells < found.total_cells <= total + len(sizes) * max(sizes)
        assert found.largest_table <= largest


def test_a_part_of_a_large_problem_shows_that_elimination_is_hopeless() -> None:
    side = 300
    found = find_partial_order([2] * side**2, grid(side, side))
    assert not found.is_complete
    assert found.total_cells > 10**18
    assert sorted(found.order) == list(range(side**2))
    length = 70_000
    path = find_partial_order([2] * length, [(v, v + 1) for v in range(length - 1)])
    assert path.is_complete
    assert (path.width, path.largest_table) == (1, 2)


@pytest.mark.parametrize("task", ["mar", "pr", "mpe"])
@pytest.mark.parametrize("has_zeros", [False, True])
def test_quick_orders_of_hopeless_sums_are_partial_unless_zeros_make_tables_sparse(
    task: Task, has_zeros: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "_MIN_PARTIAL_VARIABLES", 0)
    monkeypatch.setattr(ordering, "find_partial_order", partial(find_partial_order, max_cells=10))
    sizes, scopes = mixed(5, 5)
    tables = [(scope, np.full([sizes[v] for v in scope], 0.5)) for scope in scopes]
    tables[3][1][0, 0] = 0.0 if has_zeros else 0.25
    problem = prepare(Model.from_arrays(sizes, tables, sense="probability"), task, {0: 1})
    order = ordering.rough_order(problem, CheckedOptions())
    assert sorted(order.order) == list(problem.free)
    assert order.is_complete == (task == "mpe" or (task == "pr" and has_zeros))


@settings(max_examples=30, deadline=None)
@given(problems(most=6))
def test_the_two_references_agree(problem: tuple[list[int], list[list[int]]]) -> None:
    assert best_work_by_permutations(*problem) == best_work_by_subsets(*problem)


@settings(max_examples=60, deadline=None)
@given(problems(most=9))
def test_small_problems_are_solved_to_the_optimum(problem: tuple[list[int], list[list[int]]]) -> None:
    assert find_order(*problem, iterations=60).total_cells == best_work_by_subsets(*problem)


@pytest.mark.parametrize(("rows", "columns"), [(3, 4), (2, 6)])
def test_mixed_grids_are_solved_to_the_optimum(rows: int, columns: int) -> None:
    sizes, scopes = mixed(rows, columns)
    assert find_order(sizes, scopes, iterations=60).total_cells == best_work_by_subsets(sizes, scopes)


def test_work_is_minimised_rather_than_width() -> None:
    # A cycle whose every other variable is large: the large ones go first although any order has width 2.
    sizes = [2, 50, 2, 50, 2, 50]
    scopes = [(i, (i + 1) % 6) for i in range(6)]
    found = find_order(sizes, scopes, iterations=40)
    assert found.total_cells == best_work_by_permutations(sizes, scopes)
    assert found.largest_table == 4  # no message holds a large one


def test_widths_are_no_worse_than_a_peer_s_min_fill() -> None:
    for seed in range(5):
        graph = nx.gnm_random_graph(40, 90, seed=seed)
        peer, _ = nx.algorithms.approximation.treewidth_min_fill_in(graph)
        assert find_order([2] * 40, list(graph.edges), iterations=60).width <= peer


def test_grid_reaches_its_treewidth() -> None:
    assert find_order([2] * 64, grid(8, 8), iterations=80).width == 8


def test_large_grid_reaches_its_treewidth() -> None:
    # Plain greedy rules leave widths above 40 here; a sweep along the rows has 24.
    assert find_order([2] * 24**2, grid(24, 24), method="min-fill").width > 30
    assert find_order([2] * 24**2, grid(24, 24), method="sweep", iterations=20).width <= 26


def test_large_table_limit_outweighs_the_work() -> None:
    sizes = [3, 2, 3, 7, 2, 2]
    scopes = [(2, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 3), (5, 4)]
    every = {symbolic_elimination(sizes, scopes, order)[:2] for order in permutations(range(6))}
    assert min(every) == (98, 14)
    assert min(pair for pair in every if pair[1] <= 13) == (124, 12)
    free = find_order(sizes, scopes, iterations=60)
    tight = find_order(sizes, scopes, iterations=60, max_table_cells=13)
    assert (free.total_cells, free.largest_table) == (98, 14)
    assert (tight.total_cells, tight.largest_table) == (124, 12)


def test_unreachable_limit_is_approached() -> None:
    found = find_order([2] * 49, grid(7, 7), iterations=60, max_table_cells=4)
    assert found.largest_table == 2**7


@pytest.mark.parametrize("after", [0.1, 1.0])
def test_interrupt_ends_a_step_of_a_dense_graph(after) -> None:
    """The first steps of weighted min-fill take seconds there."""
    pairs = np.triu(np.random.default_rng(0).random((900, 900)) < 0.5, 1).nonzero()
    scopes = Scopes.of(np.stack(pairs, axis=1).tolist())
    timer = threading.Timer(after, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    began = time.process_time()
    with pytest.raises(KeyboardInterrupt):
        find_order([2] * 900, scopes, method="weighted-min-fill")
    timer.join()
    assert time.process_time() - began < after + 0.5


@pytest.mark.parametrize(("method", "size"), [("min-fill", 2), ("weighted-min-fill", 3)])
def test_greedy_orders_always_take_a_variable_that_adds_fewest_edges(method: str, size: int) -> None:
    graph = nx.random_regular_graph(5, 60, seed=size)
    sizes = [2 + v % (size - 1) for v in range(60)]
    found = find_order(sizes, list(graph.edges), method=method)

    def weight(v: int) -> int:
        return sum(
            sizes[a] * sizes[b] if method.startswith("weighted") else 1
            for a, b in combinations(graph[v], 2)
            if not graph.has_edge(a, b)
        )

    for v in found.order:
        assert weight(v) == min(map(weight, graph))
        graph.add_edges_from(combinations(list(graph[v]), 2))
        graph.remove_node(v)


def test_a_new_edge_is_looked_at_without_all_others() -> None:
    """By work that is counted, not by the clock."""
    edges = list(nx.gnm_random_graph(300, 1500, seed=3).edges)
    methods = "min-degree", "min-fill", "weighted-min-fill"
    seconds = {method: find_order([2] * 300, edges, method=method).seconds for method in methods}
    assert seconds["min-fill"] < 1.3 * seconds["min-degree"]
    assert seconds["weighted-min-fill"] < 2.5 * seconds["min-degree"]


def test_a_vertex_without_a_reduction_is_not_looked_at_whole() -> None:
    """By work that is counted, not by the clock."""
    edges = list(nx.gnm_random_graph(60, 800, seed=3).edges)
    assert find_order([2] * 60, edges, method="min-degree").seconds < 0.47e-3


def test_few_variables_that_reductions_leave_are_ordered_exactly() -> None:
    """No round would improve their order, so the search ends."""
    ring = [(i, (i + step) % 8) for i in range(8) for step in (1, 3)]
    scopes = [*ring, *((i, 8 + i) for i in range(8))]
    found = find_order([30] * 16, scopes, seconds=0.5, cells_per_second=None)
    assert found.seconds < 0.05
    assert found.total_cells <= find_order([30] * 16, scopes, iterations=200).total_cells


def test_interrupt_ends_a_search() -> None:
    graph = nx.gnm_random_graph(200, 800, seed=3)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    start = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        find_order([4] * 200, list(graph.edges), seconds=30, cells_per_second=None)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("side", [9, 16])
def test_same_seed_same_order(method: str, side: int) -> None:
    """The number of threads does not matter."""
    sizes, scopes = mixed(7, side)
    found = [find_order(sizes, scopes, method=method, iterations=40, seed=5, threads=n) for n in (1, 1, 2, 3, 12)]
    assert len({order.order for order in found}) == 1


# A graph of 1,600 variables is annealed in pieces first, and one of 2,500 in pieces only.
@pytest.mark.parametrize(("side", "seconds"), [(5, 0.1), (20, 0.1), (40, 0.4), (50, 0.4)])
def test_same_order_within_a_time_limit(side: int, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the number of threads nor the moment when the limit ends an annealing matters."""
    # On a busy machine the clock may come first.
    monkeypatch.setattr(_core, "find_order", partial(_core.find_order, slowest=math.inf))
    for limit in (seconds, 1.1 * seconds, 1.3 * seconds):
        found = [
            find_order([3] * side**2, grid(side, side), seconds=limit, threads=threads, cells_per_second=None)
            for threads in (1, 2, 5)
        ]
        assert found[0].seconds >= limit
        assert len({(order.order, order.seconds) for order in found}) == 1


def test_the_clock_ends_a_search_whose_work_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "find_order", partial(_core.find_order, slowest=1e-4))
    assert find_order([3] * 400, grid(20, 20), seconds=1000, cells_per_second=None).seconds < 500


def test_threads_of_an_order_end_with_it() -> None:
    """Annealings that were made ahead are given up."""
    before = set(os.listdir("/proc/self/task"))
    sizes, scopes = [3] * 400, grid(20, 20)
    find_order(sizes, scopes, seconds=0.2, threads=4, cells_per_second=None)
    assert set(os.listdir("/proc/self/task")) <= before


def test_seeds_matter() -> None:
    sizes, scopes = [2] * 81, grid(9, 9)
    assert len({find_order(sizes, scopes, method="min-fill", seed=seed).order for seed in range(4)}) > 1


def test_annealing_improves_on_greedy_rules() -> None:
    sizes, scopes = mixed(9, 9)
    rules = [find_order(sizes, scopes, method=method).total_cells for method in METHODS[1:]]
    assert find_order(sizes, scopes, iterations=60).total_cells < 0.9 * min(rules)


def test_a_search_goes_on_from_its_first_order() -> None:
    """A search that ends after its greedy run takes about as long as that, not twice as long."""
    sizes, scopes = [3] * 900, grid(30, 30)
    first = find_order(sizes, scopes, method="min-fill", iterations=1)
    found = find_order(sizes, scopes, cells_per_second=first.total_cells / (7.5 * first.seconds))
    assert found.seconds < 1.5 * first.seconds


def test_searches_and_runs_together() -> None:
    """0.27 s for runs of some milliseconds each; 0.34 s where long annealings from fresh orders come first."""
    together, searches = 0.0, 0.0
    for seed in range(8):
        random = np.random.default_rng(seed)
        sizes = random.integers(2, 4, 200).tolist()
        scopes = [sorted({v, *np.maximum(0, v - 1 - random.integers(30, size=2)).tolist()}) for v in range(1, 200)]
        found = find_order(sizes, scopes, cells_per_second=2e9)
        searches += found.seconds
        together += found.seconds + found.seconds_at(2e9)
    assert together < 0.3
    assert searches < 0.05


@pytest.mark.parametrize("method", METHODS)
def test_ordinary_corner_cases(method: str) -> None:
    assert find_order([], [], method=method).order == ()
    assert find_order([], [[]], method=method).total_cells == 0
    alone = find_order([3, 1, 4], [[], [2], [2]], method=method)
    assert (sorted(alone.order), alone.total_cells, alone.largest_table, alone.width) == ([0, 1, 2], 8, 1, 0)
    one = find_order([1, 1], [(0, 1)], method=method)
    assert (one.total_cells, one.largest_table, one.width) == (2, 1, 0)
    clique = find_order([2, 3, 5], [(0, 1, 2), (0, 1), (1, 0), (0, 1, 2)], method=method)
    assert clique.largest_table in {6, 10, 15}
    repeated = find_order([2, 2], [(0, 0, 1)], method=method)
    assert repeated.width == 1


def test_a_variable_of_one_value_costs_nothing() -> None:
    # A star whose centre has one value: eliminated naively it would join its 20 leaves.
    star = find_order([1] + [4] * 20, [(0, v) for v in range(1, 21)])
    assert (star.total_cells, star.width) == (81, 0)


def test_components_are_ordered_apart() -> None:
    one = find_order(*mixed(5, 5), iterations=80)
    sizes, scopes = mixed(5, 5)
    shifted = [(a + 25, b + 25) for a, b in scopes]
    both = find_order(sizes + sizes, scopes + shifted, iterations=160)
    assert both.total_cells == 2 * one.total_cells


def test_costs_beyond_any_float_are_exact() -> None:
    count = 600
    clique = find_order([7] * count, [tuple(range(count))], method="min-degree")
    assert clique.total_cells == sum(7**k for k in range(1, count + 1))
    assert clique.largest_table == 7 ** (count - 1)
    assert clique.log10_cells == pytest.approx(math.log10(7) * count + math.log10(7 / 6))


def test_hopeless_problems_still_get_an_order() -> None:
    graph = nx.random_regular_graph(8, 300, seed=1)
    found = find_order([90] * 300, list(graph.edges), seconds=0.3)
    assert found.total_cells > 10**150
    assert found.total_cells == symbolic_elimination([90] * 300, list(graph.edges), found.order)[0]


@pytest.mark.parametrize("count", [100, 10_000])
def test_chains_are_ordered_at_once(count: int) -> None:
    start = time.process_time()
    found = find_order([3] * count, [(v, v + 1) for v in range(count - 1)], seconds=60)
    assert time.process_time() - start < 10  # of the 60 that the search might take
    assert found.total_cells == 9 * (count - 1) + 3


LARGE = 1 << 16
"""Variables from which orders keep to neighbourhoods (``many_vertices`` in core/order/graph.hpp)."""


def test_large_trees_are_ordered_subtree_by_subtree() -> None:
    rng = np.random.default_rng(0)
    edges = [(v - 1 - int(rng.integers(min(v, 50))), v) for v in range(1, LARGE)]
    found = find_order([3] * LARGE, edges, method="min-fill", iterations=1, seconds=60)
    assert sorted(found.order) == list(range(LARGE))
    assert finishes_subtrees(edges, found.order)
    assert found.total_cells == 9 * (LARGE - 1) + 3


@pytest.mark.parametrize("method", ["min-fill", "weighted-min-fill", "sweep"])
def test_large_grids_are_ordered_as_well_as_small_ones(method: str) -> None:
    work = []
    for columns in (1000, LARGE // 4):
        sizes = [3] * (4 * columns)
        found = find_order(sizes, grid(columns, 4), method=method, iterations=1, seconds=600)
        assert sorted(found.order) == list(range(len(sizes)))
        assert found.width == 4
        work.append(found.total_cells / len(sizes))
    assert work[1] < 1.03 * work[0]


def test_time_limit_holds() -> None:
    graph = nx.gnm_random_graph(400, 1600, seed=2)
    start = time.process_time()
    find_order([4] * 400, list(graph.edges), seconds=0.3)
    assert time.process_time() - start < 1.5


def test_pseudo_tree_has_edges_only_between_ancestors() -> None:
    sizes, scopes = mixed(5, 6)
    order = pseudo_tree_order(sizes, scopes)
    position = {v: i for i, v in enumerate(order)}
    neighbours = neighbours_of(len(sizes), scopes)
    # The last variable is the first root: a variable of most neighbours.
    assert len(neighbours[order[-1]]) == max(map(len, neighbours))
    # Depth-first search: taking back the order, each variable hangs below one that it is adjacent to.
    later = [[u for u in neighbours[v] if position[u] > position[v]] for v in order]
    assert all(later[:-1])


@pytest.mark.parametrize(
    ("sizes", "scopes", "order", "message"),
    [
        ([2, 2], [], [0], "1 entries for 2 variables"),
        ([2, 2], [], [0, 0], "lacks variable 1"),
        ([2, 2], [], [0, 2], "names variable 2"),
        ([2, 0], [], [0, 1], "variable 1 has 0 values"),
        ([2, 2**54], [], [0, 1], "variable 1 has 18014398509481984 values"),
        ([2, 2], [(0, 2)], [0, 1], "scope 0 names variable 2"),
        ([2, 2], [(0, -1)], [0, 1], "scope 0 names variable -1"),
    ],
)
def test_ill_formed_orders(sizes: list[int], scopes: Sequence[Sequence[int]], order: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_order(sizes, scopes, order)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, "unknown ordering method 'best'"),
        ({"seconds": -1.0}, "seconds for ordering is -1"),
        ({"seconds": math.nan}, "seconds is NaN"),
        ({"iterations": -3}, "iterations is -3"),
        ({"seed": -1}, "seed is -1"),
        ({"threads": 0}, "threads is 0"),
        ({"cells_per_second": 0.0}, "cells_per_second is 0"),
        ({"max_table_cells": 0}, "max_table_cells is 0"),
    ],
)
def test_senseless_options(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        find_order([2, 2], [(0, 1)], **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["seed", "threads", "iterations", "max_table_cells"])
def test_numbers_that_are_no_integers(name: str) -> None:
    with pytest.raises(TypeError, match=rf"{name} is 1.5 \(float\); it takes an integer"):
        find_order([2, 2], [(0, 1)], **{name: 1.5})  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
def test_a_search_ends_where_no_further_run_is_better(method: str) -> None:
    """Runs that give up at once count as work, too: the clock would end the search after 20 s."""
    scopes = [[1, 2, 3, 4], [0, 3, 6], [2, 3, 6], [0, 1], [2, 5], [1, 7], [3, 7], [4, 7], [5, 7], [6, 7], [0, 7]]
    started = time.process_time()
    find_order([2, 2, 2, 40, 3, 2, 2, 16], scopes, method=method, seconds=2.0, cells_per_second=5e7)  # type: ignore[arg-type]
    assert time.process_time() - started < 1


def test_no_search_where_it_takes_longer_than_the_run_that_it_saves():
    model = grid_model(8, 4, seed=1)
    problem = prepare(model, "mpe", {})
    options = CheckedOptions()
    rough = ordering.rough_order(problem, options)
    rough = rough._replace(order=rough.order[::-1], seconds=3600.0)
    assert ordering.elimination_order(problem, options, rough) == rough.order
    # Any order that a search finds has less work than this one says, however short the search is.
    poor = rough._replace(seconds=0.0, total_cells=1000 * rough.total_cells)
    assert ordering.elimination_order(problem, options, poor) != rough.order
