"""Tasks in turn, boxes and reservoirs beside brute force, and what their filtering has to see."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elimina import cp
from elimina.errors import InputError
from tests import calls

from .brute import allowed, domains, found

Post = Callable[[cp.Model, Sequence[cp.Expression]], None]
Check = Callable[[tuple[int, ...]], bool]
Instance = tuple[list[list[int]], Post, Check]


def are_apart(boxes: Sequence[tuple[Sequence[int], Sequence[int]]], strict: bool, gaps: Any = None) -> bool:
    """Return whether each two boxes (places and sizes on each axis) have a gap on some axis."""
    for i, k in itertools.combinations(range(len(boxes)), 2):
        (a, m), (b, n) = boxes[i], boxes[k]
        if not strict and (0 in m or 0 in n):
            continue
        there, back = (gaps[i][k], gaps[k][i]) if gaps else (0, 0)
        if not any(x + s + there <= y or y + t + back <= x for x, s, y, t in zip(a, m, b, n, strict=True)):
            return False
    return all(size >= 0 for _, sizes in boxes for size in sizes)


def presence_domains(rng: random.Random, count: int) -> list[list[int]]:
    return [rng.choice([[1], [1], [0, 1]]) for _ in range(count)]


def random_tasks(rng: random.Random, transitions: bool) -> Instance:
    count, strict = rng.randint(2, 4), rng.random() < 0.5
    is_varied = rng.random() < 0.4
    sizes = domains(rng, count, rng.choice([-1, 0, 1]), 3)
    if not is_varied:
        sizes = [[rng.randint(0, 4)] for _ in range(count)]
    starts = domains(rng, count, 0, 5 if is_varied else 7)
    lists = [*starts, *sizes, *presence_domains(rng, count)]
    gaps = [[rng.randint(0, 2) for _ in range(count)] for _ in range(count)] if transitions else None

    def post(model: cp.Model, xs: Sequence[cp.Expression]) -> None:
        model.no_overlap(xs[:count], xs[count : 2 * count], xs[2 * count :], gaps, strict=strict)

    def check(v: tuple[int, ...]) -> bool:
        tasks = zip(v[:count], v[count : 2 * count], v[2 * count :], strict=True)
        keep = [i for i, (_, _, is_present) in enumerate(tasks) if is_present]
        some = [[gaps[i][k] for k in keep] for i in keep] if gaps else None
        return min(v[count : 2 * count]) >= 0 and are_apart(
            [((v[i],), (v[count + i],)) for i in keep], strict or transitions, some
        )

    return lists, post, check


def random_boxes(rng: random.Random) -> Instance:
    count, strict = rng.randint(2, 4), rng.random() < 0.5
    sizes = [[rng.choice([0, 1, 2, 3, 3])] for _ in range(2 * count)]
    if rng.random() < 0.3:
        sizes[0], sizes[count] = [0, 1, 2], [1, 3]
    places = domains(rng, 2 * count, 0, 2)
    lists = [*places, *sizes, *presence_domains(rng, count)]

    def post(model: cp.Model, xs: Sequence[cp.Expression]) -> None:
        parts = [xs[k * count : (k + 1) * count] for k in range(5)]
        model.no_overlap_2d(*parts, strict=strict)

    def check(v: tuple[int, ...]) -> bool:
        x, y, w, h, p = (v[k * count : (k + 1) * count] for k in range(5))
        return are_apart([((x[i], y[i]), (w[i], h[i])) for i in range(count) if p[i]], strict)

    return lists, post, check


def random_reservoir(rng: random.Random) -> Instance:
    count = rng.randint(1, 5)
    changes = [rng.choice([-3, -2, -1, 0, 1, 2, 3]) for _ in range(count)]
    least, greatest = -rng.randint(0, 3), rng.randint(0, 4)
    lists = [*domains(rng, count, -2, 2), *presence_domains(rng, count)]

    def post(model: cp.Model, xs: Sequence[cp.Expression]) -> None:
        model.reservoir(xs[:count], changes, least, greatest, xs[count:])

    def check(v: tuple[int, ...]) -> bool:
        events = list(zip(v[:count], changes, v[count:], strict=True))
        levels = [sum(c for t, c, p in events if p and t <= now) for now in v[:count]]
        return all(least <= level <= greatest for level in levels)

    return lists, post, check


MAKERS: dict[str, Callable[[random.Random], Instance]] = {
    "no_overlap": lambda rng: random_tasks(rng, False),
    "transition_times": lambda rng: random_tasks(rng, True),
    "no_overlap_2d": random_boxes,
    "reservoir": random_reservoir,
}
MODES: tuple[dict[str, Any], ...] = ({}, {"free": True}, {"free": True, "lns": True}, {"threads": 2})


@pytest.mark.parametrize("name", MAKERS)
def test_solutions_optima_and_domains(name: str) -> None:
    """Searches list all solutions and reach the optimum; propagation keeps each value that a solution uses."""
    narrowed = solvable = 0
    for seed in range(120):
        rng = random.Random(seed)
        lists, post, check = MAKERS[name](rng)
        model = cp.Model()
        xs = [model.int_var(values) for values in lists]
        post(model, xs)
        expected = allowed(lists, check)
        solvable += bool(expected)
        after = model.propagated()
        if after is None:
            assert not expected, seed
        else:
            narrowed += sum(map(len, after)) < sum(map(len, lists))
            for values in expected:
                assert all(v in d for v, d in zip(values, after, strict=True)), (seed, values)
        assert found(model, xs, **MODES[seed % 2]) == expected, seed
        factors = [rng.choice([-2, -1, 1, 3]) for _ in xs]
        model.minimize(model.sum(f * x for f, x in zip(factors, xs, strict=True)))
        result = calls.search(model, **MODES[seed % len(MODES)])
        best = min((sum(f * v for f, v in zip(factors, values, strict=True)) for values in expected), default=None)
        assert result.value == best, seed
        assert result.status == ("infeasible" if best is None else "optimal"), seed
    assert narrowed > 20
    assert solvable > 20


def test_large_times() -> None:
    """Times at the limit of integers do not overflow."""
    far = 2**51
    model = cp.Model()
    xs = [model.int_var([-far, 0, far]) for _ in range(3)]
    model.no_overlap(xs, [far] * 3)
    assert found(model, xs) == set(itertools.permutations([-far, 0, far]))


def windows(tasks: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]] | None:
    """Earliest starts and latest ends of tasks (earliest start, latest end, duration) after propagation."""
    model = cp.Model()
    xs = [model.int_var(start, end - size) for start, end, size in tasks]
    model.no_overlap(xs, [size for _, _, size in tasks])
    after = model.propagated()
    return None if after is None else [(d[0], d[-1] + t[2]) for d, t in zip(after, tasks, strict=True)]


def test_overload() -> None:
    """Three tasks of 4 do not fit between 0 and 11, though each two of them can be in either order."""
    assert windows([(0, 11, 4)] * 3) is None
    assert windows([(0, 12, 4)] * 3) is not None


def test_edges() -> None:
    """Two tasks fill 0 to 8, so the third is behind them, and before them if they fill the end."""
    assert windows([(0, 8, 4), (0, 8, 4), (0, 20, 3)]) == [(0, 8), (0, 8), (8, 20)]
    assert windows([(12, 20, 4), (12, 20, 4), (0, 20, 3)]) == [(12, 20), (12, 20), (0, 12)]


def test_detectable_precedences() -> None:
    """The third task precedes neither of the others, which together take until 10 (Vilim, 2007, section 2.3)."""
    after = windows([(0, 12, 5), (1, 13, 5), (7, 30, 7)])
    assert after is not None
    assert after[2][0] == 10


def test_not_last() -> None:
    """The third task cannot begin after both of the others, so it ends before the later one begins, by 10."""
    after = windows([(0, 14, 4), (0, 13, 4), (0, 11, 4)])
    assert after is not None
    assert after[2] == (0, 10)


def test_a_task_that_does_not_fit_is_absent() -> None:
    model = cp.Model()
    present = model.bool_var()
    model.no_overlap([model.int_var(0, 4), model.int_var(0, 4), model.int_var(0, 5)], [4, 4, 2], [1, 1, present])
    after = model.propagated()
    assert after is not None
    assert after[0] == [0]


def test_presences_may_be_conditions() -> None:
    model = cp.Model()
    x, start = model.int_var(0, 3), model.int_var(0, 1)
    model.no_overlap([start, 1], [2, 1], [x > 1, x < 3])
    assert found(model, [x, start]) == {(x, s) for x in range(4) for s in range(2) if x != 2}


def test_durations_end_before_the_next_task() -> None:
    model = cp.Model()
    length = model.int_var(1, 9)
    model.no_overlap([0, 4], [length, 2])
    assert model.propagated() == [[1, 2, 3, 4]]


def test_boxes_beside_a_wall() -> None:
    """A box of the full height has to be behind another one that lies at the wall."""
    model = cp.Model()
    x, y = model.int_var(0, 9), model.int_var(0, 1)
    model.no_overlap_2d([0, x], [0, y], [3, 2], [3, 2])
    assert model.propagated() == [list(range(3, 10)), [0, 1]]


def test_a_reservoir_is_filled_before_it_is_drained() -> None:
    model = cp.Model()
    delivery, sale, other = model.int_var(0, 9), model.int_var(0, 4), model.bool_var()
    model.reservoir([delivery, sale, 0], [3, -3, -1], 0, 3, [1, 1, other])
    assert model.propagated() == [list(range(5)), list(range(5)), [0]]


def test_free_search_proves_a_job_shop_by_orders() -> None:
    """ft06 (Fisher and Thompson, 1963) takes 55; the horizon makes a search by starts hopeless."""
    jobs = [
        *("2 1 0 3 1 6 3 7 5 3 4 6", "1 8 2 5 4 10 5 10 0 10 3 4", "2 5 3 4 5 8 0 9 1 1 4 7"),
        *("1 5 0 5 2 5 3 3 4 8 5 9", "2 9 1 3 4 5 5 4 0 3 3 1", "1 3 3 3 5 9 0 10 4 4 2 1"),
    ]
    model = cp.Model()
    machines: dict[int, list[tuple[cp.Expression, int]]] = {}
    ends = []
    for job in jobs:
        numbers = [int(word) for word in job.split()]
        end: Any = 0
        for machine, hours in zip(numbers[::2], numbers[1::2], strict=True):
            start = model.int_var(0, 10**6)
            model.add(start >= end)
            machines.setdefault(machine, []).append((start, hours))
            end = start + hours
        ends.append(end)
    for tasks in machines.values():
        model.no_overlap([start for start, _ in tasks], [hours for _, hours in tasks])
    model.minimize(model.maximum(ends))
    result = calls.search(model, free=True, fail_limit=20_000)
    assert (result.status, result.value) == ("optimal", 55)


@pytest.mark.parametrize(
    ("post", "message"),
    [
        (lambda m, x: m.no_overlap([x, x], [1]), "2 starts and 1 durations: each task has one of both"),
        (lambda m, x: m.no_overlap([x], [1], [1, 1]), "1 starts and 2 presences"),
        (lambda m, x: m.no_overlap([x], [-1]), "a duration is at least 0, not -1"),
        (lambda m, x: m.no_overlap([x], [0.5]), "a duration is a whole number or an expression, not 0.5"),
        (lambda m, x: m.no_overlap([x], [1], [x]), "no_overlap: _0 is from 0 to 3, and a condition is 0 or 1"),
        (lambda m, x: m.no_overlap([x], [2**60]), "2\\^52"),
        (lambda m, x: m.no_overlap([x, x], [1, 1], None, [0, 1]), r"shape \(2, 2\), not \(2,\)"),
        (lambda m, x: m.no_overlap([x, x], [1, 1], None, [[0, -1], [0, 0]]), "a transition time is at least 0, not -1"),
        (lambda m, x: m.no_overlap([x], [1], strict="yes"), "strict"),
        (lambda m, x: m.no_overlap_2d([x], [x, x], [1], [1]), "1 xs and 2 ys: each box"),
        (lambda m, x: m.no_overlap_2d([x], [x], [-2], [1]), "a width is at least 0, not -2"),
        (lambda m, x: m.no_overlap_2d([x], [x], [2], [-1]), "a height is at least 0, not -1"),
        (lambda m, x: m.reservoir([x], [1, 2], 0, 2), "1 times and 2 changes: each event"),
        (lambda m, x: m.reservoir([x], [1], 1, 2), "begins at 0, which is not within 1..2"),
        (lambda m, x: m.reservoir([x], [x], 0, 2), "a change is a whole number"),
        (
            lambda m, x: m.reservoir([x, x], [2**52, 1], 0, 2),
            "reservoir: the changes of the level add up to 4503599627370497, beyond 2",
        ),
    ],
)
def test_refused(post: Callable[[cp.Model, cp.Expression], None], message: str) -> None:
    model = cp.Model()
    x = model.int_var(0, 3)

    def act() -> None:
        post(model, x)
        model.solve()

    with pytest.raises((InputError, TypeError), match=message):
        act()


def test_nothing_to_place() -> None:
    model = cp.Model()
    model.no_overlap([], [])
    model.no_overlap([], [], [], [])
    model.no_overlap_2d([], [], [], [])
    model.reservoir([], [], 0, 0)
    assert model.solve().status == "feasible"


@pytest.mark.parametrize("options", [{}, {"free": True}, {"lns": True}, {"restarts": "none"}, {"threads": 2}], ids=str)
@pytest.mark.parametrize("kind", ["no_overlap", "cumulative", "no_overlap_2d"])
@pytest.mark.parametrize("seed", range(6))
def test_optional_tasks_agree_with_enumeration(kind: str, options: dict[str, Any], seed: int) -> None:
    """The most profitable choice of three tasks, each with a presence, a start and perhaps a duration to be chosen."""
    rng = random.Random(seed)
    profits = [rng.randint(1, 5) for _ in range(3)]
    lengths = [sorted({rng.randint(0, 3), rng.randint(1, 4)}) for _ in range(3)]
    optional = [rng.random() < 0.8 for _ in range(3)]
    demands, heights, rows = [[rng.randint(1, 3) for _ in range(3)] for _ in range(3)]
    horizon, capacity = 5, rng.randint(3, 4)

    def starts(length: int) -> range:
        return range(horizon - length + 1)

    best = None
    for present in itertools.product((0, 1), repeat=3):
        if any(not p and not o for p, o in zip(present, optional, strict=True)):
            continue
        for durations in itertools.product(*(range(x[0], x[-1] + 1) for x in lengths)):
            for begins in itertools.product(*map(starts, durations)):
                tasks = [(begins[i], durations[i], demands[i], rows[i], heights[i]) for i in range(3) if present[i]]
                value = sum(p * (profit + d) for p, profit, d in zip(present, profits, durations, strict=True))
                if are_allowed(kind, tasks, capacity) and (best is None or value > best):
                    best = value

    m = cp.Model()
    tasks = [
        m.interval_var((0, horizon), (x[0], x[-1]), optional=is_optional, name=f"task {i}")
        for i, (x, is_optional) in enumerate(zip(lengths, optional, strict=True))
    ]
    for task in tasks:
        m.add(task.end <= horizon)
    if kind == "no_overlap":
        m.no_overlap(tasks)
    elif kind == "cumulative":
        m.cumulative(tasks, demands=demands, capacity=capacity)
    else:
        sides = [m.interval_var(row, height) for row, height in zip(rows, heights, strict=True)]
        m.no_overlap_2d(tasks, sides)
    m.maximize(sum(task.presence * (profit + task.duration) for task, profit in zip(tasks, profits, strict=True)))
    result = calls.search(m, **options)
    assert (result.status, result.value) == (("infeasible", None) if best is None else ("optimal", best))
    for task in tasks if best is not None else ():
        begin = result[task.start]
        assert result[task] == ((begin, begin + result[task.duration]) if result[task.presence] else None)


def are_allowed(kind: str, tasks: Sequence[tuple[int, int, int, int, int]], capacity: int) -> bool:
    if kind == "cumulative":
        loads = [sum(r for s, d, r, _, _ in tasks if s <= time < s + d) for time in range(10)]
        return max(loads) <= capacity
    if kind == "no_overlap":
        return are_apart([((s,), (d,)) for s, d, _, _, _ in tasks], False)
    return are_apart([((s, y), (d, h)) for s, d, _, y, h in tasks], False)


def test_precedence_holds_between_present_tasks() -> None:
    m = cp.Model()
    first, second = (m.interval_var((0, 4), 2, optional=True) for _ in range(2))
    m.precedence(first, second, delay=1)
    seen = {(s[first], s[second]) for s in m.solve(all_solutions=True).solutions}
    spans = [(s, s + 2) for s in range(5)]
    both = {(a, b) for a in spans for b in spans if a[1] + 1 <= b[0]}
    assert seen == both | {(a, None) for a in spans} | {(None, b) for b in spans} | {(None, None)}


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m, x, t: m.no_overlap([t, x]), "is a task, and .* is not"),
        (lambda m, x, t: m.no_overlap([t], [3]), "have durations: leave the list of durations out"),
        (lambda m, x, t: m.no_overlap([t], presences=[1]), "have presences: leave the list of presences out"),
        (lambda m, x, t: m.no_overlap([x]), "is a start: give the durations, too"),
        (lambda m, x, t: m.cumulative([t, t], demands=[1], capacity=1), "2 starts and 1 demands: each task"),
        (lambda m, x, t: m.no_overlap_2d([t], [x], None, [1]), "intervals for both sides"),
        (lambda m, x, t: m.interval_var(x, (-1, 2)), "the duration .* may be negative"),
        (lambda m, x, t: m.interval_var((0, 1, 2), 2), "a pair of bounds"),
        (lambda m, x, t: m.interval_var(x, 1, optional=x), "a condition is 0 or 1"),
        (lambda m, x, t: m.precedence(x, t), "a task of precedence"),
    ],
)
def test_refused_intervals(act: Callable[[cp.Model, cp.Expression, cp.IntervalVar], object], message: str) -> None:
    m = cp.Model()
    with pytest.raises((InputError, TypeError), match=message):
        act(m, m.int_var(0, 9), m.interval_var((0, 9), 2))


DURATIONS: list[Callable[[cp.Model, list[cp.Expression], Any], None]] = [
    lambda model, starts, ones: model.cumulative(starts, ones, ones, 1),
    lambda model, starts, ones: model.no_overlap(starts, ones),
    lambda model, starts, ones: model.no_overlap_2d(starts, [0, 0], ones, ones),
]


@pytest.mark.parametrize("listed", [list, tuple, np.array])
@pytest.mark.parametrize("post", DURATIONS)
def test_durations_in_any_sequence(post: Any, listed: Callable[[list[int]], Any]) -> None:
    model = cp.Model()
    starts = model.int_vars(2, 0, 1)
    post(model, starts, listed([1, 1]))
    assert len(model.solve(all_solutions=True).solutions) == 2
    for wrong in ([], [1]):
        with pytest.raises(InputError):
            post(model, starts, listed(wrong))


def random_project(rng: random.Random) -> tuple[cp.Model, int | None]:
    """A model of tasks on two resources with precedences, and its least makespan by brute force."""
    count = rng.randint(2, 5)
    durations = [rng.randint(0, 3) for _ in range(count)]
    windows = [sorted(rng.sample(range(8), 2)) for _ in range(count)]
    demands = [[rng.randint(0, 4) for _ in range(count)] for _ in range(2)]
    capacities = [rng.randint(3, 5) for _ in range(2)]
    before = [(i, k, rng.randint(-1, 1)) for i, k in itertools.combinations(range(count), 2) if rng.random() < 0.4]
    model = cp.Model()
    starts = [model.int_var(lo, hi) for lo, hi in windows]
    for i, k, gap in before:
        model.add(starts[i] + durations[i] + gap <= starts[k])
    for demand, capacity in zip(demands, capacities, strict=True):
        model.cumulative(starts, durations, demand, capacity)
    model.minimize(model.maximum([s + d for s, d in zip(starts, durations, strict=True)]))

    def fits(v: tuple[int, ...]) -> bool:
        loads = (
            sum(d for s, t, d in zip(v, durations, demand, strict=True) if s <= time < s + t) <= capacity
            for demand, capacity in zip(demands, capacities, strict=True)
            for time in range(12)
        )
        return all(v[i] + durations[i] + gap <= v[k] for i, k, gap in before) and all(loads)

    ends = [
        max(s + d for s, d in zip(v, durations, strict=True))
        for v in itertools.product(*(range(lo, hi + 1) for lo, hi in windows))
        if fits(v)
    ]
    return model, min(ends, default=None)


def test_projects_beside_brute_force() -> None:
    for seed in range(150):
        model, best = random_project(random.Random(seed))
        for options in ({"restart_scale": 1}, {"free": True}, {"lns": True}, {"threads": 2, "restart_scale": 1}):
            result = calls.search(model, seed=seed, **options)
            expected = ("infeasible", None) if best is None else ("optimal", best)
            assert (result.status, result.value) == expected, (seed, options)


def test_exclusive_tasks_of_several_resources_bound_the_makespan() -> None:
    # Each two of the tasks exclude each other on another resource, which a small task shares; one pair by a precedence.
    model = cp.Model()
    starts, small = model.int_vars(9, 0, 80), model.int_var(0, 80)
    for pair in itertools.combinations(range(9), 2):
        if pair == (0, 1):
            model.add(starts[0] + 5 <= starts[1])
        else:
            model.cumulative([*(starts[i] for i in pair), small], [5, 5, 2], [2, 2, 1], 3)
    model.minimize(model.maximum([s + 5 for s in starts]))
    result = model.solve(options=cp.SearchOptions(fail_limit=1000))
    assert (result.status, result.value) == ("optimal", 45)


@pytest.mark.data
def test_job_shops_of_the_literature_are_proven(data_dir: Path) -> None:
    folder = data_dir / "jobshop"
    if not folder.exists():
        pytest.skip(f"the job shops are not in {folder}")
    for line in (folder / "optima.tsv").read_text().splitlines()[1:]:
        name, _, _, optimum = line.split("\t")
        if name == "ft10":  # takes 47,000 failures
            continue
        rows = [row.split() for row in (folder / name).read_text().splitlines() if not row.startswith("#")][1:]
        jobs = [list(zip(map(int, row[::2]), map(int, row[1::2]), strict=True)) for row in rows]
        horizon = sum(length for job in jobs for _, length in job)
        model = cp.Model()
        ends, users = [], {}
        for job in jobs:
            end = model.expression(0)
            for machine, length in job:
                start = model.int_var(0, horizon - length)
                model.add(start >= end)
                users.setdefault(machine, []).append((start, length))
                end = start + length
            ends.append(end)
        for tasks in users.values():
            model.no_overlap([start for start, _ in tasks], [length for _, length in tasks])
        model.minimize(model.maximum(ends))
        result = model.solve(options=cp.SearchOptions(fail_limit=20_000))
        assert (result.status, result.value) == ("optimal", int(optimum)), name
