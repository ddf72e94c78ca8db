"""The generators reach every path of the executors that this machine has."""

from __future__ import annotations

import pytest

from elimina.planning.record import MAX_OPERANDS
from tests.adversary import thresholds
from tests.adversary.case import Setting, kind_of, make
from tests.paths import counted_paths, reachable_paths

CASES = {
    "mixed": 60,
    "products": 10,
    "solve": 150,
    "slices": 12,
    "tree": 60,
    "constructed": 160,
    "histories": 12,
    "rows": 60,
}
"""Kind -> cases of a run, which takes some 15 seconds on an idle machine."""

OF_LONGER_STEPS = {"vector-tile-many-streamed"}
"""Paths of steps that read more tables than a plan's: ``tests/backends/test_steps.py`` has no such step either."""


@pytest.mark.parametrize("name", thresholds.SCENARIOS)
def test_a_scenario_reaches_its_path(name):
    path = thresholds.SCENARIOS[name][0]
    with counted_paths() as counts:
        thresholds.check(thresholds.case_of(name, 1, Setting()))
    assert counts[path] or path not in reachable_paths()


def test_every_path_is_reached():
    assert MAX_OPERANDS < 17
    reached = set()
    for kind, number in CASES.items():
        with counted_paths() as counts:
            for seed in range(number):
                kind_of(kind).check(make(kind, seed, Setting()))
        reached |= {path for path, count in counts.items() if count}
    reached |= {path for path, *_ in thresholds.SCENARIOS.values()}
    assert reachable_paths() - reached - OF_LONGER_STEPS == set()
