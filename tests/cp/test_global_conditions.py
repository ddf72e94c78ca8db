"""Global constraints as conditions, reified and half-reified, beside enumeration."""

from __future__ import annotations

import inspect
import random
import zlib
from typing import Any

import pytest

from elimina import InputError, cp
from elimina.cp.decompositions import DECOMPOSITIONS
from tests.adversary import constraints
from tests.adversary.rules import RULES


@pytest.mark.parametrize("how", ["iff", "only_if", "implied", "equal", "denied"])
@pytest.mark.parametrize("name", sorted(RULES.keys() - constraints.POSTED_WITH_CONTROLS))
def test_a_condition_agrees_with_enumeration(name: str, how: str) -> None:
    """All solutions, each once, propagation, the best solution, and tables, of random models of one constraint."""
    rng = random.Random(zlib.crc32(f"{name} {how}".encode()))
    for what in ["all", "all", "all", "all", "propagated", "to_model", "one"]:
        domains = [sorted(rng.sample(range(-1, 5), rng.randint(1, 4))) for _ in range(4)] + [[0, 1]]
        data = None
        while data is None or not constraints.has_condition(name, data):
            data = RULES[name].draw(rng, domains)
        control = [how, rng.randrange(5)]
        case: dict[str, Any] = {
            "domains": domains,
            "posts": [[name, data, *control, rng.choice(domains[control[1]])]],
            "objective": [1, [[1, -1, 2, 1, 1]], 0] if what == "one" else None,
            "options": {"free": rng.random() < 0.5, "seed": rng.randrange(9)},
            "rule": None,
            "what": what,
        }
        constraints.check(case)


def test_conditions_combine_with_others() -> None:
    m = cp.Model()
    xs = m.int_vars(3, 0, 2)
    b = m.bool_var()
    m.add(b == cp.all_different(xs))
    m.add((sum(xs) >= 5) | cp.lex_less(xs, [1, 1, 1]) | ~cp.member(xs[2], [0, 1]))
    m.add((xs[0] == 0).implies(cp.table(xs, [(0, 1, 2), (0, 2, 2)])))
    m.add(cp.all_different(xs[:2]) & (xs[1] > 0))
    expected = [
        (x, y, z)
        for x in range(3)
        for y in range(1, 3)
        for z in range(3)
        if x != y
        and (x + y + z >= 5 or (x, y, z) < (1, 1, 1) or z == 2)
        and (x != 0 or (x, y, z) in ((0, 1, 2), (0, 2, 2)))
    ]
    solutions = m.solve(all_solutions=True).solutions
    assert sorted(tuple(s[xs]) for s in solutions) == expected
    assert all(s[b] == (len(set(s[xs])) == 3) for s in solutions)


def test_a_sum_of_conditions() -> None:
    m = cp.Model()
    xs = m.int_vars(4, 0, 3)
    pairs = [xs[:2], xs[1:3], xs[2:]]
    m.add(sum(cp.all_different(pair) for pair in pairs) == 1)
    assert all(sum(x != y for x, y in (s[pair] for pair in pairs)) == 1 for s in m.solve(all_solutions=True).solutions)
    assert len(m.solve(all_solutions=True).solutions) == 4 * 3 * 3


def test_a_condition_alone_is_the_constraint_itself() -> None:
    m = cp.Model()
    xs = m.int_vars(3, 0, 2)
    m.add(cp.all_different(xs, "bounds"))
    assert "1 all_different_bounds" in repr(m)


def test_precedence_as_a_condition() -> None:
    m = cp.Model()
    first, second = m.interval_var((0, 3), 2), m.interval_var((0, 3), 1, optional=True)
    b = m.bool_var()
    m.add(b == cp.precedence(first, second))
    for s in m.solve(all_solutions=True).solutions:
        assert s[b] == (s[second] is None or s[first][1] <= s[second][0])


def test_the_value_of_a_condition_that_the_model_does_not_have() -> None:
    m = cp.Model()
    xs = m.int_vars(4, 0, 9)
    m.hint(dict(zip(xs, [3, 1, 4, 1], strict=True)))
    result = m.solve()
    assert result[cp.all_different(xs)] == 0
    assert result[cp.all_different(xs[:3])] == 1
    assert result[cp.cardinality(xs, {1: 2, 4: xs[3]})] == 1
    assert result[cp.lex_less(xs[:2], xs[2:]) & cp.all_different(xs[:2])] == 1


def test_every_constraint_has_a_condition_and_a_decomposition() -> None:
    """Each method that posts a constraint, and returns nothing, is a condition too."""
    posting = {
        name
        for name, method in inspect.getmembers(cp.Model, inspect.isfunction)
        if not name.startswith("_") and inspect.signature(method).return_annotation == "None"
    }
    others = {"add", "post", "named", "hint", "minimize", "maximize", "search"}
    assert posting - others == set(DECOMPOSITIONS)
    for name in DECOMPOSITIONS:
        assert callable(getattr(cp, name))


def test_refused() -> None:
    m = cp.Model()
    x, y = m.int_vars(2, 0, 9)
    with pytest.raises(InputError, match="no argument has a variable"):
        cp.all_different([1, 2])
    with pytest.raises(InputError, match="belongs to another model"):
        cp.Model().add(cp.all_different([x, y]))
    with pytest.raises(InputError, match="neither true nor false"):
        bool(cp.all_different([x, y]))
    b = m.bool_var()
    with pytest.raises(InputError, match="2 xs and 1 ys"):
        m.add(cp.inverse([x, y], [x]), only_if=b)
    with pytest.raises(InputError, match="the row \\(1,\\) has 1 value for 2 variables"):
        m.add(cp.table([x, y], [(1,)]), iff=b)
    with pytest.raises(InputError, match="there is no state 3"):
        m.add(cp.regular([x, y], [{1: 3}], 0, [0]), iff=b)


def test_long_sequences_are_no_deep_conditions() -> None:
    m = cp.Model()
    xs = m.int_vars(1500, 0, 1)
    b = m.bool_var()
    m.add(b == cp.lex_less(xs, [1] * 1500))
    m.add(m.sum(xs) == 1500)
    assert m.solve()[b] == 0
