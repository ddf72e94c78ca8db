"""``elimina solve --hint``: answers in JSON, evidence files, and states."""

from __future__ import annotations

import json
from codecs import BOM_UTF8

import elimina as library
from elimina.generate import random_model


def test_hints(elimina, tmp_path):
    library.write(random_model(6, 3, 0.5, 0.0, seed=1), tmp_path / "model.wcsp")
    first = json.loads(elimina("solve", "model.wcsp", "--json").out)
    (tmp_path / "answer.json").write_text(json.dumps(first))
    again = elimina("solve", "model.wcsp", "--json", "--hint", "answer.json", "--method", "search")
    assert json.loads(again.out)["value"] == first["value"]
    (tmp_path / "some.evid").write_text("2 0 1 1 0")
    assert elimina("solve", "model.wcsp", "--hint", "some.evid").code == 0
    names = list(first["assignment"])
    assert elimina("solve", "model.wcsp", "--hint", f"{names[0]}=1", "--hint", f"{names[1]}=0").code == 0


def test_a_byte_order_mark_is_left_out(elimina, tmp_path):
    library.write(random_model(3, 3, 0.5, 0.0, seed=1), tmp_path / "model.wcsp")
    (tmp_path / "model.uai").write_text("MARKOV 2 2 2 1 2 0 1 4 1 2 3 4")
    (tmp_path / "answer.json").write_bytes(BOM_UTF8 + elimina("solve", "model.wcsp", "--json").out.encode())
    assert elimina("solve", "model.wcsp", "--hint", "answer.json").code == 0
    (tmp_path / "some.query").write_bytes(BOM_UTF8 + b"1 0")
    (tmp_path / "some.evid").write_bytes(BOM_UTF8 + b"1 1 0")
    ran = elimina("solve", "model.uai", "--task", "mar", "--query", "some.query", "--evidence", "some.evid", "--json")
    assert list(json.loads(ran.out)["marginals"]) == ["x0"]


def test_bad_hints(elimina, tmp_path):
    library.write(random_model(6, 3, 0.5, 0.0, seed=1), tmp_path / "model.wcsp")
    (tmp_path / "answer.json").write_text('{"value": 3}')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for hint, message in (
        ("x0=5", "x0"),
        ("answer.json", "answer.json holds no assignment"),
        ("none.json", "cannot read none.json"),
        ("deep.json", "deep.json is not JSON"),
    ):
        ran = elimina("solve", "model.wcsp", "--hint", hint)
        assert ran.code == 1
        assert message in ran.err
    ran = elimina("solve", "model.wcsp", "--hint", "x0=0,x1=0", "--hint", "x0=1")
    assert ran.err == "elimina: the hint gives variable 'x0' two states: '0' in 'x0=0,x1=0' and '1' in 'x0=1'\n"
    ran = elimina("solve", "model.wcsp", "--task", "count-optima", "--hint", "answer.json")
    assert ran.code == 1


def test_a_bound_without_the_other(elimina, tmp_path):
    """Elimination that may not run leaves the hint alone: its total is the only bound."""
    library.write(random_model(30, 8, 0.5, 0.0, seed=1), tmp_path / "model.wcsp")
    hint = ",".join(f"{v.name}=0" for v in library.read(tmp_path / "model.wcsp").variables)
    ran = elimina("solve", "model.wcsp", "--hint", hint, "--method", "eliminate", "--slices", "never")
    assert ran.code == 0
    assert "bounded" in ran.out


def test_solutions_of_other_programs(elimina, tmp_path):
    model = random_model(6, 3, 0.5, 0.0, seed=1)
    library.write(model, tmp_path / "model.wcsp")
    values = list(library.solve(model).assignment.values())
    assert elimina("solve", "model.wcsp", "--format", "uai", "-o", "best.MPE").code == 0
    (tmp_path / "best.sol").write_text(" ".join(map(str, values)) + "\n")
    expected = library.solve(model).value
    for hint in ("best.MPE", "best.sol"):
        ran = elimina("solve", "model.wcsp", "--json", "--hint", hint, "--method", "search")
        assert json.loads(ran.out)["value"] == expected
    for text, problem in (
        ("0 1", "x.sol is not a solution: expected a value index for each of 6 variables"),
        ("0 0 0 0 0 a", "x.sol is not a solution"),
        ("0 0 0 0 0 7", "variable 'x5' has no state of index 7"),
    ):
        (tmp_path / "x.sol").write_text(text)
        ran = elimina("solve", "model.wcsp", "--hint", "x.sol")
        assert (ran.code, ran.err.count("\n")) == (1, 1)
        assert problem in ran.err
