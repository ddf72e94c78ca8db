"""``elimina fit``: complete data, missing cells, limits, signals, and errors that say what to do."""

from __future__ import annotations

import collections
import csv
import re
import signal

import pytest

from elimina import read
from tests.cli.conftest import EXAMPLES

PUMP = EXAMPLES / "pump.bif"


@pytest.fixture
def data(elimina, tmp_path):
    """Rows of the example, all of them complete."""
    elimina("sample", PUMP, "-n", 60, "--seed", 1, "-o", "data.csv")
    return tmp_path / "data.csv"


@pytest.fixture
def gaps(data, tmp_path):
    """The same rows without some cells, spelt in each of the ways, and without the last columns."""
    with data.open() as file:
        rows = [row[:5] for row in csv.reader(file)]
    for number, row in enumerate(rows[1:]):
        row[number % 5] = ("", "?", "NA", "*")[number % 4]
    path = tmp_path / "gaps.csv"
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    return path


def log_likelihoods(out):
    return float(re.search(r"log-likelihood (\S+)", out)[1])


def test_complete_data_are_counted(elimina, data, tmp_path):
    code, out, err = elimina("fit", PUMP, data, "-o", "fitted.bif", "--prior", 0.5)
    assert (code, err) == (0, "")
    assert out.startswith("60 rows, 0 iterations (converged), log-likelihood -")
    with data.open() as file:
        counts = collections.Counter(row["Season"] for row in csv.DictReader(file))
    fitted = read(tmp_path / "fitted.bif")
    season = next(factor for factor in fitted.factors if factor.scope == (fitted.index("Season"),))
    shares = [(counts[state] + 0.5) / (60 + 0.5 * len(counts)) for state in fitted["Season"].states]
    assert season.values == pytest.approx(shares, rel=1e-6)
    assert [v.states for v in fitted.variables] == [v.states for v in read(PUMP).variables]


def test_missing_cells_are_expected(elimina, gaps):
    first = elimina("fit", PUMP, gaps, "-o", "first.bif", "--prior", 0, "--max-iterations", 0)
    assert "0 iterations (max-iterations)" in first.out
    last = elimina("fit", PUMP, gaps, "-o", "last.bif", "--prior", 0, "--max-iterations", 4, "--tolerance", 0)
    assert "4 iterations (max-iterations)" in last.out
    assert log_likelihoods(last.out) > log_likelihoods(first.out)
    # The fitted file is a start as good as the fit was.
    again = elimina("fit", "last.bif", gaps, "-o", "again.bif", "--prior", 0, "--start", "model", "--max-iterations", 0)
    assert log_likelihoods(again.out) == pytest.approx(log_likelihoods(last.out), rel=1e-6)


def test_a_seed_repeats_a_fit(elimina, gaps, tmp_path):
    limits = ("--restarts", 2, "--max-iterations", 3)
    for name, seed in (("a.bif", 5), ("b.bif", 5), ("c.bif", 6)):
        assert elimina("fit", PUMP, gaps, "-o", name, "--seed", seed, *limits).code == 0
    texts = [(tmp_path / name).read_text() for name in ("a.bif", "b.bif", "c.bif")]
    assert texts[0] == texts[1] != texts[2]


def test_a_time_limit_keeps_the_best_fit(elimina, gaps, tmp_path):
    limits = ("--tolerance", 0, "--restarts", 10**9)
    code, out, _ = elimina("fit", PUMP, gaps, "-o", "out.bif", *limits, "--time-limit", 1)
    assert code == 0
    assert "(time-limit)" in out
    assert read(tmp_path / "out.bif").children is not None


@pytest.mark.parametrize(
    ("number", "code", "reason"), [(signal.SIGINT, 130, "interrupt"), (signal.SIGTERM, 143, "termination")]
)
def test_a_signal_keeps_the_best_fit(start, gaps, tmp_path, number, code, reason):
    process = start("fit", PUMP, gaps, "-o", "out.bif", "-v", "--tolerance", 0, "--restarts", 10**9)
    log = iter(process.stderr.readline, "")
    assert any("iteration 0" in line for line in log)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert f"({reason})" in out
    assert read(tmp_path / "out.bif").children is not None


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ("", "expected the names of variables in the first line"),
        ("Season,Age\n", "the data have no rows: fit needs at least one"),
        ("Season,Fog\ndry,thick\n", "the model has no variable 'Fog'"),
        ("Season,Age\ndry,new\nrainy,new\n", ":3: column 'Season': variable 'Season' has no state 'rainy'"),
        ("Season,Age\ndry,new\ndry\n", ":3: "),
    ],
)
def test_data_that_do_not_fit(elimina, tmp_path, rows, problem):
    (tmp_path / "data.csv").write_text(rows)
    code, out, err = elimina("fit", PUMP, "data.csv", "-o", "out.bif")
    assert (code, out) == (1, "")
    assert problem in err
    assert not (tmp_path / "out.bif").exists()


def test_extra_columns_are_left_out_on_demand(elimina, tmp_path):
    (tmp_path / "data.csv").write_text("Season,Fog\ndry,thick\n")
    assert elimina("fit", PUMP, "data.csv", "-o", "out.bif", "--ignore-extra").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("--prior", -1), 2, "'--prior': -1.0 is not in the range x>=0"),
        (("--prior", "nan"), 1, "prior is NaN"),
        (("--prior", "inf"), 1, "the prior is inf; pseudo-counts must be finite"),
        (("--tolerance", "inf"), 1, "tolerance is inf; it must be finite"),
        (("--restarts", -1), 2, "'--restarts': -1 is not in the range x>=0"),
        (("--start", "random"), 2, "'random' is not one of 'counts', 'model'"),
        (("--time-limit", 0), 2, "'--time-limit'"),
    ],
)
def test_arguments_out_of_range(elimina, data, arguments, code, problem):
    ended = elimina("fit", PUMP, data, "-o", "out.bif", *arguments)
    assert ended.code == code
    assert problem in ended.err


@pytest.mark.parametrize(
    ("output", "problem"), [("out.xyz", "unknown suffix '.xyz'"), ("data.csv", "it is an input of this command")]
)
def test_outputs_that_cannot_be(elimina, data, output, problem):
    before = data.read_text()
    code, _, err = elimina("fit", PUMP, data, "-o", output)
    assert code == 1
    assert problem in err
    assert data.read_text() == before


@pytest.mark.parametrize("output", ["out.xyz", "-"])
def test_outputs_are_checked_before_the_data_are_read(elimina, output):
    code, _, err = elimina("fit", PUMP, "missing.csv", "-o", output)
    assert code == 1
    assert "name one of" in err or "name a file" in err


def test_a_model_without_distributions(elimina, radio, data):
    code, _, err = elimina("fit", radio, data, "-o", "out.bif")
    assert code == 1
    assert "parameters are fitted to a Bayesian network" in err


def test_a_row_of_probability_0(elimina, tmp_path):
    (tmp_path / "net.uai").write_text("BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2 1 0\n4 1 0 0.5 0.5\n")
    (tmp_path / "data.csv").write_text("x0,x1\n0,\n,1\n")
    code, _, err = elimina("fit", "net.uai", "data.csv", "-o", "out.uai", "--start", "model")
    assert code == 1
    assert "row 1 has probability 0 under the starting tables" in err
    # The advice works.
    assert elimina("fit", "net.uai", "data.csv", "-o", "out.uai", "--start", "counts").code == 0
