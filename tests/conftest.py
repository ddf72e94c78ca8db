"""Fixtures for every test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("ELIMINA_DATA", Path(__file__).parents[1].parent / "shared" / "data"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that need the benchmark files where these are absent."""
    if DATA.is_dir():
        return
    for item in items:
        if item.get_closest_marker("data"):
            item.add_marker(pytest.mark.skip(reason=f"the benchmark files are not in {DATA} (set ELIMINA_DATA)"))


@pytest.fixture
def data_dir() -> Path:
    """Folder of the third-party benchmark files."""
    return DATA
