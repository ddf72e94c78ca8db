"""Whole runs whose arena lies in a lower tier of memory."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from elimina.backends.scratch import ScratchFile
from elimina.errors import InputError, MemoryLimitError
from elimina.model.model import Model
from elimina.planning import tiers
from elimina.running import segment_plan
from tests import calls


def grid(rng, rows, columns, size, sense):
    """A grid with random tables: messages over a column."""
    factors = []
    for r in range(rows):
        for c in range(columns):
            for other in ([(r, c + 1)] if c + 1 < columns else []) + ([(r + 1, c)] if r + 1 < rows else []):
                scope = (r * columns + c, other[0] * columns + other[1])
                values = rng.integers(0, 50, (size, size)) if sense == "min-cost" else rng.random((size, size))
                factors.append((scope, values))
    order = [r * columns + c for c in range(columns) for r in range(rows)]
    return Model.from_arrays([size] * (rows * columns), factors, sense=sense), order


@pytest.fixture
def all_streamed(monkeypatch):
    """Even the smallest step passes through the device, and nothing else is planned that would fit."""
    monkeypatch.setattr(tiers, "HOST_WORK", 0)
    monkeypatch.setattr(segment_plan, "make_segmented_plan", lambda *_, **__: None)


@pytest.mark.parametrize(
    ("device", "on_disk"),
    [
        ("cpu", True),
        pytest.param("cuda", False, marks=pytest.mark.gpu),
        pytest.param("cuda", True, marks=pytest.mark.gpu),
    ],
)
@pytest.mark.parametrize(("task", "sense"), [("mpe", "min-cost"), ("pr", "probability"), ("mar", "probability")])
@pytest.mark.usefixtures("all_streamed")
def test_streamed_runs_are_the_same(device, on_disk, task, sense, tmp_path, monkeypatch):
    for seed in range(2):
        # What is fixed on a GPU is some 260 KiB.
        shape = (5, 6, 5) if device == "cpu" else (6, 8, 6)
        model, order = grid(np.random.default_rng(seed), *shape, sense)
        expected = calls.solve(model, task, device="cpu", order=order)
        whole = calls.plan(model, task, device="cpu", order=order, memory=1, slices="never")
        room = (whole.arena_cells - whole.factor_cells) * whole.itemsize // 2
        fixed = whole.factor_cells * whole.itemsize if device == "cpu" else tiers.fixed_bytes(len(whole.steps))
        plans = []
        with monkeypatch.context() as patch:
            if on_disk:
                size = whole.arena_cells * whole.itemsize
                patch.setattr("elimina.backends.cpu.available_memory", lambda size=size: size)
            found = calls.solve(
                model, task, device=device, order=order, memory=room + fixed,
                method="eliminate" if task == "mpe" else "auto", slices="never",
                scratch=str(tmp_path) if on_disk else None, on_plan=plans.append,
            )  # fmt: skip
        assert plans[0].fits
        assert plans[0].form.stream is not None
        assert (plans[0].form.scratch is not None) == on_disk
        assert "streamed" in str(plans[0])
        if task == "mpe":
            assert (found.value, found.assignment) == (expected.value, expected.assignment)
        elif task == "pr":
            assert found.log10_z == pytest.approx(expected.log10_z, rel=1e-12)
        else:
            for name, values in expected.marginals.items():
                assert found.marginals[name] == pytest.approx(values, rel=1e-9)
        assert not list(tmp_path.iterdir())


def wide(rng):
    """A model with tables beyond a few hundred KiB, and an order for it."""
    return grid(rng, 6, 8, 6, "min-cost")


def solve_on_disk(model, order, folder, **options):
    """Solve with more tables than memory."""
    given = {"device": "cpu", "method": "eliminate", "slices": "never", "memory": 1 << 20}
    return calls.solve(model, order=order, scratch=str(folder), **given, **options)


@pytest.mark.usefixtures("all_streamed")
def test_without_a_directory_it_does_not_fit():
    model, order = wide(np.random.default_rng(0))
    with pytest.raises(MemoryLimitError, match=r"1\.0 MiB.*scratch"):
        calls.solve(model, device="cpu", method="eliminate", slices="never", order=order, memory=1 << 20)


@pytest.mark.parametrize(("folder", "problem"), [("missing", "is not a directory"), ("file", "is not a directory")])
def test_a_directory_that_is_none(folder, problem, tmp_path):
    (tmp_path / "file").touch()
    model, order = wide(np.random.default_rng(0))
    with pytest.raises(InputError, match=f"{folder}.*{problem}"):
        calls.solve(
            model, device="cpu", method="eliminate", slices="never", order=order, scratch=str(tmp_path / folder)
        )


def test_a_directory_without_files():
    with pytest.raises(InputError, match=r"'/proc' cannot be used"):
        ScratchFile("/proc", 1000)


def test_a_directory_without_permission(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    model, order = wide(np.random.default_rng(0))
    with pytest.raises(InputError, match="cannot be written to"):
        calls.plan(model, device="cpu", order=order, scratch=str(tmp_path))


def test_a_disk_that_is_too_small(tmp_path, monkeypatch):
    """Seen when it is planned."""
    monkeypatch.setattr(os, "statvfs", lambda folder: SimpleNamespace(f_bavail=250, f_frsize=4))
    model, order = wide(np.random.default_rng(0))
    with pytest.raises(MemoryLimitError, match="on disk and may use 1000 bytes"):
        solve_on_disk(model, order, tmp_path)


def test_a_limit_on_files(tmp_path):
    """Seen when the space is reserved, before the run."""
    model, order = wide(np.random.default_rng(0))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, limits[1]))
    try:
        with pytest.raises(MemoryLimitError, match=r"has no room for [0-9.]+ MiB"):
            solve_on_disk(model, order, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("all_streamed")
def test_an_interrupt_leaves_nothing_behind(tmp_path):
    model, order = wide(np.random.default_rng(0))

    def stop(share):
        raise KeyboardInterrupt

    found = solve_on_disk(model, order, tmp_path, progress=stop)
    assert (found.status, found.ended_by) == ("bounded", "interrupt")
    assert not list(tmp_path.iterdir())


def test_a_kill_leaves_nothing_behind(tmp_path):
    code = f"""
import os, signal
import numpy as np
from tests import calls
from tests.planning.test_tiers import wide
model, order = wide(np.random.default_rng(0))
kill = lambda share: os.kill(os.getpid(), signal.SIGKILL)
options = dict(device="cpu", method="eliminate", slices="never", order=order, memory=1 << 20, scratch={str(tmp_path)!r})
calls.solve(model, **options, progress=kill)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())


def test_a_file_system_without_nameless_files(tmp_path, monkeypatch):
    opened = os.open

    def refuse(path, flags, *mode):
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "no")
        return opened(path, flags, *mode)

    monkeypatch.setattr(os, "open", refuse)
    scratch = ScratchFile(str(tmp_path), 100)
    assert not list(tmp_path.iterdir())
    scratch.write(memoryview(b"abc"), 5)
    assert bytes(scratch.array(np.dtype(np.uint8), 100)[5:8]) == b"abc"
    scratch.close()
