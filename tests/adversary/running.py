"""Workers that run cases until time is up, each case under a watchdog."""

from __future__ import annotations

import faulthandler
import logging
import multiprocessing
import os
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, TextIO

from tests.adversary.case import Setting, kind_of, make
from tests.adversary.shrinking import failure_of, shrink, signature
from tests.devices import GPUS_FILE, hold_gpus

WATCHDOG = 60
"""Seconds of a case, after which it counts as hung."""

SHRINKING = 30.0
"""Seconds to make a case smaller."""

CORES = 2
"""Cores of a worker: its calls start no more threads than these, however large the machine is."""

_CASE_BYTES = 64
"""First bytes of a worker's log: the case that runs."""


class Failure(NamedTuple):
    """A case that failed.

    Attributes:
        kind: Its kind.
        seed: Seed that makes it again.
        signature: Features that failures of the same cause share.
        report: A short program and what happens.
    """

    kind: str
    seed: int
    signature: str
    report: str


class Job(NamedTuple):
    """The work of one worker process.

    Attributes:
        kinds: In turn.
        first: Seed of the first case.
        step: Distance of its seeds.
        until: End, by ``time.monotonic``.
        most: Cases of each kind, if not None.
        setting: Options of all cases.
        cores: Cores to run on.
    """

    kinds: Sequence[str]
    first: int
    step: int
    until: float
    most: int | None
    setting: Setting
    cores: Sequence[int]


def attack(
    kinds: Sequence[str],
    seed: int,
    seconds: float,
    jobs: int,
    setting: Setting,
    most: int | None = None,
    tell: Callable[[Failure], None] = lambda _: None,
) -> tuple[dict[str, int], list[Failure]]:
    """Run cases on a few workers, starting another where one hangs or crashes.

    Args:
        kinds: Kinds of cases, which take turns.
        seed: First seed.
        seconds: Time to run for.
        jobs: Workers.
        setting: See there.
        most: Cases of each kind and worker, if not None.
        tell: Called with the first failure of each signature when it is found.

    Returns:
        Cases run of each kind, and the failures, one of each signature. An interrupt ends the workers, and returns what
        they have reported by then.
    """
    for kind in kinds:
        kind_of(kind)  # some modules set handlers of signals, which only the main thread may
    until = time.monotonic() + seconds
    cores = sorted(os.sched_getaffinity(0))
    watched = [
        _Watched(Job(kinds, seed + n, jobs, until, most, setting, [cores[(n + k) % len(cores)] for k in range(CORES)]))
        for n in range(jobs)
    ]
    failures: dict[str, Failure] = {}

    def heard(failure: Failure) -> None:
        if failures.setdefault(failure.signature, failure) is failure:
            tell(failure)

    with ThreadPoolExecutor(jobs) as pool:
        runs = [pool.submit(worker.run, heard) for worker in watched]
        try:
            for run in runs:
                run.result()
        except KeyboardInterrupt:
            for worker in watched:
                worker.stop()
    return {kind: sum(worker.counts.get(kind, 0) for worker in watched) for kind in kinds}, list(failures.values())


class _Watched:
    """A worker process, begun again behind the case that ended it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.counts: dict[str, int] = {}
        self.is_stopped = False
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        handle, self.log = tempfile.mkstemp(prefix="adversary-")
        os.close(handle)
        self.pipe, far = context.Pipe()
        self.process = context.Process(target=_work, args=(self.job, far, self.log), daemon=True)
        self.process.start()
        far.close()

    def stop(self) -> None:
        """End the worker where it is."""
        self.is_stopped = True
        self.process.kill()

    def run(self, heard: Callable[[Failure], None]) -> None:
        """Collect what the worker says until it is done."""
        while True:
            try:
                while True:
                    what, value = self.pipe.recv()
                    if what == "counts":
                        for kind, number in value.items():
                            self.counts[kind] = self.counts.get(kind, 0) + number
                    elif what == "failure":
                        heard(value)
                    elif what == "done":
                        self.process.join()
                        os.unlink(self.log)
                        return
            except EOFError:
                self.process.join()
            if self.is_stopped:
                os.unlink(self.log)
                return
            self._bury(heard)
            self.start()

    def _bury(self, heard: Callable[[Failure], None]) -> None:
        with open(self.log) as file:
            running, stacks = file.read(_CASE_BYTES).split(), file.read()
        os.unlink(self.log)
        if not running:
            raise RuntimeError(
                f"a worker ended with exit code {self.process.exitcode} before its first case:\n{stacks}"
            )
        kind, seed = running[0], int(running[1])
        what = f"hung or crashed (exit code {self.process.exitcode})"
        place = next((line.strip() for line in stacks.splitlines() if "elimina/" in line), "")
        case = make(kind, seed, self.job.setting)
        report = f"{kind_of(kind).script(case)}\n# {what}\n{stacks}"
        heard(Failure(kind, seed, f"{what} {place}", report))
        self.job = self.job._replace(first=seed + self.job.step)


def _work(job: Job, pipe: Connection, log: str) -> None:
    os.sched_setaffinity(0, job.cores)
    with open(log, "w") as file:
        file.write(" " * _CASE_BYTES)
        file.flush()
        faulthandler.enable(file)
        warnings.simplefilter("error")
        logging.disable()
        _run_cases(job, pipe, file)
        faulthandler.disable()


def _run_cases(job: Job, pipe: Connection, file: TextIO) -> None:
    known: set[str] = set()
    counts: dict[str, int] = {}
    seed, said = job.first, time.monotonic()
    while time.monotonic() < job.until and (job.most is None or (seed - job.first) // job.step < job.most):
        for kind in job.kinds:
            os.pwrite(file.fileno(), f"{kind} {seed}".ljust(_CASE_BYTES).encode(), 0)
            faulthandler.cancel_dump_traceback_later()
            with _gpus(kind, job.setting):
                faulthandler.dump_traceback_later(WATCHDOG, exit=True, file=file)
                case = make(kind, seed, job.setting)
                error = failure_of(kind, case)
                counts[kind] = counts.get(kind, 0) + 1
                if error is not None and signature(error) not in known:
                    known.add(signature(error))
                    pipe.send(("failure", _failure(kind, seed, case, error, file)))
        if time.monotonic() > said + 1:
            pipe.send(("counts", counts))
            counts, said = {}, time.monotonic()
        seed += job.step
    faulthandler.cancel_dump_traceback_later()
    pipe.send(("counts", counts))
    pipe.send(("done", None))


def _gpus(kind: str, setting: Setting) -> AbstractContextManager[None]:
    """Share the GPUs with other workers, or hold them alone for a case that fills their memory."""
    if setting.device == "cpu":
        return nullcontext()
    return hold_gpus(GPUS_FILE, alone=getattr(kind_of(kind), "FILLS_GPUS", False))


def _failure(kind: str, seed: int, case: dict[str, Any], error: BaseException, file: TextIO) -> Failure:
    module, name = kind_of(kind), signature(error)

    def fails(simpler: dict[str, Any]) -> bool:
        faulthandler.dump_traceback_later(WATCHDOG, exit=True, file=file)
        found = failure_of(kind, simpler)
        return found is not None and signature(found) == name

    small = shrink(case, fails, module.smaller, SHRINKING)
    last = failure_of(kind, small) or error
    stack = "".join(f"#   {line}\n" for line in "".join(traceback.format_exception(last)).splitlines()[-12:])
    return Failure(kind, seed, name, f"{module.script(small)}\n{stack}")
