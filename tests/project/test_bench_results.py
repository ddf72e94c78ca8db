"""The tables of RESULTS.md and of the pages in bench/results are those of the records that the benchmarks wrote."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module


def test_the_pages_show_the_records(bench):
    render = bench("render")
    texts = [page.read_text() for page in render.PAGES]
    assert list(map(render.rendered, texts)) == texts
    shown = {match["name"] for text in texts for match in render.SECTION.finditer(text)}
    assert shown == {path.stem for path in (BENCH / "results").glob("*.json")}


def test_charts_have_a_mark_for_each_figure(bench):
    charts = bench("charts")
    ratios = [row[column] for _, name, column in charts.CLAIMS for row in charts.read(name)["rows"] if row[column]]
    found = ElementTree.fromstring(charts.speed()).findall(".//{*}circle/{*}title")
    assert [title.text.rpartition(": ")[2] for title in found] == ratios
    found = ElementTree.fromstring(charts.growth()).findall(".//{*}polyline")
    assert len(found) == len(charts.read("growth")["rows"])
    found = ElementTree.fromstring(charts.bounds()).findall(".//{*}path")
    assert [path.get("d").count("H") + 1 for path in found] == [len(charts.read("bounds-over-time")["rows"])] * 2
    for name in charts.CHARTS:
        assert (BENCH.parent / "docs" / "images" / name).exists()


def test_every_record_has_its_command_and_date():
    for path in (BENCH / "results").glob("*.json"):
        record = json.loads(path.read_text())
        assert record.get("command") or record["commands"], path
        assert record["date"], path
        assert all(len(row) == len(record["columns"]) for row in record["rows"]), path


def test_a_benchmark_writes_its_record(bench, tmp_path, monkeypatch):
    record = bench("record")
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["bench/growth.py", "--sizes", "10"])
    run = record.Record("growth", ["family", "s"], "Seconds.")
    run.add("tree", 0.5)
    found = json.loads(run.save().read_text())
    assert found["command"] == "python bench/growth.py --sizes 10"
    assert (found["rows"], "cores, load" in found["machine"]) == ([["tree", "0.5"]], True)
    text = bench("render").source(found)
    assert text.startswith("`python bench/growth.py --sizes 10`; ")
    assert text.endswith("Seconds.")
    assert bench("render").table(found) == "| family | s |\n|---|---|\n| tree | 0.5 |\n"


def test_growth_makes_a_row_for_each_family_and_task(tmp_path):
    command = [sys.executable, BENCH / "growth.py", "--sizes", "10", "20", "--families", "tree", "--tasks", "mpe"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 3
