"""Linear relaxations: never above an optimum, and no refutation of a model with solutions, for every constraint."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import cp
from elimina.cp import bound_schedule
from elimina.cp.lagrangian_bound import LagrangianBound
from elimina.cp.linear_relaxation import LinearRelaxation
from tests.adversary.case import Setting
from tests.adversary.constraints import Built, make
from tests.seeds import run_seed


def relaxed(model: cp.Model) -> tuple[LinearRelaxation, LagrangianBound]:
    solver, _ = model._build()
    aim = model.objective
    relaxation = LinearRelaxation(model._posts, solver, {} if aim is None else (aim * model.sign).terms)
    return relaxation, LagrangianBound(relaxation, lambda: True)


def exact_value(relaxation: LinearRelaxation) -> float:
    """The value of the linear program, by a peer: a share of each variable's columns that sums to 1."""
    optimize = pytest.importorskip("scipy.optimize")
    places = {var: [] for var in (*relaxation.costs, *(v for row in relaxation.rows for v in row.terms))}
    total = 0
    for var in places:
        places[var] = list(range(total, total := total + len(relaxation.columns[var])))
    costs, least, equal = np.zeros(total), [], []
    for var, function in relaxation.costs.items():
        costs[places[var]] = function
    for row in relaxation.rows:
        line = np.zeros(total)
        for var, function in row.terms.items():
            line[places[var]] = function
        (equal if row.is_equation else least).append((line, row.least))
    for columns in places.values():
        line = np.zeros(total)
        line[columns] = 1
        equal.append((line, 1))
    below = [-line for line, _ in least] or None
    answer = optimize.linprog(
        costs,
        A_ub=below,
        b_ub=[-number for _, number in least] or None,
        A_eq=[line for line, _ in equal],
        b_eq=[number for _, number in equal],
        bounds=(0, 1),
    )
    return answer.fun if answer.status == 0 else np.inf


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_no_bound_is_above_the_optimum(seed: int) -> None:
    built = Built(make(random.Random(seed), Setting()))
    _, bound = relaxed(built.model)
    is_refuted = bound.proves_infeasibility()
    assert not (is_refuted and built.solutions)
    aim = built.model.objective
    if aim is None:
        return
    value = bound.lower_bound(None)
    if value is None:
        return
    if built.solutions:
        assert value + (aim * built.sign).constant <= built.best() * built.sign


@pytest.mark.parametrize("is_equation", [False, True])
def test_a_single_knapsack_is_bounded_by_its_optimum(is_equation: bool) -> None:
    rng = random.Random(run_seed())
    for _ in range(20):
        count = rng.randint(3, 9)
        weights, gains = ([rng.randint(1, 30) for _ in range(count)] for _ in range(2))
        capacity = sum(rng.sample(weights, count // 2))
        model = cp.Model()
        taken = model.bool_vars(count)
        weight = model.sum(w * x for w, x in zip(weights, taken, strict=True))
        model.add(weight == capacity if is_equation else weight <= capacity)
        model.maximize(model.sum(g * x for g, x in zip(gains, taken, strict=True)))
        choices = [
            (sum(itertools.compress(weights, choice)), sum(itertools.compress(gains, choice)))
            for choice in itertools.product((0, 1), repeat=count)
        ]
        best = max(gain for w, gain in choices if w == capacity or (w < capacity and not is_equation))
        assert relaxed(model)[1].lower_bound(None) == -best


def roster(rng: random.Random, nurses: int, days: int, least: int) -> tuple[cp.Model, list[list[int]]]:
    model = cp.Model()
    shifts = [model.int_vars(days, 0, 2) for _ in range(nurses)]
    for row in shifts:
        model.cardinality(row, {0: model.int_var(days // 3, days)})
    for column in zip(*shifts, strict=True):
        model.cardinality(list(column), {1: model.int_var(least, nurses), 2: model.int_var(least, nurses)})
    costs = [rng.sample(range(10), 3) for _ in range(nurses * days)]
    cells = itertools.chain.from_iterable(shifts)
    model.minimize(model.sum(model.element(row, x) for row, x in zip(costs, cells, strict=True)))
    return model, costs


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_near_the_linear_program(seed: int) -> None:
    model, _ = roster(random.Random(seed), 6, 9, 1)
    relaxation, bound = relaxed(model)
    value, exact = bound.lower_bound(None), exact_value(relaxation)
    assert 0.9 * exact <= value <= np.ceil(exact - 1e-6)


def test_counting_refutes_a_roster() -> None:
    # Two thirds of 6 nurses work at a time on the average, 4, and 3 are needed on each of two shifts.
    model, _ = roster(random.Random(1), 6, 9, 3)
    assert relaxed(model)[1].proves_infeasibility(bound_schedule.FIRST_STEPS)
    result = model.solve()
    assert result.status == "infeasible"
    assert result.stats["failures"] < 1000


def test_an_ascent_does_not_go_back_and_forth() -> None:
    """At most 32 cells of a symmetric matrix can be 1, and 33 are asked for."""
    m = cp.Model()
    cells = np.array([m.bool_vars(8) for _ in range(12)])
    for row in cells:
        m.add(m.sum(row) <= 3)
    for column in cells.T:
        m.add(m.sum(column) <= 4)
    total = m.int_var(33, 96)
    m.add(total == m.sum(cells.ravel()))
    m.maximize(total)
    _, bound = relaxed(m)
    reached = bound.lower_bound(-32)
    assert reached is not None
    assert reached >= -32


def test_elements_are_replaced_by_functions() -> None:
    model, costs = roster(random.Random(2), 6, 9, 1)
    relaxation, bound = relaxed(model)
    # 6 rows count days off, 18 columns shifts: none is left of 54 elements.
    assert len(relaxation.rows) == 24
    assert bound.lower_bound(None) >= sum(map(min, costs))


def test_absolute_values_are_replaced_by_functions() -> None:
    model = cp.Model()
    x, y, z = *model.int_vars(2, 0, 9), model.int_var(-500, 500)
    model.add(x + y >= 17)
    model.minimize(2 * abs(x - 3) + abs(y - 5))
    relaxation, bound = relaxed(model)
    assert len(relaxation.rows) == 1
    assert bound.lower_bound(None) == 14
    # The values of z are too many for columns.
    model.minimize(2 * abs(x - 3) + abs(y - 5) + abs(z))
    assert len(relaxed(model)[0].rows) == 3


def test_large_numbers_are_left_out() -> None:
    model = cp.Model()
    x, y = model.int_vars(2, -(2**50), 2**50)
    a, b = model.bool_vars(2)
    model.add(x + y >= 7)
    model.add(a + b >= 1)
    model.minimize(a + 2 * b)
    relaxation, bound = relaxed(model)
    assert len(relaxation.rows) == 1
    assert bound.lower_bound(None) == 1


def spelled(rng: random.Random) -> tuple[cp.Model, list[cp.Expression], list[tuple[tuple[int, ...], int]]]:
    """A model with automata, counts and costs; its variables, and all solutions with their values."""
    model = cp.Model()
    rows, days = rng.randint(1, 3), rng.randint(1, 3)
    cells = [[model.int_var(sorted(rng.sample(range(3), rng.randint(1, 3)))) for _ in range(days)] for _ in range(rows)]
    moves = [{s: rng.randrange(3) for s in range(3) if rng.random() < 0.8} for _ in range(3)]
    ends = rng.sample(range(3), rng.randint(1, 3))
    for row in cells:
        if rng.random() < 0.8:
            model.regular(row, moves, 0, ends)
    for column in zip(*cells, strict=True):
        model.cardinality(list(column), {rng.randrange(3): model.int_var(rng.randint(0, 1), rows)})
    xs = list(itertools.chain.from_iterable(cells))
    prices = [[rng.randint(-5, 9) for _ in range(3)] for _ in xs]
    model.minimize(3 + model.sum(model.element(price, x) for price, x in zip(prices, xs, strict=True)))
    plain = cp.Model()
    plain._posts, plain._variables = model._posts, model._variables
    copies = [cp.Expression(plain, x.terms, x.constant) for x in xs]
    solutions = {tuple(s[copies]) for s in plain.solutions()}
    return model, xs, [(s, 3 + sum(row[x] for row, x in zip(prices, s, strict=True))) for s in solutions]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9))
def test_costs_of_values_are_never_above_the_best_solution_with_them(seed: int) -> None:
    model, xs, solutions = spelled(random.Random(seed))
    _, bound = relaxed(model)
    value = bound.lower_bound(None)
    costs = bound.value_costs()
    best = min((value for _, value in solutions), default=None)
    result = model.solve(options=cp.SearchOptions(restart_scale=1))
    assert (result.status, result.value) == (("infeasible", None) if best is None else ("optimal", best))
    if best is None or value is None or costs is None:
        return
    assert value + 3 <= best
    places = {next(iter(x.terms)): place for place, x in enumerate(xs)}
    for var, number, cost in costs.rows.tolist():
        if var in places:
            with_value = [v for s, v in solutions if s[places[var]] == number]
            assert not with_value or -(-cost // costs.unit) + 3 <= min(with_value)


def test_automata_are_part_of_the_relaxation() -> None:
    model = cp.Model()
    xs = model.int_vars(4, 0, 1)
    model.regular(xs, [{0: 1, 1: 0}, {1: 0}], 0, [0, 1])  # no two 0 in a row
    model.add(model.sum(xs) >= 1)
    model.minimize(model.sum(xs))
    assert relaxed(model)[1].lower_bound(None) == 2
