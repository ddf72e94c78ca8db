"""Kernels of a program are compiled at the same time, before the first of them is launched."""

from __future__ import annotations

import threading

import pytest

from elimina import DeviceError
from elimina.backends.cuda import compilation, device
from elimina.backends.cuda.device import CudaDevice

NAMES = ["elimina::a", "elimina::b", "elimina::c"]
PATIENCE = 30.0
"""Seconds for threads to meet."""


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(compilation, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(device, "processors", lambda: len(NAMES))
    made = object.__new__(CudaDevice)
    made.number, made.cupy, made._architecture = 99, None, "sm_90"
    return made


def compiled_by(monkeypatch, work):
    monkeypatch.setattr(compilation, "compiled", lambda cupy, name, architecture: work(name))


def test_all_at_the_same_time(gpu, monkeypatch):
    together = threading.Barrier(len(NAMES), timeout=PATIENCE)
    found = []

    def work(name):
        together.wait()
        found.append(name)

    compiled_by(monkeypatch, work)
    gpu.compile([*NAMES, *NAMES])
    assert sorted(found) == NAMES


def test_only_those_that_are_not_loaded(gpu, monkeypatch):
    found = []
    compiled_by(monkeypatch, found.append)
    monkeypatch.setitem(device._kernels, (99, NAMES[0]), None)
    gpu.compile(NAMES)
    assert sorted(found) == NAMES[1:]


def test_one_alone_is_compiled_when_it_is_used(gpu, monkeypatch):
    compiled_by(monkeypatch, pytest.fail)
    gpu.compile(NAMES[:1])


def test_an_error_of_the_compiler_ends_it(gpu, monkeypatch):
    def work(name):
        raise DeviceError(f"does not compile {name}")

    compiled_by(monkeypatch, work)
    with pytest.raises(DeviceError, match=r"does not compile elimina::a"):
        gpu.compile(NAMES)


def test_without_threads_each_waits_for_its_use(gpu, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    compiled_by(monkeypatch, pytest.fail)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    gpu.compile(NAMES)
