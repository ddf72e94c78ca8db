"""Constraints that are made of others: each solution once, as often as Python's own functions say, and their errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina import InputError, cp
from tests.cp.test_conditions import solutions

DOMAINS = st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 2)), min_size=1, max_size=4)


def variables(model: cp.Model, domains: Sequence[tuple[int, int]]) -> list[cp.Expression]:
    return [model.int_var(lo, lo + more) for lo, more in domains]


def words(domains: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(lo, lo + more + 1) for lo, more in domains)))


@given(DOMAINS)
def test_values_are_sorted_and_ranked_as_by_python(domains: list[tuple[int, int]]) -> None:
    model = cp.Model()
    xs = variables(model, domains)
    answers = [*model.sort(xs), model.arg_max(xs), model.arg_min(xs)]
    expected = [(*word, *sorted(word), word.index(max(word)), word.index(min(word))) for word in words(domains)]
    assert solutions(model, [*xs, *answers]) == expected


@given(DOMAINS, st.permutations([-2, -1, 0, 1, 2]), st.integers(0, 5))
def test_values_come_in_their_order(domains: list[tuple[int, int]], values: list[int], count: int) -> None:
    model = cp.Model()
    xs = variables(model, domains)
    model.value_precede(values[:count], xs)

    def is_ordered(word: tuple[int, ...]) -> bool:
        firsts = [word.index(value) if value in word else len(word) + rank for rank, value in enumerate(values[:count])]
        return firsts == sorted(firsts)

    assert solutions(model, xs) == [word for word in words(domains) if is_ordered(word)]


@given(
    DOMAINS,
    st.lists(
        st.dictionaries(st.integers(-2, 4), st.tuples(st.integers(0, 1), st.integers(-3, 3))), min_size=2, max_size=2
    ),
    st.sets(st.integers(0, 1)),
)
def test_words_have_the_cost_of_their_transitions(
    domains: list[tuple[int, int]], automaton: list[dict[int, tuple[int, int]]], accepting: set[int]
) -> None:
    model = cp.Model()
    xs = variables(model, domains)
    moves, costs = (
        [{symbol: pair[place] for symbol, pair in state.items()} for state in automaton] for place in range(2)
    )
    total = model.cost_regular(xs, moves, 0, accepting, costs)
    expected = []
    for word in words(domains):
        state, cost = 0, 0
        for symbol in word:
            if symbol not in automaton[state]:
                break
            cost += costs[state][symbol]
            state = moves[state][symbol]
        else:
            expected += [(*word, cost)] if state in accepting else []
    assert solutions(model, [*xs, total]) == expected


def test_the_index_of_a_matrix_is_within_it() -> None:
    model = cp.Model()
    x, row, column = model.int_var(4, 5), model.int_var(-1, 3), model.int_var(-2, 5)
    cell = model.element([[x, 1, 2], [7, 8, x + 1]], (row, column))
    matrix = [[None, 1, 2], [7, 8, None]]
    expected = [
        (a, i, j, {(0, 0): a, (1, 2): a + 1}.get((i, j), matrix[i][j]))
        for a in (4, 5)
        for i in range(2)
        for j in range(3)
    ]
    assert solutions(model, [x, row, column, cell]) == expected


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda m, x: m.element([[1, 2], [3, 4]], (x,)), "element: 1 position in items of 2 dimensions"),
        (lambda m, x: m.element([1, 2], (x, x)), "element: 2 positions in items of 1 dimension"),
        (lambda m, x: m.arg_max([]), "need at least one expression"),
        (lambda m, x: m.value_precede(3, [x]), "value_precede gets a list of variables or numbers, not 3"),
        (lambda m, x: m.value_precede([1.5], [x]), "a value is a whole number"),
        (lambda m, x: m.cost_regular([x], [{0: 0}], 0, [0], []), "1 states need as many mappings of costs, not 0"),
        (lambda m, x: m.cost_regular([x], [{0: 0}], 0, [0], [{}]), "the transition of state 0 by 0 has no cost"),
        (lambda m, x: m.cost_regular([x], [{0: 2}], 0, [0], [{0: 1}]), "cost_regular: there is no state 2"),
    ],
)
def test_errors_name_the_culprit(act: Callable[..., Any], message: str) -> None:
    model = cp.Model()
    with pytest.raises(InputError, match=message):
        act(model, model.int_var(0, 3, "x"))
