"""Listed tables over huge domains, against brute force over the listed values and one that stands for all others.

Nothing may take time or memory in the size of a domain: each call ends within a few seconds.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from elimina.errors import EliminaError
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Table
from elimina.model.variable import Variable
from elimina.result import Result
from tests import calls
from tests.adversary import answers
from tests.adversary.case import Case, Defect, Setting
from tests.adversary.models import FLOATS, Spec, build, draw_costs
from tests.adversary.options import is_justified, make_options, smaller_options
from tests.adversary.oracle import Oracle

MOST_SECONDS = 3.0
"""Seconds of a call, and beyond a time limit, on a loaded machine."""

SIZES = (5000, 100_000, 10**9, 2**31 - 1)

MOST_STATES = 10**6
"""Most states of a variable whose posterior is read whole; of others, only the listed values and one more are read."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random call.

    The last value of each huge variable of ``model`` stands for all values but ``huge``'s, which the others stand for.
    """
    sense = rng.choice(["min-cost", "max-cost", "probability", "probability"])
    sizes = [rng.choice([1, 2, 2, 3, 4]) for _ in range(rng.randint(1, 6))]
    huge = {}
    for v in rng.sample(range(len(sizes)), rng.randint(1, min(3, len(sizes)))):
        size = rng.choice(SIZES)
        huge[v] = [size, rng.sample([0, size - 1, *(rng.randrange(1, size - 1) for _ in range(4))], sizes[v] - 1)]
        huge[v][1] = list(dict.fromkeys(huge[v][1]))
        sizes[v] = len(huge[v][1]) + 1
    style = rng.choice(["small", "ties", "float"])
    spec: Spec = {
        "sense": sense,
        "variables": [[f"x{v}", size, None] for v, size in enumerate(sizes)],
        "factors": [_factor(rng, sizes, huge, sense, style) for _ in range(rng.randint(0, 6))],
        "constant": 0,
        "upper_bound": None,
        "children": None,
    }
    tasks = ["mpe", "pr", "mar", "mmap", "count"] if sense == "probability" else ["mpe", "mpe", "count", "count-optima"]
    task = rng.choice(tasks)
    if task == "count-optima" and style in FLOATS:
        task = "mpe"
    query = None
    if task in ("mar", "mmap"):
        query = rng.sample(range(len(sizes)), rng.randint(1, len(sizes)))
    evidence = []
    if rng.random() < 0.3:
        v = rng.randrange(len(sizes))
        evidence.append([v, rng.randrange(sizes[v])])
    options = make_options(rng, spec, task, setting.device)
    for name in ("scratch", "checkpoint", "interrupt", "dtype"):
        options.pop(name, None)
    if rng.random() < 0.5:
        options.pop("memory", None)
    if "memory" in options:
        # Tens of thousands of slices save the last kilobytes.
        options.setdefault("time_limit", 5.0)
    return {"model": spec, "huge": huge, "task": task, "query": query, "evidence": evidence, "options": options}


def _factor(rng: random.Random, sizes: list[int], huge: dict[int, list[Any]], sense: str, style: str) -> dict[str, Any]:
    scope = rng.sample(range(len(sizes)), min(len(sizes), rng.choice([1, 1, 2, 2, 3])))
    if sense == "probability":
        cells = math.prod(sizes[v] for v in scope)
        values = [rng.choice([0.0, 0.5, rng.random(), rng.random()]) for _ in range(cells)]
        factor: dict[str, Any] = {"scope": scope, "values": values, "default": None, "dtype": "float64"}
        worst: float = 0.0
    else:
        factor = draw_costs(rng, sizes, scope, style, rng.choice([0, 0.4]), sense)
        worst = math.inf if style in FLOATS else FORBIDDEN
        worst = worst if sense == "min-cost" else -worst
    if huge.keys().isdisjoint(scope):
        return factor
    default = worst if rng.random() < 0.4 else rng.choice(factor["values"])
    places = itertools.product(*(range(sizes[v]) for v in scope))
    values = [
        default if any(v in huge and x == sizes[v] - 1 for v, x in zip(scope, place, strict=True)) else value
        for place, value in zip(places, factor["values"], strict=True)
    ]
    return {**factor, "values": values, "default": default}


def huge_model(case: Case) -> Model:
    """Return the model with huge domains."""
    spec, huge = case["model"], case["huge"]
    small = build(spec)
    sizes = [huge[v][0] if v in huge else size for v, size in enumerate(small.sizes)]
    factors = []
    for table in small.factors:
        if huge.keys().isdisjoint(table.scope):
            factors.append(table)
            continue
        assert table.rows is not None
        rows = table.rows.copy()
        for axis, v in enumerate(table.scope):
            if v in huge:
                rows[:, axis] = np.array(huge[v][1], dtype=np.int32)[rows[:, axis]]
        shape = [sizes[v] for v in table.scope]
        factors.append(Table(table.scope, table.values, sizes=shape, rows=rows, default=table.default))
    variables = [Variable(v.name, size) for v, size in zip(small.variables, sizes, strict=True)]
    return Model(variables, factors, sense=small.sense, constant=small.constant)


def check(case: Case) -> None:
    """Solve and compare."""
    spec, huge, task = case["model"], case["huge"], case["task"]
    observed = dict(case["evidence"])
    maximised = case["query"] if task == "mmap" else range(len(spec["variables"])) if task == "mpe" else ()
    weighed = [v for v in huge if task in ("pr", "mar", "mmap") and v not in observed and v not in maximised]
    units = [_multiplicities(case, v, "float64") for v in weighed]
    oracle = Oracle({**spec, "factors": spec["factors"] + units}, observed)
    query = None if case["query"] is None else [spec["variables"][v][0] for v in case["query"]]
    started = time.perf_counter()
    try:
        result = calls.solve(huge_model(case), task, query=query, evidence=_stated(case), **case["options"])
    except EliminaError as error:
        if is_justified(error, case["options"], task, oracle):
            return
        raise
    finally:
        seconds = time.perf_counter() - started
        if seconds > MOST_SECONDS + case["options"].get("time_limit", 0):
            raise Defect(f"the call took {seconds:.1f} s")
    plain = {**case, "evidence": [[v, "name", known] for v, known in case["evidence"]]}
    result = _small_result(case, result)
    if task in ("count", "count-optima") and result.status == "exact":
        _check_counts(case, oracle, result)
    elif task not in ("count", "count-optima"):
        answers.check(plain, build(spec), oracle, result)


def _multiplicities(case: Case, v: int, dtype: str) -> dict[str, Any]:
    """Return the number of values that each value of the small model stands for, as a table."""
    size, listed = case["huge"][v]
    return {"scope": [v], "values": [1.0] * len(listed) + [float(size - len(listed))], "default": None, "dtype": dtype}


def _stated(case: Case) -> dict[int, int]:
    return {v: _large(case, v, value) for v, value in case["evidence"]}


def _large(case: Case, v: int, value: int) -> int:
    """Return a value of the huge variable that one of the small one stands for."""
    if v not in case["huge"]:
        return value
    listed = case["huge"][v][1]
    return listed[value] if value < len(listed) else next(x for x in itertools.count() if x not in listed)


def _small(case: Case, v: int, value: int) -> int:
    if v not in case["huge"]:
        return value
    listed = case["huge"][v][1]
    return listed.index(value) if value in listed else len(listed)


def _small_result(case: Case, result: Result) -> Result:
    """Return a result in terms of the small model."""
    numbers = {name: v for v, (name, *_) in enumerate(case["model"]["variables"])}
    if result.assignment is not None:
        chosen = {name: _small(case, numbers[name], state) for name, state in result.assignment.items()}
        result = result.replace(assignment=chosen)
    if result.marginals:
        marginals = {name: _small_marginal(case, numbers[name], own) for name, own in result.marginals.items()}
        result = result.replace(marginals=marginals)
    return result


def _small_marginal(case: Case, v: int, shares: dict[Any, float]) -> dict[int, float]:
    if v not in case["huge"]:
        return shares
    size, listed = case["huge"][v]
    if len(shares) == size > MOST_STATES:
        other = next(x for x in itertools.count() if x not in listed)
        others = shares[other] * (1 if v in dict(case["evidence"]) else size - len(listed))
        return {**{n: shares[x] for n, x in enumerate(listed)}, len(listed): others}
    cells = np.array(list(shares.values()))
    others = np.delete(cells, listed)
    if len(cells) != size or (v not in dict(case["evidence"]) and np.ptp(others) > 1e-9 * others.max(initial=0.0)):
        raise Defect(f"unlisted values of x{v} have probabilities from {others.min()} to {others.max()}")
    return {**{n: float(cells[x]) for n, x in enumerate(listed)}, len(listed): float(others.sum())}


def _check_counts(case: Case, oracle: Oracle, result: Result) -> None:
    numbers = np.ones(math.prod(oracle.sizes), dtype=object)
    for v in case["huge"].keys() - dict(case["evidence"]).keys():
        own = np.array([int(x) for x in _multiplicities(case, v, "float64")["values"]], dtype=object)
        numbers = numbers * own[oracle.columns[v]]
    allowed = oracle.allowed
    if case["task"] == "count-optima":
        best = oracle.optimum()
        allowed = allowed[[score == best for score in oracle.scores]] if best is not None else allowed
        if result.value != best:
            raise Defect(f"the optimum is {best}, not {result.value}")
    truth, count = sum(numbers[allowed].tolist()), result.count if case["task"] == "count-optima" else result.value
    if count != truth:
        raise Defect(f"the count is {truth}, not {count}")


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler calls."""
    for options in smaller_options(case["options"]):
        yield {**case, "options": options}
    if case["evidence"]:
        yield {**case, "evidence": []}
    if case["query"] is not None and len(case["query"]) > 1:
        yield from ({**case, "query": [v for v in case["query"] if v != gone]} for gone in case["query"])
    factors = case["model"]["factors"]
    for n in range(len(factors)):
        yield {**case, "model": {**case["model"], "factors": factors[:n] + factors[n + 1 :]}}


def script(case: Case) -> str:
    """Return a program that makes the call."""
    query = None if case["query"] is None else [case["model"]["variables"][v][0] for v in case["query"]]
    options = "".join(f", {name}={value!r}" for name, value in case["options"].items())
    return "\n".join(
        [
            "from math import inf",
            "from tests.adversary import huge",
            "from tests.calls import solve",
            f"case = {case!r}",
            f"print(solve(huge.huge_model(case), {case['task']!r}, evidence={_stated(case)}, query={query}{options}))",
            "huge.check(case)",
        ]
    )
