"""Limits and options of a search that make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from elimina import cp
from elimina.errors import InputError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time_limit": -1}, "time_limit is -1; it must be a number that is at least 0"),
        ({"time_limit": float("nan")}, "time_limit is nan"),
        ({"time_limit": "1"}, "time_limit is '1'"),
        ({"node_limit": -1}, "node_limit is -1"),
        ({"fail_limit": -2}, "fail_limit is -2"),
        ({"fail_limit": None, "node_limit": []}, r"node_limit is \[\]; it must be a number"),
        ({"solution_limit": -1}, "solution_limit is -1; it must be"),
        ({"solution_limit": 1.5}, "a solution limit is a whole number"),
        ({"seed": -1}, r"the seed is -1; it must be from 0 to 2\^63 - 1"),
        ({"seed": 0.5}, "a seed is a whole number"),
        ({"seed": "x"}, "a seed is a whole number"),
        ({"restarts": "often"}, "no restarts often"),
        ({"restarts": "luby", "restart_scale": 0}, "at least 1"),
        ({"on_solution": 3}, "on_solution is a function"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    model = cp.Model()
    model.int_vars(3, 0, 5)
    with pytest.raises(InputError, match=message):
        model.solve(**options)
