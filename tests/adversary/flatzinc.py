"""Random FlatZinc models: all constraints, mixed domains, integers without bounds, annotations, objectives at limits.

Each is solved by the core, by Python or by ``fzn-elimina``, whose claims are compared alike.

A model whose variables have bounds is compared with brute force. Of one without, what is claimed must be true of every
box of declared bounds: inside a small box by brute force, inside a large one by the solver.

Models that compare floats are compared with their exact solutions.
"""

from __future__ import annotations

import contextlib
import io
import math
import random
import re
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from elimina import cp
from elimina._core import FlatZinc
from elimina.cli.flatzinc import main
from elimina.cp.flatzinc_bounds import FlatZincBounds
from tests import calls
from tests.adversary.case import Case, Defect, Setting
from tests.cp import float_models
from tests.cp.flatzinc_models import SIGNATURES, Maker
from tests.reference import flatzinc as reference

MOST_ASSIGNMENTS = 4000
SMALL, LARGE = 6, 2**44
"""Bounds of the boxes; the large one is wider than the limits of integers without bounds."""

SECONDS = 2.0
"""Time of a search; models without bounds may need more than anyone has."""

LATE_SECONDS = 1.0
"""Seconds of processor time beyond that time, for work that is not interrupted."""

FLOAT_SHARE = 0.15
"""Share of models that compare floats."""

FLOAT_TOLERANCE = Fraction(1, 10**5)
"""Largest distance of the best float from a bound that no solution attains."""

_HOLES = "{-1200000, 0, 2}"
"""A domain too wide for a bitset, of few values; a power of them takes no time."""

_TOO_LARGE = ("smaller bounds", "2^52", "has more than", "assignments to check", "takes too long")
"""Texts of errors about constraints that do not fit an engine."""

_NOISE = (":: var_is_introduced", ':: mzn_path("a;b")', ":: is_defined_var", ":: odd([1, x2, f(3)])")
_ARITHMETIC = [
    *(f"int_{r}" for r in ("eq", "ne", "le", "lt", "plus", "minus", "times", "div", "mod", "abs", "max", "min")),
    *(f"int_lin_{r}" for r in ("eq", "ne", "le", "ge", "gt")),
    *("int_eq_reif", "int_le_reif", "int_lin_le_reif", "int_le_imp", "array_int_maximum", "array_int_minimum"),
    *("array_var_int_element", "array_int_element", "bool_clause", "set_in", "jacop_table_int", "bool2int"),
]


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random model."""
    if rng.random() < FLOAT_SHARE:
        return {**float_models.make(rng), "free": rng.random() < 0.3}
    domains, total, opened = {}, 1, 0
    for name in "xyzw":
        kind = rng.choice(["small", "small", "small", "fixed", "wide", "open", "holes"])
        if kind == "open" and opened < 2:
            domains[name], opened = "int", opened + 1
            continue
        if kind == "holes" and total * 3 <= MOST_ASSIGNMENTS // 8 // (13**opened):
            domains[name], total = _HOLES, total * 3
            continue
        lo = rng.randint(-2, 2)
        size = {"small": rng.randint(1, 4), "wide": rng.choice([40, 300])}.get(kind, 1)
        size = size if total * size <= MOST_ASSIGNMENTS // 8 // (13**opened) else 1
        total *= size
        domains[name] = f"{lo}..{lo + size - 1}"
    maker = Maker(rng)
    names = _ARITHMETIC if opened and rng.random() < 0.8 else list(SIGNATURES)
    constraints = []
    for _ in range(rng.choice([1, 2, 2, 3, 4, 5])):
        name = rng.choice(names)
        arguments = ", ".join(maker.argument(kind) for kind in SIGNATURES[name].split())
        constraints.append(f"{name}({arguments})")
    if rng.random() < 0.3:
        constraints.append(maker.tie().removeprefix("constraint ").removesuffix(";"))
    goal = rng.choice(["satisfy", "minimize", "maximize"])
    return {
        "domains": domains,
        "constraints": constraints,
        "notes": [rng.choice(_NOISE) if rng.random() < 0.3 else "" for _ in constraints],
        "variable_note": rng.choice(["", *_NOISE]),
        "goal": goal if goal == "satisfy" else f"{goal} {rng.choice('xyzw')}",
        "search": rng.choice(["", "", ":: warm_start([x], [1])", ":: int_search([x, y], first_fail, indomain_max)"]),
        "predicate": rng.choice(
            ["", "predicate p(array [int] of var int: xs :: promise_ctx_antitone, int: n :: a(1));"]
        ),
        "door": rng.choice(["core", "python", "program", "program" if opened else "tables"]),
        "free": rng.random() < 0.3,
        "threads": rng.choice([1, 1, 1, 2]),
        "bounds": rng.random() < 0.5,
    }


def text_of(case: Case, box: int | None = None) -> str:
    """Return the model; with a box, integers without bounds lie in it."""
    lines = [case["predicate"]]
    for name, domain in case["domains"].items():
        domain = f"{-box}..{box}" if domain == "int" and box is not None else domain
        lines.append(f"var {domain}: {name} :: output_var {case['variable_note']};".replace(" ;", ";"))
    lines += [f"var bool: {b} :: output_var;" for b in "abc"]
    lines += [f"constraint {c} {n};" for c, n in zip(case["constraints"], case["notes"], strict=True)]
    return "\n".join([*lines, f"solve {case['search']} {case['goal']};"])


class _Answer:
    """Solutions of a search, and whether it is a proof.

    Attributes:
        solutions: Values of all variables, in the order in which they came.
        is_complete: True if the search ended by itself.
        is_proof: True if the answer claims that there are no others, or no better ones.
        is_unbounded: True if it claims that each solution can be improved.
    """

    solutions: list[tuple[tuple[str, int], ...]]
    is_complete: bool
    is_proof: bool
    is_unbounded: bool

    def __init__(self, case: Case, text: str, door: str) -> None:
        # Processor time: a loaded machine may stop the process for seconds.
        started = time.process_time()
        {"core": self._ask_core, "python": self._ask_python, "program": self._ask_program}[door](case, text)
        seconds = time.process_time() - started
        if seconds > SECONDS * case["threads"] + LATE_SECONDS:
            raise Defect(f"the search took {seconds:.1f} s of the processor, not {SECONDS} s")

    def _ask_core(self, case: Case, text: str) -> None:
        model = FlatZinc(text.encode(), lambda: True)
        bounds, is_aimed = case["bounds"], not model.is_satisfaction
        search = model.search(case["free"], 0, SECONDS, case["threads"], False, lambda: True, bounds and is_aimed)
        printed: list[bytes] = []
        deadline = time.monotonic() + SECONDS
        other_bounds = FlatZincBounds(model, lambda: True)

        def is_closed(value: int | None) -> bool:
            seconds = max(0.0, deadline - time.monotonic())
            return bounds and other_bounds.add(search, value, seconds)

        state = "complete" if is_closed(None) else ""
        while not state and (state := search.next(lambda: True)) == "solution" and len(printed) < MOST_ASSIGNMENTS:
            printed.append(model.show(search))
            state = "complete" if is_aimed and is_closed(model.objective(search)) else ""
        self.solutions = [_plain(s) for s in reference.parse_solutions(b"".join(printed).decode())]
        self.is_complete = state == "complete"
        self.is_proof = self.is_complete and not model.unproven_limits(search)
        self.is_unbounded = self.is_complete and bool(self.solutions) and model.is_unbounded()

    def _ask_python(self, case: Case, text: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.fzn"
            path.write_text(text)
            model = cp.read(path)
        result = model.solve(
            all_solutions=True,
            solution_limit=MOST_ASSIGNMENTS,
            time_limit=SECONDS,
            threads=case["threads"],
            options=cp.SearchOptions(free=case["free"]),
        )
        last = [] if result.assignment is None else [result.assignment]
        names = (*case["domains"], *"abc")
        self.solutions = [_plain({name: one[name] for name in names}) for one in result.solutions or last]
        self.is_unbounded = result.status == "unbounded"
        self.is_proof = result.stats["complete"]
        self.is_complete = self.is_proof or self.is_unbounded or result.ended_by == "domain-limit"

    def _ask_program(self, case: Case, text: str) -> None:
        most = ["-n", str(MOST_ASSIGNMENTS)] if case["goal"] == "satisfy" else []
        options = [*most, "-t", f"{1000 * SECONDS:.0f}", "-p", str(case["threads"]), *(["-f"] if case["free"] else [])]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.fzn"
            path.write_text(text)
            printed, said = io.TextIOWrapper(io.BytesIO()), io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
                code = _exit_code([*options, str(path)])
        out, err = printed.buffer.getvalue().decode(), said.getvalue()  # type: ignore[attr-defined]
        if code:
            raise ValueError(err)
        self.solutions = [_plain(s) for s in reference.parse_solutions(out)]
        end = out.splitlines()[-1:]
        self.is_unbounded = end == ["=====UNBOUNDED====="]
        self.is_proof = end in (["=========="], ["=====UNSATISFIABLE====="])
        self.is_complete = "% time limit" not in out and len(self.solutions) < MOST_ASSIGNMENTS


def _exit_code(arguments: list[str]) -> int:
    try:
        main(arguments)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _plain(solution: dict[str, Any]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, int(value)) for name, value in solution.items()))


def _brute_force(case: Case, box: int | None) -> list[tuple[tuple[str, int], ...]]:
    text = "\n".join(line for line in text_of(case, box).splitlines() if not line.startswith("predicate"))
    for note in _NOISE:
        text = text.replace(note, "")
    text = re.sub(r"solve .*", "solve satisfy;", text)
    return [_plain(solution) for solution in reference.solutions(reference.read(text))]


def _check_tables(case: Case) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.fzn"
        path.write_text(text_of(case))
        tables = cp.read(path).to_model()
    goal, _, aim = case["goal"].partition(" ")
    result = calls.solve(tables, "count" if goal == "satisfy" else "mpe")
    expected = _brute_force(case, None)
    best = {"satisfy": len, "minimize": min, "maximize": max}[goal]
    worth = [dict(s)[aim] if aim else 0 for s in expected]
    if worth or not aim:
        if result.value != best(worth):
            raise Defect(f"tables say {result.value}, not {best(worth)}")
    elif result.status != "infeasible":
        raise Defect(f"tables have the value {result.value}, but there is no solution")


def check(case: Case) -> None:
    """Solve and compare."""
    try:
        if "floats" in case:
            _check_floats(case)
        elif case["door"] == "tables":
            _check_tables(case)
        else:
            _check_answer(case)
    except ValueError as error:
        if not any(text in str(error) for text in _TOO_LARGE):
            raise


def _check_floats(case: Case) -> None:
    model = FlatZinc(float_models.text_of(case).encode(), lambda: True)
    search = model.search(case["free"], 0, SECONDS, 1, False, lambda: True)
    solutions: list[dict[str, Fraction]] = []
    while (state := search.next(lambda: True)) == "solution":
        printed = re.findall(r"(\w+) = (.*);", model.show(search).decode())
        solutions.append({name: Fraction(_TRUTH.get(text, text)) for name, text in printed})
        if case["goal"] == "satisfy":
            break
    if state in ("complete", "solution") and (defect := float_models.defect(case, solutions, FLOAT_TOLERANCE)):
        raise Defect(defect)


_TRUTH = {"true": 1, "false": 0}


def _check_answer(case: Case) -> None:
    is_open = "int" in case["domains"].values()
    answer = _Answer(case, text_of(case), case["door"])
    if not is_open and not answer.is_proof and answer.is_complete:
        raise Defect("no proof, though all variables have bounds")
    if not answer.is_proof and not is_open:
        return
    expected = _brute_force(case, SMALL if is_open else None)
    inside = [s for s in answer.solutions if all(abs(dict(s)[n]) <= SMALL for n in case["domains"] if _opens(case, n))]
    if answer.is_proof:
        _compare(case, answer, expected, inside, is_open)
    elif any(s not in expected for s in inside):
        raise Defect(f"{next(s for s in inside if s not in expected)} is not a solution")


def _opens(case: Case, name: str) -> bool:
    return bool(case["domains"][name] == "int")


def _compare(case: Case, answer: _Answer, expected: list[Any], inside: list[Any], is_open: bool) -> None:
    goal, _, aim = case["goal"].partition(" ")
    if goal == "satisfy":
        if sorted(inside) != sorted(expected):
            raise Defect(f"complete with {len(inside)} solutions in the box, not {len(expected)}")
        large = _Answer(case, text_of(case, LARGE), "core") if is_open else answer
        if large.is_complete and sorted(large.solutions) != sorted(answer.solutions):
            raise Defect(f"complete with {len(answer.solutions)} solutions, {len(large.solutions)} in a larger box")
        return
    sign = 1 if goal == "minimize" else -1
    worth = [sign * dict(s)[aim] for s in expected]
    if not answer.solutions:
        if expected:
            raise Defect(f"unsatisfiable, but {expected[0]} is a solution")
        return
    best = sign * dict(answer.solutions[-1])[aim]
    if min(worth, default=math.inf) < best:
        raise Defect(f"{sign * best} is not optimal: {sign * min(worth)} is better")
    if answer.solutions[-1] in inside and answer.solutions[-1] not in expected:
        raise Defect(f"{answer.solutions[-1]} is not a solution")
    if is_open:
        large = _Answer(case, text_of(case, LARGE), "core")
        if large.solutions and large.is_complete and sign * dict(large.solutions[-1])[aim] < best:
            raise Defect(f"{sign * best} is not optimal in a larger box")


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler models."""
    if "floats" in case:
        yield from float_models.smaller(case)
        return
    for i in range(len(case["constraints"])):
        rest = case["constraints"][:i] + case["constraints"][i + 1 :]
        yield {**case, "constraints": rest, "notes": case["notes"][:i] + case["notes"][i + 1 :]}
    for key in ("variable_note", "search", "predicate"):
        if case[key]:
            yield {**case, key: ""}
    if any(case["notes"]):
        yield {**case, "notes": [""] * len(case["notes"])}
    if case["door"] != "core":
        yield {**case, "door": "core"}
    if case["free"] or case["threads"] > 1:
        yield {**case, "free": False, "threads": 1}
    if case["bounds"]:
        yield {**case, "bounds": False}
    for name, domain in case["domains"].items():
        if domain not in ("int", "0..0"):
            yield {**case, "domains": {**case["domains"], name: "0..0"}}


def script(case: Case) -> str:
    """Return a program that solves it."""
    module = "cp.float_models" if "floats" in case else "adversary.flatzinc"
    return (
        f"from tests.adversary.flatzinc import check\nfrom tests.{module} import text_of\n"
        f"case = {case!r}\nprint(text_of(case))\ncheck(case)"
    )
