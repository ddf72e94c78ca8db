"""Runs that are interrupted and go on."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import elimina
from elimina import system
from elimina.backends.sparse.session import SparseSession
from elimina.errors import InputError
from elimina.generate import grid_model
from elimina.methods import slice_bounds
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN
from elimina.running import checkpoint as module
from elimina.running import sweep
from tests import calls
from tests.devices import on_devices


class Stop(Exception):
    """The exception by which a listener ends a run."""


def stop_after(reports):
    left = [reports]

    def listen(share):
        left[0] -= 1
        if left[0] < 0:
            raise Stop

    return listen


def stop_at(part):
    def listen(share):
        if share >= part:
            raise Stop

    return listen


def grid(task, side=6, domain=4):
    model = grid_model(side, domain, 0.1, seed=4)
    if task != "pr":
        return model
    return Model(
        model.variables, [elimina.Table(f.scope, np.exp(-f.dense() / 1e2)) for f in soft(model)], sense="probability"
    )


def soft(model):
    return [elimina.Table(f.scope, np.where(f.dense() == FORBIDDEN, 500, f.dense())) for f in model.factors]


def same(one, other, task):
    if task == "pr":
        assert one.log10_z == pytest.approx(other.log10_z, rel=1e-13)
    assert (one.status, one.assignment, one.value if task != "pr" else 0) == (
        other.status,
        other.assignment,
        other.value if task != "pr" else 0,
    )


@pytest.fixture
def at_once(monkeypatch):
    """Every state is written, every step is a group, every slice runs."""
    monkeypatch.setattr(slice_bounds, "MIN_BOUNDED_PLAN_SECONDS", math.inf)
    monkeypatch.setattr(module, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(sweep, "GROUP_SECONDS", 0.0)
    monkeypatch.setattr(sweep, "_GROUP_SECONDS_PER_SAVING_SECOND", 0)


@on_devices
@pytest.mark.parametrize(("task", "sliced"), [("mpe", False), ("mpe", True), ("pr", True), ("count", True)])
def test_going_on(device, task, sliced, tmp_path, at_once):
    model = grid(task)
    options = {"device": device, "order": range(36)}
    options["memory"] = calls.plan(model, task, **options).peak_bytes * (2 if sliced else 3) // 3
    if sliced:
        options["slices"] = 1000
    expected = calls.solve(model, task, **options, method="eliminate")
    assert ("slices" in expected.stats) == sliced
    for part in (0.1, 0.4, 0.7):
        with pytest.raises(Stop):
            calls.solve(model, task, **options, checkpoint=tmp_path / "c", progress=stop_at(part))
        assert (tmp_path / "c").is_dir()
    found = calls.solve(model, task, **options, checkpoint=tmp_path / "c")
    same(found, expected, task)
    if sliced:
        assert found.stats["resumed_slices"] >= expected.stats["slices"] // 2
    else:
        assert found.stats["resumed_steps"] > 10
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("task", ["pr", "count"])
def test_going_on_where_messages_make_room_for_others(task, tmp_path, at_once):
    """On the CPU; on a GPU only what has a place of its own until the end can be kept."""
    model = grid(task)
    options = {"device": "cpu", "order": range(36)}
    with pytest.raises(Stop):
        calls.solve(model, task, **options, checkpoint=tmp_path, progress=stop_at(0.7))
    found = calls.solve(model, task, **options, checkpoint=tmp_path)
    same(found, calls.solve(model, task, **options), task)
    assert found.stats["resumed_steps"] > 10


@on_devices
@pytest.mark.parametrize("task", ["mpe", "pr", "count"])
@pytest.mark.parametrize("forms", ["rows", "mixed"])
def test_rows_go_on(device, task, forms, tmp_path, at_once, monkeypatch):
    """Without slices: what messages there are is read from the disk."""
    if forms == "rows":
        monkeypatch.setattr(SparseSession, "_is_smaller_dense", lambda *_: False)
    model = grid(task, side=5)
    options = {"device": device, "order": range(25), "tables": "sparse"}
    expected = calls.solve(model, task, **options, method="eliminate")
    for part in (0.1, 0.4, 0.7):
        with pytest.raises(Stop):
            calls.solve(model, task, **options, checkpoint=tmp_path / "c", progress=stop_at(part))
    found = calls.solve(model, task, **options, checkpoint=tmp_path / "c")
    same(found, expected, task)
    assert found.stats["resumed_steps"] > 10
    assert not (tmp_path / "c").exists()


@on_devices
@pytest.mark.parametrize("task", ["mpe", "pr", "count"])
def test_rows_in_slices_go_on(device, task, tmp_path, at_once):
    model = grid(task, side=4)
    options = {"device": device, "order": range(16), "tables": "sparse"}
    options["memory"] = calls.plan(model, task, **options).peak_bytes // 3
    expected = calls.solve(model, task, **options, method="eliminate")
    assert expected.stats["slices"] > 1
    same(expected, calls.solve(model, task, device="cpu", tables="dense", method="eliminate"), task)
    for part in (0.1, 0.4, 0.7):
        with pytest.raises(Stop):
            calls.solve(model, task, **options, checkpoint=tmp_path / "c", progress=stop_at(part))
    found = calls.solve(model, task, **options, checkpoint=tmp_path / "c")
    same(found, expected, task)
    assert found.stats["resumed_slices"] >= expected.stats["slices"] // 2


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_slices_by_their_bounds_go_on(share, tmp_path, at_once, monkeypatch):
    """The sequence and the first solution of a run that was ended are those of the one that goes on."""
    monkeypatch.setattr(slice_bounds, "MIN_BOUNDED_PLAN_SECONDS", 0.0)
    # Time for costs to be shifted as far as possible: else runs differ in their bounds.
    monkeypatch.setattr(slice_bounds, "_BOUND_TIME_SHARE", 1e9)
    model = grid("mpe")
    options = {"device": "cpu", "order": range(36)}
    options["memory"] = calls.plan(model, **options).peak_bytes // 4
    reports: list[float] = []
    expected = calls.solve(model, **options, checkpoint=tmp_path / "whole", progress=reports.append)
    assert expected.stats["slices_skipped"] > 0
    with pytest.raises(Stop):
        calls.solve(model, **options, checkpoint=tmp_path / "c", progress=stop_after(int(share * len(reports))))
    monkeypatch.setattr(slice_bounds, "bound_slices", None)
    found = calls.solve(model, **options, checkpoint=tmp_path / "c")
    same(found, expected, "mpe")
    assert found.stats["slices_skipped"] == expected.stats["slices_skipped"]


KILLED = """
import os, signal
from tests import calls
from elimina.running import checkpoint, sweep
from tests.running.test_checkpoint import grid
checkpoint.SAVE_SECONDS = sweep.GROUP_SECONDS = sweep._GROUP_SECONDS_PER_SAVING_SECOND = 0.0
def kill(share):
    if share >= 0.7:
        os.kill(os.getpid(), signal.SIGKILL)
options = dict(device="cpu", order=range(36), method="eliminate", tables={tables!r})
calls.solve(grid("mpe"), **options, checkpoint={folder!r}, progress=kill)
"""


@pytest.mark.parametrize("tables", ["dense", "sparse"])
def test_a_killed_run_without_slices_goes_on(tables, tmp_path, at_once):
    """The messages of the groups that were finished are read from the disk."""
    ran = subprocess.run([sys.executable, "-c", KILLED.format(folder=str(tmp_path), tables=tables)], check=False)
    assert ran.returncode == -signal.SIGKILL
    model, options = grid("mpe"), {"device": "cpu", "order": range(36), "method": "eliminate", "tables": tables}
    found = calls.solve(model, **options, checkpoint=tmp_path)
    same(found, calls.solve(model, **options), "mpe")
    assert found.stats["resumed_steps"] > 10


def test_underflow_is_made_up_for_after_an_interruption(tmp_path, at_once):
    """Both sweeps of the partition function go on where they were."""
    tiny = np.array([[1.0, 1e-250], [1e-250, 1e-250]])
    factors = [((0, i), tiny) for i in range(1, 9)] + [((0,), np.array([0.0, 1.0]))]
    factors.append(((9, 10, 11), np.linspace(0.5, 1.0, 64).reshape(4, 4, 4)))
    model = Model.from_arrays([2] * 9 + [4] * 3, factors, sense="probability")
    order = list(range(11, -1, -1))
    whole = calls.solve(model, "pr", device="cpu", order=order)
    options = {"device": "cpu", "order": order, "memory": whole.stats["peak_bytes"] * 2 // 3}
    sliced = calls.solve(model, "pr", **options)
    assert sliced.stats["slices"] > 1
    same(sliced, whole, "pr")
    for _ in range(2 * sliced.stats["slices"]):
        with pytest.raises(Stop):
            calls.solve(model, "pr", **options, checkpoint=tmp_path / "c", progress=stop_after(0))
    found = calls.solve(model, "pr", **options, checkpoint=tmp_path / "c")
    same(found, whole, "pr")
    assert found.stats["resumed_slices"] == 2 * sliced.stats["slices"]


def interrupted(tmp_path, reports=10, **options):
    model = grid("mpe")
    options = {"device": "cpu", "memory": 15000, "slices": 10**6, **options}
    with pytest.raises(Stop):
        calls.solve(model, **options, checkpoint=tmp_path, progress=stop_after(reports))
    return model, options


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"task": "count"}, "another task, mpe, not count"),
        ({"memory": 4000}, "another memory, 15000, not 4000"),
        ({"dtype": "int64"}, "another dtype, None, not int64"),
        ({"slices": 10**5}, "another slices, 1000000, not 100000"),
        ({"order": "min-fill"}, "another order, auto, not min-fill"),
        ({"evidence": {"x0": 1}}, "another evidence"),
    ],
)
def test_something_else_cannot_go_on(tmp_path, change, culprit):
    model, options = interrupted(tmp_path)
    with pytest.raises(InputError, match=culprit):
        calls.solve(model, **{**options, **change}, checkpoint=tmp_path)


def test_another_model_cannot_go_on(tmp_path):
    _, options = interrupted(tmp_path)
    with pytest.raises(InputError, match=f"the checkpoint in {tmp_path} was made for another model: go on with"):
        calls.solve(grid_model(5, 3, 0.1, seed=5), **options, checkpoint=tmp_path)


def test_another_search_for_an_order_goes_on(tmp_path):
    model, options = interrupted(tmp_path)
    result = calls.solve(model, **options, seed=3, order_seconds=0.1, threads=1, checkpoint=tmp_path)
    assert result.stats["resumed_slices"] > 0


def test_a_process_that_holds_more_goes_on(tmp_path, monkeypatch, at_once):
    """The process holds a few pages more or less each time, which count against the limit of the run."""
    held = itertools.count(4096, 4096)
    monkeypatch.setattr(system, "growth_since", lambda resident: next(held))
    model, options = interrupted(tmp_path, memory=64 << 20, order=range(36))
    result = calls.solve(model, **options, checkpoint=tmp_path)
    assert result.status == "optimal"
    assert result.stats["resumed_steps"] > 0


def test_a_damaged_checkpoint(tmp_path, at_once):
    model, options = interrupted(tmp_path)
    path = tmp_path / "elimina-checkpoint.json"
    path.write_bytes(path.read_bytes().replace(b'"done": ', b'"done": 1'))
    with pytest.raises(InputError, match=r"is damaged \(elimina-checkpoint.json\): remove it to start again"):
        calls.solve(model, **options, checkpoint=tmp_path)


def test_damaged_messages(tmp_path, at_once):
    model, options = interrupted(tmp_path, memory=10**9, order=range(36))
    path = min(tmp_path.glob("elimina-messages-*"))
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=rf"is damaged \({path.name}\)"):
        calls.solve(model, **options, checkpoint=tmp_path)
    path.unlink()
    with pytest.raises(InputError, match=rf"is damaged \({path.name}: No such file"):
        calls.solve(model, **options, checkpoint=tmp_path)


def test_directories_that_cannot_be_used(tmp_path):
    model = grid("mpe")
    file = tmp_path / "file"
    file.write_text("x")
    for path, problem in ((file, "Not a directory"), (tmp_path / "no" / "way", "No such file"), ("/proc/x", "No such")):
        with pytest.raises(InputError, match=f"cannot write the checkpoint in {path}: {problem}"):
            calls.solve(model, device="cpu", checkpoint=path)
    with pytest.raises(InputError, match="leave it out for mar"):
        calls.solve(grid("pr"), "mar", checkpoint=tmp_path)


def test_a_full_disk(tmp_path, at_once, monkeypatch):
    model, options = interrupted(tmp_path)
    before = (tmp_path / "elimina-checkpoint.json").read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=f"cannot write the checkpoint in {tmp_path}: No space left on device"):
        calls.solve(model, **options, checkpoint=tmp_path)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["elimina-checkpoint.json"]
    assert (tmp_path / "elimina-checkpoint.json").read_bytes() == before
    assert calls.solve(model, **options, checkpoint=tmp_path).stats["resumed_slices"] > 0


def test_a_call_that_was_interrupted_may_hold_the_directory_a_little_longer(tmp_path):
    file = system.lock(tmp_path)
    timer = threading.Timer(0.1, os.close, [file])
    timer.start()
    kept = module.Checkpoint(tmp_path)
    timer.join()
    kept.close()


def test_two_runs_cannot_share_a_directory(tmp_path):
    kept = module.Checkpoint(tmp_path)
    with pytest.raises(InputError, match=f"another process uses the checkpoint in {tmp_path}"):
        calls.solve(grid("mpe"), device="cpu", checkpoint=tmp_path)
    kept.close()
    calls.solve(grid("mpe"), device="cpu", checkpoint=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_time_limit_leaves_what_is_known(tmp_path):
    model = grid_model(9, 4, 0.1, seed=4)
    options = {"device": "cpu", "memory": 30000, "slices": 10**9, "order": "min-fill"}
    result = calls.solve(model, **options, time_limit=6, checkpoint=tmp_path)
    assert (result.status, result.ended_by) == ("bounded", "time-limit")
    known = json.loads((tmp_path / "elimina-checkpoint.json").read_bytes().partition(b"\n")[2])
    assert known["state"]["done"] > 0


def test_a_call_removes_a_checkpoint_while_its_work_writes_and_closes_it(tmp_path, monkeypatch):
    """A descriptor that is closed twice may be another file's by then."""
    errors, closed, fsync = [], [], os.fsync
    monkeypatch.setattr(module.os, "fsync", lambda file: (time.sleep(0.05), fsync(file)))
    monkeypatch.setattr(module.os, "close", lambda file: (time.sleep(0.05), closed.append(file)))
    checkpoint = module.Checkpoint(tmp_path / "c")

    def work(act):
        try:
            act()
        except Exception as error:
            errors.append(error)

    writing = threading.Thread(target=work, args=[lambda: checkpoint.save_messages(1, [np.zeros(3)])])
    writing.start()
    time.sleep(0.02)
    others = [threading.Thread(target=work, args=[act]) for act in (checkpoint.remove, checkpoint.close)]
    for thread in others:
        thread.start()
    for thread in (writing, *others):
        thread.join()
    assert not errors
    assert len(closed) == 1
    assert not (tmp_path / "c").exists()
    with pytest.raises(InputError, match="is closed, because its call has ended"):
        checkpoint.save_messages(2, [np.zeros(3)])
    monkeypatch.undo()
    os.close(closed[0])


def test_first_bounds_that_are_the_whole_answer_leave_no_checkpoint(tmp_path):
    """The time limit passes before elimination begins, which removes its checkpoint at its end."""
    model = Model([], [], sense="max-cost")
    for number in range(20):
        folder = tmp_path / str(number)
        result = calls.solve(model, time_limit=0.001, checkpoint=folder)
        assert result.ended_by is None
        assert result.value == 0
        assert not folder.exists()
