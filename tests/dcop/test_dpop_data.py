"""Agents find every proven optimum whose tables fit, over every kind of network."""

from __future__ import annotations

import pytest

from elimina.dcop import Network, read
from tests.calls import solve_by_agents as solve
from tests.dcop.test_formats_data import OPTIMA, WORKED_OUT

WIDE = ("dcop_sim/rand4_50_1.xml", "dcop_sim/rand4_50_1.json")
"""Width 35."""

NETWORKS = {"time": Network(), "random": Network("random"), "faulty": Network(jitter=0.01, loss=0.2, duplicate=0.2)}


@pytest.mark.data
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("name", [name for name in (*OPTIMA, *WORKED_OUT) if name not in WIDE])
def test_proven_optima(data_dir, name: str, network: str) -> None:
    problem = read(data_dir / "dcop" / name)
    result = solve(problem, network=NETWORKS[network])
    assert result.status == "optimal"
    assert result.value == pytest.approx({**OPTIMA, **WORKED_OUT}[name])


@pytest.mark.data
@pytest.mark.parametrize("name", WIDE)
def test_bounds_of_wide_problems(data_dir, name: str) -> None:
    result = solve(read(data_dir / "dcop" / name), "adpop", ibound=10)
    assert result.lower_bound is not None
    assert result.upper_bound is not None
    assert 0.85 * OPTIMA[name] < result.lower_bound <= OPTIMA[name] <= result.upper_bound
