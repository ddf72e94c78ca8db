"""Real clusters for tests: a scheduler in this process, and workers in processes of their own without nannies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from distributed import Client, LocalCluster, SpecCluster


@contextmanager
def scheduler(port: int = 0) -> Iterator[LocalCluster]:
    """A cluster without workers."""
    options = {"n_workers": 0, "processes": True, "scheduler_port": port, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(silence_logs=50, **options) as cluster:
        yield cluster


@contextmanager
def workers(cluster: SpecCluster, count: int, *options: str, python: str = sys.executable) -> Iterator[list[int]]:
    """Worker processes of a cluster that nobody starts again; their process ids."""
    command = [python, "-m", "distributed.cli.dask_worker", cluster.scheduler_address, "--no-nanny", "--no-dashboard"]
    command += ["--nthreads", "1", "--host", "127.0.0.1", *options]
    started = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextmanager
def cluster_of(count: int, *options: str) -> Iterator[Client]:
    """A client of a cluster of workers without nannies."""
    with scheduler() as cluster, workers(cluster, count, *options), Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=60)
        yield client


def kill_at(client: Client, address: str, module: str, owner: str, method: str, number: int) -> None:
    """Make a worker kill itself at a call of a method, counted from 1 on."""

    # A nested function travels by value: workers do not have the tests.
    def arm(module: str, owner: str, method: str, number: int) -> None:
        import importlib

        kind = getattr(importlib.import_module(module), owner)
        plain, calls = getattr(kind, method), [0]

        def counting(self, *args, **kwargs):
            calls[0] += 1
            if calls[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(self, *args, **kwargs)

        setattr(kind, method, counting)

    client.run(arm, module, owner, method, number, workers=[address])


def addresses(client: Client) -> list[str]:
    """Of the workers that are there."""
    return sorted(client.scheduler_info()["workers"])


def wait_until(is_so, seconds: float = 20.0) -> None:
    """Wait for something."""
    ends = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.02)
