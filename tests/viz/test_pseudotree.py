"""Pictures of distributed problems: pseudo-trees, and timelines of runs."""

from __future__ import annotations

import xml.etree.ElementTree as xml

import pytest

from elimina.dcop import Problem
from elimina.dcop.agent import agree_on_tree
from elimina.errors import InputError
from elimina.generate import grid_model, random_model
from elimina.result import Delivery
from elimina.viz.figure import draw_figure
from elimina.viz.pseudotree import back_edges, pseudotree_diagram
from elimina.viz.timeline import draw_timeline

SVG = "{http://www.w3.org/2000/svg}"


def test_back_edges_are_the_edges_that_are_none_of_the_tree() -> None:
    model = grid_model(4, 2)
    tree = agree_on_tree(Problem.from_model(model))
    scopes = [table.scope for table in model.factors]
    back = back_edges(tree, scopes)
    assert len(back) == 24 - 15
    assert all(low < high and tree.nodes[low].parent != high for low, high in back)


@pytest.mark.parametrize(("count", "names"), [(12, 12), (100, 100), (300, 0)])
def test_a_pseudotree(tmp_path, count: int, names: int) -> None:
    model = random_model(count, 2, 3 / count, seed=1)
    tree = agree_on_tree(Problem.from_model(model))
    scopes = [table.scope for table in model.factors]
    path = tmp_path / "tree.svg"
    diagram = pseudotree_diagram(tree, scopes, [v.name for v in model.variables])
    draw_figure(diagram, "a problem").save(path)
    marks = list(xml.parse(path).iter())
    assert sum(mark.get("id") == "label" for mark in marks) == names
    groups = {mark.get("id"): mark for mark in marks}
    drawn = len(list(groups["edges"].iter(f"{SVG}path"))), len(list(groups["dashed-edges"].iter(f"{SVG}path")))
    assert drawn == (count - 1, len(scopes) - count + 1)
    assert "stroke-dasharray" in xml.tostring(groups["dashed-edges"], "unicode")


RUN = [
    Delivery("", "a<b", "", 0, 0.0, 0.0, 0.001),
    Delivery("a<b", "c", "util", 2048, 0.001, 0.002, 0.004),
    Delivery("c", "a<b", "value", 40, 0.004, 0.005, 0.006),
]


@pytest.mark.parametrize("suffix", ["svg", "html"])
def test_a_timeline(tmp_path, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    draw_timeline(RUN, ["a<b", "c"], path, "a & b")
    text = path.read_text()
    drawing = xml.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])
    groups = {group.get("id"): group for group in drawing.iter(f"{SVG}g")}
    lines = list(groups["messages"])
    assert [line.get("class") for line in lines] == ["util", "value"]
    assert next(lines[0].iter(f"{SVG}title")).text == "util from a<b to c, 2.0 KiB, sent at 1.0 ms"
    # A sixth of the time is a sixth of the way; the sender's lane is above.
    starts, ends = ([float(lines[0].get(f"{key}{end}") or 0) for key in "xy"] for end in (1, 2))
    axis = [float(tick.get("x1") or 0) for tick in groups["ticks"].iter(f"{SVG}line")]
    assert starts[0] - axis[0] == pytest.approx((axis[-1] - axis[0]) / 6, abs=0.1)
    assert ends[0] - axis[0] == pytest.approx((axis[-1] - axis[0]) / 3, abs=0.1)
    assert starts[1] < ends[1]
    assert len(list(groups["work"])) == 3
    assert text.startswith("<!doctype html>") == (suffix == "html")


def test_timelines_that_cannot_be_drawn(tmp_path) -> None:
    with pytest.raises(InputError, match="201 agents and 3 messages are too many for a timeline"):
        draw_timeline(RUN, [str(n) for n in range(201)], tmp_path / "run.svg", "")
    with pytest.raises(InputError, match=r"timelines are written to \.svg and \.html files"):
        draw_timeline(RUN, ["a<b", "c"], tmp_path / "run.png", "")
