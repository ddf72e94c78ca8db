"""Half a minute of the adversary."""

from __future__ import annotations

import pytest

from elimina.cp.derived_constraints import DerivedConstraints
from tests.adversary import misuse
from tests.adversary.case import Case, Setting, kind_of, make
from tests.adversary.rules import RULES
from tests.adversary.running import attack
from tests.adversary.shrinking import shrink
from tests.seeds import run_seed

CASES = {
    "solve": 800,
    "mixed": 100,
    "products": 120,
    "thresholds": 8,
    "constructed": 60,
    "slices": 40,
    "rows": 120,
    "huge": 250,
    "wide": 6,
    "domains": 2,
    "tree": 300,
    "histories": 25,
    "dynamic": 100,
    "metamorphic": 40,
    "interrupts": 6,
    "budgets": 20,
    "cp": 1200,
    "flatzinc": 100,
    "xcsp": 100,
    "dcop": 1200,
    "tsp": 700,
    "files": 550,
    "dialects": 1000,
    "frames": 300,
    "keywords": 100,
    "cli": 350,
    "misuse": 1000,
    "successions": 60,
    "peers": 200,
    "orders": 100,
    "steps": 60,
}
"""Kind -> cases of a test, which take three or four seconds on an idle machine."""

MOST_SECONDS = 60.0
"""Time of a test on a machine that is busy."""


@pytest.mark.parametrize("kind", CASES)
def test_random_cases(kind):
    counts, failures = attack([kind], run_seed(), MOST_SECONDS, 1, Setting(), CASES[kind])
    assert 0 < counts[kind] <= CASES[kind]
    assert not failures, "\n\n".join(f"{f.kind} {f.seed}: {f.signature}\n{f.report}" for f in failures)


@pytest.mark.parametrize("kind", CASES)
def test_a_seed_makes_one_case(kind):
    case = make(kind, 5, Setting())
    assert case == make(kind, 5, Setting())
    assert case != make(kind, 6, Setting())
    compile(kind_of(kind).script(case), "script", "exec")


def test_shrinking_keeps_what_fails():
    def smaller(case: Case):
        for i in range(len(case["items"])):
            yield {"items": case["items"][:i] + case["items"][i + 1 :]}

    found = shrink({"items": list(range(20))}, lambda case: {3, 7} <= set(case["items"]), smaller)
    assert found == {"items": [3, 7]}


@pytest.mark.parametrize("kind", CASES)
def test_simpler_cases_are_of_the_same_kind(kind):
    module = kind_of(kind)
    for seed in range(10):
        for case, _ in zip(module.smaller(make(kind, seed, Setting())), range(20), strict=False):
            compile(module.script(case), "script", "exec")


def test_every_call_of_misuse_has_a_place_for_its_argument():
    assert not [call for call in misuse.CALLS if "@" not in call]


DRAWN_BY_OTHERS = {"add_cost_rows", "floor_division", "holds_member", "interval_var"}
"""Methods that `add_cost`, the operators, `cardinality` and intervals of tasks call."""


def test_every_constraint_of_a_model_is_drawn():
    methods = {name for name in dir(DerivedConstraints) if not name.startswith("_")}
    assert methods - DerivedConstraints.__abstractmethods__ - RULES.keys() == DRAWN_BY_OTHERS
