"""DPOP and its relatives with agents on the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import pickle
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from elimina import arguments
from elimina._core import Stopped, stopped
from elimina.dcop.dpop import Efforts
from elimina.dcop.problem import AgentView, Problem, Settings, names_in_errors, views
from elimina.dcop.simulator import Figures
from elimina.dcop.solve import (
    DEFAULT,
    AgentOptions,
    Algorithm,
    answer,
    early_answer,
    partial_statistics,
    settings_of,
    statistics,
)
from elimina.distributed.agent_host import AgentHost, News, Outcome, Start, Traffic, Traversals
from elimina.distributed.cluster import known_workers, workers_for
from elimina.errors import ClusterError, EliminaError, InputError, InternalError
from elimina.option_names import option
from elimina.planning.order import pseudo_tree_order
from elimina.result import Result
from elimina.strategies.call import Call

if TYPE_CHECKING:
    from distributed import Actor, Client, Future


def in_sequence(problem: Problem) -> list[int]:
    """Return the agents' indices, depth first through the graph with edges between agents that share cost functions.

    Each component begins with the agent that has the most neighbours. An agent's neighbours are visited in order of
    their numbers of neighbours, the largest first. By default, the token that builds the pseudo-tree takes the same
    course, so agents that are adjacent in the sequence are usually close in the pseudo-tree.
    """
    scopes = [sorted({problem.owners[v] for v in table.scope}) for table in problem.model.factors]
    return list(pseudo_tree_order([1] * len(problem.agents), scopes)[::-1])


def divide(sequence: Sequence[int], weights: Sequence[int], count: int) -> list[list[int]]:
    """Cut a sequence of agents into parts of about the same total weight.

    Args:
        sequence: Indices of the agents, in sequence.
        weights: Weights of all agents, in index order.
        count: Number of parts; some may be empty.
    """
    shares: list[list[int]] = [[] for _ in range(count)]
    total, reached = sum(weights[agent] for agent in sequence), 0
    for agent in sequence:
        # The weights lie next to each other on a line, which is cut into equal parts. An agent belongs to the part
        # with the middle of its weight.
        shares[min(count - 1, (2 * reached + weights[agent]) * count // max(1, 2 * total))].append(agent)
        reached += weights[agent]
    return shares


_POLL = 0.01
_CHECK_SECONDS = 0.04
"""Seconds between checks of the workers and of the call's end; less than the 0.05 s that an ending call waits for its
work to stop."""

_NEWS_SECONDS = 2.0
"""Seconds after which all agent hosts are asked for news, in case an event was lost."""

_ANSWER_SECONDS = 1.0
"""Seconds without an answer after which a worker's presence is checked."""

_REACH_SECONDS = 60.0
"""Seconds after which an unreachable worker ends the run, unless it is found to be lost earlier."""

_REPLACEMENT_SECONDS = 20.0
"""Seconds to wait for new workers when all were lost."""


@arguments.with_checked_keywords(AgentOptions, "elimina.dcop.AgentOptions")
def solve_agents(
    problem: Problem,
    algorithm: Algorithm = "dpop",
    *,
    client: Client,
    memory: int | str | None = None,
    threads: int | None = 1,
    time_limit: float | None = None,
    options: AgentOptions = DEFAULT,
) -> Result:
    """Find the best assignment by agents on the workers of a cluster.

    Messages go from worker to worker. If a worker is lost, its agents start again on other workers and receive their
    messages again. If the pseudo-tree is not yet known, and in MB-DPOP, all agents start again.

    Args:
        problem: Problem, as in ``elimina.dcop.solve``.
        algorithm: Algorithm, as in ``elimina.dcop.solve``.
        client: Client of the cluster.
        memory: Memory limit of each agent, as in ``elimina.dcop.solve``.
        threads: Number of CPU threads of an agent, as in ``elimina.dcop.solve``.
        time_limit: Time limit in seconds, as in ``elimina.dcop.solve``.
        options: Options, as in ``elimina.dcop.solve``: ``ibound``, ``agents`` (``cpu``, or ``cuda`` on workers that
            announce GPUs), ``heuristic``, ``seed``.

    Returns:
        The result, as of ``elimina.dcop.solve`` but without simulated clocks. Besides, ``stats`` has ``workers``,
        ``lost_workers``, ``joined_workers``, ``restarted_agents`` and ``transferred_bytes`` (between workers); messages
        are those of the remaining workers.

    Raises:
        InputError: An option makes no sense, or costs are too far apart for exact integers.
        MemoryLimitError: A table does not fit an agent's memory.
        DeviceError: The device is missing, unusable or out of memory.
        ClusterError: There are no usable workers (any more).
    """
    call = Call("dcop", arguments.seconds("time_limit", time_limit))
    call.fallback = lambda _: early_answer(problem)
    settings = settings_of(problem.model, algorithm, options, memory)
    if options.agents not in ("cpu", "cuda"):
        raise InputError(f"on a cluster, agents compute on cpu or cuda, not on {options.agents!r}")
    if options.filtering is not None:
        raise InputError(f"filtering is not supported on a cluster: leave out {option('filtering')}")
    with call.phase("setup"):
        run = _ClusterRun(client, problem, settings, options.agents, threads)
    stats: dict[str, Any] = partial_statistics(len(problem.agents), Efforts(), Figures(0.0, 0, {}, {}, 0, 0))
    transferred = 0

    def work() -> None:
        nonlocal stats, transferred
        with call.phase("run"), names_in_errors(problem.model):
            outcomes = run.outcomes()
        traffic = run.traffic()
        result = answer(problem, outcomes)
        figures = Figures(0.0, 0, traffic.messages, traffic.bytes, traffic.largest, 0)
        complete = statistics(problem, outcomes, figures)
        for name in ("simulated_seconds", "nonconcurrent_operations", "repeated"):
            del complete[name]
        stats, transferred = complete, traffic.transferred
        call.report(result)

    try:
        result = call.answer(work)
    finally:
        run.close(call.best_result is not None)
    labels = {"algorithm": algorithm, "ibound": options.ibound, "device": options.agents}
    seconds = result.stats["seconds"]
    return result.replace(
        stats={**stats, **labels, **run.figures, "transferred_bytes": transferred, "seconds": seconds}
    )


class _HostRecord:
    """The client's record of an agent host.

    Attributes:
        agents: Names of the agents that it runs.
        outcomes: Results and traffic of its agents; None while they are not done.
    """

    def __init__(self, address: str, future: Future[Any]) -> None:
        self.address, self.future = address, future
        self.actor: Actor | None = None
        self.agents: set[str] = set()
        self.has_traversals = False
        self.outcomes: tuple[dict[str, Outcome], Traffic] | None = None

    @property
    def is_lost(self) -> bool:
        """True if its worker was lost."""
        return self.future.status not in ("pending", "finished")


class _ClusterRun:
    """A run of agents: the agent hosts, the host of each agent, and the recovery from the loss of workers.

    Attributes:
        workers: Number of workers at the start.
        lost: Number of workers that were lost.
        joined: Number of workers that came later and were given agents of lost ones.
        restarted: Number of agents that were started again.
    """

    def __init__(self, client: Client, problem: Problem, settings: Settings, device: str, threads: int | None) -> None:
        self._client, self._settings, self._device, self._threads = client, settings, device, threads
        view_of = views(problem, settings)
        self._views: dict[str, AgentView] = {view_of[agent].name: view_of[agent] for agent in in_sequence(problem)}
        self._topic = f"elimina-{uuid.uuid4().hex}"
        self._events: SimpleQueue[str] = SimpleQueue()
        self._records: dict[int, _HostRecord] = {}
        self._traversals: dict[str, Traversals] = {}
        self._hosts: dict[str, int] = {}
        self._epoch = self.lost = self.joined = self.restarted = self._next_number = 0
        client.subscribe_topic(self._topic, self._hear)
        self._open()
        self.workers = len(self._records)

    @property
    def figures(self) -> dict[str, int]:
        """Numbers of workers and agents for ``Result.stats``."""
        return {
            "workers": self.workers,
            "lost_workers": self.lost,
            "joined_workers": self.joined,
            "restarted_agents": self.restarted,
        }

    def outcomes(self) -> list[Outcome]:
        """Run until all agents are done; return their results.

        Raises:
            Stopped: The call has ended.
        """
        if not self._records:
            self._wait_for_workers()
        self._begin()
        last_news = time.monotonic()
        while any(record.outcomes is None for record in self._records.values()):
            if stopped():
                raise Stopped
            try:
                keys = {self._events.get(timeout=_CHECK_SECONDS)}
            except Empty:
                keys = set()
            if time.monotonic() - last_news > _NEWS_SECONDS:
                keys, last_news = {str(record.future.key) for record in self._records.values()}, time.monotonic()
            for record in list(self._records.values()):
                if str(record.future.key) in keys:
                    self._read(record)
            self._recover()
        outcome_of = {
            name: outcome
            for record in self._records.values()
            for name, outcome in self._outcomes_and_traffic(record)[0].items()
        }
        return [outcome_of[name] for name in self._views]

    def traffic(self) -> Traffic:
        """Return the traffic of the agents on the remaining workers."""
        messages: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        largest = transferred = 0
        for record in self._records.values():
            traffic = self._outcomes_and_traffic(record)[1]
            messages += traffic.messages
            sizes += traffic.bytes
            largest, transferred = max(largest, traffic.largest), transferred + traffic.transferred
        return Traffic(messages, sizes, largest, transferred)

    def close(self, is_done: bool) -> None:
        """End all agent hosts, without waiting for those whose agents still work."""
        if self._client.status != "running":
            return
        self._client.unsubscribe_topic(self._topic)
        for record in self._records.values():
            if record.actor is not None and not record.is_lost:
                if is_done:
                    self._ask(record, "stop")
                else:
                    with contextlib.suppress(OSError, RuntimeError, ValueError):
                        record.actor.stop()

    def _hear(self, event: tuple[float, str]) -> None:
        self._events.put(event[1])

    @staticmethod
    def _outcomes_and_traffic(record: _HostRecord) -> tuple[dict[str, Outcome], Traffic]:
        assert record.outcomes is not None
        return record.outcomes

    def _open(self) -> list[int]:
        """Make an agent host on each worker that has none; return the numbers of the new ones."""
        addresses, numbers = {record.address for record in self._records.values()}, []
        for worker in workers_for(self._client, self._device):
            if worker.address in addresses:
                continue
            future = self._client.submit(
                AgentHost,
                self._topic,
                actor=True,
                workers=[worker.address],
                allow_other_workers=False,
                key=f"{self._topic}-{self._next_number}",
            )
            self._records[self._next_number] = _HostRecord(worker.address, future)
            numbers.append(self._next_number)
            self._next_number += 1
        for number in [number for number in numbers if not self._wait_for_host(self._records[number])]:
            del self._records[number]
            numbers.remove(number)
        return numbers

    def _wait_for_host(self, record: _HostRecord) -> bool:
        """Wait for an agent host as long as its worker is there; return whether it was made."""
        asked = time.monotonic()
        while not record.is_lost and record.future.status != "finished":
            time.sleep(_POLL)
            if time.monotonic() - asked > _ANSWER_SECONDS:
                asked = time.monotonic()
                if record.address not in known_workers(self._client):
                    return False
        if not record.is_lost:
            with self._client.as_current():
                record.actor = record.future.result()
        return record.actor is not None

    def _begin(self) -> None:
        """Start all agents."""
        records = list(self._records)
        shares = self._divided(list(self._views), len(records))
        self._hosts = {name: number for number, share in zip(records, shares, strict=True) for name in share}
        self._traversals = {}
        for number, share in zip(records, shares, strict=True):
            self._start(number, share)

    def _start(self, number: int, names: Sequence[str]) -> None:
        """Start agents, if any, on an empty agent host."""
        record = self._records[number]
        record.agents, record.has_traversals, record.outcomes = set(names), False, None
        views = [self._views[name] for name in names]
        start = Start(self._epoch, views, self._hosts, self._addresses, self._device, self._threads)
        self._ask(record, "begin", start)

    @property
    def _addresses(self) -> dict[int, tuple[str, str]]:
        """Worker and actor's key of each agent host."""
        return {number: (record.address, str(record.future.key)) for number, record in self._records.items()}

    def _divided(self, names: Sequence[str], count: int) -> list[list[str]]:
        weights = [max(1, len(self._views[name].variables)) for name in names]
        return [[names[number] for number in share] for share in divide(range(len(names)), weights, count)]

    def _read(self, record: _HostRecord) -> None:
        """Ask an agent host for its news."""
        news: News | None = self._ask(record, "news")
        if news is None:
            return
        if news.failure is not None:
            if isinstance(news.failure, EliminaError):
                raise news.failure
            raise InternalError(f"agents on {record.address}: {news.failure!r}; please report this") from news.failure
        if news.epoch != self._epoch:
            return
        if news.traversals is not None and not record.has_traversals:
            traversals: dict[str, Traversals] = pickle.loads(news.traversals)
            self._traversals.update((name, traversals[name]) for name in traversals.keys() & record.agents)
            record.has_traversals = record.agents <= traversals.keys()
        if news.outcomes is not None:
            outcomes = pickle.loads(news.outcomes)
            if outcomes[0].keys() == record.agents:
                record.outcomes = outcomes

    def _ask(self, record: _HostRecord, method: str, *arguments: Any) -> Any:
        """Call an agent host until it answers; None if its worker is lost."""
        ends = time.monotonic() + _REACH_SECONDS
        while not record.is_lost:
            try:
                waiting = getattr(record.actor, method)(*arguments)
                while not record.is_lost:
                    with contextlib.suppress(TimeoutError):
                        return waiting.result(timeout=_ANSWER_SECONDS)
            except (OSError, RuntimeError, ValueError) as error:
                # Dask raises one of these if a worker cannot be reached; if it is lost, the future's status shows that.
                if time.monotonic() > ends:
                    raise ClusterError(
                        f"worker {record.address} is connected to the scheduler, but cannot be reached ({error}); "
                        "check the network between the scheduler and it"
                    ) from error
            time.sleep(_CHECK_SECONDS)
        return None

    def _recover(self) -> None:
        """Start agents of lost workers again, on workers that have joined since or else on all.

        All agents start again in three cases: the pseudo-tree is not known yet, the algorithm is MB-DPOP, or no worker
        is left.
        """
        lost = [number for number, record in self._records.items() if record.is_lost]
        if not lost:
            return
        lost_agents = {name for number in lost for name in self._records.pop(number).agents}
        self.lost += len(lost)
        new = self._open() if known_workers(self._client) else []
        is_tree_known = self._traversals.keys() >= self._views.keys()
        if self._records and is_tree_known and self._settings.most_cells is None:
            self.restarted += len(lost_agents)
            self._adopt([name for name in self._views if name in lost_agents], lost, new)
        else:
            if not self._records:
                new = self._wait_for_workers()
            self.restarted += len(self._views)
            self._epoch += 1
            self._begin()
        self.joined += len(new)

    def _adopt(self, lost_agents: Sequence[str], lost: Sequence[int], new: Sequence[int]) -> None:
        """Start lost agents on new agent hosts (on all, if there are no new ones), and send their messages again."""
        takers = list(new or self._records)
        shares = self._divided(lost_agents, len(takers))
        # All agent hosts learn the new places last; until then, messages to these agents wait in the senders' logs.
        for number in new:
            self._start(number, ())
        moved = {name: number for number, share in zip(takers, shares, strict=True) for name in share}
        self._hosts = {**self._hosts, **moved}
        for number, share in zip(takers, shares, strict=True):
            record = self._records[number]
            if share:
                record.agents.update(share)
                record.outcomes = None
                self._ask(
                    record, "adopt", [self._views[name] for name in share], {n: self._traversals[n] for n in share}
                )
        for record in self._records.values():
            self._ask(record, "redirect", moved, lost, self._addresses)

    def _wait_for_workers(self) -> list[int]:
        """Continue with new workers, if there are any, and return the numbers of their agent hosts."""
        ends = time.monotonic() + _REPLACEMENT_SECONDS
        while True:
            if known_workers(self._client) and (new_hosts := self._open()):
                return new_hosts
            if time.monotonic() > ends:
                raise ClusterError(
                    f"all {self.lost} workers were lost, and no other one came within {_REPLACEMENT_SECONDS:g} s; "
                    "check their logs (out of memory?), and start again with more of them"
                )
            time.sleep(_CHECK_SECONDS)
