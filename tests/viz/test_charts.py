"""Charts of values over time: axes, labels and steps."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from elimina.result import Bounds
from elimina.viz.charts import Series, StepChart, bounds_chart, round_ticks


@given(st.lists(st.tuples(st.floats(0, 1e5), st.floats(-1e9, 1e9)), min_size=1, max_size=8), st.floats(0, 1e5))
def test_labels_lie_on_the_axis(points, end):
    chart = StepChart("a", [Series("a", sorted(points))], end, "cost")
    ticks = chart.time_ticks()
    assert all(chart.start <= at <= chart.stop for at, _ in ticks)
    assert [math.isclose(float(label), at, rel_tol=1e-5, abs_tol=1e-9) for at, label in ticks] == [True] * len(ticks)
    assert all(chart.start <= at <= chart.stop for at, _ in chart.steps(chart.series[0]))


def test_a_linear_axis_shows_times_as_they_are():
    chart = StepChart("a", [Series("a", [(0.0002, 1.0), (0.0006, 2.0)])], 0.0007, "cost")
    assert not chart.is_log
    assert chart.steps(chart.series[0]) == [(0.0002, 1.0), (0.0006, 2.0), (0.0007, 2.0)]


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_round_numbers(low, span):
    ticks = round_ticks(low, low + span)
    assert 1 <= len(ticks) <= 6
    assert all(low - 1e-6 <= at <= low + span + 1e-6 for at, _ in ticks)


def test_bounds_that_cannot_be_drawn_are_left_out():
    assert bounds_chart([Bounds(1.0, None, None, 0)], "run") is None
    chart = bounds_chart([Bounds(1.0, None, 10**400, 0), Bounds(2.0, 3, 5, 0)], "run")
    assert [series.points for series in chart.series] == [[(2.0, 3.0)], [(2.0, 5.0)]]
    assert chart.end > 2.0
