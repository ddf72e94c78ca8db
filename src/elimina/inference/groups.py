"""Running a plan in groups of steps, so that a checkpoint keeps what the finished ones made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from elimina.backends import Run, Session
from elimina.backends.base import KeepingSession
from elimina.planning.machine import SAVED
from elimina.planning.plan import Plan
from elimina.planning.sparse import row_bytes
from elimina.semiring import SEMIRINGS

if TYPE_CHECKING:
    from elimina.inference.checkpoint import Checkpoint, State

GROUP_SECONDS = 5.0
"""Estimated seconds that a group takes at least."""

_PAYS = 4
"""Least time of a group, relative to that of writing its messages."""


def ends_of_groups(plan: Plan) -> list[int]:
    """Return the numbers of the steps before which a plan's groups end; one number if one group is best."""
    item = np.dtype(plan.dtype).itemsize
    work, sizes = [step.work for step in plan.steps], [step.out_span * item for step in plan.steps]
    if plan.sparse is not None:
        rows = [math.ceil(min(form.rows, 2.0**62)) for form in plan.sparse.forms]
        work = [count + 1 for count in rows]
        sizes = [count * row_bytes(step.sizes, item) for count, step in zip(rows, plan.steps, strict=True)]
    rate = plan.seconds / max(1, sum(work))
    last = [max(step.readers, default=len(plan.steps)) for step in plan.steps]
    ends: list[int] = []
    begin = live = 0
    elapsed = 0.0
    for number, step in enumerate(plan.steps):
        elapsed += work[number] * rate
        live += sizes[number]
        if not plan.keep:
            read = {o.source for o in step.operands if o.source >= begin}
            live -= sum(sizes[source] for source in read if last[source] == number)
        if elapsed >= max(GROUP_SECONDS, _PAYS * live / SAVED):
            ends.append(number + 1)
            begin, live, elapsed = number + 1, 0, 0.0
    return [*(end for end in ends if end < len(plan.steps)), len(plan.steps)]


class Groups:
    """A plan's groups, run one after another; after each one but the last, its messages are kept.

    Args:
        plan: A plan without slices, whose messages can be fetched after each group.
        checkpoint: Checkpoint that keeps them.
        semiring: Semiring of the run.
        key: Key of this run among others of the same plan.
    """

    def __init__(self, plan: Plan, checkpoint: Checkpoint, semiring: str, key: str) -> None:
        self._plan, self._checkpoint, self._key = plan, checkpoint, key
        self._scaled = SEMIRINGS[semiring].scaled
        self._last = [max(step.readers, default=len(plan.steps)) for step in plan.steps]
        known: State = checkpoint.steps
        self._state: State = known if known.get("key") == key else {"key": key, "done": 0, "files": [], "peaks": []}

    def run(self, session: Session, ends: list[int], report: Callable[[float], None]) -> Iterator[Run]:
        """Run what is not known yet."""
        self._restore(session)
        total = max(1, self._plan.work)
        done = sum(step.work for step in self._plan.steps[: self._state["done"]])
        for end in (end for end in ends if end > self._state["done"]):
            begin = self._state["done"]
            share = sum(step.work for step in self._plan.steps[begin:end])

            def progress(part: float, done: int = done, share: int = share) -> None:
                report((done + part * share) / total)

            run = session.run(np.arange(begin, end, dtype=np.int64), progress)
            done += share
            yield run
            if end < len(self._plan.steps):
                self._save(session, begin, end, run)
                report(done / total)

    def _restore(self, session: Session) -> None:
        for saved, steps in self._state["files"]:
            data = self._checkpoint.read_messages(saved)
            at = 0
            for number, size in steps:
                if isinstance(session, KeepingSession):
                    session.load_message(number, data[at : at + size])
                else:
                    session.load(self._plan.steps[number].out_offset, data[at : at + size].view(self._plan.dtype))
                at += size
        if self._state["peaks"]:
            session.load_peaks(np.array(self._state["peaks"]))

    def _save(self, session: Session, begin: int, end: int, run: Run) -> None:
        sizes: list[list[int]] = []

        def arrays() -> Iterator[NDArray[np.generic]]:
            for number in (n for n in range(begin, end) if self._is_needed(n, end)):
                step = self._plan.steps[number]
                if isinstance(session, KeepingSession):
                    array: NDArray[np.generic] = session.fetch_message(number)
                else:
                    array = session.fetch(step.out_offset, step.out_span)
                sizes.append([number, array.nbytes])
                yield array

        files = [pair for pair in self._state["files"] if any(self._is_needed(n, end) for n, _ in pair[1])]
        files.append([self._checkpoint.save_messages(end, arrays()), sizes])
        peaks = run.peaks.tolist() if self._scaled else []
        self._state = {"key": self._key, "done": end, "files": files, "peaks": peaks}
        self._checkpoint.save_steps(self._state)
        self._checkpoint.drop_messages([saved[0] for saved, _ in files])

    def _is_needed(self, number: int, end: int) -> bool:
        return self._plan.keep or self._last[number] >= end
