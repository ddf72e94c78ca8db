"""Agents: what they know, the pseudo-tree that they make, and that all ways of delivery end alike."""

from __future__ import annotations

import pickle
from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import Model, Table, Variable
from elimina.dcop import Agent, Network, Problem
from elimina.dcop.agent import agree_on_tree, pseudo_tree
from elimina.dcop.engine import Engine
from elimina.dcop.problem import HEURISTICS, Message, views
from elimina.errors import DcopError, InputError
from elimina.generate import grid_model, random_model
from elimina.planning.tree import tree_of
from tests.calls import solve_by_agents as solve
from tests.dcop.running import random_problem, run_agents, settings_of

KINDS = st.sampled_from(["random", "scale-free", "grid"])


def marked_problem() -> Problem:
    """A ring of agents; each function holds a number that no other one has."""
    tables = [Table((v, (v + 1) % 5), np.full((2, 2), 7_770_001 + v)) for v in range(5)]
    return Problem.from_model(Model([Variable(f"x{v}", 2) for v in range(5)], tables))


def test_an_agent_holds_its_own_functions_only() -> None:
    problem = marked_problem()
    for view in views(problem, settings_of(problem)):
        state = pickle.dumps(Agent(view, Engine("cpu", 1)))
        known = {v for v in range(5) if (7_770_001 + v).to_bytes(8, "little") in state}
        own = view.variables[0]
        assert known == {own, (own - 1) % 5}
        assert set(view.owners) == {own, (own - 1) % 5, (own + 1) % 5}


def test_messages_go_to_neighbours_only() -> None:
    problem = random_problem("random", 3)
    neighbours = {view.name: set(view.owners.values()) for view in views(problem, settings_of(problem))}
    links = set()
    solve(problem, listener=lambda delivery: links.add((delivery.sender, delivery.receiver)))
    assert links
    assert all(sender == "" or receiver in neighbours[sender] for sender, receiver in links)


def test_an_agent_can_be_moved_at_any_time() -> None:
    problem = Problem.from_model(grid_model(3, 3, 0.2))
    engine = Engine("cpu", 1)
    agents = {view.name: Agent(view, engine) for view in views(problem, settings_of(problem))}
    waiting: deque[Message] = deque()
    for agent in agents.values():
        waiting.extend(agent.start())
        while agent.has_work:
            waiting.extend(agent.work())
    while waiting:
        message = pickle.loads(pickle.dumps(waiting.popleft()))
        agent = pickle.loads(pickle.dumps(agents[message.receiver]))
        assert agent.engine is None
        agent.engine = engine
        agents[message.receiver] = agent
        waiting.extend(agent.receive(message))
        while agent.has_work:
            waiting.extend(agent.work())
    values = {v: value for agent in agents.values() for v, value in agent.values.items()}
    expected = solve(problem).assignment
    assert expected is not None
    assert {problem.model.variables[v].name: value for v, value in values.items()} == expected


def test_an_agent_without_an_engine_says_so() -> None:
    (view,) = views(Problem.from_model(Model([Variable("x", 2)], [])), settings_of(marked_problem()))
    agent = Agent(view)
    assert agent.start() == []
    with pytest.raises(DcopError, match="agent 'x' has no engine"):
        agent.work()


@settings(deadline=None, max_examples=60)
@given(KINDS, st.integers(0, 10**6), st.sampled_from(HEURISTICS))
def test_functions_lie_on_paths_to_a_root(kind: str, seed: int, heuristic) -> None:
    problem = random_problem(kind, seed, most=14)
    agents, _ = run_agents(problem, settings_of(problem, heuristic=heuristic, seed=seed, ibound=1))
    traversals = {v: traversal for agent in agents for v, traversal in agent.traversals.items()}
    lines = {}
    for v in traversals:
        line = [v]
        while traversals[line[-1]].parent >= 0:
            line.append(traversals[line[-1]].parent)
            assert line[-2] in traversals[line[-1]].children
        lines[v] = line
    for table in problem.model.factors:
        assert any(set(table.scope) <= set(lines[v]) for v in table.scope)
    edges = {(v, u) for table in problem.model.factors for v in table.scope for u in table.scope if u != v}
    for v, traversal in traversals.items():
        assert traversal.above == {u: traversals[u].visit for u in lines[v][1:] if (v, u) in edges}
    # One tree for each component: two of its variables are connected by edges of the tree, and these are edges.
    assert all((v, traversal.parent) in edges for v, traversal in traversals.items() if traversal.parent >= 0)
    roots = {line[-1] for line in lines.values()}
    assert not any(lines[v][-1] != lines[u][-1] for v, u in edges)
    tree = tree_of(pseudo_tree(problem, agents))
    assert tree == agree_on_tree(problem, heuristic, seed)
    assert sum(node.parent < 0 for node in tree.nodes) == len(roots)


def test_the_root_has_the_highest_rank() -> None:
    star = [Table((4, v), np.zeros((2, 2), dtype=int)) for v in (0, 1, 2, 3)]
    chain = [Table((v, v + 1), np.zeros((2, 2), dtype=int)) for v in (5, 6, 7)]
    problem = Problem.from_model(Model([Variable(f"x{v}", 2) for v in range(10)], [*star, *chain]))
    expected = {"max-degree": {4, 6, 9}, "min-degree": {3, 8, 9}, "most-connected": {3, 8, 9}}
    for heuristic, roots in expected.items():
        agents, _ = run_agents(problem, settings_of(problem, heuristic=heuristic))
        assert {v for agent in agents for v in agent.bounds} == roots


def test_most_connected_neighbours_first() -> None:
    """A token that starts at a corner of a grid of 3 columns goes to and fro between the long sides."""
    problem = Problem.from_model(grid_model(6, 2, columns=3))
    agents, _ = run_agents(problem, settings_of(problem, heuristic="most-connected"))
    visits = [agent.traversals[v].visit for v, agent in enumerate(agents)]
    assert np.array(visits).reshape(6, 3).tolist()[::-1] == [
        [2, 1, 0],
        [3, 4, 5],
        [8, 7, 6],
        [9, 10, 11],
        [14, 13, 12],
        [15, 16, 17],
    ]
    assert pseudo_tree(problem, agents).width == 3


@settings(deadline=None, max_examples=60)
@given(KINDS, st.integers(0, 10**6), st.sampled_from(["time", "fifo", "random"]), st.booleans())
def test_any_sequence_of_deliveries_gives_the_same_answer(kind: str, seed: int, order, is_bounded: bool) -> None:
    problem = random_problem(kind, seed)
    how = {"algorithm": "adpop", "ibound": 1} if is_bounded else {"algorithm": "dpop"}
    expected = solve(problem, **how, threads=1)
    found = solve(problem, **how, threads=1, network=Network(order=order, jitter=1.0, seed=seed))
    assert found.replace(stats={}) == expected.replace(stats={})


@settings(deadline=None, max_examples=60)
@given(
    KINDS,
    st.integers(0, 10**6),
    st.sampled_from(["time", "fifo", "random"]),
    st.floats(0, 0.5),
    st.floats(0, 1),
    st.integers(1, 12),
)
def test_faults_change_nothing(kind: str, seed: int, order, loss: float, duplicate: float, crash: int) -> None:
    problem = random_problem(kind, seed)
    expected = solve(problem, threads=1)
    crashes = {agent.name: crash for agent in problem.agents[::2]}
    network = Network(order, 0.1, 0.3, loss, duplicate, 60, crashes, 0.5, seed)
    found = solve(problem, threads=1, network=network)
    assert found.replace(stats={}) == expected.replace(stats={})
    # Nor does the tree depend on the sequence; how long lower waves live does.
    for kind in ("rank", "mark", "marked", "visit", "return", "util", "value"):
        assert found.stats["messages"].get(kind) == expected.stats["messages"].get(kind)
        assert found.stats["message_bytes"].get(kind) == expected.stats["message_bytes"].get(kind)


def test_what_cannot_finish_fails() -> None:
    problem = Problem.from_model(grid_model(3, 2))
    with pytest.raises(DcopError, match="times without an answer, so the run ended; use a smaller loss"):
        solve(problem, network=Network(loss=1.0))
    with pytest.raises(DcopError, match="to 'x4' 31 times without an answer"):
        solve(problem, network=Network(crashes={"x4": 3}, downtime=float("inf")))


def test_repetitions_are_counted() -> None:
    problem = Problem.from_model(grid_model(3, 2))
    without = solve(problem).stats
    assert without["repeated"] == 0
    network = Network(loss=0.4, delay=0.1, seed=2)
    stats = solve(problem, network=network, timer=float).stats
    assert stats["repeated"] > 0
    assert stats["messages"]["util"] == without["messages"]["util"]
    assert (
        stats["simulated_seconds"] > solve(problem, network=Network(delay=0.1), timer=float).stats["simulated_seconds"]
    )


def test_a_crashed_agent_comes_back() -> None:
    problem = Problem.from_model(random_model(8, 3, 0.4))
    starts = []

    def listen(delivery) -> None:
        if delivery.kind == "":
            starts.append(delivery.receiver)

    network = Network(crashes={"x2": 5, "x3": 1}, downtime=1.0)
    found = solve(problem, network=network, listener=listen, timer=float)
    assert found.replace(stats={}) == solve(problem).replace(stats={})
    assert sorted(starts) == sorted([agent.name for agent in problem.agents] + ["x2", "x3"])
    assert found.stats["simulated_seconds"] >= 1.0


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Network(order="lifo"), "unknown order of delivery 'lifo'"),  # type: ignore[arg-type]
        (Network(delay=-1), "delay is -1 s"),
        (Network(loss=1.5), "loss is 1.5; it is a share"),
        (Network(retries=-1), "retries is -1"),
        (Network(crashes={"nobody": 1}), "there is no agent 'nobody'"),
        (Network(crashes={"x0": 0}), "at its message 0"),
        (Network(delay=10**400), "delay is 1000.* out of the range"),
        (Network(jitter=float("nan")), "jitter is NaN"),
        (Network(seed=2**63), "seed is 9223372036854775808"),
    ],
)
def test_networks_refused(network: Network, message: str) -> None:
    with pytest.raises(InputError, match=message):
        solve(Problem.from_model(grid_model(2, 2)), network=network)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"network": Network(**{name: "a"})}, f"{name} is 'a'") for name in ("delay", "jitter", "downtime", "loss")),
        *(({"network": Network(**{name: 1.5})}, f"{name} is 1.5") for name in ("retries", "seed")),
        ({"network": Network(crashes=["x0"])}, r"crashes is \['x0'\]"),  # type: ignore[arg-type]
        ({"network": Network(crashes={"x0": 1.5})}, r"crashes\['x0'\] is 1.5"),  # type: ignore[dict-item]
        ({"network": 5}, "network is 5"),
        ({"agents": 5}, "agents is 5"),
        ({"timer": 5}, "timer is 5"),
        ({"listener": 5}, "listener is 5"),
        ({"on_forecast": 5}, "on_forecast is 5"),
        ({"progress": 5}, "progress is 5"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        solve(Problem.from_model(grid_model(2, 2)), **options)


@pytest.mark.parametrize("number", [2**31, 2**64])
def test_ibounds_beyond_the_cores_integers_are_those_of_all_variables(number: int) -> None:
    problem = Problem.from_model(grid_model(2, 2))
    value = solve(problem).value
    assert solve(problem, algorithm="adpop", ibound=number).value == value
    assert solve(problem, filtering=number).value == value
