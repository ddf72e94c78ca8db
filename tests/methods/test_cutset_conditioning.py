"""Cutset conditioning: equal to brute force, or no answer."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

import elimina
from elimina._core import CutsetConditioning
from elimina.methods import cutset_conditioning as method
from elimina.methods.factor_lists import factors_of
from elimina.methods.junction_structure import MarginalQuery, choose_structure
from elimina.methods.posterior_estimation import _estimated_posteriors
from elimina.methods.sum_estimate import Limits, SumEstimate
from elimina.model.model import Model
from elimina.model.table import Scopes, Table
from elimina.model.variable import Variable
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.options import Options
from elimina.problem.preparation import Problem, prepare
from tests.reference import brute


def random_model(seed: int, variables: int = 8, factors: int = 14) -> Model:
    """A model of small tables with zeros, and values over many orders of magnitude."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, variables)
    tables = []
    for _ in range(factors):
        scope = tuple(int(v) for v in rng.permutation(variables)[: int(rng.integers(0, 4))])
        values = np.exp(rng.normal(0, rng.choice([1, 20]), size=[sizes[v] for v in scope]))
        tables.append((scope, np.where(rng.random(values.shape) < 0.15, 0.0, values)))
    return Model.from_arrays(sizes.tolist(), tables, sense="probability")


def exact(problem: Problem) -> tuple[float, np.ndarray]:
    """The logarithm of the sum, and the marginals of the free variables."""
    model = problem.model
    weights = {v: [float(i == value) for i in range(model.sizes[v])] for v, value in problem.fixed.items()}
    log_z, marginals = brute.posteriors(model, weights)
    return log_z, np.concatenate([*(np.array(marginals[v]) for v in problem.free), []])


def conditioning_of(problem: Problem, order: list[int]) -> CutsetConditioning:
    factors = factors_of(problem)
    sizes = np.array([problem.model.sizes[v] for v in problem.free], dtype=np.int64)
    starts, members = factors.scopes
    return CutsetConditioning(sizes, starts, members.astype(np.int32), factors.values, np.array(order, dtype=np.int32))


def answer_of(problem: Problem, memory_bytes: int, seconds: float = 60.0) -> SumEstimate | None:
    limits = Limits(time.monotonic() + seconds, memory_bytes)
    return next(method.cutset_conditioning(problem, CheckedOptions(), limits), None)


@pytest.mark.parametrize("seed", range(60))
def test_any_cutset_and_order_equal_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = prepare(random_model(seed), "mar", {})
    if factors_of(problem).log_scale == -math.inf:
        return
    count = len(problem.free)
    order = rng.permutation(count)[: int(rng.integers(0, count + 1))].tolist()
    conditioning = conditioning_of(problem, order)
    assert conditioning.run(600.0)
    assert conditioning.progress == 1
    log_z, shares = exact(problem)
    log_sum = conditioning.log_sum + factors_of(problem).log_scale
    if log_z == -math.inf:
        assert conditioning.log_sum == -math.inf
    else:
        assert log_sum == pytest.approx(log_z, abs=1e-9)
        assert conditioning.marginals() == pytest.approx(shares, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("memory_bytes", [1 << 12, 1 << 14, 1 << 20])
def test_answers_within_the_memory_are_exact(seed: int, memory_bytes: int) -> None:
    problem = prepare(random_model(seed, variables=12, factors=24), "mar", {})
    answer = answer_of(problem, memory_bytes)
    if answer is None:
        return
    assert answer.is_exact
    assert answer.error == 0
    log_z, shares = exact(problem)
    assert answer.log_z == pytest.approx(log_z, abs=1e-9)
    if not answer.is_zero:
        assert answer.shares == pytest.approx(shares, abs=1e-9)


def test_slices_stop_and_resume() -> None:
    pairs = [(pair, np.random.default_rng(0).random((2, 2))) for pair in itertools.combinations(range(12), 2)]
    problem = prepare(Model.from_arrays([2] * 12, pairs, sense="probability"), "mar", {})
    conditioning, turns = conditioning_of(problem, [0, 1]), 0
    while not conditioning.run(0.0):
        turns += 1
        assert conditioning.progress == pytest.approx(turns / 1024)
    assert turns == 1023
    assert conditioning.marginals() == pytest.approx(exact(problem)[1])


def test_answers_are_right_unless_numbers_left_the_range_of_floats() -> None:
    """Chains and stars with values down to 1e-250, whose likely states contradict each other."""
    rng = np.random.default_rng(0)
    accurate = 0
    for _ in range(200):
        exponents = rng.choice([0, -20, -120, -250])
        tables = [((v, int(rng.integers(0, v))), 10.0 ** (exponents * rng.random((2, 2)))) for v in range(1, 9)]
        tables += [((v,), rng.permutation([1.0, 10.0 ** (exponents * rng.random())])) for v in range(0, 9, 3)]
        problem = prepare(Model.from_arrays([2] * 9, tables, sense="probability"), "mar", {})
        conditioning = conditioning_of(problem, rng.permutation(9)[: int(rng.integers(5, 10))].tolist())
        assert conditioning.run(600.0)
        if not conditioning.is_accurate:
            continue
        accurate += 1
        log_z, shares = exact(problem)
        assert conditioning.log_sum + factors_of(problem).log_scale == pytest.approx(log_z)
        assert conditioning.marginals() == pytest.approx(shares, abs=1e-9)
    assert 50 < accurate < 200


def test_a_product_that_leaves_the_range_of_floats_proves_nothing() -> None:
    tables = [((0, v), np.array([[1.0, 1.0], [1e-200, 1e-200]])) for v in (1, 2, 3)] + [((0,), np.array([0.0, 1.0]))]
    tables += [((0, 4), np.array([[1.0, 1.0], [1e-150, 1e-150]]))]
    problem = prepare(Model.from_arrays([2] * 5, tables, sense="probability"), "mar", {})
    conditioning = conditioning_of(problem, [1, 2, 3, 4, 0])
    assert conditioning.run(600.0)
    assert not conditioning.is_accurate
    assert answer_of(problem, 1 << 20) is None


def test_too_many_slices_wait_for_more_time() -> None:
    pairs = [(pair, [[2, 1], [1, 2]]) for pair in itertools.combinations(range(40), 2)]
    problem = prepare(Model.from_arrays([2] * 40, pairs, sense="probability"), "mar", {})
    answer = answer_of(problem, 1 << 17, seconds=2.0)
    assert answer is not None
    assert answer.shares is None


def test_posteriors_that_only_slices_fit_are_exact() -> None:
    rng = np.random.default_rng(4)
    edges = [(v, v + 1) for v in range(144) if v % 12 < 11] + [(v, v + 12) for v in range(132)]
    tables = [(edge, np.exp(rng.normal(0, 1, (2, 2)))) for edge in edges]
    model = Model.from_arrays([2] * 144, tables, sense="probability")
    options = CheckedOptions(threads=1)
    result = elimina.solve(model, "mar", memory="1MiB", time_limit=120, device="cpu", options=options)
    whole = elimina.solve(model, "mar", device="cpu")
    assert result.status == "exact"
    assert result.stats["method"] == method.NAME
    assert result.error is None
    assert result.log10_z == pytest.approx(whole.log10_z)
    for name, shares in whole.marginals.items():
        assert list(result.marginals[name].values()) == pytest.approx(list(shares.values()))


def test_an_exact_answer_that_only_slices_fit_is_not_refused() -> None:
    rng = np.random.default_rng(4)
    edges = [(v, v + 1) for v in range(144) if v % 12 < 11] + [(v, v + 12) for v in range(132)]
    model = Model.from_arrays([2] * 144, [(edge, rng.random((2, 2))) for edge in edges], sense="probability")
    options = CheckedOptions(threads=1, exact=True)
    result = elimina.solve(model, "mar", memory="300KiB", device="cpu", options=options)
    assert result.status == "exact"
    assert result.stats["method"] == method.NAME
    assert result.log10_z == pytest.approx(elimina.solve(model, "pr", device="cpu").log10_z)


@pytest.mark.parametrize("observed", [{}, {1: 1}])
def test_evidence_that_the_query_does_not_depend_on_may_be_impossible(observed: dict[int, int]) -> None:
    """The slices of the query's factors do not show that b = 1 contradicts a."""
    model = Model(
        [Variable("a", 2), Variable("b", 2), Variable("c", 2)],
        [Table([0], np.array([1.0, 0.0])), Table([0, 1], np.eye(2)), Table([2], np.array([0.25, 0.75]))],
        sense="probability",
        children=[0, 1, 2],
    )
    structure = choose_structure(model, observed, [2], CheckedOptions())
    estimate = answer_of(structure.problem, 1 << 20)
    assert estimate is not None
    result = _estimated_posteriors(MarginalQuery(model, observed, [2], False, structure, {}), estimate)
    assert result.status == ("estimated" if observed else "exact")
    assert list(result.marginals["c"].values()) == [0.25, 0.75]


def test_orders_and_values_are_checked() -> None:
    scopes = Scopes.of([(0, 1)])
    scope = (np.array([2, 2], dtype=np.int64), scopes.starts, scopes.members.astype(np.int32))
    order = np.array([0], dtype=np.int32)
    with pytest.raises(ValueError, match="from 0 to 1"):
        CutsetConditioning(*scope, np.array([1.0, 2.0, 1.0, 1.0]), order)
    with pytest.raises(ValueError, match="one value"):
        CutsetConditioning(*scope, np.ones(3), order)
    for wrong in ([0, 0], [2], [-1]):
        with pytest.raises(ValueError, match="once at most"):
            CutsetConditioning(*scope, np.ones(4), np.array(wrong, dtype=np.int32))


def test_a_limit_of_no_bytes() -> None:
    """Tables without variables take no memory beside those that are summed out."""
    model = Model.from_arrays([2, 2], [([], 0.5), ([], 0.001)], sense="probability")
    with pytest.raises(elimina.MemoryLimitError):
        elimina.solve(model, "mar", memory="1B", options=Options(exact=True))
