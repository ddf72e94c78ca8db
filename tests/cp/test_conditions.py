"""Conditions: what Python's operators on the values say, in constraints, as Booleans, negated and reified."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina import InputError, cp

SIZES = (4, 3, 2)
COMPARISONS = (operator.eq, operator.ne, operator.le, operator.lt, operator.ge, operator.gt)
Formula = Callable[[Sequence[Any], bool], Any]
"""Gets variables and makes a condition, or their values and makes a bool."""


def solutions(model: cp.Model, xs: Sequence[cp.Expression]) -> list[tuple[int, ...]]:
    """All solutions, sorted, as often as they come."""
    return sorted(tuple(solution[x] for x in xs) for solution in model.solutions())


def comparison(place: int, compare: Callable[[Any, Any], Any], number: int) -> Formula:
    return lambda xs, _: compare(xs[place] + xs[(place + 1) % 3], number)


def combined(connective: str, one: Formula, other: Formula) -> Formula:
    def of(xs: Sequence[Any], is_model: bool) -> Any:
        a, b = one(xs, is_model), other(xs, is_model)
        if connective == "implies":
            return a.implies(b) if is_model else not a or b
        return {"and": operator.and_, "or": operator.or_, "xor": operator.xor, "iff": operator.eq}[connective](a, b)

    return of


def negated(formula: Formula) -> Formula:
    return lambda xs, is_model: ~formula(xs, True) if is_model else not formula(xs, False)


def counted(formulas: list[Formula], compare: Callable[[Any, Any], Any], number: int) -> Formula:
    return lambda xs, is_model: compare(sum(formula(xs, is_model) for formula in formulas), number)


LEAVES = st.one_of(
    st.builds(comparison, st.integers(0, 2), st.sampled_from(COMPARISONS), st.integers(-1, 5)),
    st.just(lambda xs, is_model: xs[2] if is_model else bool(xs[2])),
)
FORMULAS = st.recursive(
    LEAVES,
    lambda parts: st.one_of(
        st.builds(combined, st.sampled_from(["and", "or", "xor", "iff", "implies"]), parts, parts),
        st.builds(negated, parts),
        st.builds(counted, st.lists(parts, min_size=1, max_size=3), st.sampled_from(COMPARISONS), st.integers(0, 3)),
    ),
    max_leaves=6,
)


@given(FORMULAS, st.sampled_from(["add", "iff", "only_if", "holds", "sum"]))
def test_conditions_are_those_of_python(formula: Formula, use: str) -> None:
    model = cp.Model()
    xs = [model.int_var(0, size - 1) for size in SIZES]
    condition, b = formula(xs, True), model.bool_var()
    if use == "add":
        model.add(condition)
        model.add(b == 1)
    elif use in ("iff", "only_if"):
        model.add(condition, **{use: b})
    elif use == "holds":
        model.add(model.holds(condition) == b)
    else:
        model.add(sum([condition, condition]) == 2 * b)
    expected = [
        (*values, boolean)
        for values in itertools.product(*map(range, SIZES))
        for boolean in (0, 1)
        if {"add": (formula(values, False) and boolean), "only_if": (formula(values, False) or not boolean)}.get(
            use, formula(values, False) == boolean
        )
    ]
    assert solutions(model, [*xs, b]) == expected


@given(FORMULAS, st.tuples(*(st.integers(0, size - 1) for size in SIZES)))
def test_solutions_say_whether_a_condition_holds(formula: Formula, values: tuple[int, ...]) -> None:
    model = cp.Model()
    xs = [model.int_var(0, size - 1) for size in SIZES]
    condition = formula(xs, True)
    for x, value in zip(xs, values, strict=True):
        model.add(x == value)
    found = model.solve()
    assert found[condition] == formula(values, False)
    assert found[[condition, *xs]] == [formula(values, False), *values]


@given(
    st.tuples(st.integers(-7, 7), st.integers(0, 5)),
    st.one_of(st.integers(-4, 4), st.tuples(st.integers(-4, 4), st.integers(0, 4))),
    st.booleans(),
)
def test_division_rounds_down_as_in_python(x: tuple[int, int], y: int | tuple[int, int], is_reversed: bool) -> None:
    model = cp.Model()
    xs = [x if isinstance(x, int) else model.int_var(x[0], x[0] + x[1]) for x in (x, y)]
    numbers = [(x,) if isinstance(x, int) else range(x[0], x[0] + x[1] + 1) for x in (x, y)]
    if is_reversed:
        xs.reverse()
        numbers.reverse()
    if numbers[1] == (0,):
        with pytest.raises(InputError, match=r"// 0: the divisor is 0"):
            divmod(*xs)
        return
    q, r = model.int_vars(2, -20, 20)
    quotient, remainder = divmod(*xs)
    model.add(quotient == q)
    model.add(remainder == r)
    model.add(xs[0] // xs[1] == q)
    model.add(xs[0] % xs[1] == r)
    variables = [x for x in (*xs, q, r) if isinstance(x, cp.Expression)]
    expected = [
        (*(value for value, x in zip((a, b), xs, strict=True) if isinstance(x, cp.Expression)), *divmod(a, b))
        for a in numbers[0]
        for b in numbers[1]
        if b
    ]
    assert solutions(model, variables) == sorted(expected)


@given(st.tuples(st.integers(-4, 3), st.integers(0, 4)), st.tuples(st.integers(0, 3), st.integers(0, 2)))
def test_powers_are_those_of_python(base: tuple[int, int], exponent: tuple[int, int]) -> None:
    model = cp.Model()
    x, y = (model.int_var(lo, lo + more) for lo, more in (base, exponent))
    power, square = x**y, x**2
    cube_of_two = 2**y
    expected = [
        (a, b, a**b, a**2, 2**b) for a in range(base[0], sum(base) + 1) for b in range(exponent[0], sum(exponent) + 1)
    ]
    assert solutions(model, [x, y, power, square, cube_of_two]) == sorted(expected)


def test_a_negation_is_pushed_to_the_comparisons() -> None:
    model = cp.Model()
    x, y = model.int_var(0, 5, "x"), model.int_var(0, 5, "y")
    assert str(~((x < y) & (x == 3))) == "(-x + y <= 0) | (x != 3)"
    assert str((x < 2).implies(y == 1) & (x != y)) == "((x >= 2) | (y == 1)) & (x - y != 0)"


def test_a_condition_takes_one_boolean_however_often_it_is_used() -> None:
    model = cp.Model()
    x = model.int_var(0, 5, "x")
    condition = x > 3
    assert condition.truth is condition.truth
    before = model.bool_var().terms
    model.maximize(sum([condition, condition]) + 3 * condition)
    assert next(iter(model.bool_var().terms)) == next(iter(before)) + 1
    assert model.solve().value == 5


def test_conditions_in_functions_and_constraints() -> None:
    model = cp.Model()
    x, y = model.int_vars(2, 0, 4)
    model.clause([x > 2, y > 2], [x == y])
    model.add(model.all_of([x > 0, y > 0]) == 1)
    model.add(model.element([3, 4], x > 1) == y)
    assert solutions(model, [x, y]) == [(1, 3), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m, x, b: (x < 2) & x, r"^x is from 0 to 5, and a condition is 0 or 1: compare it, as x != 0"),
        (lambda m, x, b: b.implies(x), "^x is from 0 to 5"),
        (lambda m, x, b: m.add(x), "^x is from 0 to 5"),
        (lambda m, x, b: m.add(x < 2, only_if=x), "^x is from 0 to 5"),
        (lambda m, x, b: m.add(x < 2, iff=3), "^a condition is 0 or 1, not 3"),
        (lambda m, x, b: (x < 2) | "no", "^a condition is a whole number or an expression, not 'no'"),
        (lambda m, x, b: (x < 2) | 3, "^a condition is 0 or 1, not 3"),
        (lambda m, x, b: (x < 2) and b, r"^x <= 1 is a constraint.* combine conditions by &"),
        (lambda m, x, b: not ((x < 2) | (b == 1)), r"^\(x <= 1\) \| \(b == 1\) is a constraint"),
        (lambda m, x, b: (1 - x) ** (b - 1), "the exponent is from -1; Model.power takes negative ones"),
        (lambda m, x, b: (x + 10) ** 60, r"up to 15 \*\* 60, beyond 2\^52"),
        (lambda m, x, b: 5 % (b - b), "the divisor is 0"),
        (lambda m, x, b: m.add((x < 2) & (cp.Model().bool_var("c") == 1)), "c - 1 belongs to another model"),
    ],
)
def test_errors_name_the_culprit(act: Callable[..., Any], message: str) -> None:
    model = cp.Model()
    x, b = model.int_var(0, 5, "x"), model.bool_var("b")
    with pytest.raises(InputError, match=message):
        act(model, x, b)
