"""``elimina plot``."""

from __future__ import annotations

import sys

from elimina.viz.colours import OBSERVED
from tests.cli.conftest import EXAMPLES


def test_plot(elimina, radio, tmp_path):
    for what in ("graph", "tree"):
        assert elimina("plot", radio, "--what", what, "-o", f"{what}.svg") == (0, "", "")
    assert "radio.wcsp: 30 variables, 94 edges" in (tmp_path / "graph.svg").read_text()
    assert "cells in a clique (area)" in (tmp_path / "tree.svg").read_text()


def test_errors(elimina, radio, monkeypatch):
    assert "Missing option '-o'" in elimina("plot", radio).err
    assert "'forest' is not one of" in elimina("plot", radio, "--what", "forest", "-o", "x.svg").err
    assert elimina("plot", "no.wcsp", "-o", "x.svg").err == "elimina: cannot read no.wcsp: No such file or directory\n"
    ran = elimina("plot", radio, "-o", "x.gif")
    assert (ran.code, ran.err) == (
        1,
        (
            "elimina: x.gif: pictures are written to .svg, .png, .pdf files, and a model's graph also to .dot and "
            ".graphml files\n"
        ),
    )
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ran = elimina("plot", radio, "-o", "x.svg")
    assert ran.code == 1
    assert ran.err == "elimina: plotting needs matplotlib, which is not installed: pip install 'elimina[plot]'\n"


def test_posteriors_are_inside_the_nodes(elimina, tmp_path):
    pump = EXAMPLES / "pump.bif"
    assert elimina("plot", pump, "--what", "posteriors", "--evidence", "Alarm=on", "-o", "a.svg") == (0, "", "")
    assert OBSERVED in (tmp_path / "a.svg").read_text("utf-8")
    ran = elimina("plot", EXAMPLES / "radio.wcsp", "--what", "posteriors", "-o", "x.svg")
    assert ran.code == 1
    assert "task mar sums probabilities, and this model has costs" in ran.err


def test_evidence_colours_graphs_and_exports(elimina, tmp_path):
    pump = EXAMPLES / "pump.bif"
    for name in ("a.svg", "a.dot", "a.graphml"):
        assert elimina("plot", pump, "--evidence", "Alarm=on", "-o", name) == (0, "", "")
        assert OBSERVED in (tmp_path / name).read_text("utf-8")
    ran = elimina("plot", pump, "--what", "tree", "--evidence", "Alarm=on", "-o", "x.svg")
    assert ran.code == 2
    assert "--evidence cannot be combined with --what tree: use --what graph or posteriors" in ran.err
    assert "pictures are written to" in elimina("plot", pump, "--what", "tree", "-o", "x.dot").err
