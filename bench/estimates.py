"""Calls of `solve` in processes of their own, with a hard limit, and the distance of their answers from a reference."""

from __future__ import annotations

import math
import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np

import elimina
from elimina.methods import estimation

BUILD_SECONDS = 180.0
"""Seconds that a process may take to start and to read or make its model."""
OVERRUN, SPARE_SECONDS = 2.0, 5.0
"""Times its limit after which a call is killed, and seconds more."""
UNLIMITED_SECONDS = 300.0
"""Limit of a call without one."""
PROBE_SECONDS = 0.1
"""Processor time of the loop that measures the share of the processor which a call gets."""
NO_ANSWER = "no answer"

Evidence = Mapping[str | int, str | int]
Builder = Callable[[], tuple[elimina.Model, Evidence]]
Shares = dict[str, list[float]]


class Question(NamedTuple):
    """A call of `solve`, whose model and evidence a function makes in its process.

    Its seconds are those of processor time: on a busy machine, the time limit is longer by the slowdown of a loop just
    before, and the call is interrupted when it has had its seconds.

    The method is `auto`, or the function of one of the approximate methods, without the others.
    """

    build: Builder
    task: str
    seconds: float | None = None
    memory: str | None = None
    method: str = "auto"
    device: str = "cpu"
    threads: int | None = 1
    is_exact: bool = False


class Answer(NamedTuple):
    """Figures of an answer; without one, the status is `no answer`, and the message is the error."""

    status: str
    message: str = ""
    method: str = ""
    seconds: float = math.nan
    processor_seconds: float = math.nan
    log10_z: float | None = None
    lower: float | None = None
    upper: float | None = None
    error: float | None = None
    shares: Shares | None = None


class Reference(NamedTuple):
    """Marginals of some variables and log10 Z, as far as they are known, and the way they were computed."""

    shares: Shares
    log10_z: float | None
    source: str


class Distance(NamedTuple):
    """Mean and largest Hellinger distance of marginals, and the error of log10 Z; None where there is none."""

    mean: float | None
    largest: float | None
    log10_z: float | None


def answer_of(question: Question) -> Answer:
    """Answer a question in a process of its own, which is killed if it overruns."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(question, sender))
    process.start()
    sender.close()
    try:
        message = "not ready in time"
        if receiver.poll(BUILD_SECONDS):
            limit = OVERRUN * receiver.recv() + SPARE_SECONDS
            message = f"killed after {limit:g} s"
            if receiver.poll(limit):
                answer: Answer = receiver.recv()
                return answer
    except EOFError:
        message = "the process died"
    finally:
        process.kill()
        process.join()
    return Answer(NO_ANSWER, message)


def _answer(question: Question, sender: Connection) -> None:
    model, evidence = question.build()
    limit = None if question.seconds is None else question.seconds * slowdown()
    sender.send(limit or UNLIMITED_SECONDS)
    options = elimina.Options(threads=question.threads, exact=question.is_exact)
    if question.method != "auto":
        estimation.METHODS = tuple(row for row in estimation.METHODS if row.method.run.__name__ == question.method)
    begun, processor_begun = time.perf_counter(), time.process_time()
    signal.signal(signal.SIGPROF, _interrupt)
    signal.setitimer(signal.ITIMER_PROF, question.seconds or 0)
    try:
        result = elimina.solve(
            model,
            question.task,
            evidence=evidence,
            device=question.device,
            memory=question.memory,
            time_limit=limit,
            options=options,
        )
    except (elimina.EliminaError, KeyboardInterrupt) as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        answer = Answer(NO_ANSWER, f"{type(error).__name__}: {error}")
    else:
        signal.setitimer(signal.ITIMER_PROF, 0)
        shares = (
            {name: list(states.values()) for name, states in result.marginals.items()} if result.marginals else None
        )
        answer = Answer(
            result.status,
            "",
            str(result.stats.get("method") or result.stats.get("structure") or ""),
            log10_z=result.log10_z,
            lower=result.lower_bound,
            upper=result.upper_bound,
            error=result.error,
            shares=shares,
        )
    seconds, processor_seconds = time.perf_counter() - begun, time.process_time() - processor_begun
    sender.send(answer._replace(seconds=seconds, processor_seconds=processor_seconds))


def slowdown() -> float:
    """Return the seconds that pass for each second of processor time: more than 1 on a busy machine."""
    begun, processor_begun = time.perf_counter(), time.process_time()
    while time.process_time() - processor_begun < PROBE_SECONDS:
        pass
    return (time.perf_counter() - begun) / (time.process_time() - processor_begun)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def hellinger(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the Hellinger distance of two distributions, from 0 to 1."""
    return float(np.sqrt(0.5 * np.square(np.sqrt(one) - np.sqrt(other)).sum()))


def distance(answer: Answer, reference: Reference) -> Distance:
    """Return the distance of an answer from the reference."""
    distances = []
    if answer.shares is not None:
        distances = [hellinger(answer.shares[name], states) for name, states in reference.shares.items()]
    both_z = answer.log10_z is not None and reference.log10_z is not None
    return Distance(
        float(np.mean(distances)) if distances else None,
        max(distances, default=None),
        difference(answer.log10_z, reference.log10_z) if both_z else None,
    )


def difference(one: float | None, other: float | None) -> float | None:
    """Return how far two logarithms lie apart; both may be minus infinity."""
    if one is None or other is None:
        return None
    return 0.0 if one == other else abs(one - other)


def unobserved(shares: Mapping[str, Sequence[float]], evidence: Evidence, model: elimina.Model) -> Shares:
    """Return the marginals of the variables that are not observed."""
    observed = {model.variables[key].name if isinstance(key, int) else key for key in evidence}
    return {name: list(states) for name, states in shares.items() if name not in observed}
