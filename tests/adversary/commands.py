"""Random command lines of ``elimina solve``, run in this process, against brute force."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import elimina.io as eio
from elimina.cli.commands import run
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.model.variable import index_of_text
from elimina.result import SCHEMA, Result
from tests.adversary import answers, solving
from tests.adversary.case import Case, Defect, Setting
from tests.adversary.evidence import observed_of, weights_of
from tests.adversary.files import SUFFIXES
from tests.adversary.models import build, integer_span
from tests.adversary.options import MOST_COSTS
from tests.adversary.oracle import Oracle

KEYS = [
    *("schema", "status", "task", "value", "lower_bound", "upper_bound", "assignment", "marginals", "log10_z"),
    *("ended_by", "stats"),
]
FLAGS = {"order_seconds": "--order-time"}
FILE_OPTIONS = ("scratch", "checkpoint")


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random command line."""
    case = solving.make(rng, setting)
    spec = case["model"]
    case["options"].pop("interrupt", None)
    if case["task"] in ("count", "bottleneck"):  # an upper bound of a file's head forbids what costs as much
        spec["upper_bound"] = None
    if case["task"] == "bottleneck":  # a file's constant is a table
        spec["constant"] = 0
    is_network = spec["children"] is not None and sorted(spec["children"]) == list(range(len(spec["variables"])))
    suffixes = SUFFIXES["network" if is_network and spec["variables"] else spec["sense"]]
    is_whole = isinstance(spec["constant"], int) and all(f["dtype"] == "int64" for f in spec["factors"])
    if "wcsp" in suffixes and not is_whole:  # decimals become units there
        suffixes = ["cfn"]
    return {**case, "suffix": rng.choice(suffixes), "evidence_file": rng.random() < 0.5}


def check(case: Case) -> None:
    """Write the model, run the command, and compare what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"model.{case['suffix']}"
        try:
            eio.write(build(case["model"]), path)
            model = eio.read(path)
        except InputError:
            return
        arguments = [*_arguments(case, model, Path(folder)), str(path)]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(["solve", "--json", *arguments])
        _check_output(case, model, code, out.getvalue(), err.getvalue())


def _arguments(case: Case, model: Model, folder: Path) -> list[str]:
    names = [v.name for v in model.variables]
    arguments = ["--task", case["task"]]
    for key, value in case["options"].items():
        if key in FILE_OPTIONS:
            (folder / key).mkdir()
            arguments += [f"--{key}", str(folder / key)]
        elif key == "order" and isinstance(value, list):
            continue
        elif value is True:
            arguments.append(f"--{key}")
        elif key == "gap":
            arguments += ["--gap", f"{100 * value:g}%"]
        elif key == "memory":
            arguments += ["--memory", f"{value}B"]
        else:
            arguments += [FLAGS.get(key, f"--{key.replace('_', '-')}"), str(value)]
    if case["query"] is not None:
        arguments += ["--query", ",".join(quoted(names[v]) for v in case["query"])]
    hard = observed_of(case)
    if hard and case["evidence_file"]:
        evidence = folder / "model.evid"
        evidence.write_text(f"{len(hard)} " + " ".join(f"{v} {x}" for v, x in hard.items()))
        arguments += ["--evidence", str(evidence)]
    elif hard:
        states = {v: model.variables[v].state(x) for v, x in hard.items()}
        arguments += ["--evidence", ",".join(f"{quoted(names[v])}={quoted(str(x))}" for v, x in states.items())]
    return arguments


def quoted(name: str) -> str:
    """A name as it is written in a list."""
    return name if name.isalnum() else '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _check_output(case: Case, model: Model, code: int, out: str, err: str) -> None:
    shown = f"exit code {code}, standard output {out[:300]!r}, standard error {err[:600]!r}"
    if "Traceback" in err or "please report" in err:
        raise Defect(f"an internal error: {shown}")
    if code == 2:
        raise Defect(f"a usage error: {shown}")
    if code == 1:
        if out or not err.startswith("elimina: ") or err.count("\n") > 1:
            raise Defect(f"an error is one line: {shown}")
        if not _may_fail(case):
            raise Defect(f"an error without a reason: {shown}")
        return
    if code != 0:
        raise Defect(f"wrong exit code: {shown}")
    answer = json.loads(out)
    of_estimates = {"error", "interval", "marginal_bounds"} if answer["status"] == "estimated" else set()
    keys = [key for key in answer if key not in of_estimates]
    if keys != KEYS or answer["schema"] != SCHEMA:
        raise Defect(f"wrong keys: {shown}")
    fields = {field.name for field in dataclasses.fields(Result)}
    result = Result(**{key: value for key, value in answer.items() if key in fields})
    if result.log10_z is None and case["task"] in ("pr", "mar") and result.status == "infeasible":
        result = result.replace(log10_z=float("-inf"))
    if result.marginals:  # keys of JSON's objects are text
        found = {v.name: result.marginals[v.name] for v in model.variables if v.name in result.marginals}
        known = [v for v in model.variables if v.name in found]
        typed = [{v.state(index_of_text(v, text)): p for text, p in found[v.name].items()} for v in known]
        result = result.replace(marginals={v.name: own for v, own in zip(known, typed, strict=True)})
    variables = [[v.name, v.size, None if v.states is None else list(v.states)] for v in model.variables]
    spec = {**case["model"], "variables": variables}
    case = {**case, "model": spec, "evidence": [part for part in case["evidence"] if isinstance(part[2], int)]}
    answers.check(case, model, Oracle(spec, observed_of(case), weights_of(case)), result)


def _may_fail(case: Case) -> bool:
    """Return whether an option may justify an error."""
    options, span = case["options"], integer_span(case["model"])
    named = {"memory", "dtype", "time_limit"} & options.keys()
    special = (
        options.get("tables") == "sparse" or options.get("method") in ("filter", "search") or "upper_bound" in options
    )
    is_large = span is None or span > MOST_COSTS["filter"]
    is_rounded = "exact" in options and span is None
    is_justified = special and (is_large or case["task"] == "mmap")
    return bool(named) or is_rounded or is_justified or (is_large and span is not None)


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler command lines."""
    for simpler in solving.smaller(case):
        if simpler["task"] == "mmap" and simpler["query"] is None:
            continue
        yield simpler


def script(case: Case) -> str:
    """Return a program that runs the command."""
    return f"from tests.adversary.commands import check\ncheck({case!r})"
