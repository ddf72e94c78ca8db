"""``elimina sample``: CSV and JSON, weights, and errors that say what to do."""

from __future__ import annotations

import csv
import io
import json
import math

import numpy as np
import pytest

from elimina import Model, read, write
from tests.cli.conftest import EXAMPLES

PUMP = EXAMPLES / "pump.bif"


def test_csv(elimina):
    code, out, err = elimina("sample", PUMP, "-n", 40, "--seed", 1)
    assert (code, err) == (0, "")
    rows = list(csv.reader(io.StringIO(out)))
    model = read(PUMP)
    assert rows[0] == [v.name for v in model.variables]
    assert len(rows) == 41
    for column, variable in zip(zip(*rows[1:], strict=True), model.variables, strict=True):
        assert set(column) <= set(variable.states)
    assert elimina("sample", PUMP, "-n", 40, "--seed", 1).out == out
    assert elimina("sample", PUMP, "-n", 40, "--seed", 2).out != out


def test_evidence_json_and_files(elimina, tmp_path):
    model = read(PUMP)
    name, state = model.variables[0].name, model.variables[0].states[0]
    found = json.loads(elimina("sample", PUMP, "-n", 3, "--evidence", f"{name}={state}", "--json").out)
    assert found["is_exact"] is True
    assert found["samples"] == found["effective_size"] == 3
    assert found["states"][name] == [state] * 3
    assert found["log_weights"] == [0.0] * 3
    elimina("sample", PUMP, "-n", 3, "-o", "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["samples"] == 3
    elimina("sample", PUMP, "-n", 3, "-o", "out.csv")
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 4


@pytest.fixture
def grid(tmp_path):
    """A grid that 1 MiB does not hold."""
    rng = np.random.default_rng(0)
    factors = []
    for v in range(196):
        for u in [v + 14] * (v + 14 < 196) + [v + 1] * ((v + 1) % 14 > 0):
            factors.append(((v, u), np.exp(0.4 * rng.normal(size=(2, 2)))))
    path = tmp_path / "grid.uai"
    write(Model.from_arrays([2] * 196, factors, sense="probability"), path)
    return path


def test_weights(elimina, grid):
    code, out, err = elimina("sample", grid, "-n", 200, "--memory", "1MiB", "--seed", 1)
    assert code == 0
    assert err.startswith("elimina: the 200 samples are weighted, and worth about ")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 200
    assert all(math.isfinite(float(row["log_weight"])) for row in rows)
    code, out, err = elimina("sample", grid, "-n", 200, "--memory", "1MiB", "--exact")
    assert (code, out) == (1, "")
    assert "more memory (--memory), or take weighted samples (without --exact)" in err


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        ((PUMP,), 2, "Missing option '-n'"),
        ((PUMP, "-n", "-1"), 2, "-1"),
        ((EXAMPLES / "radio.wcsp", "-n", 3), 1, "samples are drawn from probabilities"),
        ((PUMP, "-n", 10**13), 1, "draw fewer at a time"),
        ((PUMP, "-n", 3, "-o", "samples.txt"), 1, "samples are written to .csv"),
        (("missing.bif", "-n", 3, "-o", "samples.txt"), 1, "samples are written to .csv"),
        ((PUMP, "-n", 3, "--evidence", "nothing=1"), 1, "nothing"),
    ],
)
def test_what_is_refused(elimina, arguments, code, problem):
    found = elimina("sample", *arguments)
    assert found.code == code
    assert problem in found.err
