"""A fixed selection of files, changed models of them and options: the same answers."""

from __future__ import annotations

import dataclasses
import random
import time

import numpy as np
import pytest

import elimina
from tests import calls
from tests.adversary import metamorphic
from tests.adversary.case import Case, Defect
from tests.adversary.relations import RELATIONS

EXAMPLES = {
    "examples/radio.wcsp": ("mpe",),
    "examples/relay.uai": ("pr", "mar", "mpe"),
    "examples/pump.bif": ("mar", "pr"),
    "examples/orchard.xmlbif": ("mar", "mpe"),
}

FILES = {
    "bayesnets/bif/alarm.bif": ("mar", "mpe"),
    "bayesnets/bif/hepar2.bif": ("mar",),
    "bayesnets/bif/insurance.bif": ("mar", "pr"),
    "bayesnets/bif/water.bif": ("pr",),
    "bayesnets/bif/sachs.bif": ("mar", "mpe", "count"),
}

OPTIONS = (
    ("auto", {}),
    ("eliminate", {"order": "min-degree", "threads": 2}),
    ("auto", {"tables": "sparse", "threads": 1}),
    ("eliminate", {"memory": 0.5}),
)
"""Methods and options, which take turns."""


def case_of(source: str, task: str, relation: str, seed: int) -> Case:
    method, options = OPTIONS[seed % len(OPTIONS)]
    return {
        "source": source,
        "relation": relation,
        "seed": seed,
        "task": task,
        "evidence": metamorphic.EVIDENCE_FORMS[seed % len(metamorphic.EVIDENCE_FORMS)],
        "method": method,
        "options": {"device": "cpu", **options},
    }


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("source", EXAMPLES)
def test_examples(source, relation):
    for number, task in enumerate(EXAMPLES[source]):
        for turn in range(number, number + 2):
            metamorphic.check(case_of(source, task, relation, turn))


@pytest.mark.data
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("source", FILES)
def test_benchmark_files(source, relation, data_dir, monkeypatch):
    monkeypatch.setenv("ELIMINA_DATA", str(data_dir))
    assert metamorphic.model_of(source) is not None
    for number, task in enumerate(FILES[source]):
        metamorphic.check(case_of(source, task, relation, len(relation) + number))


def test_a_wrong_answer_is_noticed(monkeypatch):
    changed = RELATIONS["scale"]
    monkeypatch.setitem(RELATIONS, "scale", lambda model, draws: changed(model, draws)._replace(factor=5))
    with pytest.raises(AssertionError, match="the answer is"):
        metamorphic.check(case_of("examples/radio.wcsp", "mpe", "scale", 0))


@pytest.mark.data
def test_a_file_with_more_tuples_than_its_plan_predicts_ends_in_time(data_dir, monkeypatch):
    """The plan predicts fewer than 10^6 tuples and 0.1 s; there are more than 10^8 tuples."""
    monkeypatch.setenv("ELIMINA_DATA", str(data_dir))
    source = "uai/mmap_dechter/conformant_planning/blocks_world/bwp34/bw_p34_3.uai"
    case = case_of(source, "count", "axes", 680136)
    started = time.monotonic()
    metamorphic.check({**case, "method": "auto", "options": {"device": "cpu", "threads": 2, "tables": "sparse"}})
    assert time.monotonic() - started < 3 * metamorphic.LIMITED_SECONDS


def test_bounds_before_the_limit_are_noticed(monkeypatch):
    """Limits must not hide a call that gives up without one."""
    solve = calls.solve

    def give_up(model, task, **options):
        answer = solve(model, task, **options)
        return answer if "threads" not in options else dataclasses.replace(answer, status="bounded")

    monkeypatch.setattr(metamorphic, "_limits", lambda _: {"time_limit": 60.0, "memory": metamorphic.LIMITED_MEMORY})
    monkeypatch.setattr(calls, "solve", give_up)
    with pytest.raises(Defect, match="nothing stops the run"):
        metamorphic.check(case_of("examples/radio.wcsp", "mpe", "axes", 1))


@pytest.mark.parametrize("relation", RELATIONS)
def test_tables_of_integers_and_floats(relation):
    """Costs of 0 in a table of integers, beside a table of floats."""
    tables = [((0, 1), np.array([[0, 3], [elimina.FORBIDDEN, 1]])), ((1, 2), np.array([[0.5, 0.0], [1.25, 2.0]]))]
    model = elimina.Model.from_arrays([2, 2, 2], tables, sense="min-cost")
    best = calls.solve(model, "mpe", device="cpu").value
    for seed in range(10):
        changed = RELATIONS[relation](model, random.Random(seed))
        answer = calls.solve(changed.model, "mpe", device="cpu").value
        assert answer == pytest.approx(best * changed.factor + changed.shift)
