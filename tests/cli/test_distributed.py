"""``elimina convert`` and ``generate`` with files of distributed problems."""

from __future__ import annotations

import json

import pytest

from elimina import dcop
from elimina.generate import coloring_model, maximized, random_model
from elimina.io.model_files import read
from elimina.model.table import FORBIDDEN
from tests.dcop.problems import EXAMPLES, all_costs


@pytest.mark.parametrize("suffix", EXAMPLES)
def test_to_a_model_and_back(elimina, tmp_path, suffix):
    source = tmp_path / f"p.{suffix}"
    source.write_text(EXAMPLES[suffix])
    assert elimina("convert", source, tmp_path / "p.cfn").code == 0
    costs = all_costs(dcop.read(source).model)
    assert all_costs(read(tmp_path / "p.cfn")) == pytest.approx(costs)
    assert elimina("convert", tmp_path / "p.cfn", tmp_path / f"q.{suffix}").code == 0
    again = dcop.read(tmp_path / f"q.{suffix}")
    assert all_costs(again.model) == pytest.approx(costs)
    assert [agent.name for agent in again.agents] == [v.name for v in again.model.variables]


def test_agents_survive(elimina, tmp_path):
    source = tmp_path / "p.yaml"
    source.write_text(EXAMPLES["yaml"])
    assert elimina("convert", source, tmp_path / "p.xml").code == 0
    assert elimina("convert", tmp_path / "p.xml", tmp_path / "p.json").code == 0
    assert dcop.read(tmp_path / "p.json").owners == dcop.read(source).owners


def test_xml_of_probabilities_is_xmlbif(elimina, tmp_path):
    net = tmp_path / "n.bif"
    net.write_text(
        "network n {}\nvariable a { type discrete [2] { x, y }; }\nprobability ( a ) { table 0.25, 0.75; }\n"
    )
    assert elimina("convert", net, tmp_path / "n.xml").code == 0
    assert read(tmp_path / "n.xml").sense == "probability"
    assert elimina("convert", net, tmp_path / "n.yaml").code == 0
    assert dcop.read(tmp_path / "n.yaml").model.sense == "min-cost"


def test_generate(elimina, tmp_path):
    assert elimina("generate", "random", "-n", 9, "--agents", 4, "--maximize", tmp_path / "r.yaml").code == 0
    problem = dcop.read(tmp_path / "r.yaml")
    assert problem.owners == (0, 1, 2, 3, 0, 1, 2, 3, 0)
    assert problem.model.sense == "max-cost"
    for family in ("scalefree", "grid", "coloring"):
        path = tmp_path / f"{family}.xml"
        assert elimina("generate", family, path, "--seed", 3).code == 0
        assert len(dcop.read(path).agents) == len(dcop.read(path).model.variables)
    refused = elimina("generate", "grid", "--agents", 4, tmp_path / "g.wcsp")
    assert refused.code != 0
    assert "cannot hold agents" in refused.err


def test_coloring_and_gains():
    model = coloring_model(12, 3, 0.3, seed=1)
    assert [f.scope for f in model.factors] == [f.scope for f in random_model(12, 3, 0.3, seed=1).factors]
    assert all((f.values == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]).all() for f in model.factors)
    costs, gains = random_model(5, 3, 0.9, seed=2), maximized(random_model(5, 3, 0.9, seed=2))
    assert gains.sense == "max-cost"
    for cost, gain in zip(costs.factors, gains.factors, strict=True):
        hard = cost.values == FORBIDDEN
        assert (gain.values[hard] == -FORBIDDEN).all()
        assert (gain.values[~hard] == cost.values[~hard]).all()


def test_other_commands_take_distributed_problems(elimina, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(EXAMPLES["yaml"])
    values = [json.loads(elimina(command, path, "--format", "json").out)["value"] for command in ("solve", "dcop")]
    assert values[0] == values[1]
