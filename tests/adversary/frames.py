"""Cases that pandas writes to a CSV file and reads back, where it takes text for Booleans and numbers."""

from __future__ import annotations

import math
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from elimina import InputError, JunctionTree, Model, Options, Variable, fit, solve
from elimina.io.cases import cases_from_frame, read_cases
from tests.adversary.case import Case, Defect, Setting

TEXTS = (
    *("TRUE", "FALSE", "True", "False", "true", "false", "T", "F", "yes", "no"),
    *("0", "1", "2", "10", "-1", "01", "007", "1.0", "0.5", "2.50", "1e3", "1000", "inf", "a b", "x,y", 'q"q', "ö"),
)
POOLS: tuple[tuple[Any, ...], ...] = (
    ("TRUE", "FALSE"),
    ("True", "False"),
    ("false", "true", "unknown"),
    ("0", "1"),
    ("1", "2", "0"),
    ("1.0", "2.0"),
    ("01", "02", "10"),
    (0, 1, 2),
    (3, 1),
    (True, False),
    (False, True),
    TEXTS,
)
"""States to draw from, of one type each."""

NAMES = "abcd"


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random table of cases, and draw the door by which it comes in."""
    variables = []
    for _ in range(rng.randint(1, 4)):
        pool = rng.choice(POOLS)
        variables.append(rng.sample(pool, rng.randint(1, min(len(pool), 4))) if pool is TEXTS else list(pool))
    door = rng.choice(list(DOORS))
    empty = 0.0 if door == "fit" else rng.choice([0.0, 0.2, 0.5])
    rows = [
        [None if rng.random() < empty else rng.randrange(len(states)) for states in variables]
        for _ in range(rng.choice([1, 2, 5, 30]))
    ]
    return {
        "variables": variables,
        "rows": rows,
        "columns": rng.sample(range(len(variables)), len(variables)),
        "reads_text": rng.random() < 0.2,
        "dtypes": rng.choice(["numpy", "numpy", "convert", "category"]),
        "door": door,
        "device": setting.device,
    }


def _model(case: Case) -> Model:
    variables = [Variable(NAMES[v], len(states), states) for v, states in enumerate(case["variables"])]
    return Model.from_arrays(
        {variable.name: list(variable.states or ()) for variable in variables},
        [((variable.name,), np.full(variable.size, 1 / variable.size)) for variable in variables],
        sense="probability",
        children=[variable.name for variable in variables],
    )


def _readings(state: Any) -> set[tuple[str, Any]]:
    """Return the types and values that readers of tables may give a state's text."""
    text = str(state)
    if text in ("True", "TRUE", "true", "False", "FALSE", "false"):
        return {("bool", text.lower())}
    # Arrow reads 1 as True beside other Booleans.
    readings = {("bool", "true" if text == "1" else "false")} if text in ("0", "1") else set()
    try:
        return {*readings, ("number", float(text))}
    except ValueError:
        return {("text", text)}


def _is_ambiguous(case: Case) -> bool:
    """Return whether two states of a variable may read alike."""
    for states in case["variables"]:
        readings = [reading for state in states for reading in _readings(state)]
        if len(set(readings)) < len(readings):
            return True
    return False


def _has_fractions(case: Case) -> bool:
    readings = [reading for states in case["variables"] for state in states for reading in _readings(state)]
    return any(kind == "number" and not float(value).is_integer() for kind, value in readings)


def check(case: Case) -> None:
    """Write the table, read it by pandas, and compare what the door takes it for."""
    pandas, model = import_module("pandas"), _model(case)
    columns = {
        NAMES[v]: [None if row[v] is None else case["variables"][v][row[v]] for row in case["rows"]]
        for v in case["columns"]
    }
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "cases.csv"
        # Without an index, pandas skips the empty lines of one column.
        pandas.DataFrame({**columns, "row": range(len(case["rows"]))}, dtype=object).to_csv(path, index=False)
        frame = pandas.read_csv(path, dtype=str if case["reads_text"] else None).drop(columns="row")
        if case["dtypes"] == "convert":
            frame = frame.convert_dtypes()
        elif case["dtypes"] == "category":
            frame = frame.astype("category")
        try:
            DOORS[case["door"]](case, model, frame, path)
        except InputError as error:
            # Evidence is not a table: states have their own types there.
            is_typed = case["door"] == "evidence" and "has no state" in str(error)
            # No type of states is inferred from numbers that are not whole.
            is_refused = case["door"] == "inference" and "a float; a state is" in str(error) and _has_fractions(case)
            is_unclear = not case["reads_text"] and _is_ambiguous(case) and "dtype=str" in str(error)
            if not (is_typed or is_refused or is_unclear):
                raise


def _expect(case: Case, codes: Any) -> None:
    """Compare indices of states, in the order of the model's variables."""
    for number, (row, own) in enumerate(zip(case["rows"], codes, strict=True)):
        expected = [-1 if index is None else index for index in row]
        if list(map(int, own)) != expected:
            raise Defect(f"row {number} is read as {list(own)}, not as {expected}")


def _codes(case: Case, columns: tuple[int, ...], values: Any) -> Any:
    codes = np.full((len(case["rows"]), len(case["variables"])), -1)
    codes[:, list(columns)] = values
    return codes


def _by_frame(case: Case, model: Model, frame: Any, path: Path) -> None:
    cases = cases_from_frame(frame, model)
    _expect(case, _codes(case, cases.columns, cases.values))


def _by_file(case: Case, model: Model, frame: Any, path: Path) -> None:
    frame.to_csv(path, index=False, lineterminator="\n") if case["reads_text"] else None
    cases = read_cases(path, model, ignore_extra=True)
    _expect(case, _codes(case, cases.columns, cases.values))


def _by_batch(case: Case, model: Model, frame: Any, path: Path) -> None:
    answer = JunctionTree(model, device=case["device"]).batch(frame)
    for v, states in enumerate(case["variables"]):
        table = answer.marginals[NAMES[v]]
        for number, row in enumerate(case["rows"]):
            known = row[v]
            expected = [1 / len(states) if known is None else float(x == known) for x in range(len(states))]
            if not np.allclose(table[number], expected):
                raise Defect(f"the posterior of {NAMES[v]} in row {number} is {table[number]}, not {expected}")


def _by_evidence(case: Case, model: Model, frame: Any, path: Path) -> None:
    """Observe each of a few rows of the frame in ``solve``."""
    for number, row in enumerate(case["rows"][:3]):
        series = frame.iloc[number]
        for evidence in (series, series.to_dict()):
            result = solve(model, "mar", evidence=evidence, device=case["device"], options=Options(threads=1))
            for v, known in enumerate(row):
                posterior = list(result.marginals[NAMES[v]].values())
                if known is not None and not math.isclose(posterior[known], 1):
                    raise Defect(f"row {number} observes {NAMES[v]}={posterior}, not state {known}")


def _by_fit(case: Case, model: Model, frame: Any, path: Path) -> None:
    fitted = fit(model, frame, prior=0.0).model
    for v, states in enumerate(case["variables"]):
        counts = np.bincount([row[v] for row in case["rows"]], minlength=len(states))
        (table,) = (factor.dense() for factor in fitted.factors if factor.scope == (v,))
        if not np.allclose(table, counts / counts.sum()):
            raise Defect(f"the frequencies of {NAMES[v]} are {table}, not {counts / counts.sum()}")


def _by_inference(case: Case, model: Model, frame: Any, path: Path) -> None:
    """Fit independent variables whose states are those of the frame's columns."""
    observed = [[row[v] for row in case["rows"] if row[v] is not None] for v in range(len(case["variables"]))]
    if not all(observed) or _is_ambiguous(case):
        return
    fitted = fit({variable.name: () for variable in model.variables}, frame, prior=0.0).model
    for v, states in enumerate(case["variables"]):
        (table,) = (factor.dense() for factor in fitted.factors if factor.scope == (v,))
        found = dict(zip(map(str, fitted.variables[v].states), table.tolist(), strict=True))
        for x in set(observed[v]):
            share = observed[v].count(x) / len(observed[v])
            readings = [state for state in found if _readings(state) & _readings(states[x])]
            if len(readings) != 1 or not math.isclose(found[readings[0]], share, abs_tol=0.02):
                raise Defect(f"the frequencies of {NAMES[v]} are {found}, and {states[x]!r} has {share}")
        if len(found) != len(set(observed[v])):
            raise Defect(f"the states of {NAMES[v]} are {list(found)}, those of its cells {states}")


DOORS: dict[str, Callable[[Case, Model, Any, Path], None]] = {
    "frame": _by_frame,
    "file": _by_file,
    "batch": _by_batch,
    "evidence": _by_evidence,
    "fit": _by_fit,
    "inference": _by_inference,
}
"""Calls that take a table or a row of it."""


def smaller(case: Case) -> Iterator[Case]:
    """Yield smaller tables."""
    rows = case["rows"]
    for n in range(len(rows)) if len(rows) > 1 else ():
        yield {**case, "rows": rows[:n] + rows[n + 1 :]}
    last = len(case["variables"]) - 1
    if last:
        yield {
            **case,
            "variables": case["variables"][:-1],
            "rows": [row[:-1] for row in rows],
            "columns": [v for v in case["columns"] if v != last],
        }
    for name, plain in (("dtypes", "numpy"), ("reads_text", False)):
        if case[name] != plain:
            yield {**case, name: plain}


def script(case: Case) -> str:
    """Return a program that reads the table."""
    return f"from tests.adversary.frames import check\ncheck({case!r})"
