"""Runs on larger models that an interrupt or a time limit ends at a random moment: what they say has to hold."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from typing import Any

from elimina.errors import MemoryLimitError, TimeLimitError, UnsupportedError
from tests import calls
from tests.adversary import answers
from tests.adversary.case import Case, Defect, Setting
from tests.adversary.constructed import call_of, smaller_parameters
from tests.adversary.families import Parameters, instance_of

LONGEST_END = 2.0
"""Seconds that a run may take to end on a loaded machine."""

METHODS = {
    "mpe": ("auto", "eliminate", "search", "filter", "mbe"),
    "pr": ("auto", "eliminate", "mbe"),
    "mar": ("auto", "eliminate"),
    "count": ("auto", "eliminate"),
}
"""Methods of each task."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a run that takes a moment, and the moment of its end."""
    parameters = {**_draw(rng), "seed": rng.randrange(10**6)}
    task = rng.choice(_tasks(parameters))
    options: dict[str, Any] = {"device": setting.device, "threads": rng.choice([1, 2])}
    methods = METHODS[task]
    if parameters.get("sense") == "probability":
        methods = tuple(method for method in methods if method != "filter")
    method = rng.choice(methods)
    if method != "auto":
        options["method"] = method
    if rng.random() < 0.5:
        options["memory"] = int(10 ** rng.uniform(5.5, 8.5))
    return {
        "parameters": parameters,
        "task": task,
        "options": options,
        "moment": round(rng.choice([rng.uniform(0.001, 0.1), rng.uniform(0.05, 1.5)]), 4),
        "is_limit": rng.random() < 0.4,
    }


def _tasks(parameters: Parameters) -> list[str]:
    """Return the tasks of a model's family and sense."""
    family = parameters["family"]
    if family in ("relations", "skewed"):
        return ["mpe", "count", "pr", "mar"] if parameters["sense"] == "probability" else ["mpe", "count"]
    return {"planted": ["mpe"], "code": ["count", "pr", "mar"], "ising": ["pr", "mar", "count"]}[family]


def _draw(rng: random.Random) -> Parameters:
    family = rng.choice(["planted", "planted", "code", "ising", "relations", "skewed"])
    if family in ("relations", "skewed"):
        # Tables that list tuples of domains too large to write out: a run may end while they are read or joined.
        sense = rng.choice(["probability", "min-cost", "max-cost"])
        if family == "skewed":
            return {
                "family": family,
                "domain": rng.choice([40, 5000]),
                "rows": rng.choice([300, 700]),
                "rare": 5,
                "sense": sense,
            }
        return {
            "family": family,
            "relations": rng.choice([4, 9]),
            "arity": rng.choice([3, 5, 12, 20]),
            "shared": rng.choice([1, 2]),
            "domain": rng.choice([40, 900]),
            "tuples": rng.choice([30, 300]),
            "sense": sense,
        }
    if family == "planted":
        return {
            "family": family,
            "variables": rng.choice([30, 60, 200]),
            "domains": rng.choice([[2, 3, 4], [4], [3, 5]]),
            "window": rng.choice([6, 8, 9]),
            "shifts": rng.choice([1, 5]),
            "largest": rng.choice([9, 1000]),
            "forbidden": rng.choice([0.0, 0.1]),
            "sense": rng.choice(["min-cost", "max-cost"]),
        }
    if family == "code":
        return {
            "family": family,
            "variables": rng.choice([60, 200]),
            "checks": rng.choice([60, 150]),
            "weight": 6,
            "window": rng.choice([14, 18]),
            "modulus": 2,
            "is_consistent": True,
            "sense": "probability",
        }
    return {"family": family, "rows": rng.randint(8, 11), "columns": rng.randint(8, 11), "coupling": 0.5}


def check(case: Case) -> None:
    """Run, end the run at its moment, and check what it says."""
    instance = instance_of(case["parameters"])
    model, oracle = instance.model(), instance.oracle()
    options = dict(case["options"])
    started = time.perf_counter()
    try:
        if case["is_limit"]:
            result = calls.solve(model, case["task"], time_limit=case["moment"], **options)
        else:
            with _Interrupt(case["moment"]):
                result = calls.solve(model, case["task"], **options)
    except (KeyboardInterrupt, TimeLimitError, MemoryLimitError):
        result = None
    except UnsupportedError:
        # Filtering writes tables out, and refuses large ones.
        if options.get("method") != "filter":
            raise
        result = None
    seconds = time.perf_counter() - started
    if seconds > case["moment"] + LONGEST_END:
        raise Defect(f"the run ended {seconds - case['moment']:.1f} s after its moment")
    stopped = {**options, "time_limit": case["moment"]}
    if result is not None:
        answers.check({**call_of(case, instance), "options": stopped}, model, oracle, result)


class _Interrupt:
    """An interrupt of the main thread after some seconds, unless a block ends before."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        self.handlers = (
            signal.signal(signal.SIGINT, signal.default_int_handler),
            signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT)),
        )
        signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGINT, self.handlers[0])
        signal.signal(signal.SIGALRM, self.handlers[1])


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler runs."""
    for name in case["options"]:
        if name != "device":
            yield {**case, "options": {key: value for key, value in case["options"].items() if key != name}}
    for parameters in smaller_parameters(case["parameters"]):
        yield {**case, "parameters": parameters}


def script(case: Case) -> str:
    """Return a program that makes the run."""
    return f"from tests.adversary.interrupts import check\ncheck({case!r})"
