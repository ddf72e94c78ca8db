"""Answers: their text, JSON and data frames."""

from __future__ import annotations

import copy
import inspect
import json
import math
import pickle
import re
import sys

import pytest

from elimina.errors import InputError
from elimina.result import Interval, Result

MARGINALS = {"HR": {"LOW": 0.25, "NORMAL": 0.7500001, "HIGH": 0.0}, "b": {"yes": 1.0}, "c": {"0": 3e-9, "1": 1 - 3e-9}}


def test_bounds_are_shown_beside_the_best_value():
    result = Result("bounded", "mpe", 12, lower_bound=7, upper_bound=12)
    assert "  bounds:             7 to 12" in repr(result).splitlines()
    assert "bounds:     7 to 12" in str(result).splitlines()
    assert "bounds" not in repr(Result("optimal", "mpe", 12, lower_bound=12, upper_bound=12))
    assert "log10 Z:    7 to 12" in str(Result("bounded", "pr", lower_bound=7, upper_bound=12))


def test_replaced_attributes():
    result = Result("optimal", "mpe", 3, assignment={"x": 1}, stats={"nodes": 2})
    other = result.replace(value=4, stats={})
    assert other == Result("optimal", "mpe", 4, assignment={"x": 1})
    assert result == Result("optimal", "mpe", 3, assignment={"x": 1}, stats={"nodes": 2})
    with pytest.raises(TypeError, match=r"a result has no attributes \['costs', 'statistics'\]"):
        result.replace(statistics={}, costs=1)


def test_an_estimate_is_never_shown_as_exact():
    """Text, JSON and rows of an estimate say about, and name its error, interval and bounds."""
    estimate = Result(
        "estimated", "pr", None, 1.5, 3.0, log10_z=2.123456789, error=0.25, interval=Interval(2, 2.5, 0.95)
    )
    text = str(estimate.replace(stats={"method": "importance sampling"}))
    assert text.splitlines() == [
        "task:       pr",
        "status:     estimated",
        "error:      about 0.2 (importance sampling)",
        "log10 Z:    about 2.12346",
        "interval:   2 to 2.5 (log10 Z, 95 %)",
        "bounds:     1.5 to 3.0",
    ]
    for shown in (repr(estimate), estimate._repr_html_()):
        assert "about 2.12346" in shown
        assert "2.123456789" not in shown
        assert "1.5 to 3.0" in shown
    answer = json.loads(estimate.to_json())
    assert (answer["error"], answer["interval"]) == (0.25, {"low": 2, "high": 2.5, "level": 0.95})
    assert (answer["value"], answer["lower_bound"], answer["upper_bound"]) == (None, 1.5, 3.0)
    is_open = estimate.replace(interval=Interval(2, math.inf, 0.95))
    assert "interval:   2 to unknown (log10 Z, 95 %)" in str(is_open)
    assert json.loads(is_open.to_json())["interval"]["high"] is None
    count = Result("estimated", "count", None, 3, 40, log10_z=1.0, error=None)
    assert "log10 count: about 1" in str(count)
    assert {"error", "interval"}.isdisjoint(json.loads(Result("exact", "pr", log10_z=1.0).to_json()))


def test_text_of_a_result():
    text = str(Result("exact", "mar", log10_z=-3.5, marginals=MARGINALS))
    lines = text.splitlines()
    assert lines[:3] == ["task:       mar", "status:     exact", "log10 Z:    -3.5"]
    assert lines[3].startswith("HR  LOW ")
    text = str(Result("optimal", "mpe", value=7, assignment={"a": "x", "b": "y"}))
    assert text.splitlines()[2:] == ["value:      7", "assignment: a=x b=y"]


def test_pandas():
    frame = Result("exact", "mar", marginals=MARGINALS).to_frame()
    assert list(frame.columns) == ["variable", "state", "probability"]
    assert list(frame.itertuples(index=False, name=None))[:4] == [
        ("HR", "LOW", 0.25), ("HR", "NORMAL", 0.7500001), ("HR", "HIGH", 0.0), ("b", "yes", 1.0)
    ]  # fmt: skip
    frame = Result("optimal", "mpe", value=7, assignment={"a": "x", "b": "y"}).to_frame()
    assert frame.to_dict("list") == {"variable": ["a", "b"], "state": ["x", "y"]}
    with pytest.raises(InputError, match="task pr has neither marginals nor an assignment"):
        Result("exact", "pr", value=0.5).to_frame()


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"to_frame needs pandas.*pip install 'elimina\[frames\]'"):
        Result("exact", "mar", marginals=MARGINALS).to_frame()


def test_json_has_one_order_of_keys_and_only_finite_numbers():
    answer = Result("exact", "mar", log10_z=-math.inf, marginals={"a": {1: 1.0, "x": 0.5, "y": math.nan}})
    assert answer.to_json() == (
        '{"schema": 1, "status": "exact", "task": "mar", "value": null, "lower_bound": null, "upper_bound": null, '
        '"assignment": null, "marginals": {"a": {"1": 1.0, "x": 0.5, "y": null}}, "log10_z": null, '
        '"ended_by": null, "stats": {}}'
    )
    tour = json.loads(Result("feasible", "tsp", 3, tour=[1, 2, 3], ended_by="interrupt").to_json())
    assert list(tour)[6:8] == ["assignment", "tour"]
    assert (tour["tour"], tour["ended_by"]) == ([1, 2, 3], "interrupt")


def test_json_of_integers_beyond_the_digits_that_str_writes():
    answer = Result("exact", "count", 7, stats={"counts": [7 * 10**5000, math.inf]})
    assert f'"counts": [7{"0" * 5000}, null]' in answer.to_json()


def test_states_of_the_assignment_by_name():
    answer = Result("optimal", "mpe", 1, 1, 1, {"a": 3})
    assert answer["a"] == 3
    with pytest.raises(InputError, match="no variable named 'b'"):
        answer["b"]
    with pytest.raises(InputError, match="no assignment to read 'a' from: the status is unknown"):
        Result("unknown", "mpe")["a"]


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        (Result("infeasible", "mar", log10_z=-math.inf), "the status is infeasible (task mar); the evidence has"),
        (Result("unknown", "mar", ended_by="time-limit"), "the status is unknown (task mar); give the call more time"),
        (
            Result("optimal", "mpe", 1),
            r"the status is optimal (task mpe); ask for them by the task mar: elimina.solve(",
        ),
        (Result("unknown", "mar").replace(status="optimal", task="mpe"), "optimal (task mpe); ask for them"),
    ],
)
def test_an_answer_without_marginals(result, problem):
    reads = [
        lambda: result.marginals["x"],
        lambda: result.marginals.get("x"),
        lambda: list(result.marginals),
        lambda: dict(result.marginals),
        lambda: [*result.marginals.items()],
    ]
    for read in reads:
        with pytest.raises(InputError, match=re.escape(problem)):
            read()
    assert not result.marginals
    assert "x" not in result.marginals
    assert json.loads(result.to_json())["marginals"] is None
    assert copy.deepcopy(result) == result == pickle.loads(pickle.dumps(result))
    assert "marginals" not in str(result) + repr(result).replace("task", "")
    with pytest.raises(InputError, match="neither marginals nor an assignment"):
        result.to_frame()


def test_completion_offers_what_is_documented():
    """Functions that lay out the texts of an answer are not among its attributes."""
    attributes = set(re.findall(r"^ +(\w+): ", inspect.getdoc(Result).partition("Attributes:")[2], re.MULTILINE))
    offered = {name for name in dir(Result("unknown", "mpe")) if not name.startswith("_")}
    assert offered - attributes == {"gap", "log_z", "replace", "to_frame", "to_json"}
