"""Filtered DPOP: the optimum of DPOP, by fewer rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from elimina import FORBIDDEN, Model, Table, Variable
from elimina.dcop import Network, Problem, read
from elimina.dcop.solve import answer
from elimina.errors import InputError, MemoryLimitError
from elimina.generate import grid_model, random_model
from tests.calls import solve_by_agents as solve
from tests.dcop.running import random_problem, run_agents, settings_of
from tests.dcop.test_dpop import check_optimum
from tests.dcop.test_formats_data import OPTIMA
from tests.reference import brute

NETWORKS = st.sampled_from([Network(), Network("random", seed=1), Network(jitter=0.1, loss=0.3, duplicate=0.3)])
KINDS = st.sampled_from(["random", "scale-free", "grid"])


@settings(deadline=None, max_examples=150)
@given(KINDS, st.integers(0, 10**6), st.integers(1, 5), NETWORKS)
def test_the_optimum_is_that_of_dpop(kind: str, seed: int, bounding: int, network: Network) -> None:
    problem = random_problem(kind, seed, most=11)
    assume(problem.model.is_integer)
    check_optimum(problem, filtering=bounding, threads=1, network=network)
    stats = solve(problem, filtering=bounding, threads=1, network=network).stats
    assert 0 <= stats["rows_sent"] <= stats["dense_rows"]


@pytest.mark.parametrize("seed", range(20))
def test_the_optimum_is_that_of_brute_force(seed: int) -> None:
    problem = random_problem("random", seed, most=7)
    if problem.model.is_integer:
        brute.check_optimum(problem.model, solve(problem, filtering=1, threads=1))


@settings(deadline=None, max_examples=60)
@given(KINDS, st.integers(0, 10**6), st.integers(1, 9))
def test_crashes_change_nothing(kind: str, seed: int, crash: int) -> None:
    problem = random_problem(kind, seed, most=9)
    assume(problem.model.is_integer)
    expected = solve(problem, filtering=1, threads=1)
    crashes = {agent.name: crash for agent in problem.agents[::2]}
    network = Network("time", 0.1, 0.3, 0.2, 0.2, 60, crashes, 0.5, seed)
    found = solve(problem, filtering=1, threads=1, network=network)
    assert found.replace(stats={}) == expected.replace(stats={})
    for name in ("rows_sent", "dense_rows"):
        assert found.stats[name] == expected.stats[name]


def test_many_rows_are_left_out() -> None:
    problem = Problem.from_model(random_model(14, 4, 0.45, 0.1, seed=2))
    dense, found = solve(problem), solve(problem, filtering=4)
    assert (found.status, found.value) == ("optimal", dense.value)
    assert 0 < found.stats["rows_sent"] < found.stats["dense_rows"] / 10
    assert found.stats["network_load"] < 0.6 * dense.stats["network_load"]


def test_sizes_are_those_of_what_is_sent() -> None:
    """Each row is a key of 8 bytes and a cost of 4; the rest is known from the tree."""
    problem = Problem.from_model(random_model(14, 4, 0.45, 0.1, seed=2))
    agents, figures = run_agents(problem, settings_of(problem, ibound=3, is_filtered=True))
    rows = sum(effort.rows for agent in agents for effort in agent.efforts)
    edges = figures.messages["util"]
    assert figures.messages["rows"] == figures.messages["limit"] == figures.messages["cost"] == edges == 13
    assert figures.messages["value"] == 2 * edges
    rest = figures.bytes["rows"] - 12 * rows - edges * 8 * (4 + 3)
    assert rest >= 0
    assert rest % 16 == 0
    bounding, expected = run_agents(problem, settings_of(problem, ibound=3))
    assert figures.bytes["util"] == expected.bytes["util"]
    assert answer(problem, bounding).lower_bound <= answer(problem, agents).value


def test_nothing_is_sent_where_bounds_meet() -> None:
    problem = Problem.from_model(grid_model(3, 2, 0.0))
    found = solve(problem, filtering=3)
    assert (found.status, found.value, found.stats["rows_sent"]) == ("optimal", solve(problem).value, 0)
    assert "limit" not in found.stats["messages"]


def test_what_bounds_cannot_forbid() -> None:
    """Colours of an odd wheel: mini-buckets of one variable see nothing, no assignment is found before the end."""
    differ = np.where(np.eye(3, dtype=bool), FORBIDDEN, 0)
    rim = [Table((v, (v + 1) % 5), differ) for v in range(5)]
    spokes = [Table((v, 5), differ) for v in range(5)]
    other = Table((6, 7), np.array([[4, 2], [3, 9]]))
    variables = [Variable(f"x{v}", 3) for v in range(6)] + [Variable("y", 2), Variable("z", 2)]
    assert solve(Problem.from_model(Model(variables, [*rim, other])), filtering=1).value == 2
    found = solve(Problem.from_model(Model(variables, [*rim, *spokes, other])), filtering=1)
    assert (found.status, found.value, found.assignment) == ("infeasible", None, None)


@pytest.mark.parametrize("sense", ["min-cost", "max-cost"])
def test_large_costs(sense) -> None:
    rng = np.random.default_rng(5)
    tables = [
        Table((a, b), rng.integers(-(1 << 52), 1 << 52, (3, 3)))
        for a in range(7)
        for b in range(a)
        if rng.random() < 0.7
    ]
    check_optimum(Problem.from_model(Model([Variable(f"x{v}", 3) for v in range(7)], tables, sense=sense)), filtering=2)


def test_memory_is_kept() -> None:
    problem = Problem.from_model(random_model(14, 4, 0.45, 0.1, seed=2))
    with pytest.raises(MemoryLimitError, match=r"agent 'x\d+' needs more than the .* left for the tuples of"):
        solve(problem, filtering=1, memory="3000B")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "adpop", "ibound": 2}, "filtering needs the algorithm dpop, not adpop"),
        ({"filtering": 0}, "filtering is 0; it must be at least 1"),
    ],
)
def test_options_refused(options, message: str) -> None:
    with pytest.raises(InputError, match=message):
        solve(Problem.from_model(grid_model(2, 2)), **{"filtering": 2, **options})


def test_costs_that_are_no_integers_are_refused() -> None:
    model = Model([Variable("x", 2), Variable("y", 2)], [Table((0, 1), np.full((2, 2), 0.5))])
    with pytest.raises(InputError, match="filtering needs integer costs"):
        solve(Problem.from_model(model), filtering=2)


@pytest.mark.data
@pytest.mark.parametrize("name", ["frodo_xcsp/RandomDCOP_20_3_2.xml", "frodo_xcsp/RandomDCOP_25_3_1.xml"])
def test_proven_optima(data_dir, name: str) -> None:
    problem = read(data_dir / "dcop" / name)
    found = solve(problem, filtering=4)
    assert (found.status, found.value) == ("optimal", OPTIMA[name])
    assert found.stats["rows_sent"] < found.stats["dense_rows"] / 100
