"""Two calls of any kinds after one another, in little memory: what the first has left is there for the second."""

from __future__ import annotations

import pytest

from tests.adversary import successions

pytestmark = [pytest.mark.gpu, pytest.mark.fills_gpu]

WIDTHS = {"sum": 13, "divided sum": 13, "sliced sum": 13, "optimum": 11, "bounds": 16, "tree": 10, "cases": 8}
"""Width with which each kind takes much of the memory that is left."""


@pytest.mark.parametrize("first", successions.CALLS)
def test_calls_of_every_kind_after_a_call(first):
    for second in successions.CALLS:
        calls = [[kind, WIDTHS[kind], seed] for seed, kind in enumerate((first, second))]
        successions.check({"device": "cuda", "calls": calls})
