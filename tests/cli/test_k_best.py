"""The best assignments on the command line."""

from __future__ import annotations

import json


def test_assignments_as_text_and_json(elimina, radio):
    ran = elimina("solve", radio, "--task", "kbest", "-k", 3)
    assert ran.code == 0
    answer = json.loads(elimina("solve", radio, "--task", "kbest", "-k", 3, "--json").out)
    assert len(answer["ranked"]) == 3
    assert answer["ranked"][0] == {"value": answer["value"], "assignment": answer["assignment"]}
    for number, ranked in enumerate(answer["ranked"], 1):
        states = " ".join(f"{name}={state}" for name, state in ranked["assignment"].items())
        line = next(line for line in ran.out.splitlines() if line.startswith(f"{number}:"))
        assert line.split(maxsplit=1)[1] == f"{ranked['value']}  {states}"
