"""Memory that runs out in the constraint solver, in tours and among agents: one error, in words, as everywhere else."""

from __future__ import annotations

from importlib import import_module

import pytest

from elimina import cp, dcop
from elimina.cp import flatzinc_reader, tsp, tsplib
from elimina.errors import MemoryLimitError
from elimina.generate import random_model


def run_out(*_, **__):
    raise MemoryError


def small_model() -> cp.Model:
    model = cp.Model()
    model.all_different(model.int_vars(3, 0, 2))
    return model


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("at", ["build_solver", "CpSearch"])
def test_a_search(monkeypatch, at, threads):
    monkeypatch.setattr("elimina.cp.model." + at, run_out)
    with pytest.raises(MemoryLimitError, match="ran out of memory while it solved the constraint model") as caught:
        small_model().solve(threads=threads)
    assert ("fewer threads" in str(caught.value)) == (threads > 1)
    assert "ulimit -v" in str(caught.value)


@pytest.mark.parametrize("call", ["propagated", "to_model", "solutions"])
def test_other_calls_of_a_model(monkeypatch, call):
    monkeypatch.setattr("elimina.cp.model.build_solver", run_out)
    with pytest.raises(MemoryLimitError, match="raise the limit of the process"):
        list(getattr(small_model(), call)())


@pytest.mark.parametrize(("call", "suffix"), [(cp.read, "fzn"), (tsplib.read_tsp, "tsp")])
def test_reading(monkeypatch, tmp_path, call, suffix):
    path = tmp_path / f"model.{suffix}"
    path.write_text("solve satisfy;\n")
    monkeypatch.setattr(flatzinc_reader, "flatzinc_record", run_out)
    monkeypatch.setattr(tsplib._TourFile, "read", run_out)
    with pytest.raises(MemoryLimitError, match="raise the limit of the process"):
        call(path)


def test_a_tour(monkeypatch, tmp_path):
    path = tmp_path / "square.tsp"
    path.write_text(
        "NAME: square\nTYPE: TSP\nDIMENSION: 4\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
        "1 0 0\n2 0 5\n3 5 5\n4 5 0\nEOF\n"
    )
    problem = tsplib.read_tsp(path)
    monkeypatch.setattr(tsp, "with_fixed_edges", run_out)
    with pytest.raises(MemoryLimitError, match="raise the limit of the process"):
        tsp.solve_tsp(problem)


def test_agents(monkeypatch):
    problem = dcop.Problem.from_model(random_model(4, 2, 0.5, 0.0))
    monkeypatch.setattr(import_module("elimina.dcop.solve"), "agree", run_out)
    with pytest.raises(MemoryLimitError, match="while its agents solved the problem"):
        dcop.solve(problem)
