"""The figures of a run, by hand."""

from __future__ import annotations

import gc
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elimina import Model, Table, Variable
from elimina.dcop import AgentOptions, Network, Problem
from elimina.dcop import solve as solve_directly
from elimina.dcop.agent import pseudo_tree
from elimina.dcop.network_settings import ORDERS
from elimina.dcop.problem import HEURISTICS, AgentProfile
from elimina.dcop.simulator import Simulation
from elimina.generate import random_model
from tests.calls import solve_by_agents as solve
from tests.dcop.running import random_problem, run_agents, settings_of

KINDS = st.sampled_from(["random", "scale-free", "grid"])

PAIR = Model([Variable("x", 2), Variable("y", 2)], [Table((0, 1), np.array([[1, 5], [3, 0]]))])


def test_clocks_of_two_agents() -> None:
    """Each turn takes 1 s, each message 10 s: see the comments for the clocks of y, the root, and of x."""
    ticks = itertools.count()
    seen = []
    result = solve(
        Problem.from_model(PAIR),
        network=Network(delay=10),
        timer=lambda: float(next(ticks)),
        listener=lambda d: seen.append((d.receiver, d.kind, d.sent, d.begun, d.ended)),
    )
    assert seen == [
        ("x", "", 0, 0, 1),
        ("y", "", 0, 0, 1),
        ("y", "rank", 1, 11, 12),  # y is as high as x, and has the higher number: it begins a wave
        ("x", "rank", 1, 11, 12),
        ("x", "elect", 12, 22, 23),
        ("y", "elect", 23, 33, 34),  # the echo: y is the root, and marks its neighbours
        ("x", "mark", 34, 44, 45),
        ("y", "marked", 45, 55, 56),  # all know of y: the token goes to x
        ("x", "visit", 56, 66, 68),  # x is a leaf: the token goes back at 67; then x works
        ("y", "return", 67, 77, 78),
        ("y", "util", 68, 78, 80),  # y takes note of the table, and works
        ("x", "value", 80, 90, 91),
    ]
    assert (result.value, result.assignment) == (0, {"x": 1, "y": 1})
    stats = result.stats
    assert stats["simulated_seconds"] == 91
    assert stats["messages"] == {
        "rank": 2,
        "elect": 2,
        "mark": 1,
        "marked": 1,
        "visit": 1,
        "return": 1,
        "util": 1,
        "value": 1,
    }
    # x reads 1 table over 2 x 2 values, then y 1 over 2.
    assert (stats["nonconcurrent_operations"], stats["total_operations"]) == (6, 6)
    # A table of 2 cells of int16, 3 numbers for y, 4 for the table, 2 for the message and 4 for all messages.
    assert stats["message_bytes"]["util"] == stats["largest_message"] == 2 * 2 + 8 * (3 + 4 + 2 + 4)
    sizes = {"rank": 80, "elect": 96, "mark": 40, "marked": 48, "visit": 48, "return": 40, "util": 108, "value": 56}
    assert stats["message_bytes"] == sizes
    assert stats["network_load"] == sum(stats["message_bytes"].values())
    assert (stats["depth"], stats["induced_width"], stats["largest_table"], stats["agents"]) == (2, 1, 2, 2)


def test_branches_work_at_the_same_time() -> None:
    """Two leaves under a root: one more of them costs operations, but none on the longest chain."""
    tables = [Table((v, 3), np.arange(8).reshape(2, 4)) for v in (0, 1, 2)]
    sizes = [Variable(f"x{v}", 2) for v in range(3)] + [Variable("root", 4)]
    stats = solve(Problem.from_model(Model(sizes, tables))).stats
    assert stats["total_operations"] == 3 * 8 + 3 * 4
    assert stats["nonconcurrent_operations"] == 8 + 3 * 4


def test_what_variables_of_an_agent_say_is_no_message() -> None:
    one = Problem(PAIR, [AgentProfile("a"), AgentProfile("idle")], [0, 0])
    result = solve(one)
    assert (result.value, result.stats["messages"], result.stats["network_load"]) == (0, {}, 0)
    assert result.stats["nonconcurrent_operations"] == 6


@settings(deadline=None, max_examples=40)
@given(KINDS, st.integers(0, 10**6), st.sampled_from(HEURISTICS), st.sampled_from(ORDERS))
def test_trees_built_in_the_core_are_those_of_agents(kind: str, seed: int, heuristic, order) -> None:
    """Without a listener the core delivers the messages that build the tree; in fifo order they are the same ones."""
    problem = random_problem(kind, seed, most=14)
    network = Network(order=order, delay=0.5, jitter=0.5, seed=seed)
    agents, figures = run_agents(problem, settings_of(problem, heuristic=heuristic, seed=seed), network)
    found = solve(problem, network=network, heuristic=heuristic, seed=seed)
    tree = pseudo_tree(problem, agents)
    assert found.stats["induced_width"] == tree.width
    messages = [dict(found.stats["messages"]), dict(figures.messages)]
    if order != "fifo":  # waves meet each other elsewhere
        assert {("elect" in counts) for counts in messages} <= {bool(messages[1].get("elect"))}
        messages = [{kind: n for kind, n in counts.items() if kind != "elect"} for counts in messages]
    assert messages[0] == messages[1]
    assert found.stats["simulated_seconds"] >= 0.5 * bool(figures.messages)


@pytest.mark.parametrize(
    ("algorithm", "memory", "options"),
    [
        ("dpop", None, AgentOptions()),
        ("adpop", None, AgentOptions(ibound=2)),
        ("dpop", None, AgentOptions(filtering=2)),
        ("mb-dpop", "1000B", AgentOptions()),
    ],
)
def test_runs_leave_no_garbage_and_are_not_searched_for_it(monkeypatch, algorithm, memory, options):
    run, seen = Simulation.run, []

    def watched(simulation):
        gc.collect()
        seen.append(gc.isenabled())
        figures = run(simulation)
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        seen.extend(found for found in gc.garbage if type(found).__module__.startswith(("elimina", "numpy")))
        gc.garbage.clear()
        return figures

    monkeypatch.setattr(Simulation, "run", watched)
    solve_directly(Problem.from_model(random_model(14, 3, 0.3)), algorithm, memory=memory, options=options)
    assert seen == [False]
    assert gc.isenabled()


def test_messages_of_the_election_grow_with_the_chain() -> None:
    """Variables that are numbered along a chain with chords: few waves run far."""
    cells = np.zeros((2, 2), dtype=int)
    for n in (1000, 4000):
        pairs = [(v, v + 1) for v in range(n - 1)] + [(v, v + 2) for v in range(0, n - 2, 5)]
        model = Model([Variable(f"x{v}", 2) for v in range(n)], [Table(pair, cells) for pair in pairs])
        assert solve(Problem.from_model(model)).stats["messages"]["elect"] <= 16 * n
