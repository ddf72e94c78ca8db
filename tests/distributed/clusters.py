"""Real clusters for tests: a scheduler in this process, and workers in processes of their own without nannies."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dask
from distributed import Client, LocalCluster

from elimina.distributed.cluster import known_workers
from tests.distributed import worker

TOKENS: list[Path] = []
"""Files that workers make once, removed at the end of the session: later, a worker would signal itself again."""


@contextmanager
def scheduler() -> Iterator[LocalCluster]:
    """A cluster without workers."""
    options = {"n_workers": 0, "processes": True, "dashboard_address": "127.0.0.1:0"}
    # Dask leaves the files that it locks.
    with (
        tempfile.TemporaryDirectory() as folder,
        dask.config.set({"temporary-directory": folder}),
        LocalCluster(silence_logs=50, **options) as cluster,
    ):
        yield cluster


@contextmanager
def workers(address: str, count: int, *options: str) -> Iterator[list[int]]:
    """Worker processes that no scheduler restarts; their process ids."""
    forked = multiprocessing.get_context("forkserver")
    forked.set_forkserver_preload(["distributed.cli.dask_worker", "elimina.distributed"])
    with tempfile.TemporaryDirectory() as folder:
        own = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--host", "127.0.0.1", "--local-directory", folder]
        given = [address, *own, *options]
        started = [forked.Process(target=worker.run, args=(given,), daemon=True) for _ in range(count)]
        try:
            for process in started:
                process.start()
            yield [process.pid for process in started if process.pid is not None]
        finally:
            for process in started:
                process.kill()
                process.join()


@contextmanager
def cluster_of(count: int, *options: str) -> Iterator[Client]:
    """A client of a cluster of workers without nannies."""
    with (
        scheduler() as cluster,
        workers(cluster.scheduler_address, count, *options),
        Client(cluster, set_as_default=False) as client,
    ):
        client.wait_for_workers(count, timeout=60)
        yield client


@contextmanager
def scheduler_process(port: int, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A scheduler in a process of its own."""
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    started = subprocess.Popen(
        [*command, "--no-dashboard", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def free_port() -> int:
    """A port without a listener."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def slow_down(client: Client, module: str, owner: str, method: str, seconds: float, until: str = "") -> None:
    """Make a method take longer on all workers, and wait for a file."""

    def arm(module: str, owner: str, method: str, seconds: float, until: str) -> None:
        import importlib
        import os
        import time

        kind = getattr(importlib.import_module(module), owner)
        plain = getattr(kind, method)

        def sleeping(self, *args, **kwargs):
            while until and not os.path.exists(until):
                time.sleep(0.02)
            time.sleep(seconds)
            return plain(self, *args, **kwargs)

        setattr(kind, method, sleeping)

    client.run(arm, module, owner, method, seconds, until)


def count_calls(client: Client, module: str, owner: str, method: str) -> Callable[[], dict[str, int]]:
    """Count a method's calls on each worker; what is returned tells them."""

    def arm(module: str, owner: str, method: str) -> None:
        import importlib

        kind = getattr(importlib.import_module(module), owner)
        plain = getattr(kind, method)

        def counting(self, *args, **kwargs):
            counting.calls += 1
            return plain(self, *args, **kwargs)

        counting.calls = 0
        setattr(kind, method, counting)

    def calls(module: str, owner: str, method: str) -> int:
        import importlib

        found: int = getattr(getattr(importlib.import_module(module), owner), method).calls
        return found

    client.run(arm, module, owner, method)
    return lambda: client.run(calls, module, owner, method)


def kill_at(
    client: Client,
    address: str | None,
    module: str,
    owner: str,
    method: str,
    number: int,
    after: float = 0,
    by: signal.Signals = signal.SIGKILL,
) -> Path:
    """Make a worker (None: the first one that gets there) signal itself seconds after a call of a method, from 1 on.

    Returns:
        The file that the worker makes when it gets there.
    """
    token = Path(tempfile.gettempdir()) / f"elimina-{uuid.uuid4()}"
    TOKENS.append(token)

    # A nested function travels by value: workers do not have the tests.
    def arm(module: str, owner: str, method: str, number: int, after: float, token: str, by: int) -> None:
        import contextlib
        import importlib
        import time

        kind = getattr(importlib.import_module(module), owner)
        plain, calls = getattr(kind, method), [0]

        def counting(self, *args, **kwargs):
            calls[0] += 1
            if calls[0] == number:
                with contextlib.suppress(FileExistsError):
                    os.close(os.open(token, os.O_CREAT | os.O_EXCL))
                    time.sleep(after)
                    os.kill(os.getpid(), by)
            return plain(self, *args, **kwargs)

        setattr(kind, method, counting)

    client.run(arm, module, owner, method, number, after, str(token), int(by), workers=[address] if address else None)
    return token


def addresses(client: Client) -> list[str]:
    """Return the addresses of the workers that are connected."""
    return sorted(known_workers(client))
