"""Seconds of a call by phase."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elimina.running.phases import phase_seconds


@given(st.dictionaries(st.sampled_from(["order", "plan", "run"]), st.floats(0, 10)), st.floats(0, 100))
def test_phases_sum_to_the_total(phases, total):
    seconds = phase_seconds(phases, total)
    assert sum(seconds.values()) - seconds["total"] == pytest.approx(seconds["total"], abs=1e-5)
    assert seconds["total"] == pytest.approx(max(total, sum(phases.values())), abs=1e-5)
    assert list(seconds)[-2:] == ["other", "total"]
    assert phase_seconds(seconds, total) == seconds
