"""Clusters that several tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from distributed import Client

from tests.distributed.clusters import cluster_of


@pytest.fixture(scope="package")
def client() -> Iterator[Client]:
    """Return the client of a cluster of three workers, none of which is killed."""
    with cluster_of(3) as client:
        yield client
