"""Each constraint, by its FlatZinc name, against what its words say."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina._core import flatzinc_translated_names
from tests.cp.flatzinc_models import SIGNATURES, Maker
from tests.cp.flatzinc_solver import solved
from tests.reference import flatzinc as reference


def check(text: str) -> None:
    found = [{name: int(value) for name, value in solution.items()} for solution in solved(text)]
    expected = list(reference.solutions(reference.read(text)))
    key = lambda solution: tuple(sorted(solution.items()))  # noqa: E731
    assert sorted(found, key=key) == sorted(expected, key=key), text


@pytest.mark.parametrize("name", SIGNATURES)
def test_one_constraint_allows_what_its_words_say(name: str) -> None:
    maker = Maker(random.Random(name))
    for _ in range(12):
        check(maker.model([name]))
    for ties in (1, 1, 1, 2, 2, 3):
        check(maker.model([name], ties))


class Narrow(Maker):
    """Almost always the same variable."""

    def one_of(self, names: str, constants: range | tuple[str, ...]) -> str:
        return super().one_of("xxxy" if "x" in names else "aab", constants)


def test_a_range_is_not_listed() -> None:
    text = "var -3..3: x :: output_var; constraint among(2, [x, -7, 5], -1..999999999999); solve satisfy;"
    assert [s["x"] for s in solved(text)] == [-1, 0, 1, 2, 3]


def test_every_translated_name_is_tested() -> None:
    prefixes = ("", "fzn_", "elimina_", "jacop_", "gecode_", "chuffed_", "ortools_", "minicpp_")
    missing = [name for name in flatzinc_translated_names() if not any(p + name in SIGNATURES for p in prefixes)]
    assert missing == []


@pytest.mark.parametrize("name", SIGNATURES)
def test_one_variable_in_many_places(name: str) -> None:
    maker = Narrow(random.Random(name))
    for ties in [0] * 25 + [1] * 10:
        check(maker.model([name], ties))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("var 1..3: x; constraint array_int_element(x, [2, 3, 9], x)", []),
        ("var {-1,0,2}: x; constraint fzn_count_eq([x, -1, x, -5], -1, x)", []),
        ("var {1,3,5}: x; constraint fzn_count_eq([x, x], 5, x)", []),
        ("var 3..9999999: x; constraint fzn_count_eq([3, 5, 7], x, x)", []),
        ("var 1..9999999: x; constraint fzn_count_eq([1, 5, 7], x, x)", [1]),
        ("var 2..9: x; constraint array_int_element(x, [9, 2, 4, 3], x)", [2]),
    ],
)
def test_what_a_constraint_changes_of_its_own_variables_wakes_it(text: str, expected: list[int]) -> None:
    text = text.replace(": x", ": x :: output_var")
    assert [s["x"] for s in solved(f"{text}; solve satisfy;")] == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(sorted(SIGNATURES)), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_several_constraints_together(names: list[str], rng: random.Random) -> None:
    check(Maker(rng).model(names, rng.randint(0, 3)))


@pytest.mark.parametrize("annotation", ["", ":: domain", ":: bounds", ":: value"])
def test_all_different_at_each_consistency(annotation: str) -> None:
    text = f"""array [1..3] of var 1..3: x :: output_array([1..3]);
    constraint fzn_all_different_int(x) {annotation}; constraint int_lt(x[1], x[2]); solve satisfy;"""
    assert sorted(tuple(s["x"]) for s in solved(text)) == [(1, 2, 3), (1, 3, 2), (2, 3, 1)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            *[st.sampled_from("vwxyz")] * 2, st.sampled_from([-1, 1]), st.sampled_from([-1, 1]), st.integers(-3, 3)
        ),
        max_size=6,
    )
)
def test_equations_of_two_variables_are_views(ties: list[tuple[str, str, int, int, int]]) -> None:
    lines = [f"var -1..2: {name} :: output_var;" for name in "vwxyz"]
    lines += [f"constraint int_lin_eq([{a},{b}],[{x},{y}],{c});" for x, y, a, b, c in ties]
    check("\n".join([*lines, "solve satisfy;"]))
