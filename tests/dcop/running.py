"""Distributed problems for tests, and running their agents."""

from __future__ import annotations

from functools import partial

import numpy as np

from elimina.dcop import Agent, Network, Problem
from elimina.dcop.engine import Engine
from elimina.dcop.problem import AgentProfile, Settings, views
from elimina.dcop.simulator import Figures, Simulation
from elimina.model.model import Model
from elimina.model.table import Table, forbidden_value
from elimina.model.variable import Variable


def grouped(model: Model, rng: np.random.Generator) -> Problem:
    """Give the variables of a model to random agents, some of which have none."""
    count = int(rng.integers(1, len(model.variables) + 2))
    profiles = [AgentProfile(f"a{i}") for i in range(count)]
    return Problem(model, profiles, rng.integers(0, count, len(model.variables)).tolist())


def random_edges(kind: str, n: int, rng: np.random.Generator) -> set[tuple[int, ...]]:
    """Edges of a graph of a family: ``random`` (often not connected), ``scale-free`` or ``grid``."""
    if kind == "random":
        return {(a, b) for a in range(n) for b in range(a + 1, n) if rng.random() < 0.35}
    if kind == "grid":
        width = max(2, round(n**0.5))
        near = {(v, v + 1) for v in range(n - 1) if (v + 1) % width}
        return near | {(v, v + width) for v in range(n - width)}
    edges = {(0, 1)} if n > 1 else set()
    for v in range(2, n):
        ends = [u for edge in edges for u in edge]
        edges |= {(u, v) for u in {ends[int(rng.integers(len(ends)))] for _ in range(2)}}
    return edges


def random_problem(kind: str, seed: int, most: int = 9, least: int = 1) -> Problem:
    """A problem of at most so many variables, each of ``least`` to 3 values, its functions mostly binary."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most + 1))
    sizes = rng.integers(least, 4, n).tolist()
    scopes: list[tuple[int, ...]] = sorted(random_edges(kind, n, rng))
    scopes += [(v,) for v in range(n) if rng.random() < 0.3]
    if n > 2 and rng.random() < 0.4:
        scopes.append(tuple(int(v) for v in rng.permutation(n)[:3]))
    sense = "min-cost" if rng.random() < 0.5 else "max-cost"
    is_float = rng.random() < 0.2
    share = rng.choice([0.0, 0.2, 0.5])
    tables = [Table(scope, _costs([sizes[v] for v in scope], sense, is_float, share, rng)) for scope in scopes]
    constant = float(rng.normal()) if is_float else int(rng.integers(-9, 9))
    model = Model([Variable(f"x{v}", size) for v, size in enumerate(sizes)], tables, sense=sense, constant=constant)
    return grouped(model, rng)


def _costs(shape: list[int], sense, is_float: bool, share: float, rng: np.random.Generator) -> np.ndarray:
    width = int(rng.choice([2, 50, 40000]))
    values = rng.normal(size=shape) * 10 if is_float else rng.integers(-width, width, shape)
    return np.where(rng.random(shape) < share, forbidden_value(sense, values.dtype), values)


def run_agents(problem: Problem, settings: Settings, network: Network | None = None) -> tuple[list[Agent], Figures]:
    """Run a problem's agents until they are done; return them, and the figures."""
    engine = Engine("cpu", 1)
    known = {view.name: view for view in views(problem, settings)}
    agents = [Agent(view, engine) for view in known.values()]
    simulation = Simulation(agents, network or Network(), float, partial(_again, known, engine))
    figures = simulation.run()
    return simulation.agents, figures


def _again(known, engine: Engine, name: str) -> Agent:
    return Agent(known[name], engine)


def settings_of(problem: Problem, **options) -> Settings:
    """Return the agents of a problem."""
    return Settings(problem.model.sense, problem.model.is_integer, **options)
