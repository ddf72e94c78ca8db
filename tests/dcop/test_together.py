"""Agents of small tables, which are eliminated together: all that is told of them is as if each worked for itself."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from elimina.dcop import Network, Problem
from elimina.dcop.network_settings import ORDERS, Order
from elimina.dcop.problem import HEURISTICS
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable
from elimina.result import Result
from tests.calls import solve_by_agents as solve
from tests.dcop.running import random_problem

SOLVING = importlib.import_module("elimina.dcop.solve")
TIMES = ("seconds", "simulated_seconds")
FIFO = Network(order="fifo")


def both_ways(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, network: Network = FIFO, **options
) -> tuple[bool, Result, Result]:
    """Return if variables were eliminated together; the answer, and that of agents which work one by one."""
    found = []

    def watched(*arguments):
        found.append(together(*arguments))
        return found[-1]

    together = SOLVING.solve_together
    with monkeypatch.context() as patch:
        patch.setattr(SOLVING, "solve_together", watched)
        answer = solve(problem, threads=1, network=network, **options)
        patch.setattr(SOLVING, "solve_together", lambda *_: None)
        expected = solve(problem, threads=1, network=network, **options)
    return found != [None], answer, expected


def same(answer: Result, expected: Result, *besides: str) -> None:
    known = [
        result.replace(stats={k: v for k, v in result.stats.items() if k not in (*TIMES, *besides)})
        for result in (answer, expected)
    ]
    assert known[0] == known[1]


@pytest.mark.parametrize("kind", ["random", "scale-free", "grid"])
def test_answers_and_figures_are_those_of_single_agents(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = []
    for seed in range(80):
        problem = random_problem(kind, seed, most=12)
        together, answer, expected = both_ways(problem, monkeypatch, heuristic=HEURISTICS[seed % 4], seed=seed)
        # Which variable of an agent comes first decides what is one after another.
        same(answer, expected, "nonconcurrent_operations")
        statuses.append((together, answer.status))
        assert not together or (problem.model.is_integer and answer.status == "optimal")
    assert {(True, "optimal"), (False, "infeasible"), (False, "optimal")} == set(statuses)


def chain(count: int, widest: int, most: int, seed: int = 0) -> Problem:
    """Agents in a chain with chords, several functions of a pair among them, some of which forbid values."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, widest + 1, count).tolist()
    pairs = [(u, v) for v in range(1, count) for u in {v - 1, max(0, v - int(rng.integers(1, 4)))}]
    pairs += [pairs[n][::-1] for n in rng.integers(0, len(pairs), count // 3)]
    tables = []
    for pair in pairs:
        costs = rng.integers(-most, most, [sizes[v] for v in pair])
        tables.append(Table(pair, np.where((rng.random(costs.shape) < 0.05) & (costs > 0), FORBIDDEN, costs)))
    return Problem.from_model(Model([Variable(f"x{v}", n) for v, n in enumerate(sizes)], tables))


@pytest.mark.parametrize(("widest", "most", "dtype"), [(3, 50, "int32"), (8, 9, "int16"), (4, 1 << 40, "int64")])
def test_figures_of_many_agents(widest: int, most: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large buckets among small ones, and costs of all widths."""
    largest = 0
    for seed in range(4):
        together, answer, expected = both_ways(chain(90, widest, most, seed), monkeypatch)
        assert together
        assert answer.status == "optimal"
        same(answer, expected)
        largest = max(largest, answer.stats["largest_table"])
        assert answer.stats["dtype"] == dtype or seed
    assert largest > (1 << 12 if widest == 8 else 36)


def test_many_functions_of_one_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """More tables than a step reads; the agents of a star, and the one that has none."""
    rng = np.random.default_rng(0)
    star = [Table((0, v), rng.integers(0, 9, (3, 2))) for v in range(1, 40)]
    variables = [Variable("hub", 3), *(Variable(f"x{v}", 2) for v in range(1, 40)), Variable("alone", 2)]
    for heuristic in HEURISTICS:
        problem = Problem.from_model(Model(variables, star))
        together, answer, expected = both_ways(problem, monkeypatch, heuristic=heuristic)
        assert together
        same(answer, expected)


def test_large_tables_are_those_of_single_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    scopes = [(u, v) for v in range(4) for u in range(v)]
    tables = [Table(scope, rng.integers(0, 99, (20, 20))) for scope in scopes]
    together, answer, expected = both_ways(
        Problem.from_model(Model([Variable(f"x{v}", 20) for v in range(4)], tables)), monkeypatch
    )
    assert not together
    same(answer, expected)


def test_clocks_carry_delays() -> None:
    """Two agents send eight messages one after another, as in the simulator's test of them."""
    pair = Model([Variable("x", 2), Variable("y", 2)], [Table((0, 1), np.array([[1, 5], [3, 0]]))])
    stats = solve(Problem.from_model(pair), network=Network(delay=1e6)).stats
    assert 8e6 <= stats["simulated_seconds"] < 8e6 + 60
    stats = solve(Problem.from_model(pair), network=Network(delay=1e6, jitter=1e6)).stats
    assert 8e6 < stats["simulated_seconds"] < 16e6 + 60


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("agents", [None, 5])
def test_clocks_are_those_of_single_agents(order: Order, agents: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside such delays work is nothing; waves of the election depend on the time that it takes."""
    network = Network(order=order, delay=1e6)
    for seed in range(5):
        problem = Problem.from_model(chain(30, 3, 9, seed).model, agents)
        together, *answers = both_ways(problem, monkeypatch, network)
        assert together
        same(*answers, "nonconcurrent_operations", "messages", "message_bytes", "network_load")
        sizes = [answer.stats["message_bytes"] for answer in answers]
        assert all(sizes[0][kind] == sizes[1][kind] for kind in ("util", "value"))
        seconds = [answer.stats["simulated_seconds"] for answer in answers]
        if order == "time":
            assert seconds == pytest.approx([round(seconds[1], -6)] * 2, abs=60)
        assert min(seconds) > 30e6


def test_the_time_limit_is_kept() -> None:
    found = solve(chain(2000, 3, 9), time_limit=1e-6)
    assert (found.status, found.ended_by) == ("bounded", "time-limit")
