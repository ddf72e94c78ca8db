"""Progress is one line on a terminal, a bar in a notebook, and nothing elsewhere."""

from __future__ import annotations

import io
import sys
import time
import types

import pytest

import elimina
from elimina.generate import grid_model
from elimina.progress import Progress
from elimina.result import Bounds


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


def on_terminal(monkeypatch):
    """Put a terminal in the place of standard error; pytest has its own between a fixture and a test."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_a_line_on_a_terminal(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with Progress() as shown:
        assert shown.is_possible
        shown.show("width 3", 60.0)
        shown.update(0.5)
        shown.bounds(Bounds(1.0, 3, 4, 0))
        for share in (0.75, 0.25):
            time.sleep(0.11)  # the line is drawn ten times a second
            shown.update(share)
    text = terminal.getvalue()
    assert "  0 %  width 3; " in text
    assert " 50 %  width 3; " in text
    assert text.count(" 75 %") == 2
    assert " 25 %" not in text
    assert "optimum: 3 to 4 (gap 33.3 %)" in text
    assert " left" in text
    assert text.endswith("\r\033[K")
    assert "\n" not in text


def test_search_before_there_is_a_plan(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with Progress() as shown:
        shown.bounds(Bounds(1.0, 150, 4340, 0))
        shown.bounds(Bounds(1.0, 150, 4340, 10))
    text = terminal.getvalue()
    assert "planning; optimum: 150 to 4340 (gap 2,793 %); " in text
    assert "searching; optimum: 150 to 4340 (gap 2,793 %), 10 nodes/s; " in text


def test_short_work_and_files_show_nothing(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with Progress() as shown:
        shown.show("width 3", 0.1)
        shown.update(0.5)
    assert terminal.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Progress() as shown:
        assert not shown.is_possible
        shown.show("width 3", 60.0)
        shown.bounds(Bounds(1.0, 3, 4, 0))
    assert sys.stderr.getvalue() == ""


def test_a_bar_in_a_notebook(monkeypatch):
    pictures = []

    class Handle:
        def update(self, one):
            pictures.append(one._repr_html_())

    def display(one, display_id):
        pictures.append(one._repr_html_())
        return Handle()

    shell = types.SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(display=display))
    with Progress() as shown:
        shown.show("width <3>", 60.0)
    assert len(pictures) == 2
    assert pictures[0].startswith('<div><progress value="0.000" max="1"></progress> width &lt;3&gt;; ')


def test_one_setting(monkeypatch):
    terminal = on_terminal(monkeypatch)
    told = []
    options = elimina.Options(method="search", progress=True, on_bounds=told.append, on_plan=told.append)
    result = elimina.solve(grid_model(6, 3, 0.2), options=options)
    assert result == elimina.solve(grid_model(6, 3, 0.2)).replace(stats=result.stats)
    assert "optimum: " in terminal.getvalue()
    assert told
    with pytest.raises(TypeError, match="progress is 'yes'"):
        elimina.solve(grid_model(2, 2), options=elimina.Options(progress="yes"))
