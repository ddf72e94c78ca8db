"""Conflicts: named constraints that contradict each other, of which none can be left out."""

from __future__ import annotations

import contextlib
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina import InputError, TimeLimitError, cp
from elimina.cp.conflicts import minimal_conflict


@given(st.integers(0, 9), st.lists(st.sets(st.integers(0, 8), max_size=4), max_size=4))
def test_a_conflict_is_minimal(count: int, conflicts: list[set[int]]) -> None:
    """A part is infeasible if it has all names of one of some sets."""
    names = [str(number) for number in range(count)]

    def is_infeasible(part: list[str]) -> bool:
        return any({str(number) for number in conflict} <= set(part) for conflict in conflicts)

    if not is_infeasible(names):
        return
    found = minimal_conflict(names, is_infeasible)
    assert is_infeasible(found)
    for name in found:
        assert not is_infeasible([other for other in found if other != name])


@pytest.mark.parametrize("seed", range(25))
def test_conflicts_of_random_models_agree_with_enumeration(seed: int) -> None:
    rng = random.Random(seed)
    model = cp.Model()
    xs = model.int_vars(3, 0, 3)
    factors = {f"row {row}": [rng.randint(-2, 2) for _ in xs] for row in range(7)}
    least = {name: rng.randint(-1, 5) for name in factors}
    for name, row in factors.items():
        with model.named(name):
            model.add(sum(factor * x for factor, x in zip(row, xs, strict=True)) - xs[0] * 0 >= least[name])

    def has_solution(names: tuple[str, ...]) -> bool:
        return any(
            all(sum(a * b for a, b in zip(factors[name], values, strict=True)) >= least[name] for name in names)
            for values in itertools.product(range(4), repeat=3)
        )

    conflict = model.conflict()
    if conflict is None:
        assert has_solution(tuple(factors))
        return
    assert conflict.is_minimal
    assert not has_solution(conflict.names)
    for name in conflict.names:
        assert has_solution(tuple(other for other in conflict.names if other != name))


def test_blocks_of_one_name_belong_together_and_others_are_always_there() -> None:
    model = cp.Model()
    x, y = model.int_vars(2, 0, 5)
    model.add(x + y == 5)
    for variable in (x, y):
        with model.named("small"):
            model.add(variable <= 2)
    with model.named("unneeded"):
        model.add(x != 1)
    model.minimize(x)
    assert model.conflict() == (("small",), True)
    assert model.solve().status == "infeasible"
    model.add(x > 5)
    assert model.conflict() == ((), True)


def test_a_model_with_a_solution_has_no_conflict() -> None:
    model = cp.Model()
    x = model.int_var(0, 5)
    with model.named("large"):
        model.add(x >= 5)
    assert model.conflict() is None
    assert cp.Model().conflict() is None


def test_errors() -> None:
    model = cp.Model()
    x = model.int_var(0, 5)
    with pytest.raises(InputError, match="a string that is not empty, not ''"), model.named(""):
        pass
    with pytest.raises(InputError, match="not 3"), model.named(3):  # type: ignore[arg-type]
        pass
    with contextlib.suppress(ZeroDivisionError), model.named("half"):
        model.add(x > 5)
        model.add(x > 1 // 0)
    assert model.conflict() == (("half",), True)
    with pytest.raises(TimeLimitError, match="allow more time"):
        model.conflict(time_limit=1e-9)
    with pytest.raises((InputError, TypeError), match="time_limit"):
        model.conflict(time_limit="long")  # type: ignore[arg-type]


def test_a_conflict_in_no_time_says_that_it_may_not_be_minimal(monkeypatch: pytest.MonkeyPatch) -> None:
    model = cp.Model()
    xs = model.int_vars(3, 0, 1)
    for number, x in enumerate(xs):
        with model.named(str(number)):
            model.add(x == 1)
    model.add(sum(xs) <= 1)
    statuses = iter([0.0, 0.0])
    solve = cp.Model.solve

    def solve_twice(part: cp.Model, **options: object) -> cp.Result:
        options["time_limit"] = None if next(statuses, 1.0) == 0.0 else 1e-9
        return solve(part, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(cp.Model, "solve", solve_twice)
    conflict = model.conflict(time_limit=10)
    assert conflict is not None
    assert not conflict.is_minimal
    assert len(conflict.names) >= 2
