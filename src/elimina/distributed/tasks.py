"""Tasks on a cluster's workers: those of a worker that is lost are done again elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from elimina.distributed.cluster import GPU, known_workers
from elimina.errors import ClusterError, EliminaError, InternalError

if TYPE_CHECKING:
    from distributed import Client, Future

_LOOK_SECONDS = 1.0
"""Between two looks at whether there are workers."""

WITHOUT_WORKERS_SECONDS = 20.0
"""That are waited for new workers when all were lost."""

_MOST_BYTES = "100GB"
"""Of a task's arguments: a model goes to the scheduler once, so that it outlasts any worker."""


class Tasks:
    """Calls on workers, and their answers in the sequence in which they come.

    Args:
        client: Of the cluster.
        device: ``cuda``: each task takes a GPU of its worker.

    Attributes:
        lost: Number of workers that were lost.
    """

    def __init__(self, client: Client, device: str) -> None:
        self._client = client
        self._resources = {GPU: 1} if device == "cuda" else None
        self._finished: SimpleQueue[Future[Any]] = SimpleQueue()
        self._futures: list[Future[Any]] = []
        self._workers = set(known_workers(client))
        self.lost = 0

    def keep(self, call: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Make something for other tasks, which stays on the workers."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": _MOST_BYTES}):
            future = self._client.submit(call, *arguments, pure=False, resources=self._resources)
        self._futures.append(future)
        return future

    def submit(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Call something on any worker."""
        future = self.keep(call, *arguments)
        future.add_done_callback(self._finished.put)

    def next(self) -> Any:
        """Wait for an answer.

        Raises:
            EliminaError: The task raised it.
            ClusterError: There are no workers any more, or each one that began the task was lost.
        """
        return self.answer(self._wait())

    def answer(self, future: Future[Any]) -> Any:
        """What a task that has finished returned: see ``next``."""
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
                f"{error.last_worker.address}; look into their logs (out of memory?), and give less --memory"
            ) from error
        raise InternalError(f"a task failed: {error!r}; please report this") from error

    def wait_for(self, future: Future[Any]) -> Any:
        """Wait for what ``keep`` was asked to make: see ``next``."""
        future.add_done_callback(self._finished.put)
        return self.answer(self._wait())

    def _wait(self) -> Future[Any]:
        """The next task that has finished, as long as there are workers."""
        seen = time.monotonic()
        while True:
            try:
                return self._finished.get(timeout=_LOOK_SECONDS)
            except Empty:
                now = set(known_workers(self._client))
                self._note(now)
                seen = time.monotonic() if now else seen
                if time.monotonic() - seen > WITHOUT_WORKERS_SECONDS:
                    raise ClusterError(
                        f"all workers were lost, and no other one came within {WITHOUT_WORKERS_SECONDS:g} s; look into "
                        "their logs (out of memory?), and start again with more of them"
                    ) from None

    def _note(self, now: set[str]) -> None:
        self.lost += len(self._workers - now)
        self._workers = now

    def close(self) -> None:
        """Give up what is not finished, and forget the rest."""
        if self._client.status == "running":
            self._note(set(known_workers(self._client)))
            self._client.cancel(self._futures)


@contextmanager
def tasks_on(client: Client, device: str) -> Iterator[Tasks]:
    """Tasks that are given up in the end."""
    tasks = Tasks(client, device)
    try:
        yield tasks
    finally:
        tasks.close()
