"""The agent host of a worker: a Dask actor that runs the worker's agents and sends their messages to other workers.

Messages go from worker to worker. The sender keeps UTIL and VALUE messages for agents that are restarted after the loss
of a worker (sender-based message logging: D. Johnson and W. Zwaenepoel, FTCS 1987). This works because each message
only depends on messages that its sender received before, and because a receiver recognises a repeated message by its
number.
"""

from __future__ import annotations

import asyncio
import pickle
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import NamedTuple

import numpy as np

from elimina._core import Traversal
from elimina.dcop.agent import Agent
from elimina.dcop.dpop import Effort
from elimina.dcop.engine import Engine
from elimina.dcop.problem import TRAVERSAL, AgentView, Message, Util, Value

_IDLE_CHECK_SECONDS = 1.0
"""Seconds after which an idle agent host checks whether it is still needed."""

_RESEND_SECONDS = 0.2
"""Seconds until a message is sent again to a worker that cannot be reached."""

Traversals = Mapping[int, Traversal]


class Outcome(NamedTuple):
    """Results of an agent that has finished.

    Attributes:
        values: The value of each of the agent's variables; None if no value is allowed.
        bounds: Lower bound on the cost of the tree of each root among these variables.
        traversals: Positions of these variables in the pseudo-tree.
        efforts: Work of eliminating each variable.
    """

    values: dict[int, int | None]
    bounds: dict[int, int | float]
    traversals: Traversals
    efforts: list[Effort]


class Traffic(NamedTuple):
    """Traffic sent by the agents of an agent host.

    Attributes:
        messages: Number of messages by kind.
        bytes: Bytes of the messages by kind.
        largest: Bytes of the largest message.
        transferred: Bytes of the messages to other workers.
    """

    messages: Counter[str]
    bytes: Counter[str]
    largest: int = 0
    transferred: int = 0


class News(NamedTuple):
    """Progress of an agent host.

    Attributes:
        epoch: See ``Start``; -1: nothing has begun.
        traversals: Traversals of each agent's variables by its name, pickled, once all are known.
        outcomes: Outcome of each agent by its name, and the traffic, pickled, when all are done.
        failure: Cause that ended the agent host.
    """

    epoch: int
    traversals: bytes | None = None
    outcomes: bytes | None = None
    failure: BaseException | None = None


class Start(NamedTuple):
    """Initial data of an agent host.

    Attributes:
        epoch: Number of times that all agents were started; messages of earlier epochs are dropped.
        views: Views of its agents.
        hosts: Number of each agent's host, by the agent's name.
        addresses: Worker and actor's key of each agent host.
        device: Device of the agents.
        threads: Number of CPU threads of an agent.
    """

    epoch: int
    views: Sequence[AgentView]
    hosts: dict[str, int]
    addresses: dict[int, tuple[str, str]]
    device: str
    threads: int | None


class _Packet(NamedTuple):
    """A message with its number among messages of the same kind between the same variables."""

    number: int
    message: Message

    @property
    def key(self) -> tuple[bool, int, int, int]:
        """Key that is unique in an epoch; an agent that is started again sends the same message with the same key."""
        return (isinstance(self.message.body, TRAVERSAL), self.message.source, self.message.target, self.number)


class Parcel(NamedTuple):
    """Packets of an epoch: see ``Start``."""

    epoch: int
    packets: list[_Packet]


class _Link:
    """Packets to send to another agent host, and a flag that is set while packets are being sent."""

    def __init__(self, address: str, key: str) -> None:
        self.address, self.key = address, key
        self.packets: deque[_Packet] = deque()
        self.is_busy = self.is_closed = False


class AgentHost:
    """A host that runs agents in a separate thread; calls of its methods from other workers return at once.

    Args:
        topic: Topic of the events that announce news.
    """

    def __init__(self, topic: str) -> None:
        from distributed import get_worker

        self._worker, self._topic = get_worker(), topic
        self._key = self._worker.get_current_task()
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._pool = ThreadPoolExecutor(1, "elimina-agents")
        self._thread: Future[None] | None = None
        self._over = False
        self._early: list[Parcel] = []
        self._reset(-1)

    async def begin(self, start: Start) -> None:
        """Start agents from an empty state."""
        self._inbox.put(partial(self._begin, start))
        if self._thread is None:
            self._thread = self._pool.submit(self._serve)
            self._thread.add_done_callback(self._log_key)
            self._pool.shutdown(wait=False)

    async def receive(self, batch: Parcel) -> None:
        """Receive messages from another agent host."""
        self._inbox.put(partial(self._receive, batch))

    async def adopt(self, views: Sequence[AgentView], traversals: dict[str, Traversals]) -> None:
        """Start agents of a lost worker, in the known pseudo-tree."""
        self._inbox.put(partial(self._adopt, views, traversals))

    async def redirect(self, hosts: dict[str, int], lost: Sequence[int], addresses: dict[int, tuple[str, str]]) -> None:
        """Record the new hosts of agents whose agent hosts were lost, and send these agents their messages again."""
        self._inbox.put(partial(self._redirect, hosts, lost, addresses))

    async def news(self) -> News:
        """Return the progress."""
        is_done = self._thread is not None and self._thread.done()
        failure = self._thread.exception() if is_done and self._thread is not None else None
        return self._news._replace(failure=failure)

    async def stop(self) -> None:
        """End the host."""
        self._over = True
        self._inbox.put(lambda: None)

    def _reset(self, epoch: int) -> None:
        self._epoch = epoch
        self._agents: dict[str, Agent] = {}
        self._hosts: dict[str, int] = {}
        self._links: dict[int, _Link] = {}
        self._local: deque[_Packet] = deque()
        self._ready: deque[Agent] = deque()
        self._numbers: Counter[tuple[bool, int, int]] = Counter()
        self._received: set[tuple[bool, int, int, int]] = set()
        self._log: dict[str, list[_Packet]] = {}
        self._waiting: dict[tuple[int, int], _Packet] = {}
        self._news = News(epoch)
        self._traffic = Traffic(Counter(), Counter())

    def _serve(self) -> None:
        """Handle all pending calls and messages, then eliminate one variable, and repeat."""
        try:
            while not self._over:
                self._deliver()
                self._report_progress()
                try:
                    command = self._inbox.get(block=not self._ready, timeout=_IDLE_CHECK_SECONDS)
                except Empty:
                    self._over = self._over or self._is_unwanted()
                    if self._ready:
                        self._eliminate()
                else:
                    command()
        finally:
            self._close()

    def _is_unwanted(self) -> bool:
        """Return whether the client has disconnected, or the worker is shutting down."""
        return self._key not in self._worker.state.actors or self._worker.status.name in ("closing", "closed", "failed")

    def _close(self) -> None:
        for link in self._links.values():
            link.is_closed = True

    def _begin(self, start: Start) -> None:
        if start.epoch <= self._epoch:
            return
        self._close()
        self._reset(start.epoch)
        self._hosts = dict(start.hosts)
        self._links = {number: _Link(*address) for number, address in start.addresses.items()}
        self._engine = Engine(start.device, start.threads)
        for view in start.views:
            self._agents[view.name] = Agent(view, self._engine)
        for agent in list(self._agents.values()):
            self._pass_on(agent, agent.start())
        early, self._early = self._early, []
        for batch in early:
            self._receive(batch)

    def _adopt(self, views: Sequence[AgentView], traversals: dict[str, Traversals]) -> None:
        self._news = News(self._epoch, self._news.traversals)
        for view in (view for view in views if view.name not in self._agents):
            agent = self._agents[view.name] = Agent(view, self._engine, traversals[view.name])
            self._pass_on(agent, agent.start())

    def _redirect(self, hosts: dict[str, int], lost: Sequence[int], addresses: dict[int, tuple[str, str]]) -> None:
        for number in lost:
            if number in self._links:
                self._links.pop(number).is_closed = True
        for number in addresses.keys() - self._links.keys():
            self._links[number] = _Link(*addresses[number])
        self._hosts.update(hosts)
        for name in hosts:
            for packet in self._log.get(name, ()):
                self._route(packet)

    def _receive(self, batch: Parcel) -> None:
        if batch.epoch > self._epoch:
            self._early.append(batch)
        elif batch.epoch == self._epoch:
            self._local.extend(batch.packets)

    def _deliver(self) -> None:
        """Deliver messages to agents, each message once."""
        while self._local:
            packet = self._local.popleft()
            message = packet.message
            if packet.key in self._received:
                continue
            if isinstance(message.body, Value) and not self._numbers[False, message.target, message.source]:
                # This VALUE message was sent again to a restarted agent. It waits until the agent has eliminated the
                # variable.
                self._waiting[message.target, message.source] = packet
                continue
            self._received.add(packet.key)
            agent = self._agents[message.receiver]
            self._pass_on(agent, agent.receive(message))

    def _eliminate(self) -> None:
        agent = self._ready.popleft()
        self._pass_on(agent, agent.work())

    def _pass_on(self, agent: Agent, messages: Sequence[Message]) -> None:
        """Send an agent's messages, and queue the agent if it has work."""
        for message in messages:
            self._post(message)
        if agent.has_work and agent not in self._ready:
            self._ready.append(agent)

    def _post(self, message: Message) -> None:
        is_tree = isinstance(message.body, TRAVERSAL)
        link_key = (is_tree, message.source, message.target)
        packet = _Packet(self._numbers[link_key], message)
        self._numbers[link_key] += 1
        is_far = message.receiver not in self._agents
        self._count(message, is_far)
        if is_far:
            packet = packet._replace(message=_on_host(message))
            if not is_tree:
                self._log.setdefault(message.receiver, []).append(packet)
        self._route(packet)
        waiting = self._waiting.pop((message.source, message.target), None)
        if waiting is not None:
            self._local.append(waiting)

    def _count(self, message: Message, is_far: bool) -> None:
        size, traffic = message.size, self._traffic
        traffic.messages[message.kind] += 1
        traffic.bytes[message.kind] += size
        largest, transferred = max(traffic.largest, size), traffic.transferred + size * is_far
        self._traffic = Traffic(traffic.messages, traffic.bytes, largest, transferred)

    def _route(self, packet: _Packet) -> None:
        """Send a packet; for an agent of a lost worker, send it once the agent's new place is known."""
        if packet.message.receiver in self._agents:
            self._local.append(packet)
            return
        link = self._links.get(self._hosts[packet.message.receiver])
        if link is not None:
            link.packets.append(packet)
            self._worker.loop.add_callback(self._drain, link, self._epoch)

    async def _drain(self, link: _Link, epoch: int) -> None:
        """Send a link's packets until none is left or the link is closed; repeat those that are not answered."""
        if link.is_busy:
            return
        link.is_busy = True
        while link.packets and not link.is_closed:
            batch = Parcel(epoch, list(link.packets))
            if await self._is_sent(link, batch):
                for _ in batch.packets:
                    link.packets.popleft()
            else:
                await asyncio.sleep(_RESEND_SECONDS)
        link.is_busy = False

    async def _is_sent(self, link: _Link, batch: Parcel) -> bool:
        from distributed.protocol.serialize import to_serialize

        rpc = self._worker.rpc(link.address)
        try:
            await rpc.actor_execute(actor=link.key, function="receive", args=[to_serialize(batch)], kwargs={})
        except (OSError, KeyError):
            # The worker or its agent host does not answer; the client finds out whether the worker is lost.
            return False
        return True

    def _report_progress(self) -> None:
        """Report when the pseudo-tree is known, and when all agents are done."""
        agents, news = self._agents, self._news
        if self._epoch < 0 or news.outcomes is not None:
            return
        if news.traversals is None and all(p.is_done for agent in agents.values() for p in agent.traversals.values()):
            news = news._replace(traversals=pickle.dumps({name: agent.traversals for name, agent in agents.items()}))
        if all(agent.is_done for agent in agents.values()):
            outcomes = {
                name: Outcome(agent.values, agent.bounds, agent.traversals, agent.efforts)
                for name, agent in agents.items()
            }
            news = news._replace(outcomes=pickle.dumps((outcomes, self._traffic)))
        if news is not self._news:
            self._news = news
            self._log_key()

    def _log_key(self, _: Future[None] | None = None) -> None:
        self._worker.log_event(self._topic, self._key)


def _on_host(message: Message) -> Message:
    """Copy a message's tables from a device."""
    if not isinstance(message.body, Util):
        return message
    tables = tuple(
        table if isinstance(table.values, np.ndarray | np.generic) else table._replace(values=table.values.get())
        for table in message.body.tables
    )
    return message._replace(body=message.body._replace(tables=tables))
