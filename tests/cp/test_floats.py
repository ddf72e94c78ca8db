"""Float variables of FlatZinc, against exact arithmetic."""

from __future__ import annotations

import itertools
import math
import operator
import random
import re
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest

from elimina._core import FlatZinc
from elimina.cp.flatzinc_bounds import FlatZincBounds
from tests.cp import float_models
from tests.seeds import run_seed

RELATIONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "le": operator.le, "lt": operator.lt, "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip
TOLERANCE = Fraction(1, 10**5)


def shown(text: str) -> list[dict[str, str]]:
    """Return all solutions of a model, or each better one, as the solver prints them."""
    model = FlatZinc(text.encode(), lambda: True)
    search = model.search(False, 0, math.inf, 1, False, lambda: True)
    solutions = []
    while (state := search.next(lambda: True)) == "solution":
        solutions.append(dict(re.findall(r"(\w+) = (.*);", model.show(search).decode())))
    assert state == "complete"
    return solutions


def bounded(text: str) -> tuple[dict[str, str] | None, Fraction | None]:
    """Return the best solution of a search whose bounds are improved after each solution, and its bound."""
    model = FlatZinc(text.encode(), lambda: True)
    search = model.search(False, 0, math.inf, 1, False, lambda: True, True)
    bounds = FlatZincBounds(model, lambda: True)
    best = None
    state = "complete" if bounds.add(search, None, math.inf) else search.next(lambda: True)
    while state == "solution":
        best = dict(re.findall(r"(\w+) = (.*);", model.show(search).decode()))
        is_closed = bounds.add(search, model.objective(search), math.inf)
        state = "complete" if is_closed else search.next(lambda: True)
    assert state == "complete"
    bound = model.bound(search)
    return best, None if bound is None else Fraction(bound, 10**model.objective_decimals)


def number(text: str) -> Fraction:
    return Fraction({"true": 1, "false": 0}.get(text, text))


def decimal(rng: random.Random, least: int = -30) -> str:
    return str(rng.choice([1.0, -1.0, 0.5, 2.25, rng.randint(least, 30) / 10, rng.randint(least * 10, 300) / 100]))


class ExactModel:
    """A random model whose floats follow from integers.

    Attributes:
        lines: Items of the model.
        rules: Functions of the values so far that return the value of a new variable, or whether a constraint holds.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.integers = {f"x{i}": (rng.randint(-3, 0), rng.randint(0, 3)) for i in range(3)}
        self.lines = [f"var {lo}..{hi}: {name} :: output_var;" for name, (lo, hi) in self.integers.items()]
        self.constraints: list[str] = []
        self.floats: list[str] = []
        self.rules: list[tuple[str | None, Callable[[dict[str, Fraction]], Fraction | bool | None]]] = []
        for name in self.integers:
            self.float(f"int2float({name}, %s)", lambda values, x=name: values[x])
        for _ in range(rng.randint(2, 5)):
            self.add_definition()
        for _ in range(rng.randint(1, 4)):
            self.add_comparison()
        rng.shuffle(self.constraints)

    def float(self, constraint: str, rule: Callable[[dict[str, Fraction]], Fraction | None]) -> None:
        name = f"f{len(self.floats)}"
        bounds = self.rng.choice(["float", "-1000.0..1000.0"])
        self.lines.append(f"var {bounds}: {name} :: output_var;")
        self.constraints.append(constraint % name)
        self.floats.append(name)
        self.rules.append((name, rule))

    def operand(self) -> tuple[str, Callable[[dict[str, Fraction]], Fraction]]:
        if self.rng.random() < 0.2:
            constant = decimal(self.rng)
            return constant, lambda values: Fraction(constant)
        name = self.rng.choice(self.floats)
        return name, lambda values: values[name]

    def total(self, count: int) -> tuple[list[str], list[str], Callable[[dict[str, Fraction]], Fraction]]:
        factors = [decimal(self.rng) for _ in range(count)]
        operands = [self.operand() for _ in range(count)]
        return (
            factors,
            [name for name, _ in operands],
            lambda values: sum(
                (Fraction(a) * value(values) for a, (_, value) in zip(factors, operands, strict=True)), Fraction(0)
            ),
        )

    def add_definition(self) -> None:
        rng = self.rng
        (a, left), (b, right), (c, third) = self.operand(), self.operand(), self.operand()
        kind = rng.choice(["sum", "sum", "plus", "minus", "times", "max", "min", "most", "abs", "items", "constants"])
        if kind == "sum":
            factors, names, total = self.total(rng.randint(1, 3))
            own, bound = rng.choice(["-1.0", "2.0", "0.5", "-4.0"]), decimal(rng)
            self.float(
                f"float_lin_eq([{', '.join([*factors, own])}], [{', '.join(names)}, %s], {bound})",
                lambda values: (Fraction(bound) - total(values)) / Fraction(own),
            )
        elif kind == "plus":
            self.float(f"float_plus({a}, {b}, %s)", lambda values: left(values) + right(values))
        elif kind == "minus":
            self.float(f"float_minus({a}, {b}, %s)", lambda values: left(values) - right(values))
        elif kind == "times":
            x, y = rng.sample(self.floats[:3], 2)
            self.float(f"float_times({x}, {y}, %s)", lambda values: values[x] * values[y])
        elif kind in ("max", "min"):
            best: Callable[..., Fraction] = max if kind == "max" else min
            self.float(f"float_{kind}({a}, {b}, %s)", lambda values: best(left(values), right(values)))
        elif kind == "most":
            self.float(
                f"array_float_maximum(%s, [{a}, {b}, {c}])",
                lambda values: max(left(values), right(values), third(values)),
            )
        elif kind == "abs":
            self.float(f"float_abs({a}, %s)", lambda values: abs(left(values)))
        else:
            index = rng.choice(list(self.integers))
            items = [(a, left), (b, right), (c, third)]
            if kind == "constants":
                items = [(text, lambda values, text=text: Fraction(text)) for text in [decimal(rng) for _ in range(3)]]
            name = "array_float_element" if kind == "constants" else "array_var_float_element"
            self.float(
                f"{name}({index}, [{', '.join(text for text, _ in items)}], %s)",
                lambda values: items[int(values[index]) - 1][1](values) if 1 <= values[index] <= 3 else None,
            )

    def add_comparison(self) -> None:
        rng = self.rng
        relation, bound = rng.choice(list(RELATIONS)), decimal(rng)
        factors, names, total = self.total(rng.randint(1, 3))
        text = f"float_lin_{relation}%s([{', '.join(factors)}], [{', '.join(names)}], {bound}"
        if rng.random() < 0.3:
            factors, names = ["1.0"], names[:1]
            operand = names[0]
            text = f"float_{relation}%s({operand}, {bound}"
            total = lambda values: values[operand] if operand in values else Fraction(operand)  # noqa: E731

        def compares(values: dict[str, Fraction]) -> bool:
            return RELATIONS[relation](total(values), Fraction(bound))

        holds = compares
        if rng.random() < 0.3:
            text, holds = self.membership()

        if rng.random() < 0.6:
            b = f"b{len(self.lines)}"
            self.lines.append(f"var bool: {b} :: output_var;")
            self.constraints.append(text % "_reif" + f", {b})")
            self.rules.append((b, lambda values: Fraction(holds(values))))
        else:
            self.constraints.append(text % "" + ")")
            self.rules.append((None, holds))

    def membership(self) -> tuple[str, Callable[[dict[str, Fraction]], bool]]:
        """Return the text and the definition of a float in a range, or in one of several, which may be empty."""
        name, value = self.operand()
        ranges = [(decimal(self.rng), decimal(self.rng, 0)) for _ in range(self.rng.choice([1, 1, 0, 2, 3]))]
        ends = ", ".join(end for ends in ranges for end in ends)
        has_list = len(ranges) != 1 or self.rng.random() < 0.2
        text = f"float_dom%s({name}, [{ends}]" if has_list else f"float_in%s({name}, {ends}"
        return text, lambda values: any(Fraction(lo) <= value(values) <= Fraction(hi) for lo, hi in ranges)

    def text(self, goal: str = "satisfy") -> str:
        return "\n".join([*self.lines, *(f"constraint {c};" for c in self.constraints), f"solve {goal};", ""])

    def solutions(self) -> list[dict[str, Fraction]]:
        results = []
        ranges = [range(lo, hi + 1) for lo, hi in self.integers.values()]
        for row in itertools.product(*ranges):
            values = {name: Fraction(x) for name, x in zip(self.integers, row, strict=True)}
            for name, rule in self.rules:
                value = rule(values)
                if value is None or (name is None and not value):
                    break
                if name is not None:
                    values[name] = Fraction(value)
            else:
                if all(abs(values[name]) <= 1000 for name in self.floats):
                    results.append(values)
        return results


def key(solution: dict[str, Fraction]) -> list[tuple[str, Fraction]]:
    return sorted(solution.items())


@pytest.mark.parametrize("number_of", range(150))
def test_floats_that_follow_from_integers_are_exact(number_of: int) -> None:
    model = ExactModel(random.Random(f"floats {run_seed()} {number_of}"))
    solutions = [{name: number(text) for name, text in each.items()} for each in shown(model.text())]
    expected = model.solutions()
    assert sorted(solutions, key=key) == sorted(expected, key=key), model.text()
    aim = model.floats[-1]
    best = shown(model.text(f"maximize {aim}"))
    assert bool(best) == bool(expected)
    if expected:
        assert number(best[-1][aim]) == max(each[aim] for each in expected), model.text()


@pytest.mark.parametrize("number_of", range(60))
def test_bounds_of_floats_never_cross_the_optimum(number_of: int) -> None:
    model = ExactModel(random.Random(f"bounded floats {run_seed()} {number_of}"))
    aim = model.floats[-1]
    expected = [each[aim] for each in model.solutions()]
    for goal, optimum in (("maximize", max(expected, default=None)), ("minimize", min(expected, default=None))):
        best, bound = bounded(model.text(f"{goal} {aim}"))
        assert (None if best is None else number(best[aim])) == optimum, model.text()
        if optimum is not None:
            assert bound is None or (bound >= optimum if goal == "maximize" else bound <= optimum), model.text()


def interval(rows: Sequence[tuple[Fraction, Fraction]], lo: Fraction, hi: Fraction) -> tuple[Fraction, Fraction]:
    """Return the values of x with a * x <= b for all rows, between two bounds."""
    for a, b in rows:
        if a > 0:
            hi = min(hi, b / a)
        elif a < 0:
            lo = max(lo, b / a)
        elif b < 0:
            return Fraction(1), Fraction(0)
    return lo, hi


@pytest.mark.parametrize("number_of", range(60))
def test_no_solution_of_free_floats_is_lost(number_of: int) -> None:
    rng = random.Random(f"free floats {run_seed()} {number_of}")
    rows = [(decimal(rng), decimal(rng), decimal(rng), rng.random() < 0.2) for _ in range(rng.randint(1, 4))]
    lines = [
        "var -9.75..12.5: x :: output_var;",
        "var float: z;",
        "var -3..3: y :: output_var;",
        "var float: aim :: output_var;",
    ]
    lines += ["constraint int2float(y, z);", "constraint float_lin_eq([1.0, 0.5, -1.0], [x, z, aim], 0.25);"]
    inequalities: list[tuple[Fraction, Fraction, Fraction]] = []
    for a, b, c, is_equation in rows:
        lines.append(f"constraint float_lin_{'eq' if is_equation else 'le'}([{a}, {b}], [x, z], {c});")
        inequalities.append((Fraction(a), Fraction(b), Fraction(c)))
        if is_equation:
            inequalities.append((-Fraction(a), -Fraction(b), -Fraction(c)))
    least = None
    for y in range(-3, 4):
        within = [(a, c - b * y) for a, b, c in inequalities]
        lo, hi = interval(within, Fraction("-9.75"), Fraction("12.5"))
        found = shown("\n".join([*lines, f"constraint int_eq(y, {y});", "solve minimize aim;", ""]))
        if lo <= hi:
            assert found, (y, lines)
        if found:
            x = number(found[-1]["x"])
            # An equation with a small factor leaves more room for x.
            assert all(a * x <= b + TOLERANCE * (1 + abs(a)) for a, b in within), (y, lines)
        if lo <= hi:
            best = lo + Fraction(y, 2) - Fraction("0.25")
            assert number(found[-1]["aim"]) <= best + TOLERANCE, (y, lines)
            least = best if least is None else min(least, best)
    whole = shown("\n".join([*lines, "solve minimize aim;", ""]))
    if least is not None:
        assert number(whole[-1]["aim"]) <= least + TOLERANCE
        best, bound = bounded("\n".join([*lines, "solve minimize aim;", ""]))
        assert best is not None
        assert number(best["aim"]) == number(whole[-1]["aim"])
        assert bound is None or bound <= least + TOLERANCE


@pytest.mark.parametrize("number_of", range(60))
def test_comparisons_of_two_floats_are_exact(number_of: int) -> None:
    case = float_models.make(random.Random(f"compared floats {run_seed()} {number_of}"))
    model = FlatZinc(float_models.text_of(case).encode(), lambda: True)
    search = model.search(False, 0, math.inf, 1, False, lambda: True)
    solutions: list[dict[str, Fraction]] = []
    while (state := search.next(lambda: True)) == "solution":
        printed = re.findall(r"(\w+) = (.*);", model.show(search).decode())
        solutions.append({name: number(text) for name, text in printed})
        if case["goal"] == "satisfy":
            break
    assert state in ("complete", "solution")
    assert not float_models.defect(case, solutions, TOLERANCE), float_models.text_of(case)


def test_thirds_and_roots() -> None:
    (third,) = shown("var 0.0..9.0: x :: output_var; constraint float_lin_eq([3.0], [x], 1.0); solve satisfy;")
    assert abs(number(third["x"]) - Fraction(1, 3)) < Fraction(1, 10**6)
    roots = shown("var 0.0..9.0: x :: output_var; constraint float_sqrt(2.0, x); solve satisfy;")
    assert roots
    assert all(abs(float(each["x"]) - math.sqrt(2)) < 1e-3 for each in roots)
    (quotient,) = shown(
        "var 6..6: i; var float: f; var -9.0..9.0: x :: output_var; constraint int2float(i, f);"
        "constraint float_div(f, 4.0, x); solve satisfy;"
    )
    assert quotient["x"] == "1.5"


def test_means_are_shown_without_digits_of_rounding() -> None:
    (mean,) = shown(
        "var 6..6: i; var float: f; var float: mean :: output_var; constraint int2float(i, f);"
        "constraint float_lin_eq([0.3333333333333333, -1.0], [f, mean], 0.0); solve satisfy;"
    )
    assert mean["mean"] == "2.0"


def test_sets_of_floats() -> None:
    found = shown("var {0.5, 2.25, 7.0}: x :: output_var; constraint float_le(1.0, x); solve minimize x;")
    assert found[-1]["x"] == "2.25"


@pytest.mark.parametrize(
    ("constraint", "ranges"),
    [
        ("float_in_imp(f, 0.5, 2.0, b)", [(0.5, 2.0)]),
        ("fzn_float_in_imp(f, -1.0, -1.0, b)", [(-1.0, -1.0)]),
        ("float_in_imp(f, 1.0, 0.0, b)", []),
        ("float_dom_imp(f, [-3.0, -2.5, 0.0, 1.0], b)", [(-3.0, -2.5), (0.0, 1.0)]),
        ("float_dom_imp(f, [], b)", []),
    ],
)
def test_half_reified_ranges(constraint: str, ranges: list[tuple[float, float]]) -> None:
    found = shown(
        "var -3..3: x :: output_var; var float: f; var bool: b :: output_var;"
        f"constraint int2float(x, f); constraint {constraint}; solve satisfy;"
    )
    inside = {x for x in range(-3, 4) if any(lo <= x <= hi for lo, hi in ranges)}
    expected = [(x, False) for x in range(-3, 4)] + [(x, True) for x in inside]
    assert sorted((int(each["x"]), each["b"] == "true") for each in found) == sorted(expected)


@pytest.mark.parametrize("truth", ["true", "false"])
def test_free_floats_in_ranges(truth: str) -> None:
    """At the ends of a range, rounding leaves room for a float on the grid."""
    text = (
        "var 0.0..9.0: x :: output_var; var bool: b;"
        f"constraint bool_eq(b, {truth}); constraint float_in_reif(x, 1.5, 2.25, b);"
        "constraint float_le(1.75, x); solve minimize x;"
    )
    least = number(shown(text)[-1]["x"])
    assert abs(least - (Fraction("1.75") if truth == "true" else Fraction("2.25"))) <= TOLERANCE
    greatest = number(shown(text.replace("minimize", "maximize"))[-1]["x"])
    assert abs(greatest - (Fraction("2.25") if truth == "true" else 9)) <= TOLERANCE


@pytest.mark.parametrize(
    ("item", "problem"),
    [
        ("constraint float_in(x, 1.0);", "the ends of a range"),
        ("constraint float_in(x, 1.0, y);", "the ends of a range are numbers"),
        ("constraint float_dom(x, [1.0, 2.0, 3.0]);", "each range has two ends"),
        ("constraint float_sin(x, y);", "unsupported: the constraint float_sin"),
        ("constraint float_lin_le([1.0], [x, y], 2.0);", "as many coefficients"),
        ("constraint float_max(x, y);", "expected 3 arguments, found 2"),
        ("var 0.0..1e300: z;", "its values are too large"),
    ],
)
def test_unsupported_floats_are_named(item: str, problem: str) -> None:
    text = f"var 0.0..9.0: x; var 0.0..9.0: y; {item} solve satisfy;"
    with pytest.raises(ValueError, match=problem):
        FlatZinc(text.encode(), lambda: True)


def test_declared_bounds_keep_products_small() -> None:
    """Without the bounds of the mean, its square would be beyond the solver's numbers."""
    text = (
        "var 0..99999: i; var float: f; var 0.0..2.0: mean; var float: square :: output_var;"
        "constraint int2float(i, f); constraint float_lin_eq([0.001235, -1.0], [f, mean], 0.0);"
        "constraint float_times(mean, mean, square); solve maximize square;"
    )
    assert number(shown(text)[-1]["square"]) == (1619 * Fraction("0.001235")) ** 2
    impossible = text.replace("0.0..2.0: mean", "-2.0..-1.0: mean")
    assert shown(impossible) == []


def test_floats_without_bounds() -> None:
    """Constraints on them make variables of the solver's own; the limits are those of the floats nevertheless."""
    text = (
        "var float: x :: output_var; var float: y :: output_var; var bool: b; var 0..3: i; var float: f;"
        "constraint int2float(i, f); constraint float_max(x, f, y);"
        "constraint float_lin_le_reif([1.0, 0.5], [x, f], 2.5, b);"
        "constraint array_bool_or([b], true); solve %s;"
    )
    model = FlatZinc((text % "maximize x").encode(), lambda: True)
    search = model.search(False, 0, math.inf, 1, False, lambda: True, True)
    while (state := search.next(lambda: True)) == "solution":
        pass
    assert state == "complete"
    assert model.unproven_limits(search) == []
    assert not model.is_unbounded()
    model = FlatZinc((text % "minimize x").encode(), lambda: True)
    search = model.search(False, 0, math.inf, 1, False, lambda: True, True)
    while (state := search.next(lambda: True)) == "solution":
        pass
    assert state == "complete"
    assert model.unproven_limits(search) == ["x"]


def test_constants_that_cancel_stay_decimals() -> None:
    (solution,) = shown(
        "var float: x :: output_var; constraint float_lin_eq([1.1, 0.5], [0.5, x], 0.58);"
        "var float: y :: output_var; constraint float_plus(x, 1.13, y); solve satisfy;"
    )
    assert solution == {"x": "0.06", "y": "1.19"}


def test_sums_of_rounded_numbers_stay_close() -> None:
    found = shown(
        "var float: x :: output_var; var float: y :: output_var; var float: z :: output_var;"
        "constraint float_lin_eq([0.5], [x], 0.3333333333333); constraint float_plus(x, 1.25, y);"
        "constraint float_lin_eq([1.0, 0.1234567890123, -1.0], [x, y, z], 0.0); solve satisfy;"
    )
    assert found
    for solution in found:
        x, y, z = (number(solution[name]) for name in "xyz")
        assert abs(x - Fraction(2, 3)) < TOLERANCE
        assert abs(y - Fraction(23, 12)) < TOLERANCE
        assert abs(z - Fraction(2, 3) - Fraction("0.1234567890123") * Fraction(23, 12)) < TOLERANCE
