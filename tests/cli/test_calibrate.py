"""``elimina calibrate``: measures, shows and forgets."""

from __future__ import annotations

import pytest

from elimina import calibration
from elimina.planning import machine


@pytest.fixture
def file(monkeypatch, tmp_path):
    path = tmp_path / "speeds.json"
    monkeypatch.setenv(machine.FILE, str(path))
    monkeypatch.setattr(calibration, "measure", lambda: iter([("step", 3e-7), ("bandwidth", 9e9)]))
    machine.speeds.cache_clear()
    yield path
    machine.speeds.cache_clear()


def test_measure_show_and_reset(elimina, file):
    ran = elimina("calibrate")
    assert ran.code == 0
    assert "step           300 ns                   built-in: 1 µs" in ran.out
    assert f"wrote {file}" in ran.out
    shown = elimina("calibrate", "--show").out
    assert "bandwidth      9 Gbytes/s" in shown
    assert f"measured, from {file}" in shown
    assert elimina("calibrate", "--reset").out == f"removed {file}\n"
    assert "built-in: 'elimina calibrate'" in elimina("calibrate", "--show").out
    assert elimina("calibrate", "--reset").out == "no speeds were measured before\n"


def test_a_damaged_file_is_named(elimina, file):
    file.write_text("{")
    ran = elimina("calibrate", "--show")
    assert ran.code == 0
    assert f"elimina: ignored the calibration in {file}" in ran.err


def test_a_file_that_cannot_be_written_is_an_error_before_the_measurement(elimina, monkeypatch, tmp_path):
    (tmp_path / "plain").touch()
    monkeypatch.setenv(machine.FILE, str(tmp_path / "plain" / "speeds.json"))
    monkeypatch.setattr(calibration, "measure", lambda: pytest.fail("it was measured"))
    ran = elimina("calibrate")
    assert (ran.code, ran.out) == (1, "")
    assert f"File exists; set {machine.FILE} to the path of a file in another folder\n" in ran.err


def test_show_and_reset_exclude_each_other(elimina, file):
    assert elimina("calibrate", "--show", "--reset").code == 2
