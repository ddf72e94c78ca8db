"""Random distributed problems, algorithms and faults of messages, against brute force."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from elimina.dcop import Network, Problem
from elimina.dcop.problem import AgentProfile
from elimina.errors import DcopError, EliminaError, InputError, MemoryLimitError
from tests.adversary import answers
from tests.adversary.case import Case, Setting
from tests.adversary.models import build, integer_span, make_model, smaller_models, text
from tests.adversary.oracle import Oracle
from tests.calls import solve_by_agents as solve

MOST_COST = 2**45
"""Sums of magnitudes that agents take in any case."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random run."""
    spec = make_model(rng, ("min-cost", "max-cost"))
    count = len(spec["variables"])
    agents = rng.randint(1, count + 2)
    algorithm = rng.choice(["dpop", "dpop", "adpop", "mb-dpop"])
    options: dict[str, Any] = {"agents": setting.device if rng.random() < 0.5 else "cpu", "threads": 1}
    if algorithm == "adpop":
        options["ibound"] = rng.randint(1, 4)
    if algorithm == "mb-dpop":
        options["memory"] = int(10 ** rng.uniform(2, 6))
    if algorithm == "dpop" and rng.random() < 0.3:
        options["filtering"] = rng.randint(1, 3)
    options["heuristic"] = rng.choice(["max-degree", "min-degree", "most-connected", "random"])
    options["seed"] = rng.randrange(5)
    return {
        "model": spec,
        "owners": [rng.randrange(agents) for _ in range(count)],
        "agents": agents,
        "algorithm": algorithm,
        "options": options,
        "network": _network(rng, agents),
        "task": "dcop",
        "evidence": [],
        "query": None,
    }


def _network(rng: random.Random, agents: int) -> dict[str, Any]:
    network: dict[str, Any] = {"order": rng.choice(["time", "fifo", "random"]), "seed": rng.randrange(5)}
    if rng.random() < 0.3:
        network["delay"], network["jitter"] = rng.choice([0.0, 0.01]), rng.choice([0.0, 0.05])
    if rng.random() < 0.3:
        network["loss"], network["duplicate"] = rng.choice([0.1, 0.4]), rng.choice([0.0, 0.5])
    if rng.random() < 0.2:
        network["crashes"] = {f"a{rng.randrange(agents)}": rng.randint(1, 4)}
    return network


def check(case: Case) -> None:
    """Run agents and compare."""
    model = build(case["model"])
    problem = Problem(model, [AgentProfile(f"a{i}") for i in range(case["agents"])], case["owners"])
    oracle = Oracle(case["model"])
    try:
        result = solve(problem, case["algorithm"], network=Network(**case["network"]), **case["options"])
    except EliminaError as error:
        if _is_justified(error, case):
            return
        raise
    options: dict[str, Any] = {"method": "mbe"} if case["algorithm"] == "adpop" else {}
    answers.check({**case, "options": options}, model, oracle, result)


def _is_justified(error: EliminaError, case: Case) -> bool:
    span = integer_span(case["model"])
    if isinstance(error, MemoryLimitError):
        return "memory" in case["options"]
    if isinstance(error, DcopError):
        return case["network"].get("loss", 0) > 0.3
    if isinstance(error, InputError):
        return "filtering" in case["options"] if span is None else span > MOST_COST
    return False


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler runs."""
    for name in ("options", "network"):
        for key in case[name]:
            yield {**case, name: {k: value for k, value in case[name].items() if k != key}}
    if case["algorithm"] != "dpop":
        yield {**case, "algorithm": "dpop", "options": {k: v for k, v in case["options"].items() if k != "ibound"}}
    for spec, gone in smaller_models(case["model"]):
        owners = [owner for v, owner in enumerate(case["owners"]) if v != gone]
        yield {**case, "model": spec, "owners": owners}
    for v, owner in enumerate(case["owners"]):
        if owner:
            yield {**case, "owners": [*case["owners"][:v], 0, *case["owners"][v + 1 :]]}


def script(case: Case) -> str:
    """Return a program that runs the agents."""
    options = "".join(f", {key}={value!r}" for key, value in case["options"].items())
    network = ", ".join(f"{key}={value!r}" for key, value in case["network"].items())
    return "\n".join(
        [
            "from math import inf",
            "import numpy as np",
            "from elimina import FORBIDDEN, Model, Table, Variable",
            "from elimina.dcop import Network, Problem",
            "from tests.calls import solve_by_agents as solve",
            "from elimina.dcop.problem import AgentProfile",
            *text(case["model"]),
            f"agents = [AgentProfile(f'a{{i}}') for i in range({case['agents']})]",
            f"problem = Problem(model, agents, {case['owners']!r})",
            f"print(solve(problem, {case['algorithm']!r}, network=Network({network}){options}).to_json())",
            f"# expected: {answers.expected(case, Oracle(case['model']))}",
        ]
    )
