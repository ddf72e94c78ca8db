"""``elimina tsp`` and pictures of tours."""

from __future__ import annotations

import json
import signal
import time

import numpy as np
import pytest

from elimina.cp.tsplib import read_tour

SQUARE = """NAME : square
TYPE : TSP
DIMENSION : 5
EDGE_WEIGHT_TYPE : EUC_2D
NODE_COORD_SECTION
1 0 0
2 10 10
3 10 0
4 0 10
5 5 12
EOF
"""


@pytest.fixture
def square(tmp_path):
    (tmp_path / "square.tsp").write_text(SQUARE)
    return "square.tsp"


@pytest.fixture
def large(tmp_path):
    points = np.random.default_rng(1).integers(0, 10**6, (500, 2))
    rows = "\n".join(f"{i} {x} {y}" for i, (x, y) in enumerate(points, 1))
    head = "NAME: large\nTYPE: TSP\nDIMENSION: 500\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
    (tmp_path / "large.tsp").write_text(f"{head}{rows}\nEOF\n")
    return "large.tsp"


def test_answer(elimina, square, tmp_path):
    ran = elimina("tsp", square, "-o", "square.tour")
    assert (ran.code, ran.err) == (0, "")
    assert "status:     optimal\nlength:     40\n" in ran.out
    assert ran.out.splitlines()[0].split()[1:3] == ["s", "tour"]
    tour = read_tour(tmp_path / "square.tour")
    assert sorted(tour) == [0, 1, 2, 3, 4]
    shown = elimina("tsp", square).out.splitlines()[-1]
    assert sorted(shown.split()[1:]) == ["1", "2", "3", "4", "5"]


def test_json(elimina, square):
    ran = elimina("tsp", square, "--json", "--seed", 3)
    answer = json.loads(ran.out)
    assert ran.out.count("\n") == 1
    # Three sides of 10, and sqrt(29) = 5.39 twice, which goes to 5.
    assert [answer[key] for key in ("schema", "status", "task", "value", "lower_bound", "upper_bound", "ended_by")] == [
        1, "optimal", "tsp", 40, 40, 40, None
    ]  # fmt: skip
    assert sorted(answer["tour"]) == [1, 2, 3, 4, 5]


def test_time_limit(elimina, large):
    started = time.monotonic()
    answer = json.loads(elimina("tsp", large, "--json", "--time-limit", 1).out)
    assert time.monotonic() - started < 20
    assert (answer["status"], answer["ended_by"]) == ("bounded", "time-limit")
    assert 0 < answer["lower_bound"] < answer["value"]
    ran = elimina("tsp", large, "--time-limit", 1)
    assert "bound:" in ran.out
    assert "(gap " in ran.out


@pytest.mark.parametrize(("number", "cause"), [(signal.SIGINT, "interrupt"), (signal.SIGTERM, "termination")])
def test_signals(start, large, tmp_path, number, cause):
    """A signal at any moment after the first tour gives the best tour and its bound."""
    process = start("tsp", large, "-o", "large.tour")
    process.stdout.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + number, "")
    assert f"ended by:   {cause}\n" in out
    assert sorted(read_tour(tmp_path / "large.tour")) == list(range(500))


def test_errors(elimina, square, tmp_path):
    assert elimina("tsp", "no.tsp").err == "elimina: cannot read no.tsp: No such file or directory\n"
    (tmp_path / "bad.tsp").write_text(SQUARE.replace("10 10", "10 ten"))
    ran = elimina("tsp", "bad.tsp")
    assert (ran.code, ran.err) == (1, "elimina: bad.tsp:7: expected a number, found 'ten'\n")
    (tmp_path / "atsp.tsp").write_text(SQUARE.replace("TYPE : TSP", "TYPE : ATSP"))
    assert elimina("tsp", "atsp.tsp").err == "elimina: atsp.tsp:2: unsupported: TYPE ATSP; it has to be TSP\n"
    assert "cannot write no/x.tour" in elimina("tsp", square, "-o", "no/x.tour").err
    assert elimina("tsp", square, "--time-limit", 0).code == 2
    # A search that begins before it looks at the clock may prove four towns.
    assert json.loads(elimina("tsp", square, "--time-limit", 1e-9, "--json").out)["status"] in ("feasible", "optimal")


def test_plot(elimina, square, tmp_path):
    assert elimina("tsp", square, "-o", "square.tour").code == 0
    assert elimina("plot", square, "--tour", "square.tour", "-o", "tour.svg") == (0, "", "")
    picture = (tmp_path / "tour.svg").read_text()
    assert "square: 5 cities, a tour of length 40" in picture
    assert 'id="edges"' in picture
    assert elimina("plot", square, "-o", "cities.png") == (0, "", "")
    assert (tmp_path / "cities.png").read_bytes().startswith(b"\x89PNG")


def test_plot_errors(elimina, square, radio, tmp_path):
    (tmp_path / "other.tour").write_text("TYPE : TOUR\nDIMENSION : 2\nTOUR_SECTION\n1\n2\n-1\nEOF\n")
    ran = elimina("plot", square, "--tour", "other.tour", "-o", "x.svg")
    assert ran.err == "elimina: other.tour is a tour of 2 cities, but square.tsp has 5\n"
    assert elimina("plot", radio, "--tour", "other.tour", "-o", "x.svg").code == 2
    head = "TYPE: TSP\nDIMENSION: 2\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: UPPER_ROW\n"
    (tmp_path / "flat.tsp").write_text(f"{head}EDGE_WEIGHT_SECTION\n7\nEOF\n")
    assert "flat.tsp has no coordinates" in elimina("plot", "flat.tsp", "-o", "x.svg").err


def test_time_limits_beyond_timers_of_the_system(elimina, square):
    for limit in ("1e10", "99999999999999999999", "1e300"):
        ran = elimina("tsp", square, "--time-limit", limit)
        assert (ran.code, ran.err) == (0, "")
