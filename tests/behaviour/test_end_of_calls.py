"""Calls of every engine end soon after an interrupt or their time limit, with the answer so far."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from elimina import cp
from elimina.cp.tour_problem import TourProblem
from elimina.cp.tsp import solve_tsp
from elimina.dcop import Problem
from elimina.generate import random_model
from elimina.model.model import Model
from elimina.result import Result
from tests import calls

BEGUN_SECONDS = 0.5
"""Age of a call at its end."""

LATE_SECONDS = 2.0

Engine = Callable[[float | None], Result]


def agents_of_large_tables() -> Problem:
    """Return a problem with one elimination of 2.7 * 10^10 combinations."""
    tables = np.random.default_rng(1).integers(0, 1 << 30, (3, 3000, 3000))
    scopes = [(0, 1), (1, 2), (0, 2)]
    return Problem.from_model(Model.from_arrays([3000] * 3, list(zip(scopes, tables, strict=True)), sense="min-cost"))


def ruler(marks: int) -> tuple[cp.Model, Sequence[cp.Expression]]:
    """Return the model of the shortest Golomb ruler, whose first solutions take no search."""
    model = cp.Model()
    xs = model.int_vars(marks, 0, marks * marks)
    model.add(xs[0] == 0)
    for x, y in itertools.pairwise(xs):
        model.add(x < y)
    model.all_different([y - x for x, y in itertools.combinations(xs, 2)])
    model.minimize(xs[-1])
    model.search(xs, "input_order", "indomain_min")
    return model, xs


def inference() -> Engine:
    model = random_model(40, 10, 0.5, 0.0, seed=3)
    return lambda limit: calls.solve(model, device="cpu", time_limit=limit)


def constraints() -> Engine:
    model, _ = ruler(14)
    return lambda limit: model.solve(time_limit=limit)


def constraints_in_threads() -> Engine:
    model, _ = ruler(14)
    return lambda limit: model.solve(time_limit=limit, threads=2)


def tours() -> Engine:
    points = np.random.default_rng(1).random((400, 2)) * 10_000
    distances = np.rint(np.linalg.norm(points[:, None] - points[None], axis=2)).astype(np.int32)
    problem = TourProblem("random", distances)
    return lambda limit: solve_tsp(problem, time_limit=limit)


def agents() -> Engine:
    problem = agents_of_large_tables()
    return lambda limit: calls.solve_by_agents(problem, threads=1, time_limit=limit)


ENGINES = {
    inference: "bounded",
    constraints: "feasible",
    constraints_in_threads: "feasible",
    tours: "bounded",
    agents: "bounded",
}


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.__name__)
@pytest.mark.parametrize("cause", ["interrupt", "time-limit"])
def test_calls_end_in_time(engine: Callable[[], Engine], cause: str) -> None:
    solve = engine()
    interrupt = threading.Timer(BEGUN_SECONDS, os.kill, (os.getpid(), signal.SIGINT))
    started = time.monotonic()
    if cause == "interrupt":
        interrupt.start()
    try:
        result = solve(None if cause == "interrupt" else BEGUN_SECONDS)
    finally:
        interrupt.cancel()
    elapsed = time.monotonic() - started
    assert BEGUN_SECONDS * 0.9 < elapsed < BEGUN_SECONDS + LATE_SECONDS
    assert (result.status, result.ended_by) == (ENGINES[engine], cause)
    ends = [end for end in (result.lower_bound, result.value, result.upper_bound) if end is not None]
    assert ends
    assert ends == sorted(ends)
    seconds = result.stats["seconds"]
    assert 0 < seconds["total"] <= elapsed
    assert sum(seconds.values()) == pytest.approx(2 * seconds["total"], abs=1e-4)
