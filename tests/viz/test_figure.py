"""Pictures show what they should: their SVG is parsed and its marks are counted and measured."""

from __future__ import annotations

import re
import stat
import sys
import warnings
import xml.etree.ElementTree as ET
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import elimina
from elimina.errors import InputError
from elimina.generate import grid_model
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.result import Bounds
from elimina.viz import plot, plot_joint, plot_sensitivities
from elimina.viz.chart_figure import draw_chart
from elimina.viz.charts import bounds_chart
from elimina.viz.figure import draw_figure
from elimina.viz.graph import edges_of, graph_diagram
from elimina.viz.junction_tree import cliques_of
from tests.io.models import named_variables, networks

SVG = "{http://www.w3.org/2000/svg}"


class Picture:
    """An SVG file of ours."""

    def __init__(self, path):
        self.root = ET.parse(path).getroot()

    def paths(self, gid):
        """Points of each path in a group."""
        groups = [g for g in self.root.iter(f"{SVG}g") if g.get("id") == gid]
        found = [p.get("d") for group in groups for p in group.iter(f"{SVG}path")]
        return [np.array(re.findall(r"-?[\d.]+(?:e-?\d+)?", d), dtype=float).reshape(-1, 2) for d in found]

    def style(self, gid, key):
        group = next(g for g in self.root.iter(f"{SVG}g") if g.get("id") == gid)
        return [float(re.search(rf"{key}: ([\d.]+)", p.get("style"))[1]) for p in group.iter(f"{SVG}path")]

    def texts(self, gid):
        groups = [g for g in self.root.iter(f"{SVG}g") if g.get("id") == gid]
        return ["".join(group.itertext()).strip() for group in groups]


def draw(tmp_path, model, what="graph", **options):
    plot(model, what, **options).save(tmp_path / "x.svg")
    assert [p.name for p in tmp_path.iterdir()] == ["x.svg"]
    return Picture(tmp_path / "x.svg")


def chain(count, values=2, name="n"):
    """A Bayesian network in a line, with an arrow that jumps over the second variable."""
    table = np.full((values, values), 1 / values)
    factors = [Table([0], table[0]), *(Table([i, i + 1], table) for i in range(count - 1))]
    if count > 2:
        factors[2] = Table([0, 1, 2], np.full((values,) * 3, 1 / values))
    variables = [Variable(f"{name}{i}", values) for i in range(count)]
    return Model(variables, factors, sense="probability", children=range(count), name="chain")


def test_a_directed_graph(tmp_path):
    picture = draw(tmp_path, chain(5))
    assert len(picture.paths("nodes")) == 5
    assert len(picture.paths("edges")) == len(picture.paths("arrows")) == 5
    assert picture.texts("label") == [f"n{i}" for i in range(5)]
    assert picture.texts("title") == ["chain: 5 variables, 5 arrows"]
    heights = [box[:, 1].mean() for box in picture.paths("nodes")]
    assert heights == sorted(heights)
    assert draw(tmp_path, chain(5), title="t").texts("title") == ["t: 5 variables, 5 arrows"]


def test_an_undirected_graph(tmp_path):
    picture = draw(tmp_path, grid_model(4, 2))
    assert len(picture.paths("nodes")) == len(picture.texts("label")) == 16
    assert len(picture.paths("edges")) == 24
    assert picture.paths("arrows") == []


def test_arrows_end_at_their_boxes(tmp_path):
    picture = draw(tmp_path, chain(6))
    boxes = picture.paths("nodes")
    for arrow in picture.paths("arrows"):
        tip = arrow[0]
        gaps = [np.maximum(box.min(axis=0) - tip, tip - box.max(axis=0)).max() for box in boxes]
        assert min(map(abs, gaps)) < 0.5


@settings(max_examples=15, deadline=None)
@given(networks(named_variables()))
def test_any_network(tmp_path_factory, model):
    if not model.variables:
        return
    folder = tmp_path_factory.mktemp("pictures")
    picture = draw(folder, model)
    boxes = picture.paths("nodes")
    assert len(boxes) == len(model.variables)
    assert len(picture.paths("arrows")) == len(edges_of(model))
    assert picture.texts("label") == [v.name.strip() for v in model.variables]
    for a, b in combinations(boxes, 2):
        assert (a.max(axis=0) < b.min(axis=0)).any() or (b.max(axis=0) < a.min(axis=0)).any()
    tree = draw(folder, model, "tree")
    assert len(tree.paths("nodes")) == len(cliques_of(model))


def test_names_shrink_and_then_go(tmp_path):
    sizes = []
    for count in (60, 61, 251):
        picture = draw(tmp_path, chain(count))
        assert len(picture.paths("nodes")) == count
        assert len(picture.texts("label")) == (count if count < 251 else 0)
        sizes.append(np.ptp(picture.paths("nodes")[0], axis=0)[1])
    assert sizes[0] > sizes[1] > sizes[2]
    long = draw(tmp_path, chain(3, name="a" * 40 + "$x$"))
    assert long.texts("label") == [f"{'a' * 13}…{'a' * 10}$x${v}" for v in range(3)]


def test_labels_of_names_that_begin_alike_differ(tmp_path):
    names = [f"a-name-that-begins-alike-{v}-and-ends-alike" for v in range(70)]
    table = Table([0], [0.5, 0.5])
    labels = draw(tmp_path, Model([Variable(name, 2) for name in names], [table], sense="probability")).texts("label")
    assert len(set(labels)) == 70
    assert max(map(len, labels)) < min(map(len, names))


def overlapping(boxes):
    """Pairs of boxes that share more than a rounding error of area."""
    lows, highs = (np.array([reduce(box, axis=0) for box in boxes]) for reduce in (np.min, np.max))
    common = np.minimum(highs[:, None], highs[None]) - np.maximum(lows[:, None], lows[None])
    return int(((common > 0.05).all(axis=2).sum() - len(boxes)) / 2)


def test_boxes_of_many_long_names_do_not_overlap(tmp_path):
    """186 variables with names and arcs like those of MUNIN."""
    rng, count = np.random.default_rng(5), 186
    variables = [Variable(f"R_LNLT1_LP_BE_APB_{v % 31}_{v}_MUSIZE", 3) for v in range(count)]
    tables = []
    for v in range(count):
        parents = rng.choice(v, min(v, int(rng.integers(0, 4))), replace=False).tolist()
        tables.append(Table([*parents, v], np.full((3,) * (len(parents) + 1), 1 / 3)))
    model = Model(variables, tables, sense="probability", children=range(count))
    picture = draw(tmp_path, model)
    assert overlapping(picture.paths("nodes")) == 0
    assert len(set(picture.texts("label"))) == count
    width, height = (float(picture.root.get(key)[:-2]) / 72 for key in ("width", "height"))
    assert max(width, height) < 30
    (tmp_path / "x.svg").unlink()
    assert overlapping(draw(tmp_path, model, "posteriors").paths("nodes")) == 0


def test_wide_trees_shrink(tmp_path):
    star = Model.from_arrays([2] * 600, [((0, v), np.ones((2, 2))) for v in range(1, 600)], sense="probability")
    picture = draw(tmp_path, star, "tree")
    assert len(picture.paths("nodes")) == 599
    assert max(float(picture.root.get(key)[:-2]) / 72 for key in ("width", "height")) < 40
    assert overlapping(picture.paths("nodes")) == 0


PUMP = Path(__file__).parents[2] / "examples" / "pump.bif"


def test_posteriors_inside_nodes(tmp_path):
    evidence = {"Alarm": "on", "Noise": "loud", "Season": None}
    picture = draw(tmp_path, PUMP, "posteriors", evidence=evidence)
    model = elimina.read(PUMP)
    marginals = elimina.JunctionTree(model, evidence=evidence).marginals()
    assert sorted(picture.texts("label")) == sorted(variable.name for variable in model.variables)
    states = [str(state) for variable in model.variables for state in variable.all_states]
    assert sorted(picture.texts("state")) == sorted(states)
    shares = [share for name in marginals for share in marginals[name].tolist()]
    lengths = [np.ptp(bar, axis=0)[0] for bar in picture.paths("bars")]
    tracks = [np.ptp(track, axis=0)[0] for track in picture.paths("tracks")]
    assert [length / track for length, track in zip(lengths, tracks, strict=True)] == pytest.approx(shares, abs=2e-3)
    texts = [f"{100 * share:.1f} %" if 0 < share < 1 else f"{100 * share:.0f} %" for share in shares]
    assert sorted(picture.texts("share")) == sorted(texts)
    assert picture.texts("legend") == ["posterior probability", "observed"]
    # Each bar lies inside a node.
    boxes = [(path.min(axis=0), path.max(axis=0)) for path in picture.paths("nodes")]
    for track in picture.paths("tracks"):
        low, high = track.min(axis=0), track.max(axis=0)
        assert sum(bool((low >= box_low).all() and (high <= box_high).all()) for box_low, box_high in boxes) == 1


def test_posteriors_of_an_answer_and_of_many_states(tmp_path):
    model = Model.from_arrays([12], [([0], np.arange(1, 13))], sense="probability")
    picture = draw(tmp_path, model, "posteriors", answer=elimina.solve(model, "mar"))
    assert picture.texts("state") == ["7", "8", "9", "10", "11", "7 others"]
    assert picture.texts("share")[-1] == f"{100 * 28 / 78:.1f} %"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"evidence": ["Alarm"]}, "without their states"),
        ({"answer": elimina.solve(PUMP, "mar", query=["Alarm"])}, "posteriors of 1 of 12 variables"),
    ],
)
def test_posteriors_that_are_missing(options, text):
    with pytest.raises(InputError, match=text):
        plot(PUMP, "posteriors", **options)


def test_posteriors_of_too_many_variables():
    with pytest.raises(InputError, match="300 variables, and the posteriors of at most 250"):
        plot(chain(300), "posteriors")


def test_a_joint_distribution_is_a_heat_map(tmp_path):
    tree = elimina.JunctionTree(PUMP, evidence={"Alarm": "on"})
    joint = tree.joint(["Pressure", "Temperature"])
    plot_joint(joint).save(tmp_path / "x.svg")
    picture = Picture(tmp_path / "x.svg")
    assert picture.texts("number") == [f"{number:.3g}" for number in joint.ravel()]
    axes = " ".join([*picture.texts("matplotlib.axis_1"), *picture.texts("matplotlib.axis_2")]).split()
    assert axes == ["normal", "hot", "Temperature", "normal", "low", "high", "Pressure"]
    with pytest.raises(InputError, match="3 variables, and a heat map shows two"):
        plot_joint(tree.joint(["Pressure", "Temperature", "Flow"]))
    with pytest.raises(TypeError, match="table is"):
        plot_joint(joint.array)


def test_a_tornado_shows_the_widest_ranges(tmp_path):
    sensitivities = elimina.JunctionTree(PUMP, evidence={"Alarm": "on"}).sensitivities({"Bearing": "worn"})
    plot_sensitivities(sensitivities, change=0.2, count=5).save(tmp_path / "x.svg")
    picture = Picture(tmp_path / "x.svg")
    widths = {row.name: abs(row.ends(0.2)[1] - row.ends(0.2)[0]) for row in sensitivities}
    (names,) = picture.texts("matplotlib.axis_2")
    shown = [name.strip() for name in names.splitlines() if name.strip()]
    assert len(shown) == 5
    assert [widths[name] for name in shown] == sorted((widths[name] for name in shown), reverse=True)
    assert widths[shown[0]] == max(widths.values())
    for argument in ({"change": 0}, {"change": 1.5}, {"count": 0}):
        with pytest.raises(InputError, match=next(iter(argument))):
            plot_sensitivities(sensitivities, **argument)


def test_a_tree(tmp_path):
    """Areas go with the logarithms of the cliques' cells, line widths with those of the separators'."""
    model = Model.from_arrays(
        [10, 10, 10, 10, 10, 10],
        [((0, 1, 2, 3), np.ones((10,) * 4)), ((1, 2, 4), np.ones((10,) * 3)), ((3, 5), np.ones((10, 10)))],
        sense="probability",
    )
    picture = draw(tmp_path, model, "tree")
    areas = [np.ptp(circle, axis=0)[0] ** 2 for circle in picture.paths("nodes")]
    assert sorted(np.array(areas) / max(areas)) == pytest.approx([2 / 4, 3 / 4, 1], rel=1e-3)
    assert sorted(picture.style("edges", "stroke-width")) == pytest.approx([1.3, 2.6])
    assert sorted(picture.texts("count")) == ["2", "3", "4"]
    assert sorted(picture.texts("caption")) == sorted(f"x{i}" for i in (0, 1, 2, 3, 1, 2, 4, 3, 5))
    assert picture.texts("title") == ["3 cliques, 11,100 cells, 10,000 in the largest"]
    assert {"10", "100", "1e4"} <= set(picture.texts("legend"))
    legend = [np.ptp(picture.paths(f"legend-circle-{i}")[0], axis=0)[0] ** 2 for i in range(3)]
    assert legend[2] == pytest.approx(max(areas), rel=1e-3)


def test_names_do_not_overlap_circles(tmp_path):
    picture = draw(tmp_path, chain(12), "tree")
    circles = picture.paths("nodes")
    for a, b in combinations(circles, 2):
        assert (a.max(axis=0) < b.min(axis=0)).any() or (b.max(axis=0) < a.min(axis=0)).any()


def test_a_tall_tree_is_folded(tmp_path):
    picture = draw(tmp_path, chain(400), "tree")
    width, height = (float(picture.root.get(key)[:-2]) for key in ("width", "height"))
    assert height < 3 * width
    assert width < 3 * height
    assert len(picture.paths("nodes")) == 398
    between = len(picture.paths("edges-between-bands"))
    assert len(picture.paths("edges")) + between == 397
    assert between > 3
    assert picture.texts("caption") == []


def test_a_forest_and_domains_of_one_value(tmp_path):
    picture = draw(tmp_path, Model.from_arrays([1, 1, 3], []), "tree")
    assert len(picture.paths("nodes")) == 3
    assert picture.paths("edges") == []


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg", "SVG"])
def test_formats(tmp_path, suffix):
    begins = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix.lower()]
    data = []
    for name in ("a", "b"):
        path = tmp_path / f"{name}.{suffix}"
        plot(chain(4), "tree").save(path)
        data.append(path.read_bytes())
    assert data[0].startswith(begins)
    assert data[0] == data[1]


@pytest.mark.parametrize(
    ("model", "name", "what", "problem"),
    [
        (chain(2), "x.gif", "graph", "pictures are written to .svg, .png, .pdf files"),
        (chain(2), "x", "graph", "pictures are written to"),
        (chain(2), "x.svg", "forest", "unknown what 'forest'; it is one of graph, posteriors, tree"),
        (Model([], []), "x.svg", "tree", "the model has no variables"),
        (chain(2), "nowhere/x.svg", "graph", "cannot write"),
    ],
)
def test_errors(tmp_path, model, name, what, problem):
    with pytest.raises(InputError) as caught:
        plot(model, what).save(tmp_path / name)
    assert problem in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"plotting needs matplotlib.*pip install 'elimina\[plot\]'"):
        plot(chain(2))


@pytest.mark.data
@pytest.mark.parametrize(("name", "variables", "edges", "cliques"), [("asia", 8, 8, 6), ("alarm", 37, 46, 27)])
def test_known_networks(tmp_path, data_dir, name, variables, edges, cliques):
    model = elimina.read(data_dir / "bayesnets" / "bif" / f"{name}.bif")
    picture = draw(tmp_path, model)
    assert (len(picture.paths("nodes")), len(picture.paths("arrows"))) == (variables, edges)
    assert len(draw(tmp_path, model, "tree").paths("nodes")) == cliques


def test_times_of_a_trace_are_plain_numbers_with_room(tmp_path):
    for moments, expected in [((0.4, 3.0, 6.3), ["0.5", "1", "2", "5"]), ((0.01, 3000.0), ["0.01", "0.1", "1", "10"])]:
        draw_chart(bounds_chart([Bounds(seconds, 4, 8, 0) for seconds in moments], "run")).save(tmp_path / "run.svg")
        labels = " ".join(Picture(tmp_path / "run.svg").texts("matplotlib.axis_1")).split()
        assert labels[: len(expected)] == expected


@pytest.mark.parametrize("shape", ["wide", "tall"])
def test_a_large_network_fits_a_page(shape):
    """Layers that would be too wide or too many to read give way to a compact layout."""
    rng, count = np.random.default_rng(0), 120
    variables = [Variable(f"a-long-name-{v:03}", 2) for v in range(count)]
    roots = [range(15) if shape == "wide" else range(max(0, v - 6), v) for v in range(count)]
    parents = [sorted(rng.choice(roots[v], 2, replace=False).tolist()) if v >= 15 else [] for v in range(count)]
    tables = [Table([*own, v], np.full((2,) * (len(own) + 1), 0.5)) for v, own in enumerate(parents)]
    canvas = draw_figure(graph_diagram(Model(variables, tables, sense="probability", children=range(count))), "")
    width, height = np.subtract(*canvas.bounds[::-1])
    assert max(width, height) < 5 * min(width, height)


def test_letters_that_the_font_lacks(tmp_path, caplog):
    """One line names them, where Matplotlib warned of each where it was measured; an SVG file holds them as text."""
    model = Model([Variable("变\n量", 2)], [Table((0,), [0.5, 0.5])], sense="probability")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picture = plot(model)
        picture.save(tmp_path / "m.svg")
        assert not caplog.records
        picture.save(tmp_path / "m.png")
    assert "变 量" in (tmp_path / "m.svg").read_text("utf-8")
    (record,) = caplog.records
    assert "lacks '变', '量', and boxes take their place; write a .svg file" in record.getMessage()


def test_a_picture_that_is_replaced_keeps_its_mode_and_a_link_its_name(tmp_path):
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o600)
    (tmp_path / "x.svg").symlink_to("old")
    plot(chain(4), "tree").save(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").is_symlink()
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o600
    assert "<svg" in (tmp_path / "old").read_text()
