"""The notebooks of the examples run, and print what is stored in them."""

from __future__ import annotations

import json

import pytest

from tests import notebooks

LARGEST_PICTURE = 50_000
"""Characters of a picture."""


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_those_that_are_stored(path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    notebook = json.loads(path.read_text())
    stored = [cell["outputs"] for cell in notebooks.code_cells(notebook)]
    for outputs, expected in zip(notebooks.outputs_of(notebook), stored, strict=True):
        assert [_texts(output) for output in outputs] == [_texts(output) for output in expected]
        for output in (*outputs, *expected):
            assert len("".join(output.get("data", {}).get("image/svg+xml", ""))) < LARGEST_PICTURE
    assert any(stored)


def _texts(output):
    """Return what is compared: texts, and the kinds of everything."""
    data = output.get("data", {})
    return output.get("text"), data.get("text/plain"), sorted(data)
