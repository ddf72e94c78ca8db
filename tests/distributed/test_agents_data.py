"""Agents on the workers of a cluster find every proven optimum whose tables fit."""

from __future__ import annotations

import pytest

from elimina.dcop import read
from elimina.distributed import solve_agents
from tests.dcop.test_dpop_data import WIDE
from tests.dcop.test_formats_data import OPTIMA, WORKED_OUT


@pytest.mark.data
def test_proven_optima(data_dir, client) -> None:
    for name, optimum in {**OPTIMA, **WORKED_OUT}.items():
        if name not in WIDE:
            result = solve_agents(read(data_dir / "dcop" / name), client=client)
            assert (result.status, result.value) == ("optimal", pytest.approx(optimum)), name
