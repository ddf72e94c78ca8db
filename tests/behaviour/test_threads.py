"""Runs of a process that cannot start all of the threads that it asks for."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import elimina
from elimina.generate import random_model

BIN = Path(sys.executable).parent
STACK = 1 << 30
QUEENS = Path(__file__).parents[2] / "examples" / "queens.fzn"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("threads") / "model.wcsp"
    elimina.write(random_model(18, 5, 0.4, 0.2, seed=3), path)
    return path


DIFFERENT = """
from elimina import _core, cp

model = cp.Model()
model.all_different(model.int_vars(4, 0, 3), side="gpu")
solver = model._build()[0]
solver.accelerate(_core.CpDevice(4), False)
print(solver.propagate(), solver.device_calls()[0] > 0)
"""


def run(threads, *command):
    """Run a command in a process that has room for the stacks of so many threads."""

    def limit():
        resource.setrlimit(resource.RLIMIT_STACK, (STACK, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        room = (threads * STACK) + STACK * 7 // 8
        resource.setrlimit(resource.RLIMIT_AS, (room, room))

    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [BIN / command[0], *command[1:]],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit,
        env=environment,
        timeout=60,
    )


@pytest.mark.parametrize("threads", range(6))
@pytest.mark.parametrize("method", ["eliminate", "search"])
def test_an_optimum(model, threads, method):
    ran = run(threads, "elimina", "solve", str(model), "--method", method, "--threads", "4", "--time-limit", "20")
    if threads >= 3:
        assert ran.returncode == 0, ran.stderr
    if ran.returncode == 0:
        optimum = elimina.solve(model).value
        assert f"value:      {optimum}\n" in ran.stdout or "status:     bounded" in ran.stdout
    else:
        assert ran.returncode == 1
        assert len(ran.stderr.splitlines()) == 1, ran.stderr
        assert "raise " in ran.stderr


@pytest.mark.parametrize("threads", range(4))
def test_constraints(threads):
    ran = run(threads, "fzn-elimina", "-p", "4", "-a", str(QUEENS))
    if threads:
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.count("----------") == 92
        assert ran.stdout.endswith("==========\n")
    else:
        assert (ran.returncode, ran.stderr) == (1, "fzn-elimina: out of memory\n")


@pytest.mark.parametrize("threads", range(5))
def test_a_team_that_filters_all_different(threads):
    ran = run(threads, "python", "-c", DIFFERENT)
    assert (ran.returncode, ran.stdout) == (0, "True True\n"), ran.stderr
