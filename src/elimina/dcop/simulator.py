"""Agents in one process, each with a separate clock; one message is delivered after another.

The clocks are those of E. Sultanik, P. J. Modi and W. Regli, "On modeling multiagent task scheduling as a distributed
constraint optimization problem", IJCAI 2007 (simulated runtime): a message carries the sender's time, the receiver's
clock is set to it plus the message's delay, if that is later, and then advances by the time of the receiver's work.
Only messages connect agents, so an agent waits only for work that it depends on.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from elimina.dcop.agent import Agent, Agreement
from elimina.dcop.engine import Engine, GpuPool
from elimina.dcop.network_settings import Network, Order, drawn_delay, is_reliable, repeat_seconds
from elimina.dcop.problem import FIXED, KINDS, TRAVERSAL, Message
from elimina.errors import DcopError
from elimina.result import Delivery


class Queue:
    """Messages on their way, and timers.

    Args:
        order: Order of deliveries. Timers wait until no message is on its way, unless the order is ``time``.
        generator: Generator of random orders of delivery.
    """

    def __init__(self, order: Order, generator: random.Random) -> None:
        self._order, self._random = order, generator
        self._heap: list[tuple[float, int, Any]] = []
        self._first: deque[tuple[float, Any]] = deque()
        self._any: list[tuple[float, Any]] = []
        self._count = 0

    def put(self, time: float, event: Any, is_due: bool = False) -> None:
        """Add an event: an arrival or, if ``is_due``, a timer."""
        self._count += 1
        if self._order == "time" or is_due:
            heapq.heappush(self._heap, (time, self._count, event))
        elif self._order == "fifo":
            self._first.append((time, event))
        else:
            self._any.append((time, event))

    def pop(self) -> tuple[float, Any] | None:
        """Return the next event and its time; None if no event is left."""
        if self._first:
            return self._first.popleft()
        if self._any:
            at = self._random.randrange(len(self._any))
            self._any[at], self._any[-1] = self._any[-1], self._any[at]
            return self._any.pop()
        if self._heap:
            time, _, event = heapq.heappop(self._heap)
            return time, event
        return None


_SHOWN = 5

_MESSAGES_PER_CHECK = 256
"""Number of messages between checks of the time."""


class Figures(NamedTuple):
    """Figures of a run.

    Attributes:
        seconds: Simulated time: the latest clock of an agent.
        operations: Number of table reads (one for each table and combination of values) on the longest chain of
            messages.
        messages: Number of messages between agents by kind; each counts once, however often it was transmitted.
        bytes: Bytes of all messages by kind.
        largest: Bytes of the largest message.
        repeated: Number of repeated transmissions.
    """

    seconds: float
    operations: int
    messages: Mapping[str, int]
    bytes: Mapping[str, int]
    largest: int
    repeated: int


class Tally:
    """Numbers and bytes of messages between agents, by kind."""

    def __init__(self) -> None:
        self._messages: dict[type, int] = dict.fromkeys(KINDS, 0)
        # Only bytes of messages without a fixed size are added up here.
        self._bytes: dict[type, int] = dict.fromkeys(KINDS, 0)
        self._largest = 0

    def add(self, kind: type, size: int) -> None:
        """Count a message of a number of bytes."""
        self.add_all(kind, 1, size, size)

    def add_all(self, kind: type, number: int, size: int, largest: int) -> None:
        """Count messages of a kind, ``size`` bytes in all; ``largest``: bytes of the largest message of any kind."""
        self._messages[kind] += number
        if kind not in FIXED:
            self._bytes[kind] += size
            self._largest = max(self._largest, largest)

    def add_agreement(self, agreement: Agreement) -> None:
        """Count the messages that built the pseudo-tree."""
        for kind, number in zip(TRAVERSAL, agreement.messages, strict=True):
            self._messages[kind] += number

    def figures(self, seconds: float, operations: int, repeated: int) -> Figures:
        """Return the figures of a run; for the arguments see ``Figures``."""
        kinds = [kind for kind, number in self._messages.items() if number]
        return Figures(
            seconds,
            operations,
            {KINDS[kind]: self._messages[kind] for kind in kinds},
            {KINDS[kind]: self._bytes[kind] + FIXED.get(kind, 0) * self._messages[kind] for kind in kinds},
            max([self._largest, *(FIXED.get(kind, 0) for kind in kinds)]),
            repeated,
        )


class _Transmission(NamedTuple):
    """A packet on its way: a message (or None: an acknowledgement), its number on the link, and the sender's clocks."""

    sender: str
    receiver: str
    number: int
    message: Message | None
    sent: float
    operations: int


class _Host:
    """An agent, its clocks, and its end of the links to others.

    Attributes:
        numbers: Number of messages that the agent sent, by receiver; it starts from 0 again after a crash.
        counted: Number of different messages that the agent sent, by receiver: those repeated after a crash count once.
        waiting: Packets that are not acknowledged, by receiver and number.
        seen: Senders and numbers of received messages.
        log: Messages received, in order. The log survives crashes, and ``seen`` is made from it.
        is_busy: True while the agent works on one of several GPUs.
        late: Messages that have arrived while the agent is busy, and their times.
    """

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.clock, self.operations = 0.0, 0
        self.is_down = False
        self.numbers: Counter[str] = Counter()
        self.counted: Counter[str] = Counter()
        self.waiting: dict[tuple[str, int], _Transmission] = {}
        self.seen: set[tuple[str, int]] = set()
        self.log: list[_Transmission] = []
        self.is_busy = False
        self.late: deque[tuple[float, _Transmission]] = deque()


class Simulation:
    """A run of agents.

    Args:
        agents: All agents, none of them started.
        network: Network between the agents.
        timer: Clock, in seconds, for measuring how long an agent works.
        revive: Function that makes an agent again after a crash, by its name.
        listener: Function to call with each delivery.
        watch: Function to call with the operations of each elimination.
        gpus: GPUs that agents share; while an agent works on one, others continue. None: agents work one after another.
        agreement: The pseudo-tree, if it is built already. None: the agents build it by messages.
    """

    def __init__(
        self,
        agents: Iterable[Agent],
        network: Network,
        timer: Callable[[], float],
        revive: Callable[[str], Agent],
        listener: Callable[[Delivery], None] | None = None,
        watch: Callable[[int], None] | None = None,
        gpus: GpuPool | None = None,
        agreement: Agreement | None = None,
    ) -> None:
        self._hosts = {agent.name: _Host(agent) for agent in agents}
        self._network, self._timer, self._revive = network, timer, revive
        self._listener, self._watch, self._gpus = listener, watch, gpus
        self._random = random.Random(network.seed)
        self._queue = Queue(network.order, self._random)
        self._crashes, self._is_reliable = dict(network.crashes), is_reliable(network)
        self._tally, self._repeated = Tally(), 0
        if agreement is not None:
            self._tally.add_agreement(agreement)
            for host, clock in zip(self._hosts.values(), agreement.clocks, strict=True):
                host.clock = clock

    @property
    def agents(self) -> list[Agent]:
        """Present state of the agents."""
        return [host.agent for host in self._hosts.values()]

    def run(self) -> Figures:
        """Deliver messages until there are none.

        Raises:
            DcopError: A message was never acknowledged, or an agent did not finish.
        """
        for host in self._hosts.values():
            self._start(host, 0.0)
        hosts, is_reliable = self._hosts, self._is_reliable
        next_event = self._queue.pop if self._gpus is None else partial(self._next_event, self._gpus)
        watch, messages_left = self._watch, _MESSAGES_PER_CHECK
        while (event := next_event()) is not None:
            arrival, content = event
            messages_left -= 1
            if not messages_left and watch is not None:
                messages_left = _MESSAGES_PER_CHECK
                watch(0)
            if is_reliable:
                self._work(hosts[content.receiver], arrival, content)
            elif isinstance(content, _Transmission):
                self._arrive(arrival, content)
            else:
                content(arrival)
        unfinished = [name for name, host in self._hosts.items() if not host.agent.is_done]
        if unfinished:
            names = ", ".join(map(repr, unfinished[:_SHOWN])) + (", ..." if len(unfinished) > _SHOWN else "")
            raise DcopError(
                f"{len(unfinished)} of {len(self._hosts)} agents did not finish ({names}), and no message is left"
            )
        return self.figures()

    def figures(self) -> Figures:
        """Return the clocks and messages so far."""
        clocks = (host.clock for host in self._hosts.values())
        operations = (host.operations for host in self._hosts.values())
        return self._tally.figures(max(clocks, default=0.0), max(operations, default=0), self._repeated)

    def _next_event(self, gpus: GpuPool) -> tuple[float, Any] | None:
        """Send the results of GPUs, and return the next event; wait for GPUs if there is no event."""
        gpus.collect(is_patient=False)
        while (event := self._queue.pop()) is None and gpus.collect(is_patient=True):
            pass
        return event

    def _start(self, host: _Host, time: float) -> None:
        self._work(host, time, None)

    def _work(self, host: _Host, time: float, packet: _Transmission | None) -> None:
        """Let an agent start or process a packet, and post its messages; a busy agent stores the packet for later."""
        if host.is_busy:
            assert packet is not None
            host.late.append((time, packet))
            return
        agent, timer = host.agent, self._timer
        if time > host.clock:
            host.clock = time
        begun, message = host.clock, None
        if packet is not None:
            message = packet.message
            if packet.operations > host.operations:
                host.operations = packet.operations
        started = timer()
        messages = agent.start() if message is None else agent.receive(message)
        host.clock += timer() - started
        if messages:
            self._post(host, messages)
        self._eliminate(host, packet, begun)

    def _eliminate(self, host: _Host, packet: _Transmission | None, begun: float) -> None:
        """Run an agent's work, or pass it to one of several GPUs."""
        agent = host.agent
        while agent.has_work:
            bucket = agent.next_bucket
            if self._gpus is not None and self._gpus.takes(bucket.combinations):
                host.is_busy = True
                tables = [table.values for table in bucket.arrived()]
                self._gpus.submit(partial(self._timed, agent), tables, partial(self._go_on, host, agent, packet, begun))
                return
            self._record(host, *self._timed(agent))
        if self._listener is not None:
            self._listener(_delivery(agent.name, packet, begun, host.clock))

    def _timed(self, agent: Agent, engine: Engine | None = None) -> tuple[list[Message], float, int]:
        """Eliminate an agent's next variable; return its messages, and the seconds and operations."""
        earlier_operations, started = agent.operations, self._timer()
        messages = agent.work(engine)
        return messages, self._timer() - started, agent.operations - earlier_operations

    def _record(self, host: _Host, messages: Iterable[Message], seconds: float, operations: int) -> None:
        """Advance an agent's clocks, and post its messages."""
        host.clock += seconds
        host.operations += operations
        if self._watch is not None:
            self._watch(operations)
        self._post(host, messages)

    def _go_on(
        self,
        host: _Host,
        agent: Agent,
        packet: _Transmission | None,
        begun: float,
        work: tuple[list[Message], float, int],
    ) -> None:
        """Resume an agent after work on a GPU, and deliver messages that have arrived meanwhile."""
        if host.agent is not agent or host.is_down:
            return
        host.is_busy = False
        self._record(host, *work)
        self._eliminate(host, packet, begun)
        while host.late and not host.is_busy:
            self._work(host, *host.late.popleft())

    def _post(self, host: _Host, messages: Iterable[Message]) -> None:
        clock, operations = host.clock, host.operations
        if self._is_reliable:
            put, network, count = self._queue.put, self._network, self._tally.add
            for message in messages:
                count(type(message.body), message.size)
                put(
                    clock + drawn_delay(network, self._random),
                    _Transmission(message.sender, message.receiver, 0, message, clock, operations),
                )
            return
        for message in messages:
            receiver = message.receiver
            number = host.numbers[receiver]
            host.numbers[receiver] += 1
            if number < host.counted[receiver]:
                self._repeated += 1
            else:
                host.counted[receiver] += 1
                self._tally.add(type(message.body), message.size)
            packet = _Transmission(message.sender, receiver, number, message, clock, operations)
            host.waiting[receiver, number] = packet
            self._transmit(packet, clock)
            self._remind(host, packet, clock, 0)

    def _transmit(self, packet: _Transmission, time: float) -> None:
        """Send a packet, or lose it, or send it twice."""
        for _ in range(2 if self._random.random() < self._network.duplicate else 1):
            if self._random.random() >= self._network.loss:
                self._queue.put(time + drawn_delay(self._network, self._random), packet)

    def _remind(self, host: _Host, packet: _Transmission, time: float, tries: int) -> None:
        """Set a timer that repeats a packet if no acknowledgement has come; each wait is longer."""
        later = time + repeat_seconds(self._network) * 2 ** min(tries, 8)
        self._queue.put(later, partial(self._repeat, host, packet, tries), is_due=True)

    def _repeat(self, host: _Host, packet: _Transmission, tries: int, time: float) -> None:
        if host.waiting.get((packet.receiver, packet.number)) is not packet:
            return
        if tries >= self._network.retries:
            assert packet.message is not None
            raise DcopError(
                f"agent {packet.sender!r} sent {packet.message.kind!r} to {packet.receiver!r} {tries + 1} times "
                "without an answer, so the run ended; use a smaller loss, more retries, or a shorter downtime of "
                "crashed agents"
            )
        self._repeated += 1
        self._transmit(packet, time)
        self._remind(host, packet, time, tries + 1)

    def _arrive(self, time: float, packet: _Transmission) -> None:
        """Process a packet that arrives over a network with faults."""
        host = self._hosts[packet.receiver]
        if host.is_down:
            return
        if packet.message is None:
            host.waiting.pop((packet.sender, packet.number), None)
            return
        key = (packet.sender, packet.number)
        if key not in host.seen and self._crashes.get(packet.receiver) == len(host.log) + 1:
            self._crash(host, time)
            return
        self._transmit(_Transmission(packet.receiver, packet.sender, packet.number, None, time, 0), time)
        if key not in host.seen:
            host.seen.add(key)
            host.log.append(packet)
            self._work(host, time, packet)

    def _crash(self, host: _Host, time: float) -> None:
        """Lose everything except the log; restart later, if at all."""
        del self._crashes[host.agent.name]
        host.is_down, host.is_busy = True, False
        host.waiting.clear()
        host.late.clear()
        if self._network.downtime < float("inf"):
            self._queue.put(time + self._network.downtime, partial(self._recover, host), is_due=True)

    def _recover(self, host: _Host, time: float) -> None:
        """Restart, and process the received messages again: receivers recognise messages that are repeated."""
        host.agent, host.is_down = self._revive(host.agent.name), False
        host.numbers.clear()
        host.operations = 0
        self._start(host, time)
        for packet in list(host.log):
            self._work(host, time, packet)


def _delivery(name: str, packet: _Transmission | None, begun: float, ended: float) -> Delivery:
    if packet is None or packet.message is None:
        return Delivery("", name, "", 0, begun, begun, ended)
    message = packet.message
    return Delivery(packet.sender, name, message.kind, message.size, packet.sent, begun, ended)
