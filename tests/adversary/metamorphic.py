"""Files, changed models of them and other options: the same answers.

A case is a file (of the examples, of the benchmark data where ELIMINA_DATA names it) or a model of a family, a relation
that changes it, evidence, and options. The answer of the default call to the original is the reference.
"""

from __future__ import annotations

import functools
import math
import os
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import elimina
from elimina.errors import InputError, MemoryLimitError, TimeLimitError, UnsupportedError
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.result import Result
from tests import calls
from tests.adversary.case import Case, Defect, Setting
from tests.adversary.constructed import smaller_parameters
from tests.adversary.families import draw, instance_of
from tests.adversary.relations import RELATIONS, Changed, is_small_enough

EXAMPLES = Path(__file__).parents[2] / "examples"

SUFFIXES = (".uai", ".bif", ".bif.gz", ".xmlbif", ".wcsp", ".net", ".uai.gz", ".wcsp.xz", ".erg", ".cfn")

LARGEST_FILE = 400_000
"""Bytes of a file."""

LONGEST_PLAN = 0.15
"""Seconds of a plan, by its estimate."""

LONGEST_CALL = 0.5
"""Seconds of a plan with other options, by its estimate."""

LIMITED_SECONDS = 4.0
"""Time limit of a call that may take any time."""

LIMITED_MEMORY = 2 << 30
"""Memory limit in bytes of such a call."""

FINAL = ("exact", "optimal", "infeasible")
"""Statuses of an answer that no limit shortened."""

STORAGE = ("slices", "scratch", "tables")
"""Options that mini-buckets do not take."""

EVIDENCE_FORMS = ("none", "argument", "restriction", "table")
"""Forms of evidence: of the call, as a smaller model, as a table of zeros and ones."""

OFF = 1e-9
"""Rounding of a probability, and of a logarithm in relation to its size."""


@functools.cache
def sources() -> tuple[str, ...]:
    """Return the files, examples first, those of the benchmark data by their paths there."""
    found = [f"examples/{path.name}" for path in sorted(EXAMPLES.iterdir()) if path.name.endswith(SUFFIXES)]
    data = os.environ.get("ELIMINA_DATA")
    if data:
        for path in sorted(Path(data).rglob("*")):
            if path.name.endswith(SUFFIXES) and path.is_file() and path.stat().st_size <= LARGEST_FILE:
                found.append(str(path.relative_to(data)))
    return tuple(found)


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random case."""
    source: Any = rng.choice(sources()) if rng.random() < 0.8 else draw(rng)
    options: dict[str, Any] = {"device": setting.device}
    if rng.random() < 0.6:
        options["threads"] = rng.choice([1, 2])
    if rng.random() < 0.3:
        options["order"] = rng.choice(["min-fill", "weighted-min-fill", "min-degree", "min-weight"])
    if rng.random() < 0.2:
        options["tables"] = rng.choice(["dense", "sparse"])
    if rng.random() < 0.3:
        options["memory"] = rng.choice([0.2, 0.5, 0.9, 1.5])
    if rng.random() < 0.1:
        options["dtype"] = rng.choice(["float32", "float64"])
    if rng.random() < 0.1:
        options["scratch"] = True
    if rng.random() < 0.2:
        options["slices"] = rng.choice(["never", 64, 4096])
    return {
        "source": source,
        "relation": rng.choice(list(RELATIONS)),
        "seed": rng.randrange(10**6),
        "task": rng.choice(["mpe", "pr", "mar", "mar", "count"]),
        "evidence": rng.choice(EVIDENCE_FORMS),
        "method": rng.choice(["auto", "auto", "eliminate", "search", "filter", "mbe"]),
        "options": options,
    }


@functools.lru_cache(maxsize=200)
def _read(source: str) -> Model | None:
    path = EXAMPLES / source.removeprefix("examples/") if source.startswith("examples/") else None
    path = path or Path(os.environ["ELIMINA_DATA"]) / source
    try:
        model = elimina.read(path)
    except elimina.EliminaError:
        return None  # of another kind, or corrupt: other tests know
    return model if len(model.variables) <= 2000 else None


def model_of(source: Any) -> Model | None:
    """Return the model of a source; None if there is none that a case can take."""
    model = _read(source) if isinstance(source, str) else instance_of(source).model()
    return model if model is not None and is_small_enough(model) else None


@functools.lru_cache(maxsize=400)
def _planned(source: str, task: str) -> tuple[bool, int]:
    """Return whether a file is quick, and the bytes of its plan."""
    model = model_of(source)
    if model is None:
        return False, 0
    plan = calls.plan(model, task, device="cpu", order_seconds=0.05)
    return plan.fits and plan.seconds < LONGEST_PLAN, plan.peak_bytes


def check(case: Case) -> None:
    """Compare the answers of a model and its changed model; what takes long is left out."""
    model, task = model_of(case["source"]), case["task"]
    if model is None or (model.sense != "probability" and task in ("pr", "mar")):
        return
    if isinstance(case["source"], str):
        is_quick, peak = _planned(case["source"], task)
    else:
        is_quick, peak = True, 1 << 20
    if not is_quick:
        return
    draws = random.Random(case["seed"])
    evidence = _evidence(model, draws) if case["evidence"] != "none" else {}
    limits = _limits(case["source"])
    reference = _reference(model, task, evidence, limits)
    if reference is None:
        return
    changed = RELATIONS[case["relation"]](model, draws)
    # Evidence is of the original's states, and states go by their numbers where they have no names.
    stated = {name: _state(changed, model, name, state) for name, state in evidence.items()}
    asked, given = _with_evidence(changed.model, stated, case["evidence"])
    options = limits | _options(case, task, peak)
    if task == "count":
        options.pop("dtype", None)
    planned = {name: options[name] for name in ("threads", "order", "tables", "dtype") if name in options}
    plan = calls.plan(asked, task, evidence=given, device="cpu", order_seconds=0.05, **planned)
    if plan.seconds > LONGEST_CALL or not plan.fits:
        return
    may_lack_memory = "memory" in case["options"] or plan.sparse is not None
    # A call may give up its last phase where the rest of the time is too short.
    until = time.monotonic() + options.get("time_limit", math.inf) / 2
    try:
        with tempfile.TemporaryDirectory() as folder:
            if options.pop("scratch", False):
                options["scratch"] = folder
            result = calls.solve(asked, task, evidence=given, **options)
    except MemoryLimitError:
        if may_lack_memory:
            return
        raise
    except TimeLimitError:
        if time.monotonic() >= until:
            return
        raise
    except (UnsupportedError, InputError):
        if options.get("tables") == "sparse" or options.get("method") == "filter" or "dtype" in options:
            return
        raise
    _compare(case, model, changed, reference, result, options, may_lack_memory or time.monotonic() >= until)


def _limits(source: Any) -> dict[str, Any]:
    """Return the limits of all calls: a plan in sparse tables predicts the tuples, so its estimate bounds nothing."""
    if not isinstance(source, str) or source.startswith("examples/"):
        return {}
    return {"time_limit": LIMITED_SECONDS, "memory": LIMITED_MEMORY}


def _reference(model: Model, task: str, evidence: dict[str, Any], limits: dict[str, Any]) -> Result | None:
    """Return the answer to compare with; None if the limits are too low for it."""
    try:
        reference = calls.solve(model, task, device="cpu", evidence=evidence, **limits)
    except (MemoryLimitError, TimeLimitError):
        if limits:
            return None
        raise
    return reference if reference.status in FINAL or not limits else None


def _evidence(model: Model, draws: random.Random) -> dict[str, Any]:
    chosen = draws.sample(model.variables, min(len(model.variables), draws.randint(1, 3)))
    return {v.name: v.state(draws.randrange(v.size)) for v in chosen}


def _state(changed: Changed, model: Model, name: str, state: Any) -> Any:
    variable = next(v for v in changed.model.variables if v.name == name)
    if changed.states is None or variable.states is not None:
        return state
    return changed.states[name].index(state)


def _with_evidence(model: Model, evidence: dict[str, Any], form: str) -> tuple[Model, dict[str, Any]]:
    if form == "argument" or not evidence:
        return model, evidence
    numbers = {
        v: model.variables[v].index(evidence[model.variables[v].name])
        for v in range(len(model.variables))
        if model.variables[v].name in evidence
    }
    extra = []
    for v, x in numbers.items():
        cells = np.zeros(model.variables[v].size, dtype=float if model.sense == "probability" else np.int64)
        if model.sense == "probability":
            cells[x] = 1.0
        else:
            cells[:] = elimina.FORBIDDEN if model.sense == "min-cost" else -elimina.FORBIDDEN
            cells[x] = 0
        extra.append(Table((v,), cells))
    tables = list(model.factors)
    if form == "restriction":
        tables = [factor.restrict({v: x for v, x in numbers.items() if v in factor.scope}) for factor in tables]
    given = Model(
        model.variables,
        [*tables, *extra],
        sense=model.sense,
        constant=model.constant,
        upper_bound=model.upper_bound,
    )
    return given, {}


def _options(case: Case, task: str, peak: int) -> dict[str, Any]:
    options = dict(case["options"])
    method = case["method"]
    if method in ("search", "filter") and task == "mpe":
        options.update(method=method, time_limit=LIMITED_SECONDS)
    elif (method == "mbe" and task in ("mpe", "pr")) or method == "eliminate":
        options["method"] = method
    if options.get("method") == "mbe":
        options = {name: value for name, value in options.items() if name not in STORAGE}
    if "memory" in options:
        options["memory"] = max(4096, int(options["memory"] * peak))
        options.setdefault("time_limit", LIMITED_SECONDS)
    return options


def _is_rounded(result: Result, options: dict[str, Any]) -> bool:
    """Return whether floats were asked for, and the bounds of an optimum lie no further apart than their rounding."""
    low, high = result.lower_bound, result.upper_bound
    return "dtype" in options and low is not None and high is not None and high - low <= OFF * max(1.0, abs(high))


def _compare(
    case: Case,
    model: Model,
    changed: Changed,
    reference: Result,
    result: Result,
    options: dict[str, Any],
    is_limited: bool,
) -> None:
    task, is_single = case["task"], options.get("dtype") == "float32"
    off = 1e-3 if is_single else OFF
    if result.status in ("bounded", "feasible", "unknown", "estimated"):
        # Sums of floats keep the ends of an optimum apart by their rounding.
        may_end = is_single or is_limited or options.get("method") == "mbe" or _is_rounded(result, options)
        if not may_end:
            raise Defect(f"the status is {result.status}, though nothing stops the run")
        _compare_bounds(task, changed, reference, result, off)
        return
    if (result.status == "infeasible") != (reference.status == "infeasible"):
        raise Defect(f"{result.status}, but {reference.status} originally")
    if result.status == "infeasible":
        return
    expected = _expected(task, changed, reference)
    actual = result.log10_z if task in ("pr", "mar") else result.value
    if expected is not None and not _is_close(actual, expected, off, task, options):
        raise Defect(f"the answer is {actual!r}, not {expected!r}")
    if task == "mpe":
        assignment = {v.name: result.assignment[v.name] for v in changed.model.variables}  # type: ignore[index]
        score = changed.model.score(changed.model.indices_of(assignment))
        if not _is_close(score, expected, off, task, options):
            raise Defect(f"the assignment is worth {score!r}, not {expected!r}")
    if task == "mar":
        assert reference.marginals is not None
        assert result.marginals is not None
        for v in model.variables:
            before = list(reference.marginals[v.name].values())
            after = list(result.marginals[v.name].values())
            order = range(v.size) if changed.states is None else changed.states[v.name]
            if any(abs(after[n] - before[x]) > off for n, x in enumerate(order)):
                raise Defect(f"the marginals of {v.name!r} are {after}, not {[before[x] for x in order]}")


def _expected(task: str, changed: Changed, reference: Result) -> Any:
    if task in ("pr", "mar"):
        return None if reference.log10_z is None else reference.log10_z + changed.shift / math.log(10)
    if task == "count":
        return reference.value
    assert reference.value is not None
    return reference.value * changed.factor + changed.shift


def _is_close(actual: Any, expected: Any, off: float, task: str, options: dict[str, Any]) -> bool:
    if actual is None:
        return False
    if isinstance(expected, int) and isinstance(actual, int) and (task == "count" or "dtype" not in options):
        return actual == expected
    return abs(actual - expected) <= off * max(1.0, abs(expected))


def _compare_bounds(task: str, changed: Changed, reference: Result, result: Result, off: float) -> None:
    expected = None if reference.status == "infeasible" else _expected(task, changed, reference)
    if expected is None:
        return
    slack = off * max(1.0, abs(expected))
    for end, sign in ((result.lower_bound, 1), (result.upper_bound, -1)):
        if end is not None and sign * (end - expected) > slack:
            raise Defect(f"the bounds {result.lower_bound} to {result.upper_bound} exclude {expected}")


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler cases."""
    for name in case["options"]:
        if name != "device":
            yield {**case, "options": {key: value for key, value in case["options"].items() if key != name}}
    for name, plain in (("relation", "options"), ("evidence", "none"), ("evidence", "argument"), ("method", "auto")):
        if case[name] != plain:
            yield {**case, name: plain}
    if not isinstance(case["source"], str):
        for parameters in smaller_parameters(case["source"]):
            yield {**case, "source": parameters}


def script(case: Case) -> str:
    """Return a program that compares both answers."""
    return f"from tests.adversary.metamorphic import check\ncheck({case!r})"
