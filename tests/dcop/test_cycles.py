"""MB-DPOP: the answer of DPOP, by tables of few cells."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import Model, Table, Variable
from elimina.dcop import Network, Problem
from elimina.dcop.agent import Forecast
from elimina.dcop.solve import answer
from elimina.errors import InputError, MemoryLimitError
from elimina.generate import random_model
from tests.calls import solve_by_agents as solve
from tests.dcop.running import random_problem, run_agents, settings_of
from tests.devices import on_devices


@settings(deadline=None, max_examples=80)
@given(
    st.sampled_from(["random", "scale-free", "grid"]),
    st.integers(0, 10**6),
    st.sampled_from([1, 3, 9, 30]),
    st.sampled_from([Network(), Network("random"), Network(jitter=0.1, loss=0.3, duplicate=0.3)]),
)
def test_small_tables_give_the_same_answer(kind: str, seed: int, most: int, network: Network) -> None:
    problem = random_problem(kind, seed, most=11)
    agents, _ = run_agents(problem, settings_of(problem, most_cells=most), network)
    found, expected = answer(problem, agents), solve(problem, threads=1)
    assert found.status == expected.status
    if expected.value is not None:
        assert found.value == pytest.approx(expected.value, rel=1e-12, abs=0 if problem.model.is_integer else 1e-12)
    assert all(effort.cells <= most for agent in agents for effort in agent.efforts)
    if problem.model.is_integer:
        assert found.assignment == expected.assignment


def test_nothing_is_cut_where_tables_fit() -> None:
    problem = random_problem("grid", 4)
    agents, figures = run_agents(problem, settings_of(problem, most_cells=10**6))
    assert "context" not in figures.messages
    plain, expected = run_agents(problem, settings_of(problem))
    assert figures.messages["util"] == expected.messages["util"] == figures.messages["label"]
    assert [agent.values for agent in agents] == [agent.values for agent in plain]


@on_devices
def test_memory_is_kept(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elimina.dcop.engine.MIN_GPU_COMBINATIONS", 100)
    monkeypatch.setattr("elimina.dcop.engine.MAX_JOINED_COMBINATIONS", 0)
    problem = Problem.from_model(random_model(14, 4, 0.4, 0.2, seed=1))
    expected = solve(problem)
    for memory in (10_000, 3_000, 1_000):
        assert expected.stats["peak_bytes"] > memory
        found = solve(problem, "mb-dpop", memory=memory, agents=device)
        assert (found.status, found.value, found.assignment) == ("optimal", expected.value, expected.assignment)
        assert found.stats["peak_bytes"] <= memory
        assert found.stats["messages"]["context"] > 0
        assert found.stats["largest_message"] < memory


def test_a_crash_in_a_context() -> None:
    problem = Problem.from_model(random_model(10, 3, 0.4, 0.2, seed=3))
    expected = solve(problem, "mb-dpop", memory="200B")
    crashes = {f"x{v}": 12 + v for v in range(0, 10, 2)}
    found = solve(problem, "mb-dpop", memory="200B", network=Network(crashes=crashes, loss=0.1))
    assert found.replace(stats={}) == expected.replace(stats={})
    assert found.value == solve(problem).value
    assert found.stats["messages"]["context"] == expected.stats["messages"]["context"]


def test_what_has_no_end_is_refused() -> None:
    tables = [Table((u, v), [[0, 1], [1, 0]]) for v in range(32) for u in range(v)]
    problem = Problem.from_model(Model([Variable(f"x{v}", 2) for v in range(32)], tables))
    with pytest.raises(
        MemoryLimitError, match=r"mb-dpop: width 31, .* about .* (years|days|h), within the memory limit"
    ):
        solve(problem, "mb-dpop", memory="100B")
    with pytest.raises(MemoryLimitError, match=r"agent 'x\d+' would have to make its table for .* ancestors' values"):
        solve(problem, "mb-dpop", memory="100B", time_limit=60)
    with pytest.raises(InputError, match="mb-dpop needs a memory limit"):
        solve(problem, "mb-dpop")


@pytest.mark.parametrize("seed", range(6))
def test_what_it_takes_is_known_before(seed: int) -> None:
    problem = Problem.from_model(random_model(13, 4, 0.4, 0.0, seed=seed))
    heard: list[Forecast] = []
    shares: list[float] = []
    result = solve(problem, "mb-dpop", memory="4000B", on_forecast=heard.append, progress=shares.append)
    ahead = heard[0]
    assert ahead.width == result.stats["induced_width"]
    # Which tables are at hand when values are chosen is not known before.
    assert 0.5 * ahead.operations < result.stats["total_operations"] < 3 * ahead.operations
    assert ahead.contexts < ahead.tables
    assert 0.7 * ahead.tables < result.stats["messages"]["context"] + 13 < 1.5 * ahead.tables
    assert shares == sorted(shares)
    assert 0.5 < shares[-1] <= 1


def test_what_takes_too_long_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = Problem.from_model(random_model(13, 4, 0.4, 0.2, seed=1))
    # The package's solve is the function.
    monkeypatch.setattr("elimina.dcop.agent.MAX_SECONDS", 0.01)
    with pytest.raises(
        MemoryLimitError, match=r"mb-dpop: width \d+, [\d,]+ tables, .* of a variable, about .*\(memory\)"
    ):
        solve(problem, "mb-dpop", memory="4000B")
    assert solve(problem, "mb-dpop", memory="4000B", time_limit=60).status == "optimal"


def test_the_time_limit_is_kept() -> None:
    problem = Problem.from_model(random_model(13, 4, 0.4, 0.2, seed=1))
    exact = solve(problem).value
    for algorithm, options in (("mb-dpop", {"memory": "4000B"}), ("dpop", {}), ("adpop", {"ibound": 1})):
        result = solve(problem, algorithm, time_limit=1e-9, **options)
        assert (result.task, result.status, result.ended_by) == ("dcop", "bounded", "time-limit")
        assert result.lower_bound <= exact <= result.value == result.upper_bound
        assert problem.model.score([v.index(result[v.name]) for v in problem.model.variables]) == result.value
        assert result.stats["seconds"]["total"] < 2
