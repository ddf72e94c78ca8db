"""Random models and options for ``solve``, against brute force."""

from __future__ import annotations

import json
import math
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from elimina.errors import EliminaError
from elimina.model.model import Model
from elimina.result import Bounds, Result
from tests import calls
from tests.adversary import answers
from tests.adversary.case import Case, Defect, Setting
from tests.adversary.evidence import make_evidence, observed_of, shown, smaller_evidence, stated, weights_of
from tests.adversary.models import Spec, build, make_model, smaller_models, text
from tests.adversary.options import is_justified, make_options, smaller_options
from tests.adversary.oracle import Oracle

MOST_SECONDS = 1.0
"""Seconds beyond a time limit that a loaded machine may take."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random call."""
    spec = make_model(rng)
    if spec["sense"] == "probability":
        task = rng.choice(["mpe", "pr", "mar", "mar", "mmap", "count", "bottleneck"])
    else:
        task = rng.choice(["mpe", "mpe", "mpe", "mpe", "count", "bottleneck"])
    if task == "bottleneck" and not spec["factors"]:
        task = "mpe"
    names = range(len(spec["variables"]))
    query = None
    if (task == "mmap" or (task == "mar" and rng.random() < 0.5)) and names:
        query = rng.sample(names, rng.randint(1, len(names)))
    elif task == "mmap":
        task = "pr"
    evidence = make_evidence(rng, spec, soft=spec["sense"] == "probability" and task not in ("count", "bottleneck"))
    options = make_options(rng, spec, task, setting.device)
    return {"model": spec, "task": task, "evidence": evidence, "query": query, "options": options}


def check(case: Case) -> None:
    """Solve and compare."""
    check_call(case, build(case["model"]), Oracle(case["model"], observed_of(case), weights_of(case)))


def check_call(case: Case, model: Model, oracle: Oracle) -> None:
    """Solve and compare with an oracle's answers.

    Raises:
        Defect: An answer is wrong.
    """
    heard: list[Bounds] = []
    started = time.perf_counter()
    try:
        result = _solve(model, case, heard.append)
    except EliminaError as error:
        if is_justified(error, case["options"], case["task"], oracle):
            return
        raise
    seconds = time.perf_counter() - started
    if seconds > case["options"].get("time_limit", math.inf) + MOST_SECONDS:
        raise Defect(f"the call took {seconds:.1f} s")
    json.loads(result.to_json())
    str(result)
    answers.check(case, model, oracle, result)
    for known in heard:
        answers.check_bounds(case, oracle, known.lower, known.upper, "on_bounds")


def _solve(model: Model, case: Case, listener: Any) -> Result:
    options = dict(case["options"])
    query = None if case["query"] is None else [model.variables[v].name for v in case["query"]]
    call: dict[str, Any] = {"evidence": stated(case), "query": query}
    left = options.pop("interrupt", 0)
    if case["task"] == "mpe":
        call["on_bounds"] = _Interrupting(listener, left) if left else listener
    if "scratch" not in options and "checkpoint" not in options:
        return calls.solve(model, case["task"], **call, **options)
    with tempfile.TemporaryDirectory() as folder:
        for name in ("scratch", "checkpoint"):
            if options.get(name):
                options[name] = os.path.join(folder, name)
                os.mkdir(options[name])
        result = calls.solve(model, case["task"], **call, **options)
        left = [os.path.join(at, file) for at, _, files in os.walk(folder) for file in files]
        if result.ended_by is not None:  # the run can go on from its checkpoint
            left = [file for file in left if os.path.dirname(file) != options.get("checkpoint")]
        if left:
            raise Defect(f"files are left: {left}")
        return result


class _Interrupting:
    """A listener during whose call the user interrupts."""

    def __init__(self, listener: Any, calls: int) -> None:
        self.listener, self.left = listener, calls

    def __call__(self, known: Bounds) -> None:
        self.listener(known)
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler calls."""
    yield from simpler_calls(case, smaller_models)


def simpler_calls(case: Case, models: Callable[[Spec], Iterator[tuple[Spec, int | None]]]) -> Iterator[Case]:
    """Yield simpler calls, on simpler models too.

    Args:
        case: The call.
        models: Function that yields simpler models, each with the index of the variable that it lacks, or None.
    """
    for options in smaller_options(case["options"]):
        yield {**case, "options": options}
    for evidence in smaller_evidence(case["evidence"]):
        yield {**case, "evidence": evidence}
    if case["query"] is not None and (case["task"] == "mar" or len(case["query"]) > 1):
        yield {**case, "query": None if case["task"] == "mar" else case["query"][1:]}
        yield {**case, "query": case["query"][1:] or None}
        yield {**case, "query": case["query"][:-1] or None}
    for spec, gone in models(case["model"]):
        if gone is None:
            simpler = {**case, "model": spec, "evidence": _within(case["evidence"], spec)}
        else:
            simpler = _without(case, spec, gone)
        yield _renamed(case, simpler)


def _within(evidence: list[Any], spec: dict[str, Any]) -> list[Any]:
    sizes = [size for _, size, _ in spec["variables"]]
    return [[v, how, _within_size(known, sizes[v])] for v, how, known in evidence]


def _within_size(known: Any, size: int) -> Any:
    if isinstance(known, list):
        return known[:size]
    return None if known is None else min(known, size - 1)


def _without(case: Case, spec: dict[str, Any], gone: int) -> Case:
    evidence = [[v - (v > gone), how, known] for v, how, known in case["evidence"] if v != gone]
    query = case["query"]
    if query is not None:
        query = [v - (v > gone) for v in query if v != gone] or None
    task = "pr" if case["task"] == "mmap" and query is None else case["task"]
    return {**case, "model": spec, "evidence": evidence, "query": query, "task": task}


def _renamed(case: Case, simpler: Case) -> Case:
    """Keep an explicit order a permutation of the variables that are left."""
    order = simpler["options"].get("order")
    if not isinstance(order, list):
        return simpler
    places = [v if isinstance(v, int) else [n for n, *_ in case["model"]["variables"]].index(v) for v in order]
    names = [name for name, *_ in simpler["model"]["variables"]]
    kept = sorted(range(len(places)), key=lambda i: places[i])[: len(names)]
    ranks = {v: i for i, v in enumerate(sorted(places[i] for i in kept))}
    fixed = [ranks[places[i]] for i in range(len(places)) if i in kept]
    return {**simpler, "options": {**simpler["options"], "order": fixed}}


def script(case: Case) -> str:
    """Return a program that makes the call."""
    return program(case, text(case["model"]), Oracle(case["model"], observed_of(case), weights_of(case)))


def program(case: Case, model_lines: list[str], oracle: Oracle) -> str:
    """Return a program that makes the call.

    Args:
        case: The call.
        model_lines: Lines that make the model.
        oracle: Oracle of the right answer.
    """
    options = {
        k: v for k, v in case["options"].items() if k not in ("scratch", "checkpoint") and (k, v) != ("device", "cpu")
    }
    folders = [f"{name}=tempfile.mkdtemp()" for name in ("scratch", "checkpoint") if name in case["options"]]
    query = [] if case["query"] is None else [f"query={[case['model']['variables'][v][0] for v in case['query']]!r}"]
    evidence = [f"evidence={shown(case)}"] if case["evidence"] else []
    arguments = ["model", repr(case["task"]), *evidence, *query, *(f"{k}={v!r}" for k, v in options.items()), *folders]
    return "\n".join(
        [
            "import tempfile" if folders else "",
            "from math import inf, nan",
            "import numpy as np",
            "from elimina import FORBIDDEN, Model, Table, Variable",
            "from tests.calls import solve",
            *model_lines,
            f"print(solve({', '.join(arguments)}).to_json())",
            f"# expected: {answers.expected(case, oracle)}",
        ]
    )
