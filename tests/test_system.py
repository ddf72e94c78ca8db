"""Every service of the system has a fall-back that does the same: each is switched off in turn."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import elimina
from elimina import system
from elimina.backends.scratch import ScratchFile
from elimina.generate import grid_model
from elimina.system import available_memory, available_threads

SERVICES = ["none", "posix_fallocate", "preadv", "sched_getaffinity", "sysconf", "resource", "fcntl"]


@pytest.fixture(params=SERVICES)
def without(request, monkeypatch):
    """Switch one service off."""
    if request.param in ("resource", "fcntl"):
        monkeypatch.setattr(system, request.param, None)
    elif request.param == "sysconf":

        def unknown(name):
            raise ValueError("unrecognized configuration name")

        monkeypatch.setattr(os, "sysconf", unknown)
    elif request.param != "none":
        monkeypatch.delattr(os, request.param)
    return request.param


def test_memory_and_processors(without, tmp_path):
    assert available_memory() > 0
    assert available_memory(tmp_path) > 0  # no /proc
    assert 1 <= available_threads() <= (os.cpu_count() or 1)
    assert available_threads(tmp_path) >= 1


def test_scratch_files(without, tmp_path):
    scratch = ScratchFile(str(tmp_path), 3 << 20)
    assert not list(tmp_path.iterdir())
    written = np.random.default_rng(0).integers(0, 255, 1 << 20).astype(np.uint8)
    scratch.write(memoryview(written), 5)
    read = np.zeros_like(written)
    scratch.read(memoryview(read), 5)
    assert (read == written).all()
    assert (scratch.array(np.dtype(np.uint8), 3 << 20)[5 : 5 + len(written)] == written).all()
    scratch.close()


def test_runs(without, tmp_path):
    model = grid_model(4, 3, 1)
    expected = elimina.solve(model).value
    assert elimina.solve(model, options=elimina.Options(scratch=tmp_path)).value == expected
    assert elimina.solve(model, options=elimina.Options(checkpoint=tmp_path / "kept")).value == expected


def test_a_folder_is_locked_once(tmp_path):
    first = system.lock(tmp_path)
    code = f"from elimina import system\ntry: system.lock({str(tmp_path)!r})\nexcept BlockingIOError: print('locked')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "locked\n"
    os.close(first)
    os.close(system.lock(tmp_path))


def test_an_interrupt_while_a_thread_starts():
    """Python then gives up the wait for the thread, and may find the lock of that wait released."""

    class Interrupted(threading.Thread):
        def start(self):
            try:
                raise KeyboardInterrupt
            finally:
                threading.Lock().release()

    with pytest.raises(KeyboardInterrupt):
        system.start_thread(Interrupted())


def test_a_first_answer_from_arrays_loads_little_of_the_library():
    """Paths, JSON, checksums and XML take a twentieth of the time that a process needs to load elimina."""
    code = (
        "import sys, elimina; before = set(sys.modules); elimina.read; "
        "elimina.solve(elimina.Model.from_arrays([2], [([0], [0.25, 0.75])], sense='probability'), 'pr'); "
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    absent = {"pathlib", "json", "zlib", "array", "xml.parsers", "elimina.running.checkpoint"}
    assert not absent & set(done.stdout.split())


def test_a_file_that_ends_too_early_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "scratch"
    path.write_bytes(b"12345")
    file = os.open(path, os.O_RDONLY)
    try:
        target = bytearray(4)
        system.read_at(file, memoryview(target), 1)
        assert target == b"2345"
        with pytest.raises(OSError, match="the file ends 2 bytes too early"):
            system.read_at(file, memoryview(target), 3)
    finally:
        os.close(file)
