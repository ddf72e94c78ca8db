"""`elimina install-minizinc`: what it says of files that are there already."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elimina.cli import install_minizinc, main


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int | str | None, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["install-minizinc", *map(str, arguments)])
    return ended.value.code, *capsys.readouterr()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """MiniZinc's folder of the user's solvers."""
    monkeypatch.setattr(install_minizinc, "user_folder", lambda: tmp_path / "home")
    return tmp_path / "home"


def test_it_is_written_replaced_and_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    path = home / "elimina.msc"
    written = json.loads(path.read_text())
    assert (code, err) == (0, "")
    assert out.startswith(f"wrote {path}, which runs {written['executable']}; ")
    assert out.endswith(("to use it: minizinc --solver elimina MODEL.mzn\n", "install it, too\n"))
    path.write_text(json.dumps({**written, "executable": "/old/fzn-elimina"}))
    assert f"{written['executable']}, instead of /old/fzn-elimina" in run(capsys)[1]
    assert json.loads(path.read_text()) == written
    assert run(capsys, "--remove") == (0, f"removed {path}, which ran {written['executable']}\n", "")
    assert run(capsys, "--remove") == (
        1,
        "",
        f"elimina: cannot remove {path}: it does not exist, or belongs to another solver\n",
    )


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [("executable", "/old/fzn-elimina", "runs /old/fzn-elimina"), ("mznlib", "/gone", "reads the library /gone")],
)
def test_another_one_that_minizinc_prefers_is_named(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: str, expected: str
) -> None:
    _, out, err = run(capsys, "--folder", tmp_path / "own")
    assert err == ""
    assert out.endswith((f"minizinc --solver {tmp_path / 'own' / 'elimina.msc'} MODEL.mzn\n", "install it, too\n"))
    home.mkdir()
    other = json.loads((tmp_path / "own" / "elimina.msc").read_text())
    (home / "elimina.msc").write_text(json.dumps({**other, key: value}))
    code, _, err = run(capsys, "--folder", tmp_path / "own")
    assert code == 0
    assert err.startswith(f"elimina: MiniZinc prefers {home / 'elimina.msc'}, which {expected}, if releases")


def test_files_of_others_stay(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir()
    for text in ("{", "[1]", json.dumps({"id": "another", "executable": "x"})):
        (home / "elimina.msc").write_text(text)
        assert run(capsys, "--remove")[0] == 1
        assert (home / "elimina.msc").read_text() == text
