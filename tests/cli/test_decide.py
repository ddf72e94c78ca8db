"""``elimina decide``: texts, JSON, files, limits, and errors that say what to do."""

from __future__ import annotations

import json

import pytest

from elimina import InfluenceDiagram, TimeLimitError
from elimina.methods import policy_search
from tests.cli.conftest import EXAMPLES
from tests.cli.test_schema import check

HEATING = EXAMPLES / "heating.bifxml"
GUESS = """<BIF VERSION="0.3"><NETWORK>
<VARIABLE TYPE="decision"><NAME>a</NAME><OUTCOME>0</OUTCOME><OUTCOME>1</OUTCOME></VARIABLE>
<VARIABLE TYPE="decision"><NAME>b</NAME><OUTCOME>0</OUTCOME><OUTCOME>1</OUTCOME></VARIABLE>
<VARIABLE TYPE="utility"><NAME>won</NAME></VARIABLE>
<DEFINITION><FOR>won</FOR><GIVEN>a</GIVEN><GIVEN>b</GIVEN><TABLE>2 0 0 3</TABLE></DEFINITION>
</NETWORK></BIF>
"""


def test_text(elimina):
    code, out, err = elimina("decide", HEATING)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == ["status:     optimal", "utility:    7620"]
    assert "yes  frost     yes   1" in lines
    assert "Frost     no    0.700000  yes   0.300000" in lines


def test_json(elimina, tmp_path):
    assert elimina("decide", HEATING, "-o", "answer.json").code == 0
    answer = json.loads((tmp_path / "answer.json").read_text())
    check(answer, "meu")
    assert answer["status"] == "optimal"
    assert answer["value"] == pytest.approx(7620)
    assert answer["policies"]["Buy"] == [{"observed": {}, "state": "yes", "probability": 1}]
    assert {"observed": {"Buy": "yes", "Forecast": "frost"}, "state": "yes", "probability": 1} in answer["policies"][
        "Heat"
    ]
    assert answer["stats"]["utilities"] == pytest.approx({"Fee": -100, "Fuel": -620, "Harvest": 8340})


def test_fixed_decisions_and_evidence(elimina):
    answer = json.loads(elimina("decide", HEATING, "--policy", "Buy=no", "--json").out)
    assert answer["value"] == pytest.approx(6900)
    answer = json.loads(elimina("decide", HEATING, "--policy", "Buy=no", "--policy", "Heat=yes", "--json").out)
    assert (answer["status"], answer["value"]) == ("exact", pytest.approx(6700))
    answer = json.loads(elimina("decide", HEATING, "--evidence", "Frost=yes", "--json").out)
    assert answer["value"] == pytest.approx(6000)
    assert answer["marginals"]["Heat"] == {"no": 0, "yes": 1}


def test_gains_of_observations(elimina):
    answer = json.loads(elimina("decide", HEATING, "--gains", "Heat", "--json").out)
    check(answer, "meu")
    expected = InfluenceDiagram.read(HEATING).observation_gains("Heat")
    assert answer["stats"]["gains"] == {"Heat": [pytest.approx(row._asdict()) for row in expected]}
    out = elimina("decide", HEATING, "--gains", "Heat").out
    assert f"gains of Heat by observing:\nFrost  {expected[0].gain:.10g}\n" in out
    code, _, err = elimina("decide", HEATING, "--gains", "Heat", "--policy", "Buy=no")
    assert (code, "leave --policy out" in err) == (2, True)
    code, _, err = elimina("decide", HEATING, "--gains", "Frost")
    assert (code, "'Frost' is not a decision; the decisions are Buy, Heat" in err) == (1, True)


def test_gains_that_take_too_long(elimina, monkeypatch):
    """The policies are kept."""

    def gains(*_, **__):
        raise TimeLimitError("late")

    monkeypatch.setattr(InfluenceDiagram, "observation_gains", gains)
    answer = json.loads(elimina("decide", HEATING, "--gains", "Heat", "--time-limit", 60, "--json").out)
    assert (answer["status"], answer["value"], answer["ended_by"]) == ("optimal", pytest.approx(7620), "time-limit")
    assert "gains" not in answer["stats"]


def test_diagrams_that_are_not_soluble(elimina, tmp_path, monkeypatch):
    (tmp_path / "guess.bifxml").write_text(GUESS)
    answer = json.loads(elimina("decide", "guess.bifxml", "--restarts", 5, "--seed", 1, "--json").out)
    check(answer, "meu")
    assert (answer["status"], answer["value"], answer["upper_bound"]) == ("optimal", 3, 3)
    monkeypatch.setattr(policy_search, "_relaxations", lambda *_: [])
    (tmp_path / "trap.bifxml").write_text(GUESS.replace("2 0 0 3", "2 0 1.5 3"))
    assert elimina("decide", "trap.bifxml").out.startswith("status:     bounded\nutility:    2\nat most:    3\n")
    code, _, err = elimina("decide", "guess.bifxml", "--no-forgetting")
    assert code == 1
    assert "neither 'a' nor 'b' comes first: let the later one observe the earlier one" in err
    # The advice works.
    seen = GUESS.replace("</NETWORK>", "<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN></DEFINITION></NETWORK>")
    (tmp_path / "seen.bifxml").write_text(seen)
    assert json.loads(elimina("decide", "seen.bifxml", "--no-forgetting", "--json").out)["status"] == "optimal"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("pump.bif",), "unknown suffix '.bif' of an influence diagram"),
        (("gone.bifxml",), "gone.bifxml"),
        ((HEATING, "--policy", "Frost=no"), "'Frost' is not a decision; the decisions are Buy, Heat"),
        ((HEATING, "--policy", "Buy=maybe"), "variable 'Buy' has no state 'maybe'"),
        ((HEATING, "--evidence", "Forecast=mild"), "evidence names 'Forecast', which a decision affects"),
    ],
)
def test_errors(elimina, arguments, problem):
    code, out, err = elimina("decide", *arguments)
    assert (code, out) == (1, "")
    assert problem in err
    assert err.count("\n") == 1


def test_solve_names_the_command(elimina):
    code, _, err = elimina("solve", HEATING)
    assert code == 1
    assert "node 'Buy' is a decision node, of an influence diagram: solve it by" in err
    assert "'elimina decide'" in err
