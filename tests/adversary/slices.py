"""Integer models whose filtered tuples come in slices, against search.

Such models have too many assignments to try them all. Search finds their optima by other code, and the score of its
assignment is computed from the model. Local search finds most optima before a tuple is made, which hides what filtering
drops; so most cases filter without a first solution.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator
from unittest import mock

from elimina.backends.protocols import Backend
from elimina.methods import filtering
from elimina.methods.filtering import FilterBounds
from elimina.model.model import Model
from elimina.planning.options import Options
from elimina.result import Result
from elimina.running.planned_problem import PlannedProblem
from tests import calls
from tests.adversary import solving
from tests.adversary.case import Case, Defect, Setting
from tests.adversary.models import build, draw_costs, text

IMPORTS = "from unittest import mock\nfrom elimina.methods import filtering\nfrom elimina.result import Result"
NOTHING_FOUND = 'mock.patch.object(filtering, "searched_optimum", return_value=Result("bounded", "mpe"))'
FINER = """
plan = filtering.filtered_plan
filtering.filtered_plan = lambda known, backend, options, number: plan(known, backend, options, number + {})
"""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random model and a call that filters it in slices."""
    sizes = [rng.randint(3, 5) for _ in range(rng.randint(6, 10))]
    scopes = [list(pair) for pair in itertools.combinations(range(len(sizes)), 2)]
    scopes = rng.sample(scopes, round(rng.uniform(0.4, 0.7) * len(scopes)))
    scopes += [rng.sample(range(len(sizes)), 3) for _ in range(rng.choice([0, 0, 1, 2]))]
    sense, style = rng.choice(["min-cost", "max-cost"]), rng.choice(["small", "small", "ties"])
    share = rng.choice([0.1, 0.3, 0.5])
    spec = {
        "sense": sense,
        "variables": [[f"x{v}", size, None] for v, size in enumerate(sizes)],
        "factors": [draw_costs(rng, sizes, scope, style, share, sense) for scope in scopes],
        "constant": 0,
        "upper_bound": None,
        "children": None,
    }
    options = {
        "device": setting.device,
        "threads": rng.choice([1, 2]),
        "method": "filter",
        "tables": "sparse",
        "shift": rng.choice(["none", "none", "tables", "all"]),
        "order": rng.sample(range(len(sizes)), len(sizes)) if rng.random() < 0.7 else "min-fill",
    }
    case = {"model": spec, "task": "mpe", "evidence": [], "query": None, "options": options}
    # A finer plan has up to 25 times as many slices, each of which takes a GPU milliseconds.
    refinements = rng.choice([1, 1, 2]) if setting.device == "cpu" else 1
    return {**case, "refinements": refinements, "is_blind": rng.random() < 0.8}


def check(case: Case) -> None:
    """Filter in slices, and compare with search."""
    model = build(case["model"])
    plan = filtering.filtered_plan

    def finer_plan(known: FilterBounds, backend: Backend, options: Options, number: int) -> PlannedProblem:
        return plan(known, backend, options, number + case["refinements"])

    with mock.patch.object(filtering, "filtered_plan", finer_plan), contextlib.ExitStack() as stack:
        if case["is_blind"]:
            blind = mock.patch.object(filtering, "searched_optimum", return_value=Result("bounded", "mpe"))
            stack.enter_context(blind)
        found = calls.solve(model, **case["options"])
    expected = _by_search(model)
    if (found.status, found.value) != (expected.status, expected.value):
        raise Defect(f"the answer is {expected.status} {expected.value}, not {found.status} {found.value}")
    for result in (found, expected):
        if result.assignment is not None and _score(model, result) != result.value:
            raise Defect(f"the assignment is worth {_score(model, result)}, not {result.value}")


def _by_search(model: Model) -> Result:
    return calls.solve(model, device="cpu", threads=1, method="search")


def _score(model: Model, result: Result) -> int | float:
    assert result.assignment is not None
    return model.score([v.index(result.assignment[v.name]) for v in model.variables])


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler calls."""
    return solving.smaller(case)


def script(case: Case) -> str:
    """Return a program that makes both calls."""
    options = ", ".join(f"{name}={value!r}" for name, value in case["options"].items())
    call = f"print(solve(model, {options}).to_json())"
    return "\n".join(
        [
            IMPORTS,
            "import numpy as np",
            "from elimina import FORBIDDEN, Model, Table, Variable",
            "from tests.calls import solve",
            *text(case["model"]),
            FINER.format(case["refinements"]),
            *([f"with {NOTHING_FOUND}:", f"    {call}"] if case["is_blind"] else [call]),
            "print('expected:', solve(model, device='cpu', threads=1, method='search').to_json())",
        ]
    )
