"""Each constraint over few variables, also reified and half-reified, on random domains beside brute force."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from elimina import cp
from elimina.errors import InputError

from .brute import allowed, domains, found, supported

Case = tuple[list[list[int]], Callable[[cp.Model, list[cp.Expression]], None], Callable[[tuple[int, ...]], bool]]


def quotient(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if x * y >= 0 else -1)


def power(x: int, y: int) -> int | None:
    if y < 0:
        return None if x == 0 else 0 if abs(x) > 1 else x ** (-y)
    return x**y


SIMPLE: dict[str, tuple[int, Callable[..., bool]]] = {
    "int_eq": (2, lambda x, y: x == y),
    "int_ne": (2, lambda x, y: x != y),
    "int_le": (2, lambda x, y: x <= y),
    "int_lt": (2, lambda x, y: x < y),
    "int_ge": (2, lambda x, y: x >= y),
    "int_gt": (2, lambda x, y: x > y),
    "int_plus": (3, lambda x, y, z: x + y == z),
    "int_minus": (3, lambda x, y, z: x - y == z),
    "int_times": (3, lambda x, y, z: x * y == z),
    "int_div": (3, lambda x, y, z: y != 0 and quotient(x, y) == z),
    "int_mod": (3, lambda x, y, z: y != 0 and x - y * quotient(x, y) == z),
    "int_pow": (3, lambda x, y, z: power(x, y) == z),
    "int_abs": (2, lambda x, y: abs(x) == y),
    "int_min": (3, lambda x, y, z: min(x, y) == z),
    "int_max": (3, lambda x, y, z: max(x, y) == z),
}
BOOLEAN: dict[str, tuple[int, Callable[..., bool]]] = {
    "bool_eq": (2, lambda a, b: a == b),
    "bool_ne": (2, lambda a, b: a != b),
    "bool_not": (2, lambda a, b: a != b),
    "bool_le": (2, lambda a, b: a <= b),
    "bool_lt": (2, lambda a, b: a < b),
    "bool2int": (2, lambda a, b: a == b),
    "bool_and": (3, lambda a, b, r: (a and b) == r),
    "bool_or": (3, lambda a, b, r: (a or b) == r),
    "bool_xor": (3, lambda a, b, r: (a != b) == r),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_simple(name: str) -> None:
    count, check = SIMPLE[name]
    for seed in range(40):
        rng = random.Random(seed)
        given = domains(rng, count, -6, 7)
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.post(name, *xs)
        assert found(model, xs, seed=seed) == allowed(given, lambda v: check(*v)), given


@pytest.mark.parametrize("name", BOOLEAN)
def test_boolean(name: str) -> None:
    count, check = BOOLEAN[name]
    model = cp.Model()
    xs = model.bool_vars(count)
    model.post(name, *xs)
    assert found(model, xs) == allowed([[0, 1]] * count, lambda v: check(*v))


@pytest.mark.parametrize("form", ["reif", "imp"])
@pytest.mark.parametrize("name", ["int_eq", "int_ne", "int_le", "int_lt", "int_ge", "int_gt"])
def test_reified(name: str, form: str) -> None:
    check = SIMPLE[name][1]
    for seed in range(30):
        rng = random.Random(seed)
        given = [*domains(rng, 2, -3, 4), rng.choice([[0], [1], [0, 1]])]
        model = cp.Model()
        x, y, b = (model.int_var(d) for d in given)
        model.post(f"{name}_{form}", x, y, b)
        compare = (lambda v: v[2] == check(*v[:2])) if form == "reif" else (lambda v: v[2] <= check(*v[:2]))
        assert found(model, [x, y, b]) == allowed(given, compare), given


def truncated(x: int, y: int) -> int:
    return abs(x) % abs(y) * (1 if x >= 0 else -1)


def test_remainders_of_a_constant_are_bounds_consistent() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        by = rng.choice([-1, 1]) * rng.randint(1, 9)
        sign = rng.choice([-1, 1])
        ends = [sorted(sign * v for v in rng.choices(range(size), k=2)) for size in (31, abs(by) + 1)]
        given = [list(range(lo, hi + 1)) for lo, hi in ends]
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.post("int_mod", xs[0], by, xs[1])
        after = model.propagated()
        expected = supported(given, lambda v: truncated(v[0], by) == v[1])  # noqa: B023
        assert (after is None) == (expected is None), (by, given)
        if after and expected:
            assert [(d[0], d[-1]) for d in after] == [(d[0], d[-1]) for d in expected], (by, given)


def test_absolute_values_are_bounds_consistent() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        given = [
            list(range(lo, hi + 1))
            for lo, hi in (sorted(rng.choices(range(-9, 10), k=2)), sorted(rng.choices(range(-3, 12), k=2)))
        ]
        model = cp.Model()
        x, z = (model.int_var(d) for d in given)
        model.post("int_abs", x, z)
        after, expected = model.propagated(), supported(given, lambda v: abs(v[0]) == v[1])
        assert (after is None) == (expected is None), given
        if after and expected:
            assert [(d[0], d[-1]) for d in after] == [(d[0], d[-1]) for d in expected], given
    model = cp.Model()
    x = model.int_var(-9, 4)
    assert model.bounds(abs(x)) == (0, 9)
    assert model.bounds(abs(x - 7)) == (3, 16)


def test_squares_have_the_roots_of_their_bounds() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        given = [
            list(range(lo, hi + 1))
            for lo, hi in (sorted(rng.choices(range(-9, 10), k=2)), sorted(rng.choices(range(-3, 99), k=2)))
        ]
        model = cp.Model()
        x, z = (model.int_var(d) for d in given)
        model.post("int_times", x, x, z)
        after, expected = model.propagated(), supported(given, lambda v: v[0] * v[0] == v[1])
        if after is None or expected is None:
            assert expected is None
        else:
            assert (after[0][0] ** 2 in after[1], after[0][-1] ** 2 in after[1]) == (True, True), given
            assert set(expected[0]) <= set(after[0])
            assert set(expected[1]) <= set(after[1])
        assert found(model, [x, z]) == allowed(given, lambda v: v[0] * v[0] == v[1])
    model = cp.Model()
    x, z = model.int_var(0, 2**40), model.int_var(10**12, 10**12 + 1)
    model.post("int_times", x, x, z)
    assert found(model, [x, z]) == {(10**6, 10**12)}


@pytest.mark.parametrize("form", ["", "_reif", "_imp"])
@pytest.mark.parametrize("name", ["eq", "ne", "le"])
def test_linear(name: str, form: str) -> None:
    compare = {"eq": int.__eq__, "ne": int.__ne__, "le": int.__le__}[name]
    for seed in range(60):
        rng = random.Random(seed)
        count = rng.randint(1, 4)
        factors = [rng.randint(-4, 4) for _ in range(count)]
        bound = rng.randint(-8, 8)
        given = [*domains(rng, count, -3, 4), [0, 1] if form else [1]]
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.post(f"int_lin_{name}{form}", factors, xs[:-1], bound, *([xs[-1]] if form else []))

        def check(v: tuple[int, ...]) -> bool:
            holds = compare(sum(f * x for f, x in zip(factors, v[:-1], strict=True)), bound)  # noqa: B023
            return v[-1] == holds if form == "_reif" else v[-1] <= holds

        assert found(model, xs) == allowed(given, check), (factors, bound, given)


@pytest.mark.parametrize("form", ["", "_reif", "_imp"])
def test_member(form: str) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        values = rng.sample(range(-5, 6), rng.randint(0, 6))
        given = [*domains(rng, 1, -4, 5), [0, 1] if form else [1]]
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.post(f"set_in{form}", xs[0], values, *([xs[1]] if form else []))

        def check(v: tuple[int, ...]) -> bool:
            return v[1] == (v[0] in values) if form == "_reif" else v[1] <= (v[0] in values)  # noqa: B023

        assert found(model, xs) == allowed(given, check), (values, given)


@pytest.mark.parametrize("form", ["", "_reif", "_imp"])
def test_clause(form: str) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        given = [rng.choice([[0], [1], [0, 1], [0, 1]]) for _ in range(5)]
        positive, negative = rng.sample(range(4), rng.randint(0, 4)), rng.sample(range(4), rng.randint(0, 4))
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.post(
            f"bool_clause{form}", [xs[i] for i in positive], [xs[i] for i in negative], *([xs[4]] if form else [])
        )

        def check(v: tuple[int, ...]) -> bool:
            holds = any(v[i] for i in positive) or any(not v[i] for i in negative)  # noqa: B023
            return holds if not form else v[4] == holds if form == "_reif" else v[4] <= holds

        assert found(model, xs) == allowed(given, check), (positive, negative, given)


ARRAYS: dict[str, Callable[[list[int], int], bool]] = {
    "array_bool_and": lambda xs, r: all(xs) == r,
    "array_bool_or": lambda xs, r: any(xs) == r,
    "array_bool_and_imp": lambda xs, r: all(xs) >= r,
    "array_bool_or_imp": lambda xs, r: any(xs) >= r,
    "array_int_maximum": lambda xs, r: max(xs) == r,
    "array_int_minimum": lambda xs, r: min(xs) == r,
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name: str) -> None:
    for seed in range(40):
        rng = random.Random(seed)
        is_bool = "bool" in name
        given = domains(rng, rng.randint(2, 5), 0 if is_bool else -3, 1 if is_bool else 2)
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.post(name, *((xs[:-1], xs[-1]) if is_bool else (xs[-1], xs[:-1])))
        assert found(model, xs) == allowed(given, lambda v: ARRAYS[name](list(v[:-1]), v[-1])), given


def test_every_name_is_a_constraint() -> None:
    names = cp.constraint_names()
    assert len(names) == len(set(names)) > 60
    for name in names:
        with pytest.raises(InputError, match=f"{name}: takes [1-6] arguments, found 0"):
            cp.Model().post(name)


def test_odd() -> None:
    model = cp.Model()
    xs = model.bool_vars(5)
    model.post("array_bool_xor", xs)
    assert found(model, xs) == allowed([[0, 1]] * 5, lambda v: sum(v) % 2 == 1)


@pytest.mark.parametrize("of_variables", [False, True])
def test_element(of_variables: bool) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        given = [*domains(rng, 1, -1, 5), *domains(rng, 1, -3, 4), *domains(rng, 4, -2, 3)]
        if not of_variables:
            given[2:] = [[rng.choice(d)] for d in given[2:]]
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        items = xs[2:] if of_variables else [d[0] for d in given[2:]]
        model.post("array_var_int_element" if of_variables else "array_int_element", xs[0], items, xs[1])
        check = lambda v: 1 <= v[0] <= 4 and v[1 + v[0]] == v[1]  # noqa: E731
        assert found(model, xs) == allowed(given, check), given


def test_views() -> None:
    """Scaled, negated and shifted variables are variables of their own to a constraint."""
    for seed in range(60):
        rng = random.Random(seed)
        given = domains(rng, 3, -4, 4)
        scales, offsets = [rng.choice([-3, -1, 1, 2]) for _ in given], [rng.randint(-3, 3) for _ in given]
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        views = [a * x + b for a, x, b in zip(scales, xs, offsets, strict=True)]
        name = rng.choice(["int_times", "int_plus", "int_max", "int_div", "int_mod"])
        model.post(name, *views)

        def check(v: tuple[int, ...]) -> bool:
            return SIMPLE[name][1](*(a * x + b for a, x, b in zip(scales, v, offsets, strict=True)))  # noqa: B023

        assert found(model, xs) == allowed(given, check), (name, scales, offsets, given)


@pytest.mark.parametrize("form", ["", "_reif", "_imp"])
@pytest.mark.parametrize("name", ["int_eq", "int_ne", "int_le", "int_lt"])
def test_two_views_of_one_variable(name: str, form: str) -> None:
    for seed in range(60):
        rng = random.Random(seed)
        given = [*domains(rng, 1, -5, 6), [0, 1] if form else [1]]
        (a, b), (c, e) = ((rng.choice([-2, -1, 1, 2]), rng.randint(-4, 4)) for _ in range(2))
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.post(name + form, a * xs[0] + b, c * xs[0] + e, *([xs[1]] if form else []))

        def check(v: tuple[int, ...]) -> bool:
            holds = SIMPLE[name][1](a * v[0] + b, c * v[0] + e)  # noqa: B023
            return v[1] == holds if form == "_reif" else v[1] <= holds

        assert found(model, xs) == allowed(given, check), (a, b, c, e, given)


def test_same_variable_twice() -> None:
    model = cp.Model()
    x, z = model.int_var(-5, 5), model.int_var(0, 30)
    model.post("int_times", x, x, z)
    assert found(model, [x, z]) == {(i, i * i) for i in range(-5, 6)}


def test_huge_domains() -> None:
    model = cp.Model()
    x, y = model.int_vars(2, -(2**50), 2**50)
    for value in range(-3, 4):
        model.add(x != value)
    model.add(x >= -3)
    model.add(x <= 6)
    model.add(x == y + 2**49)
    assert found(model, [x, y]) == {(i, i - 2**49) for i in (4, 5, 6)}


def test_gaps_of_huge_domains() -> None:
    model = cp.Model()
    x = model.int_var([-(2**45), 0, 17, 2**45])
    model.add(x != 0)
    assert found(model, [x]) == {(-(2**45),), (17,), (2**45,)}


def test_remainder_of_huge_domains_ends() -> None:
    model = cp.Model()
    x, z = model.int_var(0, 2**40), model.int_var(3, 3)
    model.post("int_mod", x, 2**30, z)
    model.add(x > 2**39)
    assert model.solve()[x] == 2**39 + 3


def test_operators() -> None:
    model = cp.Model()
    x, y, b, c = model.int_var(-3, 3), model.int_var(-3, 3), model.bool_var(), model.bool_var()
    values = {
        "sum": 2 * x - y + 1,
        "product": x * y,
        "absolute": abs(x),
        "and": b & c,
        "or": b | ~c,
        "max": model.maximum([x, y]),
    }
    model.add(values["sum"] >= 0)
    model.add(x > y, iff=b)
    solutions = model.solve(all_solutions=True).solutions
    assert len(solutions) == 2 * sum(2 * i - j + 1 >= 0 for i in range(-3, 4) for j in range(-3, 4))
    for s in solutions:
        i, j, k, m = s[[x, y, b, c]]
        assert [s[v] for v in values.values()] == [2 * i - j + 1, i * j, abs(i), k & m, k | (1 - m), max(i, j)]
        assert k == (i > j)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("int_eq", [1, [2, 3]], "argument 2 is one value, not 2"),
        ("int_lin_eq", [[1, 2], [3], 4], "2 and 1 elements"),
        ("int_eq_reif", [1, 2, 3], "a Boolean is 0 or 1"),
        ("int_lin_le", [[2**50, 2**50, 2**50], [2**20] * 3, 2**50], "2\\^61"),
        ("array_int_maximum", [1, []], "no variables"),
    ],
)
def test_refused(name: str, arguments: list[object], message: str) -> None:
    model = cp.Model()
    model.post(name, *arguments)
    with pytest.raises(InputError, match=message):
        model.solve()


def test_errors_name_the_culprit() -> None:
    model, other = cp.Model(), cp.Model()
    x, y = model.int_var(0, 3, "x"), other.int_var(0, 3, "y")
    late, large = other.int_vars(2, 0, 3, "z")[1], model.int_var(-3, 2**50, "large")
    for act, message in [
        (lambda: x * late, r"z\[1\] belongs to another model"),
        (lambda: model.maximum([x, late]), r"z\[1\] belongs to another model"),
        (lambda: model.bounds(y), "y belongs to another model"),
        (lambda: large * (x + 2), r"\(large\) \* \(x \+ 2\) is from -15 to 5629499534213120, beyond -2\^52\.\.2\^52"),
        (lambda: model.int_var(4, 3, "w"), "variable w has no value: 4 is above 3"),
        (lambda: model.int_var([], name="w"), "variable w has no value"),
        (lambda: model.int_var(0, 2**60), "beyond"),
        (lambda: x + y, "x and y belong to different models"),
        (lambda: x * 1.5, "a factor is a whole number or an expression, not 1.5"),
        (lambda: model.add(1), "gets a condition such as x < y, or a Boolean expression, not 1"),
        (lambda: bool(x == 1), "^x == 1 is a constraint"),
        (lambda: 1 <= x <= 2, "^x >= 1 is a constraint"),
        (lambda: model.add(y == 1), "y .*belongs to another model"),
        (lambda: model.add(x == 1, iff=x, only_if=x), "give one of them"),
        (lambda: model.post("int_eq", x, "a"), "not 'a'"),
        (lambda: model.post("int_sq", x), "unknown constraint int_sq"),
        (lambda: model.post("int_times_reif", 1, 2, 3, 1), "unknown constraint int_times_reif"),
        (lambda: model.post("int_eq", x), "int_eq: takes 2 arguments, found 1"),
        (lambda: model.add(x * math.factorial(30) == 1), "beyond 2"),
        (lambda: model.clause([3]), "^clause: a condition is 0 or 1, not 3"),
        (lambda: model.clause([], [x]), "^clause: x is from 0 to 3, and a condition is 0 or 1: compare it, as x != 0"),
        (lambda: model.any_of([x]), "^any_of: x is from 0 to 3"),
        (lambda: model.all_of([1, 5]), "^all_of: a condition is 0 or 1, not 5"),
        (lambda: model.no_overlap([x], [1], [x]), "^no_overlap: x is from 0 to 3"),
        (lambda: model.no_overlap_2d([x], [x], [1], [1], [2]), "^no_overlap_2d: a condition is 0 or 1, not 2"),
        (lambda: model.cumulative([x], [1], [1], 2, [x]), "^cumulative: x is from 0 to 3"),
        (lambda: model.cumulative([x], [1], [1], [2]), r"a capacity is a whole number or an expression, not \[2\]"),
        (lambda: model.reservoir([x], [1], 0, 2, [x]), "^reservoir: x is from 0 to 3"),
        (lambda: model.reservoir([x], [2**60], 0, 2), "^reservoir: a change is 1152921504606846976, beyond"),
        (lambda: model.reservoir([x], [1], 0, 2**60), "^reservoir: max_level is 1152921504606846976, beyond"),
        (lambda: model.member(x, [x]), "^member: a value is a whole number or an expression, not x"),
        (lambda: model.cardinality([x], {x: 1}), "^cardinality: a value is a whole number or an expression, not x"),
        (lambda: model.table([x, x], [(1, x)]), "^table: a value is a whole number or an expression, not x"),
        (lambda: model.regular(3, [{0: 0}], 0, [0]), "^regular gets a list of variables or numbers, not 3"),
        (lambda: model.count([x], [1, 2]), r"^a value is a whole number or an expression, not \[1, 2\]"),
        (lambda: model.inverse([x, x], [x]), "^inverse: 2 xs and 1 ys: give as many of both"),
        (lambda: model.bin_packing_load([1], [x, x], [1]), "^bin_packing_load: 2 bins and 1 sizes"),
        (lambda: model.bin_packing_load([1], [x], [-1]), "^bin_packing_load: a size is at least 0, not -1"),
        (lambda: model.bin_packing_load([1], [x, x], [2**52, 1]), "^bin_packing_load: the sizes add up to 4503"),
        (lambda: model.weighted_circuit([x, x], {(0, 1): 1}), "^weighted_circuit: 2 nodes: a circuit has at least"),
        (
            lambda: model.weighted_circuit([x, x, x], {(0, 3): 1}),
            r"^weighted_circuit: the edge \(0, 3\) is not between",
        ),
        (lambda: model.weighted_circuit([x, x, x], {(0, 1): 1, (1, 0): 1}), r"the edge \(1, 0\) is given twice"),
        (lambda: model.weighted_circuit([x, x, x], {(0, 1): 2**51}), "^the length of a weighted_circuit is from 6755"),
        (lambda: model.all_different([8 * large, x]), r"^8\*large is from -24 to 9007199254740992, beyond -2\^52"),
        (lambda: model.maximum([8 * large, x]), r"^a function of 8\*large, x is from 0 to 9007199254740992, beyond"),
        (lambda: model.minimize(x + 8 * large), r"^x \+ 8\*large is from -24 to 9007199254740995, beyond"),
        (lambda: model.add_cost([x], {(2**63,): 1}), "^add_cost: a value is 9223372036854775808, beyond"),
    ]:
        with pytest.raises(InputError, match=message):
            act()


def test_sum_of_three_is_domain_consistent_where_that_is_asked_for() -> None:
    """MiniZinc asks for it where an array of two dimensions is looked up."""
    for seed in range(150):
        rng = random.Random(seed)
        given = domains(rng, 3, -2, 5)
        factors = [rng.choice([-9, -3, -2, -1, 1, 2, 5]) for _ in given]
        total = rng.randint(-6, 6)
        model = cp.Model()
        xs = [model.int_var(d) for d in given]
        model.post("int_lin_eq_domain", factors, xs, total)
        expected = supported(given, lambda v: sum(a * x for a, x in zip(factors, v, strict=True)) == total)  # noqa: B023
        if all(len(d) > 1 for d in given):
            assert model.propagated() == expected, (given, factors, total)
        assert found(model, xs, seed=seed) == allowed(
            given,
            lambda v: sum(a * x for a, x in zip(factors, v, strict=True)) == total,  # noqa: B023
        )


def test_names_are_unique():
    """Two variables of one name would be one in a solution."""
    model = cp.Model()
    model.int_vars(2, 0, 3, "x")
    for again in (lambda: model.int_var(5, 9, "x[1]"), lambda: model.int_vars(2, 0, 3, "x")):
        with pytest.raises(InputError, match=r"two variables are named 'x\[[01]\]': give each a different name"):
            again()
    model.int_vars(2, 0, 1)
    assert dict(model.solve().assignment) == {"x[0]": 0, "x[1]": 0}


def test_texts_of_expressions_and_relations() -> None:
    """Factors of 1 are left out, and the constant of a relation is on the right."""
    model = cp.Model()
    x, y = model.int_var(0, 3, "x"), model.int_var(0, 3, "y")
    texts = {
        "x": x,
        "-x": -x,
        "2*x - y - 3": 2 * x - y - 3,
        "-x + y + 1": 1 - x + y,
        "0": x - x,
        "-4": x - x - 4,
        "x >= 1": x >= 1,
        "x <= 0": x < 1,
        "x - y == 0": x == y,
        "x + 3*y != 2": x + 3 * y != 2,
        "x + y >= 2": -x - y <= -2,
        "-2 <= 0": (x - x) <= 2,
    }
    assert {str(made) for made in texts.values()} == set(texts)
    assert all(str(made) == text for text, made in texts.items())


@pytest.mark.parametrize("truth", [True, False, np.True_, np.False_])
def test_decided_conditions(truth):
    """A comparison of numbers, such as sum([]) <= 3, is a condition as any other."""
    model = cp.Model()
    b = model.bool_var("b")
    model.add(truth, iff=b)
    assert [s[b] for s in model.solutions()] == [int(truth)]
    model = cp.Model()
    b = model.bool_var("b")
    model.add(truth, only_if=b)
    assert [s[b] for s in model.solutions()] == ([0, 1] if truth else [0])
    model.add(truth)
    assert model.solve().status == ("feasible" if truth else "infeasible")
