"""The published files: proven optima, and the same problem after writing."""

from __future__ import annotations

import pytest

import elimina
from elimina.dcop import read, write
from tests import calls

OPTIMA = {
    **{f"frodo_xcsp/RandomDCOP_{name}.xml": optimum for name, optimum in {
        "10_3_2": 187, "11_2_1": 0, "12_3_1": 725, "12_3_2": 942, "15_3_2": 1795, "17_3_1": 1770, "18_3_1": 1931,
        "20_2_2": 3946, "20_3_1": 2313, "20_3_2": 3280, "24_3_1": 3707, "25_3_1": 3869, "25_3_2": 4156,
        "30_2_1": 6922, "30_2_2": 7062, "5_10_1": 27, "5_10_2": 12, "5_2_1": 105, "5_2_2": 92, "5_3_1": 46,
        "7_10_1": 89, "7_10_2": 84, "7_3_1": 243,
    }.items()},
    "frodo_xcsp/RandomDisCSP_10_5_1.xml": 0,
    "dcop_sim/rand4_50_1.xml": 8953,
    "dcop_sim/rand4_50_1.json": 8953,
    "dcop_sim/sf.xml": 1168,
    "dcop_sim/sf.json": 1168,
    "../wcsp/gpube_test/rep_0_x_10.xml": 124,
    "pydcop/tests/instances/graph_coloring_tuto.yaml": 12,
}  # fmt: skip
# Published without an optimum: small enough for a look, or the same by construction as another file.
WORKED_OUT = {
    "py_dcop/data/binary.json": 0,
    "pydcop/tests/instances/graph_coloring1.yaml": -0.1,
    "pydcop/tests/instances/graph_coloring_seperate_costs.yaml": -0.1,
    "pydcop/tests/instances/graph_coloring_10_4_15_0.1.yml": 0,
    "pydcop/tests/instances/graph_coloring_10_4_15_0.1_capa.yml": 0,
    "pydcop/tests/instances/graph_coloring_10_4_15_0.1_capa_costs.yml": 0,
    "pydcop/docs/tutorials/graph_coloring_3agts.yaml": -0.1,
    "pydcop/tests/instances/secp_simple1.yaml": 2.3,
}


@pytest.mark.data
@pytest.mark.parametrize("name", [*OPTIMA, *WORKED_OUT])
@pytest.mark.parametrize("target", [None, "yaml", "xml", "json"])
def test_optima(data_dir, tmp_path, name, target):
    problem = read(data_dir / "dcop" / name)
    if target is not None:
        write(problem, tmp_path / f"again.{target}")
        problem = read(tmp_path / f"again.{target}")
    assert elimina.solve(problem.model).value == pytest.approx({**OPTIMA, **WORKED_OUT}[name])


@pytest.mark.data
@pytest.mark.parametrize(
    ("size", "lower", "upper"), [("20_10_2", 1659, 2340), ("25_10_1", 2021, 3035), ("25_10_2", 1906, 2969)]
)
def test_unproven_ones_are_read(data_dir, size, lower, upper):
    model = read(data_dir / "dcop" / f"frodo_xcsp/RandomDCOP_{size}.xml").model
    result = calls.solve(model, method="mbe", ibound=3)
    assert result.lower_bound <= upper
    assert result.upper_bound >= lower


@pytest.mark.data
def test_owners_of_the_published_files(data_dir):
    house = read(data_dir / "dcop/pydcop/tests/instances/SimpleHouse.yml")
    owner = {v.name: house.agents[a].name for v, a in zip(house.model.variables, house.owners, strict=True)}
    assert owner["l_lv2"] == "a_lv2"
    assert owner["mv_kitchen"] == "a_k1"
    assert house.agents[0].capacity == 200
    shared = read(data_dir / "dcop/pydcop/tests/instances/graph_coloring_3agts_10vars.yaml")
    assert [shared.owners.count(agent) for agent in range(3)] == [4, 3, 3]


@pytest.mark.data
def test_a_domain_without_values_has_the_first_integers(data_dir):
    model = read(data_dir / "dcop/drl4wcsp/problem.xml").model
    assert model.variables[0].states == tuple(range(1, 21))
    assert len(model.factors) == 70
