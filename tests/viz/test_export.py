"""Colours of answers on graphs, names of hubs, axes of traces, and graphs for other programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import networkx
import numpy as np
import pytest

import elimina
from elimina import InputError, Model, Table, Variable
from elimina.generate import grid_model, scale_free_model
from elimina.result import Bounds, Result
from elimina.viz import plot, write_graph
from elimina.viz.chart_figure import draw_chart
from elimina.viz.charts import bounds_chart
from elimina.viz.colours import CLASSES, FILL, OBSERVED, OTHERS, node_fills
from elimina.viz.graph import answer_colourings, edges_of, graph_diagram
from tests.viz.test_figure import Picture

PUMP = Path(__file__).parents[2] / "examples" / "pump.bif"
NAMES = ['"quoted" \\n', "a <b> & c", "naïve ∑ 変数"]


@pytest.fixture
def odd() -> Model:
    """A model whose names mean something to DOT and XML."""
    return Model([Variable(name, 2) for name in NAMES], [Table((0, 1), np.eye(2)), Table((1, 2), np.eye(2))])


def colours(model: Model, result: Result | None, observed: list[int]) -> list[str]:
    diagram = graph_diagram(model, observed)
    colourings = [] if result is None else answer_colourings(diagram.names, result)
    return node_fills(replace(diagram, colourings=colourings))


def test_colours_say_what_is_known():
    model = elimina.read(PUMP)
    evidence = {"Alarm": "on"}
    posterior = elimina.solve(model, "mar", evidence=evidence)
    fills = colours(model, posterior, [model.index("Alarm")])
    assert fills[model.index("Alarm")] == OBSERVED
    certain = {name: max(values.values()) for name, values in posterior.marginals.items() if name != "Alarm"}
    least, most = min(certain, key=certain.get), max(certain, key=certain.get)
    assert int(fills[model.index(most)][1:3], 16) < int(fills[model.index(least)][1:3], 16)
    best = elimina.solve(model)
    by_state = colours(model, best, [])
    fill_of = {best.assignment[v.name]: fill for v, fill in zip(model.variables, by_state, strict=True)}
    assert [fill_of[best.assignment[v.name]] for v in model.variables] == by_state
    assert len(fill_of) > len(CLASSES)
    named = {state: fill for state, fill in fill_of.items() if fill != OTHERS}
    assert len(named) == len(set(named.values())) == len(CLASSES)
    counts = Counter(best.assignment.values())
    assert min(counts[state] for state in named) >= max(counts[state] for state in fill_of.keys() - named.keys())
    assert colours(model, None, []) == [FILL] * len(model.variables)


def test_a_picture_with_evidence(tmp_path):
    answer = elimina.solve(PUMP, "mar", evidence={"Alarm": "on"})
    plot(PUMP, answer=answer, evidence=["Alarm"]).save(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    # The observed variable, and its entry in the key.
    assert text.count(f"fill: {OBSERVED}") == 2
    assert Picture(tmp_path / "a.svg").texts("legend") == ["probability of the likeliest state:", "0", "1", "observed"]
    assert plot(PUMP).svg().count(OBSERVED) == 0


@pytest.mark.parametrize(("states", "key"), [([10, 2, 10, 1], ["1", "2", "10"]), (["b", 3, "b", "a"], ["3", "a", "b"])])
def test_a_key_lists_states_in_their_order(states, key):
    names = [f"x{number}" for number in range(5)]
    answer = Result("optimal", "mpe", assignment=dict(zip(names, states, strict=False)))
    (colouring,) = answer_colourings(names, answer)
    assert list(colouring.labels) == key
    assert colouring.values == [*(key.index(str(state)) for state in states), None]


def test_a_key_to_states(tmp_path):
    answer = elimina.solve(PUMP)
    picture = plot(PUMP, answer=answer)
    picture.save(tmp_path / "a.svg")
    name, *states = Picture(tmp_path / "a.svg").texts("legend")
    assert name == "state in the assignment:"
    assert states[-1] == "others"
    assert set(states[:-1]) < set(answer.assignment.values())
    (low, high), (plain_low, plain_high) = picture.bounds, plot(PUMP).bounds
    assert low[1] < plain_low[1]
    assert low[0] == pytest.approx(plain_low[0])
    assert high == pytest.approx(plain_high)


def test_hubs_of_large_graphs_have_names(tmp_path):
    model = scale_free_model(600, 2, seed=1)
    plot(model).save(tmp_path / "a.svg")
    names = Picture(tmp_path / "a.svg").texts("hub")
    degrees = np.bincount(np.array(edges_of(model)).ravel())
    assert 3 <= len(names) <= 15
    assert model.variables[int(degrees.argmax())].name in names
    plot(grid_model(10, 2)).save(tmp_path / "b.svg")
    assert Picture(tmp_path / "b.svg").texts("hub") == []


def test_graphml_is_read_by_networkx(tmp_path, odd):
    write_graph(odd, tmp_path / "a.graphml", observed=[1])
    graph = networkx.read_graphml(tmp_path / "a.graphml")
    assert not graph.is_directed()
    assert [data["label"] for _, data in graph.nodes.items()] == NAMES
    assert graph.nodes["n1"]["color"] == OBSERVED
    assert set(graph.edges) == {("n0", "n1"), ("n1", "n2")}
    model = elimina.read(PUMP)
    write_graph(model, tmp_path / "b.graphml")
    graph = networkx.read_graphml(tmp_path / "b.graphml")
    assert {(int(a[1:]), int(b[1:])) for a, b in graph.edges} == set(edges_of(model))
    assert graph.is_directed()


def test_dot(tmp_path, odd):
    write_graph(odd, tmp_path / "a.dot")
    text = (tmp_path / "a.dot").read_text("utf-8")
    assert text.startswith('graph "model" {\n')
    assert f'n0 [label="\\"quoted\\" \\\\n", fillcolor="{FILL}"];' in text
    assert "  n0 -- n1;\n  n1 -- n2;\n}\n" in text
    write_graph(PUMP, tmp_path / "b.dot")
    text = (tmp_path / "b.dot").read_text("utf-8")
    assert text.startswith('digraph "pump" {\n')
    assert text.count("->") == 15
    with pytest.raises(InputError, match=r"a.txt: graphs are written to .dot and .graphml files"):
        write_graph(odd, tmp_path / "a.txt")


@pytest.mark.parametrize(("times", "scale"), [((3.0, 4.1, 7.5), "linear"), ((0.02, 4.1, 75.0), "log")])
def test_labels_of_a_trace_do_not_overlap(times, scale):
    figure = draw_chart(bounds_chart([Bounds(t, k, 9 - k) for k, t in enumerate(times)], "run"))._figure
    figure.canvas.draw()
    axes = figure.axes[0]
    assert axes.get_xscale() == scale
    ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    shown = [label for at, label in ticks if axes.get_xlim()[0] <= at <= axes.get_xlim()[1] and label.get_text()]
    boxes = sorted((label.get_window_extent() for label in shown), key=lambda box: box.x0)
    assert len(boxes) >= 3
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    assert not axes.get_xticklabels(minor=True) or not any(t.get_text() for t in axes.get_xticklabels(minor=True))
    assert figure.legends[0].get_window_extent().y1 < axes.get_window_extent().y0


def test_names_that_xml_cannot_hold(tmp_path):
    model = Model([Variable("a\x01b", 2), Variable("\ud800", 2)], [])
    with pytest.raises(InputError, match=r"cannot hold the name 'a\\x01b': it has the character '\\x01'"):
        write_graph(model, tmp_path / "a.graphml")
    for suffix in ("svg", "png", "pdf"):
        plot(model).save(tmp_path / f"a.{suffix}")
    assert "a\ufffdb" in "".join(ElementTree.parse(tmp_path / "a.svg").getroot().itertext())


def test_arguments_of_a_wrong_type_are_named(odd, tmp_path):
    for given, message in (
        ({"title": 5}, "title is 5"),
        ({"evidence": 5}, "evidence is 5"),
        ({"evidence": "a"}, "'a'"),
    ):
        with pytest.raises(TypeError, match=message):
            plot(odd, **given)
    with pytest.raises(TypeError, match="result is 5"):
        write_graph(odd, tmp_path / "a.dot", result=5)
    with pytest.raises(InputError, match="has no variable 99"):
        write_graph(odd, tmp_path / "a.dot", observed=[99])
    by_name, by_index = tmp_path / "name.dot", tmp_path / "index.dot"
    write_graph(odd, by_name, observed=[odd.variables[1].name])
    write_graph(odd, by_index, observed=[1])
    assert by_name.read_text() == by_index.read_text()
