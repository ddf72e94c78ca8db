"""Diagrams of figures and pages are the same, and lie within their frames."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import elimina
from elimina.dcop import Problem
from elimina.dcop.agent import agree_on_tree
from elimina.generate import grid_model, random_model
from elimina.reporting.diagrams import PageDiagram, page_layout
from elimina.viz.graph import graph_diagram
from elimina.viz.junction_tree import cliques_of, junction_tree_diagram
from elimina.viz.pseudotree import pseudotree_diagram
from elimina.viz.tour import tour_diagram

EXAMPLES = Path(__file__).parents[2] / "examples"


def tree_diagram(model):
    return junction_tree_diagram(cliques_of(model), model.sizes, [v.name for v in model.variables])


def pseudotree(model):
    scopes = [factor.scope for factor in model.factors]
    return pseudotree_diagram(agree_on_tree(Problem.from_model(model)), scopes, [v.name for v in model.variables])


DIAGRAMS = {
    "graph": graph_diagram(elimina.read(EXAMPLES / "pump.bif")),
    "grid": graph_diagram(grid_model(13, 2)),
    "tree": tree_diagram(elimina.read(EXAMPLES / "radio.wcsp")),
    "folded": tree_diagram(grid_model(2, 2, columns=300)),
    "pseudotree": pseudotree(random_model(30, 2, 0.1, seed=1)),
    "tour": tour_diagram(np.random.default_rng(1).random((20, 2)), list(range(20)), 7),
}


@pytest.mark.parametrize("kind", DIAGRAMS)
def test_data_of_a_page(kind):
    diagram = DIAGRAMS[kind]
    page = PageDiagram(diagram, page_layout(diagram))
    data = page.data()
    assert data["names"] == list(diagram.names)
    assert list(zip(data["edges"][::2], data["edges"][1::2], strict=True)) == list(diagram.edges)
    positions = np.array(data["positions"]).reshape(-1, 2)
    assert len(positions) == len(diagram.names) == len({tuple(place) for place in positions.tolist()})
    assert max(data["extent"]) == 10_000
    assert (positions >= 0).all()
    assert (positions <= data["extent"]).all()


@pytest.mark.parametrize("kind", DIAGRAMS)
def test_curves_lie_within_the_frame(kind):
    diagram = DIAGRAMS[kind]
    data = PageDiagram(diagram, page_layout(diagram)).data()
    positions = np.array(data["positions"]).reshape(-1, 2)
    shares = np.linspace(0, 1, 50)[:, None]
    for number, flat in data["bends"].items():
        bends = np.array(flat).reshape(-1, 2)
        if len(bends) == 1:
            a, b = (positions[end] for end in diagram.edges[int(number)])
            curve = (1 - shares) ** 2 * a + 2 * shares * (1 - shares) * bends + shares**2 * b
            assert (curve >= -250).all()
            assert (curve <= np.array(data["extent"]) + 250).all()
        else:
            assert (bends >= 0).all()
            assert (bends <= data["extent"]).all()


def test_back_edges_run_beside_the_tree():
    diagram = DIAGRAMS["pseudotree"]
    layout = page_layout(diagram)
    assert diagram.dashed
    assert [number for number, bend in enumerate(layout.bends) if len(bend)] == sorted(diagram.dashed)
