"""Searches that an ordering of variables picks from."""

from __future__ import annotations

import math
import random

import pytest

from elimina._core import FlatZinc
from tests.cp.flatzinc_solver import solved
from tests.reference.flatzinc import parse_solutions
from tests.seeds import run_seed


def first(text: str) -> dict[str, int]:
    """Return the first solution by the annotations alone."""
    model = FlatZinc(text.encode(), lambda: True)
    assert model.notes == []
    search = model.search(False, 0, math.inf, 1, False, lambda: True)
    assert search.next(lambda: True) == "solution"
    (solution,) = parse_solutions(model.show(search).decode())
    return {name: int(value) for name, value in solution.items()}


VARIABLES = "".join(f"var {lo}..9: k{i} :: output_var; var 0..9: x{i} :: output_var;" for i, lo in enumerate((3, 1, 2)))
ANNOTATION = "priority_search([k0, k1, k2], [{}], {}, complete)".format(
    ", ".join(
        f"seq_search([int_search([x{i}], input_order, indomain_max, complete),"
        f" int_search([k{i}], input_order, indomain_min, complete)])"
        for i in range(3)
    ),
    "%s",
)


@pytest.mark.parametrize(
    ("ordering", "order"),
    [
        ("input_order", [0, 1, 2]),
        ("smallest", [1, 2, 0]),
        ("first_fail", [0, 2, 1]),
        ("anti_first_fail", [1, 2, 0]),
        ("largest", [0, 1, 2]),
        ("dom_w_deg", [0, 2, 1]),
    ],
)
def test_groups_are_done_in_the_order_of_their_keys(ordering: str, order: list[int]) -> None:
    text = f"{VARIABLES} constraint all_different_int([x0, x1, x2]); solve :: {ANNOTATION % ordering} satisfy;"
    solution = first(text)
    # The first group takes the greatest value, the next one the one below.
    assert [solution[f"x{i}"] for i in order] == [9, 8, 7]
    assert [solution[f"k{i}"] for i in range(3)] == [3, 1, 2]


def test_a_group_is_done_before_the_next_one() -> None:
    """The first group's x takes the key of the second one with it: it is finished nevertheless."""
    text = (
        "var 0..3: a :: output_var; var 0..3: b :: output_var; var 0..1: x :: output_var; var 0..1: y :: output_var;"
        "var 0..1: z :: output_var; constraint int_ne(y, z);"
        "solve :: priority_search([a, b], [int_search([x, a, y], input_order, indomain_max, complete),"
        "int_search([z, b], input_order, indomain_max, complete)], smallest, complete) satisfy;"
    )
    assert first(text) == {"a": 3, "b": 3, "x": 1, "y": 1, "z": 0}


@pytest.mark.parametrize("number", range(15))
def test_no_solution_is_lost(number: int) -> None:
    rng = random.Random(f"priorities {run_seed()} {number}")
    names = [f"x{i}" for i in range(5)]
    lines = [f"var 0..{rng.randint(1, 3)}: {name} :: output_var;" for name in names]
    for _ in range(3):
        a, b = rng.sample(names, 2)
        lines.append(f"constraint int_{rng.choice(['le', 'ne', 'lt'])}({a}, {b});")
    count = rng.randint(1, 3)
    keys = [rng.choice([*names, "2"]) for _ in range(count)]
    groups = []
    for _ in keys:
        variables = ", ".join(rng.sample(names, rng.randint(0, 3)))
        orderings = (
            rng.choice(["input_order", "smallest", "max_regret"]),
            rng.choice(["indomain_max", "indomain_split"]),
        )
        groups.append(f"int_search([{variables}], {', '.join(orderings)}, complete)")
    ordering = rng.choice(["input_order", "smallest", "largest", "first_fail", "max_regret", "dom_w_deg"])
    annotation = f":: priority_search([{', '.join(keys)}], [{', '.join(groups)}], {ordering}, complete)"
    plain = solved("\n".join([*lines, "solve satisfy;", ""]))
    for options in ({}, {"free": True}, {"threads": 2}):
        found = solved("\n".join([*lines, f"solve {annotation} satisfy;", ""]), **options)
        key = lambda solution: sorted(solution.items())  # noqa: E731
        assert sorted(found, key=key) == sorted(plain, key=key), (lines, annotation, options)


def test_as_many_searches_as_keys() -> None:
    text = (
        "var 0..3: a; solve :: priority_search([a, a], [int_search([a], input_order, indomain_min)],"
        " smallest, complete) satisfy;"
    )
    with pytest.raises(ValueError, match="expected as many searches as variables in a priority_search, found 1 for 2"):
        FlatZinc(text.encode(), lambda: True)


@pytest.mark.parametrize(("definition", "expected"), [("", [(0, 0), (0, 1)]), (":: defines_var(x)", [(0, 0), (1, 0)])])
def test_a_variable_without_a_definition_is_a_decision(definition: str, expected: list[tuple[int, int]]) -> None:
    """MiniZinc marks the Booleans of a set as defined, and defines them nowhere."""
    text = "var 0..1: x :: output_var :: is_defined_var; var 0..1: y :: output_var;"
    solutions = solved(f"{text} constraint int_le(x, 1) {definition}; solve satisfy;")
    assert [(solution["x"], solution["y"]) for solution in solutions[:2]] == expected
