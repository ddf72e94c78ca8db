"""The tables of RESULTS.md and of the pages in bench/results are those of the records that the benchmarks wrote."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from statistics import geometric_mean
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


def test_the_readme_shows_typical_speeds(bench):
    summary = bench("summary")
    text = (BENCH.parent / "README.md").read_text()
    assert summary.inserted(text) == text
    typical = {claim.text: summary.typical(summary.ratios(claim)) for claim in summary.CLAIMS}
    assert sum(ratio < 1 for ratio in typical.values()) >= 2  # peers win, too
    rows = json.loads((BENCH / "results" / "one-call.json").read_text())["rows"]
    assert typical["time of all posteriors, one call"] == pytest.approx(geometric_mean(float(row[3]) for row in rows))


def test_the_page_on_estimates_shows_their_accuracy(bench):
    render = bench("render")
    text = render.ESTIMATES.read_text()
    assert render.with_estimates(text) == text


def test_a_typical_ratio_weighs_instances(bench):
    summary = bench("summary")
    assert summary.typical([(2, 1), (8, 1)]) == pytest.approx(4)
    assert summary.typical([(2, 3), (32, 1)]) == pytest.approx(4)


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
        assert record["command"], path
        assert record["machine"], path
        assert record["date"], path
        assert "\n" not in record["note"], path
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
    text = bench("render").source(found | {"commit": "0123456"})
    assert text.startswith("Seconds.\n\n- command: `python bench/growth.py --sizes 10`\n- machine: ")
    assert text.endswith(f"\n- date: {found['date']}, commit 0123456\n\n")
    assert bench("render").table(found) == "| family | s |\n|---|---|\n| tree | 0.5 |\n"


def test_growth_makes_a_row_for_each_family_and_task(tmp_path):
    command = [sys.executable, BENCH / "growth.py", "--sizes", "10", "20", "--families", "tree", "--tasks", "mpe"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout.splitlines()) == 3
