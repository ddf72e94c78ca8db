"""A fixed selection of files, changed models of them and options: the same answers."""

from __future__ import annotations

import pytest

from tests.adversary import metamorphic
from tests.adversary.case import Case
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
