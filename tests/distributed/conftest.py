"""Clusters that several tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client

from tests.distributed.clusters import TOKENS, cluster_of


@pytest.fixture(scope="session", autouse=True)
def tokens() -> Iterator[None]:
    """Remove the files of ``kill_at``. Processes of xdist may end without calling what atexit was given."""
    yield
    for token in TOKENS:
        token.unlink(missing_ok=True)


@pytest.fixture(scope="package")
def client() -> Iterator[Client]:
    """Return the client of a cluster of three workers, none of which is killed."""
    with cluster_of(3) as client:
        yield client
