"""Counts of the executor paths."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from elimina import Model
from elimina._core import count_path, path_counts
from tests.calls import solve
from tests.paths import counted_paths, reachable_paths

ROOT = Path(__file__).parent.parent


def grid(side=4, size=3, forbidden=0.0):
    rng = np.random.default_rng(0)
    pairs = [(v, v + 1) for v in range(side**2) if (v + 1) % side] + [(v, v + side) for v in range(side**2 - side)]
    costs = [np.where(rng.random((size, size)) < forbidden, np.inf, rng.random((size, size))) for _ in pairs]
    return Model.from_arrays([size] * side**2, list(zip(pairs, costs, strict=True)))


def test_steps_are_counted_while_paths_are():
    with counted_paths() as counts:
        solve(grid(), device="cpu", method="eliminate")
    assert counts["plain"] + counts["tile"] > 0
    assert counts["decode"] == 1
    with counted_paths() as counts:
        pass
    assert counts.total() == 0
    solve(grid(), device="cpu", method="eliminate")
    assert not any(path_counts().values())


def test_slices_and_rows_have_paths_of_their_own():
    with counted_paths() as counts:
        solve(grid(5, 4), device="cpu", method="eliminate", slices=256, memory="16KiB")
    assert counts["slices"] > 0
    with counted_paths() as counts:
        solve(grid(4, 20, forbidden=0.8), device="cpu", method="eliminate", tables="sparse")
    assert counts["rows-decode"] == 1
    assert sum(count for path, count in counts.items() if path.startswith("join")) > 0


def test_a_path_that_is_not_in_the_list():
    with counted_paths(), pytest.raises(IndexError, match="unknown executor path 'scenic'"):
        count_path("scenic")


def test_every_path_is_counted_somewhere():
    """A path that is listed and that no code counts could never be reached by a generator."""
    listed = re.findall(r'path\((\w+), "([\w-]+)"\)', (ROOT / "core/exec/paths.hpp").read_text())
    assert {text for _, text in listed} == set(path_counts())
    core = "\n".join(path.read_text() for path in ROOT.glob("core/**/*.[ch]pp"))
    python = "\n".join(path.read_text() for path in ROOT.glob("src/elimina/**/*.py"))
    lacking = [text for name, text in listed if f"Path::{name}" not in core and f'"{text}"' not in python]
    assert not lacking


def test_paths_of_other_machines_are_not_asked_for():
    assert not any(path.startswith("cuda") for path in reachable_paths())
    assert {"cuda-forest", "slices", "product"} <= reachable_paths(gpu=True)
