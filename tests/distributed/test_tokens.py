"""Files that the tests of clusters leave behind: none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.distributed.clusters import kill_at


class _Client:
    """A client whose worker gets there at once, and lives."""

    def run(self, arm: object, *arguments: object, workers: object) -> None:
        Path(str(arguments[-2])).touch()


def test_a_token():
    assert kill_at(_Client(), None, "module", "Owner", "method", 1).exists()


def test_tokens_go_though_the_process_ends_as_those_of_xdist_may(tmp_path):
    """Without a word to atexit."""
    test = f"{__file__}::{test_a_token.__name__}"
    session = f"import os, pytest; os._exit(pytest.main(['-q', '-p', 'no:cacheprovider', {test!r}]))"
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    environment["TMPDIR"] = str(tmp_path)
    subprocess.run([sys.executable, "-c", session], check=True, env=environment, cwd=Path(__file__).parents[2])
    assert not list(tmp_path.glob("elimina-*"))
