"""Tasks on a cluster's workers: those of a worker that is lost are done again elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from elimina.distributed.cluster import GPU, known_workers, workers_for
from elimina.errors import ClusterError, DeviceError, EliminaError, InternalError

if TYPE_CHECKING:
    from distributed import Client, Future

_LOOK_SECONDS = 1.0
"""Between two looks at whether there are workers."""

_AGAIN_SECONDS = 0.01
"""Between two looks at a task that is done again because its answer was lost with a worker."""

WITHOUT_WORKERS_SECONDS = 20.0
"""Seconds to wait for new workers when all were lost."""

_MOST_BYTES = "100GB"
"""Limit on a task's arguments: the model travels in them through the scheduler, so that it outlasts any worker."""


class Tasks:
    """Calls on workers, those that join later included, and their answers in the sequence in which they come.

    Args:
        client: Client of the cluster.
        device: ``cuda``: each task takes a GPU of its worker.

    Attributes:
        workers: Those that can do what is asked for, by their addresses.
        lost: Number of workers that were seen to be lost.
        joined: Number of workers that came later.

    Raises:
        ClusterError: See ``workers_for``.
        DeviceError: Likewise.
    """

    def __init__(self, client: Client, device: str) -> None:
        self._client, self._device = client, device
        self._resources = {GPU: 1} if device == "cuda" else None
        self._finished: SimpleQueue[Future[Any]] = SimpleQueue()
        self._futures: dict[str, Future[Any]] = {}
        self.workers = {worker.address: worker for worker in workers_for(client, device)}
        self._known = set(known_workers(client))
        self._looked = time.monotonic()
        self.lost = self.joined = 0

    @property
    def lanes(self) -> int:
        """Tasks that all workers together run at a time."""
        return max(1, sum(worker.lanes(self._device) for worker in self.workers.values()))

    @property
    def statistics(self) -> dict[str, int]:
        """Figures of the workers for ``Result.stats``: how many there were in all, and how many of them were lost."""
        # An answer that is known does not need workers.
        with suppress(ClusterError, DeviceError):
            self._look()
        return {"workers": len(self.workers) + self.lost, "lost_workers": self.lost, "joined_workers": self.joined}

    def keep(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Make something for other tasks, which stays on the workers."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": _MOST_BYTES}):
            future = self._client.submit(call, *arguments, pure=False, resources=self._resources)
        self._futures[str(future.key)] = future
        return future

    def submit(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Call something on any worker."""
        future = self.keep(call, *arguments)
        future.add_done_callback(self._finished.put)

    def next(self, until: float = math.inf) -> Any:
        """Wait for an answer; None if there is none by that time of ``time.monotonic``.

        Raises:
            EliminaError: The task raised it.
            ClusterError: There are no workers any more, or each one that began the task was lost.
        """
        future = self._wait(until)
        if future is None:
            return None
        # Workers need not keep it.
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
                f"{error.last_worker.address}; check their logs (out of memory?), and set a smaller --memory"
            ) from error
        raise InternalError(f"a task failed: {error!r}; please report this") from error

    def wait_for(self, future: Future[Any]) -> Any:
        """Wait for what ``keep`` was asked to make: see ``next``."""
        future.add_done_callback(self._finished.put)
        finished = self._wait()
        assert finished is not None
        return self.answer(finished)

    def _wait(self, until: float = math.inf) -> Future[Any] | None:
        """Return the next task that has finished, as long as there are workers; None if time is up."""
        seen = time.monotonic()
        while True:
            now = time.monotonic()
            if now - self._looked > _LOOK_SECONDS:
                self._look()
            seen = now if self._known else seen
            if now - seen > WITHOUT_WORKERS_SECONDS:
                raise ClusterError(
                    f"all workers were lost, and no other one came within {WITHOUT_WORKERS_SECONDS:g} s; check "
                    "their logs (out of memory?), and start again with more of them"
                )
            try:
                future = self._finished.get(timeout=max(0.0, min(_LOOK_SECONDS, until - now)))
            except Empty:
                if time.monotonic() >= until:
                    return None
                continue
            if future.status not in ("lost", "pending"):
                return future
            # The worker died after the task had finished, with its answer: the scheduler has it done again.
            self._finished.put(future)
            time.sleep(_AGAIN_SECONDS)

    def _look(self) -> None:
        """Look which workers are lost and which have joined."""
        now = set(known_workers(self._client))
        self.lost += len(self.workers.keys() - now)
        self.workers = {address: worker for address, worker in self.workers.items() if address in now}
        if now - self._known:
            able = {worker.address: worker for worker in workers_for(self._client, self._device)}
            self.joined += len(able.keys() - self.workers.keys())
            self.workers = able
        self._known, self._looked = now, time.monotonic()

    def close(self) -> None:
        """Give up what is not finished, and forget the rest."""
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
    """End a task that its client has given up, as a listener.

    Raises:
        CancelledError: It has.
    """
    from distributed import get_worker

    worker = get_worker()
    task = worker.state.tasks.get(worker.get_current_task())
    if task is None or task.state == "cancelled":
        raise CancelledError
