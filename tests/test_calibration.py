"""Measured speeds: kept in a file, honoured by the planner, and ignored where the file is damaged."""

from __future__ import annotations

import json
import logging

import pytest

from elimina import InputError, Model, Table, Variable, calibration, plan
from elimina.planning import machine
from elimina.planning.machine import Speeds, cpu_machine, cuda_machine, speeds


@pytest.fixture
def file(monkeypatch, tmp_path):
    """The file of measured speeds, in a folder that does not exist yet."""
    path = tmp_path / "cache" / "calibration.json"
    monkeypatch.setenv(machine.FILE, str(path))
    speeds.cache_clear()
    yield path
    speeds.cache_clear()


@pytest.fixture
def small(monkeypatch):
    """Measurements of small problems: their figures do not matter."""
    for name, value in {"_CHAIN": 2000, "_GRID": (3, 2), "_WIDE": 12, "_FRESH_BYTES": 1 << 12, "_TUPLES": 50}.items():
        monkeypatch.setattr(calibration, name, value)
    monkeypatch.setattr(calibration.util, "find_spec", lambda name: None)


def test_every_speed_of_the_cpu_is_measured(small):
    found = dict(calibration.measure())
    assert set(found) == {name for name in Speeds._fields if not name.startswith("gpu_")}
    assert all(value > 0 for value in found.values())


def test_every_speed_has_a_unit():
    assert tuple(machine.UNITS) == Speeds._fields


def test_the_planner_honours_measured_speeds(file):
    model = Model([Variable(f"x{n}", 30) for n in range(3)], [Table([0, 1, 2], [[[0] * 30] * 30] * 30)])
    before = plan(model, device="cpu").seconds
    assert speeds() == Speeds()
    assert calibration.save({"step": 0.25, "gpu_start": 7.0}) == file
    assert (cpu_machine(2).step, cuda_machine().start) == (0.25, 7.0)
    assert cpu_machine(2).bandwidth == 2 * Speeds().bandwidth
    assert plan(model, device="cpu").seconds > before + 0.25
    assert calibration.reset() == file
    assert speeds() == Speeds()
    assert calibration.reset() is None


def test_the_file_has_three_digits(file):
    calibration.save({"step": 1.23456e-7})
    assert json.loads(file.read_text()) == {"version": machine.VERSION, "step": 1.23e-7}
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting"),
        ("[1]", "an object"),
        ('{"version": 2, "stride": 1}', "'stride'"),
        ('{"version": 2, "step": -1}', "'step' is -1"),
        ('{"version": 2, "step": true}', "'step' is True"),
        ('{"version": 2, "step": "1"}', "'step' is '1'"),
        ('{"version": 2, "step": Infinity}', "'step' is inf"),
        ('{"version": 2, "step": NaN}', "'step' is nan"),
        # Files without a version hold a rate of tuples in an earlier meaning.
        ('{"tuples": 1e8}', "its speeds have version 1, and elimina reads version 2"),
        ('{"version": 3, "step": 1}', "have version 3"),
        ('{"version": [2], "step": 1}', "version [2]"),
        ("\udcff", "decode"),
    ],
)
def test_a_damaged_file_is_ignored(file, caplog, text, reason):
    file.parent.mkdir()
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    with caplog.at_level(logging.WARNING, "elimina"):
        assert speeds() == Speeds()
        assert speeds() == Speeds()
    assert len(caplog.messages) == 1  # one warning for each process
    assert str(file) in caplog.text
    assert reason in caplog.text


def test_a_file_that_cannot_be_read_is_ignored(file, caplog):
    file.mkdir(parents=True)
    assert speeds() == Speeds()
    assert str(file) in caplog.text


def test_no_file(monkeypatch):
    monkeypatch.setenv(machine.FILE, "")
    speeds.cache_clear()
    assert speeds() == Speeds()
    with pytest.raises(InputError, match=machine.FILE):
        calibration.save({"step": 1.0})


def test_a_folder_that_cannot_be_made(monkeypatch, tmp_path):
    (tmp_path / "plain").touch()
    monkeypatch.setenv(machine.FILE, str(tmp_path / "plain" / "speeds.json"))
    for save in (calibration.prepare_file, lambda: calibration.save({"step": 1.0})):
        with pytest.raises(InputError, match=f"cannot save .*: File exists; set {machine.FILE} to the path of a file"):
            save()


def test_the_file_is_in_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv(machine.FILE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert machine.calibration_file() == str(tmp_path / "elimina" / "calibration.json")


def test_no_home_folder_means_no_calibration(monkeypatch):
    monkeypatch.delenv(machine.FILE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(machine.os.path, "expanduser", lambda path: path)
    with pytest.raises(InputError, match=f"cannot find the home folder .*: set {machine.FILE} to the path of a file"):
        calibration.prepare_file()
    machine.speeds.cache_clear()
    assert machine.speeds() == machine.Speeds()
