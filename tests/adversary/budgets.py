"""Calls without a limit whose methods have little time each, as on a slow machine: the answers have to be exact.

A method that runs out of time leaves the answer to the next one, at whichever step its time passes.
"""

from __future__ import annotations

import contextlib
import pkgutil
import random
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import pytest

from elimina import cp, methods, running, strategies
from elimina.strategies.row import Row
from tests import calls
from tests.adversary import constructed, mixed, thresholds
from tests.adversary.case import Case, Defect, Kind, Setting

DIGITS = (-6.0, 0.0)
"""Decimal logarithm of the share of its usual time that each method has."""

WITHOUT_BUDGETS = {
    "elimina.strategies.call",
    "elimina.running.call_thread",
    "elimina.running.checkpoint",
    "elimina.methods.marginals",
}
"""Modules whose times are of the end of a call, of threads and files, or compared with estimates."""

BASES: dict[str, Kind] = {"constructed": constructed, "mixed": mixed, "thresholds": thresholds}  # type: ignore[dict-item]


@contextlib.contextmanager
def shortened_budgets(share: float) -> Iterator[None]:
    """Give each method a share of its time."""
    full = Row.budget
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Row, "budget", lambda row, facts: share * full(row, facts))
        for module in _modules():
            for constant, value in list(vars(module).items()):
                if constant.endswith("_SECONDS") and isinstance(value, float):
                    patch.setattr(module, constant, share * value)
        yield


def _modules() -> Iterator[ModuleType]:
    for package in (methods, strategies, running):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if module.name not in WITHOUT_BUDGETS:
                yield import_module(module.name)


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a call without limits, and the share of the time."""
    share = float(f"{10 ** rng.uniform(*DIGITS):.3g}")
    if rng.random() < 0.2:
        return {"base": "knapsack", "call": _make_knapsack(rng, setting), "share": share}
    base = rng.choice(list(BASES))
    call = BASES[base].make(rng, setting)
    while call["options"].keys() & {"memory", "time_limit", "interrupt", "gap"}:
        call = BASES[base].make(rng, setting)
    return {"base": base, "call": call, "share": share}


def _make_knapsack(rng: random.Random, setting: Setting) -> Case:
    """Make a knapsack, whose partial sums have large tables."""
    items = rng.randint(5, 40)
    largest = round(10 ** rng.uniform(1, 3))
    return {
        "weights": [rng.randint(1, largest) for _ in range(items)],
        "gains": [rng.randint(1, largest) for _ in range(items)],
        "options": {"device": setting.device, "threads": rng.choice([1, 1, 2])},
    }


def _knapsack(call: Case) -> cp.Model:
    model = cp.Model()
    taken = model.bool_vars(len(call["weights"]))
    model.add(sum(w * x for w, x in zip(call["weights"], taken, strict=True)) <= _capacity(call))
    model.maximize(sum(g * x for g, x in zip(call["gains"], taken, strict=True)))
    return model


def _capacity(call: Case) -> int:
    return sum(call["weights"]) // 2


def _best_gain(call: Case) -> int:
    best = [0] * (_capacity(call) + 1)
    for weight, gain in zip(call["weights"], call["gains"], strict=True):
        for total in range(len(best) - 1, weight - 1, -1):
            best[total] = max(best[total], best[total - weight] + gain)
    return best[-1]


def check(case: Case) -> None:
    """Make the call, and compare."""
    with shortened_budgets(case["share"]):
        if case["base"] != "knapsack":
            BASES[case["base"]].check(case["call"])
            return
        call = case["call"]
        result = calls.solve(_knapsack(call).to_model(), **call["options"])
    if (result.status, result.value) != ("optimal", _best_gain(call)):
        raise Defect(f"{result.status} {result.value}, though nothing stops the search; the best is {_best_gain(call)}")


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler calls."""
    call = case["call"]
    if case["base"] != "knapsack":
        yield from ({**case, "call": simpler} for simpler in BASES[case["base"]].smaller(call))
        return
    for item in range(len(call["weights"])):
        shorter = {name: call[name][:item] + call[name][item + 1 :] for name in ("weights", "gains")}
        yield {**case, "call": {**call, **shorter}}


def script(case: Case) -> str:
    """Return a program that makes the call."""
    call = case["call"]
    if case["base"] == "knapsack":
        lines = [
            "from tests.adversary.budgets import _knapsack",
            "from tests.calls import solve",
            f"call = {call!r}",
            "print(solve(_knapsack(call).to_model(), **call['options']))",
            f"# expected: {_best_gain(call)}",
        ]
    else:
        lines = BASES[case["base"]].script(call).split("\n")
    return "\n".join(
        [
            "from tests.adversary.budgets import shortened_budgets",
            f"with shortened_budgets({case['share']!r}):",
            *(f"    {line}" for line in lines),
        ]
    )
