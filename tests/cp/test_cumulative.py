"""Cumulative beside brute force, and what its time-table, its energies and its pairs have to see."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from elimina import cp

from .brute import allowed, domains, found


def fits(starts: Sequence[int], durations: Sequence[int], demands: Sequence[int], capacity: int) -> bool:
    tasks = list(zip(starts, durations, demands, strict=True))
    if min([*durations, *demands, 0]) < 0:
        return False
    return all(sum(r for s, d, r in tasks if s <= t < s + d) <= capacity for t in {0, *starts})


@pytest.mark.parametrize("scale", [1, 2**45])
def test_solutions(scale: int) -> None:
    """All four may vary; with large times, energies would not fit into 64 bits."""
    for seed in range(80):
        rng = random.Random(seed)
        count = rng.randint(1, 3)
        given = [
            *domains(rng, count, 0, 5),
            *domains(rng, count, -1 if seed % 4 == 0 else 0, 3),
            *domains(rng, count, 0, 2),
            *domains(rng, 1, 0, 3),
        ]
        if seed % 2:
            given[count : 3 * count] = [[rng.choice(d)] for d in given[count : 3 * count]]
        given = [[v * scale for v in d] if i < 2 * count else d for i, d in enumerate(given)]
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.cumulative(xs[:count], xs[count : 2 * count], xs[2 * count : 3 * count], xs[-1])

        def check(v: tuple[int, ...]) -> bool:
            return fits(v[:count], v[count : 2 * count], v[2 * count : 3 * count], v[-1])  # noqa: B023

        assert found(model, xs, seed=seed) == allowed(given, check), given


def test_solutions_of_tight_resources() -> None:
    """Fixed sizes: what energies and pairs take away must not be in any solution."""
    pruned = 0
    for seed in range(400):
        rng = random.Random(seed)
        count, capacity = rng.randint(2, 5), rng.randint(1, 4)
        sizes = [rng.randint(1, 4) for _ in range(count)]
        demands = [rng.randint(1, capacity) for _ in range(count)]
        horizon = -(-sum(a * b for a, b in zip(sizes, demands, strict=True)) // capacity) + rng.randint(0, 2)
        windows = [sorted((rng.randint(0, max(0, horizon - p)), rng.randint(0, max(0, horizon - p)))) for p in sizes]
        given = [range(lo, hi + 1) for lo, hi in windows]
        model = cp.Model()
        xs = [model.int_var(lo, hi) for lo, hi in windows]
        model.cumulative(xs, sizes, demands, capacity)
        expected = allowed(given, lambda v: fits(v, sizes, demands, capacity))  # noqa: B023
        assert found(model, xs, seed=seed) == expected, (windows, sizes, demands, capacity)
        result = model.propagated()
        if result is None:
            assert not expected
            pruned += 1
            continue
        pruned += sum(map(len, result)) < sum(map(len, given))
        assert all(set(column) <= set(d) for column, d in zip(zip(*expected, strict=True), result, strict=False))
    assert pruned > 100


def bounds(tasks: Sequence[tuple[int, int, int, int]], capacity: int) -> list[tuple[int, int]] | None:
    """Earliest and latest starts of tasks (earliest start, latest end, duration, demand) after propagation."""
    model = cp.Model()
    xs = [model.int_var(start, end - size) for start, end, size, _ in tasks]
    model.cumulative(xs, [t[2] for t in tasks], [t[3] for t in tasks], capacity)
    result = model.propagated()
    return None if result is None else [(d[0], d[-1]) for d in result]


def test_overload() -> None:
    """Five tasks of 2 by 2 need 20 of the 4 * 4 between 0 and 4, and no part of them is certain."""
    assert bounds([(0, 4, 2, 2)] * 5, 4) is None
    assert bounds([(0, 6, 2, 2)] * 5, 4) is not None
    # No two of them run together.
    assert bounds([(0, 7, 2, 2)] * 4, 3) is None
    assert bounds([(0, 8, 2, 2)] * 4, 3) is not None


def test_edge_finding_in_both_directions() -> None:
    """Two tasks fill the resource from 0 to 4, or from 16 to 20: the third one is behind, or before."""
    full = [(0, 4, 2, 2), (0, 4, 2, 2), (0, 20, 3, 1)]
    assert bounds(full, 2)[2] == (4, 17)
    mirrored = [(16, 20, 2, 2), (16, 20, 2, 2), (0, 20, 3, 1)]
    assert bounds(mirrored, 2)[2] == (0, 13)


def test_two_that_exclude_each_other() -> None:
    """The second cannot be first: 8 + 5 > 10. Neither has a certain part."""
    assert bounds([(0, 15, 5, 2), (8, 17, 5, 2)], 3) == [(0, 7), (8, 12)]


def test_demands_and_durations_become_smaller() -> None:
    model = cp.Model()
    length, need = model.int_var(1, 9), model.int_var(1, 9)
    model.cumulative([0, 0, 4], [length, 2, 2], [1, need, 3], 3)
    assert model.propagated() == [[1, 2, 3, 4], [1, 2]]


def test_demand_of_a_task_that_may_last_no_time() -> None:
    model = cp.Model()
    length, need = model.int_var(0, 2), model.int_var(0, 9)
    model.cumulative([0], [length], [need], 3)
    assert found(model, [length, need]) == {(p, r) for p in range(3) for r in range(10) if p == 0 or r <= 3}


@pytest.mark.parametrize("is_mirrored", [False, True])
def test_tasks_that_share_a_start_but_not_a_duration(is_mirrored: bool) -> None:
    """Short tasks that exclude each other say nothing of longer ones with the same variables as their starts."""
    model = cp.Model()
    xs = model.int_vars(3, 0, 2)
    others, short = ([9 - x for x in xs], 1) if is_mirrored else (xs, 0)
    model.cumulative([*xs, *others], [2, 2, 2, short, short, short], [1, 1, 1, 2, 2, 2], 3)
    for x, value in zip(xs, (0, 1, 2), strict=True):
        model.add(x == value)
    assert model.solve().status == "feasible"


def test_a_constraint_and_its_condition_have_the_same_solutions() -> None:
    def solutions(is_condition: bool) -> set[tuple[int, ...]]:
        model = cp.Model()
        start, length, need, limit, here = (
            model.int_var(*ends) for ends in ((0, 1), (-1, 1), (-1, 2), (-1, 1), (0, 1))
        )
        overlap = cp.cumulative([start, 1], [length, 1], [need, 1], limit, [here, here])
        model.add(model.holds(overlap) == 1 if is_condition else overlap)
        return found(model, [start, length, need, limit, here])

    assert solutions(is_condition=True) == solutions(is_condition=False)
