"""``elimina report``."""

from __future__ import annotations

import signal
import time

import pytest

from tests.cli.conftest import EXAMPLES


def test_report(elimina, radio, tmp_path):
    assert elimina("report", radio, "-o", "a.html") == (0, "", "")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "<title>radio.wcsp</title>" in page
    assert "Reasons: " in page
    given = ("--evidence", "Alarm=on", "--query", "Pump", "--title", "Pumps & more", "--time-limit", 60)
    assert elimina("report", EXAMPLES / "pump.bif", *given, "-o", "b.html") == (0, "", "")
    page = (tmp_path / "b.html").read_text("utf-8")
    assert "<h1>Pumps &amp; more</h1>" in page
    assert 'id="sensitivity"' in page


@pytest.mark.parametrize("name", ["queens.fzn", "towns.tsp", "meetings.yaml", "orchard.xmlbif"])
def test_reports_of_other_problems(elimina, tmp_path, name):
    if name.endswith("yaml"):
        pytest.importorskip("yaml")
    assert elimina("report", EXAMPLES / name, "-o", "a.html") == (0, "", "")
    assert f"<h1>{name}</h1>" in (tmp_path / "a.html").read_text("utf-8")


def test_errors(elimina, radio, tmp_path):
    assert "Missing option '-o'" in elimina("report", radio).err
    ran = elimina("report", radio, "-o", "a.svg")
    assert (ran.code, ran.err) == (1, "elimina: a.svg: reports are written to .html files\n")
    ran = elimina("report", EXAMPLES / "towns.tsp", "--evidence", "a=1", "-o", "a.html")
    assert ran.code == 2
    assert "towns.tsp cannot be combined with --evidence: they are for graphical models; leave them out" in ran.err
    ran = elimina("report", "no.wcsp", "-o", "a.html")
    assert (ran.code, ran.err) == (1, "elimina: cannot read no.wcsp: No such file or directory\n")
    assert not (tmp_path / "a.html").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_the_page(elimina, start, tmp_path, number):
    elimina("generate", "random", "-n", 60, "-d", 6, "--p1", 0.12, "--p2", 0.2, "hard.wcsp")
    process = start("report", "hard.wcsp", "-o", "a.html", "--memory", "64MiB", "-v")
    # The log tells that the search has begun.
    for line in process.stderr:
        if "started" in line:
            break
    time.sleep(0.2)
    process.send_signal(number)
    assert process.wait(timeout=120) == 128 + number
    assert 'id="graph"' in (tmp_path / "a.html").read_text("utf-8")
