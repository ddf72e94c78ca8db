"""Objects in a REPL are a few lines, and in a notebook tables that are complete or say what they leave out."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import elimina
from elimina import cp
from elimina.errors import InputError
from elimina.generate import grid_model
from elimina.model.model import Model
from elimina.model.variable import Variable

LONG = "<b>&" + "n" * 3000


def network(count, name="x"):
    """A chain of distributions over variables of a prefix."""
    table = np.full((2, 2), 0.5)
    factors = [([0], table[0]), *(([i, i + 1], table) for i in range(count - 1))]
    model = Model.from_arrays({f"{name}{i}": 2 for i in range(count)}, factors, sense="probability")
    return Model(model.variables, model.factors, sense="probability", name=name)


def objects(model):
    tree = elimina.JunctionTree(model)
    tree.set_evidence({0: 1})
    plan = elimina.plan(model, "pr")
    answers = [elimina.solve(model, task) for task in ("mpe", "mar")]
    return [model, model[0], tree, plan, *answers, tree.batch([{0: 1}]), cp.Model.from_model(grid_model(3, 2))]


@pytest.mark.parametrize("model", [network(3), network(300), network(3, LONG)], ids=["small", "many", "long"])
def test_representations_are_short_and_in_lines(model):
    for one in objects(model):
        text = repr(one)
        assert len(text.encode()) < 2048, type(one)
        assert max(map(len, text.splitlines())) < 200
        if isinstance(one, Variable):
            continue
        html = one._repr_html_()
        assert len(html) < 60_000
        assert "<b>&n" not in html
        ET.fromstring(html.replace("&nbsp;", " "))


def test_prints_of_large_answers_count_what_they_leave_out():
    wide = Model.from_arrays([2**20, 3], [([0], np.ones(2**20)), ([1], [1.0, 2, 1])], sense="probability")
    many, ranked = network(5000), elimina.Options(k=5)
    answers = {
        "and 1,047,576 more states of x0 and 1 more variable": elimina.solve(wide, "mar"),
        "and 4,500 more variables": elimina.solve(many, "mar"),
        "x999=0 and 4,000 more": elimina.solve(many),
        "4 more assignments": elimina.solve(many, "kbest", options=ranked),
        "state 999 0 to 1 and 1 more": elimina.Result(
            "estimated", "mar", marginal_bounds={"x": {f"state {number}": (0.0, 1.0) for number in range(1001)}}
        ),
    }
    for ending, answer in answers.items():
        assert str(answer).endswith(ending)
        assert len(str(answer)) < 60_000
        assert len(repr(answer.marginals)) < 60_000
    assert repr(elimina.solve(network(2), "mar").marginals) == "{'x0': {0: 0.5, 1: 0.5}, 'x1': {0: 0.5, 1: 0.5}}"
    assert repr(elimina.solve(many, "mar").marginals).endswith("1: 0.5}, … and 4,500 more variables}")


def test_what_they_say():
    model = network(3)
    assert "3 of up to 4 cells" in repr(model)
    assert "x1=0" in repr(elimina.solve(model))
    assert "x0" in repr(objects(model)[2])
    html = elimina.solve(model, "mar")._repr_html_()
    assert html.count("<td") > 3 * 2 * 3
    assert "and 260 more" in elimina.solve(network(300), "mar")._repr_html_()
    queens = cp.Model()
    queens.all_different(queens.int_vars(4, 0, 3, "q"))
    assert repr(queens).splitlines()[1:3] == [
        "  variables:          4: q[0], q[1], q[2], q[3]",
        "  constraints:        1 all_different_domain",
    ]


@pytest.mark.parametrize(("task", "k"), [("mar", None), ("mpe", None), ("kbest", 3)])
def test_a_notebook_shows_an_answer_once(task, k):
    names = [f"variable_{number}" for number in range(3)]
    model = Model.from_arrays(dict.fromkeys(names, 2), [([name], [0.25, 0.75]) for name in names], sense="probability")
    answer = elimina.solve(model, task, k=k)
    html = answer._repr_html_()
    assert [html.count(name) for name in names] == [k or 1] * 3
    assert "time:  " in repr(answer)


def test_a_notebook_lists_ranked_assignments():
    model = Model.from_arrays({"a": 3}, [(["a"], [4, 1, 7])])
    answer = elimina.solve(model, "kbest", k=2)
    assert "ranked:             2 assignments" in repr(answer)
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", answer._repr_html_())
    assert cells[-4:] == ["1", "a=1", "4", "a=0"]


def test_variables_by_name():
    model = Model([Variable("HR", 2, ["LOW", "HIGH"])], [])
    assert model["HR"] is model[0] is model.variables[0]
    assert repr(model["HR"]) == "Variable('HR', 2, states=('LOW', 'HIGH'))"
    assert [v.name for v in model] == ["HR"]
    with pytest.raises(InputError, match="no variable 'hr'; did you mean 'HR'"):
        model["hr"]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(library):
    pytest.importorskip(library)
    model = Model.from_arrays({"a": 2}, [(["a"], [0.25, 0.75])], sense="probability")
    found = elimina.JunctionTree(model).batch([{"a": 1}, {}])
    frame = found.to_frame(library)
    columns = frame.column_names if library == "pyarrow" else list(frame.columns)
    assert columns == ["a=0", "a=1", "log10_evidence"]
    assert frame["a=1"].to_numpy().tolist() == [1.0, 0.75]
    answer = elimina.solve(model, "mar").to_frame(library)
    assert answer["probability"].to_numpy().tolist() == [0.25, 0.75]
    with pytest.raises(InputError, match="unknown library 'excel'; it is one of pandas, polars, pyarrow"):
        found.to_frame("excel")


def test_frames_keep_the_index_of_the_cases():
    pandas = pytest.importorskip("pandas")
    model = Model.from_arrays({"a": 2}, [(["a"], [0.25, 0.75])], sense="probability")
    cases = pandas.DataFrame({"a": [0, 1, 0, 1]})
    cases = cases[cases["a"] == 1]
    joined = cases.join(elimina.JunctionTree(model).batch(cases).to_frame())
    assert joined.index.tolist() == [1, 3]
    assert joined["a=1"].tolist() == [1.0, 1.0]
    named = elimina.JunctionTree(model).batch(cases.set_axis(["x", "y"])).to_frame()
    assert named.index.tolist() == ["x", "y"]


def test_packages_load_when_they_are_used():
    code = (
        "import sys, elimina; assert 'elimina.viz' not in sys.modules; elimina.viz.plot; elimina.cp.Model; "
        "assert 'matplotlib' not in sys.modules; assert 'viz' in dir(elimina)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pictures_show_themselves(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "chain.uai"
    elimina.write(network(4), path)
    picture = elimina.viz.plot(path)
    assert repr(picture) == "Picture: save(path) writes it, and a notebook shows it"
    picture.save(str(tmp_path / "x.svg"))
    assert picture._repr_svg_() == picture.svg() == (tmp_path / "x.svg").read_text()
    with pytest.raises(TypeError, match=r"model is 3 \(int\); it takes a Model"):
        elimina.viz.plot(3)


def test_options_show_what_differs_from_the_defaults() -> None:
    assert repr(elimina.Options()) == "Options()"
    given = elimina.Options(order=("b", "a"), gap=0.5)
    assert repr(given) == "Options(order=('b', 'a'), gap=0.5)"
    assert eval(repr(given), {"Options": elimina.Options}) == given
