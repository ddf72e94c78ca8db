"""AllDifferent beside brute force, and each domain after each call beside a textbook filter."""

from __future__ import annotations

import random

import pytest

from elimina import _core, cp

from .brute import allowed, domains, found, supported
from .filters import FILTERS, accelerated
from .regin import textbook


def test_textbook_is_brute_force() -> None:
    for seed in range(100):
        given = domains(random.Random(seed), 4, 0, 5)
        assert textbook(given) == supported(given, lambda v: len(set(v)) == len(v))


@pytest.mark.parametrize("consistency", ["value", "bounds", "domain"])
def test_solutions(consistency: str) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        given = domains(rng, rng.randint(1, 5), -2, 4)
        shifts = [rng.randint(-2, 2) for _ in given]
        signs = [rng.choice([-1, 1]) for _ in given]
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.all_different([s * x + b for s, x, b in zip(signs, xs, shifts, strict=True)], consistency)

        def check(v: tuple[int, ...]) -> bool:
            return len({s * x + b for s, x, b in zip(signs, v, shifts, strict=True)}) == len(v)  # noqa: B023

        assert found(model, xs, seed=seed) == allowed(given, check), given


def test_bounds_consistent() -> None:
    """Both bounds of each variable belong to a solution of the domains without their holes."""
    for seed in range(300):
        rng = random.Random(seed)
        ends = [sorted((rng.randint(0, 7), rng.randint(0, 7))) for _ in range(rng.randint(2, 5))]
        model = cp.Model()
        for lo, hi in ends:
            model.int_var(lo, hi)
        model.all_different([cp.Expression(model, {i: 1}) for i in range(len(ends))], "bounds")
        result = model.propagated()
        expected = supported([range(lo, hi + 1) for lo, hi in ends], lambda v: len(set(v)) == len(v))
        assert (result is None) == (expected is None), ends
        if expected is not None:
            assert [(d[0], d[-1]) for d in result] == [(d[0], d[-1]) for d in expected], ends


@pytest.mark.parametrize("kind", FILTERS)
@pytest.mark.parametrize(("count", "width"), [(3, 4), (6, 7), (12, 14), (40, 45), (70, 70), (64, 130)])
def test_domain_consistent(count: int, width: int, kind: str) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        base = rng.randint(-200, 200)
        few = rng.randint(1, min(width, rng.choice([3, 8, 20])))
        given = [sorted(base + v for v in rng.sample(range(width), rng.randint(1, few))) for _ in range(count)]
        if rng.random() < 0.8:
            hidden = rng.sample(range(width), count)
            given = [sorted({*d, base + v}) for d, v in zip(given, hidden, strict=True)]
        model = cp.Model()
        model.all_different([model.int_var(d) for d in given])
        solver = accelerated(model, kind)
        expected = textbook(given)
        assert solver.propagate() == (expected is not None), given
        assert expected is None or solver.domains() == expected, given


@pytest.mark.parametrize("kind", FILTERS)
@pytest.mark.parametrize(("count", "width", "degree"), [(5, 6, 4), (12, 13, 5), (30, 30, 6), (30, 70, 5), (70, 75, 8)])
def test_every_call_of_a_search(count: int, width: int, degree: int, kind: str) -> None:
    """Decisions at random, with backtracking: the propagator's own state has to follow."""
    for seed in range(6):
        rng = random.Random(seed)
        hidden = rng.sample(range(width), count)
        given = [sorted({*rng.sample(range(width), degree), v}) for v in hidden]
        model = cp.Model()
        shifts = [rng.randint(-90, 90) for _ in given]
        model.all_different([model.int_var([v - b for v in d]) + b for d, b in zip(given, shifts, strict=True)])
        solver = accelerated(model, kind)

        def values(solver: _core.CpSolver, shifts: list[int] = shifts) -> list[list[int]]:
            return [[v + b for v in d] for d, b in zip(solver.domains(), shifts, strict=True)]

        current = textbook(given)
        assert current is not None
        assert solver.propagate()
        assert values(solver) == current
        stack = [current]
        for _ in range(60):
            open_variables = [i for i, d in enumerate(stack[-1]) if len(d) > 1]
            if not open_variables or rng.random() < 0.3:
                if len(stack) > 1:
                    stack.pop()
                    solver.undo()
                    assert values(solver) == stack[-1]
                continue
            i = rng.choice(open_variables)
            value, keep = rng.choice(stack[-1][i]), rng.random() < 0.4
            after = [list(d) for d in stack[-1]]
            after[i] = [value] if keep else [v for v in after[i] if v != value]
            expected = textbook(after)
            assert solver.decide(i, value - shifts[i], keep) == (expected is not None)
            if expected is None:
                solver.undo()
                assert values(solver) == stack[-1]
                continue
            stack.append(expected)
            assert values(solver) == expected
        assert kind == "cpu" or solver.device_calls().count > 0


@pytest.mark.parametrize("kind", FILTERS)
def test_all_that_wait_at_once(kind: str) -> None:
    """Latin squares with holes: rows and columns are filtered together, to the same fixpoint as one by one."""
    for seed in range(8):
        rng = random.Random(seed)
        n = rng.choice([4, 6, 9])
        rows, columns = rng.sample(range(n), n), rng.sample(range(n), n)
        square = [(rows[k // n] + columns[k % n]) % n for k in range(n * n)]
        model = cp.Model()
        xs = [model.int_var(0, n - 1) if rng.random() < 0.6 else model.int_var(v, v) for v in square]
        for i in range(n):
            model.all_different(xs[i * n : i * n + n])
            model.all_different(xs[i::n])
        alone, together = accelerated(model, "cpu"), accelerated(model, kind)
        assert alone.propagate()
        assert together.propagate()
        assert together.domains() == alone.domains()
        for _ in range(40):
            current = alone.domains()
            open_variables = [i for i, d in enumerate(current) if len(d) > 1]
            i = rng.choice(open_variables or [0])
            value, keep = rng.choice(current[i]), rng.random() < 0.7
            holds = alone.decide(i, value, keep)
            assert together.decide(i, value, keep) == holds
            if not holds or not open_variables:
                alone.undo()
                together.undo()
            assert together.domains() == alone.domains()


@pytest.mark.parametrize("kind", FILTERS)
def test_two_views_on_a_device(kind: str) -> None:
    for seed in range(30):
        rng = random.Random(seed)
        model = cp.Model()
        xs = [model.int_var(d) for d in domains(rng, 8, 0, 19)]
        model.all_different([*xs, *(x + rng.randint(-3, 3) for x in xs[:4])])
        alone, together = accelerated(model, "cpu"), accelerated(model, kind)
        holds = alone.propagate()
        assert together.propagate() == holds
        assert not holds or together.domains() == alone.domains()


def test_same_variable_twice() -> None:
    model = cp.Model()
    x, y = model.int_vars(2, 0, 3)
    model.all_different([x, x + 1, y])
    assert found(model, [x, y]) == {(i, j) for i in range(4) for j in range(4) if j not in (i, i + 1)}
    model.all_different([x, x])
    assert model.solve().status == "infeasible"


@pytest.mark.parametrize("consistency", ["value", "bounds", "domain"])
def test_two_views_of_each_variable(consistency: str) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        given = domains(rng, 3, 0, 9)
        shifts = [rng.randint(-3, 3) for _ in given]
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.all_different([*xs, *(x + b for x, b in zip(xs, shifts, strict=True))], consistency)

        def check(v: tuple[int, ...]) -> bool:
            return len({*v, *(x + b for x, b in zip(v, shifts, strict=True))}) == 6  # noqa: B023

        assert found(model, xs, seed=seed) == allowed(given, check), (given, shifts)


def test_values_far_apart() -> None:
    model = cp.Model()
    xs = [model.int_var([0, 10**12]), model.int_var([0, 10**12]), model.int_var([0, 5, 10**12])]
    model.all_different(xs)
    assert found(model, xs) == {(0, 10**12, 5), (10**12, 0, 5)}


def test_except_0() -> None:
    for seed in range(40):
        given = domains(random.Random(seed), 4, -1, 3)
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.all_different_except_0(xs)
        assert found(model, xs) == allowed(given, lambda v: all(v.count(x) == 1 for x in v if x)), given


@pytest.mark.parametrize("consistency", ["value", "bounds", "domain"])
def test_queens(consistency: str) -> None:
    for n, count in enumerate([1, 0, 0, 2, 10, 4, 40, 92, 352, 724], start=1):
        model = cp.Model()
        queens = model.int_vars(n, 0, n - 1)
        model.all_different(queens, consistency)
        model.all_different([q + i for i, q in enumerate(queens)], consistency)
        model.all_different([q - i for i, q in enumerate(queens)], consistency)
        assert len(found(model, queens)) == count
