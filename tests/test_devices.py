"""Tests share a GPU, except with one that fills it."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HOLD = """
import pathlib, sys
from tests.devices import hold_gpus
print("asks", flush=True)
with hold_gpus(pathlib.Path(sys.argv[1]), alone=sys.argv[2] == "alone"):
    print("holds", flush=True)
    sys.stdin.readline()
"""


class Holder:
    """Another process that asks for the GPUs, and holds them until it is told to end."""

    def __init__(self, path: Path, kind: str) -> None:
        command = [sys.executable, "-c", HOLD, str(path), kind]
        self.process = subprocess.Popen(command, stdin=-1, stdout=-1, bufsize=0, cwd=Path(__file__).parents[1])
        assert self.process.stdout.readline() == b"asks\n"

    def holds(self, seconds: float = 60.0) -> bool:
        """Tell whether it gets the GPUs in time."""
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def end(self) -> None:
        assert self.process.communicate(b"\n", timeout=60)[0] == b"holds\n"
        assert self.process.returncode == 0


@pytest.fixture
def ask(tmp_path) -> Iterator[Callable[[str], Holder]]:
    holders: list[Holder] = []

    def one(kind: str) -> Holder:
        holders.append(Holder(tmp_path / "gpus", kind))
        return holders[-1]

    yield one
    for holder in holders:
        holder.process.kill()
        holder.process.communicate()


def test_a_test_that_fills_a_gpu_has_it_alone(ask):
    """It waits for those that share the GPU, and those that ask after it wait for it."""
    shared = [ask("shared"), ask("shared")]
    assert all(holder.holds() for holder in shared)
    filler = ask("alone")
    assert not filler.holds(0.3)
    later = ask("shared")
    assert not later.holds(0.3)
    shared[0].end()
    assert not filler.holds(0.3)
    shared[1].end()
    assert filler.holds()
    assert not later.holds(0.3)
    filler.end()
    assert later.holds()
    later.end()


def test_a_process_that_is_killed_frees_the_gpu(ask):
    filler, later = ask("alone"), ask("shared")
    assert filler.holds()
    filler.process.kill()
    assert later.holds()
