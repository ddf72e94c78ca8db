"""Constraints over many variables beside brute force: solutions, and domains where a consistency is promised."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import elimina
from elimina import cp
from elimina.errors import InputError

from .brute import allowed, domains, found, supported


def made(given: Sequence[Sequence[int]]) -> tuple[cp.Model, list[cp.Expression]]:
    model = cp.Model()
    return model, [model.int_var(d) for d in given]


def cycles(successors: Sequence[int]) -> list[int]:
    """Lengths of the cycles of a permutation that are longer than 1."""
    lengths, seen = [], set()
    for start in range(len(successors)):
        length, i = 0, start
        while i not in seen:
            seen.add(i)
            i, length = successors[i], length + 1
        if length > 1:
            lengths.append(length)
    return lengths


def is_permutation(v: Sequence[int]) -> bool:
    return sorted(v) == list(range(len(v)))


@pytest.mark.parametrize("name", ["circuit", "subcircuit"])
def test_circuits(name: str) -> None:
    for seed in range(80):
        rng = random.Random(seed)
        count = rng.randint(1, 5)
        given = domains(rng, count, -1 if seed % 3 == 0 else 0, count if seed % 3 == 0 else count - 1)
        if rng.random() < 0.5:
            given = [sorted({*d, *rng.sample(range(count), count // 2)}) for d in given]
        model, xs = made(given)
        getattr(model, name)(xs)

        def check(v: tuple[int, ...]) -> bool:
            if not is_permutation(v):
                return False
            return (cycles(v) == [len(v)] or len(v) == 1) if name == "circuit" else len(cycles(v)) <= 1

        assert found(model, xs, seed=seed) == allowed(given, check), given


def test_table_is_domain_consistent() -> None:
    for seed in range(150):
        rng = random.Random(seed)
        given = domains(rng, rng.randint(1, 4), -2, 3)
        rows = {tuple(rng.randint(-3, 4) for _ in given) for _ in range(rng.choice([0, 1, 5, 30, 150]))}
        model, xs = made(given)
        model.table(xs, rows)
        assert model.propagated() == supported(given, rows.__contains__), (given, rows)
        assert found(model, xs, seed=seed) == allowed(given, rows.__contains__)


def test_starred_table_is_domain_consistent() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        given = domains(rng, rng.randint(1, 4), -2, 3)
        share = rng.choice([0.1, 0.5, 0.9])
        count = rng.choice([1, 2, 5, 30, 150])
        rows = [[None if rng.random() < share else rng.randint(-3, 4) for _ in given] for _ in range(count)]

        def check(values: tuple[int, ...], rows: list[list[int | None]] = rows) -> bool:
            return any(all(cell in (None, x) for cell, x in zip(row, values, strict=True)) for row in rows)

        model, xs = made(given)
        model.table(xs, rows)
        assert model.propagated() == supported(given, check), (given, rows)
        assert found(model, xs, seed=seed) == allowed(given, check)
        assert elimina.solve(model.to_model(), task="count").value == len(allowed(given, check))
        condition, ys = made(given)
        condition.add(cp.table(ys, rows))
        assert found(condition, ys, seed=seed) == allowed(given, check)


@pytest.mark.parametrize(("library", "maker"), [("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")])
@pytest.mark.parametrize("post", [cp.Model.table, lambda model, xs, rows: model.add(cp.table(xs, rows))])
def test_the_rows_of_a_data_frame_are_tuples(library, maker, post) -> None:
    rows = [(0, 2, 3), (4, 0, 1), (3, 1, 0)]
    frame = getattr(pytest.importorskip(library), maker)(
        {name: [row[i] for row in rows] for i, name in enumerate("abc")}
    )
    model, xs = made([range(5)] * 3)
    post(model, xs, frame)
    assert found(model, xs) == set(rows)


def test_stars_of_wide_domains_and_repeated_variables() -> None:
    model = cp.Model()
    x, y = model.int_var(0, 10**9), model.int_var(0, 9)
    model.table([x, y], [(None, 3), (5, None)])
    model.add(y != 3)
    assert model.solve()[x] == 5
    model = cp.Model()
    x, y = model.int_vars(2, 0, 3)
    model.table([x, x, y], [(1, None, 2), (None, 0, None)])
    assert found(model, [x, y]) == {(1, 2), *((0, k) for k in range(4))}


def test_table_far_values_and_repeated_variables() -> None:
    model = cp.Model()
    x = model.int_var(-(2**40), 2**40)
    y = model.int_var(0, 5)
    model.table([x, y, y], [(2**39, 1, 1), (-(2**40), 2, 2), (7, 3, 4), (5, 9, 9)])
    assert found(model, [x, y]) == {(2**39, 1), (-(2**40), 2)}


def accepts(moves: Sequence[dict[int, int]], ends: Sequence[int], word: Sequence[int]) -> bool:
    """Return whether an automaton that begins in state 0 accepts a word."""
    state: int | None = 0
    for symbol in word:
        state = None if state is None else moves[state].get(symbol)
    return state in ends


def test_regular_is_domain_consistent() -> None:
    for seed in range(100):
        rng = random.Random(seed)
        states, symbols = rng.randint(1, 4), range(-1, 3)
        moves = [{s: rng.randrange(states) for s in symbols if rng.random() < 0.6} for _ in range(states)]
        ends = rng.sample(range(states), rng.randint(0, states))
        given = domains(rng, rng.randint(1, 4), -2, 3)
        model, xs = made(given)
        model.regular(xs, moves, 0, ends)

        check = functools.partial(accepts, moves, ends)
        assert model.propagated() == supported(given, check), (moves, ends, given)
        assert found(model, xs) == allowed(given, check)


@pytest.mark.parametrize("factor", [5000, 2**19, 2**40])
def test_regular_with_symbols_far_apart(factor: int) -> None:
    """Neither the tables nor the search grow with the values between the symbols."""
    for seed in range(30):
        rng = random.Random(seed)
        moves = [{s: rng.randrange(3) for s in range(-1, 3) if rng.random() < 0.6} for _ in range(3)]
        far_moves = [{factor * s: to for s, to in row.items()} for row in moves]
        ends = rng.sample(range(3), 2)
        given = domains(rng, 3, -2, 3)
        model, xs = made([[factor * value for value in domain] for domain in given])
        model.regular(xs, far_moves, 0, ends)
        is_accepted = model.bool_var()
        model.add(cp.regular([xs[0], xs[1]], far_moves, 0, ends), iff=is_accepted)
        expected = {
            (*(factor * value for value in word), int(accepts(moves, ends, word[:2])))
            for word in itertools.product(*given)
            if accepts(moves, ends, word)
        }
        assert found(model, [*xs, is_accepted]) == expected
        assert sum(np.size(argument) for _, arguments in model.posted().constraints for argument in arguments) < 2000


def test_regular_at_every_call_of_a_search() -> None:
    """Long words and many states, decisions at random with backtracking, beside states that lead from start to end."""
    for seed, states in itertools.product(range(8), (3, 70, 130)):
        rng = random.Random(seed)
        moves = [{s: rng.randrange(states) for s in range(4) if rng.random() < 0.7} for _ in range(states)]
        ends = set(rng.sample(range(states), states // 2 + 1))

        def textbook(given: list[list[int]]) -> list[list[int]] | None:
            layers = [{0}]
            for d in given:
                layers.append({moves[q][s] for q in layers[-1] for s in d if s in moves[q]})  # noqa: B023
            layers[-1] &= ends  # noqa: B023
            kept = []
            for i in reversed(range(len(given))):
                steps = {(q, s) for q in layers[i] for s in given[i] if moves[q].get(s) in layers[i + 1]}  # noqa: B023
                layers[i] = {q for q, _ in steps}
                kept.append(sorted({s for _, s in steps}))
            return kept[::-1] if layers[0] else None

        given = [[0, 1, 2, 3]] * 15
        model, xs = made(given)
        model.regular(xs, moves, 0, ends)
        solver, _ = model._build()
        stack = [textbook(given)]
        assert solver.propagate() == (stack[0] is not None)
        while stack[-1] is not None and len(stack) < 40:
            assert solver.domains() == stack[-1]
            open_places = [i for i, d in enumerate(stack[-1]) if len(d) > 1]
            if not open_places:
                break
            i = rng.choice(open_places)
            value, keep = rng.choice(stack[-1][i]), rng.random() < 0.2
            after = [list(d) for d in stack[-1]]
            after[i] = [value] if keep else [v for v in after[i] if v != value]
            stack.append(textbook(after))
            assert solver.decide(i, value, keep) == (stack[-1] is not None)
            if stack[-1] is None or rng.random() < 0.3:
                stack.pop()
                solver.undo()


def test_element_is_domain_consistent() -> None:
    for seed in range(100):
        rng = random.Random(seed)
        items = [rng.randint(-3, 3) for _ in range(rng.randint(1, 6))]
        given = [*domains(rng, 1, -1, 6), *domains(rng, 1, -4, 4)]
        model, (index, z) = made(given)
        model.post("array_int_element", index + 1, items, z)
        expected = supported(given, lambda v: 0 <= v[0] < len(items) and items[v[0]] == v[1])  # noqa: B023
        assert model.propagated() == expected, (items, given)


def test_element() -> None:
    model = cp.Model()
    x, y, index = model.int_var(0, 3), model.int_var(5, 6), model.int_var(-3, 9)
    z = model.element([x, 4, y], index)
    assert found(model, [x, y, index, z]) == {
        (a, b, i, (a, 4, b)[i]) for a, b, i in itertools.product(range(4), (5, 6), range(3))
    }


@pytest.mark.parametrize("spread", [1, 10**5])
def test_element_at_every_call_of_a_search(spread: int) -> None:
    """Decisions on both variables, at the ends and between, with backtracking; values apart leave holes of z alone."""
    for seed in range(60):
        rng = random.Random(seed)
        items = [spread * rng.randint(-6, 6) for _ in range(rng.choice([3, 9, 70, 140]))]
        given = [list(range(len(items))), sorted({*items, *(spread * v for v in range(-7, 8))})]

        def textbook(index: list[int], z: list[int]) -> list[list[int]] | None:
            rows = [i for i in index if items[i] in z]  # noqa: B023
            return [rows, sorted({items[i] for i in rows})] if rows else None  # noqa: B023

        model, (index, z) = made(given) if spread == 1 else made([given[0], [0]])
        if spread > 1:
            z = model.int_var(given[1][0], given[1][-1])
        model.post("array_int_element", index + 1, items, z)
        solver, _ = model._build()
        numbers = [next(iter(x.terms)) for x in (index, z)]
        stack = [textbook(*given)]
        assert solver.propagate() == (stack[0] is not None)
        for _ in range(60):
            top = stack[-1]
            assert top is not None
            assert solver.values_of(numbers[0]) == top[0]
            assert solver.bounds_of(numbers[1]) == (top[1][0], top[1][-1])
            if spread == 1:
                assert solver.values_of(numbers[1]) == top[1]
            which = rng.choice([0, 0, 1])
            value, keep = rng.choice([top[which][0], top[which][-1], rng.choice(top[which])]), rng.random() < 0.1
            after = list(top)
            after[which] = [value] if keep else [v for v in top[which] if v != value]
            stack.append(textbook(*after))
            assert solver.decide(numbers[which], value, keep) == (stack[-1] is not None)
            while stack[-1] is None or (len(stack) > 1 and rng.random() < 0.2):
                stack.pop()
                solver.undo()


def test_element_of_itself() -> None:
    for seed in range(100):
        rng = random.Random(seed)
        items = [rng.randint(-1, 7) for _ in range(6)]
        model, (x,) = made(domains(rng, 1, -1, 7))
        given = model.propagated()
        assert given is not None
        model.post("array_int_element", x + 1, items, x)
        assert found(model, [x]) == {(v,) for v in given[0] if 0 <= v < 6 and items[v] == v}, items


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64, list])
def test_element_of_a_row_of_numbers(kind: Any) -> None:
    """A row is copied; values beyond 32 bits stay what they are."""
    for factor in (1, 2**33) if kind in (np.int64, list) else (1,):
        row = [factor * v for v in (5, -3, 5, 9)]
        items = list(row) if kind is list else np.array(row, kind)
        model = cp.Model()
        index = model.int_var(0, 3)
        z = model.element(items, index)
        items[1] = 7
        assert found(model, [index, z]) == set(enumerate(row))
    with pytest.raises(InputError, match="whole number"):
        model.element(np.array([0.5]), index)


def test_sum() -> None:
    model = cp.Model()
    x, y = model.int_vars(2, 0, 2)
    total = model.sum([x, 2 * y, x, 3, -x])
    assert (total.terms, total.constant) == ((x + 2 * y).terms, 3)
    assert model.sum([]).terms == {}
    with pytest.raises(InputError, match="belongs to another model"):
        model.sum([x, cp.Model().int_var(0, 1)])


def test_element_of_variables_is_domain_consistent() -> None:
    for seed in range(150):
        rng = random.Random(seed)
        given = [*domains(rng, 1, -1, 3), *domains(rng, 1, -4, 4), *domains(rng, 3, -3, 5)]
        model, (index, z, *items) = made(given)
        model.post("array_var_int_element", index + 1, items, z)
        check = lambda v: 0 <= v[0] < 3 and v[2 + v[0]] == v[1]  # noqa: E731
        assert model.propagated() == supported(given, check), given
        assert found(model, [index, z, *items], seed=seed) == allowed(given, check), given


def test_element_of_variables_far_apart_has_bounds_of_what_is_possible() -> None:
    for seed in range(150):
        rng = random.Random(seed)
        scale = rng.choice([1, 700])
        given = [*domains(rng, 1, 0, 3), *([scale * v for v in d] for d in domains(rng, 5, 0, 9))]
        given[1] = list(range(given[1][0], given[1][0] + 800))
        given[2:] = [list(range(d[0], d[-1] + 1)) for d in given[2:]]
        model, (index, z, *items) = made(given)
        model.post("array_var_int_element", index + 1, items, z)
        meet = [i for i in given[0] if max(given[1][0], given[2 + i][0]) <= min(given[1][-1], given[2 + i][-1])]
        after = model.propagated()
        assert (after is None) == (not meet)
        if after is None:
            continue
        lo = max(given[1][0], min(given[2 + i][0] for i in meet))
        hi = min(given[1][-1], max(given[2 + i][-1] for i in meet))
        assert (after[0], after[1][0], after[1][-1]) == (meet, lo, hi), given
        picks = [sorted(rng.sample(d, min(len(d), 2))) for d in given[1:]]
        check = lambda v: v[2 + v[0]] == v[1]  # noqa: E731
        model, (index, z, *items) = made([given[0], *picks])
        model.post("array_var_int_element", index + 1, items, z)
        assert found(model, [index, z, *items], seed=seed) == allowed([given[0], *picks], check), (given[0], picks)


def test_element_of_variables_far_apart_and_repeated() -> None:
    given = [[0, 1, 2], [0, 1, 2, 10**6]]
    model, (index, x) = made(given)
    model.post("array_var_int_element", index + 1, [x, index, 10**6], x)
    assert found(model, [index, x]) == {(0, v) for v in given[1]} | {(1, 1), (2, 10**6)}


@pytest.mark.parametrize("fixed", [False, True])
def test_count(fixed: bool) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        given = [*domains(rng, 4, 0, 3), *domains(rng, 1, -1, 4), *domains(rng, 1, -1, 5)]
        if fixed:
            given[4] = given[4][:1]
        model, xs = made(given)
        model.post("count_eq", xs[:4], given[4][0] if fixed else xs[4], xs[5])
        assert found(model, xs, seed=seed) == allowed(given, lambda v: v[:4].count(v[4]) == v[5]), given


def test_count_of_itself() -> None:
    """A magic sequence of 5: each number says how often its place occurs."""
    model = cp.Model()
    xs = model.int_vars(5, 0, 5)
    model.cardinality(xs, dict(enumerate(xs)))
    assert found(model, xs) == {(2, 1, 2, 0, 0)}


@pytest.mark.parametrize("closed", [False, True])
def test_cardinality(closed: bool) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        given = [*domains(rng, 4, 0, 3), *domains(rng, 2, 0, 3)]
        model, xs = made(given)
        model.cardinality(xs[:4], {1: xs[4], 3: xs[5]}, closed)

        def check(v: tuple[int, ...]) -> bool:
            return (v[:4].count(1), v[:4].count(3)) == v[4:] and (not closed or set(v[:4]) <= {1, 3})

        assert found(model, xs) == allowed(given, check), given


@pytest.mark.parametrize("closed", ["", "_closed"])
def test_cardinality_of_a_value_that_is_listed_twice(closed: str) -> None:
    for seed in range(60):
        given = [*domains(random.Random(seed), 3, 0, 3), *domains(random.Random(seed + 99), 3, 0, 3)]
        model, xs = made(given)
        model.post(f"global_cardinality{closed}", xs[:3], [1, 3, 1], xs[3:])

        def check(v: tuple[int, ...]) -> bool:
            ones, threes = v[:3].count(1), v[:3].count(3)
            return v[3:] == (ones, threes, ones) and (not closed or set(v[:3]) <= {1, 3})

        assert found(model, xs) == allowed(given, check), given


def test_distinct_values() -> None:
    for seed in range(60):
        given = [*domains(random.Random(seed), 4, 0, 3), *domains(random.Random(seed + 99), 1, 0, 5)]
        model, xs = made(given)
        model.post("nvalue", xs[4], xs[:4])
        assert found(model, xs) == allowed(given, lambda v: len(set(v[:4])) == v[4]), given


@pytest.mark.parametrize("name", ["lex_less", "lex_lesseq"])
def test_lexicographic(name: str) -> None:
    for seed in range(80):
        rng = random.Random(seed)
        split = rng.randint(1, 3)
        given = domains(rng, split + rng.randint(1, 3), 0, 2)
        model, xs = made(given)
        getattr(model, name)(xs[:split], xs[split:])

        def check(v: tuple[int, ...]) -> bool:
            return v[:split] < v[split:] if name == "lex_less" else v[:split] <= v[split:]  # noqa: B023

        assert found(model, xs) == allowed(given, check), given
        ends = [range(d[0], d[-1] + 1) for d in given]
        wide, _ = (made(ends)[0], None)
        getattr(wide, name)(
            *[[cp.Expression(wide, {i: 1}) for i in part] for part in (range(split), range(split, len(ends)))]
        )
        assert wide.propagated() == supported(ends, check), ends


def test_inverse() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        given = domains(rng, 6, -1, 3)
        if seed % 2:
            given = [[0, 1, 2] for _ in given]
        model, xs = made(given)
        model.inverse(xs[:3], xs[3:])

        def check(v: tuple[int, ...]) -> bool:
            return all(0 <= x < 3 for x in v) and all(
                (v[i] == j) == (v[3 + j] == i) for i in range(3) for j in range(3)
            )

        assert found(model, xs) == allowed(given, check), given


def test_bin_packing() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        sizes = [rng.randint(0, 4) for _ in range(4)]
        given = [*domains(rng, 2, 0, 12), *domains(rng, 4, -1, 2)]
        model, xs = made(given)
        model.bin_packing_load(xs[:2], xs[2:], sizes)

        def check(v: tuple[int, ...]) -> bool:
            inside = all(0 <= b < 2 for b in v[2:])
            return inside and all(sum(s for s, b in zip(sizes, v[2:], strict=True) if b == k) == v[k] for k in range(2))  # noqa: B023

        assert found(model, xs) == allowed(given, check), (sizes, given)


@pytest.mark.parametrize("scale", [1, 70, 5000])
def test_bins_are_domain_consistent_each(scale: int) -> None:
    """A knapsack is domain consistent while its items have few sums, and bounds consistent beyond."""
    narrowed = 0
    for seed in range(80):
        rng = random.Random(seed)
        sizes = [scale * rng.randint(1, 6) + rng.choice([0, 1]) for _ in range(5)]
        given = [*domains(rng, 5, 0, 2), *(sorted(rng.choices(range(sum(sizes) + 1), k=2)) for _ in range(3))]
        given[5:] = [list(range(d[0], d[1] + 1)) for d in given[5:]]
        model, xs = made(given)
        model.bin_packing_load(xs[5:], xs[:5], sizes)
        after = model.propagated()
        inside = lambda v, k: sum(s for s, b in zip(sizes, v, strict=True) if b == k)  # noqa: B023, E731
        assignments = [v for v in itertools.product(*given[:5]) if all(inside(v, k) in given[5 + k] for k in range(3))]
        if after is None:
            assert not assignments
            continue
        assert all(set(column) <= set(d) for column, d in zip(zip(*assignments, strict=True), after[:5], strict=False))
        for k in range(3) if scale < 5000 else ():
            loads = after[5 + k]
            fits = [v for v in itertools.product(*after[:5]) if loads[0] <= inside(v, k) <= loads[-1]]
            assert {inside(v, k) for v in fits} >= {loads[0], loads[-1]}, (sizes, given, after)
            for i, d in enumerate(after[:5]):
                assert {v[i] == k for v in fits} == {b == k for b in d}, (sizes, given, after)
        narrowed += after != given
    assert narrowed > 10


@pytest.mark.parametrize(
    ("post", "message"),
    [
        (lambda m, x: m.table([x, x], [(1, 2, 3)]), "3 values for 2 variables"),
        (lambda m, x: m.regular([x], [{0: 1}], 0, [0]), "no state 1"),
        (lambda m, x: m.regular([x], [{i: 0} for i in range(10001)], 0, [0]), "10,001 states times 10,001 symbols"),
        (lambda m, x: m.all_different([x], "arc"), "value, bounds or domain, not 'arc'"),
        (lambda m, x: m.element([], x), "no items"),
        (lambda m, x: m.inverse([x], []), "1 xs and 0 ys"),
        (lambda m, x: m.cumulative([x], [1, 2], [1], 2), "1 starts and 2 durations"),
        (lambda m, x: m.bin_packing_load([x], [x], [-1]), "a size is at least 0"),
        (lambda m, x: m.post("regular", [x], 2, 1, [1], 1, [1]), "a row for each state"),
        (lambda m, x: m.post("regular", [x], 1, 1, [2], 1, [1]), "no state 2"),
        (lambda m, x: m.post("table_int", [x, x], [1, 2, 3]), "each row"),
        (lambda m, x: m.post("table_int", [], []), "each row"),
    ],
)
def test_refused(post: object, message: str) -> None:
    model = cp.Model()
    x = model.int_var(0, 3)

    def act() -> None:
        post(model, x)  # type: ignore[operator]
        model.solve()

    with pytest.raises(InputError, match=message):
        act()


@pytest.mark.parametrize(
    "post",
    [
        lambda m, x: m.all_different(x),
        lambda m, x: m.all_different(5),
        lambda m, x: m.circuit(None),
        lambda m, x: m.element(5, x),
        lambda m, x: m.table(x, [(1,)]),
        lambda m, x: m.table([x], 3),
        lambda m, x: m.table([x], [1, 2]),
        lambda m, x: m.regular([x], None, 0, [0]),
        lambda m, x: m.regular([x], [[0, 1]], 0, [0]),
        lambda m, x: m.regular([x], [{"a": 0}], 0, [0]),
        lambda m, x: m.regular([x], [{0: 0}], 0, 0),
        lambda m, x: m.count(x, 1),
        lambda m, x: m.cardinality([x], [1, 2]),
        lambda m, x: m.distinct_values(x),
        lambda m, x: m.cumulative(x, 1, 1, 1),
        lambda m, x: m.lex_less(x, x),
        lambda m, x: m.inverse(x, x),
        lambda m, x: m.bin_packing_load(x, x, 3),
        lambda m, x: m.maximum(3),
        lambda m, x: m.all_of(x),
        lambda m, x: m.clause(1),
        lambda m, x: m.member(x, 1),
        lambda m, x: m.search(x),
        lambda m, x: m.int_vars(-1, 0, 3),
    ],
)
def test_wrong_types_are_refused_at_once(post: object) -> None:
    model = cp.Model()
    x = model.bool_var("x")
    with pytest.raises(InputError) as error:
        post(model, x)  # type: ignore[operator]
    assert "\n" not in str(error.value)


def test_lists_may_be_generators_and_arrays() -> None:
    model = cp.Model()
    xs = model.int_vars(2, 0, 2)
    model.all_different(x for x in xs)
    z = model.element((k for k in (5, 6, 7)), xs[0])
    model.table((x for x in np.array(xs)), np.array([[0, 1], [1, 1], [2, 0]]))
    assert found(model, [*xs, z]) == {(0, 1, 5), (2, 0, 7)}
    positive = 1 & model.holds(np.int64(1) <= xs[0])
    assert found(model, [*xs, positive]) == {(0, 1, 0), (2, 0, 1)}


def test_empty_arrays() -> None:
    """Constraints over nothing hold, or not, but never crash."""
    for name in ("all_different", "all_different_except_0", "circuit", "subcircuit"):
        model = cp.Model()
        getattr(model, name)([])
        assert model.solve().status == "feasible"
    model = cp.Model()
    model.lex_lesseq([], [])
    model.inverse([], [])
    model.cumulative([], [], [], 3)
    model.bin_packing_load([], [], [])
    model.post("array_bool_and", [], 1)
    model.post("nvalue", 0, [])
    model.post("count_eq", [], 1, 0)
    assert model.solve().status == "feasible"
    model.lex_less([], [])
    assert model.solve().status == "infeasible"


@pytest.mark.parametrize("name", ["all_different", "all_different_except_0", "circuit", "subcircuit"])
def test_variables_that_are_not_in_a_list(name):
    model = cp.Model()
    x, y = model.int_vars(2, 0, 1)
    given = (x, y) if name != "all_different_except_0" else (x,)
    with pytest.raises(InputError, match=f"^{name} gets a list of variables or numbers, not _0$"):
        getattr(model, name)(*given)
