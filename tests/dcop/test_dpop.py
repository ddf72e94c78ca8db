"""DPOP's answers are those of bucket elimination, ADPOP's bounds those of mini-buckets."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from elimina import FORBIDDEN, Model, Table, Variable
from elimina.backends.cpu import CpuBackend
from elimina.dcop import Network, Problem
from elimina.dcop.agent import pseudo_tree
from elimina.dcop.problem import HEURISTICS, CostsError, names_in_errors
from elimina.errors import InputError, MemoryLimitError
from elimina.generate import grid_model, random_model, scale_free_model
from elimina.methods.mini_buckets import heuristic_of
from elimina.planning.machine import cpu_machine
from elimina.planning.planner import Elimination, Relaxation, make_plan
from elimina.problem.preparation import prepare
from elimina.problem.table_groups import Group, TableGroups
from elimina.running.execution import Execution
from tests import calls
from tests.calls import solve_by_agents as solve
from tests.dcop.running import random_problem, run_agents, settings_of
from tests.devices import on_devices

KINDS = ("random", "scale-free", "grid")


def check_optimum(problem: Problem, **options) -> None:
    """The answer is that of bucket elimination, and the assignment has that value."""
    model = problem.model
    expected = calls.solve(model, method="eliminate", device="cpu", order="min-fill")
    found = solve(problem, **options)
    assert found.status == expected.status
    if expected.value is None:
        assert found.value is None
        return
    assert found.value == (expected.value if model.is_integer else pytest.approx(expected.value, rel=1e-12))
    assert found.assignment is not None
    chosen = [v.index(found.assignment[v.name]) for v in model.variables]
    assert model.score(chosen) == found.value == found.lower_bound == found.upper_bound


@pytest.mark.parametrize("kind", KINDS)
def test_optimum_is_that_of_bucket_elimination(kind: str) -> None:
    statuses = set()
    for seed in range(170):
        problem = random_problem(kind, seed)
        check_optimum(problem, threads=1, heuristic=HEURISTICS[seed % 4], seed=seed)
        # Agents that are timed work one by one.
        check_optimum(problem, threads=1, timer=float)
        statuses.add(solve(problem, threads=1).status)
    assert statuses == {"optimal", "infeasible"}


@pytest.mark.parametrize("kind", KINDS)
def test_small_buckets_at_once_are_those_of_plans(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages, their sizes and dtypes too; operations, where no plan joins tables first."""
    known = ("messages", "message_bytes", "largest_table", "dtype", "total_operations")
    for seed in range(60):
        problem = random_problem(kind, seed)
        monkeypatch.setattr("elimina.dcop.engine.MAX_JOINED_COMBINATIONS", 1 << 12)
        at_once = solve(problem, threads=1, timer=float)
        monkeypatch.setattr("elimina.dcop.engine.MAX_JOINED_COMBINATIONS", 0)
        planned = solve(problem, threads=1, timer=float)
        if problem.model.is_integer:
            assert at_once.replace(stats={}) == planned.replace(stats={})
        assert [at_once.stats[name] for name in known] == [planned.stats[name] for name in known]


@pytest.mark.parametrize("most", [0, 1 << 12])
def test_integers_beside_floats(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elimina.dcop.engine.MAX_JOINED_COMBINATIONS", most)
    costs = np.array([[3, FORBIDDEN], [0, 8]])
    tables = [Table((v, v + 1), costs) for v in range(4)] + [Table((4,), np.array([0.5, 0.25]))]
    check_optimum(Problem.from_model(Model([Variable(f"x{v}", 2) for v in range(5)], tables)))


@on_devices
@pytest.mark.parametrize("least", [0, 300])
def test_devices(device: str, least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of little work or not, buckets take tables from the other side, too.
    monkeypatch.setattr("elimina.dcop.engine.MIN_GPU_COMBINATIONS", least)
    monkeypatch.setattr("elimina.dcop.engine.MAX_JOINED_COMBINATIONS", 0)
    for model in (random_model(10, 6, 0.3), scale_free_model(10, 5), grid_model(4, 5)):
        expected = calls.solve(model, method="eliminate", device="cpu")
        found = solve(Problem.from_model(model), agents=device)
        assert (found.status, found.value) == (expected.status, expected.value)
    # Large enough for tables to be joined before the elimination.
    check_optimum(Problem.from_model(scale_free_model(10, 25, seed=1)), agents=device)
    for seed in range(20):
        check_optimum(random_problem("random", seed, most=7), agents=device)


def minibucket_bound(problem: Problem, order: list[int], ibound: int) -> float | None:
    """Return the mini-bucket bound of this order, with one table for each scope; None if nothing is allowed."""
    prepared = prepare(problem.model, "mpe", {})
    by_scope: dict[frozenset[int], list[int]] = {}
    for number, table in enumerate(prepared.tables):
        if table.scope:
            by_scope.setdefault(frozenset(table.scope), []).append(number)
    groups = TableGroups.of(Group(prepared.tables[m[0]].scope, tuple(m)) for m in by_scope.values())
    prepared = prepared._replace(groups=groups)
    left = [v for v in order if v in prepared.free]
    plan = make_plan(Elimination(prepared, left, cpu_machine(1), 2**40), relaxation=Relaxation(ibound=ibound))
    heuristic = heuristic_of(Execution(prepared, plan._replace(decode=False), CpuBackend(1)), {})
    return None if math.isinf(heuristic.cost) else heuristic.total_of(heuristic.cost)


@pytest.mark.parametrize("ibound", [1, 2, 3])
def test_bounds_are_those_of_mini_buckets(ibound: int) -> None:
    divided = 0
    for seed in range(60):
        problem = random_problem(KINDS[seed % 3], seed, most=12, least=2)
        found = solve(problem, "adpop", ibound=ibound, threads=1)
        agents, _ = run_agents(problem, settings_of(problem, ibound=ibound))
        expected = minibucket_bound(problem, list(pseudo_tree(problem, agents).order), ibound)
        if expected is None:
            assert found.status == "infeasible"
            continue
        divided += found.stats["divided"] > 0
        bound = found.lower_bound if problem.model.sense == "min-cost" else found.upper_bound
        if found.status == "infeasible":
            assert found.stats["divided"] == 0
        elif problem.model.is_integer:
            assert bound == expected
        else:
            assert bound == pytest.approx(expected, rel=1e-12)
    assert divided


@pytest.mark.parametrize("ibound", [2, 4])
def test_bounds_of_binary_networks(ibound: int) -> None:
    for model in (random_model(14, 4, 0.3), scale_free_model(14, 4, 0.3), grid_model(5, 4, 0.3)):
        problem = Problem.from_model(model)
        agents, _ = run_agents(problem, settings_of(problem, ibound=ibound))
        order = pseudo_tree(problem, agents).order
        how = {"method": "mbe", "ibound": ibound, "shift": "none", "partition": "scope", "device": "cpu"}
        expected = calls.solve(model, order=order, **how)
        found = solve(problem, "adpop", ibound=ibound)
        assert found.stats["divided"] > 0 or ibound == 4
        assert found.lower_bound == expected.lower_bound
        assert found.upper_bound == expected.upper_bound
        assert found.status == expected.status


def test_ties_go_to_the_smallest_value_as_in_bucket_elimination() -> None:
    model = grid_model(4, 3, 0.0, seed=1)
    model = Model(model.variables, [Table(t.scope, t.values % 3) for t in model.factors])
    problem = Problem.from_model(model)
    agents, _ = run_agents(problem, settings_of(problem))
    order = pseudo_tree(problem, agents).order
    assert solve(problem).assignment == calls.solve(model, order=order, method="eliminate").assignment


def test_many_functions_of_one_variable() -> None:
    rng = np.random.default_rng(0)
    hub = [Table((0, v), rng.integers(0, 9, (3, 2))) for v in range(1, 40)]
    model = Model([Variable("hub", 3), *(Variable(f"x{v}", 2) for v in range(1, 40))], hub)
    check_optimum(Problem.from_model(model))
    check_optimum(Problem.from_model(model), heuristic="min-degree")


@pytest.mark.parametrize("scale", [1, 1000, 2**40])
def test_dtype_is_the_narrowest_exact_one(scale: int) -> None:
    model = random_model(8, 3, 0.4, seed=3)
    tables = [Table(t.scope, np.where(t.values == FORBIDDEN, FORBIDDEN, t.values * scale)) for t in model.factors]
    problem = Problem.from_model(Model(model.variables, tables))
    check_optimum(problem)
    assert solve(problem).stats["dtype"] == {1: "int16", 1000: "int32", 2**40: "int64"}[scale]


def test_costs_that_integers_cannot_add() -> None:
    far = Table((0, 1), np.array([[0, 2**62], [1, 2]]))
    named = Model([Variable("x", 2), Variable("y", 2)], [far])
    for network in (Network(), Network(loss=0.1)):
        with pytest.raises(InputError, match=r"of variable '[xy]' add .* than 64-bit integers add exactly; scale them"):
            solve(Problem.from_model(named), network=network)
    floats = [Table((0, 1), np.array([[0, 1e308], [1, 2]]))] * 3
    with pytest.raises(InputError, match=r"may add up to more than 1.8e\+308, which float64 cannot hold"):
        solve(Problem.from_model(Model([Variable("x", 2), Variable("y", 2)], floats)))


def test_memory_of_an_agent() -> None:
    problem = Problem.from_model(random_model(12, 6, 0.4, seed=1))
    needed = solve(problem).stats["peak_bytes"]
    assert solve(problem, memory=f"{needed}B").status == "optimal"
    with pytest.raises(MemoryLimitError, match=r"agent 'x\d+' needs .* are left; .* ibound"):
        solve(problem, memory=f"{needed - 1}B")
    assert solve(problem, "adpop", ibound=1, memory=f"{needed // 4}B").status in ("bounded", "optimal")


def test_upper_bound_and_constants() -> None:
    pair = [Table((0, 1), np.array([[3, 5], [4, 9]])), Table((), np.array(7))]
    variables = [Variable("x", 2), Variable("y", 2), Variable("alone", 1)]
    known = Problem.from_model(Model(variables, pair, constant=-2, upper_bound=9))
    assert (solve(known).value, solve(known).assignment) == (8, {"x": 0, "y": 0, "alone": 0})
    bounded = Problem.from_model(Model(variables, pair, constant=-2, upper_bound=8))
    assert solve(bounded).status == solve(bounded, "adpop", ibound=1).status == "infeasible"
    forbidden = Problem.from_model(Model(variables, [*pair, Table((), np.array(FORBIDDEN))]))
    assert solve(forbidden).status == "infeasible"
    empty = solve(Problem(Model([], []), [], []))
    assert (empty.status, empty.value, empty.assignment) == ("optimal", 0, {})


def test_costs_that_are_small_beside_those_not_taken() -> None:
    small = -0.004668781042043006
    functions = [Table((0, 1), np.array([[-4000.0], [0.0]])), Table((0,), np.array([np.inf, small]))]
    result = solve(Problem.from_model(Model([Variable("x", 2), Variable("y", 1)], functions)))
    assert (result.status, result.value) == ("optimal", small)
    huge = Model.from_arrays([2, 2], [((0,), [0, 1e20]), ((1,), [0.5, 1.5]), ((0, 1), [[0.25, 1e20], [0, 0]])])
    for options in ({}, {"algorithm": "adpop", "ibound": 1}, {"algorithm": "mb-dpop", "memory": "1MB"}):
        result = solve(Problem.from_model(huge), **options)
        assert (result.status, result.value) == ("optimal", 0.75)


@pytest.mark.parametrize("sense", ["min-cost", "max-cost"])
def test_costs_that_add_up_beyond_the_range_are_refused(sense) -> None:
    costs = [((0,), [1e308, 1e308]), ((1,), [1e308, 1.5e308])]
    with pytest.raises(InputError, match=r"up to 1.5e\+308 in a table, may add up to more than 1.8e\+308"):
        solve(Problem.from_model(Model.from_arrays([2, 2], costs, sense=sense)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "adopt"}, "unknown algorithm 'adopt'; it is one of dpop, adpop"),
        ({"algorithm": "adpop"}, "adpop needs an i-bound"),
        ({"ibound": 2}, "dpop takes no i-bound; leave out"),
        ({"time_limit": float("nan")}, "time_limit is NaN"),
        ({"threads": 0}, "threads is 0; it must be from 1 to 1,024"),
        ({"ibound": 2}, "dpop takes no i-bound"),
        ({"algorithm": "adpop", "ibound": 0}, "ibound is 0"),
        ({"heuristic": "best"}, "unknown heuristic 'best'"),
        ({"memory": -1}, "memory is -1 bytes"),
        ({"agents": "tpu"}, "unknown device 'tpu'"),
    ],
)
def test_options_refused(options, message: str) -> None:
    with pytest.raises(InputError, match=message):
        solve(Problem.from_model(grid_model(2, 2)), **options)


def test_errors_of_agents_name_variables() -> None:
    """Agents know numbers only, and a cluster makes their errors again from parts."""
    error = pickle.loads(pickle.dumps(CostsError("the subtree of variable", 1, "are too far apart")))
    model = Model([Variable("x", 2), Variable("y", 2)], [])
    expected = r"^the costs of the subtree of variable 'y' are too far apart$"
    with pytest.raises(InputError, match=expected), names_in_errors(model):
        raise error
