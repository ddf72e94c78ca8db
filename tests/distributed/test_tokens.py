"""Files that the tests of clusters leave behind: none."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.distributed.clusters import addresses, cluster_of, kill_at


class _Client:
    """A client whose worker gets there at once, and lives."""

    def run(self, arm: object, *arguments: object, workers: object) -> None:
        Path(str(arguments[-2])).touch()


def test_a_token():
    assert kill_at(_Client(), None, "module", "Owner", "method", 1).exists()


def test_a_cluster():
    with cluster_of(2) as client:
        assert len(addresses(client)) == 2


@pytest.mark.parametrize("test", [test_a_token, test_a_cluster])
def test_files_go_though_the_process_ends_as_those_of_xdist_may(test):
    """Without a word to atexit."""
    name = f"{__file__}::{test.__name__}"
    session = f"import os, pytest; os._exit(pytest.main(['-q', '-p', 'no:cacheprovider', {name!r}]))"
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    # Sockets are there, too, and their paths are short.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        environment["TMPDIR"] = folder
        subprocess.run([sys.executable, "-c", session], check=True, env=environment, cwd=Path(__file__).parents[2])
        assert [path for path in Path(folder).rglob("*") if path.is_file()] == []
