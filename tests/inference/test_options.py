"""Checks of options: once for plain values, each time for what may change."""

from __future__ import annotations

import gc
import weakref

import pytest

from elimina import InputError, Options


def test_plain_options_are_checked_once():
    options = Options(seed=7, threads=2)
    assert options.checked("pr", is_run=True) is Options(seed=7, threads=2).checked("pr", is_run=True)
    with pytest.raises(TypeError, match="threads is True"):
        Options(seed=7, threads=True).checked("pr", is_run=True)
    with pytest.raises(InputError, match="an upper bound is for the task mpe"):
        Options(upper_bound=3).checked("pr")


def test_checked_options_keep_no_function():
    def listener(bounds):
        raise AssertionError

    alive = weakref.ref(listener)
    assert Options(on_bounds=listener).checked("mpe").on_bounds is listener
    del listener
    gc.collect()
    assert alive() is None


def test_a_scratch_directory_is_looked_up_each_time(tmp_path):
    options = Options(scratch=str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    assert options.checked("mpe").scratch == str(tmp_path / "own")
    (tmp_path / "own").rmdir()
    with pytest.raises(InputError, match="scratch"):
        options.checked("mpe")
