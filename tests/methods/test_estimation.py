"""Approximate methods in turn: which estimate stands, how turns are shared, and when they end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from elimina.methods import estimation as module
from elimina.methods import sum_estimate, sum_estimation
from elimina.methods.estimate_choice import DOUBT_SHARE
from elimina.methods.estimate_methods import EstimateMethod
from elimina.methods.estimation import Estimation, MarginalMethod
from elimina.methods.sum_estimate import Limits, SumEstimate, hellinger_distances
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.planning.checked_options import CheckedOptions
from elimina.problem.preparation import prepare
from tests.methods.test_generalised_belief_propagation import grid
from tests.ticking import let_looks_take

PROBLEM = prepare(Model.from_arrays([2], [((0,), [1, 3])], sense="probability"), "mar", {})


def estimate(method: str, share: float, error: float) -> SumEstimate:
    return SumEstimate(method, 0.0, 0.0, np.array([share, 1 - share]), np.array([error]))


def methods(monkeypatch: pytest.MonkeyPatch, *rows: tuple[list[SumEstimate], int]) -> None:
    def run_of(estimates: list[SumEstimate]) -> Callable[..., Iterator[SumEstimate]]:
        return lambda *_: iter(estimates)

    use(monkeypatch, *((run_of(made), trust) for made, trust in rows))


def use(monkeypatch: pytest.MonkeyPatch, *rows: tuple[Callable[..., Iterator[SumEstimate]], int]) -> None:
    methods = tuple(MarginalMethod(EstimateMethod(run), trust, 0.5) for run, trust in rows)
    monkeypatch.setattr(module, "METHODS", methods)


def answers() -> list[SumEstimate]:
    return list(Estimation(PROBLEM, CheckedOptions(), 1 << 20).improve(time.monotonic() + 60))


def test_the_estimate_with_the_least_error_of_a_method_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [estimate("a", 0.3, 0.3), estimate("a", 0.4, 0.5), estimate("a", 0.25, 0.1)]
    methods(monkeypatch, (made, 1))
    assert [answer.shares[0] for answer in answers()] == [0.3, 0.25]


def test_a_method_with_less_trust_has_to_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    trusted = estimate("trusted", 0.25, 0.05)
    far, near = estimate("quick", 0.9, 0.001), estimate("quick", 0.26, 0.001)
    assert hellinger_distances(far.shares, trusted.shares, np.array([2]))[0] > 0.05
    methods(monkeypatch, ([far], 1), ([trusted], 2))
    assert [answer.method for answer in answers()] == ["quick", "trusted"]
    methods(monkeypatch, ([near], 1), ([trusted], 2))
    assert [answer.method for answer in answers()] == ["quick"]


def test_a_contradiction_is_part_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    trusted, other = estimate("trusted", 0.25, 0.01), estimate("quick", 0.9, 0.05)
    distance = float(hellinger_distances(trusted.shares, other.shares, np.array([2]))[0])
    methods(monkeypatch, ([trusted], 3), ([other], 1))
    estimation = Estimation(PROBLEM, CheckedOptions(), 1 << 20)
    list(estimation.improve(time.monotonic() + 60))
    assert estimation.best is not None
    assert estimation.best.shares is trusted.shares
    assert estimation.best.error == pytest.approx(DOUBT_SHARE * (distance**2 - other.error**2) ** 0.5)


def test_a_stated_error_of_another_estimate_explains_the_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    certain, vague = estimate("certain", 0.25, 0.01), estimate("vague", 0.9, 0.6)
    assert 0.04 < hellinger_distances(certain.shares, vague.shares, np.array([2]))[0] < vague.error
    methods(monkeypatch, ([certain], 3), ([vague], 1))
    estimation = Estimation(PROBLEM, CheckedOptions(), 1 << 20)
    list(estimation.improve(time.monotonic() + 60))
    assert estimation.best is certain


def test_an_estimate_without_error_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    certain, later = estimate("a", 0.25, 0.0), estimate("a", 0.3, 0.0)
    methods(monkeypatch, ([certain, later], 1))
    assert [answer.shares[0] for answer in answers()] == [0.25]


def test_a_deadline_ends_a_turn_and_the_next_one_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [estimate("a", 0.3, 0.3), estimate("a", 0.25, 0.1)]
    methods(monkeypatch, (made, 1))
    estimation = Estimation(PROBLEM, CheckedOptions(), 1 << 20)
    assert [answer.shares[0] for answer in estimation.improve(time.monotonic())] == [0.3]
    assert [answer.shares[0] for answer in estimation.improve(time.monotonic() + 60)] == [0.25]
    assert estimation.is_done
    assert estimation.best is not None
    assert estimation.best.shares is made[1].shares


def test_turns_are_shared_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = let_looks_take(0.0, monkeypatch, module, sum_estimate)
    turns = []

    def busy(name: str, seconds: float) -> Callable[..., Iterator[SumEstimate]]:
        def run(*_: object) -> Iterator[SumEstimate]:
            while True:
                clock.advance(seconds)
                turns.append(name)
                yield estimate(name, 0.3, 0.3)

        return run

    use(monkeypatch, (busy("short", 0.01), 1), (busy("long", 0.05), 1))
    list(Estimation(PROBLEM, CheckedOptions(), 1 << 20).improve(clock.monotonic() + 1))
    assert turns.count("short") >= 2 * turns.count("long") >= 2


def test_a_method_without_an_estimate_waits_for_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [SumEstimate("a"), SumEstimate("a"), estimate("a", 0.3, 0.1)]
    methods(monkeypatch, (made, 2), ([estimate("b", 0.25, 0.2)], 1))
    running = Estimation(PROBLEM, CheckedOptions(), 1 << 20)
    for expected in (["b"], [], ["a"]):
        assert [answer.method for answer in running.improve(time.monotonic() + 60)] == expected


@pytest.mark.parametrize("coupling", [30.0, 200.0])
@pytest.mark.parametrize("approximation", module.METHODS, ids=lambda row: row.method.run.__name__)
def test_no_method_proves_that_a_positive_model_is_impossible(approximation: MarginalMethod, coupling: float) -> None:
    problem = prepare(grid(7, 7, coupling), "mar", {})
    limits = Limits(time.monotonic() + 1.5, 1 << 18)
    for estimate in approximation.method.run(problem, CheckedOptions(device="cpu"), limits):
        assert not estimate.is_zero
        if limits.is_over:
            break


def test_methods_that_wait_stay_in_their_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of a wait, which differs from run to run, does not decide which method is next."""
    clock = let_looks_take(0.0, monkeypatch, module, sum_estimate)
    turns = []

    def waiting(name: str, seconds: float) -> Callable[..., Iterator[SumEstimate]]:
        def run(*_: object) -> Iterator[SumEstimate]:
            for _ in range(2):
                clock.advance(seconds)
                turns.append(name)
                yield SumEstimate(name)

        return run

    use(monkeypatch, (waiting("slow", 0.004), 1), (waiting("quick", 0.002), 1))
    running = Estimation(PROBLEM, CheckedOptions(), 1 << 20)
    for _ in range(2):
        list(running.improve(clock.monotonic() + 60))
    assert turns == ["slow", "quick", "slow", "quick"]


@pytest.mark.parametrize("begins_late", [True, False])
@pytest.mark.parametrize("has_estimate", [True, False])
def test_a_method_without_enough_time_waits(begins_late: bool, has_estimate: bool) -> None:
    def run(*_: object) -> Iterator[SumEstimate]:
        yield SumEstimate("slow")
        yield estimate("slow", 0.3, 0.1)
        yield estimate("slow", 0.3, 0.05)

    limits = Limits(time.monotonic() + 60, 1 << 28)
    limits.has_estimate = has_estimate
    made = EstimateMethod(run, 1e3, begins_late).estimates(PROBLEM, CheckedOptions(), limits)
    if has_estimate or not begins_late:
        assert [next(made).method for _ in range(3)] == ["none"] * 3
        limits.deadline += 1e6
    assert [(answer.method, answer.error) for answer in made] == [("slow", np.inf), ("slow", 0.1), ("slow", 0.05)]


def test_no_method_begins_late_with_tables_that_take_long_to_write() -> None:
    """With much memory, a table that lists few tuples of many variables would fit, and take minutes to write."""
    table = Table(range(20), [1.0], sizes=[3] * 20, rows=[[0] * 20], default=0.5)
    problem = prepare(Model([Variable(f"x{v}", 3) for v in range(20)], [table], sense="probability"), "mar", {})
    limits = Limits(time.monotonic() + 1, 1 << 40)
    made = EstimateMethod(lambda *_: iter([estimate("quick", 0.3, 0.1)]), begins_late=True)
    estimates = made.estimates(problem, CheckedOptions(), limits)
    assert [next(estimates).method for _ in range(3)] == ["none"] * 3
    limits.deadline += 1e6
    assert next(estimates).method == "quick"
    started = time.monotonic()
    assert not list(Estimation(problem, CheckedOptions(), 1 << 40).improve(started + 1))
    assert time.monotonic() - started < 1


@pytest.mark.parametrize("has_estimate", [True, False])
def test_methods_of_sums_wait_too(has_estimate: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = EstimateMethod(lambda *_: iter([estimate("slow", 0.3, 0.1)]), 1e3)
    quick = EstimateMethod(lambda *_: iter([estimate("quick", 0.3, 0.2)] if has_estimate else []))
    rows = tuple(sum_estimation.SumMethod(method, 0.3) for method in (quick, slow))
    monkeypatch.setattr(sum_estimation, "SUM_METHODS", rows)
    monkeypatch.setattr(sum_estimation, "IMPORTANCE_SAMPLING", slow)
    running = sum_estimation.SumEstimation(PROBLEM, "pr", CheckedOptions(), 1 << 28)
    answers = [answer.stats["method"] for answer in running.improve(time.monotonic() + 60)]
    assert answers == ["quick"] * has_estimate
