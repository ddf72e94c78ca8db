"""Random FlatZinc models that compare free floats, and their exact solutions by Fourier-Motzkin elimination."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

NAMES = "xyz"
RELATIONS = {"le": operator.le, "lt": operator.lt, "eq": operator.eq, "ne": operator.ne}
Case = dict[str, Any]


class Inequality(NamedTuple):
    """A sum of floats that is at most a bound, or below it.

    Attributes:
        factors: Float -> its factor, which is not 0.
        bound: The bound.
        is_strict: True if the sum has to be below the bound.
    """

    factors: dict[str, Fraction]
    bound: Fraction
    is_strict: bool


def make(rng: random.Random) -> Case:
    """Make comparisons of a float, or of a sum or difference of two, with decimals and an integer."""
    domains = {}
    for name in NAMES:
        lo = Fraction(rng.randint(-30, 10), 10)
        domains[name] = f"{float(lo)}..{float(lo + Fraction(rng.randint(0, 40), 10))}"
    return {
        "floats": domains,
        "comparisons": [_comparison(rng) for _ in range(rng.randint(1, 6))],
        "goal": rng.choice(["satisfy", "minimize x", "maximize x"]),
    }


def _comparison(rng: random.Random) -> Case:
    scale = rng.choice([1.0, 1.0, 0.5, 2.0, -1.0])
    names = rng.sample(NAMES, rng.choice([1, 2, 2]))
    return {
        "relation": rng.choice(["lt", "lt", *RELATIONS]),
        "factors": [str(scale * rng.choice([1, -1])) for _ in names] + [str(rng.choice([0.5, 1.0, -2.0]))],
        "names": [*names, "f"],
        "bound": str(rng.choice([0.0, 0.0, 0.5, -0.25, rng.randint(-30, 30) / 10])),
        "is_reified": rng.random() < 0.3,
    }


def smaller(case: Case) -> Iterator[Case]:
    """Yield models with fewer comparisons, or without an objective."""
    for i in range(len(case["comparisons"])):
        yield {**case, "comparisons": case["comparisons"][:i] + case["comparisons"][i + 1 :]}
    if case["goal"] != "satisfy":
        yield {**case, "goal": "satisfy"}


def text_of(case: Case) -> str:
    """Return the model."""
    lines = [f"var {domain}: {name} :: output_var;" for name, domain in case["floats"].items()]
    lines += ["var -1..1: i :: output_var;", "var float: f;", "constraint int2float(i, f);"]
    for number, each in enumerate(case["comparisons"]):
        end = f", b{number}" if each["is_reified"] else ""
        lines += [f"var bool: b{number} :: output_var;"] if each["is_reified"] else []
        lines.append(
            f"constraint float_lin_{each['relation']}{'_reif' if each['is_reified'] else ''}"
            f"([{', '.join(each['factors'])}], [{', '.join(each['names'])}], {each['bound']}{end});"
        )
    return "\n".join([*lines, f"solve {case['goal']};"])


def is_solution(case: Case, values: dict[str, Fraction]) -> bool:
    """Return whether values, with Booleans as 0 and 1, satisfy all constraints exactly."""
    values = {**values, "f": values["i"]}
    for name, domain in case["floats"].items():
        lo, hi = map(Fraction, domain.split(".."))
        if not lo <= values[name] <= hi:
            return False
    for number, each in enumerate(case["comparisons"]):
        total = sum(Fraction(a) * values[x] for a, x in zip(each["factors"], each["names"], strict=True))
        holds = RELATIONS[each["relation"]](total, Fraction(each["bound"]))
        if holds != (values[f"b{number}"] if each["is_reified"] else 1):
            return False
    return True


def range_of_x(case: Case) -> list[Inequality] | None:
    """Return the bounds of x in the union of all solutions, lower bound first; None if there are no solutions."""
    ends: list[Inequality | None] = [None, None]
    for system in _systems(case):
        bounds = _bounds(system)
        for side, bound in enumerate(bounds or ()):
            best = ends[side]
            if best is None or (bound.bound, not bound.is_strict) > (best.bound, not best.is_strict):
                ends[side] = bound
    return [end for end in ends if end is not None] or None


def _systems(case: Case) -> Iterator[list[Inequality]]:
    """Yield a system for each choice of the integer, of Booleans, and of a side of each difference."""
    domain = []
    for name, text in case["floats"].items():
        lo, hi = map(Fraction, text.split(".."))
        domain += [Inequality({name: Fraction(1)}, hi, False), Inequality({name: Fraction(-1)}, -lo, False)]
    for i in (-1, 0, 1):
        for choice in itertools.product(*(list(_sides(each, i)) for each in case["comparisons"])):
            yield [*domain, *itertools.chain(*choice)]


def _sides(comparison: Case, i: int) -> Iterator[list[Inequality]]:
    *factors, last = map(Fraction, comparison["factors"])
    terms = dict(zip(comparison["names"], factors, strict=False))
    bound = Fraction(comparison["bound"]) - last * i
    opposite = {name: -factor for name, factor in terms.items()}
    at_most, below = Inequality(terms, bound, False), Inequality(terms, bound, True)
    at_least, above = Inequality(opposite, -bound, False), Inequality(opposite, -bound, True)
    holds = {"le": [[at_most]], "lt": [[below]], "eq": [[at_most, at_least]], "ne": [[below], [above]]}
    fails = {"le": [[above]], "lt": [[at_least]], "eq": [[below], [above]], "ne": [[at_most, at_least]]}
    yield from holds[comparison["relation"]]
    if comparison["is_reified"]:
        yield from fails[comparison["relation"]]


def _bounds(system: list[Inequality]) -> list[Inequality] | None:
    """Eliminate all floats except x; return the bounds of -x and of x, or None if there is no solution."""
    for name in NAMES[1:]:
        rest = [each for each in system if name not in each.factors]
        upper = [each for each in system if each.factors.get(name, 0) > 0]
        lower = [each for each in system if each.factors.get(name, 0) < 0]
        system = [*rest, *(_combined(a, b, name) for a in upper for b in lower)]
    ends = []
    for sign in (-1, 1):
        each = [
            Inequality({}, e.bound / abs(e.factors["x"]), e.is_strict)
            for e in system
            if e.factors.get("x", 0) * sign > 0
        ]
        ends.append(min(each, key=lambda end: (end.bound, not end.is_strict)))
    total = ends[0].bound + ends[1].bound
    is_empty = total < 0 or (total == 0 and (ends[0].is_strict or ends[1].is_strict))
    fails = any(not e.factors and (e.bound < 0 or (e.bound == 0 and e.is_strict)) for e in system)
    return None if is_empty or fails else ends


def _combined(a: Inequality, b: Inequality, name: str) -> Inequality:
    left, right = 1 / a.factors[name], -1 / b.factors[name]
    factors = {
        x: total
        for x in {*a.factors, *b.factors}
        if (total := left * a.factors.get(x, Fraction(0)) + right * b.factors.get(x, Fraction(0)))
    }
    return Inequality(factors, left * a.bound + right * b.bound, a.is_strict or b.is_strict)


def defect(case: Case, solutions: list[dict[str, Fraction]], tolerance: Fraction) -> str:
    """Return what is wrong with the solutions of a search that ended by itself, or nothing.

    Args:
        case: The model.
        solutions: All solutions of the search; of an optimisation, the best one comes last.
        tolerance: Largest distance of the best x from a bound that no solution attains.
    """
    ends = range_of_x(case)
    wrong = [each for each in solutions if not is_solution(case, each)]
    if wrong:
        return f"{wrong[0]} is not a solution"
    if ends is None or not solutions:
        return "" if ends is None and not solutions else "there are solutions" if ends else "there is no solution"
    if case["goal"] == "satisfy":
        return ""
    sign = -1 if case["goal"].startswith("minimize") else 1
    end, best = ends[max(sign, 0)], sign * solutions[-1]["x"]
    room = tolerance if end.is_strict else 0
    return "" if end.bound - room <= best <= end.bound else f"the best x is {sign * end.bound}"
