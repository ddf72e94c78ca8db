"""The first example of the notebook page runs in a real kernel: where nbclient and ipykernel are installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

from tests import pages  # noqa: E402

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def run(source):
    """Return the outputs of a cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    client = nbclient.NotebookClient(
        notebook, timeout=None, startup_timeout=600, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}
    )
    client.execute(env={**os.environ, "JUPYTER_PLATFORM_DIRS": "1"})
    return notebook.cells[0].outputs


def test_the_first_posterior():
    block = next(iter(pages.blocks(ROOT / "docs" / "how-to" / "notebooks.md")))
    assert len([line for line in block.text.splitlines() if line.strip()]) <= 5
    (shown,) = run(block.text)
    html = shown["data"]["text/html"]
    assert "<td" in html
    assert "0.8526" in html
    assert "Bearing=worn (0.852594)" in shown["data"]["text/plain"]


def test_pictures_are_shown():
    pytest.importorskip("matplotlib")
    (shown,) = run('import elimina\nelimina.viz.plot("examples/pump.bif")')
    assert shown["data"]["image/svg+xml"].lstrip().startswith("<?xml")
