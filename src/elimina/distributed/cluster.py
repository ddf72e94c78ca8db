"""Connections to a Dask cluster, or to a new one on this machine, and tasks that survive the loss of a worker."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import logging
import math
import os
import platform
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from elimina import arguments
from elimina.errors import ClusterError, DeviceError, EliminaError, InputError, InternalError
from elimina.option_names import by_interface, option, use_flags, uses_flags
from elimina.planning.devices import DEVICES, gpu_numbers
from elimina.planning.option_table import MAX_THREADS
from elimina.system import require
from elimina.version import __version__

if TYPE_CHECKING:
    from distributed import Client, Future


_CONNECT_SECONDS = 10.0
"""Seconds to wait for the answer of a cluster when connecting to it."""

_ADDRESS = re.compile(r"(?:[a-z]+://)?[^\s/:]\S*:\d+")

_HERE = "127.0.0.1"

GPU = "GPU"
"""The resource that a worker with GPUs announces."""


class Worker(NamedTuple):
    """A worker of a cluster.

    Attributes:
        address: Address of the worker.
        threads: Tasks that it runs at a time.
        gpus: Number of GPUs that it announces.
        memory: Bytes that it may use; 0 if it has no limit.
    """

    address: str
    threads: int
    gpus: int
    memory: int

    def lanes(self, device: str) -> int:
        """Return the number of tasks that the worker runs at a time on a device."""
        return min(self.threads, self.gpus) if gpu_numbers(device) else self.threads


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to the cluster whose scheduler is at an address, like ``tcp://host:8786`` or ``tls://host:8786``.

    The certificates for ``tls`` are those that Dask's configuration names.

    Raises:
        InputError: The extra ``dask`` is not installed, or this is not an address.
        ClusterError: No scheduler answers at the address.
    """
    distributed = require("distributed", "dask", "a cluster")
    # Dask would start a new cluster for an empty address. Without a port in the address, its client might never end.
    if not _ADDRESS.fullmatch(address):
        raise InputError(f"invalid scheduler address {address!r}: expected one such as tcp://host:8786")
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except TypeError as error:
        # Dask raises this for a TLS address without certificates.
        raise ClusterError(
            f"{address} asks for certificates, and Dask's configuration names none (distributed.comm.tls: ca-file, "
            "client.cert, client.key); name those that the scheduler was started with"
        ) from error
    except OSError as error:
        if "certificate" in str(error):
            raise ClusterError(
                f"the scheduler at {address} and Dask's configuration here have certificates that do not match "
                "(distributed.comm.tls); name those that the scheduler was started with"
            ) from error
        raise ClusterError(
            f"no Dask scheduler answers at {address} within {_CONNECT_SECONDS:g} s; start one with `dask scheduler`, "
            f"or use {by_interface('elimina.distributed.local', '--local N')} for workers on this machine"
        ) from error
    except ValueError as error:
        raise InputError(
            f"invalid scheduler address {address!r} ({error}): expected one such as tcp://host:8786"
        ) from error
    with client:
        yield client


@contextmanager
@arguments.with_checked_keywords()
def local(workers: int, device: str = "cpu") -> Iterator[Client]:
    """Start a cluster of worker processes on this machine; the cluster ends with the block.

    Anyone who can connect to a Dask scheduler or worker can run code as its user. All connections are therefore
    encrypted, with a certificate made for this cluster alone, which is never written to a file.

    Args:
        workers: Number of workers, which have one thread each.
        device: ``cuda``: each worker sees one GPU, and announces it.

    Raises:
        InputError: The extra ``dask`` (with cryptography) is not installed, or the number of workers is not from 1 to
            1,024.
        DeviceError: There are fewer GPUs than workers.
    """
    workers = arguments.integer("workers", workers, 1, MAX_THREADS)
    distributed = require("distributed", "dask", "a cluster")
    require("cryptography", "dask", "a cluster on this machine")
    from distributed.system import MEMORY_LIMIT

    security = distributed.Security.temporary()

    options: dict[str, Any] = {"nthreads": 1, "memory_limit": MEMORY_LIMIT // workers, "silence_logs": logging.CRITICAL}
    options_of_workers = [options] * workers
    if gpu_numbers(device):
        options_of_workers = [
            {**options, "env": {"CUDA_VISIBLE_DEVICES": gpu}, "resources": {GPU: 1}} for gpu in visible_gpus(workers)
        ]
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {
            "host": _HERE,
            "protocol": "tls",
            "dashboard_address": f"{_HERE}:0",
            "dashboard": False,
            "security": security,
        },
    }
    secured = {"host": _HERE, "protocol": "tls", "security": security}
    worker_specs = {
        n: {"cls": distributed.Nanny, "options": {**worker_options, **secured}}
        for n, worker_options in enumerate(options_of_workers)
    }
    with (
        distributed.SpecCluster(worker_specs, scheduler, security=security, silence_logs=logging.CRITICAL) as cluster,
        distributed.Client(cluster, security=security, set_as_default=False) as client,
    ):
        client.register_plugin(_interrupt_shield())
        yield client


def _interrupt_shield() -> Any:
    """Return a plugin that makes workers ignore Ctrl-C in a terminal, because the client needs their results."""
    from distributed import WorkerPlugin

    class InterruptShield(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    return InterruptShield()


def visible_gpus(count: int) -> list[str]:
    """Return ``CUDA_VISIBLE_DEVICES`` for each of some processes.

    Raises:
        DeviceError: There are fewer GPUs than processes.
    """
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    gpus = [str(n) for n in range(gpu_count())]
    if variable is not None:
        gpus = [name for name in variable.split(",") if name][: len(gpus)]
    if len(gpus) < count:
        raise DeviceError(f"{count} workers need a GPU each, and there are {len(gpus)}; ask for no more workers")
    return gpus[:count]


def gpu_count() -> int:
    """Return the number of CUDA devices that the driver shows to this process; 0 if there is no driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int(0)
    is_counted = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    return count.value if is_counted else 0


async def _announce(dask_worker: Any) -> None:
    """Publish a worker's number of GPUs, unless it is published already."""
    if GPU not in dask_worker.state.total_resources and (count := gpu_count()):
        await dask_worker.set_resources(**{GPU: count})


def known_workers(client: Client) -> dict[str, Any]:
    """Return the scheduler's information about its workers, by their addresses.

    Raises:
        ClusterError: The scheduler is gone.
    """
    # The scheduler is asked, because `scheduler_info` may lack workers while a callback of the client replaces it.
    with contextlib.suppress(OSError):
        if client.scheduler is not None and client.status == "running":
            workers: dict[str, Any] = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
            return workers
    raise ClusterError("the cluster's scheduler was lost; start it and its workers again, and repeat the command")


def workers_for(client: Client, device: str) -> list[Worker]:
    """Return the workers that can run a request.

    Args:
        client: Client of the cluster.
        device: ``cuda``: only those with GPUs.

    Raises:
        InputError: The device names GPUs by number, which differ from worker to worker.
        ClusterError: There are no workers, or a worker lacks elimina, or has another release of it or of Python.
        DeviceError: No worker has a GPU.
    """
    if device not in DEVICES:
        raise InputError(f"a cluster cannot use the device {device}: each worker has its own GPU; use cuda")
    information = known_workers(client)
    if not information:
        raise ClusterError(
            f"no worker is connected to the scheduler at {address_of(client)}; start some with "
            f"`dask worker {address_of(client)} --nthreads 1`"
        )
    _check(client.run(importlib.metadata.version, "elimina", on_error="return"), "elimina", __version__)
    # Errors of workers are shown by this process, so the workers name options as it does (as flags or as arguments).
    client.run(use_flags, uses_flags())
    _check(client.run(platform.python_version, on_error="return"), "Python", platform.python_version())
    if gpu_numbers(device):
        client.run(_announce)
        information = known_workers(client)
    workers = [
        Worker(address, worker["nthreads"], int(worker["resources"].get(GPU, 0)), int(worker["memory_limit"]))
        for address, worker in sorted(information.items())
    ]
    usable = [worker for worker in workers if worker.gpus or not gpu_numbers(device)]
    if not usable:
        raise DeviceError(
            f"none of the {len(workers)} workers announces a GPU; start some where there is one, with "
            "`dask worker ADDRESS --resources GPU=1`, or use the CPU"
        )
    return usable


def _check(versions: Mapping[str, Any], what: str, local_version: str) -> None:
    """Raise ClusterError unless all workers have the same release of a package as this process."""
    for address, version in sorted(versions.items()):
        if isinstance(version, importlib.metadata.PackageNotFoundError):
            raise ClusterError(f"worker {address} has no {what}: install {what} {local_version} there")
        if isinstance(version, BaseException):
            raise ClusterError(f"worker {address} does not say which {what} it has ({version}); start it again")
        if _release(version) != _release(local_version):
            raise ClusterError(
                f"worker {address} has {what} {version}, and here is {local_version}: install the same on both"
            )


def _release(version: str) -> list[str]:
    return version.split(".")[:2]


def address_of(client: Client) -> str:
    """Return the address of the scheduler."""
    return str(client.scheduler_info(n_workers=0)["address"])


_WORKER_CHECK_SECONDS = 1.0
"""Seconds between checks for workers."""

_REPEAT_CHECK_SECONDS = 0.01
"""Seconds between checks of a task that the scheduler repeats because its answer was lost with a worker."""

WITHOUT_WORKERS_SECONDS = 20.0
"""Seconds to wait for new workers when all were lost."""

_MAX_BYTES = "100GB"
"""Size of a task's arguments above which Dask warns; so large that no task reaches it. The model is an argument of a
task on purpose: the scheduler stores arguments, so they survive the loss of a worker."""


def _same(value: Any) -> Any:
    return value


class Tasks:
    """Calls on workers, also on those that join later, and their answers in the order of arrival.

    Args:
        client: Client of the cluster.
        device: ``cuda``: each task takes a GPU of its worker.

    Attributes:
        workers: Addresses of the workers that can do the work.
        lost: Number of workers that were seen to be lost.
        joined: Number of workers that came later.

    Raises:
        ClusterError: See ``workers_for``.
        DeviceError: See ``workers_for``.
    """

    def __init__(self, client: Client, device: str) -> None:
        self._client, self._device = client, device
        self._resources = {GPU: 1} if gpu_numbers(device) else None
        self._finished: SimpleQueue[Future[Any]] = SimpleQueue()
        self._futures: dict[str, Future[Any]] = {}
        self.workers = {worker.address: worker for worker in workers_for(client, device)}
        self._workers = set(known_workers(client))
        self._looked = time.monotonic()
        self.lost = self.joined = 0

    @property
    def lanes(self) -> int:
        """Number of tasks that all workers run at a time, at least 1."""
        return max(1, sum(worker.lanes(self._device) for worker in self.workers.values()))

    @property
    def statistics(self) -> dict[str, int]:
        """Numbers of all workers, of lost ones and of those that joined later, for ``Result.stats``."""
        # Errors about workers are ignored, because a finished answer does not need workers.
        with suppress(ClusterError, DeviceError):
            self._update_workers()
        return {"workers": len(self.workers) + self.lost, "lost_workers": self.lost, "joined_workers": self.joined}

    def compute(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Compute a value on a worker, where it stays for other tasks; return its future."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": _MAX_BYTES}):
            future = self._client.submit(call, *arguments, pure=False, resources=self._resources)
        self._futures[str(future.key)] = future
        return future

    def store(self, value: Any) -> Future[Any]:
        """Store a value on the workers, for other tasks; return its future."""
        return self.compute(_same, value)

    def submit(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Call a function on any worker; ``next`` returns its answer."""
        future = self.compute(call, *arguments)
        future.add_done_callback(self._finished.put)

    def next(self, until: float = math.inf) -> Any:
        """Wait for an answer until a time of ``time.monotonic``; return None if there is none by then.

        Raises:
            EliminaError: The task raised it.
            ClusterError: No worker is left, or every worker that began the task was lost.
        """
        future = self._wait(until)
        if future is None:
            return None
        # The task is removed, so that workers need not keep its answer.
        return self.answer(self._futures.pop(str(future.key)))

    def answer(self, future: Future[Any]) -> Any:
        """Return the value of a finished task: see ``next``."""
        from distributed import KilledWorker

        if future.status == "finished":
            return future.result()
        if future.status != "error":
            known_workers(self._client)
            raise ClusterError(f"the cluster forgot a task ({future.status}); was its scheduler restarted? Start again")
        error = future.exception()
        if isinstance(error, EliminaError):
            raise error
        if isinstance(error, KilledWorker):
            raise ClusterError(
                "a task was begun several times, and each time its worker was lost, the last time "
                f"{error.last_worker.address}; check their logs (out of memory?), and set a smaller {option('memory')}"
            ) from error
        raise InternalError(f"a task failed: {error!r}; please report this") from error

    def wait_for(self, future: Future[Any]) -> Any:
        """Wait for the value that ``compute`` makes: see ``next``."""
        future.add_done_callback(self._finished.put)
        finished = self._wait()
        assert finished is not None
        return self.answer(finished)

    def _wait(self, until: float = math.inf) -> Future[Any] | None:
        """Return the next task that has finished, as long as there are workers; None if time is up."""
        last_seen = time.monotonic()
        while True:
            now = time.monotonic()
            if now - self._looked > _WORKER_CHECK_SECONDS:
                self._update_workers()
            last_seen = now if self._workers else last_seen
            if now - last_seen > WITHOUT_WORKERS_SECONDS:
                raise ClusterError(
                    f"all workers were lost, and no other one came within {WITHOUT_WORKERS_SECONDS:g} s; check "
                    "their logs (out of memory?), and start again with more of them"
                )
            try:
                future = self._finished.get(timeout=max(0.0, min(_WORKER_CHECK_SECONDS, until - now)))
            except Empty:
                if time.monotonic() >= until:
                    return None
                continue
            if future.status not in ("lost", "pending"):
                return future
            # The worker was lost after the task had finished, but before the answer was read. The scheduler repeats
            # the task.
            self._finished.put(future)
            time.sleep(_REPEAT_CHECK_SECONDS)

    def _update_workers(self) -> None:
        """Update the lists of workers, with those lost and those that joined."""
        now = set(known_workers(self._client))
        self.lost += len(self.workers.keys() - now)
        self.workers = {address: worker for address, worker in self.workers.items() if address in now}
        if now - self._workers:
            able = {worker.address: worker for worker in workers_for(self._client, self._device)}
            self.joined += len(able.keys() - self.workers.keys())
            self.workers = able
        self._workers, self._looked = now, time.monotonic()

    def close(self) -> None:
        """Cancel unfinished tasks, and forget the others."""
        if self._client.status == "running":
            self._client.cancel(list(self._futures.values()))


@contextmanager
def tasks_on(client: Client, device: str) -> Iterator[Tasks]:
    """Make tasks for the workers; those not finished at the end are cancelled."""
    tasks = Tasks(client, device)
    try:
        yield tasks
    finally:
        tasks.close()


def stop_if_unwanted(*_: object) -> None:
    """Stop a task if its client has abandoned it. This function is a listener of the task's progress.

    Raises:
        CancelledError: The client has abandoned the task.
    """
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    if task is None or task.state == "cancelled":
        raise CancelledError
