"""The figures that pages quote are those of the records of benchmarks."""

from __future__ import annotations

import importlib
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def rows(name: str) -> list[list[str]]:
    record = json.loads((ROOT / "bench" / "results" / f"{name}.json").read_text())
    return record["rows"]


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


def text_of(page: str) -> str:
    return " ".join((ROOT / page).read_text().split())


def extent(cells: list[str]) -> str:
    """Return the range of ratios as the pages write it, in whole numbers."""
    values = [number(cell) for cell in cells if cell]
    return f"{min(values):,.0f} to {max(values):,.0f}"


def test_speeds_against_pyagrum():
    text = text_of("docs/coming-from/pyagrum.md")
    one_call, compiled = rows("one-call"), rows("posteriors-of-a-compiled-network")
    cases = [row for row in rows("posteriors-of-many-cases") if row[3]]
    assert f"{extent([row[3] for row in one_call])} times for one call on {len(one_call)} networks" in text
    observed = extent([row[6] for row in compiled])
    assert f"{observed} times with ten observations on {len(compiled)} compiled networks" in text
    many = extent([row[3] for row in cases])
    assert f"{many} times for many cases on {len(cases)} networks" in text


def test_speeds_against_opt_einsum():
    ratios = [(row[0], number(row[5])) for row in rows("einsum")]
    faster = [ratio for _, ratio in ratios if ratio > 1]
    slower = [ratio for _, ratio in ratios if ratio < 1]
    text = text_of("docs/coming-from/einsum.md")
    assert f"elimina is {min(faster):g} to {max(faster):g} times as fast as the prepared expression" in text
    assert f"and {min(slower):g} to {max(slower):g} times as fast on" in text


def test_speeds_against_toulbar2():
    text = text_of("docs/coming-from/toulbar2.md")
    families = {row[0].rpartition("/")[2]: row for row in rows("optima-of-all-families")}
    assert f"Over {sum(int(row[1]) for row in families.values())} instances of {len(families)} families" in text
    for family, words in {
        "pedigree": "on pedigrees",
        "grid": "on grids",
        "celar6": "on CELAR",
        "mastermind": "on mastermind",
        "protein": "on proteins",
    }.items():
        share = number(families[family][4])
        assert f"{share:.{2 if share < 1 else 1}f} {words}" in text, family
    anytime = [row for row in rows("anytime") if row[0] != "mean"]
    peers_win = sum(min(number(row[2]), number(row[3])) < number(row[1]) for row in anytime)
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")
    assert f"On average over {words[len(anytime)]} instances" in text
    assert f"On {words[peers_win]} of them, one of toulbar2's searches" in text
    mean = next(row for row in rows("anytime") if row[0] == "mean")
    assert number(mean[1]) < min(number(mean[2]), number(mean[3]))


def test_the_mean_time_against_toulbar2(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    summary = importlib.import_module("summary")
    claim = next(claim for claim in summary.CLAIMS if claim.record == "optima-of-all-families")
    share = 1 / summary.typical(summary.ratios(claim))
    assert f"elimina takes {share:.2g} times the time of toulbar2's better search" in text_of(
        "docs/coming-from/toulbar2.md"
    )


def test_speeds_against_pydcop():
    ratios = extent([row[5] for row in rows("dpop-against-pydcop")])
    assert f"with {ratios} times less processor time" in text_of("README.md")


def test_the_bounds_of_the_picture():
    trace = (ROOT / "docs" / "images" / "run.jsonl").read_text().splitlines()
    bounds = json.loads(trace[-1])
    text = text_of("README.md")
    assert (
        f"the best assignment costs {bounds['upper']:,}, and no assignment costs less than {bounds['lower']:,}" in text
    )
    assert f"at most {100 * (bounds['upper'] / bounds['lower'] - 1):.1f} % above the optimum" in text


def test_speeds_of_hidden_markov_models():
    """Each quoted time is the mean of those beside both peers; '-' where none is measured."""
    page = (ROOT / "docs" / "how-to" / "time.md").read_text()
    for row in rows("dynamic-models"):
        line = re.search(rf"^\| {row[0]} \| {row[1]} \| (.*) \|$", page, re.MULTILINE)
        assert line is not None, row[:2]
        pairs = [
            (math.nan, math.nan) if cell == "-" else tuple(map(number, cell.partition(":")[0].split(", ")))
            for cell in row[2:7]
        ]
        (filtered, smoothed, smoothed_peer, decoded, decoded_peer) = pairs
        expected = [
            *filtered,
            np.nanmean([smoothed[0], smoothed_peer[0]]),
            smoothed[1],
            smoothed_peer[1],
            np.nanmean([decoded[0], decoded_peer[0]]),
            decoded[1],
            decoded_peer[1],
        ]
        quoted = [math.nan if cell == "-" else number(cell) for cell in line[1].split(" | ")]
        assert quoted == pytest.approx(expected, rel=0.05, abs=0.06, nan_ok=True)


def test_speeds_of_learning_and_prediction():
    ((_, count, ours, peer, *_),) = rows("parameters-with-missing-cells")
    text = text_of("docs/how-to/learning.md")
    assert f"On alarm ({count} rows," in text
    assert f"one row takes {number(ours):.0f} µs of processor time in an iteration, and {number(peer):,.0f} µs" in text
    ratios = {row[1]: row[3] for row in rows("batch-prediction") if row[0] == "one posterior"}
    text = text_of("docs/how-to/other-tools.md")
    assert f"{ratios['pgmpy']} times as fast as in pgmpy, and {ratios['pyAgrum']} times as fast as with pyAgrum" in text
