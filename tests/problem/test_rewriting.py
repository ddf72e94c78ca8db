"""Large tables that list some tuples and allow all others: alone, and with others that share their variables."""

from __future__ import annotations

import numpy as np
import pytest

import elimina
from elimina import Model, Table, Variable
from elimina.model.table import FORBIDDEN
from elimina.problem import evidence as evidence_module
from elimina.problem import rewriting
from elimina.problem.merging import BEST
from elimina.problem.rewriting import solved_alone
from tests import calls
from tests.reference import brute

HUGE = 2_000_000_000


def huge(values, rows, default, *others, sizes=(HUGE,), sense="min-cost"):
    variables = [Variable(f"x{v}", size) for v, size in enumerate((*sizes, 2, 2))]
    table = Table(range(len(sizes)), values, sizes=sizes, rows=rows, default=default)
    return Model(variables, [table, *others], sense=sense)


@pytest.mark.parametrize(
    ("values", "rows", "default", "sense", "expected"),
    [
        ([7, 2], [[0], [HUGE - 1]], 5, "min-cost", HUGE - 1),
        ([7, 8], [[1], [0]], 5, "min-cost", 2),
        ([7, 8], [[3], [0]], 5, "min-cost", 1),
        ([7.5, 8.25], [[0], [HUGE - 2]], 5, "max-cost", HUGE - 2),
        ([0.25, 0.5], [[0], [9]], 0.125, "probability", 9),
        ([3, FORBIDDEN], [[4], [5]], 4, "min-cost", 4),
        ([], np.zeros((0, 1), int), 1, "min-cost", 0),
    ],
)
@pytest.mark.parametrize("method", ["auto", "eliminate", "search"])
def test_the_best_value_needs_no_memory(values, rows, default, sense, expected, method):
    model = huge(values, rows, default, Table([1, 2], np.array([[1, 2], [3, 1.5]])), sense=sense)
    found = calls.solve(model, memory="64MB", device="cpu", method=method)
    assert found.status == "optimal"
    assert found.assignment["x0"] == expected
    assert found.value == model.score(model.indices_of(found.assignment))
    assert elimina.plan(model, memory="64MB", device="cpu").bytes["host"] < 1 << 20


def test_tables_of_more_axes_than_arrays_have():
    sizes = (10, *[1] * 100, HUGE)
    model = huge([7, 8], [[0] * 102, [0] * 101 + [1]], 5, sizes=sizes)
    assert solved_alone(model, {}) == dict.fromkeys(range(101), 0) | {101: 2}


def test_observed_and_shared_variables_keep_a_table_from_standing_alone():
    assert solved_alone(huge([7], [[0, 0]], 5, sizes=(HUGE, 2)), {}) == {0: 0, 1: 1}
    assert solved_alone(huge([7], [[0, 0]], 5, sizes=(HUGE, 2)), {1: 0}) == {}
    assert solved_alone(huge([7], [[0, 0]], 5, Table([1], [0, 9]), sizes=(HUGE, 2)), {}) == {}


def test_a_table_that_forbids_all_other_tuples_is_left_to_the_plan():
    assert solved_alone(huge([1], [[0]], FORBIDDEN), {}) == {}


def test_small_tables_against_enumeration(monkeypatch):
    monkeypatch.setattr(rewriting, "MAX_WRITTEN_CELLS", 0)
    random = np.random.default_rng(3)
    for _ in range(200):
        sizes = tuple(random.integers(1, 4, size=random.integers(1, 3)).tolist())
        numbers = random.permutation(int(np.prod(sizes)))[: random.integers(0, 8)]
        rows = np.stack(np.unravel_index(numbers, sizes), axis=1)
        sense = str(random.choice(["min-cost", "max-cost"]))
        model = huge(random.integers(-3, 4, len(rows)), rows, int(random.integers(-3, 4)), sizes=sizes, sense=sense)
        dense = model.factors[0].dense()
        best = solved_alone(model, {})
        place = tuple(best[v] for v in range(len(sizes)))
        assert dense[place] == (dense.min() if sense == "min-cost" else dense.max())


def random_listed(random, sense):
    """A model of listed tables, some of which forbid the tuples that they leave out, and of full ones."""
    sizes = random.integers(1, 5, size=random.integers(2, 6)).tolist()
    is_integer = sense != "probability" and random.random() < 0.6

    def numbers(*shape):
        found = random.integers(0 if sense == "probability" else -9, 10, shape)
        return found if is_integer else found / 8

    worst = {"min-cost": np.inf, "max-cost": -np.inf, "probability": 0.0}[sense]
    if is_integer:
        worst = FORBIDDEN if sense == "min-cost" else -FORBIDDEN
    tables = []
    for _ in range(random.integers(1, 4)):
        scope = random.permutation(len(sizes))[: random.integers(1, 5)].tolist()
        shape = [sizes[v] for v in scope]
        chosen = random.permutation(int(np.prod(shape)))[: random.integers(0, 7)]
        rows, values = np.stack(np.unravel_index(chosen, shape), axis=1), numbers(len(chosen))
        values[random.random(len(values)) < 0.2] = worst
        default = worst if random.random() < 0.4 else numbers(1)[0].item()
        tables.append(Table(scope, values, sizes=shape, rows=rows, default=default))
    for v in np.flatnonzero(random.random(len(sizes)) < 0.5).tolist():
        tables.append(Table([v], numbers(sizes[v])))
    if len(sizes) > 2 and random.random() < 0.5:
        tables.append(Table([2, 1], numbers(sizes[2], sizes[1])))
    bound = sense != "probability" and random.random() < 0.2
    names = [f"_s{v}" for v in range(len(sizes))]
    states = [[f"s{x}" for x in range(size)] if random.random() < 0.5 else None for size in sizes]
    variables = [Variable(*own) for own in zip(names, sizes, states, strict=True)]
    return Model(variables, tables, sense=sense, constant=1, upper_bound=3 if bound else None)


@pytest.fixture(params=[rewriting.LARGEST_NUMBER, 1], ids=["chains", "chains and stars"])
def nothing_is_written(request, monkeypatch):
    monkeypatch.setattr(rewriting, "MAX_WRITTEN_CELLS", 0)
    monkeypatch.setattr(rewriting, "_MAX_CHAIN_CELLS", 1)
    monkeypatch.setattr(rewriting, "_LINK_SHARE", 1000)
    monkeypatch.setattr(rewriting, "LARGEST_NUMBER", request.param)


@pytest.mark.parametrize("sense", ["min-cost", "max-cost", "probability"])
@pytest.mark.parametrize("seed", range(40))
def test_answers_against_enumeration(nothing_is_written, sense, seed):
    model = random_listed(np.random.default_rng(seed), sense)
    evidence = {} if seed % 2 else {0: model.variables[0].state(0)}
    known = {} if seed % 2 else {0: 0}
    method = ("auto", "eliminate", "search")[seed % 3]
    brute.check_optimum(model, calls.solve(model, evidence=evidence, device="cpu", method=method), known)
    if model.upper_bound is None:
        assert elimina.solve(model, "count", evidence=evidence).value == brute.count(model, known)
    if sense == "probability":
        found = elimina.solve(model, "pr", evidence=evidence)
        assert found.log10_z == pytest.approx(brute.partition(model, known))
        products = brute.products(model, known)
        sums = [
            [sum(products.numbers[column == x]) for x in range(n)]
            for column, n in zip(products.assignments.T, model.sizes, strict=True)
        ]
        found = elimina.solve(model, "mar", evidence=evidence)
        assert (found.status == "infeasible") == (sum(sums[0]) == 0)
        for variable, own in zip(model.variables, sums, strict=True):
            if found.status == "exact":
                shares = found.marginals[variable.name]
                assert list(shares) == list(variable.all_states)
                assert list(shares.values()) == pytest.approx([x / sum(own) for x in own])
        v = int(np.random.default_rng(seed).integers(len(model.sizes)))
        query = [model.variables[v].name]
        found = elimina.solve(model, "mmap", query=query, evidence=evidence)
        assert (found.status == "infeasible") == (max(sums[v]) == 0)
        if found.status == "optimal":
            assert list(found.assignment) == query
            assert sums[v][model.variables[v].index(found.assignment[query[0]])] == pytest.approx(max(sums[v]))
    if sense != "probability" and model.is_integer and model.upper_bound is None:
        found = elimina.solve(model, "count-optima", evidence=evidence)
        best = brute.optimum(model, known)
        assert found.value == best
        if best is not None:
            assert found.count == sum(score == best for score in brute.scores_of(model, known))
            assert list(found.assignment) == [v.name for v in model.variables]


@pytest.mark.parametrize("seed", range(40))
def test_a_hint_may_have_values_that_others_stand_for(nothing_is_written, seed):
    random = np.random.default_rng(seed)
    model = random_listed(random, ("min-cost", "max-cost")[seed % 2])
    chosen = [int(random.integers(size)) for size in model.sizes]
    hint = model.states_at(chosen)
    brute.check_optimum(model, calls.solve(model, device="cpu", hint=hint))
    other, values, _ = rewriting.with_small_tables(model, {}, BEST)
    found = evidence_module.values_there(model, dict(enumerate(chosen)), other)
    if not values:
        score = other.score([found[v] for v in range(len(other.variables))])
        assert model.sign * score <= model.sign * model.score(chosen)
    assert evidence_module.values_there(model, {0: chosen[0]}, other)[0] == found[0]


def test_a_hint_where_a_table_has_no_variables(nothing_is_written):
    rows = [[0, 0], [1, 2], [2, 1]]
    tables = [Table([], 4), Table([0, 1], [3, 1, 2], sizes=[3, 4], rows=rows, default=5), Table([0], [0, 1, 2])]
    model = Model([Variable("a", 3), Variable("b", 4)], tables)
    assert len(rewriting.with_small_tables(model, {}, BEST)[0].variables) > 2
    assert calls.solve(model, device="cpu", hint={"a": 2, "b": 1}).value == 6


def test_a_huge_table_that_shares_its_variables():
    """It becomes small where nothing else tells its values apart, and a chain where a table over two variables does."""
    shapes = ((2, HUGE), [[1, 5], [1, HUGE - 1], [0, 7]]), ((2, 2, 1000, 1000, 1000), np.eye(3, 5, dtype=int))
    for sizes, rows in shapes:
        listed = Table(range(len(sizes)), [3, 7, -1], sizes=sizes, rows=rows, default=4)
        full = Table([0, len(sizes) if len(sizes) == 2 else 1], np.array([[1, 2], [3, 0]]))
        model = Model([Variable(f"x{v}", size) for v, size in enumerate((*sizes, 2))], [listed, full])
        for method in ("auto", "eliminate", "search"):
            found = calls.solve(model, memory="64MB", device="cpu", method=method)
            assert found.status == "optimal"
            assert found.value == model.score(model.indices_of(found.assignment)) == 0
        assert elimina.plan(model, memory="64MB", device="cpu").bytes["host"] < 1 << 20


def test_many_variables_with_few_values():
    random = np.random.default_rng(0)
    pairs = [Table([v, v + 1], random.integers(0, 9, (2, 2))) for v in range(39)]
    rows = np.unique(random.integers(0, 2, (50, 40)), axis=0)
    listed = Table(range(40), random.integers(0, 90, len(rows)), sizes=[2] * 40, rows=rows, default=60)
    model = Model([Variable(f"x{v}", 2) for v in range(40)], [*pairs, listed])
    found = calls.solve(model, memory="64MB", device="cpu")
    others = calls.solve(Model(model.variables, pairs), device="cpu").value + 60
    best = min(others, *(int(model.score(row)) for row in rows.tolist()))
    assert (found.status, found.value, len(found.assignment)) == ("optimal", best, 40)
    assert elimina.solve(model, "count", memory="64MB").value == 2**40
    for order in (list(range(40)), [f"x{v}" for v in reversed(range(40))], elimina.plan(model).order):
        ordered = calls.solve(model, memory="64MB", device="cpu", order=order)
        assert (ordered.status, ordered.value) == ("optimal", best)
    with pytest.raises(elimina.InputError, match="the order lacks 40 of the 79 variables to eliminate, 'x0'"):
        calls.solve(model, order=range(1, 40))


@pytest.mark.parametrize("seed", range(40))
def test_junction_trees_against_enumeration(nothing_is_written, seed):
    random = np.random.default_rng(seed)
    model = random_listed(random, "probability")
    names = [v.name for v in model.variables]
    known = {} if seed % 2 else {0: 0}
    tree = elimina.JunctionTree(model, evidence={names[v]: elimina.StateIndex(x) for v, x in known.items()})
    products = brute.products(model, known)
    weights = np.zeros(model.sizes)
    np.add.at(weights, tuple(products.assignments.T), products.numbers)
    total = weights.sum()
    if total == 0:
        with pytest.raises(elimina.ImpossibleEvidenceError):
            tree.sample(1)
        return
    asked = random.permutation(len(names))[:2].tolist()
    others = tuple(v for v in range(len(names)) if v not in asked)
    expected = weights.sum(axis=others) / total
    expected = expected if asked == sorted(asked) else expected.T
    assert tree.joint(asked) == pytest.approx(expected)
    # Five standard deviations of a frequency.
    drawn = tree.sample(2000, seed=seed, indices=True)
    assert weights[tuple(drawn.T)].all()
    frequencies = np.zeros(model.sizes)
    np.add.at(frequencies, tuple(drawn.T), 1 / len(drawn))
    shares = weights / total
    assert (np.abs(frequencies - shares) <= 5 * np.sqrt(shares * (1 - shares) / len(drawn)) + 1 / len(drawn)).all()
    v, column = asked[0], asked[-1]
    codes = np.arange(-1, model.sizes[column])
    posteriors = tree.batch({names[column]: codes}, [names[v]], indices=True)
    numbers, values = products.numbers.astype(float), products.assignments
    for code, found in zip(codes, posteriors.marginals[names[v]], strict=True):
        is_there = (code < 0) | (values[:, column] == code)
        own = np.bincount(values[:, v], numbers * is_there, model.sizes[v])
        if own.sum():
            assert found == pytest.approx(own / own.sum())
