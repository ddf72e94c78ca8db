"""Cases of a batch on the workers of a cluster."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from elimina.distributed.cluster import tasks_on, workers_for
from elimina.distributed.slices import least_memory
from elimina.inference.batch import Batch
from elimina.inference.options import Options
from elimina.inference.posteriors import Posteriors
from elimina.io.cases import Codes
from elimina.model import Model

if TYPE_CHECKING:
    from distributed import Client

_SHARES = 4
"""Tasks for each worker."""

_LEAST_CASES = 256
"""Fewest cases of a task, so that it outweighs the transfers around it."""


class _Job(NamedTuple):
    """Data that all tasks of a batch share; a worker caches by the key the objects made from them."""

    key: str
    model: Model
    columns: tuple[int, ...]
    asked: tuple[int, ...] | None
    options: Options
    cases: int


class ClusterBatch:
    """Answers cases as ``Batch`` does, on the workers of a cluster; those of a lost worker are answered by others.

    Args:
        client: Client of the cluster.
        model: Model, as for ``Batch``.
        columns: Observed variables, as for ``Batch``.
        asked: Variables whose posteriors are wanted, as for ``Batch``.
        options: Planning options; ``memory`` and ``threads`` are per task. None: 60 % of the memory that Dask allows a
            worker, and one thread.
        count: Number of cases, as for ``Batch``.

    Raises:
        DeviceError: No worker has the device.
        ClusterError: There are no usable workers.
    """

    def __init__(
        self,
        client: Client,
        model: Model,
        columns: Sequence[int],
        asked: Sequence[int] | None,
        options: Options,
        count: int,
    ) -> None:
        device = "cpu" if options.chooses_device else options.device
        workers = workers_for(client, device)
        memory = least_memory(workers) if options.room is None and device == "cpu" else options.room
        options = options._replace(device=device, memory=memory, threads=options.threads or 1)
        self._client, self._device = client, device
        self._lanes = sum(worker.lanes(device) for worker in workers)
        kept = None if asked is None else tuple(asked)
        self._job = _Job(uuid.uuid4().hex, model, tuple(columns), kept, options, -(-count // self._lanes))

    def run(self, values: Codes, progress: Callable[[float], None] | None = None) -> Posteriors:
        """Answer cases: see ``Batch.run``.

        Raises:
            InputError: The model has costs, or an option makes no sense.
            MemoryLimitError: Not even a few cases fit.
            ClusterError: There are no workers any more.
        """
        size = max(_LEAST_CASES, -(-len(values) // (_SHARES * self._lanes)))
        starts = range(0, len(values), size) or range(1)
        found: dict[int, Posteriors] = {}
        with tasks_on(self._client, self._device) as tasks:
            shared = tasks.keep(_held, self._job)
            for start in starts:
                tasks.submit(_answer, shared, values[start : start + size], start)
            for _ in starts:
                start, posteriors = tasks.next()
                found[start] = posteriors
                if progress is not None:
                    progress(len(found) / len(starts))
        parts = [found[start] for start in starts]
        marginals = {name: np.concatenate([part.marginals[name] for part in parts]) for name in parts[0].marginals}
        log10_evidence = np.concatenate([part.log10_evidence for part in parts])
        return Posteriors(marginals, log10_evidence, parts[0].variables)


_made: dict[str, Batch] = {}
_making = threading.Lock()


def _held(job: _Job) -> _Job:
    return job


def _answer(job: _Job, values: Codes, start: int) -> tuple[int, Posteriors]:
    """Answer some cases; a worker keeps its plan for the next chunk of the batch."""
    with _making:
        if job.key not in _made:
            for batch in _made.values():
                batch.close()
            _made.clear()
            _made[job.key] = Batch(job.model, job.columns, job.asked, job.options, job.cases)
        batch = _made[job.key]
    return start, batch.run(values)
