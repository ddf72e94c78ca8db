"""Optimised weighted mini-buckets: bounds on sums and counts hold for every model, tree and step."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import Model
from elimina._core import WeightedMiniBuckets
from elimina.methods.bound_optimisation import MEMORY_SHARE, improve_bounds
from elimina.methods.bounded_side import BoundedSide
from elimina.methods.count_bounds import integers_between, optima_at_most
from elimina.methods.factor_logarithms import FactorLogarithms
from elimina.methods.marginal_map_bounds import improve_marginal_map
from elimina.methods.mini_bucket_tree import MiniBucketTree
from elimina.methods.quasi_newton import minimise
from elimina.methods.task_bounds import bounded_task
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.ordering import elimination_order, rough_order
from elimina.planning.tree import node_weights, plan_tree, tree_of
from elimina.problem.preparation import prepare
from tests import calls
from tests.random_models import models
from tests.reference import brute

MEMORY_BYTES = 1 << 24

SLACK = 1e-12
"""Rounding of the reference's logarithm, relative to it or to 1."""


def pairwise(rows, columns, table_of):
    """A grid of pairs of neighbours, of variables with as many values as a table has rows."""
    place = lambda i, j: i * columns + j  # noqa: E731
    factors = []
    for i, j in itertools.product(range(rows), range(columns)):
        factors += [((place(i, j), place(i + 1, j)), table_of())] if i + 1 < rows else []
        factors += [((place(i, j), place(i, j + 1)), table_of())] if j + 1 < columns else []
    size = len(table_of())
    return Model.from_arrays([size] * (rows * columns), factors, sense="probability")


def ising(side, coupling=0.5, seed=0):
    rng = np.random.default_rng(seed)

    def table():
        strength = rng.normal(0, coupling)
        return np.exp([[strength, -strength], [-strength, strength]])

    return pairwise(side, side, table)


def independent_sets(rows, columns):
    """Sets of cells of a grid without two neighbours."""
    return pairwise(rows, columns, lambda: np.array([[1.0, 1.0], [1.0, 0.0]]))


def colourings(rows, columns, colours):
    """Colourings of a grid."""
    return pairwise(rows, columns, lambda: 1 - np.eye(colours))


def bounds_of(model, evidence=None, seconds=5.0, **options):
    problem = prepare(model, "pr", evidence or {})
    deadline = time.monotonic() + seconds
    return list(improve_bounds(problem, CheckedOptions(threads=1, **options), MEMORY_BYTES, deadline))


def check(bounds, log_z):
    """Each pair of bounds holds, and none is worse than the one before."""
    slack = SLACK * max(1.0, abs(log_z)) if log_z > -math.inf else 0.0
    assert bounds
    for bound in bounds:
        assert bound.lower - slack <= log_z <= bound.upper + slack
    for first, second in itertools.pairwise(bounds):
        assert first.lower <= second.lower
        assert first.upper >= second.upper


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_bounds_hold_for_any_model(data):
    model = data.draw(models("probability"))
    observed = data.draw(st.sets(st.sampled_from(range(len(model.sizes))), max_size=2)) if model.sizes else ()
    evidence = {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in observed}
    ibound = data.draw(st.sampled_from([1, 2, 3, None]))
    bounds = bounds_of(model, evidence, ibound=ibound)
    check(bounds, brute.partition(model, evidence) * math.log(10))


@given(data=st.data(), kind=st.sampled_from(["integer", "max-integer", "big-integer", "float", "probability"]))
@settings(max_examples=300, deadline=None)
def test_counts_are_between_their_bounds(data, kind):
    model = data.draw(models(kind))
    observed = data.draw(st.sets(st.sampled_from(range(len(model.sizes))), max_size=2)) if model.sizes else ()
    evidence = {v: data.draw(st.integers(0, model.sizes[v] - 1)) for v in observed}
    options = CheckedOptions(threads=1, ibound=data.draw(st.sampled_from([1, 2])), memory=MEMORY_BYTES)
    results = []
    deadline = time.monotonic() + 5
    bounded_task(prepare(model, "count", evidence), options, deadline, results.append)
    count = brute.count(model, evidence)
    for result in results:
        assert result.lower_bound <= count <= result.upper_bound
        assert isinstance(result.lower_bound, int)
        assert isinstance(result.upper_bound, int)
        if result.status == "exact":
            assert result.value == count


@pytest.mark.parametrize("side", ["upper", "lower"])
@pytest.mark.parametrize("shared", [1, 2, 4])
def test_gradient_is_that_of_differences(side, shared):
    rng = np.random.default_rng(shared)
    sizes = [2, 3, 2, 3, 2]
    scopes = [(u, v) for u, v in itertools.combinations(range(5), 2)]
    tree = plan_tree(scopes, sizes, range(5), (), 2)
    nodes = tree_of(tree)
    values = rng.normal(size=sum(sizes[u] * sizes[v] for u, v in scopes))
    weights = np.array(node_weights(nodes, side, [False] * len(scopes)))
    buckets = WeightedMiniBuckets(tree, values, weights, shared)
    parameters = buckets.initial + rng.normal(size=len(buckets.initial)) / 4
    slope = buckets.gradient(parameters)
    value, gradient = slope.bound, slope.gradient
    assert value == pytest.approx(buckets.bound(parameters), abs=1e-12)
    step = 1e-6
    differences = [
        (buckets.bound(parameters + unit) - buckets.bound(parameters - unit)) / (2 * step)
        for unit in step * np.eye(len(parameters))
    ]
    assert gradient == pytest.approx(np.array(differences), abs=1e-7)
    assert np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize("side", ["upper", "lower"])
def test_parameters_are_continued(side):
    """In the same tree the bound stays; in a larger one it holds."""
    problem = prepare(ising(6), "pr", {})
    order = list(range(36))
    logarithms = FactorLogarithms.of(problem, order)
    trees = [plan_tree(problem.groups.scopes, problem.model.sizes, order, (), ibound) for ibound in (2, 2, 3)]
    buckets = [
        WeightedMiniBuckets(tree, logarithms.values, np.array(node_weights(tree_of(tree), side, logarithms.zeros)), 4)
        for tree in trees
    ]
    steps = minimise(lambda parameters: descent(buckets[0], side, parameters), buckets[0].initial)
    _, parameters = list(itertools.islice(steps, 30))[-1]
    bounds = [each.bound(each.continued(buckets[0], parameters)) for each in buckets]
    assert bounds[0] == pytest.approx(buckets[0].bound(parameters), abs=1e-9)
    assert bounds[1] == pytest.approx(bounds[0], abs=1e-9)
    sign = 1 if side == "upper" else -1
    assert sign * (bounds[2] - brute_force_of_grid(ising(6)) + math.fsum(logarithms.constants)) >= 0


def descent(buckets, side, parameters):
    slope = buckets.gradient(parameters)
    value, gradient = slope.bound, slope.gradient
    return (value, gradient) if side == "upper" else (-value, -gradient)


def test_bounds_of_two_threads_hold():
    model = ising(10)
    problem = prepare(model, "pr", {})
    bounds = list(improve_bounds(problem, CheckedOptions(threads=2, ibound=4), MEMORY_BYTES, time.monotonic() + 2))
    check(bounds, brute_force_of_grid(model))


def test_sides_that_do_not_fit_together_are_bounded_one_after_the_other():
    model = independent_sets(8, 8)
    problem = prepare(model, "pr", {})
    order = elimination_order(problem, CheckedOptions(order="min-fill", threads=1))
    alone, together = (MiniBucketTree.of(problem, order, 2, sides, 0).peak_bytes for sides in (1, 2))
    memory_bytes = int((alone + together) / 2 / MEMORY_SHARE)
    options = CheckedOptions(threads=1, order=order, ibound=2)
    bounds = list(improve_bounds(problem, options, memory_bytes, 200.0, Reads()))
    assert alone <= bounds[-1].tree.peak_bytes < together
    assert bounds[-1].lower > 0
    check(bounds, brute_force_of_grid(model))


def test_a_tree_that_divides_nothing_is_exact():
    model = ising(4)
    log_z = brute_force_of_grid(model)
    last = bounds_of(model, ibound=8)[-1]
    assert last.upper - last.lower < 1e-9
    assert last.lower - 1e-12 <= log_z <= last.upper + 1e-12
    shares = {v: last.shares[2 * place : 2 * place + 2] for place, v in enumerate(last.order)}
    exact = elimina.solve(model, "mar").marginals
    for v, variable in enumerate(model.variables):
        assert shares[v] == pytest.approx(list(exact[variable.name].values()), abs=1e-9)


def brute_force_of_grid(model):
    return elimina.solve(model, "pr").log10_z * math.log(10)


def test_optimisation_closes_most_of_the_gap():
    problem = prepare(ising(12, seed=3), "pr", {})
    order = elimination_order(problem, CheckedOptions(order="min-fill", threads=1))
    tree, logarithms = MiniBucketTree.of(problem, order, 5), FactorLogarithms.of(problem, order)
    ends = {}
    for side in ("upper", "lower"):
        bounds = list(itertools.islice(BoundedSide(tree, logarithms, side).improve(), 60))
        assert bounds == sorted(bounds, reverse=side == "upper")
        ends[side] = bounds[0], bounds[-1]
    first, last = (ends["upper"][step] - ends["lower"][step] for step in range(2))
    assert 0 < last < first / 2


@given(seed=st.integers(0, 1000), variable=st.integers(0, 63))
@settings(max_examples=10, deadline=None)
def test_bounds_of_states_and_of_their_sum_agree(seed, variable):
    """The sum given each state of a variable adds up to the whole, so that bounds of these cannot contradict its."""
    model = ising(8, coupling=1.5, seed=seed)
    whole = bounds_of(model, ibound=2, seconds=1)[-1]
    parts = [bounds_of(model, {variable: state}, ibound=2, seconds=1)[-1] for state in range(2)]
    assert np.logaddexp.reduce([part.lower for part in parts]) <= whole.upper
    assert np.logaddexp.reduce([part.upper for part in parts]) >= whole.lower


@pytest.mark.parametrize(
    "model", [independent_sets(18, 18), colourings(12, 12, 3)], ids=["independent sets", "colourings"]
)
def test_a_count_that_does_not_fit_is_bounded(model):
    exact = elimina.solve(model, "count").value
    result = calls.solve(model, "count", memory=1 << 20, slices="never", device="cpu", order_seconds=0.1)
    assert (result.status, result.value) == ("estimated", None)
    assert 1 < result.lower_bound <= exact <= result.upper_bound < math.prod(model.sizes)
    assert math.log10(result.lower_bound) <= result.log10_z <= math.log10(result.upper_bound)
    with pytest.raises(elimina.MemoryLimitError, match="the plan needs"):
        calls.solve(model, "count", memory=1 << 20, slices="never", method="eliminate", device="cpu")


@given(data=st.data(), kind=st.sampled_from(["integer", "max-integer", "big-integer"]))
@settings(max_examples=200, deadline=None)
def test_optima_are_no_more_than_their_bound(data, kind):
    model = data.draw(models(kind))
    best = brute.optimum(model)
    if best is None:
        return
    number = sum(score == best for score in brute.scores_of(model))
    options = CheckedOptions(threads=1, ibound=data.draw(st.sampled_from([1, 2])), memory=MEMORY_BYTES)
    assert number <= optima_at_most(prepare(model, "mpe", {}), best, options, 5.0)


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_marginal_map_is_between_its_bounds(data):
    model = data.draw(models("probability"))
    free = [v for v, size in enumerate(model.sizes) if size > 1]
    if not free:
        return
    query = data.draw(st.lists(st.sampled_from(free), min_size=1, unique=True))
    problem = prepare(model, "mmap", {}, query)
    joint = problem._replace(task="pr", free=(*problem.free, *problem.kept), kept=(), maximised=problem.kept)
    options = CheckedOptions(threads=1, ibound=data.draw(st.sampled_from([1, 2, None])))
    sums = {}
    products = brute.products(model)
    for values, number in zip(products.assignments[:, list(problem.kept)].tolist(), products.numbers, strict=True):
        sums[tuple(values)] = sums.get(tuple(values), 0) + number

    def log(number):
        return math.log(number) - math.log(products.unit) + model.constant if number else -math.inf

    best = log(max(sums.values()))
    slack = 1e-12 * max(1.0, abs(best)) if best > -math.inf else 0.0
    order = [*problem.free, *problem.kept]
    for bounds in improve_marginal_map(joint, order, options, MEMORY_BYTES, time.monotonic() + 5):
        if bounds.status == "infeasible":
            assert best == -math.inf
            return
        assert best <= bounds.upper_bound + slack
        if bounds.assignment is not None:
            states = tuple(model.variables[v].index(bounds.assignment[model.variables[v].name]) for v in problem.kept)
            assert bounds.lower_bound - slack <= log(sums[states])


def test_a_count_of_nothing_is_zero():
    model = colourings(2, 2, 2)
    tables = [*model.factors, elimina.Table((0, 3), np.eye(2)[::-1])]
    model = Model(model.variables, tables, sense="probability")
    results = []
    options, deadline = CheckedOptions(threads=1, ibound=3), time.monotonic() + 5
    bounded_task(prepare(model, "count", {}), options, deadline, results.append)
    assert results[-1].status == "exact"
    assert results[-1].value == 0


@given(st.integers(0, 10**40))
def test_integers_are_between_their_rounded_bounds(number):
    log = math.log(number) if number else -math.inf
    error = 1e-12 * abs(log) if number else 0.0
    lower, upper = integers_between(log - error, log + error)
    assert lower <= number <= upper
    assert upper - lower <= 2e-9 * number


def test_quasi_newton_finds_the_minimum():
    def rosenbrock(place):
        x, y = place
        gradient = np.array([-400 * x * (y - x * x) - 2 * (1 - x), 200 * (y - x * x)])
        return float(100 * (y - x * x) ** 2 + (1 - x) ** 2), gradient

    values, places = zip(*itertools.islice(minimise(rosenbrock, np.array([-1.2, 1.0])), 200), strict=True)
    assert list(values) == sorted(values, reverse=True)
    assert places[-1] == pytest.approx([1, 1], abs=1e-6)


class Reads:
    """A clock that advances whenever it is read: what runs by it does not depend on the machine."""

    def __init__(self):
        self.number = 0

    def __call__(self):
        self.number += 1
        return float(self.number)


def test_large_grid_in_little_memory():
    rng = np.random.default_rng(0)
    side, factors = 40, []
    for i, j in itertools.product(range(side), range(side)):
        field = rng.normal(0, 0.3)
        factors.append(((i * side + j,), np.exp([field, -field])))
        for a, b in ((i + 1, j), (i, j + 1)):
            if a < side and b < side:
                strength = rng.normal(0, 0.5)
                factors.append(((i * side + j, a * side + b), np.exp([[strength, -strength], [-strength, strength]])))
    model = Model.from_arrays([2] * side**2, factors, sense="probability")
    problem = prepare(model, "pr", {})
    order = rough_order(problem, CheckedOptions()).order
    clock = Reads()
    bounds = list(improve_bounds(problem, CheckedOptions(threads=1, order=order, ibound=12), 64_000_000, 200.0, clock))
    assert all(bound.tree.peak_bytes <= 64_000_000 for bound in bounds)
    assert (bounds[-1].upper - bounds[-1].lower) / math.log(10) <= 4
